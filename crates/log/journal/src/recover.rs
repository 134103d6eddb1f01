//! Finds and repairs the end that a crash left in a log, when the log is opened.
//!
//! After a kill, the file ends where a write ended. After a power failure, everything past the last
//! finished sync may be missing or read as zeros, in units of a device sector: whole records may
//! follow a hole. Records themselves contain no zero bytes.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::fs::{Mode, OFlags};

use crate::compact;
use crate::error::OpenError;
use crate::files;
use crate::writing;

/// Longest last line that is searched for when a log is opened.
const LINE_BYTES_MAX: u64 = 1 << 20;
/// Distance from the end within which holes are searched for: more than any flush mode but NONE leaves unsynced.
const HOLES_BYTES_MAX: u64 = 64 << 20;
/// Largest number of torn bytes that a report keeps.
const SHOWN_BYTES_MAX: usize = 4096;
/// Size of the end of the log in which the last DAEMON record is searched for.
const LAST_RECORDS_BYTES: u64 = 64 << 10;

/// Kind of repair made at the end of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repair {
    /// The beginning of a record or frame, left by a crash: removed from the file.
    Cut,
    /// A last line that is not a record of this daemon: kept, and terminated with a newline.
    Completed,
    /// Lines containing zeros, left by a power failure: removed; whole records after them were
    /// kept.
    Mended,
}

/// A torn end, left by a crash and found when the log was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TornLine {
    /// The repair.
    pub repair: Repair,
    /// The torn bytes as they were in the file; at most the first 4096 of them.
    pub bytes: Vec<u8>,
    /// Number of bytes removed.
    pub removed_bytes: u64,
}

impl TornLine {
    fn new(repair: Repair, mut bytes: Vec<u8>, removed_bytes: u64) -> Self {
        bytes.truncate(SHOWN_BYTES_MAX);
        TornLine {
            repair,
            bytes,
            removed_bytes,
        }
    }
}

/// Repairs the end of a log, so that the next record starts on its own line, or the next frame
/// follows a whole one. Returns the size after the repair, in bytes.
///
/// An incomplete record is cut, not terminated with a newline: a truncated value could pass for a
/// true one.
pub(crate) fn repair(file: &File, path: &Path) -> Result<(u64, Option<TornLine>), OpenError> {
    let failed = |error| OpenError::io(path, "repair of the end", error);
    let size = file.metadata().map_err(failed)?.len();
    if is_torn_start(file, size).map_err(failed)? {
        file.set_len(0).map_err(failed)?;
        return Ok((0, Some(TornLine::new(Repair::Cut, Vec::new(), size))));
    }
    if is_compact(file).map_err(failed)? {
        let (kept, cut) = compact::repair(file, size).map_err(failed)?;
        let torn = (cut > 0).then(|| TornLine::new(Repair::Cut, Vec::new(), cut));
        return Ok((kept, torn));
    }

    let (size, holes) = remove_holes(file, size).map_err(failed)?;
    let (size, torn) = repair_last_line(file, path, size)?;
    let torn = match (holes, torn) {
        (Some(mut holes), Some(torn)) => {
            holes.removed_bytes += torn.removed_bytes;
            Some(holes)
        }
        (holes, torn) => holes.or(torn),
    };

    if torn.is_some() {
        file.sync_data().map_err(failed)?;
    }
    Ok((size, torn))
}

/// Repairs `log.1`: a rotation does not wait for the last sync of the file it renames.
pub(crate) fn repair_rotated(log_file: &Path) -> Result<Option<TornLine>, OpenError> {
    let path = files::numbered(log_file, 1);
    let flags = OFlags::RDWR | OFlags::APPEND | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match writing::open(&path, flags | OFlags::NONBLOCK, Mode::empty()) {
        Ok(fd) => {
            let file = File::from(fd);
            let is_file = file.metadata().is_ok_and(|metadata| metadata.is_file());
            if is_file {
                repair(&file, &path).map(|(_, torn)| torn)
            } else {
                Ok(None)
            }
        }
        // It does not exist, or it is compressed: there is nothing to repair.
        Err(_) => Ok(None),
    }
}

/// Whether the file consists only of the beginning of the COMPACT magic bytes.
fn is_torn_start(file: &File, size: u64) -> io::Result<bool> {
    let mut start = [0; compact::MAGIC.len()];
    if size == 0 || size >= start.len() as u64 {
        return Ok(false);
    }
    let start = &mut start[..size as usize];
    file.read_exact_at(start, 0)?;
    Ok(compact::MAGIC.starts_with(start))
}

/// Whether the file is in COMPACT format.
pub(crate) fn is_compact(file: &File) -> io::Result<bool> {
    let mut start = [0; 8];
    match file.read_exact_at(&mut start, 0) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        other => other.map(|()| compact::is_compact(&start)),
    }
}

