//! Determines which tests run on which kernels and variants.

use super::guest::Guest;
use super::judges::{Test, TESTS};
use super::machine::{Machine, MachineKind};
use super::variant::{Variant, VARIANTS};
use super::Ground;

/// The kernel for which the tests' expectations were written.
const REFERENCE: [u64; 2] = [6, 12];
/// The oldest kernel that Tarsier works on.
const SUPPORTED: [u64; 2] = [5, 15];
/// The first series of the matrix: the last one that Tarsier refuses.
pub(super) const LOWEST: [u64; 2] = [5, 10];

/// The role of a kernel in the tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Older than the oldest kernel that the eBPF engines work on.
    TooOld,
    /// Older than the reference.
    Old,
    Reference,
    /// Newer than the reference, but not the newest.
    Later,
    Newest,
}

impl Role {
    /// The role of a series if `newest` is the newest one.
    fn of(series: [u64; 2], newest: [u64; 2]) -> Self {
        match series {
            _ if series < SUPPORTED => Role::TooOld,
            _ if series < REFERENCE => Role::Old,
            REFERENCE => Role::Reference,
            _ if series < newest => Role::Later,
            _ => Role::Newest,
        }
    }
}

/// Tests that run on kernels with these roles, in machines of these variants.
struct PlanLine {
    roles: &'static [Role],
    variants: &'static [&'static str],
    tests: &'static [&'static str],
}

/// The tests of `make test`: about 14 minutes on two processors, for one old kernel, the reference and the newest. What
/// hardly depends on the kernel, and comparisons that are exact to the instruction, run on the reference only; techniques
/// of evasion there and on the host's own kernel.
const USUAL: [PlanLine; 8] = [
    PlanLine {
        roles: &[Role::TooOld],
        variants: &["stock"],
        tests: &["no-ebpf"],
    },
    PlanLine {
        roles: &[Role::Old, Role::Later],
        variants: &["stock"],
        tests: &[
            "workload",
            "rules",
            "lifecycle",
            "names",
            "lookups",
            "attacks",
            "kernel-engine",
        ],
    },
    PlanLine {
        roles: &[Role::Reference],
        variants: &["stock"],
        tests: &[
            "workload",
            "rules",
            "lifecycle",
            "names",
            "lookups",
            "attacks",
            "identity",
            "ancestors",
            "seccomp",
            "rings",
            "evade",
            "elsewhere",
            "pressure",
            "kernel-engine",
            "latency-icount",
            "optimise-icount",
            "exact",
            "disk",
            "changes",
            "locked",
        ],
    },
    PlanLine {
        roles: &[Role::Old],
        variants: &["no-bpf-loop"],
        tests: &["lifecycle", "workload"],
    },
    OF_SELINUX,
    PlanLine {
        roles: &[Role::Newest],
        variants: &["stock"],
        tests: &["workload", "lifecycle", "lookups", "seccomp", "exact"],
    },
    OLD_ON_ARM64,
    OF_ARM64,
];

/// The tests of `make test` with `TARSIER_LONG_TESTS`: about 35 minutes. What a killed daemon leaves depends on the
/// kernel, so that runs on the newest; full disks and power cuts do not depend on it.
const LONG: [PlanLine; 12] = [
    PlanLine {
        roles: &[Role::TooOld],
        variants: &["stock"],
        tests: &["no-ebpf"],
    },
    PlanLine {
        roles: &[Role::Old, Role::Later],
        variants: &["stock"],
        tests: &[
            "workload",
            "rules",
            "lifecycle",
            "names",
            "lookups",
            "attacks",
            "identity",
            "ancestors",
            "rings",
            "evade",
            "kernel-engine",
        ],
    },
    PlanLine {
        roles: &[Role::Reference, Role::Newest],
        variants: &["stock"],
        tests: &[
            "workload",
            "rules",
            "lifecycle",
            "names",
            "lookups",
            "attacks",
            "identity",
            "ancestors",
            "seccomp",
            "rings",
            "evade",
            "hunt",
            "elsewhere",
            "pressure",
            "kernel-engine",
        ],
    },
    OF_MANY_PROCESSORS,
    PlanLine {
        roles: &[Role::Newest],
        variants: &["stock"],
        tests: &["survival"],
    },
    PlanLine {
        roles: &[Role::Reference, Role::Newest],
        variants: &["stock"],
        tests: &["latency-icount", "rings-icount", "units-icount", "exact"],
    },
    PlanLine {
        roles: &[Role::Reference],
        variants: &["stock"],
        tests: &[
            "disk",
            "locked",
            "polled-icount",
            "optimise-icount",
            "changes",
            "floods",
            "kernel-list",
        ],
    },
    WITHOUT_LOOPS,
    EXACT_WITHOUT_LOOPS,
    OF_SELINUX,
    OLD_ON_ARM64,
    OF_ARM64,
];

