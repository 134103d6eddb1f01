//! Reads back what the topic holds, partition by partition.

use super::cluster::Cluster;
use super::connection::Connection;
use super::decode::{self, next_batch, DecodeError};
use super::error;
use super::wire::{api, Garbage, In, Out};
use crate::config::Config;
use crate::sink::{patiently, Held, TakeHeld};

/// Bytes of records that are asked for at a time.
const BYTES: i32 = 4 << 20;
/// Time that a broker may wait for records, in milliseconds.
const WAIT_MS: i32 = 500;
/// Instead of a time: the first offset that is there, and the one behind the last.
const EARLIEST: i64 = -2;
const LATEST: i64 = -1;

/// Reads everything that the topic holds now.
pub(in crate::sink) fn read_back(config: &Config, take: &mut TakeHeld<'_>) -> Result<(), String> {
    let cluster = Cluster::new(config)?;
    for number in 0..patiently(|| cluster.partitions())? {
        let mut partition = Partition {
            cluster: &cluster,
            number,
            leader: None,
        };
        partition
            .read(take)
            .map_err(|error| format!("topic {:?}: {error}", cluster.topic))?;
    }
    Ok(())
}

/// Reads an answer: its error, and what it has.
type ReadAnswer<T> = fn(&[u8]) -> Result<(i16, T), Garbage>;

/// A partition that is read from its leader.
struct Partition<'a> {
    cluster: &'a Cluster,
    number: u32,
    leader: Option<Connection>,
}

impl Partition<'_> {
    fn read(&mut self, take: &mut TakeHeld<'_>) -> Result<(), String> {
        let end = self.offset(LATEST)?;
        let mut next = self.offset(EARLIEST)?;
        while next < end {
            let records = self.fetch(next)?;
            let reached = self.records(&records, next, end, take)?;
            if reached <= next {
                return Err(format!(
                    "{}: the broker returns no record, although there are some up to offset {end}",
                    self.place(next)
                ));
            }
            next = reached;
        }

        Ok(())
    }

    fn place(&self, offset: i64) -> String {
        format!("partition {}, offset {offset}", self.number)
    }

    /// Takes the records from `next` to `end`. Returns how far they reach.
    fn records(
        &self,
        mut bytes: &[u8],
        next: i64,
        end: i64,
        take: &mut TakeHeld<'_>,
    ) -> Result<i64, String> {
        let mut reached = next;
        let named = |at, error: DecodeError| format!("{}: the batch: {error}", self.place(at));
        while let Some(batch) = next_batch(&mut bytes).map_err(|error| named(reached, error))? {
            let mut failed = None;
            let read = batch.records(|record| {
                // A batch comes whole: it may begin before what was asked for.
                if failed.is_none() && (next..end).contains(&record.offset) {
                    let mut headers = record.headers;
                    headers.retain(|(name, _)| name != "host");
                    headers.push(("host".into(), String::from_utf8_lossy(record.key).into()));
                    let held = Held::Message {
                        place: &format!(
                            "topic {:?}, {}",
                            self.cluster.topic,
                            self.place(record.offset)
                        ),
                        headers: &headers,
                        body: record.body,
                    };
                    failed = take(held).err();
                }
                Ok::<(), DecodeError>(())
            });
            read.map_err(|error| named(reached, error))?;
            if let Some(error) = failed {
                return Err(error);
            }
            reached = reached.max(batch.next);
        }

        Ok(reached)
    }

    fn offset(&mut self, time: i64) -> Result<i64, String> {
        let mut body = Out::default();
        body.i32(-1).i32(1).text(&self.cluster.topic);
        body.i32(1).i32(self.number as i32).i64(time);
        self.ask(api::LIST_OFFSETS, &body.0, offset_of)
    }

    fn fetch(&mut self, from: i64) -> Result<Vec<u8>, String> {
        let mut body = Out::default();
        // As a consumer, that sees records of unfinished transactions, too, and without a session.
        body.i32(-1).i32(WAIT_MS).i32(1).i32(BYTES).i8(0);
        body.i32(0).i32(-1).i32(1).text(&self.cluster.topic);
        body.i32(1).i32(self.number as i32).i32(-1);
        body.i64(from).i64(-1).i32(BYTES).i32(0);
        self.ask(api::FETCH, &body.0, records_of)
    }

    /// Asks the leader, again if it has changed or cannot be reached for a moment.
    fn ask<T>(&mut self, api: (i16, i16), body: &[u8], read: ReadAnswer<T>) -> Result<T, String> {
        patiently(|| {
            let mut leader = match self.leader.take() {
                Some(leader) => leader,
                None => self.cluster.leader(self.number)?,
            };
            let answer = leader.ask(api, body)?;
            let (error, found) = read(&answer).map_err(|garbage| leader.named(garbage))?;
            if error != 0 {
                return Err(format!("partition {}: {}", self.number, error::text(error)));
            }
            self.leader = Some(leader);
            Ok(found)
        })
    }
}

