//! The helpers that look up paths and names for the daemon.

use crate::event_loop::scheduling::Scheduling;
use crate::start::host::kernel_has;
use crate::stderr::say;
use capture::Helpers;
use conf::{Config, ExeHash};
use privsep::lookup::Remote;
use privsep::spawn::Launcher;
use std::io;
use std::sync::Arc;

/// The system, as this process looks it up.
pub(crate) type Lookups = Arc<Remote>;

const _: () = assert!(privsep::lookup::HELPERS == Helpers::MAX);

/// Starts the helper for paths. Without it recording goes on, and each look-up tries again.
pub(crate) fn start(launcher: &Launcher) -> Lookups {
    let (remote, started) = Remote::start(launcher.clone(), kernel_has);
    say_failure(started);
    Arc::new(remote)
}

fn say_failure(started: io::Result<()>) {
    if let Err(error) = started {
        say!("tarsier: no helper that looks up paths can be started, so records lack objects: {error}");
    }
}

/// Starts or ends the helper for digests, as `config` wants. Without it recording goes on, and each event says that a
/// digest is missing.
pub(crate) fn set_hashes(lookups: &Lookups, config: &Config, is_kernel: bool) {
    let is_wanted = config.exe_hash != ExeHash::None;
    if is_wanted && is_kernel {
        say!("tarsier: exe_hash has no effect: the kernel engine writes the kernel's own records");
    }

    let bytes_max = if is_kernel {
        None
    } else {
        config.hashed_bytes_max()
    };

    if let Err(error) = lookups.set_hashes(bytes_max) {
        say!("tarsier: exe_hash: no helper that hashes can be started, so events lack digests: {error}");
    }
}

/// Keeps the programs, through `helpers`, from recording the calls of the helpers, and lets the
/// helper for paths run as soon as the daemon does. Call it when everything is armed.
pub(crate) fn follow(lookups: &Lookups, helpers: Option<Helpers>) {
    // Audit is enabled now, with a `never,task` rule.
    say_failure(lookups.renew());
    lookups.follow(move |place, pid| {
        if let Some(helpers) = &helpers {
            helpers.set(place, pid);
        }
        if let (0, Some(pid)) = (place, pid) {
            Scheduling::go_first_on_one_processor(pid);
        }
    });
}
