//! Data sent off the host: the forms of events, and the messages that a store holds.

use super::logs::Scratch;
use forward::format::{format, LogEvent, Place, Stamp, FORMATS};
use forward::verify::{print, to_json, verdict, verify, KeySource, Origin, Request};
use std::path::Path;

/// Lines of an event. Every format but `raw` makes one JSON object on one line of them, whatever they are.
pub(crate) fn mapping(data: &[u8]) {
    let event = LogEvent {
        lines: data,
        place: Some(Place {
            series: 1,
            file: 1,
            start: 0,
        }),
        host: "fuzz",
        stamp: Stamp {
            sec: 1_795_229_630,
            msec: 644,
            serial: 45,
        },
    };
    for name in FORMATS {
        let mut format = format(name).expect("a format");
        let mut out = Vec::new();
        if format.event(&event, &mut out).is_err() || *name == "raw" {
            continue;
        }
        assert!(!out.contains(&b'\n'), "{name}");
        let document: serde_json::Value = serde_json::from_slice(&out).expect("JSON");
        assert!(document.is_object(), "{name}");
        if *name == "ecs" {
            let original = document["event"]["original"].as_str().expect("the lines");
            let whole = data.strip_suffix(b"\n").unwrap_or(data);
            assert_eq!(original, String::from_utf8_lossy(whole));
        }
    }
}

/// A file of messages that a consumer stored. Whatever it holds, the same is said of it as text and as JSON.
pub(crate) fn stored(data: &[u8]) {
    let scratch = Scratch::new();
    let path = scratch.0.join("stored");
    std::fs::write(&path, data).expect("written");
    check(&path, KeySource::None);
    // The key of the seed.
    let key = data.split(|byte| *byte == b'\0').next().unwrap_or_default();
    let key_path = scratch.0.join("key");
    std::fs::write(&key_path, key).expect("written");
    let rest = data.get(key.len() + 1..).unwrap_or_default();
    std::fs::write(&path, rest).expect("written");
    check(&path, KeySource::One(key_path));
}

fn check(path: &Path, keys: KeySource) {
    let request = Request {
        from: Origin::Files(path.to_owned()),
        hosts: Vec::new(),
        keys,
        age_max: None,
    };
    let Ok(hosts) = verify(&request) else {
        return;
    };
    let mut out = Vec::new();
    print(&hosts, &mut out).expect("printed");
    let document = to_json(&hosts, verdict(&hosts));
    let count = document["hosts"].as_array().map(Vec::len);
    assert_eq!(count, Some(hosts.len()));
}

/// Answers of servers, a slot of the cursor, and the configuration.
pub(crate) fn far_sides(data: &[u8]) {
    forward::sink::decode_answer(data);
    for line in data.split(|byte| *byte == b'\n') {
        let _ = forward::sink::parse_nats_line(line);
    }
    let _ = forward::cursor::parse_slot(data);
    let _ = forward::config::parse(data, std::path::Path::new("forward.conf"));
}
