//! Keeps what the composer knows of processes complete.

use crate::pipeline::Pipeline;
use std::time::{Duration, Instant};

/// Shortest time between two surveys of all processes after lost frames: whoever makes many processes can lose many.
const PAUSE: Duration = Duration::from_secs(10);

/// Lost frames of processes that a survey has made up for, and the time of the last survey.
#[derive(Default)]
pub(crate) struct ProcessLosses {
    answered: u64,
    last: Option<Instant>,
}

impl ProcessLosses {
    /// Looks at all processes again if frames that tell of them were lost: those that have ended are forgotten, and what
    /// others execute is known again. Call it once a second.
    pub(crate) fn survey_if_lost(&mut self, pipeline: &mut Pipeline) {
        let lost = pipeline.engine().ring_counters().processes_lost;
        let is_early = self.last.is_some_and(|last| last.elapsed() < PAUSE);
        if lost > self.answered && !is_early {
            self.answered = lost;
            self.last = Some(Instant::now());
            pipeline.survey_processes();
        }
    }
}
