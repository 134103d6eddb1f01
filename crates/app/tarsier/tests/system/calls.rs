//! Processes that make exactly the system calls that a test wants, with the identity that it wants.
//!
//! A caller is forked from the test and uses bare system calls only: besides its calls, only its
//! preparation ([`Caller`]) and its `exit_group` can be in the log with its pid.

use std::ffi::CString;
use std::path::Path;

/// Limit of calls per caller.
const CALLS_MAX: usize = 32;
/// Exit status of a caller that could not get its identity.
const NOT_PREPARED: i32 = 99;

/// An argument of a call.
#[derive(Clone, Debug)]
pub(crate) enum Arg {
    Number(i64),
    /// Bytes in memory, whose address is the argument.
    Bytes(Vec<u8>),
    /// The result of an earlier call of the same caller.
    Result(usize),
}

impl From<i64> for Arg {
    fn from(number: i64) -> Arg {
        Arg::Number(number)
    }
}

impl From<i32> for Arg {
    fn from(number: i32) -> Arg {
        Arg::Number(number.into())
    }
}

impl From<u32> for Arg {
    fn from(number: u32) -> Arg {
        Arg::Number(number.into())
    }
}

/// Memory that the call may write to.
impl From<Vec<u8>> for Arg {
    fn from(bytes: Vec<u8>) -> Arg {
        Arg::Bytes(bytes)
    }
}

/// A path or other text, terminated by NUL.
impl From<&str> for Arg {
    fn from(text: &str) -> Arg {
        let mut bytes = text.as_bytes().to_vec();
        bytes.push(0);
        Arg::Bytes(bytes)
    }
}

impl From<&Path> for Arg {
    fn from(path: &Path) -> Arg {
        Arg::from(path.to_str().expect("a test's path is UTF-8"))
    }
}

/// Way in which a call enters the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Entry {
    Native,
    /// int $0x80, with the call numbers of i386.
    Int80,
}

/// A system call to make.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    entry: Entry,
    nr: i64,
    args: [Arg; 6],
}

impl Call {
    pub(crate) fn new(nr: i64, args: Vec<Arg>) -> Call {
        let mut args = args.into_iter();
        Call {
            entry: Entry::Native,
            nr,
            args: std::array::from_fn(|_| args.next().unwrap_or(Arg::Number(0))),
        }
    }

    pub(crate) fn named(name: &str, args: Vec<Arg>) -> Call {
        let nr = abi::syscall_number(abi::Arch::native(), name);
        let nr = nr.unwrap_or_else(|| panic!("no call {name} on this architecture"));
        Call::new(nr.into(), args)
    }

    /// A call with i386's numbers whose arguments are numbers.
    pub(crate) fn int80(nr: i64) -> Call {
        Call {
            entry: Entry::Int80,
            ..Call::new(nr, Vec::new())
        }
    }
}

/// `call!(openat, -100, path, 0)`
macro_rules! call {
    ($name:ident $(, $arg:expr)* $(,)?) => {
        $crate::calls::Call::named(
            stringify!($name),
            vec![$($crate::calls::Arg::from($arg)),*],
        )
    };
}
pub(crate) use call;

/// The identity of the process that makes the calls. Where it is `None`, the test's own is kept.
#[derive(Clone, Debug, Default)]
pub(crate) struct Caller {
    /// Real, effective and saved user id.
    pub(crate) uids: Option<[u32; 3]>,
    pub(crate) gids: Option<[u32; 3]>,
    pub(crate) groups: Vec<u32>,
    pub(crate) auid: Option<u32>,
    pub(crate) directory: Option<CString>,
    /// The calls are made by a child of the prepared process.
    pub(crate) in_child: bool,
}

impl Caller {
    pub(crate) fn uid(uid: u32) -> Caller {
        Caller {
            uids: Some([uid; 3]),
            ..Caller::default()
        }
    }

    pub(crate) fn gid(gid: u32) -> Caller {
        Caller {
            gids: Some([gid; 3]),
            ..Caller::default()
        }
    }

