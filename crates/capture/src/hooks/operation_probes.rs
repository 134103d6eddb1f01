//! Probes on the functions of io_uring operations.

use super::probes::{to_probe, At, CallProbes, Probes, OPERATION_BEGINS, OPERATION_ENDS};
use super::uring::{OperationHook, Wanted};
use super::Hooks;
use crate::error::CaptureError;
use std::collections::BTreeSet;

/// Probes, with the functions of operations that they are on.
pub(super) type OperationProbes = Probes<OperationHook>;

/// Probes the functions of the operations that the plan watches, unless they are probed already. `calls` are the
/// probes attached for the plan's calls.
pub(super) fn probe_operations(
    hooks: &mut Hooks,
    wanted: &Wanted<'_>,
    calls: Option<&CallProbes>,
) -> Result<Option<OperationProbes>, CaptureError> {
    let probed: BTreeSet<OperationHook> = wanted.probed().keys().copied().collect();
    let places = to_probe(&hooks.armed.operation_probes, &probed);
    if places.is_empty() {
        return Ok(None);
    }
    let number = hooks.free_number(calls.map(|calls| calls.number))?;
    let what = "probes at functions of io_uring operations";
    let probe = |program, at| {
        let functions = wanted.to_probe(&places, at, number);
        hooks.programs.probe(program, &functions, at, number, what)
    };
    let links = vec![
        probe(OPERATION_BEGINS, At::Entry)?,
        probe(OPERATION_ENDS, At::End)?,
    ];
    Ok(Some(Probes {
        links,
        number,
        places,
    }))
}
