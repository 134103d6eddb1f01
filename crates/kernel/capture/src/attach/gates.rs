//! Gates of the hooked functions: see `plan::Gate` and `bpf/gate.h`.

use crate::attach::trampoline::{Hook, Trampolines};
use crate::check::canary;
use crate::kernel::syscall_functions;
use plan::{Gate, ObjectClass, Plan};
use std::collections::BTreeMap;

/// Gates by index in the kernel's functions; `None` lets every call pass.
pub(crate) type Gates = BTreeMap<usize, Option<Gate>>;

/// The gate of each hooked function, if all calls of the function have the same one. Gates on the result are left
/// out for calls with notes of objects: such notes must be closed when the call ends, whatever its result, so that
/// the next equal call does not get them. An open begins its note anew. Gates on the workload are left out, too: what
/// the function calls tests them.
pub(crate) fn of(plan: &Plan) -> Gates {
    let mut gates = BTreeMap::new();
    let Some(functions) = syscall_functions::of_this_kernel() else {
        return gates;
    };

    let classes = plan.object_classes();
    for call in canary::functions(plan) {
        const OPENS: [u8; 2] = [ObjectClass::Open as u8, ObjectClass::OpenChanges as u8];
        let has_objects = |class: &u8| *class != 0 && !OPENS.contains(class);

        let classes = classes.get(call.0 as usize);
        let has_objects = classes
            .and_then(|classes| classes.get(call.1 as usize))
            .is_some_and(has_objects);
        let gate = canary::gate(plan, call)
            .filter(|gate| !(gate.asks_workload() || has_objects && gate.asks_result()));

        // Several calls may have one function: it is gated only if they agree.
        for &place in functions.of(call) {
            gates
                .entry(place)
                .and_modify(|agreed: &mut Option<Gate>| {
                    if *agreed != gate {
                        *agreed = None;
                    }
                })
                .or_insert(gate);
        }
    }
    gates
}

/// Opens the gates of these hooks that are to change to `gates`.
pub(crate) fn open(trampolines: &Trampolines, hooks: &BTreeMap<usize, Hook>, gates: &Gates) {
    for (hook, gate) in gated(hooks, gates) {
        trampolines.open_unless(hook, gate);
    }
}

/// Sets the gates of these hooks to `gates`.
pub(crate) fn close(trampolines: &Trampolines, hooks: &BTreeMap<usize, Hook>, gates: &Gates) {
    for (hook, gate) in gated(hooks, gates) {
        trampolines.close(hook, gate);
    }
}

/// The hooks for whose functions there is a gate, with it.
fn gated<'a>(
    hooks: &'a BTreeMap<usize, Hook>,
    gates: &'a Gates,
) -> impl Iterator<Item = (&'a Hook, Option<&'a Gate>)> {
    let hooks = hooks.iter();
    hooks.filter_map(|(place, hook)| Some((hook, gates.get(place)?.as_ref())))
}
