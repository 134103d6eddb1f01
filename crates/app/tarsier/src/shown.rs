//! Text from a log on standard output. Whoever makes events names files, sockets and programs as he likes; a terminal
//! must not obey these names.

use record::text::SEPARATOR;
use record::without_controls;
use std::io::{self, IsTerminal, Write};

/// Writes `text`, whole lines, to standard output: as it is to a file or pipe, without control characters to a terminal.
pub(crate) fn write(text: &[u8]) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    if !stdout.is_terminal() {
        return stdout.write_all(text);
    }
    crate::progress::hide();
    stdout.write_all(&for_terminal(text))
}

fn for_terminal(text: &[u8]) -> Vec<u8> {
    let mut shown = Vec::with_capacity(text.len());
    without_controls(&mut shown, text, &[b'\n', SEPARATOR]);
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_gets_lines_without_controls() {
        let text = b"name=a\x7fb\xc2\x9b31m\x1b[2J\nnext\x1dUID=\"root\"\n";
        let expected = b"name=a\\177b\\302\\23331m\\033[2J\nnext\x1dUID=\"root\"\n";
        assert_eq!(for_terminal(text), expected);
    }
}
