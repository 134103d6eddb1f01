//! Runs the fuzz targets on their seeds and on variations of them.

#[allow(unreachable_pub)] // a library, for the fuzzer
#[path = "../../../../fuzz/src/lib.rs"]
mod targets;

use std::fs;
use std::panic::catch_unwind;
use std::path::Path;

/// Runs a target. If it panics, the message names the seed and how it was changed.
fn feed(name: &str, seed: &Path, what: &str, data: &[u8]) {
    let outcome = catch_unwind(|| targets::run(name, data));
    assert!(outcome.is_ok(), "{name}: {}: {what}", seed.display());
}

#[test]
fn every_target_takes_its_seeds_whole_cut_and_changed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fuzz/seeds");
    for (name, _) in targets::TARGETS {
        let directory = root.join(name);
        let entries = fs::read_dir(&directory).expect("a directory of seeds");
        let mut count = 0;
        for entry in entries {
            let path = entry.expect("an entry").path();
            let data = fs::read(&path).expect("a seed");
            feed(name, &path, "whole", &data);
            let step = (data.len() / 64).max(1);
            for at in (0..data.len()).step_by(step) {
                feed(name, &path, &format!("cut at {at}"), &data[..at]);
                let mut changed = data.clone();
                for value in [0, changed[at].wrapping_add(1), 0x80, 0xff] {
                    changed[at] = value;
                    feed(name, &path, &format!("{value} at {at}"), &changed);
                }
            }
            count += 1;
        }
        assert!(count > 0, "no seeds of {name}");
    }
}

#[test]
fn every_target_has_a_program_for_the_fuzzer() {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fuzz/Cargo.toml");
    let manifest = fs::read_to_string(manifest).expect("the manifest");
    for (name, _) in targets::TARGETS {
        assert!(
            manifest.contains(&format!("path = \"fuzz_targets/{name}.rs\"")),
            "{name}"
        );
    }
    let programs = manifest.matches("[[bin]]").count();
    assert_eq!(programs, targets::TARGETS.len());
}