    pub(crate) fn auid(auid: u32) -> Caller {
        Caller {
            auid: Some(auid),
            ..Caller::default()
        }
    }

    pub(crate) fn within(directory: &Path) -> Caller {
        let directory = directory.to_str().expect("a test's path is UTF-8");
        Caller {
            directory: Some(CString::new(directory).expect("no NUL")),
            ..Caller::default()
        }
    }

    /// Makes the calls in order in a process that then ends.
    pub(crate) fn make(&self, calls: &[Call]) -> Made {
        assert!(calls.len() <= CALLS_MAX);
        let shared = Shared::new();
        // SAFETY: the child makes system calls on memory that exists before, allocates nothing,
        // and ends without running anything of this process.
        let pid = unsafe { libc::fork() };
        assert!(pid >= 0, "fork failed");
        if pid == 0 {
            self.live(calls, shared.results);
        }
        let mut status = 0;
        // SAFETY: waits for the child just made.
        let waited = unsafe { libc::waitpid(pid, &mut status, 0) };
        assert_eq!(waited, pid);
        assert!(
            libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0,
            "the caller of {calls:?} ended with status {status:#x}"
        );
        let words = shared.read(1 + calls.len());
        Made {
            pid: if self.in_child {
                words[0] as u32
            } else {
                pid as u32
            },
            parent: if self.in_child {
                pid as u32
            } else {
                std::process::id()
            },
            results: words[1..].to_vec(),
        }
    }

    /// The child's part.
    fn live(&self, calls: &[Call], results: *mut i64) -> ! {
        if !self.prepare() {
            exit(NOT_PREPARED);
        }
        if self.in_child {
            let pid = syscall(libc::SYS_fork, &[0; 6]);
            if pid != 0 {
                // SAFETY: `results` has room for the pid and CALLS_MAX results after it.
                unsafe { *results = pid };
                let mut status = 0i32;
                let args = [pid, &raw mut status as i64, 0, 0, 0, 0];
                let waited = syscall(libc::SYS_wait4, &args);
                exit(i32::from(waited != pid || status != 0));
            }
        }
        for (i, call) in calls.iter().enumerate() {
            let mut args = [0; 6];
            for (value, arg) in args.iter_mut().zip(&call.args) {
                *value = match arg {
                    Arg::Number(number) => *number,
                    Arg::Bytes(bytes) => bytes.as_ptr() as i64,
                    // SAFETY: an earlier index, so written before.
                    Arg::Result(earlier) => unsafe { *results.add(1 + *earlier) },
                };
            }
            let result = match call.entry {
                Entry::Native => syscall(call.nr, &args),
                Entry::Int80 => int80(call.nr),
            };
            // SAFETY: `i` is below CALLS_MAX.
            unsafe { *results.add(1 + i) = result };
        }
        exit(0)
    }

    fn prepare(&self) -> bool {
        let mut ok = true;
        if let Some(auid) = self.auid {
            ok &= set_auid(auid);
        }
        if let Some(directory) = &self.directory {
            ok &= syscall(libc::SYS_chdir, &[directory.as_ptr() as i64, 0, 0, 0, 0, 0]) == 0;
        }
        let groups = [
            self.groups.len() as i64,
            self.groups.as_ptr() as i64,
            0,
            0,
            0,
            0,
        ];
        ok &= syscall(libc::SYS_setgroups, &groups) == 0;
        for (nr, ids) in [
            (libc::SYS_setresgid, self.gids),
            (libc::SYS_setresuid, self.uids),
        ] {
            if let Some([real, effective, saved]) = ids.map(|ids| ids.map(i64::from)) {
                ok &= syscall(nr, &[real, effective, saved, 0, 0, 0]) == 0;
            }
        }
        ok
    }
}

/// A process that has made its calls.
#[derive(Debug)]
pub(crate) struct Made {
    pub(crate) pid: u32,
    pub(crate) parent: u32,
    /// Results as the kernel returns them: -errno for a failure.
    pub(crate) results: Vec<i64>,
}

/// Shared memory in which the child leaves its pid and the results.
struct Shared {
    results: *mut i64,
}

