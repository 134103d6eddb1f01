//! The spool: a hard link to each log file that has unsent events, so that rotation cannot delete
//! it, under a number that stays while names in the log's directory move on.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::ops::Deref;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;

use crate::config::Start;
use crate::position::Position;

/// Times that the files are listed again when a rotation came between.
const RACES_MAX: u32 = 20;
/// Bytes at the start of a file by which a compressed file is told to be the same.
const START_BYTES: usize = 512;

/// Reason why the spool cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SpoolError {
    /// A system call failed.
    #[error("{}: cannot {call}: {source}; {remedy}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system call.
        call: &'static str,
        /// Error of the call.
        source: io::Error,
        /// Remedy.
        remedy: &'static str,
    },
    /// Another sender uses the spool.
    #[error("{}: another tarsier-forward uses this spool; stop it, or set another `spool`", path.display())]
    InUse {
        /// The spool.
        path: PathBuf,
    },
    /// The log is in a form that cannot be followed.
    #[error(
        "{}: the log is in COMPACT format, which cannot be followed; set log_format = RAW, ENRICHED \
         or JSON in auditd.conf",
        path.display()
    )]
    Compact {
        /// The log.
        path: PathBuf,
    },
}

type Result<T> = std::result::Result<T, SpoolError>;

fn failed<'a>(path: &'a Path, call: &'static str) -> impl FnOnce(io::Error) -> SpoolError + 'a {
    move |source| SpoolError::Io {
        path: path.to_owned(),
        call,
        remedy: match source.raw_os_error() {
            Some(libc::EXDEV) => "put the spool on the log's file system, in the same mount",
            Some(libc::EPERM | libc::EACCES) => {
                "run as root or with CAP_DAC_READ_SEARCH and CAP_FOWNER, as the unit does"
            }
            Some(libc::ENOSPC) => "make room on the file system",
            _ => "check the file and its file system",
        },
        source,
    }
}

/// Device and inode.
type Identity = (u64, u64);

fn identity(path: &Path) -> io::Result<Identity> {
    std::fs::metadata(path).map(|stat| (stat.dev(), stat.ino()))
}

/// The files of a spool at some moment: what a batch is made of.
#[derive(Clone, Debug)]
pub struct Files {
    dir: PathBuf,
    files: BTreeMap<u64, Identity>,
}

impl Files {
    /// Directory of the spool.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Path of a file's link.
    pub fn path(&self, number: u64) -> PathBuf {
        self.dir.join(format!("{number:010}.log"))
    }

    /// Path of the link of a file's seal.
    pub fn seal_path(&self, number: u64) -> PathBuf {
        self.dir.join(format!("{number:010}.seal"))
    }

    /// Path of the mark of a file before which files are missing.
    fn mark_path(&self, number: u64) -> PathBuf {
        self.dir.join(format!("{number:010}.gap"))
    }

    /// Whether files between this one and the one before may be gone.
    pub fn has_gap_before(&self, number: u64) -> bool {
        self.mark_path(number).exists()
    }

    /// Numbers of the files, ascending.
    pub fn numbers(&self) -> impl DoubleEndedIterator<Item = u64> + '_ {
        self.files.keys().copied()
    }

    /// The oldest file from `number` on.
    pub fn from(&self, number: u64) -> Option<u64> {
        self.files.range(number..).next().map(|(number, _)| *number)
    }

    /// The file that is being written; `None` before the first.
    pub fn newest(&self) -> Option<u64> {
        self.files.last_key_value().map(|(number, _)| *number)
    }

    /// Bytes of a file; 0 if it is gone.
    pub fn size(&self, number: u64) -> u64 {
        std::fs::metadata(self.path(number)).map_or(0, |stat| stat.len())
    }

    /// Bytes of a file's seal; 0 without a seal.
    pub fn seal_size(&self, number: u64) -> u64 {
        std::fs::metadata(self.seal_path(number)).map_or(0, |stat| stat.len())
    }

    /// Bytes of the log behind `at`.
    pub fn bytes_after(&self, at: Position) -> u64 {
        let of = |number: u64| {
            if number == at.file {
                self.size(number).saturating_sub(at.offset)
            } else {
                self.size(number)
            }
        };
        self.files
            .range(at.file..)
            .map(|(number, _)| of(*number))
            .sum()
    }
}

