//! systemd's units in a path: cg_path_get_unit(), cg_path_get_slice() and cg_path_get_user_unit(),
//! src/basic/cgroup-util.c.

use crate::escape::without_mark;

/// Types of units that have cgroups, except slices (systemd.resource-control(5)).
const TYPES: [&[u8]; 5] = [b".service", b".scope", b".socket", b".mount", b".swap"];

#[derive(Default)]
pub(crate) struct Units<'a> {
    pub(crate) unit: Option<&'a [u8]>,
    pub(crate) slice: Option<&'a [u8]>,
    pub(crate) user_unit: Option<&'a [u8]>,
}

/// Finds the units in the names of a path, outermost first.
pub(crate) fn units<'a>(names: impl Iterator<Item = &'a [u8]>) -> Units<'a> {
    let mut names = names.map(without_mark).peekable();
    let mut units = Units::default();
    while let Some(slice) = names.next_if(|name| is_slice(name)) {
        units.slice = Some(slice);
    }

    units.unit = names.next().filter(|name| is_unit(name));
    if units.unit.is_some_and(is_manager) {
        let in_user = names.find(|name| !is_slice(name));
        // The manager's own processes are in init.scope.
        units.user_unit = in_user.filter(|name| is_unit(name));
    }

    units
}

/// Whether systemd can have a slice of this name (unit_name_is_valid(), src/basic/unit-name.c).
pub fn is_slice(name: &[u8]) -> bool {
    has_type(name, b".slice")
}

/// Whether systemd can have a unit of this name that has a cgroup and is no slice.
pub fn is_unit(name: &[u8]) -> bool {
    TYPES.iter().any(|suffix| has_type(name, suffix))
}

fn has_type(name: &[u8], suffix: &[u8]) -> bool {
    name.strip_suffix(suffix)
        .is_some_and(|stem| !stem.is_empty() && stem.iter().all(is_allowed))
}

/// VALID_CHARS of src/basic/unit-name.c, and `@`.
fn is_allowed(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || b":-_.\\@".contains(byte)
}

/// Whether the unit is the manager of a user.
fn is_manager(name: &[u8]) -> bool {
    let uid = name.strip_prefix(b"user@");
    let uid = uid.and_then(|name| name.strip_suffix(b".service"));
    uid.is_some_and(|uid| !uid.is_empty() && uid.iter().all(u8::is_ascii_digit))
}
