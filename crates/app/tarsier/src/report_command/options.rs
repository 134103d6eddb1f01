//! aureport's options, with its rules for values and its messages.

use super::rows::Format;
use query::report::top::Field;
use query::report::{Changes, Kind, Request};
use query::time::Bound;
use query::{Dialect, Escape, TimeRange};
use std::path::PathBuf;

/// Options of `tarsier report`.
pub(crate) struct ReportOptions {
    pub(crate) request: Request,
    /// Files, directories and archives; aureport takes the last one.
    pub(crate) inputs: Vec<PathBuf>,
    /// Read the logs even if standard input is a pipe.
    pub(crate) use_logs: bool,
    pub(crate) timeout_s: Option<u64>,
    /// A report that aureport does not have.
    pub(crate) extra: Option<Extra>,
    /// Form of that report.
    pub(crate) format: Format,
}

/// A report that aureport does not have.
pub(crate) enum Extra {
    Top { fields: Vec<Field>, rows_max: usize },
    Changes { since_s: Option<u64> },
    Overview,
}

/// Rows of `--top`.
const ROWS: usize = 20;

impl ReportOptions {
    pub(crate) fn range(&self) -> TimeRange {
        TimeRange {
            start_s: self.request.start_s,
            end_s: self.request.end_s,
        }
    }
}

/// Reply instead of a report.
pub(crate) enum ReportExit {
    /// Say this on standard error, print the help, and end with status 1.
    Fail(String),
    /// Say this on standard error, and end with status 1.
    Refuse(String),
    Help,
    Version,
}

impl From<String> for ReportExit {
    fn from(message: String) -> ReportExit {
        ReportExit::Fail(message)
    }
}

type Result<T> = std::result::Result<T, ReportExit>;

/// Names of a report's option, the report, and whether aureport refuses a word after the option.
const REPORTS: [(&str, &str, Kind, bool); 23] = [
    ("-a", "--avc", Kind::Avc, false),
    ("-au", "--auth", Kind::Auth, false),
    ("-c", "--config", Kind::Config, false),
    ("--comm", "--comm", Kind::Comm, true),
    ("-cr", "--crypto", Kind::Crypto, false),
    ("-e", "--event", Kind::Event, false),
    ("-f", "--file", Kind::File, true),
    ("-h", "--host", Kind::Host, true),
    ("--integrity", "--integrity", Kind::Integrity, false),
    ("-k", "--key", Kind::Key, true),
    ("-l", "--login", Kind::Login, false),
    ("-m", "--mods", Kind::Mods, false),
    ("-ma", "--mac", Kind::Mac, false),
    ("-n", "--anomaly", Kind::Anomaly, true),
    ("-p", "--pid", Kind::Pid, true),
    ("-r", "--response", Kind::Response, true),
    ("-s", "--syscall", Kind::Syscall, true),
    ("-t", "--log", Kind::Log, false),
    ("-tm", "--terminal", Kind::Terminal, true),
    ("--tty", "--tty", Kind::Tty, false),
    ("-u", "--user", Kind::User, true),
    ("--virt", "--virt", Kind::Virt, false),
    ("-x", "--executable", Kind::Exe, true),
];

/// A word of the command line, the words after it, and how many of those were taken.
struct Words<'w> {
    option: &'w str,
    rest: &'w [String],
    taken: usize,
}

impl<'w> Words<'w> {
    /// The word after the option, unless it begins with `-`.
    fn next(&self) -> Option<&'w str> {
        self.rest
            .first()
            .map(String::as_str)
            .filter(|value| !value.starts_with('-'))
    }

    fn value(&mut self) -> Result<&'w str> {
        let value = self
            .next()
            .ok_or_else(|| format!("Argument is required for {}", self.option))?;
        self.taken += 1;
        Ok(value)
    }
}

/// Options that the words have set so far.
struct ReportArgs {
    options: ReportOptions,
    kind: Option<Kind>,
}

impl ReportOptions {
    /// Reads the words after `aureport` or `tarsier report --compat`.
    pub(crate) fn parse(words: &[String], dialect: Dialect) -> Result<ReportOptions> {
        let mut said = ReportArgs {
            kind: None,
            options: ReportOptions {
                request: Request {
                    kind: Kind::Main,
                    is_summary: false,
                    success: None,
                    nodes: Vec::new(),
                    changes: Changes::All,
                    no_config: false,
                    interpret: false,
                    escape: Escape::Tty,
                    start_s: 0,
                    end_s: 0,
                    dialect,
                    user_name: crate::search_command::users::user_name,
                    has_hosts: false,
                },
                inputs: Vec::new(),
                use_logs: false,
                timeout_s: None,
                extra: None,
                format: Format::Text,
            },
        };

        let mut at = 0;
        while let Some(option) = words.get(at) {
            let mut word = Words {
                option,
                rest: &words[at + 1..],
                taken: 0,
            };
            said.set(&mut word)?;
            at += 1 + word.taken;
        }

        let mut options = said.options;
        if said.kind.is_some() && options.extra.is_some() {
            let message = "tarsier: report: --top, --changes and --overview are reports of their own; leave out \
                           the other";
            return Err(ReportExit::Refuse(message.to_owned()));
        }

        options.request.kind = said.kind.unwrap_or(Kind::Main);
        options.request.is_summary |= options.request.kind == Kind::Main;
        Ok(options)
    }
}

