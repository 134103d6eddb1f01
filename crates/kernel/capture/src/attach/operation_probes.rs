//! Probes on the functions of io_uring operations.

use crate::attach::probes::{to_probe, At, Probes, OPERATION_BEGINS, OPERATION_ENDS};
use crate::attach::programs::Programs;
use crate::attach::uring::{OperationHook, WantedHooks};
use crate::error::CaptureError;
use std::collections::BTreeSet;

/// Probes, with the functions of operations that they are on.
pub(crate) type OperationProbes = Probes<OperationHook>;

/// The functions of wanted operations that need a new link beside those of `armed`.
pub(crate) fn places(
    armed: &[OperationProbes],
    wanted: &WantedHooks<'_>,
) -> BTreeSet<OperationHook> {
    let probed: BTreeSet<OperationHook> = wanted.probed().keys().copied().collect();
    to_probe(armed, &probed)
}

/// Probes these functions of wanted operations, with links of this number.
pub(crate) fn attach(
    programs: &Programs,
    wanted: &WantedHooks<'_>,
    places: BTreeSet<OperationHook>,
    number: u32,
) -> Result<OperationProbes, CaptureError> {
    let what = "probes at functions of io_uring operations";
    let probe = |program, at| {
        let functions = wanted.to_probe(&places, at, number);
        programs.probe(program, &functions, at, number, what)
    };
    let links = vec![
        probe(OPERATION_BEGINS, At::Entry)?,
        probe(OPERATION_ENDS, At::End)?,
    ];
    Ok(Probes {
        links,
        number,
        places,
    })
}
