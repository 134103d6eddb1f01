//! The exclude and user lists: rules on records that are about to be written.
//!
//! Source: `audit_filter()` in kernel/auditfilter.c. It knows fewer fields than the exit list, does
//! not compare supplementary groups, and compares `pid=` with the thread id.
//!
//! In the kernel, excluding a SYSCALL record also drops the records that follow it in its event
//! (`audit_log_exit()`, kernel/auditsc.c); other records are excluded alone. The writer of an event
//! has to take care of that.

use crate::evaluate::is_label;
use crate::facts::{Identities, ObjectId};
use crate::subject::Subject;
use abi::{Field, RecordType};
use rules::{Action, Condition, List, Op, Rule, Value};

/// The task that a record is about, or that sends the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sender<'a> {
    /// Thread id, which `pid=` is compared with on these lists.
    pub tid: u32,
    /// Real user id.
    pub uid: u32,
    /// Real group id.
    pub gid: u32,
    /// Login uid; `u32::MAX` if unset.
    pub auid: u32,
    /// Executable, if the task has one.
    pub exe: Option<ObjectId>,
    /// Security label; needed only if [`RecordFilter::needs_label`].
    pub subject: Subject<'a>,
}

/// The rules of the exclude or user list, collected once so that each record is filtered quickly.
#[derive(Clone, Debug)]
pub struct RecordFilter {
    rules: Vec<Rule>,
    needs_exe: bool,
    needs_label: bool,
}

impl RecordFilter {
    /// The exclude list of `rules`; `None` if it drops nothing.
    pub fn exclude(rules: &[Rule]) -> Option<RecordFilter> {
        RecordFilter::of(rules, List::Exclude)
    }

    /// The user list of `rules`; `None` if it drops nothing.
    pub fn user(rules: &[Rule]) -> Option<RecordFilter> {
        RecordFilter::of(rules, List::User)
    }

    fn of(rules: &[Rule], list: List) -> Option<RecordFilter> {
        let rules: Vec<Rule> = rules
            .iter()
            .filter(|rule| rule.list == list)
            .cloned()
            .collect();
        let asks = |is_meant: &dyn Fn(Field) -> bool| {
            let mut conditions = rules.iter().flat_map(|rule| &rule.conditions);
            conditions.any(|condition| is_meant(condition.field))
        };
        let needs_exe = asks(&|field| field == Field::Exe);
        let needs_label = asks(&is_subject_label);

        rules.iter().any(drops).then_some(RecordFilter {
            rules,
            needs_exe,
            needs_label,
        })
    }

    /// Whether a rule needs [`Sender::exe`]; otherwise it need not be looked up.
    pub fn needs_exe(&self) -> bool {
        self.needs_exe
    }

    /// Whether a rule needs [`Sender::subject`]; otherwise it need not be looked up.
    pub fn needs_label(&self) -> bool {
        self.needs_label
    }

    /// Whether a record of type `record_type` (`AUDIT_*` of linux/audit.h) about `sender` is
    /// dropped.
    pub fn drops(
        &self,
        record_type: RecordType,
        sender: &Sender<'_>,
        identities: &Identities,
    ) -> bool {
        is_dropped(self.rules.iter(), record_type, sender, identities)
    }
}

/// Whether the exclude list of `rules` drops a record. For many records, [`RecordFilter::exclude`] is
/// faster.
pub fn excluded(
    rules: &[Rule],
    record_type: RecordType,
    sender: &Sender<'_>,
    identities: &Identities,
) -> bool {
    let list = rules.iter().filter(|rule| rule.list == List::Exclude);
    is_dropped(list, record_type, sender, identities)
}

/// Whether the user list of `rules` drops a message from user space. A message that it lets pass is
/// still subject to the exclude list.
pub fn user_drops(
    rules: &[Rule],
    record_type: RecordType,
    sender: &Sender<'_>,
    identities: &Identities,
) -> bool {
    let list = rules.iter().filter(|rule| rule.list == List::User);
    is_dropped(list, record_type, sender, identities)
}

/// Whether a match of the rule drops the record. On the exclude list, both actions do.
fn drops(rule: &Rule) -> bool {
    rule.list == List::Exclude || rule.action == Action::Never
}

/// The outcome of testing a rule on a record.
enum Answer {
    Matches,
    Differs,
    /// The rule has a field that the list does not know: this and all later rules are ignored.
    EndsList,
}

fn is_dropped<'r>(
    rules: impl Iterator<Item = &'r Rule>,
    record_type: RecordType,
    sender: &Sender<'_>,
    identities: &Identities,
) -> bool {
    for rule in rules {
        match answer(rule, record_type, sender, identities) {
            Answer::Matches => return drops(rule),
            Answer::Differs => {}
            Answer::EndsList => return false,
        }
    }
    false
}

fn answer(
    rule: &Rule,
    record_type: RecordType,
    sender: &Sender<'_>,
    identities: &Identities,
) -> Answer {
    // A rule without conditions does not match: `result` stays 0 in the kernel's loop.
    let mut answer = Answer::Differs;
    for condition in &rule.conditions {
        if let (true, Value::Text(value)) = (is_subject_label(condition.field), &condition.value) {
            let held = sender.subject.compare(condition.field, condition.op, value);
            match held {
                Some(true) => answer = Answer::Matches,
                Some(false) => return Answer::Differs,
                // Not compared: `result` stays as it is, in the first condition 0.
                None if matches!(answer, Answer::Matches) => {}
                None => return Answer::Differs,
            }
            continue;
        }
        answer = match holds(condition, record_type, sender, identities) {
            Some(true) => Answer::Matches,
            Some(false) => return Answer::Differs,
            None => return Answer::EndsList,
        };
    }

    answer
}

/// Whether a condition holds; `None` if the list does not know its field.
fn holds(
    condition: &Condition,
    record_type: RecordType,
    sender: &Sender<'_>,
    identities: &Identities,
) -> Option<bool> {
    let op = condition.op;
    let value = match &condition.value {
        Value::Number(value) => *value,
        Value::Text(path) if condition.field == Field::Exe => {
            let same = sender.exe.is_some() && identities.object(path) == sender.exe;
            return Some(same != (op == Op::Ne));
        }
        Value::Text(_) => return None,
    };

    let left = match condition.field {
        Field::Pid => sender.tid,
        Field::Uid => sender.uid,
        Field::Gid => sender.gid,
        Field::Loginuid => sender.auid,
        Field::LoginuidSet => u32::from(sender.auid != u32::MAX),
        Field::Msgtype => record_type.0 as u32,
        _ => return None,
    };

    Some(op.holds(left, value))
}

fn is_subject_label(field: Field) -> bool {
    is_label(field) && field < Field::ObjUser
}

/// The first field of a rule that the exclude and user lists do not know, and that thus ends them.
pub(crate) fn ending_field(rule: &Rule) -> Option<Field> {
    rule.conditions
        .iter()
        .map(|condition| condition.field)
        .find(|&field| {
            !is_subject_label(field)
                && !matches!(
                    field,
                    Field::Pid
                        | Field::Uid
                        | Field::Gid
                        | Field::Loginuid
                        | Field::LoginuidSet
                        | Field::Msgtype
                        | Field::Exe
                )
        })
}
