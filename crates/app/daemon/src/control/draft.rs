//! A rule set that the steps of a request change. Nothing else is affected.

use crate::protocol::{unhex, Step};
use rules::{Command, ErrorKind, Rule, RuleSet, Source, SystemHost};

/// Stands for a file name in rules of a request; the line is the number of the step, from 0.
const STEP: &str = "tarsier ctl, step";

/// Reason for refusing a step: the errno that the kernel would return, and a text.
pub(super) type Refusal = (Option<i32>, String);

/// A rule that was added or removed, or that was refused.
pub(super) struct RuleChange {
    pub(super) is_added: bool,
    pub(super) is_success: bool,
    pub(super) rule: Rule,
}

/// The rules and the enabled flag that a request would result in.
pub(super) struct Draft {
    pub(super) set: RuleSet,
    pub(super) changes: Vec<RuleChange>,
}

/// The values of `errno.h` that the kernel's audit returns.
pub(super) mod errno {
    use super::Refusal;
    use abi::errno::EOPNOTSUPP;
    pub(super) use abi::errno::{EEXIST, EINVAL, ENOENT, EPERM};

    /// Refusal of something that this engine cannot do.
    pub(in crate::control) fn not_supported(reason: &str) -> Refusal {
        (Some(EOPNOTSUPP), reason.to_owned())
    }
}

impl Draft {
    /// Starts with the current `rules` and `enabled`.
    pub(super) fn new(rules: &[Rule], enabled: u32) -> Draft {
        let mut set = RuleSet {
            rules: rules.to_vec(),
            ..RuleSet::default()
        };
        set.settings.enabled = Some(enabled);
        Draft {
            set,
            changes: Vec::new(),
        }
    }

    /// A draft that replaces all rules at once.
    pub(super) fn between(old: &[Rule], new: Vec<Rule>) -> Draft {
        let lacks = |rules: &[Rule], rule: &Rule| !rules.iter().any(|other| other.same(rule));
        let change = |rule: &Rule, is_added| RuleChange {
            is_added,
            is_success: true,
            rule: rule.clone(),
        };
        let gone = old.iter().filter(|rule| lacks(&new, rule));
        let come = new.iter().filter(|rule| lacks(old, rule));
        let changes = gone
            .map(|rule| change(rule, false))
            .chain(come.map(|rule| change(rule, true)))
            .collect();
        let set = RuleSet {
            rules: new,
            ..RuleSet::default()
        };

        Draft { set, changes }
    }

    /// The new value of `-e`.
    pub(super) fn enabled(&self) -> u32 {
        self.set.settings.enabled.unwrap_or(1)
    }

    /// Whether any rule was added or removed.
    pub(super) fn changes_rules(&self) -> bool {
        self.changes.iter().any(|change| change.is_success)
    }

    /// The step of this request that added the rule at `place`, if one did.
    pub(super) fn step_of(&self, place: usize) -> Option<usize> {
        let source = &self.set.rules.get(place)?.source;
        (source.file == STEP).then_some(source.line as usize)
    }

    /// The resulting rules. Step numbers in them are removed, since they mean nothing after the
    /// request.
    pub(super) fn rules(&self) -> Vec<Rule> {
        let mut rules = self.set.rules.clone();
        for rule in rules.iter_mut().filter(|rule| rule.source.file == STEP) {
            rule.source = Source {
                file: "tarsier ctl".to_owned(),
                line: 0,
            };
        }
        rules
    }

