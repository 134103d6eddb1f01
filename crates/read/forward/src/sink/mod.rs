//! Destinations of batches. [`Sink`] is the interface that all have in common;
//! `tests/conformance.rs` has the tests that each must pass.

mod kafka;
mod lines;
mod nats;
mod otlp;

pub use kafka::{decode_answer, partition_of};
pub use nats::parse_line as parse_nats_line;
pub use otlp::encode as encode_otlp;

use std::time::Duration;

use crate::batch::Batch;
use crate::config::{Config, SinkKind};
use crate::cursor::SinkState;

/// Number of times that reading back is tried again before it fails.
const READ_AGAIN_MAX: u32 = 5;
/// Time between two tries.
const READ_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Largest amounts that a sink takes at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a batch, before compression.
    pub bytes: usize,
    /// Number of messages.
    pub messages: usize,
}

/// Reason why a batch did not arrive.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SinkError {
    /// The batch may or may not have arrived, or nothing can arrive now: it is sent again.
    #[error("{0}")]
    Retry(String),
    /// The same, and the destination asks for a pause.
    #[error("{why}")]
    RetryAfter {
        /// What it answered.
        why: String,
        /// Least time until the next attempt.
        pause: Duration,
    },
    /// The destination will not take this batch, whatever is done. None of it was stored.
    #[error("{0}")]
    Refused(String),
    /// The destination is not as the cursor says, and only a person can say what is to be done.
    #[error("{0}")]
    Disagreement(String),
}

/// Details of a batch's arrival.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Receipt {
    /// The batch was there already: the destination refused the repetition.
    pub was_there: bool,
    /// Number of messages that the destination did not store and will not take. It does not say which.
    pub refused: u64,
    /// What the destination says about the batch, if it says anything.
    pub remark: Option<String>,
}

/// A destination.
///
/// The sender makes the state that [`Sink::prepare`] leaves durable before [`Sink::send`], and what
/// `send` changed in it with the acknowledgement. A batch whose fate is not known is sent again
/// with the state that it was first sent with.
pub trait Sink: Send {
    /// Largest amounts that the sink takes at once.
    fn limits(&self) -> Limits;

    /// Connects and proves this host's identity, and writes nothing. Returns a line for the administrator.
    ///
    /// # Errors
    /// The destination cannot be used; the text says what to do.
    fn check(&mut self) -> Result<String, SinkError>;

    /// Gets what is needed before the first send.
    ///
    /// # Errors
    /// The destination cannot be reached.
    fn prepare(&mut self, state: &mut SinkState) -> Result<(), SinkError>;

    /// Sends a batch and waits until it is stored.
    ///
    /// # Errors
    /// The batch is not known to be stored.
    fn send(
        &mut self,
        batch: &Batch,
        state: &mut SinkState,
        is_repeated: bool,
    ) -> Result<Receipt, SinkError>;
}

/// The sink of a configuration. Connects to nothing.
///
/// # Errors
/// A certificate or secret cannot be read.
pub fn open(config: &Config, host: &str) -> Result<Box<dyn Sink>, SinkError> {
    Ok(match config.sink {
        SinkKind::Kafka => Box::new(kafka::Kafka::new(config, host)?),
        SinkKind::Nats => Box::new(nats::Nats::new(config, host)?),
        SinkKind::Otlp => Box::new(otlp::Otlp::new(config)?),
        SinkKind::File => Box::new(lines::Lines::file(config)),
        SinkKind::Stdout => Box::new(lines::Lines::stdout(config)),
    })
}

/// A message as the destination has it.
#[derive(Debug)]
pub enum Held<'a> {
    /// The message has headers, written by a sender of ours or by another program.
    Message {
        /// Place of the message, in the destination's terms: `partition 2, offset 17`.
        place: &'a str,
        /// Names and values of its headers; `host` is the host.
        headers: &'a [(String, String)],
        /// The body of the message.
        body: &'a [u8],
    },
    /// The message is not from the sender that it names.
    Forged {
        /// Place of the message.
        place: &'a str,
        /// Reason why it counts as forged.
        why: String,
    },
}

/// Takes what the destination has, message by message.
///
/// # Errors
/// Reading ends with this error.
pub type TakeHeld<'a> = dyn FnMut(Held<'_>) -> Result<(), String> + 'a;

/// Reads everything that a Kafka topic or a NATS stream holds when this begins, of all hosts.
///
/// # Errors
/// The destination cannot be read to the end, keeps no messages, or `take` fails.
pub fn read_back(config: &Config, take: &mut TakeHeld<'_>) -> Result<(), String> {
    match config.sink {
        SinkKind::Kafka => kafka::read_back(config, take),
        SinkKind::Nats => nats::read_back(config, take),
        SinkKind::Otlp | SinkKind::File | SinkKind::Stdout => {
            Err("only kafka and nats give back what they were sent; for the others, name a file or directory".into())
        }
    }
}

/// Tries something again for some seconds: a server may just have been restarted.
fn patiently<T>(mut what: impl FnMut() -> Result<T, String>) -> Result<T, String> {
    for _ in 0..READ_AGAIN_MAX {
        match what() {
            Ok(done) => return Ok(done),
            Err(_) => std::thread::sleep(READ_AGAIN_AFTER),
        }
    }
    what()
}

/// Error that may go away by itself.
fn retry(error: impl ToString) -> SinkError {
    SinkError::Retry(error.to_string())
}

/// A number of the state; 0 if it is not there.
fn state_number(state: &SinkState, name: &str) -> u64 {
    state
        .get(name)
        .and_then(|text| text.parse().ok())
        .unwrap_or(0)
}

/// The secret of the configuration, without the newline at its end.
///
/// # Errors
/// The file cannot be read.
fn secret(config: &Config) -> Result<String, String> {
    let Some(path) = &config.secret_file else {
        return Ok(String::new());
    };
    let text = std::fs::read_to_string(path).map_err(|error| {
        format!(
            "{}: cannot read the secret: {error}; make the file readable for the sender",
            path.display()
        )
    })?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}
