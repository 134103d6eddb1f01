//! Logs in pieces of whole events: of plain files, any place of which can be read, and of compressed ones, which are read
//! from their beginning.

use super::logs::{Input, Source};
use super::pieces::{pieces_of, plain_file, processors, Failed, Piece};
use anyhow::Result;
use query::report::runs::{boundary, Reading, AFTER_BYTES, BEFORE_BYTES};
use query::Dialect;
use std::fs::File;
use std::io::BufRead;

/// Bytes of a piece, few enough for a processor's second cache.
const PIECE_BYTES: usize = 1 << 19;
/// Bytes of the first look behind a piece. Most events are shorter.
const NEAR_BYTES: usize = 16 << 10;

/// A log that is read in pieces.
pub(crate) enum LogText {
    /// A plain file, and its length.
    Plain(File, u64),
    /// A compressed file, or one in an archive.
    Decoded(Source),
}

/// All logs as texts; `None` if one can be read only once, or has lines that are told only by reading them: those of a
/// host that a directory names, or in the dialect of ausearch.
///
/// # Errors
/// The state of a file cannot be asked for.
pub(crate) fn texts(input: &Input, dialect: Dialect) -> Result<Option<Vec<LogText>>> {
    let text = |(number, source): (usize, &Source)| {
        if input.host(number).is_some() || *source == Source::Stdin {
            return Ok(None);
        }
        if let Source::File(path) = source {
            if let Some((file, bytes)) = plain_file(path)? {
                return Ok(Some(LogText::Plain(file, bytes)));
            }
        }
        let is_decoded = dialect == Dialect::Own;
        Ok(is_decoded.then(|| LogText::Decoded(source.clone())))
    };
    input.sources.iter().enumerate().map(text).collect()
}

/// Number of threads that look at the pieces of logs.
pub(crate) fn threads_for(texts: &[LogText]) -> usize {
    let pieces = texts.iter().map(|text| match text {
        LogText::Plain(_, bytes) => bytes.div_ceil(PIECE_BYTES as u64),
        // Nobody knows.
        LogText::Decoded(_) => u64::from(u32::MAX),
    });
    let most = usize::try_from(pieces.sum::<u64>()).unwrap_or(usize::MAX);
    processors().min(most).max(1)
}

/// The next piece.
pub(super) enum Next<'t> {
    /// A piece of a plain file, which has not been read yet.
    Piece(Piece<'t>),
    /// The piece is in the buffer.
    Read,
}

/// Hands out the pieces of all logs, in order.
pub(super) struct Feeder<'t> {
    texts: std::slice::Iter<'t, LogText>,
    plain: std::vec::IntoIter<Piece<'t>>,
    decoded: Option<Decoded>,
}

impl<'t> Feeder<'t> {
    pub(super) fn new(texts: &'t [LogText]) -> Feeder<'t> {
        Feeder {
            texts: texts.iter(),
            plain: Vec::new().into_iter(),
            decoded: None,
        }
    }

    /// The next piece; `None` behind the last one.
    ///
    /// # Errors
    /// The text cannot be read, or it cannot be told where an event ends.
    pub(super) fn next(
        &mut self,
        buffer: &mut Vec<u8>,
        reading: Reading,
    ) -> Option<Result<Next<'t>, Failed>> {
        loop {
            if let Some(piece) = self.plain.next() {
                return Some(Ok(Next::Piece(piece)));
            }
            if let Some(decoded) = &mut self.decoded {
                match decoded.next(buffer, reading) {
                    Ok(true) => return Some(Ok(Next::Read)),
                    Ok(false) => self.decoded = None,
                    Err(failed) => return Some(Err(failed)),
                }
            }

            match self.texts.next()? {
                LogText::Plain(file, bytes) => {
                    self.plain = pieces_of(file, *bytes, PIECE_BYTES as u64).into_iter();
                }
                LogText::Decoded(source) => match Decoded::open(source) {
                    Ok(decoded) => self.decoded = Some(decoded),
                    Err(failed) => return Some(Err(failed)),
                },
            }
        }
    }
}

/// A text that is decompressed while it is read.
struct Decoded {
    text: Box<dyn BufRead + Send>,
    /// What was read behind the last piece.
    rest: Vec<u8>,
    is_over: bool,
    is_damaged: bool,
}

impl Decoded {
    /// # Errors
    /// `NotOrdered` if the text cannot be read, which the state machine says, or does not begin with a record as text.
    fn open(source: &Source) -> Result<Decoded, Failed> {
        let mut text = source.open().map_err(|_| Failed::NotOrdered)?;
        let start = text.fill_buf().map_err(|_| Failed::NotOrdered)?;
        if !start.starts_with(b"type=") && !start.starts_with(b"node=") {
            return Err(Failed::NotOrdered);
        }
        Ok(Decoded {
            text,
            rest: Vec::new(),
            is_over: false,
            is_damaged: false,
        })
    }

    /// Reads whole events of about [`PIECE_BYTES`] into the buffer. False behind the last ones.
    fn next(&mut self, buffer: &mut Vec<u8>, reading: Reading) -> Result<bool, Failed> {
        if self.is_over {
            return Ok(false);
        }
        buffer.clear();
        buffer.append(&mut self.rest);

        let end = match self.end(buffer, reading, NEAR_BYTES) {
            Err(Failed::NotOrdered) if !self.is_damaged => {
                self.end(buffer, reading, AFTER_BYTES)?
            }
            end => end?,
        };
        self.rest.extend_from_slice(&buffer[end..]);
        buffer.truncate(end);
        Ok(!buffer.is_empty() || !self.is_over)
    }

    /// Reads a piece and `after` bytes behind it. Returns where its events end.
    fn end(
        &mut self,
        buffer: &mut Vec<u8>,
        reading: Reading,
        after: usize,
    ) -> Result<usize, Failed> {
        self.fill(buffer, PIECE_BYTES + after)?;
        if self.is_over {
            return Ok(buffer.len());
        }

        let first = PIECE_BYTES - BEFORE_BYTES;
        let window = &buffer[first..PIECE_BYTES + after];
        let end = boundary(window, BEFORE_BYTES, false, false, reading)?;
        Ok(first + end)
    }

    /// Reads until the buffer has so many bytes, or the text is over. An error is the state machine's to say, which reads
    /// what comes before it.
    fn fill(&mut self, buffer: &mut Vec<u8>, bytes: usize) -> Result<(), Failed> {
        buffer.reserve(bytes.saturating_sub(buffer.len()));
        while buffer.len() < bytes {
            let Ok(read) = self.text.fill_buf() else {
                self.is_damaged = true;
                return Err(Failed::NotOrdered);
            };
            if read.is_empty() {
                self.is_over = true;
                break;
            }
            let count = read.len().min(bytes - buffer.len());
            buffer.extend_from_slice(&read[..count]);
            self.text.consume(count);
        }
        Ok(())
    }
}
