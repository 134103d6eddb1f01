//! A thousand crashes: a writer is killed at a random moment, and what was not synced is lost as in
//! a power failure. Everything that was acknowledged as durable must be there afterwards, and only
//! whole records.
//!
//! This is a program without a test harness: it starts itself as the writer that is killed.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use conf::{Config, FailureAction, Flush, LogFormat, SizeAction, SpaceLimit};
use journal::compact::{self, TimeRange};
use journal::seal::{init, verify};
use journal::{log_files, Journal, OpenReport};

const KILLS: usize = 125;
const FAILURES_PER_KILL: usize = 8;
const SECTOR_BYTES: usize = 512;
/// Contains the directory of the log, and makes this program the writer.
const WRITER: &str = "TARSIER_CRASH_WRITER";

fn main() {
    match std::env::var_os(WRITER) {
        Some(dir) => write_until_killed(Path::new(&dir)),
        None => crash(),
    }
}

/// The kind of log that belongs to a directory of this name.
fn config(kind: &str) -> Config {
    Config {
        flush: if kind.contains("data") {
            Flush::Data
        } else {
            Flush::Sync
        },
        freq: 0,
        log_format: if kind.contains("compact") {
            LogFormat::Compact
        } else {
            LogFormat::Raw
        },
        seal: kind.contains("sealed"),
        num_logs: 900,
        max_log_file_mib: 0,
        max_log_file_action: SizeAction::Rotate,
        space_left: SpaceLimit::Mib(0),
        admin_space_left: SpaceLimit::Mib(0),
        disk_full_action: FailureAction::Syslog,
        disk_error_action: FailureAction::Syslog,
        ..Config::default()
    }
}

fn kind(dir: &Path) -> String {
    dir.file_name().unwrap().to_string_lossy().into_owned()
}

/// Record `number`, with a varying length, so that records end anywhere in a sector.
fn record(number: u64) -> Vec<u8> {
    let mut line = format!("type=USER msg=audit(1.000:{number}): ").into_bytes();
    for at in 0..(number * 37) % 700 {
        line.push(b'a' + ((number + at * at) % 26) as u8);
    }
    line.push(b'\n');
    line
}

/// Commits until killed, and prints its progress: `commit EVENTS ROTATIONS SIZE`, `durable EVENTS`.
fn write_until_killed(dir: &Path) {
    let mut journal = Journal::open(&dir.join("audit.log"), &config(&kind(dir)))
        .unwrap()
        .0;
    let mut out = std::io::stdout().lock();
    let mut number = 0;
    let mut durable = 0;
    for commit in 1u64.. {
        for _ in 0..commit % 5 + 1 {
            journal.append(&record(number), 1);
            number += 1;
        }
        journal.commit().unwrap();
        let counters = journal.counters();
        let (events, rotations) = (counters.written.events, counters.rotations);
        let size = journal.size_bytes();
        writeln!(out, "commit {events} {rotations} {size}").unwrap();
        if journal.durable().events > durable {
            durable = journal.durable().events;
            writeln!(out, "durable {durable}").unwrap();
        }
        out.flush().unwrap();
        if commit % 60 == 0 {
            journal.rotate().unwrap();
        }
    }
}

struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound.max(1) as u64) as usize
    }
}

/// Output of a writer before it was killed.
#[derive(Default)]
struct Said {
    /// Number of events → (rotations, size of the file).
    commits: BTreeMap<u64, (u64, u64)>,
    durable: u64,
}

fn kill_a_writer(dir: &Path, lines: usize) -> Said {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .env(WRITER, dir)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = Said::default();
    for (number, line) in BufReader::new(child.stdout.take().unwrap())
        .lines()
        .enumerate()
    {
        // A last line may be torn.
        let line = line.unwrap_or_default();
        let mut words = line.split(' ');
        let name = words.next();
        let numbers: Vec<u64> = words.flat_map(str::parse).collect();
        match (name, &numbers[..]) {
            (Some("commit"), &[events, rotations, size]) => {
                said.commits.insert(events, (rotations, size));
            }
            (Some("durable"), &[events]) if said.commits.contains_key(&events) => {
                said.durable = events;
            }
            _ => {}
        }
        if number == lines {
            child.kill().unwrap();
        }
    }
    child.wait().unwrap();
    said
}

