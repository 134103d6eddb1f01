//! The steps of a migration, and how each is undone.

use super::host::{CommandState, Host, Verb};
use anyhow::{bail, Result};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::{Path, PathBuf};

pub(super) const AUDITD: &str = "auditd.service";
pub(super) const TARSIER: &str = "tarsier.service";
/// Unit that loads the rules instead of auditd's (audit 4).
const AUDIT_RULES: &str = "audit-rules.service";
/// Units of the package of auditd.
pub(super) const VENDOR_UNITS: [&str; 2] = [AUDITD, AUDIT_RULES];
/// Directories of auditd's commands. Debian 12's packages name the first, later ones the second; on a host with a
/// merged /usr both are the same directory.
const COMMAND_DIRS: [&str; 2] = ["/usr/sbin", "/sbin"];
const COMMANDS: [&str; 2] = ["auditctl", "augenrules"];

/// How Tarsier takes auditd's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// As auditd.service, by a drop-in: every file of auditd's package stays as it is.
    AuditdUnit,
    /// As tarsier.service: auditd's units are masked and its commands replaced.
    OwnUnit,
}

/// The kinds of steps.
#[derive(Clone, Copy, Debug)]
pub(super) enum StepKind {
    StopAuditd,
    StopTarsier,
    Mask,
    KernelRules,
    Commands,
    DropIns,
    /// Enables and starts this unit.
    Start(&'static str),
}

/// A step, with what is needed to undo it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum MigrationStep {
    /// A unit is masked, so that nothing starts it.
    Mask { unit: String },
    /// auditd is ended.
    StopAuditd,
    /// A Tarsier with a unit of its own is ended.
    StopTarsier,
    /// The kernel's rules are deleted: its own audit of calls ends.
    DeleteKernelRules {
        /// The rules in the kernel's form, in hexadecimal; empty if auditd loads them when it starts.
        rules: Vec<String>,
    },
    /// A command of auditd becomes a link to Tarsier.
    Divert { path: PathBuf },
    /// A drop-in makes a unit of auditd's package Tarsier's.
    DropIn { unit: String, had_dir: bool },
    /// The unit under which Tarsier runs is enabled and started.
    Start {
        unit: String,
        was_enabled: bool,
        was_active: bool,
    },
}

/// Refuses hosts on which a migration makes no sense, before anything is changed.
pub(super) fn prerequisites(host: &mut dyn Host, way: Way) -> Result<()> {
    if !host.has_systemd() {
        bail!("systemd does not run here; docs/guide/migrate.md has the steps to do by hand");
    }
    if !host.unit(TARSIER)?.is_there {
        bail!("there is no {TARSIER}: install Tarsier's package first");
    }
    let auditd = host.unit(AUDITD)?;
    if !auditd.is_there {
        bail!("there is no {AUDITD} to replace: `systemctl enable --now tarsier` is enough");
    }
    if auditd.is_masked && way == Way::AuditdUnit {
        bail!("{AUDITD} is masked: `systemctl unmask auditd`, or use --own-unit");
    }

    for name in COMMANDS {
        if let Some(path) = found(host, name)? {
            if host.command(&path)? == CommandState::Ours {
                bail!(
                    "{} is Tarsier's already (package tarsier-auditd?): remove that package to give auditd its place back",
                    path.display()
                );
            }
        }
    }

    Ok(())
}

/// Path of a command of auditd.
fn found(host: &dyn Host, name: &str) -> Result<Option<PathBuf>> {
    for dir in COMMAND_DIRS {
        let path = Path::new(dir).join(name);
        if host.command(&path)? != CommandState::Missing {
            return Ok(Some(path));
        }
    }
    Ok(None)
}

impl StepKind {
    /// The kinds of a way, in order.
    pub(super) fn all(way: Way) -> [StepKind; 5] {
        match way {
            // What runs is ended before the drop-in changes how it would be ended.
            Way::AuditdUnit => [
                StepKind::StopAuditd,
                StepKind::StopTarsier,
                StepKind::KernelRules,
                StepKind::DropIns,
                StepKind::Start(AUDITD),
            ],
            Way::OwnUnit => [
                StepKind::StopAuditd,
                StepKind::Mask,
                StepKind::KernelRules,
                StepKind::Commands,
                StepKind::Start(TARSIER),
            ],
        }
    }

    /// The steps of this kind that this host needs after those `done`.
    pub(super) fn needed(
        self,
        host: &mut dyn Host,
        done: &[MigrationStep],
    ) -> Result<Vec<MigrationStep>> {
        let mut steps = Vec::new();
        match self {
            StepKind::StopAuditd if host.unit(AUDITD)?.is_active => {
                steps.push(MigrationStep::StopAuditd);
            }
            StepKind::StopTarsier if host.unit(TARSIER)?.is_active => {
                steps.push(MigrationStep::StopTarsier);
            }
            StepKind::StopAuditd | StepKind::StopTarsier => {}
            StepKind::Mask => {
                for unit in VENDOR_UNITS {
                    let state = host.unit(unit)?;
                    if state.is_there && !state.is_masked {
                        let unit = unit.to_owned();
                        steps.push(MigrationStep::Mask { unit });
                    }
                }
            }
            StepKind::KernelRules => steps.extend(delete_kernel_rules(host, done)?),
            StepKind::Commands => {
                for name in COMMANDS {
                    if let Some(path) = found(host, name)? {
                        steps.push(MigrationStep::Divert { path });
                    }
                }
            }
            StepKind::DropIns => {
                for unit in VENDOR_UNITS {
                    if host.unit(unit)?.is_there {
                        let had_dir = host.has_drop_in_dir(unit)?;
                        let unit = unit.to_owned();
                        steps.push(MigrationStep::DropIn { unit, had_dir });
                    }
                }
            }
            StepKind::Start(unit) => {
                let state = host.unit(unit)?;
                steps.push(MigrationStep::Start {
                    unit: unit.to_owned(),
                    was_enabled: state.is_enabled,
                    was_active: state.is_active,
                });
            }
        }

        Ok(steps)
    }
}

