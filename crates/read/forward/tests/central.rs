//! Central verification: what arrived is compared with the seals of a real journal, and what is missing or altered is
//! found.

use conf::{Config, FailureAction, Flush, SizeAction, SpaceLimit};
use forward::batch::Kind;
use forward::position::{Position, Series};
use forward::verify::stored::Headers;
use forward::verify::{print, verdict, verify, KeySource, Origin, Request, Verdict};
use journal::seal::{init, seal_path};
use journal::{log_files, Journal};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A host with a sealed log, and a store beside it.
struct Scene {
    dir: tempfile::TempDir,
    key: PathBuf,
}

/// A message to be stored.
#[derive(Clone)]
struct Message {
    headers: Headers,
    body: Vec<u8>,
}

impl Scene {
    /// A log of three files, closed in order if `is_closed`.
    fn new(is_closed: bool) -> Scene {
        let dir = tempfile::tempdir().expect("a directory");
        let log = dir.path().join("audit.log");
        let key = init(&log).expect("keys");
        let path = dir.path().join("web1.key");
        fs::write(&path, key.to_text()).expect("the key");
        let (mut journal, _) = Journal::open(&log, &sealed()).expect("a journal");
        for number in 0..60_u64 {
            let line = format!(
                "type=USER msg=audit(1795229630.{number:03}:{number}): pid={number} text\n"
            );
            journal.append(line.as_bytes(), 1);
            journal.commit().expect("committed");
            if number % 25 == 24 {
                journal.rotate().expect("rotated");
            }
        }
        if is_closed {
            drop(journal.close())
        } else {
            // As if killed: without its last entries.
            std::mem::forget(journal)
        }
        Scene { dir, key: path }
    }

    fn log(&self) -> PathBuf {
        self.dir.path().join("audit.log")
    }

    /// Messages that a sender makes of the log: one per line, with seals in pieces after them.
    fn messages(&self) -> Vec<Message> {
        self.messages_of(false)
    }

    /// The same; with seals before the bytes that they are about.
    fn messages_of(&self, is_seal_first: bool) -> Vec<Message> {
        let mut messages = Vec::new();
        let mut at = Position::default();
        let files = log_files(&self.log()).expect("files");
        assert_eq!(files.len(), 3);
        for (number, path) in files.iter().enumerate() {
            let file = number as u64 + 1;
            let mut to = Position {
                file,
                ..Position::default()
            };
            let seal = fs::read(seal_path(path)).expect("a seal");
            let seals = |messages: &mut Vec<Message>, at: &mut Position, to: &mut Position| {
                for piece in seal.chunks(700) {
                    to.seal += piece.len() as u64;
                    push(messages, Kind::Seal, at, *to, piece);
                }
            };
            let text = fs::read(path).expect("a log");
            if is_seal_first {
                seals(&mut messages, &mut at, &mut to);
            }
            for line in text.split_inclusive(|byte| *byte == b'\n') {
                to.offset += line.len() as u64;
                let body = line.strip_suffix(b"\n").unwrap_or(line);
                push(&mut messages, Kind::Event, &mut at, to, body);
            }
            if !is_seal_first {
                seals(&mut messages, &mut at, &mut to);
            }
        }
        messages
    }

    /// Stores messages for a host, in two files.
    fn store(&self, messages: &[Message]) {
        let directory = self.dir.path().join("store/web1");
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir_all(&directory).expect("a directory");
        let half = messages.len() / 2;
        for (name, part) in [("a", &messages[..half]), ("b", &messages[half..])] {
            let mut bytes = Vec::new();
            for message in part {
                bytes.extend_from_slice(message.headers.to_line("web1").as_bytes());
                bytes.extend_from_slice(&message.body);
                bytes.push(b'\n');
            }
            fs::write(directory.join(name), bytes).expect("stored");
        }
    }

    fn request(&self) -> Request {
        Request {
            from: Origin::Files(self.dir.path().join("store")),
            hosts: Vec::new(),
            keys: KeySource::One(self.key.clone()),
            age_max: None,
        }
    }

    /// Verdict and text on these messages.
    fn said(&self, messages: &[Message]) -> (Verdict, String) {
        self.store(messages);
        said(&self.request())
    }
}

