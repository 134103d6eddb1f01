//! Programs at the ends of kernel functions: each function gets a copy of a small program (gate_programs.rs), which
//! knows the index of its gate and jumps to the shared body.

use crate::attach::gate_programs::{self, pin_of, pinned, AtGate};
use crate::error::{system, CaptureError};
use crate::kernel::syscall_functions::{Functions, KernelFunction, PROTOTYPES};
use crate::own_programs::{info_of_program, own_programs};
use crate::pins::{Attached, Pins};
use crate::shared::gate_cells::{GateCells, PLACES};
use crate::shared::map_access::MapAccess;
use crate::tracing::{link, load, new_fd};
use bpf::load::refused;
use bpf::shared;
use libbpf_rs::libbpf_sys::{
    bpf_attach_type, bpf_insn, bpf_prog_get_fd_by_id, BPF_PSEUDO_MAP_FD, BPF_PSEUDO_MAP_VALUE,
    BPF_TRACE_FENTRY, BPF_TRACE_FEXIT,
};
use libbpf_rs::{Map, MapCore, Object, OpenObject};
use plan::Gate;
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::fmt;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// The body programs, and the arrays through which they are called, by prototype.
const BODIES: [(&str, &str); PROTOTYPES] =
    [("call_body", "bodies"), ("other_call_body", "other_bodies")];
/// BPF_LD | BPF_IMM | BPF_DW.
const LOAD_ADDRESS: u8 = 0x18;

/// Everything needed to hook functions.
pub(crate) struct Trampolines {
    /// Instructions of the programs that are copied, as loaded, by name.
    programs: BTreeMap<&'static str, Vec<bpf_insn>>,
    bodies: [i32; PROTOTYPES],
    gates_fd: i32,
    gates: GateCells,
    free: Vec<usize>,
    /// GateCells of hooks that an earlier daemon made, by function.
    left: BTreeMap<String, AtGate>,
    pins: Option<Arc<Pins>>,
    /// Number of calls missed by hooks that are gone.
    missed: u64,
}

/// The position of a program in a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Edge {
    Entry,
    Exit,
}

impl Edge {
    fn kind(self) -> bpf_attach_type {
        match self {
            Edge::Entry => BPF_TRACE_FENTRY,
            Edge::Exit => BPF_TRACE_FEXIT,
        }
    }
}

impl fmt::Display for Edge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Edge::Entry => "entry",
            Edge::Exit => "exit",
        })
    }
}

/// A program attached to a kernel function. Dropping it detaches the program.
#[derive(Debug)]
pub(crate) struct AtFunction {
    link: Attached,
    program: OwnedFd,
}

impl AtFunction {
    /// Attaches a program. If there is a directory of pins, pins it as `pin`, after removed hooks whose pins begin
    /// with `predecessor` have ended.
    pub(crate) fn attach(
        edge: Edge,
        function: &KernelFunction,
        instructions: &[bpf_insn],
        pins: Option<&Arc<Pins>>,
        pin: &str,
        predecessor: &str,
    ) -> Result<AtFunction, CaptureError> {
        let what = |step: &str| format!("{step} for the {edge} of function {}", function.name);
        let program = load(instructions, function.btf_id, edge.kind());
        let program = program.map_err(system(what("program")))?;

        if let Some(pins) = pins {
            pins.wait_for_end_of(predecessor);
        }

        let link = link(program.as_fd(), 0, edge.kind()).map_err(system(what("hook")))?;
        Ok(AtFunction {
            link: Attached::new(link, pins, pin)?,
            program,
        })
    }

    /// The hook that an earlier daemon pinned as `pin`.
    pub(crate) fn find(
        pins: Option<&Arc<Pins>>,
        pin: &str,
    ) -> Result<Option<AtFunction>, CaptureError> {
        let Some(pins) = pins else { return Ok(None) };
        let link = Attached::find(pins, pin)?;
        let program = link.as_ref().and_then(program_of);
        Ok(link
            .zip(program)
            .map(|(link, program)| AtFunction { link, program }))
    }

    pub(crate) fn link(&self) -> &Attached {
        &self.link
    }

    /// Number of calls missed because another task was in the same program on the same CPU.
    pub(crate) fn misses(&self) -> u64 {
        misses(self.program.as_fd())
    }
}

/// A hook on the function of a call, with its gate. [`Trampolines::retire`] frees the gate.
pub(crate) struct Hook {
    at: AtFunction,
    at_gate: AtGate,
}

impl Hook {
    pub(crate) fn at_function(&self) -> &AtFunction {
        &self.at
    }
}

