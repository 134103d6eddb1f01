//! Path arguments: from the text that user space passed to an absolute path.

use super::calls::{
    is_barred, is_refused_at_once, looks_at_descriptor, looks_up, names_descriptor_alone,
    takes_empty_path,
};
use super::directories::Directories;
use super::kernel::Kernel;
use super::{objects, text};
use abi::exit::ENOENT;
use plan::{ByFlag, NameUse, PathArg};
use record::record::Inode;
use record::wire::{self, Event};

/// A path argument, with what is known of its directories.
pub(super) struct Arg<'a> {
    /// The path as user space passed it.
    pub(super) text: &'a [u8],
    /// Path that the record prints: `text`, or an absolute path if a reader of the log could not know what `text` is
    /// relative to.
    pub(super) name: Vec<u8>,
    /// Directory that `text` is relative to.
    pub(super) base: Vec<u8>,
    /// Inode of `base`, if the kernel gave it.
    pub(super) base_inode: Option<Inode>,
    /// Absolute path without `.` and `..`.
    pub(super) path: Vec<u8>,
    /// `path` comes from the kernel, not from joining `base` and `text`.
    pub(super) is_real: bool,
    pub(super) is_dirfd_relative: bool,
    /// `text` is what the kernel read, not what user memory held after the call.
    pub(super) is_kernel_text: bool,
    pub(super) index: u8,
    /// What the call does with the name.
    pub(super) use_: NameUse,
    /// Inode of the directory that holds the last name, if the kernel gave it.
    pub(super) parent_inode: Option<Inode>,
    /// The call failed.
    pub(super) failed: bool,
    /// The call failed before the last name was looked up, as the hooks on the look-up show.
    pub(super) is_unreached: bool,
    /// The call failed before the name was looked up, as its error and the modes of directories show.
    pub(super) is_barred: bool,
}

/// Reads the path arguments of an event.
pub(super) struct Reader<'d> {
    pub(super) directories: &'d Directories,
    pub(super) kernel: Kernel,
}

impl Reader<'_> {
    /// Path argument `index` of `event`; `None` if it is not known, or if the kernel collected no name for it.
    pub(super) fn arg<'e>(&self, event: &Event<'e>, index: u8, arg: PathArg) -> Option<Arg<'e>> {
        if !looks_up(event, index) {
            return None;
        }

        let (text, is_kernel_text) = text_of(event, index)?;
        let mut base = Vec::new();
        let dir = if text.first() != Some(&b'/') {
            event.dir(index)
        } else {
            None
        };
        let is_dirfd_relative = dir.is_some() && arg.dir != plan::NONE;

        let base_inode = match &dir {
            Some(dir) => {
                dir.walked(&mut base);
                Inode::from_wire(&dir.inode)
            }
            // What the descriptor stands for is not known.
            None if is_relative_to_descriptor(event, arg, text) => None,
            None => {
                base.extend_from_slice(&self.directories.cwd);
                self.directories.cwd_inode
            }
        };

        let is_nameless = text.is_empty()
            && (names_descriptor_alone(event, index, self.kernel)
                || looks_at_descriptor(event) == Some(false));
        // The kernel takes no empty text for a name, and fails with ENOENT.
        let is_changed = matches!(
            arg.use_,
            NameUse::Open | NameUse::Create | NameUse::Delete | NameUse::Rename
        );
        let is_missing = event.exit() == Some(ENOENT) && arg.empty.is_descriptor != ByFlag::ALWAYS;
        let is_refused = is_changed || is_missing;
        let is_no_name = text.is_empty() && (!is_dirfd_relative || is_refused);
        if is_no_name && !takes_empty_path(event) || is_nameless {
            return None;
        }

        let (name, path) = self.name_and_path(text, &base, is_dirfd_relative);
        let exit = event.exit();
        let is_old_name = arg.use_ == NameUse::Rename && index == 0;
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
            use_: arg.use_,
            parent_inode: None,
            failed: exit.is_some_and(|exit| !record::record::is_success(exit)),
            is_unreached: self.kernel.shows_parents
                && is_kernel_text
                && arg.use_ != NameUse::Open
                && objects::is_unreached(event, text, is_old_name),
            is_barred: is_barred(event, index) || is_refused_at_once(event),
        };

        if matches!(
            arg.use_,
            NameUse::Create | NameUse::Delete | NameUse::Rename
        ) {
            found.set_parent(objects::parent(event, index));
        }

        Some(found)
    }

    /// The name that the record prints for `text`, and its absolute path.
    fn name_and_path(
        &self,
        text: &[u8],
        base: &[u8],
        is_dirfd_relative: bool,
    ) -> (Vec<u8>, Vec<u8>) {
        let destination = &self.directories.destination;
        if !destination.is_empty() && text.first() != Some(&b'/') {
            return (destination.clone(), destination.clone());
        }

        let mut path = Vec::with_capacity(base.len() + text.len() + 2);
        if !base.is_empty() || text.first() == Some(&b'/') {
            text::join(&mut path, base, text);
        }

        let mut name = text.to_vec();
        if is_dirfd_relative && !text.is_empty() {
            name.clear();
            name.extend_from_slice(base);
            if base.last() != Some(&b'/') {
                name.push(b'/');
            }
            name.extend_from_slice(text);
        }

        (name, path)
    }
}