    /// Takes step number `place` if it concerns rules or the enabled flag. Other steps are only
    /// checked against the lock.
    pub(super) fn take(&mut self, place: usize, step: &Step) -> Result<(), Refusal> {
        let command = match step {
            Step::Append(rule) => Command::Append(self.rule(place, rule, true)?),
            Step::Prepend(rule) => Command::Prepend(self.rule(place, rule, true)?),
            Step::Delete(rule) => Command::Delete(self.rule(place, rule, false)?),
            Step::DeleteAll(key) => return self.delete_all(key.as_deref()),
            Step::Enabled(value @ 0..=2) => Command::Enabled(*value),
            Step::Failure(value @ 0..=2) => Command::Failure(*value),
            Step::Enabled(value) | Step::Failure(value) => {
                return Err((Some(errno::EINVAL), format!("{value} is not 0, 1 or 2")));
            }
            Step::Backlog(value) => Command::Backlog(*value),
            Step::Rate(value) => Command::Rate(*value),
            Step::BacklogWaitTime(value) => Command::BacklogWaitTime(*value),
            Step::ReadFile if self.enabled() == netlink::LOCKED => {
                return Err((Some(errno::EPERM), "the rules are locked (-e 2)".to_owned()));
            }
            Step::MakeEquivalent => {
                return Err(errno::not_supported(
                    "Tarsier's dir= follows directories, and has no equivalent mounts",
                ));
            }
            // Tarsier holds no references to trees, so there is nothing to trim.
            Step::Trim
            | Step::LoginuidImmutable
            | Step::ReadFile
            | Step::ResetLost
            | Step::ResetBacklogWaitTimeActual
            | Step::Message(_) => return Ok(()),
        };

        let change = match &command {
            Command::Append(rule) | Command::Prepend(rule) => Some((rule.clone(), true)),
            Command::Delete(rule) => Some((rule.clone(), false)),
            _ => None,
        };

        // The code that reads files runs the step, so that a request means what the line would mean there.
        let result = self.set.run(&Source::default(), command);
        if let Some((rule, is_added)) = change {
            self.changes.push(RuleChange {
                is_added,
                is_success: result.is_ok(),
                rule,
            });
        }

        // The errnos that the kernel answers with: auditctl prints messages by them.
        result.map_err(|error| {
            let errno = match error.kind {
                ErrorKind::Exists => errno::EEXIST,
                ErrorKind::NoSuchRule | ErrorKind::MissingPath => errno::ENOENT,
                ErrorKind::Locked => errno::EPERM,
                _ => errno::EINVAL,
            };
            (Some(errno), error.message)
        })
    }

    /// Decodes a rule in the kernel's binary form, and checks it as the kernel would.
    fn rule(&mut self, place: usize, text: &str, is_added: bool) -> Result<Rule, Refusal> {
        let invalid = |reason: String| (Some(errno::EINVAL), reason);
        let bytes = unhex(text).ok_or_else(|| invalid("the rule is not hexadecimal".to_owned()))?;
        let mut rule = rules::from_kernel(&bytes).map_err(|error| invalid(error.to_string()))?;
        rule.source = Source {
            file: STEP.to_owned(),
            line: u32::try_from(place).unwrap_or(u32::MAX),
        };
        let host = is_added.then_some(&SystemHost as &dyn rules::Host);

        if let Err(refusal) = rules::check(&rule, host) {
            self.changes.push(RuleChange {
                is_added,
                is_success: false,
                rule,
            });
            let errno = match refusal.kind {
                ErrorKind::MissingPath => errno::ENOENT,
                _ => errno::EINVAL,
            };
            return Err((Some(errno), refusal.reason));
        }

        Ok(rule)
    }

