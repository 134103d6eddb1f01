//! Digests of the files that an execve has run.

use super::items::Item;
use super::view::View;
use crate::identify::object;
use crate::system::ExecutedFile;
use plan::ObjectId;
use record::record::Inode;
use record::wire::Event;
use record::{Digests, FileHash, HashedFile, NoDigest};

/// The program that runs, whose path is `exe`, and then, if the event executed a script, the script, which is the first
/// of `items`. Nothing for another event.
pub(super) fn of(view: &mut View, items: &[Item], event: &Event<'_>, exe: &[u8]) -> Vec<FileHash> {
    let Some(file) = event.exec_file() else {
        return Vec::new();
    };

    let mut hashed = Hashed { view, event };
    let image = Inode::from_wire(&file.inode);
    let mut hashes = vec![hashed.file(HashedFile::Exe, exe, image)];
    if !file.interpreter.is_empty() {
        // The kernel does not say which file the script was: what its path leads to is looked up.
        let (path, inode) = match items.first() {
            Some(item) if item.with_dots.is_empty() => (&item.path[..], item.inode),
            Some(item) => (&item.with_dots[..], item.inode),
            None => (&b""[..], None),
        };
        hashes.push(hashed.file(HashedFile::Script, path, inode));
    }

    hashes
}

struct Hashed<'v, 'e> {
    view: &'v mut View,
    event: &'e Event<'e>,
}

impl Hashed<'_, '_> {
    fn file(&mut self, file: HashedFile, path: &[u8], inode: Option<Inode>) -> FileHash {
        let is_script = file == HashedFile::Script;
        // Without a current directory, the event has not been resolved.
        let known = if self.event.cwd().is_some() && !(is_script && path.is_empty()) {
            inode
        } else {
            None
        };
        let digests = match known {
            Some(inode) => self.digests(file, path, object(inode)),
            None => Digests::none(NoDigest::Gone),
        };
        FileHash {
            file,
            path: path.to_vec(),
            ino: inode.map(|inode| inode.ino),
            digests,
        }
    }

    fn digests(&mut self, file: HashedFile, path: &[u8], object: ObjectId) -> Digests {
        let header = self.event.header();
        let executed = ExecutedFile {
            // Not a file: replaced by `path`, if that can be reached.
            path: c"/",
            object,
            file,
            pid: header.pid,
            mnt_ns: header.mnt_ns,
            time_ns: header.frame.time_ns,
        };
        self.view.digests(path, executed)
    }
}
