//! What an event proves about the names of its call.
//!
//! A name leads to an object of a rule, or it is proven to lead elsewhere, or it is not known where it leads. What is
//! looked up after the call proves nothing: whoever made the call can change what the name leads to.

use super::calls::{call, is_refused_at_once, looks_up};
use super::items::Item;
use super::opened::open_flags;
use super::view::View;
use abi::exit::{
    EACCES, EBADF, EBUSY, ECANCELED, EFAULT, EISDIR, ELOOP, EMLINK, ENAMETOOLONG, ENOENT, ENOTDIR,
    ENOTEMPTY, EPERM,
};
use abi::Verb;
use plan::{CallNames, NameUse, PathArg, Proven, Shape, ShapeKind, NONE};
use record::record::{Inode, NameType};
use record::wire::{self, tarsier_found, tarsier_inode, DirPart, Event, ObjectPart};

/// Errors of the way to an object, with which there is none.
const ON_THE_WAY: [i64; 5] = [ENOENT, EBADF, EFAULT, ENAMETOOLONG, ECANCELED];

const O_CREAT: u64 = 0o100;
const O_EXCL: u64 = 0o200;
/// O_NOFOLLOW of open(2): of arm, and of other architectures.
const O_NOFOLLOW: u64 = 0x8000 | 0x20000;
/// O_DIRECTORY of open(2): of arm, and of other architectures.
const O_DIRECTORY: u64 = 0x4000 | 0x10000;

/// The parts of an event that tell what its call used.
pub(super) struct Evidence<'e, 'f> {
    event: &'e Event<'f>,
    shape: &'e Shape,
}

impl<'e, 'f> Evidence<'e, 'f> {
    /// The evidence in `event`, whose call has this shape.
    pub(super) fn of(event: &'e Event<'f>, shape: &'e Shape) -> Evidence<'e, 'f> {
        Evidence { event, shape }
    }

    /// Whether the call used a name of which the event has nothing.
    pub(super) fn lacks_names(&self) -> bool {
        let lacks_file = self.shape.fd != NONE
            && self.event.exit() != Some(EBADF)
            && self.event.file(1).is_none()
            && self.event.objects().next().is_none();
        let lacks_directory = self.shape.names() == CallNames::Always && self.event.cwd().is_none();
        lacks_file || lacks_directory || [0, 1].into_iter().any(|index| self.lacks_parent(index))
    }

    /// Whether a call that found no entry at a path may have found the directory in which it should be: the programs
    /// neither found that, nor that the way there is missing.
    fn lacks_parent(&self, index: usize) -> bool {
        const KNOWN: u32 = wire::TARSIER_FOUND_PARENT | wire::TARSIER_FOUND_MISSING;
        let changes = |path: PathArg| {
            matches!(
                path.use_,
                NameUse::Create | NameUse::Delete | NameUse::Rename
            )
        };

        let path = self.event.path(index as u8);
        let is_empty = path.is_some_and(|path| path.data.is_empty());
        let parts = [
            self.event.found(index as u8),
            self.event.before(index as u8),
        ];

        self.event.exit() == Some(ENOENT)
            && self.shape.paths[index].is_some_and(changes)
            && !is_empty
            && parts.iter().flatten().all(|found| found.known & KNOWN == 0)
    }

    /// Whether an item without an object may have led to one all the same: the call failed with an error that comes after
    /// the way to the object, and nothing tells what was there.
    pub(super) fn may_have_led(&self, item: &Item, view: &View) -> bool {
        let is_nothing = |follow| view.known(&item.path, follow) == Some(None);
        item.inode.or(item.behind).is_none()
            && !item.is_text
            && self.has_failed_at_end(item.name.as_deref().unwrap_or_default())
            && !is_nothing(true)
            && !is_nothing(false)
    }

