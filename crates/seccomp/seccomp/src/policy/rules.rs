//! Rules of one call: conditions and a verdict.

use crate::{SeccompData, Verdict};

/// Comparison of an argument; unsigned, on 64 bits (libseccomp's `SCMP_CMP_*`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Compare {
    /// `!=`
    Ne,
    /// `<`
    Lt,
    /// `<=`
    Le,
    /// `==`
    Eq,
    /// `>=`
    Ge,
    /// `>`
    Gt,
    /// `(arg & mask) == value`
    MaskedEq {
        /// The bits that are compared.
        mask: u64,
    },
}

/// A condition on one argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Condition {
    /// Number of the argument, 0 to 5.
    pub arg: u8,
    /// The comparison.
    pub compare: Compare,
    /// The value to compare with.
    pub value: u64,
}

/// The place that a rule comes from: an index into [`Policy::sources`](super::Policy::sources).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RuleId(pub u32);

/// A verdict and its conditions. If several rules match a call, the strictest applies; among
/// equally strict ones, the first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Conditions that must all hold; without any, the rule always matches.
    pub conditions: Vec<Condition>,
    /// The verdict if they hold.
    pub verdict: Verdict,
    /// Place that the rule comes from.
    pub id: RuleId,
}

impl Condition {
    /// Whether the condition holds for an argument as in `struct seccomp_data`.
    pub fn holds(&self, arg: u64) -> bool {
        match self.compare {
            Compare::Ne => arg != self.value,
            Compare::Lt => arg < self.value,
            Compare::Le => arg <= self.value,
            Compare::Eq => arg == self.value,
            Compare::Ge => arg >= self.value,
            Compare::Gt => arg > self.value,
            Compare::MaskedEq { mask } => arg & mask == self.value,
        }
    }

    /// The values that satisfy the condition, if they are one interval: first and last.
    fn interval(&self) -> Option<(u64, u64)> {
        Some(match self.compare {
            Compare::Eq => (self.value, self.value),
            Compare::Lt => (0, self.value.checked_sub(1)?),
            Compare::Le => (0, self.value),
            Compare::Ge => (self.value, u64::MAX),
            Compare::Gt => (self.value.checked_add(1)?, u64::MAX),
            Compare::MaskedEq { mask: u64::MAX } => (self.value, self.value),
            Compare::Ne | Compare::MaskedEq { .. } => return None,
        })
    }

    /// Whether it holds for every value (`Some(true)`) or for none (`Some(false)`).
    pub fn constant(&self) -> Option<bool> {
        match self.compare {
            Compare::MaskedEq { mask } if self.value & !mask != 0 => Some(false),
            Compare::MaskedEq { mask: 0 } => Some(true),
            Compare::Lt if self.value == 0 => Some(false),
            Compare::Gt if self.value == u64::MAX => Some(false),
            _ => (self.interval() == Some((0, u64::MAX))).then_some(true),
        }
    }

    /// Whether, as far as can be told, `other` holds whenever this condition does.
    fn implies(&self, other: &Condition) -> bool {
        if self == other {
            return true;
        }
        if self.arg != other.arg {
            return false;
        }

        match (self.interval(), other.interval()) {
            (Some(own), Some(other)) => other.0 <= own.0 && own.1 <= other.1,
            (Some((first, last)), None) => first == last && other.holds(first),
            (None, _) => match (self.compare, other.compare) {
                (Compare::MaskedEq { mask }, Compare::MaskedEq { mask: less }) => {
                    mask & less == less && self.value & less == other.value
                }
                _ => false,
            },
        }
    }
}

impl Rule {
    /// A rule without conditions.
    pub fn always(verdict: Verdict, id: RuleId) -> Rule {
        Rule {
            conditions: Vec::new(),
            verdict,
            id,
        }
    }

    /// Whether, as far as can be told, `other` matches every call that this rule matches.
    pub(crate) fn implies(&self, other: &Rule) -> bool {
        let mut conditions = other.conditions.iter();
        conditions.all(|wanted| self.conditions.iter().any(|own| own.implies(wanted)))
    }

    /// Whether all conditions hold. Without `wide`, the upper halves of arguments are taken as 0.
    pub fn matches(&self, data: &SeccompData, wide: bool) -> bool {
        self.conditions.iter().all(|condition| {
            let arg = data
                .args
                .get(usize::from(condition.arg))
                .copied()
                .unwrap_or(0);
            condition.holds(if wide { arg } else { arg & 0xffff_ffff })
        })
    }
}
