//! Hooks on kernel functions that tell what a call really touched: finds which of them this kernel has, and arms
//! those that a plan needs. The programs are in `bpf/object_hooks.bpf.inc.c`.

mod arguments;

use crate::attach::probes::{self, At, PROBE};
use crate::attach::programs::attach_trace;
use crate::error::CaptureError;
use crate::kernel::kernel_btf;
use crate::pins::{Attached, Pins};
use crate::shared::map_access::MapAccess;
use crate::tracing;
use bpf::load::refused;
use bpf::shared::{self, object_calls};
use libbpf_rs::{MapCore, Object, OpenObject, ProgramMut};
use plan::{Form, ObjectClass, Plan};
use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use zerocopy::{FromZeros, IntoBytes};

/// The plan and the programs must use the same numbers for the classes of calls.
const _: () = {
    assert!(ObjectClass::Entries as u32 == shared::OBJECTS_ENTRIES);
    assert!(ObjectClass::Open as u32 == shared::OBJECTS_OPEN);
    assert!(ObjectClass::Lookup as u32 == shared::OBJECTS_LOOKUP);
    assert!(ObjectClass::Directory as u32 == shared::OBJECTS_DIRECTORY);
    assert!(ObjectClass::Mount as u32 == shared::OBJECTS_MOUNT);
    assert!(ObjectClass::Address as u32 == shared::OBJECTS_ADDRESS);
    assert!(ObjectClass::Signal as u32 == shared::OBJECTS_SIGNAL);
    assert!(ObjectClass::Ipc as u32 == shared::OBJECTS_IPC);
    assert!(ObjectClass::Time as u32 == shared::OBJECTS_TIME);
    assert!(ObjectClass::OpenChanges as u32 == shared::OBJECTS_OPEN_CHANGES);
};

/// Whether this kernel allows programs to hook functions: tries it with one.
pub fn functions_can_be_hooked() -> bool {
    bpf::load::keep_libbpf_quiet();
    tracing::attaches().is_ok()
}

/// Separates the name of a function from the index of the argument that its program reads.
const FORM: &str = "__at";

/// The function that a program hooks: `on_F` runs before it, and `after_F` when it returns. A program for one of
/// several forms has the form's name after that.
fn function_of(program: &str) -> Option<&str> {
    let program = program.strip_prefix(PROBE).unwrap_or(program);
    let function = program
        .strip_prefix("on_")
        .or_else(|| program.strip_prefix("after_"))?;
    Some(
        function
            .rsplit_once(FORM)
            .map_or(function, |(name, _)| name),
    )
}

/// Attaches a program according to its form.
fn attach(
    program: &ProgramMut<'_>,
    name: &str,
    pins: Option<&Arc<Pins>>,
) -> Result<OwnedFd, CaptureError> {
    let Some(probe) = name.strip_prefix(PROBE) else {
        return attach_trace(program, pins);
    };
    let at = if probe.starts_with("on_") {
        At::Entry
    } else {
        At::End
    };
    let function = function_of(name).unwrap_or_default();
    probes::attach_object(program, function, at, pins)
}

/// Whether this kernel has the function that a program hooks, with the arguments that the program reads.
pub(crate) fn is_there(types: &kernel_btf::Types, program: &str) -> bool {
    function_of(program).is_none_or(|f| arguments::are_as_read(types, program, f))
}

/// The hooks in force, by program.
pub(crate) struct VfsHooks {
    /// Programs that are loaded.
    loaded: BTreeSet<String>,
    armed: BTreeMap<String, Attached>,
    epoch: u64,
}

impl VfsHooks {
    /// Leaves out the programs in `open` that this kernel would refuse: all of them if the engine does not hook
    /// functions or cannot; those whose function does not exist; and those of the other form.
    pub(crate) fn choose(open: &mut OpenObject, form: Form) -> VfsHooks {
        let types = if form.trampoline && functions_can_be_hooked() {
            kernel_btf::of_this_kernel()
        } else {
            None
        };

        let mut loaded = BTreeSet::new();
        for mut program in open.progs_mut() {
            let name = program.name().to_string_lossy().into_owned();
            let Some(function) = function_of(&name) else {
                continue;
            };

            let is_of_form = name.starts_with(PROBE) == form.probes;
            let exists = is_of_form
                && types
                    .as_ref()
                    .is_some_and(|types| arguments::are_as_read(types, &name, function));
            program.set_autoload(exists);
            if exists {
                loaded.insert(name);
            }
        }

        VfsHooks {
            loaded,
            armed: BTreeMap::new(),
            // Must differ from an earlier daemon's last epoch.
            epoch: crate::pins::now_ns(),
        }
    }

    /// Attaches the hooks that `plan` needs; those that it does not need stay. `resting` returns hooks that are attached
    /// already. [`VfsHooks::set_calls`] then sets which calls the hooks are for.
    pub(crate) fn arm(
        &mut self,
        object: &mut Object,
        plan: &Plan,
        pins: Option<&Arc<Pins>>,
        mut resting: impl FnMut(&str) -> Result<Option<Attached>, CaptureError>,
    ) -> Result<(), CaptureError> {
        let wanted = self.wanted(plan);
        let mut added = BTreeMap::new();
        for program in object.progs_mut() {
            let name = program.name().to_string_lossy().into_owned();
            if wanted.contains(&name) && !self.armed.contains_key(&name) {
                let link = match resting(&name)? {
                    Some(link) => link,
                    None => Attached::new(attach(&program, &name, pins)?, pins, &name)?,
                };
                added.insert(name, link);
            }
        }
        self.armed.extend(added);
        Ok(())
    }

    /// Takes out the hooks that `plan` does not need, by program. They are still attached.
    pub(crate) fn take_unneeded(&mut self, plan: &Plan) -> BTreeMap<String, Attached> {
        let wanted = self.wanted(plan);
        let armed = std::mem::take(&mut self.armed).into_iter();
        let (kept, old) = armed.partition(|(program, _)| wanted.contains(program));
        self.armed = kept;
        old
    }

    /// The programs of the hooks that `plan` needs, as far as this kernel has their functions.
    fn wanted(&self, plan: &Plan) -> BTreeSet<String> {
        let functions = plan.object_functions();
        let loaded = self.loaded.iter();
        loaded
            .filter(|program| function_of(program).is_some_and(|f| functions.contains(f)))
            .cloned()
            .collect()
    }

    /// Programs whose hooks are in force.
    pub(crate) fn armed(&self) -> impl Iterator<Item = &String> {
        self.armed.keys()
    }

    /// Sets which calls the hooks are for. What they have noted about running calls is dropped.
    pub(crate) fn set_calls(&mut self, object: &Object, plan: &Plan) -> Result<(), CaptureError> {
        self.epoch += 1;
        let mut calls = object_calls {
            epoch: self.epoch,
            ..object_calls::new_zeroed()
        };

        if !self.loaded.is_empty() {
            calls.class = plan.object_classes();
            calls.operations = plan.operation_classes();
        }

        for (entry, nr, class) in plan.entry_classes() {
            calls.class[entry as usize][nr as usize] = class;
        }

        object
            .maps()
            .find(|map| map.name() == "object_calls")
            .ok_or_else(|| CaptureError::System {
                what: "object_calls is not in the BPF object".to_owned(),
                source: std::io::ErrorKind::NotFound.into(),
            })?
            .put(0u32.as_bytes(), calls.as_bytes())
            .map_err(refused("calls of the hooks on objects"))?;
        Ok(())
    }
}
