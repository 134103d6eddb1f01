//! What a host can do, found by trying: see `capture::probe`.

use abi::Arch;
use serde::Serialize;
use std::collections::BTreeSet;

/// Which programs may be loaded and how calls can enter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Capabilities {
    /// The kernel's architecture.
    #[serde(serialize_with = "arch_name")]
    pub arch: Arch,
    /// 32-bit entry works: a process can make calls under the compat architecture.
    pub compat_entry: bool,
    /// `tp_btf` programs load.
    pub tp_btf: bool,
    /// Per-syscall tracepoints can be attached to (tracefs is there, `CONFIG_FTRACE_SYSCALLS`).
    pub syscall_tracepoints: bool,
    /// Native calls that have no tracepoint of their own here.
    #[serde(skip)]
    pub untraced_calls: BTreeSet<u32>,
}

fn arch_name<S: serde::Serializer>(arch: &Arch, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(arch.name())
}

impl Capabilities {
    /// What a stock kernel of this architecture can do: for plans made without root.
    pub fn assumed(arch: Arch) -> Capabilities {
        Capabilities {
            arch,
            compat_entry: arch.compat().is_some(),
            tp_btf: true,
            syscall_tracepoints: true,
            untraced_calls: BTreeSet::new(),
        }
    }
}
