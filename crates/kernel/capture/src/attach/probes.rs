//! Probes (kprobe.multi): programs at the beginnings and ends of kernel functions that run with preemption
//! disabled. They cost more than programs in trampolines (trampoline.rs), and are used where those would be
//! preempted and miss calls.
//!
//! One link has many functions. Each link has a number, which its programs get as their cookie; they record calls
//! only while the bit of that number is set in `control.probe_links`. So one link takes over from another in one
//! step.

use crate::check::canary;
use crate::error::{system, CaptureError};
use crate::kernel::kernel_btf::{self, Types};
use crate::kernel::syscall_functions::{self, KernelFunction};
use crate::own_programs::own_programs;
use crate::pins::{info_of, Attached, Pins};
use crate::tracing;
use bpf::shared::PROBE_LINKS_MAX;
use libbpf_rs::btf::types::Struct;
use libbpf_rs::libbpf_sys::{
    bpf_insn, bpf_link_create, bpf_link_create_opts, bpf_prog_load, bpf_prog_load_opts,
    BPF_F_KPROBE_MULTI_RETURN, BPF_PROG_TYPE_KPROBE, BPF_TRACE_KPROBE_MULTI,
};
use plan::Plan;
use rustix::io::Errno;
use std::collections::BTreeSet;
use std::ffi::CString;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, OnceLock};

/// The program at the ends of functions of system calls.
pub(crate) const CALL_PROBE: &str = "call_probe";
/// Prefix of the names of those programs in bpf/object_hooks.bpf.inc.c that are probes.
pub(crate) const PROBE: &str = "probe_";
/// The programs at the beginnings and at the ends of functions of io_uring operations.
pub(crate) const OPERATION_BEGINS: &str = "uring_probe_on";
pub(crate) const OPERATION_ENDS: &str = "uring_probe_after";
/// Limit of links for one kind of place; beyond it, a single new link replaces all.
const LINKS_MAX: usize = 16;
/// The function that the kernel has for tests.
const TRIAL: &str = "bpf_fentry_test1";
/// Before Linux 6.14, each link stores the return addresses of running calls itself, two for each function and
/// possible processor. A call that finds no free entry is missed. Naming functions repeatedly enlarges the store,
/// here to this many entries.
const RETURNS_MIN: usize = 8192;

/// The position of a probe in a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum At {
    Entry,
    End,
}

/// Probes that were attached together, under one number.
pub(crate) struct Probes<P> {
    pub(crate) links: Vec<Attached>,
    pub(crate) number: u32,
    /// The places that they are on.
    pub(crate) places: BTreeSet<P>,
}

/// Probes at the ends of functions of system calls, by index in the kernel's functions.
pub(crate) type CallProbes = Probes<usize>;
impl<P> Probes<P> {
    pub(crate) fn links(&self) -> &[Attached] {
        &self.links
    }

    /// Number of calls for which there was no space to store the return address.
    pub(crate) fn missed(&self) -> u64 {
        let infos = self
            .links
            .iter()
            .filter_map(Attached::fd)
            .filter_map(info_of);
        // SAFETY: the kernel has filled this member for links of this type; all of it are integers.
        let missed = infos.map(|info| unsafe { info.__bindgen_anon_1.kprobe_multi.missed });
        missed.sum()
    }

    /// The links without their places, for resting.
    pub(crate) fn at_rest(self) -> Vec<Attached> {
        self.links
    }
}

/// The functions of the plan's calls that need a new link beside those of `armed`; empty if its engine does not probe.
pub(crate) fn places_of_calls(plan: &Plan, armed: &[CallProbes]) -> BTreeSet<usize> {
    if !plan.form().probes {
        return BTreeSet::new();
    }
    let wanted = syscall_functions::places_of(&canary::functions(plan));
    to_probe(armed, &wanted)
}

/// Numbers, as bits, of the links that are pinned.
pub(crate) fn pinned_numbers(pins: Option<&Arc<Pins>>) -> u64 {
    let pinned = pins.map(|pins| pins.links());
    let numbers = pinned.iter().flatten().filter_map(|pin| number_of(pin));
    numbers.fold(0, |bits, number| bits | 1 << number)
}

/// The lowest number that is not among these, given as bits.
pub(crate) fn lowest_free(taken: u64) -> Option<u32> {
    Some(taken.trailing_ones()).filter(|number| *number < PROBE_LINKS_MAX)
}

/// Name of a link's pin.
pub(crate) fn pin_of(program: &str, number: u32) -> String {
    format!("{program}-{number}")
}

/// The number of the link with this pin.
fn number_of(pin: &str) -> Option<u32> {
    let (program, number) = pin.rsplit_once('-')?;
    if ![CALL_PROBE, OPERATION_BEGINS, OPERATION_ENDS].contains(&program) {
        return None;
    }
    let number = number.parse().ok();
    number.filter(|number| *number < PROBE_LINKS_MAX)
}

