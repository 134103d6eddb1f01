//! Loads the programs, and finds what of them this kernel can run.

use crate::attach::copies;
use crate::attach::entries;
use crate::attach::gate_programs;
use crate::attach::probes;
use crate::attach::trampoline;
use crate::attach::uring::{self, Uring};
use crate::attach::vfs_hooks::VfsHooks;
use crate::error::missing;
use crate::error::{system, CaptureError};
use crate::gaps;
use crate::in_force::leftover;
use crate::kernel::attach_targets;
use crate::kernel::dcache::{self, Dcache};
use crate::kernel::kernel_btf;
use crate::kernel::syscall_functions::{self, Functions};
use crate::load::dead_code;
use crate::load::instructions;
use crate::load::kernel_types::KernelTypes;
use crate::load::map_options::map_options;
use crate::load::needs::Needs;
use crate::load::options::CaptureOptions;
use crate::own_programs::own_programs;
use crate::pins::Pins;
use crate::rings::{Ring, RingStream};
use crate::shared::control::Control;
use crate::shared::map_access::MapAccess;
use bpf::load::refused;
use bpf::shared::WORKS_PER_CPU;
use libbpf_rs::{Error, MapCore, MapHandle, MapType, Object, ObjectBuilder, OpenObject};
use plan::{Form, Gap, Plan};
use std::collections::BTreeSet;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;

/// The kernel's functions for calls, if those are hooked, and its io_uring.
pub(crate) fn what_can_be_hooked(form: Form) -> (Option<&'static Functions>, Option<Uring>) {
    let functions = if form.trampoline && !form.probes {
        syscall_functions::of_this_kernel()
    } else {
        None
    };

    let uring = if functions.is_some() || form.probes {
        Uring::with_functions(form.probes).or_else(Uring::of_this_kernel)
    } else {
        Uring::of_this_kernel()
    };
    (functions, uring)
}

/// Tells the programs at which fill a ring counts as overloaded, and that a daemon reads the rings. Rings that were
/// taken over keep their size.
pub(crate) fn set_limits(
    control: &Control,
    stream: &RingStream,
    options: &CaptureOptions,
    taken_over: bool,
) {
    let marks = CaptureOptions::with_ring_bytes(stream.ring_bytes() as usize);
    let (ring_bytes, options) = if taken_over {
        (stream.ring_bytes(), &marks)
    } else {
        (options.true_ring_bytes() as u64, options)
    };

    let ring_bytes = u32::try_from(ring_bytes).unwrap_or(u32::MAX);
    control.set_ring(ring_bytes, options.watermark_bytes, options.high_bytes);
    control.set_throttle(true);
    control.set_awake(true);
}

/// Adds the kernel's gaps to an error that they may have caused.
pub(crate) fn without(gaps: &[Gap], source: CaptureError) -> CaptureError {
    if gaps.is_empty() {
        return source;
    }
    CaptureError::RefusedWithout {
        gaps: gaps.to_vec(),
        source: Box::new(source),
    }
}

/// The programs that were loaded for a plan.
pub(crate) struct LoadedPrograms {
    pub(crate) object: Object,
    pub(crate) vfs: VfsHooks,
    /// Programs that this kernel could run and the plan does not need.
    pub(crate) left_out: BTreeSet<String>,
    /// Where the programs find directory entries, if they look for names: where functions are hooked, hooks see objects.
    pub(crate) dcache: Option<Dcache>,
}

/// Loads the programs that `plan` needs. If `from` is given, uses the maps that are pinned there.
pub(crate) fn load(
    cpus: usize,
    plan: &Plan,
    functions: Option<&Functions>,
    uring: Option<&Uring>,
    from: Option<&Arc<Pins>>,
) -> Result<LoadedPrograms, CaptureError> {
    let form = plan.form();
    let types = KernelTypes::of_programs();
    let mut open = open(types.as_ref())?;

    let kernel = kernel_btf::of_this_kernel();
    let has_loop = kernel.is_some_and(|types| types.has_enumerator("bpf_func_id", "BPF_FUNC_loop"));
    // Their sizes depend on the number of processors, and on what loops are made of.
    for mut map in open.maps_mut() {
        let entries = match map.name().to_str() {
            Some("works") => cpus * WORKS_PER_CPU as usize,
            Some("rings" | "cpu_states") => cpus,
            Some("steps") if has_loop => 1,
            _ => continue,
        };
        map.set_max_entries(entries as u32)
            .map_err(refused("size of a map"))?;
    }

    if let Some(pins) = from {
        leftover::take_maps(&mut open, pins)?;
    }

    // Programs of an earlier daemon are known by those that this one has loaded.
    let copied_only = from.is_none();
    trampoline::choose_targets(&mut open, functions, copied_only)?;
    uring::choose(&mut open, uring)?;
    copies::choose(&mut open, form.copies);

    for mut program in open.progs_mut() {
        let name = program.name().to_string_lossy().into_owned();
        if name == probes::CALL_PROBE {
            program.set_autoload(form.probes);
        } else if entries::PROGRAMS.contains(&name.as_str()) {
            program.set_autoload(!form.trampoline);
        }
    }

    let vfs = VfsHooks::choose(&mut open, form);
    leave_out_missing(&mut open);

    let left_out = leave_out_unneeded(&mut open, plan);

    // Only copies of these run. They are left out after relocation, which the copies need.
    prepare(&mut open, types.as_ref())?;
    if copied_only {
        gate_programs::leave_out(&mut open);
    }

    let object = own_programs().of(|| open.load());
    let dcache = if form.trampoline {
        None
    } else {
        dcache::of_this_kernel(types.as_ref().map(KernelTypes::path).as_deref())
    };
    Ok(LoadedPrograms {
        object: object.map_err(refused("BPF programs"))?,
        vfs,
        left_out,
        dcache,
    })
}

