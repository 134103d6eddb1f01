//! Many filters into one, proven to decide alike.

mod dag;
mod tree;
mod weights;
mod words;

pub use weights::Weights;

use crate::diagram::{Diagrams, Ref};
use crate::insn::code;
use crate::{Action, Chain, Filter, Invalid, TooLarge, Verdict, MAX_INSNS, NODES_MAX};
use words::Words;

/// A chain that decides as another does, with fewer filters. That it does was proven.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Merged {
    /// The result: one filter, unless that would have been too long.
    pub chain: Chain,
    /// How many of the given filters, from the oldest, went into each filter of the result.
    pub parts: Vec<usize>,
    /// Instructions that a single filter would have, if that is more than the limit; `None` in
    /// `insns` if it could not be made at all.
    pub too_long: Option<TooLong>,
}

/// Why the result has more than one filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong {
    /// What a single filter would need; `None` if its diagram is too large.
    pub insns: Option<usize>,
    /// What it may have.
    pub limit: usize,
}

/// Why filters cannot be merged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MergeError {
    /// The result is not what it should be: an error in this program, found by its own proof.
    #[error("the merged filter could not be proven equal to the chain; keep the chain, and report this as a bug of Tarsier: {0}")]
    NotEqual(String),
}

impl Chain {
    /// How many filters of the chain can ask a supervisor (USER_NOTIF). The kernel lets one filter
    /// of a chain have a listener; which one that is cannot be told from programs.
    pub fn notifying(&self) -> usize {
        let asks = |filter: &&Filter| {
            filter.insns().iter().any(|insn| {
                insn.code == code::RET_K && Verdict(insn.k).action() == Action::UserNotif
            })
        };
        self.filters.iter().filter(asks).count()
    }
}

/// Merges a chain into one filter of at most `limit` instructions (at most [`MAX_INSNS`]), and
/// proves that the kernel decides every call as before. If one filter cannot hold it, neighbours
/// are merged into as few filters as they fit, and among such divisions into the shortest. Data of
/// ALLOW verdicts, which the kernel ignores, becomes 0.
///
/// # Errors
/// [`MergeError::NotEqual`] if the proof fails, which would be a bug.
pub fn merge(chain: &Chain, weights: &Weights, limit: usize) -> Result<Merged, MergeError> {
    let limit = limit.min(MAX_INSNS);
    let filters = chain.filters();
    let whole = one(chain, weights)?;
    match whole {
        Ok(program) if program.len() <= limit => {
            return Ok(Merged {
                chain: Chain::from(valid(program)?),
                parts: vec![filters.len()],
                too_long: None,
            })
        }
        _ => {}
    }
    let too_long = Some(TooLong {
        insns: whole.ok().map(|program| program.len()),
        limit,
    });
    let (merged, parts) = in_parts(filters, weights, limit)?;
    Ok(Merged {
        chain: Chain::new(merged),
        parts,
        too_long,
    })
}

/// Filters that go into one part at most: more would take too long to try.
const PART_MAX: usize = 64;

/// How the filters up to some place are best merged.
struct Division {
    parts: usize,
    insns: usize,
    /// How many filters the last part is made of, and what they became.
    last: usize,
    filter: Filter,
}

/// Merges neighbours into as few filters of at most `limit` instructions as possible, by dynamic
/// programming over where the last part starts. What has no diagram is taken to have none with more
/// filters either.
fn in_parts(
    filters: &[Filter],
    weights: &Weights,
    limit: usize,
) -> Result<(Vec<Filter>, Vec<usize>), MergeError> {
    let mut best: Vec<Division> = Vec::with_capacity(filters.len());
    // Where the last filter stands that has no diagram: no part goes beyond it.
    let mut wall = 0;
    for end in 1..=filters.len() {
        let mut found: Option<Division> = None;
        for last in 1..=(end - wall).min(PART_MAX) {
            let start = end - last;
            let own = &filters[start..end];
            let made = one(&Chain::new(own), weights)?;
            if made.is_err() && last == 1 {
                wall = end;
            }
            let filter = match made {
                Ok(program) if program.len() <= limit => valid(program)?,
                // It stays as it is.
                _ if last == 1 => own[0].clone(),
                // One more filter may deny what makes this one long.
                Ok(_) => continue,
                Err(_) => break,
            };
            let before = start.checked_sub(1).and_then(|index| best.get(index));
            let division = Division {
                parts: before.map_or(0, |before| before.parts) + 1,
                insns: before.map_or(0, |before| before.insns) + filter.insns().len(),
                last,
                filter,
            };
            let cost = |division: &Division| (division.parts, division.insns);
            if found
                .as_ref()
                .is_none_or(|found| cost(&division) < cost(found))
            {
                found = Some(division);
            }
            if wall == end {
                break;
            }
        }
        best.extend(found);
    }
    let (mut merged, mut parts) = (Vec::new(), Vec::new());
    let mut end = filters.len();
    while let Some(division) = end.checked_sub(1).and_then(|index| best.get(index)) {
        merged.push(division.filter.clone());
        parts.push(division.last);
        end -= division.last;
    }
    merged.reverse();
    parts.reverse();
    Ok((merged, parts))
}

/// Rewrites one filter into fewer instructions, and proves that the kernel decides every call as
/// before; `None` if the filter is better as it is (or its diagram too large).
///
/// # Errors
/// [`MergeError::NotEqual`] if the proof fails, which would be a bug.
pub fn optimise(filter: &Filter, weights: &Weights) -> Result<Option<Filter>, MergeError> {
    match one(&Chain::from(filter.clone()), weights)? {
        Ok(program) if program.len() < filter.insns().len() => Ok(Some(valid(program)?)),
        _ => Ok(None),
    }
}

fn valid(program: Vec<crate::Insn>) -> Result<Filter, MergeError> {
    Filter::new(program).map_err(|invalid: Invalid| MergeError::NotEqual(invalid.to_string()))
}

/// The chain as one program, proven, of any length.
fn one(chain: &Chain, weights: &Weights) -> Result<Result<Vec<crate::Insn>, TooLarge>, MergeError> {
    let mut diagrams = Diagrams::new(NODES_MAX);
    let made = make(&mut diagrams, chain, weights);
    let (program, function) = match made {
        Ok(made) => made,
        Err(too_large) => return Ok(Err(too_large)),
    };
    if program.len() > MAX_INSNS {
        return Ok(Ok(program));
    }
    let result = Chain::from(valid(program.clone())?);
    match diagrams.chain(&result) {
        Ok(again) if again == function => Ok(Ok(program)),
        Ok(_) => Err(MergeError::NotEqual("another function".into())),
        Err(too_large) => Ok(Err(too_large)),
    }
}

fn make(
    diagrams: &mut Diagrams,
    chain: &Chain,
    weights: &Weights,
) -> Result<(Vec<crate::Insn>, Ref), TooLarge> {
    let function = diagrams.chain(chain)?;
    let mut words = Words::new(diagrams, chain, weights);
    let root = words.tests(function)?;
    Ok((words.dag.program(root), function))
}
