//! Programs that the tasks run.

use anyhow::{bail, Context, Result};
use std::process::Command;

/// Runs a command to its end. Returns its standard output; if it fails, an error with its standard error.
pub(crate) fn output_of(command: &mut Command) -> Result<String> {
    let output = command
        .stdin(std::process::Stdio::null())
        .output()
        .with_context(|| format!("starting {command:?}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{command:?}: {}\n{}", output.status, said.trim_end());
    }
    String::from_utf8(output.stdout).with_context(|| format!("the output of {command:?}"))
}
