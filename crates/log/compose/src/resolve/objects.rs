//! Objects that the hooks on kernel functions noted for a call: see `object_hooks.bpf.inc.c` of the programs.

use abi::exit::{EACCES, EFAULT, EINVAL, ELOOP, ENAMETOOLONG, ENOENT, ENOTDIR};
use record::record::Inode;
use record::wire::{
    self, walked_path, DirPart, Event, ObjectPart, TARSIER_OBJECT_PARENT,
    TARSIER_OBJECT_PARENT_PATH,
};

/// Inode of `object` and its absolute path as the task sees it; the path is empty if it is not known in full.
pub(super) fn place(object: &ObjectPart<'_>) -> (Option<Inode>, Vec<u8>) {
    let mut path = Vec::new();
    if !object.is_incomplete() {
        let deleted = wire::TARSIER_PART_DELETED as u8;
        walked_path(object.walk, object.flags & !deleted, &mut path);
    }
    (Inode::from_wire(&object.inode), path)
}

/// `opened` with a path. Before a rule selects the call, the hooks note no path; it is then that of `file`, which the
/// descriptor stood for when the call returned, if this is the same file. Otherwise the object is marked UNREADABLE.
pub(super) fn with_path<'a>(opened: ObjectPart<'a>, file: Option<DirPart<'a>>) -> ObjectPart<'a> {
    let id = |inode: &wire::tarsier_inode| Inode::from_wire(inode).map(|i| (i.dev, i.ino));
    if !opened.walk.is_empty() {
        return opened;
    }

    match file.filter(|file| id(&file.inode).is_some() && id(&file.inode) == id(&opened.inode)) {
        Some(file) => ObjectPart {
            walk: file.walk,
            flags: opened.flags | file.flags,
            ..opened
        },
        None => ObjectPart {
            flags: opened.flags | wire::TARSIER_PART_UNREADABLE as u8,
            ..opened
        },
    }
}

/// Whether `path` ends with the noted part of an object's path that was too long to be noted in full. That part holds
/// the deepest directories, some thousand bytes.
pub(super) fn ends_so(object: &ObjectPart<'_>, path: &[u8]) -> bool {
    let mut end = Vec::new();
    walked_path(object.walk, 0, &mut end);
    let is_cut = u32::from(object.flags) & wire::TARSIER_PART_CUT != 0;
    is_cut && end.len() > 1 && path.ends_with(&end)
}

/// The directory that holds the last name of path argument `index`, as the kernel found it.
pub(super) fn parent(event: &Event<'_>, index: u8) -> (Option<Inode>, Vec<u8>) {
    let with_path = event.object(TARSIER_OBJECT_PARENT_PATH, index);
    match with_path {
        Some(object) => place(&object),
        None => {
            let object = event.object(TARSIER_OBJECT_PARENT, index);
            let inode = object.and_then(|object| Inode::from_wire(&object.inode));
            (inode, Vec::new())
        }
    }
}

/// Whether a call on directory entries failed before it looked for `text` in its directory: the hooks noted no
/// directory, and the error is one that the way to the directory gives. If `is_renamed`, `text` is the old name of a
/// rename. Its directory is looked up before that of the new name, so errors that may concern the new name do not
/// count.
pub(super) fn is_unreached(event: &Event<'_>, text: &[u8], is_renamed: bool) -> bool {
    let on_the_way = [ENOENT, EACCES, EFAULT, ENOTDIR, EINVAL, ENAMETOOLONG, ELOOP];
    let is_noted = |index| {
        [TARSIER_OBJECT_PARENT, TARSIER_OBJECT_PARENT_PATH]
            .iter()
            .any(|role| event.object(*role, index).is_some())
    };

    // The kernel does not search the directory for these names.
    let is_special = matches!(super::text::last_component(text), b"" | b"." | b"..");
    let is_telling = |exit: i64| on_the_way.contains(&exit) && (!is_renamed || exit == EINVAL);
    event.exit().is_some_and(is_telling) && !is_special && !is_noted(0) && !is_noted(1)
}

/// Inode of the entry that the call removed or created, by role and path argument. The outer `None` means that the call
/// did not get that far, the inner one that the inode is not known.
pub(super) fn entry(
    event: &Event<'_>,
    role: wire::tarsier_object_role,
    index: u8,
) -> Option<Option<Inode>> {
    event
        .object(role, index)
        .map(|object| Inode::from_wire(&object.inode))
}
