//! Measures what filters cost on this machine, with child processes that install some and make
//! calls.

use super::CostModel;
use crate::insn::{code, Insn};
use crate::Verdict;
use std::io::{self, Read};
use std::os::fd::{FromRawFd, OwnedFd};

/// Number of comparisons in the long filter.
const LONG: u32 = 2000;
/// Number of filters in the measurement that shows the cost of each further filter.
const SEVERAL: usize = 9;
/// Number of rounds in which all cases are measured in turn, so that a slow phase of the machine
/// affects all of them.
const ROUNDS: usize = 12;
/// Number of slices of calls; the fastest counts.
const SLICES: usize = 30;
const CALLS: u32 = 200;

type Program = Vec<libc::sock_filter>;

impl CostModel {
    /// Measures getpid without a filter, answered from the bitmap, and under one filter, several
    /// filters and a long filter, in child processes that have ended on return. Takes about 200 ms.
    /// The caller itself gets no filter.
    ///
    /// # Errors
    /// A child cannot be created, or cannot install a filter.
    pub fn measure() -> io::Result<CostModel> {
        let rows: [Vec<Program>; 5] = [
            vec![],
            vec![program(&[])],
            vec![program(&reading(0))],
            vec![program(&reading(0)); SEVERAL],
            vec![program(&reading(LONG))],
        ];

        let mut least = [f64::INFINITY; 5];
        for _ in 0..ROUNDS {
            for (least, row) in least.iter_mut().zip(&rows) {
                // The least of all rounds: whatever disturbs a measurement only adds to it.
                *least = least.min(child(row)?);
            }
        }

        let [native, bitmap, one, several, long] = least;
        let insn_ns = (long - one) / f64::from(LONG);

        // Each filter's own load and return.
        let own = 2.0 * insn_ns;
        let model = CostModel {
            bitmap_ns: bitmap - native,
            first_filter_ns: one - native - own,
            further_filter_ns: (several - one) / (SEVERAL - 1) as f64 - own,
            insn_ns,
        };

        Ok(model.not_negative())
    }

    /// Replaces negative results, which noise can cause, with 0.
    fn not_negative(self) -> CostModel {
        CostModel {
            bitmap_ns: self.bitmap_ns.max(0.0),
            first_filter_ns: self.first_filter_ns.max(0.0),
            further_filter_ns: self.further_filter_ns.max(0.0),
            insn_ns: self.insn_ns.max(0.0),
        }
    }
}

/// Loads an argument, so that the kernel has to run the filter, and compares it `comparisons`
/// times.
fn reading(comparisons: u32) -> Vec<Insn> {
    let mut insns = vec![Insn::new(code::LD_ABS, 16)];
    // The argument is 0, so no comparison is true.
    insns.extend((1..=comparisons).map(|k| Insn::jump(code::JEQ, k, 1, 0)));
    insns
}

/// Adds ALLOW to the instructions, twice, because the last comparison may skip one.
fn program(insns: &[Insn]) -> Program {
    let allow = Insn::new(code::RET_K, Verdict::ALLOW.0);
    let insns = insns.iter().chain([&allow, &allow]);
    insns
        .map(|insn| libc::sock_filter {
            code: insn.code,
            jt: insn.jt,
            jf: insn.jf,
            k: insn.k,
        })
        .collect()
}

/// Cost of a call in ns under these filters, measured by a child.
fn child(filters: &[Program]) -> io::Result<f64> {
    let programs: Vec<libc::sock_fprog> = filters
        .iter()
        .map(|program| libc::sock_fprog {
            len: program.len() as u16,
            filter: program.as_ptr().cast_mut(),
        })
        .collect();

    let mut ends = [0; 2];

    // SAFETY: ends has room for the two descriptors.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
        return Err(io::Error::last_os_error());
    }

    // SAFETY: both were just made and belong to nobody else.
    let (from, to) = unsafe { (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])) };

    // SAFETY: the child makes system calls and reads the clock, on memory that was made before,
    // until it ends.
    let pid = unsafe {
        let pid = libc::fork();
        if pid == 0 {
            let result = measured(&programs).unwrap_or(f64::NAN).to_ne_bytes();
            libc::write(ends[1], result.as_ptr().cast(), result.len());
            libc::_exit(0);
        }
        pid
    };

    if pid < 0 {
        return Err(io::Error::last_os_error());
    }

    // Otherwise the read below would not end if the child dies without an answer.
    drop(to);
    let mut bytes = [0; 8];
    let read = std::fs::File::from(from).read_exact(&mut bytes);

    // SAFETY: our own child; its status is not asked for.
    unsafe { libc::waitpid(pid, std::ptr::null_mut(), 0) };
    let ns = f64::from_ne_bytes(bytes);
    match read {
        Ok(()) if !ns.is_nan() => Ok(ns),
        _ => Err(io::Error::other("a child was given no seccomp filter")),
    }
}

/// Runs in the child: installs the filters and times calls. Allocates nothing.
fn measured(programs: &[libc::sock_fprog]) -> Option<f64> {
    // SAFETY: no pointers.
    if unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) } != 0 {
        return None;
    }

    for program in programs {
        let set = libc::SECCOMP_SET_MODE_FILTER;
        // SAFETY: the program lives until the child ends; the kernel reads it.
        if unsafe { libc::syscall(libc::SYS_seccomp, set, 0, std::ptr::from_ref(program)) } != 0 {
            return None;
        }
    }

    let mut least = f64::INFINITY;

    for _ in 0..SLICES {
        let start = std::time::Instant::now();
        for _ in 0..CALLS {
            // SAFETY: getpid takes no arguments; the 0 is what the filters look at.
            unsafe { libc::syscall(libc::SYS_getpid, 0) };
        }
        let ns = start.elapsed().as_nanos() as f64 / f64::from(CALLS);
        least = least.min(ns);
    }

    Some(least)
}
