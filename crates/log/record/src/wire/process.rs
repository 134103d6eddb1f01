//! Frames that tell of the lives of processes.

use super::{
    check_parts, frame_kind, read, tarsier_process, Event, FrameKind, Part, Parts, WireError,
    TARSIER_PART_CWD, TARSIER_PART_EXE, TARSIER_PART_EXEC_FILE, TARSIER_PART_PATH,
    TARSIER_PART_PROCTITLE, TARSIER_PROCESS_ABOVE, TARSIER_PROCESS_ENDED, TARSIER_PROCESS_EXECUTED,
    TARSIER_PROCESS_FOUND, TARSIER_PROCESS_KERNEL, TARSIER_PROCESS_MADE,
};
use core::mem::size_of;

/// A process among all that there are from the start of the system to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProcessId {
    /// Time when it was made, in nanoseconds of CLOCK_BOOTTIME.
    pub start_ns: u64,
    /// Number of the process in the first pid namespace.
    pub pid: u32,
}

/// A PROCESS frame: a change of a process.
#[derive(Debug, Clone, Copy)]
pub struct ProcessFrame<'a> {
    /// The process.
    pub process: ProcessId,
    /// Number of its program: each execve changes it, and a process begins with that of its maker.
    pub image: u64,
    /// Change of the process.
    pub change: ProcessChange<'a>,
}

/// Change of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessChange<'a> {
    /// Made by this process.
    Made(ProcessId),
    /// Execution of a program.
    Executed(Executed<'a>),
    /// End of the last thread.
    Ended,
    /// Existing process: its parent, and the program that it executes, whose command line is not known.
    Found(ProcessId, Executed<'a>),
    /// As [`ProcessChange::Found`], of a process from which the daemon descends, in its pid namespace or not.
    Above(ProcessId, Executed<'a>),
    /// Existing kernel thread: its parent.
    Kernel(ProcessId),
}

/// Program that a process executes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Executed<'a> {
    /// Walked path of the program; `None` if it is not known.
    pub exe: Option<Part<'a>>,
    /// Device, in the kernel's encoding, and inode number of its file; `None` if they are not known.
    pub file: Option<(u32, u64)>,
    /// Start of the command line: arguments separated by NUL.
    pub title: Option<Part<'a>>,
    /// Path of the script, as execve was given it; `None` if it was none. The program then is its interpreter.
    pub script: Option<Part<'a>>,
    /// Walked path of the directory that a relative path of the script is relative to.
    pub cwd: Option<Part<'a>>,
}

impl<'a> ProcessFrame<'a> {
    /// Checks the whole frame `bytes`, which must be exactly one PROCESS frame.
    pub fn parse(bytes: &'a [u8]) -> Result<ProcessFrame<'a>, WireError> {
        let (kind, frame) = frame_kind(bytes)?;
        if kind != FrameKind::Process {
            return Err(WireError::Kind(frame.kind));
        }

        let header: tarsier_process = read(bytes)?;
        let parts = &bytes[size_of::<tarsier_process>()..];
        check_parts(parts, header.parts)?;
        let part = |tag| {
            let found = Parts::new(parts).find(|part| part.tag == tag);
            found.filter(|part| !part.is_unreadable())
        };
        let executed = || Executed {
            exe: part(TARSIER_PART_EXE),
            file: part(TARSIER_PART_EXEC_FILE)
                .and_then(|part| part.exec_file())
                .filter(|file| file.inode.valid != 0)
                .map(|file| (file.inode.dev, file.inode.ino)),
            title: part(TARSIER_PART_PROCTITLE),
            script: part(TARSIER_PART_PATH),
            cwd: part(TARSIER_PART_CWD),
        };

        let maker = ProcessId {
            pid: header.maker,
            start_ns: header.maker_start_ns,
        };
        let change = match header.change {
            TARSIER_PROCESS_MADE => ProcessChange::Made(maker),
            TARSIER_PROCESS_EXECUTED => ProcessChange::Executed(executed()),
            TARSIER_PROCESS_ENDED => ProcessChange::Ended,
            TARSIER_PROCESS_FOUND => ProcessChange::Found(maker, executed()),
            TARSIER_PROCESS_ABOVE => ProcessChange::Above(maker, executed()),
            TARSIER_PROCESS_KERNEL => ProcessChange::Kernel(maker),
            other => return Err(WireError::Process(other)),
        };

        Ok(ProcessFrame {
            process: ProcessId {
                pid: header.pid,
                start_ns: header.start_time_ns,
            },
            image: header.image,
            change,
        })
    }
}

impl Event<'_> {
    /// The process whose event this is; `None` if the kernel does not tell when it was made.
    pub fn process(&self) -> Option<ProcessId> {
        let header = self.header();
        let process = ProcessId {
            pid: header.pid,
            start_ns: header.start_time_ns,
        };
        (process.start_ns != 0).then_some(process)
    }
}
