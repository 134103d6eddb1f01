//! Judges the tests whose results are counts of instructions.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{bail, ensure, Context, Result};

/// This probe is shown but not judged: a closed file is freed later, in the time of any task, so its count varies
/// on 6.1.
const INEXACT: &str = "open+close";
/// Limits of the additional instructions for a call that no rule watches, by hook: a tenth above the values on
/// Linux 6.12 when this was written (97 and 162; 6.1: 90 and 146).
const UNWATCHED_LIMITS: [(&str, f64); 2] = [("per-syscall", 107.0), ("tp_btf", 178.0)];
/// Numbers of rules with which an unwatched call must cost the same.
const RULE_COUNTS: [u32; 2] = [1, 160];

/// Costs of calls in instructions: `(probe, best round)` in the order of `workload --latency`.
pub(super) struct Costs(Vec<(String, f64)>);

impl Costs {
    pub(super) fn read(dir: &Path, name: &str) -> Result<Self> {
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
    pub(super) fn exact(&self) -> impl Iterator<Item = &(String, f64)> {
        self.0.iter().filter(|(probe, _)| probe != INEXACT)
    }

    /// The line above the rows, with the names of the probes.
    pub(super) fn head(&self, what: &str) -> String {
        let mut head = format!("{what:<28}");
        for (probe, _) in &self.0 {
            let _ = write!(head, "{probe:>11}");
        }
        head.push('\n');
        head
    }

    pub(super) fn row(&self, head: &str) -> String {
        let mut row = format!("{head:<28}");
        for (_, instructions) in &self.0 {
            let _ = write!(row, "{instructions:>11.1}");
        }
        row
    }
}

/// Judges `latency-icount`: a table of costs, and errors for costs above the limits.
pub(super) fn latency(dir: &Path) -> Result<String> {
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
    wrong.extend(at_rest(dir, &native, &mut table)?);
    if wrong.is_empty() {
        Ok(table.trim_end().to_string())
    } else {
        bail!("{}\n{table}", wrong.join("\n"))
    }
}

/// Judges `rings-icount`: where functions are hooked or probed, an operation that no rule watches must cost the
/// same as natively; on tracepoints hardly more than with programs that do nothing. The other costs are only shown.
pub(super) fn operations(dir: &Path) -> Result<String> {
    let native = Costs::read(dir, "native")?;
    let has_tracepoints = hooks(dir, "tracepoint")?.contains("io_uring_submit");
    let mut table = native.head("instructions per operation");
    let _ = writeln!(table, "{}", native.row("native"));
    let mut wrong = Vec::new();

    for case in [
        "other.trampoline",
        "watched.trampoline",
        "other.tracepoint",
        "watched.tracepoint",
        "floor.tracepoint",
        "none.kernel-audit",
        "other.kernel-audit",
        "watched.kernel-audit",
    ] {
        let costs = Costs::read(dir, case)?;
        let _ = writeln!(table, "{}", costs.row(case));
        match case.strip_prefix("other.") {
            Some("tracepoint") if has_tracepoints => {
                let floor = Costs::read(dir, "floor.tracepoint")?;
                wrong.extend(over(&floor, &costs, OPERATION_LIMIT, case));
            }
            Some("trampoline" | "tracepoint") => {
                wrong.extend(over(&native, &costs, ROUNDING, case));
            }
            _ => {}
        }
    }

    if wrong.is_empty() {
        Ok(table.trim_end().to_string())
    } else {
        bail!("{}\n{table}", wrong.join("\n"))
    }
}

/// Limit of instructions, beyond those of two programs that do nothing, for an operation that no rule watches: a tenth
/// above the value on Linux 6.1 when this was written (53).
const OPERATION_LIMIT: f64 = 59.0;
/// Judges `units-icount`: a call that no rule watches must not cost more with a rule on a unit than with one on a uid,
/// and a call that such a rule selects hardly more. What a call costs that the rule does not select is only shown.
pub(super) fn units(dir: &Path) -> Result<String> {
    let native = Costs::read(dir, "native")?;
    let mut table = native.head("instructions per call");
    let _ = writeln!(table, "{}", native.row("native"));
    let mut wrong = Vec::new();

    for engine in ["trampoline", "tracepoint"] {
        for rule in ["unwatched", "selected", "other"] {
            let name = |field: &str| format!("{rule}.{field}.{engine}");
            let uid = Costs::read(dir, &name("uid"))?;
            let unit = Costs::read(dir, &name("unit"))?;
            let _ = writeln!(table, "{}", uid.row(&name("uid")));
            let _ = writeln!(table, "{}", unit.row(&name("unit")));
            let limit = match rule {
                "selected" => SELECTED_LIMIT,
                _ => ROUNDING,
            };
            if rule != "other" {
                wrong.extend(over(&uid, &unit, limit, &name("unit")));
            }
        }
    }

    wrong.extend(processes(dir, &mut table)?);
    if wrong.is_empty() {
        Ok(table.trim_end().to_string())
    } else {
        bail!("{}\n{table}", wrong.join("\n"))
    }
}

/// Adds what making and executing processes costs their makers. Returns the costs that are above [`PROCESS_LIMITS`].
fn processes(dir: &Path, table: &mut String) -> Result<Vec<String>> {
    let none = process_costs(dir, "none")?;
    let mut wrong = Vec::new();
    for side in ["none", "told", "rules"] {
        let costs = process_costs(dir, side)?;
        let _ = writeln!(
            table,
            "processes.{side}: {costs:.0?} instructions for fork and exit, and for execve"
        );
        for (place, limit) in PROCESS_LIMITS.iter().enumerate() {
            let more = costs[place] - none[place];
            if more > *limit {
                wrong.push(format!(
                    "processes.{side}: {more:.0} instructions more; limit {limit}"
                ));
            }
        }
    }

    Ok(wrong)
}

/// Instructions per unit of the two workloads on processes.
fn process_costs(dir: &Path, side: &str) -> Result<[f64; 2]> {
    let path = dir.join(format!("processes.{side}"));
    let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
    let mut costs = text.lines().filter_map(|line| {
        let numbers: Vec<f64> = line
            .split_whitespace()
            .skip(1)
            .filter_map(|word| word.parse().ok())
            .collect();
        let [amount, _, own_ns] = numbers[..] else {
            return None;
        };
        Some(own_ns / amount)
    });

    match (costs.next(), costs.next()) {
        (Some(fork), Some(execute)) => Ok([fork, execute]),
        _ => bail!("{}: not two lines of `loads`", path.display()),
    }
}

/// Limits of the instructions that a fork with its exit, and an execve, may cost more if the daemon is told of processes.
const PROCESS_LIMITS: [f64; 2] = [20_000.0, 20_000.0];
/// Limit of the instructions by which a call may cost more, of about 3,250, for a gate that looks for a cgroup.
const SELECTED_LIMIT: f64 = 100.0;
/// Limit of instructions, beyond those of a program that does nothing, for a call whose function is hooked and
/// that its gate keeps out (29 on Linux 6.12 when this was written).
const GATE_LIMIT: f64 = 30.0;
/// Probes of calls that no rule of the STIG set watches; the set watches open.
const STIG_UNWATCHED: [&str; 5] = ["null", "read", "write", "stat", "fstat"];
/// Limit of the time to arm the set, by the guest's clock, which counts a nanosecond per instruction and runs on
/// while the kernel waits: a little above the value on Linux 6.12 when this was written (6.37; 5.77 before notes
/// began by a gate, 5.17 before names had to be proven).
const STIG_ARMED_LIMIT_S: f64 = 6.6;
/// Limit of that time with probes, where each probe on a function that tells what calls touch is attached
/// separately: a tenth above the value on Linux 7.3 when this was written (7.65; 6.94 before
/// names had to be proven).
const STIG_PROBED_LIMIT_S: f64 = 8.4;
/// Limit of instructions that the set adds to opening a file for reading and closing it, with programs in trampolines.
const STIG_OPEN_LIMIT: f64 = 1000.0;
/// Limits of the instructions that the verifier processes: in one program, and in all programs for the STIG set (55,010
/// and 449,288 on Linux 6.12 when this was written).
const VERIFIED_LIMITS: [u64; 2] = [64_000, 495_000];
/// Limits of verified instructions with probes, and with copies of the programs on tracepoints (78,556 and 324,681 on
/// Linux 7.3 when this was written).
const VERIFIED_PROBED_LIMITS: [u64; 2] = [86_000, 600_000];
/// A count is a mean over a round in which the clock may tick: a difference this small is not an
/// instruction.
pub(super) const ROUNDING: f64 = 0.5;
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

/// Checks what is left after Tarsier's end where audit had never been enabled: one rule, with which calls cost the same
/// as before the start; without it they would cost more.
fn at_rest(dir: &Path, native: &Costs, table: &mut String) -> Result<Vec<String>> {
    let (ruled, unruled) = (
        Costs::read(dir, "at-rest")?,
        Costs::read(dir, "at-rest.unruled")?,
    );
    let _ = writeln!(table, "{}", ruled.row("at-rest"));
    let _ = writeln!(table, "{}", unruled.row("at-rest.unruled"));
    let mut wrong = over(native, &ruled, ROUNDING, "at-rest");
    if over(native, &unruled, ROUNDING, "at-rest.unruled").is_empty() {
        wrong.push("at-rest.unruled: costs no more than natively: nothing is shown".to_owned());
    }

    for (name, expected) in [
        ("at-rest.rules", "-a never,task"),
        ("at-rest.again", "No rules"),
    ] {
        let path = dir.join(name);
        let rules =
            fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        if rules.trim() != expected {
            wrong.push(format!("{name}: {rules:?}, expected: {expected}"));
        }
    }

    Ok(wrong)
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
    let (gate_limit, set_limit) = if hooks(dir, "trampoline")?.contains("kretprobe") {
        (f64::INFINITY, PROBE_CHAINS)
    } else {
        (GATE_LIMIT, ROUNDING)
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

    let mut wrong = over(
        &unwatched(native),
        &unwatched(&costs),
        ROUNDING,
        "stig.function",
    );
    let armed_s = seconds("stig.armed_at")? - seconds("stig.started_at")?;
    let is_probed = hooks(dir, "trampoline")?.contains("kretprobe");
    let (armed_limit_s, verified_limits) = if is_probed {
        (STIG_PROBED_LIMIT_S, VERIFIED_PROBED_LIMITS)
    } else {
        (STIG_ARMED_LIMIT_S, VERIFIED_LIMITS)
    };
    let of_open = |costs: &Costs| {
        let open = costs.0.iter().find(|(probe, _)| probe == INEXACT);
        open.map_or(f64::INFINITY, |(_, cost)| *cost)
    };
    let added = of_open(&costs) - of_open(native);
    if added > STIG_OPEN_LIMIT && !is_probed {
        wrong.push(format!(
            "stig.function: {INEXACT} takes {added:.1} more, limit {STIG_OPEN_LIMIT}"
        ));
    }

    if armed_s > armed_limit_s {
        wrong.push(format!(
            "STIG rules armed in {armed_s:.2} s, limit {armed_limit_s}"
        ));
    }

    let programs = text("stig.programs")?;
    wrong.extend(verified(&programs, verified_limits, armed_s, table));

    Ok(wrong)
}

/// Checks how much the verifier had to process: `NAME, TAB, INSTRUCTIONS` of each program.
fn verified(programs: &str, limits: [u64; 2], armed_s: f64, table: &mut String) -> Option<String> {
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
    let is_within = (1..=limits[0]).contains(&most) && all <= limits[1];

    (!is_within).then(|| {
        format!("verified instructions: {most} in one program, {all} in all; limits {limits:?}")
    })
}

/// Number of instructions by which two runs may differ for a call that looks up a path: one more
/// entry in a chain of the kernel's cache of names, whose places depend on addresses.
const CHAIN: f64 = 8.0;

/// The probes that cost more than `limit` instructions above native.
pub(super) fn over(native: &Costs, costs: &Costs, limit: f64, case: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    for ((probe, base), (_, cost)) in native.exact().zip(costs.exact()) {
        let added = cost - base;
        let limit = if probe == "stat" {
            limit + CHAIN
        } else {
            limit
        };
        if added > limit {
            wrong.push(format!(
                "{case}: {probe} takes {added:.1} more, limit {limit}"
            ));
        }
    }

    wrong
}
