//! Programs at the ends of kernel functions: each function gets a copy of `call_gate` (bpf/tarsier.bpf.c), which
//! knows the index of its gate and jumps to the shared body.

use super::gate_cells::{Gates, PLACES};
use super::map_access::MapAccess;
use crate::error::{system, CaptureError};
use crate::kernel::kernel_btf;
use crate::kernel::syscall_functions::{Function, Functions, PROTOTYPES};
use crate::own_programs::{info_of_program, own_programs};
use crate::pins::{Attached, Pins};
use bpf::load::refused;
use bpf::shared;
use libbpf_rs::libbpf_sys::{
    bpf_attach_type, bpf_insn, bpf_link_create, bpf_link_create_opts, bpf_prog_get_fd_by_id,
    bpf_prog_load, bpf_prog_load_opts, BPF_PROG_TYPE_TRACING, BPF_PSEUDO_MAP_FD,
    BPF_PSEUDO_MAP_VALUE, BPF_REG_0, BPF_REG_6, BPF_REG_9, BPF_TRACE_FENTRY, BPF_TRACE_FEXIT,
};
use libbpf_rs::{Map, MapCore, Object, OpenObject};
use plan::{Fact, Gate};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::fmt;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::{Arc, OnceLock};
use zerocopy::FromZeros;

/// The body programs, and the arrays through which they are called, by prototype.
const BODIES: [(&str, &str); PROTOTYPES] =
    [("call_body", "bodies"), ("other_call_body", "other_bodies")];
/// Prefix of the pin names of hooks.
const PIN: &str = "end-";
/// Suffix of the pin names of hooks whose programs test ids.
const PIN_IDS: &str = "-ids";
const GATE_PROGRAM: &std::ffi::CStr = c"tarsier_gate";
/// BPF_LD | BPF_IMM | BPF_DW.
const LOAD_ADDRESS: u8 = 0x18;
/// BPF_LDX | BPF_MEM | BPF_W.
const LOAD_WORD: u8 = 0x61;
/// BPF_LDX | BPF_MEM | BPF_DW.
const LOAD_DOUBLE_WORD: u8 = 0x79;
/// BPF_JMP | BPF_JGE | BPF_K.
const JUMP_IF_AT_LEAST: u8 = 0x35;
/// BPF_ALU64 | BPF_MOV | BPF_K, and BPF_ALU | BPF_MOV | BPF_K.
const MOVE_CONSTANT: [u8; 2] = [0xb7, 0xb4];
/// BPF_JMP | BPF_EXIT.
const EXIT: u8 = 0x95;

/// Everything needed to hook functions.
pub(super) struct Trampolines {
    /// Instructions of `call_gate`, as loaded.
    instructions: Vec<bpf_insn>,
    bodies: [i32; PROTOTYPES],
    gates_fd: i32,
    gates: Gates,
    free: Vec<usize>,
    /// Gates of hooks that an earlier daemon made, by function.
    left: BTreeMap<String, AtGate>,
    pins: Option<Arc<Pins>>,
    /// Number of calls missed by hooks that are gone.
    missed: u64,
}

/// The position of a program in a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Edge {
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
pub(super) struct AtFunction {
    link: Attached,
    program: OwnedFd,
}

