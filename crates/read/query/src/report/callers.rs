//! Counts of calls by who made them: the names of users, programs and keys are looked up once for many calls of a
//! process, not once for each.

use super::counts::{each_of_kind, each_text, CallerCounts, Column};
use super::summary::Summary;
use super::Kind;
use crate::event::EventView;
use crate::facts::{Facts, NO_LOGIN};
use crate::usual::{each_path, UsualCall};
use crate::Dialect;

impl Summary {
    /// Whether the counts of this report are by who made a call and by files.
    pub(super) fn is_by_caller(&self) -> bool {
        let kinds = [
            Kind::Main,
            Kind::Comm,
            Kind::Exe,
            Kind::File,
            Kind::Key,
            Kind::Pid,
            Kind::Terminal,
            Kind::User,
        ];
        self.request.dialect == Dialect::Own && kinds.contains(&self.request.kind)
    }

    /// Counts an event that is a call in the usual form. False if it is none.
    pub(super) fn add_call(&mut self, event: EventView<'_>) -> bool {
        // Names of ENRICHED count from the first record.
        let Some(call) = UsualCall::of_event(event) else {
            return false;
        };
        let result = i32::from(call.is_success);
        if !self.request.takes_of(event, result) {
            return true;
        }

        self.place_at(event);
        if self.request.kind == Kind::Main {
            self.count_call(result);
        }

        if matches!(self.request.kind, Kind::Main | Kind::File) {
            let (column, mut place) = match self.request.kind {
                Kind::Main => (Column::Files, self.place),
                _ => (Column::Main, self.place + 1),
            };
            each_path(event, |name| {
                self.texts[column as usize].add(&name, place);
                place += u128::from(self.request.kind == Kind::File);
            });
        }

        let (place, record) = (self.place, event.places[0]);
        let names = match (self.request.kind, record.names) {
            (Kind::User, Some((start, end))) => &event.text[start..end],
            _ => &[],
        };
        let key = [
            &event.text[record.start + call.caller_at..record.end],
            names,
        ];
        let slot = self.callers.place(key);
        match self.callers.get(slot, key) {
            Some(caller) => {
                caller.hits += 1;
                caller.first = caller.first.min(place);
            }
            None => {
                let caller = self.caller(event);
                if let Some(caller) = self.callers.put(slot, key, caller) {
                    self.count_caller(caller);
                }
            }
        }

        true
    }

    /// What the first record of an event counts for.
    fn caller(&mut self, event: EventView<'_>) -> CallerCounts {
        let alone = EventView {
            places: &event.places[..1],
            ..event
        };
        let facts = Facts::read_view(alone, &self.wanted, self.request.dialect).unwrap_or_default();
        let mut texts = Vec::new();
        let mut add = |column: Column, text: &[u8]| texts.push((column, text.into()));

        match self.request.kind {
            Kind::Main => each_text(&facts, add),
            Kind::User if facts.ids.auid != NO_LOGIN => {
                add(
                    Column::Main,
                    &self.names.user(facts.ids.auid, Some(alone), 31),
                );
            }
            Kind::Pid | Kind::User | Kind::File => {}
            kind => each_of_kind(kind, &facts, |text| add(Column::Main, text)),
        }

        let has_pid = matches!(self.request.kind, Kind::Main | Kind::Pid);
        CallerCounts {
            texts,
            pid: (has_pid && facts.ids.pid != -1).then_some(facts.ids.pid),
            hits: 1,
            first: self.place,
        }
    }

    /// Counts the calls of all callers that are kept.
    pub(super) fn count_callers(&mut self) {
        for caller in self.callers.take() {
            self.count_caller(caller);
        }
    }

    fn count_caller(&mut self, caller: CallerCounts) {
        let mut place = caller.first;
        for (column, text) in &caller.texts {
            // Several texts of a report on one thing come one after the other.
            place += u128::from(self.request.kind != Kind::Main);
            self.texts[*column as usize].add_hits(text, caller.hits, place);
        }
        if let Some(pid) = caller.pid {
            self.numbers.add_hits(pid, caller.hits);
        }
    }
}