impl ReportArgs {
    fn set(&mut self, word: &mut Words<'_>) -> Result<()> {
        let report = REPORTS
            .iter()
            .find(|(short, long, ..)| [*short, *long].contains(&word.option));
        if let Some((_, _, kind, is_alone)) = report {
            if self.kind.is_some() {
                return Err("Error - only one report can be specified".to_owned().into());
            }
            self.kind = Some(*kind);
            if *is_alone && word.next().is_some() {
                return Err(ReportExit::Refuse("Unimplemented option".to_owned()));
            }
            return Ok(());
        }

        if self.options.request.dialect == Dialect::Own && self.set_extra(word)? {
            return Ok(());
        }

        let dialect = self.options.request.dialect;
        let (options, request) = (&mut self.options.timeout_s, &mut self.options.request);
        match word.option {
            "-if" | "--input" => self.options.inputs.push(path(word)?),
            "--input-logs" => self.options.use_logs = true,
            "--eoe-timeout" => *options = Some(timeout(word)?),
            "-i" | "--interpret" => {
                request.interpret = true;
                if word.next().is_some() {
                    let message = format!("Argument is NOT required for {}", word.option);
                    return Err(message.into());
                }
            }
            "-ts" | "--start" => request.start_s = time_of(word, Bound::Start, dialect)?,
            "-te" | "--end" => request.end_s = time_of(word, Bound::End, dialect)?,
            "--node" => request.nodes.push(word.value()?.as_bytes().to_vec()),
            "--escape" => request.escape = escape_form(word)?,
            "--summary" => request.is_summary = true,
            "--failed" => request.success = Some(false),
            "--success" => request.success = Some(true),
            "--add" => request.changes = Changes::Additions,
            "--delete" => request.changes = Changes::Deletions,
            "--debug" => {}
            "-nc" | "--no-config" => request.no_config = true,
            "-v" | "--version" => return Err(ReportExit::Version),
            "--help" => return Err(ReportExit::Help),
            option => return Err(format!("{option} is an unsupported option").into()),
        }

        Ok(())
    }
}

impl ReportArgs {
    /// Takes an option that aureport does not have.
    fn set_extra(&mut self, word: &mut Words<'_>) -> Result<bool> {
        let extra = &mut self.options.extra;
        let misplaced = |needed: &str, option: &str| {
            ReportExit::Refuse(format!("tarsier: report: {option} comes after {needed}"))
        };

        match word.option {
            "--top" => {
                let fields = vec![field(word)?];
                *extra = Some(Extra::Top {
                    fields,
                    rows_max: ROWS,
                });
            }
            "--by" => match extra {
                Some(Extra::Top { fields, .. }) => fields.push(field(word)?),
                _ => return Err(misplaced("--top FIELD", "--by")),
            },
            "--rows" => match extra {
                Some(Extra::Top { rows_max, .. }) => *rows_max = rows(word)?,
                _ => return Err(misplaced("--top FIELD", "--rows")),
            },
            "--changes" => *extra = Some(Extra::Changes { since_s: None }),
            "--since" => match extra {
                Some(Extra::Changes { since_s }) => {
                    *since_s = u64::try_from(time_of(word, Bound::Start, Dialect::Own)?).ok();
                }
                _ => {
                    let request = &mut self.options.request;
                    request.start_s = time_of(word, Bound::Start, Dialect::Own)?;
                }
            },
            "--until" => {
                let request = &mut self.options.request;
                request.end_s = time_of(word, Bound::End, Dialect::Own)?;
            }
            "--overview" => *extra = Some(Extra::Overview),
            "--format" => {
                let name = word.value()?;
                if extra.is_none() {
                    return Err(misplaced(
                        "--top FIELD, --changes or --overview",
                        "--format",
                    ));
                }
                self.options.format = Format::from_name(name).ok_or_else(|| {
                    let known = "text, csv, json or jsonl";
                    ReportExit::Refuse(format!(
                        "tarsier: report: --format {name}: expected {known}"
                    ))
                })?;
            }
            _ => return Ok(false),
        }

        Ok(true)
    }
}

fn field(word: &mut Words<'_>) -> Result<Field> {
    let option = word.option;
    let name = word.value()?;
    Field::from_name(name).ok_or_else(|| {
        ReportExit::Refuse(format!(
            "tarsier: report: {option} {name}: no such field; there are {}",
            Field::names()
        ))
    })
}

fn rows(word: &mut Words<'_>) -> Result<usize> {
    let text = word.value()?;
    text.parse().map_err(|_| {
        ReportExit::Refuse(format!("tarsier: report: --rows {text}: expected a number"))
    })
}

fn path(word: &mut Words<'_>) -> Result<PathBuf> {
    /// PATH_MAX of Linux, less what aureport adds.
    const BYTES_MAX: usize = 4096 - 32;
    let path = word.value()?;
    if path.len() < BYTES_MAX {
        Ok(PathBuf::from(path))
    } else {
        Err(format!("File name is too long {path}").into())
    }
}

fn timeout(word: &mut Words<'_>) -> Result<u64> {
    let text = word.value()?;
    if !text.starts_with(|first: char| first.is_ascii_digit()) {
        let message = format!("End of Event Timeout must be a numeric value, was {text}");
        return Err(message.into());
    }

    let digits = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    match text[..digits].parse() {
        Ok(0) | Err(_) => Err(format!("Illegal value for End of Event Timeout, was {text}").into()),
        Ok(seconds) => Ok(seconds),
    }
}

fn escape_form(word: &mut Words<'_>) -> Result<Escape> {
    let form = word.value()?;
    Escape::from_name(form).ok_or_else(|| format!("Unknown option ({form})").into())
}

/// The time of one or two words: a date, a time of day, both in any order, or a word such as `today`.
fn time_of(word: &mut Words<'_>, bound: Bound, dialect: Dialect) -> Result<i64> {
    let (at_s, taken) = crate::dialect::time_of(word.option, word.rest, bound, dialect)?;
    word.taken += taken;
    Ok(at_s)
}
