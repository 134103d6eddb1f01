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

/// A table of what each side adds to native, in instructions.
pub(super) fn judge(dir: &Path) -> Result<String> {
    let native = read(dir, "native")?;
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
