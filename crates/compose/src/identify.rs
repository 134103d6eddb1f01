//! Looks up the paths of rules on this host, as input for a plan.

use crate::system::{read_all, System};
use abi::Field;
use event::record::Inode;
use plan::{Identities, ObjectId, PathIdentity};
use rules::{Rule, Value};
use std::ffi::{CString, OsStr};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

/// Looks up every path that the rules name. `exe=` and `path=` name the entry itself, even if it is a symbolic link, as
/// in the kernel (`audit_get_nd()`, kernel/audit_watch.c); `dir=` follows the link (kernel/audit_tree.c).
pub fn identify(rules: &[Rule], system: &dyn System) -> Identities {
    let mut identities = Identities::default();
    let mounts = Mounts::of(system);
    let entry = |path: &[u8]| mounts.corrected(entry(path, system));
    let directory = |path: &[u8]| mounts.corrected(directory(path, system));
    for condition in rules.iter().flat_map(|rule| &rule.conditions) {
        if let Value::Text(path) = &condition.value {
            match condition.field {
                Field::Exe | Field::Watch => identities.insert(path.clone(), entry(path)),
                Field::Dir => identities.insert(path.clone(), directory(path)),
                _ => {}
            }
        }
    }
    identities
}

/// Mount points, with the devices of the file systems mounted there, as the kernel has them. stat(2) gives others for
/// btrfs (the subvolume's) and overlayfs (the layer's).
struct Mounts(Vec<(Vec<u8>, u32)>);

impl Mounts {
    fn of(system: &dyn System) -> Mounts {
        let text = read_all(system, "/proc/self/mountinfo").unwrap_or_default();
        let lines = text.split(|&byte| byte == b'\n');
        Mounts(lines.filter_map(mount_of).collect())
    }

    /// `identity` with the devices that the kernel has for its object and directory.
    fn corrected(&self, mut identity: PathIdentity) -> PathIdentity {
        let place = identity.canonical.clone();
        if let (Some(object), Some(dev)) = (&mut identity.object, self.device_at(&place)) {
            object.dev = dev;
        }
        let parent = Path::new(OsStr::from_bytes(&place)).parent();
        let parent = parent.map(|parent| self.device_at(parent.as_os_str().as_bytes()));
        if let (Some(directory), Some(Some(dev))) = (&mut identity.directory, parent) {
            directory.dev = dev;
        }
        identity
    }

    /// The device at a path without symbolic links: that of the last mount among those nearest to it.
    fn device_at(&self, path: &[u8]) -> Option<u32> {
        let covers = |(point, _): &&(Vec<u8>, u32)| plan::lies_below(path, point);
        let nearest = self
            .0
            .iter()
            .filter(covers)
            .max_by_key(|(point, _)| point.len());
        nearest.map(|(_, dev)| *dev)
    }
}

/// Mount point and device of a line of mountinfo, proc_pid_mountinfo(5).
fn mount_of(line: &[u8]) -> Option<(Vec<u8>, u32)> {
    let mut fields = line.split(|&byte| byte == b' ').skip(2);
    let device = std::str::from_utf8(fields.next()?).ok()?;
    let (major, minor) = device.split_once(':')?;
    let dev = major.parse::<u32>().ok()? << 20 | minor.parse::<u32>().ok()?;
    Some((unescaped(fields.nth(1)?), dev))
}

/// A field of mountinfo without its octal escapes.
fn unescaped(field: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&byte, after)) = rest.split_first() {
        let code = rest.get(1..4).filter(|_| byte == b'\\');
        let code = code.and_then(|digits| std::str::from_utf8(digits).ok());
        match code.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                out.push(byte);
                rest = &rest[4..];
            }
            None => {
                out.push(byte);
                rest = after;
            }
        }
    }
    out
}

/// The executable of process `pid`; `None` if the process has ended.
pub(crate) fn executable_of(pid: u32, system: &dyn System) -> Option<ObjectId> {
    let link = CString::new(format!("/proc/{pid}/exe")).ok()?;
    system.inode(&link, true).map(object)
}

/// Whether any rule names a path, whose object may change while the rules are in force.
pub fn names_paths(rules: &[Rule]) -> bool {
    rules
        .iter()
        .flat_map(|rule| &rule.conditions)
        .any(|condition| matches!(condition.field, Field::Exe | Field::Watch | Field::Dir))
}

