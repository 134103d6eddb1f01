//! Names on file systems that rules of the filesystem list leave out: audit keeps such a name, and does not look at
//! what it leads to.
//!
//! Source: `__audit_inode()` and `__audit_inode_child()`, kernel/auditsc.c.

use super::{kernel_dev, FileCaps, NameType, Resolver};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// How long what is mounted is taken to stay so.
const KEPT: Duration = Duration::from_secs(1);

/// The kinds of the file systems that are mounted here, by device.
#[derive(Default)]
pub(super) struct Filesystems {
    kinds: HashMap<u32, u32>,
    read_at: Option<Instant>,
}

impl Filesystems {
    /// `f_type` of statfs(2) of the file system on `dev`; `None` if it is not mounted here.
    fn kind(&mut self, dev: u32) -> Option<u32> {
        if self.read_at.is_none_or(|at| at.elapsed() > KEPT) {
            let mounts = std::fs::read("/proc/self/mountinfo").unwrap_or_default();
            self.kinds = mounts
                .split(|&byte| byte == b'\n')
                .filter_map(mount)
                .collect();
            self.read_at = Some(Instant::now());
        }
        self.kinds.get(&dev).copied()
    }
}

/// Device and kind of a line of mountinfo (proc(5)).
fn mount(line: &[u8]) -> Option<(u32, u32)> {
    let mut words = std::str::from_utf8(line).ok()?.split(' ').skip(2);
    let (major, minor) = words.next()?.split_once(':')?;
    let dev = rustix::fs::makedev(major.parse().ok()?, minor.parse().ok()?);
    // Points with blanks in their names are written otherwise, and left out.
    let found = rustix::fs::statfs(words.nth(1)?).ok()?;
    Some((kernel_dev(dev), found.f_type as u32))
}

impl Resolver {
    /// Forgets the objects of names on file systems whose kind `is_left_out`.
    pub fn leave_out(&mut self, is_left_out: impl Fn(u32) -> bool) {
        let mut items = std::mem::take(&mut self.items);
        items.retain_mut(|item| {
            let kind = item
                .inode
                .and_then(|inode| self.filesystems.kind(inode.dev));
            if !kind.is_some_and(&is_left_out) {
                return true;
            }
            item.inode = None;
            item.existed = false;
            item.caps = FileCaps::NONE;
            let is_entry = matches!(item.nametype, NameType::Create | NameType::Delete);
            item.nametype = NameType::Unknown;
            !is_entry
        });
        self.items = items;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resolve::Item;
    use event::record::Inode;

    #[test]
    fn only_names_on_the_file_system_are_left_out() {
        const PROC_SUPER_MAGIC: u32 = 0x9fa0;
        let item = |path: &str| {
            let stat = rustix::fs::stat(path).expect("it is there");
            Item {
                inode: Some(Inode {
                    dev: kernel_dev(stat.st_dev),
                    ..Inode::default()
                }),
                nametype: NameType::Normal,
                existed: true,
                ..Item::default()
            }
        };
        let mut resolver = Resolver::new();
        resolver.items = vec![item("/proc/version"), item("/")];
        resolver.leave_out(|kind| kind == PROC_SUPER_MAGIC);
        let types: Vec<NameType> = resolver.items.iter().map(|item| item.nametype).collect();
        assert_eq!(types, [NameType::Unknown, NameType::Normal]);
        assert_eq!(resolver.items[0].inode, None);
        assert!(resolver.items[1].inode.is_some());
    }
}
