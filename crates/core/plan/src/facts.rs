//! The facts of an event that rules are matched against.

use crate::mark_key::MarkKey;
use crate::task::TaskWorkload;

pub use crate::object_id::ObjectId;

/// Way in which a call entered the kernel. The number is the index of the architecture in the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Entry {
    /// By the kernel's own architecture.
    Native = 0,
    /// By the 32-bit architecture that the kernel also serves.
    Compat = 1,
    /// By io_uring: call numbers are operation numbers.
    Uring = 2,
}

/// An inode, as audit compares it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inode {
    /// Identity of the inode.
    pub id: ObjectId,
    /// Type and permissions.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Device that a device file stands for.
    pub rdev: u32,
}

/// A name that the call collected, and that a PATH record will show.
#[derive(Clone, Debug, Default)]
pub struct Name {
    /// Absolute path without symbolic links in its directory part; empty if unknown.
    pub path: Vec<u8>,
    /// The object, if there is (or was) one.
    pub inode: Option<Inode>,
    /// Whether the call acted on an object of this name, even if its inode is no longer known.
    pub existed: bool,
    /// The object that the name led to is not known: conditions on it may hold.
    pub is_unknown: bool,
    /// The call may have been refused before it got to the object: no condition on it surely holds.
    pub is_possible: bool,
    /// The directories above the object are known without `path`, which leads to it by a link that the call followed, or in
    /// another mount namespace.
    pub is_path_moot: bool,
    /// The directory in which the last name of `path` is, if the path is one of another mount namespace.
    pub directory: Option<ObjectId>,
    /// The owner in `inode` may not be the one that the call found, which it has changed.
    pub is_owner_changed: bool,
    /// What proves that `inode` is the object that the call used; without one, that there was none.
    pub object: Proven,
    /// What proves that `path` and [`Facts::above`] tell all directories above it.
    pub place: Proven,
}

/// What proves a fact about a name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Proven {
    /// Nothing: it was looked up after the call. Whoever makes calls can change what names lead to.
    #[default]
    Later,
    /// The kernel's cache of names had it so when the call was over.
    AtEnd,
    /// The call itself used it.
    InCall,
}

/// The executable of a task. Where `at` is of another file than `object`, it may be either, or none that rules name:
/// a file can be mounted over a path, and the file at a path can be replaced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Executable<'a> {
    /// The file; `None` if the task has none.
    pub object: Option<ObjectId>,
    /// The path to which its name leads, empty if that is none that rules name; `None` if it is the one of `object`.
    pub at: Option<&'a [u8]>,
}

impl Name {
    /// A name that led to an object of which nothing is known.
    pub fn unknown() -> Name {
        Name {
            existed: true,
            is_unknown: true,
            ..Name::default()
        }
    }

    /// Whether object and place are known from the call, or from the kernel when it was over.
    pub fn is_proven(&self) -> bool {
        self.object > Proven::Later && self.place > Proven::Later
    }
}

/// The facts of a task and its call.
#[derive(Clone, Debug)]
pub struct Facts<'a> {
    /// Way in which the call entered the kernel.
    pub entry: Entry,
    /// Number of the call or operation.
    pub nr: u32,
    /// The first four arguments, as of the entry.
    pub args: [u64; 4],
    /// Result as the kernel returned it; `None` if the call does not return, or the operation goes on.
    pub result: Option<i64>,
    /// Thread group id.
    pub pid: u32,
    /// Thread group id of the real parent.
    pub ppid: u32,
    /// Login uid; `u32::MAX` when unset.
    pub auid: u32,
    /// Session; `u32::MAX` when unset.
    pub ses: u32,
    /// Real user id.
    pub uid: u32,
    /// Effective user id.
    pub euid: u32,
    /// Saved user id.
    pub suid: u32,
    /// File-system user id.
    pub fsuid: u32,
    /// Real group id.
    pub gid: u32,
    /// Effective group id.
    pub egid: u32,
    /// Saved group id.
    pub sgid: u32,
    /// File-system group id.
    pub fsgid: u32,
    /// Supplementary groups.
    pub groups: &'a [u32],
    /// Personality word.
    pub personality: u32,
    /// Executable.
    pub exe: Executable<'a>,
    /// Open flags, if the call opens a file; `None` also if they are not known: it may have any access.
    pub open_flags: Option<u32>,
    /// Family of the socket address, if there is one.
    pub saddr_fam: Option<u32>,
    /// Names that the call collected, in order.
    pub names: &'a [Name],
    /// For mounts of a part of a file system that the call went through: the directories of that file
    /// system that contain what they show.
    pub above: &'a [ObjectId],
    /// Whether the call itself used what is below `above`, rather than what its names led to later.
    pub are_above_used: bool,
    /// The workload that the task belongs to.
    pub workload: TaskWorkload<'a>,
}

