//! The names by which rules are matched: those of the items, and what the call is known to have reached.

use super::arg::text_of;
use super::calls::{looks_up, may_look_up_more};
use super::executed;
use super::is_exec;
use super::items::{is_link, Item};
use super::opened;
use super::operations::opened_by_name;
use super::proof::Evidence;
use super::view::View;
use super::{sockets, text};
use crate::identify::object;
use abi::exit::{EFAULT, ENAMETOOLONG};
use plan::{Name, ObjectId, Proven, Shape, ShapeKind};
use record::record::{Inode, NameType};
use record::wire::{self, DirPart, Event};

/// Finds the names by which rules are matched.
pub(super) struct Matched<'r> {
    /// The file system as the task sees it.
    pub(super) view: &'r mut View,
    /// Root directory of the task; empty if it is that of its mount namespace.
    pub(super) root: &'r [u8],
}

impl Matched<'_> {
    /// The names by which rules are matched: first one for each item, with symbolic links in its directory resolved;
    /// then the objects that names led to, by paths without any link. Where a name led is not known if the process that
    /// could tell has ended: its mount namespace, or its links in `/proc`, are gone.
    pub(super) fn names(&mut self, items: &[Item], event: &Event<'_>, shape: &Shape) -> Vec<Name> {
        let evidence = Evidence::of(event, shape);
        let mut names: Vec<Name> = items
            .iter()
            .map(|item| self.name(item, &evidence))
            .collect();
        let mut reached: Vec<Name> = Vec::new();

        for (item, name) in items.iter().zip(&mut names) {
            let target = self.behind_link(item, name);
            name.is_path_moot |= target.is_some() || self.follows_link(item);
            reached.extend(target);
        }

        if shape.kind == ShapeKind::Open {
            let file = if opened_by_name(event) {
                event.file(0)
            } else {
                None
            };
            let mut opened = file.map(|file| self.file(&file, &evidence));
            if let Some(opened) = &mut opened {
                let is_it = |name: &&Name| opened.inode == name.inode && opened.path == name.path;
                opened.directory = names.iter().find(is_it).and_then(|name| name.directory);
            }
            reached.extend(opened);
        }

        if let Some(mut directory) = opened::passed_directory(items, event, shape) {
            directory.inode = self.view.directory(&directory.path);
            let name = self.name(&directory, &evidence);
            reached.push(Name {
                is_possible: true,
                ..name
            });
        }

        reached.extend(event.executed().map(|(_, file)| self.executed(&file)));
        if evidence.may_have_replaced() {
            let made = items.iter().zip(&names);
            let made = made.filter(|(item, _)| item.nametype == NameType::Create);
            reached.extend(made.map(|(_, name)| replaced(name)));
        }

        for index in [0, 1] {
            if shape.paths[index].is_some() {
                reached.extend(self.without_text(event, index as u8));
            }
        }

        let is_lost = |item: &Item| item.inode.is_none() && item.path.starts_with(b"/proc/");
        let is_unknown = |(item, name): (&Item, &Name)| {
            let is_seen = item.is_real || name.is_proven();
            item.existed && !is_seen && (!self.view.is_reached() || is_lost(item))
        };
        let is_missing = evidence.lacks_names()
            || [0, 1]
                .into_iter()
                .any(|index| evidence.may_have_found(index))
            || evidence.may_have_found_entries(items)
            || sockets::has_unknown(event, shape)
            || may_look_up_more(event)
            || is_exec(shape) && !executed::are_known(event);
        if is_missing || items.iter().zip(&names).any(is_unknown) {
            reached.push(Name::unknown());
        }

        names.extend(reached);
        names
    }

    /// The directories above those of `names` whose place is not proven, as they are now: one of them may be a mount of a
    /// directory that a rule names.
    pub(super) fn directories_above(&mut self, names: &[Name]) -> Vec<ObjectId> {
        let mut objects = Vec::new();
        let is_asked = |name: &&Name| {
            let is_there = name.inode.is_some() || name.existed;
            is_there && name.place == Proven::Later
        };
        let mut seen: Vec<&[u8]> = Vec::new();

        for name in names.iter().filter(is_asked) {
            // The view puts the root directory of the process before it.
            let path = name.path.strip_prefix(self.root);
            let path = path.unwrap_or(&name.path);
            let dir = text::split(path).0;
            if !seen.contains(&dir) {
                seen.push(dir);
                objects.extend(self.view.directories_above(path));
            }
        }

        objects
    }

    /// The name of `item`, if that is a directory of descriptors: see [`View::descriptors`].
    fn of_descriptors(&self, item: &Item) -> Option<Name> {
        if item.nametype != NameType::Parent || !item.with_dots.is_empty() {
            return None;
        }

        Some(Name {
            path: self.view.descriptors(&item.path)?,
            inode: item.inode.map(matched),
            existed: true,
            object: Proven::AtEnd,
            place: Proven::AtEnd,
            ..Name::default()
        })
    }

    fn name(&mut self, item: &Item, evidence: &Evidence<'_, '_>) -> Name {
        if let Some(name) = self.of_descriptors(item) {
            return name;
        }

        let (object, place) = evidence.proofs(item, self.view);
        let is_proven = object > Proven::Later && place > Proven::Later;
        let may_have_led = !item.existed && evidence.may_have_led(item, self.view);
        // No rule is about a path that has led to nothing.
        let is_nothing = item.inode.or(item.behind).is_none() && !item.existed && !may_have_led;
        let real = match item.is_real {
            _ if item.path.is_empty() => Some(Vec::new()),
            true => Some([self.root, &item.path].concat()),
            false => self.canonical(item, is_proven || is_nothing),
        };

        Name {
            // Where a link that cannot be resolved now leads is known without it; in another mount namespace, paths lead
            // elsewhere.
            is_path_moot: is_proven && (real.is_none() || self.view.is_foreign()),
            directory: self.foreign_directory(item),
            path: real.unwrap_or_else(|| item.path.clone()),
            inode: item.inode.or(item.behind).map(matched),
            existed: item.existed || may_have_led,
            is_possible: may_have_led || item.behind.is_some(),
            is_owner_changed: evidence.is_owner_changed(item),
            object,
            place,
            ..Name::default()
        }
    }

    /// The path of an item without symbolic links in its directory; `None` if it cannot be resolved now.
    fn canonical(&mut self, item: &Item, is_proven: bool) -> Option<Vec<u8>> {
        if item.nametype == NameType::Parent && !self.view.is_direct(&item.path) {
            return self.view.real_path(&item.path, is_proven);
        }
        if self.view.is_direct(text::split(&item.path).0) {
            return Some([self.root, &item.path].concat());
        }
        let with_dots = if item.with_dots.is_empty() {
            None
        } else {
            self.in_real_directory(&item.with_dots, is_proven)
        };

        with_dots.or_else(|| self.in_real_directory(&item.path, is_proven))
    }

    /// `path` with the symbolic links in its directory resolved.
    fn in_real_directory(&mut self, path: &[u8], is_proven: bool) -> Option<Vec<u8>> {
        let (dir, last) = text::split(path);
        if matches!(last, b"." | b"..") {
            return self.view.real_path(path, is_proven);
        }

        let mut real = self.view.real_path(dir, is_proven)?;
        if !last.is_empty() {
            if real.last() != Some(&b'/') {
                real.push(b'/');
            }
            real.extend_from_slice(last);
        }

        Some(real)
    }

    /// The directory in which the last name of `item` was, if its task is in another mount namespace.
    fn foreign_directory(&self, item: &Item) -> Option<ObjectId> {
        if !self.view.is_foreign() || item.nametype == NameType::Parent {
            return None;
        }
        let directory = self.view.known(text::split(&item.path).0, true).flatten();
        directory.map(object)
    }

    /// Whether the last name of `item` was a symbolic link, and the call has followed it.
    fn follows_link(&self, item: &Item) -> bool {
        let entry = self.view.known(&item.path, false).flatten();
        let is_at_link = entry.is_some_and(is_link);
        is_at_link && item.inode.is_some_and(|inode| !is_link(inode)) && !item.is_real
    }

    /// If `item`, matched as `name`, is a symbolic link that was followed: the object behind the link.
    fn behind_link(&mut self, item: &Item, name: &Name) -> Option<Name> {
        let is_followed = item.nametype == NameType::Normal && !item.is_real;
        let inode = item.inode.filter(|inode| is_followed && !is_link(*inode))?;
        if name.path.is_empty() {
            return None;
        }

        let entry = self.view.known(&item.path, false).flatten();
        let is_plain = entry.is_some_and(|entry| !is_link(entry));
        if is_plain && self.view.is_direct(text::split(&item.path).0) {
            return None;
        }

        let path = self.view.real_path(&item.path, name.is_proven())?;
        (path != name.path).then(|| Name {
            path,
            inode: Some(matched(inode)),
            existed: true,
            directory: None,
            ..name.clone()
        })
    }

    /// A file that an execve has opened: taken by the programs when it did.
    fn executed(&self, file: &DirPart<'_>) -> Name {
        let place = if file.is_incomplete() {
            Proven::Later
        } else {
            Proven::InCall
        };
        self.name_of(file, Proven::InCall, place)
    }

    /// The file that a call opened.
    fn file(&self, file: &DirPart<'_>, evidence: &Evidence<'_, '_>) -> Name {
        let (object, place) = evidence.of_file(0, file);
        self.name_of(file, object, place)
    }

    /// A file whose path the programs have walked.
    fn name_of(&self, file: &DirPart<'_>, object: Proven, place: Proven) -> Name {
        let is_proven = object > Proven::Later && place > Proven::Later;
        let mut path = self.root.to_vec();
        file.walked(&mut path);
        Name {
            path,
            is_path_moot: is_proven && self.view.is_foreign(),
            inode: Inode::from_wire(&file.inode).map(matched),
            existed: true,
            object,
            place,
            ..Name::default()
        }
    }

    /// Object that path argument `index` led to, if the text of the path is lost: the one that the kernel found, or an
    /// unknown one.
    fn without_text(&self, event: &Event<'_>, index: u8) -> Option<Name> {
        let part = event.path(index)?;
        let is_lost = part.is_unreadable() || part.is_cut();
        let is_refused = matches!(event.exit(), Some(EFAULT | ENAMETOOLONG));
        let was_read = looks_up(event, index) && !is_refused;
        if !is_lost || !was_read || text_of(event, index).is_some() {
            return None;
        }

        let role = |role| event.object(role, index);
        let object =
            role(wire::TARSIER_OBJECT_TARGET).or_else(|| role(wire::TARSIER_OBJECT_OPENED));
        let Some(object) = object else {
            let is_opened = index == 0 && event.file(0).is_some();
            return (!is_opened).then(Name::unknown);
        };

        let (inode, path) = super::objects::place(&object);
        Some(Name {
            is_unknown: path.is_empty() && inode.is_none(),
            path: [self.root, &path].concat(),
            inode: inode.map(matched),
            existed: true,
            object: Proven::InCall,
            place: if path.is_empty() {
                Proven::Later
            } else {
                Proven::InCall
            },
            ..Name::default()
        })
    }
}

