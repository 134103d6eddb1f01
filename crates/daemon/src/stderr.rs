//! What is said on standard error, whose reader may be gone: `eprintln!` would end the daemon with a
//! panic, and recording goes before telling.

use std::fmt;
use std::io::Write;

/// Says a line on standard error, formatted as by `format!`. What cannot be written there is dropped.
#[macro_export]
macro_rules! say {
    ($($text:tt)*) => {
        $crate::stderr::line(::std::format_args!($($text)*))
    };
}
pub use say;

/// Writes the line in one write(2), so that it is not mixed with those of others.
pub fn line(text: fmt::Arguments<'_>) {
    let _ = std::io::stderr().write_all(format!("{text}\n").as_bytes());
}
