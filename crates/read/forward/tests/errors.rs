//! Certificates, credentials, full stores, garbage, wrong addresses, clocks: the sender says where, what and what to do,
//! and once the cause is gone everything is at the destination, once.

mod common;

use std::time::Duration;

use common::certificates::{Authority, Flaw};
use common::front::{Front, Manner, Tls};
use common::{Config, Log, Program};
use rustix::process::Signal;
use serde_json::json;
use testkit::servers::Collector;
use testkit::servers::Engine;
use testkit::servers::Kafka;
use testkit::servers::Nats;

/// Number of events that are written while something is wrong.
const EVENTS: usize = 50;
/// Memory that is enough, whatever a server says.
const MEMORY_KIB_MAX: u64 = 128 << 10;
/// Seconds from 1970 to a day in the year 2096: clocks jump both ways.
const FUTURE_S: u64 = 4_000_000_000;

/// A sender, and a server behind a front.
struct Scene {
    /// Ends first: then it can still be read what it has said.
    sender: Program,
    log: Log,
    config: Config,
    front: Front,
    authority: Authority,
    written: usize,
}

impl Scene {
    /// `settings` of the engine are changed so that the sender comes to the front.
    fn new(authority: Authority, front: Front, settings: &str) -> Scene {
        let log = Log::new();
        let ca = log.dir().join("ca.pem");
        std::fs::write(&ca, authority.pem()).expect("write");
        let settings = format!(
            "{settings}tls = yes\ntls_ca = {}\nlinger = 5ms\ntimeout = 1s\n",
            ca.display()
        );
        let config = Config::new(&log, &settings);
        Scene {
            sender: Program::start(&config),
            log,
            config,
            front,
            authority,
            written: 0,
        }
    }

    fn append(&mut self) {
        self.log.append(self.written..self.written + EVENTS);
        self.written += EVENTS;
    }

    /// Mark after which the sender's further output begins: its length so far, in bytes.
    fn mark(&self) -> usize {
        self.sender.stderr().len()
    }

    /// Waits until one line that came after `mark` has all `words`.
    fn await_words(&self, mark: usize, words: &[&str]) {
        common::await_that(&format!("the sender says {words:?}"), || {
            let said = self.sender.stderr();
            let mut lines = said[mark..].lines();
            lines.any(|line| words.iter().all(|word| line.contains(word)))
        });
    }

    fn await_acknowledged(&self) {
        let cursor = self.log.dir().join("forward/cursor");
        common::await_that(&format!("{} events are acknowledged", self.written), || {
            let cursor = forward::cursor::CursorFile::read(&cursor);
            let cursor = cursor.ok().flatten();
            cursor.is_some_and(|cursor| cursor.events == self.written as u64)
        });
    }

    /// Events that are written while the front has this manner arrive when it passes everything again.
    fn manner(&mut self, manner: Manner, words: &[&str]) {
        let mark = self.mark();
        self.front.set(manner);
        self.append();
        self.await_words(mark, words);
        self.front.set(Manner::Pass);
        self.await_acknowledged();
    }

    /// Waits for an error as [`Scene::manner`] does, while the server's certificate has a flaw.
    fn flaw(&mut self, flaw: Flaw, words: &[&str]) {
        let mark = self.mark();
        self.front.set_tls(Some(self.authority.server(flaw)));
        self.append();
        self.await_words(mark, words);
        self.front.set_tls(Some(self.authority.server(Flaw::None)));
        self.await_acknowledged();
    }

    /// Checks that all servers have in common.
    fn bad_certificates_and_addresses(&mut self) {
        let at = format!("127.0.0.1:{}", self.front.port());
        self.append();
        self.await_acknowledged();
        self.flaw(Flaw::Expired, &[&at, "TLS", "xpired", "renew", "clock"]);
        self.flaw(Flaw::NotYetValid, &[&at, "not valid yet", "clock"]);
        self.flaw(Flaw::OtherAuthority, &[&at, "TLS", "tls_ca"]);
        let name = ["has to be for \"127.0.0.1\"", "advertises", "DNS"];
        self.flaw(Flaw::OtherName, &[&[&at[..]], &name[..]].concat());
        let mark = self.mark();
        self.front.set_tls(None);
        self.append();
        self.await_words(
            mark,
            &[&at, "TLS", "does not speak TLS at this port", "tls = no"],
        );
        self.front.set_tls(Some(self.authority.server(Flaw::None)));
        self.await_acknowledged();
        self.manner(
            Manner::Refuse,
            &[&at, "cannot connect", "is the server running"],
        );
        self.manner(Manner::Silence, &[&at, "no answer within 1 s"]);
        self.manner(Manner::Cut(20), &[&at, "closed the connection"]);
    }

