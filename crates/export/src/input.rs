//! Logs of several hosts as one stream of events in the order of their time.

use anyhow::{Context, Result};
use journal::compact::{self, TimeRange as Frames};
use query::{Assembler, Dialect, Event, Feed, Lines, TimeRange};
use std::io::Read;
use std::path::{Path, PathBuf};

/// `end_of_event_timeout` of auditd.conf(5), its default.
const TIMEOUT_S: u64 = 2;

/// The log of one host, oldest file first.
pub(crate) struct Stream {
    /// Host of records without `node=`.
    pub(crate) host: String,
    files: std::vec::IntoIter<PathBuf>,
    reading: Option<(PathBuf, Lines<Box<dyn Read>>)>,
    feed: Feed,
    assembler: Assembler,
    next: Option<Event>,
}

impl Stream {
    /// Opens `HOST=PATH` or PATH.
    ///
    /// # Errors
    /// There is no such log.
    pub(crate) fn open(word: &str, default_host: &str, range: TimeRange) -> Result<Stream> {
        // A path that exists is a path, whatever its name.
        let (host, path) = match word.split_once('=') {
            Some((host, path)) if !Path::new(word).exists() => (host, Path::new(path)),
            _ => (default_host, Path::new(word)),
        };
        let files = match path
            .metadata()
            .with_context(|| path.display().to_string())?
            .is_dir()
        {
            true => {
                let log = path.join("audit.log");
                let files = journal::log_files(&log).with_context(|| log.display().to_string())?;
                anyhow::ensure!(!files.is_empty(), "{}: no such log", log.display());
                files
            }
            false => vec![path.to_owned()],
        };
        Ok(Stream {
            host: host.to_owned(),
            files: files.into_iter(),
            reading: None,
            feed: Feed::default(),
            assembler: Assembler::new(Dialect::Own, TIMEOUT_S, range),
            next: None,
        })
    }

    /// Milliseconds since 1970 and serial number of the next event.
    fn order(&mut self) -> Result<Option<(u64, u64)>> {
        if self.next.is_none() {
            self.next = self.read()?;
        }
        Ok(self.next.as_ref().map(|event| {
            let key = event.key();
            let ms = key.sec.saturating_mul(1000).saturating_add(key.msec.into());
            (ms, key.serial)
        }))
    }

    fn read(&mut self) -> Result<Option<Event>> {
        loop {
            if let Some(event) = self.assembler.pop() {
                return Ok(Some(event));
            }
            let Some((path, lines)) = &mut self.reading else {
                let Some(path) = self.files.next() else {
                    self.assembler.finish();
                    return Ok(self.assembler.pop());
                };
                let text = compact::open(&path, Frames::ALL)
                    .with_context(|| path.display().to_string())?;
                let lines = Lines::new(text, Dialect::Own.line_bytes_max());
                self.reading = Some((path, lines));
                continue;
            };
            match lines
                .next_line()
                .with_context(|| path.display().to_string())?
            {
                Some(line) => self.feed.add(line, &mut self.assembler),
                None => self.reading = None,
            }
        }
    }

    fn take(&mut self) -> Option<Event> {
        self.next.take()
    }

    /// Gives an event back, so that its memory is used again.
    pub(crate) fn recycle(&mut self, event: Event) {
        self.assembler.recycle(event);
    }
}

/// The earliest next event of all streams, and the number of its stream.
pub(crate) fn earliest(streams: &mut [Stream]) -> Result<Option<(usize, Event)>> {
    let mut first: Option<((u64, u64), usize)> = None;
    for (number, stream) in streams.iter_mut().enumerate() {
        if let Some(order) = stream.order()? {
            if first.is_none_or(|(least, _)| order < least) {
                first = Some((order, number));
            }
        }
    }
    Ok(first.and_then(|(_, number)| Some((number, streams[number].take()?))))
}
