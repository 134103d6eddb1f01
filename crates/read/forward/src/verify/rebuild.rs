//! Writes a host's log files and seals again from what arrived.

use super::ranges::Ranges;
use super::stored::Stored;
use crate::batch::Kind;
use crate::position::Position;
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The files that were written.
#[derive(Debug, Default)]
pub struct Rebuilt {
    /// Log files without holes, oldest first.
    pub logs: Vec<PathBuf>,
    /// Beginning of the first hole, or of a range whose bytes do not tell where they belong; nothing after it is among
    /// `logs`.
    pub until: Option<Position>,
    /// Messages whose bodies are not as long as their ranges, as text.
    pub misfits: Vec<String>,
    /// Whether any seal arrived.
    pub has_seals: bool,
    /// Whether the last file was rotated, so that another one follows.
    pub is_rotated: bool,
    /// Bytes at the end that arrived, and that no seal that arrived covers.
    pub unsealed_bytes: u64,
}

/// Bytes that one file has so far.
#[derive(Clone, Copy, Default)]
struct Sizes {
    log: u64,
    seal: u64,
}

/// Writes the files of a series into `directory`, as `0000000001.log`, `0000000001.log.seal` and so on.
///
/// # Errors
/// A file cannot be read or written.
pub fn rebuild(ranges: &Ranges, sources: &[PathBuf], directory: &Path) -> io::Result<Rebuilt> {
    let mut rebuilt = Rebuilt::default();
    let mut sizes: BTreeMap<u64, Sizes> = BTreeMap::new();
    let mut sources = Sources::new(sources);
    let first_hole = ranges.holes.first().map(|hole| hole.from);
    let mut body = Vec::new();
    let (mut logs, mut seals) = (Writer::default(), Writer::default());
    for message in &ranges.messages {
        let headers = message.headers;
        if first_hole.is_some_and(|hole| headers.from >= hole) || headers.filtered > 0 {
            rebuilt.until = Some(headers.from);
            break;
        }
        if headers.kind == Kind::Gap {
            continue;
        }
        sources.body(message, &mut body)?;
        let Some(piece) = Piece::of(message, &mut body) else {
            rebuilt.misfits.push(misfit(message));
            rebuilt.until = Some(headers.from);
            break;
        };
        let size = sizes.entry(headers.to.file).or_default();
        let (writer, size) = if piece.is_seal {
            (&mut seals, &mut size.seal)
        } else {
            (&mut logs, &mut size.log)
        };
        rebuilt.has_seals |= piece.is_seal;
        if piece.start > *size {
            // The first file of a series that was begun in its middle.
            continue;
        }
        // What is there already was cut elsewhere.
        let (known, new) = body.split_at(((*size - piece.start) as usize).min(body.len()));
        let path = directory.join(piece.name());
        if !known.is_empty() {
            writer.finish()?;
            if !holds(&path, piece.start, known)? {
                rebuilt.misfits.push(contradiction(message));
            }
        }
        writer.append(&path, new)?;
        *size = (*size).max(piece.end);
    }

    logs.finish()?;
    seals.finish()?;
    let first = ranges.from;
    for (file, size) in sizes {
        let is_begun = file != first.file || (first.offset, first.seal) == (0, 0);
        if is_begun && (size.log > 0 || size.seal > 0) {
            let path = directory.join(log_name(file));
            // A seal may have arrived before the first bytes of its log.
            logs.append(&path, &[])?;
            rebuilt.logs.push(path);
        }
    }

    logs.finish()?;
    compare_overlaps(ranges, &mut sources, directory, &mut rebuilt)?;
    trim_last(&mut rebuilt)?;
    Ok(rebuilt)
}

/// Compares messages about what others have already with the files.
fn compare_overlaps(
    ranges: &Ranges,
    sources: &mut Sources<'_>,
    directory: &Path,
    rebuilt: &mut Rebuilt,
) -> io::Result<()> {
    let mut body = Vec::new();
    for message in &ranges.overlaps {
        let is_behind = rebuilt
            .until
            .is_some_and(|until| message.headers.to > until);
        if is_behind || message.headers.filtered > 0 {
            continue;
        }
        sources.body(message, &mut body)?;
        match Piece::of(message, &mut body) {
            None => rebuilt.misfits.push(misfit(message)),
            Some(piece) => {
                if !holds(&directory.join(piece.name()), piece.start, &body)? {
                    rebuilt.misfits.push(contradiction(message));
                }
            }
        }
    }

    Ok(())
}

/// Place to which the bytes of a message belong.
struct Piece {
    is_seal: bool,
    file: u64,
    start: u64,
    end: u64,
}

