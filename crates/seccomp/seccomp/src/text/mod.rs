//! Filters as text and bytes: reads the usual forms, and writes the forms that tools take.

mod asm;
mod listing;
mod numbers;

pub use asm::{assemble, to_asm};
pub use listing::{listing, listing_line};
pub use numbers::{chain_to_hex, from_c_array, from_decimal, from_hex, to_c_array, to_hex};

use crate::validate::Invalid;
use crate::{Chain, Filter};

/// Text that is not a filter.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TextError {
    /// The text cannot be parsed.
    #[error("line {line}, column {column}: {found}; {expected}")]
    Syntax {
        /// Line, from 1.
        line: usize,
        /// Column in characters, from 1.
        column: usize,
        /// Description of the text found there.
        found: String,
        /// Description of the text expected there.
        expected: &'static str,
    },
    /// The text was parsed, but the kernel would refuse the program.
    #[error(transparent)]
    Invalid(#[from] Invalid),
}

impl TextError {
    pub(crate) fn at(line: usize, column: usize, found: String, expected: &'static str) -> Self {
        TextError::Syntax {
            line,
            column,
            found,
            expected,
        }
    }
}

/// Reads a filter in any form that this module writes: hex digits, a C array of `struct
/// sock_filter`, `bpf_asm` text, or raw bytes; or decimal numbers, as `tcpdump -ddd` writes them.
///
/// # Errors
/// The position and what was expected there, or the kernel's rule that the program breaks.
pub fn read(bytes: &[u8]) -> Result<Filter, TextError> {
    match text_of(bytes) {
        None => Ok(Filter::from_bytes(bytes)?),
        Some(text) if text.contains('{') => from_c_array(text),
        Some(text) if numbers::is_decimal(text) => from_decimal(text),
        Some(text) if is_hex(text) => from_hex(text),
        Some(text) => assemble(text),
    }
}

/// Reads a chain, oldest filter first: hex digits with an empty line between filters, or one filter
/// in any form that [`read`] takes.
///
/// # Errors
/// The errors of [`read`].
pub fn read_chain(bytes: &[u8]) -> Result<Chain, TextError> {
    match text_of(bytes) {
        Some(text) if is_hex(text) && !numbers::is_decimal(text) => numbers::chain_from_hex(text),
        _ => read(bytes).map(Chain::from),
    }
}

/// The bytes as text, unless they are a binary program, which contains zero bytes.
fn text_of(bytes: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(bytes).ok()?;
    let binary = text.chars().any(|c| c.is_control() && !c.is_whitespace());
    (!binary).then_some(text)
}

fn is_hex(text: &str) -> bool {
    text.chars()
        .all(|c| c.is_ascii_hexdigit() || c.is_whitespace())
}
