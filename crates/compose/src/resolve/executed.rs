//! Items of execve: the file, and the interpreter or loader that runs it.

use super::arg::Arg;
use super::calls::{call_name, LookupOutcome};
use super::directories::Directories;
use super::interp::{self, Interpreters};
use super::items::{Item, Items};
use super::text;
use crate::identify::object;
use event::record::{FileCaps, Inode, NameType};
use event::wire::{self, Event};

/// Adds the items of a call that executes a program.
pub(super) struct Executed<'r> {
    pub(super) items: &'r mut Items,
    pub(super) directories: &'r Directories,
    pub(super) interpreters: &'r mut Interpreters,
}

impl Executed<'_> {
    /// Adds the items of an execve of `arg`.
    pub(super) fn add(&mut self, event: &Event<'_>, arg: &Arg<'_>, succeeded: bool) {
        let file = event.exec_file().filter(|_| succeeded);
        let Some(file) = file else {
            if arg.text.is_empty() && !arg.is_dirfd_relative {
                return self.items.named(arg);
            }
            self.items.looked_up(arg, true, LookupOutcome::Nothing);
            return self.missing_interpreter(event, arg);
        };
        let image = Inode::from_wire(&file.inode);
        let mut image_path = arg.path.clone();
        // The kernel names a file that execveat was given by its descriptor `/dev/fd/N` or `/dev/fd/N/NAME`.
        let by_descriptor = arg.text.strip_prefix(b"/dev/fd/");
        let by_descriptor = by_descriptor.filter(|_| call_name(event) == Some("execveat"));
        match by_descriptor {
            Some(rest) => image_path = self.named_by_descriptor(event, rest, &file),
            None if file.interpreter.is_empty() => self.items.item(arg, NameType::Normal, image),
            None => self.items.looked_up(arg, true, LookupOutcome::Nothing),
        }
        if !file.interpreter.is_empty() {
            image_path.clear();
            text::join(&mut image_path, &self.directories.cwd, file.interpreter);
            self.interpreter(file.interpreter, &image_path, image);
        }
        self.with_caps();
        let Some(image) = image else { return };
        if let Some(loader) = self
            .interpreters
            .of(&mut self.items.view, image, &image_path)
        {
            let inode = self.items.view.inode(&loader, true);
            self.interpreter(&loader, &loader, inode);
        }
    }

    /// Adds the item of the interpreter that runs a script or of the loader of an image.
    fn interpreter(&mut self, name: &[u8], path: &[u8], inode: Option<Inode>) {
        self.items.push(Item {
            name: Some(name.to_vec()),
            path: path.to_vec(),
            with_dots: Vec::new(),
            is_real: false,
            inode,
            nametype: match inode {
                Some(_) => NameType::Normal,
                None => NameType::Unknown,
            },
            existed: inode.is_some(),
            caps: FileCaps::NONE,
        });
    }

    /// Adds the item of a script's interpreter that does not exist: the kernel looked it up before the call failed.
    fn missing_interpreter(&mut self, event: &Event<'_>, arg: &Arg<'_>) {
        const ENOENT: i64 = -2;
        let script = self.items.list().last().filter(|item| item.existed);
        let Some(script) = script.filter(|_| event.exit() == Some(ENOENT)) else {
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
        if let Some(exe) = event.exe().filter(|_| runs) {
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
            with_dots: Vec::new(),
            is_real: runs,
            inode: Inode::from_wire(&file.inode).filter(|_| runs),
            nametype: NameType::Normal,
            existed: true,
            caps: FileCaps::NONE,
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
