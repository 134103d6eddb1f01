//! Turns the names of an event into items, one per PATH record.
//!
//! The order and types of items are those of the kernel (`audit_inode()`, `audit_inode_child()`, kernel/auditsc.c, as
//! called from fs/namei.c). Objects that hooks on kernel functions have noted take precedence (see [`objects`]).
//! Without them, the kernel identifies opened files, descriptors and the current directory, and what names led to as far
//! as its cache knows (see [`found`]); every other inode is looked up here by path, after the call.

mod aliases;
mod arg;
mod calls;
mod changed;
mod directories;
mod executed;
mod filesystems;
mod found;
mod hashed;
mod interp;
mod items;
mod kernel;
mod matched;
mod objects;
mod of_mounts;
mod opened;
mod operations;
mod proof;
mod queues;
mod reached;
mod refused;
mod sockets;
mod text;
mod view;

use crate::system::System;
use abi::exit::EBADF;
use abi::Verb;
pub(crate) use aliases::{aliases, entries, paths_of_entry};
use arg::{Arg, Reader};
use calls::{call, collects_names, moves_directory, pins};
pub(crate) use changed::has_moved_its_way;
use directories::Directories;
use executed::Executed;
use filesystems::Filesystems;
pub use interp::elf_interpreter;
use interp::Interpreters;
pub use items::Item;
use items::Items;
use kernel::Kernel;
use matched::Matched;
pub(crate) use operations::used_later;
use plan::{Name, NameUse, ObjectId, PathArg, Shape, ShapeKind};
use record::record::NameType;
use record::wire::{self, Event};
use record::FileHash;
use std::sync::Arc;
use view::View;

/// Turns the names of events into items. Keeps its buffers between events.
pub(crate) struct Resolver {
    directories: Directories,
    items: Items,
    interpreters: Interpreters,
    filesystems: Filesystems,
    kernel: Kernel,
}

impl Resolver {
    /// A resolver for events of `system`.
    pub(crate) fn new(system: &Arc<dyn System>) -> Resolver {
        Resolver {
            directories: Directories::default(),
            items: Items::new(View::new(Arc::clone(system))),
            interpreters: Interpreters::default(),
            filesystems: Filesystems::new(Arc::clone(system)),
            kernel: Kernel::of(&**system),
        }
    }

    /// Current directory of the last resolved event; empty if it had no names or the directory is not known.
    pub(crate) fn cwd(&self) -> &[u8] {
        &self.directories.cwd
    }

    /// Items of the last resolved event.
    pub(crate) fn items(&self) -> &[Item] {
        self.items.list()
    }

    /// Number of names of the last resolved event, as `items=` counts them.
    pub(crate) fn count(&self) -> u32 {
        self.items.count()
    }

    /// Forgets the items and directories of the event before.
    pub(crate) fn forget(&mut self) {
        self.items.clear();
        self.directories.clear();
    }

    /// Finds the items of `event`, whose call has this shape.
    pub(crate) fn resolve(&mut self, event: &Event<'_>, shape: &Shape) {
        self.forget();
        let (Some(cwd), true) = (event.cwd(), collects_names(event, self.kernel)) else {
            return;
        };

        let is_before = self.directories.take(event, &cwd, &mut self.items.view);
        let moved = moves_directory(event) && !is_before;
        if moved {
            self.directories.moved_to(event, shape);
        }

        self.paths(event, shape);
        if shape.kind == ShapeKind::Open && shape.paths[0].is_none() {
            opened::by_handle(&mut self.items, event);
        }

        of_mounts::add(&mut self.items, &self.directories, event);
        if shape.fd != plan::NONE && event.exit() != Some(EBADF) {
            reached::by_descriptor(&mut self.items, event);
        }

        if shape.may_name_socket() {
            sockets::add(&mut self.items, &self.directories, event);
        }

        if event.exit() == Some(0) {
            self.directories.seen_from_new_root(event);
        }

        if moved {
            // The former directory is not known; no CWD record is better than a wrong one.
            self.directories.cwd.clear();
        }
    }

    /// The digests of the files that the event executed; `exe` is the path of the task's executable.
    pub(crate) fn hashes(&mut self, event: &Event<'_>, exe: &[u8]) -> Vec<FileHash> {
        let (view, items) = self.items.parts();
        hashed::of(view, items, event, exe)
    }

