//! Calls that the compiled filter allows.

use crate::confine::filter::{daemon_policy, policy, reading_policy, CALLS, NETWORK, QUIET};
use seccomp::compile::{compile, Frequencies};
use seccomp::policy::Abi;
use seccomp::{Action, Filter, SeccompData, Verdict};

const EPERM: Verdict = Verdict::new(Action::Errno, libc::EPERM as u16);
const ENOSYS: Verdict = Verdict::new(Action::Errno, libc::ENOSYS as u16);

fn compiled(kills: bool, network: bool) -> Filter {
    let policy = daemon_policy(kills, network).expect("the profile is right");
    compile(&policy, &Frequencies::usual()).expect("it compiles")
}

fn data(name: &str, args: [u64; 6]) -> SeccompData {
    let abi = Abi::native();
    SeccompData {
        nr: abi
            .number(name)
            .unwrap_or_else(|| panic!("{name} is a call")),
        arch: abi.audit_arch(),
        instruction_pointer: 0,
        args,
    }
}

fn verdict(filter: &Filter, name: &str, args: [u64; 6]) -> Verdict {
    filter.run(&data(name, args)).verdict
}

/// Names of calls that the profiles name, on this machine.
fn named() -> Vec<&'static str> {
    let lines = CALLS.lines().chain(NETWORK.lines());
    let words = lines.flat_map(|line| line.split('#').next().unwrap_or_default().split(' '));
    let abi = Abi::native();
    words.filter(|word| abi.number(word).is_some()).collect()
}

#[test]
fn the_filter_answers_as_the_profile_says() {
    let policy = daemon_policy(false, false).expect("the profile is right");
    let filter = compiled(false, false);
    for (nr, name) in Abi::native().calls() {
        for first in [0, 1, 15, 16, 0x5421, u64::MAX] {
            let mut data = data(name, [first, first, first, 4, 0, 0]);
            data.nr = nr;
            let expected = policy.decide(&data).expect("it has a layer").verdict;
            assert_eq!(filter.run(&data).verdict, expected, "{name}");
        }
    }
}

#[test]
fn what_the_profile_does_not_name_is_answered_with_eperm_or_death() {
    let (filter, strict) = (compiled(false, false), compiled(true, false));
    let named = named();
    assert!(named.len() > 100, "{}", named.len());
    let others = Abi::native()
        .calls()
        .filter(|(_, name)| !named.contains(name));
    let mut count = 0;
    for (_, name) in others {
        assert_eq!(verdict(&filter, name, [0; 6]), EPERM, "{name}");
        let killed = verdict(&strict, name, [0; 6]);
        assert_eq!(killed.action(), Action::KillProcess, "{name}");
        count += 1;
    }
    assert!(count > 100, "{count}");
}

#[test]
fn no_program_no_other_memory_and_no_mount() {
    let (filter, network) = (compiled(false, false), compiled(false, true));
    for name in [
        "execve",
        "execveat",
        "ptrace",
        "process_vm_readv",
        "process_vm_writev",
        "pidfd_getfd",
        "mount",
        "umount2",
        "move_mount",
        "open_tree",
        "fsopen",
        "pivot_root",
        "chroot",
        "setns",
        "unshare",
        "init_module",
        "finit_module",
        "delete_module",
        "kexec_load",
        "setuid",
        "setresuid",
        "setgid",
        "setgroups",
        "capset",
        "keyctl",
        "add_key",
        "request_key",
        "io_uring_setup",
        "memfd_create",
        "userfaultfd",
        "swapon",
        "settimeofday",
        "clock_settime",
        "personality",
        "seccomp",
        "setrlimit",
        "setsid",
        "linkat",
        "symlinkat",
        "mknodat",
    ] {
        assert_eq!(verdict(&filter, name, [0; 6]), EPERM, "{name}");
        assert_eq!(verdict(&network, name, [0; 6]), EPERM, "{name}");
    }
}

