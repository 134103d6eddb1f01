//! Tests that `tarsier-forward` sends the log of a daemon that is killed. `TARSIER_FORWARD_KILLS=N` makes N kills, at
//! 20,000 calls a second, with a file, NATS and Kafka at the far side; by default few, at fewer, without Kafka.

use crate::daemon::Setup;
use crate::numbered::{self, Caller, RULE};
use crate::survival::{kill, more_than, pin_dir, pinned};
use crate::{machine, programs};
use rustix::process::Signal;
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use testkit::servers::{Engine, Kafka, Nats};
use testkit::wait::await_for;

/// Longest time to wait for what is left of the log.
const PATIENCE: Duration = Duration::from_secs(600);
const KILLS: u32 = 6;
const CALLS_PER_SECOND: u32 = 20_000;

/// Destination of the test's log.
enum FarSide {
    /// A file, which is synced as a server would do.
    File,
    Server(Box<dyn Engine>),
}

impl FarSide {
    fn settings(&self, setup: &Setup) -> String {
        match self {
            FarSide::File => format!("sink = file\npath = {}\n", setup.path("far-side").display()),
            FarSide::Server(server) => server.settings(),
        }
    }

    /// Reads what a server has into the file.
    fn read(&mut self, setup: &Setup) {
        let FarSide::Server(server) = self else {
            return;
        };
        let stored = server.stored();
        let mut events = BufWriter::new(File::create(setup.path("far-side")).expect("a file"));
        for line in stored.lines().filter(|line| !line.starts_with("from=")) {
            writeln!(events, "{line}").expect("written");
        }
        events.flush().expect("written");
    }
}

/// The sender of the test's log.
struct Sender(Child);

impl Sender {
    fn start(setup: &Setup, program: &PathBuf, far_side: &FarSide) -> Sender {
        let text = format!(
            "log_file = {}\nhost = web1\nformat = raw\nlinger = 5ms\n{}",
            setup.path("audit.log").display(),
            far_side.settings(setup)
        );
        let config = setup.write("forward.conf", &text);
        let said = File::options()
            .create(true)
            .append(true)
            .open(setup.path("forward.err"));
        let mut command = Command::new(program);
        command.arg("--config").arg(config).arg("run");
        let command = command.stdin(Stdio::null()).stderr(said.expect("a file"));
        Sender(command.spawn().expect("tarsier-forward starts"))
    }

    fn kill(&mut self) {
        self.0.kill().expect("it is killed");
        self.0.wait().expect("it ends");
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits until the sender has sent all of a log that does not grow.
fn await_nothing_waits(setup: &Setup) {
    let spool = setup.path("forward");
    let waits = || {
        let status = std::fs::read_to_string(spool.join("status.prom")).unwrap_or_default();
        !status.contains("\ntarsier_forward_lag_bytes 0\n")
    };
    // What was there before the log's end may still be read.
    let written = || std::fs::metadata(spool.join("status.prom")).and_then(|stat| stat.modified());
    let before = written().ok();
    await_for(PATIENCE, "everything is sent", || {
        written().ok() != before && !waits()
    });
}

/// All of the test's log, oldest file first, and its length in bytes.
fn log(setup: &Setup) -> (impl BufRead, u64) {
    let files = journal::log_files(&setup.path("audit.log")).expect("the log's files");
    let open = |file| File::open(file).expect("a file of the log");
    let files: Vec<File> = files.iter().map(open).collect();
    let length = files.iter().map(length).sum();
    let empty: Box<dyn Read> = Box::new(std::io::empty());
    let all = files
        .into_iter()
        .fold(empty, |before, file| Box::new(before.chain(file)));
    (BufReader::new(all), length)
}

fn length(file: &File) -> u64 {
    file.metadata().expect("its length").len()
}

/// First difference of two texts: the number of lines before it, and the lines; `None` if they are equal.
fn difference(one: impl BufRead, other: impl BufRead) -> Option<(usize, [String; 2])> {
    let (mut one, mut other) = (one.split(b'\n'), other.split(b'\n'));
    let mut equal = 0;
    loop {
        let line = |next: Option<std::io::Result<Vec<u8>>>| next.map(|line| line.expect("a line"));
        let (one, other) = (line(one.next()), line(other.next()));
        if one != other {
            let text = |line: Option<Vec<u8>>| {
                line.map_or("(the end)".to_owned(), |line| {
                    String::from_utf8_lossy(&line).into_owned()
                })
            };
            return Some((equal, [text(one), text(other)]));
        }
        one.as_ref()?;
        equal += 1;
    }
}

/// The number of kills, if the long form of the test is asked for.
fn asked() -> Option<u32> {
    let asked = std::env::var("TARSIER_FORWARD_KILLS").ok();
    asked.map(|text| text.parse().expect("a number of kills"))
}

#[test]
fn what_arrives_of_a_log_whose_daemon_is_killed_is_the_log() {
    arrives_as_it_is(|| Some(FarSide::File));
}

#[test]
fn what_servers_have_of_a_log_whose_daemon_is_killed_is_the_log() {
    arrives_as_it_is(|| Some(FarSide::Server(Box::new(Nats::new()?))));
    if asked().is_some() {
        arrives_as_it_is(|| Some(FarSide::Server(Box::new(Kafka::new()?))));
    }
}

/// Kills daemon and sender again and again, and compares what arrived with the log.
fn arrives_as_it_is(far_side: impl FnOnce() -> Option<FarSide>) {
    let program = programs::forward();
    if !program.exists() {
        println!("skipped: what is sent while the daemon is killed: cargo build -p tarsier-forward builds the sender");
        return;
    }
    machine::test("kill -9 of a daemon whose log is sent", |setup| {
        // Started here: the test ends with no more processes than it found.
        let Some(mut far_side) = far_side() else {
            return;
        };
        let asked = asked();
        let start = || {
            let run = pinned(setup, RULE);
            setup.configure("flush = NONE\nmax_log_file_action = IGNORE\nnum_logs = 999\n");
            run.start()
        };
        let mut daemon = start();
        let caller = match asked {
            Some(_) => Caller::paced(CALLS_PER_SECOND),
            None => Caller::start(true),
        };
        let mut sender = Sender::start(setup, &program, &far_side);
        for number in 0..asked.unwrap_or(KILLS) {
            more_than(&daemon, 0);
            if number % 3 == 1 {
                daemon.signal(Signal::USR1);
            }
            if number % 2 == 1 {
                sender.kill();
                sender = Sender::start(setup, &program, &far_side);
            }
            kill(daemon);
            daemon = start();
        }
        more_than(&daemon, 0);
        let made = caller.stop();
        let ended = daemon.stop();
        assert!(ended.status.success(), "{}", ended.said);
        assert!(!pin_dir().exists());
        let (log, log_bytes) = log(setup);
        await_nothing_waits(setup);
        far_side.read(setup);
        let file = File::open(setup.path("far-side")).expect("the far side's file");
        let arrived = length(&file);
        if let Some((equal, [here, there])) = difference(log, BufReader::new(file)) {
            panic!(
                "{arrived} bytes arrived of {log_bytes}; line {} is\n{here}\nand arrived as\n{there}\nThe sender \
                 says:\n{}",
                equal + 1,
                setup.read("forward.err")
            );
        }
        assert_eq!(numbered::count_once(&setup.path("far-side"), made), made);
        println!("{made} calls, each arrived once");
    });
}