/// Removes lines that contain zeros.
fn remove_holes(file: &File, size: u64) -> io::Result<(u64, Option<TornLine>)> {
    let start = size.saturating_sub(HOLES_BYTES_MAX);
    // A power failure can leave a file its length without all of its data: the missing blocks read as zeros.
    let Some(hole) = first_zero(file, start, size)? else {
        return Ok((size, None));
    };

    let line_start = line_start(file, hole)?;
    let mut tail = vec![0; (size - line_start) as usize];
    file.read_exact_at(&mut tail, line_start)?;
    let lines = tail.split_inclusive(|&byte| byte == b'\n');
    let kept: Vec<u8> = lines
        .filter(|line| is_whole(line))
        .flatten()
        .copied()
        .collect();

    // The descriptor appends: the kept lines have to follow the last good one.
    file.set_len(line_start)?;

    let mut done = 0;
    while done < kept.len() {
        done += rustix::io::write(file, &kept[done..])?;
    }

    let removed_bytes = (tail.len() - kept.len()) as u64;
    let torn = TornLine::new(Repair::Mended, tail, removed_bytes);
    Ok((line_start + kept.len() as u64, Some(torn)))
}

fn first_zero(file: &File, start: u64, end: u64) -> io::Result<Option<u64>> {
    let mut chunk = vec![0; 1 << 20];
    let mut at = start;
    while at < end {
        let count = (end - at).min(chunk.len() as u64) as usize;
        file.read_exact_at(&mut chunk[..count], at)?;
        if let Some(zero) = memchr::memchr(0, &chunk[..count]) {
            return Ok(Some(at + zero as u64));
        }
        at += count as u64;
    }
    Ok(None)
}

/// Start of the line that contains the byte at `offset`.
fn line_start(file: &File, offset: u64) -> io::Result<u64> {
    let mut end = offset;
    let mut chunk = vec![0; 64 << 10];
    while end > 0 {
        let count = end.min(chunk.len() as u64);
        let start = end - count;
        file.read_exact_at(&mut chunk[..count as usize], start)?;
        if let Some(newline) = memchr::memrchr(b'\n', &chunk[..count as usize]) {
            return Ok(start + newline as u64 + 1);
        }
        end = start;
    }

    Ok(0)
}

/// Whether `line` is a terminated record without a hole.
fn is_whole(line: &[u8]) -> bool {
    line.ends_with(b"\n")
        && STARTS.iter().any(|start| line.starts_with(start))
        && memchr::memchr(0, line).is_none()
}

fn repair_last_line(
    file: &File,
    path: &Path,
    size: u64,
) -> Result<(u64, Option<TornLine>), OpenError> {
    let read_error = |error| OpenError::io(path, "read", error);
    let tail_len = size.min(LINE_BYTES_MAX);
    let last_len = size.min(1);
    // One byte tells nearly always; the last MiB is read only behind an unterminated line.
    let mut tail = vec![0; last_len as usize];
    file.read_exact_at(&mut tail, size - last_len)
        .map_err(read_error)?;
    if tail.is_empty() || tail == b"\n" {
        return Ok((size, None));
    }

    tail.resize(tail_len as usize, 0);
    file.read_exact_at(&mut tail, size - tail_len)
        .map_err(read_error)?;
    let line_start = match tail.iter().rposition(|&byte| byte == b'\n') {
        Some(newline) => newline + 1,
        None if tail_len == size => 0,
        None => {
            let found = format!("its last {LINE_BYTES_MAX} bytes hold no newline");
            let remedy = "this is not an audit log; move it away";
            return Err(OpenError::refused(path, found, remedy));
        }
    };

    let bytes = tail.split_off(line_start);
    if begins_like_a_record(&bytes) {
        let removed = bytes.len() as u64;
        file.set_len(size - removed)
            .map_err(|error| OpenError::io(path, "ftruncate", error))?;
        let torn = TornLine::new(Repair::Cut, bytes, removed);
        return Ok((size - removed, Some(torn)));
    }

    rustix::io::write(file, b"\n").map_err(|errno| OpenError::io(path, "write", errno))?;
    Ok((size + 1, Some(TornLine::new(Repair::Completed, bytes, 0))))
}

const STARTS: [&[u8]; 3] = [b"type=", b"node=", b"{"];

/// Whether `bytes` can be the start of a line that an audit daemon wrote.
fn begins_like_a_record(bytes: &[u8]) -> bool {
    STARTS
        .iter()
        .any(|start| bytes.iter().zip(*start).all(|(a, b)| a == b))
}

/// Whether the previous daemon stopped in order: its last DAEMON_END comes after its last
/// DAEMON_START. `None` if the file does not tell: it is empty or COMPACT.
pub(crate) fn ends_in_order(file: &File, size: u64) -> io::Result<Option<bool>> {
    if size == 0 || is_compact(file)? {
        return Ok(None);
    }
    let mut tail = vec![0; size.min(LAST_RECORDS_BYTES) as usize];
    let start = size - tail.len() as u64;
    file.read_exact_at(&mut tail, start)?;
    let last = |name: &[u8]| memchr::memmem::rfind(&tail, name);
    Ok(Some(last(b"DAEMON_END") > last(b"DAEMON_START")))
}
