//! Kafka: exactly once, without transactions.
//!
//! Producer id, epoch and sequence stand in the cursor before a batch is sent. The same batch with
//! the same sequence is stored once, however often it is sent and from however many connections,
//! as long as the broker knows the producer (`producer.id.expiration.ms`, a day by default).

mod cluster;
mod connection;
mod decode;
mod error;
mod login;
mod read_back;
mod records;
mod sasl;
mod wire;

use std::time::{SystemTime, UNIX_EPOCH};

use super::{retry, state_number, Limits, Receipt, Sink, SinkError};
use crate::batch::Batch;
use crate::config::{Compression, Config};
use crate::cursor::SinkState;
use cluster::Cluster;
use connection::Connection;
use error::code;
use records::{Encoder, Producer};
use wire::{api, Garbage, In, Out};

pub(super) use read_back::read_back;

const BATCH_BYTES: usize = 1 << 20;
const MESSAGES_MAX: usize = 1 << 14;

const PRODUCER: &str = "producer";
const EPOCH: &str = "epoch";
const SEQUENCE: &str = "sequence";
const PARTITION: &str = "partition";

/// The sink.
pub(super) struct Kafka {
    cluster: Cluster,
    host: String,
    /// The partition of the configuration.
    partition: Option<u32>,
    limits: Limits,
    encoder: Encoder,
    timeout_ms: i32,
    leader: Option<Connection>,
}

impl Kafka {
    pub(super) fn new(config: &Config, host: &str) -> Result<Kafka, SinkError> {
        let timeout_ms = config.timeout.as_millis().min(300_000) as i32;
        let is_compressed = config.compression != Some(Compression::None);
        Ok(Kafka {
            cluster: Cluster::new(config).map_err(SinkError::Retry)?,
            host: host.to_owned(),
            partition: config.partition,
            limits: Limits {
                bytes: config.batch_bytes.unwrap_or(BATCH_BYTES),
                messages: MESSAGES_MAX,
            },
            encoder: Encoder::new(is_compressed).map_err(retry)?,
            // The broker's time is up before ours.
            timeout_ms: timeout_ms / 4 * 3,
            leader: None,
        })
    }

    /// The partition of this host.
    fn partition(&self, count: u32) -> u32 {
        self.partition
            .unwrap_or_else(|| partition_of(&self.host, count))
    }

    /// Asks the leader of a partition. A connection with an error is not used again.
    fn ask<T>(
        &mut self,
        partition: u32,
        api: (i16, i16),
        body: &[u8],
        read: impl Fn(&[u8]) -> Result<T, Garbage>,
    ) -> Result<T, SinkError> {
        let mut leader = match self.leader.take() {
            Some(leader) => leader,
            None => self.cluster.leader(partition).map_err(SinkError::Retry)?,
        };
        let answer = leader.ask(api, body).map_err(SinkError::Retry)?;
        let answer = read(&answer).map_err(|garbage| retry(leader.named(garbage)))?;
        self.leader = Some(leader);
        Ok(answer)
    }

    fn new_producer(&mut self, partition: u32, state: &mut SinkState) -> Result<(), SinkError> {
        let mut body = Out::default();
        body.i16(-1).i32(self.timeout_ms);
        let read = |answer: &[u8]| {
            let mut answer = In(answer);
            answer.i32()?;
            Ok((answer.i16()?, answer.i64()?, answer.i16()?))
        };
        let (error, id, epoch) = self.ask(partition, api::INIT_PRODUCER_ID, &body.0, read)?;
        if error != 0 {
            return Err(retry(self.topic_named(&format!(
                "cannot get a producer id: {}",
                error::text(error)
            ))));
        }

        state.insert(PRODUCER.into(), id.to_string());
        state.insert(EPOCH.into(), epoch.to_string());
        state.insert(SEQUENCE.into(), "0".into());
        state.insert(PARTITION.into(), partition.to_string());
        Ok(())
    }

    fn topic_named(&self, text: &str) -> String {
        format!("topic {:?}: {text}", self.cluster.topic)
    }

    /// Result of a produce request, by the error code in its answer.
    fn judge(&mut self, error: i16, state: &mut SinkState) -> Result<Receipt, SinkError> {
        let text = self.topic_named(&error::text(error));
        match error {
            0 => Ok(Receipt::default()),
            code::DUPLICATE => Ok(Receipt {
                was_there: true,
                ..Receipt::default()
            }),
            code::TOO_LARGE | code::LIST_TOO_LARGE | code::INVALID_RECORD => {
                Err(SinkError::Refused(text))
            }
            code::OUT_OF_ORDER | code::BAD_EPOCH | code::UNKNOWN_PRODUCER => {
                state.clear();
                Err(SinkError::Disagreement(format!(
                    "{text}: the broker has forgotten this producer; a new one is used"
                )))
            }
            _ => {
                self.leader = None;
                Err(SinkError::Retry(text))
            }
        }
    }
}

