//! `bindings`: Rust declarations made from C headers. The wire layout comes from
//! `crates/log/record/include/tarsier_event.h`, and what the programs and the daemon share from
//! `crates/kernel/bpf/programs/shared.h`.

use std::path::Path;
use std::process::Command;

use anyhow::{bail, Context, Result};

/// The first script writes `crates/log/record/src/wire/bindings.rs`, the second one `crates/kernel/bpf/src/shared.rs`.
const SCRIPTS: [&str; 2] = [
    "crates/log/record/gen/bindings.sh",
    "crates/kernel/bpf/gen/bindings.sh",
];

/// Runs [`SCRIPTS`]; with `check` they only compare their output with the committed files. Needs bindgen, libclang
/// and rustfmt.
pub(crate) fn write(root: &Path, check: bool) -> Result<()> {
    for script in SCRIPTS {
        let script = root.join(script);
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
    }

    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The version that wrote the committed files; the output of others may differ.
    const VERSION: &str = "bindgen 0.72.";

    #[test]
    fn the_committed_bindings_are_what_the_headers_give() {
        let bindgen = std::env::var_os("BINDGEN").unwrap_or_else(|| "bindgen".into());
        let Ok(output) = Command::new(bindgen).arg("--version").output() else {
            println!("skipped: the committed bindings: bindgen is not installed");
            return;
        };
        let version = String::from_utf8_lossy(&output.stdout);
        if !version.starts_with(VERSION) {
            let found = version.trim();
            println!("skipped: the committed bindings: {VERSION}x wrote them, found {found}");
            return;
        }
        write(&crate::source_root(), true).unwrap();
    }
}
