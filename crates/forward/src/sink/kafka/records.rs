//! A record batch (magic 2): one record per message, with the sequences that make it exactly once.

use std::io;

use super::wire::Out;
use crate::batch::{Batch, Message};

/// Bytes before those that the checksum is about: offset, length, epoch, magic, checksum.
const CHECKED_FROM: usize = 21;
const ZSTD: i16 = 4;
const ZSTD_LEVEL: i32 = 1;

/// Who sends, and the number of its first record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Producer {
    pub(super) id: i64,
    pub(super) epoch: i16,
    pub(super) sequence: i32,
}

/// Encodes `batch`, dated `now_ms`: the broker forgets producers by the dates of their records.
pub(super) fn encode(
    batch: &Batch,
    producer: Producer,
    now_ms: i64,
    is_compressed: bool,
) -> io::Result<Vec<u8>> {
    let count = batch.messages.len() as i32;
    let mut out = Out(Vec::with_capacity(256 + batch.bytes.len() / 4));
    out.i64(0).i32(0).i32(-1).i8(2).i32(0);
    out.i16(if is_compressed { ZSTD } else { 0 }).i32(count - 1);
    out.i64(now_ms).i64(now_ms);
    out.i64(producer.id)
        .i16(producer.epoch)
        .i32(producer.sequence);
    out.i32(count);
    let mut records = Vec::with_capacity(batch.bytes.len() + batch.messages.len() * 128);
    let mut body = Vec::new();
    let series = batch.series.to_string();
    for (number, message) in batch.messages.iter().enumerate() {
        body.clear();
        record(batch, message, number as i64, &series, &mut body);
        varint(body.len() as i64, &mut records);
        records.extend_from_slice(&body);
    }
    match is_compressed {
        true => {
            let packed = zstd::bulk::compress(&records, ZSTD_LEVEL)?;
            out.0.extend_from_slice(&packed);
        }
        false => out.0.extend_from_slice(&records),
    }
    let length = (out.0.len() - 12) as i32;
    out.0[8..12].copy_from_slice(&length.to_be_bytes());
    let sum = crc32c::crc32c(&out.0[CHECKED_FROM..]);
    out.0[CHECKED_FROM - 4..CHECKED_FROM].copy_from_slice(&sum.to_be_bytes());
    Ok(out.0)
}

fn record(batch: &Batch, message: &Message, number: i64, series: &str, out: &mut Vec<u8>) {
    // Attributes, and the time after that of the batch.
    out.push(0);
    varint(0, out);
    varint(number, out);
    bytes(batch.host.as_bytes(), out);
    bytes(batch.body(message), out);
    let is_filtered = message.filtered > 0;
    let has_events = message.events != 1;
    varint(5 + i64::from(is_filtered) + i64::from(has_events), out);
    let mut header = |name: &str, value: &str| {
        bytes(name.as_bytes(), out);
        bytes(value.as_bytes(), out);
    };
    header("series", series);
    header("kind", message.kind.name());
    header("from", &message.from.to_string());
    header("to", &message.to.to_string());
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
