//! `-h`.

use std::io::{self, Write};

/// Prints which options there are.
pub(super) fn print() -> io::Result<()> {
    io::stdout().lock().write_all(cli::ctl::USAGE.as_bytes())
}
