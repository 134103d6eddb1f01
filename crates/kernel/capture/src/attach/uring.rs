//! The programs of bpf/uring_hooks.bpf.inc.c that this kernel can run, the values that they need, and hooks on the
//! functions of operations.

use crate::attach::copies;
use crate::attach::probes::{At, Probed, OPERATION_BEGINS, OPERATION_ENDS};
use crate::attach::trampoline::{AtFunction, Edge};
use crate::error::CaptureError;
use crate::kernel::kernel_btf;
use crate::kernel::syscall_functions::KernelFunction;
use crate::kernel::uring_functions::{self, Operation, OperationFunctions};
use crate::pins::{Attached, Pins};
use crate::shared::map_access::MapAccess;
use bpf::load::refused;
use bpf::shared::{
    self, uring_control, uring_part, uring_request, URING_FAILURE, URING_ISSUE, URING_PART_SHIFT,
    URING_PREP,
};
use libbpf_rs::btf::types::{Enum, FuncProto, Ptr, Typedef};
use libbpf_rs::btf::{Btf, ReferencesType};
use libbpf_rs::{MapCore, Object, OpenObject};
use plan::{Entry, Plan};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::{Arc, OnceLock};
use zerocopy::{FromBytes, IntoBytes};

/// The plan and the programs must use the same number for the io_uring entry.
const _: () = assert!(Entry::Uring as u32 == shared::ENTRY_URING);
/// The map with `struct uring_control`.
const CONTROL_MAP: &str = ".bss.uring";
/// Programs of bpf/uring_hooks.bpf.inc.c for tracepoints.
const TRACEPOINTS: [&str; 6] = [
    "uring_submit",
    "uring_submit_sqe",
    "uring_complete",
    "uring_complete_args",
    "uring_overflow",
    LINK_FAILED,
];
const LINK_FAILED: &str = "uring_link_failed";
/// The program on the function through which operations fail.
const FAILED: &str = "uring_failed";
/// OperationFunctions that are complete when the kernel's function for them returns 0. Others may complete later, or
/// several times.
#[rustfmt::skip]
const END_WHEN_ISSUED: [&str; 35] = [
    "nop", "fsync", "sync_file_range", "connect", "fallocate", "openat", "close", "files_update", "statx", "fadvise",
    "madvise", "openat2", "epoll_ctl", "splice", "provide_buffers", "remove_buffers", "tee", "shutdown", "renameat",
    "unlinkat", "mkdirat", "symlinkat", "linkat", "fsetxattr", "setxattr", "fgetxattr", "getxattr", "socket",
    "fixed_fd_install", "ftruncate", "bind", "listen", "pipe",
    "epoll_wait", "nop128",
];

/// One bit for each operation.
pub(crate) type OperationBits = [u64; plan::uring::OPERATIONS / 64];

/// A part of an operation, at one of its two functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum OperationPart {
    /// The end of the operation.
    Issue,
    /// The beginning of the operation's execution.
    Begin,
    /// The submission of the operation.
    Prep,
}

/// The part of an operation, and the BTF id of the function that is hooked for it.
pub(crate) type OperationHook = (OperationPart, u32);

impl OperationPart {
    const ALL: [OperationPart; 3] = [
        OperationPart::Issue,
        OperationPart::Begin,
        OperationPart::Prep,
    ];

    /// The program that is copied for each function.
    fn program(self) -> &'static str {
        match self {
            OperationPart::Issue => "uring_issue_gate",
            OperationPart::Begin => "uring_issue_begins",
            OperationPart::Prep => "uring_prep_gate",
        }
    }

    /// The body that the copies jump to, and the array for the jump.
    fn body(self) -> Option<(&'static str, &'static str)> {
        match self {
            OperationPart::Issue => Some(("uring_issue_body", "uring_issue_bodies")),
            OperationPart::Begin => None,
            OperationPart::Prep => Some(("uring_prep_body", "uring_prep_bodies")),
        }
    }

    fn of(self, operation: &Operation) -> &KernelFunction {
        match self {
            OperationPart::Issue | OperationPart::Begin => &operation.issue,
            OperationPart::Prep => &operation.prep,
        }
    }

    fn edge(self) -> Edge {
        match self {
            OperationPart::Issue | OperationPart::Prep => Edge::Exit,
            OperationPart::Begin => Edge::Entry,
        }
    }

    fn pin(self, function: &KernelFunction) -> String {
        match self {
            OperationPart::Issue | OperationPart::Prep => format!("uring-{}", function.btf_id),
            OperationPart::Begin => format!("uring-begin-{}", function.btf_id),
        }
    }
}

