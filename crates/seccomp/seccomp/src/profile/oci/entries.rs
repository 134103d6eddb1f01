//! Entries of `syscalls`: names, conditions, and the rules that they become.

use super::verdict;
use crate::policy::{is_multiplexed, Abi, Compare, Condition, Layer, Policy, Rule, RuleId};
use crate::profile::json::Place;
use crate::profile::{words, ProfileError};
use crate::Verdict;

/// An entry of `syscalls` that applies here.
pub(super) struct OciEntry<'a> {
    path: String,
    pub(super) names: Vec<(Place<'a>, &'a str)>,
    pub(super) verdict: Verdict,
    /// Alternatives, each a list of conditions that must all hold.
    alternatives: Vec<Vec<Condition>>,
}

impl<'a> OciEntry<'a> {
    /// Reads an entry; its names may be unknown.
    pub(super) fn read(
        call: &Place<'a>,
        notes: &mut Vec<String>,
    ) -> Result<OciEntry<'a>, ProfileError> {
        let mut names = call.texts("names")?;
        if let Some(name) = call.get("name") {
            if !names.is_empty() {
                return Err(name.refuse("either name or names", "delete one of the two"));
            }
            let text = name.text("the name of a system call", "write it between quotes")?;
            names.push((name, text));
        }

        if let Some((place, _)) = names.iter().find(|row| row.1.is_empty()) {
            return Err(place.refuse("the name of a system call", "name one, or delete the item"));
        }

        let action = call.get("action").ok_or_else(|| {
            call.refuse(
                "a member action",
                "say what happens, such as SCMP_ACT_ALLOW",
            )
        })?;
        let verdict = verdict(&action, call.get("errno"), call.get("errnoRet"))?;
        let mut conditions = Vec::new();
        for arg in call
            .get("args")
            .map_or(Ok(Vec::new()), |args| args.items())?
        {
            conditions.push(condition(&arg, notes)?);
        }
        let repeats = (0..6).any(|arg| conditions.iter().filter(|c| c.arg == arg).count() > 1);
        if repeats {
            notes.push(format!(
                "{}.args: one argument has several conditions: runc takes all conditions of the \
                 entry as alternatives, and so does this filter",
                call.path
            ));
        }

        let alternatives = if repeats {
            conditions
                .into_iter()
                .map(|condition| vec![condition])
                .collect()
        } else {
            vec![conditions]
        };

        Ok(OciEntry {
            path: call.path.clone(),
            names,
            verdict,
            alternatives,
        })
    }

    /// Adds the entry's rules to the layer, and raises the newest number that the profile knows.
    pub(super) fn add(
        &self,
        layer: &mut Layer,
        policy: &mut Policy,
        notes: &mut Vec<String>,
        conflicts: &mut Vec<String>,
    ) {
        let id = RuleId(policy.sources.len() as u32);
        policy.sources.push(self.path.clone());
        let abis: Vec<Abi> = layer.abis.keys().copied().collect();

        for (place, name) in &self.names {
            if !words::is_call(name) && !words::is_foreign_call(name) {
                notes.push(format!(
                    "{}: no system call {name:?}; it has no effect: {}",
                    place.path,
                    words::suggestion(name)
                ));
            }
            for &abi in &abis {
                let rules = layer.abis.entry(abi).or_default();
                // runc does not see the numbers of calls that socketcall and ipc stand for.
                if !is_multiplexed(abi, name) {
                    let number = abi.number(name).map(|nr| abi.bare(nr));
                    rules.enosys_above = rules.enosys_above.max(number);
                }
                for conditions in &self.alternatives {
                    let rule = Rule {
                        conditions: conditions.clone(),
                        verdict: self.verdict,
                        id,
                    };
                    for rule in on_abi(abi, rule, layer.default) {
                        if !self.is_covered(layer, abi, name, &rule) {
                            layer.add(abi, name, &rule);
                        }
                    }
                }
            }
            self.note_conflict(layer, policy, place, name, conflicts);
        }
    }

    /// Whether a rule without conditions has no effect: runc leaves out what the default does
    /// anyway, and in libseccomp the first such rule of a call counts.
    fn is_covered(&self, layer: &Layer, abi: Abi, name: &str, rule: &Rule) -> bool {
        let has_first = || {
            let nr = abi.number(name);
            let rules = nr.and_then(|nr| layer.abis.get(&abi)?.calls.get(&nr));
            rules.is_some_and(|rules| rules.iter().any(|rule| rule.conditions.is_empty()))
        };
        rule.conditions.is_empty() && (rule.verdict == layer.default || has_first())
    }

    /// Says where an earlier entry decides about a call, or where libseccomp would decide otherwise.
    fn note_conflict(
        &self,
        layer: &Layer,
        policy: &Policy,
        place: &Place,
        name: &str,
        notes: &mut Vec<String>,
    ) {
        let native = layer
            .abis
            .iter()
            .find_map(|(abi, rules)| rules.calls.get(&abi.number(name)?));
        let always = native
            .into_iter()
            .flatten()
            .find(|rule| rule.conditions.is_empty());
        let own_actions = |rules: &Vec<Rule>| {
            let others = rules.iter().filter(|rule| !rule.conditions.is_empty());
            let own = self.verdict.order();
            others
                .filter(|rule| rule.verdict.order() != own)
                .map(|rule| rule.id)
                .next()
        };

        let (Some(always), Some(rules)) = (always, native) else {
            if let Some(other) = native.and_then(own_actions) {
                notes.push(format!(
                    "{}: {name} has other rules with conditions in {}: where several match, the \
                     strictest applies; in libseccomp that depends on their values",
                    place.path, policy.sources[other.0 as usize]
                ));
            }
            return;
        };

        let source = |rule: &Rule| policy.sources[rule.id.0 as usize].as_str();
        let is_later = always.id.0 as usize + 1 < policy.sources.len();

        if self.alternatives.iter().all(Vec::is_empty) && is_later {
            if always.verdict != self.verdict && self.verdict != layer.default {
                notes.push(format!(
                    "{}: no effect on {name}: {} decides about it",
                    place.path,
                    source(always)
                ));
            }
            return;
        }

        let stricter = rules
            .iter()
            .find(|rule| rule.verdict.order() < always.verdict.order());

        if let Some(stricter) = stricter {
            notes.push(format!(
                "{}: of {name}, {} has conditions and is stricter than {}: it applies here; under \
                 runc and crun, {} applies whatever the arguments are",
                place.path,
                source(stricter),
                source(always),
                source(always)
            ));
        }
    }
}

