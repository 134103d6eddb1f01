//! Turns the names of an event into items, one per PATH record.
//!
//! The order and types of items are those of the kernel (`audit_inode()`, `audit_inode_child()`, kernel/auditsc.c, as
//! called from fs/namei.c). Objects that hooks on kernel functions have noted take precedence (see [`objects`]).
//! Without them, the kernel identifies only opened files, descriptors and the current directory; every other inode is
//! looked up here by path, after the call.

mod arg;
mod calls;
mod changed;
mod executed;
mod filesystems;
mod interp;
mod kernel;
mod matched;
mod objects;
mod opened;
mod queues;
mod sockets;
mod text;
mod view;

use crate::system::{Sign, System};
use arg::Arg;
use calls::{
    call_name, collects_names, follows, looks_at_descriptor, moves_directory, LookupOutcome,
};
use event::record::{FileCaps, Inode, NameType};
use event::wire::{self, Event, ObjectPart, Part};
use filesystems::Filesystems;
pub use interp::elf_interpreter;
use interp::Interpreters;
use kernel::Kernel;
use plan::{NameUse, PathArg, Shape, ShapeKind};
use std::sync::Arc;
use view::View;

const EBADF: i64 = -9;
const S_IFMT: u16 = 0o170000;

/// One name of an event.
#[derive(Clone, Debug, Default)]
pub struct Item {
    /// What the record prints as `name=`; `None` is `(null)`.
    pub name: Option<Vec<u8>>,
    /// Absolute path without `.` and `..`; empty if it is not known.
    pub path: Vec<u8>,
    /// Absolute path with its `..`, which lead elsewhere behind a symbolic link; empty if it has none.
    pub with_dots: Vec<u8>,
    /// `path` comes from the kernel, so its directory part has no symbolic links.
    pub is_real: bool,
    /// The object that the name led to, if it is known.
    pub inode: Option<Inode>,
    /// Role of the name in the call: `nametype=`.
    pub nametype: NameType,
    /// Whether the name led to an object, even one that is not known.
    pub existed: bool,
    /// File capabilities of the object: the `cap_*` fields.
    pub caps: FileCaps,
}

/// Turns the names of events into items. Keeps its buffers between events.
pub(crate) struct Resolver {
    view: View,
    cwd: Vec<u8>,
    items: Vec<Item>,
    /// Number of names that audit counts in `items=` but does not print.
    hidden: u32,
    interpreters: Interpreters,
    filesystems: Filesystems,
    /// After chdir and chroot, the absolute path that a relative argument stands for; else empty.
    destination: Vec<u8>,
    /// Inode of `cwd`.
    cwd_inode: Option<Inode>,
    /// Root directory of the task; empty if it is that of its mount namespace.
    root: Vec<u8>,
    /// The hooks see every search of a directory: what they have not noted was not searched.
    sees_parents: bool,
    kernel: Kernel,
}

impl Resolver {
    /// A resolver for events of `system`.
    pub(crate) fn new(system: &Arc<dyn System>) -> Resolver {
        Resolver {
            view: View::new(Arc::clone(system)),
            cwd: Vec::new(),
            items: Vec::new(),
            hidden: 0,
            interpreters: Interpreters::default(),
            filesystems: Filesystems::new(Arc::clone(system)),
            destination: Vec::new(),
            cwd_inode: None,
            root: Vec::new(),
            sees_parents: system.kernel_has(Sign::Function(plan::PARENT_LOOKUP)),
            kernel: Kernel::of(&**system),
        }
    }

    /// Current directory of the last resolved event; empty if it had no names or the directory is not known.
    pub(crate) fn cwd(&self) -> &[u8] {
        &self.cwd
    }

    /// Items of the last resolved event.
    pub(crate) fn items(&self) -> &[Item] {
        &self.items
    }

    /// Number of names of the last resolved event, as `items=` counts them.
    pub(crate) fn count(&self) -> u32 {
        self.items.len() as u32 + self.hidden
    }

