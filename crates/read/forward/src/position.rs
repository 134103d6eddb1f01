//! Positions in the log of a host: series, file, and bytes of the file and of its seal.

use std::fmt;
use std::str::FromStr;

/// Identifies one spool, and thereby one numbering of log files. A spool that is lost begins a new
/// series, so that no position is ever used for two places.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Series(pub u64);

impl fmt::Display for Series {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl FromStr for Series {
    type Err = BadPosition;

    fn from_str(text: &str) -> Result<Series, BadPosition> {
        if text.len() != 16 {
            return Err(BadPosition(text.into()));
        }
        u64::from_str_radix(text, 16)
            .map(Series)
            .map_err(|_| BadPosition(text.into()))
    }
}

/// A place in a series. Everything before it is everything in files with a smaller number, the
/// first `offset` bytes of file `file`, and the first `seal` bytes of its seal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Position {
    /// Number of the log file in its series, from 1.
    pub file: u64,
    /// Bytes of the file.
    pub offset: u64,
    /// Bytes of the file's seal.
    pub seal: u64,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.file, self.offset, self.seal)
    }
}

/// A text is no position.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no position; expected FILE/BYTE/SEALBYTE, such as 3/18220/0")]
pub struct BadPosition(pub String);

impl FromStr for Position {
    type Err = BadPosition;

    fn from_str(text: &str) -> Result<Position, BadPosition> {
        let mut parts = text.split('/').map(|part| part.parse::<u64>().ok());
        match (parts.next(), parts.next(), parts.next(), parts.next()) {
            (Some(Some(file)), Some(Some(offset)), Some(Some(seal)), None) => {
                Ok(Position { file, offset, seal })
            }
            _ => Err(BadPosition(text.into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_read_as_they_are_written() {
        let position = Position {
            file: 3,
            offset: 18_220,
            seal: 96,
        };
        assert_eq!(position.to_string().parse(), Ok(position));
        assert_eq!(Series(0xabc).to_string().parse(), Ok(Series(0xabc)));
        for text in ["", "1/2", "1/2/3/4", "a/b/c", "-1/0/0"] {
            assert!(text.parse::<Position>().is_err(), "{text:?}");
        }
        assert!("12".parse::<Series>().is_err());
    }
}