    /// A sender that is started with a wrong secret, and reads the right one when it is told to.
    fn wrong_secret(&mut self, right: &str) {
        let file = self.log.dir().join("secret");
        self.sender.kill();
        std::fs::write(&file, "wrong").expect("write");
        let mark = self.mark();
        self.append();
        self.sender = Program::start(&self.config);
        self.await_words(mark, &["check", "user and secret_file"]);
        std::fs::write(&file, right).expect("write");
        self.sender.signal(Signal::HUP);
        self.await_acknowledged();
    }

    /// Events dated in the future and three days ago, and a sender that is killed between them.
    fn clocks(&mut self) {
        for sec in [FUTURE_S, now_s() - 3 * 86_400] {
            let mut text = String::new();
            for number in self.written..self.written + EVENTS {
                let before = format!("audit({}.", 1_000_000_000 + number);
                text += &common::event(number).replace(&before, &format!("audit({sec}."));
            }
            self.log.append_text(&text);
            self.written += EVENTS;
            self.sender.kill();
            self.sender = Program::start(&self.config);
        }
        self.await_acknowledged();
    }

    /// Everything is there once, in order, and garbage took no memory.
    fn end(self, engine: &mut dyn Engine, is_exactly_once: bool) {
        let memory_kib = self.sender.memory_kib();
        assert!(memory_kib < MEMORY_KIB_MAX, "{memory_kib} KiB");
        self.sender.stop();
        let stored = engine.stored();
        let mut numbers = common::numbers_of(&stored);
        if is_exactly_once {
            common::assert_stored_is_chained(&stored);
        } else {
            numbers.sort_unstable();
            numbers.dedup();
        }
        common::assert_exactly_once(&numbers, self.written);
        println!("{} events, {memory_kib} KiB", self.written);
    }
}

fn now_s() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.expect("a time").as_secs()
}

/// Bytes that look like nothing.
fn noise(count: usize) -> Vec<u8> {
    let mut bytes = vec![0; count];
    blake3::Hasher::new().finalize_xof().fill(&mut bytes);
    bytes
}

#[test]
fn kafka() {
    let authority = Authority::new();
    let front = Front::new(Tls::AtOnce, Some(authority.server(Flaw::None)));
    let leader = Front::new(Tls::AtOnce, Some(authority.server(Flaw::None)));
    let Some(mut kafka) = Kafka::advertised_at(Some(leader.port())) else {
        return;
    };
    front.leads_to(kafka.sasl_port());
    leader.leads_to(kafka.sasl_port());
    let settings = format!(
        "sink = kafka\nserver = 127.0.0.1:{}\ntopic = audit\nauth = scram-sha-512\nuser = tarsier\n",
        front.port()
    );
    let mut scene = with_secret(authority, front, &settings, "secret");
    // The broker's listener says another address than the one that was configured.
    leader.set(Manner::Refuse);
    scene.append();
    let said = format!("says that 127.0.0.1:{} leads partition", leader.port());
    let words = ["cannot connect", &said, "advertised.listeners"];
    scene.await_words(0, &words);
    leader.set(Manner::Pass);
    leader.set_tls(Some(scene.authority.server(Flaw::OtherName)));
    scene.await_words(0, &["has to be for \"127.0.0.1\"", &said]);
    leader.set_tls(Some(scene.authority.server(Flaw::None)));
    scene.await_acknowledged();
    kafka_after_its_leader(scene, leader, &mut kafka);
}