/// Loads these programs, which were left out before, with the maps of `first`.
pub(crate) fn load_more(
    first: &Object,
    programs: &BTreeSet<String>,
) -> Result<Object, CaptureError> {
    let types = KernelTypes::of_programs();
    let mut open = open(types.as_ref())?;

    for mut map in open.maps_mut() {
        let name = map.name().to_string_lossy().into_owned();
        let of_first = first.maps().find(|map| map.name() == name.as_str());
        let of_first = of_first.ok_or_else(|| missing(&name))?;
        map.reuse_fd(of_first.as_fd())
            .map_err(refused(format!("map {name}")))?;
    }

    for mut program in open.progs_mut() {
        let is_wanted = programs.contains(&*program.name().to_string_lossy());
        program.set_autoload(is_wanted);
    }

    prepare(&mut open, types.as_ref())?;
    let object = own_programs().of(|| open.load());
    Ok(object.map_err(refused("more BPF programs"))?)
}

/// Relocates the programs that are to be loaded, and removes what of them cannot run.
pub(crate) fn prepare(
    open: &mut OpenObject,
    types: Option<&KernelTypes>,
) -> Result<(), CaptureError> {
    instructions::relocate(open)?;
    if let Some(types) = types {
        types.set_kernel_ids(open)?;
    }
    dead_code::remove(open)
}

/// The name of the object of all programs.
const OBJECT: &str = "tarsier";

/// Opens the object of all programs; without `types`, libbpf takes the kernel's.
pub(crate) fn open(types: Option<&KernelTypes>) -> Result<OpenObject, CaptureError> {
    bpf::load::keep_libbpf_quiet();
    let registered = attach_targets::register().map_err(|code| Error::from_raw_os_error(-code));
    registered.map_err(refused("look-up of functions and tracepoints"))?;

    let mut builder = ObjectBuilder::default();
    // Maps are named after it: without a name it has one made of its address, and `load_more` looks for the same.
    let named = builder.name(OBJECT);
    named.map_err(refused("BPF object's name"))?;
    let reduced = types.map(KernelTypes::path);
    if let Some(types) = reduced.as_deref().or(kernel_btf::overridden()) {
        let given = builder.btf_custom_path(types);
        given.map_err(refused("types for relocations"))?;
    }

    let open = builder.open_memory(&bpf::tarsier());
    Ok(open.map_err(refused("BPF object"))?)
}

/// Leaves out the programs that the plan does not need, and returns their names.
fn leave_out_unneeded(open: &mut OpenObject, plan: &Plan) -> BTreeSet<String> {
    let needs = Needs::of(plan);
    let mut left_out = BTreeSet::new();
    for mut program in open.progs_mut().filter(|program| program.autoload()) {
        let name = program.name().to_string_lossy().into_owned();
        if !needs.include(&name) {
            program.set_autoload(false);
            left_out.insert(name);
        }
    }
    left_out
}

/// The gaps of the kernel; an error if an essential feature is missing.
pub(crate) fn gaps_that_leave_enough(form: Form) -> Result<Vec<Gap>, CaptureError> {
    bpf::load::need_btf()?;
    let gaps = gaps::of_this_kernel(form.trampoline)?;
    match gaps.iter().find(|gap| gap.essential) {
        Some(gap) => Err(CaptureError::Lacking { gap: gap.clone() }),
        None => Ok(gaps),
    }
}

/// Leaves out programs for tracepoints that this kernel lacks: libbpf would refuse to load the others with them.
fn leave_out_missing(open: &mut OpenObject) {
    for mut program in open.progs_mut() {
        let section = program.section().to_string_lossy().into_owned();
        if let Some(tracepoint) = section.strip_prefix("tp_btf/") {
            if !gaps::is_there(tracepoint) {
                program.set_autoload(false);
            }
        }
    }
}

/// Makes a ring for each CPU.
pub(crate) fn make_rings(
    object: &Object,
    cpus: usize,
    options: &CaptureOptions,
) -> Result<Vec<Ring>, CaptureError> {
    let size = options.true_ring_bytes();
    let map = object
        .maps()
        .find(|map| map.name() == "rings")
        .ok_or_else(|| missing("rings"))?;

    (0..cpus as u32)
        .map(|cpu| {
            let ring = MapHandle::create(
                MapType::RingBuf,
                Some("tarsier_ring"),
                0,
                0,
                size as u32,
                &map_options(0),
            )
            .map_err(refused("ring buffer"))?;

            let fd = ring.as_fd().as_raw_fd() as u32;
            map.put(&cpu.to_ne_bytes(), &fd.to_ne_bytes())
                .map_err(refused("ring buffer"))?;
            Ring::map(&ring, size).map_err(system("mmap of a ring buffer"))
        })
        .collect()
}
