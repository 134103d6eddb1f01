//! The conditions of a rule that are left for one call, after those that can be decided when the
//! rules are loaded.

use crate::entries::Entries;
use crate::evaluate::{compare_of, is_inode_rule, is_label, is_task_field, needs_names};
use crate::executables::Executables;
use crate::facts::{Entry, Identities};
use crate::marks::Marks;
use crate::workload::WorkloadNames;
use abi::CallNames;
use abi::Field;
use rules::{Action, Condition, Op, Rule, Value};

/// A value of the task or call that tables look up. The numbers are `enum table_field` of
/// crates/kernel/bpf/programs/tables.h.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u32)]
#[allow(missing_docs)] // named after audit's fields
pub enum Fact {
    Pid,
    Ppid,
    Uid,
    Euid,
    Suid,
    Fsuid,
    Gid,
    Egid,
    Sgid,
    Fsgid,
    Auid,
    Ses,
    Pers,
    Exit,
    Success,
    A0,
    A1,
    A2,
    A3,
    Exe,
    Access,
    Compare,
    SaddrFam,
    /// Whether the call is given the path of a UNIX socket: 0 no, 1 yes, 2 perhaps.
    SocketName,
    /// Numbers of the names of the task's cgroup that rules ask about; not known for some cgroups.
    Unit,
    Slice,
    Container,
    /// One bit for each label, and for each executable of an ancestor, that rules ask about; not known for some processes.
    Labels,
    Ancestors,
    /// The marks at what the call reached: a set, not one value.
    Marks,
}

/// Number of facts.
pub const FACTS: usize = Fact::Marks as usize + 1;

impl Fact {
    /// Every fact, in the order of their numbers.
    pub const EVERY: [Fact; FACTS] = [
        Fact::Pid,
        Fact::Ppid,
        Fact::Uid,
        Fact::Euid,
        Fact::Suid,
        Fact::Fsuid,
        Fact::Gid,
        Fact::Egid,
        Fact::Sgid,
        Fact::Fsgid,
        Fact::Auid,
        Fact::Ses,
        Fact::Pers,
        Fact::Exit,
        Fact::Success,
        Fact::A0,
        Fact::A1,
        Fact::A2,
        Fact::A3,
        Fact::Exe,
        Fact::Access,
        Fact::Compare,
        Fact::SaddrFam,
        Fact::SocketName,
        Fact::Unit,
        Fact::Slice,
        Fact::Container,
        Fact::Labels,
        Fact::Ancestors,
        Fact::Marks,
    ];

    /// Whether the daemon decides if the programs do not know the fact.
    pub(crate) fn is_of_workload(self) -> bool {
        matches!(
            self,
            Fact::Unit | Fact::Slice | Fact::Container | Fact::Labels | Fact::Ancestors
        )
    }
}

/// A test on bits. The numbers are `enum bit_op` of tables.h.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u32)]
pub enum BitOp {
    /// At least one of the bits is set.
    Any = 0,
    /// All of the bits are set.
    All = 1,
    /// None of the bits is set.
    None = 2,
}

/// One condition, in the form that the tables can express.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Test {
    /// The fact lies in `first..=last`, or outside of it if `inside` is false.
    Range {
        /// The fact.
        fact: Fact,
        /// Smallest value.
        first: u32,
        /// Largest value.
        last: u32,
        /// Whether the value has to be in the range.
        inside: bool,
    },
    /// A test on the bits of the fact.
    Bits {
        /// The fact.
        fact: Fact,
        /// The test.
        op: BitOp,
        /// The bits.
        operand: u32,
    },
    /// The group (`Gid` or `Egid`) or a supplementary group is `id`.
    AnyOf {
        /// The fact.
        fact: Fact,
        /// The group.
        id: u32,
    },
    /// Neither the group nor a supplementary group is `id`.
    NoneOf {
        /// The fact.
        fact: Fact,
        /// The group.
        id: u32,
    },
    /// A condition that cannot hold.
    Never,
}

