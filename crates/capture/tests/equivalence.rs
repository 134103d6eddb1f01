//! The programs' matching decides as the reference evaluator of crates/plan does.

// Random rules and calls, as the tests of crates/plan use them.
#[path = "../../plan/tests/common/mod.rs"]
#[allow(unreachable_pub)]
mod common;
mod support;

use common::{event, exit_rule, plan};
use libbpf_rs::{MapCore, MapFlags, Object, ObjectBuilder, ProgramInput};
use plan::tables::{self, Values, Verdict};
use plan::{CallPlan, Fact, Facts, ObjectId, Plan, FACTS, NONE};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use rules::Rule;
use std::os::fd::{AsFd, AsRawFd};

const NO_RULE: u32 = u32::MAX;
/// `WORKS_PER_CPU` of bpf/shared.h.
const WORKS_PER_CPU: usize = 4;

/// This program's file, by the kernel's numbers.
fn our_executable() -> ObjectId {
    let stat = rustix::fs::stat("/proc/self/exe").expect("our executable");
    ObjectId {
        dev: rustix::fs::major(stat.st_dev) << 20 | rustix::fs::minor(stat.st_dev),
        ino: stat.st_ino,
    }
}

/// The test program with the tables of one plan.
struct Harness {
    object: Object,
    executable: ObjectId,
    user: support::LowMemory,
    groups: Vec<u32>,
}

impl Harness {
    fn load() -> Harness {
        let mut builder = ObjectBuilder::default();
        let mut open = builder
            .open_memory(bpf::MATCH_TEST)
            .expect("the object opens");
        let cpus = libbpf_rs::num_possible_cpus().expect("the number of CPUs");
        open.maps_mut()
            .find(|map| map.name() == "works")
            .expect("works")
            .set_max_entries((cpus * WORKS_PER_CPU) as u32)
            .expect("a size");
        Harness {
            object: open.load().expect("the kernel takes the test program"),
            executable: our_executable(),
            user: support::LowMemory::new(),
            groups: vec![NO_RULE],
        }
    }

    fn map(&self, name: &str) -> libbpf_rs::Map<'_> {
        let map = self.object.maps().find(|map| map.name() == name);
        map.expect("the object has the map")
    }

    fn set_tables(&self, plan: &Plan) {
        let table = support::table(&plan.rows);
        let fd = table.as_fd().as_raw_fd().to_ne_bytes();
        let tables = self.map("tables");
        tables
            .update(&[0; 4], &fd, MapFlags::ANY)
            .expect("tables are set");
    }

    /// What the programs would find out by themselves is made to be so for this process.
    fn set_surroundings(&mut self, facts: &Facts<'_>, plan: &Plan) {
        let mut key = [0; 16];
        key[..8].copy_from_slice(&self.executable.ino.to_ne_bytes());
        key[8..12].copy_from_slice(&self.executable.dev.to_ne_bytes());
        let number = facts
            .exe
            .and_then(|exe| plan.executables.by_object.get(&exe));
        let objects = self.map("objects");
        match number {
            Some(number) => objects
                .update(&key, &number.to_ne_bytes(), MapFlags::ANY)
                .expect("set"),
            None => drop(objects.delete(&key)),
        }
        if self.groups != facts.groups {
            support::set_groups(facts.groups);
            self.groups = facts.groups.to_vec();
        }
    }

    /// `struct test_call` of bpf/match_test.bpf.c.
    fn call(
        &mut self,
        facts: &Facts<'_>,
        values: &Values,
        call: &CallPlan,
        row: tables::Row,
    ) -> Vec<u8> {
        let shape = &call.shape;
        let mut args = [0u64; 6];
        args[..4].copy_from_slice(&facts.args);
        if shape.how != NONE {
            let how = facts
                .open_flags
                .map(|flags| self.user.put_how(u64::from(flags)));
            args[shape.how as usize] = how.unwrap_or(0);
        }
        if shape.sockaddr != NONE {
            let compat = facts.entry == plan::Entry::Compat;
            let (address, len) = self.user.put_sockaddr(facts.saddr_fam, shape, compat);
            args[shape.sockaddr as usize] = address;
            if shape.sockaddr_len != NONE {
                args[shape.sockaddr_len as usize] = len;
            }
        }
        let mut bytes = Vec::new();
        let on_demand = [Fact::Exe, Fact::Access, Fact::Compare, Fact::SaddrFam];
        let mut absent = 0u32;
        for (i, value) in values.fact.iter().enumerate() {
            let found = on_demand.iter().any(|&fact| fact as usize == i);
            if value.is_none() && !found {
                absent |= 1 << i;
            }
            let value = if found { 0 } else { value.unwrap_or(0) };
            bytes.extend(u64::from(value).to_ne_bytes());
        }
        args.iter().for_each(|arg| bytes.extend(arg.to_ne_bytes()));
        bytes.extend(facts.result.unwrap_or(0).to_ne_bytes());
        bytes.extend(absent.to_ne_bytes());
        bytes.extend((facts.entry as u32).to_ne_bytes());
        bytes.extend(tables::spec_bytes(shape));
        bytes.extend(row.a.to_ne_bytes());
        bytes.extend(row.b.to_ne_bytes());
        bytes
    }

    fn run(&mut self, call: &[u8]) -> Verdict {
        let calls = self.map("test_calls");
        calls
            .update(&[0; 4], call, MapFlags::ANY)
            .expect("the call is set");
        let mut programs = self.object.progs_mut();
        let program = programs
            .find(|program| program.name() == "match_one")
            .expect("the program");
        let output = program
            .test_run(ProgramInput::default())
            .expect("the program runs");
        assert_eq!(output.return_value, 0);
        let verdicts = self.map("test_verdicts");
        let bytes = verdicts
            .lookup(&[0; 4], MapFlags::ANY)
            .expect("a verdict")
            .expect("a value");
        let word = |i: usize| u32::from_ne_bytes(bytes[4 * i..4 * i + 4].try_into().unwrap());
        match word(0) {
            0 if word(1) == NO_RULE => Verdict::NoMatch,
            2 => Verdict::Undecided(
                (0..word(2) as usize)
                    .map(|i| {
                        let at = 4 + 4 * i;
                        (
                            word(at),
                            u64::from(word(at + 2)) | u64::from(word(at + 3)) << 32,
                        )
                    })
                    .collect(),
            ),
            verdict => Verdict::Decided {
                rule: word(1),
                never: verdict == 0,
            },
        }
    }

    /// How many of the events were compared: those whose call the plan watches.
    fn compare(&mut self, plan: &Plan, events: &[common::Event]) -> usize {
        self.set_tables(plan);
        let mut compared = 0;
        for event in events {
            let mut facts = event.facts();
            let Some(call) = plan.calls.get(&(facts.entry, facts.nr)) else {
                continue;
            };
            // No task has this one, which stands for none.
            let groups: Vec<u32> = facts
                .groups
                .iter()
                .copied()
                .filter(|&g| g != NO_RULE)
                .collect();
            facts.groups = &groups;
            if call.shape.sockaddr_out && facts.result.is_some_and(|ret| ret < 0) {
                facts.saddr_fam = None;
            }
            let at = tables::INDEX + facts.entry as usize * tables::CALLS + facts.nr as usize;
            let row = plan.rows[at];
            let values = Values::from_facts(&facts, &call.shape, &plan.executables);
            let what = tables::Call::from_row(row);
            let expected = tables::evaluate(&plan.rows, what.pages, what.npages.into(), &values);
            self.set_surroundings(&facts, plan);
            let input = self.call(&facts, &values, call, row);
            let found = self.run(&input);
            assert_eq!(
                found,
                expected,
                "{facts:?}\n{call:?}\n{:#?}",
                plan.rules.len()
            );
            compared += 1;
        }
        compared
    }
}

