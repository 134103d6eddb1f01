//! What the counts of a report need of each event, read by any thread, for the one thread that counts in the order of
//! the log.

use super::{keys, labels, word_of};
use crate::row::Row;
use crate::EventView;
use abi::record_type as kinds;

/// A text of [`Digests`].
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Span {
    start: u32,
    length: u32,
}

/// Digests of events, in the order of the events.
#[derive(Debug, Default)]
pub struct Digests {
    pub(super) events: Vec<Digest>,
    texts: Vec<u8>,
    lists: Vec<Span>,
}

/// What the counts need of an event.
#[derive(Debug)]
pub(super) struct Digest {
    pub(super) time_ms: u64,
    pub(super) serial: u64,
    pub(super) kind: i32,
    pub(super) is_failure: bool,
    pub(super) has_result: bool,
    pub(super) pid: i32,
    pub(super) ppid: i32,
    pub(super) node: Span,
    pub(super) user: Span,
    pub(super) session: Span,
    pub(super) process: Span,
    /// Only of an event that failed.
    pub(super) error: Span,
    pub(super) exe: Option<Span>,
    pub(super) command: Option<Span>,
    pub(super) unit: Option<Span>,
    pub(super) keys: (u32, u32),
    pub(super) files: (u32, u32),
    pub(super) loss: Option<(u64, Span)>,
}

impl Digests {
    /// Digests of these events. Each goes to `also`, too, with its program, and whether it failed.
    pub fn of<'e>(
        events: impl Iterator<Item = EventView<'e>>,
        mut also: impl FnMut(EventView<'e>, Option<&[u8]>, bool),
    ) -> Digests {
        let mut digests = Digests::default();
        for event in events {
            let row = Row::of(event);
            also(event, row.facts.exe.as_deref(), row.is_failure());
            digests.add(event, &row);
        }
        digests
    }

    /// Adds the digest of an event.
    pub(super) fn add(&mut self, event: EventView<'_>, row: &Row<'_>) {
        let is_failure = row.is_failure();
        let start = self.lists.len() as u32;
        for key in keys(&row.facts) {
            let span = self.text(key);
            self.lists.push(span);
        }

        let middle = self.lists.len() as u32;
        for item in Row::paths_of(event) {
            let span = self.text(&item.path);
            self.lists.push(span);
        }

        let end = self.lists.len() as u32;
        let digest = Digest {
            time_ms: row.time_ms,
            serial: row.serial,
            kind: row.kind,
            is_failure,
            has_result: row.facts.call.success >= 0,
            pid: row.facts.ids.pid,
            ppid: row.facts.ids.ppid,
            node: self.text(row.node.unwrap_or_default()),
            user: self.written(|out| labels::user(row, out)),
            session: self.written(|out| labels::session(&row.facts, out)),
            process: self.written(|out| labels::process(&row.facts, out)),
            error: if is_failure {
                self.written(|out| labels::error(row, out))
            } else {
                Span::default()
            },
            exe: row.facts.exe.as_deref().map(|exe| self.text(exe)),
            command: Row::command_of(event).map(|command| self.text(&command)),
            unit: row.unit.as_deref().map(|unit| self.text(unit)),
            keys: (start, middle),
            files: (middle, end),
            loss: self.loss(event, row.kind),
        };

        self.events.push(digest);
    }

    /// What the daemon says about losses.
    fn loss(&mut self, event: EventView<'_>, kind: i32) -> Option<(u64, Span)> {
        if kind != kinds::DAEMON_ERR {
            return None;
        }
        let text = event.records().next()?.text;
        if word_of(text, b"op=") != Some(b"events-lost") {
            return None;
        }
        let lost = word_of(text, b" lost=").and_then(super::number);
        let cause = word_of(text, b" cause=").unwrap_or_default();
        Some((lost.unwrap_or(0), self.text(cause)))
    }

    fn text(&mut self, text: &[u8]) -> Span {
        self.written(|out| out.extend_from_slice(text))
    }

    /// The text that `write` appends.
    fn written(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> Span {
        let start = self.texts.len();
        write(&mut self.texts);
        Span {
            start: start as u32,
            length: (self.texts.len() - start) as u32,
        }
    }

    pub(super) fn get(&self, span: Span) -> &[u8] {
        &self.texts[span.start as usize..][..span.length as usize]
    }

    pub(super) fn list(&self, (start, end): (u32, u32)) -> impl Iterator<Item = &[u8]> {
        let spans = &self.lists[start as usize..end as usize];
        spans.iter().map(|span| self.get(*span))
    }
}

impl Digest {
    /// Whether the daemon started or ended.
    pub(super) fn is_mark(&self) -> bool {
        matches!(
            self.kind,
            kinds::DAEMON_START | kinds::DAEMON_END | kinds::DAEMON_ABORT
        )
    }
}
