//! The state file: the audit state found at the start, so that it can be restored after a kill too.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

use super::error::TakeOverError;
use super::message::Status;

const HEADER: &str = "tarsier-audit-state 2";
/// First line of files without `unused`.
const OLD_HEADER: &str = "tarsier-audit-state 1";
/// The largest size of the file. Rules are written in hexadecimal; some ten thousand fit.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// Content of the file: the process that wrote it, the state found, and the rules that the process
/// loads.
pub(super) type Saved = (Writer, Found, Vec<Vec<u8>>);

/// The audit state as it was before anything was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// `enabled`: 0, 1, or 2 if audit was locked.
    pub enabled: u32,
    /// `failure`
    pub failure: u32,
    /// `rate_limit`
    pub rate_limit: u32,
    /// `backlog_limit`
    pub backlog_limit: u32,
    /// `backlog_wait_time`
    pub backlog_wait_time: u32,
    /// `pid`: 0, or the id of a daemon that had died.
    pub pid: u32,
    /// Number of rules loaded.
    pub rules: u32,
    /// 1 if `never,task` was among the rules, else 0.
    pub never_task: u32,
    /// 1 if audit had not been enabled since boot and no rule was loaded, otherwise 0. With 1,
    /// `never,task` stays loaded at the end: once audit was enabled, the kernel gives each new task
    /// an audit context, which makes all its calls slower, unless that rule forbids it.
    pub unused: u32,
}

impl Found {
    /// `never_enabled`: whether new tasks get no audit context, although no rule forbids it.
    pub(super) fn new(
        status: &Status,
        rules: usize,
        never_task: bool,
        never_enabled: bool,
    ) -> Self {
        Found {
            enabled: status.enabled,
            failure: status.failure,
            rate_limit: status.rate_limit,
            backlog_limit: status.backlog_limit,
            backlog_wait_time: status.backlog_wait_time,
            pid: status.pid,
            rules: u32::try_from(rules).unwrap_or(u32::MAX),
            never_task: never_task.into(),
            unused: (never_enabled && status.enabled == 0 && rules == 0).into(),
        }
    }

    /// Whether `never,task` is loaded when this state is restored.
    pub fn has_never_task(&self) -> bool {
        self.never_task == 1 || self.unused == 1
    }

    fn members(&mut self) -> [(&'static str, &mut u32); 9] {
        [
            ("enabled", &mut self.enabled),
            ("failure", &mut self.failure),
            ("rate_limit", &mut self.rate_limit),
            ("backlog_limit", &mut self.backlog_limit),
            ("backlog_wait_time", &mut self.backlog_wait_time),
            ("pid", &mut self.pid),
            ("rules", &mut self.rules),
            ("never_task", &mut self.never_task),
            ("unused", &mut self.unused),
        ]
    }
}

/// Identity of a process: its start time tells it apart from later processes with the same id, the
/// boot id from processes before a reboot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Writer {
    pub(super) pid: u32,
    /// Start time in clock ticks since boot (proc(5), stat field 22).
    pub(super) start_ticks: u64,
    pub(super) boot_id: String,
}

impl Writer {
    pub(super) fn this_process() -> Self {
        let pid = std::process::id();
        Writer {
            pid,
            start_ticks: start_ticks(pid).unwrap_or(0),
            boot_id: boot_id(),
        }
    }

    pub(super) fn is_alive(&self) -> bool {
        start_ticks(self.pid) == Some(self.start_ticks)
    }

    /// Whether the machine was rebooted since: then nothing is left to restore.
    pub(super) fn is_of_another_boot(&self) -> bool {
        self.boot_id != boot_id()
    }
}

fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .map(|text| text.trim().to_owned())
        .unwrap_or_default()
}

/// Start time of a process, in clock ticks since boot. `None` if there is no such process or it is
/// a zombie, which does nothing any more.
fn start_ticks(pid: u32) -> Option<u64> {
    let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    // The name may contain parentheses and blanks; what follows its closing parenthesis does not.
    let after_name = stat.iter().rposition(|&byte| byte == b')')? + 1;
    let rest = std::str::from_utf8(&stat[after_name..]).ok()?;
    let mut fields = rest.split_ascii_whitespace();
    match fields.next()? {
        "Z" | "X" => None,
        // The state is field 3, the start time field 22.
        _ => fields.nth(18)?.parse().ok(),
    }
}

