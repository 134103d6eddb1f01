//! Statuses of commands that answer by them.

use anyhow::{Error, Result};
use std::io::ErrorKind;

/// The status of an answer that was written; also if its reader ended first, as `head` does: what
/// was found stays true, and 0 would deny it.
///
/// # Errors
/// Other errors of writing.
pub(crate) fn answered(status: u8, written: Result<()>) -> Result<u8> {
    match written {
        Err(error) if !is_broken_pipe(&error) => Err(error),
        _ => Ok(status),
    }
}

/// Whether standard output was closed by its reader, which is not an error.
pub(crate) fn is_broken_pipe(error: &Error) -> bool {
    let plain = error.downcast_ref::<std::io::Error>();
    let json = error.downcast_ref::<serde_json::Error>();
    plain
        .map(std::io::Error::kind)
        .or(json.and_then(serde_json::Error::io_error_kind))
        == Some(ErrorKind::BrokenPipe)
}