/// The places that need a new link so that all wanted ones are probed: the missing ones; or, if there would be too many
/// links, all wanted ones, in place of the old links.
///
/// A link sees the end of a call only if it saw its beginning. So a link is not replaced just because some of its
/// places are no longer wanted: calls in progress would be lost.
pub(crate) fn to_probe<P: Ord + Copy>(armed: &[Probes<P>], wanted: &BTreeSet<P>) -> BTreeSet<P> {
    let probed: BTreeSet<P> = armed.iter().flat_map(|p| &p.places).copied().collect();
    let missing: BTreeSet<P> = wanted.difference(&probed).copied().collect();
    if missing.is_empty() || armed.len() < LINKS_MAX {
        missing
    } else {
        wanted.clone()
    }
}

/// Takes out the probes whose places are not wanted, or are covered by later probes.
pub(crate) fn take_unneeded<P: Ord + Copy>(
    probes: &mut Vec<Probes<P>>,
    wanted: &BTreeSet<P>,
) -> Vec<Probes<P>> {
    // The latest probes are kept first: `to_probe` makes them cover the places of older ones.
    let mut unseen = wanted.clone();
    let latest_first = std::mem::take(probes).into_iter().rev();
    let (mut kept, gone): (Vec<_>, _) = latest_first.partition(|probes| {
        let is_needed = !probes.places.is_disjoint(&unseen);
        unseen.retain(|place| !probes.places.contains(place));
        is_needed
    });
    kept.reverse();
    *probes = kept;
    gone
}

/// A function, and the cookie for a program on it.
pub(crate) type Probed<'a> = (&'a KernelFunction, u64);

