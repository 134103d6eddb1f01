//! Real logs of the kernel's own audit, decoded and encoded again.

use std::collections::BTreeMap;
use std::path::Path;

use record::record::Body;
use record::text::{parse_line, ArgvBuilder, Record, Scratch, Typed};
use record::{Encoder, Format, NameTable, NoNames, RecordType};

/// The users and groups of the machine that the logs are from.
const PASSWD: &str = "root:x:0:0:root:/root:/bin/sh\nalice:x:1000:1000::/home/alice:/bin/sh\nbob:x:1001:1001::/home/bob:/bin/sh\n";
const GROUP: &str = "root:x:0:\nalice:x:1000:\nbob:x:1001:\n";

fn logs(suffix: &str) -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let mut logs = Vec::new();
    for entry in std::fs::read_dir(folder).expect("the corpus") {
        let path = entry.expect("an entry").path();
        let name = path
            .file_name()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        if name.ends_with(suffix) {
            logs.push((name, std::fs::read(&path).expect("a log")));
        }
    }
    logs.sort();
    assert!(!logs.is_empty(), "no {suffix} in the corpus");
    logs
}

fn lines(log: &[u8]) -> impl Iterator<Item = &[u8]> {
    log.strip_suffix(b"\n")
        .unwrap_or(log)
        .split(|&byte| byte == b'\n')
}

/// Decodes a log and encodes it again in `format`; the second result counts lines by how they were decoded.
fn again(
    name: &str,
    log: &[u8],
    format: Format,
) -> (Vec<u8>, BTreeMap<(&'static str, String), u32>) {
    let names = NameTable::parse(PASSWD, GROUP);
    let mut encoder = Encoder::new(format, Box::new(names));
    let (mut out, mut counts, mut argv) = (Vec::new(), BTreeMap::new(), ArgvBuilder::new());
    for (number, line) in lines(log).enumerate() {
        let place = format!("{name}:{}", number + 1);
        let record = parse_line(line).unwrap_or_else(|error| panic!("{place}: {error}"));
        let how = encode(&place, &record, &mut encoder, &mut argv, &mut out);
        *counts
            .entry((how, record.kind.expect("a known type").to_string()))
            .or_insert(0) += 1;
    }
    assert!(
        argv.args().is_empty(),
        "{name}: an EXECVE record is not complete"
    );
    (out, counts)
}

fn encode(
    place: &str,
    record: &Record<'_>,
    encoder: &mut Encoder,
    argv: &mut ArgvBuilder,
    out: &mut Vec<u8>,
) -> &'static str {
    if record.kind == Some(RecordType::EXECVE) {
        argv.push(record.body)
            .unwrap_or_else(|error| panic!("{place}: {error}"));
        if argv.is_complete() {
            encoder.begin(out, record.stamp).execve(&argv.record());
            argv.clear();
        }
        return "typed";
    }
    let mut room = vec![0; record.body.len()];
    let mut scratch = Scratch::new(&mut room);
    let typed =
        Typed::decode(record, &mut scratch).unwrap_or_else(|error| panic!("{place}: {error}"));
    match typed {
        Some(typed) => {
            encoder.begin(out, record.stamp).put(&typed);
            "typed"
        }
        None => {
            let mut generic = Vec::new();
            record::text::write_fields(&mut generic, record.fields());
            encoder
                .begin(out, record.stamp)
                .raw(record.kind.expect("a known type").0, &generic);
            "generic"
        }
    }
}

fn assert_same_lines(name: &str, expected: &[u8], got: &[u8]) {
    for (number, (expected, got)) in lines(expected).zip(lines(got)).enumerate() {
        let text = |line: &[u8]| String::from_utf8_lossy(line).into_owned();
        assert_eq!(text(got), text(expected), "{name}:{}", number + 1);
    }
    assert!(expected == got, "{name}: not the same bytes");
}

