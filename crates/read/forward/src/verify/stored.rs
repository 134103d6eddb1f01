//! Messages as consumers store them for verification, in either of two forms.
//!
//! A line of headers, the body, and a newline, as `kcat` prints messages of Kafka:
//!
//! ```text
//! tarsier-forward 1 host=web1,series=00000000000000a1,kind=event,from=1/0/0,to=1/520/0,bytes=519
//! type=SYSCALL msg=audit(…): …
//! ```
//!
//! `bytes` is the length of the body, so that it may hold anything; `events=1`, `filtered=0` and `missing=0` may be
//! left out. Or one JSON object per line, as the sinks `file` and `stdout` write it with `envelope = yes`. `docs/guide/fleet.md`
//! says where such files come from.

use crate::batch::Kind;
use crate::config::is_host_name;
use crate::position::{Position, Series};
use base64::prelude::{Engine, BASE64_STANDARD};
use serde_json::Value;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// Start of each line of headers, with the version of the form.
const MAGIC: &str = "tarsier-forward 1 ";
/// Longest line of headers, in bytes.
const HEADERS_BYTES_MAX: u64 = 1024;
/// Longest line of the form in JSON, in bytes.
const LINE_BYTES_MAX: u64 = 256 << 20;
/// Longest body, in bytes: the longest batch and event.
pub const BODY_BYTES_MAX: u64 = 64 << 20;

/// The headers of a stored message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headers {
    /// The series of the positions.
    pub series: Series,
    /// Kind of the body.
    pub kind: Kind,
    /// End of the message before it.
    pub from: Position,
    /// End of the message.
    pub to: Position,
    /// Number of events in it; of a gap or repeats, of those that it stands for.
    pub events: u64,
    /// Number of events from `from` to `to` that filters kept back, or that repeats count.
    pub filtered: u64,
    /// Number of events from `from` to `to` that are missing; 0 for a gap, which says it in `events`.
    pub missing: u64,
    /// Length of the body, in bytes.
    pub bytes: u64,
}

/// A stored message cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum StoredError {
    /// The file cannot be read.
    #[error("{}: {source}; check the file and its permissions", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Error of the read.
        source: io::Error,
    },
    /// The bytes are no message.
    #[error(
        "{}: byte {at}: expected {expected}; store messages as docs/guide/fleet.md describes",
        path.display()
    )]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Offset of the message.
        at: u64,
        /// Description of the expected text.
        expected: &'static str,
    },
}

impl Headers {
    /// The line of a host, with its newline.
    pub fn to_line(&self, host: &str) -> String {
        format!(
            "{MAGIC}host={host},series={},kind={},from={},to={},events={},filtered={},missing={},bytes={}\n",
            self.series,
            self.kind.name(),
            self.from,
            self.to,
            self.events,
            self.filtered,
            self.missing,
            self.bytes
        )
    }

