//! Probes (kprobe.multi): programs at the beginnings and ends of kernel functions that run with preemption off. They cost
//! more than programs in trampolines (fexit.rs), and are taken where those would be preempted and missed.
//!
//! One link has many functions. Each link has a number, which its runs find as their cookie, and looks at calls only
//! while the bit of that number is set in `control.probe_links`: so one link takes over from another in one step.

use super::fexit;
use super::Tracepoint;
use crate::error::{system, CaptureError};
use crate::functions::{self, Function};
use crate::pins::{info_of, Attached, Pins};
use crate::types::{self, Types};
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

/// The program at the ends of the functions of calls.
pub(super) const CALL_PROBE: &str = "call_probe";
/// Prefix of the names of programs of bpf/object_hooks.h that are probes.
pub(crate) const PROBE: &str = "probe_";
/// Prefix of the names of pins of links at the ends of functions of calls.
const PIN: &str = "probe-";
/// Bits of `control.probe_links`.
const NUMBERS: u32 = 64;
/// The function that the kernel has for trials.
const TRIAL: &str = "bpf_fentry_test1";
/// Before Linux 6.14 a link keeps the return addresses of calls under way in a store of its own, two for each function
/// and possible processor; a call that finds none left is missed. Naming functions again makes it larger: to this many.
const RETURNS_MIN: usize = 8192;

/// Where in a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum At {
    Entry,
    End,
}

/// Functions at whose ends one link has the probe of calls.
pub(super) struct CallProbes {
    link: Attached,
    number: u32,
    /// Places in the kernel's functions.
    places: BTreeSet<usize>,
}

impl CallProbes {
    pub(super) fn link(&self) -> &Attached {
        &self.link
    }

    /// Calls for which there was no room to keep the return address.
    pub(super) fn missed(&self) -> u64 {
        let info = self.link.fd().and_then(info_of);
        // SAFETY: the kernel has filled this member for a link of this type; all of it are integers.
        info.map_or(0, |info| unsafe {
            info.__bindgen_anon_1.kprobe_multi.missed
        })
    }
}

impl Tracepoint {
    /// Probes those functions that serve calls of the plan and are not probed yet; none if all are.
    pub(super) fn probe_functions(
        &mut self,
        plan: &Plan,
    ) -> Result<Option<CallProbes>, CaptureError> {
        let Some(all) = functions::of_this_kernel().filter(|_| plan.form().probes) else {
            return Ok(None);
        };
        let wanted = super::arm::function_places(plan.hooks.sys_exit.functions());
        let is_probed = |place: &usize| self.armed.probes.iter().any(|p| p.places.contains(place));
        let places: BTreeSet<usize> = wanted.into_iter().filter(|p| !is_probed(p)).collect();
        if places.is_empty() {
            return Ok(None);
        }
        let number = self.free_number()?;
        let functions: Vec<&Function> = places.iter().map(|&place| &all.all[place]).collect();
        let program = self.object.progs().find(|p| p.name() == CALL_PROBE);
        let program = program.ok_or_else(|| super::missing(CALL_PROBE))?;
        if let Some(pins) = &self.pins {
            pins.wait_for_end_of(&pin_of(number));
        }
        let link = attach(program.as_fd(), &functions, At::End, number)
            .map_err(system("probes at the ends of functions of system calls"))?;
        let link = Attached::new(link, self.pins.as_ref(), &pin_of(number))?;
        Ok(Some(CallProbes {
            link,
            number,
            places,
        }))
    }

    /// A number that no link has, of this daemon or an earlier one, in force or being taken down: of two with one number
    /// both would look at calls, and each call be recorded twice.
    fn free_number(&mut self) -> Result<u32, CaptureError> {
        let own = bits(self.armed.probes.iter());
        let pins = self.pins.as_ref().map(|pins| pins.links());
        let pinned = pins.iter().flatten().filter_map(|pin| number_of(pin));
        let others = pinned.fold(self.control.probe_links() | own, |bits, n| bits | 1 << n);
        let resting = &mut self.resting;
        free(others | resting.probe_numbers())
            .or_else(|| {
                resting.finish_probes();
                free(others | resting.probe_numbers())
            })
            .ok_or_else(|| super::missing("a free number for one more probe"))
    }

