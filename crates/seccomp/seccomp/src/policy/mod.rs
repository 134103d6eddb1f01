//! The common form of all profiles before they are compiled: layers of rules per ABI.

mod abi;
mod mux;
mod rules;

pub use self::abi::Abi;
pub(crate) use mux::{is_multiplexed, multiplexed};
pub use rules::{Compare, Condition, Rule, RuleId};

use crate::{Action, SeccompData, Verdict};
use std::collections::BTreeMap;

/// Flags of seccomp(2) that a profile asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// `SECCOMP_FILTER_FLAG_TSYNC`: apply to every thread of the process.
    pub tsync: bool,
    /// `SECCOMP_FILTER_FLAG_LOG`: log calls that are not allowed.
    pub log: bool,
    /// `SECCOMP_FILTER_FLAG_SPEC_ALLOW`: do not enable the speculative-store-bypass mitigation.
    pub spec_allow: bool,
    /// `SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV`.
    pub wait_killable: bool,
}

/// A profile in the form that is compiled.
///
/// Layers correspond to filters installed one after the other: as in the kernel the strictest
/// verdict wins, and among equally strict ones that of the last layer.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    /// The layers, in order of installation.
    pub layers: Vec<Layer>,
    /// Flags to install the filter with.
    pub flags: Flags,
    /// Place of each rule in the profile, by [`RuleId`], such as `syscalls[3]`.
    pub sources: Vec<String>,
    /// Notes for the author of the profile: names that no architecture has, conditions that cannot
    /// be checked.
    pub notes: Vec<String>,
}

/// One list of rules, as one filter would enforce it.
#[derive(Clone, Debug)]
pub struct Layer {
    /// The part of the profile that it represents, such as `SystemCallFilter=`; empty for a profile
    /// of one layer.
    pub name: String,
    /// Verdict on calls of an ABI in `abis` that no rule covers.
    pub default: Verdict,
    /// Place of this default in the profile.
    pub default_source: String,
    /// Verdict on calls of every other ABI.
    pub bad_arch: Verdict,
    /// The rules of each ABI that the layer knows.
    pub abis: BTreeMap<Abi, AbiRules>,
}

/// The rules of one ABI.
#[derive(Clone, Debug, Default)]
pub struct AbiRules {
    /// Calls with a greater number (without the x32 bit) fail with ENOSYS whatever the rules say,
    /// because they are newer than the profile (runc, libcontainer/seccomp/patchbpf).
    pub enosys_above: Option<u32>,
    /// Rules by number, with the x32 bit where it applies.
    pub calls: BTreeMap<u32, Vec<Rule>>,
}

/// Reason for a layer's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// A rule matched.
    Rule(RuleId),
    /// No rule covers the call.
    Unlisted,
    /// The call is listed, but the conditions of these rules do not hold.
    OtherArguments(Vec<RuleId>),
    /// The call is newer than the profile.
    Newer,
    /// The ABI is not among those of the profile.
    BadArch,
}

/// A verdict and the reason for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ruling {
    /// The verdict that the kernel gets.
    pub verdict: Verdict,
    /// Index of the layer that the verdict comes from.
    pub layer: usize,
    /// Reason for the verdict.
    pub reason: Reason,
}

/// The verdict on calls that are newer than the profile.
pub(crate) const ENOSYS: Verdict = Verdict::new(Action::Errno, libc::ENOSYS as u16);

impl Policy {
    /// The verdict on a call, computed directly from the rules: the reference for
    /// [`crate::compile`]. `None` without layers.
    pub fn decide(&self, data: &SeccompData) -> Option<Ruling> {
        let newest_first = self.layers.iter().enumerate().rev();
        let mut best: Option<Ruling> = None;
        for (index, layer) in newest_first {
            let (verdict, reason) = layer.decide(data);
            // Strictly stricter only: among equals the last layer's counts, as the newest filter's does in the
            // kernel.
            if best
                .as_ref()
                .is_none_or(|best| verdict.order() < best.verdict.order())
            {
                best = Some(Ruling {
                    verdict,
                    layer: index,
                    reason,
                });
            }
        }

        best
    }

    /// Every ABI that a layer knows.
    pub fn abis(&self) -> Vec<Abi> {
        let mut abis: Vec<Abi> = self
            .layers
            .iter()
            .flat_map(|l| l.abis.keys().copied())
            .collect();
        abis.sort();
        abis.dedup();
        abis
    }
}

