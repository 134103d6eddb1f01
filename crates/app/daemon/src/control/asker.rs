//! The process that asked for a change: the one at the other end of a socket, or the sender of a signal.

use crate::account::daemon_records::Who;
use record::put;
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::fs::{Mode, OFlags};
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::Path;

/// SO_PEERPIDFD (include/uapi/asm-generic/socket.h), since Linux 6.5.
const SO_PEERPIDFD: i32 = 77;
/// Limit of the files and labels that are read, in bytes.
const TEXT_MAX: usize = 4096;

/// A process, as the kernel names one in its records.
#[derive(Clone)]
pub(crate) struct Asker {
    pub(crate) who: Who,
    /// Label by the security module, if there is one.
    subj: Option<Vec<u8>>,
    /// Name that the process chose.
    comm: Option<Vec<u8>>,
    exe: Option<Vec<u8>>,
    /// Name of the controlling terminal.
    tty: Option<String>,
}

impl Asker {
    /// The process that connected to this daemon's end of a socket, as it is now. `None` if the kernel does not say.
    /// `executable` finds the path of the program that a process runs.
    pub(crate) fn peer(
        stream: &UnixStream,
        executable: impl Fn(u32) -> Option<Vec<u8>>,
    ) -> Option<Asker> {
        let peer = rustix::net::sockopt::socket_peercred(stream).ok()?;
        let pid = peer.pid.as_raw_nonzero().get() as u32;
        let process = AskerProcess::open(pid);
        let exe = executable(pid);
        // The number may be another process's by now, unless this one still runs.
        let still_runs = peer_pidfd(stream).is_none_or(|fd| runs(fd.as_fd()));
        let (process, exe) = if still_runs {
            (process, exe)
        } else {
            (None, None)
        };

        let mut asker = Asker::read(pid, process.as_ref());
        asker.exe = exe;
        asker.who.uid = peer.uid.as_raw();
        asker.subj = peer_label(stream).or(asker.subj);
        Some(asker)
    }

    /// This process.
    pub(crate) fn this_process() -> Asker {
        Asker::of(Who::this_process(), |_| own_executable())
    }

    /// Adds to `who` what its process shows. `executable` as for [`peer`](Self::peer).
    pub(crate) fn of(who: Who, executable: impl Fn(u32) -> Option<Vec<u8>>) -> Asker {
        Asker {
            who,
            exe: executable(who.pid),
            ..Asker::read(who.pid, AskerProcess::open(who.pid).as_ref())
        }
    }

    fn read(pid: u32, process: Option<&AskerProcess>) -> Asker {
        let number = |name: &str| {
            let text = String::from_utf8(process?.file(name)?).ok()?;
            text.trim().parse().ok()
        };
        let text = |name: &str| trimmed(process?.file(name)?);
        Asker {
            who: Who {
                auid: number("loginuid").unwrap_or(u32::MAX),
                uid: u32::MAX,
                ses: number("sessionid").unwrap_or(u32::MAX),
                pid,
            },
            subj: text("attr/current"),
            comm: text("comm"),
            exe: None,
            tty: process
                .and_then(|process| process.file("stat"))
                .and_then(|stat| terminal(&stat)),
        }
    }

    /// Appends the fields that the kernel puts into records of changes, in its order, and then those that it puts into
    /// the SYSCALL record of the call.
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        let Who {
            auid,
            uid,
            ses,
            pid,
        } = self.who;

        put::text(out, &format!("auid={auid} ses={ses}"));
        self.put_subj(out);
        let tty = self.tty.as_deref().unwrap_or("(none)");
        put::text(out, &format!(" pid={pid} uid={uid} tty={tty} comm="));
        put::untrusted_or_null(out, self.comm.as_deref());
        put::text(out, " exe=");
        put::untrusted_or_null(out, self.exe.as_deref());
    }

    /// Appends ` subj=`, if there is a label.
    pub(crate) fn put_subj(&self, out: &mut Vec<u8>) {
        let is_plain = |label: &&Vec<u8>| !label.iter().any(u8::is_ascii_control);
        put::label(
            out,
            " subj=",
            self.subj.as_ref().filter(is_plain).map(Vec::as_slice),
        );
    }
}

/// A directory of /proc. It never shows another process that gets the same number later.
struct AskerProcess(OwnedFd);

impl AskerProcess {
    fn open(pid: u32) -> Option<AskerProcess> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let dir = rustix::fs::open(format!("/proc/{pid}"), flags, Mode::empty());
        dir.ok().map(AskerProcess)
    }

    fn file(&self, name: &str) -> Option<Vec<u8>> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let file = File::from(rustix::fs::openat(&self.0, name, flags, Mode::empty()).ok()?);
        let mut text = Vec::new();
        file.take(TEXT_MAX as u64).read_to_end(&mut text).ok()?;
        Some(text)
    }
}

/// The path of this program.
fn own_executable() -> Option<Vec<u8>> {
    let link = rustix::fs::readlink("/proc/self/exe", Vec::new()).ok()?;
    Some(link.into_bytes())
}

/// The text without the end mark that /proc appends: a line feed, or NUL with SELinux. `None` if nothing is left.
fn trimmed(mut text: Vec<u8>) -> Option<Vec<u8>> {
    if matches!(text.last(), Some(0 | b'\n')) {
        text.pop();
    }
    (!text.is_empty()).then_some(text)
}

