//! Variants of machines: other processors, or other arguments for the kernel.

use anyhow::{bail, Result};

use super::guest::Guest;

/// A series that no kernel reaches.
const EVER: [u64; 2] = [u64::MAX, 0];
/// Memory of guests whose kernel does not need more.
const MEMORY_MIB: u32 = 1024;

/// A machine's variant.
#[derive(Debug)]
pub(super) struct Variant {
    pub(super) name: &'static str,
    pub(super) guest: Guest,
    /// QEMU's argument of `-smp`.
    pub(super) processors: &'static str,
    /// Arguments for the kernel's command line.
    pub(super) kernel_arguments: &'static str,
    pub(super) memory_mib: u32,
    /// Lines in the guest's `facts` (see `tests/vm/init`) that prove that the kernel used these settings.
    evidence: &'static [&'static str],
    /// The first series that has the variant, and the first that no longer has it.
    series: [[u64; 2]; 2],
}

/// Two processors, and the defaults of the distribution's kernel.
pub(super) const STOCK: &Variant = &Variant {
    name: "stock",
    guest: Guest::Amd64,
    processors: "2",
    kernel_arguments: "",
    memory_mib: MEMORY_MIB,
    evidence: &[],
    series: [[0, 0], EVER],
};

/// Two processors and the kernel's defaults, on arm64.
const ARM64: &Variant = &Variant {
    name: "arm64",
    guest: Guest::Arm64,
    ..*STOCK
};

/// The kernel preempts itself wherever it can.
const FULL: &Variant = &Variant {
    name: "preempt-full",
    kernel_arguments: "preempt=full",
    evidence: &["preempt=full"],
    ..*STOCK
};

/// The kernel preempts itself at the end of a tick.
const LAZY: &Variant = &Variant {
    name: "preempt-lazy",
    kernel_arguments: "preempt=lazy",
    evidence: &["preempt=lazy"],
    series: [[6, 13], EVER],
    ..*STOCK
};

/// The kernel preempts itself where it offers to.
const VOLUNTARY: &Variant = &Variant {
    name: "preempt-voluntary",
    kernel_arguments: "preempt=voluntary",
    evidence: &["preempt=voluntary"],
    series: [[0, 0], [7, 0]],
    ..*STOCK
};

/// All variants. Linux 6.13 brought lazy preemption; 7.0 left only full and lazy on x86. `no-lsm`, and variants
/// with a number of processors after the model, run only when named.
pub(super) const VARIANTS: [&Variant; 20] = [
    STOCK,
    ARM64,
    FULL,
    LAZY,
    VOLUNTARY,
    &Variant {
        name: "preempt-full-cpus-1",
        processors: "1",
        evidence: &["preempt=full", "online=0"],
        ..*FULL
    },
    &Variant {
        name: "preempt-full-cpus-4",
        processors: "4",
        evidence: &["preempt=full", "online=0-3"],
        ..*FULL
    },
    &Variant {
        name: "preempt-lazy-cpus-1",
        processors: "1",
        evidence: &["preempt=lazy", "online=0"],
        ..*LAZY
    },
    &Variant {
        name: "preempt-lazy-cpus-4",
        processors: "4",
        evidence: &["preempt=lazy", "online=0-3"],
        ..*LAZY
    },
    &Variant {
        name: "preempt-voluntary-cpus-1",
        processors: "1",
        evidence: &["preempt=voluntary", "online=0"],
        ..*VOLUNTARY
    },
    &Variant {
        name: "preempt-voluntary-cpus-4",
        processors: "4",
        evidence: &["preempt=voluntary", "online=0-3"],
        ..*VOLUNTARY
    },
    &Variant {
        name: "lockdown",
        kernel_arguments: "lockdown=integrity",
        evidence: &["lockdown=integrity"],
        ..*STOCK
    },
    // As the STIGs of distributions ask (see `harden` in tests/vm/init).
    &Variant {
        name: "hardened",
        kernel_arguments: "lockdown=integrity guest_hardened=1",
        evidence: &[
            "lockdown=integrity",
            "net/core/bpf_jit_harden=2",
            "kernel/unprivileged_bpf_disabled=1",
            "kernel/kptr_restrict=2",
            "kernel/dmesg_restrict=1",
            "kernel/perf_event_paranoid=3",
            "kernel/yama/ptrace_scope=2",
            "kernel/kexec_load_disabled=1",
            "kernel/modules_disabled=1",
            "fs/protected_symlinks=1",
            "fs/protected_hardlinks=1",
            "fs/protected_fifos=2",
            "fs/protected_regular=2",
            "noexec=/tmp /var/tmp /dev/shm",
            "hidepid=yes",
            "umask=0027",
        ],
        ..*STOCK
    },
    // Loops and hooks as on Linux 5.15 and 5.16 (see crates/kernel/capture/src/kernel/missing_helpers.rs).
    &Variant {
        name: "no-bpf-loop",
        kernel_arguments: "TARSIER_WITHOUT_HELPERS=loop,get_func_arg,get_func_ret",
        evidence: &["missing=bpf_func_id.BPF_FUNC_loop"],
        ..*STOCK
    },
    &Variant {
        name: "no-bpf-lsm",
        kernel_arguments: "lsm=lockdown,capability,landlock,yama,apparmor",
        evidence: &["bpf_lsm=no"],
        ..*STOCK
    },
    // No security module that can be left out: neither AppArmor nor BPF.
    &Variant {
        name: "no-lsm",
        kernel_arguments: "lsm=capability",
        evidence: &["bpf_lsm=no"],
        ..*STOCK
    },
    // SELinux labels tasks and files, and lets everything happen. `tests/vm/init` loads Debian's policy.
    &Variant {
        name: "selinux",
        kernel_arguments: "security=selinux guest_selinux=permissive",
        evidence: &["selinux=permissive", "labels=yes"],
        ..*STOCK
    },
    &Variant {
        name: "cpus-1",
        processors: "1",
        evidence: &["online=0"],
        ..*STOCK
    },
    &Variant {
        name: "cpus-4",
        processors: "4",
        evidence: &["online=0-3"],
        ..*STOCK
    },
    &Variant {
        name: "possible-128",
        // Present, but not started: on few kernels do processors that can be plugged in later count as possible.
        processors: "128",
        kernel_arguments: "maxcpus=2",
        evidence: &["online=0-1", "possible=0-127"],
        memory_mib: 2 * MEMORY_MIB,
        ..*STOCK
    },
];

