//! The maps of the past of processes (programs/process_class.h): the class of each process, and the rules whose events
//! give labels.

use crate::attach::programs::Programs;
use crate::error::CaptureError;
use crate::shared::map_access::{unpreempted, MapAccess};
use bpf::load::refused;
use bpf::shared::{
    labelling, process_class, process_id, PAST_NAMES_MAX, PROCESS_ANCESTORS_ARE_OPEN,
    PROCESS_LABELS_ARE_OPEN, PROCESS_OWN_IS_OPEN,
};
use libbpf_rs::{ErrorKind, MapCore, MapFlags, MapHandle};
use plan::{Plan, ProcessClass};
use record::wire::ProcessId;
use zerocopy::{FromBytes, IntoBytes};

/// Both sides must use the same flags and bits.
const _: () = {
    assert!(plan::LABELS_ARE_OPEN == PROCESS_LABELS_ARE_OPEN);
    assert!(plan::ANCESTORS_ARE_OPEN == PROCESS_ANCESTORS_ARE_OPEN);
    assert!(plan::OWN_IS_OPEN == PROCESS_OWN_IS_OPEN);
    assert!(plan::PAST_NAMES_MAX == PAST_NAMES_MAX as usize);
};

/// Classes that are read without being preempted in between.
const UNPREEMPTED_MAX: usize = 64;

/// The classes of processes.
pub(crate) struct ProcessClasses {
    map: MapHandle,
}

impl ProcessClasses {
    pub(crate) fn new(map: MapHandle) -> ProcessClasses {
        ProcessClasses { map }
    }

    /// Sets the class of a process that has none of this epoch. One that the programs have made stays: it says that the
    /// process was given a label that `class` may lack.
    ///
    /// # Errors
    /// There is no room, or no memory. Without a class, the daemon decides.
    pub(crate) fn set(
        &self,
        process: ProcessId,
        epoch: u64,
        class: &ProcessClass,
    ) -> Result<(), CaptureError> {
        let key = key(process);
        let key = key.as_bytes();

        if epoch_of(self.map.get(key)) == Some(epoch) {
            return Ok(());
        }

        let taken = unpreempted(|| self.map.lookup_and_delete(key));
        if epoch_of(taken) == Some(epoch) {
            // The programs have just made it. Without one, the daemon decides, as with this one.
            return Ok(());
        }

        let value = process_class {
            epoch,
            image: class.image,
            ancestors: class.ancestors,
            own: class.own,
            labels: class.labels,
            flags: class.flags,
        };

        // Not over a class that the programs have made meanwhile.
        let set = unpreempted(|| self.map.update(key, value.as_bytes(), MapFlags::NO_EXIST));
        match set {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
            set => Ok(set.map_err(refused("class of a process"))?),
        }
    }

    /// The classes of these processes: `None` where there is none of this epoch.
    pub(crate) fn get(&self, epoch: u64, processes: &[ProcessId]) -> Vec<Option<ProcessClass>> {
        let read = |process: &ProcessId| {
            let found = self.map.lookup(key(*process).as_bytes(), MapFlags::ANY);
            let class = process_class::read_from_bytes(&found.ok()??).ok()?;
            (class.epoch == epoch).then_some(ProcessClass {
                image: class.image,
                ancestors: class.ancestors,
                own: class.own,
                labels: class.labels,
                flags: class.flags,
            })
        };

        let parts = processes.chunks(UNPREEMPTED_MAX);
        let read = parts.flat_map(|part| {
            unpreempted(|| part.iter().map(read).collect::<Vec<Option<ProcessClass>>>())
        });
        read.collect()
    }

    /// Removes all classes.
    pub(crate) fn forget_all(&self) {
        let keys: Vec<Vec<u8>> = self.map.keys().collect();
        for key in keys {
            // An error says that the process has ended.
            let _ = self.map.remove(&key);
        }
    }

    /// Removes the class of a process, if it has one.
    pub(crate) fn forget(&self, process: ProcessId) {
        // An error says that there is none.
        let _ = self.map.remove(key(process).as_bytes());
    }
}

fn key(process: ProcessId) -> process_id {
    process_id {
        start_ns: process.start_ns,
        pid: process.pid,
        pad: 0,
    }
}

/// The epoch of a class that was found; `None` if there was none.
fn epoch_of(found: libbpf_rs::Result<Option<Vec<u8>>>) -> Option<u64> {
    let value = found.ok()??;
    let class = process_class::read_from_bytes(&value).ok()?;
    Some(class.epoch)
}

/// Makes the programs give the labels of the rules of `plan`, once its tables are in force. Classes that were written
/// while its names were in force before, and were not kept up since, are removed.
///
/// # Errors
/// The kernel does not take them: nothing has changed.
pub(crate) fn announce(
    plan: &Plan,
    has_other_names: bool,
    programs: &Programs,
) -> Result<(), CaptureError> {
    if has_other_names {
        let epoch = plan.workloads.epoch();
        forget(programs, |of| of == epoch)?;
    }

    let map = programs.map("labellings")?;
    for (&rule, bits) in &plan.labellings {
        let key = labelling {
            generation: plan.generation,
            rule,
            pad: 0,
        };
        let put = map.put(key.as_bytes(), &bits.to_ne_bytes());
        put.map_err(refused("rules that give labels"))?;
    }
    Ok(())
}

/// Removes what belongs to earlier rule sets than that of `plan`, whose tables are in force.
///
/// # Errors
/// The kernel does not give it up.
pub(crate) fn keep_only(
    plan: &Plan,
    has_other_names: bool,
    programs: &Programs,
) -> Result<(), CaptureError> {
    if has_other_names {
        let epoch = plan.workloads.epoch();
        forget(programs, |of| of != epoch)?;
    }

    let map = programs.map("labellings")?;
    let removed = map.remove_all(|key| {
        let key = labelling::ref_from_bytes(key);
        key.is_ok_and(|key| key.generation != plan.generation)
    });
    Ok(removed.map_err(refused("rules that give labels"))?)
}

/// Removes the classes of processes of these epochs.
fn forget(programs: &Programs, is_of: impl Fn(u64) -> bool) -> Result<(), CaptureError> {
    let map = programs.map("process_classes")?;
    let has = |key: &[u8]| epoch_of(map.get(key)).is_some_and(&is_of);
    let keys: Vec<Vec<u8>> = map.keys().filter(|key| has(key)).collect();
    for key in keys {
        // An error says that the process has ended.
        let _ = map.remove(&key);
    }
    Ok(())
}
