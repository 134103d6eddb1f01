//! BPRM_FCAPS: an execve that raised the capabilities of a task.

use crate::system::{KernelFile, System};
use record::record::{BprmFcaps, FileCaps};
use record::wire::{tarsier_caps, Event};

/// The record of a successful execve, if the kernel would make one: `nonroot_raised_pE()` and
/// `audit_log_bprm_fcaps()`, security/commoncap.c and kernel/auditsc.c. `file` holds the capabilities of the executed
/// file, `all_caps` is the result of [`all_caps`].
pub(crate) fn record(
    event: &Event<'_>,
    file: Option<FileCaps>,
    all_caps: u64,
) -> Option<BprmFcaps> {
    let caps = event.fcaps()?;
    let header = event.header();
    let file = file.unwrap_or(FileCaps::NONE);
    let task = Task {
        uid: header.uid,
        euid: header.euid,
        old_uid: caps.old.pid,
        has_file_caps: file != FileCaps::NONE,
    };

    if !raised(&task, &caps.old, &caps.new, all_caps) {
        return None;
    }
    let FileCaps::Known {
        permitted,
        inheritable,
        effective,
        version,
        rootid,
    } = file
    else {
        return None;
    };

    Some(BprmFcaps {
        fver: version,
        fp: permitted,
        fi: inheritable,
        fe: effective,
        old: (&caps.old).into(),
        new: (&caps.new).into(),
        frootid: rootid,
    })
}

struct Task {
    uid: u32,
    euid: u32,
    old_uid: u32,
    has_file_caps: bool,
}

fn raised(task: &Task, old: &tarsier_caps, new: &tarsier_caps, all: u64) -> bool {
    let is_full = new.effective & all == all;
    let grew = new.effective & !new.ambient != 0;
    let is_root = task.euid == 0 || task.uid == 0;
    let is_suid_root = task.euid == 0 && task.uid != 0;
    let is_setuid = task.euid != task.old_uid;
    let gained = |new: u64, old: u64| new & !old != 0;
    grew && !(is_full && is_root)
        || is_suid_root && !is_full
        || !is_setuid
            && (task.has_file_caps && gained(new.permitted, old.permitted)
                || gained(new.ambient, old.ambient))
}

/// Every capability that the kernel knows, as a bit mask; capabilities 0 to 40 if the kernel's last one cannot be read.
pub(crate) fn all_caps(system: &dyn System) -> u64 {
    let last = system.kernel_file(KernelFile::LastCapability);
    let last = last.and_then(|text| String::from_utf8(text).ok());
    let last: u32 = last.and_then(|text| text.trim().parse().ok()).unwrap_or(40);
    u64::MAX >> (63 - last.min(63))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: u64 = (1 << 41) - 1;

    fn caps(permitted: u64, effective: u64) -> tarsier_caps {
        tarsier_caps {
            permitted,
            effective,
            ..tarsier_caps::default()
        }
    }

    fn user(has_file_caps: bool) -> Task {
        Task {
            uid: 1000,
            euid: 1000,
            old_uid: 1000,
            has_file_caps,
        }
    }

    #[test]
    fn a_file_with_capabilities_is_told_and_plain_programs_are_not() {
        let gained = caps(1 << 12, 1 << 12);
        assert!(raised(&user(true), &caps(0, 0), &gained, ALL));
        assert!(!raised(&user(false), &caps(0, 0), &caps(0, 0), ALL));
    }

    #[test]
    fn full_root_and_suid_root_are_not_told() {
        let root = Task {
            uid: 0,
            euid: 0,
            old_uid: 0,
            has_file_caps: false,
        };
        let suid = Task {
            uid: 1000,
            euid: 0,
            old_uid: 1000,
            has_file_caps: false,
        };
        let full = caps(ALL, ALL);
        assert!(!raised(&root, &full, &full, ALL));
        assert!(!raised(&suid, &caps(0, 0), &full, ALL));
        let less = caps(ALL & !(1 << 24), ALL & !(1 << 24));
        assert!(raised(&root, &less, &less, ALL));
    }
}