#[test]
fn decoding_every_raw_log_and_encoding_it_again_gives_the_same_bytes() {
    let mut counts = BTreeMap::new();
    for (name, log) in logs(".raw.log") {
        let (out, counted) = again(&name, &log, Format::Raw);
        assert_same_lines(&name, &log, &out);
        for (how, count) in counted {
            *counts.entry(how).or_insert(0) += count;
        }
    }
    let typed: Vec<&str> = counts
        .keys()
        .filter(|key| key.0 == "typed")
        .map(|key| key.1.as_str())
        .collect();
    for kind in [
        "BPRM_FCAPS",
        "CAPSET",
        "CWD",
        "EXECVE",
        "FD_PAIR",
        "IPC",
        "IPC_SET_PERM",
        "KERN_MODULE",
        "MMAP",
        "OBJ_PID",
        "OPENAT2",
        "PATH",
        "PROCTITLE",
        "SOCKADDR",
        "SOCKETCALL",
        "SYSCALL",
        "URINGOP",
    ] {
        assert!(
            typed.contains(&kind),
            "{kind} must be in the corpus and decoded into its struct"
        );
    }
}

#[test]
fn enriching_the_raw_part_of_every_enriched_log_gives_the_same_bytes() {
    let samples = logs(".log")
        .into_iter()
        .filter(|(name, _)| name.starts_with("samples-"));
    for (name, log) in logs(".enriched.log").into_iter().chain(samples) {
        let (out, _) = again(&name, &log, Format::Enriched);
        assert_same_lines(&name, &log, &out);
    }
}

#[test]
fn every_line_comes_back_from_its_generic_fields() {
    for (name, log) in logs(".log") {
        for (number, line) in lines(&log).enumerate() {
            let mut out = Vec::new();
            parse_line(line).expect("a record").write(&mut out);
            assert!(out == line, "{name}:{}", number + 1);
        }
    }
}

#[test]
fn kernel_messages_pass_through_unchanged() {
    for (name, log) in logs(".raw.log") {
        let mut encoder = Encoder::new(Format::Raw, Box::new(NoNames));
        let mut out = Vec::new();
        for line in lines(&log) {
            let record = parse_line(line).expect("a record");
            let message_at = line
                .windows(6)
                .position(|window| window == b"audit(")
                .expect("a stamp");
            encoder.raw(
                &mut out,
                record.kind.expect("a known type").0,
                &line[message_at..],
            );
        }
        assert_same_lines(&name, &log, &out);
    }
}

#[test]
fn a_malformed_line_is_refused_with_place_and_expectation() {
    let log = logs("00-open-basic.raw.log").remove(0).1;
    let error = |line: &[u8]| parse_line(line).expect_err("malformed").to_string();
    assert_eq!(
        error(b"type=SYSCALL msg=audit(1.2:3): x"),
        "byte 25: expected three digits of milliseconds"
    );
    assert_eq!(error(b"typo"), "byte 0: expected type=");
    assert_eq!(
        error(b"type=CWD msg=audit(1.234:x): "),
        "byte 25: expected the serial of the event"
    );
    let line = b"type=CWD msg=audit(1.234:5): cwd=zz";
    let record = parse_line(line).expect("a record");
    let refused = Typed::decode(&record, &mut Scratch::new(&mut [0; 64])).expect_err("malformed");
    assert_eq!(
        refused.to_string(),
        "byte 33: expected text in double quotes or upper-case hex"
    );
    for line in lines(&log) {
        for end in 0..line.len() {
            if let Ok(record) = parse_line(&line[..end]) {
                let mut room = vec![0; end];
                // Whatever is accepted must mean the same when it is written and read once more.
                if let Ok(Some(typed)) = Typed::decode(&record, &mut Scratch::new(&mut room)) {
                    let mut body = Vec::new();
                    typed.write(&mut body);
                    let record = Record {
                        body: &body,
                        ..record
                    };
                    let mut room = vec![0; body.len()];
                    let reread = Typed::decode(&record, &mut Scratch::new(&mut room));
                    assert_eq!(reread, Ok(Some(typed)));
                }
            }
        }
    }
}