/// A rule that may select a certain call.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Candidate {
    /// Position in the rule set.
    pub rule: u32,
    /// The tests that are left; all must hold.
    pub tests: Vec<Test>,
    /// Whether conditions remain that need the names of the event.
    pub stage2: bool,
    /// Whether the action of the rule is `never`.
    pub never: bool,
    /// Whether the kernel looks the rule up by the object of a name: `path=` and `inode=`.
    pub by_inode: bool,
    /// Marks of a `path=` or `dir=` condition, ascending. If all marks that the call reached are known, the rule
    /// cannot match without one of these.
    pub marks: Option<Vec<u32>>,
    /// Whether a mark that proves the place of an object leaves nothing to the second stage.
    pub is_decided_by_marks: bool,
}

impl Candidate {
    /// Leaves tests of the result to the second stage, since an io_uring operation is matched
    /// against the tables when it is submitted.
    pub(crate) fn with_result_later(mut self) -> Candidate {
        let on_result = |test: &Test| {
            matches!(
                test,
                Test::Range {
                    fact: Fact::Exit | Fact::Success,
                    ..
                } | Test::Bits {
                    fact: Fact::Exit | Fact::Success,
                    ..
                }
            )
        };

        self.stage2 |= self.tests.iter().any(on_result);
        self.is_decided_by_marks = false;
        self.tests.retain(|test| !on_result(test));
        self
    }

    /// Whether no test is left: the rule matches every such call.
    pub fn is_certain(&self) -> bool {
        self.tests.is_empty() && !self.stage2
    }
}

/// Everything that conditions of a rule depend on before there is an event.
#[derive(Clone, Copy)]
pub(crate) struct Context<'a> {
    /// Architectures of the entries.
    pub entries: Entries,
    /// The objects that paths name.
    pub identities: &'a Identities,
    /// Numbers of executables.
    pub executables: &'a Executables,
    /// Marks of the objects that paths name.
    pub marks: &'a Marks,
    /// Numbers of the names of units, slices and containers.
    pub workloads: &'a WorkloadNames,
}

/// The rule as a candidate for a call; `None` if it cannot match that call.
pub(crate) fn candidate(
    rule: &Rule,
    position: u32,
    entry: Entry,
    nr: u32,
    names: CallNames,
    context: Context<'_>,
) -> Option<Candidate> {
    let has_names = names != CallNames::None;
    let mut tests = Vec::new();
    let mut on_names = Vec::new();
    for condition in &rule.conditions {
        if needs_names(condition) {
            if has_names {
                on_names.push(condition);
            }
            if has_names || is_no_file_type(condition) {
                continue;
            }
            return None;
        }
        match test(rule, condition, entry, nr, context) {
            Known::Holds => {}
            Known::Fails | Known::Depends(Test::Never) => return None,
            Known::Depends(test) => tests.push(test),
        }
    }

    let needs_one = |condition: &&Condition| !is_no_file_type(condition);
    if names == CallNames::OfSocket && on_names.iter().any(needs_one) {
        tests.push(compare(Fact::SocketName, Op::Ne, 0));
    }

    let of = |condition: &&Condition| context.marks.of(condition, context.identities);
    let marks = on_names.iter().find_map(of);
    tests.sort();
    tests.dedup();
    Some(Candidate {
        rule: position,
        tests,
        stage2: !on_names.is_empty(),
        never: rule.action == Action::Never,
        by_inode: is_inode_rule(rule),
        is_decided_by_marks: marks.is_some() && on_names.len() == 1,
        marks,
    })
}

/// The rule as a candidate for the task list; `None` if it cannot match there.
pub(crate) fn task_candidate(
    rule: &Rule,
    position: u32,
    context: Context<'_>,
) -> Option<Candidate> {
    if !rule
        .conditions
        .iter()
        .all(|condition| is_task_field(condition.field))
    {
        return None;
    }
    candidate(rule, position, Entry::Native, 0, CallNames::None, context)
}

