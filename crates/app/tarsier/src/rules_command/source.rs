//! Reads rules to examine them, not to load them: paths that are missing on this host do not
//! matter.

use anyhow::Result;
use daemon::rule_files;
use rules::{Host, PathKind, RuleSet, SystemHost};
use std::path::PathBuf;

/// This host, as if every path that a rule names existed.
pub(super) struct WithEveryPath;

impl Host for WithEveryPath {
    fn arch(&self) -> abi::Arch {
        SystemHost.arch()
    }

    fn uid(&self, name: &str) -> Option<u32> {
        SystemHost.uid(name)
    }

    fn gid(&self, name: &str) -> Option<u32> {
        SystemHost.gid(name)
    }

    fn path_kind(&self, path: &[u8]) -> PathKind {
        match SystemHost.path_kind(path) {
            PathKind::Missing => PathKind::Other,
            kind => kind,
        }
    }
}

/// Reads the rules of `paths` in order, even rules on paths that are missing here.
///
/// # Errors
/// A file cannot be read, or lines are wrong; these are printed.
pub(crate) fn read(paths: &[PathBuf]) -> Result<RuleSet> {
    rule_files::examine(paths, &WithEveryPath)
}
