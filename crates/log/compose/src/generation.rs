//! A rule set, with what is needed to compose its events.

use plan::{asks_cgroup, asks_past, Capabilities, Identities, Plan, RecordFilter, ShapeKind};
use record::wire::{Event, TARSIER_UNDECIDED};
use rules::{Action, Rule};
use std::collections::{BTreeMap, BTreeSet};

/// A rule set, with what is needed to compose its events.
pub struct Generation {
    /// The plan by which the programs match. Its number, `plan.generation`, is in the header of each event.
    pub plan: Plan,
    /// The objects of the rules' paths when the plan was made.
    pub identities: Identities,
    /// Filter of the exclude list; `None` if it has no rules.
    pub exclude: Option<RecordFilter>,
    /// Filter of the user list, for messages of programs; `None` if it has no rules.
    pub user: Option<RecordFilter>,
    /// Indices in `plan.rules` of the rules whose events are flushed at once.
    pub urgent: BTreeSet<u32>,
    /// Most events per second that are recorded of each of these rules, by index in `plan.rules`.
    pub budgets: BTreeMap<u32, u32>,
    /// Labels that these rules give to the processes of their events, by index in `plan.rules`.
    pub labels: BTreeMap<u32, Vec<String>>,
}

impl Generation {
    /// The rule set of `plan`, which was made with `identities`. `urgent` holds the indices of the rules whose events
    /// are flushed at once.
    pub fn new(plan: Plan, identities: Identities, urgent: BTreeSet<u32>) -> Generation {
        Generation {
            exclude: RecordFilter::exclude(&plan.rules),
            user: RecordFilter::user(&plan.rules),
            urgent,
            budgets: BTreeMap::new(),
            labels: BTreeMap::new(),
            plan,
            identities,
        }
    }

    /// A rule set with this one's number and no rules.
    pub(crate) fn without_rules(&self) -> Generation {
        // Without rules, the architecture does not matter.
        let capabilities = Capabilities::assumed(abi::Arch::X86_64);
        let plan = Plan::for_kernel(&[], &capabilities, self.plan.generation);
        Generation::new(plan, Identities::default(), BTreeSet::new())
    }

    /// Sets the budgets of rules.
    pub fn with_budgets(self, budgets: BTreeMap<u32, u32>) -> Generation {
        Generation { budgets, ..self }
    }

    /// Sets the labels that events of rules give.
    pub fn with_labels(self, labels: BTreeMap<u32, Vec<String>>) -> Generation {
        Generation { labels, ..self }
    }

    /// Whether calls of bpf(2) may be recorded.
    pub fn watches_bpf(&self) -> bool {
        let mut calls = self.plan.calls.values();
        calls.any(|call| call.shape.kind == ShapeKind::Bpf)
    }

    /// The rules that the first stage left undecided for `event`, with their indices in `plan.rules`.
    pub(crate) fn remaining<'a>(
        &'a self,
        event: &'a Event<'_>,
    ) -> impl Iterator<Item = (u32, &'a Rule)> {
        let list = event.candidates().next().map_or(0, |first| first.list);
        let pages = event.candidates().map(|page| (page.page, page.mask));
        self.plan.remaining(list, pages)
    }

    /// Whether the cgroup of the event's task may decide which rule selects it.
    pub(crate) fn asks_cgroup(&self, event: &Event<'_>) -> bool {
        self.plan.workloads.ask_cgroups() && self.asks(event, asks_cgroup)
    }

    /// Whether the past of the event's process may decide which rule selects it.
    pub(crate) fn asks_past(&self, event: &Event<'_>) -> bool {
        !self.plan.workloads.past.is_empty() && self.asks(event, asks_past)
    }

    fn asks(&self, event: &Event<'_>, does_ask: fn(&Rule) -> bool) -> bool {
        let is_open = event.has_flag(TARSIER_UNDECIDED);
        is_open && self.remaining(event).any(|(_, rule)| does_ask(rule))
    }

    /// Indices of the rules for which an event was sent, for an event that none of them records: all candidates of the
    /// second stage, except `never` rules.
    pub(crate) fn came_for<'a>(&'a self, event: &'a Event<'_>) -> impl Iterator<Item = u32> + 'a {
        let remaining = self.remaining(event);
        remaining
            .filter(|(_, rule)| rule.action != Action::Never)
            .map(|(place, _)| place)
    }
}