/// Whether the condition is `filetype!=`, which holds if there are no names.
fn is_no_file_type(condition: &Condition) -> bool {
    condition.field == Field::Filetype
        && condition.op == Op::Ne
        && matches!(condition.value, Value::Number(_))
}

enum Known {
    Holds,
    Fails,
    Depends(Test),
}

impl From<bool> for Known {
    fn from(holds: bool) -> Known {
        if holds {
            Known::Holds
        } else {
            Known::Fails
        }
    }
}

fn test(rule: &Rule, condition: &Condition, entry: Entry, nr: u32, context: Context<'_>) -> Known {
    let op = condition.op;
    let value = match &condition.value {
        Value::Number(value) => *value,
        Value::Text(text) => {
            return match condition.field {
                Field::FilterKey => Known::Holds,
                Field::Exe => {
                    let id = context.executables.number(text);
                    let op = if op == Op::Eq { op } else { Op::Ne };
                    Known::Depends(compare(Fact::Exe, op, id))
                }
                field if field.is_of_process() => on_past(condition, text, context.workloads),
                field if field.is_own() => on_workload(condition, context.workloads),
                field if is_label(field) => Known::from(rule.action == Action::Always),
                _ => Known::Fails,
            }
        }
    };

    let fact = match condition.field {
        Field::Arch => {
            let arch = context.entries.arch(entry);
            return Known::from(arch.is_some_and(|arch| op.holds(arch.audit_arch(), value)));
        }
        Field::Perm => return perm(op, value, entry, nr, context.entries),
        Field::FieldCompare => {
            return Known::Depends(match op {
                Op::Eq => bits(Fact::Compare, BitOp::All, 1 << (value & 31)),
                Op::Ne => bits(Fact::Compare, BitOp::None, 1 << (value & 31)),
                _ => Test::Never,
            })
            .checked(compare_of(condition).is_some());
        }
        Field::Gid | Field::Egid => {
            let fact = if condition.field == Field::Gid {
                Fact::Gid
            } else {
                Fact::Egid
            };
            return Known::Depends(match op {
                Op::Eq => Test::AnyOf { fact, id: value },
                Op::Ne => Test::NoneOf { fact, id: value },
                _ => compare(fact, op, value),
            });
        }
        Field::LoginuidSet => {
            return match (op.holds(1, value), op.holds(0, value)) {
                (true, true) => Known::Holds,
                (false, false) => Known::Fails,
                (set, _) => Known::Depends(compare(
                    Fact::Auid,
                    if set { Op::Ne } else { Op::Eq },
                    u32::MAX,
                )),
            }
        }
        Field::Success => {
            let wanted = if value != 0 { 1 } else { 2 };
            return Known::Depends(compare(Fact::Success, op, wanted));
        }
        field => match fact_of(field) {
            Some(fact) => fact,
            None => return Known::Fails,
        },
    };

    Known::Depends(compare(fact, op, value))
}

impl Known {
    fn checked(self, valid: bool) -> Known {
        if valid {
            self
        } else {
            Known::Fails
        }
    }
}

/// A condition on the past of a process.
fn on_past(condition: &Condition, name: &[u8], names: &WorkloadNames) -> Known {
    let Some(bit) = names.past.bit(condition.field, name) else {
        return Known::Fails;
    };
    let fact = match condition.field {
        Field::Label => Fact::Labels,
        _ => Fact::Ancestors,
    };
    Known::Depends(match condition.op {
        Op::Eq => bits(fact, BitOp::Any, bit),
        _ => bits(fact, BitOp::None, bit),
    })
}

/// A condition on the cgroup of a task.
fn on_workload(condition: &Condition, names: &WorkloadNames) -> Known {
    let (Some(fact), Some((first, last))) = (fact_of(condition.field), names.range(condition))
    else {
        return Known::Fails;
    };
    Known::Depends(Test::Range {
        fact,
        first,
        last,
        inside: condition.op == Op::Eq,
    })
}

