//! Lines in a file or on standard output.
//!
//! The state has the length of the file before the batch: what a crash left behind it is cut off
//! before the batch is written again. Standard output has repetitions then.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use serde_json::json;

use super::{state_number, Limits, Receipt, Sink, SinkError};
use crate::batch::{Batch, Kind};
use crate::config::Config;
use crate::cursor::SinkState;

const BATCH_BYTES: usize = 1 << 20;
const MESSAGES_MAX: usize = 1 << 16;
const LENGTH: &str = "length";

/// The sink.
pub(super) struct Lines {
    path: Option<PathBuf>,
    has_envelope: bool,
    bytes: usize,
    file: Option<File>,
}

impl Lines {
    pub(super) fn file(config: &Config) -> Lines {
        Lines {
            path: Some(config.path.clone()),
            ..Lines::stdout(config)
        }
    }

    pub(super) fn stdout(config: &Config) -> Lines {
        Lines {
            path: None,
            has_envelope: config.envelope,
            bytes: config.batch_bytes.unwrap_or(BATCH_BYTES),
            file: None,
        }
    }

    fn failed(&self, call: &str, error: &io::Error) -> SinkError {
        let name = match &self.path {
            Some(path) => path.display().to_string(),
            None => "standard output".into(),
        };
        SinkError::Retry(format!("{name}: cannot {call}: {error}"))
    }

    fn opened(&mut self) -> Result<Option<&mut File>, SinkError> {
        if let (Some(path), None) = (&self.path, &self.file) {
            let opened = OpenOptions::new()
                .create(true)
                .truncate(false)
                .write(true)
                .mode(0o600)
                .open(path);
            self.file = Some(opened.map_err(|error| self.failed("open", &error))?);
        }
        Ok(self.file.as_mut())
    }

    fn text(&self, batch: &Batch) -> Vec<u8> {
        let mut text = Vec::with_capacity(batch.bytes.len() + batch.messages.len());
        for message in &batch.messages {
            let body = batch.body(message);
            if self.has_envelope {
                let envelope = json!({
                    "series": batch.series.to_string(),
                    "host": batch.host,
                    "kind": message.kind.name(),
                    "from": message.from.to_string(),
                    "to": message.to.to_string(),
                    "events": message.events,
                    "filtered": message.filtered,
                    "body": body_json(message.kind, body),
                });
                let _ = writeln!(text, "{envelope}");
            } else if message.kind != Kind::Seal {
                text.extend_from_slice(body);
                text.push(b'\n');
            }
        }

        text
    }
}

/// A body as JSON: text, or base64 as `{"base64":…}` if it is not UTF-8.
fn body_json(kind: Kind, body: &[u8]) -> serde_json::Value {
    use base64::prelude::{Engine, BASE64_STANDARD};
    match std::str::from_utf8(body) {
        Ok(text) if kind != Kind::Seal => json!(text),
        _ => json!({ "base64": BASE64_STANDARD.encode(body) }),
    }
}

impl Sink for Lines {
    fn limits(&self) -> Limits {
        Limits {
            bytes: self.bytes,
            messages: MESSAGES_MAX,
        }
    }

    fn check(&mut self) -> Result<String, SinkError> {
        self.opened()?;
        Ok(match &self.path {
            Some(path) => format!("{} can be written", path.display()),
            None => "standard output".into(),
        })
    }

    fn prepare(&mut self, state: &mut SinkState) -> Result<(), SinkError> {
        if let (Some(file), false) = (self.opened()?, state.contains_key(LENGTH)) {
            let length = file.metadata().map_or(0, |stat| stat.len());
            state.insert(LENGTH.into(), length.to_string());
        }
        Ok(())
    }

    fn send(
        &mut self,
        batch: &Batch,
        state: &mut SinkState,
        _is_repeated: bool,
    ) -> Result<Receipt, SinkError> {
        let text = self.text(batch);
        let length = state_number(state, LENGTH);
        let written = match self.opened()? {
            Some(file) => append(file, length, &text),
            None => {
                let mut out = io::stdout().lock();
                out.write_all(&text).and_then(|()| out.flush())
            }
        };

        written.map_err(|error| self.failed("write", &error))?;
        if self.path.is_some() {
            state.insert(LENGTH.into(), (length + text.len() as u64).to_string());
        }
        Ok(Receipt::default())
    }
}

/// Writes `text` behind the first `length` bytes, and makes it durable.
fn append(file: &File, length: u64, text: &[u8]) -> io::Result<()> {
    use std::os::unix::fs::FileExt;
    let now = file.metadata()?.len();
    if now > length {
        file.set_len(length)?;
    }
    file.write_all_at(text, length)?;
    rustix::fs::fdatasync(file)?;
    Ok(())
}
