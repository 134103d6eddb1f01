//! What the counts of a report need of each event, read by any thread, for the one thread that counts in the order of
//! the log.

use super::tree::Count;
use super::{keys, labels, word_of};
use crate::memo::{Memo, MemoKey};
use crate::row::{call_name, Row};
use crate::usual::{caller_names, UsualCall};
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
    pub(super) callers: Vec<DigestCaller>,
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
    /// Index of who acted.
    pub(super) caller: u32,
    /// Only of an event that failed.
    pub(super) error: Span,
    pub(super) command: Option<Span>,
    pub(super) files: (u32, u32),
    pub(super) loss: Option<(u64, Span)>,
}

/// Who acted, on which rule's behalf: the same for many events.
#[derive(Debug)]
pub(super) struct DigestCaller {
    pub(super) pid: i32,
    pub(super) ppid: i32,
    pub(super) node: Option<Span>,
    pub(super) user: Span,
    pub(super) session: Span,
    pub(super) process: Span,
    pub(super) exe: Option<Span>,
    pub(super) unit: Option<Span>,
    pub(super) keys: (u32, u32),
    /// Its events.
    count: Count,
}

/// Makes digests. Remembers who acted in earlier events.
#[derive(Debug, Default)]
pub struct Digester {
    callers: Memo<KnownCaller>,
    /// Number of [`Digests`] that were begun.
    begun: u64,
}

/// A caller of an earlier event.
#[derive(Debug)]
struct KnownCaller {
    node: Option<Box<[u8]>>,
    text: CallerText,
    /// Where it stands in which digests.
    place: (u64, u32),
}

#[derive(Debug)]
struct CallerText {
    pid: i32,
    ppid: i32,
    user: Box<[u8]>,
    session: Box<[u8]>,
    process: Box<[u8]>,
    exe: Option<Box<[u8]>>,
    unit: Option<Box<[u8]>>,
    keys: Vec<Box<[u8]>>,
}

impl CallerText {
    fn of(row: &Row<'_>) -> CallerText {
        let written = |write: &dyn Fn(&mut Vec<u8>)| {
            let mut text = Vec::new();
            write(&mut text);
            text.into_boxed_slice()
        };
        CallerText {
            pid: row.facts.ids.pid,
            ppid: row.facts.ids.ppid,
            user: written(&|out| labels::user(row, out)),
            session: written(&|out| labels::session(&row.facts, out)),
            process: written(&|out| labels::process(&row.facts, out)),
            exe: row.facts.exe.as_deref().map(Into::into),
            unit: row.unit.as_deref().map(Into::into),
            keys: keys(&row.facts).into_iter().map(Into::into).collect(),
        }
    }
}

impl Digester {
    /// Begins the digests of the events that come next.
    pub fn begin(&mut self) -> Digests {
        self.begun += 1;
        Digests::default()
    }

    /// Adds the digest of an event.
    pub fn add(&mut self, event: EventView<'_>, digests: &mut Digests) {
        match UsualCall::of_event(event) {
            Some(call) => self.call(event, &call, digests),
            None => digests.any(event),
        }
    }

    fn call(&mut self, event: EventView<'_>, call: &UsualCall, digests: &mut Digests) {
        let caller = self.caller(event, call, digests);
        let error = if call.is_success {
            Span::default()
        } else {
            let name = call_name(call.arch, call.number);
            digests.written(|out| {
                labels::error(Some(call.exit), name.as_deref(), event.kind(), out);
            })
        };

        let has_arguments = event.has_kind(kinds::EXECVE, kinds::EXECVE);
        let command = has_arguments.then(|| Row::command_of(event)).flatten();
        let digest = Digest {
            time_ms: time_ms(event),
            serial: event.serial,
            kind: event.kind(),
            is_failure: !call.is_success,
            has_result: true,
            caller,
            error,
            command: command.map(|command| digests.text(&command)),
            files: digests.files(event),
            loss: None,
        };
        digests.push(digest);
    }

    /// Index of who made a call.
    fn caller(&mut self, event: EventView<'_>, call: &UsualCall, digests: &mut Digests) -> u32 {
        let record = event.places[0];
        let names = record.names.map(|(start, end)| &event.text[start..end]);
        let key: MemoKey<'_> = [
            &event.text[record.start + call.caller_at..record.end],
            caller_names(names.unwrap_or_default()),
        ];
        let slot = self.callers.place(key);
        let known = self.callers.get(slot, key);
        if let Some(known) = known.filter(|known| known.node.as_deref() == event.node) {
            if known.place.0 != self.begun {
                known.place = (self.begun, digests.caller(&known.text, event.node));
            }
            return known.place.1;
        }

        let alone = EventView {
            places: &event.places[..1],
            ..event
        };
        let text = CallerText::of(&Row::of(alone));
        let number = digests.caller(&text, event.node);
        let known = KnownCaller {
            node: event.node.map(Into::into),
            text,
            place: (self.begun, number),
        };
        // What is forgotten can be read again.
        drop(self.callers.put(slot, key, known));
        number
    }
}

fn time_ms(event: EventView<'_>) -> u64 {
    let (sec, msec, _) = event.time();
    sec.saturating_mul(1000).saturating_add(msec.into())
}

impl Digests {
    /// Adds the digest of an event of any form.
    pub(super) fn any(&mut self, event: EventView<'_>) {
        let row = Row::of(event);
        let is_failure = row.is_failure();
        let caller = self.caller(&CallerText::of(&row), row.node);
        let (exit, call) = (row.facts.call.exit, row.call.as_deref());
        let error = if is_failure {
            self.written(|out| labels::error(exit, call, row.kind, out))
        } else {
            Span::default()
        };

        let digest = Digest {
            time_ms: row.time_ms,
            serial: row.serial,
            kind: row.kind,
            is_failure,
            has_result: row.facts.call.success >= 0,
            caller,
            error,
            command: Row::command_of(event).map(|command| self.text(&command)),
            files: self.files(event),
            loss: self.loss(event, row.kind),
        };
        self.push(digest);
    }

    fn push(&mut self, digest: Digest) {
        let caller = &mut self.callers[digest.caller as usize];
        caller.count.add(digest.time_ms, digest.is_failure);
        self.events.push(digest);
    }

    fn caller(&mut self, text: &CallerText, node: Option<&[u8]>) -> u32 {
        let start = self.lists.len() as u32;
        for key in &text.keys {
            let span = self.text(key);
            self.lists.push(span);
        }

        let caller = DigestCaller {
            pid: text.pid,
            ppid: text.ppid,
            node: node.map(|node| self.text(node)),
            user: self.text(&text.user),
            session: self.text(&text.session),
            process: self.text(&text.process),
            exe: text.exe.as_deref().map(|exe| self.text(exe)),
            unit: text.unit.as_deref().map(|unit| self.text(unit)),
            keys: (start, self.lists.len() as u32),
            count: Count::default(),
        };
        self.callers.push(caller);
        self.callers.len() as u32 - 1
    }

    fn files(&mut self, event: EventView<'_>) -> (u32, u32) {
        let start = self.lists.len() as u32;
        for item in Row::paths_of(event) {
            let span = self.text(&item.path);
            self.lists.push(span);
        }
        (start, self.lists.len() as u32)
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

    /// The programs of events, each with its node and the count of events.
    pub fn programs(&self) -> impl Iterator<Item = (Option<&[u8]>, &[u8], Count)> {
        let callers = self.callers.iter();
        callers.filter_map(|caller| {
            let node = caller.node.map(|node| self.get(node));
            Some((node, self.get(caller.exe?), caller.count))
        })
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
