//! Logs of several hosts as one stream of events in the order of their time.

use anyhow::{Context, Result};
use logs::Log;
use query::{Assembler, Dialect, Event, Feed, Lines, TimeRange};
use std::io::BufRead;
use std::path::Path;

/// `end_of_event_timeout` of auditd.conf(5), its default.
const TIMEOUT_S: u64 = 2;

/// The log of one host, oldest file first.
pub(crate) struct Stream {
    /// Host of records without `node=`, if it is known.
    pub(crate) host: Option<String>,
    files: std::vec::IntoIter<Log>,
    reading: Option<(Log, Lines<Box<dyn BufRead + Send>>)>,
    feed: Feed,
    assembler: Assembler,
    next: Option<Event>,
}

impl Stream {
    /// Opens `HOST=PATH` or PATH: a log for each host of a directory or archive.
    ///
    /// # Errors
    /// There is no such log, or it has no records.
    pub(crate) fn open(
        word: &str,
        default_host: Option<&str>,
        range: TimeRange,
    ) -> Result<Vec<Stream>> {
        // A path that exists is a path, whatever its name.
        let (host, path) = match word.split_once('=') {
            Some((host, path)) if !Path::new(word).exists() => (Some(host), Path::new(path)),
            _ => (default_host, Path::new(word)),
        };
        let found = logs::find(path)?;
        for left_out in found.left_out {
            let path = left_out.path.display();
            eprintln!("tarsier-export: left out: {path}: {}", left_out.why);
        }

        let mut of_hosts: Vec<(Option<String>, Vec<Log>)> = Vec::new();
        for (log, its_host) in found.logs {
            logs::check(&log)?;
            let its_host = its_host.or(host.map(str::to_owned));
            match of_hosts.last_mut().filter(|last| last.0 == its_host) {
                Some((_, logs)) => logs.push(log),
                None => of_hosts.push((its_host, vec![log])),
            }
        }

        let streams = of_hosts.into_iter().map(|(host, logs)| Stream {
            host,
            files: logs.into_iter(),
            reading: None,
            feed: Feed::default(),
            assembler: Assembler::new(Dialect::Own, TIMEOUT_S, range),
            next: None,
        });

        Ok(streams.collect())
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
            let Some((log, lines)) = &mut self.reading else {
                let Some(log) = self.files.next() else {
                    self.assembler.finish();
                    return Ok(self.assembler.pop());
                };
                let text = log.open().with_context(|| log.to_string())?;
                let lines = Lines::new(text, Dialect::Own.line_bytes_max());
                self.reading = Some((log, lines));
                continue;
            };
            match lines.next_line().with_context(|| log.to_string())? {
                Some(line) => self.feed.add(line, &mut self.assembler),
                None => {
                    self.feed.end(&mut self.assembler);
                    self.reading = None;
                }
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
