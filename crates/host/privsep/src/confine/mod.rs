//! Confinement of the daemon: before it arms anything, it gives up capabilities, most system calls, and writing outside
//! of its own directories. This crate knows nothing about auditing.
//!
//! [`apply`] never fails: a kernel may lack a part, and a service manager may have forbidden one.
//! Parts that could not be applied are in [`InForce::missing`], with the reason.

mod capabilities;
mod filter;
mod in_force;
mod landlock;
mod process;

#[cfg(test)]
mod tests;

pub use filter::{allow_reading_only, CALLS, NETWORK, QUIET, READING};
pub use in_force::{InForce, LandlockInForce};
pub use landlock::Writable;

/// The rights that a process keeps.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// Whether a call that the filter does not allow kills the process instead of failing.
    pub kills: bool,
    /// Whether the process uses network sockets, or looks up host names.
    pub network: bool,
    /// Whether the process listens at a port below 1024.
    pub privileged_port: bool,
    /// Whether the process writes to directories that root does not own.
    pub overrides_owners: bool,
    /// Places where the process writes. Elsewhere it may only read.
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

    // Before Landlock and the filter, which the kernel takes from a process without CAP_SYS_ADMIN only with it.
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
    // Last, because the filter forbids the calls made above.
    match filter::install(wanted.kills, wanted.network) {
        Ok(calls) => in_force.calls = calls,
        Err(error) => in_force
            .missing
            .push(format!("system-call filter: {error}")),
    }

    in_force
}