    /// Finds the items of `event`, whose call has this shape.
    pub(crate) fn resolve(&mut self, event: &Event<'_>, shape: &Shape) {
        self.items.clear();
        self.hidden = 0;
        self.cwd.clear();
        self.destination.clear();
        let Some(cwd) = event.cwd().filter(|_| collects_names(event, self.kernel)) else {
            return;
        };
        let is_before = self.directories(event, &cwd);
        let moved = moves_directory(event) && !is_before;
        if moved {
            self.moved_to(event, shape);
        }
        self.paths(event, shape);
        if shape.kind == ShapeKind::Open && shape.paths[0].is_none() {
            self.opened_by_handle(event);
        }
        if shape.fd != plan::NONE && event.exit() != Some(EBADF) {
            self.descriptor(event);
        }
        if shape.sockaddr != plan::NONE {
            self.socket(event);
        }
        if event.exit() == Some(0) {
            self.seen_from_new_root(event);
        }
        if moved {
            // The former directory is not known; no CWD record is better than a wrong one.
            self.cwd.clear();
        }
    }

    /// Takes the current and the root directory of the task from `event`. Returns whether the current directory is the
    /// one from before the call.
    fn directories(&mut self, event: &Event<'_>, cwd: &Part<'_>) -> bool {
        cwd.walked(&mut self.cwd);
        self.cwd_inode = event.cwd_inode().as_ref().and_then(Inode::from_wire);
        self.root.clear();
        if let Some(root) = event.root() {
            root.walked(&mut self.root);
        }
        let header = event.header();
        self.view.set(header.mnt_ns, header.pid, &self.root);
        let before = event
            .object(wire::TARSIER_OBJECT_CWD, 0)
            .filter(|before| !before.is_incomplete());
        if let Some(before) = &before {
            self.cwd_inode = Inode::from_wire(&before.inode);
            self.cwd.clear();
            before.walked(&mut self.cwd);
        }
        before.is_some()
    }

    /// Adds the items of the path arguments.
    fn paths(&mut self, event: &Event<'_>, shape: &Shape) {
        let first = shape.paths[0].and_then(|arg| self.arg(event, 0, arg));
        let second = shape.paths[1].and_then(|arg| self.arg(event, 1, arg));
        match (shape.paths[0], shape.paths[1]) {
            (Some(old), Some(_)) if old.use_ == NameUse::Rename => {
                self.renamed(event, first, second)
            }
            (Some(old), Some(new)) if new.use_ == NameUse::Create => {
                self.linked(event, old, first, second)
            }
            (one, two) => {
                let mut both = [(one, first), (two, second)];
                if self.kernel.target_first && call_name(event) == Some("move_mount") {
                    both.reverse();
                }
                for (arg, found) in both {
                    // The second of two paths is looked up only if the first led to an object.
                    let leads = self.items.last().is_none_or(|item| item.existed);
                    if let (Some(arg), Some(found)) = (arg, found.filter(|_| leads)) {
                        self.single(event, shape, arg, found);
                    }
                }
            }
        }
    }

    /// After a successful chdir or chroot, the task's directory is the one that the call named, so the path of the new
    /// directory replaces a relative argument.
    fn moved_to(&mut self, event: &Event<'_>, shape: &Shape) {
        self.destination.clear();
        let destination = match call_name(event) {
            Some("chdir") => event.cwd(),
            _ => event.root(),
        };
        if let Some(destination) = destination.filter(|_| shape.paths[0].is_some()) {
            destination.walked(&mut self.destination);
        }
    }

    /// Rewrites the current directory after chroot or pivot_root: the kernel prints it after the call, as seen from the
    /// new root.
    fn seen_from_new_root(&mut self, event: &Event<'_>) {
        let place = |index| {
            let target = event.object(wire::TARSIER_OBJECT_TARGET, index)?;
            Some(objects::place(&target).1).filter(|path| !path.is_empty())
        };
        let seen = match (call_name(event), place(0), place(1)) {
            (Some("chroot"), Some(root), _) => text::below(&self.cwd, &root),
            (Some("pivot_root"), Some(root), Some(old)) => {
                text::after_pivot(&self.cwd, &root, &old)
            }
            _ => None,
        };
        if let Some(seen) = seen {
            self.cwd = seen;
        }
    }

