//! CWD and PATH: the names that a call looked up.

use super::Body;
use crate::{put, wire, RecordType};

/// CWD (1307).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cwd<'a> {
    /// Absolute path, followed by ` (deleted)` if the directory was removed.
    pub cwd: &'a [u8],
}

impl Body for Cwd<'_> {
    fn kind(&self) -> RecordType {
        RecordType::CWD
    }

    fn write(&self, out: &mut Vec<u8>) {
        put::text(out, "cwd=");
        put::untrusted(out, self.cwd);
    }
}

/// The role of a name in the call: enum audit_ntype in kernel/audit.h.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NameType {
    /// The object itself.
    Normal,
    /// The directory in which an entry was created or removed.
    Parent,
    /// An entry that was removed.
    Delete,
    /// An entry that was created.
    Create,
    /// The lookup found nothing.
    #[default]
    Unknown,
}

impl NameType {
    /// Every value with its spelling.
    pub const ALL: [(NameType, &'static str); 5] = [
        (NameType::Normal, "NORMAL"),
        (NameType::Parent, "PARENT"),
        (NameType::Delete, "DELETE"),
        (NameType::Create, "CREATE"),
        (NameType::Unknown, "UNKNOWN"),
    ];

    /// Spelling in the log.
    pub fn name(self) -> &'static str {
        Self::ALL
            .iter()
            .find(|(value, _)| *value == self)
            .map_or("UNKNOWN", |(_, name)| name)
    }
}

/// Identity of an object of a file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct Inode {
    /// Inode number.
    pub ino: u64,
    /// Device, kernel encoding: `major << 20 | minor`.
    pub dev: u32,
    /// Type and permissions, as st_mode.
    pub mode: u16,
    /// Owner, as the initial user namespace sees it.
    pub ouid: u32,
    /// Group, as the initial user namespace sees it.
    pub ogid: u32,
    /// Device that a device node stands for, in the same encoding as `dev`.
    pub rdev: u32,
    /// Number of its SELinux label when the call reached it; 0: not known.
    pub label: u32,
}

impl Inode {
    /// Converts the struct of the wire; `None` if no object was found.
    pub fn from_wire(inode: &wire::tarsier_inode) -> Option<Inode> {
        (inode.valid != 0).then_some(Inode {
            ino: inode.ino,
            dev: inode.dev,
            mode: inode.mode as u16,
            ouid: inode.uid,
            ogid: inode.gid,
            rdev: inode.rdev,
            label: inode.valid >> 1,
        })
    }
}

/// File capabilities of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileCaps {
    /// Capabilities that were looked up; all are zero if the file has none.
    Known {
        /// cap_fp
        permitted: u64,
        /// cap_fi
        inheritable: u64,
        /// cap_fe
        effective: i32,
        /// cap_fver
        version: u32,
        /// cap_frootid
        rootid: i32,
    },
    /// Capabilities that were not looked up (umount): printed as `?`.
    Unknown,
}

impl FileCaps {
    /// The capabilities of a file that has none.
    pub const NONE: FileCaps = FileCaps::Known {
        permitted: 0,
        inheritable: 0,
        effective: 0,
        version: 0,
        rootid: 0,
    };
}

impl Default for FileCaps {
    fn default() -> Self {
        FileCaps::NONE
    }
}

/// PATH (1302): audit_log_name().
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PathItem<'a> {
    /// Number of the item within the event: 0, 1, …
    pub item: u32,
    /// The name; `None` prints `(null)`.
    pub name: Option<&'a [u8]>,
    /// The object; with `None`, the fields from `inode` to `rdev` are left out.
    pub inode: Option<Inode>,
    /// Label of the object, if a security module provides one.
    pub obj: Option<&'a [u8]>,
    /// Role of the name in the call.
    pub nametype: NameType,
    /// File capabilities.
    pub caps: FileCaps,
}

impl Body for PathItem<'_> {
    fn kind(&self) -> RecordType {
        RecordType::PATH
    }

    fn write(&self, out: &mut Vec<u8>) {
        put::field(out, "item=", self.item);
        put::text(out, " name=");
        put::untrusted_or_null(out, self.name);
        if let Some(inode) = self.inode {
            put::text(out, " inode=");
            put::decimal(out, inode.ino);
            put::text(out, " dev=");
            put::device(out, inode.dev);
            put::text(out, " mode=");
            put::octal(out, inode.mode.into(), true);
            put::field(out, " ouid=", inode.ouid);
            put::field(out, " ogid=", inode.ogid);
            put::text(out, " rdev=");
            put::device(out, inode.rdev);
        }

        put::label(out, " obj=", self.obj);
        put::text(out, " nametype=");
        put::text(out, self.nametype.name());
        match self.caps {
            FileCaps::Unknown => put::text(out, " cap_fe=? cap_fver=? cap_fp=? cap_fi=?"),
            FileCaps::Known {
                permitted,
                inheritable,
                effective,
                version,
                rootid,
            } => {
                put::capabilities(out, " cap_fp=", permitted);
                put::capabilities(out, " cap_fi=", inheritable);
                put::text(out, " cap_fe=");
                put::signed(out, effective.into());
                put::text(out, " cap_fver=");
                put::hex(out, version.into(), 0);
                put::text(out, " cap_frootid=");
                put::signed(out, rootid.into());
            }
        }
    }

    /// The owners, unless a label with a blank seems to have fields.
    fn decides_alone(&self) -> Option<[u32; 11]> {
        if self.obj.is_some_and(|label| label.contains(&b' ')) {
            return None;
        }
        let mut by = [0; 11];
        if let Some(inode) = self.inode {
            by[..3].copy_from_slice(&[1, inode.ouid, inode.ogid]);
        }
        Some(by)
    }
}