/// The tests of every series that the suites have.
const MATRIX: [PlanLine; 11] = [
    PlanLine {
        roles: &[Role::TooOld],
        variants: &["stock"],
        tests: &["no-ebpf"],
    },
    PlanLine {
        roles: &[Role::Old, Role::Reference, Role::Later, Role::Newest],
        variants: &["stock"],
        tests: &[
            "engines",
            "workload",
            "rules",
            "lifecycle",
            "survival",
            "names",
            "lookups",
            "attacks",
            "identity",
            "ancestors",
            "rings",
            "evade",
            "hunt",
        ],
    },
    OF_MANY_PROCESSORS,
    PlanLine {
        roles: &[Role::Old, Role::Reference, Role::Newest],
        variants: &["stock"],
        tests: &["changes"],
    },
    PlanLine {
        roles: &[Role::Reference, Role::Newest],
        variants: &["stock"],
        tests: &[
            "latency-icount",
            "rings-icount",
            "units-icount",
            "exact",
            "pressure",
            "elsewhere",
        ],
    },
    PlanLine {
        roles: &[Role::Reference],
        variants: &["stock"],
        tests: &["floods", "polled-icount"],
    },
    OF_VARIANTS,
    WITHOUT_LOOPS,
    EXACT_WITHOUT_LOOPS,
    OF_SELINUX,
    OF_ARM64,
];

/// The tests that differ between variants of one kernel.
const OF_VARIANTS: PlanLine = PlanLine {
    roles: &[Role::Reference, Role::Newest],
    variants: &[
        "preempt-full",
        "preempt-lazy",
        "preempt-voluntary",
        "lockdown",
        "hardened",
        "no-bpf-lsm",
        "cpus-1",
        "cpus-4",
        "possible-128",
    ],
    tests: &["lifecycle", "workload", "rings", "pressure"],
};

/// Loops and hooks as kernels before 5.17 get them. Every kernel's verifier has to accept them.
const WITHOUT_LOOPS: PlanLine = PlanLine {
    roles: &[Role::Old, Role::Reference, Role::Newest],
    variants: &["no-bpf-loop"],
    tests: &[
        "lifecycle",
        "workload",
        "rules",
        "names",
        "survival",
        "rings",
        "evade",
    ],
};

const EXACT_WITHOUT_LOOPS: PlanLine = PlanLine {
    roles: &[Role::Reference, Role::Newest],
    variants: &["no-bpf-loop"],
    tests: &["exact"],
};

/// Line for many processors, where rings are smaller and long argument lists do not fit.
const OF_MANY_PROCESSORS: PlanLine = PlanLine {
    roles: &[Role::Reference],
    variants: &["possible-128"],
    tests: &["evade"],
};

/// The tests of labels. Others would be the same as without SELinux.
const OF_SELINUX: PlanLine = PlanLine {
    roles: &[Role::Reference, Role::Newest],
    variants: &["selinux"],
    tests: &["labels"],
};

const OLD_ON_ARM64: PlanLine = PlanLine {
    roles: &[Role::Old, Role::Later],
    variants: &["arm64"],
    tests: &["lifecycle"],
};

/// The tests that are valid on arm64: the others use calls, functions or counts of x86-64.
const OF_ARM64: PlanLine = PlanLine {
    roles: &[Role::Reference, Role::Newest],
    variants: &["arm64"],
    tests: &["lifecycle", "exact"],
};

/// The requested tests.
pub(super) enum Extent<'a> {
    Usual,
    Long,
    Matrix,
    /// These tests in machines of these variants; without tests, those for variants.
    Named(&'a [&'static Test], &'a [&'static Variant]),
}

/// A machine and its tests, in order.
pub(super) struct Job<'a> {
    pub(super) ground: &'a Ground,
    pub(super) machine: Machine<'a>,
    pub(super) tests: Vec<&'static Test>,
}

impl Job<'_> {
    /// Approximate duration.
    fn seconds(&self) -> u32 {
        self.tests.iter().map(|test| test.seconds).sum()
    }
}

/// All requested machines, the longest first. A variant that a kernel does not have is left out.
pub(super) fn jobs<'a>(grounds: &'a [Ground], extent: &Extent) -> Vec<Job<'a>> {
    let mut jobs: Vec<Job> = grounds
        .iter()
        .flat_map(|each| jobs_on(each, extent))
        .collect();
    jobs.sort_by_key(|job| std::cmp::Reverse(job.seconds()));
    jobs
}

