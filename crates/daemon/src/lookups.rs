//! The helpers that look up paths and names for the daemon, and what is said when they cannot.

use crate::daemon_records::{Action, Who};
use crate::host::kernel_has;
use crate::pipeline::Pipeline;
use crate::scheduling::Scheduling;
use crate::stderr::say;
use event::RecordType;
use lookup::{Counts, Remote};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Time between two warnings.
const WARNING_INTERVAL: Duration = Duration::from_secs(60);

/// The system, as this process looks it up.
pub(super) type Lookups = Arc<Remote>;

const _: () = assert!(lookup::HELPERS == capture::Helpers::MAX);

/// Starts the helper for paths. Without it recording goes on, and each look-up tries again.
pub(super) fn start() -> Lookups {
    let (remote, started) = Remote::start(kernel_has);
    if let Err(error) = started {
        say!("tarsier: no helper that looks up paths can be started, so records lack objects: {error}");
    }
    Arc::new(remote)
}

/// Has the calls of the helpers not recorded, and the one for paths run as soon as the daemon does.
pub(super) fn follow(lookups: &Lookups, pipeline: &Pipeline) {
    let helpers = pipeline.engine.helpers();
    lookups.follow(move |place, pid| {
        if let Some(helpers) = &helpers {
            helpers.set(place, pid);
        }
        if let (0, Some(pid)) = (place, pid) {
            Scheduling::go_first_on_one_processor(pid);
        }
    });
}

/// Warns of look-ups that were not answered.
#[derive(Default)]
pub(super) struct Warnings {
    told: Counts,
    last: Option<Instant>,
}

impl Warnings {
    /// Tends the helpers, and says so if look-ups were not answered since the last warning. Call it
    /// once a second.
    pub(super) fn tend(&mut self, pipeline: &mut Pipeline) {
        pipeline.lookups.tend();
        let counts = pipeline.lookups.counts();
        let is_same = (counts.unanswered, counts.names_unanswered, counts.replaced)
            == (
                self.told.unanswered,
                self.told.names_unanswered,
                self.told.replaced,
            );
        if is_same
            || self
                .last
                .is_some_and(|last| last.elapsed() < WARNING_INTERVAL)
        {
            return;
        }
        let before = std::mem::replace(&mut self.told, counts);
        self.last = Some(Instant::now());
        let objects = counts.unanswered - before.unanswered;
        let names = counts.names_unanswered - before.names_unanswered;
        let replaced = counts.replaced - before.replaced;
        say!(
            "tarsier: {objects} objects and {names} names could not be looked up within {} ms, \
             and records lack them; {replaced} helpers were replaced, {} hang. Does a file system \
             (NFS, FUSE, autofs) or a directory service (LDAP) not answer? More in tarsier status",
            lookup::DEADLINE.as_millis(),
            counts.stuck
        );
        let [objects, names, replaced] = [objects, names, replaced].map(|count| count.to_string());
        pipeline.say(&Action {
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
