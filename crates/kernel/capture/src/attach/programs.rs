//! The loaded programs: attaches them, or finds those that an earlier daemon attached.

use crate::attach::copies::{self, CountedPrograms};
use crate::attach::perf;
use crate::attach::probes::{self, At, Probed};
use crate::attach::trampoline;
use crate::error::missing;
use crate::error::{system, CaptureError};
use crate::kernel::tracefs::SyscallEvents;
use crate::pins::{Attached, Pins};
use crate::tracing;
use bpf::load::refused;
use libbpf_rs::libbpf_sys::BPF_PERF_EVENT;
use libbpf_rs::{Map, MapCore, Object, ProgramMut};
use plan::{Form, Plan};
use std::collections::BTreeSet;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;

/// The loaded BPF programs.
pub(crate) struct Programs {
    /// The programs that the first plan needed, and all maps.
    pub(crate) object: Object,
    /// Programs that later plans needed, with the same maps.
    pub(crate) more: Vec<More>,
    /// Programs that this kernel could run and no plan has needed.
    pub(crate) left_out: BTreeSet<String>,
    pub(crate) form: Form,
    /// The pins, if links outlive this process.
    pub(crate) pins: Option<Arc<Pins>>,
    /// Programs that an earlier daemon loaded and that are still attached.
    pub(crate) inherited: Vec<OwnedFd>,
    /// The tracepoints of single calls, if tracefs is available.
    pub(crate) events: Option<SyscallEvents>,
    calls: CountedPrograms,
    changes: CountedPrograms,
}

/// Programs that were loaded later.
pub(crate) struct More {
    object: Object,
    calls: CountedPrograms,
    changes: CountedPrograms,
}

fn is_of_call(program: &str) -> bool {
    !copies::is_of_processes(program)
}

impl Programs {
    pub(crate) fn new(
        object: Object,
        left_out: BTreeSet<String>,
        form: Form,
        pins: Option<&Arc<Pins>>,
    ) -> Programs {
        Programs {
            calls: CountedPrograms::of(&object, form, is_of_call),
            changes: CountedPrograms::of(&object, form, copies::is_of_processes),
            object,
            more: Vec::new(),
            left_out,
            form,
            pins: pins.cloned(),
            inherited: Vec::new(),
            events: SyscallEvents::open().ok(),
        }
    }

    fn objects(&self) -> impl Iterator<Item = &Object> {
        std::iter::once(&self.object).chain(self.more.iter().map(|more| &more.object))
    }

