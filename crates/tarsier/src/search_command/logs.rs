//! Logs to read: files, directories, rotated sets, standard input.

use anyhow::Result;
use daemon::stderr::say;
use journal::compact::{self, TimeRange};
use query::{Assembler, Dialect, Event, Feed, Lines};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Settings of auditd.conf(5).
pub(crate) struct Defaults {
    /// `log_file`.
    pub(crate) log_file: PathBuf,
    /// `end_of_event_timeout`.
    pub(crate) timeout_s: u64,
}

/// Reads auditd.conf(5), if there is one.
///
/// # Errors
/// The file cannot be used.
pub(crate) fn defaults(dialect: Dialect) -> Result<Defaults> {
    let path = Path::new(conf::AUDITD_CONF);
    let config = match path.exists() {
        true => conf::load(path, Default::default())?.config,
        false => {
            if dialect.is_peer() {
                say!("Config file {} doesn't exist, skipping", conf::AUDITD_CONF);
            }
            conf::Config::default()
        }
    };
    Ok(Defaults {
        log_file: config.log_file,
        timeout_s: config.end_of_event_timeout_s,
    })
}

/// A log.
pub(crate) enum Source {
    File(PathBuf),
    Stdin,
}

/// The logs to read, oldest first.
pub(crate) struct Input {
    pub(crate) sources: Vec<Source>,
    /// Whether the sources are a log with its rotated files.
    pub(crate) is_set: bool,
}

impl Input {
    /// The file or directory `path`. Without a path: standard input if it is a pipe and `use_logs` is not set, otherwise
    /// the logs of auditd.conf(5).
    ///
    /// # Errors
    /// The message for the user.
    pub(crate) fn find(
        path: Option<&Path>,
        use_logs: bool,
        defaults: &Defaults,
        dialect: Dialect,
    ) -> Result<Input, String> {
        let set = |log_file: &Path| {
            let mut input = rotated_set(log_file, dialect)?;
            input.is_set = true;
            Ok(input)
        };
        match path {
            Some(path) => {
                let metadata = fs::metadata(path).map_err(|error| match dialect {
                    Dialect::Three | Dialect::Four => format!("stat: {}", reason(&error)),
                    Dialect::Own => format!("tarsier: {}: {}", path.display(), reason(&error)),
                })?;
                if !metadata.is_dir() {
                    return Ok(Input::of(vec![path.to_owned()]));
                }
                let log_file = path.join("audit.log");
                if dialect.is_peer() {
                    say!("NOTE - using logs in {}", log_file.display());
                }
                set(&log_file)
            }
            None if !use_logs && is_pipe() => Ok(Input {
                sources: vec![Source::Stdin],
                is_set: false,
            }),
            None => set(&defaults.log_file),
        }
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
        let mut feed = Feed::default();
        for source in &self.sources {
            let text = match source.open(Dialect::Own)? {
                Ok(text) => text,
                Err(message) => return Ok(Err(message)),
            };
            let mut lines = Lines::new(text, Dialect::Own.line_bytes_max());
            while let Some(line) = lines.next_line().map_err(|error| source.error(error))? {
                feed.add(line, &mut assembler);
                take_complete(&mut assembler, &mut take);
            }
        }
        assembler.finish();
        take_complete(&mut assembler, &mut take);
        Ok(Ok(()))
    }

    fn of(paths: Vec<PathBuf>) -> Input {
        Input {
            sources: paths.into_iter().map(Source::File).collect(),
            is_set: false,
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

/// The log with its rotated files. ausearch finds rotated files up to the first gap in their numbers, and no compressed ones.
fn rotated_set(log_file: &Path, dialect: Dialect) -> Result<Input, String> {
    if dialect == Dialect::Own {
        let files = journal::log_files(log_file)
            .map_err(|error| format!("tarsier: {}: {}", log_file.display(), reason(&error)))?;
        return Ok(Input::of(match files.is_empty() {
            true => vec![log_file.to_owned()],
            false => files,
        }));
    }
    let mut files = vec![log_file.to_owned()];
    if is_readable(log_file) {
        let numbered =
            (1..).map(|number| PathBuf::from(format!("{}.{number}", log_file.display())));
        files.extend(numbered.take_while(|path| is_readable(path)));
    }
    files.reverse();
    Ok(Input::of(files))
}

fn is_readable(path: &Path) -> bool {
    rustix::fs::access(path, rustix::fs::Access::READ_OK).is_ok()
}

fn is_pipe() -> bool {
    rustix::fs::fstat(io::stdin())
        .is_ok_and(|status| rustix::fs::FileType::from_raw_mode(status.st_mode).is_fifo())
}

impl Source {
    /// Opens the log. The inner error is the message for a file that cannot be opened.
    pub(crate) fn open(&self, dialect: Dialect) -> Result<Result<Box<dyn Read>, String>> {
        let opened: io::Result<Box<dyn Read>> = match (self, dialect) {
            (Source::Stdin, _) => Ok(Box::new(io::stdin().lock())),
            (Source::File(path), Dialect::Three | Dialect::Four) => {
                File::open(path).map(|file| Box::new(file) as _)
            }
            (Source::File(path), Dialect::Own) => {
                let all = TimeRange {
                    since_s: 0,
                    until_s: u32::MAX,
                };
                compact::open(path, all)
            }
        };
        Ok(opened.map_err(|error| match dialect {
            Dialect::Three | Dialect::Four => format!("Error opening {self} ({})", reason(&error)),
            Dialect::Own => format!("tarsier: {self}: {}", reason(&error)),
        }))
    }

    /// An error of reading, with the name of the log.
    pub(crate) fn error(&self, error: io::Error) -> anyhow::Error {
        anyhow::Error::new(error).context(self.to_string())
    }
}

impl std::fmt::Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Source::File(path) => path.display().fmt(f),
            Source::Stdin => f.write_str("standard input"),
        }
    }
}

/// The system's text of an error, without its number.
pub(super) fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error ") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}

/// Whether a file does not hold its lines as text: it is compressed, COMPACT or JSON.
pub(crate) fn is_converted(file: &File) -> io::Result<bool> {
    const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
    let mut start = [0; 64];
    let count = file.read_at(&mut start, 0)?;
    let start = &start[..count];
    Ok(start.starts_with(&ZSTD_MAGIC) || start.starts_with(b"{") || compact::is_compact(start))
}
