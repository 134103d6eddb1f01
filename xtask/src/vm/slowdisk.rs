//! Judges `tests/vm/slowdisk-icount`: loggers whose log is on a slow disk.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{bail, Context, Result};

use super::floods::numbers;

pub(super) const NAME: &str = "slowdisk-icount";
/// The program that makes a file system, and its place in the guest: no other test needs it.
pub(super) const MKFS: &str = "/sbin/mkfs.ext4";
pub(super) const PROGRAM: &str = "sbin/mkfs.ext4";

/// A table of the calls made, and of the events logged and lost; an error where Tarsier has lost events.
pub(super) fn judge(dir: &Path) -> Result<String> {
    let read = |name: &str| {
        let text = fs::read_to_string(dir.join(name));
        text.with_context(|| format!("reading {name}"))
    };
    let mut table = format!(
        "{:<30}{:>10}{:>10}{:>10}",
        "events", "made", "logged", "lost"
    );
    let mut wrong = Vec::new();

    for case in read("cases")?.lines() {
        let count = |what: &str| -> Result<u64> {
            let text = read(&format!("{case}.{what}"))?;
            let number = text.trim().parse();
            number.with_context(|| format!("{case}.{what}: {text}"))
        };
        let made = read(&format!("{case}.made"))?;
        let [made, _] = numbers(&made).with_context(|| format!("{case}.made: {made}"))?;
        let (logged, lost) = (count("logged")?, count("lost")?);
        let _ = write!(table, "\n{case:<30}{made:>10}{logged:>10}{lost:>10}");
        if case.starts_with("tarsier.") && lost > 0 {
            wrong.push(format!("{case}: {lost} of {made} events lost"));
        }
    }

    if wrong.is_empty() {
        Ok(table)
    } else {
        bail!("{}\n{table}", wrong.join("\n"))
    }
}
