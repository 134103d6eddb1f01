//! Selects the events of a batch that are sent: those that pass the filters and, where events are aggregated, are not
//! like an earlier one of the batch.
//!
//! The window of aggregation is the batch, so that a batch remains a function of its range of the log; `linger` sets
//! how long it is.

use std::collections::HashMap;

use crate::config::Words;
use crate::filter::Filter;
use crate::likeness::{likeness, Likeness};
use crate::position::Position;

use super::Recipe;

/// The treatment of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Choice {
    /// The event is sent.
    Send,
    /// A filter keeps it back.
    Filter,
    /// The event is like an earlier one, and is counted.
    Count,
}

/// The choices for a batch, and the groups of like events in it.
pub(super) struct Selection {
    filter: Filter,
    /// Filter of the events that are aggregated; `None`: none.
    aggregated: Option<Filter>,
    groups: HashMap<Likeness, Group>,
    /// Groups by the number of their last event.
    ends: HashMap<usize, Likeness>,
}

/// Events that are like an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Group {
    /// Beginning of the event that they are like.
    pub(super) first: Position,
    /// Number of events after that one.
    pub(super) events: u64,
    /// Number of the last of them among the events of the batch.
    last: usize,
}

impl Selection {
    pub(super) fn new(recipe: &Recipe) -> Selection {
        let aggregate = &recipe.aggregate;
        Selection {
            filter: Filter::of(&recipe.keys, &recipe.types),
            aggregated: (!aggregate.is_empty()).then(|| Filter::of(aggregate, &Words::default())),
            groups: HashMap::new(),
            ends: HashMap::new(),
        }
    }

    /// Chooses for an event that begins at `at`. `number`: its number among the events of the batch.
    pub(super) fn choose(&mut self, lines: &[u8], number: usize, at: Position) -> Choice {
        if !self.filter.passes(lines) {
            return Choice::Filter;
        }

        let is_aggregated = |filter: &Filter| filter.passes(lines);
        if !self.aggregated.as_ref().is_some_and(is_aggregated) {
            return Choice::Send;
        }

        let likeness = likeness(lines);
        let Some(group) = self.groups.get_mut(&likeness) else {
            let group = Group {
                first: at,
                events: 0,
                last: number,
            };
            self.groups.insert(likeness, group);
            return Choice::Send;
        };

        if group.events > 0 {
            self.ends.remove(&group.last);
        }
        group.events += 1;
        group.last = number;
        self.ends.insert(number, likeness);

        Choice::Count
    }

    /// The group whose last event has this number.
    pub(super) fn group_ending_at(&self, number: usize) -> Option<Group> {
        let likeness = self.ends.get(&number)?;
        self.groups.get(likeness).copied()
    }
}
