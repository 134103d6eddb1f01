//! Judges the results of each test in `tests/vm`.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{bail, Context, Result};

use super::machine::{last_lines, MachineKind};
use super::{
    ancestors, broken_kernels, changes, disk, engines, evade, floods, grid, index, instructions,
    livelock, optimised, polled, pressure, profile, rings, slowdisk, source_root, unselected,
    workloads,
};

/// A test: `tests/vm/NAME`, and how its results are judged.
pub(super) struct Test {
    pub(super) name: &'static str,
    pub(super) kind: MachineKind,
    /// Approximate duration on one processor; the longest machine is started first.
    pub(super) seconds: u32,
    /// Judges the results in a directory. A text of success is printed, if there is one.
    check: fn(&Path) -> Result<String>,
}

/// Tests that run only when they are named: benchmarks (`bench/run workloads --vm`), and one that takes long.
const NAMED: [Test; 9] = [
    Test {
        name: "kernel-list-icount",
        kind: MachineKind::Instructions,
        seconds: 200,
        check: unselected::judge_list,
    },
    Test {
        name: "unselected-icount",
        kind: MachineKind::Instructions,
        seconds: 120,
        check: unselected::judge,
    },
    Test {
        name: "workloads-icount",
        kind: MachineKind::Instructions,
        seconds: 600,
        check: workloads::judge,
    },
    Test {
        name: "livelock-icount",
        kind: MachineKind::Instructions,
        seconds: 450,
        check: livelock::judge,
    },
    Test {
        name: "grid-icount",
        kind: MachineKind::Instructions,
        seconds: 500,
        check: grid::judge,
    },
    Test {
        name: "index-icount",
        kind: MachineKind::Instructions,
        seconds: 200,
        check: index::judge,
    },
    Test {
        name: slowdisk::NAME,
        kind: MachineKind::Instructions,
        seconds: 200,
        check: slowdisk::judge,
    },
    Test {
        name: "profile-icount",
        kind: MachineKind::Instructions,
        seconds: 200,
        check: profile::judge,
    },
    Test {
        name: broken_kernels::NAME,
        kind: MachineKind::Usual,
        seconds: 1200,
        check: broken_kernels::judge,
    },
];

