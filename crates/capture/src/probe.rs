//! What this host can do, found by trying.

use crate::tracefs::SyscallEvents;
use abi::Arch;
use plan::Capabilities;

/// Tries what matters to a plan. Needs root to tell the truth about programs.
pub fn capabilities() -> Capabilities {
    let arch = Arch::native();
    let events = SyscallEvents::open().ok();
    let untraced = |events: &SyscallEvents| {
        let missing = |name: &str| events.exit_event(name).is_none();
        abi::syscalls(arch)
            .filter(|(_, name)| missing(name))
            .map(|(nr, _)| nr)
            .collect()
    };
    Capabilities {
        arch,
        compat_entry: compat_entry(),
        tp_btf: std::path::Path::new("/sys/kernel/btf/vmlinux").exists(),
        syscall_tracepoints: events.is_some(),
        io_uring: plan::IoUring::Unseen,
        untraced_calls: events.as_ref().map(untraced).unwrap_or_default(),
    }
}

/// Whether a 32-bit system call works: a child tries getpid(2) by the 32-bit gate.
#[cfg(target_arch = "x86_64")]
pub fn compat_entry() -> bool {
    // SAFETY: the child calls nothing but async-signal-safe system calls before it ends, so it
    // does not matter which locks other threads held at the fork.
    unsafe {
        let child = libc::fork();
        if child == 0 {
            libc::signal(libc::SIGSEGV, libc::SIG_DFL);
            let core = libc::rlimit {
                rlim_cur: 0,
                rlim_max: 0,
            };
            libc::setrlimit(libc::RLIMIT_CORE, &core);
            let got = getpid_by_int80();
            libc::_exit(i32::from(got != libc::getpid()));
        }
        let mut status = 0;
        child > 0
            && libc::waitpid(child, &mut status, 0) == child
            && libc::WIFEXITED(status)
            && libc::WEXITSTATUS(status) == 0
    }
}

#[cfg(target_arch = "x86_64")]
fn getpid_by_int80() -> i32 {
    const I386_GETPID: i32 = 20;
    let result;
    // SAFETY: getpid takes no argument and touches no memory; r8 to r11 are clobbered by the gate.
    unsafe {
        std::arch::asm!(
            "int 0x80",
            inlateout("eax") I386_GETPID => result,
            out("r8") _, out("r9") _, out("r10") _, out("r11") _,
        );
    }
    result
}

/// Whether a 32-bit system call works: assumed, for want of a way to try.
#[cfg(not(target_arch = "x86_64"))]
pub fn compat_entry() -> bool {
    Arch::native().compat().is_some()
}
