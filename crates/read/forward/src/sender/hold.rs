//! More than `hold` bytes wait: the oldest files are given up, and counted.

use std::io;

use crate::cursor::{Cursor, Gap};
use crate::events::Events;
use crate::position::Position;
use crate::spool::Files;

/// Whether more than `hold` waits, so that it is said once.
#[derive(Debug, Default)]
pub(super) struct Hold {
    is_over: bool,
}

impl Hold {
    /// Whether more than `hold_bytes` wait and did not before. It counts as over until a tenth of it is free again.
    pub(super) fn is_newly_over(&mut self, waiting: u64, hold_bytes: u64) -> bool {
        let was_over = self.is_over;
        if waiting > hold_bytes {
            self.is_over = true;
        } else if waiting < hold_bytes / 10 * 9 {
            self.is_over = false;
        }
        self.is_over && !was_over
    }
}

/// Beginning of the events that wait: after the pending batch and the events that were given up already.
pub(super) fn waiting_from(cursor: &Cursor) -> Position {
    match (&cursor.gap_after, &cursor.pending, &cursor.gap) {
        (Some(gap), _, _) => gap.to,
        (None, Some(pending), _) => pending.to,
        (None, None, Some(gap)) => gap.to,
        (None, None, None) => cursor.read,
    }
}

/// Gives up files until at most `hold_bytes` wait. Returns the number of events given up; the
/// file that is being written stays, whatever its size.
///
/// # Errors
/// A file cannot be read, so that its events cannot be counted.
pub(super) fn give_up(cursor: &mut Cursor, files: &Files, hold_bytes: u64) -> io::Result<u64> {
    let begin = waiting_from(cursor);
    let (mut to, mut events) = (begin, 0);
    while files.bytes_after(to) > hold_bytes {
        let Some(number) = files.from(to.file) else {
            break;
        };
        let Some(next) = files.from(number + 1) else {
            break;
        };
        let offset = if number == to.file { to.offset } else { 0 };
        events += count(files, number, offset)?;
        to = Position {
            file: next,
            ..Position::default()
        };
    }

    if to == begin {
        return Ok(0);
    }

    let slot = match cursor.pending {
        Some(_) => &mut cursor.gap_after,
        None => &mut cursor.gap,
    };
    let before = slot.as_ref().map_or(0, |gap| gap.events);
    *slot = Some(Gap {
        to,
        events: before + events,
        cause: "hold".into(),
    });

    Ok(events)
}

/// Events of a file from byte `offset` on.
pub(super) fn count(files: &Files, number: u64, offset: u64) -> io::Result<u64> {
    let text = std::fs::read(files.path(number))?;
    let from = (offset as usize).min(text.len());
    Ok(Events::of_whole(&text[from..]).count() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_much_is_said_once_until_a_tenth_is_free() {
        let mut hold = Hold::default();
        let said: Vec<bool> = [900, 1001, 1200, 950, 1001, 899, 1001]
            .map(|waiting| hold.is_newly_over(waiting, 1000))
            .to_vec();
        assert_eq!(said, [false, true, false, false, false, false, true]);
    }
}
