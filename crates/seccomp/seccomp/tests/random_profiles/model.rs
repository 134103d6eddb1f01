//! What a profile says about a call, and in which listed ways libseccomp's answer may differ.

use crate::generate::{Condition, Profile};
use seccomp::policy::Abi;
use seccomp::Verdict;

/// Rules of one call on one ABI: conditions that must all hold, and the verdict.
pub struct Rules<'a> {
    profile: &'a Profile,
    abi: Abi,
    name: &'a str,
    pub list: Vec<(Vec<Condition>, Verdict)>,
}

/// Ways to differ (docs/decisions/0009-seccomp-policies.md).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// Rules with and without conditions, or several with conditions, have different verdicts.
    Overlap,
    /// A value has more than 32 bits where a `long` has 32.
    Cut,
    /// Registers of x32 have 64 bits, of which libseccomp compares 32.
    WideX32,
    /// libseccomp does not try a rule that matches, one of several with conditions.
    Skipped,
    /// A call that is also made by `socketcall` or `ipc`.
    Multiplexed,
    /// The library does not know the name.
    NewName,
    /// A rule for a call that the architecture lacks: the library may forget to load the number,
    /// and then has the default for every call.
    NotLoaded,
}

impl Kind {
    /// Whether libseccomp may be stricter than what is written.
    pub fn may_be_stricter(self) -> bool {
        matches!(
            self,
            Kind::Skipped | Kind::Multiplexed | Kind::NewName | Kind::NotLoaded
        )
    }
}

const MULTIPLEXED: [&str; 9] = [
    "socket", "bind", "connect", "sendto", "recv", "send", "shmget", "semop", "msgctl",
];

impl<'a> Rules<'a> {
    pub fn new(profile: &'a Profile, abi: Abi, name: &'a str) -> Rules<'a> {
        let mut list = Vec::new();
        let applying = profile.entries.iter().filter(|entry| entry.applies);
        for entry in applying.filter(|entry| entry.names.contains(&name)) {
            for conditions in entry.alternatives() {
                let is_first = || !list.iter().any(|rule: &(Vec<_>, _)| rule.0.is_empty());
                // runc leaves out what the default does, and of rules without conditions the first
                // counts.
                let has_effect = entry.verdict != profile.default && is_first();
                if !conditions.is_empty() || has_effect {
                    list.push((conditions, entry.verdict));
                }
            }
        }
        Rules {
            profile,
            abi,
            name,
            list,
        }
    }

    /// Verdicts that a call with these arguments may have: the strictest of the rules that match,
    /// or the default.
    pub fn verdicts(&self, args: [u64; 6]) -> Vec<Verdict> {
        match self.abi {
            Abi::X32 => {
                let whole = self.verdicts_of(args);
                let low = self.verdicts_of(args.map(|arg| arg & 0xffff_ffff));
                match whole[0].order().cmp(&low[0].order()) {
                    std::cmp::Ordering::Less => whole,
                    std::cmp::Ordering::Greater => low,
                    std::cmp::Ordering::Equal => [whole, low].concat(),
                }
            }
            _ => self.verdicts_of(args),
        }
    }

    fn verdicts_of(&self, args: [u64; 6]) -> Vec<Verdict> {
        let all = self.list.iter().filter(|rule| self.matches(rule, args));
        let strictest = all.clone().map(|rule| rule.1.order()).min();
        let strictest = all.filter(|rule| Some(rule.1.order()) == strictest);
        let verdicts: Vec<Verdict> = strictest.map(|rule| rule.1).collect();
        if verdicts.is_empty() {
            vec![self.profile.default]
        } else {
            verdicts
        }
    }

    fn matches(&self, (conditions, verdict): &(Vec<Condition>, Verdict), args: [u64; 6]) -> bool {
        let holds = |condition: &Condition| condition.holds(args[condition.arg]);
        let whole = conditions.iter().all(holds);
        if matches!(self.abi, Abi::X86_64 | Abi::Aarch64) {
            return whole;
        }
        let cut = conditions.iter().all(|condition| holds(&condition.cut()));
        if verdict.order() < self.profile.default.order() {
            whole || cut
        } else {
            whole && cut
        }
    }

    /// The listed ways in which libseccomp may answer otherwise.
    pub fn kinds(&self, args: [u64; 6], theirs: Verdict, is_known: bool) -> Vec<Kind> {
        let mut kinds = Vec::new();
        let is_narrow = !matches!(self.abi, Abi::X86_64 | Abi::Aarch64);
        let mut conditions = self.list.iter().flat_map(|rule| &rule.0);
        if !is_known {
            kinds.push(Kind::NewName);
        }
        if self.list.iter().any(|rule| rule.1 != self.list[0].1) {
            kinds.push(Kind::Overlap);
        }
        if is_narrow && conditions.any(|c| (c.value | c.second) >> 32 != 0) {
            kinds.push(Kind::Cut);
        }
        if self.abi == Abi::X32 && args.iter().any(|arg| arg >> 32 != 0) {
            kinds.push(Kind::WideX32);
        }
        if self.list.iter().filter(|rule| !rule.0.is_empty()).count() > 1 {
            kinds.push(Kind::Skipped);
        }
        if self.is_multiplexed() {
            kinds.push(Kind::Multiplexed);
        }
        let mut names = self.profile.entries.iter().flat_map(|entry| &entry.names);
        if theirs == self.profile.default && names.any(|name| self.abi.number(name).is_none()) {
            kinds.push(Kind::NotLoaded);
        }
        kinds
    }

    /// Whether rules of other calls may decide, or these rules about other calls.
    pub fn is_multiplexed(&self) -> bool {
        self.abi == Abi::I386
            && (MULTIPLEXED.contains(&self.name) || ["socketcall", "ipc"].contains(&self.name))
    }
}