/// Name of the terminal in /proc/PID/stat, as the kernel names it in records: `pts0`, `tty1`.
fn terminal(stat: &[u8]) -> Option<String> {
    // The name may contain parentheses and blanks; what follows its closing parenthesis does not.
    let after_name = stat.iter().rposition(|&byte| byte == b')')? + 1;
    let rest = std::str::from_utf8(&stat[after_name..]).ok()?;
    let device: u32 = rest.split_ascii_whitespace().nth(4)?.parse().ok()?;
    let (major, minor) = (device >> 8 & 0xfff, device & 0xff | device >> 12 & 0xf_ff00);
    match (major, device) {
        (_, 0) => None,
        (136..=143, _) => Some(format!("pts{}", (major - 136) * 256 + minor)),
        _ => {
            let place = std::fs::read_link(format!("/sys/dev/char/{major}:{minor}"));
            let place = place.ok()?;
            let name = Path::new(place.file_name()?).as_os_str().as_bytes();
            String::from_utf8(name.to_vec()).ok()
        }
    }
}

/// Whether the process has not ended.
fn runs(pidfd: BorrowedFd<'_>) -> bool {
    let mut fds = [PollFd::from_borrowed_fd(pidfd, PollFlags::IN)];
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    matches!(poll(&mut fds, Some(&now)), Ok(0))
}

/// A descriptor of the process that connected; `None` with older kernels, which have only its number.
fn peer_pidfd(stream: &UnixStream) -> Option<OwnedFd> {
    let mut bytes = [0; 4];
    let len = option(stream, SO_PEERPIDFD, &mut bytes)?;
    let fd = i32::from_ne_bytes(bytes);
    // SAFETY: the kernel has just made this descriptor for us.
    (len == bytes.len() && fd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(fd) })
}

/// The label of the process when it connected; `None` if the security module does not say.
fn peer_label(stream: &UnixStream) -> Option<Vec<u8>> {
    let mut bytes = vec![0; TEXT_MAX];
    let len = option(stream, libc::SO_PEERSEC, &mut bytes)?;
    bytes.truncate(len);
    trimmed(bytes)
}

/// Reads a socket option. Returns the number of bytes.
fn option(stream: &UnixStream, name: i32, bytes: &mut [u8]) -> Option<usize> {
    let mut len = bytes.len() as libc::socklen_t;
    let fd = stream.as_raw_fd();
    let place = bytes.as_mut_ptr().cast();
    // SAFETY: the kernel writes at most `len` bytes, which `bytes` has.
    let failed = unsafe { libc::getsockopt(fd, libc::SOL_SOCKET, name, place, &mut len) };
    (failed == 0).then_some(len as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(asker: &Asker) -> String {
        let mut out = Vec::new();
        asker.put(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_peer_of_a_socket_is_the_process_that_made_it() {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let peer = Asker::peer(&ours, |_| own_executable()).unwrap();
        assert_eq!(peer.who.pid, std::process::id());
        assert_eq!(peer.who.uid, rustix::process::getuid().as_raw());
        let exe = std::fs::read_link("/proc/self/exe").unwrap();
        assert_eq!(peer.exe.as_deref(), Some(exe.as_os_str().as_bytes()));
        let comm = std::fs::read_to_string("/proc/self/comm").unwrap();
        assert_eq!(peer.comm.as_deref(), Some(comm.trim_end().as_bytes()));
    }

    #[test]
    fn of_a_process_that_is_gone_only_the_number_is_told() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let who = Who {
            auid: 5,
            uid: 6,
            ses: 7,
            pid: child.id(),
        };
        child.wait().unwrap();
        let told = text(&Asker::of(who, |_| None));
        let pid = who.pid;
        let expected = format!("auid=5 ses=7 pid={pid} uid=6 tty=(none) comm=(null) exe=(null)");
        assert_eq!(told, expected);
    }

    #[test]
    fn what_the_caller_chose_cannot_look_like_fields() {
        let asker = Asker {
            who: Who {
                auid: 0,
                uid: 0,
                ses: 1,
                pid: 2,
            },
            subj: Some(b"a\nb".to_vec()),
            comm: Some(b"x\" res=1\n".to_vec()),
            exe: Some(b"/tmp/a b".to_vec()),
            tty: Some("pts3".to_owned()),
        };
        let expected =
            "auid=0 ses=1 pid=2 uid=0 tty=pts3 comm=7822207265733D310A exe=2F746D702F612062";
        assert_eq!(text(&asker), expected);
        let labelled = Asker {
            subj: Some(b"unconfined_u:unconfined_r:unconfined_t:s0".to_vec()),
            ..asker
        };
        assert!(text(&labelled)
            .contains(" ses=1 subj=unconfined_u:unconfined_r:unconfined_t:s0 pid=2 "));
    }

    #[test]
    fn a_terminal_has_the_kernel_s_name() {
        let stat = |device: u32| format!("1 (a) b) S 1 1 1 {device} 1").into_bytes();
        assert_eq!(terminal(&stat(0)), None);
        assert_eq!(terminal(&stat(136 << 8 | 3)).as_deref(), Some("pts3"));
        assert_eq!(terminal(&stat(137 << 8 | 1)).as_deref(), Some("pts257"));
        assert_eq!(terminal(b"1 (a"), None);
    }
}