/// The variant with this name.
pub(super) fn named(name: &str) -> Result<&'static Variant> {
    match VARIANTS.iter().find(|variant| variant.name == name) {
        Some(variant) => Ok(variant),
        None => {
            let names: Vec<&str> = VARIANTS.iter().map(|variant| variant.name).collect();
            bail!("no variant '{name}'; there are: {}", names.join(", "))
        }
    }
}

impl Variant {
    /// The variant of an architecture that uses the defaults of the distribution's kernel.
    pub(super) const fn plain(guest: Guest) -> &'static Variant {
        match guest {
            Guest::Amd64 => STOCK,
            Guest::Arm64 => ARM64,
        }
    }

    pub(super) fn is_plain(&self) -> bool {
        self.name == Variant::plain(self.guest).name
    }

    /// Whether the guest needs the policy of SELinux.
    pub(super) fn has_selinux(&self) -> bool {
        self.kernel_arguments.contains("guest_selinux=")
    }

    /// Whether kernels of a series have this variant.
    pub(super) fn is_of(&self, series: [u64; 2]) -> bool {
        let [first, end] = self.series;
        series >= first && series < end
    }

    /// The expected lines that the guest's facts lack.
    pub(super) fn lacks(&self, facts: &str) -> Vec<&'static str> {
        let mut evidence = self.evidence.iter().copied();
        let has = |wanted: &str| facts.lines().any(|line| line == wanted);
        evidence.by_ref().filter(|wanted| !has(wanted)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_that_is_not_what_it_was_to_be_is_found_out() {
        let full = named("preempt-full").expect("a variant");
        assert_eq!(
            full.lacks("online=0-1\npreempt=voluntary\n"),
            ["preempt=full"]
        );
        assert!(full.lacks("preempt=full\n").is_empty());
        assert!(named("preempt").is_err());
    }

    #[test]
    fn preemption_models_belong_to_the_kernels_that_have_them() {
        let of = |name, series| named(name).expect("a variant").is_of(series);
        assert!(!of("preempt-lazy", [6, 12]) && of("preempt-lazy", [7, 3]));
        assert!(of("preempt-voluntary", [6, 12]) && !of("preempt-voluntary", [7, 3]));
        assert!(of("stock", [5, 10]) && of("stock", [7, 3]));
    }
}
