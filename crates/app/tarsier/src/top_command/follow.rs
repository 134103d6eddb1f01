//! Reads the lines that are appended to a log, across rotations.

use anyhow::{Context, Result};
use journal::compact::{self, TimeRange as Frames};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Bytes before the end of a log that are shown at first.
const BEFORE_BYTES: u64 = 1 << 20;
/// Bytes that are read at once, so that keys are answered in between.
const AT_ONCE_BYTES: usize = 4 << 20;
const BLOCK_BYTES: usize = 1 << 18;
/// Longest line that is put together.
const LINE_BYTES_MAX: usize = 16 << 20;

/// A log that is read as it grows.
pub(super) struct Follower {
    path: PathBuf,
    text: Text,
    /// The beginning of a line whose end is not written yet.
    partial: Vec<u8>,
    block: Vec<u8>,
}

enum Text {
    /// A plain file: what is added to it is read, too.
    Plain { file: File, at: u64 },
    /// A compressed or COMPACT file is read once.
    Once(Box<dyn Read>),
    /// The end of such a file.
    End,
}

impl Follower {
    /// Opens a log at its beginning or near its end.
    ///
    /// # Errors
    /// The log cannot be read.
    pub(super) fn open(path: &Path, from_start: bool) -> Result<Follower> {
        let name = || path.display().to_string();
        let mut file = File::open(path).with_context(name)?;
        let mut start = [0; 8];
        let count = file.read(&mut start).with_context(name)?;
        let is_zstd = start.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]);
        let text = if is_zstd || compact::is_compact(&start[..count]) {
            Text::Once(compact::open(path, Frames::ALL).with_context(name)?)
        } else {
            let length = file.metadata().with_context(name)?.len();
            let at = if from_start {
                0
            } else {
                length.saturating_sub(BEFORE_BYTES)
            };
            file.seek(SeekFrom::Start(at)).with_context(name)?;
            Text::Plain { file, at }
        };

        Ok(Follower {
            path: path.to_owned(),
            text,
            partial: Vec::new(),
            block: vec![0; BLOCK_BYTES],
        })
    }

    /// Whether what is added to the log is read, too.
    pub(super) fn is_live(&self) -> bool {
        matches!(self.text, Text::Plain { .. })
    }

    /// Gives the lines that are there to `take`. Returns whether there may be more at once.
    ///
    /// # Errors
    /// The log cannot be read.
    pub(super) fn read(&mut self, mut take: impl FnMut(&[u8])) -> Result<bool> {
        let mut read = 0;
        while read < AT_ONCE_BYTES {
            match self.fill() {
                Ok(0) => {
                    if !self.next_file()? {
                        return Ok(false);
                    }
                }
                Ok(count) => {
                    read += count;
                    self.lines(count, &mut take);
                }
                Err(error) => return Err(error).with_context(|| self.path.display().to_string()),
            }
        }

        Ok(true)
    }

    fn fill(&mut self) -> io::Result<usize> {
        let count = match &mut self.text {
            Text::Plain { file, at } => {
                let count = file.read(&mut self.block)?;
                *at += count as u64;
                count
            }
            Text::Once(text) => text.read(&mut self.block)?,
            Text::End => 0,
        };
        Ok(count)
    }

    fn lines(&mut self, count: usize, take: &mut impl FnMut(&[u8])) {
        for line in self.block[..count].split_inclusive(|byte| *byte == b'\n') {
            let is_whole = line.ends_with(b"\n");
            if is_whole && self.partial.is_empty() {
                take(line);
                continue;
            }
            self.partial.extend_from_slice(line);
            if is_whole || self.partial.len() > LINE_BYTES_MAX {
                take(&self.partial);
                self.partial.clear();
            }
        }
    }

    /// At the end of a file: whether the log has another one now, or begins anew.
    fn next_file(&mut self) -> Result<bool> {
        let Text::Plain { file, at } = &mut self.text else {
            self.text = Text::End;
            return Ok(false);
        };
        let name = || self.path.display().to_string();
        let ours = file.metadata().with_context(name)?;
        if ours.len() < *at {
            file.seek(SeekFrom::Start(0)).with_context(name)?;
            *at = 0;
            self.partial.clear();
            return Ok(true);
        }

        // During a rotation there is no file for a moment.
        let Ok(new) = File::open(&self.path) else {
            return Ok(false);
        };
        let theirs = new.metadata().with_context(name)?;
        if (theirs.dev(), theirs.ino()) == (ours.dev(), ours.ino()) {
            return Ok(false);
        }

        self.text = Text::Plain { file: new, at: 0 };
        self.partial.clear();
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Write;

    fn read(follower: &mut Follower) -> String {
        let mut text = Vec::new();
        while follower
            .read(|line| text.extend_from_slice(line))
            .expect("read")
        {}
        String::from_utf8(text).expect("text")
    }

    #[test]
    fn lines_are_followed_over_a_rotation_and_a_cut() {
        let directory = tempfile::tempdir().expect("a directory");
        let log = directory.path().join("audit.log");
        fs::write(&log, "one\ntw").expect("written");
        let mut follower = Follower::open(&log, true).expect("open");
        assert!(follower.is_live());
        assert_eq!(read(&mut follower), "one\n");
        let mut file = fs::OpenOptions::new()
            .append(true)
            .open(&log)
            .expect("open");
        file.write_all(b"o\nthree\n").expect("written");
        assert_eq!(read(&mut follower), "two\nthree\n");
        fs::rename(&log, directory.path().join("audit.log.1")).expect("rotated");
        file.write_all(b"late\n").expect("written");
        assert_eq!(read(&mut follower), "late\n");
        fs::write(&log, "four\n").expect("written");
        assert_eq!(read(&mut follower), "four\n");
        fs::write(&log, "5\n").expect("written");
        assert_eq!(read(&mut follower), "5\n");
    }
}
