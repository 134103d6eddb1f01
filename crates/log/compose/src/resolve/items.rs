//! The items of one event, and the look-ups that complete them.

use super::arg::Arg;
use super::calls::LookupOutcome;
use super::view::View;
use super::{objects, text};
use record::record::{FileCaps, Inode, NameType};
use record::wire::ObjectPart;

const S_IFMT: u16 = 0o170000;

/// One name of an event.
#[derive(Clone, Debug, Default)]
pub struct Item {
    /// Name that the record prints as `name=`; `None` is `(null)`.
    pub name: Option<Vec<u8>>,
    /// Absolute path without `.` and `..`; empty if it is not known.
    pub path: Vec<u8>,
    /// Absolute path with its `..`, which lead elsewhere behind a symbolic link; empty if it has none.
    pub with_dots: Vec<u8>,
    /// `path` comes from the kernel, so its directory part has no symbolic links.
    pub is_real: bool,
    /// The object that the name led to, if it is known.
    pub inode: Option<Inode>,
    /// The object that has the name, although the call was refused on the way to it.
    pub behind: Option<Inode>,
    /// Role of the name in the call: `nametype=`.
    pub nametype: NameType,
    /// Whether the name led to an object, even one that is not known.
    pub existed: bool,
    /// Whether the kernel has read the name and looked nothing up by it.
    pub is_text: bool,
    /// File capabilities of the object: the `cap_*` fields.
    pub caps: FileCaps,
}

/// Collects the items of one event. Keeps its buffer between events.
pub(super) struct Items {
    /// The file system as the task sees it.
    pub(super) view: View,
    list: Vec<Item>,
    /// Number of names that audit counts in `items=` but does not print.
    hidden: u32,
}

impl Items {
    /// No items. Objects are looked up in `view`.
    pub(super) fn new(view: View) -> Items {
        Items {
            view,
            list: Vec::new(),
            hidden: 0,
        }
    }

    /// Forgets the items of the event before.
    pub(super) fn clear(&mut self) {
        self.list.clear();
        self.hidden = 0;
    }

    /// The items, in the order of their records.
    pub(super) fn list(&self) -> &[Item] {
        &self.list
    }

    /// View and items, for callers that change items by what the view shows.
    pub(super) fn parts(&mut self) -> (&mut View, &mut Vec<Item>) {
        (&mut self.view, &mut self.list)
    }

    /// Number of names, as `items=` counts them.
    pub(super) fn count(&self) -> u32 {
        self.list.len() as u32 + self.hidden
    }

    /// The item that was added last.
    pub(super) fn last_mut(&mut self) -> Option<&mut Item> {
        self.list.last_mut()
    }

    /// Adds an item.
    pub(super) fn push(&mut self, item: Item) {
        self.list.push(item);
    }

    /// Counts a name that audit counts but does not print.
    pub(super) fn hide_one(&mut self) {
        self.hidden += 1;
    }

    /// Name and object of the directory in which `arg` has its last name.
    fn directory_of(&mut self, arg: &Arg<'_>) -> (Vec<u8>, Option<Inode>) {
        let parent = text::parent_text(arg.text);
        if parent.is_empty() {
            let dir = if arg.is_real {
                text::split(&arg.path).0
            } else {
                &arg.base
            };
            return (dir.to_vec(), arg.parent_inode.or(arg.base_inode));
        }

        let name = if arg.is_dirfd_relative {
            text::parent_text(&arg.name).to_vec()
        } else {
            parent.to_vec()
        };

        let dir = arg.directory();
        let is_used = !arg.failed && arg.with_dots().is_empty();
        let inode = match arg.parent_inode {
            None if is_used => self.view.directory(&dir),
            None => self.view.inode(&dir, true),
            known => known,
        };
        (name, inode)
    }

    /// Whether there is a directory in which `arg` could have its last name.
    pub(super) fn reaches_directory(&mut self, arg: &Arg<'_>) -> bool {
        self.directory_of(arg).1.is_some_and(is_directory)
    }

    /// Adds the item of the directory in which `arg` has its last name; UNKNOWN if the look-up did not get that far.
    pub(super) fn parent(&mut self, arg: &Arg<'_>) {
        let (name, inode) = self.directory_of(arg);
        if arg.is_unreached || arg.is_barred || arg.failed && !inode.is_some_and(is_directory) {
            // The look-up did not reach the last name.
            return self.item(arg, NameType::Unknown, None);
        }

        let with_dots = arg.with_dots();
        self.list.push(Item {
            name: Some(name),
            path: arg.directory(),
            with_dots: if with_dots.is_empty() {
                with_dots
            } else {
                text::split(&with_dots).0.to_vec()
            },
            is_real: arg.is_real && !arg.ends_in_dots(),
            inode,
            nametype: NameType::Parent,
            existed: inode.is_some(),
            ..Item::default()
        });
    }