/// Before loading: sets the functions that the programs are verified for, or leaves the programs out if there are
/// none. Programs that are only copied need no function.
pub(crate) fn choose_targets(
    open: &mut OpenObject,
    functions: Option<&Functions>,
    copied_only: bool,
) -> Result<(), CaptureError> {
    for mut program in open.progs_mut() {
        let name = program.name().to_string_lossy().into_owned();
        let prototype = match name.as_str() {
            name if gate_programs::known(name).is_some() => match functions {
                Some(_) if copied_only => continue,
                _ => 0,
            },
            name => match BODIES.iter().position(|(body, _)| *body == name) {
                Some(prototype) => prototype,
                None => continue,
            },
        };

        match functions.and_then(|functions| functions.of_prototype(prototype)) {
            Some(function) => program
                .set_attach_target(0, Some(function.name.clone()))
                .map_err(refused(format!("target {}", function.name)))?,
            None => program.set_autoload(false),
        };
    }
    Ok(())
}

fn map_of<'o>(object: &'o Object, name: &str) -> Result<Map<'o>, CaptureError> {
    let found = object.maps().find(|map| map.name() == name);
    found.ok_or_else(|| crate::error::missing(name))
}

impl Trampolines {
    /// Starts with an object that was loaded with targets.
    pub(crate) fn new(
        object: &Object,
        pins: Option<&Arc<Pins>>,
    ) -> Result<Trampolines, CaptureError> {
        let loaded = || object.progs().filter(|program| program.autoload());
        let mut bodies = [0; PROTOTYPES];
        for (fd, (body, array)) in bodies.iter_mut().zip(BODIES) {
            let array = map_of(object, array)?;
            *fd = array.as_fd().as_raw_fd();
            let Some(program) = loaded().find(|program| program.name() == body) else {
                continue;
            };
            let program = program.as_fd().as_raw_fd() as u32;
            array
                .put(&0u32.to_ne_bytes(), &program.to_ne_bytes())
                .map_err(refused(format!("body {body}")))?;
        }

        // The copies are made of the instructions as loaded: relocated, and with the descriptors of this
        // object's maps.
        let copied = object.progs().filter_map(|program| {
            let name = program.name().to_str().and_then(gate_programs::known)?;
            Some((name, program.insns().to_vec()))
        });

        // GateCells of an earlier daemon's hooks stay theirs, since the hooks are still attached.
        let gates = map_of(object, ".bss.gates")?;
        let links = pins.map(|pins| pins.links()).unwrap_or_default();
        let left: BTreeMap<String, AtGate> = links.iter().filter_map(|name| pinned(name)).collect();
        let is_free = |place: &usize| !left.values().any(|taken| taken.place == *place);
        Ok(Trampolines {
            programs: copied.collect(),
            bodies,
            gates_fd: gates.as_fd().as_raw_fd(),
            gates: GateCells::map(&gates)?,
            free: (0..PLACES).rev().filter(is_free).collect(),
            left,
            pins: pins.cloned(),
            missed: 0,
        })
    }

    /// Attaches a program to the end of a function. Its gate, which is meant for `gate`, is still open.
    pub(crate) fn hook(
        &mut self,
        function: &KernelFunction,
        gate: Option<&Gate>,
    ) -> Result<Hook, CaptureError> {
        if let Some(hook) = self.inherit(function)? {
            return Ok(hook);
        }

        let place = self
            .free
            .pop()
            .ok_or_else(|| crate::error::missing("a free gate for one more function"))?;

        // Open until the tables of its rules are in force.
        self.gates.open(place);
        let program = gate_programs::of(gate);
        let hooked = self.attach(function, AtGate { place, program });

        if hooked.is_err() {
            self.free.push(place);
        }
        hooked
    }

    /// Loads the program for a function, as [`Trampolines::hook`] does, and attaches it to nothing.
    pub(crate) fn load(
        &self,
        function: &KernelFunction,
        gate: Option<&Gate>,
    ) -> Result<OwnedFd, Errno> {
        let program = gate_programs::of(gate);
        let instructions = self.instructions_for(function, AtGate { place: 0, program });
        load(&instructions, function.btf_id, Edge::Exit.kind())
    }

    fn attach(&self, function: &KernelFunction, at_gate: AtGate) -> Result<Hook, CaptureError> {
        let instructions = self.instructions_for(function, at_gate);
        let predecessor = gate_programs::predecessor_of(function);
        let pin = pin_of(function, at_gate);
        let at = AtFunction::attach(
            Edge::Exit,
            function,
            &instructions,
            self.pins.as_ref(),
            &pin,
            &predecessor,
        )?;
        Ok(Hook { at, at_gate })
    }

