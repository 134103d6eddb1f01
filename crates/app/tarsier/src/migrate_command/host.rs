//! The changes that `tarsier migrate` makes to a host: a trait, so that the steps are tested without a host.

use anyhow::Result;
use std::path::Path;

/// State of a unit of systemd.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct UnitState {
    pub(super) is_there: bool,
    pub(super) is_enabled: bool,
    pub(super) is_masked: bool,
    pub(super) is_active: bool,
}

/// Kind of file found under the name of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CommandState {
    Missing,
    /// auditd's, or another program.
    Others,
    /// A link to Tarsier.
    Ours,
}

/// Change to a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    Start,
    /// auditd's unit refuses to be stopped: its process gets SIGTERM, which ends it in order.
    Terminate,
    Stop,
    Enable,
    Disable,
    Mask,
    Unmask,
}

/// A host. Every change can fail, and is harmless if it is made twice.
pub(super) trait Host {
    /// Whether systemd manages services.
    fn has_systemd(&self) -> bool;
    fn unit(&self, name: &str) -> Result<UnitState>;
    /// Applies `verb` to a unit, and waits until that is done.
    fn manage(&mut self, verb: Verb, unit: &str) -> Result<()>;
    /// Rules in the kernel, in the kernel's form; `None` if `-e 2` has locked them.
    fn kernel_rules(&mut self) -> Result<Option<Vec<Vec<u8>>>>;
    fn delete_kernel_rules(&mut self) -> Result<()>;
    /// Adds those of `rules` that are missing.
    fn add_kernel_rules(&mut self, rules: &[Vec<u8>]) -> Result<()>;
    fn command(&self, path: &Path) -> Result<CommandState>;
    /// Links a command to Tarsier; the program that was there is kept as `PATH.auditd`, which package managers update.
    fn divert(&mut self, path: &Path) -> Result<()>;
    /// Puts back the program that [`divert`](Host::divert) kept, if there is one.
    fn restore(&mut self, path: &Path) -> Result<()>;
    /// Whether a unit has a directory for drop-ins of the administrator.
    fn has_drop_in_dir(&self, unit: &str) -> Result<bool>;
    /// Links Tarsier's drop-in to a unit, which makes the directory for it, and has systemd read it.
    fn link_drop_in(&mut self, unit: &str) -> Result<()>;
    /// Removes the link, with `and_dir` the directory too if it is empty, and has systemd read the unit without it.
    fn unlink_drop_in(&mut self, unit: &str, and_dir: bool) -> Result<()>;
    /// Removes what a daemon of Tarsier has left armed.
    fn disarm(&mut self) -> Result<()>;
    /// Text of the record of an earlier migration.
    fn load(&self) -> Result<Option<Vec<u8>>>;
    /// Replaces the record and syncs it to the disk.
    fn save(&mut self, record: &[u8]) -> Result<()>;
    /// Removes the record.
    fn forget(&mut self) -> Result<()>;
}
