//! The kernel's symbols, as `/proc/kallsyms` lists them.

use std::fs::File;
use std::io::{self, BufRead, BufReader};

/// One of them.
pub(crate) struct Symbol<'a> {
    /// 0 where the kernel does not tell it (`kernel.kptr_restrict`).
    pub(crate) address: u64,
    /// As nm(1) has it.
    pub(crate) kind: &'a str,
    pub(crate) name: &'a str,
}

/// The list of the running kernel.
pub(crate) fn of_this_kernel() -> io::Result<impl BufRead> {
    File::open("/proc/kallsyms").map(BufReader::new)
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
