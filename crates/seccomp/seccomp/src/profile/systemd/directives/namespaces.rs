//! `RestrictNamespaces=`

use super::super::unit::boolean;
use super::{add, all_bits, Unit, EPERM, NO_CALL};
use crate::policy::{Compare, Condition};

const NAMESPACES: [(&str, u64); 8] = [
    ("cgroup", libc::CLONE_NEWCGROUP as u64),
    ("ipc", libc::CLONE_NEWIPC as u64),
    ("net", libc::CLONE_NEWNET as u64),
    ("mnt", libc::CLONE_NEWNS as u64),
    ("pid", libc::CLONE_NEWPID as u64),
    ("user", libc::CLONE_NEWUSER as u64),
    ("uts", libc::CLONE_NEWUTS as u64),
    ("time", TIME),
];

/// CLONE_NEWTIME. systemd knows the name, but does not count it among all namespaces.
const TIME: u64 = 0x80;

/// The kinds that must all be permitted for there to be no restriction (systemd, nsflags.h,
/// `NAMESPACE_FLAGS_ALL`).
const ALL: u64 = {
    let (mut all, mut at) = (0, 0);
    while at < NAMESPACES.len() {
        all |= NAMESPACES[at].1;
        at += 1;
    }
    all & !TIME
};

/// `RestrictNamespaces=`: a boolean replaces what earlier lines said; lists add to it or take away
/// from it (systemd, `config_parse_restrict_namespaces`).
pub(super) fn namespaces(unit: &mut Unit<'_>) {
    // The kinds that may be entered; `None` before the first line.
    let mut permitted: Option<u64> = None;
    let settings = unit.all("RestrictNamespaces");
    for setting in &settings {
        match boolean(&setting.value) {
            Some(restricts) => permitted = Some(if restricts { 0 } else { ALL }),
            None => {
                let (inverted, names) = setting.list();
                let Some(flags) = flags(names) else {
                    let expected = "yes, no, or cgroup, ipc, net, mnt, pid, user, uts, time";
                    unit.note(setting.ignored(&setting.value, expected));
                    continue;
                };
                permitted = Some(match (permitted, inverted) {
                    (None, false) => flags,
                    (None, true) => ALL & !flags,
                    (Some(before), false) => before | flags,
                    (Some(before), true) => before & !flags,
                });
            }
        }
    }

    let (Some(permitted), Some(&setting)) = (permitted, settings.last()) else {
        return;
    };
    if permitted & ALL == ALL {
        return;
    }

    let id = unit.source(setting.place());
    let mut layer = unit.permissive(setting);
    let allows_none = permitted & ALL == 0;
    let forbidden = NAMESPACES.iter().filter(|row| permitted & row.1 == 0);
    let forbidden: Vec<u64> = forbidden.map(|row| row.1).collect();

    for abi in unit.family.clone() {
        // The flags of clone3 are in memory; programs fall back to clone.
        add(&mut layer, abi, "clone3", Vec::new(), NO_CALL, id);
        // 0 enters a namespace of any kind.
        let any = Condition {
            arg: 1,
            compare: Compare::MaskedEq { mask: 0xffff_ffff },
            value: 0,
        };
        let conditions = if allows_none { Vec::new() } else { vec![any] };
        add(&mut layer, abi, "setns", conditions, EPERM, id);
        for &flag in &forbidden {
            for (name, arg) in [("unshare", 0), ("clone", 0), ("setns", 1)] {
                add(&mut layer, abi, name, vec![all_bits(arg, flag)], EPERM, id);
            }
        }
    }

    unit.policy.layers.push(layer);
}

/// The flags of a list of kinds; `None` if a word is none.
fn flags<'a>(names: impl Iterator<Item = &'a str>) -> Option<u64> {
    let mut flags = 0;
    for name in names {
        flags |= NAMESPACES.iter().find(|row| row.0 == name)?.1;
    }
    Some(flags)
}
