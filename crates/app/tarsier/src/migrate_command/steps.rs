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
const MASKED: [&str; 2] = [AUDITD, AUDIT_RULES];
/// Directories of auditd's commands. Debian 12's packages name the first, later ones the second; on a host with a
/// merged /usr both are the same directory.
const COMMAND_DIRS: [&str; 2] = ["/usr/sbin", "/sbin"];
const COMMANDS: [&str; 2] = ["auditctl", "augenrules"];

/// The kinds of steps.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    Stop,
    Mask,
    KernelRules,
    Commands,
    Tarsier,
}

/// A step, with what is needed to undo it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Step {
    /// A unit is masked, so that nothing starts it.
    Mask { unit: String },
    /// auditd is ended.
    StopAuditd,
    /// The kernel's rules are deleted: its own audit of calls ends.
    DeleteKernelRules {
        /// The rules in the kernel's form, in hexadecimal; empty if auditd loads them when it starts.
        rules: Vec<String>,
    },
    /// A command of auditd becomes a link to Tarsier.
    Divert { path: PathBuf },
    /// Tarsier's unit is enabled and started.
    StartTarsier { was_enabled: bool, was_active: bool },
}

/// Refuses hosts on which a migration makes no sense, before anything is changed.
pub(super) fn prerequisites(host: &mut dyn Host) -> Result<()> {
    if !host.has_systemd() {
        bail!("systemd does not run here; docs/guide/migrate.md has the steps to do by hand");
    }
    if !host.unit(TARSIER)?.is_there {
        bail!("there is no {TARSIER}: install Tarsier's package first");
    }
    if !host.unit(AUDITD)?.is_there {
        bail!("there is no {AUDITD} to replace: `systemctl enable --now tarsier` is enough");
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

impl Kind {
    /// All kinds, in order.
    pub(super) const ALL: [Kind; 5] = [
        Kind::Stop,
        Kind::Mask,
        Kind::KernelRules,
        Kind::Commands,
        Kind::Tarsier,
    ];

    /// The steps of this kind that this host needs after those `done`.
    pub(super) fn needed(self, host: &mut dyn Host, done: &[Step]) -> Result<Vec<Step>> {
        Ok(match self {
            Kind::Mask => {
                let mut steps = Vec::new();
                for unit in MASKED {
                    let state = host.unit(unit)?;
                    if state.is_there && !state.is_masked {
                        let unit = unit.to_owned();
                        steps.push(Step::Mask { unit });
                    }
                }
                steps
            }
            Kind::Stop => {
                if host.unit(AUDITD)?.is_active {
                    vec![Step::StopAuditd]
                } else {
                    Vec::new()
                }
            }
            // Locked rules stay until the next boot, at which nothing loads them.
            Kind::KernelRules => match host.kernel_rules()? {
                Some(rules) if !rules.is_empty() => {
                    let are_loaded_at_start =
                        done.contains(&Step::StopAuditd) && !host.unit(AUDIT_RULES)?.is_there;
                    let rules = if are_loaded_at_start {
                        Vec::new()
                    } else {
                        rules.iter().map(|rule| hexadecimal(rule)).collect()
                    };
                    vec![Step::DeleteKernelRules { rules }]
                }
                _ => Vec::new(),
            },
            Kind::Commands => {
                let mut steps = Vec::new();
                for name in COMMANDS {
                    if let Some(path) = found(host, name)? {
                        steps.push(Step::Divert { path });
                    }
                }
                steps
            }
            Kind::Tarsier => {
                let state = host.unit(TARSIER)?;
                vec![Step::StartTarsier {
                    was_enabled: state.is_enabled,
                    was_active: state.is_active,
                }]
            }
        })
    }
}

impl Step {
    /// Refuses a recorded step that no migration makes, so that an altered record cannot rename other files.
    pub(super) fn check(&self) -> Result<()> {
        let is_known = match self {
            Step::Mask { unit } => MASKED.contains(&unit.as_str()),
            Step::Divert { path } => COMMAND_DIRS.iter().any(|dir| {
                COMMANDS
                    .iter()
                    .any(|name| *path == Path::new(dir).join(name))
            }),
            Step::DeleteKernelRules { rules } => rules.iter().all(|text| bytes(text).is_some()),
            Step::StopAuditd | Step::StartTarsier { .. } => true,
        };

        if !is_known {
            bail!("the record has a step that no migration makes: {self}; docs/guide/migrate.md has the steps to do by hand");
        }

        Ok(())
    }

    pub(super) fn carry_out(&self, host: &mut dyn Host) -> Result<()> {
        match self {
            Step::Mask { unit } => host.manage(Verb::Mask, unit),
            Step::StopAuditd => host.manage(Verb::Terminate, AUDITD),
            Step::DeleteKernelRules { .. } => host.delete_kernel_rules(),
            Step::Divert { path } => host.divert(path),
            Step::StartTarsier { .. } => {
                host.manage(Verb::Enable, TARSIER)?;
                host.manage(Verb::Start, TARSIER)
            }
        }
    }

    pub(super) fn undo(&self, host: &mut dyn Host) -> Result<()> {
        match self {
            Step::Mask { unit } => host.manage(Verb::Unmask, unit)?,
            Step::StopAuditd => host.manage(Verb::Start, AUDITD)?,
            Step::DeleteKernelRules { rules } => {
                let rules: Vec<_> = rules.iter().filter_map(|text| bytes(text)).collect();
                host.add_kernel_rules(&rules)?;
            }
            Step::Divert { path } => host.restore(path)?,
            Step::StartTarsier {
                was_enabled,
                was_active,
            } => {
                if !was_active {
                    host.manage(Verb::Stop, TARSIER)?;
                    host.disarm()?;
                }
                if !was_enabled {
                    host.manage(Verb::Disable, TARSIER)?;
                }
            }
        }

        Ok(())
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Mask { unit } => write!(f, "mask {unit}"),
            Step::StopAuditd => write!(f, "stop auditd"),
            Step::DeleteKernelRules { .. } => write!(f, "delete the kernel's rules"),
            Step::Divert { path } => write!(f, "replace {} with Tarsier", path.display()),
            Step::StartTarsier { .. } => write!(f, "start {TARSIER}"),
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
