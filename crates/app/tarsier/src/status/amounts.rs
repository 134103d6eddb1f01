//! Counts and times in few columns.

/// A count in at most 7 columns; from a million on with a unit, as in 1234.5 G.
pub(super) fn short(count: u64) -> String {
    scaled(
        count,
        &[
            (1_000_000_000_000, " T"),
            (1_000_000_000, " G"),
            (1_000_000, " M"),
        ],
    )
    .unwrap_or_else(|| count.to_string())
}

/// A time with its unit.
pub(super) fn time(ns: u64) -> String {
    scaled(
        ns,
        &[(1_000_000_000, " s"), (1_000_000, " ms"), (1_000, " µs")],
    )
    .unwrap_or_else(|| format!("{ns} ns"))
}

fn scaled(value: u64, units: &[(u64, &str)]) -> Option<String> {
    let (size, unit) = units.iter().find(|(size, _)| value >= *size)?;
    Some(format!("{:.1}{unit}", value as f64 / *size as f64))
}
