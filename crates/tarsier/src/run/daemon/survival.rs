//! What the daemon does for the one after it, and about the time without one.

use super::Daemon;
use crate::run::clock::monotonic_ns;
use crate::run::daemon_records::{Action, Who};
use crate::run::engine::Engine;
use crate::run::survival::{remember, Alone, Handing, PageWitness};
use crate::stderr::say;
use anyhow::Result;
use capture::{Handed, Pins};
use event::RecordType;
use journal::Witness;
use plan::Plan;
use std::sync::Arc;

impl Daemon {
    /// Has the journal tell the page for the next daemon what it writes.
    pub(in crate::run) fn witness_writes(&mut self) {
        let handover = self.engine.handover();
        let witness = handover.map(|page| Box::new(PageWitness(page)) as Box<dyn Witness>);
        self.journal.set_witness(witness);
    }

    /// Notes that something else than an event of the engine was handed to the log.
    pub(in crate::run) fn note_other(&mut self) {
        if let Some(handover) = self.engine.handover() {
            let end = self.journal.taken();
            let given_up = handover.note(Handed { end, from: None });
            if let (Some((cpu, position)), Some(stream)) = (given_up, self.engine.stream()) {
                stream.release_to(cpu, position);
            }
        }
    }

    /// Gives the rings the room back of events that could not be noted.
    pub(in crate::run) fn give_back(&mut self, handing: Handing) {
        if let Some(stream) = self.engine.stream() {
            for (cpu, position) in handing.given_up {
                stream.release_to(cpu, position);
            }
        }
    }

    pub(in crate::run) fn pin_dir(&self) -> Option<String> {
        let pins = self.engine.pins();
        pins.map(|pins| pins.dir().display().to_string())
    }

    /// After a commit: gives the rings their room back for what was written.
    pub(in crate::run) fn settle(&mut self) {
        let Some(handover) = self.engine.handover() else {
            return;
        };
        let untold = self.losses_elsewhere().saturating_sub(self.told_elsewhere);
        if let Some(stream) = self.engine.stream() {
            handover.settle(|cpu, position| stream.release_to(cpu, position));
            stream.relieve(|| handover.give_up().map(|handed| handed.from));
        }
        handover.live(monotonic_ns(), self.recorder.operations.len() as u64);
        handover.set_untold(untold);
    }

    /// Has the next daemon understand the events of a rule set that is about to be put in force.
    pub(in crate::run) fn remember(&self, plan: &Plan) -> Result<()> {
        match self.engine.pins() {
            Some(pins) => remember(pins, plan),
            None => Ok(()),
        }
    }

    /// DAEMON_RESUME: how long there was no daemon, and what was lost meanwhile.
    pub(in crate::run) fn say_alone(&mut self, alone: &Alone) {
        let lost: u64 = alone.lost.iter().map(|(_, count)| count).sum();
        let causes = alone.lost.iter().map(|(cause, n)| format!("{cause}:{n}"));
        let causes = causes.collect::<Vec<_>>().join(",");
        let (ms, waiting) = (alone.ms.to_string(), alone.waiting_bytes.to_string());
        let lost_text = lost.to_string();
        let mut extra = vec![
            ("alone-ms", ms.as_str()),
            ("waiting-bytes", waiting.as_str()),
            ("lost", lost_text.as_str()),
        ];
        if lost > 0 {
            extra.push(("cause", causes.as_str()));
        }
        say!(
            "tarsier: capture went on for {} ms without a daemon: {waiting} bytes waited, {lost} events lost",
            alone.ms
        );
        self.say(&Action {
            kind: RecordType::DAEMON_RESUME,
            op: "capture-resumed",
            who: Who::this_process(),
            extra: &extra,
            is_success: lost == 0,
        });
    }

    /// Reads what another version left to its end, and removes it.
    pub(in crate::run) fn finish_remains(&mut self, pins: Option<&Arc<Pins>>) {
        if let Engine::Remains(remains) = &mut self.engine {
            remains.unhook();
            if remains.is_readable() {
                self.drain();
                self.operations_without_result(true);
                self.commit();
            } else {
                let unread = remains.stream().unread_bytes();
                say!("tarsier: {unread} bytes of events of another version cannot be read");
            }
        }
        if let Engine::Remains(remains) = std::mem::replace(&mut self.engine, Engine::Kernel) {
            let is_same = pins.is_some_and(|pins| pins.dir() == remains.dir());
            if !remains.remove(is_same) {
                say!("tarsier: the directory of an earlier capture is not empty");
            }
        }
    }
}