fn jobs_on<'a>(ground: &'a Ground, extent: &Extent) -> Vec<Job<'a>> {
    let mut jobs = Vec::new();
    for kernel in &ground.kernels {
        let role = Role::of(kernel.series(), ground.newest);
        let variants = VARIANTS.into_iter().filter(|v| v.guest == ground.guest);
        for variant in variants.filter(|v| v.is_of(kernel.series())) {
            let chosen = |test: &&Test| extent.has(role, variant, test);
            for kind in [
                MachineKind::Usual,
                MachineKind::Disk,
                MachineKind::Reboot,
                MachineKind::Instructions,
            ] {
                let tests = extent.tests().into_iter();
                let tests = tests.filter(|test| test.kind == kind).filter(chosen);
                let machine = Machine {
                    kernel,
                    kind,
                    variant,
                };
                jobs.push(Job {
                    ground,
                    machine,
                    tests: tests.collect(),
                });
            }
        }
    }

    jobs.retain(|job| !job.tests.is_empty());
    jobs
}

/// Whether the matrix has a test for kernels of this series.
pub(super) fn is_in_matrix(guest: Guest, series: [u64; 2], newest: [u64; 2]) -> bool {
    let role = Role::of(series, newest);
    let is_of_guest = |variant: &&Variant| variant.guest == guest && variant.is_of(series);
    let mut variants = VARIANTS.into_iter().filter(is_of_guest);
    variants.any(|variant| {
        let mut tests = TESTS.iter();
        tests.any(|test| Extent::Matrix.has(role, variant, test))
    })
}

