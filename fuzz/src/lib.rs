//! Bodies of the fuzz targets. No bytes make them panic, and facts that can be told in two ways are told alike.
//!
//! `crates/app/tarsier/tests/fuzz_seeds.rs` includes this file and feeds it what is in `fuzz/seeds`,
//! so that targets and seeds stay right without a fuzzer.
#![forbid(unsafe_code)]

use record::text::SEPARATOR;
use record::{Encoder, Format, NoNames};
use std::path::Path;

mod composing;
mod forwarding;
mod index;
mod logs;
mod lookups;
mod reports;
mod search;
mod seccomp_input;
mod summary;
mod tables;

/// A target: its name, which is that of its seeds' directory too, and what it does.
pub type Target = (&'static str, fn(&[u8]));

/// All targets.
pub const TARGETS: [Target; 24] = [
    ("rule_text", rule_text),
    ("from_kernel", from_kernel),
    ("tables", tables::tables),
    ("frames", frames),
    ("frame_to_records", composing::frame_to_records),
    ("log_lines", log_lines),
    ("kernel_records", kernel_records),
    ("elf_images", elf_images),
    ("netlink", netlink),
    ("lookups", lookups::lookups),
    ("configuration", configuration),
    ("audit_state", audit_state),
    ("compact", logs::compact),
    ("seals", logs::seals),
    ("reports", reports::reports),
    ("search", search::search),
    ("index", index::index),
    ("expression", index::expression),
    ("summary", summary::summary),
    ("mapping", forwarding::mapping),
    ("stored", forwarding::stored),
    ("far_sides", forwarding::far_sides),
    ("seccomp_filters", seccomp_input::filters),
    ("seccomp_profiles", seccomp_input::profiles),
];

/// Runs the target of this name; there is one.
pub fn run(name: &str, data: &[u8]) {
    let target = TARGETS.iter().find(|(known, _)| *known == name);
    let (_, target) = target.expect("a target of this name");
    target(data);
}

/// A rules file. Rules that are taken come back from the kernel's form.
fn rule_text(data: &[u8]) {
    let host = rules::StaticHost::new(abi::Arch::X86_64);
    let dialect = rules::Dialect::default();
    let parsed = rules::parse_text(dialect, "fuzz", data, &host);
    for (_, command) in &parsed.commands {
        let (rules::Command::Append(rule) | rules::Command::Prepend(rule)) = command else {
            continue;
        };
        if rules::check(rule, None).is_ok() {
            comes_back(rule);
        }
    }
    // Both outcomes will do.
    let _ = rules::RuleSet::build(parsed);
}

/// `struct audit_rule_data`.
fn from_kernel(data: &[u8]) {
    let Ok(rule) = rules::from_kernel(data) else {
        return;
    };
    assert!(!rule.to_string().is_empty());
    comes_back(&rule);
    let capabilities = plan::Capabilities::assumed(abi::Arch::X86_64);
    let _ = plan::lint(std::slice::from_ref(&rule), &capabilities);
}

fn comes_back(rule: &rules::Rule) {
    let bytes = rules::to_kernel(rule);
    let again = rules::from_kernel(&bytes).expect("the rule was made here");
    assert_eq!(rules::to_kernel(&again), bytes, "{rule}");
}

/// Parses bytes as the contents of a ring.
fn frames(data: &[u8]) {
    let _ = record::wire::frame_kind(data);
    if let Ok(chunk) = record::wire::Chunk::parse(data) {
        assert!(chunk.data.len() <= data.len());
    }
    let _ = record::wire::CgroupFrame::parse(data);
    let _ = record::wire::ProcessFrame::parse(data);
    assert!(record::wire::frames(data).count() <= data.len());
    if let Ok(event) = record::wire::Event::parse(data) {
        for part in event.parts() {
            assert!(part.data.len() <= data.len());
        }
    }
    let mut path = Vec::new();
    record::wire::walked_path(data, data.first().copied().unwrap_or(0), &mut path);
}

/// Lines of a log, each also as what the kernel sends.
fn log_lines(data: &[u8]) {
    let mut argv = record::text::ArgvBuilder::new();
    let mut room = vec![0; data.len() + 64];
    for line in data.split(|&byte| byte == b'\n') {
        let _ = record::text::parse_message(line);
        let Ok(record) = record::text::parse_line(line) else {
            continue;
        };
        let mut fields = Vec::new();
        record::text::write_fields(&mut fields, record.fields());
        let _ = argv.push(record.body);
        let mut scratch = record::text::Scratch::new(&mut room);
        let _ = record::text::Typed::decode(&record, &mut scratch);
    }
}

/// The text of a record that the kernel or a user sends, after its type (u16, little-endian), in every
/// format: it is one line, and holds no control character that a terminal would obey.
fn kernel_records(data: &[u8]) {
    let Some((number, message)) = data.split_first_chunk() else {
        return;
    };
    let number = u16::from_le_bytes(*number);
    for format in [Format::Raw, Format::Enriched, Format::Json] {
        let mut encoder = Encoder::new(format, Box::new(NoNames));
        let mut out = Vec::new();
        encoder.raw(&mut out, number, message);
        let Some((end, line)) = out.split_last() else {
            continue;
        };
        assert_eq!(*end, b'\n');
        let separators = line.iter().filter(|&&byte| byte == SEPARATOR).count();
        assert!(separators <= 1, "{format:?}");
        let text = String::from_utf8_lossy(line);
        let is_control = |letter: char| letter.is_control() && !"\t\u{1d}".contains(letter);
        assert!(!text.contains(is_control), "{format:?}: {text:?}");
    }
}

/// The beginning of an executable.
fn elf_images(data: &[u8]) {
    if let Some(name) = compose::elf_interpreter(data) {
        let mut places = data.windows(name.len().max(1));
        assert!(name.is_empty() || places.any(|place| place == name));
    }
}

/// Datagrams of the audit socket.
fn netlink(data: &[u8]) {
    use netlink::message;
    let _ = message::decode(data);
    let _ = message::is_never_task_rule(data);
    let _ = message::SignalInfo::decode(data);
    if let Some(features) = message::Features::decode(data) {
        let again = message::Features::decode(&features.encode());
        assert_eq!(again, Some(features));
    }
    if let Some(status) = message::Status::decode(data) {
        let again = message::Status::decode(&status.encode(u32::MAX));
        assert_eq!(
            again.map(|again| again.backlog_limit),
            Some(status.backlog_limit)
        );
    }
}

/// The file that says how the kernel's audit was found. What is taken is written the same way.
fn audit_state(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if let Ok(again) = netlink::written_anew(&text) {
        assert_eq!(netlink::written_anew(&again), Ok(again));
    }
}

/// auditd.conf, and a plugin's file.
fn configuration(data: &[u8]) {
    let _ = conf::plugins::parse(data, Path::new("fuzz.conf"));
    if let Ok(loaded) = conf::parse(data, Path::new("fuzz")) {
        let _ = loaded.config.node_name();
    }
}
