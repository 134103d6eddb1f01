//! Composes frames of a real kernel and compares the lines with those expected.
//!
//! `corpus/NAME.frames` holds frames as they were in the rings, one after the other; `NAME.rules` the rules that
//! selected them; `NAME.log` the expected lines. `TARSIER_WRITE_CORPUS=1` rewrites the lines: review the difference.
#![cfg(target_arch = "x86_64")] // flags of open(2) differ between architectures

use compose::{Composer, Generation, Outcome, StaticFile, StaticSystem};
use plan::{Capabilities, Plan};
use record::record::Inode;
use record::text::parse_line;
use record::{Encoder, Format, NoNames};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The mount namespace in which the frames were made.
const MNT_NS: u64 = 4026531832;

fn rule_set(rules: &[u8]) -> Arc<Generation> {
    let host = rules::StaticHost::new(abi::Arch::X86_64);
    let parsed = rules::parse_text(rules::Dialect::default(), "corpus", rules, &host);
    let set = rules::RuleSet::build(parsed).expect("the rules are right");
    let identities = compose::identify(&set.rules, &system());
    let capabilities = Capabilities::assumed(abi::Arch::X86_64);
    let plan = Plan::new(&set.rules, &capabilities, &identities, 1);
    let plan = plan.expect("they are few");
    Arc::new(Generation::new(plan, identities, BTreeSet::new()))
}

/// A system with the files that the composer looks up because the frames do not identify them.
fn system() -> StaticSystem {
    let file = |ino, mode| StaticFile {
        inode: Inode {
            ino,
            dev: 0xfe00001,
            mode,
            ..Inode::default()
        },
        ..StaticFile::default()
    };
    StaticSystem {
        files: [
            ("/proc/self/ns/mnt", file(MNT_NS, 0o100444)),
            ("/tmp", file(2, 0o041777)),
            ("/tmp/corpus", file(3, 0o040755)),
            ("/tmp/corpus/made", file(4, 0o040750)),
            ("/tmp/corpus/new", file(5, 0o100640)),
        ]
        .into(),
        release: (6, 1),
        ..StaticSystem::default()
    }
}

/// The frames in `bytes`: each begins with its size.
fn frames(mut bytes: &[u8]) -> Vec<&[u8]> {
    let mut frames = Vec::new();
    while let Some(size) = bytes.first_chunk::<4>() {
        let (frame, rest) = bytes.split_at(u32::from_ne_bytes(*size) as usize);
        frames.push(frame);
        bytes = rest;
    }
    frames
}

/// The lines of a file of frames, with times and serial numbers that depend only on the static system.
fn composed(path: &Path) -> Vec<u8> {
    let encoder = Encoder::new(Format::Raw, Box::new(NoNames));
    let mut composer = Composer::new(encoder, Arc::new(system()), ());
    let rules = std::fs::read(path.with_extension("rules")).expect("its rules");
    composer.add_generation(rule_set(&rules));
    let bytes = std::fs::read(path).expect("the frames");
    let mut lines = Vec::new();
    for frame in frames(&bytes) {
        let outcome = composer.frame(0, frame, &mut lines, None::<&mut ()>);
        assert!(
            matches!(
                outcome,
                Ok(Outcome::Recorded | Outcome::Dropped | Outcome::Part)
            ),
            "{}: {outcome:?}",
            path.display()
        );
    }
    lines
}

fn corpus() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let entries = std::fs::read_dir(folder).expect("the corpus");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let mut found: Vec<_> = paths
        .filter(|path| path.extension().is_some_and(|end| end == "frames"))
        .collect();
    found.sort();
    assert!(!found.is_empty(), "no frames in the corpus");
    found
}

#[test]
fn recorded_frames_become_the_lines_that_they_became_before() {
    for path in corpus() {
        let lines = composed(&path);
        let log = path.with_extension("log");
        if std::env::var_os("TARSIER_WRITE_CORPUS").is_some() {
            std::fs::write(&log, &lines).expect("the log is written");
        }
        let expected = std::fs::read_to_string(&log).expect("its log");
        assert_eq!(
            String::from_utf8_lossy(&lines),
            expected,
            "{}",
            path.display()
        );
    }
}

#[test]
fn what_is_written_is_read_back() {
    for path in corpus() {
        let lines = composed(&path);
        for line in lines.split_inclusive(|&byte| byte == b'\n') {
            let record = parse_line(line).expect("a record");
            assert!(record.kind.is_some(), "{}", String::from_utf8_lossy(line));
        }
    }
}
