//! `subj=` and `obj=`: the security label of a process, as a security module shows it in
//! `/proc/PID/attr/current` and the kernel's audit prints it.

use std::borrow::Cow;
use std::fs;

/// What AppArmor shows of its loaded policy; one line per profile.
const APPARMOR_PROFILES: &str = "/sys/kernel/security/apparmor/profiles";
/// The label of a process that no AppArmor profile confines.
const UNCONFINED: &[u8] = b"unconfined";

/// How processes are labelled on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Labels {
    /// No security module labels processes.
    None,
    /// AppArmor without a profile: everything has the same label.
    Unconfined,
    /// Each process has its own, to be read while it is there.
    PerProcess,
}

impl Labels {
    /// How it is now. A profile may be loaded at any time, so this has to be asked again.
    pub(super) fn now() -> Labels {
        match label_of("self") {
            None => Labels::None,
            Some(label) if label == UNCONFINED && has_no_profile() => Labels::Unconfined,
            Some(_) => Labels::PerProcess,
        }
    }

    /// The label of process `pid`; `None` where there are no labels, or the process has ended.
    pub(super) fn of(self, pid: u32) -> Option<Cow<'static, [u8]>> {
        match self {
            Labels::None => None,
            Labels::Unconfined => Some(Cow::Borrowed(UNCONFINED)),
            Labels::PerProcess => label_of(&pid.to_string()).map(Cow::Owned),
        }
    }
}

/// Whether AppArmor says that no profile is loaded. If it cannot be asked, there may be some.
fn has_no_profile() -> bool {
    fs::read(APPARMOR_PROFILES).is_ok_and(|profiles| profiles.is_empty())
}

/// The label of a process of /proc. SELinux ends it with NUL, AppArmor with a line feed.
fn label_of(process: &str) -> Option<Vec<u8>> {
    let mut label = fs::read(format!("/proc/{process}/attr/current")).ok()?;
    while matches!(label.last(), Some(0 | b'\n')) {
        label.pop();
    }
    (!label.is_empty()).then_some(label)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_label_is_what_proc_shows_of_the_process() {
        let mut own = fs::read("/proc/self/attr/current").unwrap_or_default();
        own.retain(|byte| !matches!(byte, 0 | b'\n'));
        let label = Labels::now().of(std::process::id());
        assert_eq!(label.as_deref().unwrap_or_default(), own);
    }

    #[test]
    fn a_process_that_has_ended_has_no_label_of_its_own() {
        assert_eq!(Labels::PerProcess.of(u32::MAX), None);
        assert_eq!(Labels::Unconfined.of(u32::MAX).as_deref(), Some(UNCONFINED));
    }
}
