//! What path arguments led to, as the programs found it in the kernel's cache of names when the call was over.

use super::arg::Arg;
use super::calls::{call, mounts_on_first, mounts_on_second, moves_directory};
use super::items::is_link;
use super::text;
use super::view::View;
use abi::exit::{EACCES, ENOENT};
use abi::{NewDirectory, Verb};
use plan::NameUse;
use record::record::Inode;
use record::wire::{self, tarsier_found, tarsier_inode, Event};

/// Tells `view` what the paths of `args` led to. A path that is relative to a directory which the call itself changed
/// was looked up from another one, and is left out.
pub(super) fn tell(view: &mut View, event: &Event<'_>, args: [&Option<Arg<'_>>; 2]) {
    if let (Some(arg), true) = (args[0].as_ref(), moves_directory(event)) {
        // The new directory is the current one.
        if let (Some(NewDirectory::Current), Some(inode)) = (call(event).moves, event.cwd_inode()) {
            view.know(&arg.path, true, Inode::from_wire(&inode));
        }
    }

    for arg in args.into_iter().flatten() {
        // The text that the kernel read, if that is known, may be another one.
        let is_same = event
            .path(arg.index)
            .is_some_and(|path| path.data == arg.text);
        let is_relative = arg.text.first() != Some(&b'/');
        let is_root = call(event).moves != Some(NewDirectory::Current);
        let is_moved = moves_directory(event) && (is_relative || is_root);
        if is_same && !is_moved {
            let found = event.found(arg.index);
            tell_before(view, event, arg, found.as_ref());
            if let Some(found) = found {
                tell_one(view, event, arg, &found);
            }
        }
    }
}

/// Tells `view` what `arg` led to, a path that is no argument of the call: in a socket address, in options, or the source
/// of a file system.
pub(super) fn tell_inner(view: &mut View, event: &Event<'_>, arg: &Arg<'_>) {
    if let Some(found) = event.found(arg.index) {
        tell_one(view, event, arg, &found);
    }
}

/// Whether the kernel refused to follow the symbolic link at the end of a path: may_follow_link(), fs/namei.c, where
/// `fs.protected_symlinks` is set.
fn refuses_link(event: &Event<'_>, found: &tarsier_found) -> bool {
    const STICKY_AND_WRITABLE: u32 = 0o1002;
    const BOTH: u32 = wire::TARSIER_FOUND_PARENT | wire::TARSIER_FOUND_ENTRY;
    let (dir, link) = (&found.parent, &found.entry);
    event.exit() == Some(EACCES)
        && found.known & BOTH == BOTH
        && Inode::from_wire(link).is_some_and(is_link)
        && dir.mode & STICKY_AND_WRITABLE == STICKY_AND_WRITABLE
        && link.uid != event.header().fsuid
        && link.uid != dir.uid
}

/// What the last name of path argument `index` stood for when the call began, if that is known.
pub(super) fn entry_before(event: &Event<'_>, index: u8) -> Option<Inode> {
    let before = event.before(index)?;
    let is_known = before.known & wire::TARSIER_FOUND_ENTRY != 0;
    if is_known {
        Inode::from_wire(&before.entry)
    } else {
        None
    }
}

/// The object of the call's descriptor as it was when the call began; `now` is that object when the call was over.
pub(super) fn descriptor_before(event: &Event<'_>, now: Option<Inode>) -> Option<Inode> {
    let before = event
        .before(0)
        .and_then(|before| Inode::from_wire(&before.target));
    before.filter(|before| is_same(Some(*before), now)).or(now)
}

fn is_same(one: Option<Inode>, other: Option<Inode>) -> bool {
    let id = |inode: Inode| (inode.dev, inode.ino);
    one.map(id) == other.map(id)
}

/// Tells what a path led to when a call began that has changed that object, or has unmounted it.
fn tell_before(view: &mut View, event: &Event<'_>, arg: &Arg<'_>, after: Option<&tarsier_found>) {
    let Some(before) = event.before(arg.index) else {
        return;
    };

    if event.has_flag(wire::TARSIER_URING) {
        tell_submitted(view, arg, &before);
    }

    let is_gone = call(event).verb == Some(Verb::Unmount);
    let of = [
        (wire::TARSIER_FOUND_TARGET, true),
        (wire::TARSIER_FOUND_ENTRY, false),
    ];

    for (what, follow) in of {
        let inode = |found: &tarsier_found| {
            let inode = if follow { &found.target } else { &found.entry };
            if found.known & what != 0 {
                Inode::from_wire(inode)
            } else {
                None
            }
        };
        let (was, is) = (inode(&before), after.and_then(inode));
        let is_it = is_gone || is_covered(event, arg) || is.is_none() || is_same(was, is);
        if was.is_some() && is_it && !changes_entries(arg) {
            view.know(&arg.path, follow, was);
        }
    }
}

