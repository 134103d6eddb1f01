//! `bindings`: Rust's view of the wire layout, from `crates/event/include/tarsier_event.h`.

use std::path::Path;
use std::process::Command;

use anyhow::{bail, Context, Result};

/// Runs `crates/event/gen/bindings.sh`, which writes `crates/event/src/wire/bindings.rs`; with `check` it only
/// compares. Needs bindgen, libclang and rustfmt.
pub(crate) fn write(check: bool) -> Result<()> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/event/gen/bindings.sh");
    let mut command = Command::new(&script);
    if check {
        command.arg("--check");
    }
    let status = command
        .status()
        .with_context(|| format!("starting {}", script.display()))?;
    if !status.success() {
        bail!("{} failed: {status}", script.display());
    }
    Ok(())
}
