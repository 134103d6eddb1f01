//! External commands: separate programs in the directory of this one, because of the size of their libraries.

use anyhow::{Context, Result};
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// `tarsier forward`.
pub(crate) const FORWARD: &str = "tarsier-forward";
/// `tarsier export`.
pub(crate) const EXPORT: &str = "tarsier-export";

/// Replaces this process with `program` and these arguments.
///
/// # Errors
/// There is no such program in the directory of this one, or it cannot be started.
pub(crate) fn exec(program: &str, args: impl IntoIterator<Item = OsString>) -> Result<u8> {
    let this = std::env::current_exe().context("the place of this program")?;
    let path = this.with_file_name(program);
    let error = Command::new(&path).args(args).exec();
    Err(error).with_context(|| {
        format!(
            "cannot start {}: packages have it, and in a checkout `cargo build --release -p {program}` makes it",
            path.display()
        )
    })
}
