//! The maps of workloads (bpf/workloads.h): the names that rules ask about, and the class of each cgroup.

use crate::attach::programs::Programs;
use crate::error::CaptureError;
use crate::shared::control::Control;
use crate::shared::map_access::MapAccess;
use abi::Field;
use bpf::load::refused;
use bpf::shared::{
    workload, workload_name, WORKLOAD_CONTAINER, WORKLOAD_IS_DELEGATED, WORKLOAD_IS_LXC,
    WORKLOAD_IS_MACHINE, WORKLOAD_IS_SETTLED, WORKLOAD_NAMES_MAX, WORKLOAD_SLICE, WORKLOAD_UNIT,
};
use libbpf_rs::MapHandle;
use plan::{WorkloadClass, WorkloadNames};
use zerocopy::{FromBytes, FromZeros, IntoBytes};

/// Both sides must use the same flags, and there must be room for the names of two rule sets.
const _: () = {
    assert!(plan::IS_SETTLED == WORKLOAD_IS_SETTLED);
    assert!(plan::IS_LXC == WORKLOAD_IS_LXC);
    assert!(plan::IS_MACHINE == WORKLOAD_IS_MACHINE);
    assert!(plan::IS_DELEGATED == WORKLOAD_IS_DELEGATED);
    assert!(2 * plan::NAMES_MAX == WORKLOAD_NAMES_MAX as usize);
};

/// The classes of cgroups.
pub(crate) struct Classes {
    map: MapHandle,
}

impl Classes {
    pub(crate) fn new(map: MapHandle) -> Classes {
        Classes { map }
    }

    /// Sets the class of a cgroup.
    ///
    /// # Errors
    /// There is no room, or no memory. Without a class, the daemon decides.
    pub(crate) fn set(
        &self,
        cgroup: u64,
        epoch: u64,
        class: &WorkloadClass,
    ) -> Result<(), CaptureError> {
        let value = workload {
            epoch,
            unit: class.unit,
            slice: class.slice,
            container: class.container,
            flags: class.flags,
        };
        let put = self.map.put(&cgroup.to_ne_bytes(), value.as_bytes());
        Ok(put.map_err(refused("class of a cgroup"))?)
    }

    /// Removes the class of a cgroup, if it has one.
    pub(crate) fn forget(&self, cgroup: u64) {
        // An error says that there is none.
        let _ = self.map.remove(&cgroup.to_ne_bytes());
    }

    /// Epoch and class of a cgroup.
    pub(crate) fn get(&self, cgroup: u64) -> Option<(u64, WorkloadClass)> {
        let value = self.map.get(&cgroup.to_ne_bytes()).ok()??;
        let value = workload::read_from_bytes(&value).ok()?;
        let class = WorkloadClass {
            unit: value.unit,
            slice: value.slice,
            container: value.container,
            flags: value.flags,
        };
        Some((value.epoch, class))
    }
}

/// Makes the programs classify new cgroups by `names`. Those of the rule set in force stay. Returns the epoch before.
///
/// # Errors
/// The kernel does not take the names: nothing has changed.
pub(crate) fn announce(
    names: &WorkloadNames,
    programs: &Programs,
    control: &Control,
) -> Result<u64, CaptureError> {
    let map = programs.map("workload_names")?;
    for (field, text, number) in names.iter() {
        let key = key(names.epoch(), field, text);
        let put = map.put(key.as_bytes(), &number.to_ne_bytes());
        put.map_err(refused("names of units, slices and containers"))?;
    }

    // The epoch last: from then on the programs look for the names.
    let before = control.workload_epoch();
    control.set_workload_epoch(names.epoch());
    Ok(before)
}

/// Removes the names of other epochs than this one.
///
/// # Errors
/// The kernel does not give them up.
pub(crate) fn keep_only(epoch: u64, programs: &Programs) -> Result<(), CaptureError> {
    let map = programs.map("workload_names")?;
    let removed = map.remove_all(|key| {
        let key = workload_name::ref_from_bytes(key);
        key.is_ok_and(|key| key.epoch != epoch)
    });
    Ok(removed.map_err(refused("names of units, slices and containers"))?)
}

fn key(epoch: u64, field: Field, text: &[u8]) -> workload_name {
    let mut key = workload_name::new_zeroed();
    key.epoch = epoch;
    key.kind = match field {
        Field::Unit => WORKLOAD_UNIT,
        Field::Slice => WORKLOAD_SLICE,
        _ => WORKLOAD_CONTAINER,
    };
    // Rules have no longer names than cgroups.
    for (to, &from) in key.name.iter_mut().zip(text) {
        *to = from as _;
    }
    key
}
