//! The daemon's side.

use crate::spawn::child::{Child, Signals};
use crate::spawn::link;
use crate::spawn::member::{Answer, Member, PATIENCE};
use crate::spawn::members::{Ended, Members, Source, State};
use crate::spawn::message::{LogChange, Request};
use crate::spawn::start::{self, Surroundings};
use rustix::process::{Pid, Signal};
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Starts programs.
#[derive(Clone, Default)]
pub enum Launcher {
    /// In this process, without any check: for tests of parts of the daemon.
    #[default]
    Here,
    /// By spawners.
    Spawners(Spawners),
}

/// The spawners, as the daemon sees them.
#[derive(Clone)]
pub struct Spawners(Arc<Mutex<Members>>);

impl Signals for Mutex<Members> {
    fn send(&self, pidfd: &OwnedFd, signal: Signal) -> io::Result<()> {
        let number = signal.as_raw();
        lock(self).ask(&Request::Signal { number }, Some(pidfd.as_fd()))?;
        Ok(())
    }
}

fn lock(members: &Mutex<Members>) -> MutexGuard<'_, Members> {
    members.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Launcher {
    /// Starts the spawners: this program, anew, with a command that is not in its help. They permit what `config` names,
    /// and `command`, which may be empty. `log`, if it is given, is the log in place of the configuration's. Call it in
    /// the main thread: the programs of plugins end with the thread.
    ///
    /// # Errors
    /// The spawners cannot be started.
    pub fn start(config: &Path, log: Option<&Path>, command: &[OsString]) -> io::Result<Launcher> {
        let (socket, theirs) = link::pair(PATIENCE)?;
        let surroundings = Surroundings {
            config,
            log,
            command,
            parent: None,
        };
        let child = start::spawner(theirs, &surroundings).spawn()?;
        let first = Member::sibling(socket, Child::of(Pid::from_child(&child)));
        Ok(Launcher::of(Members::new(Source::Siblings, first)))
    }

    /// Uses the spawners of a service, which is connected to at the socket `path`.
    ///
    /// # Errors
    /// Nobody listens there, or this process may not connect.
    pub fn connect(path: &Path) -> io::Result<Launcher> {
        let first = Members::connect(path)?;
        let source = Source::Service(path.to_owned());
        Ok(Launcher::of(Members::new(source, first)))
    }

    fn of(members: Members) -> Launcher {
        Launcher::Spawners(Spawners(Arc::new(Mutex::new(members))))
    }

    fn members(&self) -> Option<MutexGuard<'_, Members>> {
        match self {
            Launcher::Here => None,
            Launcher::Spawners(all) => Some(lock(&all.0)),
        }
    }

    /// Starts a program, with this standard input if it reads one.
    ///
    /// # Errors
    /// The program cannot be started, the spawner refuses it, or all spawners have ended.
    pub fn launch(&self, request: &Request, stdin: Option<OwnedFd>) -> io::Result<Child> {
        let Launcher::Spawners(Spawners(all)) = self else {
            let surroundings = Surroundings {
                config: Path::new(""),
                log: None,
                command: &[],
                parent: Some(std::process::id()),
            };
            let child = start::command(request, stdin, &surroundings)?.spawn()?;
            return Ok(Child::of(Pid::from_child(&child)));
        };

        let spawners: Weak<Mutex<Members>> = Arc::downgrade(all);
        let answer = lock(all).ask(request, stdin.as_ref().map(AsFd::as_fd))?;
        match answer {
            Answer::Started(child) => Ok(child.with(spawners)),
            Answer::Done(_) => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    /// Has a log file changed that this process may not change. Returns the file that was opened. A change that is asked
    /// for while a spawner ends may be made twice, with the answer of the second time.
    ///
    /// # Errors
    /// The file is none of the log, the change fails, or there are no spawners.
    pub fn change_log(&self, change: LogChange) -> io::Result<Option<OwnedFd>> {
        let Some(mut members) = self.members() else {
            return Err(io::ErrorKind::Unsupported.into());
        };
        match members.ask(&Request::Log(change), None)? {
            Answer::Done(file) => Ok(file),
            Answer::Started(_) => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    /// Has the machine halted. Returns only if that failed.
    pub fn halt(&self) -> io::Error {
        let Some(mut members) = self.members() else {
            return io::ErrorKind::Unsupported.into();
        };
        match members.ask(&Request::Halt, None) {
            Ok(_) => io::ErrorKind::InvalidData.into(),
            Err(error) => error,
        }
    }

    /// Makes the spawner clean up what this process no longer can. Call this at the end.
    pub fn tidy(&self) {
        if let Some(mut members) = self.members() {
            // They may have ended.
            let _ = members.ask(&Request::Tidy, None);
        }
    }

    /// Reaps spawners that have ended, and replaces them. Call it when a child has ended, and from time to time. Returns
    /// those that have ended since the last call.
    pub fn tend(&self) -> Vec<Ended> {
        let Some(mut members) = self.members() else {
            return Vec::new();
        };
        members.tend();
        members.take_news()
    }

    /// State of the spawners; `None` if there are none.
    pub fn state(&self) -> Option<State> {
        let mut members = self.members()?;
        members.tend();
        Some(members.state())
    }
}
