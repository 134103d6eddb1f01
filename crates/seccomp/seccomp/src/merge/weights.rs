//! Frequencies of the calls that reach a filter. They determine how near the root of the filter's
//! tree a call is placed.

use crate::compile::Frequencies;
use crate::policy::Abi;
use abi::Arch;
use std::collections::BTreeMap;

/// Frequencies of calls, in any unit. Calls that are not listed have the frequency `rest`.
#[derive(Clone, Debug, PartialEq)]
pub struct Weights {
    calls: BTreeMap<(u32, u32), f64>,
    rest: f64,
}

impl Default for Weights {
    /// The same frequency for all calls.
    fn default() -> Weights {
        Weights {
            calls: BTreeMap::new(),
            rest: 1.0,
        }
    }
}

impl Weights {
    /// Frequencies by architecture (AUDIT_ARCH) and number; every other call has `rest`.
    pub fn new(calls: impl IntoIterator<Item = ((u32, u32), f64)>, rest: f64) -> Weights {
        Weights {
            calls: calls.into_iter().collect(),
            rest,
        }
    }

    /// Frequencies of an ordinary mixture of programs; a call that it never makes counts as 10 per
    /// million.
    pub fn usual() -> Weights {
        const REST: f64 = 10.0;
        let frequencies = Frequencies::usual();
        let calls = Abi::EVERY.into_iter().filter(|abi| *abi != Abi::X32);
        let calls = calls.flat_map(|abi| {
            let weight = |nr| frequencies.of(abi, nr).max(REST);
            let calls = abi
                .calls()
                .map(|(nr, _)| ((abi.audit_arch(), nr), weight(nr)));
            calls.collect::<Vec<_>>()
        });
        Weights::new(calls, REST)
    }

    /// Frequency of the calls from `first` to `last`. Calls that are always allowed are answered
    /// from the kernel's bitmap and never reach the filter.
    pub(super) fn of_calls(&self, arch: u32, first: u32, last: u32, allowed: bool) -> f64 {
        if allowed {
            return 0.0;
        }
        let Some(known) = Arch::from_audit_arch(arch) else {
            return 0.0;
        };
        abi::syscalls(known)
            .map(|(nr, _)| nr)
            .filter(|nr| (first..=last).contains(nr))
            .map(|nr| self.calls.get(&(arch, nr)).copied().unwrap_or(self.rest))
            .sum()
    }

    /// Frequency of the architectures from `first` to `last`: 64-bit ones are used most.
    pub(super) fn of_arch(&self, first: u32, last: u32) -> f64 {
        Arch::EVERY
            .into_iter()
            .filter(|arch| (first..=last).contains(&arch.audit_arch()))
            .map(|arch| if arch.is_64bit() { 10.0 } else { 1.0 })
            .sum()
    }
}
