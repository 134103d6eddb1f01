//! Helpers as processes: this program, started anew with a command that is not in its help.

use crate::client::{Process, Start};
use crate::confine::{self, Rights};
use crate::link::{Link, DEADLINE};
use crate::patience::Doing;
use crate::serve::serve;
use rustix::fd::BorrowedFd;
use std::ffi::OsStr;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};

/// The hidden command: see [`serve_as`].
pub const COMMAND: &str = "lookup-helper";

/// What a helper looks up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Objects at paths.
    Files,
    /// Names of users and groups.
    Names,
}

impl Role {
    fn name(self) -> &'static str {
        match self {
            Role::Files => "files",
            Role::Names => "names",
        }
    }
}

/// Starts helpers of a role.
pub(crate) struct Program(pub(crate) Role);

impl Start for Program {
    fn start(&mut self) -> io::Result<(Link, Box<dyn Process>)> {
        let (link, theirs) = Link::pair(DEADLINE)?;
        let child = Command::new("/proc/self/exe")
            .arg0("tarsier")
            .args([COMMAND, self.0.name()])
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::from(theirs))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Signals from the terminal are for the daemon.
            .process_group(0)
            .spawn()?;
        Ok((link, Box::new(child)))
    }
}

impl Process for Child {
    fn pid(&self) -> u32 {
        self.id()
    }

    fn kill(&mut self) {
        // It may have ended already.
        let _ = Child::kill(self);
    }

    fn has_ended(&mut self) -> bool {
        !matches!(self.try_wait(), Ok(None::<ExitStatus>))
    }

    fn doing(&self) -> Option<Doing> {
        Doing::of(self.id())
    }
}

/// Runs as the helper whose role is the argument of [`COMMAND`]: gives up all rights that it does not need, then answers
/// what comes over its standard input until the daemon is gone.
///
/// # Errors
/// The role is unknown, or rights could not be given up.
pub fn serve_as(role: Option<&OsStr>) -> io::Result<()> {
    let rights = match role.and_then(OsStr::to_str) {
        Some("files") => Rights::Files,
        Some("names") => Rights::None,
        _ => return Err(io::ErrorKind::InvalidInput.into()),
    };
    confine::confine(rights)?;
    // SAFETY: descriptor 0 is open for the whole life of a process whose standard input was never closed.
    let socket = unsafe { BorrowedFd::borrow_raw(0) };
    serve(socket);
    Ok(())
}
