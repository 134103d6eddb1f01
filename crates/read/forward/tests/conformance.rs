//! Tests that each sink must pass, against a real server.

mod common;

use common::{Config, Log, Program};
use serde_json::json;
use testkit::servers::Collector;
use testkit::servers::Engine;
use testkit::servers::Nats;
use testkit::servers::{Kafka, PARTITIONS, PARTITION_OF_WEB1};

/// Events arrive, once and in order, with filters counted and positions without a hole; the check
/// writes nothing; a server that was away is caught up with.
fn conforms(engine: &mut dyn Engine, is_exactly_once: bool) {
    let log = Log::new();
    let settings = engine.settings() + "linger = 5ms\nfilter_keys = !k1\n";
    let config = Config::new(&log, &settings);
    let (status, text) = common::run(&config, &["check"]);
    assert_eq!(status, 0, "{text}");
    assert_eq!(engine.stored(), "", "check writes nothing");
    log.append(0..1000);
    let sender = Program::start(&config);
    let acknowledged = |count: &str| {
        let line = format!("events        {count}\n");
        common::await_that("events are acknowledged", || {
            common::run(&config, &["status"]).1.contains(&line)
        });
    };
    acknowledged("500");
    engine.kill();
    log.append(1000..1500);
    log.rotate();
    log.append(1500..2000);
    common::await_that("the sender notices", || !sender.stderr().is_empty());
    engine.start();
    acknowledged("1000");
    sender.stop();
    let stored = engine.stored();
    let mut numbers = common::numbers_of(&stored);
    if is_exactly_once {
        let (events, filtered) = common::assert_stored_is_chained(&stored);
        assert_eq!((events, filtered), (1000, 1000));
    } else {
        numbers.sort_unstable();
        numbers.dedup();
    }
    let expected: Vec<usize> = (0..2000).step_by(2).collect();
    assert!(numbers == expected, "{} events", numbers.len());
}

#[test]
fn kafka() {
    let partition = forward::sink::partition_of("web1", PARTITIONS);
    assert_eq!(partition, PARTITION_OF_WEB1);
    if let Some(mut kafka) = Kafka::new() {
        conforms(&mut kafka, true);
        proves_who_it_is(&kafka);
        too_large(&kafka);
    }
}

/// An event that the topic refuses is put aside and said; those around it arrive.
fn too_large(kafka: &Kafka) {
    kafka.alter_topic("max.message.bytes=2000");
    let log = Log::new();
    let settings =
        kafka.settings() + "linger = 5ms\ncompression = none\nhost = web2\npartition = 2\n";
    let config = Config::new(&log, &settings);
    log.append(0..20);
    log.append_text(&format!(
        "type=USER msg=audit(1000000020.000:20): n=20 {}\n",
        "x".repeat(5000)
    ));
    log.append(21..40);
    let sender = Program::start(&config);
    common::await_that("39 events are acknowledged", || {
        common::run(&config, &["status"])
            .1
            .contains("events        39\n")
    });
    sender.stop();
    let text = std::fs::read_to_string(log.dir().join("forward/dead-letter")).expect("a file");
    assert!(
        text.contains("n=20 ") && text.contains("max.message.bytes"),
        "{text}"
    );
}

/// SASL with each mechanism, the right and a wrong password.
fn proves_who_it_is(kafka: &Kafka) {
    let log = Log::new();
    for auth in ["plain", "scram-sha-256", "scram-sha-512"] {
        for (secret, is_right) in [("secret", true), ("wrong", false)] {
            let file = log.dir().join("secret");
            std::fs::write(&file, secret).expect("write");
            let more = format!(
                "auth = {auth}\nuser = tarsier\nsecret_file = {}\n",
                file.display()
            );
            let config = Config::new(&log, &(kafka.sasl_settings() + &more));
            let (status, text) = common::run(&config, &["check"]);
            assert_eq!(status == 0, is_right, "{auth} {secret}: {text}");
            assert!(
                is_right || text.contains("check user and secret_file"),
                "{text}"
            );
        }
    }
}

#[test]
fn nats() {
    if let Some(mut nats) = Nats::new() {
        conforms(&mut nats, true);
    }
}

#[test]
fn nats_by_password_and_token() {
    let log = Log::new();
    let file = log.dir().join("secret");
    let ways = [
        (
            "authorization { user: u, password: secret }",
            json!({"user": "u", "pass": "secret"}),
            "auth = password\nuser = u\n",
        ),
        (
            "authorization { token: secret }",
            json!({"auth_token": "secret"}),
            "auth = token\n",
        ),
    ];
    for (server, login, settings) in ways {
        let settings = format!("{settings}secret_file = {}\n", file.display());
        let Some(nats) = Nats::with(server, login, &settings) else {
            return;
        };
        for (secret, is_right) in [("secret\n", true), ("wrong", false)] {
            std::fs::write(&file, secret).expect("write");
            let config = Config::new(&log, &nats.settings());
            let (status, text) = common::run(&config, &["check"]);
            assert_eq!(status == 0, is_right, "{secret}: {text}");
            assert!(
                is_right || text.contains("check auth, user and secret_file"),
                "{text}"
            );
        }
    }
}

#[test]
fn otlp() {
    for protocol in ["http", "grpc"] {
        if let Some(mut collector) = Collector::with(protocol) {
            conforms(&mut collector, false);
        }
    }
}
