//! The exclude and user lists: rules about records that are about to be written.
//!
//! Source: `audit_filter()` in kernel/auditfilter.c. It asks about fewer fields than the exit
//! list, compares the group alone and not the supplementary ones, and takes the thread's own id
//! for `pid=`.
//!
//! In the kernel a SYSCALL record that is excluded takes those that follow it in its event along
//! (`audit_log_exit()`, kernel/auditsc.c); every other kind goes alone. That is for whoever
//! writes an event to see to.

use crate::evaluate::is_label;
use crate::facts::{Identities, ObjectId};
use abi::Field;
use rules::{Action, Condition, List, Op, Rule, Value};

/// The task that a record is about or that sends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sender {
    /// Thread id: what `pid=` means on these lists.
    pub tid: u32,
    /// Real user id.
    pub uid: u32,
    /// Real group id.
    pub gid: u32,
    /// Login uid; `u32::MAX` when unset.
    pub auid: u32,
    /// Executable, when it has one.
    pub exe: Option<ObjectId>,
}

/// The rules of one such list, put aside once so that records can be asked about quickly.
#[derive(Clone, Debug)]
pub struct RecordFilter {
    rules: Vec<Rule>,
    needs_exe: bool,
}

impl RecordFilter {
    /// The exclude list of `rules`; `None` when it drops nothing.
    pub fn exclude(rules: &[Rule]) -> Option<RecordFilter> {
        RecordFilter::of(rules, List::Exclude)
    }

    /// The user list of `rules`; `None` when it drops nothing.
    pub fn user(rules: &[Rule]) -> Option<RecordFilter> {
        RecordFilter::of(rules, List::User)
    }

    fn of(rules: &[Rule], list: List) -> Option<RecordFilter> {
        let rules: Vec<Rule> = rules
            .iter()
            .filter(|rule| rule.list == list)
            .cloned()
            .collect();
        let needs_exe = rules
            .iter()
            .flat_map(|rule| &rule.conditions)
            .any(|condition| condition.field == Field::Exe);
        rules
            .iter()
            .any(drops)
            .then_some(RecordFilter { rules, needs_exe })
    }

    /// Whether a rule asks for [`Sender::exe`]; otherwise it need not be found out.
    pub fn needs_exe(&self) -> bool {
        self.needs_exe
    }

    /// Whether a record of type `record_type` (`AUDIT_*` of linux/audit.h) about `sender` is
    /// dropped.
    pub fn drops(&self, record_type: u32, sender: &Sender, identities: &Identities) -> bool {
        is_dropped(self.rules.iter(), record_type, sender, identities)
    }
}

/// Whether the exclude list of `rules` drops a record. [`RecordFilter::exclude`] is quicker when
/// there are many records.
pub fn excluded(
    rules: &[Rule],
    record_type: u32,
    sender: &Sender,
    identities: &Identities,
) -> bool {
    let list = rules.iter().filter(|rule| rule.list == List::Exclude);
    is_dropped(list, record_type, sender, identities)
}

/// Whether the user list of `rules` drops a message of user space. What it lets pass is still
/// subject to the exclude list.
pub fn user_drops(
    rules: &[Rule],
    record_type: u32,
    sender: &Sender,
    identities: &Identities,
) -> bool {
    let list = rules.iter().filter(|rule| rule.list == List::User);
    is_dropped(list, record_type, sender, identities)
}

/// On the exclude list both actions mean that the record is not written.
fn drops(rule: &Rule) -> bool {
    rule.list == List::Exclude || rule.action == Action::Never
}

/// What a rule says of a record.
enum Answer {
    Matches,
    Differs,
    /// A field that this list cannot ask about: no rule from here on is looked at.
    EndsList,
}

fn is_dropped<'r>(
    rules: impl Iterator<Item = &'r Rule>,
    record_type: u32,
    sender: &Sender,
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

fn answer(rule: &Rule, record_type: u32, sender: &Sender, identities: &Identities) -> Answer {
    // Without a condition nothing has matched: `result` stays 0 in the kernel's loop.
    let mut answer = Answer::Differs;
    for condition in &rule.conditions {
        answer = match holds(condition, record_type, sender, identities) {
            Some(true) => Answer::Matches,
            Some(false) => return Answer::Differs,
            None => return Answer::EndsList,
        };
    }
    answer
}

/// `None` for a field that the list cannot ask about.
fn holds(
    condition: &Condition,
    record_type: u32,
    sender: &Sender,
    identities: &Identities,
) -> Option<bool> {
    let op = condition.op;
    let value = match &condition.value {
        Value::Number(value) => *value,
        Value::Text(path) if condition.field == Field::Exe => {
            let same = sender.exe.is_some() && identities.object(path) == sender.exe;
            return Some(same != (op == Op::Ne));
        }
        // Labels are not read; what cannot be known is written.
        Value::Text(_) if is_subject_label(condition.field) => return Some(false),
        Value::Text(_) => return None,
    };
    let left = match condition.field {
        Field::Pid => sender.tid,
        Field::Uid => sender.uid,
        Field::Gid => sender.gid,
        Field::Loginuid => sender.auid,
        Field::LoginuidSet => u32::from(sender.auid != u32::MAX),
        Field::Msgtype => record_type,
        _ => return None,
    };
    Some(op.holds(left, value))
}

fn is_subject_label(field: Field) -> bool {
    is_label(field) && field < Field::ObjUser
}

/// The first condition of a rule that ends the exclude or user list when it is reached.
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
