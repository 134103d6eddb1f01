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

    /// Whether, as far as can be told, no value satisfies both conditions.
    fn excludes(&self, other: &Condition) -> bool {
        if self.arg != other.arg {
            return false;
        }
        if [self, other]
            .map(Condition::constant)
            .contains(&Some(false))
        {
            return true;
        }

        match (self.interval(), other.interval()) {
            (Some(own), Some(other)) => own.1 < other.0 || other.1 < own.0,
            (Some((first, last)), None) => other.least_from(first).is_none_or(|it| it > last),
            (None, Some((first, last))) => self.least_from(first).is_none_or(|it| it > last),
            (None, None) => match (self.compare, other.compare) {
                (Compare::MaskedEq { mask: one }, Compare::MaskedEq { mask: two }) => {
                    (self.value ^ other.value) & one & two != 0
                }
                _ => false,
            },
        }
    }

    /// The least value from `from` on that satisfies the condition, which is `!=` or one of bits.
    fn least_from(&self, from: u64) -> Option<u64> {
        match self.compare {
            _ if self.holds(from) => Some(from),
            Compare::MaskedEq { mask } => {
                // The first bit that is wrong, from the left, or a free one before it becomes 1.
                let wrong = ((from & mask) ^ self.value).checked_ilog2()?;
                let is_clear = |bit: &u32| (mask | from) >> bit & 1 == 0;
                let raised = match self.value >> wrong & 1 {
                    1 => wrong,
                    _ => (wrong..u64::BITS).find(is_clear)?,
                };
                let (bit, right) = (1 << raised, (1 << raised) - 1);
                Some((from & !right) | bit | (self.value & right))
            }
            _ => from.checked_add(1),
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

    /// Whether, as far as can be told, no call matches both rules.
    pub(crate) fn excludes(&self, other: &Rule) -> bool {
        let mut conditions = self.conditions.iter();
        conditions.any(|own| other.conditions.iter().any(|it| own.excludes(it)))
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Every comparison of an argument with values of four bits.
    fn every() -> Vec<Condition> {
        use Compare::{Eq, Ge, Gt, Le, Lt, MaskedEq, Ne};
        let masked = (0..16).map(|mask| MaskedEq { mask });
        let compares = [Ne, Lt, Le, Eq, Ge, Gt].into_iter().chain(masked);
        let with = |compare| {
            (0..16).map(move |value| Condition {
                arg: 0,
                compare,
                value,
            })
        };
        compares.flat_map(with).collect()
    }

    #[test]
    fn conditions_exclude_each_other_if_no_value_satisfies_both() {
        let every = every();
        let mut excluded = 0;
        for one in &every {
            for other in &every {
                // Bits and values above the first five are alike.
                let both = |value: u64| one.holds(value) && other.holds(value);
                let is_possible = (0..32).chain([u64::MAX - 16, u64::MAX]).any(both);
                // That of two values one is always left is not known of `!=` and bits.
                let is_ne = |it: &Condition| it.compare == Compare::Ne;
                let is_simple = !is_ne(one) && !is_ne(other);
                assert!(!(is_possible && one.excludes(other)), "{one:?} {other:?}");
                assert!(
                    is_possible || !is_simple || one.excludes(other),
                    "{one:?} {other:?}"
                );
                excluded += u32::from(one.excludes(other));
            }
        }
        assert!(excluded > 1000, "{excluded}");
    }
}
