//! The kernel's symbols, as `/proc/kallsyms` lists them.

use crate::kernel::symbol_names::is_of_interest;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::sync::OnceLock;

/// One of them.
pub(crate) struct Symbol<'a> {
    /// 0 where the kernel does not tell it (`kernel.kptr_restrict`).
    pub(crate) address: u64,
    /// As nm(1) has it.
    pub(crate) kind: &'a str,
    pub(crate) name: &'a str,
}

/// Bytes of a line before the name: the address, the kind, and a space behind each.
const BEFORE_NAME: usize = 19;

/// Of the list of the running kernel the lines that somebody here asks for. It is read once: the kernel works for
/// each line, and there are many.
pub(crate) fn of_this_kernel() -> io::Result<impl BufRead> {
    static LINES: OnceLock<Vec<u8>> = OnceLock::new();
    if let Some(lines) = LINES.get() {
        return Ok(lines.as_slice());
    }
    let lines = of_interest(File::open("/proc/kallsyms").map(BufReader::new)?)?;
    Ok(LINES.get_or_init(|| lines).as_slice())
}

fn of_interest(mut text: impl BufRead) -> io::Result<Vec<u8>> {
    let (mut line, mut lines) = (Vec::new(), Vec::new());
    while text.read_until(b'\n', &mut line)? > 0 {
        let name = line.get(BEFORE_NAME..).unwrap_or_default();
        // Most begin otherwise.
        let may_be = matches!(name.first(), Some(b'_' | b'i' | b'r'));
        if may_be && std::str::from_utf8(name).is_ok_and(is_of_interest) {
            lines.extend_from_slice(&line);
        }
        line.clear();
    }
    Ok(lines)
}

/// Gives `take` each symbol of the kernel itself. Lines are `address type name`, with the module behind it if it
/// is a module's.
pub(crate) fn each(mut text: impl BufRead, mut take: impl FnMut(Symbol<'_>)) -> io::Result<()> {
    let mut line = String::new();
    while text.read_line(&mut line)? > 0 {
        let mut words = line.split_ascii_whitespace();
        let found = (words.next(), words.next(), words.next());
        if let ((Some(address), Some(kind), Some(name)), None) = (found, words.next()) {
            if let Ok(address) = u64::from_str_radix(address, 16) {
                take(Symbol {
                    address,
                    kind,
                    name,
                });
            }
        }
        line.clear();
    }
    Ok(())
}
