//! A log that tests write, the program, and what has to hold at the destination.

#![allow(dead_code, unused_imports, unreachable_pub)]

pub mod certificates;
pub mod front;

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;
pub use testkit::wait::{await_for, await_that, DEADLINE};

/// A log in a directory of its own.
pub struct Log {
    dir: tempfile::TempDir,
}

impl Log {
    pub fn new() -> Log {
        let dir = tempfile::tempdir().expect("a directory");
        File::create(dir.path().join("audit.log")).expect("a log");
        Log { dir }
    }

    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    pub fn path(&self) -> PathBuf {
        self.dir().join("audit.log")
    }

    /// Appends events with these numbers.
    pub fn append(&self, numbers: Range<usize>) {
        let mut text = String::new();
        for number in numbers {
            text += &event(number);
        }
        self.append_text(&text);
    }

    /// Appends lines.
    pub fn append_text(&self, text: &str) {
        let file = OpenOptions::new()
            .append(true)
            .create(true)
            .open(self.path());
        file.expect("open the log")
            .write_all(text.as_bytes())
            .expect("write the log");
    }

    /// Rotates as the daemon does, keeping as many files as a test makes.
    pub fn rotate(&self) {
        let numbered = |n: u32| self.dir().join(format!("audit.log.{n}"));
        for number in (1..40).rev() {
            let _ = std::fs::rename(numbered(number), numbered(number + 1));
        }
        std::fs::rename(self.path(), numbered(1)).expect("rename the log");
        File::create(self.path()).expect("a new log");
    }

    /// Whether the sender has linked the file that is being written.
    pub fn is_linked(&self) -> bool {
        use std::os::unix::fs::MetadataExt;
        std::fs::metadata(self.path()).is_ok_and(|stat| stat.nlink() > 1)
    }
}

/// An event of two records. Even numbers have the key k0, odd ones k1.
pub fn event(number: usize) -> String {
    let id = format!(
        "msg=audit({}.{:03}:{number})",
        1_000_000_000 + number,
        number % 1000
    );
    format!(
        "type=SYSCALL {id}: arch=c000003e syscall=59 n={number} comm=\"cat\" key=\"k{}\"\n\
         type=PROCTITLE {id}: proctitle=636174\n",
        number % 2
    )
}

/// The number of an event.
pub fn number_of(line: &str) -> Option<usize> {
    let rest = &line[line.find(" n=")? + 3..];
    rest.split(' ').next()?.parse().ok()
}

/// Numbers of the events in a text.
pub fn numbers_of(text: &str) -> Vec<usize> {
    text.lines().filter_map(number_of).collect()
}

/// Numbers of the events in a file.
pub fn numbers_in(path: &Path) -> Vec<usize> {
    numbers_of(&std::fs::read_to_string(path).unwrap_or_default())
}

/// The envelopes in a file, without a last line that is being written.
pub fn envelopes(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect()
}

/// `from` is `to` of the message before.
pub fn assert_chained(envelopes: &[Value]) {
    let mut before = Value::from("0/0/0");
    for each in envelopes {
        assert_eq!(each["from"], before, "a hole before {each}");
        before = each["to"].clone();
    }
}

/// 0 to `count` - 1, each once, in order.
pub fn assert_exactly_once(numbers: &[usize], count: usize) {
    let mut seen = vec![0_u32; count];
    for number in numbers {
        seen[*number] += 1;
    }
    let lost = seen.iter().filter(|times| **times == 0).count();
    let doubled = seen.iter().filter(|times| **times > 1).count();
    assert_eq!((lost, doubled), (0, 0), "lost and doubled of {count}");
    assert!(numbers.is_sorted(), "the order is that of the log");
}

/// `from` is `to` of the message before, in what an engine has stored; sums of events and of
/// filtered events.
pub fn assert_stored_is_chained(stored: &str) -> (u64, u64) {
    let (mut before, mut events, mut filtered) = ("0/0/0", 0, 0);
    for line in stored.lines().filter(|line| line.starts_with("from=")) {
        let get = |name: &str| {
            let mut words = line.split(' ').filter_map(|word| word.split_once('='));
            words
                .find(|(key, _)| *key == name)
                .map_or("", |(_, value)| value)
        };
        assert_eq!(get("from"), before, "a hole before {line}");
        before = get("to");
        events += get("events").parse::<u64>().expect("a number");
        filtered += get("filtered").parse::<u64>().expect("a number");
    }
    (events, filtered)
}

/// A configuration file.
pub struct Config {
    path: PathBuf,
}

impl Config {
    pub fn new(log: &Log, settings: &str) -> Config {
        let config = Config {
            path: log.dir().join("forward.conf"),
        };
        config.write(log, settings);
        config
    }

    /// Replaces a text in the file.
    pub fn replace(&self, old: &str, new: &str) {
        let text = std::fs::read_to_string(&self.path).expect("read the configuration");
        std::fs::write(&self.path, text.replace(old, new)).expect("write the configuration");
    }

    pub fn write(&self, log: &Log, settings: &str) {
        let text = format!(
            "log_file = {}\nhost = web1\n{settings}",
            log.path().display()
        );
        std::fs::write(&self.path, text).expect("write the configuration");
    }
}

fn command(config: &Config) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tarsier-forward"));
    command.arg("--config").arg(&config.path);
    command
}

/// Runs a command; its status and all that it printed.
pub fn run(config: &Config, args: &[&str]) -> (i32, String) {
    let output = command(config)
        .args(args)
        .output()
        .expect("run tarsier-forward");
    let text = [output.stdout, output.stderr].concat();
    let status = output.status.code().expect("a status");
    (status, String::from_utf8_lossy(&text).into_owned())
}

/// A sender that runs.
pub struct Program {
    child: Child,
    stderr: PathBuf,
}

impl Program {
    pub fn start(config: &Config) -> Program {
        let stderr = config.path.with_extension("stderr");
        let file = OpenOptions::new()
            .append(true)
            .create(true)
            .open(&stderr)
            .expect("a file");
        let child = command(config)
            .arg("run")
            .stdin(Stdio::null())
            .stderr(file)
            .spawn()
            .expect("start tarsier-forward");
        Program { child, stderr }
    }

    pub fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).expect("signal the sender");
    }

    /// Largest resident memory, in KiB.
    pub fn memory_kib(&self) -> u64 {
        let text = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()));
        let text = text.expect("its status");
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let words = line.expect("VmHWM").trim().trim_end_matches(" kB");
        words.parse().expect("a number")
    }

    /// Output of the sender on standard error so far.
    pub fn stderr(&self) -> String {
        std::fs::read_to_string(&self.stderr).unwrap_or_default()
    }

    /// Asks the sender to end, and waits until it has.
    pub fn stop(mut self) {
        self.signal(rustix::process::Signal::TERM);
        await_that("the sender ends", || {
            self.child.try_wait().is_ok_and(|s| s.is_some())
        });
    }

    /// kill -9.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the sender said:\n{}", self.stderr());
        }
        self.kill();
    }
}
