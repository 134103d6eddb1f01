//! Counters that the programs keep: `struct cpu_state` and `struct rule_count` of bpf/shared.h.

use crate::error::{refused, CaptureError};
use libbpf_rs::{Map, MapCore, MapFlags};

/// Causes of loss, in the order of `enum tarsier_loss`.
pub const LOSS_CAUSES: [&str; 5] = ["ring_full", "too_big", "no_memory", "over_share", "busy"];

/// Words of `struct cpu_state`: the first loss, and `waits`, which `serial` and `unread_bound` precede.
const LOST: usize = 3;
const WAITS: usize = LOST + LOSS_CAUSES.len() + 2;

/// What happened since the programs were loaded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Events that reached a ring.
    pub events: u64,
    /// Of those, left to the second stage.
    pub undecided: u64,
    /// Watched calls that were matched against the rules.
    pub evaluated: u64,
    /// Events lost, per CPU and cause ([`LOSS_CAUSES`]).
    pub lost: Vec<[u64; LOSS_CAUSES.len()]>,
    /// Calls that were slowed because the ring of their CPU was filling up.
    pub waits: u64,
    /// By how much, together, nanoseconds.
    pub waited_ns: u64,
    /// Watched calls that a program could not look at, because another task was in the same
    /// program on the same CPU. No rule need have selected them.
    pub missed: u64,
}

impl Counters {
    /// Events lost, all CPUs and causes.
    pub fn lost_total(&self) -> u64 {
        self.lost.iter().flatten().sum::<u64>() + self.missed
    }
}

/// What happened to one rule's events in the first stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RuleCount {
    /// Reached a ring.
    pub selected: u64,
    /// Were lost.
    pub lost: u64,
}

pub(super) fn read(map: &impl MapCore) -> Result<Counters, CaptureError> {
    let mut counters = Counters::default();
    for value in per_cpu(map, 0)? {
        let word = |i| word(&value, i);
        counters.events += word(0);
        counters.undecided += word(1);
        counters.evaluated += word(2);
        counters
            .lost
            .push(std::array::from_fn(|cause| word(LOST + cause)));
        counters.waits += word(WAITS);
        counters.waited_ns += word(WAITS + 1);
    }
    Ok(counters)
}

pub(super) fn read_rules(
    map: &Map<'_>,
    rules: usize,
) -> Result<(Vec<RuleCount>, RuleCount), CaptureError> {
    let count = |slot: u32| -> Result<RuleCount, CaptureError> {
        let cpus = per_cpu(map, slot)?;
        Ok(cpus
            .iter()
            .fold(RuleCount::default(), |sum, value| RuleCount {
                selected: sum.selected + word(value, 0),
                lost: sum.lost + word(value, 1),
            }))
    };
    let by_rule = (1..=rules as u32).map(count).collect::<Result<_, _>>()?;
    Ok((by_rule, count(0)?))
}

fn per_cpu(map: &impl MapCore, slot: u32) -> Result<Vec<Vec<u8>>, CaptureError> {
    let values = map
        .lookup_percpu(&slot.to_ne_bytes(), MapFlags::ANY)
        .map_err(refused("counters"))?;
    Ok(values.unwrap_or_default())
}

fn word(value: &[u8], i: usize) -> u64 {
    value
        .get(i * 8..i * 8 + 8)
        .and_then(|bytes| bytes.try_into().ok())
        .map_or(0, u64::from_ne_bytes)
}
