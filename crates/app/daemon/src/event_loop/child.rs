//! The command that runs while the system is recorded (`tarsier run -- COMMAND`).

use anyhow::{Context, Result};
use privsep::spawn::{Child, Launcher, Request};
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

/// Starts `command`, a program with its arguments that the launcher was told of at its own start; `None` if it is
/// empty.
pub(crate) fn start(launcher: &Launcher, command: &[OsString]) -> Result<Option<Child>> {
    let Some(program) = command.first() else {
        return Ok(None);
    };
    launcher
        .launch(&Request::Command, None)
        .map(Some)
        .with_context(|| format!("cannot run {}", program.to_string_lossy()))
}

/// Exit status as a shell reports it.
pub(crate) fn code(status: ExitStatus) -> u8 {
    match (status.code(), status.signal()) {
        (Some(code), _) => code as u8,
        (None, Some(signal)) => (128 + signal) as u8,
        (None, None) => 1,
    }
}
