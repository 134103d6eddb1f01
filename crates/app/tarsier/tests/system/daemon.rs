//! A Tarsier daemon that a test starts, talks to and ends.

use crate::programs;
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::process::{pidfd_open, Pid, PidfdFlags, Signal};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Longest time to wait for anything, including a debug build on a machine under load.
const PATIENCE: Duration = Duration::from_secs(600);

/// Directory of a test.
pub(crate) struct Setup {
    dir: tempfile::TempDir,
}

impl Setup {
    pub(crate) fn new() -> Setup {
        Setup {
            dir: tempfile::tempdir().expect("a directory"),
        }
    }

    /// A path in the test's directory.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Writes a file in the test's directory.
    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, text).expect("the file is written");
        path
    }

    /// The text of a file in the test's directory.
    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).expect("the file is read")
    }

    /// Writes the configuration, with the test's own plugin directory.
    pub(crate) fn configure(&self, lines: &str) {
        let plugins = self.path("plugins.d");
        let text = format!("{lines}plugin_dir = {}\n", plugins.display());
        // Replaced in one step: a daemon that is just reloading because of an earlier signal reads
        // the old or the new file.
        let new = self.write("auditd.conf.new", &text);
        std::fs::rename(new, self.path("auditd.conf")).expect("the file is renamed");
    }

    /// A run with these rules, with everything else in the test's directory.
    pub(crate) fn tarsier(&self, rules: &str) -> Run {
        self.write("test.rules", rules);
        self.configure("flush = NONE\nmax_log_file_action = IGNORE\n");
        Run {
            program: programs::tarsier(),
            dir: self.dir.path().to_owned(),
            run_dir: self.path("run"),
            rules: self.path("test.rules"),
            log: self.path("audit.log"),
            ring_kib: 4096,
            options: Vec::new(),
            command: Vec::new(),
            environment: Vec::new(),
            stdout: Stdio::null(),
        }
    }
}

/// A `tarsier run` command line that is not started yet.
pub(crate) struct Run {
    program: PathBuf,
    dir: PathBuf,
    run_dir: PathBuf,
    rules: PathBuf,
    log: PathBuf,
    ring_kib: u32,
    options: Vec<OsString>,
    command: Vec<OsString>,
    environment: Vec<(&'static str, OsString)>,
    stdout: Stdio,
}

impl Run {
    pub(crate) fn format(self, format: &str) -> Run {
        self.option("--log-format").option(format)
    }

    pub(crate) fn ring_kib(mut self, kib: u32) -> Run {
        self.ring_kib = kib;
        self
    }

    pub(crate) fn option(mut self, option: impl AsRef<OsStr>) -> Run {
        self.options.push(option.as_ref().to_owned());
        self
    }

    pub(crate) fn run_dir(mut self, dir: PathBuf) -> Run {
        self.run_dir = dir;
        self
    }

    pub(crate) fn rules(mut self, path: PathBuf) -> Run {
        self.rules = path;
        self
    }

    pub(crate) fn log(mut self, path: PathBuf) -> Run {
        self.log = path;
        self
    }

    /// Has wrong rules keep the daemon from starting.
    pub(crate) fn refusing_wrong_rules(self) -> Run {
        let path = self.dir.join("auditd.conf");
        let text = std::fs::read_to_string(&path).expect("the configuration");
        std::fs::write(path, text + "rules_error = refuse\n").expect("it is written");
        self
    }

    /// Has the configuration name the log.
    pub(crate) fn log_of_configuration(mut self) -> Run {
        self.log = PathBuf::new();
        self
    }

    /// Runs the program of this build, which makes calls that tests plant, whatever `TARSIER_BIN` says.
    pub(crate) fn planted(mut self, calls: &str) -> Run {
        self.program = env!("CARGO_BIN_EXE_tarsier").into();
        self.environment("TARSIER_PLANTED", calls)
    }

    /// Adds a word of COMMAND.
    pub(crate) fn command(mut self, words: &[&dyn AsRef<OsStr>]) -> Run {
        self.command
            .extend(words.iter().map(|word| word.as_ref().to_owned()));
        self
    }

    /// Sets a variable of its environment.
    pub(crate) fn environment(mut self, name: &'static str, value: impl AsRef<OsStr>) -> Run {
        self.environment.push((name, value.as_ref().to_owned()));
        self
    }

    /// Sends its standard output, and COMMAND's, to a file.
    pub(crate) fn stdout(mut self, file: &Path) -> Run {
        self.stdout = std::fs::File::create(file).expect("a file").into();
        self
    }

    /// Starts it, and does not wait.
    pub(crate) fn spawn(self) -> Daemon {
        self.spawn_saying_to(Stdio::piped())
    }