    fn parent(&mut self, arg: &Arg<'_>) {
        let parent = text::parent_text(arg.text);
        let (name, inode) = if parent.is_empty() {
            let dir = match arg.is_real {
                true => text::split(&arg.path).0,
                false => &arg.base,
            };
            (dir.to_vec(), arg.parent_inode.or(arg.base_inode))
        } else {
            let name = match arg.is_dirfd_relative {
                true => text::parent_text(&arg.name).to_vec(),
                false => parent.to_vec(),
            };
            let known = arg.parent_inode;
            let inode = known.or_else(|| self.view.inode(&arg.directory(), true));
            (name, inode)
        };
        if arg.is_unreached || arg.failed && !inode.is_some_and(is_directory) {
            // The look-up did not reach the last name.
            return self.item(arg, NameType::Unknown, None);
        }
        self.items.push(Item {
            name: Some(name),
            path: text::split(&arg.path).0.to_vec(),
            with_dots: Vec::new(),
            is_real: arg.is_real,
            inode,
            nametype: NameType::Parent,
            existed: inode.is_some(),
            caps: FileCaps::NONE,
        });
    }

    fn item(&mut self, arg: &Arg<'_>, nametype: NameType, inode: Option<Inode>) {
        let is_known = !arg.name.is_empty() || arg.text.is_empty();
        self.items.push(Item {
            name: is_known.then(|| arg.name.clone()),
            path: arg.path.clone(),
            with_dots: arg.with_dots(),
            is_real: arg.is_real,
            inode,
            nametype,
            existed: inode.is_some() || matches!(nametype, NameType::Delete | NameType::Create),
            caps: FileCaps::NONE,
        });
    }

    /// Adds an item: NORMAL if the object exists now, else UNKNOWN.
    ///
    /// `told`, what the result of the call says, takes precedence over what exists now: another process may have
    /// created or removed the object since.
    fn looked_up(&mut self, arg: &Arg<'_>, follow: bool, told: LookupOutcome) {
        let inode = match (arg.text.is_empty(), arg.base_inode, told) {
            (true, Some(inode), _) => Some(inode),
            (_, _, LookupOutcome::Missing) => None,
            _ => self.view.inode(&arg.path, follow),
        };
        let nametype = if inode.is_some() {
            NameType::Normal
        } else {
            NameType::Unknown
        };
        self.item(arg, nametype, inode);
        if let (LookupOutcome::There, Some(item)) = (told, self.items.last_mut()) {
            item.existed = true;
        }
    }

    fn single(&mut self, event: &Event<'_>, shape: &Shape, arg: PathArg, mut found: Arg<'_>) {
        let succeeded = event.exit().is_none_or(event::record::is_success);
        match arg.use_ {
            NameUse::Open => self.opened(event, shape, &mut found, succeeded),
            NameUse::Exec => self.executed(event, &found, succeeded),
            NameUse::Queue => self.queue(event, found.text),
            NameUse::Create => {
                self.parent(&found);
                match objects::entry(event, wire::TARSIER_OBJECT_CREATE, 0) {
                    Some(inode) => self.item(&found, NameType::Create, inode),
                    None if succeeded => {
                        let inode = self.view.inode(&found.path, false);
                        self.item(&found, NameType::Create, inode);
                    }
                    None => {}
                }
            }
            NameUse::Delete => {
                self.parent(&found);
                let inode = objects::entry(event, wire::TARSIER_OBJECT_DELETE, 0);
                if succeeded || inode.is_some() {
                    self.item(&found, NameType::Delete, inode.flatten());
                }
            }
            _ => self.acted_on(event, arg, found),
        }
    }