/// Tells what a path of an io_uring operation led to when that was submitted: nothing later is known.
fn tell_submitted(view: &mut View, arg: &Arg<'_>, found: &tarsier_found) {
    if found.known & wire::TARSIER_FOUND_PARENT != 0 {
        let parent = Inode::from_wire(&found.parent);
        view.know(&arg.directory(), true, parent);
    }
    if found.known & wire::TARSIER_FOUND_DIRECT != 0 {
        view.know_direct(&arg.directory());
    }
}

/// Whether the call makes, removes or renames the entry that the path names.
fn changes_entries(arg: &Arg<'_>) -> bool {
    matches!(
        arg.use_,
        NameUse::Create | NameUse::Delete | NameUse::Rename
    )
}

/// Whether the call has mounted something on what the path led to.
fn is_covered(event: &Event<'_>, arg: &Arg<'_>) -> bool {
    match arg.index {
        0 => mounts_on_first(event),
        _ => mounts_on_second(event),
    }
}

fn tell_one(view: &mut View, event: &Event<'_>, arg: &Arg<'_>, found: &tarsier_found) {
    let known = |what| found.known & what != 0;
    let inode = |of: &tarsier_inode| Inode::from_wire(of);
    if known(wire::TARSIER_FOUND_PARENT) {
        view.know(&arg.directory(), true, inode(&found.parent));
    }

    if known(wire::TARSIER_FOUND_DIRECT) {
        view.know_direct(&arg.directory());
    }

    // The root directory, and `.`, are directories of their own names.
    let is_own = matches!(text::last_component(arg.text), b"" | b".") && !arg.text.is_empty();
    if is_own && known(wire::TARSIER_FOUND_TARGET) {
        view.know(&arg.directory(), true, inode(&found.target));
    }

    if known(wire::TARSIER_FOUND_ABOVE) {
        view.know_above(&arg.path);
    }

    // After another error, the way was there, and may be gone since.
    if known(wire::TARSIER_FOUND_MISSING) && event.exit() == Some(ENOENT) {
        view.know(&arg.directory(), true, None);
        view.know(&arg.path, false, None);
        view.know(&arg.path, true, None);
    }

    // A rename that leaves the old name as it is has looked both names up, so that they are in the cache.
    let is_renamed = arg.use_ == NameUse::Rename && arg.index == 0 && event.exit() == Some(0);
    let is_gone = is_renamed && known(wire::TARSIER_FOUND_NOT_CACHED);
    if known(wire::TARSIER_FOUND_NO_ENTRY) || is_gone {
        view.know(&arg.path, false, None);
        view.know(&arg.path, true, None);
    }

    if refuses_link(event, found) {
        // The kernel stops at the link, and that is what it records.
        view.know(&arg.path, true, inode(&found.entry));
    }

    let is_link = known(wire::TARSIER_FOUND_ENTRY) && inode(&found.entry).is_some_and(is_link);
    if is_covered(event, arg) && known(wire::TARSIER_FOUND_COVERED) && !is_link {
        view.know(&arg.path, true, inode(&found.covered));
        return;
    }

    if known(wire::TARSIER_FOUND_ENTRY) {
        // Calls that change entries do not go to what is mounted on them.
        let entry = if changes_entries(arg) && known(wire::TARSIER_FOUND_COVERED) {
            &found.covered
        } else {
            &found.entry
        };
        view.know(&arg.path, false, inode(entry));
    }

    if known(wire::TARSIER_FOUND_TARGET) {
        view.know(&arg.path, true, inode(&found.target));
    }
}

#[cfg(test)]
mod tests {
    use crate::resolve::{Item, Resolver};
    use crate::static_system::{StaticFile, StaticSystem};
    use crate::test_frame::TestFrame;
    use abi::exit::{EACCES, ENOTEMPTY, EROFS};
    use record::record::NameType;
    use record::wire::{self, tarsier_found, tarsier_inode, Event};
    use std::sync::Arc;
    use zerocopy::IntoBytes;

