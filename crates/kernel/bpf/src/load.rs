//! Errors of loading programs with libbpf, with messages that say what to do.

use std::sync::Mutex;
use thiserror::Error;

/// Last lines of libbpf's messages. A refused program comes with the verifier's whole log, which is thousands of lines.
static LIBBPF_SAID: Mutex<Vec<String>> = Mutex::new(Vec::new());
const LIBBPF_LINES_KEPT: usize = 6;
/// What libbpf says of each program whose lines were left out when it was built.
const NO_LINES: &str = "missing .BTF.ext line info";

/// The kernel's type information.
const KERNEL_BTF: &str = "/sys/kernel/btf/vmlinux";

/// A program or map could not be loaded, attached or read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The kernel has no type information.
    #[error("this kernel has no BTF (/sys/kernel/btf/vmlinux is missing): the eBPF engines need CONFIG_DEBUG_INFO_BTF=y")]
    NoBtf,
    /// This process is not root, or lacks a capability.
    #[error("not permitted to load BPF programs: run as root (CAP_BPF, CAP_PERFMON, CAP_SYS_RESOURCE is not needed)")]
    NotPermitted,
    /// The kernel refused a program or a map.
    #[error("the kernel refused the {what}: {source}; libbpf says: {detail}")]
    Refused {
        /// The program, map or step.
        what: String,
        /// The error.
        source: libbpf_rs::Error,
        /// The last lines of libbpf's account, the verifier's verdict among them.
        detail: String,
    },
}

/// Keeps libbpf's messages for errors instead of printing them.
pub fn keep_libbpf_quiet() {
    libbpf_rs::set_print(Some((libbpf_rs::PrintLevel::Warn, |_, text| {
        if let Ok(mut said) = LIBBPF_SAID.lock() {
            said.extend(
                text.lines()
                    .filter(|line| !line.is_empty() && !line.contains(NO_LINES))
                    .map(str::to_owned),
            );
            let surplus = said.len().saturating_sub(LIBBPF_LINES_KEPT);
            said.drain(..surplus);
        }
    })));
}

/// Whether the kernel has type information, which every program needs.
pub fn has_btf() -> bool {
    std::path::Path::new(KERNEL_BTF).exists()
}

/// Checks that the kernel has type information.
///
/// # Errors
/// The kernel has none: [`LoadError::NoBtf`].
pub fn need_btf() -> Result<(), LoadError> {
    if has_btf() {
        Ok(())
    } else {
        Err(LoadError::NoBtf)
    }
}

/// Makes the error for an attempt that libbpf reports as failed; `what` names the program, map or step. Takes the
/// lines of libbpf that [`keep_libbpf_quiet`] kept.
pub fn refused(what: impl Into<String>) -> impl FnOnce(libbpf_rs::Error) -> LoadError {
    let what = what.into();
    move |source| {
        let is_denied = source.kind() == libbpf_rs::ErrorKind::PermissionDenied;
        if is_denied && !rustix::process::geteuid().is_root() {
            return LoadError::NotPermitted;
        }
        let detail = match LIBBPF_SAID.lock() {
            Ok(mut said) => said.drain(..).collect::<Vec<_>>().join(" | "),
            Err(_) => String::new(),
        };
        LoadError::Refused {
            what,
            source,
            detail,
        }
    }
}
