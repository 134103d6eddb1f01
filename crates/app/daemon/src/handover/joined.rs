//! Calls that two captures have recorded, when one takes the other's place.
//!
//! For a moment the programs of both run at each hook. A task makes one call after the other, so that its two events of
//! a call are neighbours in time. Their order is the same for all calls of a kind: hooks run in a fixed order.

use compose::Outcome;
use record::wire::{frame_kind, Event, FrameKind, TARSIER_COMPAT, TARSIER_URING};
use std::collections::{BTreeMap, HashMap, HashSet};

/// Facts about the call of an event, except the time.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct CallIdentity {
    tid: u32,
    kind: CallKind,
    args: [u64; 6],
    exit: i64,
}

/// Number and entry of a call, or number of an operation.
type CallKind = (i32, u32);

/// The flags that say how the call came.
const ENTRY: u32 = TARSIER_COMPAT | TARSIER_URING;

/// An event of one of the captures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SeenCall {
    time_ns: u64,
    id: u64,
}

/// The events of two captures that overlap.
#[derive(Debug, Default)]
pub(crate) struct Overlap {
    /// Events of the earlier capture, and of the later one.
    calls: HashMap<CallIdentity, [Vec<SeenCall>; 2]>,
}

/// The capture that an event belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// The capture that ends.
    Earlier,
    /// The capture that begins.
    Later,
}

/// Distances between neighbours of different captures, in nanoseconds, by which of them came first.
#[derive(Debug, Default)]
struct Neighbours {
    earlier_first: Vec<u64>,
    later_first: Vec<u64>,
}

impl Overlap {
    /// Adds a frame. Only those of events count.
    pub(crate) fn add(&mut self, side: Side, frame: &[u8]) {
        if !frame_kind(frame).is_ok_and(|(kind, _)| kind == FrameKind::Event) {
            return;
        }
        let Ok(event) = Event::parse(frame) else {
            return;
        };

        let event = event.header();
        let call = CallIdentity {
            tid: event.tid,
            kind: (event.nr, event.flags & ENTRY),
            args: event.args,
            exit: event.exit,
        };
        self.calls.entry(call).or_default()[side as usize].push(SeenCall {
            time_ns: event.frame.time_ns,
            id: event.frame.id,
        });
    }

    /// Events of the earlier capture whose calls the later one has recorded, too: see [`Overlap::of_both`].
    pub(crate) fn joined(self, apart_ns_max: u64) -> Joined {
        Joined(self.of_both(apart_ns_max))
    }

    /// Ids of the earlier capture's events whose calls the later one has recorded, too. Events that are further apart
    /// than `apart_ns_max` are of different calls.
    fn of_both(mut self, apart_ns_max: u64) -> HashSet<u64> {
        let mut neighbours: BTreeMap<CallKind, Neighbours> = BTreeMap::new();
        self.calls
            .retain(|_, sides| sides.iter().all(|side| !side.is_empty()));

        for (call, sides) in &mut self.calls {
            for side in sides.iter_mut() {
                side.sort_unstable_by_key(|seen| seen.time_ns);
            }

            let of_kind = neighbours.entry(call.kind).or_default();
            for (side, apart) in changes(sides) {
                // Neighbours so far apart are of two calls, and tell nothing about which hook runs first.
                if apart > apart_ns_max {
                    continue;
                }
                match side {
                    Side::Earlier => of_kind.earlier_first.push(apart),
                    Side::Later => of_kind.later_first.push(apart),
                }
            }
        }

        // Which capture is first for calls of a kind is told by the pairs that stand close together.
        let first: BTreeMap<CallKind, Side> = neighbours
            .into_iter()
            .map(|(kind, found)| (kind, found.first()))
            .collect();

        let pairs = self.calls.iter().flat_map(|(call, sides)| {
            let first = first.get(&call.kind).copied().unwrap_or(Side::Earlier);
            pairs(sides, first, apart_ns_max)
        });
        pairs.collect()
    }
}

/// Events of the earlier capture that the later one has recorded, too.
#[derive(Debug, Default)]
pub(crate) struct Joined(HashSet<u64>);

impl Joined {
    /// The outcome of `record` for a frame, unless it belongs to such an event.
    pub(crate) fn unless_in<E>(
        &self,
        frame: &[u8],
        record: impl FnOnce() -> Result<Outcome, E>,
    ) -> Result<Outcome, E> {
        let of_events = [FrameKind::Event, FrameKind::Chunk, FrameKind::Result];
        let is_in = !self.0.is_empty()
            && frame_kind(frame)
                .is_ok_and(|(kind, head)| of_events.contains(&kind) && self.0.contains(&head.id));
        if is_in {
            Ok(Outcome::Part)
        } else {
            record()
        }
    }
}

impl Neighbours {
    /// The capture whose hook runs first: from its event to the other's there is only the rest of that hook, and from
    /// the other's to its next one a whole call.
    fn first(mut self) -> Side {
        match (
            median(&mut self.earlier_first),
            median(&mut self.later_first),
        ) {
            (Some(earlier), Some(later)) if later < earlier => Side::Later,
            (None, Some(_)) => Side::Later,
            _ => Side::Earlier,
        }
    }
}

