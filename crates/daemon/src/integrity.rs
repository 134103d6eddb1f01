//! Reports what others have changed of the capture.

use crate::daemon_records::{Action, Who};
use crate::pipeline::Pipeline;
use crate::stderr::say;
use event::RecordType;

/// The breaches so far.
#[derive(Default)]
pub(super) struct Integrity {
    pub(super) breaches: u64,
}

impl Integrity {
    /// Compares what the programs read with what they were told; each difference is undone and reported. Call it once a
    /// second.
    pub(super) fn check(&mut self, pipeline: &mut Pipeline) {
        for breach in pipeline.engine.check() {
            self.breaches += 1;
            let (what, is_mended) = (&breach.what, breach.is_mended);
            let outcome = match is_mended {
                true => "it is as before",
                false => "IT CANNOT BE MENDED: events may be lost; start tarsier again",
            };
            say!("tarsier: another process has changed {what} of the capture: {outcome}");
            pipeline.say(&Action {
                kind: RecordType::DAEMON_ERR,
                op: "integrity",
                who: Who::this_process(),
                extra: &[
                    ("what", &what.replace(' ', "-")),
                    ("mended", if is_mended { "yes" } else { "no" }),
                ],
                is_success: false,
            });
        }
    }
}
