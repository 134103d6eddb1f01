//! io_uring operations: their events, and those of their results.

use super::{Composer, Outcome, Selected, Tally, Watcher};
use crate::filter::TaskLabel;
use crate::pending_operations::{Completed, PendingEvent};
use record::wire::{Event, WireError};
use std::sync::Arc;

/// Appends an operation that has its result; if it was recorded as pending, its result.
pub(super) fn completed<T: Tally, W: Watcher>(
    composer: &mut Composer<T>,
    cpu: usize,
    completed: &Completed,
    out: &mut Vec<u8>,
    live: Option<&mut W>,
) -> Result<Outcome, WireError> {
    let event = Event::parse(&completed.frame)?;
    let Some(pending) = &completed.of else {
        return Ok(composer.event(cpu, &event, out, live));
    };

    let header = event.header();
    composer.host.begin_event(header.uid, header.cgroup_id);
    let call = composer.texts.calls.of(&event);
    if completed.has_objects {
        composer.resolver.resolve(&event, &call.shape)
    } else {
        // The names are those of the pending event; by now they may lead elsewhere.
        composer.resolver.forget()
    }

    let selected = Selected {
        task_label: TaskLabel::of(&event, &pending.generation, &composer.host),
        generation: Arc::clone(&pending.generation),
        rule: pending.rule,
        is_unsure: false,
        result_of: Some(pending.stamp),
    };

    let (outcome, _) = composer.record(cpu, &event, selected, out, live);
    composer.host.system.end_event();
    Ok(outcome)
}

/// Appends the io_uring operations that have waited long enough for a result; with `at_end`, all that wait. Returns
/// the number of events recorded.
pub(super) fn overdue<T: Tally>(
    composer: &mut Composer<T>,
    at_end: bool,
    out: &mut Vec<u8>,
) -> u64 {
    // They are late for no fault of the daemon.
    composer.host.frame_ns = u64::MAX;
    let mut recorded = 0;
    let mut count = |outcome| {
        recorded += u64::from(matches!(outcome, Outcome::Recorded | Outcome::Urgent));
    };

    for completed_event in composer.operations.left() {
        if let Ok(outcome) = completed(composer, 0, &completed_event, out, None::<&mut ()>) {
            count(outcome);
        }
    }

    let at_end = if at_end {
        composer.operations.take_all()
    } else {
        Vec::new()
    };

    for frame in at_end {
        if let Ok(event) = Event::parse(&frame) {
            count(composer.event(0, &event, out, None::<&mut ()>));
        }
    }

    while let Some(frame) = composer.operations.overdue() {
        let Ok(event) = Event::parse(&frame) else {
            continue;
        };
        let header = event.header();
        composer.host.begin_event(header.uid, header.cgroup_id);
        let (outcome, recorded_as) = pending(composer, &event, out);
        composer.host.system.end_event();
        composer
            .operations
            .recorded(event.header().frame.id, recorded_as);
        count(outcome);
    }

    recorded
}