pub(super) fn encode(writer: &Writer, mut found: Found, loaded: &[&[u8]]) -> String {
    let mut text = format!(
        "{HEADER}\nboot_id={}\nwriter_pid={}\nwriter_start_ticks={}\n",
        writer.boot_id, writer.pid, writer.start_ticks
    );
    for (name, value) in found.members() {
        text.push_str(&format!("{name}={value}\n"));
    }

    for rule in loaded {
        text.push_str("rule=");
        for byte in *rule {
            let digit = |nibble: u8| char::from_digit(nibble.into(), 16).unwrap_or('0');
            text.extend([digit(byte >> 4), digit(byte & 15)]);
        }
        text.push('\n');
    }

    text.push_str("end\n");
    text
}

/// The text of a state file, decoded and encoded again, to check that nothing is lost.
///
/// # Errors
/// `text` is not a state file.
pub fn written_anew(text: &str) -> Result<String, String> {
    let (writer, found, loaded) = decode(text)?;
    let loaded: Vec<&[u8]> = loaded.iter().map(Vec::as_slice).collect();
    Ok(encode(&writer, found, &loaded))
}

/// The inverse of [`encode`]. The error says what is wrong with the text.
pub(super) fn decode(text: &str) -> Result<Saved, String> {
    let old = text.strip_prefix(OLD_HEADER);
    let members = old
        .or_else(|| text.strip_prefix(HEADER))
        .and_then(|rest| rest.strip_prefix('\n'))
        .ok_or("not a state file of this version of Tarsier")?
        // The last line shows that the file is whole.
        .strip_suffix("end\n")
        .ok_or("cut short")?;
    let mut lines = members.lines();
    let mut value = |name: &str| {
        lines
            .next()
            .and_then(|line| line.strip_prefix(name)?.strip_prefix('='))
            .ok_or_else(|| format!("{name} is missing"))
    };
    let boot_id = value("boot_id")?.to_owned();
    let pid = number("writer_pid", value("writer_pid")?)?;
    let start_ticks = number("writer_start_ticks", value("writer_start_ticks")?)?;
    let mut found = Found::new(&Status::default(), 0, false, false);
    let is_there = |name: &str| old.is_none() || name != "unused";

    for (name, member) in found
        .members()
        .into_iter()
        .filter(|(name, _)| is_there(name))
    {
        *member = number(name, value(name)?)?;
    }
    let mut loaded = Vec::new();
    for line in lines {
        let rule = line.strip_prefix("rule=").and_then(unhex);
        loaded.push(rule.ok_or("a rule is not hexadecimal")?);
    }

    let writer = Writer {
        pid,
        start_ticks,
        boot_id,
    };
    Ok((writer, found, loaded))
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    let pairs = text.as_bytes().chunks(2);
    pairs
        .map(|pair| match *pair {
            [high, low] => Some(digit(high)? << 4 | digit(low)?),
            _ => None,
        })
        .collect()
}

fn number<T: std::str::FromStr>(name: &str, text: &str) -> Result<T, String> {
    text.parse()
        .map_err(|_| format!("the value of {name} is not a number in its range"))
}

fn failed(path: &Path, call: &'static str, source: impl Into<io::Error>) -> TakeOverError {
    TakeOverError::StateFile {
        path: path.to_owned(),
        call,
        source: source.into(),
    }
}

/// Reads the file; `None` if it does not exist.
pub(super) fn read(path: &Path) -> Result<Option<Saved>, TakeOverError> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(fd) => File::from(fd),
        Err(rustix::io::Errno::NOENT) => return Ok(None),
        Err(errno) => return Err(failed(path, "open", errno)),
    };
    let mut text = String::new();
    file.take(FILE_BYTES_MAX)
        .read_to_string(&mut text)
        .map_err(|error| failed(path, "read", error))?;

    decode(&text)
        .map(Some)
        .map_err(|found| TakeOverError::BadState {
            path: path.to_owned(),
            found,
        })
}

