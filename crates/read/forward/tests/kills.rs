//! kill -9 of sender, server and both, at numbered events: nothing is lost, and nothing is there
//! twice.
//!
//! A server that is away is caught up with: `TARSIER_FORWARD_AWAY_S` says for how many seconds, 2 by
//! default. `TARSIER_FORWARD_KILLS=N` makes N kills of each kind, at 20,000 events a second; by default few, at
//! 2,000.

mod common;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use common::{Config, Log, Program};
use testkit::servers::Collector;
use testkit::servers::Engine;
use testkit::servers::Kafka;
use testkit::servers::Nats;

const EVENTS_PER_TICK_MOST: usize = 200;
const TICK: Duration = Duration::from_millis(10);
const TICKS_PER_FILE: usize = 150;

/// Time for what piled up while servers started.
const CATCH_UP: Duration = Duration::from_secs(600);

/// Whether the long form is asked for.
fn is_long() -> bool {
    std::env::var_os("TARSIER_FORWARD_KILLS").is_some()
}

/// Writes numbered events, over rotations, until told to stop.
fn write_events(log: &Log, written: &AtomicUsize, is_done: &AtomicBool) {
    let per_tick = if is_long() {
        EVENTS_PER_TICK_MOST
    } else {
        EVENTS_PER_TICK_MOST / 10
    };
    let begin = Instant::now();
    let mut tick = 0;
    while !is_done.load(Ordering::Relaxed) {
        let next = written.load(Ordering::Relaxed);
        log.append(next..next + per_tick);
        written.store(next + per_tick, Ordering::Relaxed);
        tick += 1;
        if tick % TICKS_PER_FILE == 0 {
            log.rotate();
        }
        let due = begin + TICK * tick as u32;
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
    }
}

/// Ends [`write_events`] when it is dropped, also if the test fails.
struct Ending<'a>(&'a AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Largest number of kills of each kind before a new server begins: its stored messages have to fit into memory.
const ROUND_KILLS: usize = 10;

/// Size of a batch, before compression: the default of `batch_bytes`.
const BATCH_BYTES: usize = 1 << 20;

/// Process to kill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Victim {
    Sender,
    Server,
    Both,
}

