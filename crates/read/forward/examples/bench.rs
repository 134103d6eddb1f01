//! Measures the cost and speed of `tarsier-forward` against the server of a configuration, as `scripts/bench-forward`
//! runs it:
//!
//! * `bench PROGRAM CONFIG cost SAMPLE EVENTS`: the events of the log SAMPLE, again and again, are in the log before the
//!   program starts. Prints its processor time per event, events a second and largest memory.
//! * `bench PROGRAM CONFIG latency KEY EVENTS INTERVAL_MS`: an event with this key every INTERVAL_MS. Prints the time from
//!   the write into the log until the cursor on disk has the acknowledgement.
//! * `bench PROGRAM CONFIG calls EVENTS INTERVAL_MS`: a daemon writes the log of CONFIG and records this program's
//!   rmdir(2), and nothing else meanwhile. Prints the time from each call until its acknowledgement.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use anyhow::{bail, Context};
use forward::config::{self, Config};
use forward::cursor::CursorFile;
use forward::events::Events;

/// Longest that everything may take.
const DEADLINE: Duration = Duration::from_secs(600);
/// Time between two looks at the cursor.
const LOOK: Duration = Duration::from_micros(500);
/// Time without an acknowledgement after which all events are taken for acknowledged.
const REST: Duration = Duration::from_secs(2);

fn main() -> anyhow::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words[..] {
        [program, path, "cost", sample, events] => {
            let run = Run::new(program, path)?;
            cost(&run, Path::new(sample), events.parse()?)
        }
        [program, path, "latency", key, events, interval_ms] => {
            let run = Run::new(program, path)?;
            let interval = Duration::from_millis(interval_ms.parse()?);
            written(&run, key, events.parse()?, interval)
        }
        [program, path, "calls", events, interval_ms] => {
            let run = Run::new(program, path)?;
            let interval = Duration::from_millis(interval_ms.parse()?);
            called(&run, events.parse()?, interval)
        }
        _ => bail!(
            "usage: bench PROGRAM CONFIG cost SAMPLE EVENTS | latency KEY EVENTS INTERVAL_MS | calls EVENTS INTERVAL_MS"
        ),
    }
}

/// The program and its configuration.
struct Run {
    program: PathBuf,
    path: PathBuf,
    config: Config,
}

/// The program while it runs.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Run {
    fn new(program: &str, path: &str) -> anyhow::Result<Run> {
        let path = PathBuf::from(path);
        Ok(Run {
            program: program.into(),
            config: config::load(&path)?,
            path,
        })
    }

    fn start(&self) -> anyhow::Result<Running> {
        let mut command = Command::new(&self.program);
        command.arg("--config").arg(&self.path).arg("run");
        let child = command.spawn();
        Ok(Running(child.with_context(|| {
            format!("cannot start {}", self.program.display())
        })?))
    }

    /// Number of events that the cursor on disk has as acknowledged.
    fn acknowledged(&self) -> u64 {
        let cursor = CursorFile::read(&self.config.spool_dir().join("cursor"));
        cursor.ok().flatten().map_or(0, |cursor| cursor.events)
    }

    /// Waits until nothing has been acknowledged for two seconds. Returns how many events are.
    fn await_rest(&self) -> anyhow::Result<u64> {
        let end = Instant::now() + DEADLINE;
        loop {
            let before = self.acknowledged();
            std::thread::sleep(REST);
            if before > 0 && self.acknowledged() == before {
                return Ok(before);
            }
            if Instant::now() > end {
                bail!("{before} events are acknowledged after {DEADLINE:?}, and it goes on");
            }
        }
    }

    /// Waits until so many events are acknowledged.
    fn await_acknowledged(&self, events: u64) -> anyhow::Result<()> {
        let end = Instant::now() + DEADLINE;
        while self.acknowledged() < events {
            if Instant::now() > end {
                bail!(
                    "only {} of {events} events are acknowledged after {DEADLINE:?}",
                    self.acknowledged()
                );
            }
            std::thread::sleep(LOOK);
        }
        Ok(())
    }
}

/// Cost of a log that is there before the program starts.
fn cost(run: &Run, sample: &Path, events: u64) -> anyhow::Result<()> {
    let text = std::fs::read(sample).with_context(|| sample.display().to_string())?;
    let mut log = std::io::BufWriter::new(File::create(&run.config.log_file)?);
    let (mut count, mut bytes) = (0, 0);
    while count < events {
        for event in Events::of_whole(&text) {
            log.write_all(event.lines)?;
            count += 1;
            bytes += event.lines.len();
        }
    }
    log.into_inner()?.sync_all()?;
    let begin = Instant::now();
    let running = run.start()?;
    run.await_acknowledged(count)?;
    let took_s = begin.elapsed().as_secs_f64();
    let (user_s, system_s) = processor_s(running.0.id())?;
    println!(
        "{count} events of {} bytes in {took_s:.2} s: {:.0} events/s; processor {:.2} µs per event ({:.2} in the kernel); \
         memory {} MiB",
        bytes as u64 / count,
        count as f64 / took_s,
        (user_s + system_s) * 1e6 / count as f64,
        system_s * 1e6 / count as f64,
        memory_kib(running.0.id())? / 1024,
    );
    Ok(())
}