/// Writes the file atomically, with mode 0600: writes and syncs a new file beside it, renames it, and
/// syncs the directory.
pub(super) fn write(
    path: &Path,
    writer: &Writer,
    found: Found,
    loaded: &[&[u8]],
) -> Result<(), TakeOverError> {
    let beside = sibling(path);
    // A process that was killed while writing may have left it.
    let _ = std::fs::remove_file(&beside);
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let fd = rustix::fs::open(&beside, flags, Mode::RUSR | Mode::WUSR)
        .map_err(|errno| failed(&beside, "open", errno))?;
    let mut file = File::from(fd);
    file.write_all(encode(writer, found, loaded).as_bytes())
        .and_then(|()| file.sync_all())
        .map_err(|error| failed(&beside, "write", error))?;
    std::fs::rename(&beside, path).map_err(|error| failed(path, "rename", error))?;
    sync_dir_of(path)
}

/// Removes the file, if it exists.
pub(super) fn remove(path: &Path) -> Result<(), TakeOverError> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(path, "unlink", error)),
        _ => sync_dir_of(path),
    }
}

fn sibling(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    PathBuf::from(name)
}

fn sync_dir_of(path: &Path) -> Result<(), TakeOverError> {
    let dir = match path.parent() {
        Some(dir) if !dir.as_os_str().is_empty() => dir,
        _ => Path::new("."),
    };
    File::open(dir)
        .and_then(|dir| dir.sync_all())
        .map_err(|error| failed(dir, "fsync", error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn found() -> Found {
        Found {
            enabled: 1,
            failure: 2,
            rate_limit: 3,
            backlog_limit: 64,
            backlog_wait_time: 15000,
            pid: 0,
            rules: 5,
            never_task: 1,
            unused: 1,
        }
    }

    #[test]
    fn state_survives_the_file_which_only_its_owner_reads() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state");
        assert_eq!(read(&path).unwrap(), None);
        let writer = Writer::this_process();
        let rules = [vec![0u8, 1, 255], vec![9; 1040]];
        let loaded: Vec<&[u8]> = rules.iter().map(Vec::as_slice).collect();
        write(&path, &writer, found(), &loaded).unwrap();
        let saved = (writer, found(), rules.to_vec());
        assert_eq!(read(&path).unwrap(), Some(saved));
        let mode = path.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        remove(&path).unwrap();
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        remove(&path).unwrap();
    }

    #[test]
    fn any_cut_state_file_is_refused() {
        let text = encode(&Writer::this_process(), found(), &[&[1, 2, 3], &[4]]);
        assert!(decode(&text).is_ok());
        for len in 0..text.len() {
            assert!(decode(&text[..len]).is_err(), "{:?}", &text[..len]);
        }
        assert!(decode(&text.replace("enabled=1", "enabled=x")).is_err());
        assert!(decode(&text.replace("failure=2\n", "")).is_err());
        assert!(decode(&text.replace("rule=04", "rule=0")).is_err());
        assert!(decode(&text.replace("rule=04", "more=04")).is_err());
    }

    #[test]
    fn the_file_of_a_version_that_kept_no_rule_is_read() {
        let text = encode(&Writer::this_process(), found(), &[]);
        let old = text.replace(HEADER, OLD_HEADER).replace("unused=1\n", "");
        let (_, read, _) = decode(&old).unwrap();
        let expected = Found {
            unused: 0,
            ..found()
        };
        assert_eq!(read, expected);
        assert!(decode(&text.replace("unused=1\n", "")).is_err());
    }

    #[test]
    fn the_rule_stays_only_where_audit_was_neither_enabled_nor_had_rules() {
        let status = |enabled| Status {
            enabled,
            ..Status::default()
        };
        let unused = |enabled, rules, never_enabled| {
            Found::new(&status(enabled), rules, false, never_enabled).has_never_task()
        };
        assert!(unused(0, 0, true));
        assert!(!unused(0, 0, false), "it was enabled and is off now");
        assert!(!unused(1, 0, true));
        assert!(!unused(0, 1, true));
    }

    #[test]
    fn a_process_is_told_from_a_later_one_with_its_number() {
        let me = Writer::this_process();
        assert!(me.is_alive() && !me.is_of_another_boot());
        let earlier = Writer {
            start_ticks: me.start_ticks + 1,
            ..me.clone()
        };
        assert!(!earlier.is_alive());
        let before_boot = Writer {
            boot_id: "another".into(),
            ..me
        };
        assert!(before_boot.is_of_another_boot());
    }
}
