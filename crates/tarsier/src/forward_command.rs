//! `tarsier forward`: runs `tarsier-forward`, a program of its own, in the place of this one.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;

const PROGRAM: &str = "tarsier-forward";

/// Becomes the program beside this one, or else that of the search path.
pub(crate) fn forward(args: Vec<OsString>) -> anyhow::Result<u8> {
    let this = std::env::current_exe().unwrap_or_default();
    let program = beside(&this).unwrap_or_else(|| PathBuf::from(PROGRAM));
    let error = Command::new(&program).args(args).exec();
    Err(error).with_context(|| {
        format!(
            "cannot run {}; install it, or build it by `cargo build --release -p {PROGRAM}`",
            program.display()
        )
    })
}

fn beside(this: &Path) -> Option<PathBuf> {
    let path = this.parent()?.join(PROGRAM);
    path.exists().then_some(path)
}
