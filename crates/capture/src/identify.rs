//! What the paths of rules are on this host: input of a plan.

use crate::resolve::kernel_dev;
use abi::Field;
use plan::{Identities, ObjectId, PathIdentity};
use rules::{Rule, Value};
use rustix::fs::{lstat, stat};
use std::ffi::OsStr;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

/// Looks up every path that the rules name. `exe=` and `path=` name the entry itself, a symbolic
/// link included, as the kernel's look-up of a rule's path does (`audit_get_nd()`,
/// kernel/audit_watch.c); `dir=` follows it (kernel/audit_tree.c).
pub fn identify(rules: &[Rule]) -> Identities {
    let mut identities = Identities::default();
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

/// The executable of process `pid`, while it is there.
pub fn executable_of(pid: u32) -> Option<ObjectId> {
    stat(format!("/proc/{pid}/exe"))
        .ok()
        .map(|stat| object(&stat))
}

/// Whether the rules name a path at all, so that what it is may change.
pub fn names_paths(rules: &[Rule]) -> bool {
    rules
        .iter()
        .flat_map(|rule| &rule.conditions)
        .any(|condition| matches!(condition.field, Field::Exe | Field::Watch | Field::Dir))
}

fn entry(path: &[u8]) -> PathIdentity {
    let path = Path::new(OsStr::from_bytes(path));
    let canonical = match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => std::fs::canonicalize(parent).map(|dir| dir.join(name)),
        _ => Ok(path.to_owned()),
    };
    PathIdentity {
        object: lstat(path).ok().map(|stat| object(&stat)),
        canonical: canonical
            .map(|path| path.into_os_string().into_vec())
            .unwrap_or_default(),
        moved_to: Vec::new(),
    }
}

fn directory(path: &[u8]) -> PathIdentity {
    let path = Path::new(OsStr::from_bytes(path));
    PathIdentity {
        object: stat(path).ok().map(|stat| object(&stat)),
        canonical: std::fs::canonicalize(path)
            .map(|path| path.into_os_string().into_vec())
            .unwrap_or_default(),
        moved_to: Vec::new(),
    }
}

fn object(stat: &rustix::fs::Stat) -> ObjectId {
    ObjectId {
        dev: kernel_dev(stat.st_dev),
        ino: stat.st_ino,
    }
}
