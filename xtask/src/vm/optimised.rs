//! Judges `optimise-icount`: what optimised rules cost calls under the kernel's audit.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{bail, Result};

use super::instructions::{over, Costs, ROUNDING};

/// Debian's sample rule sets.
const SETS: [&str; 4] = ["stig", "pci-dss-v31", "ospp-v42", "nispom"];
/// Instructions by which a call that rules name may cost more with a `never` rule in front: what passing one rule takes
/// on Linux 6.12.
const PASSED_RULE: f64 = 8.0;
/// The rules whose costs are prices of the model (crates/core/plan/src/kernel.rs).
const PRICES: [&str; 6] = [
    "passed.1",
    "passed.101",
    "arch.100",
    "condition.100",
    "directory.100",
    "met.1",
];

/// A table of costs. An optimised set must cost no probe more than the set as it is; with a `never` rule in front, which
/// some set must get, hardly more, and getppid no more.
pub(super) fn judge(dir: &Path) -> Result<String> {
    let native = Costs::read(dir, "native")?;
    let mut table = native.head("instructions per call");
    let _ = writeln!(table, "{}", native.row("native"));
    let mut wrong = Vec::new();
    let mut has_gained = false;

    for set in SETS {
        let read = |form: &str| Costs::read(dir, &format!("{set}.{form}"));
        let (as_it_is, optimised) = (read("as-it-is")?, read("optimised")?);
        let never = read("leading-never")?;
        for (form, costs, limit) in [
            ("as-it-is", &as_it_is, 0.0),
            ("optimised", &optimised, ROUNDING),
            ("leading-never", &never, PASSED_RULE + ROUNDING),
        ] {
            let case = format!("{set}.{form}");
            let _ = writeln!(table, "{}", costs.row(&case));
            wrong.extend(over(&as_it_is, costs, limit, &case));
        }
        let null = |costs: &Costs| costs.exact().next().map_or(0.0, |(_, cost)| *cost);
        has_gained |= null(&never) < null(&optimised);
        if null(&never) > null(&optimised) + ROUNDING {
            wrong.push(format!(
                "{set}.leading-never: getppid costs more than without it"
            ));
        }
    }

    if !has_gained {
        wrong.push("leading-never: no set costs less".to_owned());
    }
    for price in PRICES {
        let case = format!("price.{price}");
        let _ = writeln!(table, "{}", Costs::read(dir, &case)?.row(&case));
    }

    if wrong.is_empty() {
        Ok(table.trim_end().to_string())
    } else {
        bail!("{}\n{table}", wrong.join("\n"))
    }
}
