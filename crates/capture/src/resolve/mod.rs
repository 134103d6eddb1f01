//! From the names of an event to what audit records of them: one item per PATH record.
//!
//! The order and types of items are those of the kernel (`audit_inode()`, `audit_inode_child()`,
//! kernel/auditsc.c, as called from fs/namei.c). What hooks on the kernel's objects have noted counts
//! before all else (see [`objects`]). Without them only opened files, descriptors and the current
//! directory are identified by the kernel; every other inode is looked up here by path, after the
//! call.

mod calls;
mod changed;
mod executed;
mod filesystems;
mod interp;
mod objects;
mod queues;
mod sockets;
mod text;
mod view;

pub(crate) use view::kernel_dev;

use calls::{
    call_name, collects_names, follows, looks_up, moves_directory, takes_empty_path, Told,
};
use event::record::{FileCaps, Inode, NameType};
use event::wire::{self, Event, ObjectPart};
use filesystems::Filesystems;
use interp::Interpreters;
use plan::{Kind, Name, NameUse, ObjectId, PathArg, Shape};
use view::View;

const O_CREAT: u64 = 0o100;
const O_EXCL: u64 = 0o200;
// These differ between architectures.
const O_NOFOLLOW: u64 = libc::O_NOFOLLOW as u64;
const RENAME_EXCHANGE: u64 = 2;
const O_TMPFILE: u64 = libc::O_TMPFILE as u64;
const EBADF: i64 = -9;
const EEXIST: i64 = -17;
const ENOTDIR: i64 = -20;
const ELOOP: i64 = -40;

/// One name of an event.
#[derive(Clone, Debug, Default)]
pub struct Item {
    /// What the record prints; `None` is `(null)`.
    pub name: Option<Vec<u8>>,
    /// Absolute, without `.` and `..`; empty when unknown.
    pub path: Vec<u8>,
    /// The kernel itself gave `path`: it has no symbolic link in its directory part.
    pub is_real: bool,
    /// The object, if it is known.
    pub inode: Option<Inode>,
    /// Its role.
    pub nametype: NameType,
    /// There was an object, known or not.
    pub existed: bool,
    /// File capabilities.
    pub caps: FileCaps,
}

/// Turns the names of events into items. Keeps its buffers between events.
pub struct Resolver {
    own_mnt_ns: u64,
    view: View,
    cwd: Vec<u8>,
    items: Vec<Item>,
    /// Names that audit counts and does not print.
    hidden: u32,
    interpreters: Interpreters,
    filesystems: Filesystems,
    /// Absolute path of the only relative path argument, where the call itself tells it.
    destination: Vec<u8>,
    /// Identity of `cwd`.
    cwd_inode: Option<Inode>,
    /// Root directory of the task; empty: that of its mount namespace.
    root: Vec<u8>,
    /// A directory that hooks have not noted was not looked up in.
    sees_parents: bool,
    /// Of the kernel.
    release: (u32, u32),
}

impl Default for Resolver {
    fn default() -> Resolver {
        Resolver::new()
    }
}

/// A path argument with its surroundings.
struct Arg<'a> {
    /// As user space passed it.
    text: &'a [u8],
    /// What the record prints: `text`, made absolute where audit's reader could not.
    name: Vec<u8>,
    /// Directory that `text` is relative to.
    base: Vec<u8>,
    /// Identity of `base`, when the kernel gave it.
    base_inode: Option<Inode>,
    /// Absolute and plain.
    path: Vec<u8>,
    /// `path` is the kernel's own.
    is_real: bool,
    is_dirfd_relative: bool,
    /// `text` is what the kernel read, not what user memory had after the call.
    is_kernel_text: bool,
    index: u8,
    /// The directory that holds the last name, when the kernel gave it.
    parent_inode: Option<Inode>,
    /// The call that it belongs to failed.
    failed: bool,
    /// It failed before the last name was looked up, as hooks on the look-up have seen.
    is_unreached: bool,
}

impl Resolver {
    /// A resolver that looks from the mount namespace of this process.
    pub fn new() -> Resolver {
        Resolver {
            own_mnt_ns: view::namespace_of("/proc/self/ns/mnt").unwrap_or(0),
            view: View::default(),
            cwd: Vec::new(),
            items: Vec::new(),
            hidden: 0,
            interpreters: Interpreters::default(),
            filesystems: Filesystems::default(),
            destination: Vec::new(),
            cwd_inode: None,
            root: Vec::new(),
            sees_parents: crate::objects::sees_parents(),
            release: view::release(),
        }
    }

    /// open(2) with O_CREAT notes the directory for what it makes only: since Linux 6.12, which looks
    /// for the file first.
    fn opens_first(&self) -> bool {
        self.release >= (6, 12)
    }

