//! Counters that the programs keep: `struct cpu_state` and `struct rule_count` of bpf/shared.h.

use crate::error::{system, CaptureError};
use crate::shared::atomic::atomic;
use crate::shared::map_access::MapAccess;
use bpf::load::refused;
use bpf::shared::{cpu_state, rule_count};
use libbpf_rs::{MapCore, MapHandle, MapType, Object};
use record::wire;
use rustix::mm::{mmap, munmap, MapFlags as Mapping, ProtFlags};
use std::collections::BTreeMap;
use std::os::fd::AsFd;
use std::ptr::NonNull;
use std::sync::atomic::Ordering;
use zerocopy::{transmute, FromBytes, IntoBytes};

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

/// Counts since the programs were loaded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Events that reached a ring.
    pub events: u64,
    /// Events in a ring that the second stage has to decide.
    pub undecided: u64,
    /// Watched calls that were matched against the rules.
    pub evaluated: u64,
    /// Events lost, per CPU and cause ([`LOSS_CAUSES`]).
    pub lost: Vec<[u64; LOSS_CAUSES.len()]>,
    /// Events over the budget of their rule, which are not recorded.
    pub suppressed: u64,
    /// Calls that were slowed because the ring of their CPU was filling up.
    pub waits: u64,
    /// Total time of those waits, in nanoseconds.
    pub waited_ns: u64,
    /// Frames that tell of cgroups and found no room in their ring.
    pub cgroups_lost: u64,
    /// Changes of processes that the daemon was not told of.
    pub processes_lost: u64,
    /// Watched calls that a program could not handle because another task was in the same program on the same CPU.
    /// No rule need have selected them.
    pub missed: u64,
}

impl Counters {
    /// Number of events and of changes of processes that no frame tells of.
    pub fn untold(&self) -> u64 {
        self.lost_total() + self.suppressed + self.processes_lost
    }

    /// Number of events lost, over all CPUs and causes, plus the missed calls.
    pub fn lost_total(&self) -> u64 {
        self.lost.iter().flatten().sum::<u64>() + self.missed
    }
}

/// Counts of one rule's events in the first stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RuleCount {
    /// Number of events that reached a ring.
    pub selected: u64,
    /// Number of events lost.
    pub lost: u64,
    /// Number of events over the rule's budget, which are not recorded.
    pub suppressed: u64,
}

impl FromIterator<cpu_state> for Counters {
    fn from_iter<T: IntoIterator<Item = cpu_state>>(states: T) -> Counters {
        let mut counters = Counters::default();
        for state in states {
            counters.events += state.events;
            counters.undecided += state.undecided;
            counters.evaluated += state.evaluated;
            counters.lost.push(state.lost);
            counters.suppressed += state.suppressed;
            counters.waits += state.waits;
            counters.waited_ns += state.waited_ns;
            counters.cgroups_lost += state.cgroups_lost;
            counters.processes_lost += state.processes_lost;
        }
        counters
    }
}

/// The maps that the programs count in.
pub(crate) struct Counts {
    cpus: CpuStates,
    rules: MapHandle,
    lost_by_uid: MapHandle,
}

impl Counts {
    /// Opens the maps of `object`, which has counters for `cpus` CPUs.
    pub(crate) fn open(object: &Object, cpus: usize) -> Result<Counts, CaptureError> {
        Ok(Counts {
            cpus: CpuStates::map(object, cpus)?,
            rules: handle(object, "rule_counts")?,
            lost_by_uid: handle(object, "lost_by_uid")?,
        })
    }

    /// Number of CPUs that have counters.
    pub(crate) fn cpus(&self) -> usize {
        self.cpus.cpus
    }

    /// The sums over all CPUs, without the missed calls.
    pub(crate) fn read(&self) -> Counters {
        self.cpus.read()
    }

    /// Whether this is the number of the last canary call that was seen on some CPU.
    pub(crate) fn has_canary(&self, number: u64) -> bool {
        self.cpus.has_canary(number)
    }

    /// Counts of the first `rules` rules, and counts of undecided events.
    pub(crate) fn of_rules(
        &self,
        rules: usize,
    ) -> Result<(Vec<RuleCount>, RuleCount), CaptureError> {
        read_rules(&self.rules, rules)
    }

    /// Events lost, by real uid of the task.
    pub(crate) fn of_uids(&self) -> Result<BTreeMap<u32, u64>, CaptureError> {
        read_uids(&self.lost_by_uid)
    }
}

/// A handle of the object's map with this name, which lives as long as it is held.
pub(crate) fn handle(object: &Object, name: &str) -> Result<MapHandle, CaptureError> {
    let map = object.maps().find(|map| map.name() == name);
    let map = map.ok_or_else(|| crate::error::missing(name))?;
    Ok(MapHandle::try_from(&map).map_err(refused(format!("map {name}")))?)
}

/// Number of words of one CPU's counters.
const WORDS: usize = size_of::<cpu_state>() / size_of::<u64>();

