//! `tarsier plan --profile`: what the rules will cost, from the calls that this host makes or the events of a log.

use crate::search_command::logs::{self, Input};
use abi::record_type::SYSCALL;
use anyhow::{bail, Context, Error, Result};
use capture::{AuditContexts, CallCounter};
use plan::{CallRates, Plan, Prediction};
use query::{Dialect, Event, TimeRange};
use serde::Serialize;
use std::fmt;
use std::path::Path;
use std::time::{Duration, Instant};

/// Calls that are listed; the others are added up.
const LISTED: usize = 10;

/// A prediction, with what it is made from.
#[derive(Debug, Serialize)]
pub(super) struct Profile {
    engine: &'static str,
    /// `live`, or the log.
    of: String,
    /// Seconds for which calls were counted, or from the first event of the log to the last.
    seconds: f64,
    /// Nanoseconds of a call that does nothing, on this host. `None`: this process has an audit context, which makes its
    /// calls slower.
    null_call_ns: Option<f64>,
    #[serde(flatten)]
    told: Told,
}

/// Costs of calls that are made, or of events that are recorded.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case", untagged)]
enum Told {
    Calls(Prediction),
    Events {
        /// Events of calls.
        events: u64,
        /// Percent of a processor, for the calls and the logger together.
        percent: f64,
    },
}

/// Predicts from `of`: `live`, for so many seconds, or a log.
///
/// # Errors
/// Calls cannot be counted, or the log cannot be read or has no time between its events.
pub(super) fn predict(of: &Path, seconds: u32, plan: &Plan, is_kernel: bool) -> Result<Profile> {
    let null_call_ns = match AuditContexts::load().own() {
        Some(true) => None,
        Some(false) | None => Some(null_call_ns()),
    };
    let call_ns = null_call_ns.unwrap_or(plan::NULL_CALL_NS);
    let (seconds, told) = if of == Path::new("live") {
        let (seconds, calls) = count(Duration::from_secs(seconds.into()))?;
        let prediction = plan::predict(plan, &calls, call_ns, is_kernel);
        (seconds, Told::Calls(prediction))
    } else {
        let (seconds, events) = events_of(of)?;
        let ns = plan::EVENT_NS * call_ns / plan::NULL_CALL_NS;
        let percent = events as f64 / seconds * ns / 1e9 * 100.0;
        (seconds, Told::Events { events, percent })
    };

    Ok(Profile {
        engine: if is_kernel { "kernel" } else { plan.engine() },
        of: of.display().to_string(),
        seconds,
        null_call_ns,
        told,
    })
}

/// Least time of getppid(2) in some thousands, in nanoseconds.
fn null_call_ns() -> f64 {
    const CALLS: u32 = 1000;
    let batch = || {
        let begin = Instant::now();
        for _ in 0..CALLS {
            let _ = rustix::process::getppid();
        }
        begin.elapsed().as_nanos() as f64 / f64::from(CALLS)
    };
    (0..50).map(|_| batch()).fold(f64::INFINITY, f64::min)
}

/// Counts the calls that all tasks make meanwhile. Returns the seconds that passed, and calls per second.
fn count(time: Duration) -> Result<(f64, CallRates)> {
    let unable = "cannot count system calls: this needs root, and tracepoints of system calls (CONFIG_FTRACE_SYSCALLS)";
    let counter = CallCounter::attach().context(unable)?;
    let begin = Instant::now();
    std::thread::sleep(time);
    let seconds = begin.elapsed().as_secs_f64();
    let calls = counter.finish().context(unable)?.into_iter();
    let per_s = calls.map(|(call, count)| (call, count as f64 / seconds));
    Ok((seconds, per_s.collect()))
}

