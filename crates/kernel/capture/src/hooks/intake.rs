//! The rings, and the number of events taken from them.

use super::control::Control;
use super::counters::Counts;
use super::integrity::Breach;
use super::sums::Sums;
use crate::rings::Stream;

/// All rings as one stream, with the number of events taken from it.
pub(super) struct Intake {
    pub(super) stream: Stream,
    sums: Sums,
}

impl Intake {
    /// An intake that has taken nothing yet.
    pub(super) fn new(stream: Stream) -> Intake {
        Intake {
            stream,
            sums: Sums::default(),
        }
    }

    /// See [`super::EbpfEngine::drain`].
    pub(super) fn drain(
        &mut self,
        control: &Control,
        now_ns: u64,
        mut take: impl FnMut(usize, &[u8]) -> bool,
    ) -> usize {
        let sums = &mut self.sums;
        self.stream.drain(now_ns, |cpu, frame| {
            control.count_taken();
            sums.take(frame);
            take(cpu, frame)
        })
    }

    /// See [`super::EbpfEngine::drain_held`].
    pub(super) fn drain_held(
        &mut self,
        control: &Control,
        now_ns: u64,
        mut take: impl FnMut(usize, u64, &[u8]) -> bool,
    ) -> usize {
        let sums = &mut self.sums;
        self.stream.drain_held(now_ns, |cpu, end, frame| {
            control.count_taken();
            sums.take(frame);
            take(cpu, end, frame)
        })
    }

    /// Restores what others have changed of the positions in the rings.
    pub(super) fn restore(&mut self) -> Option<Breach> {
        self.stream.restore().then(|| Breach {
            what: "positions of rings".to_owned(),
            is_mended: true,
        })
    }

    /// Compares the numbers of events counted and taken; only if all that were counted before have been taken.
    pub(super) fn check(&mut self, counts: &Counts) -> Option<Breach> {
        let counted = counts.read().events;
        if !self.stream.is_empty() || counts.read().events != counted {
            return None;
        }
        let more = self.sums.compare(counted)?;
        Some(Breach {
            what: format!("number of events ({more:+} counted beside those in rings)"),
            is_mended: false,
        })
    }
}
