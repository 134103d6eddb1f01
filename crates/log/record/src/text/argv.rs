//! Puts the lines of an EXECVE record together.

use super::{fields, hex_byte, number, unhex};
use crate::record::Execve;

/// The largest argv that is accepted, in bytes. execve itself allows less: a quarter of the stack limit.
const ARGV_BYTES_MAX: usize = 64 << 20;

/// Lines of an EXECVE record that do not fit together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ArgvError {
    /// The argument is not the next one.
    #[error("EXECVE: argument {found} where argument {expected} should continue")]
    Order {
        /// Number of the next argument.
        expected: u64,
        /// Number of the argument found.
        found: u64,
    },
    /// The field with this index is not one of EXECVE records.
    #[error("EXECVE: field {0} of the line is not argc=, aN=, aN_len=, aN[i]= or cut_bytes=")]
    Field(usize),
    /// The value of the field with this index is neither in quotes nor in hex.
    #[error("EXECVE: the value of field {0} is neither in double quotes nor hex")]
    Value(usize),
    /// More arguments or bytes than a process can have.
    #[error("EXECVE: more arguments or bytes than a process can have")]
    TooLong,
}

/// Puts the lines of one EXECVE record together into the form that [`crate::record::Execve`] takes.
#[derive(Debug, Default)]
pub struct ArgvBuilder {
    args: Vec<u8>,
    argc: u64,
    cut_bytes: u64,
    /// Number of complete arguments. `pieces` counts the pieces read of the next one, and `awaited` the characters that
    /// are still missing.
    done: u64,
    pieces: u64,
    awaited: Option<u64>,
}

enum Label {
    Argc,
    CutBytes,
    Whole(u64),
    Length(u64),
    Piece(u64, u64),
}

fn label(name: &[u8]) -> Option<Label> {
    if name == b"argc" {
        return Some(Label::Argc);
    }
    if name == b"cut_bytes" {
        return Some(Label::CutBytes);
    }

    let name = name.strip_prefix(b"a")?;
    if let Some(arg) = name.strip_suffix(b"_len") {
        return number(arg, 10).map(Label::Length);
    }

    if let Some(name) = name.strip_suffix(b"]") {
        let open = name.iter().position(|&byte| byte == b'[')?;
        return Some(Label::Piece(
            number(&name[..open], 10)?,
            number(&name[open + 1..], 10)?,
        ));
    }

    number(name, 10).map(Label::Whole)
}

impl ArgvBuilder {
    /// A builder that has read nothing yet.
    pub fn new() -> ArgvBuilder {
        ArgvBuilder::default()
    }

    /// Forgets what was read, but keeps the allocated memory.
    pub fn clear(&mut self) {
        let mut args = core::mem::take(&mut self.args);
        args.clear();
        *self = ArgvBuilder {
            args,
            ..ArgvBuilder::default()
        };
    }

    /// Reads the body of the next line.
    pub fn push(&mut self, body: &[u8]) -> Result<(), ArgvError> {
        for (place, field) in fields(body).enumerate() {
            if field.name.is_empty() && field.value.is_empty() {
                continue; // blanks at the end
            }
            let value = || number(field.value, 10).ok_or(ArgvError::Value(place));
            match label(field.name).ok_or(ArgvError::Field(place))? {
                Label::Argc => self.argc = value()?,
                Label::CutBytes => self.cut_bytes = value()?,
                Label::Whole(arg) => {
                    self.expect(arg)?;
                    self.bytes(place, field.value)?;
                    self.finish();
                }
                Label::Length(arg) => {
                    self.expect(arg)?;
                    self.awaited = Some(value()?);
                }
                Label::Piece(arg, piece) => self.piece(place, arg, piece, field.value)?,
            }
        }

        Ok(())
    }

    /// Whether all `argc` arguments were read, or the record says that some are missing.
    pub fn is_complete(&self) -> bool {
        self.argc > 0 && (self.done == self.argc || self.cut_bytes > 0)
    }

    /// The record, as far as it was read.
    pub fn record(&self) -> Execve<'_> {
        Execve {
            args: &self.args,
            argc: (self.argc != self.done).then_some(self.argc),
            cut_bytes: self.cut_bytes,
        }
    }

    /// The arguments read so far, each ended by NUL.
    pub fn args(&self) -> &[u8] {
        &self.args
    }

    fn expect(&mut self, arg: u64) -> Result<(), ArgvError> {
        // If the pieces never reach aN_len, which is only an estimate of the kernel, the argument ends at the label of
        // the next one.
        if arg == self.done + 1 && self.pieces > 0 {
            self.finish();
        }

        if arg == self.done {
            Ok(())
        } else {
            Err(ArgvError::Order {
                expected: self.done,
                found: arg,
            })
        }
    }

    fn piece(&mut self, place: usize, arg: u64, piece: u64, value: &[u8]) -> Result<(), ArgvError> {
        if arg != self.done || piece != self.pieces {
            return Err(ArgvError::Order {
                expected: self.done,
                found: arg,
            });
        }

        self.bytes(place, value)?;
        self.pieces += 1;
        let characters = if value.starts_with(b"\"") {
            value.len() - 2
        } else {
            value.len()
        } as u64;

        if let Some(awaited) = self.awaited {
            let awaited = awaited.saturating_sub(characters);
            self.awaited = Some(awaited);
            if awaited == 0 {
                self.finish();
            }
        }

        Ok(())
    }

    fn finish(&mut self) {
        self.args.push(0);
        self.done += 1;
        self.pieces = 0;
        self.awaited = None;
    }

    fn bytes(&mut self, place: usize, value: &[u8]) -> Result<(), ArgvError> {
        if self.args.len() + value.len() > ARGV_BYTES_MAX {
            return Err(ArgvError::TooLong);
        }

        match value {
            [b'"', inner @ .., b'"'] => self.args.extend_from_slice(inner),
            digits
                if digits.len() % 2 == 0
                    && digits.chunks(2).all(|pair| hex_byte(pair).is_some()) =>
            {
                unhex(&mut self.args, digits);
            }
            _ => return Err(ArgvError::Value(place)),
        }

        Ok(())
    }
}
