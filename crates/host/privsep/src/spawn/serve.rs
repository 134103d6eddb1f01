//! The spawner's side.

use crate::frame;
use crate::spawn::link;
use crate::spawn::log_files;
use crate::spawn::message::{Go, Greeting, Reply, Request, SERVICE, SIBLING};
use crate::spawn::permit::Permits;
use crate::spawn::start::{self, Surroundings};
use rustix::event::{poll, PollFd, PollFlags};
use rustix::io::Errno;
use rustix::net::RecvFlags;
use rustix::process::{
    pidfd_open, pidfd_send_signal, set_dumpable_behavior, set_parent_process_death_signal, waitpid,
    DumpableBehavior, Pid, PidfdFlags, Signal, WaitOptions,
};
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

/// File with the likelihood that the kernel ends the process when there is no memory: proc(5).
const OOM_SCORE: &str = "/proc/self/oom_score_adj";
/// Never, as for auditd.
const NEVER: &str = "-1000";
/// Signals of a terminal or service manager. The daemon gets them too, and still needs the spawner.
const IGNORED: [i32; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];
/// Prefix of the names of the spawners' units.
const UNIT: &str = "tarsier-spawner@";
/// CAP_AUDIT_CONTROL (linux/capability.h): whoever has it may ask.
const AUDIT_CONTROL: u32 = 30;

/// Facts that the spawner learnt when it was started.
struct Spawner {
    permits: Permits,
    config: PathBuf,
    log: Option<PathBuf>,
    command: Vec<OsString>,
    daemon: Daemon,
    /// `oom_score_adj` of the programs, if the spawner's own is another.
    oom_score: Option<String>,
    tidy: fn(),
}

/// The daemon that the spawner serves.
enum Daemon {
    /// The spawner's parent, which gets children of its own.
    Parent(u32),
    /// The process at the other end of the socket, which is told by SIGCHLD of the ends of the spawner's children.
    Peer { pidfd: OwnedFd, children: Vec<Own> },
}

/// A child of the spawner.
struct Own {
    pid: Pid,
    pidfd: OwnedFd,
    /// Whether it ends with the daemon.
    is_plugin: bool,
}

