//! Replaces one rule set with another without a gap.

use super::canary;
use super::control;
use super::gates;
use super::map_access::MapAccess;
use super::map_options::map_options;
use super::{HookChange, Hooks};
use crate::error::CaptureError;
use bpf::load::refused;
use libbpf_rs::libbpf_sys::BPF_F_MMAPABLE;
use libbpf_rs::{MapHandle, MapType};
use plan::{tables, Plan, SysExit};
use std::os::fd::{AsFd, AsRawFd};

impl Hooks {
    /// See [`super::EbpfEngine::replace`].
    pub(super) fn replace(&mut self, plan: &Plan) -> Result<HookChange, CaptureError> {
        let table = make_table(&plan.rows)?;
        // What was changed by others must not count as told.
        let breaches = self.restore();
        self.breaches.extend(breaches);
        self.detach_queue.recall(self.trampolines.as_mut());
        let before = self.count();
        let old = self.arm(plan)?;
        let old_objects = self.arm_objects(plan)?;
        self.vfs.set_calls(&self.programs.object, plan)?;
        let gates = gates::of(plan);
        gates::open(self, &gates);
        let watched = canary::watched(plan);
        self.control.add_watched(&watched);
        self.switch_probes();
        self.operations.watch_too(plan, &self.programs)?;
        let fd = table.as_fd().as_raw_fd() as u32;
        let tables = self.programs.map("tables")?;
        tables
            .put(&0u32.to_ne_bytes(), &fd.to_ne_bytes())
            .map_err(refused("match tables"))?;
        let is_every = plan.hooks.sys_exit == SysExit::Every;
        self.control.set_every(is_every);
        self.control.set_task_list(plan.task_list);
        self.control.set_watched(&watched);
        self.control.set_canary(self.canary());
        gates::close(self, &gates);
        self.operations.watch(plan, &self.programs)?;
        self.switch_probes();
        let removed = old.links().count() + old_objects.len();
        self.part_with(old, old_objects);
        self.told.note();
        Ok(HookChange::between(before, self.count(), removed))
    }
}

/// A new map of match tables with these rows.
fn make_table(rows: &[tables::Row]) -> Result<MapHandle, CaptureError> {
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
