//! Reports what others have changed of the capture.

use crate::clock::monotonic_ns;
use crate::daemon_records::{Action, Who};
use crate::pipeline::Pipeline;
use crate::stderr::say;
use event::RecordType;

/// A daemon that is continued after this long without a check was stopped: checks are a second apart.
const STOPPED_NS: u64 = 1_300_000_000;

/// The breaches so far, and the canary.
pub(super) struct Integrity {
    pub(super) breaches: u64,
    /// Number of the last canary call.
    canary: u64,
    /// The last call that a hook saw, until it is certain whether it came through a ring.
    expected: Option<Expected>,
    /// Whether the last canary call is known to have been missed. Said once.
    is_unheard: bool,
    /// CLOCK_MONOTONIC of the last check, or of the start, in nanoseconds.
    checked_ns: u64,
}

/// A canary call that has to come through a ring.
#[derive(Clone, Copy)]
struct Expected {
    number: u64,
    /// CLOCK_MONOTONIC after the call, in nanoseconds.
    made_ns: u64,
    /// Events lost before the call, since a full ring has no room for its frame either.
    lost: u64,
}

impl Default for Integrity {
    fn default() -> Integrity {
        Integrity {
            breaches: 0,
            canary: 0,
            expected: None,
            is_unheard: false,
            checked_ns: monotonic_ns(),
        }
    }
}

impl Integrity {
    /// Compares what the programs read with what they were told; each difference is undone and reported. Then makes a
    /// canary call, which must come through hook and ring before the next. Call it once a second.
    pub(super) fn check(&mut self, pipeline: &mut Pipeline) {
        self.checked_ns = monotonic_ns();
        for breach in pipeline.engine.check() {
            let outcome = match breach.is_mended {
                true => "it is as before",
                false => "IT CANNOT BE MENDED: events may be lost; start tarsier again",
            };
            let what = &breach.what;
            say!("tarsier: another process has changed {what} of the capture: {outcome}");
            self.report(pipeline, &breach.what, breach.is_mended);
        }
        let missing = self.listen(pipeline).or_else(|| self.sing(pipeline));
        match missing {
            Some(place) if !self.is_unheard => {
                say!(
                    "tarsier: a call of the daemon's own did not come through a {place} of the capture: events may \
                     be lost; start tarsier again"
                );
                self.report(pipeline, &format!("canary {place}"), false);
                self.is_unheard = true;
            }
            _ => {}
        }
    }

    /// The daemon has received SIGCONT. If it has not checked anything for longer than usual, it was stopped: calls had to
    /// wait meanwhile, or events were lost, which is reported apart.
    pub(super) fn continued(&mut self, pipeline: &mut Pipeline) {
        let since_ns = monotonic_ns().saturating_sub(self.checked_ns);
        if since_ns > STOPPED_NS {
            let what = format!("stopped for up to {} s", since_ns.div_ceil(1_000_000_000));
            say!("tarsier: this daemon was {what}: another process has continued it");
            self.report(pipeline, &what, true);
        }
    }

    /// What failed, if the last canary call ought to have come through a ring by now and has not.
    fn listen(&mut self, pipeline: &Pipeline) -> Option<&'static str> {
        let expected = self.expected?;
        let heard = pipeline.heard;
        if heard.canary != expected.number && heard.until_ns < expected.made_ns {
            return None;
        }
        self.expected = None;
        if heard.canary == expected.number {
            self.is_unheard = false;
            return None;
        }
        (lost(pipeline) == expected.lost).then_some("ring")
    }

    /// Makes a canary call, unless the last one may still be in a ring. Returns what did not see it.
    fn sing(&mut self, pipeline: &Pipeline) -> Option<&'static str> {
        if self.expected.is_some() {
            return None;
        }
        self.canary += 1;
        let lost = lost(pipeline);
        if !pipeline.engine.canary(self.canary)? {
            return Some("hook");
        }
        self.expected = Some(Expected {
            number: self.canary,
            made_ns: monotonic_ns(),
            lost,
        });
        None
    }

    fn report(&mut self, pipeline: &mut Pipeline, what: &str, is_mended: bool) {
        self.breaches += 1;
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

/// Events that found no room in a ring, or were lost otherwise.
fn lost(pipeline: &Pipeline) -> u64 {
    pipeline.engine.counters().lost_total()
}