    /// Adds the item of `arg`.
    pub(super) fn item(&mut self, arg: &Arg<'_>, nametype: NameType, inode: Option<Inode>) {
        let is_known = !arg.name.is_empty() || arg.text.is_empty();
        self.list.push(Item {
            name: is_known.then(|| arg.name.clone()),
            path: arg.path.clone(),
            with_dots: arg.with_dots(),
            is_real: arg.is_real,
            inode,
            nametype,
            existed: inode.is_some() || matches!(nametype, NameType::Delete | NameType::Create),
            ..Item::default()
        });
    }

    /// Adds the item of an entry that the call was refused to make.
    pub(super) fn not_made(&mut self, arg: &Arg<'_>) {
        self.item(arg, NameType::Create, None);
        if let Some(item) = self.list.last_mut() {
            item.existed = false;
        }
    }

    /// Adds an item: NORMAL if the object exists now, else UNKNOWN.
    ///
    /// `told`, what the result of the call says, takes precedence over what exists now: another process may have
    /// created or removed the object since.
    pub(super) fn looked_up(&mut self, arg: &Arg<'_>, follow: bool, told: LookupOutcome) {
        if arg.is_barred {
            let behind = self.view.inode(&arg.path, follow);
            self.item(arg, NameType::Unknown, None);
            if let Some(item) = self.list.last_mut() {
                item.behind = behind;
            }
            return;
        }

        let inode = match (arg.text.is_empty(), arg.base_inode, told) {
            (true, Some(inode), _) => {
                let known = self.view.known(&arg.path, true).flatten();
                known.or(Some(inode))
            }
            (_, _, LookupOutcome::Missing) => None,
            _ => self.view.inode(&arg.path, follow),
        };

        let nametype = if inode.is_some() {
            NameType::Normal
        } else {
            NameType::Unknown
        };

        self.item(arg, nametype, inode);
        if let (LookupOutcome::There, Some(item)) = (told, self.list.last_mut()) {
            item.existed = true;
        }
    }

    /// Adds the item of a name that the kernel read but did not look up.
    pub(super) fn named(&mut self, arg: &Arg<'_>) {
        self.list.push(Item {
            name: Some(arg.text.to_vec()),
            nametype: NameType::Unknown,
            is_text: true,
            ..Item::default()
        });
    }

    /// Makes an argument agree with the object that the kernel found for it, and returns the object's inode. User
    /// memory and the directory's descriptor may have changed since: a name that does not lead to the object is
    /// replaced by the object's own path, or by `(null)` if that is not known.
    pub(super) fn agree(
        &mut self,
        arg: &mut Arg<'_>,
        object: &ObjectPart<'_>,
        follow: bool,
    ) -> Option<Inode> {
        let (inode, path) = objects::place(object);
        let id = |inode: Inode| (inode.dev, inode.ino);
        let is_plain = arg.is_kernel_text && !arg.is_dirfd_relative;
        let leads_there = is_plain
            || !path.is_empty() && *self.view.for_others(&arg.path) == *path
            || is_own(arg.text) && arg.base_inode.map(id) == inode.map(id)
            || inode.is_some() && self.view.inode(&arg.path, follow).map(id) == inode.map(id)
            || objects::ends_so(object, &arg.path);

        if !path.is_empty() {
            arg.path = path;
            arg.is_real = true;
        }

        if !leads_there {
            arg.name = if arg.is_real {
                arg.path.clone()
            } else {
                Vec::new()
            };
        }

        inode
    }
}

/// Whether a name is that of the directory which it is relative to.
fn is_own(text: &[u8]) -> bool {
    matches!(text, b"" | b".")
}

/// Whether this is the inode of a directory.
fn is_directory(inode: Inode) -> bool {
    const S_IFDIR: u16 = 0o040000;
    inode.mode & S_IFMT == S_IFDIR
}

