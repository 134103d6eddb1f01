//! `tarsier-export`: logs → a Parquet table with a row for each event.

mod input;
mod row;
mod table;
#[cfg(test)]
mod tests;

use anyhow::{Context, Result};
use clap::Parser;
use cli::export::{ExportArgs, ExportCli};
use input::Stream;
use query::TimeRange;
use std::fs::{File, OpenOptions};
use std::io::BufWriter;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use table::Table;

fn main() -> ExitCode {
    match export(&ExportCli::parse().args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tarsier-export: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn export(args: &ExportArgs) -> Result<()> {
    let range = TimeRange {
        start_s: args.since.unwrap_or(0),
        end_s: args.until.unwrap_or(0),
    };
    let mut streams = Vec::new();
    for log in &args.logs {
        streams.extend(Stream::open(log, args.host.as_deref(), range)?);
    }

    let name = || args.output.display().to_string();
    let new = beside(&args.output);
    let file = create(&new).with_context(name)?;
    let written = write(&mut streams, file).and_then(|counts| {
        std::fs::rename(&new, &args.output).with_context(name)?;
        Ok(counts)
    });
    if written.is_err() {
        let _ = std::fs::remove_file(&new);
    }

    let (events, out_of_order) = written?;
    eprintln!("tarsier-export: {events} events in {}", name());
    if out_of_order > 0 {
        eprintln!(
            "tarsier-export: the logs go back in time: {out_of_order} row groups begin before the end of the \
             one before; each of them is sorted"
        );
    }

    Ok(())
}

fn write(streams: &mut [Stream], file: File) -> Result<(u64, u64)> {
    let mut table = Table::new(BufWriter::new(file))?;
    while let Some((number, event)) = input::earliest(streams)? {
        let stream = &mut streams[number];
        table.add(row::Row::of(&event, stream.host.as_deref()))?;
        stream.recycle(event);
    }
    table.finish()
}

fn beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".new{}", std::process::id()));
    PathBuf::from(name)
}

/// Creates a new file for its owner only.
fn create(path: &Path) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600).open(path)
}