    /// Reads a line without its newline: the host, if it names one, and the headers. Headers of other names are
    /// passed over.
    ///
    /// # Errors
    /// The text says what is expected instead.
    pub fn parse(line: &[u8]) -> Result<(Option<String>, Headers), &'static str> {
        let text = std::str::from_utf8(line).ok();
        let text = text.and_then(|text| text.strip_prefix(MAGIC));
        let text = text.ok_or("`tarsier-forward 1 ` and headers, or a JSON object")?;
        let value = |name: &str| {
            let of = |word: &'_ str| {
                word.strip_prefix(name)?
                    .strip_prefix('=')
                    .map(str::to_owned)
            };
            text.split([' ', ',']).find_map(of)
        };

        let bytes = value("bytes").and_then(|text| text.parse().ok());
        let bytes = bytes.ok_or("bytes= and a number")?;
        Headers::of(value, bytes)
    }

    /// Reads headers that `value` finds by their names: the host, if they name one, and the others.
    ///
    /// # Errors
    /// The text says what is expected instead.
    pub(super) fn of(
        value: impl Fn(&str) -> Option<String>,
        bytes: u64,
    ) -> Result<(Option<String>, Headers), &'static str> {
        let position = |name| value(name).and_then(|text| text.parse().ok());
        let number = |name, usual| match value(name) {
            Some(text) => text.parse().ok(),
            None => Some(usual),
        };
        let kind = match value("kind").as_deref() {
            Some("event") => Kind::Event,
            Some("seal") => Kind::Seal,
            Some("gap") => Kind::Gap,
            Some("repeats") => Kind::Repeats,
            _ => return Err("kind: event, seal, gap or repeats"),
        };

        let missing = number("missing", 0).ok_or("missing: a number")?;
        let events = number("events", 1).ok_or("events: a number")?;
        let (events, missing) = match kind {
            // A batch of NATS says apart how many events arrive with it and how many are missing.
            Kind::Gap if missing > 0 => (missing, 0),
            _ => (events, missing),
        };
        let host = value("host").filter(|host| !host.is_empty());
        if host.as_deref().is_some_and(|host| !is_host_name(host)) {
            return Err("host: a name of letters, digits and any of . _ - :");
        }

        let headers = Headers {
            series: value("series")
                .and_then(|text| text.parse().ok())
                .ok_or("series: 16 hex digits")?,
            kind,
            from: position("from").ok_or("from: FILE/BYTE/SEALBYTE")?,
            to: position("to").ok_or("to: FILE/BYTE/SEALBYTE")?,
            events,
            filtered: number("filtered", 0).ok_or("filtered: a number")?,
            missing,
            bytes,
        };

        if headers.bytes <= BODY_BYTES_MAX && headers.from <= headers.to {
            Ok((host, headers))
        } else {
            Err("a body of at most 64 MiB, and from not behind to")
        }
    }
}

/// A message and where its body is.
#[derive(Clone, Copy, Debug)]
pub struct Stored {
    /// The headers.
    pub headers: Headers,
    /// Number of the file among those read.
    pub source: usize,
    /// Offset in it: of the body, or of the line in JSON.
    pub at: u64,
    /// Length of the line in JSON; `None` for the other form.
    pub line_bytes: Option<u64>,
    /// BLAKE3 of the body.
    pub hash: [u8; 32],
}

impl Stored {
    /// Reads the body into `out`.
    ///
    /// # Errors
    /// The file cannot be read, or has changed since the message was found in it.
    pub fn body(&self, file: &mut File, out: &mut Vec<u8>) -> io::Result<()> {
        file.seek(SeekFrom::Start(self.at))?;
        out.clear();
        let wanted = self.line_bytes.unwrap_or(self.headers.bytes);
        file.take(wanted).read_to_end(out)?;

        if self.line_bytes.is_some() {
            let envelope: Value = serde_json::from_slice(out).map_err(io::Error::from)?;
            *out = body_of(&envelope).ok_or(io::ErrorKind::InvalidData)?;
        }

        if *blake3::hash(out).as_bytes() == self.hash {
            Ok(())
        } else {
            Err(io::Error::other("a message changed while it was read"))
        }
    }
}

/// The body in an envelope: text, or `{"base64":…}`.
fn body_of(envelope: &Value) -> Option<Vec<u8>> {
    match envelope.get("body")? {
        Value::String(text) => Some(text.as_bytes().to_vec()),
        body => BASE64_STANDARD.decode(body.get("base64")?.as_str()?).ok(),
    }
}

/// A file of messages that is read from front to back.
struct Source<'a> {
    path: &'a Path,
    reader: BufReader<File>,
    at: u64,
}

