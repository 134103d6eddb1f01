//! Arguments of calls: `a0` to `a3`.

use super::{flags, plain, unknown, Context, Interpreter};
use crate::number::{unsigned, OutOfRange};
use crate::Dialect;
use abi::names::{self, find, Names};

type Meaning = Result<Vec<u8>, OutOfRange>;

/// O_CREAT of open(2) and mq_open(2).
const O_CREAT: u64 = 0o100;
/// F_SETFD and F_SETOWN of fcntl(2).
const F_SETFD: u64 = 2;
const F_SETOWN: u64 = 8;
/// PR_SET_PDEATHSIG, PR_CAPBSET_READ and PR_CAPBSET_DROP of prctl(2).
const PDEATHSIG: u64 = 1;
const CAPBSET: [u64; 2] = [23, 24];
/// AT_FDCWD, as an argument of 32 bits.
const AT_FDCWD: u32 = 0xffff_ff9c;

fn hex(value: &[u8]) -> Meaning {
    Ok([b"0x", value].concat())
}

/// A number with a name in one of two tables, of which the second is audit 4's; else `prefix(0xVALUE)`.
fn named(value: &[u8], tables: [Names; 2], prefix: &str) -> Meaning {
    let number = unsigned(value, 16)? as u32;
    Ok(match lookup(number, tables) {
        Some(name) => name.into(),
        None => [prefix.as_bytes(), b"(0x", value, b")"].concat(),
    })
}

fn lookup(number: u32, tables: [Names; 2]) -> Option<&'static str> {
    find(tables[0], number).or_else(|| find(tables[1], number))
}

/// A number with a name; else `prefix(NUMBER)` in decimal.
fn command(value: &[u8], names: Names, prefix: &str) -> Meaning {
    let number = unsigned(value, 16)? as u32;
    Ok(match find(names, number) {
        Some(name) => name.into(),
        None => format!("{prefix}({})", number as i32).into(),
    })
}

/// A number below `limit` with a name.
fn limited(value: &[u8], names: Names, limit: u32, prefix: &str) -> Meaning {
    let number = unsigned(value, 16)? as u32;
    Ok(match find(names, number) {
        Some(name) if number < limit => name.into(),
        _ => [prefix.as_bytes(), b"(0x", value, b")"].concat(),
    })
}

fn directory(value: &[u8]) -> Meaning {
    match unsigned(value, 16)? as u32 {
        AT_FDCWD => Ok("AT_FDCWD".into()),
        _ => hex(value),
    }
}

pub(super) fn first(who: &Interpreter, context: &Context<'_>, value: &[u8]) -> Meaning {
    let Some(call) = context.call(who.dialect) else {
        return hex(value);
    };

    match call {
        "rt_sigaction" => plain::signal(value, 16, who.dialect),
        "readlinkat" | "mkdirat" | "mknodat" | "fchownat" | "futimesat" | "fchmodat"
        | "futimensat" | "unlinkat" | "utimensat" | "linkat" | "newfstatat"
        | "name_to_handle_at" => directory(value),
        "clock_settime" => limited(value, names::CLOCKS, 7, "unknown-clk_id"),
        "personality" => flags::personality(value),
        "ptrace" => {
            let tables = [names::PTRACE_REQUESTS, names::LATER_PTRACE_REQUESTS];
            named(value, tables, "unknown-ptrace")
        }
        "prctl" => {
            let tables = [names::PRCTL_OPTIONS, names::LATER_PRCTL_OPTIONS];
            named(value, tables, "unknown-prctl-option")
        }
        "unshare" => flags::clone(value, who.dialect),
        "getrlimit" | "setrlimit" => limited(value, names::RLIMITS, 17, "unknown-rlimit"),
        "setuid" | "setreuid" | "setresuid" | "setfsuid" => who.names.uid(value, 16),
        "setgid" | "setregid" | "setresgid" | "setfsgid" => who.names.gid(value, 16),
        "socket" => {
            let tables = [names::ADDRESS_FAMILIES, names::LATER_ADDRESS_FAMILIES];
            named(value, tables, "unknown-family")
        }
        "socketcall" => plain::named(value, 16, names::SOCKET_CALLS, "unknown-socketcall"),
        "bpf" => {
            let tables = [names::BPF_COMMANDS, names::LATER_BPF_COMMANDS];
            let number = unsigned(value, 16)? as u32;
            Ok(match lookup(number, tables) {
                Some(name) => name.into(),
                None => unknown("unknown-bpf-cmd", value),
            })
        }
        _ if call.starts_with("exit") => Ok(match value {
            b"0" => "EXIT_SUCCESS",
            b"1" => "EXIT_FAILURE",
            _ => "UNKNOWN",
        }
        .into()),
        _ if ["renameat", "faccessat", "openat"]
            .iter()
            .any(|at| call.starts_with(at)) =>
        {
            directory(value)
        }
        _ => hex(value),
    }
}

