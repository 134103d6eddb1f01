//! Reads filters of running processes with PTRACE_SECCOMP_GET_FILTER (ptrace(2)).

use crate::{Chain, Filter, Insn, Invalid};
use std::collections::BTreeSet;
use std::fs;
use std::io;

/// One thread and its filters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadFilters {
    /// Thread id.
    pub tid: i32,
    /// Name of the thread (/proc/PID/task/TID/comm).
    pub name: String,
    /// Filters of the thread; empty if it has none.
    pub chain: Chain,
}

/// Reason why filters cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum DumpError {
    /// The process does not exist, or no longer does.
    #[error("process {pid} does not exist, or ended while it was read; nothing was changed")]
    Gone {
        /// The process.
        pid: i32,
    },
    /// The kernel refused a ptrace request.
    #[error("{call} of thread {tid}: {source}; {remedy}")]
    Refused {
        /// The request.
        call: &'static str,
        /// The thread.
        tid: i32,
        /// The error of the request.
        source: io::Error,
        /// Remedy.
        remedy: &'static str,
    },
    /// The thread is in strict mode, which has no filters.
    #[error("thread {tid} is in seccomp's strict mode, which has no filters: only read, write, exit and sigreturn are allowed")]
    Strict {
        /// The thread.
        tid: i32,
    },
    /// The kernel returned a program that it should have refused.
    #[error(
        "filter {index} of thread {tid} is not valid: {invalid}; report this as a bug of Tarsier"
    )]
    Invalid {
        /// The thread.
        tid: i32,
        /// Index of the filter, counted from the oldest.
        index: usize,
        /// Fault of the filter.
        invalid: Invalid,
    },
}

/// Reads the filters of every thread of a process. Each thread that has filters is stopped while
/// they are copied. Needs CAP_SYS_ADMIN in the initial user namespace, and a caller that has no
/// filters itself.
///
/// Threads that start meanwhile are read, too, and threads that end are left out. If another
/// process gets the same number, nothing of it is read.
///
/// # Errors
/// The process is gone, the caller lacks privileges, or another process traces a thread.
pub fn dump(pid: i32) -> Result<Vec<ThreadFilters>, DumpError> {
    let process = Process::find(pid)?;
    let mut threads = Vec::new();
    let mut seen = BTreeSet::new();

    // Threads may start while others are read: the list is read until it has no new ones.
    for _ in 0..PASSES_MAX {
        let new: Vec<i32> = process
            .threads()?
            .into_iter()
            .filter(|&tid| seen.insert(tid))
            .collect();
        if new.is_empty() {
            break;
        }
        for tid in new {
            // A thread may end at any time; the process is gone only when all threads have ended.
            match thread(process, tid) {
                Ok(thread) => threads.push(thread),
                Err(DumpError::Gone { .. }) => {}
                Err(error) => return Err(error),
            }
        }
    }

    if threads.is_empty() {
        return Err(DumpError::Gone { pid });
    }

    threads.sort_by_key(|thread| thread.tid);

    Ok(threads)
}

/// Limit of how often the threads are listed until there is no new one: a process may create
/// threads all the time. New threads have the filters of the threads that create them.
const PASSES_MAX: usize = 5;

/// A process; its start time distinguishes it from a later one with the same number.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Process {
    pid: i32,
    start_ticks: u64,
}

impl Process {
    fn find(pid: i32) -> Result<Process, DumpError> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat"));
        // proc_pid_stat(5): the name is in parentheses and may contain anything; field 22 is
        // starttime.
        let start = stat.ok().and_then(|stat| {
            let (_, rest) = stat.rsplit_once(')')?;
            rest.split_whitespace().nth(19)?.parse().ok()
        });
        let start_ticks = start.ok_or(DumpError::Gone { pid })?;
        Ok(Process { pid, start_ticks })
    }

    /// Ids of the process's threads; an error once it is gone.
    fn threads(self) -> Result<Vec<i32>, DumpError> {
        let gone = |_| DumpError::Gone { pid: self.pid };
        let entries = fs::read_dir(format!("/proc/{}/task", self.pid)).map_err(gone)?;
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        Ok(names.filter_map(|name| name.parse().ok()).collect())
    }

    /// Whether a thread that is stopped, and so cannot end now, belongs to this process.
    fn holds(self, tid: i32) -> bool {
        let is_listed = fs::metadata(format!("/proc/{}/task/{tid}", self.pid)).is_ok();
        is_listed && Process::find(self.pid).is_ok_and(|now| now == self)
    }

    /// The value of a line of a thread's status file (proc_pid_status(5)).
    fn status(self, tid: i32, name: &str) -> Result<String, DumpError> {
        let gone = DumpError::Gone { pid: self.pid };
        let path = format!("/proc/{}/task/{tid}/status", self.pid);
        let status = fs::read_to_string(path).map_err(|_| gone)?;
        let value = status.lines().find_map(|line| line.strip_prefix(name));
        Ok(value.unwrap_or_default().trim().to_owned())
    }

    /// Whether a thread has ended and only waits to be reaped.
    fn has_ended(self, tid: i32) -> bool {
        let state = self.status(tid, "State:");
        state.map_or(true, |state| state.starts_with(['Z', 'X']))
    }
}

