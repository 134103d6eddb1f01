//! Measures what `index_rotated = yes` costs a logger.
//!
//! usage: index_rotated LOG DIRECTORY [ROUNDS [MB_PER_SECOND]]
//!
//! The text of LOG is written ten times below DIRECTORY, in batches of 64 KiB with flush = NONE, with a rotation every
//! 8 MB; in each round without and with an index. MB_PER_SECOND is the pace; without it, the next batch follows at once,
//! and an index is seldom finished before the next rotation. Prints the seconds that each round has taken to write, those
//! of the writing thread on a processor, and what an index adds: the mean over the rounds, and its standard error.

use conf::{Config, Flush, SizeAction};
use journal::Journal;
use rustix::time::{clock_gettime, ClockId};
use std::path::Path;
use std::time::{Duration, Instant};

/// Bytes of a batch.
const BATCH_BYTES: usize = 64 << 10;
/// Times that the text is written in a round.
const TIMES: usize = 10;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (log, directory) = (&args[0], Path::new(&args[1]));
    let rounds: usize = args
        .get(2)
        .map_or(5, |text| text.parse().expect("a number"));
    let pace: f64 = args
        .get(3)
        .map_or(f64::INFINITY, |text| text.parse().expect("a number"));
    let text = std::fs::read(log).expect("a log that can be read");
    let mut seconds = [Vec::new(), Vec::new()];

    for round in 0..2 * rounds {
        // The order changes, so that neither is always first.
        let with_index = (round + round / 2) % 2 == 1;
        let own = directory.join("index-rotated");
        std::fs::create_dir_all(&own).expect("a directory");
        let took_s = write(&own.join("audit.log"), &text, with_index, pace);
        let files = std::fs::read_dir(&own).expect("a directory").flatten();
        let is_index =
            |file: &std::fs::DirEntry| file.path().extension().is_some_and(|end| end == "idx");
        let indexes = files.filter(is_index).count();
        std::fs::remove_dir_all(&own).expect("a removed directory");
        let word = if with_index { "yes" } else { "no" };
        let [whole_s, cpu_s] = took_s;
        println!("index_rotated = {word}: {whole_s:.3} s, {cpu_s:.3} s on a processor; {indexes} of 8 files have one");
        seconds[usize::from(with_index)].push(took_s);
    }

    let added = |what: usize| {
        let [without, with] = &seconds;
        let pairs = without.iter().zip(with);
        let percents: Vec<f64> = pairs
            .map(|(without, with): (&[f64; 2], &[f64; 2])| {
                (with[what] / without[what] - 1.0) * 100.0
            })
            .collect();
        let count = percents.len() as f64;
        let mean = percents.iter().sum::<f64>() / count;
        let squares = percents.iter().map(|percent| (percent - mean).powi(2));
        let error = (squares.sum::<f64>() / (count - 1.0) / count).sqrt();
        format!("{mean:+.1} % (± {error:.1})")
    };

    println!("with an index: {}, on a processor {}", added(0), added(1));
}

/// Seconds for writing the text at `pace` MB per second: all but those of waiting for the next batch, and those of this
/// thread on a processor.
fn write(log: &Path, text: &[u8], with_index: bool, pace: f64) -> [f64; 2] {
    let config = Config {
        flush: Flush::None,
        num_logs: 9,
        max_log_file_mib: 8,
        max_log_file_action: SizeAction::Rotate,
        index_rotated: with_index,
        ..Config::default()
    };

    let (mut journal, _) = Journal::open(log, &config).expect("a log");
    let cpu_s = || {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
    };
    let (start, mut took, mut written) = (Instant::now(), [0.0, 0.0], 0);

    for batch in std::iter::repeat_n(text, TIMES).flat_map(batches) {
        let (begin, begin_cpu_s) = (Instant::now(), cpu_s());
        journal.append(batch, 1);
        journal.commit().expect("a written batch");
        took[0] += begin.elapsed().as_secs_f64();
        took[1] += cpu_s() - begin_cpu_s;
        written += batch.len();
        let next = start + Duration::from_secs_f64(written as f64 / 1e6 / pace);
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
    }

    journal.close();
    took
}

/// The text in whole lines of about [`BATCH_BYTES`].
fn batches(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let near = rest.get(BATCH_BYTES..).unwrap_or_default();
        let end = near.iter().position(|byte| *byte == b'\n');
        let (batch, after) = match end {
            Some(end) => rest.split_at(BATCH_BYTES + end + 1),
            None => (rest, &rest[rest.len()..]),
        };
        rest = after;
        (!batch.is_empty()).then_some(batch)
    })
}