    fn spawn_saying_to(self, stderr: Stdio) -> Daemon {
        let mut names = self.environment.iter().map(|(name, _)| *name);
        let is_planted = names.any(|name| name == "TARSIER_PLANTED");
        let log_from = std::fs::metadata(&self.log).map_or(0, |log| log.len());
        let mut command = Command::new(&self.program);
        command
            .arg("run")
            .arg("--rules")
            .arg(&self.rules)
            .arg("--config")
            .arg(self.dir.join("auditd.conf"))
            .arg("--run-dir")
            .arg(&self.run_dir)
            .arg("--ring-size")
            .arg(self.ring_kib.to_string())
            .args(&self.options)
            .envs(self.environment);
        if !self.log.as_os_str().is_empty() {
            command.arg("--log-file").arg(&self.log);
        }
        if !self.command.is_empty() {
            command.arg("--").args(&self.command);
        }
        command
            .current_dir(&self.dir)
            .stdin(Stdio::null())
            .stdout(self.stdout)
            .stderr(stderr);
        let mut child = command.spawn().expect("tarsier starts");
        let said = Arc::new(Said::default());
        let reader = child.stderr.take().map(|pipe| {
            let said = said.clone();
            std::thread::spawn(move || said.read(pipe))
        });
        Daemon {
            child,
            said,
            reader,
            run_dir: self.run_dir,
            log: self.log,
            log_from,
            is_planted,
            ended: None,
        }
    }

    /// Starts it and waits until its rules are armed.
    pub(crate) fn start(self) -> Daemon {
        let daemon = self.spawn();
        daemon.wait_for(" rules armed on ");
        daemon
    }

    /// Starts it with a standard error whose reader is gone, and waits until it answers.
    pub(crate) fn start_unheard(self) -> Daemon {
        let (reader, writer) = rustix::pipe::pipe().expect("a pipe");
        drop(reader);
        let daemon = self.spawn_saying_to(writer.into());
        let end = Instant::now() + PATIENCE;
        while !daemon.answers() {
            assert!(Instant::now() < end, "tarsier does not answer");
            std::thread::sleep(Duration::from_millis(20));
        }
        daemon
    }

    /// Runs it until it ends by itself.
    pub(crate) fn finish(self) -> Ended {
        self.spawn().wait()
    }
}

/// The lines that a daemon has printed on standard error.
#[derive(Default)]
struct Said {
    lines: Mutex<(Vec<String>, bool)>,
    changed: Condvar,
}

impl Said {
    fn read(&self, pipe: impl Read) {
        let mut lines = BufReader::new(pipe);
        loop {
            let mut bytes = Vec::new();
            let ended = !matches!(lines.read_until(b'\n', &mut bytes), Ok(n) if n > 0);
            let mut state = self.lines.lock().expect("no panic in there");
            if ended {
                state.1 = true;
            } else {
                let text = String::from_utf8_lossy(&bytes);
                state.0.push(text.trim_end().to_owned());
            }
            drop(state);
            self.changed.notify_all();
            if ended {
                return;
            }
        }
    }

    /// Waits until `count` lines contain `text`. Returns whether they came before the end.
    fn wait_for(&self, text: &str, count: usize) -> bool {
        let there = |lines: &[String]| lines.iter().filter(|l| l.contains(text)).count() >= count;
        let state = self.lines.lock().expect("no panic in there");
        let (state, _) = self
            .changed
            .wait_timeout_while(state, PATIENCE, |(lines, ended)| !there(lines) && !*ended)
            .expect("no panic in there");
        there(&state.0)
    }

    fn text(&self) -> String {
        self.lines.lock().expect("no panic in there").0.join("\n")
    }
}

/// A running daemon.
pub(crate) struct Daemon {
    child: Child,
    said: Arc<Said>,
    reader: Option<JoinHandle<()>>,
    run_dir: PathBuf,
    log: PathBuf,
    /// Size of the log when it was started.
    log_from: u64,
    is_planted: bool,
    ended: Option<ExitStatus>,
}

/// The outcome of a run.
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    /// The text on its standard error.
    pub(crate) said: String,
    pub(crate) log: PathBuf,
}

impl Daemon {
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until it prints a line with this text.
    pub(crate) fn wait_for(&self, text: &str) {
        self.wait_for_times(text, 1);
    }

    /// Waits until it has printed `count` lines with this text.
    pub(crate) fn wait_for_times(&self, text: &str, count: usize) {
        assert!(
            self.said.wait_for(text, count),
            "tarsier did not say {text:?} {count} times, but:\n{}",
            self.said.text()
        );
    }

    /// Whether it has printed a line with this text.
    pub(crate) fn has_said(&self, text: &str) -> bool {
        self.said.text().contains(text)
    }

