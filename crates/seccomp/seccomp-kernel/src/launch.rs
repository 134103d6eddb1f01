//! Starting a program with a filter.
//!
//! Between the filter and execve(2) nothing may happen that the filter could refuse, so the program
//! is found, and its arguments are laid out, before; in shared memory, a child reports how far it came.

use crate::error::{system, SeccompKernelError};
use rustix::event::{PollFd, PollFlags};
use rustix::process::{Pid, PidfdFlags, WaitStatus};
use seccomp::policy::Flags;
use seccomp::Filter;
use std::ffi::{c_char, CString, OsString};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

/// A program with its arguments and environment, ready for execve(2).
pub struct Program {
    name: String,
    path: CString,
    arguments: Vec<CString>,
    environment: Vec<CString>,
}

impl Program {
    /// Looks a command up as execvp(3) does: the program, then its arguments. It gets our environment.
    ///
    /// # Errors
    /// There are no words, no such executable, or a NUL byte in a word.
    pub fn find(command: &[OsString]) -> Result<Program, SeccompKernelError> {
        let first = command.first().ok_or(SeccompKernelError::NoProgram)?;
        let name = first.to_string_lossy().into_owned();
        let path =
            search(first).ok_or_else(|| SeccompKernelError::NotFound { name: name.clone() })?;
        let text = CString::new::<Vec<u8>>;
        let arguments = command.iter().map(|word| text(word.as_bytes().to_vec()));
        let environment = std::env::vars_os().map(|(name, value)| {
            let mut pair = name.into_vec();
            pair.push(b'=');
            pair.extend(value.as_bytes());
            text(pair)
        });

        Ok(Program {
            name,
            path: text(path.into_os_string().into_vec())?,
            arguments: arguments.collect::<Result<_, _>>()?,
            environment: environment.collect::<Result<_, _>>()?,
        })
    }
}

fn search(name: &OsString) -> Option<PathBuf> {
    if name.as_bytes().contains(&b'/') {
        return Some(PathBuf::from(name));
    }
    let runs = |path: &Path| {
        path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
    };
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into());
    std::env::split_paths(&path)
        .map(|dir| dir.join(name))
        .find(|path| runs(path))
}

/// A filter and how it is installed.
pub struct Install {
    /// The filter to install.
    pub filter: Filter,
    /// Flags of the profile, of which `spec_allow` is used.
    pub flags: Flags,
    /// Whether a supervisor answers SECCOMP_RET_USER_NOTIF.
    pub listen: bool,
    /// With `listen`: whether only fatal signals interrupt a call once the supervisor has it.
    pub waits_killable: bool,
}

impl Install {
    /// `SECCOMP_FILTER_FLAG_*` of linux/seccomp.h. The filter is for all threads, of which there is
    /// one, and what is not allowed is logged.
    fn bits(&self) -> libc::c_ulong {
        let mut bits = libc::SECCOMP_FILTER_FLAG_TSYNC | libc::SECCOMP_FILTER_FLAG_LOG;
        if self.flags.spec_allow {
            bits |= libc::SECCOMP_FILTER_FLAG_SPEC_ALLOW;
        }
        if self.listen {
            bits |= libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | libc::SECCOMP_FILTER_FLAG_TSYNC_ESRCH;
            // A signal must not end a call that waits for its answer (since Linux 5.19).
            if self.waits_killable {
                bits |= libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
            }
        }
        bits
    }
}

/// Whether the kernel knows SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV. It looks at flags before it finds
/// that there is no filter.
pub fn knows_wait_killable() -> bool {
    let flags =
        libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
    // SAFETY: the kernel copies the program from null, which fails.
    let result = unsafe {
        let set = libc::SECCOMP_SET_MODE_FILTER;
        libc::syscall(
            libc::SYS_seccomp,
            set,
            flags,
            std::ptr::null::<libc::sock_fprog>(),
        )
    };

    result < 0 && io::Error::last_os_error().raw_os_error() == Some(libc::EFAULT)
}

/// Steps at which a child may fail.
const NO_NEW_PRIVS: i32 = 1;
const SECCOMP: i32 = 2;
const EXECVE: i32 = 3;

