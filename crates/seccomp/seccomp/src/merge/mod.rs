//! Merges several filters into one that is proven to decide alike.

mod dag;
mod tree;
mod weights;
mod words;

pub use weights::Weights;

use crate::diagram::{Diagrams, Ref};
use crate::{Chain, Filter, Invalid, TooLarge, MAX_INSNS, NODES_MAX};
use words::Words;

/// A chain with fewer filters that is proven to decide as another chain does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Merged {
    /// The resulting chain: one filter, unless that would be too long.
    pub chain: Chain,
    /// Number of original filters, from the oldest, in each filter of the result.
    pub parts: Vec<usize>,
    /// Reason why the result is not a single filter, if it is not.
    pub too_long: Option<TooLong>,
}

/// Reason why the result has more than one filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong {
    /// Number of instructions that a single filter would need; `None` if its diagram is too large.
    pub insns: Option<usize>,
    /// Limit of instructions.
    pub limit: usize,
}

/// Reason why filters cannot be merged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MergeError {
    /// The proof failed: the result is wrong, which is a bug in this program.
    #[error("the merged filter could not be proven equal to the chain; keep the chain, and report this as a bug of Tarsier: {0}")]
    NotEqual(String),
}

/// Merges a chain into one filter of at most `limit` instructions (at most [`MAX_INSNS`]), and
/// proves that the kernel decides every call as before. If that filter would be too long,
/// neighbouring filters are merged into as few filters as possible and, among such divisions, into
/// the one with the fewest instructions. The data of ALLOW verdicts, which the kernel ignores,
/// becomes 0.
///
/// # Errors
/// [`MergeError::NotEqual`] if the proof fails, which would be a bug.
pub fn merge(chain: &Chain, weights: &Weights, limit: usize) -> Result<Merged, MergeError> {
    let limit = limit.min(MAX_INSNS);
    let filters = chain.filters();
    // One filter is best for time, if it is not too long.
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

/// Limit of filters in one part: more would take too long to try.
const PART_MAX: usize = 64;

/// The best division of the filters up to a certain one.
struct Division {
    parts: usize,
    insns: usize,
    /// Number of filters in the last part, and the filter that they were merged into.
    last: usize,
    filter: Filter,
}

/// Merges neighbours into as few filters of at most `limit` instructions as possible, by dynamic
/// programming over the start of the last part. If a part has no diagram, longer parts that contain
/// it are assumed to have none either.
fn in_parts(
    filters: &[Filter],
    weights: &Weights,
    limit: usize,
) -> Result<(Vec<Filter>, Vec<usize>), MergeError> {
    let mut best: Vec<Division> = Vec::with_capacity(filters.len());
    // End of the last filter that has no diagram by itself: no part extends across it.
    let mut wall = 0;
    for end in 1..=filters.len() {
        let mut found: Option<Division> = None;
        // Parts that end here, the shortest first.
        for last in 1..=(end - wall).min(PART_MAX) {
            let start = end - last;
            let own = &filters[start..end];
            let made = one(&Chain::new(own), weights)?;
            if made.is_err() && last == 1 {
                wall = end;
            }
            let filter = match made {
                Ok(program) if program.len() <= limit => valid(program)?,
                // A single filter stays as it is.
                _ if last == 1 => own[0].clone(),
                // One more filter may make the result shorter, by denying what makes this one long.
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

    // `best` says for each end how long its last part is, so the parts are found from the end.
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

/// Rewrites one filter with fewer instructions, and proves that the kernel decides every call as
/// before. `None` if the filter is better as it is, or its diagram is too large.
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

/// The chain as one proven program, of any length.
fn one(chain: &Chain, weights: &Weights) -> Result<Result<Vec<crate::Insn>, TooLarge>, MergeError> {
    let mut diagrams = Diagrams::new(NODES_MAX);
    let made = make(&mut diagrams, chain, weights);
    let (program, function) = match made {
        Ok(made) => made,
        Err(too_large) => return Ok(Err(too_large)),
    };
    // Too long for the kernel's checks, and for the caller, which needs only its length.
    if program.len() > MAX_INSNS {
        return Ok(Ok(program));
    }

    // The program is executed symbolically again: only an equal function proves that it decides as the chain.
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
