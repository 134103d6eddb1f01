//! Finds conditions that do not mean what they seem to mean.

use super::{Examined, Lint};
use crate::entries::calls_of;
use crate::facts::Entry;
use crate::optimise::residual::{Impossible, Kinds, Residual};
use abi::Field;
use rules::{List, Op, Rule, Value};

/// Finds rules of the exit list whose conditions cannot be met, or are met by more than intended.
pub(super) fn find(examined: &mut Examined<'_>) {
    for (i, rule) in examined.rules.iter().enumerate() {
        if rule.list != List::Exit {
            continue;
        }
        match residuals(examined, rule) {
            Err(reason) => {
                let (message, remedy) = explain(reason, rule);
                examined.found(Lint::NeverMatches, i, message, remedy);
            }
            Ok(residuals) => {
                let unset = residuals.iter().any(Residual::takes_unset_auid);
                if let (Some(text), true) = (lower_bound(rule), unset) {
                    let message = format!(
                        "{text} also holds for programs that nobody logged in for: \
                         unset is 4294967295"
                    );
                    examined.found(Lint::UnsetAuid, i, message, "add -F auid!=unset".to_owned());
                }
            }
        }
    }
}

/// Conditions of the rule, simplified for each kind of call that it can match; the error is the
/// reason why it can match none.
fn residuals(examined: &Examined<'_>, rule: &Rule) -> Result<Vec<Residual>, Impossible> {
    let calls = calls_of(rule, examined.entries);
    let mut possible = Vec::new();
    let mut reason = Impossible::Arch;
    for entry in [Entry::Native, Entry::Compat] {
        let Some(arch) = examined.entries.arch(entry) else {
            continue;
        };
        for (kind, members) in &Kinds::of(arch, examined.entries.lists()).groups {
            if members.0.iter().zip(&calls.0).all(|(a, b)| a & b == 0) {
                continue;
            }
            match Residual::of(rule, examined.entries, entry, *kind) {
                Ok(residual) => possible.push(residual),
                Err(impossible) => reason = reason.max(impossible),
            }
        }
    }

    if possible.is_empty() {
        Err(reason)
    } else {
        Ok(possible)
    }
}

fn explain(reason: Impossible, rule: &Rule) -> (String, String) {
    let delete = || "delete the rule, or the condition that is wrong".to_owned();
    match reason {
        Impossible::Arch if rule.syscalls.is_empty() => (
            "never matches: it names no call".to_owned(),
            "add -S with the calls to watch".to_owned(),
        ),
        Impossible::Arch => (
            "never matches: no program of this host has that arch".to_owned(),
            "use -F arch=b64 or -F arch=b32".to_owned(),
        ),
        Impossible::Perm => (
            "never matches: none of its calls has that kind of access".to_owned(),
            "leave -F perm= out, or name calls of that kind".to_owned(),
        ),
        Impossible::NoResult => (
            "never matches: its calls do not return, so that they have no result".to_owned(),
            "leave -F exit= and -F success= out".to_owned(),
        ),
        Impossible::Contradiction(field) => (
            format!(
                "never matches: no value meets its conditions on {}",
                field.name()
            ),
            delete(),
        ),
        Impossible::Unknown(field) => (
            format!(
                "never matches: the exit list cannot ask about {}",
                field.name()
            ),
            delete(),
        ),
    }
}

/// An `auid` condition that looks as if it were meant to select people only.
fn lower_bound(rule: &Rule) -> Option<String> {
    rule.conditions.iter().find_map(|condition| {
        let Value::Number(value) = condition.value else {
            return None;
        };
        let is_lower = condition.field == Field::Loginuid
            && matches!(condition.op, Op::Ge | Op::Gt)
            && value > 0
            && value < u32::MAX - 1;
        is_lower.then(|| format!("auid{}{value}", condition.op.symbol()))
    })
}