    /// Has exactly the links of this daemon look at calls.
    pub(super) fn switch_probes(&self) {
        self.control.set_probe_links(bits(self.armed.probes.iter()));
    }
}

/// Numbers of links, one bit each.
pub(super) fn bits<'a>(probes: impl Iterator<Item = &'a CallProbes>) -> u64 {
    probes.fold(0, |bits, probes| bits | 1 << probes.number)
}

/// The lowest number whose bit is not set.
fn free(taken: u64) -> Option<u32> {
    Some(taken.trailing_ones()).filter(|number| *number < NUMBERS)
}

/// Name of the pin of a link.
fn pin_of(number: u32) -> String {
    format!("{PIN}{number}")
}

/// The number of the link with this pin.
fn number_of(pin: &str) -> Option<u32> {
    let number = pin.strip_prefix(PIN)?.parse().ok();
    number.filter(|number| *number < NUMBERS)
}

/// Parts with the links none of whose functions is wanted.
pub(super) fn take_unwanted(
    probes: &mut Vec<CallProbes>,
    wanted: &BTreeSet<usize>,
) -> Vec<CallProbes> {
    let all = std::mem::take(probes);
    let (kept, gone) = all
        .into_iter()
        .partition(|probes| !probes.places.is_disjoint(wanted));
    *probes = kept;
    gone
}

/// Attaches a program to functions; its runs have `number` for their cookie.
pub(crate) fn attach(
    program: BorrowedFd<'_>,
    functions: &[&Function],
    at: At,
    number: u32,
) -> Result<OwnedFd, Errno> {
    let has_addresses = functions.iter().all(|function| function.address != 0);
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
    let cookies = vec![u64::from(number); count];
    let addresses: Vec<libc::c_ulong> = functions
        .iter()
        .cycle()
        .take(count)
        .map(|function| function.address)
        .collect();
    let names: Vec<CString> = functions
        .iter()
        .map(|function| CString::new(function.name.as_str()).unwrap_or_default())
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
    fexit::new_fd(fd)
}

/// Whether each link has a store of its own for return addresses: its `struct fprobe` has it.
fn keeps_returns_by_link() -> bool {
    let Some(types) = types::of_this_kernel() else {
        return true;
    };
    let fprobe = types.btf().type_by_name::<Struct<'_>>("fprobe");
    fprobe.is_none_or(|fprobe| {
        fprobe
            .iter()
            .any(|member| member.name.is_some_and(|name| name == "rethook"))
    })
}

/// Whether probes can be had: tried once.
pub(crate) fn work() -> bool {
    static TRIED: OnceLock<bool> = OnceLock::new();
    *TRIED.get_or_init(|| {
        let types = types::of_this_kernel();
        types.is_some_and(|types| try_to_attach(&types).is_ok())
    })
}

fn try_to_attach(types: &Types) -> Result<(), Errno> {
    let known = types.functions().get(TRIAL).ok_or(Errno::NOENT)?;
    let function = Function {
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
    let program = fexit::new_fd(fd)?;
    attach(program.as_fd(), &[&function], At::End, 0).map(drop)
}

/// Attaches a probe of `bpf/object_hooks.h` to its function.
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
    let function = Function {
        name: function.to_owned(),
        btf_id: 0,
        prototype: 0,
        address: 0,
    };
    attach(program.as_fd(), &[&function], at, 0).map_err(system(format!("hook {name}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_link_has_the_lowest_number_that_no_other_has() {
        assert_eq!(free(0), Some(0));
        assert_eq!(free(0b1011), Some(2));
        assert_eq!(free(u64::MAX >> 1), Some(63));
        assert_eq!(free(u64::MAX), None);
    }

    #[test]
    fn a_pin_tells_the_number_of_its_link() {
        assert_eq!(number_of(&pin_of(0)), Some(0));
        assert_eq!(number_of(&pin_of(63)), Some(63));
        for other in [
            "probe-64",
            "probe-",
            "probe-x",
            "probe_on_vfs_link",
            "end-f-3",
        ] {
            assert_eq!(number_of(other), None);
        }
    }
}
