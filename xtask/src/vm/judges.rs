//! Judges the results of each test in `tests/vm`.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{bail, ensure, Context, Result};

use super::machine::{last_lines, MachineKind};
use super::{broken_kernels, disk, engines, evade, pressure, rings, source_root, workloads};

/// A test: `tests/vm/NAME`, and how its results are judged.
pub(super) struct Test {
    pub(super) name: &'static str,
    pub(super) kind: MachineKind,
    /// Approximate duration on one processor; the longest machine is started first.
    pub(super) seconds: u32,
    /// Judges the results in a directory. A text of success is printed, if there is one.
    check: fn(&Path) -> Result<String>,
}

/// Tests that run only when they are named: a benchmark (`bench/run workloads --vm`), and one that takes long.
const NAMED: [Test; 2] = [
    Test {
        name: "workloads-icount",
        kind: MachineKind::Instructions,
        seconds: 600,
        check: workloads::judge,
    },
    Test {
        name: broken_kernels::NAME,
        kind: MachineKind::Usual,
        seconds: 1200,
        check: broken_kernels::judge,
    },
];

/// All tests but [`NAMED`], in the order in which a machine runs them.
pub(super) const TESTS: [Test; 18] = [
    Test {
        name: "refusal",
        kind: MachineKind::Usual,
        seconds: 2,
        check: |dir| Ok(fs::read_to_string(dir.join("err"))?.trim_end().to_owned()),
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
        name: "exact",
        kind: MachineKind::Usual,
        seconds: 338,
        check: exact,
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
        name: "latency-icount",
        kind: MachineKind::Instructions,
        seconds: 106,
        check: latency,
    },
    Test {
        name: "rings-icount",
        kind: MachineKind::Instructions,
        seconds: 38,
        check: operations,
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
                "in the guest: exit status {}\n{}",
                status.trim(),
                output()
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

/// This probe is shown but not judged: a closed file is freed later, in the time of any task, so its count varies
/// on 6.1.
const INEXACT: &str = "open+close";
/// Limits of the additional instructions for a call that no rule watches, by hook: a tenth above the values on
/// Linux 6.12 when this was written (97 and 162; 6.1: 90 and 146).
const UNWATCHED_LIMITS: [(&str, f64); 2] = [("per-syscall", 107.0), ("tp_btf", 178.0)];
/// Numbers of rules with which an unwatched call must cost the same.
const RULE_COUNTS: [u32; 2] = [1, 160];

/// Costs of calls in instructions: `(probe, best round)` in the order of `workload --latency`.
struct Costs(Vec<(String, f64)>);

impl Costs {
    fn read(dir: &Path, name: &str) -> Result<Self> {
        let path = dir.join(name);
        let text =
            fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        let parse = |line: &str| {
            let mut fields = line.split('\t');
            let probe = fields.next()?.to_string();
            Some((probe, fields.next()?.parse().ok()?))
        };
        let costs: Option<Vec<(String, f64)>> = text.lines().map(parse).collect();
        match costs {
            Some(costs) if !costs.is_empty() => Ok(Costs(costs)),
            _ => bail!(
                "{}: expected PROBE, MINIMUM, MEDIAN: {text}",
                path.display()
            ),
        }
    }

    /// Takes higher costs from another run: names added in between may share chains of the kernel's name table.
    fn or_more(mut self, other: &Costs) -> Self {
        for (probe, cost) in &mut self.0 {
            let others = other.0.iter().filter(|(name, _)| name == probe);
            *cost = others.fold(*cost, |most, (_, cost)| most.max(*cost));
        }
        self
    }

    /// The probes whose counts do not vary.
    fn exact(&self) -> impl Iterator<Item = &(String, f64)> {
        self.0.iter().filter(|(probe, _)| probe != INEXACT)
    }

    /// The line above the rows, with the names of the probes.
    fn head(&self, what: &str) -> String {
        let mut head = format!("{what:<28}");
        for (probe, _) in &self.0 {
            let _ = write!(head, "{probe:>11}");
        }
        head.push('\n');
        head
    }

    fn row(&self, head: &str) -> String {
        let mut row = format!("{head:<28}");
        for (_, instructions) in &self.0 {
            let _ = write!(row, "{instructions:>11.1}");
        }
        row
    }
}

/// Judges `latency-icount`: a table of costs, and errors for costs above the limits.
fn latency(dir: &Path) -> Result<String> {
    let native = Costs::read(dir, "native")?.or_more(&Costs::read(dir, "native.again")?);
    let mut table = native.head("instructions per call");
    let mut wrong = Vec::new();
    let _ = writeln!(table, "{}", native.row("native"));
    for set in ["unwatched", "watched"] {
        for (hook, limit) in UNWATCHED_LIMITS {
            let mut first: Option<Costs> = None;
            for count in RULE_COUNTS {
                let case = format!("{set}.{hook}.{count}");
                let costs = Costs::read(dir, &case)?;
                let _ = writeln!(table, "{}", costs.row(&case));
                if set == "watched" {
                    continue;
                }
                wrong.extend(over(&native, &costs, limit, &case));
                match &first {
                    None => first = Some(costs),
                    Some(one) if one.exact().eq(costs.exact()) => {}
                    Some(_) => {
                        wrong.push(format!("{case}: not what {} rule costs", RULE_COUNTS[0]))
                    }
                }
            }
        }
    }
    wrong.extend(functions(dir, &native, &mut table)?);
    if wrong.is_empty() {
        Ok(table.trim_end().to_string())
    } else {
        bail!("{}\n{table}", wrong.join("\n"))
    }
}

/// Judges `rings-icount`: where functions are hooked or probed, an operation that no rule watches must cost the
/// same as natively. The other costs are only shown.
fn operations(dir: &Path) -> Result<String> {
    let native = Costs::read(dir, "native")?;
    let mut table = native.head("instructions per operation");
    let _ = writeln!(table, "{}", native.row("native"));
    let mut wrong = Vec::new();
    for case in [
        "other.trampoline",
        "watched.trampoline",
        "other.tracepoint",
        "watched.tracepoint",
        "none.kernel-audit",
        "other.kernel-audit",
        "watched.kernel-audit",
    ] {
        let costs = Costs::read(dir, case)?;
        let _ = writeln!(table, "{}", costs.row(case));
        let is_free = match case.strip_prefix("other.") {
            Some("trampoline") => true,
            Some("tracepoint") => !hooks(dir, "tracepoint")?.contains("io_uring_submit"),
            _ => false,
        };
        if is_free {
            wrong.extend(over(&native, &costs, ROUNDING, case));
        }
    }
    if wrong.is_empty() {
        Ok(table.trim_end().to_string())
    } else {
        bail!("{}\n{table}", wrong.join("\n"))
    }
}

/// Limit of instructions, beyond those of a program that does nothing, for a call whose function is hooked and
/// that its gate keeps out: a tenth above the value on Linux 6.12 when this was written (53).
const GATE_LIMIT: f64 = 58.0;
/// Probes of calls that no rule of the STIG set watches; the set watches open.
const STIG_UNWATCHED: [&str; 5] = ["null", "read", "write", "stat", "fstat"];
/// Limit of the time to arm the set, by the guest's clock, which counts a nanosecond per instruction and runs on
/// while the kernel waits: a tenth above the value on Linux 6.12 when this was written (5.75; 4.91 before
/// paths were recognised in the kernel).
const STIG_ARMED_LIMIT_S: f64 = 6.3;
/// Limit of that time with probes, where each probe on a function that tells what calls touch is attached
/// separately: a tenth above the value on Linux 7.3 when this was written (11.98; 7.21 before paths were recognised
/// in the kernel).
const STIG_PROBED_LIMIT_S: f64 = 13.2;
/// Limits of the instructions that the verifier processes: in one program, and in all programs for the STIG set.
const VERIFIED_LIMITS: [u64; 2] = [26_000, 320_000];
/// Limits of verified instructions with probes, and with copies of the programs on tracepoints.
const VERIFIED_PROBED_LIMITS: [u64; 2] = [32_000, 440_000];
/// A count is a mean over a round in which the clock may tick: a difference this small is no instruction.
const ROUNDING: f64 = 0.5;
/// The kernel finds a function's probe in a hash table whose seed changes with each arming (lib/rhashtable.c): a
/// longer chain was seen to take 5 more instructions. The cost of a rule would occur 160 times.
const PROBE_CHAINS: f64 = 20.0;

/// The hooks of an engine in the guest, as `tarsier plan` describes them.
fn hooks(dir: &Path, engine: &str) -> Result<String> {
    let path = dir.join(format!("{engine}.hooks"));
    let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
    ensure!(!text.trim().is_empty(), "{}: empty", path.display());
    Ok(text)
}

/// Checks the trampoline engine: a call that no rule watches must cost the same as natively, and a watched call
/// that is not selected the same with any number of rules. The limit for a gate applies to programs in
/// trampolines; a probe has a longer path (decision 0019).
fn functions(dir: &Path, native: &Costs, table: &mut String) -> Result<Vec<String>> {
    let mut wrong = Vec::new();
    for case in [
        "floor.fentry",
        "kernel-audit.0",
        "kernel-audit.1",
        "kernel-audit.100",
    ] {
        let _ = writeln!(table, "{}", Costs::read(dir, case)?.row(case));
    }
    let floor = Costs::read(dir, "floor.fexit")?;
    let (gate_limit, set_limit) = match hooks(dir, "trampoline")?.contains("kretprobe") {
        true => (f64::INFINITY, PROBE_CHAINS),
        false => (GATE_LIMIT, ROUNDING),
    };
    let _ = writeln!(table, "{}", floor.row("floor.fexit"));
    for (set, base, limit, set_limit) in [
        ("unwatched", native, ROUNDING, ROUNDING),
        ("watched", &floor, gate_limit, set_limit),
    ] {
        let mut first: Option<Costs> = None;
        for count in RULE_COUNTS {
            let case = format!("{set}.function.{count}");
            let costs = Costs::read(dir, &case)?;
            let _ = writeln!(table, "{}", costs.row(&case));
            wrong.extend(over(base, &costs, limit, &case));
            match &first {
                None => first = Some(costs),
                Some(one) => wrong.extend(over(one, &costs, set_limit, &case)),
            }
        }
    }
    wrong.extend(stig(dir, native, table)?);
    Ok(wrong)
}

/// Checks Debian's STIG rules under the trampoline engine: calls that none of them watches must cost the same as
/// natively, and arming them and verifying the programs must stay within limits.
fn stig(dir: &Path, native: &Costs, table: &mut String) -> Result<Vec<String>> {
    let text = |name: &str| {
        let path = dir.join(name);
        fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))
    };
    let seconds = |name: &str| -> Result<f64> {
        let text = text(name)?;
        text.trim()
            .parse()
            .with_context(|| format!("{name}: {text}"))
    };
    let costs = Costs::read(dir, "stig.function")?;
    let _ = writeln!(table, "{}", costs.row("stig.function"));
    let unwatched = |costs: &Costs| {
        let kept = costs
            .0
            .iter()
            .filter(|(probe, _)| STIG_UNWATCHED.contains(&probe.as_str()));
        Costs(kept.cloned().collect())
    };
    let (native, costs) = (unwatched(native), unwatched(&costs));
    let mut wrong = over(&native, &costs, ROUNDING, "stig.function");
    let armed_s = seconds("stig.armed_at")? - seconds("stig.started_at")?;
    let (armed_limit_s, verified_limits) = match hooks(dir, "trampoline")?.contains("kretprobe") {
        true => (STIG_PROBED_LIMIT_S, VERIFIED_PROBED_LIMITS),
        false => (STIG_ARMED_LIMIT_S, VERIFIED_LIMITS),
    };
    if armed_s > armed_limit_s {
        wrong.push(format!(
            "STIG rules armed in {armed_s:.2} s, limit {armed_limit_s}"
        ));
    }
    let programs = text("stig.programs")?;
    let parse = |line: &str| {
        let (name, count) = line.split_once('\t')?;
        Some((count.parse::<u64>().ok()?, name.to_string()))
    };
    let mut verified: Vec<(u64, String)> = programs.lines().filter_map(parse).collect();
    verified.sort_unstable_by(|left, right| right.cmp(left));
    let all: u64 = verified.iter().map(|(count, _)| count).sum();
    let _ = writeln!(
        table,
        "STIG rules: armed in {armed_s:.2} s of this clock; {} programs, {all} instructions verified; the most: {}",
        verified.len(),
        verified.iter().take(6).map(|(count, name)| format!("{name} {count}")).collect::<Vec<_>>().join(", ")
    );
    let most = verified.first().map_or(0, |(count, _)| *count);
    if most == 0 || most > verified_limits[0] || all > verified_limits[1] {
        wrong.push(format!("verified instructions: {most} in one program, {all} in all; limits {verified_limits:?}"));
    }
    Ok(wrong)
}

/// The probes that cost more than `limit` instructions above native.
fn over(native: &Costs, costs: &Costs, limit: f64, case: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    for ((probe, base), (_, cost)) in native.exact().zip(costs.exact()) {
        let added = cost - base;
        if added > limit {
            wrong.push(format!(
                "{case}: {probe} takes {added:.1} more, limit {limit}"
            ));
        }
    }
    wrong
}
