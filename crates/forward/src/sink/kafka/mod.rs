//! Kafka: exactly once, without transactions.
//!
//! Producer id, epoch and sequence stand in the cursor before a batch is sent. The same batch with
//! the same sequence is stored once, however often it is sent and from however many connections,
//! as long as the broker knows the producer (`producer.id.expiration.ms`, a day by default).

mod records;
mod sasl;
mod wire;

use std::io;
use std::time::{SystemTime, UNIX_EPOCH};

use super::{retry, secret, state_number, Limits, Receipt, Sink, SinkError};
use crate::batch::Batch;
use crate::config::{Auth, Compression, Config};
use crate::cursor::SinkState;
use crate::net::{Connector, Stream};
use records::Producer;
use sasl::{Hash, Scram};
use wire::{api, ask, Garbage, In, Out};

const BATCH_BYTES: usize = 1 << 20;
const MESSAGES_MAX: usize = 1 << 14;

const PRODUCER: &str = "producer";
const EPOCH: &str = "epoch";
const SEQUENCE: &str = "sequence";
const PARTITION: &str = "partition";

/// Error codes of Kafka that are treated apart.
mod code {
    pub(super) const UNKNOWN_TOPIC: i16 = 3;
    pub(super) const TOO_LARGE: i16 = 10;
    pub(super) const LIST_TOO_LARGE: i16 = 18;
    pub(super) const OUT_OF_ORDER: i16 = 45;
    pub(super) const DUPLICATE: i16 = 46;
    pub(super) const BAD_EPOCH: i16 = 47;
    pub(super) const UNKNOWN_PRODUCER: i16 = 59;
    pub(super) const INVALID_RECORD: i16 = 87;
}

/// The sink.
pub(super) struct Kafka {
    connector: Connector,
    servers: Vec<String>,
    topic: String,
    host: String,
    partition: Option<u32>,
    auth: Auth,
    user: String,
    password: String,
    bytes: usize,
    is_compressed: bool,
    timeout_ms: i32,
    leader: Option<Stream>,
    correlation: i32,
}

/// What the cluster says of the topic.
#[derive(Debug, PartialEq, Eq)]
struct Topic {
    /// Number of partitions.
    partitions: u32,
    /// `HOST:PORT` of the leader of the partition that was asked for, if it is known.
    leader: Option<String>,
}

impl Kafka {
    pub(super) fn new(config: &Config, host: &str) -> Result<Kafka, SinkError> {
        let timeout_ms = config.timeout.as_millis().min(300_000) as i32;
        Ok(Kafka {
            connector: Connector::new(config, config.tls).map_err(SinkError::Retry)?,
            servers: config.server.clone(),
            topic: config.topic.clone(),
            host: host.to_owned(),
            partition: config.partition,
            auth: config.auth,
            user: config.user.clone(),
            password: secret(config)?,
            bytes: config.batch_bytes.unwrap_or(BATCH_BYTES),
            is_compressed: config.compression != Some(Compression::None),
            // The broker's time is up before ours.
            timeout_ms: timeout_ms / 4 * 3,
            leader: None,
            correlation: 0,
        })
    }

    fn connect(&mut self, server: &str) -> Result<Stream, SinkError> {
        let mut stream = self.connector.connect(server).map_err(retry)?;
        let name = format!("{server}: authentication");
        let refused = |text: String| SinkError::Retry(format!("{name}: {text}"));
        match self.auth {
            Auth::Plain => {
                self.handshake(&mut stream, "PLAIN").map_err(refused)?;
                let message = sasl::plain(&self.user, &self.password);
                self.authenticate(&mut stream, &message).map_err(refused)?;
            }
            Auth::ScramSha256 => self.scram(&mut stream, Hash::Sha256).map_err(refused)?,
            Auth::ScramSha512 => self.scram(&mut stream, Hash::Sha512).map_err(refused)?,
            _ => {}
        }
        Ok(stream)
    }

    fn ask(&mut self, stream: &mut Stream, api: (i16, i16), body: &[u8]) -> io::Result<Vec<u8>> {
        self.correlation = self.correlation.wrapping_add(1);
        ask(stream, api, self.correlation, body)
    }

    fn handshake(&mut self, stream: &mut Stream, mechanism: &str) -> Result<(), String> {
        let mut body = Out::default();
        body.text(mechanism);
        let answer = self
            .ask(stream, api::SASL_HANDSHAKE, &body.0)
            .map_err(text)?;
        match In(&answer).i16().map_err(text)? {
            0 => Ok(()),
            _ => Err(format!(
                "the listener does not offer {mechanism}; set another `auth`"
            )),
        }
    }

    fn authenticate(&mut self, stream: &mut Stream, message: &[u8]) -> Result<Vec<u8>, String> {
        let mut body = Out::default();
        body.bytes(message);
        let answer = self
            .ask(stream, api::SASL_AUTHENTICATE, &body.0)
            .map_err(text)?;
        let mut answer = In(&answer);
        let error = answer.i16().map_err(text)?;
        let why = answer.text().map_err(text)?;
        match error {
            0 => Ok(answer.bytes().map_err(text)?.to_vec()),
            _ => Err(format!("{why} (error {error}); check user and secret_file")),
        }
    }