fn thread(process: Process, tid: i32) -> Result<ThreadFilters, DumpError> {
    let gone = DumpError::Gone { pid: process.pid };
    let mode = process.status(tid, "Seccomp:")?;
    if process.has_ended(tid) {
        return Err(gone);
    }
    // Mode 1 is SECCOMP_MODE_STRICT, 2 SECCOMP_MODE_FILTER (proc_pid_status(5)).
    if mode == "1" {
        return Err(DumpError::Strict { tid });
    }

    let comm = fs::read_to_string(format!("/proc/{}/task/{tid}/comm", process.pid));
    let Ok(name) = comm else { return Err(gone) };
    let mut filters = Vec::new();

    if mode == "2" {
        let stopped = Stopped::new(tid).map_err(|error| match error {
            // A ptrace request on a thread that has ended fails as if it were protected.
            DumpError::Refused { .. } if process.has_ended(tid) => DumpError::Gone { pid: tid },
            error => error,
        })?;
        // Before it was stopped, the thread may have ended and its number been given to another process.
        if !process.holds(tid) {
            return Err(gone);
        }
        while let Some(insns) = stopped.filter(filters.len())? {
            let index = filters.len();
            let invalid = |invalid| DumpError::Invalid {
                tid,
                index,
                invalid,
            };
            filters.push(Filter::new(insns).map_err(invalid)?);
        }
    }

    Ok(ThreadFilters {
        tid,
        name: name.trim_end().to_owned(),
        chain: Chain::new(filters),
    })
}

/// PTRACE_SECCOMP_GET_FILTER of linux/ptrace.h.
const GET_FILTER: libc::c_uint = 0x420c;

/// A thread that is traced and stopped; dropping this lets it go on.
struct Stopped {
    tid: i32,
    /// The signal that it was about to receive when it stopped; 0 for none.
    signal: i32,
}

impl Stopped {
    fn new(tid: i32) -> Result<Stopped, DumpError> {
        let null = std::ptr::null_mut();
        request("PTRACE_SEIZE", libc::PTRACE_SEIZE, tid, 0, null)?;

        // From here on, dropping detaches. For a thread that never stopped this fails harmlessly.
        let mut stopped = Stopped { tid, signal: 0 };
        request("PTRACE_INTERRUPT", libc::PTRACE_INTERRUPT, tid, 0, null)?;
        let status = loop {
            let mut status = 0;
            // SAFETY: status is a valid place for the result.
            let got = unsafe { libc::waitpid(tid, &mut status, libc::__WALL) };
            if got == tid {
                break status;
            }
            if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
                return Err(DumpError::Gone { pid: tid });
            }
        };

        if !libc::WIFSTOPPED(status) {
            return Err(DumpError::Gone { pid: tid });
        }

        // ptrace(2), "Signal-delivery-stop": every other stop has an event in the upper bits.
        if status >> 16 == 0 {
            stopped.signal = libc::WSTOPSIG(status);
        }

        Ok(stopped)
    }

    /// The filter at `index`, counted from 0 for the oldest; `None` past the newest.
    fn filter(&self, index: usize) -> Result<Option<Vec<Insn>>, DumpError> {
        const NAME: &str = "PTRACE_SECCOMP_GET_FILTER";

        // With a null pointer the kernel only returns the length.
        let count = match request(NAME, GET_FILTER, self.tid, index, std::ptr::null_mut()) {
            Ok(count) => count,
            Err(DumpError::Refused { source, .. })
                if source.raw_os_error() == Some(libc::ENOENT) =>
            {
                return Ok(None)
            }
            Err(error) => return Err(error),
        };

        let mut raw = vec![
            libc::sock_filter {
                code: 0,
                jt: 0,
                jf: 0,
                k: 0
            };
            count as usize
        ];

        // The array has as many elements as the kernel has just reported for this filter; filters
        // never change, and the thread stays stopped.
        request(NAME, GET_FILTER, self.tid, index, raw.as_mut_ptr().cast())?;
        let insn = |insn: libc::sock_filter| Insn {
            code: insn.code,
            jt: insn.jt,
            jf: insn.jf,
            k: insn.k,
        };

        Ok(Some(raw.into_iter().map(insn).collect()))
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        // Delivers the signal that the thread was about to receive. Fails only if the thread is
        // gone.
        let signal = std::ptr::without_provenance_mut(self.signal as usize);
        let _ = request("PTRACE_DETACH", libc::PTRACE_DETACH, self.tid, 0, signal);
    }
}

/// Makes one ptrace request. Returns its result if that is not negative. `data` is null, a number,
/// or memory as large as the request writes.
fn request(
    call: &'static str,
    request: libc::c_uint,
    tid: i32,
    address: usize,
    data: *mut libc::c_void,
) -> Result<i64, DumpError> {
    // SAFETY: of the requests made here only GET_FILTER writes to data, which its caller made
    // large enough or null; DETACH takes it for a number.
    let result = unsafe { libc::ptrace(request, tid, address, data) };
    if result >= 0 {
        return Ok(result);
    }

    let source = io::Error::last_os_error();
    let own = fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    let filtered = own.lines().any(|line| line == "Seccomp:\t2");
    let remedy = match source.raw_os_error() {
        Some(libc::ESRCH) => return Err(DumpError::Gone { pid: tid }),
        Some(libc::EACCES | libc::EPERM) if filtered => "this process has seccomp filters itself: run it outside of the container or service",
        Some(libc::EPERM) => "run as root, where kernel.yama.ptrace_scope is not 3, and stop debuggers that trace the process",
        Some(libc::EACCES) => "run with CAP_SYS_ADMIN in the initial user namespace",
        Some(libc::EINVAL | libc::EIO) => "the kernel needs CONFIG_CHECKPOINT_RESTORE and CONFIG_SECCOMP_FILTER",
        _ => "try again",
    };

    Err(DumpError::Refused {
        call,
        tid,
        source,
        remedy,
    })
}
