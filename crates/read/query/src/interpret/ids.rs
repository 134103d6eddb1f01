//! Users, groups, architectures, calls and errors.

use super::{unknown, Context, Machine, MachineNames};
use crate::number::{unsigned, OutOfRange};
use crate::Dialect;
use abi::Arch;
use std::cell::RefCell;
use std::collections::HashMap;

type Meaning = Result<Vec<u8>, OutOfRange>;

/// Ids and their names. Bounded, since a log may have any number of them.
#[derive(Default)]
struct Cache(HashMap<u32, Option<Vec<u8>>>);

const CACHED_MAX: usize = 4096;

impl Cache {
    fn get(&mut self, id: u32, ask: fn(u32) -> Option<Vec<u8>>) -> Option<Vec<u8>> {
        if self.0.len() >= CACHED_MAX {
            self.0.clear();
        }
        self.0.entry(id).or_insert_with(|| ask(id)).clone()
    }
}

/// Names of ids, asked once each.
pub(super) struct IdNames {
    machine: MachineNames,
    users: RefCell<Cache>,
    groups: RefCell<Cache>,
    /// Ids by name, also of names that are not known: asking the machine opens files.
    ids: RefCell<HashMap<Box<[u8]>, Option<u32>>>,
}

/// Most names whose ids are kept. Whoever fails to log in makes up names.
const IDS_MAX: usize = 1 << 14;

impl IdNames {
    pub(super) fn new(machine: MachineNames) -> IdNames {
        IdNames {
            machine,
            users: RefCell::default(),
            groups: RefCell::default(),
            ids: RefCell::default(),
        }
    }

    /// The name of a user, `unset`, or `unknown(ID)`.
    pub(super) fn user(&self, id: u32) -> Vec<u8> {
        name_or_number(id, || self.users.borrow_mut().get(id, self.machine.user))
    }

    /// Id of a user by name.
    pub(super) fn user_id(&self, name: &[u8]) -> Option<u32> {
        let mut ids = self.ids.borrow_mut();
        if let Some(id) = ids.get(name) {
            return *id;
        }
        let id = (self.machine.user_id)(name);
        if ids.len() < IDS_MAX {
            ids.insert(name.into(), id);
        }
        id
    }

    /// Names of this machine for what is no id.
    pub(super) fn machine(&self) -> &MachineNames {
        &self.machine
    }

    pub(super) fn uid(&self, value: &[u8], base: u32) -> Meaning {
        Ok(self.user(unsigned(value, base)? as u32))
    }

    pub(super) fn gid(&self, value: &[u8], base: u32) -> Meaning {
        let id = unsigned(value, base)? as u32;
        Ok(name_or_number(id, || {
            self.groups.borrow_mut().get(id, self.machine.group)
        }))
    }

    pub(super) fn protocol(&self, value: &[u8]) -> Meaning {
        let name = self.protocol_name(unsigned(value, 10)? as i32);
        Ok(name.unwrap_or_else(|| b"undefined protocol".to_vec()))
    }

    pub(super) fn protocol_name(&self, number: i32) -> Option<Vec<u8>> {
        (self.machine.protocol)(number)
    }
}

fn name_or_number(id: u32, ask: impl FnOnce() -> Option<Vec<u8>>) -> Vec<u8> {
    match id {
        u32::MAX => b"unset".to_vec(),
        0 => b"root".to_vec(),
        _ => ask().unwrap_or_else(|| format!("unknown({})", id as i32).into_bytes()),
    }
}

/// Machines without tables that audit has a name for, by their AUDIT_ARCH (linux/audit.h).
pub(super) fn other_machine(number: u32) -> Option<&'static str> {
    match number {
        0xc000_0032 => Some("ia64"),
        0x8000_0015 => Some("ppc64"),
        0xc000_0015 => Some("ppc64le"),
        0x0000_0014 => Some("ppc"),
        0x8000_0016 => Some("s390x"),
        0x0000_0016 => Some("s390"),
        _ => None,
    }
}

/// The name of an architecture; audit has no other for ARM of 32 bits.
fn machine_name(arch: Arch, dialect: Dialect) -> &'static str {
    match arch {
        Arch::Arm if dialect.is_compat() => "armeb",
        _ => arch.name(),
    }
}

pub(super) fn arch(value: &[u8], dialect: Dialect) -> Meaning {
    let number = unsigned(value, 16)? as u32;
    let name = Arch::from_audit_arch(number)
        .map(|arch| machine_name(arch, dialect))
        .or_else(|| other_machine(number));
    Ok(match name {
        Some(name) => name.into(),
        None => unknown("unknown-elf-type", value),
    })
}

/// The greatest call number in the tables of audit 4.0: mseal.
const CALL_MAX: u32 = 462;

/// Whether the tables of audit 4.0 may have a call: not those of x32, nor uretprobe and uprobe, nor pselect6, ppoll and
/// epoll_pwait of ARM.
fn is_in_compat(arch: Arch, number: u32) -> bool {
    let is_missing = match arch {
        Arch::X86_64 => matches!(number, 335 | 336),
        Arch::Arm => matches!(number, 335 | 336 | 346),
        _ => false,
    };
    // Private calls of ARM stand far above the others.
    let is_old = number <= CALL_MAX || (number > 0xffff && number < abi::X32_BIT);
    is_old && !is_missing
}