    /// Removes the objects of names, and the items of created and deleted entries, on file systems whose kind
    /// `is_left_out`.
    pub(crate) fn leave_out(&mut self, is_left_out: impl Fn(u32) -> bool) {
        let (_, items) = self.items.parts();
        self.filesystems.leave_out(items, is_left_out);
    }

    /// The names by which rules are matched: see [`Matched::names`].
    pub(crate) fn names(&mut self, event: &Event<'_>, shape: &Shape) -> Vec<Name> {
        let (view, items) = self.items.parts();
        let root = &self.directories.root;
        Matched { view, root }.names(items, event, shape)
    }

    /// The directories above `names`, as they are now: one of them may be a mount of a directory that a rule names.
    pub(crate) fn directories_above(&mut self, names: &[Name]) -> Vec<ObjectId> {
        let (view, _) = self.items.parts();
        let root = &self.directories.root;
        Matched { view, root }.directories_above(names)
    }

    /// Whether a look-up for the event was refused, so that what it found may not be all.
    pub(crate) fn was_refused(&mut self) -> bool {
        let (view, _) = self.items.parts();
        view.refusals() > 0
    }

    /// Adds the items of the path arguments.
    fn paths(&mut self, event: &Event<'_>, shape: &Shape) {
        let kernel = self.kernel;
        let reader = Reader {
            directories: &self.directories,
            kernel,
        };
        let first = shape.paths[0].and_then(|arg| reader.arg(event, 0, arg));
        let second = shape.paths[1].and_then(|arg| reader.arg(event, 1, arg));
        found::tell(&mut self.items.view, event, [&first, &second]);

        match (shape.paths[0], shape.paths[1]) {
            (Some(old), Some(_)) if old.use_ == NameUse::Rename => {
                changed::rename(&mut self.items, kernel, event, first, second)
            }
            (Some(old), Some(new)) if new.use_ == NameUse::Create => {
                changed::link(&mut self.items, kernel, event, old, first, second)
            }
            (one, two) => {
                let mut both = [(one, first), (two, second)];
                if kernel.target_first && call(event).verb == Some(Verb::MoveMount) {
                    both.reverse();
                }
                for (arg, found) in both {
                    // The second of two paths is looked up only if the first led to an object.
                    let leads = self.items.list().last().is_none_or(|item| item.existed);
                    if let (Some(arg), Some(found), true) = (arg, found, leads) {
                        self.single(event, shape, arg, found);
                    }
                }
            }
        }
    }

    /// Adds the items of a path argument of a call that does not rename or link.
    fn single(&mut self, event: &Event<'_>, shape: &Shape, arg: PathArg, mut found: Arg<'_>) {
        let succeeded = event.exit().is_none_or(record::record::is_success);
        let (kernel, items) = (self.kernel, &mut self.items);
        let use_ = if pins(event) {
            NameUse::Create
        } else {
            arg.use_
        };

        match use_ {
            NameUse::Open => opened::add(items, kernel, (event, shape), &mut found, succeeded),
            NameUse::Exec => {
                let (directories, interpreters) = (&self.directories, &mut self.interpreters);
                let mut executed = Executed {
                    items,
                    directories,
                    interpreters,
                    follow: arg.follow.by(&event.header().args),
                };
                executed.add(event, &found, succeeded)
            }
            NameUse::Queue => queues::add(items, event, found.text),
            NameUse::Create => {
                items.parent(&found);
                match objects::entry(event, wire::TARSIER_OBJECT_CREATE, 0) {
                    Some(inode) => items.item(&found, NameType::Create, inode),
                    None if succeeded => {
                        let inode = items.view.made(&found.path);
                        items.item(&found, NameType::Create, inode);
                    }
                    None if refused::has_tried_to_make(event, &found) => items.not_made(&found),
                    None => {}
                }
            }
            NameUse::Delete => {
                items.parent(&found);
                let noted = objects::entry(event, wire::TARSIER_OBJECT_DELETE, 0);
                let left = refused::left_entry(items, event, &found);
                if let Some(inode) = noted.or(left) {
                    items.item(&found, NameType::Delete, inode);
                }
            }
            _ => reached::by_path(items, event, arg, found),
        }
    }
}

/// Whether the call executes a program; if it succeeds, its records describe the new image.
pub(crate) fn is_exec(shape: &Shape) -> bool {
    shape.kind == ShapeKind::Exec
}