/// All tests but [`NAMED`], in the order in which a machine runs them.
pub(super) const TESTS: [Test; 30] = [
    Test {
        name: "no-ebpf",
        kind: MachineKind::Usual,
        seconds: 20,
        check: |dir| Ok(fs::read_to_string(dir.join("said"))?.trim_end().to_owned()),
    },
    Test {
        name: "engines",
        kind: MachineKind::Usual,
        seconds: 40,
        check: engines::judge,
    },
    Test {
        name: "workload",
        kind: MachineKind::Usual,
        seconds: 34,
        check: workload,
    },
    Test {
        name: "rules",
        kind: MachineKind::Usual,
        seconds: 108,
        check: rules,
    },
    Test {
        name: "lifecycle",
        kind: MachineKind::Usual,
        seconds: 49,
        check: |_| Ok(String::new()),
    },
    Test {
        name: "survival",
        kind: MachineKind::Usual,
        seconds: 204,
        check: |_| Ok(String::new()),
    },
    Test {
        name: "names",
        kind: MachineKind::Usual,
        seconds: 25,
        check: |_| Ok(String::new()),
    },
    Test {
        name: "identity",
        kind: MachineKind::Usual,
        seconds: 65,
        check: |_| Ok(String::new()),
    },
    Test {
        name: "ancestors",
        kind: MachineKind::Usual,
        seconds: 60,
        check: ancestors::judge,
    },
    Test {
        name: "elsewhere",
        kind: MachineKind::Usual,
        seconds: 60,
        check: |_| Ok(String::new()),
    },
    Test {
        name: "seccomp",
        kind: MachineKind::Usual,
        seconds: 6,
        check: |_| Ok(String::new()),
    },
    Test {
        name: "rings",
        kind: MachineKind::Usual,
        seconds: 118,
        check: rings::judge,
    },
    Test {
        name: "pressure",
        kind: MachineKind::Usual,
        seconds: 90,
        check: pressure::judge,
    },
    Test {
        name: "lookups",
        kind: MachineKind::Usual,
        seconds: 15,
        check: |dir| {
            Ok(fs::read_to_string(dir.join("output"))?
                .trim_end()
                .to_owned())
        },
    },
    Test {
        name: "evade",
        kind: MachineKind::Usual,
        seconds: 120,
        check: evade::judge,
    },
    Test {
        name: "hunt",
        kind: MachineKind::Usual,
        seconds: 240,
        check: |dir| {
            let said = fs::read_to_string(dir.join("output"))?;
            let seeds = said.lines().filter(|line| line.starts_with("seed "));
            Ok(format!("{} seeds, no call missed", seeds.count()))
        },
    },
    Test {
        name: "attacks",
        kind: MachineKind::Usual,
        seconds: 60,
        check: report,
    },
    Test {
        name: "labels",
        kind: MachineKind::Usual,
        seconds: 60,
        check: report,
    },
    // The last one on its machine, since it leaves audit locked.
    Test {
        name: "kernel-engine",
        kind: MachineKind::Usual,
        seconds: 26,
        check: kernel_engine,
    },
    Test {
        name: "disk",
        kind: MachineKind::Disk,
        seconds: 150,
        check: disk::judge,
    },
    Test {
        name: "locked",
        kind: MachineKind::Reboot,
        seconds: 240,
        check: report,
    },
    Test {
        name: "latency-icount",
        kind: MachineKind::Instructions,
        seconds: 106,
        check: instructions::latency,
    },
    Test {
        name: "rings-icount",
        kind: MachineKind::Instructions,
        seconds: 38,
        check: instructions::operations,
    },
    Test {
        name: "polled-icount",
        kind: MachineKind::Instructions,
        seconds: 120,
        check: polled::judge,
    },
    Test {
        name: "units-icount",
        kind: MachineKind::Instructions,
        seconds: 60,
        check: instructions::units,
    },
    Test {
        name: "optimise-icount",
        kind: MachineKind::Instructions,
        seconds: 60,
        check: optimised::judge,
    },
    Test {
        name: "changes",
        kind: MachineKind::Instructions,
        seconds: 100,
        check: changes::judge,
    },
    Test {
        name: "floods",
        kind: MachineKind::Instructions,
        seconds: 240,
        check: floods::judge,
    },
    Test {
        name: "exact",
        // Look-ups have time by the clock: 20 ms of an emulated machine would be too few. After what is
        // measured on its machine, since it enables audit, which costs all that comes later.
        kind: MachineKind::Instructions,
        seconds: 338,
        check: exact,
    },
    Test {
        name: "kernel-list",
        // How long the daemon takes to follow does not depend on this host. After all others, since it leaves audit locked.
        kind: MachineKind::Instructions,
        seconds: 240,
        check: report,
    },
];

/// Number of lines of a test's output that are shown if it fails.
const OUTPUT_LINES: usize = 40;
/// Messages of the kernel that indicate a fault.
const KERNEL_COMPLAINTS: [&str; 6] = [
    "BUG:",
    "WARNING:",
    "Oops",
    "Call Trace:",
    "rcu: INFO",
    "general protection",
];

/// The test with this name.
pub(super) fn named(name: &str) -> Result<&'static Test> {
    let mut known = TESTS.iter().chain(&NAMED);
    match known.clone().find(|test| test.name == name) {
        Some(test) => Ok(test),
        None => {
            let names: Vec<&str> = known.by_ref().map(|test| test.name).collect();
            bail!("no test '{name}'; there are: {}", names.join(", "))
        }
    }
}

impl Test {
    /// Whether the results in `dir` are good. Returns the text of success, or a readable error.
    pub(super) fn judge(&self, dir: &Path) -> Result<String, String> {
        let output = || last_lines(&dir.join("output"), OUTPUT_LINES);
        let status = fs::read_to_string(dir.join("status"))
            .map_err(|error| format!("{}: no status: {error}", dir.display()))?;
        if status.trim() != "0" {
            // busybox's timeout(1) ends a late test with a signal.
            return Err(format!(
                "in the guest: exit status {}\n{}\n{}",
                status.trim(),
                output(),
                last_lines(&dir.join("kernel.log"), OUTPUT_LINES)
            ));
        }

        let said = (self.check)(dir).map_err(|error| format!("{error:#}\n{}", output()))?;
        let log = fs::read_to_string(dir.join("kernel.log")).unwrap_or_default();
        if KERNEL_COMPLAINTS
            .iter()
            .any(|complaint| log.contains(complaint))
        {
            return Err(format!("the kernel complains:\n{log}"));
        }

        Ok(said)
    }
}