impl Facts<'_> {
    /// The result as audit compares and prints it: `audit_return_fixup()`, kernel/auditsc.c.
    pub fn audit_result(&self) -> Option<i64> {
        self.result.map(abi::audit_result)
    }

    /// `AUDITSC_SUCCESS` (1), `AUDITSC_FAILURE` (2), or `None` if the call does not return.
    pub fn return_valid(&self) -> Option<u32> {
        self.result
            .map(|ret| if (-4095..0).contains(&ret) { 2 } else { 1 })
    }
}

/// The objects that the paths in rules name on the host. The caller looks them up, so that planning
/// does no I/O.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Identities {
    /// The host's root directory.
    pub(crate) root: Option<ObjectId>,
    /// The factors of the hashes of marks.
    pub(crate) key: MarkKey,
    paths: std::collections::HashMap<Vec<u8>, PathIdentity>,
    /// Every component of the places to which the paths lead.
    components: std::collections::HashSet<Vec<u8>>,
}

/// A path of a rule, resolved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PathIdentity {
    /// The object that the path names now.
    pub object: Option<ObjectId>,
    /// The same path without symbolic links in its directory part.
    pub canonical: Vec<u8>,
    /// The directory that contains the last name of `canonical`.
    pub directory: Option<ObjectId>,
    /// Other places to which the directory was renamed since; rules on it follow.
    pub moved_to: Vec<Vec<u8>>,
    /// Objects that the path named before. One of them may be the directory that was renamed.
    pub former: Vec<ObjectId>,
    /// The roots of what is mounted below the directory.
    pub mounts: Vec<MountBelow>,
}

/// What is mounted below a directory that a rule names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MountBelow {
    /// The root of the mount.
    pub root: ObjectId,
    /// Whether it was there when the rules were loaded: the kernel's rule covers no other (`audit_add_tree_rule()`,
    /// kernel/audit_tree.c).
    pub is_of_load: bool,
}

impl PathIdentity {
    /// The objects by which the directory, and what is mounted below it, are known.
    pub(crate) fn objects(&self) -> impl Iterator<Item = ObjectId> + '_ {
        let mounts = self.mounts.iter().map(|mount| mount.root);
        self.object.into_iter().chain(mounts)
    }

    /// Adds objects that the path named before, the newest first.
    fn keep_former(&mut self, before: impl IntoIterator<Item = ObjectId>) {
        const FORMER_MAX: usize = 4;
        let newest: Vec<ObjectId> = before.into_iter().collect();
        let earlier = std::mem::take(&mut self.former);
        for object in newest.into_iter().chain(earlier) {
            let is_new = self.object != Some(object) && !self.former.contains(&object);
            if is_new && self.former.len() < FORMER_MAX {
                self.former.push(object);
            }
        }
    }

    /// Those of [`PathIdentity::objects`] by which the kernel's rule knows them.
    pub(crate) fn objects_of_load(&self) -> impl Iterator<Item = ObjectId> + '_ {
        let mounts = self.mounts.iter().filter(|mount| mount.is_of_load);
        self.object
            .into_iter()
            .chain(mounts.map(|mount| mount.root))
    }
}

impl Identities {
    /// No paths yet, on a host with this root directory. `random` makes the hashes of marks secret: callers choose
    /// names, and must not find others with the same hash.
    pub fn below(root: Option<ObjectId>, random: [u64; 2]) -> Identities {
        Identities {
            root,
            key: MarkKey::of(random),
            ..Identities::default()
        }
    }

