//! `tarsier cat`: prints log files of any form as text.

use anyhow::{Context, Result};
use cli::{CatArgs, CatFormat};
use journal::compact::{self, TimeRange};
use journal::read::raw_line;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};

/// Prints the files in order.
pub(crate) fn cat(args: &CatArgs) -> Result<u8> {
    let range = TimeRange {
        since_s: args.since.unwrap_or(0),
        until_s: args.until.unwrap_or(u32::MAX),
    };
    let mut out = BufWriter::with_capacity(1 << 17, io::stdout().lock());
    for file in &args.files {
        let files = match args.rotated {
            true => journal::log_files(file).with_context(|| file.display().to_string())?,
            false => vec![file.clone()],
        };
        for file in files {
            let name = || file.display().to_string();
            let text = compact::open(&file, range).with_context(name)?;
            match args.format {
                CatFormat::Enriched => copy(text, &mut out).with_context(name)?,
                CatFormat::Raw => copy_raw(text, &mut out).with_context(name)?,
            }
        }
    }
    out.flush()?;
    Ok(0)
}

fn copy(mut text: Box<dyn Read>, out: &mut impl Write) -> io::Result<()> {
    io::copy(&mut text, out).map(drop)
}

/// Copies lines without the names that ENRICHED adds.
fn copy_raw(text: Box<dyn Read>, out: &mut impl Write) -> io::Result<()> {
    let mut text = BufReader::with_capacity(1 << 17, text);
    let mut line = Vec::new();
    while text.read_until(b'\n', &mut line)? > 0 {
        out.write_all(raw_line(&line))?;
        if line.ends_with(b"\n") {
            out.write_all(b"\n")?;
        }
        line.clear();
    }
    Ok(())
}
