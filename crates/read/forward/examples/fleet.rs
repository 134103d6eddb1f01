//! Many senders against one server, each with its own connection, series and host, as `scripts/bench-fleet` runs them:
//! `fleet CONFIG SENDERS EVENTS LINGER_MS SECONDS`. Each sender makes a batch of EVENTS events every LINGER_MS,
//! and waits for its acknowledgement. Prints what arrived, and how long acknowledgements took.

use forward::batch::{Batch, Kind, Message};
use forward::config::{self, Config};
use forward::cursor::SinkState;
use forward::position::{Position, Series};
use forward::sink::{self, Sink};
use std::path::Path;
use std::sync::mpsc::{channel, Sender};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Longest that a sender waits for the server before it counts an error and tries again.
const PAUSE: Duration = Duration::from_secs(1);
/// Size of a thread's stack, in bytes.
const STACK_BYTES: usize = 512 * 1024;

/// Results of one sender.
#[derive(Default)]
struct Outcome {
    batches: u64,
    errors: u64,
    first_error: Option<String>,
    /// Time from sending to acknowledgement, in microseconds.
    waits_us: Vec<u32>,
    /// Batches that began later than they should have, because the one before took so long.
    late: u64,
}

#[derive(Clone, Copy)]
struct Plan {
    events: usize,
    linger: Duration,
    end: Instant,
}

fn main() -> anyhow::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [path, senders, events, linger_ms, seconds] = &args[..] else {
        anyhow::bail!("usage: fleet CONFIG SENDERS EVENTS LINGER_MS SECONDS");
    };
    let config = config::load(Path::new(path))?;
    let senders: usize = senders.parse()?;
    let linger = Duration::from_millis(linger_ms.parse()?);
    let duration = Duration::from_secs(seconds.parse()?);
    let start = Instant::now() + linger;
    let plan = Plan {
        events: events.parse()?,
        linger,
        end: start + duration,
    };
    let (done, outcomes) = channel();
    for number in 0..senders {
        let (config, done) = (config.clone(), done.clone());
        // Spread over the time between two batches.
        let first = start + linger.mul_f64(number as f64 / senders as f64);
        thread::Builder::new()
            .stack_size(STACK_BYTES)
            .spawn(move || host(&config, number, first, plan, &done))?;
    }
    drop(done);
    report(outcomes.into_iter().collect(), senders, plan, duration);
    Ok(())
}

/// One host until the end of the run.
fn host(config: &Config, number: usize, first: Instant, plan: Plan, done: &Sender<Outcome>) {
    let mut outcome = Outcome::default();
    let name = format!("host{number:05}");
    let mut state = SinkState::default();
    let mut at = Position {
        file: 1,
        ..Position::default()
    };
    let mut next = first;
    let mut sink = None;
    while next < plan.end {
        thread::sleep(next.saturating_duration_since(Instant::now()));
        let batch = batch(&name, number as u64, at, plan.events);
        let begin = Instant::now();
        match send(config, &name, &mut sink, &batch, &mut state) {
            Ok(()) => {
                outcome.batches += 1;
                outcome.waits_us.push(begin.elapsed().as_micros() as u32);
                at = batch.to();
            }
            Err(error) => {
                outcome.errors += 1;
                outcome.first_error.get_or_insert(error);
                thread::sleep(PAUSE);
            }
        }
        next += plan.linger;
        if next < Instant::now() {
            outcome.late += 1;
            next = Instant::now();
        }
    }
    // The receiver is there until all have said it.
    let _ = done.send(outcome);
}

fn send(
    config: &Config,
    host: &str,
    sink: &mut Option<Box<dyn Sink>>,
    batch: &Batch,
    state: &mut SinkState,
) -> Result<(), String> {
    if sink.is_none() {
        let mut made = sink::open(config, host).map_err(|error| error.to_string())?;
        made.prepare(state).map_err(|error| error.to_string())?;
        *sink = Some(made);
    }
    let Some(sink) = sink else {
        return Ok(());
    };
    let sent = sink.send(batch, state, false);
    sent.map(|_| ()).map_err(|error| error.to_string())
}

/// Events of about 520 bytes, which differ as those of a host do.
fn batch(host: &str, series: u64, from: Position, events: usize) -> Batch {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let ms = now.map_or(0, |now| now.as_millis() as u64);
    let mut batch = Batch {
        series: Series(series),
        host: host.to_owned(),
        content_type: "text/plain",
        messages: Vec::with_capacity(events),
        bytes: Vec::new(),
    };
    let mut at = from;
    for number in 0..events as u64 {
        let serial = at.offset / 521 + number;
        let (pid, inode) = (1000 + serial % 30_000, 400_000 + serial * 7 % 99_991);
        let stamp = format!("audit({}.{:03}:{serial})", ms / 1000, ms % 1000);
        let text = format!(
            "type=SYSCALL msg={stamp}: arch=c000003e syscall=257 success=yes exit=3 a0=ffffff9c a1=7ffe{pid:08x} \
             a2=0 a3=0 items=1 ppid=812 pid={pid} auid=1000 uid=1000 gid=1000 euid=1000 suid=1000 fsuid=1000 \
             egid=1000 sgid=1000 fsgid=1000 tty=pts0 ses=3 comm=\"cat\" exe=\"/usr/bin/cat\" key=\"files\"\n\
             type=PATH msg={stamp}: item=0 name=\"/srv/data/{inode}\" inode={inode} dev=08:01 mode=0100644 \
             ouid=0 ogid=0 rdev=00:00 nametype=NORMAL\n\
             type=PROCTITLE msg={stamp}: proctitle=\"cat\""
        );
        let begin = batch.bytes.len();
        batch.bytes.extend_from_slice(text.as_bytes());
        let to = Position {
            offset: at.offset + text.len() as u64 + 1,
            ..at
        };
        batch.messages.push(Message {
            kind: Kind::Event,
            from: at,
            to,
            events: 1,
            filtered: 0,
            time_ms: ms,
            body: (begin, batch.bytes.len()),
        });
        at = to;
    }
    batch
}

fn report(outcomes: Vec<Outcome>, senders: usize, plan: Plan, duration: Duration) {
    let sum = |of: fn(&Outcome) -> u64| outcomes.iter().map(of).sum::<u64>();
    let (batches, errors, late) = (sum(|o| o.batches), sum(|o| o.errors), sum(|o| o.late));
    let mut waits: Vec<u32> = outcomes
        .iter()
        .flat_map(|o| o.waits_us.iter().copied())
        .collect();
    waits.sort_unstable();
    let at = |share: f64| {
        let place = ((waits.len() as f64 * share) as usize).min(waits.len().saturating_sub(1));
        waits.get(place).map_or(0.0, |us| f64::from(*us) / 1000.0)
    };
    let per_s = |number: u64| number as f64 / duration.as_secs_f64();
    println!(
        "senders {senders}, {} events every {} ms for {} s",
        plan.events,
        plan.linger.as_millis(),
        duration.as_secs()
    );
    println!(
        "acknowledged: {:.0} batches/s, {:.0} events/s; {errors} errors, {late} batches late",
        per_s(batches),
        per_s(batches * plan.events as u64)
    );
    println!(
        "from sending to acknowledgement: p50 {:.1} ms, p99 {:.1} ms, longest {:.1} ms",
        at(0.5),
        at(0.99),
        at(1.0)
    );
    if let Some(error) = outcomes
        .iter()
        .find_map(|outcome| outcome.first_error.as_ref())
    {
        println!("first error: {error}");
    }
}