    /// Adds a path, or replaces its identity.
    pub fn insert(&mut self, path: Vec<u8>, identity: PathIdentity) {
        for place in std::iter::once(&identity.canonical).chain(&identity.moved_to) {
            self.components.extend(components(place));
        }
        self.paths.insert(path, identity);
    }

    /// Whether an entry of this name can be a place to which one of the paths leads, or a directory on
    /// the way. It cannot for most changes of a file system, which can then be ignored.
    pub fn concern(&self, name: &[u8]) -> bool {
        self.components.contains(name)
    }

    /// The object and place of `path`, if a rule names it.
    pub fn of(&self, path: &[u8]) -> Option<&PathIdentity> {
        self.paths.get(path)
    }

    /// The object that `path` names, if there is one.
    pub fn object(&self, path: &[u8]) -> Option<ObjectId> {
        self.paths.get(path).and_then(|identity| identity.object)
    }

    /// Whether there are no paths.
    pub fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }

    /// The paths that lead to the entry `name` of a directory.
    pub fn paths_of(&self, directory: ObjectId, name: &[u8]) -> Vec<Vec<u8>> {
        let leads_there = |identity: &&PathIdentity| {
            identity.directory == Some(directory) && last_name(&identity.canonical) == name
        };
        let identities = self.paths.values().filter(leads_there);
        identities
            .map(|identity| identity.canonical.clone())
            .collect()
    }

    /// Notes that the entry at `canonical` has become another object, or none.
    pub fn replaced(&mut self, canonical: &[u8], object: Option<ObjectId>) {
        for identity in self.paths.values_mut() {
            if !canonical.is_empty() && identity.canonical == canonical {
                let before = std::mem::replace(&mut identity.object, object);
                identity.keep_former(before);
            }
        }
    }

    /// Notes that what was at `from` is at `to` now.
    pub fn moved(&mut self, from: &[u8], to: &[u8]) {
        const PLACES_MAX: usize = 16;
        for identity in self.paths.values_mut() {
            let places = std::iter::once(&identity.canonical).chain(&identity.moved_to);
            let moved = |place: &Vec<u8>| {
                let below = lies_below(place, from);
                below.then(|| [to, &place[from.len()..]].concat())
            };
            let moved: Vec<Vec<u8>> = places.filter_map(moved).collect();
            let is_new = |place: &Vec<u8>| !identity.moved_to.contains(place);
            let moved: Vec<Vec<u8>> = moved.into_iter().filter(is_new).collect();
            for place in &moved {
                self.components.extend(components(place));
            }
            identity.moved_to.extend(moved);
            let many = identity.moved_to.len().saturating_sub(PLACES_MAX);
            identity.moved_to.drain(..many);
        }
    }

    /// Remembers the objects that the paths named in `earlier`, for paths that both contain, and which mounts are later
    /// than the rules.
    pub fn keep_former(&mut self, earlier: &Identities) {
        for (path, identity) in &mut self.paths {
            let Some(known) = earlier.paths.get(path) else {
                continue;
            };
            let before = known.object.into_iter().chain(known.former.iter().copied());
            identity.former.clear();
            identity.keep_former(before);
            for mount in &mut identity.mounts {
                let before = known.mounts.iter().find(|before| before.root == mount.root);
                mount.is_of_load = before.is_some_and(|before| before.is_of_load);
            }
        }
    }

    /// Whether both name the same objects, now and at the same places. What was before does not count.
    pub fn agree(&self, other: &Identities) -> bool {
        let now = |identity: &PathIdentity| {
            let PathIdentity {
                object,
                canonical,
                directory,
                mounts,
                ..
            } = identity.clone();
            let roots: Vec<ObjectId> = mounts.iter().map(|mount| mount.root).collect();
            (object, canonical, directory, roots)
        };

        self.paths.len() == other.paths.len()
            && self.paths.iter().all(|(path, identity)| {
                let known = other.paths.get(path);
                known.is_some_and(|known| now(known) == now(identity))
            })
    }

    /// Takes over the places of renamed directories from `earlier`, for paths that both contain.
    pub fn keep_moves(&mut self, earlier: &Identities) {
        for (path, identity) in &mut self.paths {
            if let Some(known) = earlier.paths.get(path) {
                for place in &known.moved_to {
                    self.components.extend(components(place));
                }
                identity.moved_to.clone_from(&known.moved_to);
            }
        }
    }
}

