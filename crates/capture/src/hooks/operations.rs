//! Which operations of io_uring the programs look at.

use super::programs::Programs;
use super::uring::{OperationBits, Uring};
use crate::error::CaptureError;
use plan::Plan;

/// The operations that rules watch, where the kernel lets them be seen.
pub(super) struct Operations {
    pub(super) uring: Option<Uring>,
    /// Operations that the rule set in force watches.
    watched: OperationBits,
    /// Operations that some rule has watched since the start: one of them may still be under way.
    known: OperationBits,
}

impl Operations {
    pub(super) fn new(uring: Option<Uring>) -> Operations {
        Operations {
            uring,
            watched: OperationBits::default(),
            known: OperationBits::default(),
        }
    }

    /// Has the programs look at the operations of `plan`, and at those of the rule set in force besides.
    pub(super) fn watch_too(
        &mut self,
        plan: &Plan,
        programs: &Programs,
    ) -> Result<(), CaptureError> {
        let mut watched = plan.watched_operations();
        for (bits, other) in watched.iter_mut().zip(self.watched) {
            *bits |= other;
        }
        self.set(watched, programs)
    }

    /// Has them look at those of `plan` alone, which is in force.
    pub(super) fn watch(&mut self, plan: &Plan, programs: &Programs) -> Result<(), CaptureError> {
        self.set(plan.watched_operations(), programs)?;
        self.watched = plan.watched_operations();
        Ok(())
    }

    fn set(&mut self, watched: OperationBits, programs: &Programs) -> Result<(), CaptureError> {
        let Some(uring) = &self.uring else {
            return Ok(());
        };
        for (known, bits) in self.known.iter_mut().zip(watched) {
            *known |= bits;
        }
        uring.set_watched(&programs.object, &watched, &self.known)
    }
}
