//! A record batch (magic 2): one record per message, with the sequences that make it exactly once.

use std::fmt::Write as _;
use std::io;

use super::wire::Out;
use crate::batch::{Batch, Message};

/// Bytes before those that the checksum is about: offset, length, epoch, magic, checksum.
const CHECKED_FROM: usize = 21;
const ZSTD: i16 = 4;
const ZSTD_LEVEL: i32 = 1;

/// The sending producer, and the number of its first record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Producer {
    pub(super) id: i64,
    pub(super) epoch: i16,
    pub(super) sequence: i32,
}

/// Makes record batches. Keep it and reuse it, for its buffers and the compressor's tables.
pub(super) struct Encoder {
    packer: Option<zstd::bulk::Compressor<'static>>,
    records: Vec<u8>,
    /// What stands before the body of a record, and behind it.
    head: Vec<u8>,
    tail: Vec<u8>,
}

impl Encoder {
    pub(super) fn new(is_compressed: bool) -> io::Result<Encoder> {
        let packer = is_compressed.then(|| zstd::bulk::Compressor::new(ZSTD_LEVEL));
        Ok(Encoder {
            packer: packer.transpose()?,
            records: Vec::new(),
            head: Vec::new(),
            tail: Vec::new(),
        })
    }

    /// Encodes `batch`, dated `now_ms`: the broker forgets producers by the dates of their records.
    pub(super) fn encode(
        &mut self,
        batch: &Batch,
        producer: Producer,
        now_ms: i64,
    ) -> io::Result<Vec<u8>> {
        let count = batch.messages.len() as i32;
        let mut out = Out(Vec::with_capacity(256 + batch.bytes.len() / 4));
        out.i64(0).i32(0).i32(-1).i8(2).i32(0);
        let codec = if self.packer.is_some() { ZSTD } else { 0 };
        out.i16(codec).i32(count - 1).i64(now_ms).i64(now_ms);
        out.i64(producer.id).i16(producer.epoch);
        out.i32(producer.sequence).i32(count);
        self.fill(batch);

        match &mut self.packer {
            Some(packer) => {
                let start = out.0.len();
                let room = zstd::zstd_safe::compress_bound(self.records.len());
                out.0.resize(start + room, 0);
                let length = packer.compress_to_buffer(&self.records, &mut out.0[start..])?;
                out.0.truncate(start + length);
            }
            None => out.0.extend_from_slice(&self.records),
        }

        let length = (out.0.len() - 12) as i32;
        out.0[8..12].copy_from_slice(&length.to_be_bytes());
        let sum = crc32c::crc32c(&out.0[CHECKED_FROM..]);
        out.0[CHECKED_FROM - 4..CHECKED_FROM].copy_from_slice(&sum.to_be_bytes());
        Ok(out.0)
    }

    /// Writes the records of `batch` one behind the other.
    fn fill(&mut self, batch: &Batch) {
        self.records.clear();
        let series = batch.series.to_string();
        let (mut from, mut to) = (String::new(), String::new());
        let mut before = None;
        for (number, message) in batch.messages.iter().enumerate() {
            // `from` is nearly always `to` of the message before.
            if before == Some(message.from) {
                std::mem::swap(&mut from, &mut to)
            } else {
                from = message.from.to_string()
            }
            to.clear();
            let _ = write!(to, "{}", message.to);
            before = Some(message.to);
            let headers = Headers {
                series: &series,
                from: &from,
                to: &to,
            };

            let body = batch.body(message);
            self.head.clear();
            self.tail.clear();
            head(batch, body, number as i64, &mut self.head);
            tail(batch, message, &headers, &mut self.tail);
            let length = self.head.len() + body.len() + self.tail.len();
            varint(length as i64, &mut self.records);
            for part in [&self.head, body, &self.tail] {
                self.records.extend_from_slice(part);
            }
        }
    }
}

/// Values of headers, as text.
struct Headers<'a> {
    series: &'a str,
    from: &'a str,
    to: &'a str,
}

/// Appends what stands before the body, with the length of the body at the end.
fn head(batch: &Batch, body: &[u8], number: i64, out: &mut Vec<u8>) {
    // Attributes, and the time after that of the batch.
    out.push(0);
    varint(0, out);
    varint(number, out);
    bytes(batch.host.as_bytes(), out);
    varint(body.len() as i64, out);
}

/// Appends the headers, which stand behind the body.
fn tail(batch: &Batch, message: &Message, headers: &Headers<'_>, out: &mut Vec<u8>) {
    let is_filtered = message.filtered > 0;
    let has_events = message.events != 1;
    varint(5 + i64::from(is_filtered) + i64::from(has_events), out);
    let mut header = |name: &str, value: &str| {
        bytes(name.as_bytes(), out);
        bytes(value.as_bytes(), out);
    };
    header("series", headers.series);
    header("kind", message.kind.name());
    header("from", headers.from);
    header("to", headers.to);
    header("content-type", batch.content_type);

    if is_filtered {
        header("filtered", &message.filtered.to_string());
    }
    if has_events {
        header("events", &message.events.to_string());
    }
}

fn bytes(value: &[u8], out: &mut Vec<u8>) {
    varint(value.len() as i64, out);
    out.extend_from_slice(value);
}

/// A number in zigzag form, seven bits a byte.
fn varint(value: i64, out: &mut Vec<u8>) {
    let mut rest = ((value << 1) ^ (value >> 63)) as u64;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_zigzag_varints() {
        let encoded = |value| {
            let mut out = Vec::new();
            varint(value, &mut out);
            out
        };
        assert_eq!(encoded(0), [0]);
        assert_eq!(encoded(-1), [1]);
        assert_eq!(encoded(1), [2]);
        assert_eq!(encoded(300), [0xd8, 0x04]);
    }
}