impl Source<'_> {
    fn failed(&self, source: io::Error) -> StoredError {
        StoredError::Io {
            path: self.path.to_owned(),
            source,
        }
    }

    fn malformed(&self, expected: &'static str) -> StoredError {
        StoredError::Malformed {
            path: self.path.to_owned(),
            at: self.at,
            expected,
        }
    }

    /// The next message with its host; `None` at the end, or if the last message is cut.
    fn next(&mut self, source: usize) -> Result<Option<(Option<String>, Stored)>, StoredError> {
        let first = self.reader.fill_buf().map(|bytes| bytes.first().copied());
        let first = first.map_err(|error| self.failed(error))?;
        let limit = match first {
            None => return Ok(None),
            Some(b'{') => LINE_BYTES_MAX,
            Some(_) => HEADERS_BYTES_MAX,
        };
        let mut line = Vec::new();
        let read = self
            .reader
            .by_ref()
            .take(limit)
            .read_until(b'\n', &mut line);
        let length = read.map_err(|error| self.failed(error))? as u64;
        let Some(text) = line.strip_suffix(b"\n") else {
            return if length < limit {
                Ok(None)
            } else {
                Err(self.malformed("a line of headers of at most 1024 bytes"))
            };
        };

        match first {
            Some(b'{') => self.envelope(text, source).map(Some),
            _ => self.framed(text, source),
        }
    }

    fn envelope(
        &mut self,
        line: &[u8],
        source: usize,
    ) -> Result<(Option<String>, Stored), StoredError> {
        let envelope: Option<Value> = serde_json::from_slice(line).ok();
        let body = envelope.as_ref().and_then(body_of);
        let (Some(envelope), Some(body)) = (envelope, body) else {
            return Err(self.malformed("a JSON object with series, kind, from, to and body"));
        };

        let value = |name: &str| match envelope.get(name)? {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        };
        let parsed = Headers::of(value, body.len() as u64);
        let (host, headers) = parsed.map_err(|expected| self.malformed(expected))?;
        let stored = Stored {
            headers,
            source,
            at: self.at,
            line_bytes: Some(line.len() as u64),
            hash: *blake3::hash(&body).as_bytes(),
        };

        self.at += line.len() as u64 + 1;
        Ok((host, stored))
    }

    fn framed(
        &mut self,
        line: &[u8],
        source: usize,
    ) -> Result<Option<(Option<String>, Stored)>, StoredError> {
        let parsed = Headers::parse(line);
        let (host, headers) = parsed.map_err(|expected| self.malformed(expected))?;
        let mut hasher = blake3::Hasher::new();
        let taken = io::copy(&mut self.reader.by_ref().take(headers.bytes), &mut hasher);
        let taken = taken.map_err(|error| self.failed(error))?;
        let mut end = [0];
        let read = self
            .reader
            .read(&mut end)
            .map_err(|error| self.failed(error))?;
        if taken < headers.bytes || read == 0 {
            return Ok(None);
        }
        if end != *b"\n" {
            return Err(self.malformed("a message whose body has `bytes` bytes, then a newline"));
        }

        let at = self.at + line.len() as u64 + 1;
        let stored = Stored {
            headers,
            source,
            at,
            line_bytes: None,
            hash: *hasher.finalize().as_bytes(),
        };

        self.at = at + taken + 1;
        Ok(Some((host, stored)))
    }
}

/// Reads the messages of a file, each with the host that it names. The last one may be cut, if a consumer is writing
/// it: it has not arrived.
///
/// # Errors
/// The file cannot be read, or holds something else.
pub fn read(
    path: &Path,
    source: usize,
    mut take: impl FnMut(Option<String>, Stored) -> Result<(), &'static str>,
) -> Result<(), StoredError> {
    let failed = |source| StoredError::Io {
        path: path.to_owned(),
        source,
    };
    let reader = BufReader::new(File::open(path).map_err(failed)?);
    let mut from = Source {
        path,
        reader,
        at: 0,
    };

    loop {
        let at = from.at;
        let Some((host, stored)) = from.next(source)? else {
            return Ok(());
        };
        take(host, stored).map_err(|expected| StoredError::Malformed {
            path: path.to_owned(),
            at,
            expected,
        })?;
    }
}
