//! The program that loads an ELF image: its PT_INTERP entry (elf(5)).

use super::view::View;
use crate::system::HEAD_BYTES_MAX;
use plan::ObjectId;
use record::record::Inode;
use std::collections::HashMap;

/// Largest number of names in the cache, which is then cleared.
const REMEMBERED_MAX: usize = 4096;
/// The program headers and the interpreter's name lie in the first bytes of every usual image.
const HEAD_BYTES: u32 = HEAD_BYTES_MAX;
const PT_INTERP: u32 = 3;

/// Device and inode number of an object.
type Object = (u32, u64);

/// Cache of the names by which images name their loaders. A name counts for an image and a loader together: the image
/// may be written anew.
#[derive(Default)]
pub(super) struct Interpreters {
    known: HashMap<(Object, Object), Vec<u8>>,
}

impl Interpreters {
    /// Name of `loader`, which the kernel has loaded for `image`, in that image, which was found at `path`; `None` if
    /// another file is there now, or names another loader.
    pub(super) fn name_of(
        &mut self,
        view: &mut View,
        loader: Inode,
        image: Inode,
        path: &[u8],
    ) -> Option<Vec<u8>> {
        let object = |inode: Inode| (inode.dev, inode.ino);
        let key = (object(image), object(loader));
        if let Some(known) = self.known.get(&key) {
            return Some(known.clone());
        }

        let name = loader_in(view, image, path);
        let name = name.filter(|name| view.inode(name, true).map(object) == Some(key.1))?;
        if self.known.len() >= REMEMBERED_MAX {
            self.known.clear();
        }

        self.known.insert(key, name.clone());
        Some(name)
    }
}

/// The loader that `image`, which was found at `path`, names now; `None` if it has none, or if another file is there.
pub(super) fn loader_in(view: &mut View, image: Inode, path: &[u8]) -> Option<Vec<u8>> {
    // Another file may have taken the name since.
    let of = ObjectId {
        dev: image.dev,
        ino: image.ino,
    };
    elf_interpreter(&view.image_head(path, of, HEAD_BYTES)?)
}

/// The interpreter in the first line of the script `of` at `path` (load_script(), fs/binfmt_script.c); `None` if the
/// file is not a script, or is another one.
pub(super) fn script_interpreter(
    view: &mut View,
    of: Option<ObjectId>,
    path: &[u8],
) -> Option<Vec<u8>> {
    const LINE_BYTES: u32 = 256;
    let head = view.head(path, of, LINE_BYTES)?;
    let line = head.strip_prefix(b"#!")?;
    let line = line.split(|&byte| byte == b'\n' || byte == 0).next()?;
    let mut words = line.split(|&byte| byte == b' ' || byte == b'\t');
    words.find(|word| !word.is_empty()).map(<[u8]>::to_vec)
}

/// PT_INTERP of an ELF image that starts with `head`, without its NUL; `None` if the image has none
/// there.
pub fn elf_interpreter(head: &[u8]) -> Option<Vec<u8>> {
    if head.get(..4)? != b"\x7fELF" || head.get(5)? != &1 {
        return None;
    }

    let is_64 = *head.get(4)? == 2;
    let bytes = |at: usize, len: usize| head.get(at..)?.get(..len);
    let half = |at: usize| Some(u16::from_le_bytes(bytes(at, 2)?.try_into().ok()?));
    let word = |at: usize| Some(u32::from_le_bytes(bytes(at, 4)?.try_into().ok()?));
    let long = |at: usize| Some(u64::from_le_bytes(bytes(at, 8)?.try_into().ok()?));
    let (table, size, count) = if is_64 {
        (long(32)? as usize, half(54)? as usize, half(56)?)
    } else {
        (word(28)? as usize, half(42)? as usize, half(44)?)
    };

    for i in 0..count as usize {
        let entry = table.checked_add(i.checked_mul(size)?)?;
        if word(entry)? != PT_INTERP {
            continue;
        }
        let (offset, len) = if is_64 {
            (long(entry.checked_add(8)?)?, long(entry.checked_add(32)?)?)
        } else {
            (
                word(entry.checked_add(4)?)?.into(),
                word(entry.checked_add(16)?)?.into(),
            )
        };
        let end = offset.checked_add(len)? as usize;
        let name = head.get(offset as usize..end)?;
        return Some(name.split(|&byte| byte == 0).next()?.to_vec());
    }

    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::static_system::{StaticFile, StaticSystem};
    use std::io::Read;
    use std::sync::Arc;

    fn own_head() -> Vec<u8> {
        let mut head = Vec::new();
        let file = std::fs::File::open("/proc/self/exe").expect("own executable");
        file.take(HEAD_BYTES.into())
            .read_to_end(&mut head)
            .expect("readable");
        head
    }

    fn inode(ino: u64) -> Inode {
        Inode {
            ino,
            ..Inode::default()
        }
    }

    #[test]
    fn an_image_without_a_path_is_read_at_its_process_until_that_ends() {
        let head = own_head();
        let loader = elf_interpreter(&head).expect("tests are linked dynamically");
        let loader_path = String::from_utf8(loader.clone()).expect("UTF-8");
        let file = |ino, contents| StaticFile {
            inode: inode(ino),
            contents,
            ..StaticFile::default()
        };
        let name = |exe: Option<u64>| {
            let mut system = StaticSystem::default();
            system
                .files
                .insert("/proc/self/ns/mnt", file(9, Vec::new()));
            system
                .files
                .insert(loader_path.clone().leak(), file(7, Vec::new()));
            system.files.insert("/gone", file(8, head.clone()));
            if let Some(ino) = exe {
                system.files.insert("/proc/42/exe", file(ino, head.clone()));
            }
            let mut view = View::new(Arc::new(system));
            view.set(9, 42, b"");
            Interpreters::default().name_of(&mut view, inode(7), inode(5), b"/gone")
        };
        assert_eq!(name(Some(5)), Some(loader));
        assert_eq!(name(Some(6)), None, "it has executed another one since");
        assert_eq!(name(None), None);
    }

    #[test]
    fn the_loader_of_a_dynamic_program_is_found() {
        let loader = elf_interpreter(&own_head()).expect("tests are linked dynamically");
        assert!(
            loader.starts_with(b"/lib"),
            "{}",
            String::from_utf8_lossy(&loader)
        );
    }

    #[test]
    fn a_cut_or_wrong_image_has_no_loader() {
        let mut head = own_head();
        for len in 0..64 {
            assert_eq!(elf_interpreter(&head[..len]), None);
        }
        assert_eq!(elf_interpreter(b"#!/bin/sh\n"), None);
        head[32..40].copy_from_slice(&u64::MAX.to_le_bytes());
        assert_eq!(elf_interpreter(&head), None);
    }
}