    fn delete_all(&mut self, key: Option<&str>) -> Result<(), Refusal> {
        let key = match key.map(unhex) {
            Some(None) => return Err((Some(errno::EINVAL), "not hexadecimal".to_owned())),
            Some(Some(key)) => Some(key),
            None => None,
        };
        // auditctl -D sends the kernel one request for each rule: with none, a lock has nothing to refuse.
        if self.set.rules.is_empty() {
            return Ok(());
        }

        let before = self.set.rules.clone();
        let command = Command::DeleteAll { key };
        self.set
            .run(&Source::default(), command)
            .map_err(|error| (Some(errno::EPERM), error.message))?;
        let gone = Draft::between(&before, self.set.rules.clone());
        self.changes.extend(gone.changes);

        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::hex;

    fn rule(line: &str) -> String {
        let source = Source::default();
        match rules::parse_line(line, &source, &SystemHost) {
            Ok(Some(Command::Append(rule))) => hex(&rules::to_kernel(&rule)),
            other => panic!("{line}: {other:?}"),
        }
    }

    fn keys(draft: &Draft) -> Vec<String> {
        let rules = draft.set.rules.iter();
        rules
            .map(|rule| String::from_utf8_lossy(rule.key().unwrap_or_default()).into_owned())
            .collect()
    }

    const ONE: &str = "-a always,exit -F arch=b64 -S open -k one";
    const TWO: &str = "-a always,exit -F arch=b64 -S open -k two";

    #[test]
    fn steps_do_what_the_kernel_does() {
        let mut draft = Draft::new(&[], 1);
        draft.take(0, &Step::Append(rule(ONE))).unwrap();
        draft.take(0, &Step::Prepend(rule(TWO))).unwrap();
        assert_eq!(keys(&draft), ["two", "one"]);
        let twice = draft.take(0, &Step::Append(rule(ONE))).unwrap_err();
        assert_eq!(twice.0, Some(errno::EEXIST));
        draft.take(0, &Step::Delete(rule(ONE))).unwrap();
        let missing = draft.take(0, &Step::Delete(rule(ONE))).unwrap_err();
        assert_eq!(missing.0, Some(errno::ENOENT));
        draft.take(0, &Step::Append(rule(ONE))).unwrap();
        draft.take(0, &Step::DeleteAll(Some(hex(b"w")))).unwrap();
        assert_eq!(keys(&draft), ["one"]);
        draft.take(0, &Step::DeleteAll(None)).unwrap();
        let outcomes: Vec<(bool, bool)> = draft
            .changes
            .iter()
            .map(|change| (change.is_added, change.is_success))
            .collect();
        let (add, remove) = ((true, true), (false, true));
        let expected = [
            add,
            add,
            (true, false),
            remove,
            (false, false),
            add,
            remove,
            remove,
        ];
        assert_eq!(outcomes, expected);
    }

    #[test]
    fn a_rule_is_known_by_its_step_until_the_request_is_done() {
        let mut draft = Draft::new(&[], 1);
        draft.take(3, &Step::Append(rule(ONE))).unwrap();
        draft.take(5, &Step::Append(rule(TWO))).unwrap();
        assert_eq!((draft.step_of(0), draft.step_of(1)), (Some(3), Some(5)));
        let in_force = draft.rules();
        assert!(in_force.iter().all(|rule| rule.source.line == 0));
        assert_eq!(Draft::new(&in_force, 1).step_of(0), None);
    }

    #[test]
    fn nothing_is_taken_once_locked() {
        let mut draft = Draft::new(&[], 1);
        draft.take(0, &Step::Append(rule(ONE))).unwrap();
        draft.take(0, &Step::Enabled(2)).unwrap();
        let steps = [
            Step::Append(rule(TWO)),
            Step::Delete(rule(ONE)),
            Step::DeleteAll(None),
            Step::Enabled(0),
            Step::Failure(0),
            Step::Backlog(1),
            Step::Rate(1),
        ];
        for step in steps {
            assert_eq!(
                draft.take(0, &step).unwrap_err().0,
                Some(errno::EPERM),
                "{step:?}"
            );
        }
        assert_eq!((keys(&draft).len(), draft.enabled()), (1, 2));
    }

    #[test]
    fn what_the_kernel_refuses_is_refused() {
        let mut draft = Draft::new(&[], 1);
        for wrong in ["", "zz", "00"] {
            let refused = draft.take(0, &Step::Append(wrong.to_owned())).unwrap_err();
            assert_eq!(refused.0, Some(errno::EINVAL));
        }
        assert_eq!(draft.take(0, &Step::Enabled(3)).unwrap_err().0, Some(22));
        assert_eq!(
            draft.take(0, &Step::MakeEquivalent).unwrap_err().0,
            Some(95)
        );
        assert!(!draft.changes_rules());
    }
}