    /// Whether the call has failed after the way to what `name` leads to.
    fn has_failed_at_end(&self, name: &[u8]) -> bool {
        let Some(error) = self.event.exit().filter(|&exit| exit < 0) else {
            return false;
        };

        let ends_in_slash = name.ends_with(b"/");
        match error {
            ENOTDIR => self.needs_directory(ends_in_slash),
            ELOOP => self.may_stop_at_link(),
            // An open that cannot make a file of such a name: open_last_lookups(), fs/namei.c.
            EISDIR if ends_in_slash => open_flags(self.event, self.shape) & O_CREAT == 0,
            _ => !ON_THE_WAY.contains(&error) && !is_refused_at_once(self.event),
        }
    }

    /// Whether a call that has failed at the end of path argument `index` may have found something there: the programs
    /// neither found that, nor that there is nothing. What is looked up later may be gone by then.
    pub(super) fn may_have_found(&self, index: u8) -> bool {
        const NOTHING: u32 = wire::TARSIER_FOUND_NO_ENTRY | wire::TARSIER_FOUND_MISSING;
        let Some(path) = self.shape.paths[usize::from(index)] else {
            return false;
        };

        let end = match path.use_ {
            NameUse::Open => wire::TARSIER_FOUND_TARGET,
            NameUse::Lookup | NameUse::LinkSource if path.follow.by(&self.event.header().args) => {
                wire::TARSIER_FOUND_TARGET
            }
            NameUse::SymlinkTarget | NameUse::Exec | NameUse::Queue => return false,
            _ => wire::TARSIER_FOUND_ENTRY,
        };
        // A text that is lost, or none, is seen to elsewhere.
        let text = self.event.path(index).map_or(&b""[..], |path| path.data);
        let found = self.event.found(index).map_or(0, |found| found.known);
        !text.is_empty()
            && looks_up(self.event, index)
            && self.has_failed_at_end(text)
            && found & (end | NOTHING) == 0
            && self.event.objects().next().is_none()
    }

    /// Whether the owner of an item's object may be the one that the call gave it: nothing shows the object as it was.
    pub(super) fn is_owner_changed(&self, item: &Item) -> bool {
        let changes = call(self.event).verb == Some(Verb::SetOwner);
        let is_it = |inode: &tarsier_inode| is_same(item.inode, inode);
        self.event.exit() == Some(0)
            && changes
            && !self.event.objects().any(|object| is_it(&object.inode))
            && self.event.before(0).is_none()
    }

    /// Whether the call may have replaced an object by a rename, and nothing shows which one.
    pub(super) fn may_have_replaced(&self) -> bool {
        let is_rename = |path: PathArg| path.use_ == NameUse::Rename;
        self.event.exit() == Some(0)
            && self.shape.paths[1].is_some_and(is_rename)
            && self.is_unseen(1)
    }

    /// Whether the call was refused after the kernel's audit had seen what it should remove, move or replace
    /// (may_delete(), fs/namei.c), and `items` do not have all of it.
    pub(super) fn may_have_found_entries(&self, items: &[Item]) -> bool {
        let removes = |path: &&PathArg| matches!(path.use_, NameUse::Delete | NameUse::Rename);
        let is_entry = |item: &&Item| matches!(item.nametype, NameType::Delete | NameType::Create);
        const REFUSED: [i64; 7] = [EPERM, EACCES, EBUSY, ENOTDIR, EISDIR, EMLINK, ENOTEMPTY];
        let is_refused = self
            .event
            .exit()
            .is_some_and(|exit| REFUSED.contains(&exit));
        let removed = self.shape.paths.iter().flatten().filter(removes).count();
        let is_shown = items.iter().filter(is_entry).count() >= removed;
        is_refused && !is_shown && self.is_unseen(removed - 1)
    }

    /// Whether the call may have found a symbolic link that is not to be followed, and been refused for it.
    fn may_stop_at_link(&self) -> bool {
        let flags = open_flags(self.event, self.shape);
        let is_link_meant = |path: &PathArg| match path.use_ {
            NameUse::Open => flags & O_NOFOLLOW != 0 || flags & O_CREAT != 0 && flags & O_EXCL != 0,
            NameUse::Lookup | NameUse::Exec | NameUse::FileSystemKind => {
                !path.follow.by(&self.event.header().args)
            }
            _ => false,
        };
        self.shape.paths.iter().flatten().any(is_link_meant)
    }

