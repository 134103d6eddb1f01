//! The entries of a host, and the calls that rules select on it.

use crate::facts::Entry;
use abi::{Arch, PermLists};
use rules::{Rule, SyscallSet};

/// Architectures of the two entries of a host, and the edition of its kernel's lists of calls.
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

    /// The entries of a host of architecture `native` whose kernel has these lists.
    pub fn of(native: Arch, lists: PermLists) -> Entries {
        Entries {
            arches: [Some(native), native.compat()],
            lists,
        }
    }

    /// The architecture of an entry; for io_uring operations, that of the host.
    pub fn arch(self, entry: Entry) -> Option<Arch> {
        match entry {
            Entry::Native | Entry::Uring => self.arches[0],
            Entry::Compat => self.arches[1],
        }
    }

    /// The architectures of the native and the 32-bit entry.
    pub fn arches(self) -> [Option<Arch>; 2] {
        self.arches
    }

    /// The edition of the lists of calls for `perm=` and class selectors.
    pub fn lists(self) -> PermLists {
        self.lists
    }

    /// The entry of the architecture with this `AUDIT_ARCH_*` number.
    pub fn entry(self, audit_arch: u32) -> Option<Entry> {
        [Entry::Native, Entry::Compat].into_iter().find(|&entry| {
            self.arch(entry)
                .is_some_and(|a| a.audit_arch() == audit_arch)
        })
    }
}

/// The calls of a rule. Class selectors (`-S 2032` to `-S 2047`) are expanded as the kernel of this
/// host does when the rule is added.
pub fn calls_of(rule: &Rule, entries: Entries) -> SyscallSet {
    let host = entries.arch(Entry::Native).unwrap_or(Arch::native());
    rule.syscalls.expand_classes(host, entries.lists())
}
