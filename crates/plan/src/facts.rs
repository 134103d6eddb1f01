//! What is known of an event when rules are decided.

/// How a call entered the kernel: index of the architecture in the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Entry {
    /// The kernel's own architecture.
    Native = 0,
    /// Its 32-bit sibling.
    Compat = 1,
    /// Through an io_uring ring: numbers are operations.
    Uring = 2,
}

/// Identity of a file-system object; `dev` in the kernel's encoding (major << 20 | minor).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectId {
    /// Device of the file system.
    pub dev: u32,
    /// Inode number.
    pub ino: u64,
}

/// An inode, as audit compares it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inode {
    /// Which one.
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

/// A name that the call collected: what will be a PATH record.
#[derive(Clone, Debug, Default)]
pub struct Name {
    /// Absolute path without symbolic links in its directory part; empty when unknown.
    pub path: Vec<u8>,
    /// The object, when there is (or was) one.
    pub inode: Option<Inode>,
    /// The call acted on an object of this name even if its inode is no longer known.
    pub existed: bool,
}

/// Task and call.
#[derive(Clone, Debug)]
pub struct Facts<'a> {
    /// How the call entered.
    pub entry: Entry,
    /// Its number.
    pub nr: u32,
    /// Its first four arguments at entry.
    pub args: [u64; 4],
    /// Result as the kernel returned it; `None` when the call does not return.
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
    pub exe: Option<ObjectId>,
    /// Open flags, when the call opens.
    pub open_flags: Option<u32>,
    /// Family of the socket address, when there is one.
    pub saddr_fam: Option<u32>,
    /// Names that the call collected, in order.
    pub names: &'a [Name],
}

impl Facts<'_> {
    /// The result as audit compares and prints it: `audit_return_fixup()`, kernel/auditsc.c.
    pub fn audit_result(&self) -> Option<i64> {
        self.result.map(audit_result)
    }

    /// `AUDITSC_SUCCESS` (1), `AUDITSC_FAILURE` (2), or `None` when the call does not return.
    pub fn return_valid(&self) -> Option<u32> {
        self.result
            .map(|ret| if (-4095..0).contains(&ret) { 2 } else { 1 })
    }
}

/// Restart codes, which user space never sees, count as `-EINTR`.
pub fn audit_result(ret: i64) -> i64 {
    const ENOIOCTLCMD: i64 = -515;
    if (-516..=-512).contains(&ret) && ret != ENOIOCTLCMD {
        -4
    } else {
        ret
    }
}

/// What the host's file system says of the paths that rules name. Filled by the caller, so that
/// planning does no I/O.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Identities {
    paths: std::collections::BTreeMap<Vec<u8>, PathIdentity>,
}

/// One path of a rule, resolved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PathIdentity {
    /// The object it names now.
    pub object: Option<ObjectId>,
    /// The same path without symbolic links in its directory part.
    pub canonical: Vec<u8>,
}

impl Identities {
    /// Says what `path` is.
    pub fn insert(&mut self, path: Vec<u8>, identity: PathIdentity) {
        self.paths.insert(path, identity);
    }

    /// The object that `path` names, if any.
    pub fn object(&self, path: &[u8]) -> Option<ObjectId> {
        self.paths.get(path).and_then(|identity| identity.object)
    }

    /// `path` without symbolic links in its directory part, or as it is when unknown.
    pub fn canonical<'a>(&'a self, path: &'a [u8]) -> &'a [u8] {
        match self.paths.get(path) {
            Some(identity) if !identity.canonical.is_empty() => &identity.canonical,
            _ => path,
        }
    }
}