    /// Current directory of the last resolved event; empty when it had no names.
    pub fn cwd(&self) -> &[u8] {
        &self.cwd
    }

    /// Items of the last resolved event.
    pub fn items(&self) -> &[Item] {
        &self.items
    }

    /// How many names the last resolved event has as `items=` counts them.
    pub fn count(&self) -> u32 {
        self.items.len() as u32 + self.hidden
    }

    /// Finds the items of `event`, a call of this shape.
    pub fn resolve(&mut self, event: &Event<'_>, shape: &Shape) {
        self.items.clear();
        self.hidden = 0;
        self.cwd.clear();
        self.destination.clear();
        let Some(cwd) = event.cwd().filter(|_| collects_names(event, self.release)) else {
            return;
        };
        cwd.walked(&mut self.cwd);
        self.cwd_inode = event.cwd_inode().as_ref().and_then(Inode::from_wire);
        self.root.clear();
        if let Some(root) = event.root() {
            root.walked(&mut self.root);
        }
        let header = event.header();
        self.view
            .set(self.own_mnt_ns, header.mnt_ns, header.pid, &self.root);
        let before = event
            .object(wire::TARSIER_OBJECT_CWD, 0)
            .filter(|before| !before.is_incomplete());
        if let Some(before) = &before {
            self.cwd_inode = Inode::from_wire(&before.inode);
            self.cwd.clear();
            before.walked(&mut self.cwd);
        }
        let moved = moves_directory(event) && before.is_none();
        if moved {
            self.moved_to(event, shape);
        }
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
                for (arg, found) in [(one, first), (two, second)] {
                    // Of two paths the second is looked up only where the first led.
                    let leads = self.items.last().is_none_or(|item| item.existed);
                    if let (Some(arg), Some(found)) = (arg, found.filter(|_| leads)) {
                        self.single(event, shape, arg, found);
                    }
                }
            }
        }
        if shape.fd != plan::NONE && event.exit() != Some(EBADF) {
            self.descriptor(event);
        }
        if shape.sockaddr != plan::NONE {
            self.socket(event);
        }
        if call_name(event) == Some("chroot") && event.exit() == Some(0) {
            self.seen_from_new_root(event);
        }
        if moved {
            // Where the task was before is not known; no record is better than a wrong one.
            self.cwd.clear();
        }
    }

    /// After a successful chdir or chroot, the directories of the task are those that the call
    /// named: a relative path is the new directory itself.
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

    /// The kernel prints the current directory when the call is over, as it is seen from the new root.
    fn seen_from_new_root(&mut self, event: &Event<'_>) {
        let Some(root) = event.object(wire::TARSIER_OBJECT_TARGET, 0) else {
            return;
        };
        let (_, root) = objects::place(&root);
        let below = self.cwd.strip_prefix(root.as_slice());
        match below.filter(|rest| root.len() > 1 && matches!(rest.first(), None | Some(b'/'))) {
            Some(b"") => self.cwd = b"/".to_vec(),
            Some(rest) => self.cwd = rest.to_vec(),
            None => {}
        }
    }

    /// Names as rules are decided by, with symbolic links resolved in directories.
    pub fn names(&mut self) -> Vec<Name> {
        let mut names = Vec::with_capacity(self.items.len());
        for i in 0..self.items.len() {
            let path = std::mem::take(&mut self.items[i].path);
            let name = Name {
                path: match (path.is_empty(), self.items[i].is_real) {
                    (true, _) => Vec::new(),
                    (_, true) => [self.root.as_slice(), &path].concat(),
                    (_, false) => self.canonical(&path),
                },
                inode: self.items[i].inode.map(|inode| plan::Inode {
                    id: ObjectId {
                        dev: inode.dev,
                        ino: inode.ino,
                    },
                    mode: inode.mode.into(),
                    uid: inode.ouid,
                    gid: inode.ogid,
                    rdev: inode.rdev,
                }),
                existed: self.items[i].existed,
            };
            self.items[i].path = path;
            names.push(name);
        }
        names
    }

    fn canonical(&mut self, path: &[u8]) -> Vec<u8> {
        let (dir, last) = text::split(path);
        match self.view.canonical_dir(dir) {
            Some(mut real) => {
                if !last.is_empty() {
                    if real.last() != Some(&b'/') {
                        real.push(b'/');
                    }
                    real.extend_from_slice(last);
                }
                real
            }
            None => path.to_vec(),
        }
    }

    /// A path argument; `None` when the kernel did not get it from user space either, and so
    /// collected no name.
    fn arg<'e>(&self, event: &Event<'e>, index: u8, arg: PathArg) -> Option<Arg<'e>> {
        if !looks_up(event, index) {
            return None;
        }
        let read = event
            .object(wire::TARSIER_OBJECT_NAME, index)
            .filter(|object| !object.is_incomplete());
        let is_kernel_text = read.is_some();
        let text = match read {
            Some(object) => object.name,
            None => {
                let part = event.path(index)?;
                if part.is_unreadable() || part.is_cut() {
                    return None;
                }
                part.data
            }
        };
        let mut base = Vec::new();
        let dir = event.dir(index).filter(|_| text.first() != Some(&b'/'));
        let is_dirfd_relative = dir.is_some() && arg.dir != plan::NONE;
        let base_inode = match &dir {
            Some(dir) => {
                dir.walked(&mut base);
                Inode::from_wire(&dir.inode)
            }
            None => {
                base.extend_from_slice(&self.cwd);
                self.cwd_inode
            }
        };
        if text.is_empty() && !is_dirfd_relative && !takes_empty_path(event) {
            return None;
        }
        let mut path = Vec::with_capacity(base.len() + text.len() + 2);
        text::join(&mut path, &base, text);
        let mut name = text.to_vec();
        if is_dirfd_relative && !text.is_empty() {
            name.clear();
            name.extend_from_slice(&base);
            if base.last() != Some(&b'/') {
                name.push(b'/');
            }
            name.extend_from_slice(text);
        }
        if !self.destination.is_empty() && text.first() != Some(&b'/') {
            name.clone_from(&self.destination);
            path.clone_from(&self.destination);
        }
        let mut found = Arg {
            text,
            name,
            base,
            base_inode,
            path,
            is_real: false,
            is_dirfd_relative,
            is_kernel_text,
            index,
            parent_inode: None,
            failed: event
                .exit()
                .is_some_and(|exit| !event::record::is_success(exit)),
            is_unreached: self.sees_parents
                && is_kernel_text
                && arg.use_ != NameUse::Open
                && objects::is_unreached(event, text, arg.use_ == NameUse::Rename && index == 0),
        };
        if matches!(
            arg.use_,
            NameUse::Create | NameUse::Delete | NameUse::Rename
        ) {
            found.set_parent(objects::parent(event, index));
        }
        Some(found)
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
            let inode = known.or_else(|| self.view.inode(&self::parent(arg), true));
            (name, inode)
        };
        if arg.is_unreached || arg.failed && !inode.is_some_and(is_directory) {
            // The look-up did not come as far as the last name.
            return self.item(arg, NameType::Unknown, None);
        }
        self.items.push(Item {
            name: Some(name),
            path: text::split(&arg.path).0.to_vec(),
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
            is_real: arg.is_real,
            inode,
            nametype,
            existed: inode.is_some() || matches!(nametype, NameType::Delete | NameType::Create),
            caps: FileCaps::NONE,
        });
    }

    /// NORMAL if there is such an object now, else UNKNOWN.
    ///
    /// What the call itself told of the object counts more than what is there by now: another
    /// process may have made or removed it since.
    fn looked_up(&mut self, arg: &Arg<'_>, follow: bool, told: Told) {
        let inode = match (arg.text.is_empty(), arg.base_inode, told) {
            (true, Some(inode), _) => Some(inode),
            (_, _, Told::Missing) => None,
            _ => self.view.inode(&arg.path, follow),
        };
        let nametype = if inode.is_some() {
            NameType::Normal
        } else {
            NameType::Unknown
        };
        self.item(arg, nametype, inode);
        if let (Told::There, Some(item)) = (told, self.items.last_mut()) {
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

    /// A call on what a path leads to.
    fn acted_on(&mut self, event: &Event<'_>, arg: PathArg, mut found: Arg<'_>) {
        let follow = follows(event, arg);
        match call_name(event) {
            // The name of a file system, read as a path and never looked up.
            Some("sysfs") => return self.named(&found),
            // Read as a path, and then looked up as the name of a device.
            Some("quotactl") => self.named(&found),
            _ => {}
        }
        match event.object(wire::TARSIER_OBJECT_TARGET, found.index) {
            Some(target) => {
                let inode = self.agree(&mut found, &target, follow);
                self.item(&found, NameType::Normal, inode);
            }
            None => {
                // Of two paths it may be the other that is missing.
                let told = match Told::by(event) {
                    Told::Missing if event.path(1).is_some() => Told::Nothing,
                    told => told,
                };
                self.looked_up(&found, follow, told);
            }
        }
        let is_unmount = matches!(call_name(event), Some("umount" | "umount2" | "oldumount"));
        if let Some(item) = self
            .items
            .last_mut()
            .filter(|item| is_unmount && item.existed)
        {
            // Where a mount goes away audit does not ask for capabilities: AUDIT_INODE_NOEVAL.
            item.caps = FileCaps::Unknown;
        }
    }

    /// A name that was read and not looked up.
    fn named(&mut self, arg: &Arg<'_>) {
        self.items.push(Item {
            name: Some(arg.text.to_vec()),
            nametype: NameType::Unknown,
            ..Item::default()
        });
    }

    /// Makes an argument agree with the object that the kernel found under it. User memory, and the
    /// descriptor of a directory, may have been changed since: what is printed has to lead to the
    /// object, or it is the object's own path.
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

    fn opened(&mut self, event: &Event<'_>, shape: &Shape, arg: &mut Arg<'_>, succeeded: bool) {
        let args = &event.header().args;
        let flags = match (shape.open_flags, event.open_how()) {
            (_, Some(how)) => how[0],
            (plan::NONE, None) if shape.how == plan::NONE => O_CREAT,
            (plan::NONE, None) => 0,
            (position, None) => args.get(position as usize).copied().unwrap_or(0),
        };
        let creates = flags & O_CREAT != 0;
        let opened = event
            .object(wire::TARSIER_OBJECT_OPENED, 0)
            .filter(|_| succeeded)
            .map(|opened| objects::with_path(opened, event.file(0)));
        if let Some(opened) = opened {
            if creates && (opened.is_created() || !self.opens_first()) {
                arg.parent_inode = objects::parent(event, 0).0;
                self.parent(arg);
            }
            if opened.is_created() && self.opens_first() && self.is_link(arg) {
                self.through_link(arg);
            }
            let inode = self.agree(arg, &opened, true);
            let nametype = match opened.is_created() {
                true => NameType::Create,
                false => NameType::Normal,
            };
            return self.item(arg, nametype, inode);
        }
        let file = event.file(0).filter(|_| succeeded);
        let is_made = file
            .as_ref()
            .is_some_and(|f| u32::from(f.flags) & wire::TARSIER_PART_CREATED != 0);
        if creates && (is_made || !self.opens_first()) {
            self.parent(arg);
        }
        match file.as_ref().and_then(|file| Inode::from_wire(&file.inode)) {
            Some(inode) => {
                let nametype = if is_made {
                    NameType::Create
                } else {
                    NameType::Normal
                };
                self.item(arg, nametype, Some(inode));
            }
            None if creates && !self.opens_first() => {
                // O_EXCL is refused before the object is looked at.
                let is_passed =
                    matches!(Told::by(event), Told::Missing) || event.exit() == Some(EEXIST);
                let inode = self.view.inode(&arg.path, true).filter(|_| !is_passed);
                if let Some(inode) = inode {
                    self.item(arg, NameType::Normal, Some(inode));
                }
            }
            None => {
                let stops_at_link = flags & O_NOFOLLOW != 0 && event.exit() == Some(ELOOP)
                    || creates && flags & O_EXCL != 0;
                let told = match (event.exit(), flags & O_TMPFILE) {
                    // Its directory was looked for, and what is there is none.
                    (Some(ENOTDIR), O_TMPFILE) => Told::Missing,
                    _ => Told::by(event),
                };
                let mut is_there = || self.view.inode(&arg.path, !stops_at_link).is_some();
                if creates && !matches!(told, Told::Missing) && !is_there() {
                    // It could not be made.
                    return self.parent(arg);
                }
                self.looked_up(arg, !stops_at_link, told);
            }
        }
    }

    fn is_link(&mut self, arg: &Arg<'_>) -> bool {
        const S_IFMT: u16 = 0o170000;
        const S_IFLNK: u16 = 0o120000;
        let link = self.view.inode(&arg.path, false);
        link.is_some_and(|inode| inode.mode & S_IFMT == S_IFLNK)
    }

    /// A file made through a symbolic link that led nowhere: the kernel notes directory and entry of the link as well
    /// as those of the file, and does not know their names. The file is named here.
    fn through_link(&mut self, arg: &Arg<'_>) {
        let place = Item {
            inode: arg.parent_inode,
            nametype: NameType::Parent,
            existed: true,
            ..Item::default()
        };
        let entry = Item {
            nametype: NameType::Create,
            ..Item::default()
        };
        self.items.extend([place.clone(), entry, place]);
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
            inode,
            nametype: NameType::Normal,
            existed: true,
            caps: FileCaps::NONE,
        });
    }
}

/// Absolute path of the directory in which the last name is looked up.
fn parent(arg: &Arg<'_>) -> Vec<u8> {
    match text::last_component(arg.text) {
        b"." | b".." => {
            let mut path = Vec::new();
            text::join(&mut path, &arg.base, text::parent_text(arg.text));
            path
        }
        _ => text::split(&arg.path).0.to_vec(),
    }
}

fn is_directory(inode: Inode) -> bool {
    const S_IFMT: u16 = 0o170000;
    const S_IFDIR: u16 = 0o040000;
    inode.mode & S_IFMT == S_IFDIR
}

/// Kinds of call whose successful form is recorded with the new image.
pub fn is_exec(shape: &Shape) -> bool {
    shape.kind == Kind::Exec
}
