//! The kernel functions that are hooked to find out what a call really touched, and for which calls.
//! The programs are in crates/kernel/bpf/programs: object_hooks.bpf.inc.c, ipc_hooks.bpf.inc.c and
//! clock_hooks.bpf.inc.c.
//!
//! The functions are those that act on objects (fs/namei.c, fs/open.c, security/security.c,
//! net/socket.c, ipc/util.c). stat, read and write call none of them, and thus cost nothing more unless
//! rules watch them. If a function has had several names, all are listed; a kernel has one of them.

use crate::facts::Entry;
use crate::plan::Plan;
use crate::tables::CALLS;
use crate::uring::OPERATIONS;
use abi::{CallRow, EntryHook, ObjectClass, ShapeKind};
use std::collections::BTreeSet;

/// Whether programs on the functions of a call find the marks of all that it reaches.
pub(crate) fn reached_objects(row: &CallRow) -> bool {
    let finds_marks = |function: &&str| {
        function.starts_with("security_path_") || matches!(*function, "vfs_truncate" | "vfs_utimes")
    };
    // The files of an execve are found when it is over: see chain.h of crates/kernel/bpf/programs.
    row.shape.kind == ShapeKind::Exec
        || row
            .functions
            .is_some_and(|(_, functions)| functions.iter().any(finds_marks))
}

/// Whether the entry of a call has to be hooked for this, where functions are not hooked.
fn is_needed(hook: EntryHook, entry: Entry, objects_before: bool) -> bool {
    match hook {
        EntryHook::Directory => true,
        EntryHook::Before => objects_before,
        // The structures of System V calls are others for 32-bit calls.
        _ => entry == Entry::Native,
    }
}

impl Plan {
    /// Entry, number and row of the calls that rules watch, without io_uring operations, which
    /// have other numbers.
    fn watched_rows(&self) -> impl Iterator<Item = (Entry, u32, &'static CallRow)> + '_ {
        let calls = self.calls.keys().filter(|key| key.0 != Entry::Uring);
        calls.filter_map(|&(entry, nr)| {
            let arch = self.entries.arch(entry)?;
            Some((entry, nr, abi::call_of(arch, nr)))
        })
    }

    /// The functions to hook for the calls and operations that rules watch.
    pub fn object_functions(&self) -> BTreeSet<&'static str> {
        let of_calls = self
            .watched_rows()
            .filter_map(|(_, _, row)| row.functions)
            .flat_map(|(_, functions)| functions.iter().copied());
        let of_operations = self
            .seen_operations()
            .filter_map(|(_, row, _)| row.address_function);
        of_calls.chain(of_operations).collect()
    }

    /// The watched io_uring operations whose objects are seen by the hooks for calls: those that do the
    /// same as a watched call. For other operations nothing is hooked, since it would slow down calls.
    fn seen_operations(&self) -> impl Iterator<Item = (u32, &'static CallRow, ObjectClass)> + '_ {
        let operations = self.calls.keys().filter(|key| key.0 == Entry::Uring);
        operations.filter_map(|&(_, op)| {
            let arch = self.entries.arch(Entry::Native)?;
            let is_watched = |name: &&&str| {
                let nr = abi::syscall_number(arch, name);
                nr.is_some_and(|nr| self.calls.contains_key(&(Entry::Native, nr)))
            };
            let row = abi::call(abi::uring_op_calls(op).iter().find(is_watched)?);
            Some((op, row, row.functions?.0))
        })
    }

    /// [`ObjectClass`] of every io_uring operation whose objects are seen, by number; 0 for others.
    pub fn operation_classes(&self) -> [u8; OPERATIONS] {
        let mut classes = [0; OPERATIONS];
        for (op, _, class) in self.seen_operations() {
            if let Some(slot) = classes.get_mut(op as usize) {
                *slot = class as u8;
            }
        }
        classes
    }

    /// The calls whose entries have to be hooked where functions are not: entry, number and class.
    pub fn entry_classes(&self) -> impl Iterator<Item = (Entry, u32, u8)> + '_ {
        let is_hooked = !self.form().trampoline;
        let before = self.platform.objects_before;
        let calls = if is_hooked {
            Some(self.watched_rows())
        } else {
            None
        };
        calls
            .into_iter()
            .flatten()
            .filter_map(move |(entry, nr, row)| {
                let hook = row.entry.filter(|hook| is_needed(*hook, entry, before))?;
                Some((entry, nr, hook as u8))
            })
    }

    /// [`ObjectClass`] of every watched call, by entry and number; 0 for others.
    pub fn object_classes(&self) -> [[u8; CALLS]; 2] {
        let mut classes = [[0; CALLS]; 2];
        for (entry, nr, row) in self.watched_rows() {
            let slot = classes[entry as usize].get_mut(nr as usize);
            if let (Some(slot), Some((class, _))) = (slot, row.functions) {
                let plain_reads = self.calls[&(entry, nr)].plain_reads;
                *slot = match class {
                    ObjectClass::Open if !plain_reads => ObjectClass::OpenChanges as u8,
                    class => class as u8,
                };
            }
        }

        classes
    }
}

#[cfg(test)]
mod tests {

    use abi::Arch;

    #[test]
    fn calls_that_touch_no_object_hook_nothing() {
        for name in [
            "stat",
            "newfstatat",
            "statx",
            "read",
            "write",
            "fstat",
            "access",
            "close",
        ] {
            assert!(abi::call(name).functions.is_none(), "{name}");
        }
    }

    #[test]
    fn every_call_that_changes_names_has_the_name_the_directory_and_the_entry() {
        for arch in [Arch::X86_64, Arch::I386, Arch::Aarch64] {
            for (_, name) in abi::syscalls(arch) {
                let shape = abi::call(name).shape;
                let changes = shape.paths.iter().flatten().any(|path| {
                    matches!(
                        path.use_,
                        abi::NameUse::Create | abi::NameUse::Delete | abi::NameUse::Rename
                    )
                });
                let functions = abi::call(name)
                    .functions
                    .map_or(&[][..], |(_, functions)| functions);
                let of = |prefix: &str| functions.iter().any(|f| f.starts_with(prefix));
                let complete = of("do_") && of("lookup_one") && of("security_path_") && of("vfs_");
                assert_eq!(changes, complete, "{name}");
            }
        }
    }
}