/// Runs as a spawner until the daemon is gone. `args` follow [`COMMAND`](crate::spawn::COMMAND): the number of the descriptor by which it is
/// asked, `sibling` or `service`, the configuration file, the log if it is another than the configuration's, or an empty
/// text, and the COMMAND of `tarsier run`. `tidy` puts away what the daemon cannot at its end.
///
/// # Errors
/// The arguments are not those that [`Launcher::start`](crate::spawn::Launcher::start) or the unit give, the process at the
/// other end may not ask, or the daemon has ended.
pub fn serve_as(mut args: impl Iterator<Item = OsString>, tidy: fn()) -> io::Result<()> {
    let wrong = || io::Error::from(io::ErrorKind::InvalidInput);
    let number = args.next().and_then(|text| text.to_str()?.parse().ok());
    let number = number.filter(|number| *number > 2).ok_or_else(wrong)?;
    let mode = args.next().ok_or_else(wrong)?;
    let config = PathBuf::from(args.next().ok_or_else(wrong)?);
    let log = args.next().filter(|path| !path.is_empty());
    let log = log.map(PathBuf::from);
    rustix::io::fcntl_setfd(
        // SAFETY: the number is only looked at; if no such descriptor is open, the call fails.
        unsafe { BorrowedFd::borrow_raw(number) },
        rustix::io::FdFlags::CLOEXEC,
    )?;

    // SAFETY: it is open, and nothing else in this process knows it.
    let socket = unsafe { OwnedFd::from_raw_fd(number) };
    let daemon = match mode.to_str() {
        Some(SIBLING) => Daemon::parent()?,
        Some(SERVICE) => Daemon::peer(&socket)?,
        _ => return Err(wrong()),
    };
    for signal in IGNORED {
        // SAFETY: no handler is set, and this process has one thread.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }

    rustix::thread::set_name(c"tarsier-spawner")?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    let mut spawner = Spawner {
        permits: Permits::of(&config, log.as_deref()),
        config,
        log,
        command: args.collect(),
        daemon,
        oom_score: stay_alive(),
        tidy,
    };

    spawner.serve(socket.as_fd())
}

/// Keeps the kernel from killing this process when memory runs out. Returns the previous value if
/// it was different.
fn stay_alive() -> Option<String> {
    let before = std::fs::read_to_string(OOM_SCORE).ok()?;
    let before = before.trim().to_owned();
    if before == NEVER || std::fs::write(OOM_SCORE, NEVER).is_err() {
        return None;
    }
    Some(before)
}

impl Daemon {
    /// The parent, with which this process ends.
    fn parent() -> io::Result<Daemon> {
        let parent = rustix::process::getppid().ok_or(io::ErrorKind::BrokenPipe)?;
        set_parent_process_death_signal(Some(Signal::KILL))?;
        if rustix::process::getppid() == Some(parent) {
            Ok(Daemon::Parent(parent.as_raw_nonzero().get() as u32))
        } else {
            Err(io::ErrorKind::BrokenPipe.into())
        }
    }

    /// The process that has connected. It has to be root, with CAP_AUDIT_CONTROL.
    fn peer(socket: &OwnedFd) -> io::Result<Daemon> {
        // What the manager has told this process is not for the programs.
        for name in ["LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"] {
            std::env::remove_var(name);
        }

        let peer = rustix::net::sockopt::socket_peercred(socket)?;
        let pidfd = pidfd_open(peer.pid, PidfdFlags::empty())?;
        let path = format!("/proc/{}/status", peer.pid.as_raw_nonzero());
        let bits = u64::from_str_radix(&field(&path, "CapEff:")?, 16);
        let may_ask = bits.is_ok_and(|bits| bits >> AUDIT_CONTROL & 1 == 1);

        if peer.uid.is_root() && may_ask {
            Ok(Daemon::Peer {
                pidfd,
                children: Vec::new(),
            })
        } else {
            Err(io::ErrorKind::PermissionDenied.into())
        }
    }

    /// Flags of clone(2) for what it asks for.
    fn clone_flags(&self) -> libc::c_ulong {
        let flags = match self {
            Daemon::Parent(_) => libc::CLONE_PARENT | libc::SIGCHLD,
            Daemon::Peer { .. } => libc::SIGCHLD,
        };
        flags as libc::c_ulong
    }

    /// Takes note of a process that was made.
    fn note(&mut self, pid: i32, request: &Request) {
        let (Daemon::Peer { children, .. }, Some(pid)) = (self, Pid::from_raw(pid)) else {
            return;
        };
        if let Ok(pidfd) = pidfd_open(pid, PidfdFlags::empty()) {
            let is_plugin = matches!(request, Request::Plugin { .. });
            children.push(Own {
                pid,
                pidfd,
                is_plugin,
            });
        }
    }

    /// Waits for a request, and meanwhile reaps children and says so.
    fn wait(&mut self, socket: BorrowedFd<'_>) -> io::Result<()> {
        let Daemon::Peer { pidfd, children } = self else {
            return Ok(());
        };

        loop {
            let mut fds = vec![PollFd::from_borrowed_fd(socket, PollFlags::IN)];
            let own = children.iter();
            fds.extend(own.map(|child| PollFd::new(&child.pidfd, PollFlags::IN)));
            match poll(&mut fds, None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
            let is_asked = !fds[0].revents().is_empty();
            let before = children.len();
            children
                .retain(|child| matches!(waitpid(Some(child.pid), WaitOptions::NOHANG), Ok(None)));
            if children.len() < before {
                // It may have ended.
                let _ = pidfd_send_signal(&*pidfd, Signal::CHILD);
            }
            if is_asked {
                return Ok(());
            }
        }
    }

    /// Sends a signal to a process that a spawner has started.
    fn signal(&self, pidfd: &OwnedFd, number: i32) -> io::Result<()> {
        let refused = || io::Error::from(io::ErrorKind::PermissionDenied);
        let pid = pid_of(pidfd)?;
        let is_started = match self {
            Daemon::Parent(daemon) => Some(*daemon) == parent_of(pid)?,
            // The children of a spawner that was killed have no other mark than its service's.
            Daemon::Peer { children, .. } => {
                let own = |child: &Own| child.pid.as_raw_nonzero().get() == pid;
                children.iter().any(own) || is_of_service(pid)?
            }
        };

        // It was this process whose files were read only if it is not reaped yet.
        if !is_started || pid_of(pidfd)? != pid {
            return Err(refused());
        }

        let signal = Signal::from_named_raw(number).ok_or_else(refused)?;
        Ok(pidfd_send_signal(pidfd, signal)?)
    }

    /// The daemon is gone: so its plugins end.
    fn gone(&self) {
        if let Daemon::Peer { children, .. } = self {
            for child in children.iter().filter(|child| child.is_plugin) {
                // It may have ended.
                let _ = pidfd_send_signal(&child.pidfd, Signal::TERM);
            }
        }
    }
}

impl Spawner {
    /// Says who it is, then carries out requests until the daemon closes its end.
    fn serve(&mut self, socket: BorrowedFd<'_>) -> io::Result<()> {
        let greeting = Greeting {
            pid: std::process::id() as i32,
        };
        link::send(socket, &frame::to_vec(&greeting)?, &[])?;

        loop {
            self.daemon.wait(socket)?;
            let Some((text, fds)) = link::receive(socket, RecvFlags::empty())? else {
                break;
            };
            let mut fds = fds.into_iter();
            let (gate, stdin) = (fds.next(), fds.next());
            let Some(gate) = gate else {
                return Err(io::ErrorKind::InvalidData.into());
            };
            let outcome = match frame::parse(&text) {
                Ok(request) => self.carry_out(&request, &gate, stdin),
                Err(error) => Err(io::Error::from(error)),
            };
            if let Err(error) = outcome {
                answer(&gate, &Reply::failed(&error), None);
            }
        }

        self.daemon.gone();
        Ok(())
    }

    fn carry_out(
        &mut self,
        request: &Request,
        gate: &OwnedFd,
        stdin: Option<OwnedFd>,
    ) -> io::Result<()> {
        self.permits.check(request)?;
        match request {
            Request::Tidy => {
                (self.tidy)();
                answer(gate, &Reply::Done, None);
            }
            Request::Halt => rustix::system::reboot(rustix::system::RebootCommand::Halt)?,
            Request::Signal { number } => {
                let pidfd = stdin.ok_or(io::ErrorKind::InvalidInput)?;
                self.daemon.signal(&pidfd, *number)?;
                answer(gate, &Reply::Done, None);
            }
            Request::Log(change) => {
                let file = log_files::make(change)?;
                answer(gate, &Reply::Done, file.as_ref());
            }
            _ => {
                let parent = match self.daemon {
                    Daemon::Parent(pid) => Some(pid),
                    Daemon::Peer { .. } => None,
                };
                let surroundings = Surroundings {
                    config: &self.config,
                    log: self.log.as_deref(),
                    command: &self.command,
                    parent,
                };
                let command = start::command(request, stdin, &surroundings)?;
                let pid = self.fork(command, gate)?;
                self.daemon.note(pid, request);
                answer(gate, &Reply::Started(pid), None);
            }
        }

        Ok(())
    }

    /// Makes a process that becomes the command, as soon as the daemon says so.
    fn fork(&self, mut command: Command, gate: &OwnedFd) -> io::Result<i32> {
        let flags = self.daemon.clone_flags();
        // SAFETY: as fork(2), but perhaps for the parent of the child. This process has one thread, so the child finds
        // no lock taken. It executes or ends.
        let pid = unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) } as i32;
        match pid {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                answer(gate, &Reply::Started(std::process::id() as i32), None);
                let go = link::receive(gate.as_fd(), RecvFlags::empty());
                if go
                    .ok()
                    .flatten()
                    .is_some_and(|(text, _)| frame::parse(&text) == Ok(Go))
                {
                    let error = self.execute(&mut command);
                    answer(gate, &Reply::failed(&error), None);
                }
                // SAFETY: the child must not run what the parent has registered for its own end.
                unsafe { libc::_exit(127) };
            }
            _ => Ok(pid),
        }
    }

    /// Becomes the command, in the child. Returns only if that failed.
    fn execute(&self, command: &mut Command) -> io::Error {
        if let Some(score) = &self.oom_score {
            let _ = std::fs::write(OOM_SCORE, score);
        }
        for signal in IGNORED {
            // SAFETY: no handler is set, and this process has one thread.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
        command.exec()
    }
}

