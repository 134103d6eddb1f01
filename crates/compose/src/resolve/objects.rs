//! What hooks on the kernel's objects tell of a call: see `bpf/object_hooks.bpf.inc.c`.

use event::record::Inode;
use event::wire::{
    self, walked_path, DirPart, Event, ObjectPart, TARSIER_OBJECT_PARENT,
    TARSIER_OBJECT_PARENT_PATH,
};

/// The object with this role, as `(inode, absolute path in the task's view)`; the path is empty when
/// it is not known in full.
pub(super) fn place(object: &ObjectPart<'_>) -> (Option<Inode>, Vec<u8>) {
    let mut path = Vec::new();
    if !object.is_incomplete() {
        let deleted = wire::TARSIER_PART_DELETED as u8;
        walked_path(object.walk, object.flags & !deleted, &mut path);
    }
    (Inode::from_wire(&object.inode), path)
}

/// What was opened, with the path of the file that the descriptor stood for when the call was over, if that is the
/// same file: its path was not noted before a rule selected the call.
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

/// Whether `path` ends as the path of an object does that was too long to be noted in full. What was
/// noted are the deepest directories, some thousand bytes of them.
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

/// Whether a call on directory entries failed before it looked for `text` in its directory: none was
/// noted, and the error is one that only the way there gives. Of a rename, the way to the old name is gone
/// before that to the new one: that the new one failed says nothing of the old.
pub(super) fn is_unreached(event: &Event<'_>, text: &[u8], is_renamed: bool) -> bool {
    const ENOENT: i64 = -2;
    const EACCES: i64 = -13;
    const EFAULT: i64 = -14;
    const ENOTDIR: i64 = -20;
    const EINVAL: i64 = -22;
    const ENAMETOOLONG: i64 = -36;
    const ELOOP: i64 = -40;
    let on_the_way = [ENOENT, EACCES, EFAULT, ENOTDIR, EINVAL, ENAMETOOLONG, ELOOP];
    let is_noted = |index| {
        [TARSIER_OBJECT_PARENT, TARSIER_OBJECT_PARENT_PATH]
            .iter()
            .any(|role| event.object(*role, index).is_some())
    };
    // The kernel does not look for these in the directory.
    let is_special = matches!(super::text::last_component(text), b"" | b"." | b"..");
    let is_telling = |exit: i64| on_the_way.contains(&exit) && (!is_renamed || exit == EINVAL);
    event.exit().is_some_and(is_telling) && !is_special && !is_noted(0) && !is_noted(1)
}

/// Inode of the entry that the call removed from or made in that directory; outer `None`: the call
/// did not get as far.
pub(super) fn entry(
    event: &Event<'_>,
    role: wire::tarsier_object_role,
    index: u8,
) -> Option<Option<Inode>> {
    event
        .object(role, index)
        .map(|object| Inode::from_wire(&object.inode))
}
