//! Sending again what was sent already.

use std::fs::File;
use std::io::{BufRead, BufReader};

use crate::config::{Config, Start};
use crate::cursor::{Cursor, CursorFile};
use crate::events::Events;
use crate::position::Position;
use crate::spool::{Files, Spool};

/// Sets the cursor back to `from`: a position of the present series, or seconds since 1970. What is
/// older than the linked files comes from the log's rotated files, in a new series.
///
/// # Errors
/// The sender runs, or there is nothing at `from`.
pub fn replay(config: &Config, from: &str) -> anyhow::Result<String> {
    let dir = config.spool_dir();
    let mut spool = Spool::open(&dir, &config.log_file)?;
    let (mut file, mut cursor) = CursorFile::open(&dir.join("cursor"))?;
    if cursor.pending.is_some() {
        anyhow::bail!(
            "a batch is pending: start the sender until it is acknowledged, then stop it"
        );
    }

    spool.reserve(cursor.read.file);
    let position = match from.parse::<Position>() {
        Ok(position) => {
            let oldest = spool.numbers().next();
            if oldest.is_none_or(|oldest| position.file < oldest) {
                anyhow::bail!(
                    "file {} is not linked any more (the oldest is {}); give a time in seconds \
                     since 1970 to begin a new series from the log's rotated files",
                    position.file,
                    oldest.unwrap_or(0)
                );
            }
            position
        }
        Err(_) => {
            let sec: u64 = from.parse().map_err(|_| {
                anyhow::anyhow!("--from {from}: expected FILE/BYTE/SEALBYTE or seconds since 1970")
            })?;
            new_series(&mut spool, &mut cursor)?;
            position_of(&spool, sec)?
        }
    };

    cursor.acked = position;
    cursor.read = position;
    cursor.filtered = 0;
    cursor.gap = None;
    file.save(&cursor)?;
    let series = cursor
        .series
        .map_or_else(String::new, |series| series.to_string());
    Ok(format!(
        "the sender begins at {position} of series {series}"
    ))
}

/// Links all files of the log anew, under numbers of a new series.
fn new_series(spool: &mut Spool, cursor: &mut Cursor) -> anyhow::Result<()> {
    spool.forget()?;
    spool.refresh(Start::Oldest)?;
    cursor.series = Some(crate::sender::new_series()?);
    Ok(())
}

/// The beginning of the first event at or after second `sec`.
fn position_of(files: &Files, sec: u64) -> anyhow::Result<Position> {
    for number in files.numbers() {
        let mut reader = BufReader::new(File::open(files.path(number))?);
        let (mut line, mut offset) = (Vec::new(), 0);
        while reader.read_until(b'\n', &mut line)? > 0 {
            let event = Events::of_whole(&line).next();
            if event.is_some_and(|event| event.stamp.sec >= sec) {
                return Ok(Position {
                    file: number,
                    offset,
                    seal: 0,
                });
            }
            offset += line.len() as u64;
            line.clear();
        }
    }

    anyhow::bail!("the log has no event at or after second {sec}")
}
