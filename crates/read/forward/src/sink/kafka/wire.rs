//! Kafka's wire form: requests and answers in the versions before tagged fields.
//!
//! Source: the protocol guide of Apache Kafka. Versions are those that 2.1 to 4.x all accept.

use std::io::{self, Read, Write};

/// Largest answer that is read, in bytes.
const ANSWER_BYTES_MAX: usize = 8 << 20;
/// Largest answer with stored batches, in bytes: brokers send a batch whole, however few bytes were asked for.
const FETCHED_BYTES_MAX: usize = 80 << 20;

/// Request keys and the versions used.
pub(super) mod api {
    pub(in super::super) const PRODUCE: (i16, i16) = (0, 7);
    /// The first version that returns batches in zstd.
    pub(in super::super) const FETCH: (i16, i16) = (1, 10);
    pub(in super::super) const LIST_OFFSETS: (i16, i16) = (2, 1);
    pub(in super::super) const METADATA: (i16, i16) = (3, 5);
    pub(in super::super) const SASL_HANDSHAKE: (i16, i16) = (17, 1);
    pub(in super::super) const INIT_PRODUCER_ID: (i16, i16) = (22, 1);
    pub(in super::super) const SASL_AUTHENTICATE: (i16, i16) = (36, 1);
}

/// A request's body.
#[derive(Default)]
pub(super) struct Out(pub(super) Vec<u8>);

impl Out {
    pub(super) fn i8(&mut self, value: i8) -> &mut Out {
        self.0.push(value as u8);
        self
    }

    pub(super) fn i16(&mut self, value: i16) -> &mut Out {
        self.0.extend_from_slice(&value.to_be_bytes());
        self
    }

    pub(super) fn i32(&mut self, value: i32) -> &mut Out {
        self.0.extend_from_slice(&value.to_be_bytes());
        self
    }

    pub(super) fn i64(&mut self, value: i64) -> &mut Out {
        self.0.extend_from_slice(&value.to_be_bytes());
        self
    }

    pub(super) fn text(&mut self, value: &str) -> &mut Out {
        self.i16(value.len().min(i16::MAX as usize) as i16);
        self.0.extend_from_slice(value.as_bytes());
        self
    }

    pub(super) fn bytes(&mut self, value: &[u8]) -> &mut Out {
        self.i32(value.len() as i32);
        self.0.extend_from_slice(value);
        self
    }
}

/// An answer that is not of the protocol's form.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the answer is not of Kafka's protocol; check `server`, and whether the listener uses TLS (`tls`)")]
pub(super) struct Garbage;

/// Reads an answer.
pub(super) struct In<'a>(pub(super) &'a [u8]);

impl<'a> In<'a> {
    pub(super) fn take(&mut self, count: usize) -> Result<&'a [u8], Garbage> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(Garbage)?;
        self.0 = rest;
        Ok(taken)
    }

    pub(super) fn i8(&mut self) -> Result<i8, Garbage> {
        Ok(i8::from_be_bytes(
            self.take(1)?.try_into().map_err(|_| Garbage)?,
        ))
    }

    pub(super) fn i16(&mut self) -> Result<i16, Garbage> {
        Ok(i16::from_be_bytes(
            self.take(2)?.try_into().map_err(|_| Garbage)?,
        ))
    }

    pub(super) fn i32(&mut self) -> Result<i32, Garbage> {
        Ok(i32::from_be_bytes(
            self.take(4)?.try_into().map_err(|_| Garbage)?,
        ))
    }

    pub(super) fn i64(&mut self) -> Result<i64, Garbage> {
        Ok(i64::from_be_bytes(
            self.take(8)?.try_into().map_err(|_| Garbage)?,
        ))
    }

    /// A number in zigzag form, seven bits a byte.
    pub(super) fn varint(&mut self) -> Result<i64, Garbage> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.i8()? as u8;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok((value >> 1) as i64 ^ -((value & 1) as i64));
            }
        }
        Err(Garbage)
    }

    /// Bytes after their length as a [`In::varint`]; none if they are null.
    pub(super) fn varbytes(&mut self) -> Result<&'a [u8], Garbage> {
        match self.varint()? {
            -1 => Ok(&[]),
            length => self.take(usize::try_from(length).map_err(|_| Garbage)?),
        }
    }

    pub(super) fn skip(&mut self, count: usize) -> Result<(), Garbage> {
        self.take(count).map(|_| ())
    }

    /// A number of elements, which cannot exceed the bytes that are left.
    pub(super) fn count(&mut self) -> Result<usize, Garbage> {
        match self.i32()? {
            -1 => Ok(0),
            count => usize::try_from(count)
                .ok()
                .filter(|count| *count <= self.0.len())
                .ok_or(Garbage),
        }
    }

    /// Text; empty if it is null.
    pub(super) fn text(&mut self) -> Result<&'a str, Garbage> {
        match self.i16()? {
            -1 => Ok(""),
            length => {
                let length = usize::try_from(length).map_err(|_| Garbage)?;
                std::str::from_utf8(self.take(length)?).map_err(|_| Garbage)
            }
        }
    }

    pub(super) fn bytes(&mut self) -> Result<&'a [u8], Garbage> {
        match self.i32()? {
            -1 => Ok(&[]),
            length => self.take(usize::try_from(length).map_err(|_| Garbage)?),
        }
    }
}

/// Sends a request and waits for its answer.
pub(super) fn ask(
    stream: &mut (impl Read + Write),
    (key, version): (i16, i16),
    correlation: i32,
    body: &[u8],
) -> io::Result<Vec<u8>> {
    let mut head = Out::default();
    head.i32(0).i16(key).i16(version).i32(correlation);
    head.text("tarsier-forward");
    let length = (head.0.len() - 4 + body.len()) as i32;
    head.0[..4].copy_from_slice(&length.to_be_bytes());
    stream.write_all(&head.0)?;
    stream.write_all(body)?;
    stream.flush()?;

    let mut start = [0; 8];
    stream.read_exact(&mut start)?;
    let garbage = || io::Error::new(io::ErrorKind::InvalidData, Garbage);
    let bytes_max = match (key, version) {
        api::FETCH => FETCHED_BYTES_MAX,
        _ => ANSWER_BYTES_MAX,
    };
    let length = i32::from_be_bytes([start[0], start[1], start[2], start[3]]);
    let length = usize::try_from(length)
        .ok()
        .and_then(|length| length.checked_sub(4))
        .filter(|length| *length <= bytes_max)
        .ok_or_else(garbage)?;
    if start[4..] != correlation.to_be_bytes() {
        return Err(garbage());
    }

    let mut answer = vec![0; length];
    stream.read_exact(&mut answer)?;
    Ok(answer)
}
