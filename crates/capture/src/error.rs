//! What can go wrong with capture, in words that say what to do.

use std::sync::Mutex;
use thiserror::Error;

/// Last lines of what libbpf said. A refused program comes with the verifier's whole log, which
/// is thousands of lines.
static LIBBPF_SAID: Mutex<Vec<String>> = Mutex::new(Vec::new());
const LIBBPF_LINES_KEPT: usize = 6;

/// Keeps libbpf's messages for errors instead of printing them.
pub(crate) fn keep_libbpf_quiet() {
    libbpf_rs::set_print(Some((libbpf_rs::PrintLevel::Warn, |_, text| {
        if let Ok(mut said) = LIBBPF_SAID.lock() {
            said.extend(
                text.lines()
                    .filter(|line| !line.is_empty())
                    .map(str::to_owned),
            );
            let surplus = said.len().saturating_sub(LIBBPF_LINES_KEPT);
            said.drain(..surplus);
        }
    })));
}

fn refusal(what: String, source: libbpf_rs::Error) -> CaptureError {
    let detail = match LIBBPF_SAID.lock() {
        Ok(mut said) => said.drain(..).collect::<Vec<_>>().join(" | "),
        Err(_) => String::new(),
    };
    CaptureError::Refused {
        what,
        source,
        detail,
    }
}

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
    #[error("the kernel refused the {what}: {source}; libbpf says: {detail}")]
    Refused {
        /// Which program, map or step.
        what: String,
        /// The error.
        source: libbpf_rs::Error,
        /// The last lines of libbpf's account, the verifier's verdict among them.
        detail: String,
    },
    /// A program cannot be attached to the end of a call's function.
    #[error("call {} of the {:?} entry: {source}", .call.1, .call.0)]
    Unhooked {
        /// Which call: another hook has to see it.
        call: (plan::Entry, u32),
        /// What failed.
        source: Box<CaptureError>,
    },
    /// A system call failed.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: String,
        /// The errno.
        source: std::io::Error,
    },
    /// The directory for what outlives the daemon is not fit for that.
    #[error("pin_dir {}: {fault}: {remedy}", .dir.display())]
    PinDir {
        /// Which.
        dir: std::path::PathBuf,
        /// What is wrong with it.
        fault: String,
        /// What to do.
        remedy: &'static str,
    },
    /// Another process has the directory.
    #[error("pin_dir {}: another tarsier has it: stop that one, or name another directory", .dir.display())]
    PinsInUse {
        /// Which.
        dir: std::path::PathBuf,
    },
    /// The kernel lacks what every record needs.
    #[error("the eBPF engines cannot run on this kernel: its type information (/sys/kernel/btf/vmlinux) has no {}, which {} come from; use --engine kernel, and report the version of the kernel", .gap.name, .gap.feature)]
    Lacking {
        /// What is missing.
        gap: plan::Gap,
    },
    /// The kernel refused the programs, and lacks something that they use.
    #[error("{source}; this kernel has no {}, which may be why: report this with the version of the kernel, and use --engine kernel", names(.gaps))]
    RefusedWithout {
        /// What is missing.
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

/// The first of the names, and how many there are besides.
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

pub(crate) fn refused(what: impl Into<String>) -> impl FnOnce(libbpf_rs::Error) -> CaptureError {
    let what = what.into();
    move |source| match source.kind() {
        libbpf_rs::ErrorKind::PermissionDenied => {
            if rustix::process::geteuid().is_root() {
                refusal(what, source)
            } else {
                CaptureError::NotPermitted
            }
        }
        _ => refusal(what, source),
    }
}