fn some<S: Strategy>(strategy: S, runner: &mut TestRunner) -> S::Value {
    strategy.new_tree(runner).expect("a value").current()
}

#[test]
fn the_programs_decide_as_the_reference_on_a_hundred_thousand_random_pairs() {
    let Some(_lock) = support::may_load_programs() else {
        return;
    };
    assert_eq!(FACTS, 23, "struct test_call has a word per fact");
    let mut runner = TestRunner::deterministic();
    let mut harness = Harness::load();
    let pool = some(vec(event(), 6000), &mut runner);
    let mut compared = 0;
    for round in 0..400 {
        let rules: Vec<Rule> = match round {
            0..8 => some(vec(exit_rule(), 1000..2000), &mut runner),
            8..40 => some(vec(exit_rule(), 60..300), &mut runner),
            _ => some(vec(exit_rule(), 1..12), &mut runner),
        };
        // A rule that matches everything would hide all that come after it.
        let certain = round % 2 == 0 || rules.len() < 12;
        let rules: Vec<Rule> = rules
            .into_iter()
            .filter(|rule| certain || rule.conditions.len() > 1)
            .collect();
        let plan = plan(&rules);
        let events = if round < 8 { 2000 } else { 400 };
        let start = round * 97 % (pool.len() - events);
        compared += harness.compare(&plan, &pool[start..start + events]);
    }
    assert!(
        compared >= 100_000,
        "only {compared} pairs had a watched call"
    );
    println!("{compared} pairs of rule set and call compared");
}

#[test]
fn every_supplementary_group_is_compared() {
    let Some(_lock) = support::may_load_programs() else {
        return;
    };
    let mut harness = Harness::load();
    let rules = common::ruleset(&["-a always,exit -F arch=b64 -S getpid -F gid=70001 -k g"]);
    let plan = plan(&rules);
    harness.set_tables(&plan);
    let row = plan.rows[tables::INDEX + 39];
    let groups: Vec<u32> = (70001 - 999..=70001).collect();
    for (groups, expected) in [
        (
            &groups[..],
            Verdict::Decided {
                rule: 0,
                never: false,
            },
        ),
        (&groups[..999], Verdict::NoMatch),
    ] {
        let mut facts = common::plain_call();
        facts.groups = groups;
        let call = &plan.calls[&(facts.entry, facts.nr)];
        let values = Values::from_facts(&facts, &call.shape, &plan.executables);
        harness.set_surroundings(&facts, &plan);
        let input = harness.call(&facts, &values, call, row);
        assert_eq!(harness.run(&input), expected);
        let what = tables::Call::from_row(row);
        let reference = tables::evaluate(&plan.rows, what.pages, what.npages.into(), &values);
        assert_eq!(reference, expected);
    }
}
