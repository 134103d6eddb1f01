//! Filters of running processes, by PTRACE_SECCOMP_GET_FILTER (ptrace(2)).

use crate::{Chain, Filter, Insn, Invalid};
use std::fs;
use std::io;

/// One thread and its filters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadFilters {
    /// Thread id.
    pub tid: i32,
    /// Its name (/proc/PID/task/TID/comm).
    pub name: String,
    /// Its filters; empty if it has none.
    pub chain: Chain,
}

/// Why filters cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum DumpError {
    /// Nobody there, or no longer.
    #[error("process {pid} does not exist, or ended while it was read; nothing was changed")]
    Gone {
        /// The process.
        pid: i32,
    },
    /// The kernel does not let us.
    #[error("{call} of thread {tid}: {source}; {remedy}")]
    Refused {
        /// The request.
        call: &'static str,
        /// The thread.
        tid: i32,
        /// Its error.
        source: io::Error,
        /// What to do.
        remedy: &'static str,
    },
    /// The thread is in strict mode, which has no filters.
    #[error("thread {tid} is in seccomp's strict mode, which has no filters: only read, write, exit and sigreturn are allowed")]
    Strict {
        /// The thread.
        tid: i32,
    },
    /// The kernel gave a program that it should have refused.
    #[error(
        "filter {index} of thread {tid} is not valid: {invalid}; report this as a bug of Tarsier"
    )]
    Invalid {
        /// The thread.
        tid: i32,
        /// Which filter, from the oldest.
        index: usize,
        /// What is wrong.
        invalid: Invalid,
    },
}

/// Reads the filters of every thread of a process. Each thread is stopped for as long as its
/// filters are copied. Needs CAP_SYS_ADMIN in the initial user namespace, and a caller that has no
/// filters itself.
///
/// # Errors
/// A process that is gone, missing privileges, a thread that something else traces.
pub fn dump(pid: i32) -> Result<Vec<ThreadFilters>, DumpError> {
    let gone = |_| DumpError::Gone { pid };
    let mut threads = Vec::new();
    for entry in fs::read_dir(format!("/proc/{pid}/task")).map_err(gone)? {
        let name = entry.map_err(gone)?.file_name();
        let Some(tid) = name.to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        // A thread may end at any time; the process is gone only when all have.
        match thread(pid, tid) {
            Ok(thread) => threads.push(thread),
            Err(DumpError::Gone { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    if threads.is_empty() {
        return Err(DumpError::Gone { pid });
    }
    threads.sort_by_key(|thread| thread.tid);
    Ok(threads)
}

/// Seccomp mode of a thread, from its status file: 0 none, 1 strict, 2 filters.
fn mode(pid: i32, tid: i32) -> Result<u32, DumpError> {
    let status = fs::read_to_string(format!("/proc/{pid}/task/{tid}/status"))
        .map_err(|_| DumpError::Gone { pid })?;
    let mode = status
        .lines()
        .find_map(|line| line.strip_prefix("Seccomp:"));
    Ok(mode.and_then(|mode| mode.trim().parse().ok()).unwrap_or(0))
}

fn thread(pid: i32, tid: i32) -> Result<ThreadFilters, DumpError> {
    let mode = mode(pid, tid)?;
    if mode == 1 {
        return Err(DumpError::Strict { tid });
    }
    let name = fs::read_to_string(format!("/proc/{pid}/task/{tid}/comm"))
        .map_err(|_| DumpError::Gone { pid })?;
    let mut filters = Vec::new();
    if mode == 2 {
        let stopped = Stopped::new(tid)?;
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

/// A thread that we trace and have stopped; dropping lets it go on.
struct Stopped {
    tid: i32,
}

impl Stopped {
    fn new(tid: i32) -> Result<Stopped, DumpError> {
        request(
            "PTRACE_SEIZE",
            libc::PTRACE_SEIZE,
            tid,
            0,
            std::ptr::null_mut(),
        )?;
        let stopped = Stopped { tid };
        request(
            "PTRACE_INTERRUPT",
            libc::PTRACE_INTERRUPT,
            tid,
            0,
            std::ptr::null_mut(),
        )?;
        let mut status = 0;
        // SAFETY: status is a valid place for the result.
        let got = unsafe { libc::waitpid(tid, &mut status, libc::__WALL) };
        if got != tid || !libc::WIFSTOPPED(status) {
            return Err(DumpError::Gone { pid: tid });
        }
        Ok(stopped)
    }

    /// The filter at `index`, 0 the oldest; `None` past the newest.
    fn filter(&self, index: usize) -> Result<Option<Vec<Insn>>, DumpError> {
        const NAME: &str = "PTRACE_SECCOMP_GET_FILTER";
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
        // The array has as many elements as the kernel just said this filter has; filters
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
        // Fails only if the thread is gone.
        let _ = request(
            "PTRACE_DETACH",
            libc::PTRACE_DETACH,
            self.tid,
            0,
            std::ptr::null_mut(),
        );
    }
}

/// One ptrace request; its result if that is not negative. `data` is null or as large as the
/// request writes.
fn request(
    call: &'static str,
    request: libc::c_uint,
    tid: i32,
    address: usize,
    data: *mut libc::c_void,
) -> Result<i64, DumpError> {
    // SAFETY: of the requests made here only GET_FILTER writes to data, which its caller made
    // large enough or null.
    let result = unsafe { libc::ptrace(request, tid, address, data) };
    if result >= 0 {
        return Ok(result);
    }
    let source = io::Error::last_os_error();
    let own = fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    let filtered = own.lines().any(|line| line == "Seccomp:\t2");
    let remedy = match source.raw_os_error() {
        Some(libc::ESRCH) => return Err(DumpError::Gone { pid: tid }),
        Some(libc::EACCES) if filtered => "this process has seccomp filters itself: run it outside of the container or service",
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
