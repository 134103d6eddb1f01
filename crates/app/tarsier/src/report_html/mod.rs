//! `tarsier report --html`: a report as one file that opens anywhere without a network.

mod chart;
mod counts;
mod escape;
mod first;
mod options;
mod page;
mod tables;
#[cfg(test)]
mod tests;
mod text;

use crate::progress::Progress;
use crate::seal_command;
use crate::search_command::logs::{self, Input, Source};
use anyhow::{Context, Result};
use cli::messages::{reasons, report};
use cli::VerifyArgs;
use journal::seal::verify::End;
use options::PageOptions;
use page::{About, Seal};
use query::report::NONE_FOUND;
use query::time::{use_environment, Locale};
use query::Dialect;
use rustix::fs::{Mode, OFlags};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Exit status for errors, as of aureport.
const FAILED: u8 = 1;

/// Carries out `args`, the words after `tarsier report`, which have `--html`.
///
/// # Errors
/// A log cannot be read, or the page not written.
pub(crate) fn run(args: Vec<OsString>) -> Result<u8> {
    use_environment(Locale::Texts);
    let mut words = Vec::with_capacity(args.len());
    for word in args {
        let word = word.into_string();
        words.push(word.map_err(|word| anyhow::anyhow!("{}: not UTF-8", word.to_string_lossy()))?);
    }

    let options = match PageOptions::parse(&words) {
        Ok(options) => options,
        Err(message) => {
            report!("{message}");
            return Ok(FAILED);
        }
    };

    let defaults = logs::defaults(Dialect::Own)?;
    let found = Input::find(&options.inputs, options.use_logs, &defaults, Dialect::Own);
    let input = match found {
        Ok(input) => input,
        Err(message) => {
            report!("{message}");
            return Ok(FAILED);
        }
    };
    let progress = Progress::of(&input)?;
    let counted = match counts::in_order(&input, &options, &defaults)? {
        Some(counted) => counted,
        None => match counts::in_any_order(&input, &options, &defaults)? {
            Ok(counted) => counted,
            Err(message) => {
                report!("{message}");
                return Ok(FAILED);
            }
        },
    };

    let about = About {
        logs: input.sources.iter().map(ToString::to_string).collect(),
        seal: seal(&input.sources, options.key.as_deref()),
        made_ms: now_ms(),
    };

    write(
        &options.html,
        &page::page(&counted.summary, &counted.overview.finish(), &about),
    )?;
    if let Some(status) = progress.end() {
        return Ok(status);
    }

    // As the other reports: a page about nothing is no success.
    if counted.summary.count().events == 0 {
        report!("{}", NONE_FOUND.trim_end());
        return Ok(FAILED);
    }
    Ok(0)
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as u64)
}

/// State of the seal of the logs, which `key` verifies.
fn seal(sources: &[Source], key: Option<&Path>) -> Seal {
    let files: Vec<PathBuf> = sources
        .iter()
        .filter_map(|source| match source {
            Source::File(path) => Some(path.clone()),
            Source::Stdin | Source::Member { .. } => None,
        })
        .collect();
    let has_seal = |path: &PathBuf| journal::seal::seal_path(path).exists();

    let Some(key) = key else {
        return if files.iter().any(has_seal) {
            Seal::NotVerified
        } else {
            Seal::Absent
        };
    };

    // The newest file stands for the set if the set was read.
    let logs = match &files[..] {
        [.., last] => vec![last.clone()],
        [] => return Seal::Failed("standard input has no seal".to_owned()),
    };
    let args = VerifyArgs {
        key: Some(key.to_owned()),
        index: false,
        max_age: None,
        json: false,
        logs,
    };

    match seal_command::report(&args) {
        Err(error) => Seal::Failed(reasons(&error)),
        Ok(report) => {
            let until = report.files.iter().filter_map(|file| file.until_ms).max();
            let until = until.map_or_else(|| "an unknown time".to_owned(), text::stamp);
            match (&report.finding, report.end) {
                (Some(finding), _) => Seal::Altered(finding.to_string()),
                (None, End::Open) => Seal::NotClosed(format!(
                    "unaltered up to {until} UTC; what followed may have been cut off"
                )),
                (None, End::InOrder | End::Vouched) => {
                    Seal::Intact(format!("unaltered up to {until} UTC"))
                }
            }
        }
    }
}

/// Writes the page to a new file that takes the place of `path`, for its owner only.
fn write(path: &Path, page: &str) -> Result<()> {
    if path == Path::new("-") {
        return Ok(io::stdout().write_all(page.as_bytes())?);
    }

    let name = || path.display().to_string();
    let mut new = path.as_os_str().to_owned();
    new.push(format!(".new{}", std::process::id()));
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let fd = rustix::fs::open(&new, flags, Mode::RUSR | Mode::WUSR).with_context(name)?;
    let written = File::from(fd)
        .write_all(page.as_bytes())
        .and_then(|()| std::fs::rename(&new, path));
    if written.is_err() {
        let _ = std::fs::remove_file(&new);
    }
    written.with_context(name)
}