fn median(distances: &mut [u64]) -> Option<u64> {
    distances.sort_unstable();
    distances.get(distances.len() / 2).copied()
}

/// Both sides in order of time.
fn merged(sides: &[Vec<SeenCall>; 2]) -> Vec<(Side, SeenCall)> {
    let [earlier, later] = sides;
    let earlier = earlier.iter().map(|seen| (Side::Earlier, *seen));
    let later = later.iter().map(|seen| (Side::Later, *seen));
    let mut all: Vec<_> = earlier.chain(later).collect();
    all.sort_by_key(|(_, seen)| seen.time_ns);
    all
}

/// The distances of neighbours of different sides, with the side of the first.
fn changes(sides: &[Vec<SeenCall>; 2]) -> Vec<(Side, u64)> {
    let all = merged(sides);
    let neighbours = all.windows(2).filter(|pair| pair[0].0 != pair[1].0);
    neighbours
        .map(|pair| (pair[0].0, pair[1].1.time_ns - pair[0].1.time_ns))
        .collect()
}

/// Ids of events of the earlier side that have a partner, if `first` comes first.
fn pairs(sides: &[Vec<SeenCall>; 2], first: Side, apart_ns_max: u64) -> Vec<u64> {
    let all = merged(sides);
    let neighbours = all.windows(2).filter(|pair| {
        let apart = pair[1].1.time_ns - pair[0].1.time_ns;
        pair[0].0 == first && pair[1].0 != first && apart <= apart_ns_max
    });
    neighbours
        .flat_map(|pair| pair.iter())
        .filter(|(side, _)| *side == Side::Earlier)
        .map(|(_, seen)| seen.id)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::wire::{tarsier_event, tarsier_frame, TARSIER_FRAME_EVENT, TARSIER_WIRE_VERSION};
    use zerocopy::IntoBytes;

    const MS: u64 = 1_000_000;

    fn frame(tid: u32, argument: u64, time_ns: u64, id: u64) -> Vec<u8> {
        let mut event = tarsier_event {
            frame: tarsier_frame {
                size: size_of::<tarsier_event>() as u32,
                kind: TARSIER_FRAME_EVENT as u16,
                version: TARSIER_WIRE_VERSION as u16,
                id,
                time_ns,
            },
            tid,
            nr: 62,
            ..Default::default()
        };
        event.args[0] = argument;
        event.as_bytes().to_vec()
    }

    /// The events of a task that makes the same call `calls` times, with the earlier hook's events at `at[0]` of each
    /// microsecond × 10 and the later hook's at `at[1]`; each side sees the events of its range of times.
    fn twice(
        calls: u64,
        at: [u64; 2],
        seen: [std::ops::Range<u64>; 2],
    ) -> (Overlap, [Vec<u64>; 2]) {
        let mut overlap = Overlap::default();
        let mut ids = [Vec::new(), Vec::new()];
        for number in 0..calls {
            for side in [Side::Earlier, Side::Later] {
                let time = number * 10_000 + at[side as usize];
                if seen[side as usize].contains(&time) {
                    overlap.add(side, &frame(7, 1, time, number));
                    ids[side as usize].push(number);
                }
            }
        }
        (overlap, ids)
    }

    #[test]
    fn each_call_is_once_among_what_is_left_wherever_the_captures_begin_and_end() {
        for at in [[1000, 3000], [3000, 1000]] {
            for cut in 0..40 {
                let (begin, end) = (300_000 + cut * 500, 700_000 + cut * 300);
                let (overlap, [earlier, later]) = twice(100, at, [0..end, begin..u64::MAX]);
                let both = overlap.of_both(20 * MS);
                let earlier = earlier.into_iter().filter(|id| !both.contains(id));
                let mut left: Vec<u64> = earlier.chain(later).collect();
                left.sort_unstable();
                assert_eq!(left, (0..100).collect::<Vec<_>>(), "{at:?} {begin} {end}");
            }
        }
    }

    #[test]
    fn calls_that_differ_in_an_argument_or_the_task_are_not_taken_for_one() {
        let mut overlap = Overlap::default();
        overlap.add(Side::Earlier, &frame(7, 1, 100, 1));
        overlap.add(Side::Later, &frame(7, 2, 200, 2));
        overlap.add(Side::Later, &frame(8, 1, 200, 3));
        assert!(overlap.of_both(MS).is_empty());
    }

    #[test]
    fn a_call_long_after_the_same_one_is_another() {
        let mut overlap = Overlap::default();
        overlap.add(Side::Earlier, &frame(7, 1, 100, 1));
        overlap.add(Side::Later, &frame(7, 1, 100 + 2 * MS, 2));
        assert!(overlap.of_both(MS).is_empty());
    }

    #[test]
    fn a_frame_of_another_kind_or_a_cut_one_is_nothing() {
        let mut overlap = Overlap::default();
        let whole = frame(7, 1, 100, 1);
        for len in 0..whole.len() {
            overlap.add(Side::Earlier, &whole[..len]);
        }
        overlap.add(Side::Later, &frame(7, 1, 150, 1));
        assert!(overlap.of_both(MS).is_empty());
    }
}
