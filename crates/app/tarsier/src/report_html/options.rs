//! Options of `tarsier report --html`.

use query::time::{self, Bound};
use query::{Dialect, TimeRange};
use std::path::PathBuf;

/// Options of `tarsier report --html`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct PageOptions {
    /// Path of the page; `-` is standard output.
    pub(super) html: PathBuf,
    /// Logs, directories with audit.log and its rotated files, archives.
    pub(super) inputs: Vec<PathBuf>,
    /// Read the logs of auditd.conf(5) even if standard input is a pipe.
    pub(super) use_logs: bool,
    pub(super) range: TimeRange,
    /// Verification key of the seal.
    pub(super) key: Option<PathBuf>,
}

impl PageOptions {
    /// Reads the words after `tarsier report`.
    ///
    /// # Errors
    /// The message for the user.
    pub(super) fn parse(words: &[String]) -> Result<PageOptions, String> {
        let mut options = PageOptions::default();
        let mut words = words.iter().map(String::as_str).peekable();
        while let Some(option) = words.next() {
            let mut value = || {
                let value = words.next_if(|word| *word == "-" || !word.starts_with('-'));
                value.ok_or_else(|| format!("tarsier: report: {option} requires a value"))
            };
            match option {
                "--html" => options.html = PathBuf::from(value()?),
                "-if" | "--input" => options.inputs.push(PathBuf::from(value()?)),
                "--input-logs" => options.use_logs = true,
                "--key" => options.key = Some(PathBuf::from(value()?)),
                "-ts" | "--start" => {
                    let first = value()?;
                    options.range.start_s =
                        time::of_words(Bound::Start, first, value().ok(), Dialect::Own)?;
                }
                "-te" | "--end" => {
                    let first = value()?;
                    options.range.end_s =
                        time::of_words(Bound::End, first, value().ok(), Dialect::Own)?;
                }
                _ => {
                    return Err(format!(
                        "tarsier: report: {option} does not go with --html; options that do: -if, \
                         --input-logs, -ts, -te, --key"
                    ))
                }
            }
        }

        if options.html.as_os_str().is_empty() {
            return Err("tarsier: report: --html FILE is missing".to_owned());
        }

        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<PageOptions, String> {
        let words: Vec<_> = line.split_whitespace().map(str::to_owned).collect();
        PageOptions::parse(&words)
    }

    #[test]
    fn options_are_read_in_any_order() {
        let options = parse("-if /srv/log -ts today --html - --key k").expect("valid");
        assert_eq!(options.html, PathBuf::from("-"));
        assert_eq!(options.inputs, [PathBuf::from("/srv/log")]);
        assert_eq!(options.key, Some(PathBuf::from("k")));
        assert!(options.range.start_s > 0);
    }

    #[test]
    fn errors_name_the_option() {
        for (line, wanted) in [
            ("-if x", "--html FILE is missing"),
            ("--html", "--html requires a value"),
            ("--html x -au", "-au does not go with --html"),
            ("--html x -ts", "-ts requires a value"),
        ] {
            let error = parse(line).expect_err(line);
            assert!(error.contains(wanted), "{error}");
        }
    }
}
