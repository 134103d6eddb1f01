//! The index beside a log file: where it is, whether it is valid, and how it is made.

use super::logs::Source;
use anyhow::{bail, ensure, Context, Result};
use query::index::{Blocks, Index, Subject};
use query::Dialect;
use rustix::fs::{Mode, OFlags};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Bytes of each end of a file that its index is bound to.
const END_BYTES: u64 = 4096;
/// Shorter files are read as fast without an index.
const LENGTH_MIN: u64 = 1 << 20;

/// The name of the index of a log file: a compressed file has the one of its plain name.
pub(crate) fn index_path(log: &Path) -> PathBuf {
    let name = log.as_os_str().as_bytes();
    let plain = name.strip_suffix(b".zst").unwrap_or(name);
    let mut path = std::ffi::OsStr::from_bytes(plain).to_owned();
    path.push(".idx");
    PathBuf::from(path)
}

fn subject(file: &File) -> Result<Subject> {
    let metadata = file.metadata()?;
    ensure!(metadata.is_file(), "not a regular file");
    let length = metadata.size();
    let mut hasher = blake3::Hasher::new();
    for start in [0, length.saturating_sub(END_BYTES)] {
        let mut end = vec![0; END_BYTES.min(length) as usize];
        file.read_exact_at(&mut end, start)?;
        hasher.update(&end);
    }
    Ok(Subject {
        device: metadata.dev(),
        inode: metadata.ino(),
        length,
        changed_ns: metadata.mtime() * 1_000_000_000 + metadata.mtime_nsec(),
        ends: *hasher.finalize().as_bytes(),
    })
}

/// The index of a log file, if there is one that describes it and that nobody else could have written.
pub(crate) fn load(log: &Path) -> Option<Index> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let fd = rustix::fs::open(index_path(log), flags, Mode::empty()).ok()?;
    let mut kept = File::from(fd);
    let metadata = kept.metadata().ok()?;
    let own = rustix::process::geteuid().as_raw();
    let is_safe =
        metadata.is_file() && [0, own].contains(&metadata.uid()) && metadata.mode() & 0o077 == 0;
    let mut bytes = Vec::with_capacity(metadata.len() as usize);
    if !is_safe || kept.read_to_end(&mut bytes).is_err() {
        return None;
    }
    let index = Index::from_bytes(&bytes).ok()?;
    let file = File::open(log).ok()?;
    let is_current = subject(&file).ok()? == index.subject;
    // The text of a compressed file ends where it ends.
    let end = index.blocks.last().map_or(0, |block| block.end);
    let is_whole = end == index.subject.length || super::logs::is_converted(&file).ok()?;
    (is_current && is_whole).then_some(index)
}

/// Makes the index of a log file.
///
/// # Errors
/// The file cannot be read, or has JSON or lines of over 64 MiB.
pub(crate) fn make(log: &Path) -> Result<Index> {
    let name = || log.display().to_string();
    let subject = File::open(log)
        .map_err(Into::into)
        .and_then(|file| subject(&file))
        .with_context(name)?;
    let source = Source::File(log.to_owned());
    let text = source.open(Dialect::Own)?.map_err(anyhow::Error::msg)?;
    let (blocks, terms) = Blocks::new(text).all().with_context(name)?;
    if blocks.iter().any(|block| block.has_json) {
        bail!("{}: logs in JSON have no index", name());
    }
    Ok(Index {
        subject,
        blocks,
        terms,
    })
}

/// Makes the index of a log file and puts it beside it.
///
/// # Errors
/// The errors of [`make`], or the index cannot be written.
pub(crate) fn build(log: &Path) -> Result<Index> {
    let index = make(log)?;
    let path = index_path(log);
    let part = path.with_extension("idx.part");
    let written = write(&part, &index.to_bytes()).and_then(|()| Ok(fs::rename(&part, &path)?));
    if written.is_err() {
        let _ = fs::remove_file(&part);
    }
    written.with_context(|| path.display().to_string())?;
    Ok(index)
}

fn write(part: &Path, bytes: &[u8]) -> Result<()> {
    // What an interrupted search left.
    let _ = fs::remove_file(part);
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let mut file = File::from(rustix::fs::open(part, flags, Mode::RUSR | Mode::WUSR)?);
    Ok(file.write_all(bytes)?)
}

/// Renames the indexes of files that a rotation renamed. An index that cannot be renamed is made anew later.
pub(crate) fn follow_rotation(logs: &[&Path]) {
    let inode = |path: &Path| {
        fs::metadata(path)
            .ok()
            .map(|metadata| (metadata.dev(), metadata.ino()))
    };
    let inodes: Vec<_> = logs.iter().map(|log| inode(log)).collect();
    let mut moves = Vec::new();
    for log in logs {
        let from = index_path(log);
        let Some(described) = described(&from) else {
            continue;
        };
        let of = inodes.iter().position(|inode| *inode == Some(described));
        let to = of.map(|number| index_path(logs[number]));
        moves.extend(
            to.filter(|to| *to != from)
                .map(|to| (from, to.with_extension("idx.moved"), to)),
        );
    }
    // Aside first: where one goes, another may still be.
    for (from, aside, _) in &moves {
        let _ = fs::rename(from, aside);
    }
    for (_, aside, to) in &moves {
        let _ = fs::rename(aside, to);
    }
}

/// Device and inode of the file that an index is of.
fn described(index: &Path) -> Option<(u64, u64)> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = File::from(rustix::fs::open(index, flags, Mode::empty()).ok()?);
    let mut start = [0; 24];
    file.read_exact_at(&mut start, 0).ok()?;
    Index::described(&start)
}

/// Whether a search may make the index of this file without being asked: the file is rotated, so that it does not
/// grow, and long enough.
pub(crate) fn is_for_index(log: &Path) -> bool {
    let name = log.as_os_str().as_bytes();
    let plain = name.strip_suffix(b".zst").unwrap_or(name);
    let digits = plain
        .rsplit(|byte| *byte == b'.')
        .next()
        .unwrap_or_default();
    let is_rotated =
        !digits.is_empty() && digits.len() < plain.len() && digits.iter().all(u8::is_ascii_digit);
    is_rotated
        && rustix::process::geteuid().is_root()
        && fs::metadata(log)
            .is_ok_and(|metadata| metadata.is_file() && metadata.len() >= LENGTH_MIN)
}

/// Result of `tarsier verify --index`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The log has no index.
    None,
    /// The index is that of the log.
    Right,
    /// The index is of another file or version, or damaged; searches do not use it.
    Unused,
    /// The index says that it is of this file, but the log has another one.
    Wrong,
}

/// Compares the index of a log file with what the log gives.
///
/// # Errors
/// The log cannot be read.
pub(crate) fn verify(log: &Path) -> Result<Verdict> {
    let path = index_path(log);
    if fs::symlink_metadata(&path).is_err() {
        return Ok(Verdict::None);
    }
    let Some(index) = load(log) else {
        return Ok(Verdict::Unused);
    };
    Ok(match make(log)?.to_bytes() == index.to_bytes() {
        true => Verdict::Right,
        false => Verdict::Wrong,
    })
}
