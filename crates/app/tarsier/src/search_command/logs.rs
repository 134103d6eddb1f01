//! Logs to read: files, directories, rotated sets, archives, standard input.

use crate::interrupt::is_interrupted;
use anyhow::Result;
use cli::messages::report;
pub(crate) use logs::Log as Source;
use query::{Assembler, Dialect, Event, Feed, Lines};
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Lines at the beginning of a file that may name its host.
const FIRST_LINES: usize = 32;

/// Settings of auditd.conf(5).
pub(crate) struct Defaults {
    /// `log_file`.
    pub(crate) log_file: PathBuf,
    /// `end_of_event_timeout`.
    pub(crate) timeout_s: u64,
    /// Seconds after which an event of a log that is read as a whole has all its records: later than the timeout, since
    /// collectors and joined logs have records late. A dialect splits such events.
    pub(crate) whole_s: u64,
}

/// Time by which records may be late among those of other events.
const LATE_S: u64 = 10;

/// Reads auditd.conf(5), if there is one.
///
/// # Errors
/// The file cannot be used.
pub(crate) fn defaults(dialect: Dialect) -> Result<Defaults> {
    let path = Path::new(conf::AUDITD_CONF);
    let config = if path.exists() {
        conf::load(path, Default::default())?.config
    } else {
        if dialect.is_compat() {
            report!("Config file {} doesn't exist, skipping", conf::AUDITD_CONF);
        }
        conf::Config::default()
    };

    Ok(Defaults {
        log_file: config.log_file,
        timeout_s: config.end_of_event_timeout_s,
        whole_s: if dialect.is_compat() {
            config.end_of_event_timeout_s
        } else {
            config.end_of_event_timeout_s.saturating_add(LATE_S)
        },
    })
}

/// The logs to read, oldest first.
#[derive(Default)]
pub(crate) struct Input {
    pub(crate) sources: Vec<Source>,
    /// Host of each source whose records may lack `node=`: it is the node then.
    hosts: Vec<Option<String>>,
    /// Whether the sources are a log with its rotated files.
    pub(crate) is_set: bool,
}

/// Step of reading logs.
pub(crate) enum ReadStep<'s> {
    /// A line was read.
    Line,
    /// A log is at its end.
    End {
        number: usize,
        source: &'s Source,
        is_last: bool,
    },
}

/// How reading ended.
pub(crate) enum ReadEnd {
    Done,
    /// The end of a log could not be read. That was said.
    Damaged,
    /// A log cannot be opened, or has no records: the message for the user.
    Refused(String),
}

impl Input {
    /// The files, directories and archives `paths`. Without a path: standard input if it is a pipe and `use_logs` is not
    /// set, otherwise the logs of auditd.conf(5). Without `--compat` every log has records, or is empty.
    ///
    /// # Errors
    /// The message for the user.
    pub(crate) fn find(
        paths: &[PathBuf],
        use_logs: bool,
        defaults: &Defaults,
        dialect: Dialect,
    ) -> Result<Input, String> {
        if dialect.is_compat() {
            return Input::of_peer(paths.last(), use_logs, defaults);
        }

        let failed = |error: logs::LogError| format!("tarsier: {error}");
        let mut input = Input::default();
        for path in paths {
            let found = logs::find(path).map_err(failed)?;
            input.is_set = paths.len() == 1 && path.is_dir();
            input.add(found);
        }

        if paths.is_empty() && !use_logs && is_pipe() {
            input.add(logs::LogSet {
                logs: vec![(Source::Stdin, None)],
                left_out: Vec::new(),
            });
        } else if paths.is_empty() {
            input.add(logs::set(&defaults.log_file).map_err(failed)?);
            input.is_set = true;
        }

        if input.sources.is_empty() {
            // Opening it says why.
            return Ok(Input::of(vec![defaults.log_file.clone()], true));
        }

        input.check().map_err(failed)?;
        Ok(input)
    }