#[test]
fn arguments_decide_where_a_call_can_do_more_than_is_needed() {
    let (filter, network) = (compiled(false, false), compiled(false, true));
    let thread = (libc::CLONE_VM | libc::CLONE_THREAD | libc::CLONE_SIGHAND) as u64;
    let executable = (libc::PROT_READ | libc::PROT_EXEC) as u64;
    for (name, args, with_network, without) in [
        ("clone", [thread, 0, 0, 0, 0, 0], true, true),
        ("clone", [libc::SIGCHLD as u64, 0, 0, 0, 0, 0], false, false),
        ("socket", [libc::AF_UNIX as u64, 1, 0, 0, 0, 0], true, true),
        ("socket", [libc::AF_INET as u64, 1, 0, 0, 0, 0], true, false),
        (
            "socket",
            [libc::AF_INET6 as u64, 1, 0, 0, 0, 0],
            true,
            false,
        ),
        (
            "socket",
            [libc::AF_NETLINK as u64, 3, 9, 0, 0, 0],
            true,
            true,
        ),
        (
            "socket",
            [libc::AF_NETLINK as u64, 3, 12, 0, 0, 0],
            false,
            false,
        ),
        (
            "socket",
            [libc::AF_PACKET as u64, 3, 0, 0, 0, 0],
            false,
            false,
        ),
        ("mmap", [0, 4096, executable, 2, 3, 0], true, false),
        ("mmap", [0, 4096, 3, 2, 3, 0], true, true),
        ("mprotect", [0, 4096, executable, 0, 0, 0], true, false),
        ("prlimit64", [0, 7, 0, 1, 0, 0], true, true),
        ("prlimit64", [0, 7, 1, 0, 0, 0], false, false),
        ("reboot", [0, 0, 0xcdef_0123, 0, 0, 0], true, true),
        ("reboot", [0, 0, 0x0123_4567, 0, 0, 0], false, false),
        (
            "prctl",
            [libc::PR_SET_DUMPABLE as u64, 1, 0, 0, 0, 0],
            false,
            false,
        ),
    ] {
        let says = |allowed| if allowed { Verdict::ALLOW } else { EPERM };
        assert_eq!(
            verdict(&network, name, args),
            says(with_network),
            "{name} {args:x?}"
        );
        assert_eq!(
            verdict(&filter, name, args),
            says(without),
            "{name} {args:x?}"
        );
    }
}

#[test]
fn calls_of_other_abis_are_refused_and_newer_ones_are_not_there() {
    let filter = compiled(false, false);
    for abi in Abi::native()
        .family()
        .iter()
        .filter(|abi| **abi != Abi::native())
    {
        let nr = abi.number("getpid").expect("a call");
        let data = SeccompData {
            nr,
            arch: abi.audit_arch(),
            ..SeccompData::default()
        };
        let verdict = filter.run(&data).verdict;
        assert!(
            verdict == EPERM || verdict == ENOSYS,
            "{abi:?}: {verdict:?}"
        );
    }
    let newest = Abi::native()
        .calls()
        .map(|(nr, _)| nr)
        .max()
        .expect("calls");
    let mut data = data("getpid", [0; 6]);
    data.nr = newest + 1;
    assert_eq!(filter.run(&data).verdict, ENOSYS);
}

#[test]
fn what_is_refused_quietly_is_allowed_by_the_recorded_filter() {
    let quiet = policy(QUIET, None).expect("the profile is right");
    let quiet = compile(&quiet, &Frequencies::usual()).expect("it compiles");
    assert_eq!(verdict(&quiet, "clone3", [0; 6]), ENOSYS);
    assert_eq!(verdict(&quiet, "execve", [0; 6]), Verdict::ALLOW);
    assert_eq!(
        verdict(&compiled(false, false), "clone3", [0; 6]),
        Verdict::ALLOW
    );
}

#[test]
fn a_reader_opens_files_for_reading_and_nothing_else() {
    let policy = reading_policy().expect("the profile is right");
    let filter = compile(&policy, &Frequencies::usual()).expect("it compiles");
    let open = |flags: i32| verdict(&filter, "openat", [0, 0, flags as u64, 0, 0, 0]);
    let allowed = open(libc::O_RDONLY | libc::O_NONBLOCK | libc::O_NOCTTY | libc::O_CLOEXEC);
    assert_eq!(allowed.action(), Action::Allow);
    assert_eq!(
        open(libc::O_PATH | libc::O_NOFOLLOW).action(),
        Action::Allow
    );
    for flags in [libc::O_WRONLY, libc::O_RDWR, libc::O_CREAT] {
        assert_eq!(open(flags), EPERM, "{flags:o}");
    }
    let fcntl = |command: i32| verdict(&filter, "fcntl", [0, command as u64, 0, 0, 0, 0]);
    for command in [libc::F_DUPFD_CLOEXEC, libc::F_SETLEASE] {
        assert_eq!(fcntl(command).action(), Action::Allow, "{command}");
    }
    assert_eq!(fcntl(libc::F_SETOWN), EPERM);
    for name in [
        "write",
        "pwrite64",
        "ftruncate",
        "clone",
        "execve",
        "execveat",
        "socket",
        "connect",
        "sendmsg",
        "ptrace",
        "process_vm_readv",
        "unlinkat",
        "renameat2",
        "mkdirat",
        "linkat",
        "setns",
        "mount",
        "bpf",
        "kill",
    ] {
        assert_eq!(verdict(&filter, name, [0; 6]), EPERM, "{name}");
    }
    for name in [
        "read",
        "pread64",
        "recvfrom",
        "sendto",
        "statx",
        "futex",
        "clock_nanosleep",
    ] {
        assert_eq!(
            verdict(&filter, name, [0; 6]).action(),
            Action::Allow,
            "{name}"
        );
    }
    let executable = [0, 0, 4, 0, 0, 0];
    assert_eq!(verdict(&filter, "mmap", executable), EPERM);
    assert_eq!(verdict(&filter, "ioctl", [0, 0x5401, 0, 0, 0, 0]), EPERM);
}