fn said(request: &Request) -> (Verdict, String) {
    let hosts = verify(request).expect("a store");
    let mut out = Vec::new();
    print(&hosts, &mut out).expect("printed");
    (verdict(&hosts), String::from_utf8(out).expect("UTF-8"))
}

fn push(messages: &mut Vec<Message>, kind: Kind, at: &mut Position, to: Position, body: &[u8]) {
    let headers = Headers {
        series: Series(0xa1),
        kind,
        from: *at,
        to,
        events: u64::from(kind == Kind::Event),
        filtered: 0,
        missing: 0,
        bytes: body.len() as u64,
    };
    *at = to;
    messages.push(Message {
        headers,
        body: body.to_vec(),
    });
}

fn sealed() -> Config {
    Config {
        seal: true,
        flush: Flush::None,
        freq: 0,
        num_logs: 9,
        max_log_file_mib: 0,
        max_log_file_action: SizeAction::Ignore,
        space_left: SpaceLimit::Mib(0),
        admin_space_left: SpaceLimit::Mib(0),
        space_left_action: FailureAction::Ignore,
        admin_space_left_action: FailureAction::Ignore,
        disk_full_action: FailureAction::Syslog,
        disk_error_action: FailureAction::Syslog,
        ..Config::default()
    }
}

#[test]
fn a_log_that_arrived_whole_is_intact() {
    let scene = Scene::new(true);
    let mut messages = scene.messages();
    let (verdict, text) = scene.said(&messages);
    assert_eq!(verdict, Verdict::Intact, "{text}");
    assert!(text.contains("complete from 0/0/0 to 3/"), "{text}");
    assert!(text.contains("60 events"), "{text}");
    assert!(text.contains("closed in order"), "{text}");
    // Repeats are what at-least-once delivery makes; order in the store does not matter.
    messages.extend_from_slice(&messages.clone()[10..20]);
    messages.reverse();
    let (verdict, text) = scene.said(&messages);
    assert_eq!(verdict, Verdict::Intact, "{text}");
    assert!(text.contains("10 messages repeated"), "{text}");
}

#[test]
fn any_message_that_is_missing_is_named() {
    let scene = Scene::new(true);
    let messages = scene.messages();
    for missing in (1..messages.len() - 1).step_by(3) {
        let mut some = messages.clone();
        let gone = some.remove(missing).headers;
        let (verdict, text) = scene.said(&some);
        assert_eq!(verdict, Verdict::Altered, "{text}");
        let expected = format!("MISSING from {} to {}", gone.from, gone.to);
        assert!(text.contains(&expected), "{expected}\n{text}");
    }
}

#[test]
fn any_message_that_is_altered_is_found() {
    let scene = Scene::new(true);
    let messages = scene.messages();
    for altered in (0..messages.len()).step_by(3) {
        let mut some = messages.clone();
        let body = &mut some[altered].body;
        let place = body.len() / 2;
        body[place] ^= 1;
        let (verdict, text) = scene.said(&some);
        assert_eq!(verdict, Verdict::Altered, "message {altered}: {text}");
        assert!(text.contains("ALTERED"), "{text}");
        // Longer or shorter than its range.
        some[altered].body.push(b'x');
        some[altered].headers.bytes += 1;
        let (verdict, text) = scene.said(&some);
        assert_eq!(verdict, Verdict::Altered, "message {altered}: {text}");
    }
}

#[test]
fn a_second_version_of_a_range_is_a_contradiction() {
    let scene = Scene::new(true);
    let mut messages = scene.messages();
    let mut other = messages[7].clone();
    other.body[30] ^= 1;
    messages.push(other);
    let (verdict, text) = scene.said(&messages);
    assert_eq!(verdict, Verdict::Altered, "{text}");
    assert!(text.contains("two different messages"), "{text}");
}

#[test]
fn a_stream_that_stops_anywhere_is_intact_up_to_there_and_not_closed() {
    let scene = Scene::new(false);
    let messages = scene.messages();
    let mut sealed = 0;
    for stop in (1..=messages.len()).step_by(2) {
        let (verdict, text) = scene.said(&messages[..stop]);
        let is_known = text.contains("sealed until 20");
        sealed += usize::from(is_known);
        let expected = if is_known {
            Verdict::Open
        } else {
            Verdict::Unknown
        };
        // A whole file that was rotated ends in order.
        let may_close = text.contains("closed in order");
        assert!(
            verdict == expected || may_close,
            "{stop}: {verdict:?} {text}"
        );
    }
    assert!(sealed > 10, "{sealed}");
}

