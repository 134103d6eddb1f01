//! Predicts what rules will cost a host, from how often it makes each call.
//!
//! The prices are those of the project's reference machine (bench/results/latency.md; for functions, the instructions of
//! tests/vm/latency-icount at the tracepoints' time per instruction). A host is slower or faster by a factor, for which the
//! time of a system call that does nothing is the measure.

use crate::facts::Entry;
use crate::hooks::{SysExit, PER_SYSCALL_NS, TP_BTF_NS};
use crate::kernel::call_ns;
use crate::plan::Plan;
use abi::ShapeKind;
use serde::Serialize;
use std::collections::BTreeMap;

/// Nanoseconds of getppid(2) on the reference machine, without any hook.
pub const NULL_CALL_NS: f64 = 135.0;

/// Nanoseconds that an event adds to its call, and the processor time of the logger for it.
pub const EVENT_NS: f64 = 2300.0;

/// Nanoseconds that hooks add to a call.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Prices {
    /// Added to a call that no rule names.
    unwatched: f64,
    /// Added to a call that is watched but not selected.
    watched: f64,
    /// Added to a call that is watched and has names, but is not selected.
    named: f64,
}

impl Prices {
    const NONE: Prices = Prices {
        unwatched: 0.0,
        watched: 0.0,
        named: 0.0,
    };
    /// Prices that are the same for all calls.
    fn flat(ns: f64) -> Prices {
        Prices {
            unwatched: ns,
            watched: ns,
            named: ns,
        }
    }

    const TP_BTF: Prices = Prices {
        unwatched: TP_BTF_NS as f64,
        watched: 115.0,
        named: 195.0,
    };
    const PER_SYSCALL: Prices = Prices {
        unwatched: PER_SYSCALL_NS as f64,
        watched: 165.0,
        named: 250.0,
    };
    const FUNCTIONS: Prices = Prices {
        unwatched: 0.0,
        watched: 110.0,
        named: 160.0,
    };
}

/// Calls per second, by entry and number.
pub type CallRates = BTreeMap<(Entry, u32), f64>;

/// Prediction of what the calls of a host will cost.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Prediction {
    /// Calls per second.
    pub calls_per_s: f64,
    /// Calls per second that rules watch.
    pub watched_per_s: f64,
    /// Percent of a processor that unwatched calls pay, which no rule names.
    pub unwatched_percent: f64,
    /// Percent of a processor that watched calls pay, if no rule selects them.
    pub watched_percent: f64,
    /// Percent of a processor for each event per second, its call and the logger together.
    pub event_percent: f64,
    /// The calls that pay most, dearest first.
    pub calls: Vec<CallPrice>,
}

/// Price of one call.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CallPrice {
    /// Name of the call, or its number.
    pub name: String,
    /// Architecture of the entry.
    pub arch: &'static str,
    /// Calls per second.
    pub per_s: f64,
    /// Nanoseconds that each call pays.
    pub ns: f64,
    /// Percent of a processor.
    pub percent: f64,
    /// Whether a rule watches the call.
    pub is_watched: bool,
}

impl Prediction {
    /// Percent of a processor that all calls pay, without events.
    pub fn percent(&self) -> f64 {
        self.unwatched_percent + self.watched_percent
    }
}

/// Predicts the cost of the calls that a host makes at these rates, without the extra cost of selected calls.
///
/// With `is_kernel`, the plan is one for the kernel's own audit, where every call pays for the rules that are tried in
/// turn. The extra cost of calls that rules name is not included.
///
/// `null_call_ns`: nanoseconds of getppid(2) on the host while nothing is attached.
pub fn predict(
    plan: &Plan,
    calls_per_s: &CallRates,
    null_call_ns: f64,
    is_kernel: bool,
) -> Prediction {
    let kernel = is_kernel.then(|| Prices::flat(f64::from(call_ns(plan))));
    let factor = null_call_ns / NULL_CALL_NS;
    let mut calls: Vec<CallPrice> = calls_per_s
        .iter()
        .map(|(&call, &per_s)| {
            let prices = kernel.unwrap_or_else(|| prices(plan, call));
            price(plan, prices, call, per_s, factor)
        })
        .collect();

    let sum = |is_watched: bool, of: fn(&CallPrice) -> f64| -> f64 {
        let those = calls.iter().filter(|call| call.is_watched == is_watched);
        // The sum of nothing is -0.0.
        those.map(of).fold(0.0, |sum, each| sum + each)
    };
    let (unwatched, watched) = (sum(false, |call| call.per_s), sum(true, |call| call.per_s));
    let prediction = Prediction {
        calls_per_s: unwatched + watched,
        watched_per_s: watched,
        unwatched_percent: sum(false, |call| call.percent),
        watched_percent: sum(true, |call| call.percent),
        event_percent: percent(EVENT_NS * factor),
        calls: Vec::new(),
    };

    calls.sort_by(|one, other| other.percent.total_cmp(&one.percent));
    Prediction {
        calls,
        ..prediction
    }
}

/// Percent of a processor that `ns_per_s` nanoseconds per second amount to.
fn percent(ns_per_s: f64) -> f64 {
    ns_per_s / 1e9 * 100.0
}

fn price(plan: &Plan, prices: Prices, call: (Entry, u32), per_s: f64, factor: f64) -> CallPrice {
    let watched = plan.calls.get(&call);
    let ns = match watched {
        // Its hook is another one.
        Some(found) if found.shape.kind == ShapeKind::Exit => prices.unwatched,
        Some(found) if found.shape.paths.iter().any(Option::is_some) => prices.named,
        Some(_) => prices.watched,
        None => prices.unwatched,
    } + f64::from(plan.hooks.entry_ns());

    let ns = ns * factor;
    let arch = plan.entries.arch(call.0);
    let name = arch.and_then(|arch| abi::syscall_name(arch, call.1));
    CallPrice {
        name: name.map_or_else(|| format!("call {}", call.1), str::to_owned),
        arch: arch.map_or("?", abi::Arch::name),
        per_s,
        ns,
        percent: percent(ns * per_s),
        is_watched: watched.is_some(),
    }
}

/// Nanoseconds that the hooks of a plan add to a native call that no rule names, and the most that they add to a call that
/// a rule names and does not select.
pub(crate) fn hook_ns(plan: &Plan) -> (f64, f64) {
    let unnamed = (Entry::Native, u32::MAX);
    let watched = plan
        .calls
        .keys()
        .map(|&call| price(plan, prices(plan, call), call, 0.0, 1.0).ns);
    (prices(plan, unnamed).unwatched, watched.fold(0.0, f64::max))
}

/// Prices of the hook that sees the call.
fn prices(plan: &Plan, call: (Entry, u32)) -> Prices {
    let is_native = call.0 == Entry::Native;
    match &plan.hooks.sys_exit {
        SysExit::None => Prices::NONE,
        SysExit::Every => Prices::TP_BTF,
        SysExit::PerSyscall(_) => Prices::PER_SYSCALL,
        SysExit::Functions { per_syscall, .. } if per_syscall.is_empty() => Prices::FUNCTIONS,
        SysExit::Functions { per_syscall, .. } if is_native && per_syscall.contains(&call.1) => {
            Prices::PER_SYSCALL
        }
        SysExit::Functions { .. } => Prices {
            unwatched: Prices::PER_SYSCALL.unwatched,
            ..Prices::FUNCTIONS
        },
    }
}
