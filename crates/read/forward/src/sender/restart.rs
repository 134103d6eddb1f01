//! Finds where sending goes on if text that was sent is not in the log any more.

use std::fs::File;

use super::hold;
use crate::cursor::Cursor;
use crate::position::Position;
use crate::spool::{Files, Spool};

/// Place at which sending goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Restart {
    pub(super) to: Position,
    /// Number of events that are given up.
    pub(super) given_up: u64,
}

/// Finds the restart after a change of file `number`: after the last mark that holds and is not after `next`, in the
/// same file under another number, so that no position stands for two texts. For a file that is not written any more no
/// number is left: its unsent part is given up, unless that is all of it.
///
/// # Errors
/// The file cannot be read or linked.
pub(super) fn after_change(
    spool: &mut Spool,
    files: &Files,
    cursor: &Cursor,
    number: u64,
) -> anyhow::Result<Restart> {
    let next = cursor.next();
    let read = if number == next.file {
        next.offset
    } else {
        // The batch reaches into the file.
        0
    };
    let (file, offset, given_up) = match spool.renumber(number)? {
        Some(other) => {
            let file = File::open(files.path(number))?;
            (other, cursor.marks.last_agreeing(number, read, &file), 0)
        }
        None if read == 0 => (number, 0, 0),
        None => (number + 1, 0, hold::count(files, number, read)?),
    };

    let to = Position {
        file,
        offset,
        seal: 0,
    };
    Ok(Restart { to, given_up })
}