/// The links of a log.
#[derive(Debug)]
pub struct Spool {
    log_file: PathBuf,
    files: Files,
    /// Number that the next file gets.
    next: u64,
    _lock: File,
}

/// Findings of a look at the log's directory.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Refreshed {
    /// Numbers of new files.
    pub added: Vec<u64>,
    /// The first of them, if files between it and the newest known one may be gone.
    pub gap_before: Option<u64>,
}

impl Deref for Spool {
    type Target = Files;

    fn deref(&self) -> &Files {
        &self.files
    }
}

impl Spool {
    /// Opens the spool at `dir` for `log_file`, or makes one.
    ///
    /// # Errors
    /// The spool cannot be made, or another sender uses it.
    pub fn open(dir: &Path, log_file: &Path) -> Result<Spool> {
        match std::fs::DirBuilder::new().mode(0o700).create(dir) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(failed(dir, "make the spool")(error))
            }
            _ => {}
        }

        let lock = File::create(dir.join("lock")).map_err(failed(dir, "lock the spool"))?;
        rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive).map_err(|_| {
            SpoolError::InUse {
                path: dir.to_owned(),
            }
        })?;

        let mut files = BTreeMap::new();
        for entry in std::fs::read_dir(dir).map_err(failed(dir, "list the spool"))? {
            let entry = entry.map_err(failed(dir, "list the spool"))?;
            let name = entry.file_name();
            let number = name.to_str().and_then(|name| name.strip_suffix(".log"));
            if let Some(number) = number.and_then(|number| number.parse().ok()) {
                let path = entry.path();
                files.insert(number, identity(&path).map_err(failed(&path, "stat"))?);
            }
        }

        let next = files.last_key_value().map_or(1, |(number, _)| number + 1);
        Ok(Spool {
            log_file: log_file.to_owned(),
            files: Files {
                dir: dir.to_owned(),
                files,
            },
            next,
            _lock: lock,
        })
    }

    /// Numbers below `number` are not given again, even if their links are gone.
    pub fn reserve(&mut self, number: u64) {
        self.next = self.next.max(number);
    }

    /// Links files that are new in the log's directory, and the seal of the newest.
    ///
    /// # Errors
    /// A link cannot be made.
    pub fn refresh(&mut self, start: Start) -> Result<Refreshed> {
        let mut refreshed = Refreshed::default();
        for _ in 0..RACES_MAX {
            let current = match identity(&self.log_file) {
                Ok(current) => current,
                // Between two steps of a rotation, or before the first record.
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(refreshed),
                Err(error) => return Err(failed(&self.log_file, "stat")(error)),
            };
            if self.files.files.last_key_value().map(|(_, known)| *known) == Some(current) {
                self.link_seal()?;
                return Ok(refreshed);
            }
            self.add_missing(start, &mut refreshed)?;
        }

        Ok(refreshed)
    }

    fn add_missing(&mut self, start: Start, refreshed: &mut Refreshed) -> Result<()> {
        let Some(found) = self.list()? else {
            return Ok(());
        };

        let known = self.files.files.last_key_value().map(|(number, _)| *number);
        let first = match known {
            None if start == Start::Now && self.next == 1 => found.len().saturating_sub(1),
            None => 0,
            Some(known) => match found.iter().rposition(|file| self.is_same(known, file)) {
                Some(at) => at + 1,
                None => {
                    refreshed.gap_before.get_or_insert(self.next);
                    let mark = self.mark_path(self.next);
                    File::create(&mark).map_err(failed(&mark, "mark a gap"))?;
                    0
                }
            },
        };

        for (path, identity) in &found[first.min(found.len())..] {
            if !self.add(path, *identity, refreshed)? {
                break;
            }
        }

        Ok(())
    }

    /// The files of the log, oldest first, as they were at one moment: a rotation leaves a hole in
    /// the numbers until it puts another file in the place of the current one. `None` if one came
    /// between.
    fn list(&self) -> Result<Option<Vec<(PathBuf, Identity)>>> {
        let before = identity(&self.log_file).ok();
        let listed = journal::log_files(&self.log_file);
        let paths = listed.map_err(failed(&self.log_file, "list the log's directory"))?;
        let mut found = Vec::new();
        for path in paths {
            match identity(&path) {
                Ok(identity) => found.push((path, identity)),
                Err(_) => return Ok(None),
            }
        }

        let is_same = before.is_some()
            && identity(&self.log_file).ok() == before
            && found.last().map(|(_, identity)| *identity) == before;
        Ok(is_same.then_some(found))
    }

    /// Whether `path` is file `number`, perhaps compressed since.
    fn is_same(&self, number: u64, (path, identity): &(PathBuf, Identity)) -> bool {
        if Some(identity) == self.files.files.get(&number) {
            return true;
        }
        let is_compressed = path.extension().is_some_and(|suffix| suffix == "zst");
        is_compressed
            && match (start_of(&self.path(number), false), start_of(path, true)) {
                (Ok(ours), Ok(theirs)) => !ours.is_empty() && ours == theirs,
                _ => false,
            }
    }

    /// Links the file that had `before` when the files were listed. False if a rotation came between.
    fn add(&mut self, path: &Path, before: Identity, refreshed: &mut Refreshed) -> Result<bool> {
        let number = self.next;
        let link = self.path(number);
        if is_compact(path) {
            return Err(SpoolError::Compact {
                path: path.to_owned(),
            });
        }

        // What a crash left behind before its number was known.
        let _ = std::fs::remove_file(&link);
        let is_compressed = path.extension().is_some_and(|suffix| suffix == "zst");
        let made = if is_compressed {
            decompress(path, &link)
        } else {
            std::fs::hard_link(path, &link)
        };
        match made {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            other => other.map_err(failed(&link, "link a log file"))?,
        }
        let identity_now = identity(&link).map_err(failed(&link, "stat"))?;
        let is_moved = if is_compressed {
            identity(path).ok() != Some(before)
        } else {
            identity_now != before
        };
        if is_moved {
            let _ = std::fs::remove_file(&link);
            return Ok(false);
        }

        let plain = if is_compressed {
            path.with_extension("")
        } else {
            path.to_owned()
        };
        let seal = journal::seal::seal_path(&plain);
        if seal.exists() && identity(path).ok() == Some(before) {
            let _ = std::fs::hard_link(&seal, self.seal_path(number));
        }
        self.sync_dir()?;
        self.files.files.insert(number, identity_now);
        self.next = number + 1;
        refreshed.added.push(number);

        Ok(true)
    }

    /// Links the seal of the newest file, if it has one by now.
    fn link_seal(&self) -> Result<()> {
        let Some(newest) = self.newest() else {
            return Ok(());
        };

        let (seal, link) = (
            journal::seal::seal_path(&self.log_file),
            self.seal_path(newest),
        );
        if link.exists() || !seal.exists() {
            return Ok(());
        }

        match std::fs::hard_link(&seal, &link) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(failed(&link, "link a seal")(error))
            }
            _ => {}
        }

        // A rotation that came between has moved another seal here.
        if identity(&self.log_file).ok().as_ref() != self.files.files.get(&newest) {
            let _ = std::fs::remove_file(&link);
        }
        Ok(())
    }

    /// Gives the file that is being written another number, since what was read of it under `number` is not in it any more.
    /// Returns the new number; `None` if `number` is not the file that is being written.
    ///
    /// # Errors
    /// A link cannot be made.
    pub fn renumber(&mut self, number: u64) -> Result<Option<u64>> {
        let newest = self.files.files.last_key_value();
        let Some((&newest, &identity)) = newest else {
            return Ok(None);
        };
        if self.files.files.get(&number) != Some(&identity) {
            return Ok(None);
        }
        if newest != number {
            // The process ended before the cursor knew.
            return Ok(Some(newest));
        }

        let next = self.next;
        let links = [
            (self.path(number), self.path(next)),
            (self.seal_path(number), self.seal_path(next)),
        ];
        for (old, new) in links {
            let _ = std::fs::remove_file(&new);
            match std::fs::hard_link(&old, &new) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(failed(&new, "link a log file")(error))
                }
                _ => {}
            }
        }

        self.sync_dir()?;
        self.files.files.insert(next, identity);
        self.next = next + 1;
        Ok(Some(next))
    }

    /// Removes the links of files below `number`. The newest file stays: it tells which file of the
    /// log's directory comes next.
    ///
    /// # Errors
    /// A link cannot be removed.
    pub fn release(&mut self, number: u64) -> Result<()> {
        self.remove_between(0, number)
    }

    /// Removes the links of files above `after` and below `before`, but not of the newest.
    ///
    /// # Errors
    /// A link cannot be removed.
    pub fn remove_between(&mut self, after: u64, before: u64) -> Result<()> {
        let before = before.min(self.newest().unwrap_or(0));
        let numbers = self.files.files.range(after + 1..before.max(after + 1));
        let old: Vec<u64> = numbers.map(|(number, _)| *number).collect();
        for number in old {
            let all = [
                self.path(number),
                self.seal_path(number),
                self.mark_path(number),
            ];
            for path in all {
                match std::fs::remove_file(&path) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => {
                        return Err(failed(&path, "remove a link")(error))
                    }
                    _ => {}
                }
            }
            self.files.files.remove(&number);
        }

        Ok(())
    }

    /// Removes all links, for a new series.
    ///
    /// # Errors
    /// A link cannot be removed.
    pub fn forget(&mut self) -> Result<()> {
        self.remove_between(0, u64::MAX)?;
        if let Some(newest) = self.newest() {
            let path = self.path(newest);
            std::fs::remove_file(&path).map_err(failed(&path, "remove a link"))?;
            for path in [self.seal_path(newest), self.mark_path(newest)] {
                let _ = std::fs::remove_file(path);
            }
        }
        self.files.files.clear();
        self.sync_dir()
    }

    /// Makes names in the spool durable.
    ///
    /// # Errors
    /// The directory cannot be synced.
    pub fn sync_dir(&self) -> Result<()> {
        File::open(&self.files.dir)
            .and_then(|dir| dir.sync_all())
            .map_err(failed(&self.files.dir, "sync the spool"))
    }
}

fn is_compact(path: &Path) -> bool {
    let mut start = [0; 8];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut start));
    read.is_ok() && journal::compact::is_compact(&start)
}

fn start_of(path: &Path, is_compressed: bool) -> io::Result<Vec<u8>> {
    let file = File::open(path)?;
    let mut start = Vec::new();
    if is_compressed {
        zstd::Decoder::new(file)?
            .take(START_BYTES as u64)
            .read_to_end(&mut start)?
    } else {
        file.take(START_BYTES as u64).read_to_end(&mut start)?
    };
    Ok(start)
}

/// Writes the text of a compressed file, durable, as `to`.
fn decompress(from: &Path, to: &Path) -> io::Result<()> {
    let unfinished = to.with_extension("unfinished");
    let mut out = File::create(&unfinished)?;
    io::copy(&mut zstd::Decoder::new(File::open(from)?)?, &mut out)?;
    out.sync_all()?;
    std::fs::rename(&unfinished, to)
}

#[cfg(test)]
mod tests;
