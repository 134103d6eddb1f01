//! `subj=` and `obj=`: the security label of a process, as a security module shows it in
//! `/proc/PID/attr/current` and the kernel's audit prints it.

use crate::system::{KernelFile, System};
use plan::SecurityModule;
use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

/// The label of a process that no AppArmor profile confines.
const UNCONFINED: &[u8] = b"unconfined";

/// Labelling of processes on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Labels {
    /// No security module labels processes.
    None,
    /// AppArmor without any profile: all processes have the label `unconfined`.
    Unconfined,
    /// Each process has its own label, given by this module, which can be read only while the process exists.
    PerProcess(SecurityModule),
}

impl Labels {
    /// Current labelling of processes. It has to be asked for periodically, as a profile may be loaded at any time.
    pub(crate) fn now(system: &dyn System) -> Labels {
        match label_of(system, KernelFile::Label(None)) {
            None => Labels::None,
            Some(label) if label == UNCONFINED && has_no_profile(system) => Labels::Unconfined,
            Some(_) => Labels::PerProcess(module(system)),
        }
    }

    /// The module that labels processes.
    pub(crate) fn module(self) -> SecurityModule {
        match self {
            Labels::None => SecurityModule::None,
            Labels::Unconfined => SecurityModule::AppArmor,
            Labels::PerProcess(module) => module,
        }
    }

    /// The label of process `pid`; `None` if processes have no labels, or the process has ended.
    pub(crate) fn of(self, system: &dyn System, pid: u32) -> Option<Cow<'static, [u8]>> {
        self.of_process(|| label_of(system, KernelFile::Label(Some(pid))))
    }

    /// As [`of`](Self::of), for an event at `event_ns` (CLOCK_MONOTONIC). Labels are taken from `lately` if they were
    /// read after the event.
    pub(crate) fn at(
        self,
        system: &dyn System,
        pid: u32,
        event_ns: u64,
        lately: &mut ReadLabels,
    ) -> Option<Cow<'static, [u8]>> {
        self.of_process(|| lately.label(system, pid, event_ns))
    }

    fn of_process(self, own: impl FnOnce() -> Option<Vec<u8>>) -> Option<Cow<'static, [u8]>> {
        match self {
            Labels::None => None,
            Labels::Unconfined => Some(Cow::Borrowed(UNCONFINED)),
            Labels::PerProcess(_) => own().map(Cow::Owned),
        }
    }
}

/// Texts of the labels whose numbers are in frames: what reads them in the kernel.
pub trait LabelTexts {
    /// The text of a label under the policy that is in force; `None` if it has none, or it cannot be read.
    fn text(&self, number: u32) -> Option<Vec<u8>>;

    /// A number that is another one after each load of a policy; `None` if none is in force.
    fn policy(&self) -> Option<u64>;
}

/// The texts that were asked for since a policy came into force.
pub(crate) struct NumberedLabels {
    texts: Box<dyn LabelTexts>,
    policy: Option<u64>,
    known: RefCell<HashMap<u32, Rc<[u8]>>>,
    missing: Cell<u64>,
}

impl NumberedLabels {
    pub(crate) fn new(texts: Box<dyn LabelTexts>) -> NumberedLabels {
        NumberedLabels {
            policy: texts.policy(),
            texts,
            known: RefCell::default(),
            missing: Cell::default(),
        }
    }

    /// Forgets the texts of a policy that is no longer in force.
    pub(crate) fn refresh(&mut self) {
        let policy = self.texts.policy();
        if policy != self.policy {
            self.known.get_mut().clear();
            self.policy = policy;
        }
    }

    /// The text of a label. `None`, which is counted, if it cannot be read: a wrong one is worse.
    pub(crate) fn text(&self, number: u32) -> Option<Rc<[u8]>> {
        let mut known = self.known.borrow_mut();
        if let Some(text) = known.get(&number) {
            return Some(Rc::clone(text));
        }

        let Some(text) = self.texts.text(number) else {
            self.missing.set(self.missing.get() + 1);
            return None;
        };
        // Whoever may choose labels could make any number of them.
        if known.len() >= KEPT_TEXTS {
            known.clear();
        }
        let text: Rc<[u8]> = text.into();
        known.insert(number, Rc::clone(&text));
        Some(text)
    }

    /// How many labels of records could not be read.
    pub(crate) fn missing(&self) -> u64 {
        self.missing.get()
    }
}

/// Number of texts that are kept.
const KEPT_TEXTS: usize = 16_384;

/// Number of processes whose labels are kept.
const KEPT: usize = 32;

/// The labels of processes that were asked for last. A label is read after the event, so it may be one that the process
/// has got since. For other events from before the reading it is read no better again.
#[derive(Default)]
pub(crate) struct ReadLabels([Option<ReadLabel>; KEPT]);

struct ReadLabel {
    pid: u32,
    label: Vec<u8>,
    /// Time of CLOCK_MONOTONIC before the label was read, in nanoseconds.
    read_ns: u64,
}

impl ReadLabels {
    fn label(&mut self, system: &dyn System, pid: u32, event_ns: u64) -> Option<Vec<u8>> {
        let place = &mut self.0[pid as usize % KEPT];
        let is_it = |read: &&ReadLabel| read.pid == pid && event_ns <= read.read_ns;
        if let Some(read) = place.as_ref().filter(is_it) {
            return Some(read.label.clone());
        }

        let read_ns = system.monotonic_ns();
        let label = label_of(system, KernelFile::Label(Some(pid)));
        *place = label.clone().map(|label| ReadLabel {
            pid,
            label,
            read_ns,
        });
        label
    }
}