/// The number of the process of a descriptor: `Pid:` of proc(5), which is not above 0 once it is reaped.
fn pid_of(pidfd: &OwnedFd) -> io::Result<i32> {
    let path = format!("/proc/self/fdinfo/{}", pidfd.as_raw_fd());
    let number = field(&path, "Pid:")?.parse().ok().filter(|pid| *pid > 0);
    number.ok_or_else(|| io::ErrorKind::NotFound.into())
}

fn parent_of(pid: i32) -> io::Result<Option<u32>> {
    Ok(field(&format!("/proc/{pid}/status"), "PPid:")?.parse().ok())
}

/// Whether a process is in the control group of a spawner of the service.
fn is_of_service(pid: i32) -> io::Result<bool> {
    let group = field(&format!("/proc/{pid}/cgroup"), "0::")?;
    Ok(group.split('/').any(|unit| unit.starts_with(UNIT)))
}

/// The rest of the line of a file of proc(5) that begins with `name`.
fn field(path: &str, name: &str) -> io::Result<String> {
    let text = std::fs::read_to_string(path)?;
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let value = line.ok_or(io::ErrorKind::InvalidData)?;
    Ok(value.trim().to_owned())
}

/// Answers through a gate. Nobody may be there any more.
fn answer(gate: &OwnedFd, reply: &Reply, file: Option<&OwnedFd>) {
    let text = frame::to_vec(reply).unwrap_or_default();
    let fds: Vec<BorrowedFd<'_>> = file.into_iter().map(AsFd::as_fd).collect();
    let _ = link::send(gate.as_fd(), &text, &fds);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_arguments_are_refused() {
        for wrong in [
            &[][..],
            &["0", "sibling", "/etc/audit/auditd.conf"],
            &["three", "sibling", "/etc/audit/auditd.conf"],
            &["1000000", "sibling", "/etc/audit/auditd.conf"],
        ] {
            let args = wrong.iter().map(OsString::from);
            assert!(serve_as(args, || {}).is_err(), "{wrong:?}");
        }
    }
}
