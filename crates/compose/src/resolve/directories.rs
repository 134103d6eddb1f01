//! Current and root directory of the task that made a call.

use super::calls::call_name;
use super::view::View;
use super::{objects, text};
use event::record::Inode;
use event::wire::{self, Event, Part};
use plan::Shape;

/// The directories to which the paths of one event are relative. Keeps its buffers between events.
#[derive(Default)]
pub(super) struct Directories {
    /// Current directory; empty if it is not known.
    pub(super) cwd: Vec<u8>,
    /// Inode of `cwd`.
    pub(super) cwd_inode: Option<Inode>,
    /// Root directory of the task; empty if it is that of its mount namespace.
    pub(super) root: Vec<u8>,
    /// After chdir and chroot, the absolute path that a relative argument stands for; else empty.
    pub(super) destination: Vec<u8>,
}

impl Directories {
    /// Forgets the directories of the event before, but its root directory.
    pub(super) fn clear(&mut self) {
        self.cwd.clear();
        self.destination.clear();
    }

    /// Takes current and root directory of the task from `event`, and sets `view` to what the task sees. Returns
    /// whether the current directory is the one from before the call.
    pub(super) fn take(&mut self, event: &Event<'_>, cwd: &Part<'_>, view: &mut View) -> bool {
        cwd.walked(&mut self.cwd);
        self.cwd_inode = event.cwd_inode().as_ref().and_then(Inode::from_wire);
        self.root.clear();
        if let Some(root) = event.root() {
            root.walked(&mut self.root);
        }
        let header = event.header();
        view.set(header.mnt_ns, header.pid, &self.root);
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

    /// After a successful chdir or chroot, the task's directory is the one that the call named, so the path of the new
    /// directory replaces a relative argument.
    pub(super) fn moved_to(&mut self, event: &Event<'_>, shape: &Shape) {
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
    pub(super) fn seen_from_new_root(&mut self, event: &Event<'_>) {
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
}
