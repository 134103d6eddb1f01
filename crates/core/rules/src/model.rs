//! An audit rule as the kernel sees it: `struct audit_rule_data` without its byte layout.

use abi::{class_syscalls, Arch, Field, PermLists, SYSCALL_CLASSES};

/// A filter list, with the kernel's number (`AUDIT_FILTER_*`, linux/audit.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u32)]
pub enum List {
    /// Messages from user space.
    User = 0,
    /// Task creation.
    Task = 1,
    /// System-call exit.
    Exit = 4,
    /// Records that are about to be written.
    Exclude = 5,
    /// File names, when the kernel collects them for a call (`fstype=` rules).
    Filesystem = 6,
    /// Completion of an io_uring operation.
    IoUring = 7,
}

/// Effect of a matching rule (`AUDIT_NEVER`, `AUDIT_ALWAYS`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Action {
    /// Do not record.
    Never = 0,
    /// Record.
    Always = 2,
}

/// A comparison (`AUDIT_EQUAL` … linux/audit.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// `=`
    Eq,
    /// `!=`
    Ne,
    /// `<`
    Lt,
    /// `<=`
    Le,
    /// `>`
    Gt,
    /// `>=`
    Ge,
    /// `&`: any of the bits is set.
    BitMask,
    /// `&=`: all of the bits are set.
    BitTest,
}

/// Right-hand side of a condition.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Value {
    /// Everything the kernel holds in 32 bits: ids, numbers, permission and file-type bits,
    /// `AUDIT_COMPARE_*` constants, `AUDIT_ARCH_*`.
    Number(u32),
    /// Paths, keys and LSM labels, as bytes.
    Text(Vec<u8>),
}

/// One `-F field op value` or `-C field op field`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Condition {
    /// The field; `-C` is [`Field::FieldCompare`] with an `AUDIT_COMPARE_*` value.
    pub field: Field,
    /// The comparison.
    pub op: Op,
    /// Right-hand side of the comparison.
    pub value: Value,
}

/// The system calls (or io_uring operations) of a rule: `audit_rule_data.mask`, 2048 bits.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct SyscallSet(pub [u32; 64]);

/// Place where a rule was read.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct Source {
    /// File, or "command line".
    pub file: String,
    /// Line, counted from 1; 0 if the rule came from no line of a file.
    pub line: u32,
}

impl Source {
    /// `FILE:LINE`, or the file alone where there is no line.
    pub fn place(&self) -> String {
        match self.line {
            0 => self.file.clone(),
            line => format!("{}:{line}", self.file),
        }
    }
}

/// One audit rule.
#[derive(Clone, Debug)]
pub struct Rule {
    /// The filter list that the rule belongs to.
    pub list: List,
    /// Effect of the rule on the calls that it matches.
    pub action: Action,
    /// The calls that the rule applies to.
    pub syscalls: SyscallSet,
    /// All of its conditions, in the order given; they must all hold. Keys are a
    /// [`Field::FilterKey`] condition, several joined by 0x01 as the kernel keeps them.
    pub conditions: Vec<Condition>,
    /// Place where the rule was read. Not part of the rule's identity.
    pub source: Source,
}

impl SyscallSet {
    /// No call.
    pub const EMPTY: SyscallSet = SyscallSet([0; 64]);
    /// Every call.
    pub const ALL: SyscallSet = SyscallSet([u32::MAX; 64]);

    /// Whether call `nr` is in the set; numbers from 2048 never are.
    pub fn contains(&self, nr: u32) -> bool {
        nr < 2048 && self.0[nr as usize / 32] & (1 << (nr % 32)) != 0
    }

    /// Adds call `nr` (below 2048; larger numbers are ignored).
    pub fn insert(&mut self, nr: u32) {
        if nr < 2048 {
            self.0[nr as usize / 32] |= 1 << (nr % 32);
        }
    }

    /// Whether this is the mask that auditctl lists as `all`. As in auditctl, the last 32 bits do not
    /// count, because the kernel clears the class selectors among them.
    pub fn is_all(&self) -> bool {
        self.0[..63].iter().all(|&word| word == u32::MAX)
    }

    /// The set that the kernel of a `host` machine makes of this one: each of the numbers 2032 to
    /// 2047 selects a class of calls, whose members `lists` decides (`audit_to_entry_common()` in
    /// kernel/auditfilter.c). A set of all calls stays as it is.
    pub fn expand_classes(&self, host: Arch, lists: PermLists) -> SyscallSet {
        if self.is_all() {
            return SyscallSet::ALL;
        }

        let mut expanded = self.clone();
        expanded.0[63] &= 0xFFFF;
        let tables = [(Some(host), false), (host.compat(), true)];
        for (arch, is_compat) in tables.into_iter().filter_map(|row| Some((row.0?, row.1))) {
            for class in SYSCALL_CLASSES {
                if self.contains(class.selector(is_compat)) {
                    class_syscalls(arch, class, lists).for_each(|nr| expanded.insert(nr));
                }
            }
        }

        expanded
    }

    /// Whether it holds no call.
    pub fn is_empty(&self) -> bool {
        *self == Self::EMPTY
    }

    /// The calls in it, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        (0..2048).filter(|&nr| self.contains(nr))
    }
}

impl Default for SyscallSet {
    /// No call.
    fn default() -> SyscallSet {
        SyscallSet::EMPTY
    }
}

impl std::fmt::Debug for SyscallSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.is_all() {
            f.write_str("all")
        } else {
            f.debug_set().entries(self.iter()).finish()
        }
    }
}

impl Op {
    /// The operator as rules write it.
    pub const fn symbol(self) -> &'static str {
        match self {
            Op::Eq => "=",
            Op::Ne => "!=",
            Op::Lt => "<",
            Op::Le => "<=",
            Op::Gt => ">",
            Op::Ge => ">=",
            Op::BitMask => "&",
            Op::BitTest => "&=",
        }
    }

    /// Whether `left OP right` holds, as `audit_comparator()` in kernel/auditfilter.c decides it.
    pub fn holds(self, left: u32, right: u32) -> bool {
        match self {
            Op::Eq => left == right,
            Op::Ne => left != right,
            Op::Lt => left < right,
            Op::Le => left <= right,
            Op::Gt => left > right,
            Op::Ge => left >= right,
            Op::BitMask => left & right != 0,
            Op::BitTest => left & right == right,
        }
    }
}

impl Rule {
    /// The value of the key condition: keys joined by 0x01. `None` without a key.
    pub fn key(&self) -> Option<&[u8]> {
        self.conditions
            .iter()
            .find_map(|c| match (&c.field, &c.value) {
                (Field::FilterKey, Value::Text(text)) => Some(text.as_slice()),
                _ => None,
            })
    }

    /// Whether both rules have the same list, action and calls, and the same conditions in the same
    /// order: the kernel then regards them as equal (`audit_compare_rule()`).
    pub fn same(&self, other: &Rule) -> bool {
        self.list == other.list
            && self.action == other.action
            && self.syscalls == other.syscalls
            && self.conditions == other.conditions
    }
}
