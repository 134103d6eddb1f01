//! Items of execve: the file, and the interpreter or loader that runs it.

use super::arg::Arg;
use super::calls::{call, LookupOutcome};
use super::directories::Directories;
use super::interp::{self, Interpreters};
use super::items::{Item, Items};
use super::text;
use crate::identify::object;
use abi::exit::ENOENT;
use plan::PathArg;
use record::record::{Inode, NameType};
use record::wire::{self, DirPart, Event};

/// Adds the items of a call that executes a program.
pub(super) struct Executed<'r> {
    pub(super) items: &'r mut Items,
    pub(super) directories: &'r Directories,
    pub(super) interpreters: &'r mut Interpreters,
    /// Whether a symbolic link that is the last name is followed.
    pub(super) follow: bool,
}

impl Executed<'_> {
    /// Adds the items of an execve of `arg`.
    pub(super) fn add(&mut self, event: &Event<'_>, arg: &Arg<'_>, succeeded: bool) {
        let file = if succeeded { event.exec_file() } else { None };
        let Some(file) = file else {
            if arg.text.is_empty() && !arg.is_dirfd_relative {
                return self.items.named(arg);
            }
            self.first(event, arg);
            self.interpreters_between(event);
            return self.missing_interpreter(event, arg);
        };

        let image = Inode::from_wire(&file.inode);
        let opened = event.executed_as(wire::TARSIER_EXECUTED_IMAGE);
        let mut image_path = arg.path.clone();
        // The kernel names a file that execveat was given by its descriptor `/dev/fd/N` or `/dev/fd/N/NAME`.
        let by_descriptor = arg.text.strip_prefix(b"/dev/fd/");
        let has_directory = |path: PathArg| path.dir != plan::NONE;
        let by_descriptor = if call(event).shape.paths[0].is_some_and(has_directory) {
            by_descriptor
        } else {
            None
        };

        match by_descriptor {
            Some(rest) => image_path = self.named_by_descriptor(event, rest, &file),
            None if file.interpreter.is_empty() => self.items.item(arg, NameType::Normal, image),
            None => self.first(event, arg),
        }

        if !file.interpreter.is_empty() {
            self.interpreters_between(event);
            image_path.clear();
            text::join(&mut image_path, &self.directories.cwd, file.interpreter);
            self.interpreter(file.interpreter, &image_path, image);
        }

        if let (Some(opened), Some(item)) = (&opened, self.items.last_mut()) {
            at(item, opened);
        }

        self.with_caps();
        if let Some(image) = image {
            self.loader(event, image, &image_path);
        }
    }

    /// Adds the item of the file that the call names, if that is not what runs.
    fn first(&mut self, event: &Event<'_>, arg: &Arg<'_>) {
        let kept = event.executed_as(wire::TARSIER_EXECUTED_KEPT);
        let Some(opened) = event.executed_as(0).or(kept) else {
            return self
                .items
                .looked_up(arg, self.follow, LookupOutcome::Nothing);
        };
        self.items
            .item(arg, NameType::Normal, Inode::from_wire(&opened.inode));
        if let Some(item) = self.items.last_mut() {
            at(item, &opened);
        }
    }

    /// Adds the items of the files between the one that the call names and the one that runs: scripts that are the
    /// interpreters of scripts. Their names are not known.
    fn interpreters_between(&mut self, event: &Event<'_>) {
        let is_between = |index| (1..=wire::TARSIER_EXECUTED_KEPT).contains(&u32::from(index));
        let files = event.executed().filter(|&(index, _)| is_between(index));
        let is_first_kept = event.executed_as(0).is_none();
        for (_, opened) in files.skip(is_first_kept.into()) {
            self.opened(&opened);
        }
    }

    /// Adds the item of the loader of `image`, which is at `path`.
    fn loader(&mut self, event: &Event<'_>, image: Inode, path: &[u8]) {
        let view = &mut self.items.view;
        let Some(opened) = event.executed_as(wire::TARSIER_EXECUTED_LOADER) else {
            let is_known = event.executed_as(wire::TARSIER_EXECUTED_IMAGE).is_some();
            let name = if is_known {
                None
            } else {
                interp::loader_in(view, image, path)
            };
            if let Some(name) = name {
                let inode = self.items.view.inode(&name, true);
                self.interpreter(&name, &name, inode);
            }
            return;
        };

        let loader = Inode::from_wire(&opened.inode);
        let name = loader.and_then(|loader| self.interpreters.name_of(view, loader, image, path));
        self.opened(&opened);
        if let (Some(name), Some(item)) = (name, self.items.last_mut()) {
            item.name = Some(name);
        }
    }

    /// Adds the item of a file that the call has opened by a name that is not known: its path is printed.
    fn opened(&mut self, opened: &DirPart<'_>) {
        self.interpreter(b"", b"", Inode::from_wire(&opened.inode));
        if let Some(item) = self.items.last_mut() {
            at(item, opened);
            item.name = Some(item.path.clone()).filter(|name| !name.is_empty());
        }
    }

    /// Adds the item of the interpreter that runs a script or of the loader of an image.
    fn interpreter(&mut self, name: &[u8], path: &[u8], inode: Option<Inode>) {
        self.items.push(Item {
            name: Some(name.to_vec()),
            path: path.to_vec(),
            inode,
            nametype: match inode {
                Some(_) => NameType::Normal,
                None => NameType::Unknown,
            },
            existed: inode.is_some(),
            ..Item::default()
        });
    }

    /// Adds the item of a script's interpreter that does not exist: the kernel looked it up before the call failed.
    fn missing_interpreter(&mut self, event: &Event<'_>, arg: &Arg<'_>) {
        let script = self.items.list().last().filter(|item| item.existed);
        let (Some(script), true) = (script, event.exit() == Some(ENOENT)) else {
            return;
        };

        let of = script.inode.map(object);
        if let Some(name) = interp::script_interpreter(&mut self.items.view, of, &arg.path) {
            let mut path = Vec::new();
            text::join(&mut path, &self.directories.cwd, &name);
            if self.items.view.inode(&path, true).is_none() {
                self.interpreter(&name, &path, None);
            }
        }
    }

    /// Adds the item of a file that execveat was given by its descriptor; the kernel names it `/dev/fd/` followed by
    /// `rest`. An empty name is printed as it was passed, a name relative to the descriptor as the path of the
    /// executable that runs now, or for a script as it was passed. Returns that path; empty for a script.
    fn named_by_descriptor(
        &mut self,
        event: &Event<'_>,
        rest: &[u8],
        file: &wire::ExecFile<'_>,
    ) -> Vec<u8> {
        let mut path = Vec::new();
        let runs = file.interpreter.is_empty();
        let script = event.executed_as(0);
        if let (Some(exe), true) = (event.exe(), runs) {
            exe.walked(&mut path);
        }

        let slash = rest.iter().position(|&byte| byte == b'/');
        let relative = slash.map_or(&b""[..], |slash| &rest[slash + 1..]);
        let name = match (relative, runs) {
            (b"", _) => Vec::new(),
            (_, true) => path.clone(),
            (relative, false) => relative.to_vec(),
        };
        self.items.push(Item {
            name: Some(name),
            path: path.clone(),
            is_real: runs,
            inode: if runs {
                Inode::from_wire(&file.inode)
            } else {
                script.and_then(|script| Inode::from_wire(&script.inode))
            },
            nametype: NameType::Normal,
            existed: true,
            ..Item::default()
        });

        path
    }

    /// Gives the last item the capabilities of its file.
    fn with_caps(&mut self) {
        let (view, items) = self.items.parts();
        if let Some(last) = items.last_mut() {
            last.caps = view.file_caps(&last.path, last.inode.map(object));
        }
    }
}

