//! The filters of a thread.

use crate::insn::code;
use crate::{Action, Filter, SeccompData, Verdict};

/// Filters in the order in which they were installed, oldest first. An empty chain allows
/// everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chain {
    filters: Vec<Filter>,
}

/// The result of running a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The verdict that the kernel acts on.
    pub verdict: Verdict,
    /// The filter that decided, counted from the oldest; `None` if no filter was stricter than
    /// ALLOW.
    pub filter: Option<usize>,
    /// Number of instructions run, over all filters.
    pub insns: usize,
}

impl Chain {
    /// A chain of `filters`, oldest first.
    pub fn new(filters: impl Into<Vec<Filter>>) -> Chain {
        Chain {
            filters: filters.into(),
        }
    }

    /// The filters, oldest first.
    pub fn filters(&self) -> &[Filter] {
        &self.filters
    }

    /// Number of instructions of all filters together.
    pub fn insns(&self) -> usize {
        self.filters.iter().map(|filter| filter.insns().len()).sum()
    }

    /// Number of filters in the chain that can ask a supervisor (USER_NOTIF). The kernel allows one
    /// filter of a chain to have a listener; the programs do not show which one.
    pub fn notifying(&self) -> usize {
        let asks = |filter: &&Filter| {
            filter.insns().iter().any(|insn| {
                insn.code == code::RET_K && Verdict(insn.k).action() == Action::UserNotif
            })
        };
        self.filters.iter().filter(asks).count()
    }

    /// The kernel's decision on a call that its bitmap does not allow (kernel/seccomp.c,
    /// `seccomp_run_filters`): every filter runs, newest first, and the strictest verdict wins;
    /// among equally strict ones, that of the newest filter. The data of an ALLOW is dropped.
    pub fn run(&self, data: &SeccompData) -> Decision {
        let mut decision = Decision {
            verdict: Verdict::ALLOW,
            filter: None,
            insns: 0,
        };
        for (index, filter) in self.filters.iter().enumerate().rev() {
            let run = filter.run(data);
            decision.insns += run.insns;
            // Only a strictly stricter one replaces it: among equals the newest filter's stays.
            if run.verdict.order() < decision.verdict.order() {
                decision.verdict = run.verdict;
                decision.filter = Some(index);
            }
        }

        decision
    }
}

impl From<Filter> for Chain {
    fn from(filter: Filter) -> Chain {
        Chain::new(vec![filter])
    }
}
