//! Reads record batches (magic 2) as a broker returns them.

use std::io::Read;

use super::wire::{Garbage, In};

/// Bytes of a batch before what its length counts: offset and length.
const LENGTH_END: usize = 12;
/// Bytes of a batch before those that the checksum covers.
const CHECKED_FROM: usize = 21;
const MAGIC: i8 = 2;
/// Bits of the attributes that name the compression.
const COMPRESSION: i16 = 7;
/// Attribute of a batch that a broker wrote to mark the end of a transaction.
const CONTROL: i16 = 0x20;
/// Largest size of a batch's records, decompressed, in bytes: four times the largest event.
const RECORDS_BYTES_MAX: u64 = 64 << 20;

/// Reason why batches cannot be read.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum DecodeError {
    #[error(transparent)]
    Garbage(#[from] Garbage),
    #[error("its checksum is wrong: it is damaged in the broker's storage or on the way")]
    Checksum,
    #[error(
        "its format is {0}, not 2, which Kafka has written since 0.11; no tarsier-forward wrote it"
    )]
    Magic(i8),
    #[error("it is compressed with {0}; set the topic's compression.type to producer")]
    Compression(&'static str),
    #[error("its records cannot be decompressed: {0}")]
    Packed(String),
}

/// A record.
pub(super) struct Record<'a> {
    pub(super) offset: i64,
    pub(super) key: &'a [u8],
    pub(super) body: &'a [u8],
    /// Names and values; what is not UTF-8 is replaced.
    pub(super) headers: Vec<(String, String)>,
}

/// The first batch of an answer.
pub(super) struct StoredBatch<'a> {
    /// The offset behind its last record.
    pub(super) next: i64,
    base: i64,
    attributes: i16,
    count: i32,
    packed: &'a [u8],
}

/// Takes the first batch from `bytes`; `None` if it is not there whole: brokers cut the last one of an answer.
pub(super) fn next_batch<'a>(bytes: &mut &'a [u8]) -> Result<Option<StoredBatch<'a>>, DecodeError> {
    let mut head = In(bytes);
    let (Ok(base), Ok(length)) = (head.i64(), head.i32()) else {
        return Ok(None);
    };

    let length = usize::try_from(length).map_err(|_| Garbage)?;
    let Some((batch, rest)) = bytes.split_at_checked(LENGTH_END + length) else {
        return Ok(None);
    };

    let mut head = In(&batch[LENGTH_END..]);
    head.i32()?;
    let magic = head.i8()?;
    if magic != MAGIC {
        return Err(DecodeError::Magic(magic));
    }

    let sum = head.i32()? as u32;
    let checked = batch.get(CHECKED_FROM..).ok_or(Garbage)?;
    if crc32c::crc32c(checked) != sum {
        return Err(DecodeError::Checksum);
    }

    let (attributes, last) = (head.i16()?, head.i32()?);
    // Two times; producer, epoch and sequence.
    head.skip(16 + 14)?;
    let count = head.i32()?;
    let next = base
        .checked_add(i64::from(last))
        .and_then(|last| last.checked_add(1));
    *bytes = rest;

    Ok(Some(StoredBatch {
        next: next.filter(|next| *next > base).ok_or(Garbage)?,
        base,
        attributes,
        count,
        packed: head.0,
    }))
}

impl StoredBatch<'_> {
    /// Calls `take` for each record of a client.
    pub(super) fn records<E: From<DecodeError>>(
        &self,
        mut take: impl FnMut(Record<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.attributes & CONTROL != 0 {
            return Ok(());
        }
        let records = self.unpacked()?;
        let mut rest = In(&records);
        for _ in 0..self.count {
            let record = rest.varbytes().map_err(DecodeError::from)?;
            take(read_record(record, self.base)?)?;
        }
        Ok(())
    }

    fn unpacked(&self) -> Result<Vec<u8>, DecodeError> {
        let packed = self.packed;
        let failed = |error: std::io::Error| DecodeError::Packed(error.to_string());
        match self.attributes & COMPRESSION {
            0 => Ok(packed.to_vec()),
            1 => bounded(flate2::read::GzDecoder::new(packed)),
            2 => Err(DecodeError::Compression("snappy")),
            3 => Err(DecodeError::Compression("lz4")),
            4 => bounded(zstd::stream::read::Decoder::new(packed).map_err(failed)?),
            _ => Err(Garbage.into()),
        }
    }
}

