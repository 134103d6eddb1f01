//! Messages between the daemon and its helpers, as bytes: the version of the format, then the message in the encoding of
//! `postcard`.
//!
//! Both ends are parts of one program, but an upgraded one may meet the daemon from before: so the version comes first,
//! and [`FrameError::OtherVersion`] says what to do. Hostile bytes are refused: each message has exactly one encoding.

use serde::{Deserialize, Serialize};
use std::io;

/// Version of the format. Raise it with each change of a message.
const VERSION: u8 = 1;

/// Bytes that are no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The other end is of another version of this program.
    #[error(
        "the other process is of another version of tarsier (its messages have version {0}, not {VERSION}): \
         restart tarsier"
    )]
    OtherVersion(u8),
    /// The bytes are not what a process of this version sends.
    #[error("not a message between processes of tarsier")]
    Malformed,
}

impl From<FrameError> for io::Error {
    fn from(error: FrameError) -> io::Error {
        io::Error::new(io::ErrorKind::InvalidData, error)
    }
}

/// Writes a message into `out`, in place of what is there.
///
/// # Errors
/// A path in the message is not UTF-8.
pub fn put<T: Serialize>(message: &T, out: &mut Vec<u8>) -> io::Result<()> {
    out.clear();
    out.push(VERSION);
    let written = postcard::to_extend(message, std::mem::take(out));
    *out = written.map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
    Ok(())
}

/// A message as bytes.
///
/// # Errors
/// As for [`put`].
pub(crate) fn to_vec<T: Serialize>(message: &T) -> io::Result<Vec<u8>> {
    let mut out = Vec::new();
    put(message, &mut out)?;
    Ok(out)
}

/// The message in `bytes`.
///
/// # Errors
/// The bytes are not exactly what [`put`] writes.
pub fn parse<'a, T: Serialize + Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, FrameError> {
    let (&version, body) = bytes.split_first().ok_or(FrameError::Malformed)?;
    if version != VERSION {
        return Err(FrameError::OtherVersion(version));
    }

    let (message, rest) =
        postcard::take_from_bytes::<T>(body).map_err(|_| FrameError::Malformed)?;

    // Numbers may be written with more bytes than they need, but only the shortest form is what `put` writes.
    let shortest = postcard::ser_flavors::Size::default();
    let len = postcard::serialize_with_flavor(&message, shortest);
    if rest.is_empty() && len == Ok(body.len()) {
        Ok(message)
    } else {
        Err(FrameError::Malformed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_bytes_that_are_written_are_taken() {
        let message = (300_u32, Some(true));
        let bytes = to_vec(&message).expect("numbers have an encoding");
        assert_eq!(bytes, [VERSION, 0xac, 2, 1, 1]);
        assert_eq!(parse(&bytes), Ok(message));
        for wrong in [
            &[][..],
            &[VERSION],
            &bytes[..bytes.len() - 1],
            &[&bytes[..], &[0]].concat(),
            // 300 in three bytes, and a bool that is neither.
            &[VERSION, 0xac, 0x82, 0, 1, 1],
            &[VERSION, 0xac, 2, 1, 2],
        ] {
            let parsed = parse::<(u32, Option<bool>)>(wrong);
            assert_eq!(parsed, Err(FrameError::Malformed), "{wrong:?}");
        }
    }

    #[test]
    fn a_message_of_another_version_says_what_to_do() {
        let error = parse::<u32>(b"{\"Plugin\":").expect_err("JSON");
        assert_eq!(error, FrameError::OtherVersion(b'{'));
        assert!(io::Error::from(error)
            .to_string()
            .ends_with("restart tarsier"));
    }
}