#[test]
fn seals_may_arrive_before_the_bytes_that_they_are_about() {
    let scene = Scene::new(true);
    let messages = scene.messages_of(true);
    let (verdict, text) = scene.said(&messages);
    assert_eq!(verdict, Verdict::Intact, "{text}");
    let mut last = String::new();
    for stop in (messages.len() - 9)..messages.len() {
        let (verdict, text) = scene.said(&messages[..stop]);
        assert_eq!(verdict, Verdict::Open, "{text}");
        assert_ne!(text, last, "what has arrived is sealed already");
        last = text;
    }
}

#[test]
fn the_end_may_be_held_against_its_age() {
    let scene = Scene::new(false);
    scene.store(&scene.messages());
    let mut request = scene.request();
    request.age_max = Some(Duration::from_secs(3600));
    assert_eq!(said(&request).0, Verdict::Intact);
    request.age_max = Some(Duration::ZERO);
    let (verdict, text) = said(&request);
    assert_eq!(verdict, Verdict::Altered, "{text}");
    assert!(text.contains("was not closed"), "{text}");
}

#[test]
fn envelopes_of_several_hosts_may_be_in_one_file() {
    use base64::prelude::{Engine, BASE64_STANDARD};
    let scene = Scene::new(true);
    let path = scene.dir.path().join("all.jsonl");
    let mut text = String::new();
    for message in scene.messages() {
        let Headers {
            series,
            kind,
            from,
            to,
            events,
            filtered,
            ..
        } = message.headers;
        for host in ["web1", "web2"] {
            let body = match kind {
                Kind::Event => serde_json::json!(String::from_utf8_lossy(&message.body)),
                _ => serde_json::json!({"base64": BASE64_STANDARD.encode(&message.body)}),
            };
            // Something of web2 is not what was sealed.
            let is_changed = host == "web2" && from.offset > 0 && kind == Kind::Event;
            let body = if is_changed {
                body.to_string()
                    .replace("text", "TEXT")
                    .parse()
                    .expect("JSON")
            } else {
                body
            };
            let envelope = serde_json::json!({
                "series": series.to_string(), "host": host, "kind": kind.name(),
                "from": from.to_string(), "to": to.to_string(), "events": events,
                "filtered": filtered, "body": body,
            });
            text += &format!("{envelope}\n");
        }
    }
    fs::write(&path, text).expect("written");
    let request = Request {
        from: Origin::Files(path),
        ..scene.request()
    };
    let hosts = verify(&request).expect("a store");
    let verdicts = hosts
        .iter()
        .map(|host| (host.host.as_str(), host.series[0].verdict()));
    let expected = [("web1", Verdict::Intact), ("web2", Verdict::Altered)];
    assert_eq!(verdicts.collect::<Vec<_>>(), expected);
}

/// Three messages of a kind as one: the batches of NATS, or a replay.
fn joined(messages: &[Message]) -> Message {
    let mut body = Vec::new();
    for message in messages {
        body.extend_from_slice(&message.body);
        if message.headers.kind == Kind::Event {
            body.push(b'\n');
        }
    }
    let headers = Headers {
        to: messages[messages.len() - 1].headers.to,
        events: messages.len() as u64,
        bytes: body.len() as u64,
        ..messages[0].headers
    };
    Message { headers, body }
}

#[test]
fn a_replay_in_other_pieces_is_compared_with_what_was_there() {
    let scene = Scene::new(true);
    let messages = scene.messages();
    // Batches alone.
    let mut batches: Vec<Message> = messages[25..].to_vec();
    batches.extend(
        messages[..25]
            .chunks(5)
            .filter(|chunk| {
                chunk
                    .iter()
                    .all(|message| message.headers.kind == Kind::Event)
            })
            .map(joined),
    );
    let (verdict, text) = scene.said(&batches);
    assert_eq!(verdict, Verdict::Intact, "{text}");
    // Both, and one that goes on where single messages end.
    let mut both = messages.clone();
    both.push(joined(&messages[3..9]));
    let (verdict, text) = scene.said(&both);
    assert_eq!(verdict, Verdict::Intact, "{text}");
    both.drain(7..9);
    let (verdict, text) = scene.said(&both);
    assert_eq!(verdict, Verdict::Intact, "{text}");
    let place = both.len() - 1;
    both[place].body[7] ^= 1;
    let (verdict, text) = scene.said(&both);
    assert_eq!(verdict, Verdict::Altered, "{text}");
    assert!(text.contains("not what others have"), "{text}");
}

