//! One call of auditctl: its actions, its output and its exit status.
//!
//! Source: main(), setopt(), handle_request() and fileopt() in audit-userspace src/auditctl.c.

use super::audit::{Applied, Audit, Trouble};
use super::listing;
use cli::messages::report;
use daemon::protocol::AuditState;
use rules::{parse_args, Command, Dialect, Parsed, Source, SystemHost};
use std::io::{self, Write};

/// Exit status of success.
pub(super) const SUCCESS: u8 = 0;
/// Exit status of a wrong or refused command line (auditctl returns -1).
pub(super) const REFUSED: u8 = 255;

/// A request failed, and the error has been printed.
pub(super) struct Failed;

/// The state of a call.
pub(super) struct Session<'a> {
    pub(super) audit: &'a mut dyn Audit,
    pub(super) dialect: Dialect,
    /// Whether the status was printed: auditctl prints it once for all settings in a line.
    pub(super) has_shown_state: bool,
}

impl Session<'_> {
    /// Carries out the words after `auditctl`. Returns the exit status.
    pub(super) fn call(&mut self, args: &[Vec<u8>]) -> io::Result<u8> {
        let source = Source {
            file: "command line".to_owned(),
            line: 0,
        };
        let parsed = parse_args(self.dialect, args, &source, &SystemHost);
        if let [Command::ReadFile(path)] = parsed.commands.as_slice() {
            return self.read_file(path);
        }

        let changes_rules = parsed.commands.iter().any(|command| {
            matches!(
                command,
                Command::Append(_) | Command::Prepend(_) | Command::Delete(_)
            )
        });
        let is_fine = say_findings(&parsed);
        if !is_fine {
            return Ok(REFUSED);
        }
        if changes_rules && !self.may_change_rules(&parsed.commands) {
            return Ok(SUCCESS);
        }

        for command in &parsed.commands {
            if self.carry_out(command)?.is_err() {
                return Ok(REFUSED);
            }
        }

        Ok(SUCCESS)
    }

    /// Prints a message and returns false if rules are locked or audit is disabled: auditctl 3.0.9
    /// then does nothing more and returns success. If the state cannot be read, this returns true,
    /// and the change itself reports the error. What a lock refuses of `wanted` is asked for all the same, so that the
    /// log says who wanted it.
    pub(super) fn may_change_rules(&mut self, wanted: &[Command]) -> bool {
        match self.audit.state() {
            Ok(AuditState { enabled: 2, .. }) => {
                let _ = self.audit.apply(wanted, 0);
                report!("The audit system is in immutable mode, no rule changes allowed");
                false
            }
            Err(trouble) if trouble.is_disabled() => {
                report!("The audit system is disabled");
                false
            }
            _ => true,
        }
    }

    /// Carries out one command and prints what auditctl prints.
    pub(super) fn carry_out(&mut self, command: &Command) -> io::Result<Result<(), Failed>> {
        match command {
            Command::Help => {
                super::usage::print()?;
                return Ok(Err(Failed));
            }
            Command::Version => writeln!(
                io::stdout(),
                "auditctl version 3.0.9 (tarsier {})",
                env!("CARGO_PKG_VERSION")
            )?,
            Command::Status { is_interpreted } => match self.audit.state() {
                Ok(state) => print(&listing::state(&state, true, *is_interpreted))?,
                Err(trouble) => return Ok(Err(say(command, &trouble))),
            },
            Command::List {
                is_interpreted,
                key,
            } => match self.audit.rules() {
                Ok(rules) => self.list(&rules, *is_interpreted, key.as_deref())?,
                Err(trouble) => return Ok(Err(say(command, &trouble))),
            },
            Command::Signal(name) => return Ok(self.signal(name)),
            // Whoever reads a file keeps track of these.
            Command::IgnoreErrors | Command::ContinueOnError => {}
            Command::Several(commands) => {
                for command in commands {
                    if let Err(failed) = self.carry_out(command)? {
                        return Ok(Err(failed));
                    }
                }
            }
            Command::ReadFile(_) => {
                report!("Error - nested rule files not supported");
                return Ok(Err(Failed));
            }
            change => {
                let applied = self.audit.apply(std::slice::from_ref(change), 1);
                return self.report(change, applied);
            }
        }

        Ok(Ok(()))
    }

    /// Prints the result of a change, or why it was refused.
    fn report(
        &mut self,
        command: &Command,
        applied: Result<Applied, Trouble>,
    ) -> io::Result<Result<(), Failed>> {
        let applied = match applied {
            Ok(applied) => applied,
            Err(trouble) => return Ok(Err(say(command, &trouble))),
        };
        if let Some((_, trouble)) = applied.refused.first() {
            return Ok(Err(say(command, trouble)));
        }
        self.show_result(command, applied.value)?;
        Ok(Ok(()))
    }

    /// Prints what auditctl prints after a successful change.
    pub(super) fn show_result(&mut self, command: &Command, value: Option<u32>) -> io::Result<()> {
        match command {
            Command::Enabled(_)
            | Command::Failure(_)
            | Command::Backlog(_)
            | Command::Rate(_)
            | Command::BacklogWaitTime(_) => self.show_state()?,
            Command::DeleteAll { .. } => self.show_emptiness()?,
            Command::ResetLost => report!("lost: {}", value.unwrap_or_default()),
            Command::ResetBacklogWaitTimeActual => {
                report!("backlog_wait_time_actual: {}", value.unwrap_or_default());
            }
            _ => {}
        }

        Ok(())
    }

    /// Prints the status after a setting, once per line.
    fn show_state(&mut self) -> io::Result<()> {
        if std::mem::replace(&mut self.has_shown_state, true) {
            return Ok(());
        }
        match self.audit.state() {
            Ok(state) => print(&listing::state(&state, false, false)),
            Err(_) => Ok(()),
        }
    }

    fn show_emptiness(&mut self) -> io::Result<()> {
        match self.audit.rules() {
            Ok(rules) if rules.is_empty() => print("No rules\n"),
            _ => Ok(()),
        }
    }

    fn list(
        &mut self,
        rules: &[Vec<u8>],
        is_interpreted: bool,
        key: Option<&[u8]>,
    ) -> io::Result<()> {
        let (text, unknown) = listing::rules(rules, self.dialect, is_interpreted, key);
        print(&text)?;
        unknown.iter().for_each(|unknown| report!("{unknown}"));
        Ok(())
    }

    fn signal(&mut self, name: &str) -> Result<(), Failed> {
        use rustix::process::{kill_process, Pid, Signal};

        let signal = match name {
            "TERM" => Signal::TERM,
            "HUP" => Signal::HUP,
            "USR1" => Signal::USR1,
            "USR2" => Signal::USR2,
            _ => Signal::CONT,
        };

        let asked = Command::Status {
            is_interpreted: false,
        };
        let state = self
            .audit
            .state()
            .map_err(|trouble| say(&asked, &trouble))?;
        let pid = i32::try_from(state.pid).ok().and_then(Pid::from_raw);
        let Some(pid) = pid else {
            report!("Auditd is not running");
            return Ok(());
        };

        kill_process(pid, signal).map_err(|errno| {
            let cause = super::audit::errno_text(errno.raw_os_error());
            report!("Failed sending signal to auditd ({cause})");
            Failed
        })
    }
}

/// Prints what is wrong with a line. Returns whether it can be carried out.
pub(super) fn say_findings(parsed: &Parsed) -> bool {
    for warning in &parsed.warnings {
        report!("{}", warning.message);
    }
    match &parsed.error {
        Some(error) => {
            report!("{}", error.message);
            false
        }
        None => true,
    }
}

/// Prints why a command was refused.
pub(super) fn say(command: &Command, trouble: &Trouble) -> Failed {
    if trouble.is_disabled() {
        report!("The audit system is disabled");
    } else {
        report!("{}", trouble.text(command));
    }
    Failed
}

/// Writes to standard output.
pub(super) fn print(text: &str) -> io::Result<()> {
    io::stdout().lock().write_all(text.as_bytes())
}