/// Reads the answer to a request for one offset: its error, and the offset.
fn offset_of(answer: &[u8]) -> Result<(i16, i64), Garbage> {
    let mut answer = In(answer);
    one_partition(&mut answer)?;
    let error = answer.i16()?;
    answer.skip(8)?;
    Ok((error, answer.i64()?))
}

/// Reads the answer to a request for the records of one partition: an error, and the batches.
fn records_of(answer: &[u8]) -> Result<(i16, Vec<u8>), Garbage> {
    let mut answer = In(answer);
    answer.skip(4)?;
    let error = answer.i16()?;
    if error != 0 {
        return Ok((error, Vec::new()));
    }

    answer.skip(4)?;
    one_partition(&mut answer)?;
    let error = answer.i16()?;
    // High watermark, last stable offset, first offset.
    answer.skip(24)?;
    let aborted = answer.count()?;
    answer.skip(aborted.checked_mul(16).ok_or(Garbage)?)?;

    Ok((error, answer.bytes()?.to_vec()))
}

/// Skips what stands before the answer for a partition: one topic, one partition, its number.
fn one_partition(answer: &mut In<'_>) -> Result<(), Garbage> {
    if answer.count()? != 1 {
        return Err(Garbage);
    }
    answer.text()?;
    if answer.count()? != 1 {
        return Err(Garbage);
    }
    answer.skip(4)
}

/// Reads `bytes` as each kind of answer, for fuzzing.
pub(super) fn decode_answer(bytes: &[u8]) {
    let _ = offset_of(bytes);
    if let Ok((_, records)) = records_of(bytes) {
        decode::decode(&records);
    }
    decode::decode(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_and_cut_ones_refused() {
        let mut answer = Out::default();
        answer.i32(1).text("audit").i32(1).i32(0);
        answer.i16(0).i64(-1).i64(17);
        assert_eq!(offset_of(&answer.0), Ok((0, 17)));
        for length in 0..answer.0.len() {
            assert_eq!(offset_of(&answer.0[..length]), Err(Garbage), "{length}");
        }

        let mut answer = Out::default();
        answer
            .i32(0)
            .i16(0)
            .i32(0)
            .i32(1)
            .text("audit")
            .i32(1)
            .i32(0);
        answer.i16(0).i64(9).i64(9).i64(0).i32(1).i64(5).i64(6);
        answer.bytes(b"batches");
        assert_eq!(records_of(&answer.0), Ok((0, b"batches".to_vec())));
        for length in 0..answer.0.len() {
            assert_eq!(records_of(&answer.0[..length]), Err(Garbage), "{length}");
        }
    }

    #[test]
    fn an_error_of_a_session_is_that_of_the_answer() {
        let mut answer = Out::default();
        answer.i32(0).i16(71).i32(0).i32(0);
        assert_eq!(records_of(&answer.0), Ok((71, Vec::new())));
    }
}
