//! Logs of which something was cut off or rewritten after it was sent.

mod common;

use common::{Config, Log, Program};
use serde_json::Value;
use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use testkit::servers::free_port;

/// A log, its sender's configuration, and the file at the destination.
struct Pair {
    log: Log,
    out: PathBuf,
    config: Config,
}

impl Pair {
    fn new() -> Pair {
        let log = Log::new();
        let out = log.dir().join("out");
        let config = Config::new(&log, &settings_of(&out));
        Pair { log, out, config }
    }

    /// Waits until the events that arrived are these.
    fn await_numbers(&self, expected: impl IntoIterator<Item = usize>) {
        let expected: Vec<usize> = expected.into_iter().collect();
        let arrived = || {
            let bodies = common::envelopes(&self.out);
            let text = bodies.iter().filter_map(|e| e["body"].as_str());
            text.filter_map(common::number_of).collect::<Vec<_>>()
        };
        let what = format!("{} events are there", expected.len());
        common::await_that(&what, || arrived().len() >= expected.len());
        assert_eq!(arrived(), expected);
    }

    /// The one word of a gap, if nothing is missing in what arrived but what it says.
    fn only_gap(&self) -> Value {
        let envelopes = common::envelopes(&self.out);
        common::assert_chained(&envelopes);
        let gaps: Vec<&Value> = envelopes.iter().filter(|e| e["kind"] == "gap").collect();
        assert_eq!(gaps.len(), 1, "{gaps:?}");
        assert!(gaps[0]["body"].to_string().contains("cause=log-changed"));
        gaps[0].clone()
    }

    /// A count of the sender.
    fn count(&self, name: &str) -> u64 {
        let path = self.log.dir().join("forward/status.prom");
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let name = format!("tarsier_forward_{name} ");
        let mut values = text.lines().filter_map(|line| line.strip_prefix(&name));
        values
            .next()
            .map_or(0, |value| value.parse().expect("a number"))
    }
}

fn settings_of(out: &Path) -> String {
    let out = out.display();
    format!("sink = file\npath = {out}\nlinger = 5ms\nenvelope = yes\n")
}

fn cut(path: &Path, length: u64) {
    let file = OpenOptions::new().write(true).open(path).expect("the log");
    file.set_len(length).expect("it is cut");
}

#[test]
fn a_log_that_logrotate_cuts_to_nothing_is_followed_from_its_beginning() {
    let pair = Pair::new();
    let sender = Program::start(&pair.config);
    pair.log.append(0..100);
    pair.await_numbers(0..100);
    // At once longer than before.
    cut(&pair.log.path(), 0);
    pair.log.append(100..400);
    pair.await_numbers(0..400);
    pair.only_gap();
    common::await_that("it is counted", || pair.count("log_changed_total") == 1);
    // Shorter than before, for a while.
    cut(&pair.log.path(), 0);
    common::await_that("it is counted", || pair.count("log_changed_total") == 2);
    pair.log.append(400..410);
    pair.await_numbers(0..410);
    assert!(sender.stderr().contains("cut or rewritten"));
    sender.stop();
    pair.log.append(410..420);
    let _sender = Program::start(&pair.config);
    pair.await_numbers(0..420);
    common::assert_chained(&common::envelopes(&pair.out));
    let out = pair.out.to_str().expect("text");
    let (status, said) = common::run(&pair.config, &["verify", "--no-seals", "--from", out]);
    assert_eq!(status, 1, "{said}");
    assert!(said.contains("420 events"), "{said}");
    for missing in [
        "DROPPED by the sender from 1/",
        "DROPPED by the sender from 2/",
    ] {
        assert!(said.contains(missing), "{said}");
    }
}

#[test]
fn what_the_daemon_cut_off_and_wrote_again_is_sent_again_alone() {
    let pair = Pair::new();
    let _sender = Program::start(&pair.config);
    pair.log.append(0..50);
    pair.await_numbers(0..50);
    let whole = std::fs::metadata(pair.log.path()).expect("the log").len();
    // The first record of an event, whose daemon was killed. The next daemon comes late.
    let torn = common::event(50);
    let first = torn.split_inclusive('\n').next().expect("a record");
    pair.log.append_text(first);
    pair.await_numbers(0..51);
    cut(&pair.log.path(), whole);
    pair.log.append_text(&torn.replace("cat", "dog"));
    pair.log.append(51..100);
    pair.await_numbers((0..51).chain(50..100));
    assert_eq!(pair.only_gap()["events"], 0);
}

#[test]
fn what_is_left_of_a_finished_file_that_was_edited_is_given_up_and_counted() {
    let pair = Pair::new();
    let sender = Program::start(&pair.config);
    pair.log.append(0..100);
    pair.await_numbers(0..100);
    sender.stop();
    let sent = std::fs::metadata(pair.log.path()).expect("the log").len();
    pair.log.append(100..150);
    pair.log.rotate();
    let old = pair.log.dir().join("audit.log.1");
    let file = OpenOptions::new().write(true).open(old).expect("the file");
    file.write_all_at(b"x", sent - 10).expect("it is edited");
    pair.log.append(200..210);
    let _sender = Program::start(&pair.config);
    pair.await_numbers((0..100).chain(200..210));
    assert_eq!(pair.only_gap()["events"], 50);
}

#[test]
fn a_batch_that_cannot_be_made_again_is_doubtful_and_sending_goes_on() {
    let pair = Pair::new();
    // Nobody listens.
    let settings = format!("sink = otlp\nserver = http://127.0.0.1:{}/\n", free_port());
    let nobody = Config::new(&pair.log, &settings);
    let sender = Program::start(&nobody);
    pair.log.append(0..100);
    common::await_that("the batch was tried", || pair.count("retries_total") > 0);
    cut(&pair.log.path(), 0);
    pair.log.append(100..150);
    common::await_that("it is noticed", || pair.count("log_changed_total") == 1);
    assert_eq!(pair.count("doubtful_total"), 1);
    sender.stop();
    pair.config.write(&pair.log, &settings_of(&pair.out));
    let _sender = Program::start(&pair.config);
    pair.await_numbers(100..150);
    pair.only_gap();
}
