//! Items of the calls that change two names: rename, link and symlink.

use super::arg::Arg;
use super::calls::{call, LookupOutcome};
use super::items::Items;
use super::kernel::Kernel;
use super::{found, objects, reached, refused};
use abi::exit::{EACCES, EINVAL, ENOENT, EPERM};
use plan::{NameUse, PathArg};
use record::record::{Inode, NameType};
use record::wire::{self, Event};

const RENAME_NOREPLACE: u64 = 1;
const RENAME_EXCHANGE: u64 = 2;
const RENAME_WHITEOUT: u64 = 4;

/// Whether the call has exchanged two entries, and may have moved a symbolic link that led to one of them, so that the
/// name leads elsewhere since: nothing shows where it led.
pub(crate) fn has_moved_its_way(event: &Event<'_>) -> bool {
    let is_exchange = event.exit() == Some(0) && rename_flags(event) & RENAME_EXCHANGE != 0;
    let is_direct = |index| {
        let found = event.found(index);
        found.is_some_and(|found| found.known & wire::TARSIER_FOUND_DIRECT != 0)
    };
    is_exchange && event.objects().next().is_none() && !(is_direct(0) && is_direct(1))
}

/// The flags of renameat2(2).
fn rename_flags(event: &Event<'_>) -> u64 {
    let argument = usize::from(call(event).rename_flags);
    let flags = event.header().args.get(argument).copied();
    flags.unwrap_or(0) & u64::from(u32::MAX)
}

/// Whether renameat2(2) refuses these flags before it looks at the names: do_renameat2(), fs/namei.c.
fn are_refused(flags: u64) -> bool {
    let alone = RENAME_NOREPLACE | RENAME_WHITEOUT;
    flags & !(alone | RENAME_EXCHANGE) != 0 || flags & RENAME_EXCHANGE != 0 && flags & alone != 0
}

/// Adds the items of a rename from `old` to `new`.
pub(super) fn rename(
    items: &mut Items,
    kernel: Kernel,
    event: &Event<'_>,
    old: Option<Arg<'_>>,
    new: Option<Arg<'_>>,
) {
    let (old, new) = match (old, new) {
        (Some(old), Some(new)) => (old, new),
        // One is no name: the kernel looks for the directory of the old one first.
        (Some(old), None) => return items.parent(&old),
        (None, Some(new)) => return items.item(&new, NameType::Unknown, None),
        (None, None) => return,
    };

    let (first, second) = if kernel.last_name_first {
        (&new, &old)
    } else {
        (&old, &new)
    };

    let flags = rename_flags(event);
    let is_refused = event.exit() == Some(EINVAL) && are_refused(flags);

    // The directory of the old name is looked up before that of the new one.
    let is_lost = is_refused || old.is_barred || new.failed && !items.reaches_directory(&old);
    for arg in [first, second] {
        if is_refused || is_lost && arg.index == 1 {
            items.item(arg, NameType::Unknown, None);
        } else {
            items.parent(arg);
        }
    }

    let exchanges = flags & RENAME_EXCHANGE != 0;
    if let Some(moved) = objects::entry(event, wire::TARSIER_OBJECT_DELETE, 0) {
        return renamed_objects(items, event, &old, &new, moved, exchanges);
    }
    if event.exit() != Some(0) {
        return refused::rename(items, event, &old, &new);
    }

    let moved = items.view.inode(&new.path, false);
    let left = items.view.inode(&old.path, false);
    if !exchanges && moved.is_some() && moved == left {
        // Both are names of the same object: rename(2) does nothing.
        return;
    }

    items.item(&old, NameType::Delete, moved);
    if exchanges {
        items.item(&new, NameType::Delete, left);
        items.item(&new, NameType::Create, moved);
        items.item(&old, NameType::Create, left);
    } else {
        if let Some(replaced) = found::entry_before(event, 1) {
            items.item(&new, NameType::Delete, Some(replaced));
        }
        items.item(&new, NameType::Create, moved);
    }
}

/// Items of a rename that reached both entries: `vfs_rename()`, fs/namei.c.
fn renamed_objects(
    items: &mut Items,
    event: &Event<'_>,
    old: &Arg<'_>,
    new: &Arg<'_>,
    moved: Option<Inode>,
    exchanges: bool,
) {
    const REFUSED: [i64; 2] = [EPERM, EACCES];
    let replaced = objects::entry(event, wire::TARSIER_OBJECT_DELETE, 1);
    let done = event.exit() == Some(0);
    let same = |other: Option<Inode>| {
        moved.map(|inode| (inode.dev, inode.ino)) == other.map(|inode| (inode.dev, inode.ino))
    };

    if replaced.is_some_and(same) {
        // Both are names of the same object: rename(2) does nothing.
        return;
    }

    items.item(old, NameType::Delete, moved);
    if !done && event.exit().is_some_and(|exit| REFUSED.contains(&exit)) {
        return;
    }

    match replaced {
        Some(replaced) => items.item(new, NameType::Delete, replaced),
        None if !done => items.item(new, NameType::Create, None),
        None => {}
    }

    if done {
        items.item(new, NameType::Create, moved);
        if exchanges {
            items.item(old, NameType::Create, replaced.flatten());
        }
    }
}