fn fact_of(field: Field) -> Option<Fact> {
    Some(match field {
        Field::Pid => Fact::Pid,
        Field::Ppid => Fact::Ppid,
        Field::Uid => Fact::Uid,
        Field::Euid => Fact::Euid,
        Field::Suid => Fact::Suid,
        Field::Fsuid => Fact::Fsuid,
        Field::Sgid => Fact::Sgid,
        Field::Fsgid => Fact::Fsgid,
        Field::Loginuid => Fact::Auid,
        Field::Sessionid => Fact::Ses,
        Field::Pers => Fact::Pers,
        Field::Exit => Fact::Exit,
        Field::Arg0 => Fact::A0,
        Field::Arg1 => Fact::A1,
        Field::Arg2 => Fact::A2,
        Field::Arg3 => Fact::A3,
        Field::SaddrFam => Fact::SaddrFam,
        Field::Unit => Fact::Unit,
        Field::Slice => Fact::Slice,
        Field::Container => Fact::Container,
        _ => return None,
    })
}

fn bits(fact: Fact, op: BitOp, operand: u32) -> Test {
    Test::Bits { fact, op, operand }
}

fn compare(fact: Fact, op: Op, value: u32) -> Test {
    let range = |first, last| Test::Range {
        fact,
        first,
        last,
        inside: true,
    };

    match op {
        Op::Eq => range(value, value),
        Op::Ne => Test::Range {
            fact,
            first: value,
            last: value,
            inside: false,
        },
        Op::Lt if value == 0 => Test::Never,
        Op::Lt => range(0, value - 1),
        Op::Le => range(0, value),
        Op::Gt if value == u32::MAX => Test::Never,
        Op::Gt => range(value + 1, u32::MAX),
        Op::Ge => range(value, u32::MAX),
        Op::BitMask => bits(fact, BitOp::Any, value),
        Op::BitTest => bits(fact, BitOp::All, value),
    }
}

/// `perm=`: decided by the call alone, except for calls that open.
fn perm(op: Op, value: u32, entry: Entry, nr: u32, entries: Entries) -> Known {
    let Some(arch) = entries.arch(entry) else {
        return Known::Fails;
    };

    let class = abi::perm_class(arch, nr, entries.lists());
    if class.open.is_some() || class.socketcall {
        let op = if op == Op::Eq {
            BitOp::Any
        } else {
            BitOp::None
        };
        return Known::Depends(bits(Fact::Access, op, value));
    }

    Known::from((class.bits() & value != 0) == (op == Op::Eq))
}

/// The field of rules that a fact belongs to, by number of the fact.
pub(crate) fn field_name(fact: u32) -> &'static str {
    match Fact::EVERY.get(fact as usize) {
        Some(Fact::Pid) => "pid",
        Some(Fact::Ppid) => "ppid",
        Some(Fact::Uid) => "uid",
        Some(Fact::Euid) => "euid",
        Some(Fact::Suid) => "suid",
        Some(Fact::Fsuid) => "fsuid",
        Some(Fact::Gid) => "gid",
        Some(Fact::Egid) => "egid",
        Some(Fact::Sgid) => "sgid",
        Some(Fact::Fsgid) => "fsgid",
        Some(Fact::Auid) => "auid",
        Some(Fact::Ses) => "sessionid",
        Some(Fact::Pers) => "pers",
        Some(Fact::Exit) => "exit",
        Some(Fact::Success) => "success",
        Some(Fact::A0) => "a0",
        Some(Fact::A1) => "a1",
        Some(Fact::A2) => "a2",
        Some(Fact::A3) => "a3",
        Some(Fact::Exe) => "exe",
        Some(Fact::Access) => "perm",
        Some(Fact::Compare) => "-C",
        Some(Fact::SaddrFam) => "saddr_fam",
        Some(Fact::SocketName) => "name of a socket",
        Some(Fact::Unit) => "unit",
        Some(Fact::Slice) => "slice",
        Some(Fact::Container) => "container",
        Some(Fact::Labels) => "label",
        Some(Fact::Ancestors) => "ancestor_exe",
        Some(Fact::Marks) => "path, dir",
        None => "?",
    }
}