#[test]
fn a_gap_that_the_sender_tells_is_told() {
    let scene = Scene::new(true);
    let mut messages = scene.messages();
    let last = messages[12].headers.to;
    messages.drain(11..13);
    messages[10].headers = Headers {
        kind: Kind::Gap,
        to: last,
        events: 3,
        ..messages[10].headers
    };
    let (verdict, text) = scene.said(&messages);
    assert_eq!(verdict, Verdict::Altered, "{text}");
    assert!(text.contains("DROPPED by the sender"), "{text}");
    assert!(text.contains("3 events"), "{text}");
}

#[test]
fn a_batch_in_which_something_is_missing_tells_it() {
    let scene = Scene::new(true);
    let mut messages = scene.messages();
    messages[10].headers.missing = 2;
    let (verdict, text) = scene.said(&messages);
    assert_eq!(verdict, Verdict::Altered, "{text}");
    assert!(text.contains("DROPPED by the sender"), "{text}");
    assert!(text.contains("2 events"), "{text}");
    assert!(text.contains(": 60 events"), "{text}");
}

#[test]
fn the_wrong_key_and_a_store_that_is_none_are_unknown() {
    let scene = Scene::new(true);
    scene.store(&scene.messages());
    let other = Scene::new(true);
    let mut request = Request {
        keys: KeySource::One(other.key.clone()),
        ..scene.request()
    };
    let (verdict, text) = said(&request);
    assert_eq!(verdict, Verdict::Unknown, "{text}");
    request.keys = KeySource::Directory(scene.dir.path().to_owned());
    assert_eq!(said(&request).0, Verdict::Intact);
    request.keys = KeySource::None;
    assert_eq!(said(&request).0, Verdict::Intact);
    request.from = Origin::Files(scene.dir.path().join("nothing"));
    assert!(verify(&request).is_err());
    let junk = scene.dir.path().join("store/web1/junk");
    fs::write(&junk, "type=USER msg=audit(1.000:1): text\n").expect("written");
    let (verdict, text) = said(&scene.request());
    assert_eq!(verdict, Verdict::Unknown, "{text}");
    assert!(text.contains("byte 0: expected"), "{text}");
}

#[test]
fn a_message_that_is_being_stored_has_not_arrived() {
    let scene = Scene::new(true);
    let messages = scene.messages();
    scene.store(&messages);
    let path = Path::new("store/web1/b");
    let path = scene.dir.path().join(path);
    let whole = fs::read(&path).expect("stored");
    for cut in [1, 5, 60] {
        fs::write(&path, &whole[..whole.len() - cut]).expect("cut");
        let (verdict, text) = said(&scene.request());
        assert_eq!(verdict, Verdict::Open, "{text}");
    }
}

#[test]
fn the_seed_for_fuzzing_is_an_intact_store() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fuzz/seeds/stored/intact");
    if std::env::var_os("TARSIER_WRITE_CORPUS").is_some() {
        let scene = Scene::new(true);
        scene.store(&scene.messages());
        let mut seed = fs::read(&scene.key).expect("the key");
        seed.push(0);
        for name in ["a", "b"] {
            let part = scene.dir.path().join("store/web1").join(name);
            seed.extend(fs::read(part).expect("stored"));
        }
        fs::write(&path, seed).expect("written");
    }
    let seed = fs::read(&path).expect("the seed");
    let end = seed
        .iter()
        .position(|byte| *byte == 0)
        .expect("the end of the key");
    let dir = tempfile::tempdir().expect("a directory");
    let (key, from) = (dir.path().join("key"), dir.path().join("stored"));
    fs::write(&key, &seed[..end]).expect("written");
    fs::write(&from, &seed[end + 1..]).expect("written");
    let request = Request {
        from: Origin::Files(from),
        hosts: Vec::new(),
        keys: KeySource::One(key),
        age_max: None,
    };
    let (verdict, text) = said(&request);
    assert_eq!(verdict, Verdict::Intact, "{text}");
}