/// What a rename may have replaced, of which nothing is known but its name.
fn replaced(name: &Name) -> Name {
    Name {
        inode: None,
        existed: true,
        ..name.clone()
    }
}

pub(super) fn matched(inode: Inode) -> plan::Inode {
    plan::Inode {
        id: ObjectId {
            dev: inode.dev,
            ino: inode.ino,
        },
        mode: inode.mode.into(),
        uid: inode.ouid,
        gid: inode.ogid,
        rdev: inode.rdev,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resolve::Resolver;
    use crate::static_system::StaticSystem;
    use crate::test_frame::TestFrame;
    use std::sync::Arc;

    /// What proves the place of the directory of `path`, which mkdir was given where nothing can be looked up.
    fn place_of_directory(path: &str) -> Proven {
        let frame = TestFrame::of_named_call("mkdir")
            .part(wire::TARSIER_PART_PATH, 0, path.as_bytes())
            .part(wire::TARSIER_PART_CWD, 0, b"")
            .bytes();
        let event = Event::parse(&frame).expect("a frame");
        let system: Arc<dyn crate::System> = Arc::new(StaticSystem::default());
        let mut resolver = Resolver::new(&system);
        let shape = abi::call("mkdir").shape;
        resolver.resolve(&event, &shape);
        resolver.names(&event, &shape)[0].place
    }

    #[test]
    fn a_directory_is_one_of_descriptors_only_without_a_way_up() {
        assert_eq!(place_of_directory("/proc/self/fd/x"), Proven::AtEnd);
        let led_elsewhere = ["/proc/self/cwd/../fd/x", "/proc/self/cwd/fd/x", "/fd/x"];
        for path in led_elsewhere {
            assert_eq!(place_of_directory(path), Proven::Later, "{path}");
        }
    }
}
