//! Output of `-h`.

use std::io::{self, Write};

/// Prints the options.
pub(super) fn print() -> io::Result<()> {
    io::stdout().lock().write_all(cli::ctl::USAGE.as_bytes())
}