const SHARED_BYTES: usize = (1 + CALLS_MAX) * 8;

impl Shared {
    fn new() -> Shared {
        // SAFETY: a new mapping; nothing else is touched.
        let place = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                SHARED_BYTES,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        assert_ne!(place, libc::MAP_FAILED);
        Shared {
            results: place.cast(),
        }
    }

    fn read(&self, words: usize) -> &[i64] {
        // SAFETY: the mapping is that long, and the child that wrote to it has ended.
        unsafe { std::slice::from_raw_parts(self.results, words) }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: made in `new`, and no reference to it is left.
        unsafe { libc::munmap(self.results.cast(), SHARED_BYTES) };
    }
}

/// Whether this machine has the 32-bit entry; without it, the instruction faults.
pub(crate) fn int80_is_possible() -> bool {
    if !cfg!(target_arch = "x86_64") {
        return false;
    }
    // SAFETY: the child makes bare system calls only.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0, "fork failed");
    if pid == 0 {
        const GETPID: i64 = 20;
        exit(i32::from(
            int80(GETPID) != syscall(libc::SYS_getpid, &[0; 6]),
        ));
    }
    let mut status = 0;
    // SAFETY: waits for the child just made.
    unsafe { libc::waitpid(pid, &mut status, 0) };
    status == 0
}

fn set_auid(auid: u32) -> bool {
    let path = c"/proc/self/loginuid".as_ptr() as i64;
    let file = syscall(
        libc::SYS_openat,
        &[libc::AT_FDCWD.into(), path, libc::O_WRONLY.into(), 0, 0, 0],
    );
    let mut text = [0u8; 10];
    let (mut at, mut rest) = (text.len(), auid);
    while at > 0 && (rest > 0 || at == text.len()) {
        at -= 1;
        text[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    let digits = &text[at..];
    let args = [file, digits.as_ptr() as i64, digits.len() as i64, 0, 0, 0];
    let written = syscall(libc::SYS_write, &args);
    syscall(libc::SYS_close, &[file, 0, 0, 0, 0, 0]);
    written == digits.len() as i64
}

fn exit(status: i32) -> ! {
    loop {
        syscall(libc::SYS_exit_group, &[status.into(), 0, 0, 0, 0, 0]);
    }
}

/// Makes a system call and nothing else: not even errno is set.
#[cfg(target_arch = "x86_64")]
fn syscall(nr: i64, args: &[i64; 6]) -> i64 {
    let result;
    // SAFETY: the calls of a test are on memory that it owns; registers as the kernel's entry
    // clobbers them.
    unsafe {
        std::arch::asm!(
            "syscall",
            inlateout("rax") nr => result,
            in("rdi") args[0],
            in("rsi") args[1],
            in("rdx") args[2],
            in("r10") args[3],
            in("r8") args[4],
            in("r9") args[5],
            lateout("rcx") _,
            lateout("r11") _,
        );
    }
    result
}

/// Makes a system call and nothing else, except that errno is set.
#[cfg(not(target_arch = "x86_64"))]
fn syscall(nr: i64, a: &[i64; 6]) -> i64 {
    // SAFETY: the calls of a test are on memory that it owns.
    let result = unsafe { libc::syscall(nr, a[0], a[1], a[2], a[3], a[4], a[5]) };
    if result == -1 {
        // SAFETY: errno of this thread.
        return -i64::from(unsafe { *libc::__errno_location() });
    }
    result
}

/// Makes a call without arguments through the 32-bit entry.
#[cfg(target_arch = "x86_64")]
fn int80(nr: i64) -> i64 {
    let result: i64;
    // SAFETY: calls without arguments; registers as the entry clobbers them.
    unsafe {
        std::arch::asm!(
            "int 0x80",
            inlateout("rax") nr => result,
            lateout("r8") _,
            lateout("r9") _,
            lateout("r10") _,
            lateout("r11") _,
        );
    }
    i64::from(result as i32)
}

#[cfg(not(target_arch = "x86_64"))]
fn int80(_nr: i64) -> i64 {
    -38
}
