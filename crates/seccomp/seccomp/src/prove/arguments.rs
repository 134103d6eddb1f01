//! Descriptions of the arguments for which something holds.

use crate::diagram::intervals::intervals;
use crate::diagram::{word_of, Ref, Store, FALSE, TRUE};
use std::fmt;

/// Arguments of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Arguments {
    /// All of them.
    Any,
    /// Those in which one argument has a value in one of these ranges, first and last.
    Ranges(u8, Vec<(u64, u64)>),
    /// Those in which the lower 32 bits of one argument are in one of these ranges.
    LowerRanges(u8, Vec<(u64, u64)>),
    /// Some; they depend on these arguments, or, if there are none, on more than the call.
    Some(Vec<u8>),
}

/// Limit of ranges that are listed.
const RANGES_MAX: usize = 8;

/// Describes a condition on the arguments and the instruction pointer.
pub(super) fn describe(store: &Store, condition: Ref) -> Arguments {
    if condition == TRUE {
        return Arguments::Any;
    }

    let words = store.support(condition).into_iter().map(word_of);
    let mut words: Vec<u32> = words.map(|word| word.0).collect();
    words.sort_unstable();
    words.dedup();
    let mut args: Vec<u8> = words
        .iter()
        .filter(|&&word| word >= 16)
        .map(|word| ((word - 16) / 8) as u8)
        .collect();
    // Words are sorted, so that both halves of an argument stand side by side.
    args.dedup();

    match args[..] {
        [arg] if words == [16 + 8 * u32::from(arg)] => low_ranges(store, condition, words[0])
            .filter(|found| found.len() <= RANGES_MAX)
            .map_or(Arguments::Some(args), |found| {
                let wide = found
                    .into_iter()
                    .map(|(first, last)| (first.into(), last.into()));
                Arguments::LowerRanges(arg, wide.collect())
            }),
        [arg] if words.iter().all(|&word| word >= 16) => ranges(store, condition, arg)
            .map_or(Arguments::Some(args), |found| Arguments::Ranges(arg, found)),
        _ => Arguments::Some(args),
    }
}

/// The values of an argument that satisfy a condition on it alone; `None` if there are too many
/// ranges.
fn ranges(store: &Store, condition: Ref, arg: u8) -> Option<Vec<(u64, u64)>> {
    let low = 16 + 8 * u32::from(arg);
    let mut found: Vec<(u64, u64)> = Vec::new();
    let highs = intervals(store, condition, low + 4, RANGES_MAX)?;

    for (at, high) in highs.iter().enumerate() {
        let first_high = u64::from(high.first);
        let last_high = highs
            .get(at + 1)
            .map_or(u64::from(u32::MAX), |next| u64::from(next.first) - 1);
        for (first, last) in low_ranges(store, high.rest, low)? {
            let is_whole = (first, last) == (0, u32::MAX);
            // The same lower halves under several upper ones are not one range.
            if !is_whole && first_high != last_high {
                return None;
            }
            let range = (
                first_high << 32 | u64::from(first),
                last_high << 32 | u64::from(last),
            );
            match found.last_mut() {
                Some(before) if before.1.checked_add(1) == Some(range.0) => before.1 = range.1,
                _ => found.push(range),
            }
        }
    }

    (found.len() <= RANGES_MAX).then_some(found)
}

fn low_ranges(store: &Store, condition: Ref, word: u32) -> Option<Vec<(u32, u32)>> {
    let parts = intervals(store, condition, word, 2 * RANGES_MAX + 1)?;
    let ends = parts
        .iter()
        .skip(1)
        .map(|next| next.first - 1)
        .chain([u32::MAX]);
    let ranges = parts
        .iter()
        .zip(ends)
        .filter(|(part, _)| part.rest != FALSE);
    Some(ranges.map(|(part, end)| (part.first, end)).collect())
}

impl fmt::Display for Arguments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Arguments::Any => f.write_str("any arguments"),
            Arguments::Ranges(arg, ranges) => write!(f, "a{arg} = {}", listed(ranges)),
            Arguments::LowerRanges(arg, ranges) => {
                write!(f, "a{arg} (32 bits) = {}", listed(ranges))
            }
            Arguments::Some(args) if args.is_empty() => f.write_str("some arguments"),
            Arguments::Some(args) => {
                let names: Vec<String> = args.iter().map(|arg| format!("a{arg}")).collect();
                write!(f, "some values of {}", names.join(", "))
            }
        }
    }
}

fn listed(ranges: &[(u64, u64)]) -> String {
    let text = |&(first, last): &(u64, u64)| match last {
        _ if first == last => format!("{first:#x}"),
        u64::MAX => format!("{first:#x} and more"),
        last => format!("{first:#x} to {last:#x}"),
    };
    let texts: Vec<String> = ranges.iter().map(text).collect();
    texts.join(", ")
}
