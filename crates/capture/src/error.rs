//! What can go wrong with capture, in words that say what to do.

use thiserror::Error;

/// An engine could not be loaded, armed or read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CaptureError {
    /// The kernel has no type information.
    #[error("this kernel has no BTF (/sys/kernel/btf/vmlinux is missing): the eBPF engines need CONFIG_DEBUG_INFO_BTF=y")]
    NoBtf,
    /// Not root, or a capability is missing.
    #[error("not permitted to load BPF programs: run as root (CAP_BPF, CAP_PERFMON, CAP_SYS_RESOURCE is not needed)")]
    NotPermitted,
    /// The kernel refused a program or a map.
    #[error("the kernel refused the {what}: {source}")]
    Refused {
        /// Which program, map or step.
        what: String,
        /// libbpf's account.
        source: libbpf_rs::Error,
    },
    /// A system call failed.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: String,
        /// The errno.
        source: std::io::Error,
    },
    /// The rules do not fit.
    #[error("the rules do not fit the match tables: {0}")]
    TooLarge(#[from] plan::tables::TooLarge),
}

pub(crate) fn system(what: impl Into<String>) -> impl FnOnce(rustix::io::Errno) -> CaptureError {
    let what = what.into();
    move |errno| CaptureError::System {
        what,
        source: errno.into(),
    }
}

pub(crate) fn refused(what: impl Into<String>) -> impl FnOnce(libbpf_rs::Error) -> CaptureError {
    let what = what.into();
    move |source| match source.kind() {
        libbpf_rs::ErrorKind::PermissionDenied => {
            if rustix::process::geteuid().is_root() {
                CaptureError::Refused { what, source }
            } else {
                CaptureError::NotPermitted
            }
        }
        _ => CaptureError::Refused { what, source },
    }
}
