//! Reports changes that other processes have made to the capture.

use crate::account::daemon_records::{LoggedAction, Who};
use crate::clock::monotonic_ns;
use crate::pipeline::Pipeline;
use crate::stderr::say;
use capture::Breach;
use record::RecordType;
use std::time::Duration;

/// Classes of cgroups and of processes that are looked at each second, beside those in doubt.
const CLASSES_MAX: usize = 1000;
/// Time after which a class in doubt is looked at again: with a check each second, a change is reported within 2 s.
const DOUBT_NS: u64 = 250_000_000;
/// A daemon that is continued after this long without a check was stopped: checks are a second apart.
const STOPPED_NS: u64 = 1_300_000_000;

/// Times of checks (CLOCK_MONOTONIC, in nanoseconds).
struct Checks {
    last_ns: u64,
    /// Time between the last check and the one before it.
    gap_ns: u64,
}

impl Checks {
    fn since(now_ns: u64) -> Checks {
        Checks {
            last_ns: now_ns,
            gap_ns: 0,
        }
    }

    fn made(&mut self, now_ns: u64) {
        self.gap_ns = now_ns.saturating_sub(self.last_ns);
        self.last_ns = now_ns;
    }

    /// Call this when SIGCONT was received. Returns how long this process may have been stopped, if no check was made
    /// for longer than usual. The check that was due meanwhile may have been made before the signal was read. A stop is
    /// reported once.
    fn continued(&mut self, now_ns: u64) -> Option<u64> {
        let longest = now_ns.saturating_sub(self.last_ns).max(self.gap_ns);
        if longest <= STOPPED_NS {
            return None;
        }
        *self = Checks::since(now_ns);
        Some(longest)
    }
}

/// The breaches so far, and the canary.
pub(crate) struct Integrity {
    pub(crate) breaches: u64,
    /// Number of the last canary call.
    canary: u64,
    /// The last call that a hook saw, until it is certain whether it came through a ring.
    expected: Option<Expected>,
    /// Whether the last canary call is known to have been missed, which is reported once.
    is_unheard: bool,
    checks: Checks,
    doubt: Option<Doubt>,
}

/// Classes that are to be looked at again (CLOCK_MONOTONIC, in nanoseconds).
#[derive(Clone, Copy)]
struct Doubt {
    since_ns: u64,
    due_ns: u64,
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
            checks: Checks::since(monotonic_ns()),
            doubt: None,
        }
    }
}

impl Integrity {
    /// Compares what the programs read with what they were told; each difference is undone and reported. Then makes a
    /// canary call, which must come through hook and ring before the next. Call it once a second.
    pub(crate) fn check(&mut self, pipeline: &mut Pipeline) {
        self.checks.made(monotonic_ns());
        for Breach { what, is_mended } in pipeline.check() {
            self.changed(pipeline, &what, is_mended);
        }
        self.check_classes(pipeline, CLASSES_MAX);
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

    /// Looks again at the classes in doubt, once that is due. Call it often.
    pub(crate) fn look_again(&mut self, pipeline: &mut Pipeline) {
        if self.doubt.is_some() {
            self.check_classes(pipeline, 0);
        }
    }

    /// Time until [`Integrity::look_again`] has something to do.
    pub(crate) fn due_in(&self) -> Option<Duration> {
        let due_ns = self.doubt?.due_ns;
        Some(Duration::from_nanos(due_ns.saturating_sub(monotonic_ns())))
    }

    /// Looks at the classes of up to `max` cgroups and processes, and at those in doubt. While a doubt is not due, or not all
    /// frames from before it have been read, nothing is looked at.
    fn check_classes(&mut self, pipeline: &mut Pipeline, max: usize) {
        let now_ns = monotonic_ns();
        if let Some(doubt) = &mut self.doubt {
            if doubt.due_ns > now_ns {
                return;
            }
            if pipeline.heard().until_ns < doubt.since_ns {
                doubt.due_ns = now_ns + DOUBT_NS;
                return;
            }
        }

        for what in pipeline.check_classes(max) {
            self.changed(pipeline, what, true);
        }

        self.doubt = pipeline.doubts_classes().then_some(Doubt {
            since_ns: now_ns,
            due_ns: now_ns + DOUBT_NS,
        });
    }

    /// The pin of what is locked (`-e 2`) was removed or replaced.
    pub(crate) fn lock_unpinned(&mut self, pipeline: &mut Pipeline, is_mended: bool) {
        self.changed(pipeline, "pin of the locked rules", is_mended);
    }

    /// Reports that another process has changed this part of the capture.
    fn changed(&mut self, pipeline: &mut Pipeline, what: &str, is_mended: bool) {
        let outcome = if is_mended {
            "it is as before"
        } else {
            "IT CANNOT BE MENDED: events may be lost; start tarsier again"
        };
        say!("tarsier: another process has changed {what} of the capture: {outcome}");
        self.report(pipeline, what, is_mended);
    }

    /// The daemon has received SIGCONT. If it has not checked anything for longer than usual, it was stopped: calls had to
    /// wait meanwhile, or events were lost, which is reported apart.
    pub(crate) fn continued(&mut self, pipeline: &mut Pipeline) {
        if let Some(stopped_ns) = self.checks.continued(monotonic_ns()) {
            let what = format!("stopped for up to {} s", stopped_ns.div_ceil(1_000_000_000));
            say!("tarsier: this daemon was {what}: another process has continued it");
            self.report(pipeline, &what, true);
        }
    }

    /// The part that failed, if the last canary call ought to have come through a ring by now and has not.
    fn listen(&mut self, pipeline: &Pipeline) -> Option<&'static str> {
        let expected = self.expected?;
        let heard = pipeline.heard();
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

    /// Makes a canary call, unless the last one may still be in a ring. Returns the part that did not see it.
    fn sing(&mut self, pipeline: &Pipeline) -> Option<&'static str> {
        if self.expected.is_some() {
            return None;
        }

        self.canary += 1;
        // Counted before the call: if events are lost from here on, its frame may be one of them.
        let lost = lost(pipeline);
        if !pipeline.engine().canary(self.canary)? {
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
        pipeline.log_action(&LoggedAction {
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

/// Events that found no room in a ring.
fn lost(pipeline: &Pipeline) -> u64 {
    pipeline.engine().ring_counters().lost_total()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    #[test]
    fn a_stop_is_told_whichever_is_handled_first_the_signal_or_the_check_that_was_due() {
        let mut checks = Checks::since(0);
        checks.made(SECOND_NS);
        assert_eq!(checks.continued(4 * SECOND_NS), Some(3 * SECOND_NS));

        let mut checks = Checks::since(0);
        checks.made(SECOND_NS);
        checks.made(4 * SECOND_NS);
        assert_eq!(checks.continued(4 * SECOND_NS + 1), Some(3 * SECOND_NS));
        assert_eq!(checks.continued(4 * SECOND_NS + 2), None, "told once");
    }

    #[test]
    fn a_signal_without_a_stop_is_none() {
        let mut checks = Checks::since(0);
        for second in 1..5 {
            checks.made(second * SECOND_NS);
            assert_eq!(checks.continued(second * SECOND_NS + SECOND_NS / 2), None);
        }
        // A gap that no signal followed is forgotten with the next check.
        checks.made(9 * SECOND_NS);
        checks.made(10 * SECOND_NS);
        assert_eq!(checks.continued(10 * SECOND_NS + 1), None);
    }
}
