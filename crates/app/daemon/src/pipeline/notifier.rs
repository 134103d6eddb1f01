//! Carries out what the journal asks for: messages to standard error and syslog, mail, run levels.

use crate::stderr::say;
use journal::{OwnerAction, Runlevel, Severity};
use privsep::spawn::{Child, Launcher, Request};
use rustix::fd::OwnedFd;
use rustix::net::{sendto, AddressFamily, SendFlags, SocketAddrUnix, SocketFlags, SocketType};
use rustix::pipe::PipeFlags;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// LOG_DAEMON of syslog(3), as in auditd.
const FACILITY: u8 = 3 << 3;

/// Destinations of messages and requests.
pub(crate) struct Notifier {
    syslog: Option<OwnedFd>,
    syslog_path: PathBuf,
    sendmail: PathBuf,
    init: PathBuf,
    children: Vec<Child>,
    launcher: Launcher,
}

impl Notifier {
    /// The system's destinations: /dev/log, and the programs that auditd runs.
    pub(crate) fn of_system(launcher: Launcher) -> Self {
        Notifier::new(launcher, "/dev/log", conf::SENDMAIL, privsep::spawn::INIT)
    }

    fn new(
        launcher: Launcher,
        syslog: impl AsRef<Path>,
        sendmail: impl AsRef<Path>,
        init: impl AsRef<Path>,
    ) -> Self {
        // Without syslog, messages still go to standard error.
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let kind = SocketType::DGRAM;
        Notifier {
            syslog: rustix::net::socket_with(AddressFamily::UNIX, kind, flags, None).ok(),
            syslog_path: syslog.as_ref().to_owned(),
            sendmail: sendmail.as_ref().to_owned(),
            init: init.as_ref().to_owned(),
            children: Vec::new(),
            launcher,
        }
    }

    /// Does what `action` asks for, without blocking.
    pub(crate) fn carry_out(&mut self, action: &OwnerAction) {
        let severity = match action {
            OwnerAction::Message { severity, .. } => *severity,
            OwnerAction::Rotated(_) => Severity::Notice,
            OwnerAction::Suspended { .. }
            | OwnerAction::Mail { .. }
            | OwnerAction::ChangeRunlevel { .. } => Severity::Alert,
        };

        self.notify(severity, &action.to_string());
        match action {
            OwnerAction::Mail { account, text } => self.mail(account, text),
            OwnerAction::ChangeRunlevel { runlevel, .. } => self.change_runlevel(*runlevel),
            _ => {}
        }

        self.reap();
    }

    /// Reaps programs that have ended.
    pub(crate) fn reap(&mut self) {
        self.children
            .retain_mut(|child| matches!(child.try_wait(), Ok(None)));
    }

    /// Says this on standard error and to syslog.
    pub(crate) fn notify(&self, severity: Severity, text: &str) {
        say!("tarsier: {text}");
        let (Some(socket), Ok(address)) = (&self.syslog, SocketAddrUnix::new(&self.syslog_path))
        else {
            return;
        };
        let line = syslog_line(severity, text);
        // A syslog daemon that is missing or does not read must not stop the log.
        let _ = sendto(socket, line.as_bytes(), SendFlags::NOSIGNAL, &address);
    }

    /// Has the machine halted. Returns only if that failed.
    pub(crate) fn halt(&self) -> io::Error {
        self.launcher.halt()
    }

    /// Sends mail as auditd does: writes a message, small enough not to block, to sendmail's
    /// standard input.
    fn mail(&mut self, account: &str, text: &str) {
        let host = rustix::system::uname();
        let host = host.nodename().to_string_lossy();
        let message = format!(
            "To: {account}\nFrom: root\nSubject: Audit log of {host}: action needed\n\n{text}\n"
        );

        let request = Request::Mail {
            program: self.sendmail.clone(),
        };

        let sent = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)
            .map_err(io::Error::from)
            .and_then(|(theirs, own)| {
                self.children
                    .push(self.launcher.launch(&request, Some(theirs))?);
                File::from(own).write_all(message.as_bytes())
            });