/// Whether this is the inode of a symbolic link.
pub(super) fn is_link(inode: Inode) -> bool {
    const S_IFLNK: u16 = 0o120000;
    inode.mode & S_IFMT == S_IFLNK
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resolve::directories::Directories;
    use crate::static_system::{StaticFile, StaticSystem};
    use record::wire::{self, tarsier_inode};
    use std::sync::Arc;

    const DIRECTORY: u16 = 0o040755;

    fn file(ino: u64, mode: u16) -> StaticFile {
        StaticFile {
            inode: Inode {
                ino,
                mode,
                ..Inode::default()
            },
            ..StaticFile::default()
        }
    }

    /// Items of a task that sees the files `/srv` (1), a directory, and `/srv/a` (2).
    fn items() -> Items {
        let mut system = StaticSystem::default();
        let files = [
            ("/proc/self/ns/mnt", file(9, 0)),
            ("/srv", file(1, DIRECTORY)),
            ("/srv/a", file(2, 0o100644)),
        ];
        system.files = files.into();
        let mut view = View::new(Arc::new(system));
        view.set(9, 42, b"");
        Items::new(view)
    }

    /// A path that the kernel read from a task in `/srv`.
    fn arg(text: &[u8], failed: bool) -> Arg<'_> {
        let directories = Directories {
            cwd: b"/srv".to_vec(),
            ..Directories::default()
        };
        Arg::of_kernel(&directories, text, failed)
    }

    fn last(items: &Items) -> (Option<u64>, NameType, bool) {
        let item = items.list().last().expect("an item");
        let ino = item.inode.map(|inode| inode.ino);
        (ino, item.nametype, item.existed)
    }

    #[test]
    fn the_result_of_the_call_counts_more_than_what_exists_now() {
        let mut items = items();
        items.looked_up(&arg(b"a", false), true, LookupOutcome::Nothing);
        assert_eq!(last(&items), (Some(2), NameType::Normal, true));
        items.looked_up(&arg(b"a", true), true, LookupOutcome::Missing);
        assert_eq!(last(&items), (None, NameType::Unknown, false));
        items.looked_up(&arg(b"gone", false), true, LookupOutcome::There);
        assert_eq!(last(&items), (None, NameType::Unknown, true));
    }

    #[test]
    fn a_failed_call_has_a_parent_only_if_it_reached_a_directory() {
        let mut items = items();
        items.parent(&arg(b"/srv/x", true));
        assert_eq!(last(&items), (Some(1), NameType::Parent, true));
        assert_eq!(items.list()[0].name.as_deref(), Some(&b"/srv/"[..]));
        items.parent(&arg(b"/srv/a/x", true));
        assert_eq!(last(&items).1, NameType::Unknown);
    }

    #[test]
    fn the_directory_of_dots_is_the_one_before_them() {
        let mut items = items();
        items.parent(&arg(b"..", false));
        items.parent(&arg(b"/srv/x/..", false));
        let paths: Vec<&[u8]> = items.list().iter().map(|item| &item.path[..]).collect();
        assert_eq!(paths, [&b"/srv"[..], b"/srv/x"]);
        assert_eq!(last(&items), (None, NameType::Parent, false));
    }

    #[test]
    fn a_name_that_leads_elsewhere_becomes_the_path_of_the_object() {
        let mut items = items();
        let object = ObjectPart {
            role: wire::TARSIER_OBJECT_TARGET,
            index: 0,
            inode: tarsier_inode {
                ino: 2,
                valid: 1,
                ..tarsier_inode::default()
            },
            name: b"",
            walk: b"b\0srv\0",
            flags: 0,
        };
        let from_memory = |text| Arg {
            is_kernel_text: false,
            ..arg(text, false)
        };
        // The name leads to the object still, by another path.
        let mut same = from_memory(b"a");
        assert!(items.agree(&mut same, &object, true).is_some());
        assert_eq!(same.name, b"a");
        let mut other = from_memory(b"elsewhere");
        items.agree(&mut other, &object, true);
        assert_eq!((other.name, other.is_real), (b"/srv/b".to_vec(), true));
        // No path of the object is known: the record has name=(null).
        let mut unknown = from_memory(b"elsewhere");
        let pathless = ObjectPart {
            flags: wire::TARSIER_PART_UNREADABLE as u8,
            ..object
        };
        let inode = items.agree(&mut unknown, &pathless, true);
        items.item(&unknown, NameType::Normal, inode);
        assert_eq!(items.list()[0].name, None);
    }

    #[test]
    fn names_that_are_not_printed_count_until_the_next_event() {
        let mut items = items();
        items.named(&arg(b"ext4", false));
        items.hide_one();
        assert_eq!((items.count(), items.list().len()), (2, 1));
        items.clear();
        assert_eq!(items.count(), 0);
    }
}
