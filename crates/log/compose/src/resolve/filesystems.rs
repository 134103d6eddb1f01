//! Names on file systems that rules of the filesystem list exclude: audit keeps such a name, but notes neither the
//! object that it leads to nor entries that are created or deleted.
//!
//! Source: `__audit_inode()` and `__audit_inode_child()`, kernel/auditsc.c.

use super::items::Item;
use crate::system::{kernel_dev, KernelFile, System};
use record::record::{FileCaps, NameType};
use std::collections::HashMap;
use std::ffi::CString;
use std::sync::Arc;

/// Nanoseconds for which the table of mounts is used before it is read again.
const KEPT_NS: u64 = 1_000_000_000;

/// The kinds of the file systems that are mounted in the mount namespace of this process, by device.
pub(super) struct Filesystems {
    system: Arc<dyn System>,
    kinds: HashMap<u32, u32>,
    read_at_ns: Option<u64>,
}

impl Filesystems {
    /// An empty table. The mounts are read when a kind is first asked for.
    pub(super) fn new(system: Arc<dyn System>) -> Filesystems {
        Filesystems {
            system,
            kinds: HashMap::new(),
            read_at_ns: None,
        }
    }

    /// `f_type` of statfs(2) of the file system on `dev`; `None` if it is not mounted here.
    fn kind(&mut self, dev: u32) -> Option<u32> {
        let now_ns = self.system.monotonic_ns();
        if self
            .read_at_ns
            .is_none_or(|at_ns| now_ns.saturating_sub(at_ns) > KEPT_NS)
        {
            let mounts = self.system.kernel_file(KernelFile::Mounts);
            let mounts = mounts.unwrap_or_default();
            self.kinds = mounts
                .split(|&byte| byte == b'\n')
                .filter_map(|line| mount(&*self.system, line))
                .collect();
            self.read_at_ns = Some(self.system.monotonic_ns());
        }

        self.kinds.get(&dev).copied()
    }

    /// Removes the objects of names, and the items of created and deleted entries, on file systems whose kind
    /// `is_left_out`.
    pub(super) fn leave_out(&mut self, items: &mut Vec<Item>, is_left_out: impl Fn(u32) -> bool) {
        items.retain_mut(|item| {
            let kind = item.inode.and_then(|inode| self.kind(inode.dev));
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
    }
}

/// Device and kind of the file system in a line of mountinfo (proc(5)).
fn mount(system: &dyn System, line: &[u8]) -> Option<(u32, u32)> {
    let mut words = std::str::from_utf8(line).ok()?.split(' ').skip(2);
    let (major, minor) = words.next()?.split_once(':')?;
    let dev = rustix::fs::makedev(major.parse().ok()?, minor.parse().ok()?);
    // Mount points with blanks in their names are escaped; they are not found, and left out.
    let kind = system.file_system(&CString::new(words.nth(1)?).ok()?)?;
    Some((kernel_dev(dev), kind))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::static_system::{StaticFile, StaticSystem};
    use record::record::Inode;

    const PROC_SUPER_MAGIC: u32 = 0x9fa0;
    const EXT4_SUPER_MAGIC: u32 = 0xef53;

    fn item(dev: u32, nametype: NameType) -> Item {
        Item {
            inode: Some(Inode {
                dev,
                ..Inode::default()
            }),
            nametype,
            existed: true,
            ..Item::default()
        }
    }

    #[test]
    fn only_names_on_the_file_system_are_left_out() {
        let mut system = StaticSystem::default();
        let mounts = b"22 1 8:1 / / rw - ext4 /dev/sda1 rw\n23 22 0:21 / /proc rw - proc proc rw\n";
        let mounts = StaticFile {
            contents: mounts.to_vec(),
            ..StaticFile::default()
        };
        system.files = [("/proc/self/mountinfo", mounts)].into();
        system.file_systems = [("/", EXT4_SUPER_MAGIC), ("/proc", PROC_SUPER_MAGIC)].into();
        let mut filesystems = Filesystems::new(Arc::new(system));
        let mut items = vec![
            item(21, NameType::Normal),
            item(21, NameType::Create),
            item(8 << 20 | 1, NameType::Normal),
            item(22, NameType::Delete),
        ];
        filesystems.leave_out(&mut items, |kind| kind == PROC_SUPER_MAGIC);
        let types: Vec<NameType> = items.iter().map(|item| item.nametype).collect();
        assert_eq!(
            types,
            [NameType::Unknown, NameType::Normal, NameType::Delete]
        );
        assert_eq!(items[0].inode, None);
        assert!(items[1].inode.is_some());
    }
}