impl Layer {
    /// A layer without rules.
    pub fn new(name: &str, default: Verdict, bad_arch: Verdict) -> Layer {
        Layer {
            name: name.to_owned(),
            default,
            default_source: name.to_owned(),
            bad_arch,
            abis: BTreeMap::new(),
        }
    }

    /// Adds a rule for the call that `abi` names `name`, and for its multiplexed form. Returns the
    /// number of system call numbers that it covers: 0 if the ABI has no such call.
    pub(crate) fn add(&mut self, abi: Abi, name: &str, rule: &Rule) -> usize {
        let rules = self.abis.entry(abi).or_default();
        let mut count = 0;
        if let Some(nr) = abi.number(name) {
            rules.calls.entry(nr).or_default().push(rule.clone());
            count += 1;
        }
        if let Some((nr, rule)) = multiplexed(abi, name, rule) {
            rules.calls.entry(nr).or_default().push(rule);
            count += 1;
        }
        count
    }

    /// Orders rules so that, where several of one action match, the errno is libseccomp's.
    pub(crate) fn narrower_first(&mut self) {
        for rules in self.abis.values_mut() {
            rules.calls.values_mut().for_each(narrower_first);
        }
    }

    fn decide(&self, data: &SeccompData) -> (Verdict, Reason) {
        let Some(abi) = Abi::of(data.arch, data.nr) else {
            return if Abi::natives(data.arch).any(|abi| self.abis.contains_key(&abi)) {
                self.beyond(data.arch, data.nr)
            } else {
                (self.bad_arch, Reason::BadArch)
            };
        };
        let Some(rules) = self.abis.get(&abi) else {
            return (self.bad_arch, Reason::BadArch);
        };

        if rules
            .enosys_above
            .is_some_and(|max| abi.bare(data.nr) > max)
        {
            return (ENOSYS, Reason::Newer);
        }
        let listed = rules.calls.get(&data.nr).map_or(&[][..], Vec::as_slice);
        let whole = self.listed(listed, data, abi.has_wide_args());
        if !abi.may_truncate() {
            return whole;
        }

        // The kernel may use either the whole register or its lower half: the stricter answer counts.
        let halves = self.listed(listed, data, false);
        if halves.0.order() < whole.0.order() {
            halves
        } else {
            whole
        }
    }

    fn listed(&self, listed: &[Rule], data: &SeccompData, wide: bool) -> (Verdict, Reason) {
        let matching = listed.iter().filter(|rule| rule.matches(data, wide));
        match matching.min_by_key(|rule| rule.verdict.order()) {
            Some(rule) => (rule.verdict, Reason::Rule(rule.id)),
            None if listed.is_empty() => (self.default, Reason::Unlisted),
            None => (
                self.default,
                Reason::OtherArguments(listed.iter().map(|rule| rule.id).collect()),
            ),
        }
    }

    /// Answer for numbers from 2³¹ on, which no ABI has. A tracer that skips a call sets its number
    /// to -1.
    fn beyond(&self, arch: u32, nr: u32) -> (Verdict, Reason) {
        let missing = Abi::natives(arch).any(|abi| !self.abis.contains_key(&abi));
        let knows_newest = self
            .abis
            .iter()
            .any(|(abi, rules)| abi.audit_arch() == arch && rules.enosys_above.is_some());
        if missing && nr != u32::MAX {
            (self.bad_arch, Reason::BadArch)
        } else if knows_newest {
            (ENOSYS, Reason::Newer)
        } else {
            (self.default, Reason::Unlisted)
        }
    }
}

/// Orders rules so that, where several of one action match, the narrowest gives the errno, as in
/// libseccomp: `> 256` before `> 128`.
fn narrower_first(rules: &mut Vec<Rule>) {
    let mut ordered: Vec<Rule> = Vec::with_capacity(rules.len());
    for rule in rules.drain(..) {
        // A rule without conditions replaces the others.
        let is_always = rule.conditions.is_empty();
        let wider = |other: &Rule| {
            other.verdict != rule.verdict
                && other.verdict.order() == rule.verdict.order()
                && !other.conditions.is_empty()
                && (is_always || rule.implies(other) && !other.implies(&rule))
        };
        let at = ordered.iter().position(wider).unwrap_or(ordered.len());
        ordered.insert(at, rule);
    }

    *rules = ordered;
}