/// The partition of a host among `count`: the same at every start.
pub fn partition_of(host: &str, count: u32) -> u32 {
    let hash = blake3::hash(host.as_bytes());
    let bytes = hash.as_bytes();
    u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) % count.max(1)
}

/// Reads the answer to a produce request: its error.
fn produced(answer: &[u8]) -> Result<i16, Garbage> {
    let mut answer = In(answer);
    if answer.count()? != 1 {
        return Err(Garbage);
    }
    answer.text()?;
    if answer.count()? != 1 {
        return Err(Garbage);
    }
    answer.i32()?;
    answer.i16()
}

/// Reads `bytes` as each kind of answer, for fuzzing.
pub fn decode_answer(bytes: &[u8]) {
    let _ = cluster::read(bytes, Some(0));
    let _ = produced(bytes);
    read_back::decode_answer(bytes);
}

impl Sink for Kafka {
    fn limits(&self) -> Limits {
        self.limits
    }

    fn check(&mut self) -> Result<String, SinkError> {
        let partitions = self.cluster.partitions().map_err(SinkError::Retry)?;
        let partition = self.partition(partitions);
        self.leader = Some(self.cluster.leader(partition).map_err(SinkError::Retry)?);
        Ok(self.topic_named(&format!(
            "partition {partition} of {partitions}, {}: reached and authenticated",
            self.cluster.connector.tls_text()
        )))
    }

    fn prepare(&mut self, state: &mut SinkState) -> Result<(), SinkError> {
        if state.contains_key(PRODUCER) {
            return Ok(());
        }
        let partition = match state.get(PARTITION).and_then(|text| text.parse().ok()) {
            Some(partition) => partition,
            None => self.partition(self.cluster.partitions().map_err(SinkError::Retry)?),
        };
        self.new_producer(partition, state)
    }

    fn send(
        &mut self,
        batch: &Batch,
        state: &mut SinkState,
        _is_repeated: bool,
    ) -> Result<Receipt, SinkError> {
        let partition = state_number(state, PARTITION) as u32;
        let producer = Producer {
            id: state_number(state, PRODUCER) as i64,
            epoch: state_number(state, EPOCH) as i16,
            sequence: state_number(state, SEQUENCE) as i32,
        };
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let now_ms = since.map_or(0, |time| time.as_millis() as i64);
        let records = self.encoder.encode(batch, producer, now_ms);
        let records = records.map_err(retry)?;
        let mut body = Out(Vec::with_capacity(records.len() + 64));
        body.i16(-1).i16(-1).i32(self.timeout_ms);
        body.i32(1).text(&self.cluster.topic);
        body.i32(1).i32(partition as i32).bytes(&records);

        let error = self.ask(partition, api::PRODUCE, &body.0, produced)?;
        let receipt = self.judge(error, state)?;
        let next = sequence_after(producer.sequence, batch.messages.len());
        state.insert(SEQUENCE.into(), next.to_string());
        Ok(receipt)
    }
}

/// The sequence of the record after `count` records: numbers begin again after 2^31 - 1.
fn sequence_after(sequence: i32, count: usize) -> i32 {
    ((i64::from(sequence) + count as i64) & 0x7fff_ffff) as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_begin_again_after_the_largest() {
        assert_eq!(sequence_after(5, 3), 8);
        assert_eq!(sequence_after(i32::MAX, 1), 0);
        assert_eq!(sequence_after(i32::MAX - 1, 4), 2);
    }

    #[test]
    fn answers_that_are_not_kafkas_are_refused() {
        assert_eq!(produced(&[0xff; 40]), Err(Garbage));
        assert_eq!(produced(b"HTTP/1.1 400 Bad Request"), Err(Garbage));
    }

    #[test]
    fn a_host_keeps_its_partition() {
        assert_eq!(partition_of("web1", 60), partition_of("web1", 60));
        let used: std::collections::BTreeSet<u32> = (0..1000)
            .map(|n| partition_of(&format!("h{n}"), 60))
            .collect();
        assert_eq!(used.len(), 60);
    }
}