/// The step that deletes the kernel's rules, if there are any. Locked ones stay until the next boot, at which nothing
/// loads them.
fn delete_kernel_rules(
    host: &mut dyn Host,
    done: &[MigrationStep],
) -> Result<Option<MigrationStep>> {
    let rules = host.kernel_rules()?.unwrap_or_default();
    if rules.is_empty() {
        return Ok(None);
    }

    let are_loaded_at_start =
        done.contains(&MigrationStep::StopAuditd) && !host.unit(AUDIT_RULES)?.is_there;
    let rules = if are_loaded_at_start {
        Vec::new()
    } else {
        rules.iter().map(|rule| hexadecimal(rule)).collect()
    };
    Ok(Some(MigrationStep::DeleteKernelRules { rules }))
}

impl MigrationStep {
    /// Refuses a recorded step that no migration makes, so that an altered record cannot rename other files.
    pub(super) fn check(&self) -> Result<()> {
        let is_known = match self {
            MigrationStep::Mask { unit } | MigrationStep::DropIn { unit, .. } => {
                VENDOR_UNITS.contains(&unit.as_str())
            }
            MigrationStep::Start { unit, .. } => [AUDITD, TARSIER].contains(&unit.as_str()),
            MigrationStep::Divert { path } => COMMAND_DIRS.iter().any(|dir| {
                COMMANDS
                    .iter()
                    .any(|name| *path == Path::new(dir).join(name))
            }),
            MigrationStep::DeleteKernelRules { rules } => {
                rules.iter().all(|text| bytes(text).is_some())
            }
            MigrationStep::StopAuditd | MigrationStep::StopTarsier => true,
        };

        if !is_known {
            bail!("the record has a step that no migration makes: {self}; docs/guide/migrate.md has the steps to do by hand");
        }

        Ok(())
    }

    pub(super) fn carry_out(&self, host: &mut dyn Host) -> Result<()> {
        match self {
            MigrationStep::Mask { unit } => host.manage(Verb::Mask, unit),
            MigrationStep::StopAuditd => host.manage(Verb::Terminate, AUDITD),
            MigrationStep::StopTarsier => host.manage(Verb::Stop, TARSIER),
            MigrationStep::DeleteKernelRules { .. } => host.delete_kernel_rules(),
            MigrationStep::Divert { path } => host.divert(path),
            MigrationStep::DropIn { unit, .. } => host.link_drop_in(unit),
            MigrationStep::Start { unit, .. } => {
                host.manage(Verb::Enable, unit)?;
                host.manage(Verb::Start, unit)
            }
        }
    }

    pub(super) fn undo(&self, host: &mut dyn Host) -> Result<()> {
        match self {
            MigrationStep::Mask { unit } => host.manage(Verb::Unmask, unit)?,
            MigrationStep::StopAuditd => host.manage(Verb::Start, AUDITD)?,
            MigrationStep::StopTarsier => host.manage(Verb::Start, TARSIER)?,
            MigrationStep::DeleteKernelRules { rules } => {
                let rules: Vec<_> = rules.iter().filter_map(|text| bytes(text)).collect();
                host.add_kernel_rules(&rules)?;
            }
            MigrationStep::Divert { path } => host.restore(path)?,
            MigrationStep::DropIn { unit, had_dir } => host.unlink_drop_in(unit, !had_dir)?,
            MigrationStep::Start {
                unit,
                was_enabled,
                was_active,
            } => {
                if !was_active {
                    end(host, unit)?;
                    host.disarm()?;
                }
                if !was_enabled {
                    host.manage(Verb::Disable, unit)?;
                }
            }
        }

        Ok(())
    }
}

/// Ends a unit under which Tarsier runs.
fn end(host: &mut dyn Host, unit: &str) -> Result<()> {
    match host.manage(Verb::Stop, unit) {
        // Some vendors' auditd.service refuses to be stopped.
        Err(_) if unit == AUDITD && host.unit(unit)?.is_active => {
            host.manage(Verb::Terminate, unit)
        }
        result => result,
    }
}

impl fmt::Display for MigrationStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MigrationStep::Mask { unit } => write!(f, "mask {unit}"),
            MigrationStep::StopAuditd => write!(f, "stop auditd"),
            MigrationStep::StopTarsier => write!(f, "stop {TARSIER}"),
            MigrationStep::DeleteKernelRules { .. } => write!(f, "delete the kernel's rules"),
            MigrationStep::Divert { path } => write!(f, "replace {} with Tarsier", path.display()),
            MigrationStep::DropIn { unit, .. } => write!(f, "make {unit} Tarsier's"),
            MigrationStep::Start { unit, .. } => write!(f, "start {unit} with Tarsier"),
        }
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn bytes(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(2) || !text.is_ascii() {
        return None;
    }
    let pairs = (0..text.len()).step_by(2);
    pairs
        .map(|at| u8::from_str_radix(text.get(at..at + 2)?, 16).ok())
        .collect()
}