/// Time from an event's write into the log until its acknowledgement.
fn written(run: &Run, key: &str, events: usize, interval: Duration) -> anyhow::Result<()> {
    let mut log = File::create(&run.config.log_file)?;
    let _running = run.start()?;
    // The first event finds the program ready.
    write_event(&mut log, key, 0)?;
    run.await_acknowledged(1)?;
    let own_key = key.to_owned();
    let waits = waits(run, 1, events, interval, move |number| {
        write_event(&mut log, &own_key, number + 1)
    })?;
    println!("{events} events, key {key}: written to acknowledged, {waits}");
    Ok(())
}

/// Time from a call, which the daemon records, until the acknowledgement of its event.
fn called(run: &Run, events: usize, interval: Duration) -> anyhow::Result<()> {
    let _running = run.start()?;
    call(0)?;
    let before = run.await_rest()?;
    let waits = waits(run, before, events, interval, call)?;
    let after = run.await_rest()?;
    if after != before + events as u64 {
        bail!(
            "{} events instead of {events}: something else was recorded too",
            after - before
        );
    }
    println!("{events} calls: made to acknowledged, {waits}");
    Ok(())
}

/// Makes a call that fails.
fn call(_number: usize) -> std::io::Result<()> {
    match std::fs::remove_dir("/nonexistent") {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
        Ok(()) => Err(std::io::Error::other("/nonexistent was there")),
    }
}

/// Median, 99th percentile and largest of some times.
struct Waits(Vec<Duration>);

impl std::fmt::Display for Waits {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ms = |share: usize| self.0[(self.0.len() - 1) * share / 1000].as_secs_f64() * 1000.0;
        let (median, p99, largest) = (ms(500), ms(990), ms(1000));
        write!(
            f,
            "median {median:.1} ms, p99 {p99:.1} ms, largest {largest:.1} ms"
        )
    }
}

/// Makes events, one each `interval`, while `before` are acknowledged already, and waits for the acknowledgement of each.
fn waits(
    run: &Run,
    before: u64,
    events: usize,
    interval: Duration,
    mut make: impl FnMut(usize) -> std::io::Result<()> + Send + 'static,
) -> anyhow::Result<Waits> {
    let maker = std::thread::spawn(move || -> anyhow::Result<Vec<Instant>> {
        let (begin, mut times) = (Instant::now(), Vec::new());
        for number in 0..events {
            // A prime beside the interval: no step with linger or with looks of the program.
            let due = begin
                + interval * number as u32
                + Duration::from_micros(number as u64 * 7919 % 5000);
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            times.push(Instant::now());
            make(number)?;
        }
        Ok(times)
    });
    let (end, mut seen) = (Instant::now() + DEADLINE, Vec::new());
    while seen.len() < events {
        let (now, count) = (Instant::now(), (run.acknowledged() - before) as usize);
        seen.resize(count.min(events), now);
        if now > end {
            bail!("only {count} of {events} events are acknowledged after {DEADLINE:?}");
        }
        std::thread::sleep(LOOK);
    }
    let times = maker.join();
    let times = times.map_err(|_| anyhow::anyhow!("the maker of events panicked"))??;
    let mut waits: Vec<Duration> = times
        .iter()
        .zip(&seen)
        .map(|(made, seen)| seen.saturating_duration_since(*made))
        .collect();
    waits.sort_unstable();
    Ok(Waits(waits))
}

fn write_event(log: &mut File, key: &str, number: usize) -> std::io::Result<()> {
    let id = format!(
        "msg=audit({}.{:03}:{number})",
        1_795_000_000 + number,
        number % 1000
    );
    let text = format!(
        "type=SYSCALL {id}: arch=c000003e syscall=59 success=yes exit=0 pid={number} comm=\"cat\" key=\"{key}\"\n\
         type=PROCTITLE {id}: proctitle=636174\n"
    );
    log.write_all(text.as_bytes())
}

/// Processor time of a process, in seconds: its own, and in the kernel for it.
fn processor_s(pid: u32) -> anyhow::Result<(f64, f64)> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The name in parentheses may have blanks. utime and stime are fields 14 and 15 of proc_pid_stat(5).
    let (_, rest) = text.rsplit_once(')').context("no name in stat")?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let per_s = rustix::param::clock_ticks_per_second() as f64;
    let ticks = |at: usize| -> anyhow::Result<f64> { Ok(fields[at].parse::<f64>()? / per_s) };
    Ok((ticks(11)?, ticks(12)?))
}

/// Largest resident memory of a process, in KiB.
fn memory_kib(pid: u32) -> anyhow::Result<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let words = line.context("no VmHWM in status")?;
    Ok(words.trim().trim_end_matches(" kB").parse()?)
}