    /// Whether the call has made what the item's name stands for: no rule had that object before. A link has another name
    /// for what it leads to, which is an item of its own.
    fn has_made(&self, item: &Item) -> bool {
        let makes = |path: &PathArg| path.use_ == NameUse::Create;
        item.nametype == NameType::Create
            && self.event.exit() == Some(0)
            && self.shape.paths.iter().flatten().any(makes)
    }

    /// Whether nothing shows what the last name of a path stood for before the call.
    fn is_unseen(&self, index: usize) -> bool {
        self.event.objects().next().is_none() && self.event.before(index as u8).is_none()
    }

    /// Whether the kernel's audit sees what the name leads to before the call is refused for being no directory.
    fn needs_directory(&self, ends_in_slash: bool) -> bool {
        let flags = open_flags(self.event, self.shape);
        let is_of_opened = ends_in_slash || flags & O_DIRECTORY != 0;
        let mut uses = self.shape.paths.iter().flatten().map(|path| path.use_);
        uses.any(|used| match used {
            NameUse::Open => is_of_opened,
            NameUse::Delete | NameUse::Rename => true,
            _ => false,
        })
    }

    /// What proves the object of an item, and its place.
    pub(super) fn proofs(&self, item: &Item, view: &View) -> (Proven, Proven) {
        // Programs and what runs them are looked at when the image is in place. If the call fails, that is never.
        if self.shape.kind == ShapeKind::Exec && self.event.exit() == Some(0) {
            return (Proven::AtEnd, Proven::AtEnd);
        }

        let of_item = item.inode.or(item.behind);
        let is_it = |inode: &tarsier_inode| is_same(of_item, inode);
        let files = [0, 1].map(|index| self.event.file(index));
        let file = files
            .iter()
            .zip(0..)
            .find_map(|(file, index)| Some((index, file.as_ref().filter(|f| is_it(&f.inode))?)));
        if self.event.objects().any(|object| is_it(&object.inode)) {
            let is_whole = match file {
                Some((_, file)) => !file.is_incomplete(),
                None => item.is_real && !self.event.objects().any(|o| is_cut(&o)),
            };
            let place = if is_whole && !self.event.is_above_cut() {
                Proven::InCall
            } else {
                place_of(item, view)
            };
            return (Proven::InCall, place);
        }

        if let Some((index, file)) = file {
            return self.of_file(index, file);
        }
        // Of an entry that the call removed, and that nobody looked at before, only the name can tell.
        let is_removed = item.nametype == NameType::Delete;
        let is_missing = !item.existed && !self.may_have_led(item, view);
        let is_nothing = of_item.is_none() && (is_removed || is_missing || self.has_made(item));
        // What a rename has moved is known by its new name.
        let is_seen = of_item.is_some_and(|inode| view.has_seen(inode));
        let object = if is_nothing || is_seen {
            Proven::AtEnd
        } else {
            Proven::Later
        };
        (object, place_of(item, view))
    }

    /// What proves that the file of a descriptor is the one that the call used, and where it is. `index`: of the part.
    /// If other tasks share the descriptors, one of them could have put another file in its place: then the name that
    /// was opened, or the descriptor as it was before, has to tell the same.
    pub(super) fn of_file(&self, index: u8, file: &DirPart<'_>) -> (Proven, Proven) {
        let inode = Inode::from_wire(&file.inode);
        let is_target = |found: Option<tarsier_inode>| found.is_some_and(|f| is_same(inode, &f));
        let target = |found: Option<tarsier_found>| found.map(|found| found.target);
        let object = match (file.is_unsure(), index) {
            (false, _) => Proven::InCall,
            (true, 0) if file.is_held() => Proven::Later,
            (true, 0) if is_target(target(self.event.found(0))) => Proven::AtEnd,
            (true, 0) if is_target(target(self.event.before(0))) => Proven::AtEnd,
            (true, 0) => Proven::Later,
            (true, _) if is_target(self.event.before(0).map(|found| found.target)) => {
                Proven::InCall
            }
            (true, _) => Proven::Later,
        };

        let place = if file.is_incomplete() || self.event.is_above_cut() {
            Proven::Later
        } else {
            object
        };

        (object, place)
    }
}

