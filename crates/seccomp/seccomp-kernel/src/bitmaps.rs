//! The kernel's own bitmaps of always allowed system calls, read from running tasks by a BPF task
//! iterator. No task is stopped, and /proc/PID/seccomp_cache (CONFIG_SECCOMP_CACHE_DEBUG) is not
//! needed.

use crate::error::{system, SeccompKernelError};
use bpf::load::{keep_libbpf_quiet, need_btf, refused};
use bpf::shared::seccomp_record;
use libbpf_rs::{Iter, Link, Object, ObjectBuilder};
use rustix::process::{Pid, Signal};
use std::io::Read;
use std::os::fd::{AsRawFd, OwnedFd};
use zerocopy::{FromBytes, IntoBytes};

/// The bitmaps that the kernel keeps for a task that has filters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskCache {
    /// Process id.
    pub pid: u32,
    /// Thread id.
    pub tid: u32,
    /// Number of filters that the thread has.
    pub filters: u32,
    /// The bitmap of the kernel's own system calls, 8 to a byte from the lowest bit. Bits beyond
    /// the last system call, up to a multiple of 64, are 1. Empty if the kernel keeps none.
    pub native: Vec<u8>,
    /// The bitmap of 32-bit system calls; empty if the kernel has none.
    pub compat: Vec<u8>,
}

impl TaskCache {
    /// Whether `bitmap` has the bit of call `nr`.
    pub fn bit(bitmap: &[u8], nr: u32) -> bool {
        let byte = bitmap.get(nr as usize / 8);
        byte.is_some_and(|byte| byte >> (nr % 8) & 1 == 1)
    }
}

/// The loaded iterator.
pub struct SeccompCaches {
    link: Link,
    _object: Object,
}

impl SeccompCaches {
    /// Loads the iterator.
    ///
    /// # Errors
    /// No BTF, missing privileges, or a kernel without task iterators (before 5.8) or without
    /// these bitmaps (before 5.11).
    pub fn load() -> Result<SeccompCaches, SeccompKernelError> {
        need_btf()?;
        keep_libbpf_quiet();
        let object = ObjectBuilder::default()
            .open_memory(bpf::SECCOMP_ITER)
            .map_err(refused("BPF object of the task iterator"))?
            .load()
            .map_err(refused(
                "task iterator (it needs Linux 5.11 with CONFIG_SECCOMP_FILTER)",
            ))?;

        let link = object
            .progs_mut()
            .next()
            .ok_or_else(|| libbpf_rs::Error::from_raw_os_error(libc::ENOENT))
            .and_then(|program| program.attach())
            .map_err(refused("task iterator"))?;

        Ok(SeccompCaches {
            link,
            _object: object,
        })
    }

    /// Reads the bitmaps of every task that has filters now.
    ///
    /// # Errors
    /// The iterator cannot be opened or read.
    pub fn read(&self) -> Result<Vec<TaskCache>, SeccompKernelError> {
        let mut iter = Iter::new(&self.link).map_err(refused("task iterator's file"))?;
        let mut bytes = Vec::new();
        iter.read_to_end(&mut bytes)
            .map_err(system("reading the task iterator"))?;
        let records = bytes.chunks_exact(size_of::<seccomp_record>());
        let records = records.filter_map(|bytes| seccomp_record::read_from_bytes(bytes).ok());
        Ok(records.map(|record| task_cache(&record)).collect())
    }
}

/// Size of the running kernel's bitmaps, and the bits that they have whatever filters say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheSizes {
    /// System calls below this number have a bit (`NR_syscalls`).
    pub native: u32,
    /// 32-bit calls below this number have a bit; 0 if there are none.
    pub compat: u32,
    /// Native calls that are allowed although a filter denies them
    /// (`seccomp_uprobe_exception`).
    pub exempt: Vec<u32>,
}

