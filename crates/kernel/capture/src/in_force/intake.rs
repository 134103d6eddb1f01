//! The rings, and the number of events taken from them.

use crate::check::integrity::Breach;
use crate::check::sums::Sums;
use crate::rings::RingStream;
use crate::shared::control::Control;
use crate::shared::counters::Counts;

/// All rings as one stream, with the number of events taken from it.
pub(crate) struct Intake {
    pub(crate) stream: RingStream,
    sums: Sums,
}

impl Intake {
    /// An intake that has taken nothing yet.
    pub(crate) fn new(stream: RingStream) -> Intake {
        Intake {
            stream,
            sums: Sums::default(),
        }
    }

    /// See [`crate::in_force::engine::EbpfEngine::drain`].
    pub(crate) fn drain(
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

    /// See [`crate::in_force::engine::EbpfEngine::drain_held`].
    pub(crate) fn drain_held(
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
    pub(crate) fn restore(&mut self) -> Option<Breach> {
        self.stream.restore().then(|| Breach {
            what: "positions of rings".to_owned(),
            is_mended: true,
        })
    }

    /// Compares the numbers of events counted and taken; only if all that were counted before have been taken.
    pub(crate) fn check(&mut self, counts: &Counts) -> Option<Breach> {
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