    fn scram(&mut self, stream: &mut Stream, hash: Hash) -> Result<(), String> {
        self.handshake(stream, hash.mechanism())?;
        let mut scram = Scram::new(hash, &self.user)?;
        let challenge = self.authenticate(stream, &scram.first())?;
        let proof = scram.last(&challenge, &self.password)?;
        let last = self.authenticate(stream, &proof)?;
        scram.verify(&last)
    }

    /// Asks the servers for the topic, until one answers.
    fn topic(&mut self, partition: Option<u32>) -> Result<(Topic, Stream), SinkError> {
        let mut last = SinkError::Retry("no server".into());
        for server in self.servers.clone() {
            match self.topic_of(&server, partition) {
                Ok(found) => return Ok(found),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    fn topic_of(
        &mut self,
        server: &str,
        partition: Option<u32>,
    ) -> Result<(Topic, Stream), SinkError> {
        let mut stream = self.connect(server)?;
        let mut body = Out::default();
        body.i32(1).text(&self.topic).i8(0);
        let named = |error: String| SinkError::Retry(format!("{server}: {error}"));
        let answer = self.ask(&mut stream, api::METADATA, &body.0);
        let answer = answer.map_err(|error| named(error.to_string()))?;
        let (error, topic) = topic(&answer, partition).map_err(|e| named(e.to_string()))?;
        match error {
            0 => Ok((topic, stream)),
            code::UNKNOWN_TOPIC => Err(named(format!(
                "there is no topic {:?}, or {:?} may not see it; create it",
                self.topic, self.user
            ))),
            error => Err(named(format!("topic {:?}: {}", self.topic, name_of(error)))),
        }
    }

    /// The partition of this host.
    fn partition(&self, count: u32) -> u32 {
        self.partition
            .unwrap_or_else(|| partition_of(&self.host, count))
    }

    fn leader(&mut self, partition: u32) -> Result<(), SinkError> {
        if self.leader.is_some() {
            return Ok(());
        }
        let (topic, _) = self.topic(Some(partition))?;
        let Some(leader) = topic.leader else {
            return Err(SinkError::Retry(format!(
                "partition {partition} of topic {:?} has no leader now ({} partitions)",
                self.topic, topic.partitions
            )));
        };
        self.leader = Some(self.connect(&leader)?);
        Ok(())
    }

    fn new_producer(&mut self, partition: u32, state: &mut SinkState) -> Result<(), SinkError> {
        self.leader(partition)?;
        let mut stream = self.leader.take().ok_or_else(|| retry("no connection"))?;
        let mut body = Out::default();
        body.i16(-1).i32(self.timeout_ms);
        let answer = self.ask(&mut stream, api::INIT_PRODUCER_ID, &body.0);
        let answer = answer.map_err(retry)?;
        let mut answer = In(&answer);
        let mut read = || Ok((answer.i32()?, answer.i16()?, answer.i64()?, answer.i16()?));
        let (_, error, id, epoch) = read().map_err(|error: Garbage| retry(error))?;
        if error != 0 {
            let name = name_of(error);
            return Err(SinkError::Retry(format!(
                "cannot get a producer id: {name}"
            )));
        }
        state.insert(PRODUCER.into(), id.to_string());
        state.insert(EPOCH.into(), epoch.to_string());
        state.insert(SEQUENCE.into(), "0".into());
        state.insert(PARTITION.into(), partition.to_string());
        self.leader = Some(stream);
        Ok(())
    }

    /// What an error of a produce request means.
    fn judge(&mut self, error: i16, state: &mut SinkState) -> Result<Receipt, SinkError> {
        match error {
            0 => Ok(Receipt::default()),
            code::DUPLICATE => Ok(Receipt {
                was_there: true,
                ..Receipt::default()
            }),
            code::TOO_LARGE | code::LIST_TOO_LARGE | code::INVALID_RECORD => {
                Err(SinkError::Refused(name_of(error)))
            }
            code::OUT_OF_ORDER | code::BAD_EPOCH | code::UNKNOWN_PRODUCER => {
                state.clear();
                Err(SinkError::Disagreement(format!(
                    "{}: the broker has forgotten this producer",
                    name_of(error)
                )))
            }
            error => {
                self.leader = None;
                Err(SinkError::Retry(format!(
                    "topic {:?}: {}",
                    self.topic,
                    name_of(error)
                )))
            }
        }
    }
}

fn text(error: impl ToString) -> String {
    error.to_string()
}

/// The partition of a host among `count`: the same at every start.
pub fn partition_of(host: &str, count: u32) -> u32 {
    let hash = blake3::hash(host.as_bytes());
    let bytes = hash.as_bytes();
    u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) % count.max(1)
}

/// Reads the answer to a metadata request: the topic's error, and the topic.
fn topic(answer: &[u8], partition: Option<u32>) -> Result<(i16, Topic), Garbage> {
    let mut answer = In(answer);
    answer.i32()?;
    let mut brokers = Vec::new();
    for _ in 0..answer.count()? {
        let (id, host, port) = (answer.i32()?, answer.text()?, answer.i32()?);
        answer.text()?;
        brokers.push((id, format!("{host}:{port}")));
    }
    answer.text()?;
    answer.i32()?;
    if answer.count()? != 1 {
        return Err(Garbage);
    }
    let error = answer.i16()?;
    answer.text()?;
    answer.skip(1)?;
    let count = answer.count()?;
    let mut leader = None;
    for _ in 0..count {
        let (_, index, leads) = (answer.i16()?, answer.i32()?, answer.i32()?);
        for _ in 0..3 {
            let replicas = answer.count()?;
            answer.skip(replicas.checked_mul(4).ok_or(Garbage)?)?;
        }
        if partition.is_some_and(|wanted| i64::from(wanted) == i64::from(index)) {
            let broker = brokers.iter().find(|(id, _)| *id == leads);
            leader = broker.map(|(_, address)| address.clone());
        }
    }
    let topic = Topic {
        partitions: count as u32,
        leader,
    };
    Ok((error, topic))
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
    let _ = topic(bytes, Some(0));
    let _ = produced(bytes);
}

fn name_of(error: i16) -> String {
    let name = match error {
        1 => "offset out of range",
        2 => "the batch arrived damaged",
        3 => "no such topic or partition",
        5 => "no leader",
        6 => "not the leader",
        7 => "the brokers did not answer in time",
        10 => "the batch is larger than the topic's max.message.bytes",
        13 => "network exception",
        14 => "the coordinator is loading; this passes",
        15 => "no coordinator",
        19 | 20 => "fewer replicas in sync than min.insync.replicas",
        29 => "this user may not write to the topic; give it the right Write",
        31 => "this user may not write without a sequence; give it IdempotentWrite",
        45 => "out-of-order sequence",
        47 => "invalid producer epoch",
        56 => "the broker's disk failed",
        59 => "unknown producer id",
        76 => "the topic does not take zstd; set compression = none",
        87 => "the broker refuses the record",
        _ => "see the list of errors in Kafka's protocol guide",
    };
    format!("{name} (error {error})")
}

impl Sink for Kafka {
    fn limits(&self) -> Limits {
        Limits {
            bytes: self.bytes,
            messages: MESSAGES_MAX,
        }
    }

    fn check(&mut self) -> Result<String, SinkError> {
        let (topic, _) = self.topic(None)?;
        let partition = self.partition(topic.partitions);
        if partition >= topic.partitions {
            return Err(SinkError::Retry(format!(
                "partition = {partition}, but topic {:?} has {}; set a smaller one",
                self.topic, topic.partitions
            )));
        }
        self.leader = None;
        self.leader(partition)?;
        let (name, secure) = (&self.topic, self.connector.uses_tls());
        let how = if secure { "TLS" } else { "no TLS" };
        Ok(format!(
            "topic {name:?}, partition {partition} of {}, {how}: reached and authenticated",
            topic.partitions
        ))
    }

    fn prepare(&mut self, state: &mut SinkState) -> Result<(), SinkError> {
        if state.contains_key(PRODUCER) {
            return Ok(());
        }
        let partition = match state.get(PARTITION).and_then(|text| text.parse().ok()) {
            Some(partition) => partition,
            None => {
                let (topic, _) = self.topic(None)?;
                self.partition(topic.partitions)
            }
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
        let records = records::encode(batch, producer, now_ms, self.is_compressed);
        let records = records.map_err(retry)?;
        let mut body = Out(Vec::with_capacity(records.len() + 64));
        body.i16(-1).i16(-1).i32(self.timeout_ms);
        body.i32(1).text(&self.topic).i32(1).i32(partition as i32);
        body.bytes(&records);
        self.leader(partition)?;
        let mut stream = self.leader.take().ok_or_else(|| retry("no connection"))?;
        let answer = self
            .ask(&mut stream, api::PRODUCE, &body.0)
            .map_err(retry)?;
        let error = produced(&answer).map_err(retry)?;
        self.leader = Some(stream);
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
    fn answers_that_are_cut_or_garbage_are_refused() {
        let mut answer = Out::default();
        answer.i32(0).i32(1).i32(4).text("b").i32(9092).i16(-1);
        answer.text("id").i32(4).i32(1).i16(0).text("audit").i8(0);
        answer
            .i32(1)
            .i16(0)
            .i32(2)
            .i32(4)
            .i32(1)
            .i32(4)
            .i32(0)
            .i32(0);
        let expected = Topic {
            partitions: 1,
            leader: Some("b:9092".into()),
        };
        assert_eq!(topic(&answer.0, Some(2)), Ok((0, expected)));
        for length in 0..answer.0.len() {
            assert_eq!(topic(&answer.0[..length], None), Err(Garbage), "{length}");
        }
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
