//! Probes at the functions of io_uring operations.

use super::probes::{to_probe, At, CallProbes, Probes, OPERATION_BEGINS, OPERATION_ENDS};
use super::uring::{OperationHook, Wanted};
use super::EbpfEngine;
use crate::error::CaptureError;
use std::collections::BTreeSet;

/// Probes by what they see of operations.
pub(super) type OperationProbes = Probes<OperationHook>;

impl EbpfEngine {
    /// Probes the functions of the operations that the plan watches, as far as that is missing.
    /// `calls`: what of the same plan has been probed for calls.
    pub(super) fn probe_operations(
        &mut self,
        wanted: &Wanted<'_>,
        calls: Option<&CallProbes>,
    ) -> Result<Option<OperationProbes>, CaptureError> {
        let hooks: BTreeSet<OperationHook> = wanted.probed().keys().copied().collect();
        let places = to_probe(&self.armed.operation_probes, &hooks);
        if places.is_empty() {
            return Ok(None);
        }
        let number = self.free_number(calls.map(|calls| calls.number))?;
        let of = |at| wanted.to_probe(&places, at, number);
        let what = "probes at functions of io_uring operations";
        let links = vec![
            self.probe(OPERATION_BEGINS, &of(At::Entry), At::Entry, number, what)?,
            self.probe(OPERATION_ENDS, &of(At::End), At::End, number, what)?,
        ];
        Ok(Some(Probes {
            links,
            number,
            places,
        }))
    }
}