    /// The hook on a function that an earlier daemon made.
    fn inherit(&mut self, function: &KernelFunction) -> Result<Option<Hook>, CaptureError> {
        let Some(at_gate) = self.left.remove(&function.name) else {
            return Ok(None);
        };
        let found = AtFunction::find(self.pins.as_ref(), &pin_of(function, at_gate))?;
        if found.is_none() {
            self.free.push(at_gate.place);
        }
        Ok(found.map(|at| Hook { at, at_gate }))
    }

    /// Frees the gates of an earlier daemon's hooks that are not needed.
    pub(crate) fn forget_left(&mut self) {
        let left = std::mem::take(&mut self.left).into_values();
        self.free.extend(left.map(|at_gate| at_gate.place));
    }

    /// A copy of the program in which the address of the first gate is replaced with that of its own gate. Without
    /// the program, whose copy the kernel would refuse, it is empty.
    fn instructions_for(&self, function: &KernelFunction, at_gate: AtGate) -> Vec<bpf_insn> {
        let mut copy = self
            .programs
            .get(at_gate.program)
            .cloned()
            .unwrap_or_default();

        let offset = at_gate.place * size_of::<shared::gate>();
        for i in 0..copy.len().saturating_sub(1) {
            if copy[i].code != LOAD_ADDRESS {
                continue;
            }
            let kind = u32::from(copy[i].src_reg());
            if kind == BPF_PSEUDO_MAP_VALUE && copy[i].imm == self.gates_fd {
                copy[i + 1].imm += offset as i32;
            } else if kind == BPF_PSEUDO_MAP_FD && copy[i].imm == self.bodies[0] {
                copy[i].imm = self.bodies[function.prototype];
            }
        }
        copy
    }

    /// Opens a hook's gate, if it is to change.
    pub(crate) fn open_unless(&self, hook: &Hook, gate: Option<&Gate>) {
        let AtGate { place, .. } = hook.at_gate;
        if self.gates.get(place) != hook.at_gate.told(gate) {
            self.gates.open(place);
        }
    }

    /// Sets a hook's gate. It is open, or unchanged since before the last swap of the tables: that swap waited for
    /// programs that still used the previous gate.
    pub(crate) fn close(&self, hook: &Hook, gate: Option<&Gate>) {
        let AtGate { place, .. } = hook.at_gate;
        let gate = hook.at_gate.told(gate);
        if self.gates.get(place) != gate {
            self.gates.set(place, gate);
        }
    }

    /// Undoes changes of gates by others. Returns whether there were any.
    pub(crate) fn restore_gates(&self) -> bool {
        self.gates.restore()
    }

    /// Keeps the count of a hook that is about to be dropped, and frees its gate. Returns the count.
    pub(crate) fn retire(&mut self, hook: &Hook) -> u64 {
        self.gates.open(hook.at_gate.place);
        self.free.push(hook.at_gate.place);
        self.count(&hook.at)
    }

    /// Takes back a retired hook whose gate nobody has used since; `missed` is what [`Trampolines::retire`] returned.
    pub(crate) fn reuse(&mut self, hook: &Hook, missed: u64) {
        self.free.retain(|place| *place != hook.at_gate.place);
        self.uncount(missed);
    }

    /// Keeps the count of a hook that is about to be dropped, and returns it.
    pub(crate) fn count(&mut self, hook: &AtFunction) -> u64 {
        let missed = hook.misses();
        self.missed += missed;
        missed
    }

    /// Forgets the count of a hook that stays.
    pub(crate) fn uncount(&mut self, missed: u64) {
        self.missed = self.missed.saturating_sub(missed);
    }

    /// Number of calls missed by these hooks and those that are gone.
    pub(crate) fn missed<'a>(&self, hooks: impl Iterator<Item = &'a AtFunction>) -> u64 {
        hooks.fold(self.missed, |sum, hook| sum + hook.misses())
    }
}

/// The program of a hook that an earlier daemon left.
pub(crate) fn program_of(hook: &Attached) -> Option<OwnedFd> {
    let info = crate::pins::info_of(hook.fd()?)?;
    own_programs().note_inherited(&info);
    // SAFETY: takes a number and gives a new descriptor or an error.
    new_fd(unsafe { bpf_prog_get_fd_by_id(info.prog_id) }).ok()
}

/// `recursion_misses` of a program; 0 if the kernel does not report it.
pub(crate) fn misses(program: BorrowedFd<'_>) -> u64 {
    info_of_program(program).map_or(0, |info| info.recursion_misses)
}