    fn inode(ino: u64, mode: u32) -> tarsier_inode {
        tarsier_inode {
            ino,
            mode,
            valid: 1,
            ..tarsier_inode::default()
        }
    }

    /// A path in directory 1 that leads to 3, by the link 2; the last mount there is on 4.
    fn found(known: u32) -> Vec<u8> {
        with_entry(known, inode(2, 0o120777))
    }

    fn with_entry(known: u32, entry: tarsier_inode) -> Vec<u8> {
        let found = tarsier_found {
            known,
            parent: inode(1, 0o040755),
            entry,
            target: inode(3, 0o100644),
            covered: inode(4, 0o040755),
            ..tarsier_found::default()
        };
        found.as_bytes().to_vec()
    }

    /// Role and inode number of the items of a call on `path`, made in `/`, on a system where there is nothing.
    fn items(call: &str, exit: i64, path: &str, found: &[u8]) -> Vec<(NameType, Option<u64>)> {
        let mut frame = TestFrame::of_named_call(call);
        frame.header.exit = exit;
        resolved(
            frame.part(wire::TARSIER_PART_PATH, 0, path.as_bytes()),
            call,
            found,
        )
    }

    fn resolved(frame: TestFrame, call: &str, found: &[u8]) -> Vec<(NameType, Option<u64>)> {
        let of = |item: &Item| (item.nametype, item.inode.map(|inode| inode.ino));
        resolved_items(frame, call, found).iter().map(of).collect()
    }

    fn resolved_items(frame: TestFrame, call: &str, found: &[u8]) -> Vec<Item> {
        let frame = frame
            .part(wire::TARSIER_PART_CWD, 0, b"")
            .part(wire::TARSIER_PART_FOUND, 0, found)
            .bytes();
        let event = Event::parse(&frame).expect("a frame");
        let system: Arc<dyn crate::System> = Arc::new(StaticSystem::default());
        let mut resolver = Resolver::new(&system);
        resolver.resolve(&event, &abi::call(call).shape);
        resolver.items().to_vec()
    }

    const PARENT: u32 = wire::TARSIER_FOUND_PARENT;
    const ENTRY: u32 = wire::TARSIER_FOUND_ENTRY;
    const TARGET: u32 = wire::TARSIER_FOUND_TARGET;
    const COVERED: u32 = wire::TARSIER_FOUND_COVERED;

    #[test]
    fn what_was_found_needs_no_look_up() {
        let all = found(PARENT | ENTRY | TARGET);
        let made = [(NameType::Parent, Some(1)), (NameType::Create, Some(2))];
        assert_eq!(items("mkdir", 0, "/d/x", &all), made);
        assert_eq!(
            items("chmod", 0, "/d/x", &all),
            [(NameType::Normal, Some(3))]
        );
        assert_eq!(
            items("lchown", 0, "/d/x", &all),
            [(NameType::Normal, Some(2))]
        );
    }

    #[test]
    fn what_was_not_found_is_not_used() {
        let made = [(NameType::Parent, Some(1)), (NameType::Create, None)];
        assert_eq!(items("mkdir", 0, "/d/x", &found(PARENT)), made);
        assert_eq!(
            items("chmod", 0, "/d/x", &found(ENTRY)),
            [(NameType::Unknown, None)]
        );
    }

    /// The paths by which rules are matched of a chmod of `path`, on a system where `/d` and `/d/x` are links.
    fn matched(path: &str, known: u32) -> Vec<String> {
        let link = |to| StaticFile {
            real_path: Some(to),
            ..StaticFile::default()
        };
        let system = StaticSystem {
            files: [("/d", link("/real")), ("/d/x", link("/real/x"))].into(),
            ..StaticSystem::default()
        };
        let system: Arc<dyn crate::System> = Arc::new(system);
        let mut resolver = Resolver::new(&system);
        let frame = TestFrame::of_named_call("chmod")
            .part(wire::TARSIER_PART_PATH, 0, path.as_bytes())
            .part(wire::TARSIER_PART_CWD, 0, b"")
            .part(wire::TARSIER_PART_FOUND, 0, &plain(known))
            .bytes();
        let event = Event::parse(&frame).expect("a frame");
        let shape = abi::call("chmod").shape;
        resolver.resolve(&event, &shape);
        let names = resolver.names(&event, &shape);
        let text = |name: &plan::Name| String::from_utf8_lossy(&name.path).into_owned();
        names.iter().map(text).collect()
    }

    /// As [`found`], of a path without links.
    fn plain(known: u32) -> Vec<u8> {
        with_entry(known, inode(3, 0o100644))
    }

