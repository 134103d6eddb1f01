//! What the daemon gives up before it arms anything: capabilities, most system calls, writing outside of its own
//! directories. Knows nothing about auditing.
//!
//! [`apply`] never fails: a kernel may lack a part, and a manager may have forbidden one. What could not be had is in
//! [`InForce::missing`], with the reason.

mod capabilities;
mod filter;
mod in_force;
mod landlock;
mod process;

#[cfg(test)]
mod tests;

pub use filter::{CALLS, NETWORK, QUIET};
pub use in_force::{InForce, LandlockInForce};
pub use landlock::Writable;

/// What a process is to keep.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// Whether a call that the filter does not allow kills the process, rather than fails.
    pub kills: bool,
    /// Whether it uses network sockets, or looks up host names.
    pub network: bool,
    /// Whether it listens at a port below 1024.
    pub privileged_port: bool,
    /// Whether it writes to directories that are not root's.
    pub overrides_owners: bool,
    /// Where it writes. Elsewhere it may only read.
    pub writable: Vec<Writable>,
}

/// Confines this process, which must have one thread: those that it starts later inherit it.
pub fn apply(wanted: &Wanted) -> InForce {
    let mut missing = Vec::new();
    let mut note = |what: &str, outcome: std::io::Result<()>| {
        if let Err(error) = outcome {
            missing.push(format!("{what}: {error}"));
        }
    };
    let threads = process::threads();
    if threads != Some(1) {
        let text = format!("{threads:?} threads run already, and only this one is confined");
        note("all threads", Err(std::io::Error::other(text)));
    }
    note("oom_score_adj", process::never_ended_for_memory());
    note("dumpable", process::forbid_dumps());
    note("no_new_privs", process::refuse_new_privileges());
    let landlock = landlock::restrict(&wanted.writable);
    let landlock = match landlock {
        Ok(landlock) => Some(landlock),
        Err(error) => {
            note("Landlock", Err(error));
            None
        }
    };
    note("capabilities", capabilities::keep(wanted));
    let mut in_force = InForce::read(wanted.kills, landlock, missing);
    // Last, since it forbids what was done above.
    match filter::install(wanted.kills, wanted.network) {
        Ok(calls) => in_force.calls = calls,
        Err(error) => in_force
            .missing
            .push(format!("system-call filter: {error}")),
    }
    in_force
}