/// Whether a path is relative to a descriptor, not to the current directory.
fn is_relative_to_descriptor(event: &Event<'_>, arg: PathArg, text: &[u8]) -> bool {
    const AT_FDCWD: i32 = -100;
    let dir = event.header().args.get(usize::from(arg.dir));
    text.first() != Some(&b'/') && dir.is_some_and(|&dir| dir as i32 != AT_FDCWD)
}

/// The text of path argument `index`, and whether it is what the kernel read; `None` if it is not known in full.
pub(super) fn text_of<'e>(event: &Event<'e>, index: u8) -> Option<(&'e [u8], bool)> {
    let read = event
        .object(wire::TARSIER_OBJECT_NAME, index)
        .filter(|object| !object.is_incomplete());
    if let Some(object) = read {
        return Some((object.name, true));
    }
    if event.header().args[1] == 0 && looks_at_descriptor(event) == Some(true) {
        return Some((b"", false));
    }
    let part = event.path(index)?;
    (!part.is_unreadable() && !part.is_cut()).then_some((part.data, false))
}

impl<'a> Arg<'a> {
    /// A path that the kernel itself holds, as an argument relative to the current directory.
    pub(super) fn of_kernel(directories: &Directories, text: &'a [u8], failed: bool) -> Arg<'a> {
        let base = directories.cwd.clone();
        let mut path = Vec::with_capacity(base.len() + text.len() + 2);
        text::join(&mut path, &base, text);
        Arg {
            text,
            name: text.to_vec(),
            base,
            base_inode: directories.cwd_inode,
            path,
            is_real: false,
            is_dirfd_relative: false,
            is_kernel_text: true,
            index: 0,
            use_: NameUse::Exec,
            parent_inode: None,
            failed,
            is_unreached: false,
            is_barred: false,
        }
    }

    /// Sets the argument's directory to the one that the kernel found. The path is then right even if another thread
    /// has since put something else in the place of the directory.
    fn set_parent(&mut self, (inode, dir): (Option<Inode>, Vec<u8>)) {
        self.parent_inode = inode;
        if dir.is_empty() {
            return;
        }
        let last = text::last_component(self.text);
        self.path.clear();
        text::join(&mut self.path, &dir, last);
        self.is_real = true;
        if self.is_dirfd_relative {
            self.name.clone_from(&self.path);
        }
    }

    /// The absolute path with its `..`; empty if it has none, or is known to be right.
    pub(super) fn with_dots(&self) -> Vec<u8> {
        let mut names = self.text.split(|&byte| byte == b'/');
        if self.is_real || !names.any(|name| name == b"..") {
            return Vec::new();
        }
        match self.text.first() {
            Some(b'/') => self.text.to_vec(),
            _ => [self.base.as_slice(), b"/", self.text].concat(),
        }
    }

    /// Absolute path of the directory in which the last name is looked up.
    pub(super) fn directory(&self) -> Vec<u8> {
        if self.ends_in_dots() {
            let mut path = Vec::new();
            text::join(&mut path, &self.base, text::parent_text(self.text));
            path
        } else {
            text::split(&self.path).0.to_vec()
        }
    }

    /// Whether the last name is `.` or `..`, so that `path` has another last name, or none.
    pub(super) fn ends_in_dots(&self) -> bool {
        matches!(text::last_component(self.text), b"." | b"..")
    }
}
