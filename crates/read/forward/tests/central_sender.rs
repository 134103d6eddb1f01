//! Central verification of what the program itself sent: a sealed log is followed while it is written, and verified
//! from the destination's file alone.

mod common;

use common::{Config, Log, Program};
use journal::seal::init;
use journal::Journal;
use std::fs;
use testkit::servers::Engine;
use testkit::servers::Kafka;
use testkit::servers::Nats;

fn sealed() -> conf::Config {
    conf::Config {
        seal: true,
        flush: conf::Flush::None,
        num_logs: 9,
        max_log_file_mib: 0,
        max_log_file_action: conf::SizeAction::Ignore,
        space_left: conf::SpaceLimit::Mib(0),
        admin_space_left: conf::SpaceLimit::Mib(0),
        space_left_action: conf::FailureAction::Ignore,
        admin_space_left_action: conf::FailureAction::Ignore,
        ..conf::Config::default()
    }
}

/// A sealed log of a host, in three files, that is written while a sender follows it.
struct Followed {
    log: Log,
    key: String,
}

impl Followed {
    fn new() -> Followed {
        let log = Log::new();
        let key = init(&log.path()).expect("keys");
        let path = log.dir().join("web1.key");
        fs::write(&path, key.to_text()).expect("the key");
        Followed {
            key: path.display().to_string(),
            log,
        }
    }

    fn write(&self) -> Journal {
        let (mut journal, _) = Journal::open(&self.log.path(), &sealed()).expect("a journal");
        for number in 0..300 {
            journal.append(common::event(number).as_bytes(), 1);
            journal.commit().expect("committed");
            if number % 100 == 99 {
                common::await_that("the file is linked", || self.log.is_linked());
                journal.rotate().expect("rotated");
            }
        }
        journal
    }
}

/// The destination is asked itself, not a consumer's file.
fn is_verified_from(name: &str, engine: &mut dyn Engine) {
    let host = Followed::new();
    let settings = engine.settings() + "format = raw\nlinger = 5ms\n";
    let config = Config::new(&host.log, &settings);
    let verify = |more: &[&str]| {
        let args = ["verify", "--from", name, "--key", &host.key];
        common::run(&config, &[&args, more].concat())
    };
    let (status, text) = verify(&[]);
    assert_eq!(status, 2, "{text}");
    assert!(text.contains("no messages"), "{text}");

    let sender = Program::start(&config);
    let journal = host.write();
    common::await_that("part of it is intact", || verify(&[]).0 == 3);
    let _ = journal.close();
    common::await_that("all of it is intact", || verify(&[]).0 == 0);
    let (_, text) = verify(&["--host", "web1"]);
    assert!(text.contains("complete from 0/0/0"), "{text}");
    assert!(text.contains("300 events"), "{text}");
    assert!(text.contains("the log was closed in order"), "{text}");
    let (status, text) = verify(&["--host", "web9"]);
    assert_eq!(status, 2, "{text}");
    assert!(
        text.contains("web9: UNKNOWN: ") && text.contains("no message of it"),
        "{text}"
    );
    sender.stop();

    // What was given up is told, and is not taken for whole.
    let before = verify(&["--json"]).1;
    fs::remove_dir_all(host.log.dir().join("forward")).expect("the spool");
    let other = Config::new(
        &host.log,
        &settings.replace("format = raw", "format = raw\nhold = 1"),
    );
    let sender = Program::start(&other);
    common::await_that("a gap is told", || {
        verify(&[]).1.contains("DROPPED by the sender")
    });
    sender.stop();
    assert_ne!(before, verify(&["--json"]).1);

    // Another sink than that of the configuration is an error that says so.
    let wrong = if name == "kafka" { "nats" } else { "kafka" };
    let (status, text) = common::run(&config, &["verify", "--from", wrong, "--no-seals"]);
    assert_eq!(status, 2, "{text}");
    assert!(text.contains(&format!("sink = {wrong}")), "{text}");
}

#[test]
fn what_kafka_has_is_verified() {
    if let Some(mut kafka) = Kafka::new() {
        is_verified_from("kafka", &mut kafka);
    }
}

#[test]
fn what_nats_has_is_verified_and_no_host_speaks_for_another() {
    let Some(mut nats) = Nats::new() else { return };
    is_verified_from("nats", &mut nats);
    let log = Log::new();
    let config = Config::new(&log, &nats.settings());
    let verify = || common::run(&config, &["verify", "--from", "nats", "--no-seals"]).1;
    let before = verify();
    nats.publish(
        "audit.web2",
        "Tarsier-Host: web1\r\nTarsier-Series: 00000000000000a1\r\nTarsier-Kind: event\r\n\
         Tarsier-From: 1/0/0\r\nTarsier-To: 1/4/0\r\n",
        "text",
    );
    nats.publish("audit.web3", "Other: header\r\n", "text");
    let after = verify();
    assert!(
        after.contains("claims to be of host \"web1\", but its subject is \"audit.web2\""),
        "{after}"
    );
    let of_web1 = |text: &str| {
        let lines = text.lines().filter(|line| line.starts_with("web1: "));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(of_web1(&after), of_web1(&before));
}

#[test]
fn a_followed_log_is_verified_from_what_arrived() {
    let host = Followed::new();
    let Followed { log, key } = &host;
    let out = log.dir().join("out");
    let settings = format!(
        "sink = file\npath = {}\nformat = raw\nenvelope = yes\nlinger = 5ms\n",
        out.display()
    );
    let config = Config::new(log, &settings);
    let from = out.display().to_string();
    let verify = || common::run(&config, &["verify", "--from", &from, "--key", key]);

    let sender = Program::start(&config);
    let journal = host.write();
    common::await_that("part of it is intact", || verify().0 == 3);
    let _ = journal.close();
    common::await_that("all of it is intact", || verify().0 == 0);
    let (_, text) = verify();
    assert!(text.contains("web1: series "), "{text}");
    assert!(text.contains("complete from 0/0/0"), "{text}");
    assert!(text.contains("300 events"), "{text}");
    assert!(text.contains("the log was closed in order"), "{text}");
    sender.stop();

    // Whoever has the host afterwards cannot change what arrived; whoever has the store is found out.
    fs::write(
        log.path(),
        "type=USER msg=audit(1.000:1): nothing happened\n",
    )
    .expect("rewritten");
    assert_eq!(verify().0, 0);
    let stored = fs::read_to_string(&out).expect("the far side");
    fs::write(&out, stored.replacen("n=150 ", "n=151 ", 1)).expect("altered");
    let (status, text) = verify();
    assert_eq!(status, 1, "{text}");
    let lines: Vec<&str> = stored.lines().collect();
    let some: Vec<&str> = lines
        .iter()
        .enumerate()
        .filter(|(n, _)| *n != 60)
        .map(|(_, line)| *line)
        .collect();
    fs::write(&out, some.join("\n") + "\n").expect("removed");
    let (status, text) = verify();
    assert_eq!(status, 1, "{text}");
    assert!(text.contains("web1: MISSING from "), "{text}");
}