    /// The log of one file or directory, as ausearch finds it.
    fn of_peer(
        path: Option<&PathBuf>,
        use_logs: bool,
        defaults: &Defaults,
    ) -> Result<Input, String> {
        match path {
            Some(path) => {
                let metadata =
                    fs::metadata(path).map_err(|error| format!("stat: {}", reason(&error)))?;
                if !metadata.is_dir() {
                    return Ok(Input::of(vec![path.to_owned()], false));
                }
                let log_file = path.join("audit.log");
                report!("NOTE - using logs in {}", log_file.display());
                Ok(rotated_set(&log_file))
            }
            None if !use_logs && is_pipe() => Ok(Input::one(Source::Stdin)),
            None => Ok(rotated_set(&defaults.log_file)),
        }
    }

    /// Adds what was found, and says what was left out.
    fn add(&mut self, found: logs::LogSet) {
        for left_out in found.left_out {
            report!(
                "tarsier: left out: {}: {}",
                left_out.path.display(),
                left_out.why
            );
        }
        let (sources, hosts): (Vec<_>, Vec<_>) = found.logs.into_iter().unzip();
        self.sources.extend(sources);
        self.hosts.extend(hosts);
    }

    /// Refuses files without records, before anything is printed. Standard input can be read only once.
    fn check(&self) -> Result<(), logs::LogError> {
        let sources = self.sources.iter();
        let mut files = sources.filter(|source| **source != Source::Stdin);
        files.try_for_each(|source| logs::check(source).map(drop))
    }

    /// One log.
    pub(crate) fn one(source: Source) -> Input {
        Input {
            sources: vec![source],
            ..Input::default()
        }
    }

    /// The host that is the node of a source's records.
    pub(crate) fn host(&self, number: usize) -> Option<&str> {
        self.hosts.get(number)?.as_deref()
    }

    /// Whether the beginning of a file names the host of its records. Standard input can be read only once.
    pub(crate) fn names_hosts(&self) -> bool {
        let names_host = |(number, source): (usize, &Source)| {
            if *source == Source::Stdin {
                return false;
            }
            let Ok(text) = source.open() else {
                return false;
            };
            let mut assembler = Assembler::new(Dialect::Own, 2, query::TimeRange::default());
            let mut feed = Feed::of_host(self.host(number));
            let mut lines = Lines::new(text, None);
            for _ in 0..FIRST_LINES {
                match lines.next_line() {
                    Ok(Some(line)) => feed.add(line, &mut assembler),
                    _ => break,
                }
            }
            feed.end(&mut assembler);
            assembler.finish();
            std::iter::from_fn(|| assembler.pop()).any(|event| event.key().node.is_some())
        };

        self.sources.iter().enumerate().any(names_host)
    }

    /// Gives each event of `range` to `take`, in the order in which they are complete. The inner error is the message for a
    /// file that cannot be opened.
    pub(crate) fn each_event(
        &self,
        timeout_s: u64,
        range: query::TimeRange,
        mut take: impl FnMut(&Event),
    ) -> Result<Result<(), String>> {
        let mut assembler = Assembler::new(Dialect::Own, timeout_s, range);
        let read = self.read(&mut assembler, |assembler, step| {
            if matches!(step, ReadStep::End { is_last: true, .. }) {
                assembler.finish();
            }
            take_complete(assembler, &mut take);
            Ok(ControlFlow::Continue(()))
        })?;

        Ok(match read {
            ReadEnd::Refused(message) => Err(message),
            ReadEnd::Damaged => Err("tarsier: not all of the logs could be read".to_owned()),
            ReadEnd::Done => Ok(()),
        })
    }

