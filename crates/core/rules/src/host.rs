//! Facts that the parser needs about the machine that the rules are for.

use std::collections::BTreeMap;

use abi::Arch;

/// Kind of object that a path leads to, symbolic links followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathKind {
    /// A directory.
    Dir,
    /// Anything else that exists.
    Other,
    /// Nothing.
    Missing,
}

/// Looks up the users, groups and paths that rules name. [`SystemHost`](crate::SystemHost) asks the
/// running system.
pub trait Host {
    /// The kernel's architecture: what `b64`, `b32` and names of calls without `arch=` mean.
    fn arch(&self) -> Arch;
    /// The id of the user `name`, if there is one.
    fn uid(&self, name: &str) -> Option<u32>;
    /// The id of the group `name`, if there is one.
    fn gid(&self, name: &str) -> Option<u32>;
    /// Kind of object at the absolute path `path`.
    fn path_kind(&self, path: &[u8]) -> PathKind;
}

/// A host described by tables, for tests and for checking rules meant for another machine.
#[derive(Clone, Debug)]
pub struct StaticHost {
    /// Architecture of the host.
    pub arch: Arch,
    /// Users by name.
    pub users: BTreeMap<String, u32>,
    /// Groups by name.
    pub groups: BTreeMap<String, u32>,
    /// Kinds of objects by path.
    pub paths: BTreeMap<Vec<u8>, PathKind>,
    /// Kind of object at every path that is not in `paths`.
    pub other_paths: PathKind,
}

impl StaticHost {
    /// A host with the user and group `root`, where every path is a file.
    pub fn new(arch: Arch) -> StaticHost {
        StaticHost {
            arch,
            users: BTreeMap::from([("root".to_owned(), 0)]),
            groups: BTreeMap::from([("root".to_owned(), 0)]),
            paths: BTreeMap::new(),
            other_paths: PathKind::Other,
        }
    }

    /// Adds a user.
    pub fn user(mut self, name: &str, uid: u32) -> StaticHost {
        self.users.insert(name.to_owned(), uid);
        self
    }

    /// Adds a group.
    pub fn group(mut self, name: &str, gid: u32) -> StaticHost {
        self.groups.insert(name.to_owned(), gid);
        self
    }

    /// Sets what is at `path`.
    pub fn path(mut self, path: &str, kind: PathKind) -> StaticHost {
        self.paths.insert(path.as_bytes().to_vec(), kind);
        self
    }
}

impl Host for StaticHost {
    fn arch(&self) -> Arch {
        self.arch
    }

    fn uid(&self, name: &str) -> Option<u32> {
        self.users.get(name).copied()
    }

    fn gid(&self, name: &str) -> Option<u32> {
        self.groups.get(name).copied()
    }

    fn path_kind(&self, path: &[u8]) -> PathKind {
        self.paths.get(path).copied().unwrap_or(self.other_paths)
    }
}