/// Appends an operation as pending. Its result is not known, so that conditions on it hold.
fn pending<T: Tally>(
    composer: &mut Composer<T>,
    event: &Event<'_>,
    out: &mut Vec<u8>,
) -> (Outcome, Option<PendingEvent>) {
    let call = composer.texts.calls.of(event);
    let selected = match composer.judge(event, &call.shape) {
        Ok(selected) => selected,
        Err(outcome) => return (outcome, None),
    };
    let (generation, rule) = (Arc::clone(&selected.generation), selected.rule);
    let (outcome, stamp) = composer.record(0, event, selected, out, None::<&mut ()>);
    let pending = PendingEvent {
        stamp,
        generation,
        rule,
    };
    (outcome, Some(pending))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generation::Generation;
    use crate::static_system::StaticSystem;
    use crate::test_frame::{result_frame, TestFrame};
    use plan::{Capabilities, Identities, IoUring, Plan};
    use record::wire;
    use record::{Encoder, Format, NoNames};
    use std::collections::BTreeSet;
    use std::sync::atomic::Ordering;

    const UNLINKAT: i32 = 36;
    const ID: u64 = 9;

    fn generation(rule: &[u8], number: u64) -> Arc<Generation> {
        let host = rules::StaticHost::new(abi::Arch::X86_64);
        let parsed = rules::parse_text(rules::Dialect::default(), "test", rule, &host);
        let set = rules::RuleSet::build(parsed).expect("the rules are right");
        let capabilities = Capabilities {
            io_uring: IoUring::Twins,
            ..Capabilities::assumed(abi::Arch::X86_64)
        };
        let plan = Plan::new(&set.rules, &capabilities, &Identities::default(), number);
        let plan = plan.expect("it is one rule");
        Arc::new(Generation::new(
            plan,
            Identities::default(),
            BTreeSet::new(),
        ))
    }

    /// An operation that was submitted at time 0, and that the only rule may select.
    fn submission(number: u64) -> Vec<u8> {
        let mut frame = TestFrame::of_call(UNLINKAT);
        frame.header.frame.id = ID;
        frame.header.generation = number;
        frame.header.flags = wire::TARSIER_URING | wire::TARSIER_PENDING | wire::TARSIER_UNDECIDED;
        let list = 0_u32;
        let candidates = [
            0_u32.to_ne_bytes(),
            list.to_ne_bytes(),
            [1, 0, 0, 0],
            [0; 4],
        ];
        frame
            .part(wire::TARSIER_PART_CANDIDATES, 0, &candidates.concat())
            .bytes()
    }

    struct Run {
        system: Arc<StaticSystem>,
        composer: Composer<()>,
        out: Vec<u8>,
    }

    impl Run {
        fn new() -> Run {
            let system = Arc::new(StaticSystem::default());
            let encoder = Encoder::new(Format::Raw, Box::new(NoNames));
            Run {
                composer: Composer::new(encoder, system.clone(), ()),
                system,
                out: Vec::new(),
            }
        }

        fn frame(&mut self, frame: &[u8]) -> Outcome {
            let (out, live) = (&mut self.out, None::<&mut ()>);
            self.composer.frame(0, frame, out, live).expect("a frame")
        }

        fn after_ms(&mut self, ms: u64) -> u64 {
            let now_ns = ms * 1_000_000;
            self.system.monotonic_ns.store(now_ns, Ordering::Relaxed);
            self.composer.overdue(false, &mut self.out)
        }

        /// The URINGOP records so far.
        fn operations(&self) -> Vec<String> {
            let text = String::from_utf8_lossy(&self.out);
            let lines = text
                .lines()
                .filter(|line| line.starts_with("type=URINGOP "));
            lines.map(str::to_owned).collect()
        }
    }

    const SUCCEEDED: &[u8] = b"-a always,exit -F arch=b64 -S unlinkat -F success=1 -k removed\n";

    #[test]
    fn a_result_that_does_not_come_in_time_follows_the_event_and_names_it() {
        let mut run = Run::new();
        run.composer.add_generation(generation(SUCCEEDED, 1));
        assert_eq!(run.frame(&submission(1)), Outcome::Part);
        assert_eq!(run.after_ms(499), 0);
        assert_eq!(run.after_ms(500), 1);
        assert_eq!(run.after_ms(60_000), 0);
        // What the result is does not matter any more: the rule asked for what was not known.
        assert_eq!(run.frame(&result_frame(ID, -2)), Outcome::Recorded);
        let [pending, result] = &run.operations()[..] else {
            panic!("two events: {:?}", run.operations());
        };
        assert!(pending.contains(" items=0 pending=yes "), "{pending}");
        assert!(!pending.contains(" exit="), "{pending}");
        let stamp = pending.split_once("audit(").expect("a stamp").1;
        let stamp = stamp.split_once("):").expect("its end").0;
        let named = format!(" success=no exit=-2 items=0 result_of={stamp} ");
        assert!(result.contains(&named), "{result}");
        for line in [pending, result] {
            assert!(line.ends_with(" key=\"removed\""), "{line}");
        }
    }

    #[test]
    fn a_result_in_time_decides() {
        let mut run = Run::new();
        run.composer.add_generation(generation(SUCCEEDED, 1));
        for (result, outcome) in [(-2, Outcome::Dropped), (0, Outcome::Recorded)] {
            run.frame(&submission(1));
            assert_eq!(run.frame(&result_frame(ID, result)), outcome);
        }
        assert!(!run.operations()[0].contains("pending"));
    }

    #[test]
    fn a_thousand_reloads_while_an_operation_waits_change_nothing_of_it() {
        for has_waited in [false, true] {
            let mut run = Run::new();
            run.composer.add_generation(generation(SUCCEEDED, 1));
            run.frame(&submission(1));
            if has_waited {
                assert_eq!(run.after_ms(500), 1);
            }
            for number in 2..=1_001 {
                let other = b"-a always,exit -F arch=b64 -S openat -k other\n";
                run.composer.add_generation(generation(other, number));
            }
            assert_eq!(run.frame(&result_frame(ID, 0)), Outcome::Recorded);
            let recorded = run.operations();
            assert_eq!(recorded.len(), 1 + usize::from(has_waited));
            assert!(recorded
                .iter()
                .all(|line| line.ends_with(" key=\"removed\"")));
        }
    }

    #[test]
    fn an_event_whose_rule_set_is_not_known_is_recorded_without_a_key() {
        let mut run = Run::new();
        run.composer.add_generation(generation(SUCCEEDED, 7));
        run.frame(&submission(3));
        assert_eq!(run.frame(&result_frame(ID, -2)), Outcome::Recorded);
        assert!(run.operations()[0].ends_with(" key=(null)"));
    }
}
