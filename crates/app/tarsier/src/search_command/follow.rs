//! `--follow`: follows what is appended to the log, across rotations.

use super::logs::{failed, open, Input, Source};
use super::results::Results;
use anyhow::{Context, Result};
use cli::messages::report;
use query::{Assembler, Dialect, Feed};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Time between two reads of the log.
const PAUSE: Duration = Duration::from_millis(100);
/// Bytes per read.
const PIECE_BYTES: usize = 1 << 16;
/// Longest line, in bytes.
const LINE_BYTES_MAX: usize = 16 << 20;

/// The file that is followed.
struct Tail {
    path: PathBuf,
    file: File,
    inode: (u64, u64),
    /// The beginning of a line whose end is not written yet.
    line: Vec<u8>,
}

impl Tail {
    fn open(path: &Path, log: &Path) -> Result<Tail> {
        let file = File::open(path).with_context(|| path.display().to_string())?;
        let metadata = file.metadata()?;
        Ok(Tail {
            path: log.to_owned(),
            inode: (metadata.dev(), metadata.ino()),
            file,
            line: Vec::new(),
        })
    }

    /// Reads to the end of the file. Returns whether there was anything to read.
    fn read(&mut self, mut line: impl FnMut(&[u8]) -> Result<()>) -> Result<bool> {
        // Truncated in place, as by logrotate's copytruncate.
        if self.file.metadata()?.len() < self.file.stream_position()? {
            self.file.rewind()?;
            self.line.clear();
        }
        let (mut piece, mut has_read) = (vec![0; PIECE_BYTES], false);

        loop {
            let count = self
                .file
                .read(&mut piece)
                .with_context(|| self.path.display().to_string())?;
            if count == 0 {
                return Ok(has_read);
            }
            has_read = true;
            for part in piece[..count].split_inclusive(|byte| *byte == b'\n') {
                self.line.extend_from_slice(part);
                if part.ends_with(b"\n") || self.line.len() > LINE_BYTES_MAX {
                    line(&self.line)?;
                    self.line.clear();
                }
            }
        }
    }

    /// The files that came after this one, oldest first, if it is no longer the current one.
    fn successors(&self) -> Vec<PathBuf> {
        let inode = |path: &Path| {
            std::fs::metadata(path)
                .map(|metadata| (metadata.dev(), metadata.ino()))
                .ok()
        };
        match inode(&self.path) {
            Some(current) if current != self.inode => {}
            _ => return Vec::new(),
        }

        let files = journal::log_files(&self.path).unwrap_or_default();
        match files
            .iter()
            .position(|path| inode(path) == Some(self.inode))
        {
            Some(place) => files[place + 1..].to_vec(),
            None => {
                report!(
                    "tarsier: {}: rotated away too fast; events may be missing",
                    self.path.display()
                );
                vec![self.path.clone()]
            }
        }
    }
}

/// Follows the last file of `input`. Begins at its end, or if `start_s` is given with all that is there. Ends with an
/// error, a signal, or `--just-one`.
pub(super) fn follow(
    results: &mut Results,
    input: &Input,
    assembler: &mut Assembler,
    start_s: i64,
    timeout_s: u64,
) -> Result<()> {
    let Some(Source::File(log)) = input.sources.last() else {
        anyhow::bail!("--follow: standard input ends by itself; name a log file");
    };
    let log = log.clone();
    let mut feed = Feed::default();
    let mut tail = Tail::open(&log, &log)?;
    if start_s == 0 {
        tail.file.seek(SeekFrom::End(0))?;
    } else {
        for source in &input.sources[..input.sources.len() - 1] {
            let text = open(source, Dialect::Own).map_err(anyhow::Error::msg)?;
            let mut lines = query::Lines::new(text, None);
            while let Some(line) = lines.next_line().map_err(|error| failed(source, error))? {
                feed.add(line, assembler);
                if results.take(assembler)?.is_break() {
                    return Ok(());
                }
            }
        }
    }

    results.line_buffered = true;
    let mut last = Instant::now();
    let mut is_over = false;
    while !is_over {
        // Asked before reading: what was written before the rotation is then read to its end.
        let successors = tail.successors();
        let has_read = tail.read(|line| {
            feed.add(line, assembler);
            is_over |= results.take(assembler)?.is_break();
            Ok(())
        })?;
        for path in successors {
            tail = Tail::open(&path, &log)?;
            tail.read(|line| {
                feed.add(line, assembler);
                is_over |= results.take(assembler)?.is_break();
                Ok(())
            })?;
        }
        if has_read {
            last = Instant::now();
            continue;
        }
        if last.elapsed() >= Duration::from_secs(timeout_s) {
            // No event is waited for longer than a record of it could be late.
            assembler.finish();
            is_over |= results.take(assembler)?.is_break();
        }
        std::thread::sleep(PAUSE);
    }

    Ok(())
}
