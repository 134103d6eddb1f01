//! Looks up the paths of rules on this host, as input for a plan.

use crate::system::{KernelFile, System};
use abi::Field;
use plan::{Identities, MountBelow, ObjectId, PathIdentity};
use record::record::Inode;
use rules::{Rule, Value};
use std::ffi::{CString, OsStr};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

/// Limit of the mounts below a directory that are looked at. What is mounted there beyond it is known by its path.
const MOUNTS_MAX: usize = 256;

/// Looks up every path that the rules name. `exe=` and `path=` name the entry itself, even if it is a symbolic link, as
/// in the kernel (`audit_get_nd()`, kernel/audit_watch.c); `dir=` follows the link (kernel/audit_tree.c).
pub fn identify(rules: &[Rule], system: &dyn System) -> Identities {
    let root = inode(b"/", true, system).map(object);
    let mut identities = Identities::below(root, [random(), random()]);
    let mounts = Mounts::of(rules, system);
    for condition in rules.iter().flat_map(|rule| &rule.conditions) {
        if let Value::Text(path) = &condition.value {
            match condition.field {
                Field::Exe | Field::AncestorExe | Field::Watch => {
                    identities.insert(path.clone(), entry(path, system))
                }
                Field::Dir => identities.insert(path.clone(), directory(path, &mounts, system)),
                _ => {}
            }
        }
    }

    identities
}

/// A number that nobody else knows: the hash of nothing, with the random key that the standard library gives each
/// hasher.
fn random() -> u64 {
    RandomState::new().build_hasher().finish()
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
        .any(|condition| {
            matches!(
                condition.field,
                Field::Exe | Field::AncestorExe | Field::Watch | Field::Dir
            )
        })
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

fn directory(path: &[u8], mounts: &Mounts, system: &dyn System) -> PathIdentity {
    let canonical = real_path(path, system).unwrap_or_default();
    PathIdentity {
        object: inode(path, true, system).map(object),
        mounts: mounts.below(&canonical, system),
        directory: directory_of(&canonical, system),
        canonical,
        ..PathIdentity::default()
    }
}

/// The places of this system's mounts.
struct Mounts(Vec<Vec<u8>>);

impl Mounts {
    /// The mounts, if rules are on directories.
    fn of(rules: &[Rule], system: &dyn System) -> Mounts {
        let mut fields = rules.iter().flat_map(|rule| &rule.conditions);
        let text = if fields.any(|condition| condition.field == Field::Dir) {
            system.kernel_file(KernelFile::Mounts).unwrap_or_default()
        } else {
            Vec::new()
        };
        let lines = text.split(|&byte| byte == b'\n');
        let places = lines.filter_map(|line| line.split(|&byte| byte == b' ').nth(4));
        Mounts(places.map(unescaped).collect())
    }

    /// The roots of what is mounted below a directory, as they are seen there.
    fn below(&self, dir: &[u8], system: &dyn System) -> Vec<MountBelow> {
        let is_below = |place: &&Vec<u8>| {
            !dir.is_empty() && place.as_slice() != dir && plan::lies_below(place, dir)
        };
        let below = self.0.iter().filter(is_below).take(MOUNTS_MAX);
        let roots = below.filter_map(|place| inode(place, true, system).map(object));
        let mut mounts: Vec<MountBelow> = Vec::new();

        for root in roots {
            if mounts.iter().all(|mount| mount.root != root) {
                mounts.push(MountBelow {
                    root,
                    is_of_load: true,
                });
            }
        }

        mounts
    }
}

/// Undoes the octal escapes of mountinfo: mangle(), fs/proc_namespace.c.
fn unescaped(text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&first, after)) = rest.split_first() {
        let digits = if first == b'\\' { after.get(..3) } else { None };
        let octal = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        match octal.and_then(|octal| u8::from_str_radix(octal, 8).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[3..];
            }
            None => {
                bytes.push(first);
                rest = after;
            }
        }
    }

    bytes
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

/// Identity of an object.
pub(crate) fn object(inode: Inode) -> ObjectId {
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
        let dir = directory(b"/link", &Mounts(Vec::new()), &system());
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
    fn the_executable_of_a_process_is_known_while_it_is_there() {
        assert_eq!(executable_of(42, &system()), id(4));
        assert_eq!(executable_of(43, &system()), None);
    }
}
