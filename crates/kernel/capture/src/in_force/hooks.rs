//! The hooks in force, with what is needed to change them, and how one rule set replaces another without a gap.

use crate::attach::armed::Armed;
use crate::attach::detach_queue::DetachQueue;
use crate::attach::gates::{self, Gates};
use crate::attach::operation_probes::OperationProbes;
use crate::attach::operations::Operations;
use crate::attach::probes::CallProbes;
use crate::attach::programs::Programs;
use crate::attach::trampoline::{Hook, Trampolines};
use crate::attach::vfs_hooks::VfsHooks;
use crate::check::canary;
use crate::check::integrity::{Breach, Integrity, Read};
use crate::error::CaptureError;
use crate::in_force::hook_change::HookChange;
use crate::load::map_options::map_options;
use crate::load::needs::Needs;
use crate::load::{self, object};
use crate::pins::Attached;
use crate::shared::control::{self, Control};
use crate::shared::map_access::MapAccess;
use crate::shared::process_classes;
use crate::shared::workloads;
use bpf::load::refused;
use libbpf_rs::libbpf_sys::BPF_F_MMAPABLE;
use libbpf_rs::{MapHandle, MapType};
use plan::{tables, Plan, SysExit};
use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;

/// Limit of loading more programs, as each time keeps descriptors of all maps: the last time, all are loaded.
const MORE_MAX: usize = 2;

/// The hooks in force, with the programs and queues needed to change them.
pub(crate) struct Hooks {
    pub(crate) programs: Programs,
    pub(crate) control: Arc<Control>,
    pub(crate) vfs: VfsHooks,
    pub(crate) armed: Armed,
    pub(crate) detach_queue: DetachQueue,
    pub(crate) trampolines: Option<Trampolines>,
    pub(crate) operations: Operations,
    /// Number of calls missed by probes that are gone.
    missed_by_probes: u64,
    integrity: Integrity,
}

impl Hooks {
    /// Starts without hooks.
    pub(crate) fn new(
        programs: Programs,
        control: Arc<Control>,
        vfs: VfsHooks,
        operations: Operations,
        trampolines: Option<Trampolines>,
    ) -> Result<Hooks, CaptureError> {
        Ok(Hooks {
            integrity: Integrity::new(&programs)?,
            programs,
            control,
            vfs,
            operations,
            trampolines,
            armed: Armed::default(),
            detach_queue: DetachQueue::default(),
            missed_by_probes: 0,
        })
    }

    /// See [`crate::in_force::engine::EbpfEngine::replace`].
    pub(crate) fn replace(&mut self, plan: &Plan) -> Result<HookChange, CaptureError> {
        let table = make_table(&plan.rows)?;

        // Values that others have changed are restored first: `note` below takes what it finds as right.
        self.integrity
            .mend(read(&self.control, &self.trampolines, &self.programs));

        // A hook that is being detached must be gone, or be taken back, before its function is hooked: two
        // hooks would record each call twice.
        self.detach_queue.recall(self.trampolines.as_mut());
        let before = self.count();

        // New hooks first: until the swap no table has rules for their calls, so they select nothing.
        self.load_for(plan)?;
        self.arm(plan)?;
        self.arm_objects(plan)?;
        self.vfs.set_calls(&self.programs.object, plan)?;

        // Gates open before the swap: the old ones may stop what the new rules ask for.
        let gates = gates::of(plan);
        self.each_gate(&gates, gates::open);

        // The bits and links of both rule sets: the old rules see their calls until the swap, the new ones from then on.
        let watched = canary::watched(plan);
        self.control.add_watched(&watched);
        self.switch_probes();
        self.operations.watch_too(plan, &self.programs)?;
        let fd = table.as_fd().as_raw_fd() as u32;
        let tables = self.programs.map("tables")?;

        // The names and labels of both rule sets are there until the swap, as the old tables still ask for
        // theirs.
        let names = &plan.workloads;
        let has_other_names = self.control.workload_epoch() != names.epoch();
        process_classes::announce(plan, has_other_names, &self.programs)?;
        let epoch = workloads::announce(names, &self.programs, &self.control)?;

        // The swap: one write of one slot. Every call sees the old tables or the new ones, never both.
        let put = tables.put(&0u32.to_ne_bytes(), &fd.to_ne_bytes());
        put.map_err(refused("match tables"))
            .inspect_err(|_| self.control.set_workload_epoch(epoch))?;

        // The kernel has waited for programs that still read the old table, so nothing asks for its names and
        // labels any more.
        workloads::keep_only(names.epoch(), &self.programs)?;
        process_classes::keep_only(plan, has_other_names, &self.programs)?;

        // Taken out only now: had anything failed before, the old rules would still need their hooks.
        let old = self
            .armed
            .take_unneeded(plan, self.operations.uring.as_ref());
        let old_objects = self.vfs.take_unneeded(plan);

        // The exact values: calls of the old rules alone are no longer looked at.
        let is_every = plan.hooks.sys_exit == SysExit::Every;
        self.control.set_every(is_every);
        self.control.set_task_list(plan.task_list);
        self.control.set_watched(&watched);
        let is_seen = self.armed.sees(canary::CALL);
        self.control.set_canary(is_seen.then_some(canary::CALL));

        // Gates close after the swap, which has waited for programs that tested the previous ones.
        self.each_gate(&gates, gates::close);
        self.operations.watch(plan, &self.programs)?;
        self.switch_probes();

        // Detached later, as that takes long and the next rule set may use the hooks again.
        let removed = old.links().count() + old_objects.len();
        self.part_with(old, old_objects);

        // What the maps have now is what later checks expect.
        self.integrity.note();
        Ok(HookChange::between(before, self.count(), removed))
    }