/// The rest is said by the leader itself.
fn kafka_after_its_leader(mut scene: Scene, leader: Front, kafka: &mut Kafka) {
    let _first_asked = std::mem::replace(&mut scene.front, leader);
    scene.bad_certificates_and_addresses();
    for garbage in [
        noise(5000),
        b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(),
        // Lengths of 2 GiB, of less than a head, of nothing.
        [&[0x7f, 0xff, 0xff, 0xff][..], &noise(100)].concat(),
        vec![0; 64],
        vec![0xff; 64],
    ] {
        let at = format!("127.0.0.1:{}", scene.front.port());
        scene.manner(
            Manner::Say(garbage),
            &[&at, "not of Kafka's protocol", "`server`"],
        );
    }
    scene.wrong_secret("secret");
    // A clock that is slow, as the broker sees it: none of its batches is young enough.
    kafka.alter_topic("message.timestamp.before.max.ms=0");
    let mark = scene.mark();
    scene.front.set(Manner::Slow(Duration::from_millis(20)));
    scene.append();
    scene.await_words(mark, &["topic \"audit\"", "clock", "(error 32)"]);
    kafka.alter_topic("message.timestamp.before.max.ms=9223372036854775807");
    scene.front.set(Manner::Pass);
    scene.await_acknowledged();
    scene.clocks();
    scene.end(kafka, true);
}

fn with_secret(authority: Authority, front: Front, settings: &str, secret: &str) -> Scene {
    // The file is in the log's directory, which the scene makes; so a first sender finds none.
    let mut scene = Scene::new(
        authority,
        front,
        &format!("{settings}secret_file = SECRET\n"),
    );
    let file = scene.log.dir().join("secret");
    std::fs::write(&file, secret).expect("write");
    scene.config.replace("SECRET", &file.display().to_string());
    scene.sender.kill();
    scene.sender = Program::start(&scene.config);
    scene
}

#[test]
fn nats() {
    let login = json!({"user": "u", "pass": "secret"});
    let more = "authorization { user: u, password: secret }";
    let Some(mut nats) = Nats::with(more, login, "auth = password\nuser = u\n") else {
        return;
    };
    let authority = Authority::new();
    let front = Front::new(Tls::AfterGreeting, Some(authority.server(Flaw::None)));
    front.leads_to(nats.port());
    let settings = format!(
        "sink = nats\nserver = 127.0.0.1:{}\nauth = password\nuser = u\n",
        front.port()
    );
    let mut scene = with_secret(authority, front, &settings, "secret");
    scene.bad_certificates_and_addresses();
    for garbage in [
        noise(5000),
        b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(),
        b"INFO {\"max_payload\":\r\n".to_vec(),
        [b"INFO {".to_vec(), vec![b'x'; 1 << 20]].concat(),
        b"MSG a 1 99999999999999999999\r\n".to_vec(),
    ] {
        let at = format!("127.0.0.1:{}", scene.front.port());
        scene.manner(Manner::Say(garbage), &[&at, "not of NATS", "`server`"]);
    }
    scene.wrong_secret("secret");
    nats.limit(10);
    let mark = scene.mark();
    scene.append();
    scene.await_words(
        mark,
        &[
            "\"audit.web1\"",
            "maximum bytes exceeded",
            "raise the limit",
        ],
    );
    nats.limit(1 << 30);
    scene.await_acknowledged();
    scene.clocks();
    scene.end(&mut nats, true);
}

#[test]
fn otlp() {
    let Some(mut collector) = Collector::new() else {
        return;
    };
    let authority = Authority::new();
    let front = Front::new(Tls::AtOnce, Some(authority.server(Flaw::None)));
    front.leads_to(collector.port());
    let settings = format!("sink = otlp\nserver = https://127.0.0.1:{}\n", front.port());
    let mut scene = Scene::new(authority, front, &settings);
    scene.bad_certificates_and_addresses();
    let at = format!("127.0.0.1:{}", scene.front.port());
    for (garbage, words) in [
        (
            [noise(5000), b"\r\n\r\n".to_vec()].concat(),
            "not of HTTP/1.1",
        ),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n".to_vec(),
            "not of HTTP/1.1",
        ),
        (
            b"HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n".to_vec(),
            "check auth and secret_file",
        ),
        (
            b"HTTP/1.1 429 Later\r\nContent-Length: 0\r\n\r\n".to_vec(),
            "status 429",
        ),
    ] {
        scene.manner(Manner::Say(garbage), &[&at, words]);
    }
    scene.clocks();
    scene.end(&mut collector, false);
}