/// Adds the items of a link to `old`, an object or, for a symbolic link, a text, at `new`.
pub(super) fn link(
    items: &mut Items,
    kernel: Kernel,
    event: &Event<'_>,
    old_arg: PathArg,
    old: Option<Arg<'_>>,
    new: Option<Arg<'_>>,
) {
    let last_first = kernel.last_name_first;
    let is_lost = match &old {
        Some(old) if old.is_barred => true,
        _ if event.exit() != Some(ENOENT) => false,
        Some(old) => leads_nowhere(items, event, old_arg, old),
        None => event.path(0).is_some_and(|text| text.data.is_empty()),
    };

    let parent = |items: &mut Items, new: &Arg<'_>| {
        if is_lost {
            // What the link is to lead to is looked up first.
            items.item(new, NameType::Unknown, None)
        } else {
            items.parent(new)
        }
    };

    if let (true, Some(new)) = (last_first, &new) {
        parent(items, new);
    }

    if let Some(old) = old {
        link_source(items, event, old_arg, old);
    }

    if let (false, Some(new)) = (last_first, &new) {
        parent(items, new);
    }

    let made = objects::entry(event, wire::TARSIER_OBJECT_CREATE, 1);
    if let (Some(new), Some(inode)) = (&new, made) {
        if event.exit().is_some_and(|exit| exit < 0) {
            items.not_made(new)
        } else {
            items.item(new, NameType::Create, inode)
        }
    } else if let (Some(new), Some(0)) = (&new, event.exit()) {
        let inode = items.view.made(&new.path);
        items.item(new, NameType::Create, inode);
    } else if let Some(new) = new.filter(|new| refused::has_tried_to_make(event, new)) {
        items.not_made(&new);
    }
}

/// Whether there is nothing that a hard link could lead to.
fn leads_nowhere(items: &mut Items, event: &Event<'_>, old_arg: PathArg, old: &Arg<'_>) -> bool {
    let is_noted = event.object(wire::TARSIER_OBJECT_TARGET, 0).is_some();
    let is_symbolic = old_arg.use_ == NameUse::SymlinkTarget;
    let follow = old_arg.follow.by(&event.header().args);
    !is_noted
        && !is_symbolic
        && !old.text.is_empty()
        && items.view.inode(&old.path, follow).is_none()
}

/// Item of what a link leads to: an object, or the text of a symbolic link.
fn link_source(items: &mut Items, event: &Event<'_>, old_arg: PathArg, old: Arg<'_>) {
    if old_arg.use_ == NameUse::SymlinkTarget {
        items.named(&old);
    } else if event.object(wire::TARSIER_OBJECT_TARGET, 0).is_some() {
        reached::by_path(items, event, old_arg, old);
    } else {
        // ENOENT may be about the new name.
        let told = match LookupOutcome::by(event) {
            LookupOutcome::Missing => LookupOutcome::Nothing,
            told => told,
        };
        items.looked_up(&old, old_arg.follow.by(&event.header().args), told);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resolve::directories::Directories;
    use crate::resolve::view::View;
    use crate::static_system::{StaticFile, StaticSystem};
    use crate::test_frame::TestFrame;
    use std::sync::Arc;

    /// Roles and inode numbers of the items that a rename of `/a` to `/b` gave, if these files are there afterwards and no
    /// hook has noted anything.
    fn renamed(
        files: &[(&'static str, u64)],
        flags: u64,
        exit: i64,
    ) -> Vec<(NameType, Option<u64>)> {
        let mut system = StaticSystem::default();
        for (path, ino) in [("/proc/self/ns/mnt", 9), ("/", 1)].iter().chain(files) {
            let mut file = StaticFile::default();
            (file.inode.ino, file.inode.mode) = (*ino, 0o040755);
            system.files.insert(path, file);
        }
        let kernel = Kernel::of(&system);
        let mut view = View::new(Arc::new(system));
        view.set(9, 42, b"");
        let mut items = Items::new(view);
        let directories = Directories {
            cwd: b"/".to_vec(),
            ..Directories::default()
        };
        let mut frame = TestFrame::of_named_call("renameat2");
        (frame.header.args[4], frame.header.exit) = (flags, exit);
        let frame = frame.bytes();
        let event = Event::parse(&frame).expect("a frame");
        let arg = |text| Some(Arg::of_kernel(&directories, text, exit != 0));
        rename(&mut items, kernel, &event, arg(b"/a"), arg(b"/b"));
        let items = items.list().iter();
        items
            .map(|item| (item.nametype, item.inode.map(|inode| inode.ino)))
            .collect()
    }

    const PARENTS: [(NameType, Option<u64>); 2] =
        [(NameType::Parent, Some(1)), (NameType::Parent, Some(1))];

    #[test]
    fn a_rename_deletes_one_entry_and_creates_the_other() {
        let moved = [(NameType::Delete, Some(5)), (NameType::Create, Some(5))];
        assert_eq!(
            renamed(&[("/b", 5)], 0, 0),
            [PARENTS, moved].concat(),
            "moved"
        );
        assert_eq!(renamed(&[("/a", 5)], 0, -1), PARENTS, "refused");
    }

    #[test]
    fn a_rename_to_another_name_of_the_same_object_does_nothing() {
        assert_eq!(renamed(&[("/a", 5), ("/b", 5)], 0, 0), PARENTS);
    }

    #[test]
    fn an_exchange_has_both_objects_twice() {
        let exchanged = [
            (NameType::Delete, Some(5)),
            (NameType::Delete, Some(6)),
            (NameType::Create, Some(5)),
            (NameType::Create, Some(6)),
        ];
        let items = renamed(&[("/a", 6), ("/b", 5)], RENAME_EXCHANGE, 0);
        assert_eq!(items, [&PARENTS[..], &exchanged].concat());
    }
}