/// Loses what no finished sync covers: cuts the file anywhere, and zeroes sectors of what is left.
fn fail_power(dir: &Path, said: &Said, random: &mut Random) {
    let (rotations, size) = said.commits.get(&said.durable).copied().unwrap_or_default();
    let files = log_files(&dir.join("audit.log")).unwrap();
    // A rotation waits until the file of the previous one is synced, which the writer may not have
    // printed.
    let unsynced = files.len().saturating_sub(2).max(rotations as usize);
    for (number, file) in files.iter().enumerate().skip(unsynced) {
        let synced = if number as u64 == rotations {
            size as usize
        } else {
            0
        };
        let mut bytes = std::fs::read(file).unwrap();
        if bytes.len() <= synced {
            continue;
        }
        let unsynced = bytes.len() - synced;
        bytes.truncate(synced + random.below(unsynced + 1));
        for _ in 0..random.below(4) {
            let sector = (synced + random.below(unsynced)) / SECTOR_BYTES * SECTOR_BYTES;
            let end = (sector + SECTOR_BYTES).min(bytes.len());
            if let Some(hole) = bytes.get_mut(sector.max(synced)..end) {
                hole.fill(0);
            }
        }
        set(file, &bytes);
    }
}

fn set(path: &Path, bytes: &[u8]) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o600)).unwrap();
    std::fs::write(path, bytes).unwrap();
}

fn copy(from: &Path, to: &Path) {
    if to.exists() {
        std::fs::remove_dir_all(to).unwrap();
    }
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        std::fs::copy(&path, to.join(path.file_name().unwrap())).unwrap();
    }
}

fn text(log: &Path) -> Vec<u8> {
    let mut text = Vec::new();
    for file in log_files(log).unwrap() {
        let mut reader = compact::open(&file, TimeRange::ALL).unwrap();
        std::io::Read::read_to_end(&mut reader, &mut text)
            .unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    }
    text
}

/// Opens the log again, writes one more record, and checks everything. Returns the report.
fn recover(dir: &Path, durable: u64) -> OpenReport {
    const LAST: u64 = 1 << 40;
    let log = dir.join("audit.log");
    let (mut journal, report) = Journal::open(&log, &config(&kind(dir))).unwrap();
    journal.append(&record(LAST), 1);
    journal.close();
    let text = text(&log);
    let mut previous = None;
    let mut found = 0;
    for line in text.split_inclusive(|&byte| byte == b'\n') {
        let number = line.split(|&byte| b":)".contains(&byte)).nth(1);
        let number = number.and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
        let number: u64 = number.unwrap_or_else(|| panic!("not a record: {line:?}"));
        assert!(line == record(number), "record {number} is torn");
        assert!(
            previous < Some(number),
            "record {number} after {previous:?}"
        );
        if number == found {
            found += 1;
        }
        previous = Some(number);
    }
    assert!(
        found >= durable,
        "{durable} events were acknowledged, {found} are there"
    );
    assert_eq!(previous, Some(LAST), "writing goes on");
    report
}

fn crash() {
    let mut random = Random(0xc4a5);
    let (mut points, mut torn, mut mended, mut acknowledged) = (0, 0, 0, 0);
    for number in 0..KILLS {
        let root = tempfile::tempdir().unwrap();
        let kind = [
            "sync",
            "data",
            "compact-sync",
            "sealed-sync",
            "sealed-compact-data",
        ];
        let dir = root.path().join(kind[number % kind.len()]);
        std::fs::create_dir(&dir).unwrap();
        let is_sealed = kind[number % kind.len()].contains("sealed");
        let key = is_sealed.then(|| init(&dir.join("audit.log")).unwrap());
        let said = kill_a_writer(&dir, random.below(300));
        acknowledged += said.durable;
        // After the kill alone, then after power failures at the same moment.
        let scratch_root = tempfile::tempdir().unwrap();
        let scratch: PathBuf = scratch_root.path().join(kind[number % kind.len()]);
        for failure in 0..FAILURES_PER_KILL {
            copy(&dir, &scratch);
            if failure > 0 {
                fail_power(&scratch, &said, &mut random);
            }
            let report = recover(&scratch, said.durable);
            points += 1;
            torn += usize::from(report.torn.is_some() || report.torn_rotated.is_some());
            let holes = |torn: &journal::TornLine| torn.repair == journal::Repair::Mended;
            mended += usize::from(report.torn.as_ref().is_some_and(holes));
            if let Some(key) = &key {
                let options = verify::Options {
                    is_complete: true,
                    age_max: None,
                };
                let logs = log_files(&scratch.join("audit.log")).unwrap();
                let finding = verify(&logs, key, options).unwrap().finding;
                if failure == 0 {
                    assert_eq!(finding, None, "kill {number}");
                }
            }
        }
    }
    assert!(
        torn > points / 10 && mended > 0,
        "the failures are no failures: {torn}, {mended}"
    );
    println!(
        "crash: {points} crash points, {acknowledged} acknowledged events, {torn} torn ends \
         repaired, {mended} with holes: ok"
    );
}
