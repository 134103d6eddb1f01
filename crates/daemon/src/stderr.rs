//! Messages on standard error, whose reader may be gone: `eprintln!` would then panic and end the
//! daemon, and recording is more important than messages.

use std::fmt;
use std::io::Write;

/// Prints a line on standard error, formatted as by `format!`. Errors are ignored.
#[macro_export]
macro_rules! say {
    ($($text:tt)*) => {
        $crate::stderr::line(::std::format_args!($($text)*))
    };
}
pub use say;

/// Writes the line in one write(2), so that it is not mixed with the output of others.
pub fn line(text: fmt::Arguments<'_>) {
    let _ = std::io::stderr().write_all(format!("{text}\n").as_bytes());
}
