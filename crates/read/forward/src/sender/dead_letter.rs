//! Events that a format or the destination refuses, with place and reason.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::batch::Refusal;
use crate::position::Position;

/// Appends refused events to the dead-letter file of the spool.
pub(super) fn write(spool: &Path, refused: &[Refusal]) -> io::Result<()> {
    for each in refused {
        write_one(spool, each.at, &each.reason, &each.lines)?;
    }
    Ok(())
}

/// Appends one event, made durable.
pub(super) fn write_one(spool: &Path, at: Position, why: &str, lines: &[u8]) -> io::Result<()> {
    let mut file: File = OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(spool.join("dead-letter"))?;
    let reason = why.replace(['\n', '\r'], " ");
    let mut text = format!("# until {at}: {reason}\n").into_bytes();
    text.extend_from_slice(lines);

    if !lines.ends_with(b"\n") {
        text.push(b'\n');
    }
    file.write_all(&text)?;
    file.sync_data()
}
