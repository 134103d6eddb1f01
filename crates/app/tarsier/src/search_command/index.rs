//! Reads only the blocks of logs that may hold an event that matches, as an index or a search for a literal says.

use super::asked::UseIndex;
use super::logs::{failed, open, Input, Source};
use super::pieces::{plain_file, plain_files, read_at};
use super::results::Results;
use super::{index_file, scan};
use crate::interrupt::is_interrupted;
use anyhow::Result;
use cli::messages::report;
use query::index::{steps, Answer, Block, BlockUse, Needed};
use query::{Assembler, Dialect, Lines, Matcher, TimeRange};
use std::fs::File;
use std::io::{self, BufRead, Read};
use std::ops::ControlFlow;
use std::path::Path;

/// If more than one of so many blocks has to be read, all are read, by several threads.
const MANY: usize = 8;

/// Table of the blocks of a file: what its index says, or one made for this search.
enum Table {
    Kept(Vec<Block>, Vec<Answer>),
    /// Blocks, and whether a literal says that each may hold an event that matches.
    Made(Vec<Block>, Vec<bool>),
}

impl Table {
    fn blocks(&self) -> &[Block] {
        match self {
            Table::Kept(blocks, _) | Table::Made(blocks, _) => blocks,
        }
    }
}

/// Searches the blocks that may hold an event that matches. False if all has to be read instead.
pub(super) fn read_by_blocks(
    results: &mut Results,
    input: &Input,
    assembler: &mut Assembler,
    range: TimeRange,
) -> Result<bool> {
    if results.asked.needs_all() {
        return Ok(false);
    }

    let Some(tables) = tables(results, input, range)? else {
        return Ok(false);
    };
    let blocks: Vec<&Block> = tables.iter().flat_map(Table::blocks).collect();
    let wanted: Vec<Entry<'_>> = tables.iter().flat_map(entries).collect();
    let steps = steps(&blocks, range, |set| is_wanted(set, &wanted));
    let read = steps.iter().filter(|step| **step == BlockUse::Read).count();
    if read > steps.len() / MANY && plain_files(input)?.is_some() {
        return Ok(false);
    }

    let mut steps = &steps[..];
    for (source, table) in input.sources.iter().zip(&tables) {
        let (own, rest) = steps.split_at(table.blocks().len());
        steps = rest;
        if read_blocks(results, source, (table, own), assembler)?.is_break() {
            return Ok(true);
        }
    }

    assembler.finish();
    let _ = results.take(assembler)?;
    Ok(true)
}

/// Tables of the blocks of all files; `None` if they do not save reading.
fn tables(results: &Results, input: &Input, range: TimeRange) -> Result<Option<Vec<Table>>> {
    let overlap = results.matcher.overlap_bytes();
    let needed = needed(results);
    let is_limited = range != Default::default() || !needed.is_nothing();
    if !is_limited {
        return Ok(None);
    }
    if results.asked.reading.use_index == UseIndex::Yes && rustix::process::geteuid().is_root() {
        follow_rotation(input);
    }

    let mut tables: Vec<Option<Table>> = Vec::new();
    for (number, source) in input.sources.iter().enumerate() {
        let (Source::File(path), None) = (source, input.host(number)) else {
            return Ok(None);
        };
        tables.push(index(path, results.asked.reading.use_index, &needed));
    }

    if overlap.is_none() && tables.iter().all(Option::is_none) {
        return Ok(None);
    }

    let mut plain = Vec::new();
    for (source, table) in input.sources.iter().zip(&tables) {
        plain.push(match (table, source) {
            (None, Source::File(path)) => match plain_file(path)? {
                Some((file, length)) => match hits(&file, length, &results.matcher)? {
                    Some(hits) => Some((hits, file, length)),
                    None => return Ok(None),
                },
                None => return Ok(None),
            },
            _ => None,
        });
    }

    let is_hit = |hits: &[bool]| hits.iter().filter(|hit| **hit).count();
    let (hits, all) = plain.iter().flatten().fold((0, 0), |sum, (hits, ..)| {
        (sum.0 + is_hit(hits), sum.1 + hits.len())
    });
    let has_index = tables.iter().any(Option::is_some);
    if !has_index && hits > all / MANY {
        return Ok(None);
    }

    // Without a hit in any file nothing has to be known of blocks.
    let is_needed = has_index || hits > 0;
    for (table, plain) in tables.iter_mut().zip(plain) {
        if let Some((hits, file, length)) = plain {
            *table = made(&file, length, &hits, is_needed)?;
        }
    }

    Ok(tables.into_iter().collect())
}

/// The index of a file; made if it is missing and may be made.
fn index(path: &Path, use_index: UseIndex, needed: &Needed) -> Option<Table> {
    if use_index == UseIndex::No {
        return None;
    }
    if let Some(asked) = index_file::ask(path, needed) {
        return Some(Table::Kept(asked.blocks, asked.answers));
    }
    if !index_file::is_for_index(path) {
        return None;
    }

    // Whoever searches wants events: a log whose index cannot be written is read.
    let made = index_file::build(path).ok()?;
    let answers = made.terms.iter().map(|terms| needed.answer(terms));
    let answers = answers.collect();
    Some(Table::Kept(made.blocks, answers))
}

/// Whether each MiB may hold an event that matches. `None` if that cannot be told.
fn hits(file: &File, length: u64, matcher: &Matcher) -> Result<Option<Vec<bool>>> {
    let Some(overlap) = matcher.overlap_bytes() else {
        let blocks = length.div_ceil(query::index::BLOCK_BYTES);
        return Ok(Some(vec![true; blocks as usize]));
    };
    Ok(scan::hits(file, length, overlap, matcher)?)
}

