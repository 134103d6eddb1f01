//! Gets the messages of all hosts from a server. Bodies go to a temporary file; only where they are is kept in memory.

use super::store::Store;
use super::stored::{Headers, Stored};
use super::StoreError;
use crate::config::{Config, SinkKind};
use crate::sink::{read_back, Held};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Name of the file in the temporary directory.
const FILE: &str = "messages";

/// Name of a server's messages in reports.
pub(super) fn server_name(config: &Config) -> String {
    match config.sink {
        SinkKind::Nats => format!("subject {:?}", config.subject.replace("%h", "*")),
        _ => format!("topic {:?}", config.topic),
    }
}

/// Reads everything that the server of a configuration has.
pub(super) fn fetch(config: &Config) -> Result<Store, StoreError> {
    let scratch = tempfile::tempdir().map_err(StoreError::Scratch)?;
    let path = scratch.path().join(FILE);
    let mut spool = Spool::create(&path).map_err(StoreError::Scratch)?;
    let read = read_back(config, &mut |held| spool.take(held));
    match (read, spool.failed) {
        (_, Some(error)) => return Err(StoreError::Scratch(error)),
        (Err(error), None) => return Err(StoreError::Server(error)),
        (Ok(()), None) => {}
    }

    spool.file.flush().map_err(StoreError::Scratch)?;
    let mut store = spool.store;
    store.sources.push(path);
    store.scratch = Some(scratch);
    Ok(store)
}

/// The file that bodies are written to, and what is in it.
struct Spool {
    file: BufWriter<File>,
    written: u64,
    store: Store,
    failed: Option<io::Error>,
}

impl Spool {
    fn create(path: &Path) -> io::Result<Spool> {
        Ok(Spool {
            file: BufWriter::new(File::create_new(path)?),
            written: 0,
            store: Store::default(),
            failed: None,
        })
    }

    /// Keeps a message. What is none is reported under the place where it is, not as one of a host that it names: whoever
    /// can write to the server could make any host unverifiable otherwise.
    fn take(&mut self, held: Held<'_>) -> Result<(), String> {
        let (place, headers, body) = match held {
            Held::Message {
                place,
                headers,
                body,
            } => (place, headers, body),
            Held::Forged { place, why } => {
                self.foreign(place, why);
                return Ok(());
            }
        };

        let value = |name: &str| {
            let found = headers.iter().find(|(known, _)| known == name);
            found.map(|(_, value)| value.clone())
        };
        match Headers::of(value, body.len() as u64) {
            Ok((Some(host), headers)) => self.keep(host, headers, body),
            Ok((None, _)) => {
                self.foreign(place, "it does not say of which host it is".into());
                Ok(())
            }
            Err(expected) => {
                self.foreign(
                    place,
                    format!("not of tarsier-forward: expected {expected}"),
                );
                Ok(())
            }
        }
    }

    fn keep(&mut self, host: String, headers: Headers, body: &[u8]) -> Result<(), String> {
        if let Err(error) = self.file.write_all(body) {
            let text = error.to_string();
            self.failed = Some(error);
            return Err(text);
        }

        let stored = Stored {
            headers,
            source: 0,
            at: self.written,
            line_bytes: None,
            hash: *blake3::hash(body).as_bytes(),
        };
        self.written += body.len() as u64;
        self.store
            .hosts
            .entry(host)
            .or_default()
            .messages
            .push(stored);

        Ok(())
    }

    fn foreign(&mut self, place: &str, why: String) {
        // One report for a topic's partition or a stream, however many there are.
        let name = place.rsplit_once(',').map_or(place, |(name, _)| name);
        let arrived = self.store.hosts.entry(name.to_owned()).or_default();
        arrived.error.get_or_insert(format!("{place}: {why}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(changes: &[(&str, &str)]) -> Vec<(String, String)> {
        let usual = [
            ("host", "web1"),
            ("series", "00000000000000a1"),
            ("kind", "event"),
            ("from", "1/0/0"),
            ("to", "1/4/0"),
        ];
        let mut headers: Vec<(String, String)> = Vec::new();
        for (name, value) in changes.iter().chain(&usual) {
            if headers.iter().all(|(known, _)| known != name) {
                headers.push(((*name).to_owned(), (*value).to_owned()));
            }
        }
        headers
    }

    #[test]
    fn what_is_not_ours_is_reported_under_its_place_and_hides_nothing() {
        let scratch = tempfile::tempdir().expect("a directory");
        let path = scratch.path().join(FILE);
        let mut spool = Spool::create(&path).expect("a file");
        let good = headers(&[]);
        let mut take = |place: &str, headers: &[(String, String)]| {
            let held = Held::Message {
                place,
                headers,
                body: b"line",
            };
            spool.take(held).expect("taken");
        };
        take("partition 0, offset 1", &good);
        for (name, value) in [
            ("host", ""),
            ("host", "../web1"),
            ("host", "web1\u{1b}[2J"),
            ("kind", "x"),
            ("series", ""),
            ("from", "9/0/0"),
            ("missing", "-1"),
        ] {
            take("partition 1, offset 2", &headers(&[(name, value)]));
        }
        take("partition 1, offset 9", &good);
        let hosts: Vec<(&String, usize, bool)> = spool
            .store
            .hosts
            .iter()
            .map(|(host, arrived)| (host, arrived.messages.len(), arrived.error.is_some()))
            .collect();
        let (place, web1) = ("partition 1".to_owned(), "web1".to_owned());
        assert_eq!(hosts, [(&place, 0, true), (&web1, 2, false)]);
    }
}
