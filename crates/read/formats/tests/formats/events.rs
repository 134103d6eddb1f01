//! Events of log files.

use formats::{format, Format, LogEvent, Place, Stamp, FORMATS as FORMAT_NAMES};
use query::{Assembler, Dialect};
use serde_json::Value;
use std::cell::RefCell;
use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

thread_local! {
    static FORMATS: RefCell<Vec<Box<dyn Format>>> =
        RefCell::new(FORMAT_NAMES.iter().filter_map(|name| format(name)).collect());
}

/// The lines of one event.
#[derive(Clone)]
pub(crate) struct Sample {
    pub(crate) lines: Vec<u8>,
    pub(crate) stamp: Stamp,
}

impl Sample {
    /// An event of these lines, whose stamp does not matter.
    pub(crate) fn new(lines: Vec<u8>) -> Sample {
        let stamp = Stamp {
            sec: 1_795_229_630,
            msec: 644,
            serial: 45,
        };
        Sample { lines, stamp }
    }

    /// The event in the format of this name.
    pub(crate) fn map(&self, name: &str) -> Value {
        self.map_on("web1", name)
    }

    /// The event in the format of this name, from a host of which only `host` is known.
    pub(crate) fn map_on(&self, host: &str, name: &str) -> Value {
        let event = LogEvent {
            lines: &self.lines,
            place: Some(Place {
                series: 7,
                file: 1,
                start: 520,
            }),
            host,
            stamp: self.stamp,
        };
        let mut out = Vec::new();
        FORMATS.with_borrow_mut(|formats| {
            let format = formats.iter_mut().find(|format| format.name() == name);
            let format = format.expect("a format");
            format.event(&event, &mut out).expect("it has a form");
        });
        serde_json::from_slice(&out).expect("JSON")
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.lines).into_owned()
    }

    pub(crate) fn is_enriched(&self) -> bool {
        self.lines.contains(&0x1d)
    }
}

/// A path of this crate.
pub(crate) fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// The events of all logs of a directory, and a line of each type in each file as an event by itself.
pub(crate) fn of(directory: &str) -> Vec<Sample> {
    let mut samples = Vec::new();
    let mut paths: Vec<PathBuf> = fs::read_dir(here(directory))
        .unwrap_or_else(|error| panic!("{directory}: {error}"))
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_none_or(|extension| extension == "log"))
        .collect();
    paths.sort();
    for path in paths {
        let bytes = fs::read(&path).expect("a log");
        samples.extend(events(&bytes));
        let mut seen = HashSet::new();
        let lines = bytes.split(|byte| *byte == b'\n');
        let is_new = |line: &&[u8]| {
            let word = line.split(|byte| *byte == b' ').next();
            seen.insert(word.unwrap_or_default().to_vec())
        };
        samples.extend(lines.filter(is_new).map(|line| Sample::new(line.to_vec())));
    }
    samples
}

/// The events of a log.
pub(crate) fn events(log: &[u8]) -> Vec<Sample> {
    let mut assembler = Assembler::new(Dialect::Own, 2, Default::default());
    let mut samples = Vec::new();
    let mut take = |assembler: &mut Assembler| {
        while let Some(event) = assembler.pop() {
            let key = event.key();
            let stamp = Stamp {
                sec: key.sec,
                msec: key.msec,
                serial: key.serial,
            };
            let lines = event.text().to_vec();
            samples.push(Sample { lines, stamp });
        }
    };
    for line in log.split_inclusive(|byte| *byte == b'\n') {
        assembler.add(line);
        take(&mut assembler);
    }
    assembler.finish();
    take(&mut assembler);
    samples
}
