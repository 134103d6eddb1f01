//! Counters that the programs keep: `struct cpu_state` and `struct rule_count` of bpf/shared.h.

use crate::error::{refused, CaptureError};
use bpf::shared::{cpu_state, rule_count};
use event::wire;
use libbpf_rs::{Map, MapCore, MapFlags};
use zerocopy::{FromBytes, IntoBytes};

/// Causes of loss, in the order of `enum tarsier_loss`.
pub const LOSS_CAUSES: [&str; wire::TARSIER_LOSS_CAUSES as usize] = {
    let mut names = [""; wire::TARSIER_LOSS_CAUSES as usize];
    names[wire::TARSIER_LOSS_RING_FULL as usize] = "ring_full";
    names[wire::TARSIER_LOSS_TOO_BIG as usize] = "too_big";
    names[wire::TARSIER_LOSS_NO_MEMORY as usize] = "no_memory";
    names[wire::TARSIER_LOSS_OVER_SHARE as usize] = "over_share";
    names[wire::TARSIER_LOSS_BUSY as usize] = "busy";
    names
};

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
    for state in per_cpu::<cpu_state>(map, 0)? {
        counters.events += state.events;
        counters.undecided += state.undecided;
        counters.evaluated += state.evaluated;
        counters.lost.push(state.lost);
        counters.waits += state.waits;
        counters.waited_ns += state.waited_ns;
    }
    Ok(counters)
}

pub(super) fn read_rules(
    map: &Map<'_>,
    rules: usize,
) -> Result<(Vec<RuleCount>, RuleCount), CaptureError> {
    let count = |slot: u32| -> Result<RuleCount, CaptureError> {
        let cpus = per_cpu::<rule_count>(map, slot)?;
        Ok(cpus
            .iter()
            .fold(RuleCount::default(), |sum, count| RuleCount {
                selected: sum.selected + count.selected,
                lost: sum.lost + count.lost,
            }))
    };
    let by_rule = (1..=rules as u32).map(count).collect::<Result<_, _>>()?;
    Ok((by_rule, count(0)?))
}

fn per_cpu<T: FromBytes + IntoBytes>(
    map: &impl MapCore,
    slot: u32,
) -> Result<Vec<T>, CaptureError> {
    let values = map
        .lookup_percpu(slot.as_bytes(), MapFlags::ANY)
        .map_err(refused("counters"))?;
    let values = values.unwrap_or_default();
    Ok(values.iter().map(|value| filled_up(value)).collect())
}

/// A value of a map. Programs of an earlier version, whose capture goes on, may have shorter ones: the rest is 0.
fn filled_up<T: FromBytes + IntoBytes>(value: &[u8]) -> T {
    let mut whole = T::new_zeroed();
    let len = value.len().min(size_of::<T>());
    whole.as_mut_bytes()[..len].copy_from_slice(&value[..len]);
    whole
}