/// The form of this kernel's io_uring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Uring {
    submit: &'static str,
    /// Programs that see completions.
    completions: Vec<&'static str>,
    /// Functions of operations, if these are hooked or probed.
    functions: Option<OperationFunctions>,
    /// Whether the functions are probed, not hooked.
    probes: bool,
    creds_bit: u32,
    skip_bit: u32,
    /// None of the flags' bits if the kernel does not name it.
    async_bit: u32,
    /// Number of operations that the kernel has.
    pub(crate) operations: u32,
}

impl Uring {
    /// Reads the kernel's types; `None` if it has no io_uring, or lacks the tracepoints.
    pub(crate) fn of_this_kernel() -> Option<Uring> {
        static FOUND: OnceLock<Option<Uring>> = OnceLock::new();
        FOUND.get_or_init(Uring::find).clone()
    }

    fn find() -> Option<Uring> {
        let types = kernel_btf::of_this_kernel()?;
        let btf = types.btf();

        let submit = if arguments(btf, "io_uring_submit_req").is_some() {
            "uring_submit"
        } else {
            arguments(btf, "io_uring_submit_sqe")?;
            "uring_submit_sqe"
        };
        // The first argument is the probe's own.
        let complete = match arguments(btf, "io_uring_complete")? {
            4 => "uring_complete",
            6.. => "uring_complete_args",
            _ => return None,
        };

        let mut completions = vec![complete];
        if arguments(btf, "io_uring_cqe_overflow").is_some() {
            completions.push("uring_overflow");
        }
        Some(Uring {
            submit,
            completions,
            functions: None,
            probes: false,
            creds_bit: enumerator(btf, "REQ_F_CREDS_BIT")?,
            skip_bit: enumerator(btf, "REQ_F_CQE_SKIP_BIT")?,
            async_bit: enumerator(btf, "REQ_F_ASYNC_DATA_BIT").unwrap_or(u64::BITS),
            operations: enumerator(btf, "IORING_OP_LAST")?,
        })
    }

    /// The kernel's io_uring as seen at its functions, not by tracepoints, if the functions of every operation can
    /// be hooked or probed. Looked up once, since the kernel has many symbols.
    pub(crate) fn with_functions(probes: bool) -> Option<Uring> {
        static FOUND: OnceLock<Option<Uring>> = OnceLock::new();
        let found = FOUND.get_or_init(Uring::find_functions).clone()?;
        Some(Uring { probes, ..found })
    }

    fn find_functions() -> Option<Uring> {
        let mut uring = Uring::of_this_kernel()?;
        let types = kernel_btf::of_this_kernel()?;
        // Cancelled links do not call the function through which other operations fail.
        arguments(types.btf(), "io_uring_fail_link").filter(|count| *count == 3)?;
        uring.functions = Some(uring_functions::of_this_kernel(&types, uring.operations)?);
        Some(uring)
    }

    /// The hooks that a plan needs.
    pub(crate) fn wanted(&self, plan: &Plan) -> WantedHooks<'_> {
        let mut wanted = WantedHooks::default();
        if plan.hooks.uring.is_none() {
            return wanted;
        }
        let Some(OperationFunctions { all, failing }) = &self.functions else {
            wanted.programs.extend(&self.completions);
            wanted.programs.push(self.submit);
            return wanted;
        };

        wanted.programs.push(LINK_FAILED);
        if self.probes {
            wanted.failing = Some(failing);
        } else {
            wanted.programs.push(FAILED);
        }

        let watched = plan.watched_operations();
        let is_watched = |op: usize| {
            watched
                .get(op / 64)
                .is_some_and(|w| w >> (op % 64) & 1 == 1)
        };