    #[test]
    fn links_are_looked_up_unless_none_led_to_the_object() {
        const DIRECT: u32 = wire::TARSIER_FOUND_DIRECT;
        let all = PARENT | ENTRY | TARGET;
        assert_eq!(matched("/d/x", all | DIRECT), ["/d/x"]);
        assert_eq!(matched("/d/x", all), ["/real/x"]);
        // The entry may be a link.
        assert_eq!(matched("/d/x", TARGET | DIRECT), ["/d/x", "/real/x"]);
    }

    #[test]
    fn an_entry_that_is_left_by_a_refused_removal_is_shown() {
        let all = found(PARENT | ENTRY);
        let left = [(NameType::Parent, Some(1)), (NameType::Delete, Some(2))];
        assert_eq!(items("rmdir", ENOTEMPTY, "/d/x", &all), left);
        // The directory may have refused the search.
        assert_eq!(items("rmdir", EACCES, "/d/x", &all), left[..1]);
        const SEARCHABLE: u32 = wire::TARSIER_FOUND_SEARCHABLE;
        let may = found(PARENT | ENTRY | SEARCHABLE);
        assert_eq!(items("rmdir", EACCES, "/d/x", &may), left);
        let not_made = [(NameType::Parent, Some(1)), (NameType::Create, None)];
        let none = found(PARENT | SEARCHABLE | wire::TARSIER_FOUND_NO_ENTRY);
        assert_eq!(items("mkdir", EACCES, "/d/x", &none), not_made);
        assert_eq!(items("mkdir", EROFS, "/d/x", &none), not_made[..1]);
    }

    /// [`items`] of a successful call, with what the path led to before: an entry and an object of these numbers.
    fn items_before(
        call: &str,
        entry: u64,
        target: u64,
        after: u32,
    ) -> Vec<(NameType, Option<u64>, u16)> {
        let before = tarsier_found {
            known: ENTRY | TARGET,
            entry: inode(entry, 0o100600),
            target: inode(target, 0o100600),
            ..tarsier_found::default()
        };
        let frame = TestFrame::of_named_call(call)
            .part(wire::TARSIER_PART_PATH, 0, b"/d/x")
            .flagged(
                wire::TARSIER_PART_FOUND,
                (0, wire::TARSIER_PART_BEFORE),
                before.as_bytes(),
            );
        let items = resolved_items(frame, call, &found(after));
        let of = |item: &Item| {
            let inode = item.inode;
            (
                item.nametype,
                inode.map(|i| i.ino),
                inode.map_or(0, |i| i.mode),
            )
        };
        items.iter().map(of).collect()
    }

    #[test]
    fn what_a_call_removed_or_changed_is_shown_as_it_was() {
        let removed = items_before("unlink", 7, 7, PARENT);
        assert_eq!(removed[1], (NameType::Delete, Some(7), 0o100600));
        let changed = items_before("chmod", 3, 3, TARGET);
        assert_eq!(changed, [(NameType::Normal, Some(3), 0o100600)]);
        let unmounted = items_before("umount2", 9, 9, TARGET);
        assert_eq!(unmounted, [(NameType::Normal, Some(9), 0o100600)]);
        // Another object has taken the place of the one that was there.
        let replaced = items_before("chmod", 8, 8, TARGET);
        assert_eq!(replaced, [(NameType::Normal, Some(3), 0o100644)]);
    }

    #[test]
    fn a_mount_is_on_what_it_covers() {
        let on_directory = found(COVERED | TARGET);
        assert_eq!(
            items("mount", 0, "/d", &on_directory),
            [(NameType::Normal, Some(4))]
        );
        let refused = items("mount", -19, "/d", &on_directory);
        assert_eq!(refused, [(NameType::Normal, Some(3))]);
    }

    #[test]
    fn what_another_text_led_to_is_not_used() {
        let none = tarsier_inode::default();
        let name = [
            none.as_bytes(),
            wire::TARSIER_OBJECT_NAME.as_bytes(),
            4_u32.as_bytes(),
            b"/d/y",
        ];
        let read = TestFrame::of_named_call("chmod")
            .part(wire::TARSIER_PART_OBJECT, 0, &name.concat())
            .part(wire::TARSIER_PART_PATH, 0, b"/d/x");
        assert_eq!(
            resolved(read, "chmod", &found(TARGET)),
            [(NameType::Unknown, None)]
        );
    }
}
