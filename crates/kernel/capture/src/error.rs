//! Errors of capture, with messages that say what to do.

use bpf::load::LoadError;
use thiserror::Error;

/// An engine could not be loaded, armed or read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CaptureError {
    /// The kernel has no type information, or refused a program or a map.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// A program cannot be attached to the end of a call's function.
    #[error("call {} of the {:?} entry: {source}", .call.1, .call.0)]
    Unhooked {
        /// The call, which another hook has to see.
        call: (plan::Entry, u32),
        /// The failure.
        source: Box<CaptureError>,
    },
    /// A system call failed.
    #[error("{what}: {source}")]
    System {
        /// The action that failed.
        what: String,
        /// The errno.
        source: std::io::Error,
    },
    /// The directory for pins (`pin_dir`) is not suitable.
    #[error("pin_dir {}: {fault}: {remedy}", .dir.display())]
    PinDir {
        /// The directory.
        dir: std::path::PathBuf,
        /// The reason why the directory is not suitable.
        fault: String,
        /// Remedy.
        remedy: &'static str,
    },
    /// Another process uses the directory.
    #[error("pin_dir {}: another tarsier has it: stop that one, or name another directory", .dir.display())]
    PinsInUse {
        /// The directory.
        dir: std::path::PathBuf,
    },
    /// The kernel lacks a part that every record needs.
    #[error("the eBPF engines cannot run on this kernel: its type information (/sys/kernel/btf/vmlinux) has no {}, which {} come from; use --engine kernel, and report the version of the kernel", .gap.name, .gap.feature)]
    Lacking {
        /// The missing structure member, function or tracepoint.
        gap: plan::Gap,
    },
    /// The kernel refused the programs, and lacks something that they use.
    #[error("{source}; this kernel has no {}, which may be why: report this with the version of the kernel, and use --engine kernel", names(.gaps))]
    RefusedWithout {
        /// The missing structure members, functions and tracepoints.
        gaps: Vec<plan::Gap>,
        /// The refusal.
        source: Box<CaptureError>,
    },
    /// The BPF object in this program cannot be read.
    #[error("the BPF object in this program: {0}")]
    Object(#[from] crate::gaps::btf::Malformed),
    /// The rules do not fit.
    #[error("the rules do not fit the match tables: {0}")]
    TooLarge(#[from] plan::tables::TooLarge),
}

/// The names of the first gaps, and the number of the others.
fn names(gaps: &[plan::Gap]) -> String {
    const NAMED_MAX: usize = 20;
    let named: Vec<&str> = gaps.iter().map(|gap| gap.name.as_str()).collect();
    let (first, rest) = named.split_at(named.len().min(NAMED_MAX));
    match rest.len() {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}

pub(crate) fn system(what: impl Into<String>) -> impl FnOnce(rustix::io::Errno) -> CaptureError {
    let what = what.into();
    move |errno| CaptureError::System {
        what,
        source: errno.into(),
    }
}

/// The error for something that the BPF object or this kernel does not have.
pub(crate) fn missing(what: &str) -> CaptureError {
    CaptureError::System {
        what: format!("missing in the BPF object or this kernel: {what}"),
        source: std::io::ErrorKind::NotFound.into(),
    }
}
