//! State of `tarsier top`, independent of terminal and files.

use super::events::{Events, Item, View, VIEWS};
use std::cmp::Ordering;
use std::collections::HashMap;

/// Time over which a rate is taken, in milliseconds.
pub(super) const RATE_MS: u64 = 10_000;

/// Column by which lines are sorted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sort {
    Events,
    Failed,
    Rate,
    Last,
    Name,
}

impl Sort {
    fn next(self) -> Sort {
        match self {
            Sort::Events => Sort::Failed,
            Sort::Failed => Sort::Rate,
            Sort::Rate => Sort::Last,
            Sort::Last => Sort::Name,
            Sort::Name => Sort::Events,
        }
    }
}

/// A line of a table.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Line {
    /// Number of its label in [`Events`].
    pub(super) label: u32,
    pub(super) events: u64,
    pub(super) failed: u64,
    /// Events within [`RATE_MS`].
    pub(super) recent: u64,
    pub(super) last_ms: u64,
}

/// A view, with the label that it is narrowed to.
#[derive(Debug, Clone)]
struct Level {
    view: View,
    /// View and label that Enter chose in the view above.
    chosen: Option<(View, String)>,
    selected: usize,
}

/// The records of an event, which Enter chose.
#[derive(Debug)]
pub(super) struct RecordsShown {
    pub(super) time_ms: u64,
    pub(super) serial: u64,
    /// Lines of text.
    pub(super) lines: Vec<String>,
    /// Number of the first line on the screen.
    pub(super) top: usize,
}

/// Action that a key asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    Up(usize),
    Down(usize),
    First,
    Last,
    Enter,
    Back,
    View(View),
    NextView,
    Sort,
    FailedOnly,
    Pause,
    Help,
    Filter,
    /// A character of the filter.
    Type(char),
    Erase,
    /// Ends typing: keeps the filter.
    Accept,
    /// Ends typing: drops the filter.
    Drop,
    Quit,
}

/// The state of the screen.
pub(super) struct Model {
    pub(super) events: Events,
    levels: Vec<Level>,
    pub(super) sort: Sort,
    pub(super) failed_only: bool,
    pub(super) is_paused: bool,
    pub(super) shows_help: bool,
    pub(super) is_typing: bool,
    pub(super) filter: String,
    /// The records that are shown in place of a table.
    pub(super) records: Option<RecordsShown>,
    /// Lines of the table, as of the last [`Model::refresh`].
    pub(super) lines: Vec<Line>,
    /// Events that the table counts.
    pub(super) shown: u64,
    now_ms: u64,
    pub(super) has_quit: bool,
}

impl Model {
    /// A model that keeps `most` events.
    pub(super) fn new(most: usize) -> Model {
        Model {
            events: Events::new(most),
            levels: vec![Level {
                view: View::Key,
                chosen: None,
                selected: 0,
            }],
            sort: Sort::Events,
            failed_only: false,
            is_paused: false,
            shows_help: false,
            is_typing: false,
            filter: String::new(),
            records: None,
            lines: Vec::new(),
            shown: 0,
            now_ms: 0,
            has_quit: false,
        }
    }

    fn level(&mut self) -> &mut Level {
        // There is always one: `back` keeps the first.
        let last = self.levels.len() - 1;
        &mut self.levels[last]
    }

    /// The view that is shown.
    pub(super) fn view(&self) -> View {
        self.levels.last().map_or(View::Key, |level| level.view)
    }

    /// Number of the selected line.
    pub(super) fn selected(&self) -> usize {
        self.levels.last().map_or(0, |level| level.selected)
    }

    /// Views and labels that Enter chose on the way here.
    pub(super) fn path(&self) -> impl Iterator<Item = (View, &str)> {
        let chosen = self.levels.iter().filter_map(|level| level.chosen.as_ref());
        chosen.map(|(view, label)| (*view, label.as_str()))
    }

    /// Carries out `action`. Returns whether the screen may look different.
    pub(super) fn act(&mut self, action: Action) -> bool {
        if self.shows_help && action != Action::Quit {
            self.shows_help = false;
            return true;
        }

        if self.records.is_some() && self.read(action) {
            return true;
        }

        match action {
            Action::Up(by) => self.select(self.selected().saturating_sub(by)),
            Action::Down(by) => self.select(self.selected().saturating_add(by)),
            Action::First => self.select(0),
            Action::Last => self.select(usize::MAX),
            Action::Enter => self.enter(),
            Action::Back => self.back(),
            Action::View(view) => self.switch(view),
            Action::NextView => {
                let at = VIEWS.iter().position(|view| *view == self.view());
                self.switch(VIEWS[(at.unwrap_or(0) + 1) % VIEWS.len()]);
            }
            Action::Sort => self.sort = self.sort.next(),
            Action::FailedOnly => self.failed_only = !self.failed_only,
            Action::Pause => self.is_paused = !self.is_paused,
            Action::Help => self.shows_help = true,
            Action::Filter => self.is_typing = true,
            Action::Type(character) => self.filter.push(character),
            Action::Erase => drop(self.filter.pop()),
            Action::Accept => self.is_typing = false,
            Action::Drop => {
                self.is_typing = false;
                self.filter.clear();
            }
            Action::Quit => self.has_quit = true,
        }

        self.refresh(self.now_ms);
        true
    }

