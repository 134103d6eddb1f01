//! `tarsier export`: runs the program `tarsier-export`, which is a program of its own for the size of its libraries.

use anyhow::{Context, Result};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Becomes `tarsier-export`, which stands beside this program, with the words after `tarsier export`.
///
/// # Errors
/// There is no such program, or it cannot be started.
pub(crate) fn run() -> Result<u8> {
    let this = std::env::current_exe().context("the place of this program")?;
    let program = this.with_file_name("tarsier-export");
    let error = Command::new(&program)
        .args(std::env::args_os().skip(2))
        .exec();
    Err(error).with_context(|| {
        format!(
            "{}: the program that writes tables cannot be started; packages have it, and in a checkout \
             `cargo build --release -p tarsier-export` makes it",
            program.display()
        )
    })
}