/// Memory that a child shares with us.
#[derive(Default)]
#[repr(C)]
struct Shared {
    /// 1: the child may go on.
    go: AtomicU32,
    /// Descriptor of the listener plus 1; 0: not there yet.
    listener: AtomicI32,
    /// Step that failed; 0: none.
    step: AtomicI32,
    errno: AtomicI32,
}

/// Arguments for the kernel: those of execve(2), which point into a [`Program`], and the filter.
struct Pointers {
    insns: Vec<libc::sock_filter>,
    arguments: Vec<*const c_char>,
    environment: Vec<*const c_char>,
}

impl Pointers {
    fn of(program: &Program, install: Option<&Install>) -> Pointers {
        let list = |texts: &[CString]| {
            let pointers = texts.iter().map(|text| text.as_ptr());
            pointers.chain([std::ptr::null()]).collect()
        };
        let insns = install.map_or(&[][..], |install| install.filter.insns());
        let insns = insns.iter().map(|insn| libc::sock_filter {
            code: insn.code,
            jt: insn.jt,
            jf: insn.jf,
            k: insn.k,
        });
        Pointers {
            insns: insns.collect(),
            arguments: list(&program.arguments),
            environment: list(&program.environment),
        }
    }
}

/// Becomes the program, under the filter. Returns only if that fails: what failed, and its errno.
/// The listener's descriptor goes to `shared`.
fn become_program(
    program: &Program,
    pointers: &Pointers,
    install: Option<&Install>,
    shared: &Shared,
) -> (i32, i32) {
    let errno = || io::Error::last_os_error().raw_os_error().unwrap_or(0);
    if let Some(install) = install {
        // Without it, the kernel takes filters only from callers with CAP_SYS_ADMIN (seccomp(2)).
        // SAFETY: no pointers.
        if unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) } != 0 {
            return (NO_NEW_PRIVS, errno());
        }
        let fprog = libc::sock_fprog {
            len: pointers.insns.len() as u16,
            filter: pointers.insns.as_ptr().cast_mut(),
        };
        // SAFETY: `fprog` and the instructions it points to live until the call is over; the kernel
        // only reads them.
        let result = unsafe {
            let set = libc::SECCOMP_SET_MODE_FILTER;
            libc::syscall(libc::SYS_seccomp, set, install.bits(), &raw const fprog)
        };
        if result < 0 || (result > 0 && !install.listen) {
            return (SECCOMP, errno());
        }
        // One more than the descriptor: 0 means that there is none.
        if install.listen {
            shared.listener.store(result as i32 + 1, Ordering::SeqCst);
        }
    }

    // SAFETY: both lists end with null, and their texts live in `program`.
    unsafe {
        libc::execve(
            program.path.as_ptr(),
            pointers.arguments.as_ptr(),
            pointers.environment.as_ptr(),
        );
    }

    (EXECVE, errno())
}

/// Programs written for pipes expect SIGPIPE, which Rust ignores.
fn restore_sigpipe() {
    // SAFETY: the default action is no handler of ours.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
}

/// Replaces this process by the program. Returns only if that fails.
pub fn replace(program: &Program, install: &Install) -> SeccompKernelError {
    restore_sigpipe();
    let shared = Shared::default();
    let pointers = Pointers::of(program, Some(install));
    let (step, errno) = become_program(program, &pointers, Some(install), &shared);
    failure(program, step, errno)
}

fn failure(program: &Program, step: i32, errno: i32) -> SeccompKernelError {
    let source = io::Error::from_raw_os_error(errno);
    let name = || program.name.clone();
    match (step, errno) {
        (NO_NEW_PRIVS, _) => system("prctl(PR_SET_NO_NEW_PRIVS)")(source),
        (SECCOMP, libc::EINVAL) => SeccompKernelError::FilterUnknown { source },
        (SECCOMP, libc::EBUSY) => SeccompKernelError::HasListener { source },
        (SECCOMP, _) => system("seccomp(SECCOMP_SET_MODE_FILTER)")(source),
        (_, libc::EPERM | libc::EACCES) => SeccompKernelError::ExecDenied {
            name: name(),
            source,
        },
        _ => SeccompKernelError::Exec {
            name: name(),
            source,
        },
    }
}