    /// Loads what `plan` needs and no plan before it did.
    fn load_for(&mut self, plan: &Plan) -> Result<(), CaptureError> {
        let left_out = &self.programs.left_out;
        let needs = Needs::of(plan);
        let needed = |name: &&String| needs.include(name);
        let mut wanted: BTreeSet<String> = left_out.iter().filter(needed).cloned().collect();
        if wanted.is_empty() {
            return Ok(());
        }

        // Each load keeps descriptors of all maps, so the last one takes everything.
        if self.programs.more.len() + 1 == MORE_MAX {
            wanted.clone_from(left_out);
        }

        let loaded = object::load_more(&self.programs.object, &wanted);
        load::forget();
        self.programs.add(loaded?);
        self.programs.left_out.retain(|name| !wanted.contains(name));
        Ok(())
    }

    /// Opens or closes the gates of the hooked functions.
    fn each_gate(&self, gates: &Gates, change: fn(&Trampolines, &BTreeMap<usize, Hook>, &Gates)) {
        if let Some(trampolines) = &self.trampolines {
            change(trampolines, &self.armed.functions, gates);
        }
    }

    /// Makes exactly this daemon's links record calls.
    fn switch_probes(&self) {
        self.control.set_probe_links(self.armed.probe_numbers());
    }

    /// Undoes what somebody else has changed. Returns that, and what was found before the last replacement.
    pub(crate) fn check(&mut self) -> Vec<Breach> {
        self.integrity
            .check(read(&self.control, &self.trampolines, &self.programs))
    }

    /// Number of hooks in force.
    fn count(&self) -> usize {
        self.armed.links().count() + self.vfs.armed().count()
    }

    /// Names of the pins of all hooks in force.
    pub(crate) fn pinned_names(&self) -> Vec<String> {
        let links = self.armed.links().chain(self.detach_queue.links());
        let names = links.filter_map(Attached::pin_name).map(str::to_owned);
        names.chain(self.vfs.armed().cloned()).collect()
    }

    /// Queues hooks that are no longer needed for removal after a while.
    fn part_with(&mut self, old: Armed, old_objects: BTreeMap<String, Attached>) {
        self.missed_by_probes += old.missed_by_probes();
        let calls = old.probes.into_iter().map(CallProbes::at_rest);
        let operations = old.operation_probes.into_iter();
        let probes = calls.chain(operations.map(OperationProbes::at_rest));
        self.detach_queue
            .add(old.functions, old_objects, old.uring.functions, probes);
    }

    /// Removes all hooks at once.
    pub(crate) fn drop_all(&mut self) {
        let armed = std::mem::take(&mut self.armed);
        if let Some(trampolines) = &mut self.trampolines {
            for hook in armed.functions.values() {
                trampolines.retire(hook);
            }
            for hook in armed.uring.functions.values() {
                trampolines.count(hook);
            }
        }
    }

    /// Number of watched calls that programs missed.
    pub(crate) fn missed(&self) -> u64 {
        let mut missed = self.programs.missed() + self.missed_by_probes;
        if let Some(trampolines) = &self.trampolines {
            let armed = self.armed.functions.values().map(Hook::at_function);
            let armed = armed.chain(self.armed.uring.functions.values());
            missed += trampolines.missed(armed.chain(self.detach_queue.at_functions()));
        }
        missed + self.armed.missed_by_probes()
    }

    /// Removes hooks that no rule set has needed for a while. Call it about once a second.
    pub(crate) fn tidy(&mut self) {
        self.detach_queue.tidy(self.trampolines.as_mut());
    }
}

/// The parts beside the maps that a check reads: control words, trampolines, and whether probes are in use.
fn read<'h>(
    control: &'h Control,
    trampolines: &'h Option<Trampolines>,
    programs: &Programs,
) -> Read<'h> {
    Read {
        control,
        trampolines: trampolines.as_ref(),
        probes: programs.form.probes,
    }
}

/// A new map of match tables with these rows.
pub(crate) fn make_table(rows: &[tables::Row]) -> Result<MapHandle, CaptureError> {
    let table = MapHandle::create(
        MapType::Array,
        Some("tarsier_table"),
        4,
        (tables::ROWS * std::mem::size_of::<tables::Row>()) as u32,
        1,
        &map_options(BPF_F_MMAPABLE),
    )
    .map_err(refused("match tables"))?;
    control::write_rows(&table, rows)?;
    // From now on nobody can change it.
    table.freeze().map_err(refused("match tables"))?;
    Ok(table)
}
