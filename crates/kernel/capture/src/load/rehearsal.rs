//! Loads what an engine for a plan would load, and attaches nothing, so that the kernel can be asked how much memory it
//! takes.

use crate::attach::gates;
use crate::attach::trampoline::Trampolines;
use crate::check::canary;
use crate::error::missing;
use crate::error::CaptureError;
use crate::in_force::hooks::make_table;
use crate::kernel::syscall_functions::Functions;
use crate::load::options::CaptureOptions;
use crate::load::{self, object};
use crate::rings::Ring;
use crate::shared::map_access::MapAccess;
use bpf::load::refused;
use libbpf_rs::{MapCore, MapHandle, Object};
use plan::Plan;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

/// Programs and maps in the kernel that see nothing. Dropping it removes them.
pub struct Rehearsal {
    _object: Object,
    _rings: Vec<Ring>,
    _table: MapHandle,
    /// Programs for the functions that the plan hooks.
    _gates: Vec<OwnedFd>,
}

impl Rehearsal {
    /// Loads the programs for `plan`, and makes its match tables and its rings.
    ///
    /// # Errors
    /// The kernel refuses something, or this process is not root.
    pub fn of(plan: &Plan, options: &CaptureOptions) -> Result<Rehearsal, CaptureError> {
        let cpus = libbpf_rs::num_possible_cpus().map_err(refused("number of CPUs"))?;
        let form = plan.form();
        let gaps = object::gaps_that_leave_enough(form)?;

        let (functions, uring) = object::what_can_be_hooked(form);
        let object::LoadedPrograms { object, .. } =
            object::load(cpus, plan, functions, uring.as_ref(), None)
                .map_err(|error| object::without(&gaps, error))?;
        let rings = object::make_rings(&object, cpus, options)?;

        let table = make_table(&plan.rows)?;
        let tables = object.maps().find(|map| map.name() == "tables");
        let fd = table.as_fd().as_raw_fd() as u32;
        tables
            .ok_or_else(|| missing("tables"))?
            .put(&0u32.to_ne_bytes(), &fd.to_ne_bytes())
            .map_err(refused("match tables"))?;

        let gates = match functions {
            Some(functions) => load_gates(&object, plan, functions)?,
            None => Vec::new(),
        };
        load::forget();
        Ok(Rehearsal {
            _object: object,
            _rings: rings,
            _table: table,
            _gates: gates,
        })
    }
}

/// Loads a program for each function that the plan hooks. Functions for which the kernel takes none are left out.
fn load_gates(
    object: &Object,
    plan: &Plan,
    functions: &Functions,
) -> Result<Vec<OwnedFd>, CaptureError> {
    let trampolines = Trampolines::new(object, None)?;

    let calls = canary::functions(plan);
    let places = calls.iter().flat_map(|&call| functions.of(call));
    let mut places: Vec<usize> = places.copied().collect();
    places.sort_unstable();
    places.dedup();

    let gates = gates::of(plan);
    let load = |place: &usize| {
        let gate = gates.get(place).and_then(Option::as_ref);
        trampolines.load(&functions.all[*place], gate).ok()
    };
    Ok(places.iter().filter_map(load).collect())
}
