//! How the journal answers a file that is too large and a disk that fills or fails.

use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

use super::{Journal, Trouble, MIB};
use crate::action::{Action, Runlevel, Severity};
use crate::error::{is_full, WriteError};
use crate::rotate;
use crate::space::Space;
use conf::{FailureAction, SizeAction};

/// Messages about a failing disk in a row (auditd's limit).
const ERROR_MESSAGES_MAX: u8 = 5;

/// Writes at least this much between two rotations for space. auditd rotates at every check while
/// space is low, which throws all old logs away within a few records.
const SPACE_ROTATION_BYTES_MIN: u64 = MIB;

impl Journal {
    pub(crate) fn say(&mut self, severity: Severity, text: String) {
        self.actions.push(Action::Say { severity, text });
    }

    pub(crate) fn write_succeeded(&mut self) {
        self.trouble = Trouble::None;
        self.said.losses = false;
        self.said.errors = 0;
    }

    /// Answers a failed write(2).
    pub(crate) fn write_failed(&mut self, source: io::Error) -> WriteError {
        self.counters.write_errors += 1;
        if is_full(&source) {
            self.trouble = Trouble::Full;
            self.disk_full();
        } else {
            self.trouble = Trouble::Error;
            self.disk_error("write", &source);
        }
        WriteError {
            path: self.path.clone(),
            source,
            pending_events: self.pending.events(),
        }
    }

    pub(crate) fn sync_failed(&mut self, error: &io::Error, events: u64) {
        let text = format!(
            "{}: sync failed: {error}; {events} written events may not be on disk",
            self.path.display()
        );
        if self.said.errors < ERROR_MESSAGES_MAX {
            self.say(Severity::Alert, text);
        }
        self.disk_error("sync", error);
    }

    /// Acts if the current file has reached `max_log_file`.
    pub(crate) fn check_size(&mut self) {
        let max_mib = self.config.max_log_file_mib;
        if max_mib == 0 || self.size_bytes / MIB < max_mib || self.file.is_none() {
            return;
        }
        match self.config.max_log_file_action.clone() {
            SizeAction::Ignore => {}
            SizeAction::Syslog => {
                if !self.said.size {
                    self.said.size = true;
                    let text = format!("{} is larger than {max_mib} MiB", self.path.display());
                    self.say(Severity::Error, text);
                }
            }
            SizeAction::Suspend => self.suspend("the log has reached max_log_file"),
            SizeAction::Exec(program) => {
                self.suspend("the log has reached max_log_file");
                self.exec(&program);
            }
            SizeAction::Rotate if self.config.num_logs >= 2 => {
                self.rotate_for("size", self.config.num_logs);
            }
            SizeAction::Rotate => {}
            SizeAction::KeepLogs => self.rotate_for("size", rotate::keep_all(&self.path)),
        }
    }

    fn rotate_for(&mut self, what: &'static str, keep: u32) {
        if self.rotation_failed || keep < 2 {
            return;
        }
        if let Err(error) = self.rotate_keeping(keep) {
            self.rotation_failed = true;
            if self.said.errors < ERROR_MESSAGES_MAX {
                self.say(Severity::Error, format!("rotating for {what}: {error}"));
            }
            match is_full(&error.source) {
                // Not again by rotation: that is what just failed.
                true => self.disk_full(),
                false => self.disk_error("rotate", &error.source),
            }
        }
    }

    /// Acts on free space below the limits, once until it recovers.
    pub(crate) fn check_space(&mut self) {
        let Some(Ok(space)) = self.file.as_deref().map(Space::of) else {
            return;
        };
        if space.is_full() {
            self.disk_full();
            return;
        }
        self.said.full = self.trouble == Trouble::Full;
        let available_mib = space.available_bytes / MIB;
        if space.available_bytes >= self.limits.space_left_bytes {
            self.said.space_left = false;
        } else if !self.said.space_left {
            let action = self.config.space_left_action.clone();
            self.said.space_left = action != FailureAction::Rotate;
            let text = format!(
                "low on disk space for logging: {available_mib} MiB left, space_left is {} MiB",
                self.limits.space_left_bytes / MIB
            );
            self.act_on_space(&action, text);
        }
        if space.available_bytes >= self.limits.admin_space_left_bytes {
            self.said.admin_space_left = false;
        } else if !self.said.admin_space_left {
            let action = self.config.admin_space_left_action.clone();
            self.said.admin_space_left = action != FailureAction::Rotate;
            let text = format!(
                "very low on disk space for logging: {available_mib} MiB left, admin_space_left \
                 is {} MiB",
                self.limits.admin_space_left_bytes / MIB
            );
            self.act_on_space(&action, text);
        }
    }

    fn act_on_space(&mut self, action: &FailureAction, text: String) {
        if matches!(action, FailureAction::Rotate) {
            if self.since_space_rotation_bytes < SPACE_ROTATION_BYTES_MIN {
                return;
            }
            self.since_space_rotation_bytes = 0;
        }
        if *action != FailureAction::Ignore {
            self.say(Severity::Alert, text.clone());
        }
        self.perform(action, &text);
    }

    /// Answers a full disk; auditd warns even with IGNORE. Once until space is back.
    fn disk_full(&mut self) {
        if self.said.full {
            return;
        }
        self.said.full = true;
        let text = format!("{}: no space left for logging", self.path.display());
        self.say(Severity::Alert, text.clone());
        let action = self.config.disk_full_action.clone();
        self.perform(&action, &text);
    }

    /// Answers a failing disk.
    fn disk_error(&mut self, call: &str, error: &io::Error) {
        let text = format!("{}: {call} failed: {error}", self.path.display());
        let action = self.config.disk_error_action.clone();
        if action == FailureAction::Ignore || self.file.is_none() {
            return;
        }
        if self.said.errors < ERROR_MESSAGES_MAX {
            self.said.errors += 1;
            self.say(Severity::Alert, text.clone());
        }
        self.perform(&action, &text);
    }

    /// The part of an action that is more than a message.
    fn perform(&mut self, action: &FailureAction, cause: &str) {
        match action {
            FailureAction::Ignore | FailureAction::Syslog => {}
            FailureAction::Email => self.actions.push(Action::Mail {
                account: self.config.action_mail_acct.clone(),
                text: cause.to_owned(),
            }),
            FailureAction::Rotate => self.rotate_for("space", self.config.num_logs),
            FailureAction::Suspend => self.suspend(cause),
            FailureAction::Exec(program) => {
                self.suspend(cause);
                self.exec(program);
            }
            FailureAction::Single => self.change_runlevel(Runlevel::Single, cause),
            FailureAction::Halt => self.change_runlevel(Runlevel::Halt, cause),
        }
    }

    fn suspend(&mut self, cause: &str) {
        self.sync_before_leaving();
        self.close_seal();
        if self.file.take().is_some() {
            self.actions.push(Action::Suspended {
                cause: cause.to_owned(),
            });
        }
    }

    fn change_runlevel(&mut self, runlevel: Runlevel, cause: &str) {
        self.suspend(cause);
        self.actions.push(Action::ChangeRunlevel {
            runlevel,
            cause: cause.to_owned(),
        });
    }

    /// Runs an EXEC program, without arguments; it resumes logging by signal when it is done.
    fn exec(&mut self, program: &Path) {
        let started = Command::new(program)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        match started {
            Ok(child) => {
                self.children.push(child);
                self.say(Severity::Notice, format!("{} started", program.display()));
            }
            Err(error) => {
                let text = format!("{} cannot be started: {error}", program.display());
                self.say(Severity::Alert, text);
            }
        }
    }
}