pub(super) fn second(who: &Interpreter, context: &Context<'_>, value: &[u8]) -> Meaning {
    let Some(call) = context.call(who.dialect) else {
        return hex(value);
    };

    match call {
        "fchmod" | "chmod" | "creat" | "mkdir" => plain::mode_short(value, 16),
        "chown" | "chown32" => who.names.uid(value, 16),
        "fchown" | "lchown" if who.dialect == Dialect::Own => who.names.uid(value, 16),
        "getsockopt" | "setsockopt" => socket_level(who, value),
        "setreuid" | "setresuid" => who.names.uid(value, 16),
        "setregid" | "setresgid" => who.names.gid(value, 16),
        "socket" => {
            let kind = unsigned(value, 16)? as u32 & 0xff;
            Ok(match find(names::SOCKET_TYPES, kind) {
                Some(name) => name.into(),
                None => unknown("unknown-type", value),
            })
        }
        "setns" => flags::clone(value, who.dialect),
        "sched_setscheduler" => flags::scheduler(value),
        "mknod" => plain::mode(value, 16),
        "mq_open" | "open" => flags::open(value, 16),
        "access" => flags::access(value),
        "epoll_ctl" => command(
            value,
            names::EPOLL_OPERATIONS,
            "unknown-epoll_ctl-operation",
        ),
        "kill" | "tkill" => plain::signal(value, 16, who.dialect),
        "prctl" if CAPBSET.contains(&context.a0) => plain::capability(value, 16),
        "prctl" if context.a0 == PDEATHSIG => plain::signal(value, 16, who.dialect),
        "umount2" => flags::hex(names::UMOUNT_FLAGS, value),
        "ioctl" => plain::ioctl(value),
        _ if call.starts_with("fcntl") => {
            command(value, names::FCNTL_COMMANDS, "unknown-fcntl-command")
        }
        "fsconfig" => command(
            value,
            names::FSCONFIG_COMMANDS,
            "unknown-fsconfig-operation",
        ),
        "fsopen" if value == b"1" => Ok("FSOPEN_CLOEXEC".into()),
        "fsmount" if value == b"1" => Ok("FSMOUNT_CLOEXEC".into()),
        _ => hex(value),
    }
}

pub(super) fn third(who: &Interpreter, context: &Context<'_>, value: &[u8]) -> Meaning {
    let Some(call) = context.call(who.dialect) else {
        return hex(value);
    };

    match call {
        "getsockopt" | "setsockopt" => socket_option(context.a1, value),
        "openat" | "open_by_handle_at" => flags::open(value, 16),
        "open" | "mq_open" if context.a1 & O_CREAT != 0 => plain::mode_short(value, 16),
        "fchmodat" | "mkdirat" | "mknodat" => plain::mode_short(value, 16),
        "setresuid" => who.names.uid(value, 16),
        "setresgid" => who.names.gid(value, 16),
        "chown" | "fchown" | "lchown" if who.dialect == Dialect::Own => who.names.gid(value, 16),
        "socket" => {
            let number = unsigned(value, 16)? as i32;
            let name = who.names.protocol_name(number);
            Ok(name.unwrap_or_else(|| unknown("unknown-proto", value)))
        }
        "sendmsg" | "recvmsg" => flags::hex(names::MESSAGE_FLAGS, value),
        "shmget" => flags::shm(value),
        "mmap" => flags::protection(value, true),
        "mprotect" => flags::protection(value, false),
        "readlinkat" | "linkat" => directory(value),
        "lseek" => flags::seek(value),
        "clone" | "clone2" => flags::clone(value, who.dialect),
        "tgkill" => plain::signal(value, 16, who.dialect),
        "fsmount" => flags::hex(names::MOUNT_FLAGS, value),
        "move_mount" => directory(value),
        _ if call.starts_with("faccessat") => flags::access(value),
        _ if call.starts_with("renameat") => directory(value),
        _ if call.starts_with("fcntl") => {
            let number = unsigned(value, 16)? as i32;
            match context.a1 {
                F_SETOWN => who.names.uid(value, 16),
                F_SETFD if number == 1 => Ok("FD_CLOEXEC".into()),
                _ => hex(value),
            }
        }
        _ => hex(value),
    }
}

pub(super) fn fourth(who: &Interpreter, context: &Context<'_>, value: &[u8]) -> Meaning {
    match context.call(who.dialect) {
        Some("mmap") => flags::mmap(value),
        Some("mount") => flags::hex(names::MOUNT_FLAGS, value),
        Some("recv" | "recvfrom" | "recvmmsg" | "send" | "sendto" | "sendmmsg") => {
            flags::hex(names::MESSAGE_FLAGS, value)
        }
        _ => hex(value),
    }
}

fn socket_level(who: &Interpreter, value: &[u8]) -> Meaning {
    let level = unsigned(value, 16)? as u32;
    if level == 1 {
        return Ok("SOL_SOCKET".into());
    }
    if let Some(name) = who.names.protocol_name(level as i32) {
        return Ok(name);
    }
    let tables = [names::SOCKET_LEVELS, names::LATER_SOCKET_LEVELS];
    named(value, tables, "unknown-sockopt-level")
}

fn socket_option(level: u64, value: &[u8]) -> Meaning {
    let (tables, prefix) = match level {
        0 => (
            [names::IP_OPTIONS, names::LATER_IP_OPTIONS],
            "unknown-ipopt-name",
        ),
        1 => (
            [names::SOCKET_OPTIONS, names::LATER_SOCKET_OPTIONS],
            "unknown-sockopt-name",
        ),
        6 => (
            [names::TCP_OPTIONS, names::LATER_TCP_OPTIONS],
            "unknown-tcpopt-name",
        ),
        17 => ([UDP_OPTIONS, UDP_OPTIONS], "unknown-udpopt-name"),
        41 => (
            [names::IP6_OPTIONS, names::LATER_IP6_OPTIONS],
            "unknown-ip6opt-name",
        ),
        263 => (
            [names::PACKET_OPTIONS, names::LATER_PACKET_OPTIONS],
            "unknown-pktopt-name",
        ),
        _ => return hex(value),
    };

    named(value, tables, prefix)
}

/// Options at `IPPROTO_UDP` (linux/udp.h).
const UDP_OPTIONS: Names = &[(1, "UDP_CORK"), (100, "UDP_ENCAP")];
