//! Gives up what a helper does not need: it handles paths that attackers chose, and runs libraries that look up names.

use crate::lookup::ids;
use rustix::fs::{Gid, Uid};
use rustix::io::Errno;
use rustix::process::{
    set_dumpable_behavior, set_parent_process_death_signal, setrlimit, DumpableBehavior, Resource,
    Rlimit, Signal,
};
use rustix::thread::{
    capabilities, disable_transparent_huge_pages, set_capabilities, set_keep_capabilities,
    set_name, set_no_new_privs, set_thread_groups, set_thread_res_gid, set_thread_res_uid,
    CapabilitySet,
};
use std::io;

/// Rights of a helper beyond those that every process has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rights {
    /// Look at every object, and at the root directories of processes in other mount namespaces.
    Files,
    /// The same, read the contents of executable files, and find out whether somebody writes to them.
    Contents,
    /// Nothing.
    None,
}

/// Confines this process, which has one thread.
pub(crate) fn confine(rights: Rights) -> io::Result<()> {
    let parent = rustix::process::getppid();
    ignore_signals();
    close_all_but_standard();
    set_name(c"tarsier-lookup")?;

    // As in the daemon: they cost memory.
    let _ = disable_transparent_huge_pages(true);
    let files = CapabilitySet::DAC_READ_SEARCH | CapabilitySet::SYS_PTRACE;
    let keep = match rights {
        Rights::Files => files,
        Rights::Contents => files | CapabilitySet::LEASE,
        Rights::None => CapabilitySet::empty(),
    };

    // A change from root to another user would clear the permitted capabilities; they are reduced after it.
    set_keep_capabilities(true)?;
    become_nobody_else()?;

    let mut sets = capabilities(None)?;
    sets.permitted &= keep;
    sets.effective = sets.permitted;
    sets.inheritable = CapabilitySet::empty();
    set_capabilities(None, sets)?;
    set_no_new_privs(true)?;

    let none = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    setrlimit(Resource::Core, none)?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;

    // Only now, because a change of rights clears it.
    set_parent_process_death_signal(Some(Signal::KILL))?;
    if rustix::process::getppid() == parent {
        Ok(())
    } else {
        Err(io::ErrorKind::BrokenPipe.into())
    }
}

/// Becomes a user that no other process has, so that it neither owns root's files nor is in anybody's reach. If the daemon
/// may not do that, the ids stay.
fn become_nobody_else() -> io::Result<()> {
    for (uid, gid) in ids::candidates() {
        let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(gid));
        let changed = set_thread_groups(&[])
            .and_then(|()| set_thread_res_gid(gid, gid, gid))
            .and_then(|()| set_thread_res_uid(uid, uid, uid));
        match changed {
            // The user namespace does not have them.
            Err(Errno::INVAL) => {}
            Ok(()) | Err(Errno::PERM) => return Ok(()),
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(())
}

/// A signal to the daemon's whole process group must not end its helpers first, because the daemon
/// still reads events. They end with the daemon.
fn ignore_signals() {
    let of_group = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];
    // SIGIO: somebody waits for a lease, which is about to be given back.
    for signal in of_group.into_iter().chain([libc::SIGIO]) {
        // SAFETY: no handler is set, and this process has one thread.
        unsafe {
            libc::signal(signal, libc::SIG_IGN);
        }
    }
}

/// Closes the descriptors with which the daemon was started.
fn close_all_but_standard() {
    // SAFETY: this process does not use any descriptor that it has opened. A kernel before 5.9
    // refuses the call.
    unsafe {
        libc::syscall(libc::SYS_close_range, 3, u32::MAX, 0);
    }
}
