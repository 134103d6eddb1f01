//! The conditions of a rule that are left for one call, in a form that can be compared with those of
//! other rules. The form is valid for every kernel: it does not depend on what our engines can see.

use crate::conditions::Fact;
use crate::entries::Entries;
use crate::evaluate::may_be_unknown;
use crate::facts::Entry;
use abi::{shape, ShapeKind};
use abi::{Arch, Field, PermLists};
use rules::{Condition, List, Op, Rule, SyscallSet, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

/// The values that a fact may have: `first..=last` without `except`, whose members lie strictly
/// inside the range.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Bounds {
    first: u32,
    last: u32,
    except: BTreeSet<u32>,
}

/// A condition that is only compared as a whole.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Opaque {
    field: Field,
    op: u32,
    /// Action of the rule, if it may not be known whether the condition holds. It then does in `always` rules and does
    /// not in `never` rules, so that conditions in rules with different actions cannot be compared.
    action: Option<u32>,
    number: u32,
    text: Vec<u8>,
}

/// The conditions of a rule that are left for one call; all must hold. Equal values mean equivalent
/// conditions.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Residual {
    bounds: BTreeMap<Fact, Bounds>,
    opaque: BTreeSet<Opaque>,
}

/// Reason why a rule cannot match a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Impossible {
    /// `arch=` is the architecture of another machine, or of the other entry.
    Arch,
    /// The call has none of the kinds of access that `perm=` names.
    Perm,
    /// The rule has `exit=` or `success=`, and the call does not return.
    NoResult,
    /// Conditions on this field contradict each other or cannot be met by any value.
    Contradiction(Field),
    /// The list does not know this field.
    Unknown(Field),
}

/// Everything about a call, apart from its architecture, that a [`Residual`] depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct CallKind {
    /// `PERM_*` bits that the call has regardless of its arguments.
    perm: u32,
    /// `PERM_*` bits that depend on its arguments.
    perm_varies: u32,
    /// Whether the call returns.
    returns: bool,
}

/// The calls of one architecture, by kind.
#[derive(Debug)]
pub(crate) struct Kinds {
    of: Vec<CallKind>,
    /// The calls of each kind.
    pub(crate) groups: Vec<(CallKind, SyscallSet)>,
}

impl Kinds {
    /// The kinds of calls of `arch` in a kernel with these lists.
    pub(crate) fn of(arch: Arch, lists: PermLists) -> &'static Kinds {
        static KINDS: [[OnceLock<Kinds>; 4]; 2] = [const { [const { OnceLock::new() }; 4] }; 2];
        KINDS[lists as usize][arch as usize].get_or_init(|| Kinds::new(arch, lists))
    }

    fn new(arch: Arch, lists: PermLists) -> Kinds {
        let of: Vec<CallKind> = (0..2048)
            .map(|nr| {
                let class = abi::perm_class(arch, nr, lists);
                CallKind {
                    perm: class.bits(),
                    perm_varies: match class.open {
                        Some(_) => abi::PERM_READ | abi::PERM_WRITE,
                        None if class.socketcall => abi::PERM_WRITE,
                        None => 0,
                    },
                    returns: shape(arch, nr).kind != ShapeKind::Exit,
                }
            })
            .collect();

        let mut groups: BTreeMap<CallKind, SyscallSet> = BTreeMap::new();
        for (nr, kind) in (0..).zip(&of) {
            let calls = groups.entry(*kind).or_insert(SyscallSet::EMPTY);
            calls.insert(nr);
        }

        Kinds {
            of,
            groups: groups.into_iter().collect(),
        }
    }

    /// Whether call `nr` returns.
    pub(crate) fn returns(&self, nr: u32) -> bool {
        self.kind(nr).returns
    }

    /// The kind of call `nr`, which must be below 2048.
    pub(crate) fn kind(&self, nr: u32) -> CallKind {
        self.of[nr as usize % self.of.len()]
    }
}

