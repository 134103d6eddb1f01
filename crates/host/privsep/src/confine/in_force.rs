//! Confinement of this process, as the kernel reports it.

use crate::confine::process;
use rustix::process::{dumpable_behavior, DumpableBehavior};
use rustix::thread::{capabilities, no_new_privs, CapabilitySet};
use std::path::PathBuf;

/// The parts of the confinement that are in force, as read back after they were applied.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InForce {
    /// Names of the capabilities that are permitted and effective, as in capabilities(7).
    pub capabilities: Vec<String>,
    /// Names of the capabilities in the bounding set.
    pub bounding: Vec<String>,
    /// Whether `no_new_privs` is set: programs that it executes gain no rights.
    pub no_new_privs: bool,
    /// Whether its memory can be dumped or read by other processes of its user.
    pub dumpable: bool,
    /// `oom_score_adj` of proc(5).
    pub oom_score_adj: Option<i32>,
    /// Whether a call that the filter does not allow kills the process.
    pub kills: bool,
    /// Number of calls that the filter allows; 0 without a filter.
    pub calls: usize,
    /// Landlock, if it is in force.
    pub landlock: Option<LandlockInForce>,
    /// Parts that could not be applied, each with the reason.
    pub missing: Vec<String>,
}

/// The rules of Landlock that are in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LandlockInForce {
    /// Version of the kernel's Landlock.
    pub abi: u32,
    /// Paths where the process may write.
    pub paths: Vec<PathBuf>,
}

impl InForce {
    pub(crate) fn read(
        kills: bool,
        landlock: Option<LandlockInForce>,
        missing: Vec<String>,
    ) -> InForce {
        let own = capabilities(None).map(|sets| sets.permitted & sets.effective);
        InForce {
            capabilities: names(own.unwrap_or(CapabilitySet::all())),
            bounding: names(
                process::bounding().map_or(CapabilitySet::all(), CapabilitySet::from_bits_retain),
            ),
            no_new_privs: no_new_privs().unwrap_or(false),
            dumpable: !matches!(dumpable_behavior(), Ok(DumpableBehavior::NotDumpable)),
            oom_score_adj: process::oom_score_adj(),
            kills,
            calls: 0,
            landlock,
            missing,
        }
    }
}

/// Names of capabilities as in capabilities(7), without CAP_.
fn names(set: CapabilitySet) -> Vec<String> {
    let known = set.iter_names().map(|(name, _)| name.to_lowercase());
    let rest = set.difference(CapabilitySet::all()).bits();
    let numbered = (0..64).filter(|number| rest & 1 << number != 0);
    known
        .chain(numbered.map(|number| number.to_string()))
        .collect()
}