/// Reads `bytes` as batches, and as records in each compression, for fuzzing: a checksum keeps nearly all damaged
/// batches from being read further.
pub(super) fn decode(bytes: &[u8]) {
    let mut rest = bytes;
    while let Ok(Some(batch)) = next_batch(&mut rest) {
        let _ = batch.records(|_| Ok::<(), DecodeError>(()));
    }

    for attributes in 0..=COMPRESSION {
        let batch = StoredBatch {
            next: 1,
            base: 0,
            attributes,
            count: i32::MAX,
            packed: bytes,
        };
        let _ = batch.records(|_| Ok::<(), DecodeError>(()));
    }
}

/// Reads to the end, unless that is too far.
fn bounded(reader: impl Read) -> Result<Vec<u8>, DecodeError> {
    let mut out = Vec::new();
    let read = reader.take(RECORDS_BYTES_MAX + 1).read_to_end(&mut out);
    match read {
        Ok(length) if length as u64 <= RECORDS_BYTES_MAX => Ok(out),
        Ok(_) => Err(DecodeError::Packed(format!(
            "they are longer than {} MiB",
            RECORDS_BYTES_MAX >> 20
        ))),
        Err(error) => Err(DecodeError::Packed(error.to_string())),
    }
}

fn read_record(bytes: &[u8], base: i64) -> Result<Record<'_>, DecodeError> {
    let mut record = In(bytes);
    // Attributes, of which there are none, and the time.
    record.skip(1)?;
    record.varint()?;
    let offset = base.checked_add(record.varint()?).ok_or(Garbage)?;
    let (key, body) = (record.varbytes()?, record.varbytes()?);
    let mut headers = Vec::new();
    for _ in 0..record.varint()? {
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        headers.push((text(record.varbytes()?), text(record.varbytes()?)));
    }

    Ok(Record {
        offset,
        key,
        body,
        headers,
    })
}

#[cfg(test)]
mod tests {
    use super::super::records::{Encoder, Producer};
    use super::*;
    use crate::batch::{Batch, Kind, Message};
    use crate::position::{Position, Series};

    fn encoded(is_compressed: bool) -> Vec<u8> {
        let at = |offset| Position {
            file: 1,
            offset,
            seal: 0,
        };
        let message = |kind, events, body: (usize, usize)| Message {
            kind,
            from: at(body.0 as u64),
            to: at(body.1 as u64),
            events,
            filtered: events - 1,
            time_ms: 0,
            body,
        };
        let batch = Batch {
            series: Series(0xa1),
            host: "web1".into(),
            content_type: "text/plain",
            messages: vec![
                message(Kind::Event, 1, (0, 3)),
                message(Kind::Gap, 7, (3, 6)),
            ],
            bytes: b"onetwo".to_vec(),
        };
        let producer = Producer {
            id: 1,
            epoch: 0,
            sequence: 0,
        };
        let encoder = Encoder::new(is_compressed);
        encoder
            .and_then(|mut encoder| encoder.encode(&batch, producer, 1))
            .expect("a batch")
    }

    /// Offset, key, body and header `to` of each record.
    fn decoded(bytes: &[u8]) -> Result<Vec<(i64, String, String, String)>, DecodeError> {
        let mut all = Vec::new();
        let mut rest = bytes;
        while let Some(batch) = next_batch(&mut rest)? {
            batch.records(|record| {
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                let to = record.headers.iter().find(|(name, _)| name == "to");
                let to = to.map_or_else(String::new, |(_, value)| value.clone());
                all.push((record.offset, text(record.key), text(record.body), to));
                Ok::<(), DecodeError>(())
            })?;
        }
        Ok(all)
    }

    #[test]
    fn what_the_sink_encodes_is_read() {
        for is_compressed in [false, true] {
            let bytes = encoded(is_compressed);
            let both = [&bytes[..], &bytes[..bytes.len() - 1]].concat();
            let record = |offset, body: &str, to: &str| {
                (offset, "web1".to_owned(), body.to_owned(), to.to_owned())
            };
            let expected = vec![record(0, "one", "1/3/0"), record(1, "two", "1/6/0")];
            assert_eq!(decoded(&both), Ok(expected));
        }
    }

    #[test]
    fn no_change_of_a_byte_goes_unseen() {
        for is_compressed in [false, true] {
            let bytes = encoded(is_compressed);
            // Offset and epoch are the broker's own, and not covered; a changed length cuts or garbles the batch.
            for at in LENGTH_END + 4..bytes.len() {
                let mut changed = bytes.clone();
                changed[at] ^= 0x41;
                assert!(decoded(&changed).is_err(), "byte {at}");
            }
            for length in 0..bytes.len() {
                assert_eq!(decoded(&bytes[..length]), Ok(Vec::new()));
            }
        }
    }
}