/// The name of a call or of an operation of io_uring. Each dialect has the tables of its time.
pub(crate) fn call_name(machine: Machine, number: i32, dialect: Dialect) -> Option<&'static str> {
    let number = u32::try_from(number).ok()?;
    match machine {
        Machine::Known(arch) => {
            if dialect == Dialect::Compat && !is_in_compat(arch, number) {
                return None;
            }
            abi::syscall_name(arch, number)
        }
        Machine::Uring => abi::uring_op_name(number),
        Machine::Other(arch) => {
            let name = abi::read_only_syscall_name(arch, number);
            if dialect.is_compat() {
                other_of_compat(arch, number, name)
            } else {
                name
            }
        }
        Machine::Unset => None,
    }
}

/// Calls of PowerPC and s390x that the tables of audit 4.0 lack.
const LACKING_PPC: &[u32] = &[0, 256, 258, 259, 260, 261];
const LACKING_S390X: &[u32] = &[
    7, 110, 220, 268, 269, 270, 287, 310, 378, 392, 393, 394, 395, 396, 397, 398, 399, 400, 401,
    402, 447,
];
/// Calls of PowerPC that audit 4.0 names otherwise. Its table is also that of programs of 32 bits.
#[rustfmt::skip]
const RENAMED_PPC: &[(u32, &str)] = &[
    (192, "mmap2"),
    (193, "truncate64"),
    (194, "ftruncate64"),
    (195, "stat64"),
    (196, "lstat64"),
    (197, "fstat64"),
    (204, "fcntl64"),
    (226, "sendfile64"),
    (254, "fadvise64_64"),
    (291, "fstatat64"),
    (306, "timerfd"),
    (319, "perf_counter_open"),
    (403, "clock_gettime64"),
    (404, "clock_settime64"),
    (405, "clock_adjtime64"),
    (406, "clock_getres_time64"),
    (407, "clock_nanosleep_time64"),
    (408, "timer_gettime64"),
    (409, "timer_settime64"),
    (410, "timerfd_gettime64"),
    (411, "timerfd_settime64"),
    (412, "utimensat_time64"),
    (413, "pselect6_time64"),
    (414, "ppoll_time64"),
    (416, "io_pgetevents_time64"),
    (417, "recvmmsg_time64"),
    (418, "mq_timedsend_time64"),
    (419, "mq_timedreceive_time64"),
    (420, "semtimedop_time64"),
    (421, "rt_sigtimedwait_time64"),
    (422, "futex_time64"),
    (423, "sched_rr_get_interval_time64"),
];

/// The name that audit 4.0 has for a call of a machine without [`Arch`], whose true name is `name`.
fn other_of_compat(arch: u32, number: u32, name: Option<&'static str>) -> Option<&'static str> {
    let is_s390x = other_machine(arch) == Some("s390x");
    let (lacking, renamed) = if is_s390x {
        (LACKING_S390X, &[][..])
    } else {
        (LACKING_PPC, RENAMED_PPC)
    };
    if number > CALL_MAX || lacking.contains(&number) {
        return None;
    }
    let other = renamed.iter().find(|row| row.0 == number);
    other.map(|row| row.1).or(name)
}

pub(super) fn syscall(context: &Context<'_>, value: &[u8], dialect: Dialect) -> Vec<u8> {
    let machine = match context.machine {
        Machine::Unset => Machine::Known(Arch::native()),
        known => known,
    };
    let number = match (context.syscall, dialect) {
        // The field says it, wherever it stands.
        (-1, Dialect::Own) => unsigned(value, 10).unwrap_or(u64::MAX) as i32,
        (number, _) => number,
    };
    let Some(call) = call_name(machine, number, dialect) else {
        return format!("unknown-syscall({number})").into_bytes();
    };

    let behind = match (call, u32::try_from(context.a0)) {
        ("socketcall", Ok(a0)) => abi::names::find(abi::names::SOCKET_CALLS, a0),
        ("ipc", Ok(a0)) => abi::names::find(abi::names::IPC_CALLS, a0),
        _ => None,
    };
    match behind {
        Some(behind) => format!("{call}({behind})").into_bytes(),
        None => call.into(),
    }
}

pub(super) fn exit(value: &[u8]) -> Meaning {
    let number = crate::number::signed_decimal(value)?;
    if number >= 0 {
        return Ok(value.to_vec());
    }
    let errno = number.wrapping_neg() as i32;
    let name = abi::errno_name(errno).unwrap_or("(null)");
    Ok([name.as_bytes(), b"(", &error_text(errno), b")"].concat())
}

pub(super) fn errno(value: &[u8]) -> Meaning {
    let number = unsigned(value, 10)? as i32;
    Ok(abi::errno_name(number).unwrap_or("UNKNOWN").into())
}

/// The C library's text of an error, in the locale's language.
fn error_text(errno: i32) -> Vec<u8> {
    let mut text = [0_u8; 256];
    // SAFETY: the buffer has the length that is given; the function ends its text with a zero.
    let _ = unsafe { libc::strerror_r(errno, text.as_mut_ptr().cast(), text.len()) };
    let end = memchr::memchr(0, &text).unwrap_or(text.len());
    text[..end].to_vec()
}