impl Residual {
    /// The remaining conditions of an exit rule for calls of `kind` at `entry`; the error is the reason why the rule
    /// cannot match such a call.
    pub(crate) fn of(
        rule: &Rule,
        entries: Entries,
        entry: Entry,
        kind: CallKind,
    ) -> Result<Residual, Impossible> {
        let mut residual = Residual {
            bounds: BTreeMap::new(),
            opaque: BTreeSet::new(),
        };
        for condition in &rule.conditions {
            residual.add(condition, rule, entries, entry, kind)?;
        }
        residual
            .bounds
            .retain(|&fact, bounds| may_be_absent(fact) || *bounds != Bounds::all(fact));
        Ok(residual)
    }

    fn add(
        &mut self,
        condition: &Condition,
        rule: &Rule,
        entries: Entries,
        entry: Entry,
        kind: CallKind,
    ) -> Result<(), Impossible> {
        let field = condition.field;
        let Value::Number(value) = condition.value else {
            if field != Field::FilterKey {
                self.opaque.insert(Opaque::of(condition, rule));
            }
            return Ok(());
        };

        match field {
            Field::Arch => {
                let arch = entries.arch(entry).map(Arch::audit_arch);
                let holds = arch.is_some_and(|arch| condition.op.holds(arch, value));
                return if holds { Ok(()) } else { Err(Impossible::Arch) };
            }
            Field::Perm if kind.perm_varies & value == 0 && is_equality(condition.op) => {
                let holds = (kind.perm & value != 0) == (condition.op == Op::Eq);
                return if holds { Ok(()) } else { Err(Impossible::Perm) };
            }
            Field::Exit | Field::Success if !kind.returns => return Err(Impossible::NoResult),
            Field::Msgtype | Field::Fstype if rule.list == List::Exit => {
                return Err(Impossible::Unknown(field))
            }
            _ => {}
        }

        match bounded_fact(condition) {
            Some(fact) => self.bound(fact, condition, value),
            None => {
                self.opaque.insert(Opaque::of(condition, rule));
                Ok(())
            }
        }
    }

    fn bound(&mut self, fact: Fact, condition: &Condition, value: u32) -> Result<(), Impossible> {
        let bounds = self.bounds.entry(fact).or_insert_with(|| Bounds::all(fact));
        let possible = match condition.field {
            Field::LoginuidSet => {
                match (condition.op.holds(1, value), condition.op.holds(0, value)) {
                    (true, true) => true,
                    (false, false) => false,
                    (true, false) => bounds.narrow(Op::Ne, u32::MAX),
                    (false, true) => bounds.narrow(Op::Eq, u32::MAX),
                }
            }
            Field::Success => bounds.narrow(condition.op, if value != 0 { 1 } else { 2 }),
            _ => bounds.narrow(condition.op, value),
        };

        if possible {
            Ok(())
        } else {
            Err(Impossible::Contradiction(condition.field))
        }
    }

    /// Whether `other` holds whenever this one does. False does not prove the contrary.
    pub(crate) fn implies(&self, other: &Residual) -> bool {
        let bounds = other
            .bounds
            .iter()
            .all(|(fact, wanted)| self.bounds.get(fact).is_some_and(|own| own.lies_in(wanted)));
        bounds
            && other
                .opaque
                .iter()
                .all(|wanted| self.opaque.iter().any(|own| own.implies(wanted)))
    }

    /// Whether both can never hold for the same call. False does not prove that they can.
    pub(crate) fn excludes(&self, other: &Residual) -> bool {
        self.bounds.iter().any(|(fact, own)| {
            other
                .bounds
                .get(fact)
                .is_some_and(|other| !own.meets(other))
        })
    }

    /// Whether the conditions can hold for a task whose audit uid is unset.
    pub(crate) fn takes_unset_auid(&self) -> bool {
        self.bounds
            .get(&Fact::Auid)
            .is_none_or(|bounds| bounds.contains(u32::MAX))
    }
}

impl Bounds {
    /// Every value that the fact can have.
    fn all(fact: Fact) -> Bounds {
        let (first, last) = if fact == Fact::Success {
            (1, 2)
        } else {
            (0, u32::MAX)
        };
        Bounds {
            first,
            last,
            except: BTreeSet::new(),
        }
    }

