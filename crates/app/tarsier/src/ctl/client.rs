//! Requests to a running Tarsier, over its control socket.

use super::audit::{Applied, Audit, Trouble};
use daemon::protocol::socket_path;
use daemon::protocol::{hex, unhex, Answer, AuditState, Request, Step};
use rules::Command;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Time without a sign of life after which the daemon's process is looked at: while the daemon puts rules in force it
/// sends one each second.
const PATIENCE: Duration = Duration::from_secs(5);
/// Longest wait for a daemon that runs: on a busy host a look at the clients may come late.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// The daemon with a certain run directory.
pub(super) struct Client {
    socket: PathBuf,
}

impl Client {
    /// Does not connect yet.
    pub(super) fn new(run_dir: &Path) -> Client {
        Client {
            socket: socket_path(run_dir),
        }
    }

    fn ask(&self, request: &Request) -> Result<Answer, Trouble> {
        let line = ask(&self.socket, request).map_err(|error| self.unreachable(&error))?;
        let answer: Answer = serde_json::from_str(&line).map_err(|error| Trouble {
            errno: None,
            reason: format!("the daemon's answer cannot be read: {error}"),
        })?;

        match answer.error {
            Some(reason) => Err(Trouble {
                errno: None,
                reason,
            }),
            None => Ok(answer),
        }
    }

    fn unreachable(&self, error: &io::Error) -> Trouble {
        Trouble {
            errno: None,
            reason: format!(
                "no Tarsier answers at {} ({error}): start `tarsier run`, give its --run-dir, or \
                 use --kernel for the kernel's own audit",
                self.socket.display()
            ),
        }
    }
}

/// Sends a request to the daemon that listens at `socket`. Returns its answer, one line of JSON.
///
/// # Errors
/// No daemon listens, the caller is not root, the answer is incomplete, the daemon is stopped or has ended, which takes
/// five seconds to find out, or it gives no sign of life for a minute.
pub(crate) fn ask(socket: &Path, request: &Request) -> io::Result<String> {
    let mut stream = connect(socket).map_err(|error| {
        if is_late(&error) {
            silent("nobody takes the connection")
        } else {
            error
        }
    })?;

    let mut line = serde_json::to_vec(request)?;
    line.push(b'\n');

    // The daemon may refuse, with a reason, before it has read everything.
    let sent = stream.write_all(&line);
    let answer = read_answer(&stream)?;
    match (answer.ends_with('\n'), sent) {
        (true, _) => Ok(answer),
        (false, Err(error)) => Err(error),
        (false, Ok(())) => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// Reads a line. Signs of life come before it, as blanks.
fn read_answer(stream: &UnixStream) -> io::Result<String> {
    let mut reader = BufReader::new(stream);
    let mut answer = Vec::new();
    let mut heard = Instant::now();

    loop {
        let before = answer.len();
        match reader.read_until(b'\n', &mut answer) {
            Ok(_) => break,
            Err(error) if is_late(&error) => {}
            Err(error) => return Err(error),
        }
        if answer.len() > before {
            heard = Instant::now();
        } else if let Some(state) = stopped(stream) {
            return Err(silent(&state));
        } else if heard.elapsed() >= ANSWER_TIMEOUT {
            return Err(silent("no sign of life for a minute"));
        }
    }

    String::from_utf8(answer).map_err(|_| io::ErrorKind::InvalidData.into())
}

fn is_late(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
    )
}

fn silent(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, why)
}

/// Reason why the process at the other end cannot answer; `None` if it can.
fn stopped(stream: &UnixStream) -> Option<String> {
    let peer = rustix::net::sockopt::socket_peercred(stream).ok()?;
    let pid = peer.pid.as_raw_nonzero();
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else {
        return Some(format!("process {pid} has ended"));
    };
    let (_, fields) = stat.rsplit_once(')')?;
    match fields.trim_start().chars().next()? {
        'T' | 't' => Some(format!("process {pid} is stopped: kill -CONT {pid}")),
        'Z' | 'X' => Some(format!("process {pid} has ended")),
        _ => None,
    }
}

/// Connects, and sets the longest wait for each step. The wait to be accepted is limited too: the
/// queue of a stopped daemon's socket may be full.
fn connect(path: &Path) -> io::Result<UnixStream> {
    use rustix::net::{sockopt, AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
    let (family, kind) = (AddressFamily::UNIX, SocketType::STREAM);
    let socket = rustix::net::socket_with(family, kind, SocketFlags::CLOEXEC, None)?;
    for way in [sockopt::Timeout::Send, sockopt::Timeout::Recv] {
        sockopt::set_socket_timeout(&socket, way, Some(PATIENCE))?;
    }
    rustix::net::connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(socket.into())
}

/// A command in the daemon's form; `None` for one that changes nothing.
fn step(command: &Command) -> Option<Step> {
    let rule = |rule| hex(&rules::to_kernel(rule));
    Some(match command {
        Command::Append(added) => Step::Append(rule(added)),
        Command::Prepend(added) => Step::Prepend(rule(added)),
        Command::Delete(deleted) => Step::Delete(rule(deleted)),
        Command::DeleteAll { key } => Step::DeleteAll(key.as_deref().map(hex)),
        Command::Enabled(value) => Step::Enabled(*value),
        Command::Failure(value) => Step::Failure(*value),
        Command::Backlog(value) => Step::Backlog(*value),
        Command::Rate(value) => Step::Rate(*value),
        Command::BacklogWaitTime(value) => Step::BacklogWaitTime(*value),
        Command::LoginuidImmutable => Step::LoginuidImmutable,
        Command::ResetLost => Step::ResetLost,
        Command::ResetBacklogWaitTimeActual => Step::ResetBacklogWaitTimeActual,
        Command::Trim => Step::Trim,
        Command::ReadFile(_) => Step::ReadFile,
        Command::MakeEquivalent { .. } => Step::MakeEquivalent,
        Command::Message(text) => Step::Message(super::message::text(text)),
        _ => return None,
    })
}

impl Audit for Client {
    fn state(&mut self) -> Result<AuditState, Trouble> {
        let answer = self.ask(&Request::Audit)?;
        Ok(answer.audit.unwrap_or_default())
    }

    fn rules(&mut self) -> Result<Vec<Vec<u8>>, Trouble> {
        let rules = self.ask(&Request::Rules)?.rules;
        let bytes: Option<_> = rules.iter().map(|rule| unhex(rule)).collect();
        bytes.ok_or(Trouble {
            errno: None,
            reason: "the daemon's answer cannot be read: a rule is not hexadecimal".to_owned(),
        })
    }

    fn apply(&mut self, commands: &[Command], tolerate_from: usize) -> Result<Applied, Trouble> {
        let placed = commands.iter().enumerate();
        let (places, steps): (Vec<usize>, Vec<Step>) = placed
            .filter_map(|(place, command)| Some((place, step(command)?)))
            .unzip();
        let tolerate_from = places.partition_point(|&place| place < tolerate_from);
        let answer = self.ask(&Request::Apply {
            steps,
            tolerate_from,
        })?;
        let refused = answer.refused.into_iter().map(|refused| {
            let place = places.get(refused.step).copied().unwrap_or_default();
            let trouble = Trouble {
                errno: refused.errno,
                reason: refused.reason,
            };
            (place, trouble)
        });

        Ok(Applied {
            value: answer.value,
            refused: refused.collect(),
        })
    }

    fn is_atomic(&self) -> bool {
        true
    }
}
