//! Judges `tests/vm/unselected-icount`: what calls cost on names that are watched and select nothing.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{ensure, Context, Result};

/// The sides beside native, for each set of rules.
const SIDES: [&str; 3] = ["kernel-audit", "trampoline", "tracepoint"];

/// The name of each act and its instructions.
fn read(dir: &Path, side: &str) -> Result<Vec<(String, i64)>> {
    let path = dir.join(side);
    let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
    let acts: Option<Vec<(String, i64)>> = text
        .lines()
        .map(|line| {
            let (name, count) = line.split_once('\t')?;
            Some((name.to_owned(), count.parse().ok()?))
        })
        .collect();
    acts.with_context(|| format!("{side}: expected lines of a name and a number"))
}

/// How much more than the kernel's audit the trampoline engine may add to making and removing a file, under the STIG
/// rules: 1.02 times it on 6.12, 1.36 times on 7.3, and 2.5 times on 6.1, which has no bpf_rdonly_cast() (decision 0053).
const OF_KERNEL_AUDIT_MAX: f64 = 2.6;

/// What `side` adds to an act of native's.
fn added(dir: &Path, native: &[(String, i64)], side: &str, name: &str) -> Result<i64> {
    let count = |acts: &[(String, i64)]| acts.iter().find(|act| act.0 == name).map(|act| act.1);
    let both = count(&read(dir, side)?).zip(count(native));
    let (with, without) = both.with_context(|| format!("{side}: has no {name}"))?;
    Ok(with - without)
}

/// A table of what each side adds to native, in instructions. A call that is not watched may not cost more.
pub(super) fn judge(dir: &Path) -> Result<String> {
    let native = read(dir, "native")?;
    let unwatched = added(dir, &native, "30-stig.trampoline", "null")?;
    ensure!(
        unwatched.abs() <= 2,
        "a call that is not watched costs {unwatched:+}"
    );
    let kernel = added(dir, &native, "30-stig.kernel-audit", "create-unlink")?;
    let ours = added(dir, &native, "30-stig.trampoline", "create-unlink")?;
    ensure!(
        ours as f64 <= kernel as f64 * OF_KERNEL_AUDIT_MAX,
        "create-unlink: trampoline {ours:+}, the kernel's audit {kernel:+}"
    );
    let again = read(dir, "native.again")?;
    let mut table = String::new();

    for rules in ["30-stig", "one"] {
        let _ = write!(table, "{rules:<16}{:>10}{:>8}", "native", "again");
        SIDES.iter().for_each(|side| {
            let _ = write!(table, "{side:>14}");
        });
        let sides: Result<Vec<_>> = SIDES
            .iter()
            .map(|side| read(dir, &format!("{rules}.{side}")))
            .collect();
        let sides = sides?;
        for (row, (name, base)) in native.iter().enumerate() {
            let _ = write!(table, "\n{name:<16}{base:>10}{:>+8}", again[row].1 - base);
            for (side, acts) in SIDES.iter().zip(&sides) {
                let act = acts.get(row).filter(|(other, _)| other == name);
                let (_, count) = act.with_context(|| format!("{rules}.{side}: has no {name}"))?;
                let _ = write!(table, "{:>+14}", count - base);
            }
        }
        ensure!(!native.is_empty(), "native: no act");
        table.push('\n');
    }

    Ok(table.trim_end().to_owned())
}

/// A table of what each case of `tests/vm/kernel-list-icount` adds to native. That the kernel's list shows the rules may
/// not make a call dearer that is not watched.
pub(super) fn judge_list(dir: &Path) -> Result<String> {
    const CASES: [&str; 5] = ["hidden", "shown", "old.hidden", "old.shown", "kernel-audit"];

    let native = read(dir, "native")?;
    let unwatched = |case| added(dir, &native, case, "null");
    let (hidden, shown) = (unwatched("hidden")?, unwatched("shown")?);
    ensure!(
        shown <= hidden + 2,
        "a call that is not watched costs {shown:+}, without the list {hidden:+}"
    );

    let mut table = format!("{:<16}{:>10}", "", "native");
    CASES.iter().for_each(|case| {
        let _ = write!(table, "{case:>14}");
    });
    for (name, base) in &native {
        let _ = write!(table, "\n{name:<16}{base:>10}");
        for case in CASES {
            let _ = write!(table, "{:>+14}", added(dir, &native, case, name)?);
        }
    }
    Ok(table)
}