        let classes = plan.operation_classes();
        for (op, operation) in all.iter().enumerate() {
            let Some(operation) = operation else {
                continue;
            };
            if classes[op] != 0 {
                wanted.add(operation, OperationPart::Begin);
            }
            if !is_watched(op) {
                continue;
            }

            // An operation that is not complete when its function returns is seen to end at its completion.
            wanted.add(operation, OperationPart::Prep);
            let name = abi::uring_op_name(op as u32);
            if name.is_some_and(|name| END_WHEN_ISSUED.contains(&name)) {
                wanted.add(operation, OperationPart::Issue);
            } else if !wanted.programs.contains(&self.completions[0]) {
                wanted.programs.extend(&self.completions);
            }
        }
        wanted
    }

    /// Sets the bodies that the copies of the gates jump to.
    pub(crate) fn set_bodies(&self, object: &Object) -> Result<(), CaptureError> {
        if self.functions.is_none() || self.probes {
            return Ok(());
        }

        for (body, array) in OperationPart::ALL
            .into_iter()
            .filter_map(OperationPart::body)
        {
            let program = object.progs().find(|program| program.name() == body);
            let program = program.ok_or_else(|| crate::error::missing(body))?;
            let map = object.maps().find(|map| map.name() == array);
            let map = map.ok_or_else(|| crate::error::missing(array))?;
            let fd = program.as_fd().as_raw_fd() as u32;
            map.put(0u32.as_bytes(), fd.as_bytes())
                .map_err(refused(format!("body {body}")))?;
        }
        Ok(())
    }

    /// Tells the programs which operations are watched, and which may still be running.
    pub(crate) fn set_watched(
        &self,
        object: &Object,
        watched: &OperationBits,
        known: &OperationBits,
    ) -> Result<(), CaptureError> {
        let map = object.maps().find(|map| map.name() == CONTROL_MAP);
        let map = map.ok_or_else(|| crate::error::missing(CONTROL_MAP))?;
        let control = uring_control {
            watched: *watched,
            known: *known,
            creds_bit: self.creds_bit,
            skip_bit: self.skip_bit,
            async_bit: self.async_bit,
            unused: 0,
        };
        map.put(0u32.as_bytes(), control.as_bytes())
            .map_err(refused("watched io_uring operations"))?;
        Ok(())
    }

    /// The function that a program is verified for; `None` if it is not loaded.
    fn target(&self, program: &str) -> Option<&str> {
        if self.probes {
            return None;
        }
        let functions = self.functions.as_ref()?;
        if program == FAILED {
            return Some(&functions.failing.name);
        }

        let part = OperationPart::ALL.into_iter().find(|part| {
            program == part.program() || part.body().is_some_and(|(body, _)| program == body)
        })?;
        let operation = functions.all.iter().flatten().next()?;
        Some(&part.of(operation).name)
    }

    fn uses_tracepoint(&self, program: &str) -> bool {
        let own = match self.functions {
            Some(_) => LINK_FAILED,
            None => self.submit,
        };
        program == own || self.completions.contains(&program)
    }
}

/// Leaves out the programs that this kernel cannot use.
pub(crate) fn choose(open: &mut OpenObject, uring: Option<&Uring>) -> Result<(), CaptureError> {
    for mut program in open.progs_mut() {
        let name = program.name().to_string_lossy().into_owned();
        if TRACEPOINTS.contains(&name.as_str()) {
            program.set_autoload(uring.is_some_and(|uring| uring.uses_tracepoint(&name)));
        } else if [OPERATION_BEGINS, OPERATION_ENDS].contains(&name.as_str()) {
            program.set_autoload(uring.is_some_and(|uring| uring.probes));
        } else if name.starts_with("uring_") && !copies::is_copy(&name) {
            match uring.and_then(|uring| uring.target(&name)) {
                Some(function) => program
                    .set_attach_target(0, Some(function.to_owned()))
                    .map_err(refused(format!("target {function}")))?,
                None => program.set_autoload(false),
            };
        }
    }
    Ok(())
}

/// The hooks that a plan needs.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct WantedHooks<'a> {
    /// Programs, in the order in which they are attached.
    programs: Vec<&'static str>,
    functions: BTreeMap<OperationHook, &'a KernelFunction>,
    /// The function through which operations fail; `None` if functions are hooked, not probed.
    failing: Option<&'a KernelFunction>,
}

impl<'a> WantedHooks<'a> {
    fn add(&mut self, operation: &'a Operation, part: OperationPart) {
        let function = part.of(operation);
        self.functions.insert((part, function.btf_id), function);
    }

    pub(crate) fn programs(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.programs.iter().copied()
    }

    /// Functions to hook; those where operations end come first.
    pub(crate) fn functions(
        &self,
    ) -> impl Iterator<Item = (&'a KernelFunction, OperationPart)> + '_ {
        let hooks = self.failing.is_none().then_some(&self.functions);
        let hooks = hooks.into_iter().flatten();
        hooks.map(|(&(part, _), &function)| (function, part))
    }

    /// Functions to probe.
    pub(crate) fn probed(&self) -> &BTreeMap<OperationHook, &'a KernelFunction> {
        static NONE: BTreeMap<OperationHook, &KernelFunction> = BTreeMap::new();
        match self.failing {
            Some(_) => &self.functions,
            None => &NONE,
        }
    }