/// Whether all files are known that a call that executes a program has reached; of one that has failed before it opened
/// any, the file that it names.
pub(super) fn are_known(event: &Event<'_>) -> bool {
    let has_more =
        |(_, file): (u8, DirPart<'_>)| u32::from(file.flags) & wire::TARSIER_PART_MORE != 0;
    let succeeded = event.exit().is_none_or(record::record::is_success);
    let has_image = event.executed_as(wire::TARSIER_EXECUTED_IMAGE).is_some();
    (has_image || !succeeded) && !event.executed().any(has_more)
}

/// Gives an item the path of the file that the kernel opened for it, if that is known in full.
fn at(item: &mut Item, opened: &DirPart<'_>) {
    let in_part = wire::TARSIER_PART_CUT | wire::TARSIER_PART_UNREADABLE;
    if u32::from(opened.flags) & in_part != 0 {
        return;
    }

    let mut path = Vec::new();
    wire::walked_path(
        opened.walk,
        opened.flags & !(wire::TARSIER_PART_DELETED as u8),
        &mut path,
    );
    item.path = path;
    item.with_dots.clear();
    item.is_real = true;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_frame::TestFrame;
    use abi::exit::EACCES;
    use wire::{tarsier_inode, TARSIER_EXECUTED_IMAGE, TARSIER_EXECUTED_LOADER};
    use zerocopy::IntoBytes;

    /// Whether the files of an execve that has ended so are known, of which these were opened.
    fn known(exit: i64, opened: &[(u32, u32)]) -> bool {
        let mut frame = TestFrame::of_named_call("execve");
        frame.header.exit = exit;
        let inode = tarsier_inode::default();
        for &(index, flags) in opened {
            let part = (index as u8, flags);
            frame = frame.flagged(wire::TARSIER_PART_EXECUTED, part, inode.as_bytes());
        }
        let bytes = frame.bytes();
        are_known(&Event::parse(&bytes).expect("a frame"))
    }

    #[test]
    fn an_execve_of_which_a_file_may_be_missing_is_not_known() {
        const MORE: u32 = wire::TARSIER_PART_MORE;
        let all = [
            (0, 0),
            (TARSIER_EXECUTED_IMAGE, 0),
            (TARSIER_EXECUTED_LOADER, 0),
        ];
        assert!(known(0, &all));
        assert!(!known(0, &[]));
        assert!(!known(0, &all[..1]));
        assert!(!known(0, &[(TARSIER_EXECUTED_IMAGE, MORE)]));
        // It has not opened the file that it names, or was refused another one.
        assert!(known(EACCES, &[]));
        assert!(!known(EACCES, &[(0, MORE)]));
    }
}