impl SeccompCaches {
    /// Measures the bitmaps: a child installs a filter that denies all calls it does not need, and
    /// the bits that stay set are counted. The child has ended when this returns.
    ///
    /// # Errors
    /// The child cannot be made or takes no filter, or the iterator cannot be read.
    pub fn sizes(&self) -> Result<CacheSizes, SeccompKernelError> {
        let child = Filtered::start()?;
        let pid = child.pid.as_raw_nonzero().get() as u32;
        let caches = self.read()?;
        let cache = caches.iter().find(|cache| cache.tid == pid);
        let cache = cache.ok_or_else(|| SeccompKernelError::System {
            what: "measuring the seccomp bitmaps: the child that took a filter is not listed"
                .into(),
            source: std::io::ErrorKind::NotFound.into(),
        })?;
        let native = size(&cache.native);
        let exempt = (0..native)
            .filter(|&nr| TaskCache::bit(&cache.native, nr))
            .filter(|&nr| !NEEDED.contains(&i64::from(nr)))
            .collect();

        Ok(CacheSizes {
            native,
            compat: size(&cache.compat),
            exempt,
        })
    }
}

/// Number of the last call whose bit is clear, plus one: the last call of the table is denied.
fn size(bitmap: &[u8]) -> u32 {
    let bits = bitmap.len() as u32 * 8;
    let last = (0..bits).rev().find(|&nr| !TaskCache::bit(bitmap, nr));
    last.map_or(0, |nr| nr + 1)
}

/// Calls that the child needs after it has its filter.
const NEEDED: [i64; 3] = [libc::SYS_read, libc::SYS_write, libc::SYS_exit_group];

/// A child with a filter that allows [`NEEDED`] and denies everything else.
struct Filtered {
    pid: Pid,
    /// The child ends when this is closed.
    _hold: OwnedFd,
}

impl Filtered {
    fn start() -> Result<Filtered, SeccompKernelError> {
        let pipe = || rustix::pipe::pipe().map_err(system("making a pipe"));
        let ((ready, tell), (wait, hold)) = (pipe()?, pipe()?);
        let insn = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
        let needed = NEEDED.map(|nr| nr as u32);
        let mut program = [
            insn(0x20, 0, 0, 0),
            insn(0x15, 3, 0, needed[0]),
            insn(0x15, 2, 0, needed[1]),
            insn(0x15, 1, 0, needed[2]),
            insn(0x06, 0, 0, 0x0005_0000 | libc::EPERM as u32),
            insn(0x06, 0, 0, 0x7fff_0000),
        ];

        let program = libc::sock_fprog {
            len: program.len() as u16,
            filter: program.as_mut_ptr(),
        };

        // SAFETY: the child makes system calls only, on memory and descriptors that were made
        // before the fork, until it ends.
        let pid = unsafe {
            let pid = libc::fork();
            if pid == 0 {
                libc::close(hold.as_raw_fd());
                libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
                let done = libc::syscall(
                    libc::SYS_seccomp,
                    libc::SECCOMP_SET_MODE_FILTER,
                    0,
                    &program,
                );
                let mut byte = u8::from(done != 0);
                libc::write(tell.as_raw_fd(), std::ptr::from_ref(&byte).cast(), 1);
                libc::read(wait.as_raw_fd(), std::ptr::from_mut(&mut byte).cast(), 1);
                libc::_exit(0);
            }
            pid
        };

        let pid = Pid::from_raw(pid.max(0)).ok_or_else(|| SeccompKernelError::System {
            what: "making a child that takes a seccomp filter".into(),
            source: std::io::Error::last_os_error(),
        })?;
        let child = Filtered { pid, _hold: hold };
        drop(tell);
        let mut failed = [1];
        let got = rustix::io::read(&ready, &mut failed).map_err(system("reading a pipe"))?;
        if got != 1 || failed != [0] {
            return Err(SeccompKernelError::System {
                what: "the kernel gives a child no seccomp filter (CONFIG_SECCOMP_FILTER?)".into(),
                source: std::io::ErrorKind::Unsupported.into(),
            });
        }

        Ok(child)
    }
}

impl Drop for Filtered {
    fn drop(&mut self) {
        // It is ours and was not waited for, so that its id is still its own.
        let _ = rustix::process::kill_process(self.pid, Signal::KILL);
        let _ = rustix::process::waitpid(Some(self.pid), rustix::process::WaitOptions::empty());
    }
}

fn task_cache(record: &seccomp_record) -> TaskCache {
    let bitmap = |words: &[u64], size_bytes: u32| {
        let bytes = words.as_bytes();
        bytes[..bytes.len().min(size_bytes as usize)].to_vec()
    };
    TaskCache {
        pid: record.tgid,
        tid: record.tid,
        filters: record.filters,
        native: bitmap(&record.native, record.native_bytes),
        compat: bitmap(&record.compat, record.compat_bytes),
    }
}
