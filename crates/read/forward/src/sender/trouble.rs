//! Actions when the sink cannot be reached or too much waits, in audisp-remote's words.

use std::os::unix::net::UnixDatagram;
use std::process::Child;

use crate::config::TroubleAction;

/// Path at which syslog listens.
const SYSLOG: &str = "/dev/log";
/// Facility `daemon`, severity `warning`.
const PRIORITY: u32 = 3 << 3 | 4;

/// Next step of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Nothing else.
    GoOn,
    /// Single-user mode.
    Single,
    /// Shut down.
    Halt,
}

/// Carries out actions. Keeps the programs that it has started, to reap them, and whether sending is suspended.
#[derive(Debug, Default)]
pub(super) struct Trouble {
    children: Vec<Child>,
    is_suspended: bool,
}

impl Trouble {
    /// Whether nothing is sent until [`Trouble::resume`].
    pub(super) fn is_suspended(&self) -> bool {
        self.is_suspended
    }

    /// Ends what [`TroubleAction::Suspend`] began.
    pub(super) fn resume(&mut self) {
        self.is_suspended = false;
    }

    /// Does `action`, and says `why` on standard error and, but for `ignore`, in syslog.
    pub(super) fn act(&mut self, action: &TroubleAction, why: &str) -> Next {
        eprintln!("tarsier-forward: {why}");
        if *action != TroubleAction::Ignore {
            syslog(why);
        }

        match action {
            TroubleAction::Ignore | TroubleAction::Syslog => Next::GoOn,
            TroubleAction::Suspend => {
                self.is_suspended = true;
                Next::GoOn
            }
            TroubleAction::Single => Next::Single,
            TroubleAction::Halt => Next::Halt,
            TroubleAction::Exec(path) => {
                let started = trust::Program::find(path)
                    .map_err(|error| error.to_string())
                    .and_then(|program| {
                        let command = program.command(&[], |_| {});
                        let spawned = command.and_then(|mut command| command.spawn());
                        spawned.map_err(|error| format!("{}: {error}", path.display()))
                    });
                match started {
                    Ok(child) => self.children.push(child),
                    Err(error) => eprintln!("tarsier-forward: cannot start the program: {error}"),
                }
                Next::GoOn
            }
        }
    }

    /// Takes note of programs that have ended.
    pub(super) fn reap(&mut self) {
        self.children
            .retain_mut(|child| matches!(child.try_wait(), Ok(None)));
    }
}

/// A message to syslog; without a syslog daemon, nothing.
fn syslog(text: &str) {
    let line = format!(
        "<{PRIORITY}>tarsier-forward[{}]: {text}",
        std::process::id()
    );
    if let Ok(socket) = UnixDatagram::unbound() {
        let _ = socket.send_to(line.as_bytes(), SYSLOG);
    }
}