impl AtFunction {
    /// Attaches a program. If there is a directory of pins, pins it as `pin`, after removed hooks whose pins begin
    /// with `predecessor` have ended.
    pub(super) fn attach(
        edge: Edge,
        function: &Function,
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
    pub(super) fn find(
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

    pub(super) fn link(&self) -> &Attached {
        &self.link
    }

    /// Number of calls missed because another task was in the same program on the same CPU.
    pub(super) fn misses(&self) -> u64 {
        misses(self.program.as_fd())
    }
}

/// A hook on the function of a call, with its gate. [`Trampolines::retire`] frees the gate.
pub(super) struct Hook {
    at: AtFunction,
    at_gate: AtGate,
}

/// The gate of a hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct AtGate {
    place: usize,
    /// Whether the hook's program can test ids. A program that cannot is verified faster: because of the pointer
    /// to the ids, the verifier searches all types of the kernel.
    asks_ids: bool,
}

impl AtGate {
    /// The gate that the hook can use: one that it cannot test is left open, and the body tests instead.
    fn told(self, gate: Option<&Gate>) -> shared::gate {
        as_told(gate.filter(|gate| self.asks_ids || !asks_ids(gate)))
    }
}

/// Whether the gate needs the credentials of the task.
fn asks_ids(gate: &Gate) -> bool {
    matches!(gate.fact, Fact::Uid | Fact::Euid | Fact::Suid | Fact::Fsuid)
}

impl Hook {
    pub(super) fn at_function(&self) -> &AtFunction {
        &self.at
    }
}

/// Before loading: sets the functions that the programs are verified for, or leaves the programs out if there are
/// none.
pub(super) fn choose_targets(
    open: &mut OpenObject,
    functions: Option<&Functions>,
) -> Result<(), CaptureError> {
    for mut program in open.progs_mut() {
        let name = program.name().to_string_lossy().into_owned();
        let prototype = match name.as_str() {
            "call_gate" => 0,
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

impl Trampolines {
    /// Starts with an object that was loaded with targets.
    pub(super) fn new(
        object: &Object,
        pins: Option<&Arc<Pins>>,
    ) -> Result<Trampolines, CaptureError> {
        let map = |name: &str| -> Result<Map<'_>, CaptureError> {
            let found = object.maps().find(|map| map.name() == name);
            found.ok_or_else(|| super::missing(name))
        };
        let mut bodies = [0; PROTOTYPES];
        for (fd, (body, array)) in bodies.iter_mut().zip(BODIES) {
            let array = map(array)?;
            *fd = array.as_fd().as_raw_fd();
            let Some(program) = object.progs().find(|p| p.name() == body && p.autoload()) else {
                continue;
            };
            let program = program.as_fd().as_raw_fd() as u32;
            array
                .put(&0u32.to_ne_bytes(), &program.to_ne_bytes())
                .map_err(refused(format!("body {body}")))?;
        }
        let gate = object.progs().find(|program| program.name() == "call_gate");
        let gate = gate.ok_or_else(|| super::missing("call_gate"))?;
        let gates = map(".bss.gates")?;
        let links = pins.map(|pins| pins.links()).unwrap_or_default();
        let left: BTreeMap<String, AtGate> = links.iter().filter_map(|name| pinned(name)).collect();
        let is_free = |place: &usize| !left.values().any(|taken| taken.place == *place);
        Ok(Trampolines {
            instructions: gate.insns().to_vec(),
            bodies,
            gates_fd: gates.as_fd().as_raw_fd(),
            gates: Gates::map(&gates)?,
            free: (0..PLACES).rev().filter(is_free).collect(),
            left,
            pins: pins.cloned(),
            missed: 0,
        })
    }

    /// Attaches a program to the end of a function. Its gate, which is meant for `gate`, is still open.
    pub(super) fn hook(
        &mut self,
        function: &Function,
        gate: Option<&Gate>,
    ) -> Result<Hook, CaptureError> {
        if let Some(hook) = self.inherit(function)? {
            return Ok(hook);
        }
        let place = self
            .free
            .pop()
            .ok_or_else(|| super::missing("a free gate for one more function"))?;
        let asks_ids = gate.is_some_and(asks_ids);
        let hooked = self.attach(function, AtGate { place, asks_ids });
        if hooked.is_err() {
            self.free.push(place);
        }
        hooked
    }

    /// Loads the program for a function, as [`Trampolines::hook`] does, and attaches it to nothing.
    pub(super) fn load(&self, function: &Function) -> Result<OwnedFd, Errno> {
        let at_gate = AtGate {
            place: 0,
            asks_ids: true,
        };
        let instructions = self.instructions_for(function, at_gate);
        load(&instructions, function.btf_id, Edge::Exit.kind())
    }

    fn attach(&self, function: &Function, at_gate: AtGate) -> Result<Hook, CaptureError> {
        let instructions = self.instructions_for(function, at_gate);
        let predecessor = format!("{PIN}{}-", function.name);
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
    fn inherit(&mut self, function: &Function) -> Result<Option<Hook>, CaptureError> {
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
    pub(super) fn forget_left(&mut self) {
        let left = std::mem::take(&mut self.left).into_values();
        self.free.extend(left.map(|at_gate| at_gate.place));
    }

    /// A copy of the program in which the address of the first gate is replaced with that of its own gate.
    fn instructions_for(&self, function: &Function, at_gate: AtGate) -> Vec<bpf_insn> {
        let mut copy = self.instructions.clone();
        let offset = at_gate.place * size_of::<shared::gate>();
        if !at_gate.asks_ids {
            leave_out_ids(&mut copy);
        }
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
    pub(super) fn open_unless(&self, hook: &Hook, gate: Option<&Gate>) {
        let AtGate { place, .. } = hook.at_gate;
        if self.gates.get(place) != hook.at_gate.told(gate) {
            self.gates.open(place);
        }
    }

    /// Sets a hook's gate. It is open, or unchanged since before the last swap of the tables: that swap waited for
    /// programs that still used the previous gate.
    pub(super) fn close(&self, hook: &Hook, gate: Option<&Gate>) {
        let AtGate { place, .. } = hook.at_gate;
        let gate = hook.at_gate.told(gate);
        if self.gates.get(place) != gate {
            self.gates.set(place, gate);
        }
    }

    /// Undoes changes of gates by others. Returns whether there were any.
    pub(super) fn restore_gates(&self) -> bool {
        self.gates.restore()
    }

    /// Keeps the count of a hook that is about to be dropped, and frees its gate. Returns the count.
    pub(super) fn retire(&mut self, hook: &Hook) -> u64 {
        self.gates.open(hook.at_gate.place);
        self.free.push(hook.at_gate.place);
        self.count(&hook.at)
    }

    /// Takes back a retired hook whose gate nobody has used since; `missed` is what [`Trampolines::retire`] returned.
    pub(super) fn reuse(&mut self, hook: &Hook, missed: u64) {
        self.free.retain(|place| *place != hook.at_gate.place);
        self.uncount(missed);
    }

    /// Keeps the count of a hook that is about to be dropped, and returns it.
    pub(super) fn count(&mut self, hook: &AtFunction) -> u64 {
        let missed = hook.misses();
        self.missed += missed;
        missed
    }

    /// Forgets the count of a hook that stays.
    pub(super) fn uncount(&mut self, missed: u64) {
        self.missed = self.missed.saturating_sub(missed);
    }

    /// Number of calls missed by these hooks and those that are gone.
    pub(super) fn missed<'a>(&self, hooks: impl Iterator<Item = &'a AtFunction>) -> u64 {
        hooks.fold(self.missed, |sum, hook| sum + hook.misses())
    }
}

/// Makes a copy of `call_gate` jump to its end where it would load the pointer to the credentials: the verifier
/// sees that the code after it is unreachable, and drops it. The load is found as the only one through the pointer
/// to the task, which is in the register of results. The jump tests that the fact, in a register that calls
/// preserve, is at least 0, which is always true. Code that looks different is left unchanged.
fn leave_out_ids(copy: &mut [bpf_insn]) -> Option<()> {
    let mut loads = (0..copy.len())
        .filter(|&i| copy[i].code == LOAD_DOUBLE_WORD && u32::from(copy[i].src_reg()) == BPF_REG_0);
    let load = loads.next().filter(|_| loads.next().is_none())?;
    let fact = copy.iter().find(|insn| insn.code == LOAD_WORD)?.dst_reg();
    let keeps = (BPF_REG_6..=BPF_REG_9).contains(&u32::from(fact));
    let end = copy.len().checked_sub(2).filter(|_| keeps)?;
    let [result, exit] = [&copy[end], &copy[end + 1]];
    let is_end = MOVE_CONSTANT.contains(&result.code)
        && u32::from(result.dst_reg()) == BPF_REG_0
        && result.imm == 0
        && exit.code == EXIT;
    let distance = end.checked_sub(load + 1).filter(|_| is_end)?;
    let mut jump = bpf_insn {
        code: JUMP_IF_AT_LEAST,
        off: i16::try_from(distance).ok()?,
        ..Default::default()
    };
    jump.set_dst_reg(fact);
    copy[load] = jump;
    Some(())
}

/// Name of a hook's pin.
fn pin_of(function: &Function, at_gate: AtGate) -> String {
    let AtGate { place, asks_ids } = at_gate;
    let ids = if asks_ids { PIN_IDS } else { "" };
    format!("{PIN}{}-{place}{ids}", function.name)
}

/// Function and gate of the hook with this pin.
fn pinned(name: &str) -> Option<(String, AtGate)> {
    let name = name.strip_prefix(PIN)?;
    let with_ids = name.strip_suffix(PIN_IDS);
    let (function, place) = with_ids.unwrap_or(name).rsplit_once('-')?;
    let at_gate = AtGate {
        place: place.parse().ok()?,
        asks_ids: with_ids.is_some(),
    };
    Some((function.to_owned(), at_gate))
}

/// A gate in the form that the programs read; without a gate it is open.
fn as_told(gate: Option<&Gate>) -> shared::gate {
    let range = |(first, last)| shared::gate_range {
        first,
        span: last - first,
    };
    let told = |gate: &Gate| shared::gate {
        fact: gate.fact as u32,
        mask: gate.mask,
        range: gate.ranges.map(range),
        results: range(gate.results),
    };
    let open = shared::gate {
        fact: shared::GATE_OPEN,
        ..shared::gate::new_zeroed()
    };
    gate.map_or(open, told)
}

/// Loads a program for a function.
fn load(instructions: &[bpf_insn], btf_id: u32, kind: bpf_attach_type) -> Result<OwnedFd, Errno> {
    let mut options = bpf_prog_load_opts {
        sz: std::mem::size_of::<bpf_prog_load_opts>() as _,
        expected_attach_type: kind,
        attach_btf_id: btf_id,
        // SAFETY: integers and pointers, all of which may be zero.
        ..unsafe { std::mem::zeroed() }
    };
    let loading = own_programs().load();
    // SAFETY: the instructions, the names and the options outlive the call, which only reads them.
    let fd = unsafe {
        bpf_prog_load(
            BPF_PROG_TYPE_TRACING,
            GATE_PROGRAM.as_ptr(),
            c"Dual BSD/GPL".as_ptr(),
            instructions.as_ptr(),
            instructions.len() as _,
            &mut options,
        )
    };
    let program = new_fd(fd)?;
    own_programs().note(program.as_fd());
    drop(loading);
    Ok(program)
}

/// Attaches a program to the function it was loaded for (`target` 0), or to a descriptor. Dropping the result
/// detaches it.
pub(super) fn link(
    program: BorrowedFd<'_>,
    target: RawFd,
    kind: bpf_attach_type,
) -> Result<OwnedFd, Errno> {
    let options = bpf_link_create_opts {
        sz: std::mem::size_of::<bpf_link_create_opts>() as _,
        ..Default::default()
    };
    // SAFETY: the options outlive the call, which only reads them.
    let fd = unsafe { bpf_link_create(program.as_raw_fd(), target, kind, &options) };
    new_fd(fd)
}

/// Converts the result of libbpf's low-level calls: a descriptor, or a negative errno.
pub(super) fn new_fd(fd: i32) -> Result<OwnedFd, Errno> {
    if fd < 0 {
        return Err(Errno::from_raw_os_error(-fd));
    }
    // SAFETY: the kernel has just made this descriptor for us.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// The program of a hook that an earlier daemon left.
pub(super) fn program_of(hook: &Attached) -> Option<OwnedFd> {
    let info = crate::pins::info_of(hook.fd()?)?;
    own_programs().note_inherited(&info);
    // SAFETY: takes a number and gives a new descriptor or an error.
    new_fd(unsafe { bpf_prog_get_fd_by_id(info.prog_id) }).ok()
}

/// `recursion_misses` of a program; 0 if the kernel does not report it.
pub(super) fn misses(program: BorrowedFd<'_>) -> u64 {
    info_of_program(program).map_or(0, |info| info.recursion_misses)
}

/// Whether a program can be attached to the end of a kernel function: tried once, on a function that the kernel
/// has for such tests.
pub(crate) fn attaches() -> Result<(), String> {
    static TRIED: OnceLock<Result<(), String>> = OnceLock::new();
    TRIED.get_or_init(try_to_attach).clone()
}

fn try_to_attach() -> Result<(), String> {
    const TRIAL: &str = "bpf_fentry_test1";
    let types = kernel_btf::of_this_kernel().ok_or("the kernel's types cannot be read")?;
    let function = types.functions().get(TRIAL);
    let function = function.ok_or_else(|| format!("the kernel has no function {TRIAL}"))?;
    let mut instructions = [bpf_insn::default(); 2];
    instructions[0].code = 0xb7; // r0 = 0
    instructions[1].code = 0x95; // exit
    let program = load(&instructions, function.btf_id, BPF_TRACE_FEXIT)
        .map_err(|errno| format!("the kernel refuses fexit programs: {errno}"))?;
    link(program.as_fd(), 0, BPF_TRACE_FEXIT)
        .map(drop)
        .map_err(|errno| format!("the kernel does not attach fexit programs: {errno}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use zerocopy::IntoBytes;

    #[test]
    fn a_pin_tells_function_and_gate_of_its_hook() {
        let function = Function {
            name: "__x64_sys_read".to_owned(),
            btf_id: 1,
            prototype: 0,
            address: 0,
        };
        for asks_ids in [false, true] {
            let place = 17;
            let at_gate = AtGate { place, asks_ids };
            let found = pinned(&pin_of(&function, at_gate));
            assert_eq!(found, Some((function.name.clone(), at_gate)));
        }
        assert_eq!(pinned("end-__x64_sys_read-"), None);
        assert_eq!(pinned("on_vfs_link"), None);
    }

    #[test]
    fn a_gate_that_a_hook_cannot_ask_stays_open() {
        let gate = |fact| Gate {
            fact,
            mask: 1,
            ranges: [(1, 2), (1, 2)],
            results: (0, 0),
        };
        let narrow = AtGate {
            place: 0,
            asks_ids: false,
        };
        let wide = AtGate {
            asks_ids: true,
            ..narrow
        };
        for (fact, is_id) in [(Fact::Auid, false), (Fact::Uid, true), (Fact::Fsuid, true)] {
            let gate = gate(fact);
            assert_eq!(asks_ids(&gate), is_id);
            assert_eq!(wide.told(Some(&gate)), as_told(Some(&gate)));
            let told = narrow.told(Some(&gate));
            assert_eq!(told, as_told(Some(&gate).filter(|_| !is_id)));
        }
        assert_eq!(as_told(None).fact, shared::GATE_OPEN);
    }

    #[test]
    fn a_gate_is_told_as_the_tables_have_it() {
        let gate = Gate {
            fact: Fact::Auid,
            mask: 0xff0f,
            ranges: [(1000, 60000), (u32::MAX, u32::MAX)],
            results: (-13i32 as u32, -1i32 as u32),
        };
        assert_eq!(as_told(Some(&gate)).as_bytes(), gate.words().as_bytes());
    }
}
