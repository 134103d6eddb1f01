//! The filters of a thread.

use crate::{Filter, SeccompData, Verdict};

/// Filters in the order in which they were installed, oldest first. May be empty: then everything
/// is allowed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chain {
    pub(crate) filters: Vec<Filter>,
}

/// What a chain answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// What the kernel acts on.
    pub verdict: Verdict,
    /// The filter that decided, counted from the oldest; `None` if none was stricter than ALLOW.
    pub filter: Option<usize>,
    /// Instructions of all filters together.
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

    /// Instructions of all filters together.
    pub fn insns(&self) -> usize {
        self.filters.iter().map(|filter| filter.insns().len()).sum()
    }

    /// What the kernel does with a call that its bitmap does not allow (kernel/seccomp.c,
    /// `seccomp_run_filters`): every filter runs, newest first, and the strictest verdict wins;
    /// of equally strict ones the newest filter's. Data of an ALLOW is dropped.
    pub fn run(&self, data: &SeccompData) -> Decision {
        let mut decision = Decision {
            verdict: Verdict::ALLOW,
            filter: None,
            insns: 0,
        };
        for (index, filter) in self.filters.iter().enumerate().rev() {
            let run = filter.run(data);
            decision.insns += run.insns;
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
