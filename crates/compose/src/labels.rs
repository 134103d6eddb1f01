//! `subj=` and `obj=`: the security label of a process, as a security module shows it in
//! `/proc/PID/attr/current` and the kernel's audit prints it.

use crate::system::{KernelFile, System};
use std::borrow::Cow;

/// The label of a process that no AppArmor profile confines.
const UNCONFINED: &[u8] = b"unconfined";

/// How processes are labelled on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Labels {
    /// No security module labels processes.
    None,
    /// AppArmor without any profile: all processes have the label `unconfined`.
    Unconfined,
    /// Each process has its own label, which can be read only while the process exists.
    PerProcess,
}

impl Labels {
    /// How processes are labelled now. A profile may be loaded at any time, so this has to be asked periodically.
    pub(crate) fn now(system: &dyn System) -> Labels {
        match label_of(system, None) {
            None => Labels::None,
            Some(label) if label == UNCONFINED && has_no_profile(system) => Labels::Unconfined,
            Some(_) => Labels::PerProcess,
        }
    }

    /// The label of process `pid`; `None` if processes have no labels, or the process has ended.
    pub(crate) fn of(self, system: &dyn System, pid: u32) -> Option<Cow<'static, [u8]>> {
        match self {
            Labels::None => None,
            Labels::Unconfined => Some(Cow::Borrowed(UNCONFINED)),
            Labels::PerProcess => label_of(system, Some(pid)).map(Cow::Owned),
        }
    }
}

/// Whether AppArmor lists no profile; `false` if the list cannot be read.
fn has_no_profile(system: &dyn System) -> bool {
    let profiles = system.kernel_file(KernelFile::AppArmorProfiles);
    profiles.is_some_and(|profiles| profiles.is_empty())
}

/// The contents of `/proc/PID/attr/current` without the end, which is NUL with SELinux and a line feed with
/// AppArmor; `None` if there is no label.
fn label_of(system: &dyn System, pid: Option<u32>) -> Option<Vec<u8>> {
    let mut label = system.kernel_file(KernelFile::Label(pid))?;
    while matches!(label.last(), Some(0 | b'\n')) {
        label.pop();
    }
    (!label.is_empty()).then_some(label)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::static_system::{StaticFile, StaticSystem};

    fn system(files: &[(&'static str, &str)]) -> StaticSystem {
        let file = |text: &str| StaticFile {
            contents: text.as_bytes().to_vec(),
            ..StaticFile::default()
        };
        let files = files.iter().map(|&(path, text)| (path, file(text)));
        StaticSystem {
            files: files.collect(),
            ..StaticSystem::default()
        }
    }

    #[test]
    fn a_process_that_has_ended_has_no_label_of_its_own() {
        let none = system(&[]);
        assert_eq!(Labels::PerProcess.of(&none, 7), None);
        assert_eq!(Labels::Unconfined.of(&none, 7).as_deref(), Some(UNCONFINED));
    }

    #[test]
    fn processes_are_asked_one_by_one_only_where_their_labels_may_differ() {
        const SELF: &str = "/proc/self/attr/current";
        const APPARMOR_PROFILES: &str = "/sys/kernel/security/apparmor/profiles";
        assert_eq!(Labels::now(&system(&[])), Labels::None);
        assert_eq!(Labels::now(&system(&[(SELF, "\n")])), Labels::None);
        let unconfined = [(SELF, "unconfined\n"), (APPARMOR_PROFILES, "")];
        assert_eq!(Labels::now(&system(&unconfined)), Labels::Unconfined);
        let profile = [
            (SELF, "unconfined\n"),
            (APPARMOR_PROFILES, "cups (enforce)\n"),
        ];
        assert_eq!(Labels::now(&system(&profile)), Labels::PerProcess);
        assert_eq!(Labels::now(&system(&unconfined[..1])), Labels::PerProcess);
        let selinux = system(&[(SELF, "a:b:c\0"), ("/proc/7/attr/current", "d:e:f\0")]);
        assert_eq!(Labels::now(&selinux), Labels::PerProcess);
        let label = Labels::PerProcess.of(&selinux, 7);
        assert_eq!(label.as_deref(), Some(&b"d:e:f"[..]));
    }
}
