//! Items of calls on entries of directories that the kernel has refused: audit notes an entry before it checks whether
//! the call may remove or make it (`may_delete()` and `may_create()`, fs/namei.c), but after the way to it was found.

use super::arg::Arg;
use super::calls::{call, pins};
use super::items::Items;
use super::{found, text};
use abi::exit::{EACCES, EBUSY, EDQUOT, EISDIR, EMLINK, ENOSPC, ENOTDIR, ENOTEMPTY, EPERM};
use plan::NameUse;
use record::record::{Inode, NameType};
use record::wire::{self, Event};

/// The entry of a call that removes one, if no hook has noted it: its object, if that is known, or the one that is left if
/// the call failed after it had found it.
pub(super) fn left_entry(
    items: &mut Items,
    event: &Event<'_>,
    arg: &Arg<'_>,
) -> Option<Option<Inode>> {
    if !arg.failed {
        return Some(found::entry_before(event, arg.index));
    }

    let is_found = match event.exit()? {
        // Only rmdir(2) gets this far with a '/' behind the name.
        EISDIR | ENOTDIR => !ends_in_slash(arg) || removes_directory(event),
        EPERM | EBUSY | ENOTEMPTY => true,
        EACCES => may_search(event, arg.index),
        _ => false,
    };

    if !is_found || is_special(arg) || arg.is_kernel_text {
        return None;
    }

    items.view.inode(&arg.path, false).map(Some)
}

/// Whether a call that should make the entry `arg` has failed for the entry, not on the way to it.
pub(super) fn has_tried_to_make(event: &Event<'_>, arg: &Arg<'_>) -> bool {
    let is_tried = match event.exit() {
        // What a hard link is to lead to is looked up first.
        Some(EACCES) if makes_link(event) => may_search(event, 0) && may_search(event, 1),
        Some(EACCES) => may_search(event, arg.index),
        // Objects can be pinned in BPF's own file system only: bpf_obj_do_pin(), kernel/bpf/inode.c.
        Some(EPERM) if pins(event) => false,
        Some(EPERM) => !is_refused_before(event),
        Some(ENOSPC | EDQUOT | EMLINK) => true,
        _ => false,
    };

    is_tried && !arg.is_barred && !is_special(arg) && !arg.is_kernel_text
}

/// Whether EPERM may come before the entry is looked at: link(2) to a file of somebody else (`may_linkat()`).
fn is_refused_before(event: &Event<'_>) -> bool {
    const S_IFMT: u32 = 0o170000;
    const S_IFDIR: u32 = 0o040000;
    let header = event.header();
    let source = event.found(0).map(|source| source.entry);
    makes_link(event)
        && source.is_none_or(|source| {
            let is_directory = source.mode & S_IFMT == S_IFDIR;
            !is_directory && source.uid != header.fsuid && header.fsuid != 0
        })
}

/// Whether the call makes a hard link.
fn makes_link(event: &Event<'_>) -> bool {
    let first = call(event).shape.paths[0];
    first.is_some_and(|first| first.use_ == NameUse::LinkSource)
}

/// Adds the items of the entries of a rename that was refused.
pub(super) fn rename(items: &mut Items, event: &Event<'_>, old: &Arg<'_>, new: &Arg<'_>) {
    let is_found = match event.exit() {
        Some(EACCES) => may_search(event, 0) && may_search(event, 1),
        Some(EPERM | EBUSY | EISDIR | ENOTDIR | ENOTEMPTY | EMLINK | ENOSPC | EDQUOT) => true,
        _ => false,
    };
    let is_noted = old.is_kernel_text || new.is_kernel_text;
    if !is_found || is_noted || is_special(old) || is_special(new) {
        return;
    }
    let Some(moved) = items.view.inode(&old.path, false) else {
        return;
    };

    items.item(old, NameType::Delete, Some(moved));
    if is_refused_for_old(event) {
        return;
    }
    match items.view.inode(&new.path, false) {
        Some(replaced) => items.item(new, NameType::Delete, Some(replaced)),
        None => items.not_made(new),
    }
}

/// Whether a rename was refused because of the old name, or may have been, so that the new one was not looked at:
/// `check_sticky()` and the modes of directories.
fn is_refused_for_old(event: &Event<'_>) -> bool {
    const S_ISVTX: u32 = 0o1000;
    let Some(found) = event.found(0) else {
        return true;
    };

    let fsuid = event.header().fsuid;
    match event.exit() {
        Some(EACCES) => found.known & wire::TARSIER_FOUND_WRITABLE == 0,
        Some(EPERM) => {
            let is_others = found.entry.uid != fsuid && found.parent.uid != fsuid && fsuid != 0;
            is_others && found.parent.mode & S_ISVTX != 0
        }
        _ => false,
    }
}

/// Whether the modes of the directories on the way let the task get to the directory of path argument `index`.
fn may_search(event: &Event<'_>, index: u8) -> bool {
    let found = event.found(index);
    found.is_some_and(|found| found.known & wire::TARSIER_FOUND_SEARCHABLE != 0)
}

fn is_special(arg: &Arg<'_>) -> bool {
    matches!(text::last_component(arg.text), b"" | b"." | b"..")
}

fn ends_in_slash(arg: &Arg<'_>) -> bool {
    arg.text.last() == Some(&b'/')
}

/// Whether the call is rmdir(2), or does the same.
fn removes_directory(event: &Event<'_>) -> bool {
    call(event).removes_directory.by(&event.header().args)
}
