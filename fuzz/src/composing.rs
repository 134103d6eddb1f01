//! Composing any frames does not panic, and the lines that they become are read back.

use compose::{Composer, Generation, Outcome, StaticFile, StaticSystem};
use plan::{Capabilities, Identities, Plan};
use record::record::Inode;
use record::{Encoder, Format};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Rules whose decision is left to the second stage, and rules that drop records.
const RULES: &str = "\
-a always,exit -F arch=b64 -S all -F path=/etc/passwd -k file
-a always,exit -F arch=b64 -S all -F dir=/srv -k below
-a never,exit -F arch=b64 -S all -F inode=7
-a always,exit -F arch=b64 -S all -k rest
-a always,io_uring -S openat -k ring
-a always,exclude -F msgtype=CWD
-a never,filesystem -F fstype=0x9fa0
";

/// A byte that says how, then frames; each begins with its size. All of them come from one CPU.
pub(crate) fn frame_to_records(data: &[u8]) {
    let Some((&how, data)) = data.split_first() else {
        return;
    };
    let mut composer = composer(how);
    let _ = composer.survey_processes(data);
    let lines = composed(&mut composer, data);
    for line in lines.split_inclusive(|&byte| byte == b'\n') {
        is_read_back(format(how), line);
    }
}

fn format(how: u8) -> Format {
    match how % 3 {
        0 => Format::Raw,
        1 => Format::Enriched,
        _ => Format::Json,
    }
}

/// What composes in the way that a byte says.
pub(crate) fn composer(how: u8) -> Composer<()> {
    let system = Arc::new(system());
    let mut encoder = Encoder::new(format(how), compose::names(system.clone()));
    encoder.set_workload(how & 0x40 != 0);
    encoder.set_labels(how & 0x20 != 0);
    let mut composer = Composer::new(encoder, system, ());
    composer.add_generation(rule_set(if how & 0x80 == 0 { RULES } else { "" }));
    composer
}

/// The lines that frames become.
pub(crate) fn composed(composer: &mut Composer<()>, data: &[u8]) -> Vec<u8> {
    let mut lines = Vec::new();
    for frame in frames(data) {
        let before = lines.len();
        let outcome = composer.frame(0, &frame, &mut lines, None::<&mut ()>);
        let is_recorded = matches!(outcome, Ok(Outcome::Recorded | Outcome::Urgent));
        assert_eq!(is_recorded, lines.len() > before, "{outcome:?}");
    }
    composer.overdue(true, &mut lines);
    lines
}

fn is_read_back(format: Format, line: &[u8]) {
    let shown = String::from_utf8_lossy(line);
    if format == Format::Json {
        let event: serde_json::Value = serde_json::from_slice(line).expect(&shown);
        assert!(event.is_object(), "{shown}");
        return;
    }
    let record = record::text::parse_line(line).expect(&shown);
    assert!(record.kind.is_some(), "{shown}");
}

/// Pieces of the sizes that they say; what is behind the last whole one is a piece too. A piece gets the size that it
/// has, as a ring gives it.
pub(crate) fn frames(mut data: &[u8]) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    while let Some(size) = data.first_chunk::<4>() {
        let size = u32::from_ne_bytes(*size) as usize;
        let (frame, rest) = data.split_at(size.clamp(4, data.len()));
        let mut frame = frame.to_vec();
        frame.resize(frame.len().next_multiple_of(8), 0);
        let size = frame.len() as u32;
        frame[..4].copy_from_slice(&size.to_ne_bytes());
        frames.push(frame);
        data = rest;
    }
    frames
}

fn rule_set(text: &str) -> Arc<Generation> {
    let host = rules::StaticHost::new(abi::Arch::X86_64);
    let parsed = rules::parse_text(rules::Dialect::default(), "fuzz", text, &host);
    let set = rules::RuleSet::build(parsed).expect("the rules are right");
    let identities = Identities::default();
    let capabilities = Capabilities::assumed(abi::Arch::X86_64);
    let plan = Plan::new(&set.rules, &capabilities, &identities, 1);
    let plan = plan.expect("they are few");
    Arc::new(Generation::new(plan, identities, BTreeSet::new()))
}

/// A system with a few files, in namespace 0, which frames of zeros are from.
fn system() -> StaticSystem {
    let file = |contents: &[u8]| StaticFile {
        inode: Inode {
            ino: 7,
            dev: 21,
            ..Inode::default()
        },
        contents: contents.to_vec(),
        capabilities: Some(vec![2; 24]),
        real_path: None,
    };
    let mounts = b"23 22 0:21 / /proc rw - proc proc rw\n";
    StaticSystem {
        files: [
            ("/etc", file(b"")),
            ("/etc/passwd", file(b"#!/bin/sh\n")),
            ("/proc/self/mountinfo", file(mounts)),
            ("/proc/self/attr/current", file(b"label\n")),
            ("/proc/0/attr/current", file(b"a \"b\n")),
        ]
        .into(),
        file_systems: [("/proc", 0x9fa0)].into(),
        names: [(0, "root"), (1000, "user 1")].into(),
        release: (6, 1),
        ..StaticSystem::default()
    }
}
