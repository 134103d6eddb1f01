//! Warnings about look-ups that were not answered, on standard error and in the log.

use crate::account::daemon_records::{LoggedAction, Who};
use crate::pipeline::Pipeline;
use crate::stderr::say;
use privsep::lookup::Counts;
use record::RecordType;
use std::time::{Duration, Instant};

/// Time between two warnings.
const WARNING_INTERVAL: Duration = Duration::from_secs(60);

/// Warns about look-ups that were not answered.
#[derive(Default)]
pub(crate) struct Warnings {
    told: Counts,
    last: Option<Instant>,
}

impl Warnings {
    /// Tends the helpers, and says so if look-ups were not answered since the last warning. Call it
    /// once a second.
    pub(crate) fn log(&mut self, pipeline: &mut Pipeline) {
        pipeline.lookups().tend();
        let counts = pipeline.lookups().counts();

        let told = |counts: &Counts| {
            let unanswered = counts.unanswered + counts.names_unanswered;
            (unanswered, counts.replaced, counts.out_of_time)
        };
        if told(&counts) == told(&self.told)
            || self
                .last
                .is_some_and(|last| last.elapsed() < WARNING_INTERVAL)
        {
            return;
        }

        let before = std::mem::replace(&mut self.told, counts);
        self.last = Some(Instant::now());

        let out_of_time = counts.out_of_time - before.out_of_time;
        if out_of_time > 0 {
            say!(
                "tarsier: look-ups for {out_of_time} events took longer than their time: such an event is recorded if a \
                 rule may select it. tarsier status --by uid tells who makes most events"
            );
        }

        let objects = counts.unanswered - before.unanswered;
        let names = counts.names_unanswered - before.names_unanswered;
        let replaced = counts.replaced - before.replaced;
        if (objects, names, replaced) == (0, 0, 0) {
            return;
        }
        say!(
            "tarsier: {objects} objects and {names} names could not be looked up in time, \
             and records lack them; {replaced} helpers were replaced, {} hang. Does a file system \
             (NFS, FUSE, autofs) or a directory service (LDAP) not answer? More in tarsier status",
            counts.stuck
        );

        let [objects, names, replaced] = [objects, names, replaced].map(|count| count.to_string());
        pipeline.log_action(&LoggedAction {
            kind: RecordType::DAEMON_ERR,
            op: "lookups-unanswered",
            who: Who::this_process(),
            extra: &[
                ("objects", &objects),
                ("names", &names),
                ("replaced", &replaced),
            ],
            is_success: false,
        });
    }
}
