//! Current and root directory of the task that made a call.

use super::calls::call;
use super::view::View;
use super::{objects, text};
use abi::NewDirectory;
use plan::Shape;
use record::record::Inode;
use record::wire::{self, Event, Part};

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
    /// Forgets the directories of the event before, except its root directory, which [`Directories::take`] replaces.
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
        let destination = match call(event).moves {
            Some(NewDirectory::Current) => event.cwd(),
            _ => event.root(),
        };
        if let (Some(destination), true) = (destination, shape.paths[0].is_some()) {
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

        // A chroot that no hook has noted: the new root is the task's.
        let root = || event.root().map(|_| self.root.clone());
        let seen = match (call(event).moves, place(0).or_else(root), place(1)) {
            (Some(NewDirectory::Root), Some(root), _) => text::below(&self.cwd, &root),
            (Some(NewDirectory::Pivot), Some(root), Some(old)) => {
                text::after_pivot(&self.cwd, &root, &old)
            }
            _ => None,
        };

        if let Some(seen) = seen {
            self.cwd = seen;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::static_system::StaticSystem;
    use crate::test_frame::TestFrame;
    use record::wire::{TARSIER_PART_CWD, TARSIER_PART_OBJECT, TARSIER_PART_ROOT};
    use std::sync::Arc;

    /// An OBJECT part without inode.
    fn object(role: u32, walk: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; 32];
        bytes.extend(role.to_ne_bytes());
        bytes.extend([0; 4]);
        bytes.extend(walk);
        bytes
    }

    /// The directories of a call, and whether its current directory is the one from before it.
    fn taken(frame: TestFrame) -> (Directories, Vec<u8>, bool) {
        let frame = frame.bytes();
        let event = Event::parse(&frame).expect("a frame");
        let cwd = event.cwd().expect("a current directory");
        let mut directories = Directories::default();
        let mut view = View::new(Arc::new(StaticSystem::default()));
        let is_before = directories.take(&event, &cwd, &mut view);
        directories.seen_from_new_root(&event);
        let cwd = directories.cwd.clone();
        (directories, cwd, is_before)
    }

    fn call(name: &str) -> TestFrame {
        TestFrame::of_named_call(name).part(TARSIER_PART_CWD, 0, b"a\0srv\0")
    }

    #[test]
    fn a_directory_that_the_hooks_noted_is_that_from_before_the_call() {
        let (_, cwd, is_before) = taken(call("chdir"));
        assert_eq!((cwd, is_before), (b"/srv/a".to_vec(), false));
        let noted = object(wire::TARSIER_OBJECT_CWD, b"tmp\0");
        let noted = call("chdir").part(TARSIER_PART_OBJECT, 0, &noted);
        let (_, cwd, is_before) = taken(noted);
        assert_eq!((cwd, is_before), (b"/tmp".to_vec(), true));
    }

    #[test]
    fn after_chroot_the_directory_is_seen_from_the_new_root() {
        let root = object(wire::TARSIER_OBJECT_TARGET, b"srv\0");
        let chroot = call("chroot").part(TARSIER_PART_OBJECT, 0, &root);
        assert_eq!(taken(chroot).1, b"/a");
    }

    #[test]
    fn the_root_directory_is_forgotten_with_its_event() {
        let chrooted = call("chdir").part(TARSIER_PART_ROOT, 0, b"jail\0");
        let (mut directories, _, _) = taken(chrooted);
        assert_eq!(directories.root, b"/jail");
        let frame = call("chdir").bytes();
        let event = Event::parse(&frame).expect("a frame");
        let mut view = View::new(Arc::new(StaticSystem::default()));
        directories.take(&event, &event.cwd().expect("a directory"), &mut view);
        assert_eq!(directories.root, b"");
    }
}