/// The security module whose labels `/proc/PID/attr/current` shows: AppArmor and Smack show theirs in a directory of
/// their own too.
fn module(system: &dyn System) -> SecurityModule {
    if label_of(system, KernelFile::AppArmorLabel).is_some() {
        SecurityModule::AppArmor
    } else if label_of(system, KernelFile::SmackLabel).is_some() {
        SecurityModule::Smack
    } else {
        SecurityModule::Selinux
    }
}

/// Whether AppArmor lists no profile; `false` if the list cannot be read.
fn has_no_profile(system: &dyn System) -> bool {
    let profiles = system.kernel_file(KernelFile::AppArmorProfiles);
    profiles.is_some_and(|profiles| profiles.is_empty())
}

/// The label in a file, without the end, which is NUL with SELinux and a line feed with AppArmor; `None` if there is no
/// label.
fn label_of(system: &dyn System, file: KernelFile) -> Option<Vec<u8>> {
    let mut label = system.kernel_file(file)?;
    while matches!(label.last(), Some(0 | b'\n')) {
        label.pop();
    }
    (!label.is_empty()).then_some(label)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::static_system::{StaticFile, StaticSystem};
    use std::sync::atomic::Ordering;

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
        let apart = Labels::PerProcess(SecurityModule::Selinux);
        assert_eq!(apart.of(&none, 7), None);
        assert_eq!(Labels::Unconfined.of(&none, 7).as_deref(), Some(UNCONFINED));
    }

    #[test]
    fn texts_are_asked_for_once_and_forgotten_with_the_policy() {
        struct Texts(Rc<Cell<u64>>, Cell<u32>);
        impl LabelTexts for Texts {
            fn text(&self, number: u32) -> Option<Vec<u8>> {
                self.1.set(self.1.get() + 1);
                (number != 9).then(|| format!("{number}:{}:{}", self.0.get(), self.1.get()).into())
            }

            fn policy(&self) -> Option<u64> {
                Some(self.0.get())
            }
        }

        let policy = Rc::new(Cell::new(1));
        let mut labels = NumberedLabels::new(Box::new(Texts(Rc::clone(&policy), Cell::new(0))));
        let text = |labels: &NumberedLabels, number| {
            let text = labels.text(number);
            text.map(|text| String::from_utf8_lossy(&text).into_owned())
        };
        assert_eq!(text(&labels, 5).as_deref(), Some("5:1:1"));
        assert_eq!(text(&labels, 5).as_deref(), Some("5:1:1"));
        assert_eq!(text(&labels, 9), None);
        labels.refresh();
        assert_eq!(text(&labels, 5).as_deref(), Some("5:1:1"));
        policy.set(2);
        labels.refresh();
        assert_eq!(text(&labels, 5).as_deref(), Some("5:2:3"));
        assert_eq!(labels.missing(), 1);
    }

    #[test]
    fn a_label_is_read_once_for_events_from_before_the_reading() {
        let at = |label: &str, ns| {
            let system = system(&[("/proc/7/attr/current", label)]);
            system.monotonic_ns.store(ns, Ordering::Relaxed);
            system
        };
        let mut lately = ReadLabels::default();
        let (first, second) = (at("first\n", 10), at("second\n", 20));
        let mut of = |system: &StaticSystem, event_ns| {
            let label = lately.label(system, 7, event_ns);
            label.map(|label| String::from_utf8_lossy(&label).into_owned())
        };
        assert_eq!(of(&first, 9).as_deref(), Some("first"));
        assert_eq!(of(&second, 10).as_deref(), Some("first"));
        assert_eq!(of(&second, 11).as_deref(), Some("second"));
        assert_eq!(of(&first, 20).as_deref(), Some("second"));
        assert_eq!(of(&system(&[]), 21), None);
        assert_eq!(of(&first, 9).as_deref(), Some("first"));
    }

    #[test]
    fn processes_are_asked_one_by_one_only_where_their_labels_may_differ() {
        const SELF: &str = "/proc/self/attr/current";
        const APPARMOR_PROFILES: &str = "/sys/kernel/security/apparmor/profiles";
        assert_eq!(Labels::now(&system(&[])), Labels::None);
        assert_eq!(Labels::now(&system(&[(SELF, "\n")])), Labels::None);
        let unconfined = [(SELF, "unconfined\n"), (APPARMOR_PROFILES, "")];
        assert_eq!(Labels::now(&system(&unconfined)), Labels::Unconfined);
        let own = ("/proc/self/attr/apparmor/current", "unconfined\n");
        let profile = (APPARMOR_PROFILES, "cups (enforce)\n");
        let apparmor = Labels::PerProcess(SecurityModule::AppArmor);
        let of = |files: &[(&'static str, &str)]| Labels::now(&system(files));
        assert_eq!(of(&[unconfined[0], profile, own]), apparmor);
        assert_eq!(of(&[unconfined[0], own]), apparmor);
        let smack = [(SELF, "Web"), ("/proc/self/attr/smack/current", "Web")];
        assert_eq!(of(&smack), Labels::PerProcess(SecurityModule::Smack));
        let selinux = system(&[(SELF, "a:b:c\0"), ("/proc/7/attr/current", "d:e:f\0")]);
        let apart = Labels::PerProcess(SecurityModule::Selinux);
        assert_eq!(Labels::now(&selinux), apart);
        let label = apart.of(&selinux, 7);
        assert_eq!(label.as_deref(), Some(&b"d:e:f"[..]));
    }
}