/// Judges `workload`. Probes see calls with a number above the kernel's table only where a function answers them.
fn workload(dir: &Path) -> Result<String> {
    let (truth, plan, log) = (dir.join("truth"), dir.join("plan"), dir.join("log"));
    let read = |path: &Path| {
        fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))
    };
    let whole = compare(&truth, &log, None, &[]);
    if whole.is_ok() || !read(&plan)?.contains("kretprobe.multi") {
        return whole.map(|()| String::new());
    }

    let text = read(&truth)?;
    let is_served = |line: &&str| !line.contains("\tunknown\t-38\t");
    let served: Vec<&str> = text.lines().filter(is_served).collect();
    let of_kernel = dir.join("truth.served");
    fs::write(&of_kernel, served.join("\n") + "\n")
        .with_context(|| format!("writing {}", of_kernel.display()))?;
    compare(&of_kernel, &log, None, &[])?;
    let left_out = text.lines().count() - served.len();

    Ok(format!(
        "{left_out} calls with a number above the kernel's table are left out"
    ))
}

/// The report of a test that judges itself.
fn report(dir: &Path) -> Result<String> {
    let said = fs::read_to_string(dir.join("report"))?;
    Ok(said.trim_end().to_owned())
}

/// Judges `kernel-engine`. The kernel's own records do not tell which directory a descriptor stands for.
fn kernel_engine(dir: &Path) -> Result<String> {
    compare(&dir.join("truth"), &dir.join("log"), None, &["--kernel"]).map(|()| String::new())
}

/// Judges `rules`: compares each rule set's log with the calls of the workload that the set watches.
fn rules(dir: &Path) -> Result<String> {
    let names = fs::read_to_string(source_root().join("tests/vm/rules.calls"))
        .context("reading tests/vm/rules.calls")?;
    for (set, arches) in [
        ("b64", &["b64"][..]),
        ("b32", &["b32"]),
        ("both", &["b64", "b32"]),
        ("functions-b64", &["b64"]),
        ("functions-b32", &["b32"]),
        ("functions-both", &["b64", "b32"]),
    ] {
        let truth = dir.join(format!("{set}.truth"));
        let watched = dir.join(format!("{set}.watched"));
        keep_arches(&truth, &watched, arches)?;
        compare(
            &watched,
            &dir.join(format!("{set}.log")),
            Some(names.trim()),
            &[],
        )
        .with_context(|| format!("rule set {set}"))?;
    }

    Ok(String::new())
}

/// Copies the lines of a truth whose column `arch` is one of `arches`; fails if there are none.
fn keep_arches(truth: &Path, to: &Path, arches: &[&str]) -> Result<()> {
    let text = fs::read_to_string(truth).with_context(|| format!("reading {}", truth.display()))?;
    let mut lines = text.lines();
    let head = lines.next().unwrap_or_default();
    let Some(column) = head.split('\t').position(|name| name == "arch") else {
        bail!("{}: no column arch in: {head}", truth.display());
    };

    let mut kept = format!("{head}\n");
    for arch in arches {
        let of_arch = |line: &&str| line.split('\t').nth(column) == Some(*arch);
        if !text.lines().any(|line| of_arch(&line)) {
            bail!("{}: no {arch} call", truth.display());
        }
    }

    for line in lines {
        if arches
            .iter()
            .any(|arch| line.split('\t').nth(column) == Some(*arch))
        {
            kept.push_str(line);
            kept.push('\n');
        }
    }

    fs::write(to, kept).with_context(|| format!("writing {}", to.display()))
}

/// Runs `tests/workload/check`; the error contains the differences.
fn compare(truth: &Path, log: &Path, syscalls: Option<&str>, options: &[&str]) -> Result<()> {
    let mut command = Command::new(source_root().join("tests/workload/check"));
    command.arg(truth).arg(log).args(options);
    if let Some(names) = syscalls {
        command.args(["--syscalls", names]);
    }
    let output = command.output().context("starting tests/workload/check")?;

    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stdout);
        let differences: Vec<&str> = said.lines().rev().take(OUTPUT_LINES).collect();
        let error = String::from_utf8_lossy(&output.stderr);
        bail!(
            "{} against {}:\n{}{error}",
            log.display(),
            truth.display(),
            differences.join("\n")
        );
    }

    Ok(())
}

/// Judges `exact`: compares the log of each engine with that of the kernel's audit. See `tests/exact/compare`.
fn exact(dir: &Path) -> Result<String> {
    let output = Command::new(source_root().join("tests/exact/compare"))
        .arg(dir)
        .arg("--table")
        .arg(source_root().join("docs/reference/exactness.md"))
        .output()
        .context("starting tests/exact/compare")?;
    let said = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        bail!("{said}{}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(said.trim_end().to_string())
}
