//! `tarsier seccomp compile`: one filter of a profile.

use super::{log_reader, source};
use anyhow::{Context, Result};
use cli::seccomp::{CompileArgs, Format};
use seccomp::compile::Frequencies;
use seccomp::text;
use seccomp::Filter;
use std::io::Write;

/// Prints the filter, or writes it to a file.
pub(super) fn compile(args: &CompileArgs) -> Result<u8> {
    let context = source::context(&args.with)?;
    let policy = source::policy(&args.source, &context)?;
    let frequencies = match &args.weights {
        Some(log) => log_reader::frequencies(log)?,
        None => Frequencies::usual(),
    };
    let filter = seccomp::compile::compile(&policy, &frequencies)
        .with_context(|| args.source.display().to_string())?;
    let bytes = render(&filter, args.format);
    match &args.output {
        Some(path) => std::fs::write(path, bytes)
            .map_err(|error| anyhow::anyhow!("cannot write {}: {error}", path.display()))?,
        None => std::io::stdout().lock().write_all(&bytes)?,
    }

    Ok(0)
}

/// The bytes of a filter in a format.
pub(super) fn render(filter: &Filter, format: Format) -> Vec<u8> {
    match format {
        Format::Listing => text::listing(filter).into_bytes(),
        Format::Raw => filter.to_bytes(),
        Format::C => text::to_c_array(filter).into_bytes(),
        Format::Hex => text::to_hex(filter).into_bytes(),
        Format::Asm => text::to_asm(filter).into_bytes(),
    }
}
