//! Judges `tests/vm/profile-icount`: time inside the functions of the kernel's audit and inside Tarsier's programs.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{bail, Context, Result};

/// Numbers of rules at which the growth of Tarsier's time is judged: the fewest above none, and the most.
const FEW: u32 = 10;
const MOST: u32 = 130;
/// Limit of the nanoseconds that a call costs more with [`MOST`] rules than with [`FEW`], under Tarsier.
const GROWTH_LIMIT_NS: f64 = 20.0;

/// The first number of the line that begins with `name`.
fn value(dir: &Path, file: &str, name: &str) -> Result<f64> {
    let path = dir.join(file);
    let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
    let mut words = text.lines().map(str::split_whitespace);
    let found = words.find_map(|mut line| (line.next() == Some(name)).then(|| line.next())?);
    let found = found.and_then(|word| word.parse().ok());
    found.with_context(|| format!("{file}: no number after {name} in: {text}"))
}

/// A table of what a call takes with few and with many rules, and of the samples; an error if a call under Tarsier takes
/// longer with more rules.
pub(super) fn judge(dir: &Path) -> Result<String> {
    let mut table = format!(
        "{:<26}{:>10}{:>10}{:>10}",
        "ns per stat", "none", "few", "most"
    );
    let mut wrong = Vec::new();
    for set in ["unwatched", "watched"] {
        for side in ["kernel-audit", "trampoline", "tracepoint"] {
            let call = |count: u32| value(dir, &format!("{set}.{side}.{count}"), "call");
            let (none, few, most) = (call(0)?, call(FEW)?, call(MOST)?);
            let case = format!("{set}.{side}");
            let _ = write!(table, "\n{case:<26}{none:>10.1}{few:>10.1}{most:>10.1}");
            if side != "kernel-audit" && most > few + GROWTH_LIMIT_NS {
                wrong.push(format!(
                    "{case}: {few} ns with {FEW} rules, {most} ns with {MOST}"
                ));
            }
        }
    }

    for case in ["stig.kernel-audit", "stig.trampoline", "stig.tracepoint"] {
        for load in ["stat", "nop", "inline", "sqpoll"] {
            let file = format!("{load}.{case}");
            let share = |group| {
                anyhow::Ok(100.0 * value(dir, &file, group)? / value(dir, &file, "samples")?)
            };
            let (audit, bpf) = (share("audit")?, share("bpf")?);
            let _ = write!(table, "\n{file:<26} audit {audit:.1} %, bpf {bpf:.1} %");
        }
    }

    if wrong.is_empty() {
        Ok(table)
    } else {
        bail!("{}\n{table}", wrong.join("\n"))
    }
}