/// The rules that stand for a rule on an ABI. Where a `long` has 32 bits, libseccomp cuts values.
/// To be never weaker than it, nor than what is written, a rule that is stricter than the default
/// applies if the conditions hold with whole or with cut values, and another if they hold with both.
fn on_abi(abi: Abi, rule: Rule, default: Verdict) -> Vec<Rule> {
    let is_wide = |condition: &Condition| {
        let mask = match condition.compare {
            Compare::MaskedEq { mask } if mask != u64::MAX => mask,
            _ => 0,
        };
        (condition.value | mask) >> 32 != 0
    };

    let has_whole_registers = abi.has_wide_args() && !abi.may_truncate();
    if has_whole_registers || !rule.conditions.iter().any(is_wide) {
        return vec![rule];
    }

    let mut cut = rule.clone();
    for condition in &mut cut.conditions {
        condition.value &= 0xffff_ffff;
        if let Compare::MaskedEq { mask } = &mut condition.compare {
            *mask &= 0xffff_ffff;
        }
    }

    if rule.verdict.order() < default.order() {
        return vec![rule, cut];
    }

    cut.conditions.extend(rule.conditions);

    vec![cut]
}

fn condition(place: &Place, notes: &mut Vec<String>) -> Result<Condition, ProfileError> {
    const EXPECTED: &str = "SCMP_CMP_NE, _LT, _LE, _EQ, _GE, _GT or _MASKED_EQ";

    let needed = |name: &str| {
        let remedy = format!("add {name}");
        place
            .get(name)
            .ok_or_else(|| place.refuse("a condition with index, value and op", &remedy))
    };
    place.note_members(&["index", "value", "valueTwo", "op"], notes)?;
    let arg = needed("index")?.number(5)? as u8;
    let value = place
        .get("value")
        .map_or(Ok(0), |value| value.number(u64::MAX))?;
    let second = place
        .get("valueTwo")
        .map_or(Ok(0), |value| value.number(u64::MAX))?;
    let op = needed("op")?;
    let (compare, value) = match op.text(EXPECTED, "write it between quotes")? {
        "SCMP_CMP_NE" => (Compare::Ne, value),
        "SCMP_CMP_LT" => (Compare::Lt, value),
        "SCMP_CMP_LE" => (Compare::Le, value),
        "SCMP_CMP_EQ" => (Compare::Eq, value),
        "SCMP_CMP_GE" => (Compare::Ge, value),
        "SCMP_CMP_GT" => (Compare::Gt, value),
        "SCMP_CMP_MASKED_EQ" => {
            if second & !value != 0 {
                notes.push(format!(
                    "{}: valueTwo {second:#x} has bits that the mask {value:#x} lacks: compared \
                     with {:#x}, as in libseccomp",
                    place.path,
                    second & value
                ));
            }
            (Compare::MaskedEq { mask: value }, second & value)
        }
        _ => return Err(op.refuse(EXPECTED, "correct its spelling")),
    };

    let condition = Condition {
        arg,
        compare,
        value,
    };
    if let Some(outcome) = condition.constant() {
        let outcome = if outcome { "always" } else { "never" };
        notes.push(format!("{}: this condition {outcome} holds", place.path));
    }

    Ok(condition)
}
