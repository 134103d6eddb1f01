//! `tarsier cat`: prints log files of any form as text.

use anyhow::{Context, Result};
use cli::{CatArgs, CatFormat};
use journal::compact::{self, TimeRange};
use journal::read::raw_line;
use record::text::SEPARATOR;
use record::without_controls;
use std::io::{self, BufRead, BufReader, BufWriter, IsTerminal, Read, Write};

/// Prints the files in order.
pub(crate) fn cat(args: &CatArgs) -> Result<u8> {
    let range = TimeRange {
        since_s: args.since.unwrap_or(0),
        until_s: args.until.unwrap_or(u32::MAX),
    };
    let stdout = io::stdout().lock();
    let is_shown = stdout.is_terminal();
    let mut out = BufWriter::with_capacity(1 << 17, stdout);

    for file in &args.files {
        let files = if args.rotated {
            journal::log_files(file).with_context(|| file.display().to_string())?
        } else {
            vec![file.clone()]
        };
        for file in files {
            let name = || file.display().to_string();
            let text = compact::open(&file, range).with_context(name)?;
            let copied = match args.format {
                CatFormat::Enriched if is_shown => copy_lines(text, &mut out, show),
                CatFormat::Enriched => copy(text, &mut out),
                CatFormat::Raw if is_shown => {
                    copy_lines(text, &mut out, |line, out| show(raw_line(line), out))
                }
                CatFormat::Raw => copy_lines(text, &mut out, |line, out| {
                    out.extend_from_slice(raw_line(line));
                }),
            };
            copied.with_context(name)?;
        }
    }

    out.flush()?;

    Ok(0)
}

fn copy(mut text: Box<dyn Read>, out: &mut impl Write) -> io::Result<()> {
    io::copy(&mut text, out).map(drop)
}

/// Copies lines as `write` writes each without its newline.
fn copy_lines(
    text: impl Read,
    out: &mut impl Write,
    write: impl Fn(&[u8], &mut Vec<u8>),
) -> io::Result<()> {
    let mut text = BufReader::with_capacity(1 << 17, text);
    let (mut line, mut written) = (Vec::new(), Vec::new());
    while text.read_until(b'\n', &mut line)? > 0 {
        let whole = line.strip_suffix(b"\n");
        write(whole.unwrap_or(&line), &mut written);
        if whole.is_some() {
            written.push(b'\n');
        }
        out.write_all(&written)?;
        line.clear();
        written.clear();
    }

    Ok(())
}

/// A line for a terminal: logs of auditd hold control characters as their senders sent them.
fn show(line: &[u8], out: &mut Vec<u8>) {
    without_controls(out, line, &[SEPARATOR]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_for_a_terminal_hold_no_controls() {
        let text: &[u8] = b"type=USER msg='\x1b]0;x\x07\xc2\x9b'\x1dUID=\"root\"\nlast";
        let mut out = Vec::new();
        copy_lines(text, &mut out, show).expect("copied");
        let expected = b"type=USER msg='\\033]0;x\\007\\302\\233'\x1dUID=\"root\"\nlast";
        assert_eq!(out, expected);
    }
}
