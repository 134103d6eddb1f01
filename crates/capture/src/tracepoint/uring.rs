//! Which of the programs of bpf/uring.h this kernel can run, and what they have to be told.

use crate::error::{refused, CaptureError};
use libbpf_rs::btf::types::{Enum, FuncProto, Ptr, Typedef};
use libbpf_rs::btf::{Btf, ReferencesType};
use libbpf_rs::{MapCore, MapFlags, Object, OpenObject};
use std::collections::HashSet;

/// `struct uring_control` of bpf/uring.h.
const CONTROL_MAP: &str = ".bss.uring";
/// Every program of bpf/uring.h.
const PROGRAMS: [&str; 5] = [
    "uring_submit",
    "uring_submit_sqe",
    "uring_complete",
    "uring_complete_args",
    "uring_overflow",
];

/// What this kernel's io_uring looks like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Uring {
    /// Programs for it.
    pub(super) programs: Vec<&'static str>,
    creds_bit: u32,
    skip_bit: u32,
    /// How many operations it has.
    pub(crate) operations: u32,
}

impl Uring {
    /// Reads the kernel's types; `None` where it has no io_uring or no such tracepoints.
    pub(crate) fn of_this_kernel() -> Option<Uring> {
        let btf = Btf::from_vmlinux().ok()?;
        let submit = if arguments(&btf, "io_uring_submit_req").is_some() {
            "uring_submit"
        } else {
            arguments(&btf, "io_uring_submit_sqe")?;
            "uring_submit_sqe"
        };
        // The first argument is the probe's own.
        let complete = match arguments(&btf, "io_uring_complete")? {
            4 => "uring_complete",
            6.. => "uring_complete_args",
            _ => return None,
        };
        let mut programs = vec![submit, complete];
        if arguments(&btf, "io_uring_cqe_overflow").is_some() {
            programs.push("uring_overflow");
        }
        Some(Uring {
            programs,
            creds_bit: enumerator(&btf, "REQ_F_CREDS_BIT")?,
            skip_bit: enumerator(&btf, "REQ_F_CQE_SKIP_BIT")?,
            operations: enumerator(&btf, "IORING_OP_LAST")?,
        })
    }

    /// Tells the programs which operations are watched.
    pub(super) fn set_watched(
        &self,
        object: &Object,
        watched: &[u64; plan::uring::OPERATIONS / 64],
    ) -> Result<(), CaptureError> {
        let map = object.maps().find(|map| map.name() == CONTROL_MAP);
        let map = map.ok_or_else(|| super::missing(CONTROL_MAP))?;
        let mut value = Vec::with_capacity(map.value_size() as usize);
        for word in watched {
            value.extend_from_slice(&word.to_ne_bytes());
        }
        value.extend_from_slice(&self.creds_bit.to_ne_bytes());
        value.extend_from_slice(&self.skip_bit.to_ne_bytes());
        map.update(&0u32.to_ne_bytes(), &value, MapFlags::ANY)
            .map_err(refused("watched io_uring operations"))
    }
}

/// Leaves out the programs that this kernel has no use for.
pub(super) fn choose(open: &mut OpenObject, uring: Option<&Uring>) {
    for mut program in open.progs_mut() {
        let name = program.name().to_string_lossy().into_owned();
        let is_wanted = uring.is_some_and(|uring| uring.programs.iter().any(|p| *p == name));
        if PROGRAMS.iter().any(|p| *p == name) && !is_wanted {
            program.set_autoload(false);
        }
    }
}

/// Ids of the events of operations that are under way.
pub(super) fn in_flight(object: &Object) -> HashSet<u64> {
    let map = object.maps().find(|map| map.name() == "uring_requests");
    let Some(map) = map else {
        return HashSet::new();
    };
    map.keys()
        .filter_map(|key| map.lookup(&key, MapFlags::ANY).ok().flatten())
        .filter_map(|request| request.first_chunk().map(|id| u64::from_ne_bytes(*id)))
        .collect()
}

/// How many arguments the probe of a tracepoint has, its own included.
fn arguments(btf: &Btf<'_>, tracepoint: &str) -> Option<usize> {
    let hook = btf.type_by_name::<Typedef<'_>>(&format!("btf_trace_{tracepoint}"))?;
    let pointer = Ptr::try_from(hook.referenced_type()).ok()?;
    let function = FuncProto::try_from(pointer.referenced_type()).ok()?;
    Some(function.iter().count())
}

/// The value of an enumerator, of whichever enumeration.
fn enumerator(btf: &Btf<'_>, name: &str) -> Option<u32> {
    btf.type_by_kind::<Enum<'_>>().find_map(|kind| {
        kind.iter()
            .find(|member| member.name.is_some_and(|found| found == name))
            .and_then(|member| u32::try_from(member.value).ok())
    })
}
