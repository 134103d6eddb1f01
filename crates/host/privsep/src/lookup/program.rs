//! Helpers as processes: this program, started again with a command that its help does not show.

use crate::lookup::client::{Process, Start};
use crate::lookup::digest::Hasher;
use crate::lookup::link::{Link, DEADLINE};
use crate::lookup::patience::Doing;
use crate::lookup::rights::{self, Rights};
use crate::lookup::serve::{serve, serve_with};
use crate::spawn::{Child, Launcher, Request};
use rustix::fd::BorrowedFd;
use rustix::process::Signal;
use std::ffi::OsStr;
use std::io;

/// The hidden command: see [`serve_as`].
pub const COMMAND: &str = crate::spawn::LOOKUP;

/// The role of a helper: what it looks up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Objects at paths.
    Files,
    /// Names of users and groups.
    Names,
    /// Digests of executed files.
    Hashes,
}

impl Role {
    fn name(self) -> &'static str {
        match self {
            Role::Files => "files",
            Role::Names => "names",
            Role::Hashes => "hashes",
        }
    }
}

/// Starts helpers of a role.
pub(crate) struct Program(pub(crate) Launcher, pub(crate) Role);

impl Start for Program {
    fn start(&mut self) -> io::Result<(Link, Box<dyn Process>)> {
        let (link, theirs) = Link::pair(DEADLINE)?;
        let role = self.1.name().to_owned();
        let child = self.0.launch(&Request::Lookup { role }, Some(theirs))?;
        Ok((link, Box::new(child)))
    }
}

impl Process for Child {
    fn pid(&self) -> u32 {
        self.id()
    }

    fn kill(&mut self) {
        self.signal(Signal::KILL);
    }

    fn has_ended(&mut self) -> bool {
        !matches!(self.try_wait(), Ok(None))
    }

    fn doing(&self) -> Option<Doing> {
        Doing::of(self.id())
    }
}

/// Runs as the helper whose role is the argument of [`COMMAND`]: gives up all rights that it does
/// not need, then answers requests on its standard input until the daemon is gone.
///
/// # Errors
/// The role is unknown, or rights could not be given up.
pub fn serve_as(role: Option<&OsStr>) -> io::Result<()> {
    let rights = match role.and_then(OsStr::to_str) {
        Some("files") => Rights::Files,
        Some("names") => Rights::None,
        Some("hashes") => Rights::Contents,
        _ => return Err(io::ErrorKind::InvalidInput.into()),
    };
    rights::confine(rights)?;

    // SAFETY: descriptor 0 is open for the whole life of a process whose standard input was never closed.
    let socket = unsafe { BorrowedFd::borrow_raw(0) };
    match rights {
        Rights::Files | Rights::None => serve(socket),
        Rights::Contents => {
            let hasher = Hasher::start()?;
            // The threads are there, and get the filter, too.
            crate::confine::allow_reading_only()?;
            serve_with(socket, Some(hasher));
        }
    }

    Ok(())
}
