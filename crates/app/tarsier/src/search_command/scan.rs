//! Searches plain files for a literal, and finds their blocks, with all processors.

use super::pieces::{processors, read_at};
use query::index::{cut, Block, BLOCK_BYTES, WINDOW_BYTES};
use query::Matcher;
use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes searched at once, few enough for a processor's cache.
const PIECE_BYTES: u64 = 1 << 18;
/// Number of pieces after which a literal may count as frequent.
const SAMPLE: u64 = 16;
/// Beginning of a line of `log_format = JSON`.
const JSON_LINE: &[u8] = b"\n{";

/// Whether a line but the first begins as one of `log_format = JSON`. Braces are rare in other logs, so that looking for
/// them alone is faster.
fn has_json_line(text: &[u8]) -> bool {
    memchr::memchr_iter(b'{', text).any(|at| at > 0 && text[at - 1] == b'\n')
}

/// Runs `work` for the numbers below `count`, in threads, and returns the results in order.
fn in_parallel<T: Send>(
    count: u64,
    work: impl Fn(u64, &mut Vec<u8>) -> io::Result<T> + Sync,
) -> io::Result<Vec<T>> {
    let threads = processors().min(count.max(1) as usize);
    let next = AtomicU64::new(0);
    let run = || {
        let (mut found, mut buffer) = (Vec::new(), Vec::new());
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                return Ok(found);
            }
            found.push((number, work(number, &mut buffer)?));
        }
    };

    let parts: Vec<io::Result<Vec<(u64, T)>>> = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(run)).collect();
        let mut parts = vec![run()];
        let panicked = |_| Err(io::Error::other("a searching thread panicked"));
        parts.extend(
            others
                .into_iter()
                .map(|other| other.join().unwrap_or_else(panicked)),
        );
        parts
    });

    let mut all = Vec::new();
    for part in parts {
        all.extend(part?);
    }

    all.sort_unstable_by_key(|(number, _)| *number);
    Ok(all.into_iter().map(|(_, found)| found).collect())
}

/// Whether the literal of `matcher` is in each piece of 1 MiB of the first `length` bytes. A literal across the end
/// of a piece counts for the piece in which it begins. `None` if a line is JSON, where it may be written differently.
/// When most pieces have the literal, the rest of them count as having it, too.
pub(super) fn hits(
    file: &File,
    length: u64,
    overlap_bytes: usize,
    matcher: &Matcher,
) -> io::Result<Option<Vec<bool>>> {
    // The beginning of a line of JSON may lie over the end of a piece, too.
    let overlap_bytes = overlap_bytes.max(JSON_LINE.len()) as u64;
    let (seen, hit) = (AtomicU64::new(0), AtomicU64::new(0));
    let found = in_parallel(length.div_ceil(BLOCK_BYTES), |number, buffer| {
        let is_frequent = seen.load(Ordering::Relaxed) >= SAMPLE
            && hit.load(Ordering::Relaxed) * 2 > seen.load(Ordering::Relaxed);
        if is_frequent {
            return Ok(Some(true));
        }
        let start = number * BLOCK_BYTES;
        let end = (start + BLOCK_BYTES).min(length);
        let (mut at, mut is_hit) = (start, false);
        while at < end {
            let until = (at + PIECE_BYTES).min(end) + overlap_bytes;
            read_at(file, at, until.min(length), buffer)?;
            if has_json_line(buffer) {
                return Ok(None);
            }
            is_hit = is_hit || matcher.may_match(buffer);
            at += PIECE_BYTES;
        }
        seen.fetch_add(1, Ordering::Relaxed);
        hit.fetch_add(is_hit.into(), Ordering::Relaxed);
        Ok(Some(is_hit))
    })?;

    Ok(found.into_iter().collect())
}

/// The blocks of the first `length` bytes, as [`query::index::Blocks`] cuts them.
pub(super) fn blocks(file: &File, length: u64) -> io::Result<Vec<Block>> {
    let ends = in_parallel(
        (length / BLOCK_BYTES).saturating_sub(1),
        |number, buffer| {
            let nominal = (number + 1) * BLOCK_BYTES;
            read_at(
                file,
                nominal,
                (nominal + WINDOW_BYTES as u64).min(length),
                buffer,
            )?;
            Ok(match cut(buffer) {
                0 => None,
                bytes => Some(nominal + bytes as u64),
            })
        },
    )?;

    let mut starts = vec![0];
    starts.extend(ends.into_iter().flatten());
    starts.push(length);
    starts.dedup();
    in_parallel(starts.len() as u64 - 1, |number, buffer| {
        let (start, end) = (starts[number as usize], starts[number as usize + 1]);
        read_at(file, start, end, buffer)?;
        Ok(Block::of(buffer, start))
    })
}
