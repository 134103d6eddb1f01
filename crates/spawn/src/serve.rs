//! The spawner's side.

use crate::message::{Reply, Request, BYTES_MAX};
use crate::permit::Permits;
use crate::start::{self, Surroundings};
use rustix::io::Errno;
use rustix::net::{
    recvmsg, send, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendFlags,
};
use rustix::process::{
    set_dumpable_behavior, set_parent_process_death_signal, DumpableBehavior, Signal,
};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

/// The hidden command: see [`serve_as`].
pub const COMMAND: &str = "spawner";
/// How likely the kernel is to kill a process when memory runs out: proc(5).
const OOM_SCORE: &str = "/proc/self/oom_score_adj";
/// Never, as for auditd.
const NEVER: &str = "-1000";
/// Signals of a terminal or service manager. The daemon gets them too, and still needs the spawner.
const IGNORED: [i32; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

/// What the spawner learnt when it was started.
struct Spawner {
    permits: Permits,
    command: Vec<OsString>,
    parent: u32,
    /// `oom_score_adj` of the programs, if it differs from the spawner's.
    oom_score: Option<String>,
    tidy: fn(),
}

/// Runs as the spawner until the daemon is gone. `args` follow [`COMMAND`]: the number of the
/// descriptor on which requests come, the configuration file, and the COMMAND of `tarsier run`.
/// `tidy` cleans up what the daemon cannot when it ends.
///
/// # Errors
/// The arguments are not those that [`Launcher::start`](crate::Launcher::start) gives, or the daemon has ended.
pub fn serve_as(mut args: impl Iterator<Item = OsString>, tidy: fn()) -> io::Result<()> {
    let wrong = || io::Error::from(io::ErrorKind::InvalidInput);
    let number = args.next().and_then(|text| text.to_str()?.parse().ok());
    let number = number.filter(|number| *number > 2).ok_or_else(wrong)?;
    let config = PathBuf::from(args.next().ok_or_else(wrong)?);
    rustix::io::fcntl_setfd(
        // SAFETY: the number is only looked at; if no such descriptor is open, the call fails.
        unsafe { BorrowedFd::borrow_raw(number) },
        rustix::io::FdFlags::CLOEXEC,
    )?;
    // SAFETY: it is open, and nothing else in this process knows it.
    let socket = unsafe { OwnedFd::from_raw_fd(number) };
    let parent = rustix::process::getppid().ok_or_else(wrong)?;
    for signal in IGNORED {
        // SAFETY: no handler is set, and this process has one thread.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
    rustix::thread::set_name(c"tarsier-spawner")?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    set_parent_process_death_signal(Some(Signal::KILL))?;
    if rustix::process::getppid() != Some(parent) {
        return Err(io::ErrorKind::BrokenPipe.into());
    }
    let mut spawner = Spawner {
        permits: Permits::of(&config),
        command: args.collect(),
        parent: parent.as_raw_nonzero().get() as u32,
        oom_score: stay_alive(),
        tidy,
    };
    spawner.serve(socket.as_fd())
}

/// Keeps the kernel from killing this process when memory runs out. Returns the previous value if
/// it was different.
fn stay_alive() -> Option<String> {
    let before = std::fs::read_to_string(OOM_SCORE).ok()?;
    let before = before.trim().to_owned();
    if before == NEVER || std::fs::write(OOM_SCORE, NEVER).is_err() {
        return None;
    }
    Some(before)
}

impl Spawner {
    /// Answers requests until the daemon closes its end.
    fn serve(&mut self, socket: BorrowedFd<'_>) -> io::Result<()> {
        let mut buffer = vec![0; BYTES_MAX];
        while let Some((len, stdin)) = receive(socket, &mut buffer)? {
            let reply = match serde_json::from_slice(&buffer[..len]) {
                Ok(Request::Tidy) => {
                    (self.tidy)();
                    Reply::default()
                }
                Ok(request) => self.start(&request, stdin),
                Err(error) => Reply::failed(&io::Error::from(error), None),
            };
            let text = serde_json::to_vec(&reply)?;
            while let Err(errno) = send(socket, &text, SendFlags::NOSIGNAL) {
                if errno != Errno::INTR {
                    return Err(errno.into());
                }
            }
        }
        Ok(())
    }

    fn start(&mut self, request: &Request, stdin: Option<OwnedFd>) -> Reply {
        let surroundings = Surroundings {
            command: &self.command,
            parent: self.parent,
        };
        let command = self
            .permits
            .check(request)
            .and_then(|()| start::command(request, stdin, &surroundings));
        match command.and_then(|command| self.fork(command)) {
            Ok(reply) => reply,
            Err(error) => Reply::failed(&error, None),
        }
    }

    /// Makes a child of the daemon that becomes the command.
    fn fork(&self, mut command: Command) -> io::Result<Reply> {
        let (mut failure, mut theirs) = {
            let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
            (File::from(read), File::from(write))
        };
        let flags = (libc::CLONE_PARENT | libc::SIGCHLD) as libc::c_ulong;
        // SAFETY: as fork(2), but for the parent of the child. This process has one thread, so the child finds no lock
        // taken. It executes or ends.
        let pid = unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) } as i32;
        match pid {
            -1 => return Err(io::Error::last_os_error()),
            0 => {
                let error = self.execute(&mut command);
                let text = serde_json::to_vec(&Reply::failed(&error, None)).unwrap_or_default();
                let _ = theirs.write_all(&text);
                // SAFETY: the child must not run what the parent has registered for its own end.
                unsafe { libc::_exit(127) };
            }
            _ => {}
        }
        drop(theirs);
        let mut text = Vec::new();
        failure.read_to_end(&mut text)?;
        let failed: Option<Reply> = serde_json::from_slice(&text).ok();
        Ok(Reply {
            pid: Some(pid),
            error: failed.and_then(|reply| reply.error),
        })
    }

    /// Becomes the command, in the child. Returns only if that failed.
    fn execute(&self, command: &mut Command) -> io::Error {
        if let Some(score) = &self.oom_score {
            let _ = std::fs::write(OOM_SCORE, score);
        }
        for signal in IGNORED {
            // SAFETY: no handler is set, and this process has one thread.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
        command.exec()
    }
}

/// Receives a request: its length, and the descriptor that came with it. `None` when the daemon is gone.
fn receive(
    socket: BorrowedFd<'_>,
    buffer: &mut [u8],
) -> io::Result<Option<(usize, Option<OwnedFd>)>> {
    loop {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut parts = [IoSliceMut::new(buffer)];
        let received = recvmsg(socket, &mut parts, &mut control, RecvFlags::CMSG_CLOEXEC);
        let message = match received {
            Ok(message) => message,
            Err(Errno::INTR) => continue,
            Err(errno) => return Err(errno.into()),
        };
        let mut fds = control.drain().filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(fds) => Some(fds),
            _ => None,
        });
        let stdin = fds.next().and_then(|mut fds| fds.next());
        return match message.bytes {
            0 => Ok(None),
            _ if message.flags.contains(ReturnFlags::TRUNC) => {
                Err(io::ErrorKind::InvalidData.into())
            }
            len => Ok(Some((len, stdin))),
        };
    }
}
