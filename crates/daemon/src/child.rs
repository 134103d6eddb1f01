//! The command that runs while the system is recorded (`tarsier run -- COMMAND`).

use anyhow::{Context, Result};
use std::ffi::OsString;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus};

/// Starts `command`, which is a program and its arguments; `None` if it is empty.
pub(super) fn start(command: &[OsString]) -> Result<Option<Child>> {
    let Some((program, arguments)) = command.split_first() else {
        return Ok(None);
    };
    let mut command = Command::new(program);
    command.args(arguments);
    // SAFETY: prctl(2) is async-signal-safe, and nothing is allocated.
    unsafe {
        // The daemon disables huge pages for itself only; a program can do without them.
        command.pre_exec(|| {
            let _ = rustix::thread::disable_transparent_huge_pages(false);
            Ok(())
        });
    }
    command
        .spawn()
        .map(Some)
        .with_context(|| format!("cannot run {}", program.to_string_lossy()))
}

/// Exit status as a shell reports it.
pub(super) fn code(status: ExitStatus) -> u8 {
    match (status.code(), status.signal()) {
        (Some(code), _) => code as u8,
        (None, Some(signal)) => (128 + signal) as u8,
        (None, None) => 1,
    }
}
