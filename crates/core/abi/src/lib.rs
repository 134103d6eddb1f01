//! Numbers and names of Linux auditing: architectures, system calls and what they do ([`calls`]), io_uring
//! operations, errors, rule fields, record types and the permission classes of system calls.
//!
//! Pure tables. The long ones are generated from kernel headers by `cargo xtask tables` and
//! committed; the rest is small enough to be written by hand.

mod arch;
mod calls;
mod compare;
mod entry_point;
mod errors;
mod field;
mod generated;
pub mod names;
mod perm;
mod record_types;
mod syscall;
mod uring;
mod values;

pub use arch::Arch;
pub use calls::{
    acts, add_call, call, call_of, calls, shape, Act, Argument, ByFlag, CallNames, CallRow,
    EmptyName, EmptyPath, EntryHook, LengthLimit, Meant, NameUse, NewDirectory, ObjectClass,
    PathArg, Shape, ShapeKind, SyscallClass, Verb, Way, NONE, PARENT_LOOKUP, SYSCALL_CLASSES,
};
pub use compare::{Compare, COMPARES};
pub use entry_point::{entry_points, NOT_IMPLEMENTED};
pub use errors::{audit_result, errno_name, errno_number, exit, numbers as errno};
pub use field::{Field, FIELDS, OWN_FIELDS};
pub use perm::{class_syscalls, perm_class, OpenFlags, PermClass, PermLists, PERM_LISTS};
pub use record_types::{numbers as record_type, RecordType};
pub use syscall::{
    has_read_only_syscall, read_only_syscall_name, read_only_syscall_number, syscall_name,
    syscall_number, syscalls, twin_of_x32, x32_twins, X32_BIT,
};
pub use uring::{
    uring_op_calls, uring_op_is_audited, uring_op_name, uring_op_number, uring_opcode, uring_ops,
};
pub use values::{
    file_type_name, file_type_number, fs_type_name, fs_type_number, PERM_ATTR, PERM_EXEC,
    PERM_READ, PERM_WRITE,
};

/// [`RecordType::name`] of a number.
pub fn record_type_name(number: u32) -> Option<&'static str> {
    RecordType(i32::try_from(number).ok()?).name()
}

/// Number of [`RecordType::from_name`].
pub fn record_type_number(name: &str) -> Option<u32> {
    RecordType::from_name(name.as_bytes()).map(|kind| kind.0 as u32)
}

/// [`RecordType::all`], by number.
pub fn record_type_names() -> impl Iterator<Item = (u32, &'static str)> {
    RecordType::all().map(|(kind, name)| (kind.0 as u32, name))
}

/// Looks `number` up in a table sorted by number.
fn by_number(table: &'static [(u32, &'static str)], number: u32) -> Option<&'static str> {
    // Without gaps before it, a number is its own place.
    let own = table.get(number as usize).filter(|row| row.0 == number);
    let row = own.or_else(|| {
        let place = table.binary_search_by_key(&number, |row| row.0);
        place.ok().map(|place| &table[place])
    });
    row.map(|row| row.1)
}

/// Looks `name` up in a table sorted by name.
fn by_name(table: &'static [(&'static str, u32)], name: &str) -> Option<u32> {
    table
        .binary_search_by_key(&name, |row| row.0)
        .ok()
        .map(|index| table[index].1)
}

/// The number of `name` in the first table that has it. Only for constants: the build fails if no
/// table has it.
const fn number_in(tables: &[&[(u32, &str)]], name: &str) -> i32 {
    let mut table = 0;
    while table < tables.len() {
        let mut row = 0;
        while row < tables[table].len() {
            if is_same(tables[table][row].1, name) {
                return tables[table][row].0 as i32;
            }
            row += 1;
        }
        table += 1;
    }

    panic!("no table has this name")
}

/// `==` of two strings, in a constant.
const fn is_same(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    if one.len() != other.len() {
        return false;
    }

    let mut at = 0;
    while at < one.len() {
        if one[at] != other[at] {
            return false;
        }
        at += 1;
    }
    true
}