/// The place to which `path` leads, which is `known`.
pub(crate) fn place<'a>(known: Option<&'a PathIdentity>, path: &'a [u8]) -> &'a [u8] {
    match known {
        Some(known) if !known.canonical.is_empty() => &known.canonical,
        _ => path,
    }
}

/// The place to which `path` leads, which is `known`, and the places to which that directory was renamed since.
pub(crate) fn places<'a>(
    known: Option<&'a PathIdentity>,
    path: &'a [u8],
) -> impl Iterator<Item = &'a [u8]> {
    let moved = known.map_or(&[][..], |known| &known.moved_to);
    std::iter::once(place(known, path)).chain(moved.iter().map(Vec::as_slice))
}

fn components(path: &[u8]) -> impl Iterator<Item = Vec<u8>> + '_ {
    path.split(|&byte| byte == b'/')
        .filter(|part| !part.is_empty())
        .map(<[u8]>::to_vec)
}

/// The last name of a path; `/` for the root directory, as in its entry.
pub(crate) fn last_name(path: &[u8]) -> &[u8] {
    let mut names = path.rsplit(|&byte| byte == b'/');
    names.find(|name| !name.is_empty()).unwrap_or(b"/")
}

/// Whether `path` is `dir` or lies below it.
pub fn lies_below(path: &[u8], dir: &[u8]) -> bool {
    let dir = dir.strip_suffix(b"/").unwrap_or(dir);
    match path.strip_prefix(dir) {
        Some(rest) => !path.is_empty() && (rest.is_empty() || rest[0] == b'/'),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(path: &[u8], ino: u64) -> (Vec<u8>, PathIdentity) {
        let object = Some(ObjectId { dev: 1, ino });
        let identity = PathIdentity {
            object,
            canonical: path.to_vec(),
            ..PathIdentity::default()
        };
        (path.to_vec(), identity)
    }

    #[test]
    fn a_directory_is_known_under_each_name_that_it_gets() {
        let mut identities = Identities::default();
        let (path, identity) = known(b"/srv/tree", 5);
        identities.insert(path.clone(), identity.clone());
        identities.moved(b"/srv/other", b"/elsewhere");
        identities.moved(b"/srv", b"/old");
        identities.moved(b"/old/tree", b"/new");
        let known: Vec<&[u8]> = places(identities.of(&path), &path).collect();
        assert_eq!(known, [&b"/srv/tree"[..], b"/old/tree", b"/new"]);
        for name in ["srv", "tree", "old", "new"] {
            assert!(identities.concern(name.as_bytes()), "{name}");
        }
        assert!(!identities.concern(b"other") && !identities.concern(b"elsewhere"));
        // The places are kept if the rules are read again.
        let mut again = Identities::default();
        again.insert(path.clone(), identity);
        again.keep_moves(&identities);
        assert_eq!(places(again.of(&path), &path).count(), 3);
        assert!(again.concern(b"new"));
        for i in 0..100 {
            identities.moved(b"/srv", format!("/{i}").as_bytes());
        }
        assert!(places(identities.of(&path), &path).count() < 20);
    }

    #[test]
    fn a_name_stands_for_the_object_that_has_it_now() {
        let mut identities = Identities::default();
        let (path, identity) = known(b"/srv/file", 5);
        identities.insert(path.clone(), identity);
        let other = Some(ObjectId { dev: 1, ino: 6 });
        identities.replaced(b"/srv/another", other);
        assert_eq!(identities.object(&path).map(|object| object.ino), Some(5));
        identities.replaced(b"/srv/file", other);
        assert_eq!(identities.object(&path), other);
        identities.replaced(b"/srv/file", None);
        assert_eq!(identities.object(&path), None);
    }
}