/// `cpu_states` of bpf/maps.h, mapped: reading values through the kernel would keep probes from running meanwhile.
struct CpuStates {
    first: NonNull<[u64; WORDS]>,
    cpus: usize,
}

// SAFETY: the pointer is to memory that this value alone maps and unmaps, and that is used by atomics.
unsafe impl Send for CpuStates {}

impl CpuStates {
    /// Maps the counters of `cpus` CPUs.
    fn map(object: &Object, cpus: usize) -> Result<CpuStates, CaptureError> {
        let map = object.maps().find(|map| map.name() == "cpu_states");
        let map = map.ok_or_else(|| crate::error::missing("cpu_states"))?;

        let has_all = map.max_entries() as usize >= cpus;
        if !has_all || map.value_size() as usize != size_of::<cpu_state>() {
            return Err(crate::error::missing("cpu_states of the expected size"));
        }
        // SAFETY: a new mapping; nothing existing is replaced.
        let first = unsafe {
            mmap(
                std::ptr::null_mut(),
                len_of(cpus),
                ProtFlags::READ,
                Mapping::SHARED,
                map.as_fd(),
                0,
            )
        }
        .map_err(system("mmap of the counters"))?;

        let first =
            NonNull::new(first.cast()).ok_or_else(|| crate::error::missing("cpu_states"))?;
        Ok(CpuStates { first, cpus })
    }

    /// The sums over all CPUs.
    fn read(&self) -> Counters {
        (0..self.cpus).map(|cpu| self.of(cpu)).collect()
    }

    /// Whether this is the number of the last canary call that was seen on some CPU.
    fn has_canary(&self, number: u64) -> bool {
        (0..self.cpus).any(|cpu| self.of(cpu).canary == number)
    }

    fn of(&self, cpu: usize) -> cpu_state {
        // SAFETY: `cpu` is below the number of those that are mapped, as long as `self` lives.
        let words = unsafe { atomic(self.first.as_ptr().add(cpu)) };
        transmute!(words.each_ref().map(|word| word.load(Ordering::Relaxed)))
    }
}

impl Drop for CpuStates {
    fn drop(&mut self) {
        // SAFETY: unmaps exactly what `map` mapped; no reference outlives `self`.
        let _ = unsafe { munmap(self.first.as_ptr().cast(), len_of(self.cpus)) };
    }
}

/// Size of the mapping for `cpus` CPUs, in bytes.
fn len_of(cpus: usize) -> usize {
    (cpus * size_of::<cpu_state>()).next_multiple_of(rustix::param::page_size())
}

/// Reads the counters of an earlier daemon's programs.
pub(crate) fn read_left(map: &impl MapCore) -> Result<Counters, CaptureError> {
    // Versions before this one kept them in a per-CPU array.
    if map.map_type() == MapType::PercpuArray {
        return Ok(per_cpu::<cpu_state>(map, 0)?.into_iter().collect());
    }
    let of = |cpu: u32| {
        let value = map.get(cpu.as_bytes());
        let value = value.map_err(refused("counters"))?;
        Ok(filled_up(&value.unwrap_or_default()))
    };
    (0..map.max_entries()).map(of).collect()
}

fn read_rules(
    map: &impl MapCore,
    rules: usize,
) -> Result<(Vec<RuleCount>, RuleCount), CaptureError> {
    let count = |slot: u32| -> Result<RuleCount, CaptureError> {
        let cpus = per_cpu::<rule_count>(map, slot)?;
        Ok(cpus
            .iter()
            .fold(RuleCount::default(), |sum, count| RuleCount {
                selected: sum.selected + count.selected,
                lost: sum.lost + count.lost,
                suppressed: sum.suppressed + count.suppressed,
            }))
    };
    let by_rule = (1..=rules as u32).map(count).collect::<Result<_, _>>()?;
    Ok((by_rule, count(0)?))
}

/// Events lost, by real uid of the task.
fn read_uids(map: &impl MapCore) -> Result<BTreeMap<u32, u64>, CaptureError> {
    // Not one by one: how many there are is up to users.
    let counts = map.contents().map_err(refused("counters"))?;
    let counts = counts
        .iter()
        .map(|(key, value)| (filled_up(key), filled_up(value)));
    Ok(counts.collect())
}

fn per_cpu<T: FromBytes + IntoBytes>(
    map: &impl MapCore,
    slot: u32,
) -> Result<Vec<T>, CaptureError> {
    let values = map
        .get_per_cpu(slot.as_bytes())
        .map_err(refused("counters"))?;
    let values = values.unwrap_or_default();
    Ok(values.iter().map(|value| filled_up(value)).collect())
}

/// A value of a map. Programs of an earlier version, whose capture goes on, may have shorter values: the rest is
/// 0.
fn filled_up<T: FromBytes + IntoBytes>(value: &[u8]) -> T {
    let mut whole = T::new_zeroed();
    let len = value.len().min(size_of::<T>());
    whole.as_mut_bytes()[..len].copy_from_slice(&value[..len]);
    whole
}