/// A child that waits to become a program.
pub struct Launch<'a> {
    program: &'a Program,
    shared: *mut Shared,
    pid: Pid,
    pidfd: OwnedFd,
    reaped: bool,
}

impl<'a> Launch<'a> {
    /// Makes the child. With a filter that has a listener it shares our descriptors, until it
    /// becomes the program, so that the listener is ours.
    ///
    /// # Errors
    /// mmap(2), clone(2) or pidfd_open(2) fails.
    pub fn start(
        program: &'a Program,
        install: Option<&Install>,
    ) -> Result<Launch<'a>, SeccompKernelError> {
        // SAFETY: a fresh anonymous page, large enough and aligned for `Shared`, whose all-zero
        // bytes are a valid value.
        let shared = unsafe {
            let protection = libc::PROT_READ | libc::PROT_WRITE;
            let kind = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
            libc::mmap(
                std::ptr::null_mut(),
                size_of::<Shared>(),
                protection,
                kind,
                -1,
                0,
            )
        };

        if shared == libc::MAP_FAILED {
            return Err(system("mmap")(io::Error::last_os_error()));
        }

        let shared = shared.cast::<Shared>();
        let pointers = Pointers::of(program, install);
        let files = if install.is_some_and(|install| install.listen) {
            libc::CLONE_FILES
        } else {
            0
        };

        // SAFETY: as fork(2): memory is copied, and the child gets no stack of its own. It has one
        // thread whatever we have, and takes no lock and no memory: it only makes system calls.
        let pid = unsafe {
            libc::syscall(
                libc::SYS_clone,
                libc::c_long::from(files | libc::SIGCHLD),
                0,
                0,
                0,
                0,
            )
        };

        if pid < 0 {
            return Err(system("clone")(io::Error::last_os_error()));
        }
        let Some(pid) = Pid::from_raw(pid as i32) else {
            // SAFETY: `shared` is mapped; the child never comes back from here.
            unsafe { child(program, &pointers, install, &*shared) }
        };

        let pidfd =
            rustix::process::pidfd_open(pid, PidfdFlags::empty()).map_err(system("pidfd_open"))?;