    /// A program, loaded if this kernel can run it.
    fn program_mut(&self, name: &str) -> Option<ProgramMut<'_>> {
        let all = self.objects().flat_map(Object::progs_mut);
        let mut found: Vec<ProgramMut<'_>> = all.filter(|found| found.name() == name).collect();
        let loaded = found.iter().position(|program| program.autoload());
        (!found.is_empty()).then(|| found.swap_remove(loaded.unwrap_or(0)))
    }

    /// Adds programs that a later plan needs.
    pub(crate) fn add(&mut self, object: Object) {
        self.more.push(More {
            calls: CountedPrograms::of(&object, self.form, is_of_call),
            changes: CountedPrograms::of(&object, self.form, copies::is_of_processes),
            object,
        });
    }

    /// A map of the object.
    pub(crate) fn map(&self, name: &str) -> Result<Map<'_>, CaptureError> {
        let found = self.object.maps().find(|map| map.name() == name);
        found.ok_or_else(|| missing(name))
    }

    /// Number of watched calls missed by programs on tracepoints, and by those of an earlier daemon.
    pub(crate) fn missed(&self) -> u64 {
        let inherited = self.inherited.iter().map(|program| program.as_fd());
        let more = self.more.iter().map(|more| more.calls.missed(&more.object));
        self.calls.missed(&self.object)
            + more.sum::<u64>()
            + inherited.map(trampoline::misses).sum::<u64>()
    }

    /// Number of times that programs did not run, so that a change of a process was not reported.
    pub(crate) fn missed_changes(&self) -> u64 {
        let more = self
            .more
            .iter()
            .map(|more| more.changes.missed(&more.object));
        self.changes.missed(&self.object) + more.sum::<u64>()
    }

    /// Attaches a program to its tracepoint, with its copies if they are wanted.
    pub(crate) fn attach_copies(&mut self, program: &str) -> Result<Vec<Attached>, CaptureError> {
        let mut links = Vec::new();
        for name in copies::of(program, self.form.copies) {
            links.extend(self.attach_if(true, &name)?);
        }
        Ok(links)
    }

    /// Attaches nothing if the kernel lacks the tracepoint; [`crate::in_force::engine::EbpfEngine::gaps`] reports that.
    pub(crate) fn attach_if(
        &mut self,
        wanted: bool,
        program: &str,
    ) -> Result<Option<Attached>, CaptureError> {
        if !wanted {
            return Ok(None);
        }
        if let Some(found) = self.find_pinned(program)? {
            return Ok(Some(found));
        }

        let found = self.program_mut(program);
        let program_mut = found.ok_or_else(|| missing(program))?;
        if !program_mut.autoload() {
            return Ok(None);
        }
        let link = attach_trace(&program_mut, self.pins.as_ref())?;
        Attached::new(link, self.pins.as_ref(), program).map(Some)
    }

    /// A hook of an earlier daemon that is in force.
    fn find_pinned(&mut self, name: &str) -> Result<Option<Attached>, CaptureError> {
        let Some(pins) = &self.pins else {
            return Ok(None);
        };

        let found = Attached::find(pins, name)?;
        if !copies::is_of_processes(name) {
            let programs = found.iter().filter_map(trampoline::program_of);
            self.inherited.extend(programs);
        }
        Ok(found)
    }

    pub(crate) fn attach_call(&mut self, plan: &Plan, nr: u32) -> Result<Attached, CaptureError> {
        let name = plan
            .entries
            .arch(plan::Entry::Native)
            .and_then(|arch| abi::syscall_name(arch, nr))
            .unwrap_or("?");
        let event = self
            .events
            .as_ref()
            .and_then(|events| events.exit_event(name));
        self.attach_event("sys_exit_one", event, &format!("sys_exit_{name}"))
    }

    pub(crate) fn attach_event(
        &mut self,
        program: &str,
        event: Option<u64>,
        name: &str,
    ) -> Result<Attached, CaptureError> {
        let pin = format!("{program}-{name}");
        if let Some(found) = self.find_pinned(&pin)? {
            return Ok(found);
        }

        let event = event.ok_or_else(|| missing(&format!("tracepoint {name}")))?;
        let perf = perf::open_tracepoint(event)
            .map_err(system(format!("perf_event_open for tracepoint {name}")))?;

        // Attached only after the link that had this pin has ended: two would record each call twice.
        if let Some(pins) = &self.pins {
            pins.wait_for_end_of(&pin);
        }
        let program = self.program_mut(program).ok_or_else(|| missing(program))?;
        let link = tracing::link(program.as_fd(), perf.as_raw_fd(), BPF_PERF_EVENT)
            .map_err(system(format!("hook tracepoint/syscalls/{name}")))?;
        Attached::new(link, self.pins.as_ref(), &pin)
    }

    /// Attaches a program to these functions, as the link with this number.
    pub(crate) fn probe(
        &self,
        program: &str,
        functions: &[Probed<'_>],
        at: At,
        number: u32,
        what: &str,
    ) -> Result<Attached, CaptureError> {
        let mut loaded = self.objects().flat_map(Object::progs);
        let found = loaded.find(|found| found.name() == program && found.autoload());
        let found = found.ok_or_else(|| missing(program))?;

        let pin = probes::pin_of(program, number);
        if let Some(pins) = &self.pins {
            pins.wait_for_end_of(&pin);
        }

        let link = probes::attach(found.as_fd(), functions, at).map_err(system(what))?;
        Attached::new(link, self.pins.as_ref(), &pin)
    }
}

/// Attaches a program to the place that its section names.
pub(crate) fn attach_trace(
    program: &libbpf_rs::ProgramMut<'_>,
    pins: Option<&Arc<Pins>>,
) -> Result<OwnedFd, CaptureError> {
    if let Some(pins) = pins {
        pins.wait_for_end_of(&program.name().to_string_lossy());
    }

    let what = || format!("hook {}", program.name().to_string_lossy());
    let link = program.attach_trace().map_err(refused(what()))?;
    link.as_fd()
        .try_clone_to_owned()
        .map_err(|source| CaptureError::System {
            what: what(),
            source,
        })
}