    /// The functions of `places` to probe at this position, and their cookies for the link with `number`.
    pub(crate) fn to_probe(
        &self,
        places: &BTreeSet<OperationHook>,
        at: At,
        number: u32,
    ) -> Vec<Probed<'a>> {
        let cookie = |part: uring_part| u64::from(number) | u64::from(part) << URING_PART_SHIFT;
        let wanted = self
            .functions
            .iter()
            .filter(|(hook, _)| places.contains(hook));
        let by_address = wanted.filter_map(|(&(part, btf_id), &function)| {
            let is_there = part != OperationPart::Begin || at == At::Entry;
            let part = match part {
                OperationPart::Prep => URING_PREP,
                OperationPart::Issue | OperationPart::Begin => URING_ISSUE,
            };
            is_there.then_some((btf_id, (function, cookie(part))))
        });

        // The beginning and the end of an operation's execution are in the same function.
        let functions: BTreeMap<u32, Probed<'a>> = by_address.collect();
        let mut probed: Vec<Probed<'a>> = functions.into_values().collect();
        if at == At::Entry {
            let failing = self
                .failing
                .map(|function| (function, cookie(URING_FAILURE)));
            probed.extend(failing);
        }
        probed
    }
}

/// Attaches a copy of the part's program to a function.
pub(crate) fn hook(
    object: &Object,
    function: &KernelFunction,
    part: OperationPart,
    pins: Option<&Arc<Pins>>,
) -> Result<AtFunction, CaptureError> {
    let pin = part.pin(function);
    if let Some(found) = AtFunction::find(pins, &pin)? {
        return Ok(found);
    }

    let copied = part.program();
    let program = object.progs().find(|program| program.name() == copied);
    let program = program.ok_or_else(|| crate::error::missing(copied))?;
    AtFunction::attach(part.edge(), function, program.insns(), pins, &pin, &pin)
}

/// Hooks in force for io_uring operations.
#[derive(Default)]
pub(crate) struct UringHooks {
    /// Links, by name of the program.
    pub(crate) programs: BTreeMap<&'static str, Vec<Attached>>,
    pub(crate) functions: BTreeMap<OperationHook, AtFunction>,
}

impl UringHooks {
    pub(crate) fn add(&mut self, others: UringHooks) {
        self.programs.extend(others.programs);
        self.functions.extend(others.functions);
    }

    /// Links of these hooks.
    pub(crate) fn links(&self) -> impl Iterator<Item = &Attached> {
        let functions = self.functions.values().map(AtFunction::link);
        self.programs.values().flatten().chain(functions)
    }

    /// Takes out the hooks that are not wanted.
    pub(crate) fn take_unwanted(&mut self, wanted: &WantedHooks<'_>) -> UringHooks {
        let (kept, programs) = std::mem::take(&mut self.programs)
            .into_iter()
            .partition(|(program, _)| wanted.programs.contains(program));
        self.programs = kept;

        let (kept, functions) = std::mem::take(&mut self.functions)
            .into_iter()
            .partition(|(hook, _)| wanted.functions.contains_key(hook));
        self.functions = kept;
        UringHooks {
            programs,
            functions,
        }
    }
}

/// Ids of the events of operations that are still running.
pub(crate) fn in_flight(map: &impl MapCore) -> HashSet<u64> {
    map.keys()
        .filter_map(|key| map.get(&key).ok().flatten())
        .filter_map(|value| uring_request::read_from_bytes(&value).ok())
        .map(|request| request.id)
        .collect()
}

/// Number of arguments of a tracepoint's probe, including its own.
fn arguments(btf: &Btf<'_>, tracepoint: &str) -> Option<usize> {
    let hook = btf.type_by_name::<Typedef<'_>>(&format!("btf_trace_{tracepoint}"))?;
    let pointer = Ptr::try_from(hook.referenced_type()).ok()?;
    let function = FuncProto::try_from(pointer.referenced_type()).ok()?;
    Some(function.iter().count())
}

/// The value of an enumerator of any enumeration.
pub(crate) fn enumerator(btf: &Btf<'_>, name: &str) -> Option<u32> {
    btf.type_by_kind::<Enum<'_>>().find_map(|kind| {
        kind.iter()
            .find(|member| member.name.is_some_and(|found| found == name))
            .and_then(|member| u32::try_from(member.value).ok())
    })
}