    /// Adds the items of a call on the object that a path leads to.
    fn acted_on(&mut self, event: &Event<'_>, arg: PathArg, mut found: Arg<'_>) {
        let follow = follows(event, arg);
        let is_nameless = found.text.is_empty() && looks_at_descriptor(event) == Some(true);
        match call_name(event) {
            // The argument is the name of a file system, read as a path but never looked up.
            Some("sysfs") => return self.named(&found),
            // The argument is read as a path, and then looked up as the name of a device.
            Some("quotactl") => self.named(&found),
            _ => {}
        }
        match event.object(wire::TARSIER_OBJECT_TARGET, found.index) {
            Some(target) => {
                let inode = self.agree(&mut found, &target, follow);
                self.item(&found, NameType::Normal, inode);
            }
            None => {
                // If the call has two paths, the other one may be missing.
                let told = match LookupOutcome::by(event) {
                    LookupOutcome::Missing if event.path(1).is_some() => LookupOutcome::Nothing,
                    told => told,
                };
                self.looked_up(&found, follow, told);
            }
        }
        if is_nameless {
            if let Some(item) = self.items.last_mut() {
                item.name = None;
            }
        }
        let is_unmount = matches!(call_name(event), Some("umount" | "umount2" | "oldumount"));
        if let Some(item) = self
            .items
            .last_mut()
            .filter(|item| is_unmount && item.existed)
        {
            // For umount, audit does not read the file capabilities: AUDIT_INODE_NOEVAL.
            item.caps = FileCaps::Unknown;
        }
    }

    /// Adds the item of a name that the kernel read but did not look up.
    fn named(&mut self, arg: &Arg<'_>) {
        self.items.push(Item {
            name: Some(arg.text.to_vec()),
            nametype: NameType::Unknown,
            ..Item::default()
        });
    }

    /// Makes an argument agree with the object that the kernel found for it, and returns the object's inode. User
    /// memory and the directory's descriptor may have changed since: a name that does not lead to the object is
    /// replaced by the object's own path, or by `(null)` if that is not known.
    fn agree(&mut self, arg: &mut Arg<'_>, object: &ObjectPart<'_>, follow: bool) -> Option<Inode> {
        let (inode, path) = objects::place(object);
        let id = |inode: Inode| (inode.dev, inode.ino);
        let is_plain = arg.is_kernel_text && !arg.is_dirfd_relative;
        let leads_there = is_plain
            || !path.is_empty() && *self.view.for_others(&arg.path) == *path
            || arg.text.is_empty() && arg.base_inode.map(id) == inode.map(id)
            || inode.is_some() && self.view.inode(&arg.path, follow).map(id) == inode.map(id)
            || objects::ends_so(object, &arg.path);
        if !path.is_empty() {
            arg.path = path;
            arg.is_real = true;
        }
        if !leads_there {
            arg.name = match arg.is_real {
                true => arg.path.clone(),
                false => Vec::new(),
            };
        }
        inode
    }

    fn descriptor(&mut self, event: &Event<'_>) {
        let target = event.object(wire::TARSIER_OBJECT_TARGET, 0);
        let (inode, path) = match (target, event.file(1)) {
            (Some(target), _) => objects::place(&target),
            (None, Some(file)) => {
                let mut path = Vec::new();
                file.walked(&mut path);
                (Inode::from_wire(&file.inode), path)
            }
            (None, None) => return,
        };
        self.items.push(Item {
            name: None,
            is_real: target.is_some() && !path.is_empty(),
            path,
            with_dots: Vec::new(),
            inode,
            nametype: NameType::Normal,
            existed: true,
            caps: FileCaps::NONE,
        });
    }
}

fn is_directory(inode: Inode) -> bool {
    const S_IFDIR: u16 = 0o040000;
    inode.mode & S_IFMT == S_IFDIR
}

fn is_link(inode: Inode) -> bool {
    const S_IFLNK: u16 = 0o120000;
    inode.mode & S_IFMT == S_IFLNK
}

/// Whether the call executes a program; if it succeeds, its records describe the new image.
pub(crate) fn is_exec(shape: &Shape) -> bool {
    shape.kind == ShapeKind::Exec
}