    /// Gives all lines to `assembler`, and says so to `each`. A log whose end cannot be read does not keep others from
    /// being read, without `--compat`: it is said.
    pub(crate) fn read(
        &self,
        assembler: &mut Assembler,
        mut each: impl FnMut(&mut Assembler, ReadStep<'_>) -> Result<ControlFlow<()>>,
    ) -> Result<ReadEnd> {
        let dialect = assembler.dialect();
        let mut end = ReadEnd::Done;
        for (number, source) in self.sources.iter().enumerate() {
            let text = match open(source, dialect) {
                Ok(text) => text,
                Err(message) => return Ok(ReadEnd::Refused(message)),
            };
            let mut feed = Feed::of_host(self.host(number));
            let mut lines = Lines::new(text, dialect.line_bytes_max());
            let mut bytes = 0;
            while !is_interrupted() {
                let line = match lines.next_line() {
                    Ok(Some(line)) => line,
                    Ok(None) => break,
                    Err(error) if dialect.is_compat() => return Err(failed(source, error)),
                    Err(error) => {
                        report!(
                            "tarsier: {source}: {}; what comes before was read",
                            reason(&error)
                        );
                        end = ReadEnd::Damaged;
                        break;
                    }
                };
                bytes += line.len() as u64;
                feed.add(line, assembler);
                if each(assembler, ReadStep::Line)?.is_break() {
                    return Ok(end);
                }
            }
            feed.end(assembler);
            if *source == Source::Stdin && bytes > 0 && !assembler.has_records() {
                return Ok(match dialect {
                    Dialect::Own => {
                        ReadEnd::Refused(format!("tarsier: {}", logs::no_records(source)))
                    }
                    _ => end,
                });
            }
            let step = ReadStep::End {
                number,
                source,
                is_last: number + 1 == self.sources.len() || is_interrupted(),
            };
            if each(assembler, step)?.is_break() || is_interrupted() {
                return Ok(end);
            }
        }

        Ok(end)
    }

    fn of(paths: Vec<PathBuf>, is_set: bool) -> Input {
        Input {
            sources: paths.into_iter().map(Source::File).collect(),
            hosts: Vec::new(),
            is_set,
        }
    }
}

/// Gives the events that are complete to `take`.
pub(crate) fn take_complete(assembler: &mut Assembler, mut take: impl FnMut(&Event)) {
    while let Some(event) = assembler.pop() {
        take(&event);
        assembler.recycle(event);
    }
}

/// The log with its rotated files, as ausearch finds them: up to the first gap in their numbers, and no compressed ones.
fn rotated_set(log_file: &Path) -> Input {
    let mut files = vec![log_file.to_owned()];
    if is_readable(log_file) {
        let numbered =
            (1..).map(|number| PathBuf::from(format!("{}.{number}", log_file.display())));
        files.extend(numbered.take_while(|path| is_readable(path)));
    }
    files.reverse();
    Input::of(files, true)
}

fn is_readable(path: &Path) -> bool {
    rustix::fs::access(path, rustix::fs::Access::READ_OK).is_ok()
}

fn is_pipe() -> bool {
    rustix::fs::fstat(io::stdin())
        .is_ok_and(|status| rustix::fs::FileType::from_raw_mode(status.st_mode).is_fifo())
}

/// Opens a log: with `--compat` only as text. The error is the message for the user.
pub(crate) fn open(source: &Source, dialect: Dialect) -> Result<Box<dyn BufRead + Send>, String> {
    let opened: io::Result<Box<dyn BufRead + Send>> = match (source, dialect) {
        (source, Dialect::Own) => source.open(),
        (Source::File(path), _) => File::open(path).map(|file| Box::new(BufReader::new(file)) as _),
        (_, _) => Ok(Box::new(BufReader::new(io::stdin()))),
    };
    opened.map_err(|error| match dialect {
        Dialect::Compat => format!("Error opening {source} ({})", reason(&error)),
        Dialect::Own => format!("tarsier: {source}: {}", reason(&error)),
    })
}

/// An error of reading, with the name of the log.
pub(crate) fn failed(source: &Source, error: io::Error) -> anyhow::Error {
    anyhow::Error::new(error).context(source.to_string())
}

/// The system's text of an error, without its number.
pub(super) fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error ") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}

/// Whether a file does not begin with a record as text: it is compressed, COMPACT or JSON, or has a prefix.
pub(crate) fn is_converted(file: &File) -> io::Result<bool> {
    let mut start = [0; 5];
    let count = file.read_at(&mut start, 0)?;
    Ok(count > 0 && !matches!(&start, b"type=" | b"node="))
}