/// Terms that blocks must hold to be read.
fn needed(results: &Results) -> Needed {
    let mut needed = Needed::of(results.matcher.filter());
    results.asked.add_needed(&mut needed);
    needed
}

fn read_blocks(
    results: &mut Results,
    source: &Source,
    (table, steps): (&Table, &[BlockUse]),
    assembler: &mut Assembler,
) -> Result<ControlFlow<()>> {
    let mut reader: Option<BlockReader> = None;
    let mut text = Vec::new();
    for (block, step) in table.blocks().iter().zip(steps) {
        if is_interrupted() {
            break;
        }
        match step {
            BlockUse::LeaveOut(None) => bytes_left_out(block),
            BlockUse::LeaveOut(Some(sec)) => {
                bytes_left_out(block);
                assembler.leave_out(*sec);
                if results.take(assembler)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
            BlockUse::Read => {
                if reader.is_none() {
                    reader = Some(BlockReader::open(source)?);
                }
                if let Some(reader) = &mut reader {
                    reader
                        .read(block, &mut text)
                        .map_err(|error| failed(source, error))?;
                }
                let mut lines = Lines::new(&text[..], None);
                while let Some(line) = lines.next_line()? {
                    assembler.add(line);
                    if results.take(assembler)?.is_break() {
                        return Ok(ControlFlow::Break(()));
                    }
                }
            }
        }
    }

    Ok(ControlFlow::Continue(()))
}

/// Counts a block for the progress.
fn bytes_left_out(block: &Block) {
    logs::count_read(block.end - block.start);
}

/// What is known of a block: the answer of an index, or whether it may hold an event that matches.
enum Entry<'t> {
    Kept(&'t Answer),
    Made(bool),
}

fn entries(table: &Table) -> Vec<Entry<'_>> {
    match table {
        Table::Kept(_, answers) => answers.iter().map(Entry::Kept).collect(),
        Table::Made(_, hits) => hits.iter().map(|hit| Entry::Made(*hit)).collect(),
    }
}

/// Whether blocks that may share events can hold one that matches.
fn is_wanted(set: &[usize], entries: &[Entry<'_>]) -> bool {
    if let [one] = set {
        return match &entries[*one] {
            Entry::Kept(answer) => answer.is_yes(),
            Entry::Made(is_hit) => *is_hit,
        };
    }

    let (mut all, mut has_made) = (None::<Answer>, false);
    for number in set {
        match (&entries[*number], &mut all) {
            (Entry::Made(true), _) => return true,
            (Entry::Made(false), _) => has_made = true,
            (Entry::Kept(answer), Some(all)) => all.merge(answer),
            (Entry::Kept(answer), None) => all = Some((*answer).clone()),
        }
    }

    // The part that no index knows may be what the others lack.
    all.is_some_and(|all| has_made || all.is_yes())
}

/// The blocks of a plain file; `None` if it has JSON. Without `is_needed`, no blocks: their times do not matter.
fn made(file: &File, length: u64, hits: &[bool], is_needed: bool) -> Result<Option<Table>> {
    if !is_needed {
        return Ok(Some(Table::Made(Vec::new(), Vec::new())));
    }

    let blocks = scan::blocks(file, length)?;
    if blocks.iter().any(|block| block.has_json) {
        return Ok(None);
    }

    let of_block = |block: &Block| {
        let first = (block.start / query::index::BLOCK_BYTES) as usize;
        let last = (block.end.div_ceil(query::index::BLOCK_BYTES) as usize).min(hits.len());
        hits[first.min(last)..last].iter().any(|hit| *hit)
    };
    let wanted = blocks.iter().map(of_block).collect();
    Ok(Some(Table::Made(blocks, wanted)))
}

/// Reads blocks, in ascending order.
enum BlockReader {
    Plain(File),
    /// Text of a compressed file, read up to this place.
    Stream(Box<dyn BufRead + Send>, u64),
}

impl BlockReader {
    fn open(source: &Source) -> Result<BlockReader> {
        if let Source::File(path) = source {
            if let Some((file, _)) = plain_file(path)? {
                return Ok(BlockReader::Plain(file));
            }
        }
        let text = open(source, Dialect::Own).map_err(anyhow::Error::msg)?;
        Ok(BlockReader::Stream(text, 0))
    }

    fn read(&mut self, block: &Block, text: &mut Vec<u8>) -> io::Result<()> {
        match self {
            BlockReader::Plain(file) => read_at(file, block.start, block.end, text),
            BlockReader::Stream(input, at) => {
                io::copy(&mut input.by_ref().take(block.start - *at), &mut io::sink())?;
                text.clear();
                input
                    .by_ref()
                    .take(block.end - block.start)
                    .read_to_end(text)?;
                *at = block.end;
                Ok(())
            }
        }
    }
}

fn follow_rotation(input: &Input) {
    let logs = input.sources.iter().filter_map(|source| match source {
        Source::File(path) => Some(path.as_path()),
        Source::Stdin | Source::Member { .. } => None,
    });
    index_file::follow_rotation(&logs.collect::<Vec<_>>());
}

/// `--build-index`: makes the indexes of all files except the one that is still written. Returns the exit status.
pub(super) fn build_all(input: &Input) -> Result<u8> {
    follow_rotation(input);
    let live = match &input.sources[..] {
        [_] => None,
        [.., Source::File(last)] => Some(last),
        _ => None,
    };

    for source in &input.sources {
        match source {
            Source::File(path) if Some(path) != live => {
                index_file::build(path)?;
                report!(
                    "tarsier: {} is made",
                    index_file::index_path(path).display()
                );
            }
            _ => {}
        }
    }

    Ok(0)
}
