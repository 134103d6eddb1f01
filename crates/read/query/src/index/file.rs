//! The form of an index in a file: little-endian, with a BLAKE3 of all before at the end.

use super::block::{Block, Stamp, LONGEST_BYTES, RANGES_MAX};
use super::terms::{Filters, Terms, KINDS_MAX, NUMBER_WORDS, TEXT_WORDS};

pub(super) const MAGIC: &[u8; 8] = b"TARSIDX1";
pub(super) const SUM_BYTES: usize = 32;

/// The file that an index describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Subject {
    /// Device number.
    pub device: u64,
    /// Inode number.
    pub inode: u64,
    /// Length in bytes, as it is on the disk.
    pub length: u64,
    /// Time of the last change, in nanoseconds since 1970.
    pub changed_ns: i64,
    /// BLAKE3 of the first and the last 4096 bytes.
    pub ends: [u8; 32],
}

/// The index of a log file.
#[derive(Clone, PartialEq, Eq)]
pub struct Index {
    /// The file.
    pub subject: Subject,
    /// Blocks of the file; their places are those of the uncompressed text.
    pub blocks: Vec<Block>,
    /// Terms of each of the blocks.
    pub terms: Vec<Terms>,
}

/// Reason why bytes are not an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexError {
    /// The bytes do not begin as an index, or have another version.
    NotAnIndex,
    /// The checksum at the end does not match.
    Sum,
    /// A number is outside its limits, or the bytes end early.
    Malformed,
}

impl std::fmt::Display for IndexError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            IndexError::NotAnIndex => "not an index of this version",
            IndexError::Sum => "its checksum is wrong",
            IndexError::Malformed => "a number is outside its limits, or the file ends early",
        })
    }
}

impl std::error::Error for IndexError {}

impl Index {
    /// The bytes of the file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        let subject = &self.subject;
        for number in [
            subject.device,
            subject.inode,
            subject.length,
            subject.changed_ns as u64,
        ] {
            out.extend(number.to_le_bytes());
        }

        out.extend(subject.ends);
        out.extend((self.blocks.len() as u64).to_le_bytes());
        for (block, terms) in self.blocks.iter().zip(&self.terms) {
            write_block(block, &mut out);
            write_terms(terms, &mut out);
        }

        let sum = blake3::hash(&out);
        out.extend(sum.as_bytes());
        out
    }

    /// Device and inode of the file that an index is of, by its first 24 bytes.
    pub fn described(start: &[u8]) -> Option<(u64, u64)> {
        let mut bytes = Bytes(start.strip_prefix(MAGIC)?);
        Some((bytes.u64()?, bytes.u64()?))
    }

    /// Reads what [`Index::to_bytes`] made.
    ///
    /// # Errors
    /// The bytes are not an index.
    pub fn from_bytes(bytes: &[u8]) -> Result<Index, IndexError> {
        let Some((body, sum)) = bytes.split_last_chunk::<SUM_BYTES>() else {
            return Err(IndexError::NotAnIndex);
        };
        let rest = body.strip_prefix(MAGIC).ok_or(IndexError::NotAnIndex)?;
        if blake3::hash(body).as_bytes() != sum {
            return Err(IndexError::Sum);
        }
        Index::from_body(rest).ok_or(IndexError::Malformed)
    }

    /// Reads what stands between the first eight bytes and the sum, which are not looked at. `None`: it is malformed.
    pub fn from_body(body: &[u8]) -> Option<Index> {
        let mut bytes = Bytes(body);
        let subject = Subject::read(&mut bytes)?;
        let count = bytes.u64()?;

        // The least that a block takes.
        let count = usize::try_from(count)
            .ok()
            .filter(|count| *count <= body.len() / 32)?;
        let (mut blocks, mut terms) = (Vec::with_capacity(count), Vec::with_capacity(count));
        let mut end = 0;
        for _ in 0..count {
            blocks.push(read_block(&mut bytes, &mut end)?);
            terms.push(TermsView::read(&mut bytes)?.to_terms());
        }

        bytes.0.is_empty().then_some(Index {
            subject,
            blocks,
            terms,
        })
    }
}

