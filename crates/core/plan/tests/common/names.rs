//! Random names and executables of calls.

use super::{directory, parent, IDS, NAMES, OBJECTS, PATHS};
use plan::{Executable, Inode, Name, ObjectId, Proven};
use proptest::prelude::*;
use proptest::sample::select;

pub(super) fn proof() -> impl Strategy<Value = Proven> {
    prop_oneof![3 => Just(Proven::InCall), 1 => Just(Proven::AtEnd), 1 => Just(Proven::Later)]
}

/// The objects of the directories above the names that the call used.
pub(super) fn above(names: &[Name]) -> Vec<ObjectId> {
    let mut objects = Vec::new();
    for name in names.iter().filter(|name| name.inode.is_some()) {
        let mut path = std::str::from_utf8(&name.path).unwrap_or_default();
        while let (Some(dir), true) = (parent(path), path != "/") {
            objects.extend(directory(dir));
            path = dir;
        }
    }
    objects
}

pub(super) fn name() -> impl Strategy<Value = Name> {
    let inode = (
        select(&OBJECTS[..]),
        select(vec![0o100644u32, 0o040755, 0o020600]),
        select(&IDS[..4]),
        select(&IDS[..4]),
        select(vec![0u32, 0x0080_0001]),
    )
        .prop_map(|(id, mode, uid, gid, rdev)| Inode {
            id,
            mode,
            uid,
            gid,
            rdev,
        });
    (
        select(&NAMES[..]),
        prop::option::weighted(0.7, inode),
        any::<bool>(),
        proof(),
        proof(),
    )
        .prop_map(|(path, inode, existed, object, place)| Name {
            path: path.into(),
            inode,
            existed,
            is_unknown: false,
            is_owner_changed: false,
            is_path_moot: false,
            directory: None,
            is_possible: false,
            object,
            place,
        })
}

/// An executable in its place, or one that seems to be at another path of the rules or at none.
pub(super) fn executable() -> impl Strategy<Value = Executable<'static>> {
    let at = prop_oneof![
        3 => Just(None),
        2 => select(&PATHS[..]).prop_map(|path| Some(path.as_bytes())),
        1 => Just(Some(&b""[..])),
    ];
    (prop::option::of(select(&OBJECTS[..])), at).prop_map(|(object, at)| Executable { object, at })
}