/// Seconds from the first event of a log to the last, and how many events of calls it has.
fn events_of(log: &Path) -> Result<(f64, u64)> {
    let defaults = logs::defaults(Dialect::Own)?;
    let input =
        Input::find(&[log.to_owned()], false, &defaults, Dialect::Own).map_err(unreadable)?;
    let mut counted = Counted::default();
    let read = input.each_event(defaults.whole_s, TimeRange::default(), |event| {
        counted.add(event);
    });
    read?.map_err(unreadable)?;
    let (first_ms, last_ms) = counted.range_ms.unwrap_or_default();

    match last_ms.saturating_sub(first_ms) {
        0 => bail!(
            "{}: {} events of calls and no time between them: take a log of some minutes",
            log.display(),
            counted.events
        ),
        ms => Ok((ms as f64 / 1000.0, counted.events)),
    }
}

/// Events of calls, and the times of the first and the last event of any kind.
#[derive(Default)]
struct Counted {
    events: u64,
    range_ms: Option<(u64, u64)>,
}

impl Counted {
    fn add(&mut self, event: &Event) {
        let (sec, ms, _) = event.view().time();
        let at_ms = sec.saturating_mul(1000).saturating_add(ms.into());
        let (first, last) = self.range_ms.unwrap_or((at_ms, at_ms));
        self.range_ms = Some((first.min(at_ms), last.max(at_ms)));
        self.events += u64::from(event.has_kind(SYSCALL, SYSCALL));
    }
}

/// The error of a search's message, which begins with the name of this program.
fn unreadable(message: String) -> Error {
    let text = message.strip_prefix("tarsier: ").unwrap_or(&message);
    Error::msg(text.to_owned())
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "engine      {}", self.engine)?;
        let there = plan::NULL_CALL_NS;
        match self.null_call_ns {
            Some(here) => writeln!(
                f,
                "host        a call that does nothing takes {here:.0} ns; {there:.0} ns on the machine of the prices"
            )?,
            None => writeln!(
                f,
                "host        not measured, since this process has an audit context; a call that does nothing takes \
                 {there:.0} ns\n            on the machine of the prices"
            )?,
        }

        match &self.told {
            Told::Calls(prediction) => write_calls(f, self.seconds, prediction),
            Told::Events { events, percent } => {
                let per_s = *events as f64 / self.seconds;
                writeln!(
                    f,
                    "profile     {}: {events} events of calls in {:.0} s, {per_s:.1} per second",
                    self.of, self.seconds
                )?;
                writeln!(
                    f,
                    "price       {percent:.3} % of a processor, if the rules record as many: in the calls and the logger"
                )
            }
        }
    }
}

fn write_calls(f: &mut fmt::Formatter<'_>, seconds: f64, told: &Prediction) -> fmt::Result {
    writeln!(
        f,
        "profile     {seconds:.1} s: {:.0} calls per second, {:.0} of them watched",
        told.calls_per_s, told.watched_per_s
    )?;
    writeln!(
        f,
        "price       {:.2} % of a processor: {:.2} % in watched calls, {:.2} % in all others",
        told.percent(),
        told.watched_percent,
        told.unwatched_percent
    )?;
    writeln!(
        f,
        "events      not included: {:.4} % for each event per second, in its call and the logger",
        told.event_percent
    )?;
    writeln!(f, "\n  per second   ns each   percent  call")?;
    let (listed, others) = told.calls.split_at(told.calls.len().min(LISTED));
    for call in listed {
        let watched = if call.is_watched { ", watched" } else { "" };
        writeln!(
            f,
            "{:>12.0} {:>9.0} {:>9.3}  {} ({}{watched})",
            call.per_s, call.ns, call.percent, call.name, call.arch
        )?;
    }

    if !others.is_empty() {
        let per_s: f64 = others.iter().map(|call| call.per_s).sum();
        let percent: f64 = others.iter().map(|call| call.percent).sum();
        let count = others.len();
        writeln!(f, "{per_s:>12.0} {:>9} {percent:>9.3}  {count} others", "")?;
    }

    Ok(())
}
