//! The entries of a host, and the calls of rules there.

use crate::facts::Entry;
use abi::{Arch, PermLists};
use rules::{Rule, SyscallSet};

/// Architectures behind the two entries of a host, and how its kernel classes their calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entries {
    arches: [Option<Arch>; 2],
    lists: PermLists,
}

impl Entries {
    /// No entries.
    pub(crate) const NONE: Entries = Entries {
        arches: [None; 2],
        lists: PermLists::Short,
    };

    /// Entries of a host of architecture `native`, whose kernel has these lists.
    pub fn of(native: Arch, lists: PermLists) -> Entries {
        Entries {
            arches: [Some(native), native.compat()],
            lists,
        }
    }

    /// The architecture of an entry; that of io_uring operations is the host's.
    pub fn arch(self, entry: Entry) -> Option<Arch> {
        match entry {
            Entry::Native | Entry::Uring => self.arches[0],
            Entry::Compat => self.arches[1],
        }
    }

    /// The architectures of the native entry and of the other one.
    pub fn arches(self) -> [Option<Arch>; 2] {
        self.arches
    }

    /// The lists of calls behind `perm=` and class selectors.
    pub fn lists(self) -> PermLists {
        self.lists
    }

    /// The entry of an `AUDIT_ARCH_*` number.
    pub fn entry(self, audit_arch: u32) -> Option<Entry> {
        [Entry::Native, Entry::Compat].into_iter().find(|&entry| {
            self.arch(entry)
                .is_some_and(|a| a.audit_arch() == audit_arch)
        })
    }
}

/// The calls of a rule, with class selectors (`-S 2032` to `-S 2047`) expanded as the kernel of
/// this host does when it takes the rule.
pub fn calls_of(rule: &Rule, entries: Entries) -> SyscallSet {
    let host = entries.arch(Entry::Native).unwrap_or(Arch::native());
    rule.syscalls.expand_classes(host, entries.lists())
}