    fn select(&mut self, at: usize) {
        let last = self.rows().saturating_sub(1);
        self.level().selected = at.min(last);
    }

    fn rows(&self) -> usize {
        match self.view() {
            View::Event => usize::try_from(self.shown).unwrap_or(usize::MAX),
            _ => self.lines.len(),
        }
    }

    fn switch(&mut self, view: View) {
        let level = self.level();
        level.view = view;
        level.selected = 0;
    }

    /// Moves through the records that are shown, or leaves them. False if the action is about something else.
    fn read(&mut self, action: Action) -> bool {
        let Some(records) = &mut self.records else {
            return false;
        };
        let last = records.lines.len().saturating_sub(1);
        match action {
            Action::Up(by) => records.top = records.top.saturating_sub(by),
            Action::Down(by) => records.top = (records.top + by).min(last),
            Action::First => records.top = 0,
            Action::Last => records.top = last,
            Action::Enter | Action::Back => self.records = None,
            Action::Help | Action::Pause | Action::Quit => return false,
            // Everything else asks for a table.
            _ => {
                self.records = None;
                return false;
            }
        }

        true
    }

    /// Shows the records of the selected event.
    fn show_records(&mut self) {
        let Some(item) = self.newest().nth(self.selected()) else {
            return;
        };
        let not_kept = || {
            let search = format!("tarsier search -a {}", item.serial);
            vec![format!("These records are not kept any more: {search}")]
        };
        self.records = Some(RecordsShown {
            time_ms: item.time_ms,
            serial: item.serial,
            lines: item.records().unwrap_or_else(not_kept),
            top: 0,
        });
    }

    fn enter(&mut self) {
        let view = self.view();
        if view == View::Event {
            return self.show_records();
        }
        let Some(line) = self.lines.get(self.selected()) else {
            return;
        };
        let chosen = Some((view, self.events.label(line.label).to_owned()));
        self.levels.push(Level {
            view: view.below(),
            chosen,
            selected: 0,
        });
        self.filter.clear();
    }

    fn back(&mut self) {
        if !self.filter.is_empty() {
            self.filter.clear();
        } else if self.levels.len() > 1 {
            self.levels.pop();
        }
    }

    /// Whether an event is among those that Enter chose.
    fn is_chosen(&self, item: &Item, chosen: &[(View, Option<u32>)]) -> bool {
        let fits = |(view, label): &(View, Option<u32>)| {
            label.is_some_and(|label| item.labels(*view).contains(&label))
        };
        (!self.failed_only || item.is_failure) && chosen.iter().all(fits)
    }

    fn chosen(&self) -> Vec<(View, Option<u32>)> {
        self.path()
            .map(|(view, label)| (view, self.events.find(label)))
            .collect()
    }

    /// The events of the view of events, newest first.
    pub(super) fn newest(&self) -> impl Iterator<Item = &Item> {
        let chosen = self.chosen();
        let is_shown = move |item: &&Item| self.is_chosen(item, &chosen) && self.has_text(item);
        self.events.newest().filter(is_shown)
    }

    fn has_text(&self, item: &Item) -> bool {
        self.filter.is_empty()
            || VIEWS
                .iter()
                .flat_map(|view| item.labels(*view))
                .any(|label| self.events.label(*label).contains(&self.filter))
    }

    /// Counts anew. `now_ms` is the time that rates end at.
    pub(super) fn refresh(&mut self, now_ms: u64) {
        self.now_ms = now_ms;
        let view = self.view();
        if view == View::Event {
            self.lines.clear();
            self.shown = self.newest().count() as u64;
        } else {
            (self.lines, self.shown) = self.counted(view);
        }
        let at = self.selected();
        self.select(at);
    }

    fn counted(&self, view: View) -> (Vec<Line>, u64) {
        let since_ms = self.now_ms.saturating_sub(RATE_MS);
        let (mut lines, mut shown): (HashMap<u32, Line>, u64) = Default::default();
        let chosen = self.chosen();
        for item in self
            .events
            .newest()
            .filter(|item| self.is_chosen(item, &chosen))
        {
            shown += 1;
            for label in item.labels(view) {
                let line = lines.entry(*label).or_insert(Line {
                    label: *label,
                    events: 0,
                    failed: 0,
                    recent: 0,
                    last_ms: 0,
                });
                line.events += 1;
                line.failed += u64::from(item.is_failure);
                line.recent += u64::from(item.time_ms > since_ms);
                line.last_ms = line.last_ms.max(item.time_ms);
            }
        }

        let has_text = |line: &Line| self.events.label(line.label).contains(&self.filter);
        let mut lines: Vec<_> = lines.into_values().filter(has_text).collect();
        lines.sort_by(|a, b| self.order(a, b));
        (lines, shown)
    }

    fn order(&self, a: &Line, b: &Line) -> Ordering {
        let by_name = || self.events.label(a.label).cmp(self.events.label(b.label));
        let first = match self.sort {
            Sort::Events => b.events.cmp(&a.events),
            Sort::Failed => (b.failed, b.events).cmp(&(a.failed, a.events)),
            Sort::Rate => (b.recent, b.events).cmp(&(a.recent, a.events)),
            Sort::Last => b.last_ms.cmp(&a.last_ms),
            Sort::Name => Ordering::Equal,
        };
        first.then_with(by_name)
    }
}
