//! What system calls do: one row for each.
//!
//! A row says which arguments name objects, what the call does with them, where the kernel can be asked about them, and
//! the words for it. Plans, records, searches and the forms of events for other programs read it, so that a new call is
//! one row. The rows are in `table/`, by what they are about; [`CallRow`] says what a column means, and the methods that
//! set one stand in `row.rs`.
//!
//! Sources: the manual pages of the calls (section 2) and, for what audit collects, kernel/auditsc.c, fs/namei.c and
//! net/socket.c of Linux.

mod acts;
mod added;
mod by_flag;
mod class;
mod hooked;
mod row;
mod shape;
mod table;
mod verb;

pub use acts::{acts, Act, Way};
pub use added::add_call;
pub(crate) use added::call as added_call;
pub use by_flag::{ByFlag, NONE};
pub use class::{SyscallClass, SYSCALL_CLASSES};
pub use hooked::{EntryHook, ObjectClass, PARENT_LOOKUP};
pub use row::{CallRow, LengthLimit, NewDirectory};
pub use shape::{CallNames, EmptyName, EmptyPath, NameUse, PathArg, Shape, ShapeKind};
pub use verb::{Argument, Meant, Verb};

use crate::{syscall_name, syscalls, Arch};
use std::collections::HashMap;
use std::sync::LazyLock;

/// Every row, in the order of the table.
pub fn calls() -> impl Iterator<Item = &'static CallRow> {
    table::PARTS.iter().copied().flatten().chain(added::row())
}

/// The row of the call that audit names `name`; [`CallRow::UNKNOWN`] if there is none.
pub fn call(name: &str) -> &'static CallRow {
    static BY_NAME: LazyLock<HashMap<&str, &CallRow>> =
        LazyLock::new(|| calls().map(|row| (row.name, row)).collect());
    let known = BY_NAME.get(name).copied();
    let added = || added::row().filter(|row| row.name == name);
    known.or_else(added).unwrap_or(&CallRow::UNKNOWN)
}

/// The row of call `number` of `arch`; [`CallRow::UNKNOWN`] if there is no such call.
pub fn call_of(arch: Arch, number: u32) -> &'static CallRow {
    static BY_NUMBER: LazyLock<[Vec<&CallRow>; 4]> = LazyLock::new(|| Arch::EVERY.map(rows_of));

    match BY_NUMBER[arch as usize].get(number as usize) {
        Some(row) if !row.name.is_empty() => row,
        _ => named(arch, number),
    }
}

/// The rows of an architecture, by number. Private calls of ARM, whose numbers are large, and those of x32 are not among
/// them.
fn rows_of(arch: Arch) -> Vec<&'static CallRow> {
    const USUAL: u32 = 1024;
    let last = syscalls(arch).map(|row| row.0).filter(|&nr| nr < USUAL);
    let end = last.max().map_or(0, |last| last + 1);
    (0..end).map(|number| named(arch, number)).collect()
}

fn named(arch: Arch, number: u32) -> &'static CallRow {
    syscall_name(arch, number).map_or(&CallRow::UNKNOWN, call)
}

/// The objects that call `number` of `arch` touches.
pub fn shape(arch: Arch, number: u32) -> Shape {
    let row = call_of(arch, number);
    match row.shape_32 {
        Some(shape) if !arch.is_64bit() => shape,
        _ => row.shape,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_call_of_every_architecture_has_one_row_and_no_other_has() {
        let rows: Vec<&str> = calls().map(|row| row.name).collect();
        let named: BTreeSet<&str> = Arch::EVERY
            .into_iter()
            .flat_map(syscalls)
            .map(|call| call.1)
            .collect();
        assert_eq!(rows.iter().copied().collect::<BTreeSet<_>>(), named);
        assert_eq!(rows.len(), named.len(), "a call has two rows");
        assert_eq!(call_of(Arch::X86_64, 0xffff).name, "");
        assert_eq!(call_of(Arch::X86_64, 83 | crate::X32_BIT).name, "mkdir");
    }

    #[test]
    fn the_mask_of_64_bits_moves_the_path_of_32_bit_programs() {
        for arch in Arch::EVERY {
            for (number, name) in syscalls(arch) {
                let is_moved = !arch.is_64bit() && name == "fanotify_mark";
                assert_eq!(shape(arch, number) != call(name).shape, is_moved, "{name}");
            }
        }
    }

    #[test]
    fn both_sides_of_a_rename_are_paths() {
        let shape = call("renameat2").shape;
        assert_eq!(shape.paths[0].map(|p| (p.dir, p.path)), Some((0, 1)));
        assert_eq!(shape.paths[1].map(|p| (p.dir, p.path)), Some((2, 3)));
        assert_eq!(call("read").shape.names(), CallNames::None);
        assert_eq!(call("fchmod").shape.names(), CallNames::Always);
    }

    #[test]
    fn flags_say_whether_a_link_at_the_end_is_followed() {
        let follows = |name, path: usize, args| {
            let path = call(name).shape.paths[path].expect("a path");
            path.follow.by(&args)
        };
        let none = [0; 6];
        for (name, path, argument, flag, without) in [
            ("umount2", 0, 1, 8, true),
            ("inotify_add_watch", 0, 2, 0x0200_0000, true),
            ("execveat", 0, 4, 0x100, true),
            ("fchmodat2", 0, 3, 0x100, true),
            ("name_to_handle_at", 0, 4, 0x400, false),
            ("linkat", 0, 4, 0x400, false),
            ("fspick", 0, 2, 2, true),
            ("mount_setattr", 0, 2, 0x100, true),
            ("fanotify_mark", 0, 1, 4, true),
            ("move_mount", 0, 4, 1, false),
            ("move_mount", 1, 4, 0x10, false),
        ] {
            let mut args = none;
            args[argument] = flag;
            assert_eq!(follows(name, path, none), without, "{name}");
            assert_eq!(follows(name, path, args), !without, "{name} with the flag");
        }
        // fchmodat(2) has no flags; what is there is not looked at.
        assert!(follows("fchmodat", 0, [0x100; 6]));
        assert!(!follows("lchown", 0, [0x400; 6]));
    }

    #[test]
    fn calls_that_take_a_socket_address_may_have_the_path_of_a_socket() {
        for name in [
            "bind",
            "connect",
            "sendto",
            "sendmsg",
            "sendmmsg",
            "socketcall",
        ] {
            assert_eq!(call(name).shape.names(), CallNames::OfSocket, "{name}");
        }
        for name in ["accept", "recvfrom", "getpeername", "recvmsg"] {
            assert_eq!(call(name).shape.names(), CallNames::None, "{name}");
        }
    }
}
