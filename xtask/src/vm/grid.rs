//! Judges `tests/vm/grid-icount`: what calls cost by number of rules, none of which selects them.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{bail, Context, Result};

use super::instructions::{over, Costs};

/// Numbers of rules; the kernel's audit has those up to [`KERNEL_MOST`].
const COUNTS: [u32; 10] = [0, 10, 20, 30, 40, 50, 100, 160, 1000, 2000];
const KERNEL_MOST: u32 = 160;
/// The kernel's audit, and the engines.
const SIDES: [&str; 3] = ["kernel-audit", "trampoline", "tracepoint"];
/// Limit of instructions that a call costs more with the most rules than with the fewest, under Tarsier: the number of
/// rules must not matter. Chains of the kernel's tables make counts differ by a few.
const GROWTH_LIMIT: f64 = 20.0;

/// A table of costs; an error if a call under Tarsier costs more with more rules.
pub(super) fn judge(dir: &Path) -> Result<String> {
    let native = Costs::read(dir, "native")?;
    let mut table = native.head("instructions per call");
    let _ = writeln!(table, "{}", native.row("native"));
    let mut wrong = Vec::new();

    for set in ["unwatched", "watched"] {
        for side in SIDES {
            let is_ours = side != "kernel-audit";
            let mut first: Option<Costs> = None;
            for count in COUNTS.into_iter().filter(|n| is_ours || *n <= KERNEL_MOST) {
                let case = format!("{set}.{side}.{count}");
                let costs = Costs::read(dir, &case)?;
                let _ = writeln!(table, "{}", costs.row(&case));
                match &first {
                    // Without rules no program is attached.
                    _ if !is_ours || count == 0 => {}
                    None => first = Some(costs),
                    Some(few) => wrong.extend(over(few, &costs, GROWTH_LIMIT, &case)),
                }
            }
        }
    }

    for engine in &SIDES[1..] {
        for count in [10, 2000] {
            let name = format!("memory.{engine}.{count}");
            let text = fs::read_to_string(dir.join(&name));
            let text = text.with_context(|| format!("reading {name}"))?;
            let _ = writeln!(table, "{name}: {}", text.trim());
        }
    }

    if wrong.is_empty() {
        Ok(table.trim_end().to_owned())
    } else {
        bail!("{}\n{table}", wrong.join("\n"))
    }
}