impl Piece {
    /// The place of a body, to which the newline is added that senders leave out; `None` if it is not as long as its
    /// range.
    fn of(message: &Stored, body: &mut Vec<u8>) -> Option<Piece> {
        let headers = message.headers;
        let is_new = headers.from.file != headers.to.file;
        let begin = if is_new {
            Position::default()
        } else {
            headers.from
        };
        let is_seal = headers.kind == Kind::Seal;
        let (start, end) = if is_seal {
            (begin.seal, headers.to.seal)
        } else {
            (begin.offset, headers.to.offset)
        };
        let length = end.checked_sub(start)?;

        if !is_seal && length == body.len() as u64 + 1 {
            body.push(b'\n');
        }
        (length == body.len() as u64).then_some(Piece {
            is_seal,
            file: headers.to.file,
            start,
            end,
        })
    }

    fn name(&self) -> String {
        if self.is_seal {
            seal_name(self.file)
        } else {
            log_name(self.file)
        }
    }
}

fn misfit(message: &Stored) -> String {
    let headers = message.headers;
    format!(
        "the message from {} to {} has {} bytes, which is not the length of its range: altered, or not in format raw",
        headers.from, headers.to, headers.bytes
    )
}

fn contradiction(message: &Stored) -> String {
    let headers = message.headers;
    format!(
        "what the message from {} to {} has is not what others have of the same range",
        headers.from, headers.to
    )
}

/// Whether a file has these bytes at this place; a file that was begun in its middle has none.
fn holds(path: &Path, start: u64, bytes: &[u8]) -> io::Result<bool> {
    use std::os::unix::fs::FileExt;
    let mut found = vec![0; bytes.len()];
    match File::open(path).and_then(|file| file.read_exact_at(&mut found, start)) {
        Ok(()) => Ok(found == bytes),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

/// Cuts the last file and its seal to what belongs together: what is behind has not arrived whole.
fn trim_last(rebuilt: &mut Rebuilt) -> io::Result<()> {
    let (Some(last), true) = (rebuilt.logs.last(), rebuilt.has_seals) else {
        return Ok(());
    };

    let seal_path = journal::seal::seal_path(last);
    let size = fs::metadata(last)?.len();
    let seal = fs::read(&seal_path).unwrap_or_default();
    let covered = journal::seal::covered(&seal, size);
    if covered == journal::seal::Covered::default() {
        // Its seal has not arrived, not even its header.
        rebuilt.unsealed_bytes = size;
        rebuilt.logs.pop();
        return Ok(());
    }

    let open = |path: &Path| OpenOptions::new().write(true).open(path);
    open(last)?.set_len(covered.log_bytes)?;
    open(&seal_path)?.set_len(covered.seal_bytes as u64)?;
    rebuilt.is_rotated = covered.is_rotated;
    rebuilt.unsealed_bytes = size - covered.log_bytes;

    Ok(())
}

fn log_name(file: u64) -> String {
    format!("{file:010}.log")
}

fn seal_name(file: u64) -> String {
    format!("{file:010}.log.seal")
}

/// Appends to files, of which the last one used is open.
#[derive(Default)]
struct Writer {
    open: Option<(PathBuf, BufWriter<File>)>,
}

impl Writer {
    fn append(&mut self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        if self.open.as_ref().is_none_or(|(open, _)| open != path) {
            self.finish()?;
            let mut options = OpenOptions::new();
            let file = options.append(true).create(true).mode(0o600).open(path)?;
            self.open = Some((path.to_owned(), BufWriter::new(file)));
        }
        match &mut self.open {
            Some((_, writer)) => writer.write_all(bytes),
            None => Ok(()),
        }
    }

    fn finish(&mut self) -> io::Result<()> {
        match self.open.take() {
            Some((_, mut writer)) => writer.flush(),
            None => Ok(()),
        }
    }
}

/// The files of stored messages, the last one used being open.
struct Sources<'a> {
    paths: &'a [PathBuf],
    open: Option<(usize, File)>,
}

impl<'a> Sources<'a> {
    fn new(paths: &'a [PathBuf]) -> Sources<'a> {
        Sources { paths, open: None }
    }

    fn body(&mut self, message: &Stored, out: &mut Vec<u8>) -> io::Result<()> {
        if self
            .open
            .as_ref()
            .is_none_or(|(source, _)| *source != message.source)
        {
            self.open = Some((message.source, File::open(&self.paths[message.source])?));
        }
        let Some((_, file)) = &mut self.open else {
            return Err(io::ErrorKind::NotFound.into());
        };
        message.body(file, out)
    }
}
