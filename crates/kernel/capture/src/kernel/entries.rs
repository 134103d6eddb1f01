//! Tries by which entries system calls can be made on this host. A filter may forbid this process what others can do,
//! so what cannot be found out is taken to be possible.

use abi::Arch;
use std::sync::OnceLock;

/// The outcome of a call that a child process has tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trial {
    Works,
    /// The kernel does not have it.
    Absent,
    /// Not known: a seccomp filter refused the call, or no child process could be started.
    Unknown,
}

/// Exit statuses of the child.
const WORKED: i32 = 0;
const NOT_THERE: i32 = 1;
const OTHERWISE: i32 = 2;

/// Starts a child process that makes a call. The call must return the caller's process id or `-ENOSYS`, and touch no
/// memory.
fn tried(getpid: fn() -> i64) -> Trial {
    // The filter may kill the child, which is then recorded.
    if is_filtered() {
        return Trial::Unknown;
    }

    // SAFETY: the child calls nothing but async-signal-safe system calls before it ends, so it
    // does not matter which locks other threads held at the fork.
    let status = unsafe {
        let child = libc::fork();
        if child == 0 {
            libc::signal(libc::SIGSEGV, libc::SIG_DFL);
            libc::signal(libc::SIGSYS, libc::SIG_DFL);
            let core = libc::rlimit {
                rlim_cur: 0,
                rlim_max: 0,
            };
            libc::setrlimit(libc::RLIMIT_CORE, &core);
            let got = getpid();
            libc::_exit(match got {
                _ if got == i64::from(libc::getpid()) => WORKED,
                _ if got == -i64::from(libc::ENOSYS) => NOT_THERE,
                _ => OTHERWISE,
            });
        }
        let mut status = 0;
        let is_there = child > 0 && libc::waitpid(child, &mut status, 0) == child;
        is_there.then_some(status)
    };

    status.map_or(Trial::Unknown, judged)
}

/// Whether this process has a seccomp filter: SECCOMP_MODE_FILTER in proc(5).
fn is_filtered() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mut lines = status.lines();
    lines.any(|line| {
        line.strip_prefix("Seccomp:")
            .is_some_and(|mode| mode.trim() == "2")
    })
}

/// Outcome for a status of waitpid(2). Without the gate of 32-bit calls, the instruction for it faults.
fn judged(status: i32) -> Trial {
    let exited = libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status));
    match exited {
        Some(WORKED) => Trial::Works,
        Some(NOT_THERE) => Trial::Absent,
        None if libc::WTERMSIG(status) == libc::SIGSEGV => Trial::Absent,
        _ => Trial::Unknown,
    }
}

/// Whether 32-bit system calls work, or may: a child tries getpid(2) by the 32-bit gate.
#[cfg(target_arch = "x86_64")]
pub fn compat_entry() -> bool {
    // Once: a confined process makes no others.
    static FOUND: OnceLock<bool> = OnceLock::new();
    *FOUND.get_or_init(|| tried(getpid_by_int80) != Trial::Absent)
}

#[cfg(target_arch = "x86_64")]
fn getpid_by_int80() -> i64 {
    const I386_GETPID: i32 = 20;
    let result: i32;
    // SAFETY: getpid takes no argument and touches no memory; r8 to r11 are clobbered by the gate.
    unsafe {
        std::arch::asm!(
            "int 0x80",
            inlateout("eax") I386_GETPID => result,
            out("r8") _, out("r9") _, out("r10") _, out("r11") _,
        );
    }
    result.into()
}

/// Whether 32-bit programs can run, or may: a child asks for their personality, which arm64 refuses where the processor
/// has no entry for them (arch/arm64/kernel/sys.c). Where there is no way to try, it is assumed.
#[cfg(not(target_arch = "x86_64"))]
pub fn compat_entry() -> bool {
    if Arch::native() != Arch::Aarch64 {
        return Arch::native().compat().is_some();
    }
    static FOUND: OnceLock<bool> = OnceLock::new();
    *FOUND.get_or_init(|| tried(personality_of_32_bits) != Trial::Absent)
}

#[cfg(not(target_arch = "x86_64"))]
fn personality_of_32_bits() -> i64 {
    const PER_LINUX32: libc::c_ulong = 0x8;
    // SAFETY: personality(2) and getpid(2) take no pointer.
    unsafe {
        let got = libc::personality(PER_LINUX32);
        let is_refused = got < 0 && *libc::__errno_location() == libc::EINVAL;
        match (got, is_refused) {
            (_, true) => -i64::from(libc::ENOSYS),
            (0.., _) => libc::getpid().into(),
            _ => -1,
        }
    }
}

/// Whether the kernel has the calls of x32, or may: a child tries getpid(2) with the number of x32. If a filter forbids
/// that, the boot parameter with which Debian's kernels switch them off decides.
pub fn x32_calls() -> bool {
    const PARAMETER: &str = "/sys/module/syscall/parameters/x32";
    static FOUND: OnceLock<bool> = OnceLock::new();
    if Arch::native() != Arch::X86_64 {
        return false;
    }
    *FOUND.get_or_init(|| match tried(getpid_of_x32) {
        Trial::Works => true,
        Trial::Absent => false,
        Trial::Unknown => {
            let is_on = std::fs::read_to_string(PARAMETER);
            !is_on.is_ok_and(|text| text.trim() == "N")
        }
    })
}

fn getpid_of_x32() -> i64 {
    let number = libc::c_long::from(libc::SYS_getpid) | i64::from(abi::X32_BIT);
    // SAFETY: getpid takes no argument and touches no memory.
    unsafe {
        match libc::syscall(number) {
            -1 => -i64::from(*libc::__errno_location()),
            pid => pid,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_filter_forbids_is_possible() {
        let killed = |signal: i32| judged(signal);
        let exited = |code: i32| judged(code << 8);
        assert_eq!(exited(WORKED), Trial::Works);
        assert_eq!(exited(NOT_THERE), Trial::Absent);
        assert_eq!(killed(libc::SIGSEGV), Trial::Absent);
        assert_eq!(killed(libc::SIGSYS), Trial::Unknown);
        assert_eq!(exited(OTHERWISE), Trial::Unknown);
    }

    #[test]
    fn a_call_that_is_there_works() {
        if is_filtered() {
            println!("skipped: trials of calls: this process has a seccomp filter");
            return;
        }
        // SAFETY: getpid(2) takes no argument.
        assert_eq!(tried(|| unsafe { libc::getpid().into() }), Trial::Works);
        assert_eq!(tried(|| -i64::from(libc::ENOSYS)), Trial::Absent);
        assert_eq!(tried(|| -i64::from(libc::EPERM)), Trial::Unknown);
    }
}
