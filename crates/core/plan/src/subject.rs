//! The security label of a task, as the exclude and user lists compare it (`subj_*`).
//!
//! Source: `security_audit_rule_match()` as the security modules implement it
//! (`selinux_audit_rule_match()` in security/selinux/ss/services.c, `aa_audit_rule_match()` in
//! security/apparmor/audit.c, `smack_audit_rule_match()` in security/smack/smack_lsm.c).

use abi::Field;
use rules::Op;

/// The security module that labels tasks, and so compares labels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SecurityModule {
    /// None does.
    #[default]
    None,
    /// SELinux: `user:role:type[:level[-level]]`.
    Selinux,
    /// AppArmor: profiles joined by `//&`, with their mode in parentheses.
    AppArmor,
    /// Smack: one word.
    Smack,
}

/// The label of a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Subject<'a> {
    /// The module that gave the label.
    pub module: SecurityModule,
    /// The label as audit prints it; `None` if it is not known.
    pub label: Option<&'a [u8]>,
}

impl Subject<'_> {
    /// Whether `subj_*` `field` `op` `value` holds. `None` if the module has no such comparison: the
    /// kernel then keeps the outcome of the condition before. A condition on a label that is not
    /// known does not hold.
    pub(crate) fn compare(&self, field: Field, op: Op, value: &[u8]) -> Option<bool> {
        let is_equality = matches!(op, Op::Eq | Op::Ne);
        let equal = |found: &dyn Fn(&[u8]) -> bool| {
            let is_met = |label| found(label) == (op == Op::Eq);
            is_equality.then(|| self.label.is_some_and(is_met))
        };

        match (self.module, field) {
            (SecurityModule::Selinux, Field::SubjUser) => equal(&|label| part(label, 0) == value),
            (SecurityModule::Selinux, Field::SubjRole) => equal(&|label| part(label, 1) == value),
            (SecurityModule::Selinux, Field::SubjType) => equal(&|label| part(label, 2) == value),
            (SecurityModule::Selinux, Field::SubjSen | Field::SubjClr) => {
                // A range is no value.
                let is_level = !value.contains(&b'-') && is_ordering(op);
                let is_met = |label| level_holds(level(label, field), op, value);
                is_level.then(|| self.label.is_some_and(is_met))
            }
            (SecurityModule::AppArmor, Field::SubjRole) => {
                equal(&|label| profiles(label).any(|profile| profile == value))
            }
            (SecurityModule::Smack, Field::SubjUser) => equal(&|label| label == value),
            _ => None,
        }
    }
}

fn is_ordering(op: Op) -> bool {
    !matches!(op, Op::BitMask | Op::BitTest)
}

/// A part of an SELinux context; empty if it has no such part.
fn part(label: &[u8], place: usize) -> &[u8] {
    let mut parts = label.splitn(4, |&byte| byte == b':');
    parts.nth(place).unwrap_or_default()
}

/// The low level of an SELinux context for `subj_sen`, the high one for `subj_clr`.
fn level(label: &[u8], field: Field) -> &[u8] {
    let range = part(label, 3);
    let mut levels = range.splitn(2, |&byte| byte == b'-');
    let low = levels.next().unwrap_or_default();
    match field {
        Field::SubjSen => low,
        _ => levels.next().unwrap_or(low),
    }
}

/// Profiles of an AppArmor label, without namespace sign and mode.
fn profiles(label: &[u8]) -> impl Iterator<Item = &[u8]> {
    let label = label.strip_prefix(b"=").unwrap_or(label);
    let mode = label.windows(2).rposition(|two| two == b" (");
    let names = match mode {
        Some(mode) if label.ends_with(b")") => &label[..mode],
        _ => label,
    };
    let mut rest = Some(names);
    std::iter::from_fn(move || {
        let names = rest?;
        let end = names.windows(3).position(|three| three == b"//&");
        rest = end.map(|end| &names[end + 3..]);
        Some(&names[..end.unwrap_or(names.len())])
    })
}

/// An MLS level: the number of its sensitivity, and its categories as ranges in order.
struct Level {
    sensitivity: u32,
    categories: Vec<(u32, u32)>,
}

impl Level {
    /// A level such as `s3:c0.c5,c9`; `None` if the policy has other names.
    fn parse(text: &[u8]) -> Option<Level> {
        let text = std::str::from_utf8(text).ok()?;
        let (sensitivity, list) = text.split_once(':').unwrap_or((text, ""));
        let number = |name: &str, letter| name.strip_prefix(letter)?.parse::<u32>().ok();
        let mut categories = Vec::new();
        for range in list.split(',').filter(|range| !range.is_empty()) {
            let (first, last) = range.split_once('.').unwrap_or((range, range));
            categories.push((number(first, 'c')?, number(last, 'c')?));
        }

        categories.sort_unstable();
        let mut joined: Vec<(u32, u32)> = Vec::new();
        for (first, last) in categories {
            match joined.last_mut() {
                Some(before) if first <= before.1.saturating_add(1) => {
                    before.1 = before.1.max(last);
                }
                _ => joined.push((first, last)),
            }
        }

        Some(Level {
            sensitivity: number(sensitivity, 's')?,
            categories: joined,
        })
    }

