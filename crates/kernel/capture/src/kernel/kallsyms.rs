//! The kernel's symbols, as `/proc/kallsyms` lists them.

use crate::kernel::kernel_btf;
use crate::kernel::symbol_names::is_of_interest;
use crate::own_programs::own_programs;
use libbpf_rs::{Iter, ObjectBuilder};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::sync::OnceLock;

/// A symbol of the kernel.
pub(crate) struct Symbol<'a> {
    /// 0 if the kernel does not reveal it (`kernel.kptr_restrict`).
    pub(crate) address: u64,
    /// The letter that nm(1) uses.
    pub(crate) kind: &'a str,
    pub(crate) name: &'a str,
}

/// Length of a line before the name, in bytes: the address and the kind, each followed by a space.
const BEFORE_NAME: usize = 19;

/// The kernel's function that stands for its iterator over symbols, since Linux 6.0.
const ITERATOR: &str = "bpf_iter_ksym";

/// The lines of the running kernel's list that this crate needs. The list is read once, since the kernel computes
/// each of its many lines; those that the iterator passes over, only in part.
pub(crate) fn of_this_kernel() -> io::Result<impl BufRead> {
    static LINES: OnceLock<Vec<u8>> = OnceLock::new();
    if let Some(lines) = LINES.get() {
        return Ok(lines.as_slice());
    }
    let lines = match iterated() {
        Some(text) => of_interest(text.as_slice())?,
        None => of_interest(File::open("/proc/kallsyms").map(BufReader::new)?)?,
    };
    Ok(LINES.get_or_init(|| lines).as_slice())
}

/// Lines of the kernel's own symbols, by its iterator; `None` if it has none, or does not let this process use it.
fn iterated() -> Option<Vec<u8>> {
    let types = kernel_btf::of_this_kernel()?;
    if !rustix::process::geteuid().is_root() || !types.functions().contains_key(ITERATOR) {
        return None;
    }
    bpf::load::keep_libbpf_quiet();
    let open = ObjectBuilder::default().open_memory(bpf::KSYM_ITER).ok()?;
    let object = own_programs().of(|| open.load()).ok()?;
    let link = object.progs_mut().next()?.attach().ok()?;
    let mut text = Vec::new();
    Iter::new(&link).ok()?.read_to_end(&mut text).ok()?;
    (!text.is_empty()).then_some(text)
}

fn of_interest(mut text: impl BufRead) -> io::Result<Vec<u8>> {
    let (mut line, mut lines) = (Vec::new(), Vec::new());
    while text.read_until(b'\n', &mut line)? > 0 {
        // Symbols of modules have the module behind the name, and are of no interest.
        let name = line.get(BEFORE_NAME..).unwrap_or_default().trim_ascii_end();
        // Most names begin with other letters.
        let may_be = matches!(
            name,
            [b'_' | b'i' | b'r', ..] | [b's', b'e', b'l' | b'c', ..]
        );
        if may_be && std::str::from_utf8(name).is_ok_and(is_of_interest) {
            lines.extend_from_slice(&line);
        }
        line.clear();
    }
    Ok(lines)
}

/// Calls `take` for each symbol of the kernel itself. Lines have the form `address type name`, followed by the
/// module if the symbol belongs to one.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_names_are_compared_without_the_end_of_the_line() {
        let text = "\
ffffffff81000010 d read_class
ffffffff81000020 D selinux_state
ffffffff81000030 t selinux_inode_init
ffffffff81000040 d read_classes
ffffffff81000050 d read_class\t[module]
";
        let lines = of_interest(text.as_bytes()).unwrap();
        let mut names = Vec::new();
        each(lines.as_slice(), |symbol| {
            names.push(symbol.name.to_owned())
        })
        .unwrap();
        assert_eq!(names, ["read_class", "selinux_state"]);
    }

    #[test]
    fn the_iterator_lists_what_the_file_lists() {
        let Some(text) = iterated() else {
            println!("skipped: the kernel's iterator over symbols: not there, or not allowed");
            return;
        };
        let names = |lines: Vec<u8>| {
            let mut symbols = Vec::new();
            let take = |Symbol {
                            address,
                            kind,
                            name,
                        }: Symbol<'_>| {
                symbols.push((address, kind.to_owned(), name.to_owned()));
            };
            each(lines.as_slice(), take).unwrap();
            symbols
        };
        let file = File::open("/proc/kallsyms").map(BufReader::new).unwrap();
        let expected = names(of_interest(file).unwrap());
        assert!(!expected.is_empty());
        assert_eq!(names(of_interest(text.as_slice()).unwrap()), expected);
    }
}
