//! The filter of system calls, compiled by `seccomp` from the profiles beside this file.

use seccomp::compile::{compile, Frequencies};
use seccomp::policy::{Abi, Policy};
use seccomp::profile::{list, Context};
use seccomp::{Action, Filter, Verdict};
use std::io;

/// Profile of the calls that the daemon may make.
pub const CALLS: &str = include_str!("daemon.profile");
/// Profile of the calls that it may also make with network sockets.
pub const NETWORK: &str = include_str!("network.profile");
/// Profile of the calls that the helper that reads executed files may make.
pub const READING: &str = include_str!("reading.profile");
/// Profile of the calls that are refused without a record.
pub const QUIET: &str = include_str!("quiet.profile");

const EPERM: Verdict = Verdict::new(Action::Errno, libc::EPERM as u16);
const KILL: Verdict = Verdict::new(Action::KillProcess, 0);

/// A profile for programs of this machine. Calls of other ABIs, and calls that the profile does not
/// name, get `otherwise`.
pub(crate) fn policy(text: &str, otherwise: Option<Verdict>) -> io::Result<Policy> {
    let native = Abi::native();
    let context = Context {
        native,
        caps: Vec::new(),
        kernel: (0, 0),
        enosys: false,
    };
    let mut policy = list::parse(text, &context).map_err(io::Error::other)?;
    for layer in &mut policy.layers {
        layer.abis.retain(|abi, _| *abi == native);
        if let Some(verdict) = otherwise {
            (layer.default, layer.bad_arch) = (verdict, verdict);
        }
    }

    Ok(policy)
}

/// The policy for unexpected calls.
pub(crate) fn daemon_policy(kills: bool, network: bool) -> io::Result<Policy> {
    let text = if network {
        [CALLS, NETWORK].concat()
    } else {
        CALLS.to_owned()
    };
    own_policy(&text, if kills { KILL } else { EPERM })
}

/// The policy of [`READING`].
pub(crate) fn reading_policy() -> io::Result<Policy> {
    own_policy(READING, EPERM)
}

fn own_policy(text: &str, otherwise: Verdict) -> io::Result<Policy> {
    let mut policy = policy(text, Some(otherwise))?;
    // Libraries try calls that are newer than this program; with ENOSYS they fall back.
    let newest = Abi::native().calls().map(|(nr, _)| nr).max();
    for layer in &mut policy.layers {
        for rules in layer.abis.values_mut() {
            rules.enosys_above = newest;
        }
    }
    Ok(policy)
}

/// Installs the filter in all threads. Returns the number of calls that it allows, some only with
/// certain arguments.
pub(crate) fn install(kills: bool, network: bool) -> io::Result<usize> {
    install_policy(&daemon_policy(kills, network)?)
}

/// Leaves all threads of this process only what it takes to read files and to answer: no program, no writing, no new
/// socket, no thread. Another call fails with EPERM and is recorded. The process must have `no_new_privs`.
///
/// # Errors
/// The kernel refuses the filter.
pub fn allow_reading_only() -> io::Result<()> {
    install_policy(&reading_policy()?).map(|_| ())
}

fn install_policy(policy: &Policy) -> io::Result<usize> {
    let compiled =
        |policy: &Policy| compile(policy, &Frequencies::usual()).map_err(io::Error::other);
    // The one without records comes first: among equal verdicts, that of the last filter counts.
    let quiet = compiled(&self::policy(QUIET, None)?)?;
    let filter = compiled(policy)?;

    // The compiler's memory is no longer needed.
    #[cfg(target_env = "gnu")]
    // SAFETY: it gives back memory that is free.
    unsafe {
        libc::malloc_trim(0)
    };
    set(&quiet, libc::SECCOMP_FILTER_FLAG_TSYNC)?;
    set(
        &filter,
        libc::SECCOMP_FILTER_FLAG_TSYNC | libc::SECCOMP_FILTER_FLAG_LOG,
    )?;

    let rules = policy.layers.iter().flat_map(|layer| layer.abis.values());
    Ok(rules.map(|rules| rules.calls.len()).sum())
}

fn set(filter: &Filter, flags: libc::c_ulong) -> io::Result<()> {
    let insns: Vec<libc::sock_filter> = filter
        .insns()
        .iter()
        .map(|insn| libc::sock_filter {
            code: insn.code,
            jt: insn.jt,
            jf: insn.jf,
            k: insn.k,
        })
        .collect();

    let program = libc::sock_fprog {
        len: insns.len() as u16,
        filter: insns.as_ptr().cast_mut(),
    };

    // SAFETY: `program` and the instructions that it points to live until the call is over; the kernel only reads them.
    let result = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            flags,
            &raw const program,
        )
    };

    match result {
        0 => Ok(()),
        -1 => Err(io::Error::last_os_error()),
        thread => Err(io::Error::other(format!(
            "thread {thread} has another filter"
        ))),
    }
}
