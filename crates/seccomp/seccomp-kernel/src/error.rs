//! Errors between a filter and the kernel, with what to do about them.

use bpf::load::LoadError;
use std::ffi::NulError;
use std::io;
use thiserror::Error;

/// A program could not be counted, started or supervised, or the kernel's bitmaps could not be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SeccompKernelError {
    /// BPF programs cannot be loaded, or their maps not be used.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// A system call failed.
    #[error("{what}: {source}")]
    System {
        /// Description of the attempt.
        what: String,
        /// The errno.
        source: io::Error,
    },
    /// A path of a cgroup that has no room in the programs.
    #[error("cgroup {path}: a path of at most 255 bytes can be followed; give a shorter one, such as that of its parent")]
    LongCgroup {
        /// The path.
        path: String,
    },
    /// The command has no words.
    #[error("no program given")]
    NoProgram,
    /// No directory of PATH has such an executable.
    #[error("cannot run {name}: no such executable; give its path, or see PATH")]
    NotFound {
        /// The first word of the command.
        name: String,
    },
    /// A word of the command or of the environment cannot be given to execve(2).
    #[error("an argument has a NUL byte: {0}")]
    NulByte(#[from] NulError),
    /// The kernel does not know filters, or not all that this one needs.
    #[error("seccomp(SECCOMP_SET_MODE_FILTER): {source}; this kernel lacks filters or one of their flags (SECCOMP_RET_USER_NOTIF with TSYNC needs Linux 5.7)")]
    FilterUnknown {
        /// EINVAL.
        source: io::Error,
    },
    /// A filter of this process has a listener, and the kernel allows one.
    #[error("seccomp(SECCOMP_SET_MODE_FILTER): {source}: this process has a supervisor already; run it without --log")]
    HasListener {
        /// EBUSY.
        source: io::Error,
    },
    /// The filter, or the mode of the file, does not let the program start.
    #[error("cannot run {name}: {source}; the profile must allow execve, and the file must be executable")]
    ExecDenied {
        /// The first word of the command.
        name: String,
        /// EPERM or EACCES.
        source: io::Error,
    },
    /// The program does not start for another reason.
    #[error("cannot run {name}: {source}")]
    Exec {
        /// The first word of the command.
        name: String,
        /// The errno of execve(2).
        source: io::Error,
    },
    /// The child that was to become the program is gone, and did not say why.
    #[error("{name} ended before its filter was installed")]
    EndedEarly {
        /// The first word of the command.
        name: String,
    },
}

/// Makes the error of a system call.
pub(crate) fn system<E: Into<io::Error>>(
    what: impl Into<String>,
) -> impl FnOnce(E) -> SeccompKernelError {
    let what = what.into();
    move |error| SeccompKernelError::System {
        what,
        source: error.into(),
    }
}