        Ok(Launch {
            program,
            shared,
            pid,
            pidfd,
            reaped: false,
        })
    }

    fn shared(&self) -> &Shared {
        // SAFETY: mapped until `self` is dropped, and never written but through its atomics.
        unsafe { &*self.shared }
    }

    /// Sends a signal to the child, unless it has ended.
    pub fn signal(&self, number: i32) {
        // SAFETY: no pointers but null; the descriptor is open.
        unsafe {
            libc::syscall(
                libc::SYS_pidfd_send_signal,
                self.pidfd.as_raw_fd(),
                number,
                std::ptr::null::<libc::siginfo_t>(),
                0,
            )
        };
    }

    /// Leaves the child alone: it goes on when this is dropped.
    pub fn detach(mut self) {
        self.reaped = true;
    }

    /// The child.
    pub(crate) fn pid(&self) -> Pid {
        self.pid
    }

    /// The child; readable when it has ended.
    pub fn pidfd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }

    /// Lets the child become the program.
    pub fn go(&self) {
        self.shared().go.store(1, Ordering::SeqCst);
        // SAFETY: the address is that of a live atomic.
        unsafe {
            libc::syscall(
                libc::SYS_futex,
                &raw const self.shared().go,
                libc::FUTEX_WAKE,
                1,
            )
        };
    }

    /// The listener, as soon as the child has installed its filter. Call this once, after [`Launch::go`].
    ///
    /// # Errors
    /// The child ended instead: what failed.
    pub fn listener(&mut self) -> Result<OwnedFd, SeccompKernelError> {
        loop {
            // In this order: a child that ends after it was asked about may have installed it.
            let has_ended = self.has_ended(1)?;
            // Taken out, so that nobody is given it twice.
            let listener = self.shared().listener.swap(0, Ordering::SeqCst);
            if listener > 0 {
                // SAFETY: the descriptor was made in the table that we share with the child, and
                // nobody else knows it.
                return Ok(unsafe { OwnedFd::from_raw_fd(listener - 1) });
            }
            // The child can tell us no more once it is under the filter: its end is awaited, and
            // the word is looked at every millisecond.
            if has_ended {
                self.wait()?;
                return Err(SeccompKernelError::EndedEarly {
                    name: self.program.name.clone(),
                });
            }
        }
    }

    /// Whether the child ends within this number of milliseconds.
    fn has_ended(&self, timeout_ms: i64) -> Result<bool, SeccompKernelError> {
        let mut fds = [PollFd::new(&self.pidfd, PollFlags::IN)];
        let timeout = rustix::event::Timespec {
            tv_sec: 0,
            tv_nsec: timeout_ms * 1_000_000,
        };
        match rustix::event::poll(&mut fds, Some(&timeout)) {
            Ok(ready) => Ok(ready > 0),
            Err(rustix::io::Errno::INTR) => Ok(false),
            Err(errno) => Err(system("poll")(errno)),
        }
    }

    /// Waits for the end of the program. Its status as a shell gives it: 128 and the signal's
    /// number if one killed it.
    ///
    /// # Errors
    /// The child did not become the program: what failed.
    pub fn wait(&mut self) -> Result<u8, SeccompKernelError> {
        let status = loop {
            match rustix::process::waitpid(Some(self.pid), rustix::process::WaitOptions::empty()) {
                Ok(Some((_, status))) => break status,
                Ok(None) | Err(rustix::io::Errno::INTR) => {}
                Err(errno) => return Err(system("waitpid")(errno)),
            }
        };

        self.ended(status)
    }

    /// The status of the program, as [`Launch::wait`] gives it, where somebody else has waited for
    /// its end.
    ///
    /// # Errors
    /// The child did not become the program: what failed.
    pub fn ended(&mut self, status: WaitStatus) -> Result<u8, SeccompKernelError> {
        self.reaped = true;
        let (step, errno) = (&self.shared().step, &self.shared().errno);
        match step.load(Ordering::SeqCst) {
            0 => {}
            step => return Err(failure(self.program, step, errno.load(Ordering::SeqCst))),
        }

        Ok(match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => code as u8,
            (None, signal) => 128 + signal.unwrap_or(0) as u8,
        })
    }
}

impl Drop for Launch<'_> {
    fn drop(&mut self) {
        if !self.reaped {
            // A child that nobody lets go would wait forever.
            let _ = rustix::process::pidfd_send_signal(&self.pidfd, rustix::process::Signal::KILL);
            let _ = rustix::process::waitpid(Some(self.pid), rustix::process::WaitOptions::empty());
        }
        // SAFETY: mapped in `start`, and no reference is left.
        unsafe { libc::munmap(self.shared.cast(), size_of::<Shared>()) };
    }
}

/// Waits for its turn and becomes the program.
///
/// # Safety
/// To be called in a child of clone(2) that has one thread.
unsafe fn child(
    program: &Program,
    pointers: &Pointers,
    install: Option<&Install>,
    shared: &Shared,
) -> ! {
    restore_sigpipe();
    // SAFETY: no pointers; a parent that ends first leaves no child that waits forever.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
    while shared.go.load(Ordering::SeqCst) == 0 {
        // SAFETY: the address is that of a live atomic; no timeout.
        unsafe {
            let none = std::ptr::null::<libc::timespec>();
            libc::syscall(
                libc::SYS_futex,
                &raw const shared.go,
                libc::FUTEX_WAIT,
                0,
                none,
            );
        }
    }

    // SAFETY: no pointers; the program may outlive us.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, 0) };
    let (step, errno) = become_program(program, pointers, install, shared);
    shared.errno.store(errno, Ordering::SeqCst);
    shared.step.store(step, Ordering::SeqCst);

    // SAFETY: ends the process without running anything of ours. If even that is refused, abort
    // ends it by an instruction.
    unsafe {
        libc::syscall(libc::SYS_exit_group, 127);
        libc::abort()
    }
}