/// Attaches a program to functions.
pub(crate) fn attach(
    program: BorrowedFd<'_>,
    functions: &[Probed<'_>],
    at: At,
) -> Result<OwnedFd, Errno> {
    let has_addresses = functions.iter().all(|(function, _)| function.address != 0);
    let times = match at {
        At::End if has_addresses && keeps_returns_by_link() => {
            let cpus = libbpf_rs::num_possible_cpus().unwrap_or(1).max(1);
            RETURNS_MIN
                .div_ceil(2 * cpus * functions.len().max(1))
                .max(1)
        }
        _ => 1,
    };

    let count = functions.len() * times;
    let often = functions.iter().cycle().take(count);
    let cookies: Vec<u64> = often.clone().map(|(_, cookie)| *cookie).collect();
    let addresses: Vec<libc::c_ulong> = often.map(|(function, _)| function.address).collect();
    let names: Vec<CString> = functions
        .iter()
        .map(|(function, _)| CString::new(function.name.as_str()).unwrap_or_default())
        .collect();
    let mut names: Vec<_> = names.iter().map(|name| name.as_ptr()).collect();

    let mut options = bpf_link_create_opts {
        sz: std::mem::size_of::<bpf_link_create_opts>() as _,
        ..Default::default()
    };
    options.__bindgen_anon_1.kprobe_multi.flags = match at {
        At::Entry => 0,
        At::End => BPF_F_KPROBE_MULTI_RETURN,
    };
    options.__bindgen_anon_1.kprobe_multi.cnt = count as u32;
    options.__bindgen_anon_1.kprobe_multi.cookies = cookies.as_ptr();
    if has_addresses {
        options.__bindgen_anon_1.kprobe_multi.addrs = addresses.as_ptr();
    } else {
        options.__bindgen_anon_1.kprobe_multi.syms = names.as_mut_ptr();
    }

    // SAFETY: the options and the arrays they point to, `count` long each, outlive the call, which only reads them.
    let fd = unsafe { bpf_link_create(program.as_raw_fd(), 0, BPF_TRACE_KPROBE_MULTI, &options) };
    tracing::new_fd(fd)
}

/// Whether each link has its own store for return addresses: then its `struct fprobe` contains it.
fn keeps_returns_by_link() -> bool {
    let Some(types) = kernel_btf::of_this_kernel() else {
        return true;
    };
    let fprobe = types.btf().type_by_name::<Struct<'_>>("fprobe");
    fprobe.is_none_or(|fprobe| {
        fprobe
            .iter()
            .any(|member| member.name.is_some_and(|name| name == "rethook"))
    })
}

/// Whether probes work on this kernel; tried once.
pub(crate) fn work() -> bool {
    static TRIED: OnceLock<bool> = OnceLock::new();
    *TRIED.get_or_init(|| {
        let types = kernel_btf::of_this_kernel();
        types.is_some_and(|types| try_to_attach(&types).is_ok())
    })
}

fn try_to_attach(types: &Types) -> Result<(), Errno> {
    let known = types.functions().get(TRIAL).ok_or(Errno::NOENT)?;
    let function = KernelFunction {
        name: TRIAL.to_owned(),
        btf_id: known.btf_id,
        prototype: 0,
        address: 0,
    };

    let mut instructions = [bpf_insn::default(); 2];
    instructions[0].code = 0xb7; // r0 = 0
    instructions[1].code = 0x95; // exit
    let mut options = bpf_prog_load_opts {
        sz: std::mem::size_of::<bpf_prog_load_opts>() as _,
        expected_attach_type: BPF_TRACE_KPROBE_MULTI,
        // SAFETY: integers and pointers, all of which may be zero.
        ..unsafe { std::mem::zeroed() }
    };

    let loading = own_programs().load();
    // SAFETY: the instructions, the names and the options outlive the call, which only reads them.
    let fd = unsafe {
        bpf_prog_load(
            BPF_PROG_TYPE_KPROBE,
            c"tarsier_trial".as_ptr(),
            c"Dual BSD/GPL".as_ptr(),
            instructions.as_ptr(),
            instructions.len() as _,
            &mut options,
        )
    };

    let program = tracing::new_fd(fd)?;
    own_programs().note(program.as_fd());
    drop(loading);
    attach(program.as_fd(), &[(&function, 0)], At::End).map(drop)
}

/// Attaches a probe of `bpf/object_hooks.bpf.inc.c` to its function.
pub(crate) fn attach_object(
    program: &libbpf_rs::ProgramMut<'_>,
    function: &str,
    at: At,
    pins: Option<&Arc<Pins>>,
) -> Result<OwnedFd, CaptureError> {
    let name = program.name().to_string_lossy().into_owned();
    if let Some(pins) = pins {
        pins.wait_for_end_of(&name);
    }

    let function = KernelFunction {
        name: function.to_owned(),
        btf_id: 0,
        prototype: 0,
        address: 0,
    };
    attach(program.as_fd(), &[(&function, 0)], at).map_err(system(format!("hook {name}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn probes(number: u32, places: &[usize]) -> CallProbes {
        Probes {
            links: Vec::new(),
            number,
            places: places.iter().copied().collect(),
        }
    }

    /// Arms a set of places. Returns the numbers of the probes then in force, and the places that were probed for
    /// it.
    fn step(armed: &mut Vec<CallProbes>, wanted: &[usize], number: u32) -> (Vec<u32>, Vec<usize>) {
        let wanted = wanted.iter().copied().collect();
        let places = to_probe(armed, &wanted);
        let anew: Vec<usize> = places.iter().copied().collect();
        if !anew.is_empty() {
            armed.push(probes(number, &anew));
        }
        take_unneeded(armed, &wanted);
        let seen: Vec<usize> = armed.iter().flat_map(|p| &p.places).copied().collect();
        let places: BTreeSet<usize> = seen.iter().copied().collect();
        assert_eq!(seen.len(), places.len(), "each place once");
        assert!(wanted.is_subset(&places));
        (armed.iter().map(|p| p.number).collect(), anew)
    }

    #[test]
    fn a_link_stays_while_one_of_its_places_is_wanted() {
        let mut armed = Vec::new();
        assert_eq!(step(&mut armed, &[1, 2], 0), (vec![0], vec![1, 2]));
        assert_eq!(step(&mut armed, &[1, 2, 3], 1), (vec![0, 1], vec![3]));
        assert_eq!(step(&mut armed, &[1, 2, 3], 2), (vec![0, 1], vec![]));
        // A call of 2 that began under link 0 also ends under it.
        assert_eq!(step(&mut armed, &[2, 3], 2), (vec![0, 1], vec![]));
        assert_eq!(step(&mut armed, &[1, 3], 2), (vec![0, 1], vec![]));
        assert_eq!(step(&mut armed, &[3, 4], 2), (vec![1, 2], vec![4]));
        assert_eq!(step(&mut armed, &[], 3), (vec![], vec![]));
    }

    #[test]
    fn a_pin_tells_the_number_of_its_link() {
        for program in [CALL_PROBE, OPERATION_BEGINS, OPERATION_ENDS] {
            assert_eq!(number_of(&pin_of(program, 63)), Some(63));
        }
        assert_eq!(number_of("call_probe-64"), None);
        assert_eq!(number_of("end-__x64_sys_read-3"), None);
    }

    #[test]
    fn many_links_become_one() {
        let mut armed = Vec::new();
        for count in 1..=LINKS_MAX {
            let wanted: Vec<usize> = (0..count).collect();
            step(&mut armed, &wanted, count as u32);
        }
        assert_eq!(armed.len(), LINKS_MAX);
        let wanted: Vec<usize> = (0..=LINKS_MAX).collect();
        assert_eq!(step(&mut armed, &wanted, 63).0, [63]);
    }
}