    /// Waits until its log has a line with this text.
    pub(crate) fn wait_for_record(&self, text: &str) {
        let end = Instant::now() + PATIENCE;
        while !std::fs::read_to_string(&self.log).is_ok_and(|log| log.contains(text)) {
            assert!(Instant::now() < end, "the log has no {text:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Answer of the daemon to `tarsier status --json`.
    pub(crate) fn status(&self) -> serde_json::Value {
        let output = self.asked(&["--json"]);
        let text = String::from_utf8_lossy(&output.stdout);
        // 2: somebody has interfered, for example stopped the daemon.
        let is_answer = matches!(output.status.code(), Some(0 | 2));
        assert!(is_answer, "status: {}: {text}", output.status);
        serde_json::from_str(&text).expect("JSON")
    }

    /// The output of `tarsier status` with these options.
    pub(crate) fn asked(&self, options: &[&str]) -> Output {
        let mut command = Command::new(programs::tarsier());
        command.arg("status").args(options).arg("--run-dir");
        command.arg(&self.run_dir).output().expect("tarsier runs")
    }

    /// Whether it answers, which it does once its rules are armed.
    fn answers(&self) -> bool {
        self.asked(&[]).status.success()
    }

    /// Number of the rule set in force.
    pub(crate) fn generation(&self) -> u64 {
        self.status()["generation"].as_u64().expect("a number")
    }

    /// Sends SIGHUP, and waits until the new rules are in force. Returns the number of their generation.
    pub(crate) fn reload(&self) -> u64 {
        let before = self.generation();
        self.signal(Signal::HUP);
        let end = Instant::now() + PATIENCE;
        loop {
            // Each answer takes one turn of the daemon's loop, which handles signals first.
            match self.generation() {
                now if now > before => return now,
                _ => assert!(Instant::now() < end, "no reload beyond {before}"),
            }
        }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).expect("the signal is sent");
    }

    /// Waits until it ends.
    pub(crate) fn wait(mut self) -> Ended {
        assert!(
            self.ends_within(PATIENCE),
            "tarsier does not end; it said:\n{}",
            self.said.text()
        );
        self.collect();
        let refused = self.refused();
        assert!(
            self.is_planted || refused.is_empty(),
            "its own filter refused: {refused:#?}"
        );
        Ended {
            status: self.ended.expect("it has ended"),
            said: self.said.text(),
            log: self.log.clone(),
        }
    }

    /// The records of its own calls that its filter refused.
    fn refused(&self) -> Vec<String> {
        let mut text = Vec::new();
        if let Ok(mut log) = File::open(&self.log) {
            // It may have been rotated since.
            let from = Some(self.log_from)
                .filter(|from| log.metadata().is_ok_and(|log| log.len() > *from));
            log.seek(SeekFrom::Start(from.unwrap_or(0)))
                .expect("a file");
            log.read_to_end(&mut text).expect("the log is read");
        }
        let own = format!(" pid={} ", self.child.id());
        let lines = text.split(|byte| *byte == b'\n');
        let refused = lines.filter(|line| {
            line.windows(13)
                .take(64)
                .any(|text| text == b"type=SECCOMP ")
        });
        let refused = refused.map(|line| String::from_utf8_lossy(line).into_owned());
        refused.filter(|line| line.contains(&own)).collect()
    }

    /// Stops it with SIGTERM, as an administrator does.
    pub(crate) fn stop(self) -> Ended {
        self.signal(Signal::TERM);
        self.wait()
    }

    fn ends_within(&mut self, time: Duration) -> bool {
        let pidfd = pidfd_open(Pid::from_child(&self.child), PidfdFlags::empty()).expect("a pidfd");
        let deadline = Instant::now() + time;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let timeout = Timespec {
                tv_sec: left.as_secs() as i64,
                tv_nsec: left.subsec_nanos().into(),
            };
            let mut fds = [PollFd::new(&pidfd, PollFlags::IN)];
            match poll(&mut fds, Some(&timeout)) {
                Ok(0) => return false,
                Ok(_) => return true,
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => panic!("poll: {error}"),
            }
        }
    }

    fn collect(&mut self) {
        self.ended = Some(self.child.wait().expect("its status"));
        if let Some(reader) = self.reader.take() {
            reader.join().expect("the reader ends");
        }
    }
}

impl Drop for Daemon {
    /// Ends a daemon that is still running, which is the case only after a failed assertion.
    fn drop(&mut self) {
        if self.ended.is_some() {
            return;
        }
        self.signal(Signal::TERM);
        if !self.ends_within(Duration::from_secs(5)) {
            self.signal(Signal::KILL);
        }
        self.ended = self.child.wait().ok();
        eprintln!("tarsier said:\n{}", self.said.text());
    }
}