/// What proves the place of an item that was found by its name: the directories above it, up to the root of their file
/// system.
fn place_of(item: &Item, view: &View) -> Proven {
    if view.is_above_known(&item.path) {
        Proven::AtEnd
    } else {
        Proven::Later
    }
}

fn is_same(inode: Option<Inode>, other: &tarsier_inode) -> bool {
    let id = |inode: Inode| (inode.dev, inode.ino);
    inode.is_some() && inode.map(id) == Inode::from_wire(other).map(id)
}

/// Whether an object has a path that is not whole.
fn is_cut(object: &ObjectPart<'_>) -> bool {
    object.is_incomplete() && !object.walk.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::static_system::StaticSystem;
    use crate::test_frame::TestFrame;
    use abi::exit::{EACCES, EEXIST, ENOENT};
    use zerocopy::IntoBytes;

    /// Whether a call on the path `/d/x` that fails so may have found something, of which the programs have found this.
    fn may_have_found(call: &str, flags: u64, exit: i64, known: u32) -> bool {
        let found = tarsier_found {
            known,
            ..tarsier_found::default()
        };
        let mut frame = TestFrame::of_named_call(call);
        (frame.header.exit, frame.header.args[1]) = (exit, flags);
        let frame = frame.part(wire::TARSIER_PART_PATH, 0, b"/d/x").part(
            wire::TARSIER_PART_FOUND,
            0,
            found.as_bytes(),
        );
        let bytes = frame.bytes();
        let event = Event::parse(&bytes).expect("a frame");
        Evidence::of(&event, &abi::call(call).shape).may_have_found(0)
    }

    #[test]
    fn a_failed_call_may_have_found_what_nothing_tells_of() {
        const PARENT: u32 = wire::TARSIER_FOUND_PARENT;
        for call in ["creat", "truncate", "chown", "mkdir", "unlink"] {
            assert!(may_have_found(call, 0, EACCES, PARENT), "{call}");
            assert!(!may_have_found(call, 0, ENOENT, PARENT), "{call}");
            let none = PARENT | wire::TARSIER_FOUND_NO_ENTRY;
            assert!(!may_have_found(call, 0, EACCES, none), "{call}");
        }
        let entry = PARENT | wire::TARSIER_FOUND_ENTRY;
        assert!(!may_have_found("unlink", 0, EACCES, entry));
        assert!(may_have_found("chown", 0, EACCES, entry), "it is a link");
        assert!(!may_have_found("lchown", 0, EACCES, entry));
    }

    #[test]
    fn the_text_of_a_symbolic_link_has_led_to_nothing() {
        let view = View::new(std::sync::Arc::new(StaticSystem::default()));
        let mut frame = TestFrame::of_named_call("symlink");
        frame.header.exit = EEXIST;
        let bytes = frame.bytes();
        let event = Event::parse(&bytes).expect("a frame");
        let shape = &abi::call("symlink").shape;
        let may_have_led = |is_text| {
            let item = Item {
                is_text,
                ..Item::default()
            };
            Evidence::of(&event, shape).may_have_led(&item, &view)
        };
        assert_eq!((may_have_led(true), may_have_led(false)), (false, true));
    }

    #[test]
    fn only_calls_that_open_have_flags_of_open() {
        let flags = |call: &str| {
            let bytes = TestFrame::of_named_call(call).bytes();
            let event = Event::parse(&bytes).expect("a frame");
            open_flags(&event, &abi::call(call).shape)
        };
        assert_eq!((flags("creat"), flags("truncate")), (O_CREAT, 0));
    }
}