    /// Keeps the values that also satisfy a comparison; false if none is left.
    fn narrow(&mut self, op: Op, value: u32) -> bool {
        let (first, last) = match op {
            Op::Eq => (value, value),
            Op::Lt if value == 0 => return false,
            Op::Lt => (0, value - 1),
            Op::Le => (0, value),
            Op::Gt if value == u32::MAX => return false,
            Op::Gt => (value + 1, u32::MAX),
            Op::Ge => (value, u32::MAX),
            Op::Ne => {
                self.except.insert(value);
                (0, u32::MAX)
            }
            Op::BitMask | Op::BitTest => return true,
        };

        self.first = self.first.max(first);
        self.last = self.last.min(last);
        self.tidy()
    }

    /// Moves the ends of the range away from excepted values, and drops excepted values outside it;
    /// false if no value is left.
    fn tidy(&mut self) -> bool {
        while self.first <= self.last {
            if self.except.contains(&self.first) {
                if self.first == self.last {
                    return false;
                }
                self.first += 1;
            } else if self.except.contains(&self.last) {
                self.last -= 1;
            } else {
                let (first, last) = (self.first, self.last);
                self.except.retain(|&value| first < value && value < last);
                return true;
            }
        }

        false
    }

    fn contains(&self, value: u32) -> bool {
        (self.first..=self.last).contains(&value) && !self.except.contains(&value)
    }

    fn lies_in(&self, outer: &Bounds) -> bool {
        outer.first <= self.first
            && self.last <= outer.last
            && outer.except.iter().all(|&value| !self.contains(value))
    }

    fn meets(&self, other: &Bounds) -> bool {
        let mut both = Bounds {
            first: self.first.max(other.first),
            last: self.last.min(other.last),
            except: self.except.union(&other.except).copied().collect(),
        };
        both.tidy()
    }
}

impl Opaque {
    fn of(condition: &Condition, rule: &Rule) -> Opaque {
        let (number, text) = match &condition.value {
            Value::Number(number) => (*number, Vec::new()),
            Value::Text(text) => (0, text.clone()),
        };
        Opaque {
            field: condition.field,
            op: condition.op as u32,
            action: may_be_unknown(condition).then_some(rule.action as u32),
            number,
            text,
        }
    }

    /// Whether `wanted` holds whenever this does: conditions are equal, or `wanted` accepts more kinds
    /// of access.
    fn implies(&self, wanted: &Opaque) -> bool {
        let is_fewer_accesses = self.field == Field::Perm
            && wanted.field == Field::Perm
            && self.op == Op::Eq as u32
            && wanted.op == self.op
            && self.number & !wanted.number == 0
            && self.number != 0;
        self == wanted || is_fewer_accesses
    }
}

fn is_equality(op: Op) -> bool {
    matches!(op, Op::Eq | Op::Ne)
}

/// Whether a call may lack the fact; then no condition on it holds.
fn may_be_absent(fact: Fact) -> bool {
    matches!(fact, Fact::Exit | Fact::Success | Fact::SaddrFam)
}

/// The fact that a condition compares with its value, if the condition can be a range.
fn bounded_fact(condition: &Condition) -> Option<Fact> {
    if matches!(condition.op, Op::BitMask | Op::BitTest) {
        return None;
    }

    Some(match condition.field {
        Field::Pid => Fact::Pid,
        Field::Ppid => Fact::Ppid,
        Field::Uid => Fact::Uid,
        Field::Euid => Fact::Euid,
        Field::Suid => Fact::Suid,
        Field::Fsuid => Fact::Fsuid,
        Field::Sgid => Fact::Sgid,
        Field::Fsgid => Fact::Fsgid,
        Field::Loginuid | Field::LoginuidSet => Fact::Auid,
        Field::Sessionid => Fact::Ses,
        Field::Pers => Fact::Pers,
        Field::Exit => Fact::Exit,
        Field::Success => Fact::Success,
        Field::Arg0 => Fact::A0,
        Field::Arg1 => Fact::A1,
        Field::Arg2 => Fact::A2,
        Field::Arg3 => Fact::A3,
        Field::SaddrFam => Fact::SaddrFam,
        _ => return None,
    })
}
