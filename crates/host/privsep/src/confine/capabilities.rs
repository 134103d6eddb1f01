//! The capabilities that the daemon uses, and no others.

use crate::confine::Wanted;
use rustix::io::Errno;
use rustix::thread::{
    capabilities, remove_capability_from_bounding_set, set_capabilities, CapabilitySet,
};
use std::io;

/// The capabilities of the daemon, with what needs each.
pub(crate) const KEPT: [(CapabilitySet, &str); 13] = [
    (CapabilitySet::BPF, "loads programs and maps at a reload"),
    (CapabilitySet::PERFMON, "attaches programs"),
    (
        CapabilitySet::SYS_ADMIN,
        "opens its own programs, maps and links by id, which the kernel allows only with it",
    ),
    (CapabilitySet::SYSLOG, "reads addresses in /proc/kallsyms"),
    (CapabilitySet::AUDIT_CONTROL, "owns the audit socket"),
    (CapabilitySet::AUDIT_READ, "reads the audit socket"),
    (
        CapabilitySet::AUDIT_WRITE,
        "passes on messages of auditctl -m",
    ),
    (
        CapabilitySet::NET_ADMIN,
        "gives the audit socket a buffer larger than rmem_max",
    ),
    (CapabilitySet::DAC_READ_SEARCH, "opens cgroups by id"),
    (CapabilitySet::CHOWN, "gives log files to log_group"),
    (
        CapabilitySet::SYS_NICE,
        "raises its priority when rings fill up",
    ),
    (CapabilitySet::IPC_LOCK, "locks keys in memory"),
    (
        CapabilitySet::SYS_BOOT,
        "halts the machine for auditctl -f 2",
    ),
];

/// Gives up all capabilities that are not needed, in this thread.
pub(crate) fn keep(wanted: &Wanted) -> io::Result<()> {
    let mut kept = KEPT
        .iter()
        .fold(CapabilitySet::empty(), |set, row| set | row.0);
    if wanted.overrides_owners {
        kept |= CapabilitySet::DAC_OVERRIDE | CapabilitySet::FOWNER;
    }

    if wanted.privileged_port {
        kept |= CapabilitySet::NET_BIND_SERVICE;
    }
    let mut sets = capabilities(None)?;

    // Without the right to, somebody has bounded this process before. It cannot execute anything anyway.
    let bounded = if sets.effective.contains(CapabilitySet::SETPCAP) {
        bound(kept)
    } else {
        Ok(())
    };
    sets.permitted &= kept;
    sets.effective = sets.permitted;
    sets.inheritable = CapabilitySet::empty();
    set_capabilities(None, sets)?;

    bounded
}

/// Takes all others out of the bounding set, which needs CAP_SETPCAP.
fn bound(kept: CapabilitySet) -> io::Result<()> {
    for number in 0..64 {
        let one = CapabilitySet::from_bits_retain(1 << number);
        if kept.contains(one) {
            continue;
        }
        match remove_capability_from_bounding_set(one) {
            Ok(()) => {}
            // The kernel has no more.
            Err(Errno::INVAL) => break,
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(())
}