    /// `mls_level_dom()`, security/selinux/ss/mls_types.h.
    fn dominates(&self, other: &Level) -> bool {
        let has = |&(first, last): &(u32, u32)| {
            let mut ranges = self.categories.iter();
            ranges.any(|range| range.0 <= first && last <= range.1)
        };
        self.sensitivity >= other.sensitivity && other.categories.iter().all(has)
    }
}

/// Whether the level `found` of a task is in the relation `op` to `wanted`.
fn level_holds(found: &[u8], op: Op, wanted: &[u8]) -> bool {
    let (Some(left), Some(right)) = (Level::parse(found), Level::parse(wanted)) else {
        // Only the policy knows the order of other names.
        return match op {
            Op::Eq => found == wanted,
            Op::Ne => found != wanted,
            _ => false,
        };
    };

    let (above, below) = (left.dominates(&right), right.dominates(&left));
    match op {
        Op::Eq => above && below,
        Op::Ne => !(above && below),
        Op::Lt => below && !above,
        Op::Le => below,
        Op::Gt => above && !below,
        Op::Ge => above,
        Op::BitMask | Op::BitTest => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(module: SecurityModule, label: &str, condition: (Field, Op, &str)) -> Option<bool> {
        let label = (!label.is_empty()).then_some(label.as_bytes());
        let (field, op, value) = condition;
        Subject { module, label }.compare(field, op, value.as_bytes())
    }

    #[test]
    fn selinux_compares_the_parts_of_a_context() {
        let label = "system_u:system_r:chronyd_t:s0-s3:c0.c9,c20";
        let holds = |field, op, value| outcome(SecurityModule::Selinux, label, (field, op, value));
        assert_eq!(holds(Field::SubjUser, Op::Eq, "system_u"), Some(true));
        assert_eq!(holds(Field::SubjRole, Op::Ne, "system_r"), Some(false));
        assert_eq!(holds(Field::SubjType, Op::Eq, "chronyd_t"), Some(true));
        assert_eq!(holds(Field::SubjType, Op::Eq, "chronyd"), Some(false));
        assert_eq!(holds(Field::SubjType, Op::Ge, "chronyd_t"), None);
        assert_eq!(holds(Field::SubjSen, Op::Eq, "s0"), Some(true));
        assert_eq!(holds(Field::SubjClr, Op::Eq, "s3:c20,c0.c9"), Some(true));
        assert_eq!(holds(Field::SubjClr, Op::Gt, "s3:c5.c7"), Some(true));
        assert_eq!(holds(Field::SubjClr, Op::Ge, "s3:c5.c10"), Some(false));
        assert_eq!(holds(Field::SubjClr, Op::Le, "s3:c5.c10"), Some(false));
        assert_eq!(holds(Field::SubjClr, Op::Lt, "s4:c0.c1023"), Some(true));
        assert_eq!(holds(Field::SubjClr, Op::Eq, "s0-s3"), None);
        assert_eq!(holds(Field::SubjSen, Op::Ne, "SystemLow"), Some(true));
        assert_eq!(holds(Field::SubjSen, Op::Ge, "SystemLow"), Some(false));
    }

    #[test]
    fn a_context_of_one_level_has_it_as_sensitivity_and_clearance() {
        for field in [Field::SubjSen, Field::SubjClr] {
            let condition = (field, Op::Eq, "s0:c1");
            let found = outcome(SecurityModule::Selinux, "a:b:c:s0:c1", condition);
            assert_eq!(found, Some(true));
        }
    }

    #[test]
    fn apparmor_compares_profiles_as_roles_alone() {
        let label = "=/usr/bin/man//&groff (enforce)";
        let holds = |field, op, value| outcome(SecurityModule::AppArmor, label, (field, op, value));
        assert_eq!(holds(Field::SubjRole, Op::Eq, "groff"), Some(true));
        assert_eq!(holds(Field::SubjRole, Op::Eq, "/usr/bin/man"), Some(true));
        assert_eq!(holds(Field::SubjRole, Op::Ne, "groff"), Some(false));
        assert_eq!(holds(Field::SubjRole, Op::Eq, "unconfined"), Some(false));
        assert_eq!(holds(Field::SubjType, Op::Eq, "groff"), None);
    }

    #[test]
    fn smack_compares_labels_as_users_alone() {
        let holds = |condition| outcome(SecurityModule::Smack, "Web", condition);
        assert_eq!(holds((Field::SubjUser, Op::Eq, "Web")), Some(true));
        assert_eq!(holds((Field::SubjUser, Op::Ne, "Web")), Some(false));
        assert_eq!(holds((Field::SubjRole, Op::Eq, "Web")), None);
    }

    #[test]
    fn a_label_that_is_not_known_meets_no_condition() {
        for op in [Op::Eq, Op::Ne] {
            let found = outcome(SecurityModule::Selinux, "", (Field::SubjType, op, "x_t"));
            assert_eq!(found, Some(false));
            let found = outcome(SecurityModule::None, "", (Field::SubjType, op, "x_t"));
            assert_eq!(found, None);
        }
    }
}