fn kills(default: usize) -> usize {
    let asked = std::env::var("TARSIER_FORWARD_KILLS").ok();
    asked.and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Number of events that the sender's cursor says are acknowledged.
fn acknowledged(log: &Log) -> usize {
    let cursor = forward::cursor::CursorFile::read(&log.dir().join("forward/cursor"));
    cursor
        .ok()
        .flatten()
        .map_or(0, |cursor| cursor.events as usize)
}

/// Kills, and returns what is stored and how many events were written.
fn survives(engine: &mut dyn Engine, count: usize) -> (Vec<usize>, usize, String) {
    let log = Log::new();
    let config = Config::new(&log, &(engine.settings() + "linger = 20ms\n"));
    let (written, is_done) = (AtomicUsize::new(0), AtomicBool::new(false));
    let mut sender = Program::start(&config);
    std::thread::scope(|scope| {
        let _ending = Ending(&is_done);
        scope.spawn(|| write_events(&log, &written, &is_done));
        for number in 0..count * 3 {
            let victim = [Victim::Sender, Victim::Server, Victim::Both][number % 3];
            // After some more were acknowledged; where in a batch is left to chance.
            let target = acknowledged(&log) + 1000 + number * 7919 % 5000;
            common::await_that("events are acknowledged", || acknowledged(&log) >= target);
            std::thread::sleep(Duration::from_micros(number as u64 * 977 % 20_000));
            if victim != Victim::Sender {
                engine.kill();
            }
            if victim != Victim::Server {
                sender.kill();
            }
            if victim != Victim::Sender {
                engine.start();
            }
            if victim != Victim::Server {
                sender = Program::start(&config);
            }
        }
    });
    let written = written.load(Ordering::Relaxed);
    common::await_for(CATCH_UP, "everything is acknowledged", || {
        acknowledged(&log) >= written
    });
    sender.stop();
    let stored = engine.stored();
    let numbers = common::numbers_of(&stored);
    println!(
        "{} kills, {written} events written, {} stored",
        count * 3,
        numbers.len()
    );
    (numbers, written, stored)
}

/// Kills `count` times, each round with an engine of its own. `new`: `None` if the engine is not there.
fn exactly_once<E: Engine>(count: usize, new: impl Fn() -> Option<E>) {
    let (mut left, mut events) = (count, 0);
    while left > 0 {
        let Some(mut engine) = new() else {
            return;
        };
        let kills = left.min(ROUND_KILLS);
        let (numbers, written, stored) = survives(&mut engine, kills);
        common::assert_exactly_once(&numbers, written);
        common::assert_stored_is_chained(&stored);
        (left, events) = (left - kills, events + written);
    }
    println!("{count} kills of each kind, {events} events: none lost, none twice");
}

#[test]
fn kafka_has_every_event_once() {
    if !is_long() {
        println!("skipped: kills with Kafka: it takes a minute; set TARSIER_FORWARD_KILLS=1");
        return;
    }
    exactly_once(kills(1), Kafka::new);
}

#[test]
fn nats_has_every_event_once() {
    exactly_once(kills(2), Nats::new);
}

/// Number of events that a collector has twice. Each must have one id only, which tells that it is the same.
fn repeated(stored: &str) -> usize {
    let (mut ids, mut id, mut twice) = (HashMap::new(), "", 0);
    for line in stored.lines() {
        if line.starts_with("from=") {
            id = line.rsplit_once(" uid=").expect("an id").1;
        } else if let Some(number) = common::number_of(line) {
            if let Some(before) = ids.insert(number, id) {
                assert_eq!(before, id, "event {number} has two ids");
                twice += 1;
            }
        }
    }
    twice
}

#[test]
fn a_collector_has_every_event() {
    let (mut left, mut events, mut twice) = (kills(1), 0, 0);
    while left > 0 {
        let Some(mut collector) = Collector::new() else {
            return;
        };
        let kills = left.min(ROUND_KILLS);
        let (mut numbers, written, stored) = survives(&mut collector, kills);
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), written);
        let repeated = repeated(&stored);
        let most = BATCH_BYTES / common::event(0).len() * kills * 3;
        assert!(
            repeated <= most,
            "{repeated} events twice, more than a batch for each kill: {most}"
        );
        (left, events, twice) = (left - kills, events + written, twice + repeated);
    }
    println!("{events} events: none lost, {twice} twice");
}

/// Stops a server while events go on, starts it again, and waits until it has all of them, each once.
fn catches_up(engine: &mut dyn Engine) {
    let away = std::env::var("TARSIER_FORWARD_AWAY_S").ok();
    let away_s = away.and_then(|text| text.parse().ok()).unwrap_or(2);
    let log = Log::new();
    let config = Config::new(&log, &(engine.settings() + "linger = 20ms\n"));
    let (written, is_done) = (AtomicUsize::new(0), AtomicBool::new(false));
    let sender = Program::start(&config);
    let back = std::thread::scope(|scope| {
        let ending = Ending(&is_done);
        scope.spawn(|| write_events(&log, &written, &is_done));
        common::await_that("events are acknowledged", || acknowledged(&log) > 1000);
        engine.kill();
        std::thread::sleep(Duration::from_secs(away_s));
        drop(ending);
        engine.start();
        Instant::now()
    });
    let written = written.load(Ordering::Relaxed);
    common::await_for(CATCH_UP, "everything is acknowledged", || {
        acknowledged(&log) >= written
    });
    println!(
        "{away_s} s away, {written} events, caught up with in {:.1} s",
        back.elapsed().as_secs_f64()
    );
    sender.stop();
    let stored = engine.stored();
    common::assert_exactly_once(&common::numbers_of(&stored), written);
    common::assert_stored_is_chained(&stored);
}

#[test]
fn nats_that_was_away_is_caught_up_with() {
    if let Some(mut nats) = Nats::new() {
        catches_up(&mut nats);
    }
}

#[test]
fn kafka_that_was_away_is_caught_up_with() {
    if !is_long() {
        println!("skipped: Kafka that was away: it takes a minute; set TARSIER_FORWARD_KILLS=1");
        return;
    }
    if let Some(mut kafka) = Kafka::new() {
        catches_up(&mut kafka);
    }
}