fn entry(path: &[u8], system: &dyn System) -> PathIdentity {
    let file = Path::new(OsStr::from_bytes(path));
    let canonical = match (file.parent(), file.file_name()) {
        (Some(parent), Some(name)) => {
            let parent = real_path(parent.as_os_str().as_bytes(), system);
            parent.map(|parent| Path::new(OsStr::from_bytes(&parent)).join(name))
        }
        _ => Some(file.to_owned()),
    };
    let canonical = canonical.map(|path| path.into_os_string().into_vec());
    let canonical = canonical.unwrap_or_default();
    PathIdentity {
        object: inode(path, false, system).map(object),
        directory: directory_of(&canonical, system),
        canonical,
        ..PathIdentity::default()
    }
}

fn directory(path: &[u8], system: &dyn System) -> PathIdentity {
    let canonical = real_path(path, system).unwrap_or_default();
    PathIdentity {
        object: inode(path, true, system).map(object),
        directory: directory_of(&canonical, system),
        canonical,
        ..PathIdentity::default()
    }
}

/// The directory that contains the last name of a path without symbolic links.
fn directory_of(canonical: &[u8], system: &dyn System) -> Option<ObjectId> {
    let parent = Path::new(OsStr::from_bytes(canonical)).parent()?;
    inode(parent.as_os_str().as_bytes(), true, system).map(object)
}

fn inode(path: &[u8], follow: bool, system: &dyn System) -> Option<Inode> {
    system.inode(&CString::new(path).ok()?, follow)
}

fn real_path(path: &[u8], system: &dyn System) -> Option<Vec<u8>> {
    system.real_path(&CString::new(path).ok()?)
}

fn object(inode: Inode) -> ObjectId {
    ObjectId {
        dev: inode.dev,
        ino: inode.ino,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::static_system::{StaticFile, StaticSystem};

    fn file(ino: u64, real_path: Option<&'static str>) -> StaticFile {
        StaticFile {
            inode: Inode {
                ino,
                dev: 1,
                ..Inode::default()
            },
            real_path,
            ..StaticFile::default()
        }
    }

    fn system() -> StaticSystem {
        StaticSystem {
            files: [
                ("/", file(9, None)),
                ("/real", file(1, None)),
                ("/real/dir", file(2, None)),
                ("/link", file(3, Some("/real"))),
                ("/link/dir", file(2, Some("/real/dir"))),
                ("/proc/42/exe", file(4, None)),
            ]
            .into(),
            ..StaticSystem::default()
        }
    }

    fn id(ino: u64) -> Option<ObjectId> {
        Some(ObjectId { dev: 1, ino })
    }

    #[test]
    fn a_watch_is_on_the_link_and_a_directory_behind_it() {
        let watch = entry(b"/link", &system());
        assert_eq!((watch.object, &watch.canonical[..]), (id(3), &b"/link"[..]));
        assert_eq!(watch.directory, id(9));
        let dir = directory(b"/link", &system());
        assert_eq!((dir.object, &dir.canonical[..]), (id(1), &b"/real"[..]));
    }

    #[test]
    fn links_in_the_directory_of_a_watch_are_resolved_also_if_the_file_is_missing() {
        let there = entry(b"/link/dir", &system());
        assert_eq!(there.canonical, b"/real/dir");
        assert_eq!(there.directory, id(1));
        let missing = entry(b"/link/new", &system());
        assert_eq!(
            (missing.object, &missing.canonical[..]),
            (None, &b"/real/new"[..])
        );
        let lost = entry(b"/nowhere/new", &system());
        assert_eq!((lost.object, &lost.canonical[..]), (None, &b""[..]));
        assert_eq!(lost.directory, None);
    }

    #[test]
    fn devices_are_those_of_the_mounts_and_not_of_stat() {
        let mountinfo = b"1 0 0:20 / / rw - ext4 a rw\n2 1 0:30 / /real rw - btrfs b rw\n\
            3 2 0:31 / /real/a\\040b rw - btrfs c rw\n4 1 0:40 / /real rw - overlay d rw\nbroken\n";
        let mut system = system();
        let file = StaticFile {
            contents: mountinfo.to_vec(),
            ..StaticFile::default()
        };
        system.files.insert("/proc/self/mountinfo", file);
        let mounts = Mounts::of(&system);
        let found = |path: &[u8]| mounts.device_at(path);
        assert_eq!(found(b"/other"), Some(20));
        assert_eq!(found(b"/real/dir"), Some(40));
        assert_eq!(found(b"/real/a b/c"), Some(31));
        assert_eq!(found(b"/really"), Some(20));
        let identity = mounts.corrected(directory(b"/link/dir", &system));
        assert_eq!(identity.object, Some(ObjectId { dev: 40, ino: 2 }));
        assert_eq!(identity.directory, Some(ObjectId { dev: 40, ino: 1 }));
    }

    #[test]
    fn the_executable_of_a_process_is_known_while_it_is_there() {
        assert_eq!(executable_of(42, &system()), id(4));
        assert_eq!(executable_of(43, &system()), None);
    }
}
