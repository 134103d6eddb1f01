//! Turns a request into a command that can be executed.

use crate::spawn::message::{Request, COMMAND, LOOKUP, SIBLING};
use rustix::io::{fcntl_setfd, FdFlags};
use rustix::process::{set_parent_process_death_signal, setpriority_process, Signal};
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use trust::Program;

/// Circumstances that the child depends on in addition to the request.
pub(crate) struct Surroundings<'a> {
    /// The configuration file.
    pub(crate) config: &'a Path,
    /// The log, if it is not the configuration's.
    pub(crate) log: Option<&'a Path>,
    /// The COMMAND of `tarsier run`, which may be empty.
    pub(crate) command: &'a [OsString],
    /// The process with which plugins end: the daemon, if it is their parent.
    pub(crate) parent: Option<u32>,
}

/// The command of a request, with `stdin` as its standard input if it reads one. Paths from the
/// configuration are checked here, and exactly what was checked is executed.
pub(crate) fn command(
    request: &Request,
    stdin: Option<OwnedFd>,
    surroundings: &Surroundings<'_>,
) -> io::Result<Command> {
    if let Request::Spawner = request {
        let socket = stdin.ok_or(io::ErrorKind::InvalidInput)?;
        return Ok(spawner(socket, surroundings));
    }

    let stdin = stdin.map_or_else(Stdio::null, Stdio::from);
    let command = match request {
        Request::Plugin { path, args, nice } => {
            let (parent, nice) = (surroundings.parent, *nice);
            let program = Program::find(path).map_err(io::Error::other)?;
            return program.command(args, |command| {
                command.stdin(stdin);
                // SAFETY: system calls only; nothing is allocated.
                unsafe { command.pre_exec(move || be_a_plugin(parent, nice)) };
            });
        }
        Request::Exec { path } => {
            let program = Program::find(path).map_err(io::Error::other)?;
            return program.command(&[], |command| {
                command.stdin(stdin);
                command.stdout(Stdio::null()).stderr(Stdio::null());
            });
        }
        Request::Mail { program } => {
            let mut command = Command::new(program);
            command.arg("-t").stdin(stdin);
            command.stdout(Stdio::null()).stderr(Stdio::null());
            command
        }
        Request::Runlevel { program, level } => {
            let mut command = Command::new(program);
            command.arg(level.to_string()).stdin(stdin);
            command
        }
        Request::Lookup { role } => {
            let mut command = Command::new("/proc/self/exe");
            command.arg0("tarsier").args([LOOKUP, role]).env_clear();
            command.current_dir("/").stdin(stdin);
            command.stdout(Stdio::null()).stderr(Stdio::null());
            // Signals from the terminal are for the daemon.
            command.process_group(0);
            command
        }
        Request::Spawner
        | Request::Signal { .. }
        | Request::Halt
        | Request::Tidy
        | Request::Log(_) => return Err(io::ErrorKind::Unsupported.into()),
        Request::Command => {
            let Some((program, args)) = surroundings.command.split_first() else {
                return Err(io::ErrorKind::InvalidInput.into());
            };
            let mut command = Command::new(program);
            command.args(args);
            command
        }
    };

    Ok(command)
}

/// The command of a spawner that is asked through `socket`. Its standard input is that of this process, for COMMAND.
pub(crate) fn spawner(socket: OwnedFd, surroundings: &Surroundings<'_>) -> Command {
    let mut command = Command::new("/proc/self/exe");
    let number = socket.as_raw_fd().to_string();
    command.arg0("tarsier").args([COMMAND, &number, SIBLING]);
    command.arg(surroundings.config);
    command.arg(surroundings.log.unwrap_or(Path::new("")));
    command.args(surroundings.command);
    // SAFETY: fcntl(2) is async-signal-safe.
    unsafe {
        command.pre_exec(move || Ok(fcntl_setfd(&socket, FdFlags::empty())?));
    }
    command
}

/// Runs in the child that becomes a plugin: it gets SIGTERM when the daemon ends, for whatever reason, and a nice value
/// that is not the one which the daemon has only during an overload.
fn be_a_plugin(parent: Option<u32>, nice: i32) -> io::Result<()> {
    let _ = setpriority_process(None, nice);
    let Some(parent) = parent else {
        return Ok(());
    };
    set_parent_process_death_signal(Some(Signal::TERM))?;
    // The daemon may have ended before the request.
    match rustix::process::getppid() {
        Some(pid) if pid.as_raw_nonzero().get() as u32 == parent => Ok(()),
        _ => Err(io::ErrorKind::BrokenPipe.into()),
    }
}