        if let Err(error) = sent {
            let sendmail = self.sendmail.display();
            let text = format!("no mail was sent to {account}: {sendmail}: {error}");
            self.notify(Severity::Alert, &text);
        }
    }

    fn change_runlevel(&mut self, runlevel: Runlevel) {
        let level = match runlevel {
            Runlevel::Single => 1,
            Runlevel::Halt => 0,
        };

        let request = Request::Runlevel {
            program: self.init.clone(),
            level,
        };

        match self.launcher.launch(&request, None) {
            Ok(child) => self.children.push(child),
            Err(error) => {
                let init = self.init.display();
                let text = format!("the system stays up: {init} {level}: {error}");
                self.notify(Severity::Alert, &text);
            }
        }
    }
}

/// Formats a message as in RFC 3164, as syslog(3) writes it to /dev/log.
fn syslog_line(severity: Severity, text: &str) -> String {
    let severity = match severity {
        Severity::Alert => 1,
        Severity::Error => 3,
        Severity::Warning => 4,
        Severity::Notice => 5,
    };
    let time = jiff::Zoned::now().strftime("%b %e %H:%M:%S");
    let pid = std::process::id();
    format!("<{}>{time} tarsier[{pid}]: {text}", FACILITY | severity)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::UnixDatagram;

    /// A program that writes its arguments and standard input to `NAME.out`.
    fn program(dir: &Path, name: &str) -> PathBuf {
        let path = dir.join(name);
        let out = dir.join(format!("{name}.out"));
        let text = format!("#!/bin/sh\n{{ echo \"$@\"; cat; }} >{}\n", out.display());
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        path
    }

    fn wait(notifier: &mut Notifier) {
        for child in &mut notifier.children {
            assert!(child.wait().unwrap().success());
        }
    }

    #[test]
    fn messages_reach_syslog_with_their_rank_and_a_missing_syslog_stops_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("log");
        let mut notifier = Notifier::new(Launcher::Here, &log, "/none", "/none");
        let action = OwnerAction::Message {
            severity: Severity::Error,
            text: "the log is large".into(),
        };
        notifier.carry_out(&action);
        let syslog = UnixDatagram::bind(&log).unwrap();
        notifier.carry_out(&action);
        let mut line = [0; 200];
        let count = syslog.recv(&mut line).unwrap();
        let line = String::from_utf8_lossy(&line[..count]);
        let pid = std::process::id();
        assert!(line.starts_with("<27>"), "{line}");
        let end = format!(" tarsier[{pid}]: the log is large");
        assert!(line.ends_with(&end), "{line}");
    }

    #[test]
    fn mail_goes_to_the_account_through_sendmail() {
        let dir = tempfile::tempdir().unwrap();
        let sendmail = program(dir.path(), "sendmail");
        let mut notifier = Notifier::new(Launcher::Here, dir.path().join("log"), sendmail, "/none");
        notifier.carry_out(&OwnerAction::Mail {
            account: "root".into(),
            text: "low on disk space".into(),
        });
        wait(&mut notifier);
        let sent = std::fs::read_to_string(dir.path().join("sendmail.out")).unwrap();
        let sent: Vec<&str> = sent.lines().collect();
        assert_eq!(sent[..3], ["-t", "To: root", "From: root"]);
        assert!(sent[3].starts_with("Subject: "));
        assert_eq!(sent[4..], ["", "low on disk space"]);
    }

    #[test]
    fn single_and_halt_ask_init_for_their_run_level() {
        for (runlevel, level) in [(Runlevel::Single, "1\n"), (Runlevel::Halt, "0\n")] {
            let dir = tempfile::tempdir().unwrap();
            let init = program(dir.path(), "init");
            // Make sure that this is not the system's own init.
            assert!(init.starts_with(dir.path()));
            let mut notifier = Notifier::new(Launcher::Here, dir.path().join("log"), "/none", init);
            notifier.carry_out(&OwnerAction::ChangeRunlevel {
                runlevel,
                cause: "test".into(),
            });
            wait(&mut notifier);
            let asked = std::fs::read_to_string(dir.path().join("init.out")).unwrap();
            assert_eq!(asked, level);
        }
    }
}