fn write_block(block: &Block, out: &mut Vec<u8>) {
    out.extend(block.start.to_le_bytes());
    out.extend(block.end.to_le_bytes());
    out.extend([u8::from(block.has_eoe), block.ranges.len() as u8]);
    for stamp in block.ranges.iter().flat_map(|range| [range.0, range.1]) {
        out.extend(stamp.0.to_le_bytes());
        out.extend(stamp.1.to_le_bytes());
        out.extend(stamp.2.to_le_bytes());
    }
}

impl Subject {
    pub(super) fn read(bytes: &mut Bytes<'_>) -> Option<Subject> {
        Some(Subject {
            device: bytes.u64()?,
            inode: bytes.u64()?,
            length: bytes.u64()?,
            changed_ns: bytes.u64()? as i64,
            ends: bytes.array()?,
        })
    }
}

/// Reads a block, which begins where the one before has its `end`.
pub(super) fn read_block(bytes: &mut Bytes<'_>, end: &mut u64) -> Option<Block> {
    let mut block = Block {
        start: bytes.u64()?,
        end: bytes.u64()?,
        has_eoe: bytes.flag()?,
        ..Block::default()
    };

    let count = usize::from(bytes.u8()?);
    if count > RANGES_MAX {
        return None;
    }

    for _ in 0..count {
        let range = (bytes.stamp()?, bytes.stamp()?);
        if range.0 > range.1 {
            return None;
        }
        block.ranges.push(range);
    }

    let length = block.end.checked_sub(block.start)?;
    let start = std::mem::replace(end, block.end);
    (block.start == start && length <= LONGEST_BYTES).then_some(block)
}

fn write_terms(terms: &Terms, out: &mut Vec<u8>) {
    out.push(u8::from(terms.has_joined));
    out.extend((terms.kinds.len() as u16).to_le_bytes());
    for kind in &terms.kinds {
        out.extend(kind.to_le_bytes());
    }
    for word in terms.numbers.iter().chain(terms.text.iter()) {
        out.extend(word.to_le_bytes());
    }
}

/// The terms of a block, where they stand in a file.
pub(super) struct TermsView<'b> {
    has_joined: bool,
    kinds: &'b [u8],
    numbers: &'b [u8],
    text: &'b [u8],
}

impl<'b> TermsView<'b> {
    pub(super) fn read(bytes: &mut Bytes<'b>) -> Option<TermsView<'b>> {
        let has_joined = bytes.flag()?;
        let count = usize::from(u16::from_le_bytes(bytes.array()?));
        if count > KINDS_MAX + 1 {
            return None;
        }
        Some(TermsView {
            has_joined,
            kinds: bytes.take(4 * count)?,
            numbers: bytes.take(8 * NUMBER_WORDS)?,
            text: bytes.take(8 * TEXT_WORDS)?,
        })
    }

    fn to_terms(&self) -> Terms {
        let mut terms = Terms {
            has_joined: self.has_joined,
            kinds: self.kinds().collect(),
            ..Terms::default()
        };
        for (words, bytes) in [
            (&mut terms.numbers[..], self.numbers),
            (&mut terms.text[..], self.text),
        ] {
            let (chunks, _) = bytes.as_chunks::<8>();
            for (word, chunk) in words.iter_mut().zip(chunks) {
                *word = u64::from_le_bytes(*chunk);
            }
        }

        terms
    }
}

impl Filters for TermsView<'_> {
    fn kinds(&self) -> impl ExactSizeIterator<Item = i32> {
        let (chunks, _) = self.kinds.as_chunks::<4>();
        chunks.iter().map(|chunk| i32::from_le_bytes(*chunk))
    }

    fn has_text(&self, bit: u16) -> bool {
        self.text[usize::from(bit >> 3)] >> (bit & 7) & 1 == 1
    }

    fn has_number(&self, bit: u16) -> bool {
        self.numbers[usize::from(bit >> 3)] >> (bit & 7) & 1 == 1
    }
}

/// Bytes that are still to be read.
pub(super) struct Bytes<'b>(pub(super) &'b [u8]);

impl<'b> Bytes<'b> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*first)
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    fn flag(&mut self) -> Option<bool> {
        match self.u8()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    fn stamp(&mut self) -> Option<Stamp> {
        Some((self.u64()?, u32::from_le_bytes(self.array()?), self.u64()?))
    }

    fn take(&mut self, count: usize) -> Option<&'b [u8]> {
        let (first, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(first)
    }
}
