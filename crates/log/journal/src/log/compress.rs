//! Compression of files that are not current any more (`compress_rotated = yes`).

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

use crate::files::{self, modes};
use crate::read::COMPRESSED_SUFFIX;
use crate::seal::with_suffix;
use crate::writing;
use conf::Group;
use rustix::fs::{Mode, OFlags};

/// zstd level: about 300 MB/s, and a tenth of the size or less.
const LEVEL: i32 = 3;
const PART_SUFFIX: &str = ".zst.part";

/// A file that could not be compressed, and stays as it was.
#[derive(Debug, thiserror::Error)]
#[error("{}: not compressed: {source}", path.display())]
pub(super) struct CompressError {
    path: PathBuf,
    source: io::Error,
}

/// Compresses one rotated file at a time, on a thread that ends when the file is done.
#[derive(Default)]
pub(super) struct Compressor {
    running: Option<Compression>,
}

struct Compression {
    path: PathBuf,
    thread: JoinHandle<io::Result<()>>,
}

impl Compressor {
    /// Starts to compress a file. No compression may be running.
    pub(super) fn start(&mut self, path: PathBuf, group: &Group) -> Result<(), CompressError> {
        let (file, group) = (path.clone(), group.clone());
        let started = std::thread::Builder::new()
            .name("journal-zstd".into())
            .spawn(move || compress(&file, &group));
        match started {
            Ok(thread) => {
                self.running = Some(Compression { path, thread });
                Ok(())
            }
            Err(source) => Err(CompressError { path, source }),
        }
    }

    /// The compressed file, if a compression has finished since the last call.
    pub(super) fn poll(&mut self) -> Result<Option<PathBuf>, CompressError> {
        let is_finished = |compression: &Compression| compression.thread.is_finished();
        if self.running.as_ref().is_some_and(is_finished) {
            self.finish()
        } else {
            Ok(None)
        }
    }

    /// Waits for a running compression: the names of the files are about to change. Returns the compressed file.
    pub(super) fn finish(&mut self) -> Result<Option<PathBuf>, CompressError> {
        let Some(Compression { path, thread }) = self.running.take() else {
            return Ok(None);
        };
        let done = thread
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("the compressing thread panicked")));
        match done {
            Ok(()) => Ok(Some(with_suffix(&path, COMPRESSED_SUFFIX))),
            Err(source) => Err(CompressError { path, source }),
        }
    }
}

/// Replaces a file with its compressed form. One of the two is complete at any moment.
fn compress(path: &Path, group: &Group) -> io::Result<()> {
    let part = with_suffix(path, PART_SUFFIX);
    let made = write_compressed(path, &part, group);
    if made.is_err() {
        // A partial result would only take space.
        let _ = writing::remove_file(&part);
        return made;
    }
    writing::rename(&part, with_suffix(path, COMPRESSED_SUFFIX))?;
    File::open(files::dir_of(path))?.sync_all()?;
    writing::remove_file(path)
}

fn write_compressed(path: &Path, part: &Path, group: &Group) -> io::Result<()> {
    let mut from = File::open(path)?;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::CLOEXEC;
    let mode = Mode::from_raw_mode(modes(group).rotated);
    let mut to = File::from(writing::open(part, flags, mode)?);
    files::set_permissions(&to, part, modes(group).rotated, group).map_err(io::Error::other)?;
    let size = from.metadata()?.size();
    let mut encoder = zstd::Encoder::new(&mut to, LEVEL)?;
    encoder.include_checksum(true)?;
    encoder.set_pledged_src_size(Some(size))?;
    io::copy(&mut from, &mut encoder)?;
    encoder.finish()?;
    to.sync_all()
}

/// Removes what a compression interrupted by a crash left beside an uncompressed file.
pub(crate) fn repair(log_file: &Path) -> io::Result<()> {
    for number in files::rotated_numbers(log_file)? {
        // The text is removed last: as long as it exists, it is the whole one.
        let plain = files::numbered(log_file, number);
        let leftovers = [PART_SUFFIX, COMPRESSED_SUFFIX].map(|suffix| with_suffix(&plain, suffix));
        for leftover in leftovers
            .iter()
            .filter(|path| plain.exists() && path.exists())
        {
            writing::remove_file(leftover)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use conf::Config;

    #[test]
    fn a_finished_compression_replaces_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("audit.log.1");
        std::fs::write(&path, "type=A\n".repeat(1000)).unwrap();
        let mut compressor = Compressor::default();
        compressor
            .start(path.clone(), &Config::default().log_group)
            .unwrap();
        compressor.finish().unwrap();
        let compressed = std::fs::read(with_suffix(&path, COMPRESSED_SUFFIX)).unwrap();
        assert_eq!(
            zstd::decode_all(&compressed[..]).unwrap(),
            "type=A\n".repeat(1000).as_bytes()
        );
        assert!(!path.exists());
    }

    #[test]
    fn a_failed_compression_is_told_once_and_leaves_no_part() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("audit.log.1");
        // It can be opened, but not read: EISDIR.
        std::fs::create_dir(&path).unwrap();
        let mut compressor = Compressor::default();
        compressor
            .start(path.clone(), &Config::default().log_group)
            .unwrap();
        let error = compressor.finish().unwrap_err().to_string();
        let start = format!("{}: not compressed: ", path.display());
        assert!(error.starts_with(&start), "{error}");
        compressor.finish().unwrap();
        assert!(!with_suffix(&path, PART_SUFFIX).exists());
    }
}