impl Extent<'_> {
    /// All tests of this extent.
    fn tests(&self) -> Vec<&'static Test> {
        match self {
            Extent::Named(tests, _) if !tests.is_empty() => tests.to_vec(),
            _ => TESTS.iter().collect(),
        }
    }

    /// Whether a machine with SELinux is among the requested ones, on whichever kernel.
    pub(super) fn needs_selinux(&self) -> bool {
        let roles = [Role::Old, Role::Reference, Role::Later, Role::Newest];
        let mut variants = VARIANTS.into_iter().filter(|each| each.has_selinux());
        variants.any(|variant| {
            let tests = self.tests();
            let has = |test: &&Test| roles.iter().any(|role| self.has(*role, variant, test));
            tests.iter().any(has)
        })
    }

    /// Whether a test runs on a kernel with this role in a machine of this variant.
    fn has(&self, role: Role, variant: &Variant, test: &Test) -> bool {
        let lines = match self {
            Extent::Usual => &USUAL[..],
            Extent::Long => &LONG[..],
            Extent::Matrix => &MATRIX[..],
            Extent::Named(tests, variants) => {
                let is_asked_for = if variants.is_empty() {
                    variant.is_plain()
                } else {
                    variants.iter().any(|each| each.name == variant.name)
                };
                let of_variants = match variant.guest {
                    Guest::Amd64 => OF_VARIANTS.tests,
                    Guest::Arm64 => OF_ARM64.tests,
                };
                let is_of_variants = || of_variants.contains(&test.name);
                return is_asked_for && (!tests.is_empty() || is_of_variants());
            }
        };

        let has = |line: &PlanLine| {
            line.roles.contains(&role)
                && line.variants.contains(&variant.name)
                && line.tests.contains(&test.name)
        };
        lines.iter().any(has)
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::super::kernels::Kernel;
    use super::super::variant;
    use super::*;

    fn kernels(releases: &[&str]) -> Vec<Kernel> {
        let kernel = |release: &&str| Kernel {
            release: format!("{release}-cloud-amd64"),
            image: PathBuf::new(),
        };
        releases.iter().map(kernel).collect()
    }

    /// `RELEASE VARIANT: TEST …` for each machine.
    fn lines(releases: &[&str], extent: &Extent) -> Vec<String> {
        lines_of(Guest::Amd64, releases, extent)
    }

    fn lines_of(guest: Guest, releases: &[&str], extent: &Extent) -> Vec<String> {
        let kernels = kernels(releases);
        let ground = Ground {
            guest,
            dir: PathBuf::new(),
            initramfs: PathBuf::new(),
            newest: kernels.iter().map(Kernel::series).max().unwrap_or_default(),
            kernels,
            lacks_kernels: false,
        };
        let line = |job: &Job| {
            let names: Vec<&str> = job.tests.iter().map(|test| test.name).collect();
            let release = job
                .machine
                .kernel
                .release
                .split('-')
                .next()
                .unwrap_or_default();
            format!(
                "{release} {}: {}",
                job.machine.variant.name,
                names.join(" ")
            )
        };
        jobs(&[ground], extent).iter().map(line).collect()
    }

    #[test]
    fn every_line_names_tests_and_variants_that_there_are() {
        for line in USUAL.iter().chain(&LONG).chain(&MATRIX) {
            for name in line.tests {
                assert!(TESTS.iter().any(|test| test.name == *name), "{name}");
            }
            for name in line.variants {
                assert!(
                    VARIANTS.iter().any(|variant| variant.name == *name),
                    "{name}"
                );
            }
        }
    }

    #[test]
    fn the_long_form_leaves_nothing_out_that_the_usual_one_has() {
        let kernels = kernels(&["5.10.0", "6.1.0", "6.12.9", "6.17.3", "7.3.4"]);
        let newest = [7, 3];
        for (kernel, variant) in kernels
            .iter()
            .flat_map(|k| VARIANTS.into_iter().map(move |v| (k, v)))
        {
            let role = Role::of(kernel.series(), newest);
            for test in TESTS
                .iter()
                .filter(|test| Extent::Usual.has(role, variant, test))
            {
                assert!(Extent::Long.has(role, variant, test), "{}", test.name);
            }
        }
    }

    #[test]
    fn what_is_exact_is_compared_on_the_reference_and_the_newest() {
        let planned = lines(&["6.1.0", "6.12.9", "6.17.3", "7.3.4"], &Extent::Matrix);
        let with = |name: &str| -> Vec<&str> {
            let lines = planned
                .iter()
                .filter(|line| line.split(' ').any(|word| word == name));
            let mut releases: Vec<&str> = lines.filter_map(|line| line.split(' ').next()).collect();
            releases.sort_unstable();
            releases.dedup();
            releases
        };
        assert_eq!(with("exact"), ["6.12.9", "7.3.4"]);
        assert_eq!(with("latency-icount"), ["6.12.9", "7.3.4"]);
        assert_eq!(with("survival"), ["6.1.0", "6.12.9", "6.17.3", "7.3.4"]);
        assert_eq!(with("preempt-lazy:"), ["7.3.4"]);
        assert_eq!(with("preempt-voluntary:"), ["6.12.9"]);
        assert_eq!(with("possible-128:"), ["6.12.9", "7.3.4"]);
    }

    #[test]
    fn a_kernel_that_is_too_old_has_one_test() {
        for extent in [Extent::Usual, Extent::Long, Extent::Matrix] {
            assert_eq!(lines(&["5.10.0"], &extent), ["5.10.0 stock: no-ebpf"]);
        }
    }

    #[test]
    fn tests_and_variants_that_are_named_are_those_that_run() {
        let test = TESTS
            .iter()
            .find(|test| test.name == "rings")
            .expect("a test");
        let full = variant::named("preempt-full").expect("a variant");
        assert_eq!(
            lines(&["6.1.0"], &Extent::Named(&[test], &[])),
            ["6.1.0 stock: rings"]
        );
        assert_eq!(
            lines(&["6.1.0"], &Extent::Named(&[test], &[full])),
            ["6.1.0 preempt-full: rings"]
        );
        assert_eq!(
            lines(&["6.1.0"], &Extent::Named(&[], &[full])),
            ["6.1.0 preempt-full: workload lifecycle rings pressure"]
        );
    }

    #[test]
    fn on_arm64_the_reference_and_the_newest_are_compared() {
        let all = ["6.1.0", "6.12.9", "6.17.3", "7.3.4"];
        let compared = [
            "6.12.9 arm64: exact",
            "7.3.4 arm64: exact",
            "6.12.9 arm64: lifecycle",
            "7.3.4 arm64: lifecycle",
        ];
        assert_eq!(lines_of(Guest::Arm64, &all, &Extent::Matrix), compared);
        let others = lines_of(Guest::Arm64, &all, &Extent::Long);
        assert!(others.contains(&"6.1.0 arm64: lifecycle".to_owned()));
        let is_in = |series| is_in_matrix(Guest::Arm64, series, [7, 3]);
        assert!(is_in([6, 12]) && is_in([7, 3]) && !is_in([6, 1]) && !is_in([6, 17]));
        assert!(is_in_matrix(Guest::Amd64, [6, 17], [7, 3]));
    }

    #[test]
    fn a_test_that_locks_audit_is_the_last_of_its_machine() {
        for line in lines(&["6.12.9"], &Extent::Usual) {
            assert!(
                !line.contains("kernel-engine") || line.ends_with("kernel-engine"),
                "{line}"
            );
        }
    }
}
