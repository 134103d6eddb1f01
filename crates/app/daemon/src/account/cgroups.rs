//! Keeps what the composer knows of cgroups complete.

use crate::pipeline::Pipeline;
use std::time::{Duration, Instant};

/// Shortest time between two surveys of all cgroups after lost frames: a process that may create cgroups can create
/// many.
const PAUSE: Duration = Duration::from_secs(10);

/// Number of lost frames that surveys have made good, and the time of the last survey.
#[derive(Default)]
pub(crate) struct CgroupLosses {
    answered: u64,
    last: Option<Instant>,
}

impl CgroupLosses {
    /// Looks at all cgroups again if frames that tell of them were lost. Until then, and for those that ended
    /// meanwhile, each unknown one is looked up by its id. Call it once a second.
    pub(crate) fn survey_if_lost(&mut self, pipeline: &mut Pipeline) {
        let lost = pipeline.engine().ring_counters().cgroups_lost;
        let is_early = self.last.is_some_and(|last| last.elapsed() < PAUSE);
        if lost > self.answered && !is_early {
            self.answered = lost;
            self.last = Some(Instant::now());
            pipeline.survey_cgroups();
        }
    }
}
