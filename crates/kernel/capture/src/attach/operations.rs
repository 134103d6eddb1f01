//! The io_uring operations that the programs handle.

use crate::attach::programs::Programs;
use crate::attach::uring::{OperationBits, Uring};
use crate::error::CaptureError;
use plan::Plan;

/// The operations that rules watch, if the kernel allows them to be seen.
pub(crate) struct Operations {
    pub(crate) uring: Option<Uring>,
    /// Operations that the current rule set watches.
    watched: OperationBits,
    /// Operations that any rule set has watched since the start: one of them may still be running.
    known: OperationBits,
}

impl Operations {
    pub(crate) fn new(uring: Option<Uring>) -> Operations {
        Operations {
            uring,
            watched: OperationBits::default(),
            known: OperationBits::default(),
        }
    }

    /// Makes the programs handle the operations of `plan` in addition to those of the current rule set.
    pub(crate) fn watch_too(
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

    /// Makes the programs handle only the operations of `plan`, which is now in force.
    pub(crate) fn watch(&mut self, plan: &Plan, programs: &Programs) -> Result<(), CaptureError> {
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
