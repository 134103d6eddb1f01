//! The index beside a log file ([`query::index`]): where it is, whether it is valid, and how it is made.

use crate::compact::{self, TimeRange};
use crate::read;
use crate::seal::with_suffix;
use crate::writing;
use query::index::{Block, Blocks, Index, IndexAnswer, Needed, Subject, Terms};
use rustix::fs::{Mode, OFlags};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Bytes of each end of a file that its index is bound to.
const END_BYTES: u64 = 4096;
/// Shorter files are read as fast without an index.
pub const LENGTH_MIN: u64 = 1 << 20;
/// End of an index's name.
pub(crate) const SUFFIX: &str = ".idx";

/// The name of a log file without the ending of compressed ones.
fn plain_name(log: &Path) -> &[u8] {
    let name = log.as_os_str().as_bytes();
    name.strip_suffix(read::COMPRESSED_SUFFIX.as_bytes())
        .unwrap_or(name)
}

/// The name of the index of a log file: a compressed file has the one of its plain name.
pub fn index_path(log: &Path) -> PathBuf {
    let plain = Path::new(std::ffi::OsStr::from_bytes(plain_name(log)));
    with_suffix(plain, SUFFIX)
}

/// Whether the file was rotated, by its name, so that it does not grow, and is long enough for an index.
pub fn is_for_index(log: &Path) -> bool {
    let plain = plain_name(log);
    let last = plain.rsplit(|byte| *byte == b'.').next();
    let digits = last.unwrap_or_default();
    let is_rotated =
        !digits.is_empty() && digits.len() < plain.len() && digits.iter().all(u8::is_ascii_digit);
    let is_long = |metadata: fs::Metadata| metadata.is_file() && metadata.len() >= LENGTH_MIN;
    is_rotated && fs::metadata(log).is_ok_and(is_long)
}

fn subject(file: &File) -> io::Result<Subject> {
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::other("not a regular file"));
    }

    // Inode numbers are used again, and times can be set: both ends of the text are bound too.
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
/// `is_converted` says whether a file does not hold its lines as text.
pub fn load(log: &Path, is_converted: impl Fn(&File) -> io::Result<bool>) -> Option<Index> {
    let (mut kept, length) = open(log)?;
    let mut bytes = Vec::with_capacity(length as usize);
    kept.read_to_end(&mut bytes).ok()?;
    let index = Index::from_bytes(&bytes).ok()?;
    is_of(log, &index.subject, &index.blocks, is_converted).then_some(index)
}

/// What the index of a log file says about a question, if [`load`] would return that index.
pub fn ask(
    log: &Path,
    needed: &Needed,
    is_converted: impl Fn(&File) -> io::Result<bool>,
) -> Option<IndexAnswer> {
    let (kept, length) = open(log)?;
    let asked = IndexAnswer::read(kept, length, needed)?;
    is_of(log, &asked.subject, &asked.blocks, is_converted).then_some(asked)
}

/// The index of a log file and its length, if only its user and root can have written it.
fn open(log: &Path) -> Option<(File, u64)> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let fd = rustix::fs::open(index_path(log), flags, Mode::empty()).ok()?;
    let kept = File::from(fd);
    let metadata = kept.metadata().ok()?;
    let own = rustix::process::geteuid().as_raw();
    let is_safe =
        metadata.is_file() && [0, own].contains(&metadata.uid()) && metadata.mode() & 0o077 == 0;
    is_safe.then_some((kept, metadata.len()))
}

/// Whether an index with this subject and these blocks describes a log file.
fn is_of(
    log: &Path,
    described: &Subject,
    blocks: &[Block],
    is_converted: impl Fn(&File) -> io::Result<bool>,
) -> bool {
    let Ok(file) = File::open(log) else {
        return false;
    };
    // The text of a compressed file ends where it ends.
    let end = blocks.last().map_or(0, |block| block.end);
    subject(&file).is_ok_and(|subject| subject == *described)
        && (end == described.length || is_converted(&file).unwrap_or(false))
}

/// Makes the index of a log file.
///
/// # Errors
/// The file cannot be read, or has JSON or lines of over 64 MiB.
pub fn make(log: &Path) -> io::Result<Index> {
    make_while(log, || true)
}

/// Makes the index of a log file as [`make`] does, but gives up when `goes_on` says no. Memory: a block and the index.
fn make_while(log: &Path, goes_on: impl Fn() -> bool) -> io::Result<Index> {
    let subject = subject(&File::open(log)?)?;
    let all = TimeRange {
        since_s: 0,
        until_s: u32::MAX,
    };
    let mut text = Blocks::new(compact::open(log, all)?);
    let (mut blocks, mut terms) = (Vec::new(), Vec::new());
    while let Some((start, text)) = text.next_block()? {
        let block = Block::of(text, start);
        if block.has_json {
            return Err(io::Error::other("logs in JSON have no index"));
        }
        blocks.push(block);
        terms.push(Terms::of(text));
        if !goes_on() {
            return Err(io::ErrorKind::Interrupted.into());
        }
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
pub fn build(log: &Path) -> io::Result<Index> {
    build_while(log, || true)
}

/// Builds an index as [`build`] does, but gives up when `goes_on` says no.
pub(crate) fn build_while(log: &Path, goes_on: impl Fn() -> bool) -> io::Result<Index> {
    let index = make_while(log, &goes_on)?;
    let path = index_path(log);
    let part = path.with_extension("idx.part");
    let written = write(&part, &index.to_bytes()).and_then(|()| {
        // A rotation is about to rename the log: the index would get the name of another file's.
        if goes_on() {
            writing::rename(&part, &path)
        } else {
            Err(io::ErrorKind::Interrupted.into())
        }
    });

    if written.is_err() {
        let _ = writing::remove_file(&part);
    }
    written.map(|()| index)
}

fn write(part: &Path, bytes: &[u8]) -> io::Result<()> {
    // What an interrupted search left.
    let _ = writing::remove_file(part);
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let mut file = File::from(writing::open(part, flags, Mode::RUSR | Mode::WUSR)?);
    file.write_all(bytes)
}

/// Renames the indexes of files that a rotation renamed. An index that cannot be renamed is made anew later.
pub fn follow_rotation(logs: &[&Path]) {
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

/// Moves the index of a file that was renamed, over that of the file before. An index need not be there.
pub(crate) fn follow(from: &Path, to: &Path) {
    let (from, to) = (with_suffix(from, SUFFIX), with_suffix(to, SUFFIX));
    if writing::rename(&from, &to).is_err() {
        // An index under that name describes another file.
        let _ = writing::remove_file(&to);
    }
}
