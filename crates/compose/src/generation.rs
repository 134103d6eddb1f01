//! A rule set in force.

use event::wire::Event;
use plan::{Identities, Plan, RecordFilter};
use rules::{Action, Rule};
use std::collections::BTreeSet;

/// A rule set, as events are understood by it.
pub struct Generation {
    /// What the programs match by. Its number stands in events.
    pub plan: Plan,
    /// What its paths were when it was planned.
    pub identities: Identities,
    /// Records that rules of the exclude list drop.
    pub exclude: Option<RecordFilter>,
    /// Messages of programs that rules of the user list drop.
    pub user: Option<RecordFilter>,
    /// Places of the rules whose events are flushed at once.
    pub urgent: BTreeSet<u32>,
}

impl Generation {
    /// The rules of `plan`, whose paths were `identities`; those at the places `urgent` have their events flushed at once.
    pub fn new(plan: Plan, identities: Identities, urgent: BTreeSet<u32>) -> Generation {
        Generation {
            exclude: RecordFilter::exclude(&plan.rules),
            user: RecordFilter::user(&plan.rules),
            urgent,
            plan,
            identities,
        }
    }

    /// The rules among which the first stage has left the decision, with their places.
    pub(crate) fn remaining<'a>(
        &'a self,
        event: &'a Event<'_>,
    ) -> impl Iterator<Item = (u32, &'a Rule)> {
        let list = event.candidates().next().map_or(0, |first| first.list);
        let pages = event.candidates().map(|page| (page.page, page.mask));
        self.plan.remaining(list, pages)
    }

    /// Places of the rules that an event came for if none of them records it: all that were still candidates.
    pub(crate) fn came_for<'a>(&'a self, event: &'a Event<'_>) -> impl Iterator<Item = u32> + 'a {
        let remaining = self.remaining(event);
        remaining
            .filter(|(_, rule)| rule.action != Action::Never)
            .map(|(place, _)| place)
    }
}
