//! Aggregation: events of a batch that are like an earlier one of it.
//!
//! A batch is the window, so that it is a function of its range of the log, as without aggregation; `linger` sets how
//! long it is.

use std::collections::HashMap;

use crate::config::Words;
use crate::filter::Filter;
use crate::likeness::{likeness, Likeness};
use crate::position::Position;

/// The groups of like events of a batch.
pub(super) struct Repeats {
    /// Which events are aggregated; `None`: none.
    keys: Option<Filter>,
    groups: HashMap<Likeness, Group>,
    /// Groups by the number of their last event.
    ends: HashMap<usize, Likeness>,
}

/// Events that are like an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Group {
    /// Where the event begins that they are like.
    pub(super) first: Position,
    /// Number of events after that one.
    pub(super) events: u64,
    /// Number of the last of them among the events of the batch.
    last: usize,
}

impl Repeats {
    pub(super) fn new(keys: &Words) -> Repeats {
        Repeats {
            keys: (!keys.is_empty()).then(|| Filter::of_keys(keys)),
            groups: HashMap::new(),
            ends: HashMap::new(),
        }
    }

    /// Adds an event that begins at `at`. True if an earlier one is like it.
    pub(super) fn add(&mut self, lines: &[u8], number: usize, at: Position) -> bool {
        if !self.keys.as_ref().is_some_and(|keys| keys.passes(lines)) {
            return false;
        }
        let likeness = likeness(lines);
        let Some(group) = self.groups.get_mut(&likeness) else {
            let group = Group {
                first: at,
                events: 0,
                last: number,
            };
            self.groups.insert(likeness, group);
            return false;
        };
        if group.events > 0 {
            self.ends.remove(&group.last);
        }
        group.events += 1;
        group.last = number;
        self.ends.insert(number, likeness);
        true
    }

    /// The group whose last event has this number.
    pub(super) fn ending_at(&self, number: usize) -> Option<Group> {
        let likeness = self.ends.get(&number)?;
        self.groups.get(likeness).copied()
    }
}
