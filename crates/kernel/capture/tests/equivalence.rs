//! The programs match calls as the reference evaluator of crates/core/plan does.

// Random rules and calls, shared with the tests of crates/core/plan.
#[path = "../../../core/plan/tests/common/mod.rs"]
#[allow(unreachable_pub)]
mod common;
mod match_object;
mod support;

use bpf::shared::{marks, test_call, test_verdict, MARKS_MAX, VERDICT_DROP, VERDICT_UNDECIDED};
use common::{event, exit_rule, plan};
use libbpf_rs::{MapCore, MapFlags, Object, ProgramInput};
use plan::tables::{self, Values, Verdict};
use plan::{
    CallPlan, Fact, Facts, Identities, ObjectId, PathIdentity, Plan, Seen, ShapeKind, FACTS, NONE,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use record::wire::{tarsier_candidates, TARSIER_NO_RULE};
use rules::Rule;
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;
use zerocopy::{transmute, FromBytes, FromZeros, IntoBytes};

/// Marks as the programs have them.
fn marks_of(seen: &Seen) -> marks {
    let mut marks = marks {
        known: 1,
        count: seen.hits.len() as u32,
        objects: 1 + u32::from(seen.is_several),
        ..marks::new_zeroed()
    };
    for (i, hit) in seen.hits.iter().enumerate() {
        marks.value[i] = hit.value;
        marks.sure |= u32::from(hit.is_sure) << i;
        marks.proven |= u32::from(hit.is_proven) << i;
    }
    marks
}

/// This program's file, with the kernel's device and inode numbers.
fn our_executable() -> ObjectId {
    id_of(Path::new("/proc/self/exe"))
}

fn id_of(path: &Path) -> ObjectId {
    let stat = rustix::fs::stat(path).expect("it is there");
    ObjectId {
        dev: rustix::fs::major(stat.st_dev) << 20 | rustix::fs::minor(stat.st_dev),
        ino: stat.st_ino,
    }
}

/// The facts that are not to be looked up on demand.
const GIVEN: u32 = 1 << Fact::Exe as u32
    | 1 << Fact::Marks as u32
    | 1 << Fact::Unit as u32
    | 1 << Fact::Slice as u32
    | 1 << Fact::Container as u32
    | 1 << Fact::Labels as u32
    | 1 << Fact::Ancestors as u32;

/// The test program, loaded with the tables of one plan.
struct Harness {
    object: Object,
    user: support::LowMemory,
    groups: Vec<u32>,
}

impl Harness {
    fn load() -> Harness {
        Harness {
            object: match_object::load(),
            user: support::LowMemory::new(),
            groups: vec![TARSIER_NO_RULE],
        }
    }

    fn map(&self, name: &str) -> libbpf_rs::Map<'_> {
        let map = self.object.maps().find(|map| map.name() == name);
        map.expect("the object has the map")
    }

    fn set_tables(&self, plan: &Plan) {
        let table = support::table(&plan.rows);
        let fd = table.as_fd().as_raw_fd();
        let tables = self.map("tables");
        tables
            .update(&[0; 4], fd.as_bytes(), MapFlags::ANY)
            .expect("tables are set");
    }

    /// Sets what the programs would otherwise find out by themselves, for this process.
    fn set_surroundings(&mut self, facts: &Facts<'_>) {
        if self.groups != facts.groups {
            support::set_groups(facts.groups);
            self.groups = facts.groups.to_vec();
        }
    }

    fn call(
        &mut self,
        facts: &Facts<'_>,
        values: &Values,
        call: &CallPlan,
        row: tables::Row,
    ) -> test_call {
        let shape = &call.shape;
        let mut args = [0u64; 6];
        args[..4].copy_from_slice(&facts.args);
        let ret = facts.result.unwrap_or(0);
        if shape.how != NONE {
            args[shape.how as usize] = self.user.put_how(u64::from(!facts.open_flags.unwrap_or(0)));
        }
        if shape.sockaddr != NONE {
            let compat = facts.entry == plan::Entry::Compat;
            let (address, len) = self.user.put_sockaddr(facts.saddr_fam, shape, compat);
            args[shape.sockaddr as usize] = address;
            if shape.sockaddr_len != NONE {
                args[shape.sockaddr_len as usize] = len;
            }
        }
        if shape.kind == ShapeKind::Messages {
            args[2] = 1;
        }
        let on_demand = [
            Fact::Access,
            Fact::Compare,
            Fact::SaddrFam,
            Fact::SocketName,
        ];
        let is_found = |i: usize| on_demand.iter().any(|&fact| fact as usize == i);
        let absent = values.fact.iter().enumerate();
        let is_absent = |i: usize, value: &Option<u32>| {
            if i == Fact::Marks as usize {
                values.marks.is_none()
            } else {
                value.is_none() && !is_found(i)
            }
        };
        let absent = absent.filter(|&(i, value)| is_absent(i, value));
        let value = |i: usize| match values.fact[i] {
            Some(value) if !is_found(i) => value,
            _ => 0,
        };
        test_call {
            fact: std::array::from_fn::<u64, FACTS, _>(|i| {
                if i == Fact::Exe as usize {
                    u64::from(value(i)) | u64::from(values.exe_by_name) << 32
                } else {
                    value(i).into()
                }
            }),
            args,
            ret,
            absent: absent.fold(0, |bits, (i, _)| bits | 1 << i),
            given: GIVEN,
            arch: facts.entry as u32,
            pad: 0,
            marks: marks_of(values.marks.as_ref().unwrap_or(&Seen::default())),
            spec: transmute!(tables::spec_bytes(shape)),
            what: transmute!([row.a, row.b]),
        }
    }

    fn run(&mut self, call: &test_call) -> Verdict {
        let calls = self.map("test_calls");
        calls
            .update(&[0; 4], call.as_bytes(), MapFlags::ANY)
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
        let found = test_verdict::read_from_bytes(&bytes).expect("a verdict of its size");
        let undecided: [tarsier_candidates; tables::PAGES_MAX] = transmute!(found.undecided);
        match found.verdict {
            VERDICT_DROP if found.rule == TARSIER_NO_RULE => Verdict::NoMatch,
            VERDICT_UNDECIDED => Verdict::Undecided(
                undecided[..found.nundecided as usize]
                    .iter()
                    .map(|candidates| (candidates.page, candidates.mask))
                    .collect(),
            ),
            verdict => Verdict::Decided {
                rule: found.rule,
                never: verdict == VERDICT_DROP,
            },
        }
    }

    /// Compares the verdicts on `events`. Returns how many were compared, those whose call the plan watches, and how
    /// many of them reached something with a mark.
    fn compare(&mut self, plan: &Plan, events: &[common::Event]) -> (usize, usize) {
        self.set_tables(plan);
        let (mut compared, mut with_marks) = (0, 0);
        for event in events {
            let mut facts = event.facts();
            let Some(call) = plan.calls.get(&(facts.entry, facts.nr)) else {
                continue;
            };
            // No task has this group, which stands for none.
            let groups: Vec<u32> = facts
                .groups
                .iter()
                .copied()
                .filter(|&g| g != TARSIER_NO_RULE)
                .collect();
            facts.groups = &groups;
            if call.shape.how != NONE {
                // Threads of this process could replace the file of a descriptor: any access is possible.
                facts.open_flags = None;
            }
            if call.shape.sockaddr_out && facts.result.is_some_and(|ret| ret < 0) {
                facts.saddr_fam = None;
            }
            let at = tables::INDEX + facts.entry as usize * tables::CALLS + facts.nr as usize;
            let row = plan.rows[at];
            let mut values = plan.values(&facts, &call.shape, &common::identities());
            let seen = common::marks_at(&facts, &plan.marks);
            values.marks = seen.filter(|seen| seen.hits.len() <= MARKS_MAX as usize);
            with_marks += usize::from(
                values
                    .marks
                    .as_ref()
                    .is_some_and(|seen| !seen.hits.is_empty()),
            );
            let what = tables::Call::from_row(row);
            let expected = tables::evaluate(&plan.rows, what.pages, what.npages.into(), &values);
            self.set_surroundings(&facts);
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
        (compared, with_marks)
    }
}

fn some<S: Strategy>(strategy: S, runner: &mut TestRunner) -> S::Value {
    strategy.new_tree(runner).expect("a value").current()
}

#[test]
fn the_programs_decide_as_the_reference_on_a_hundred_thousand_random_pairs() {
    let Some(_lock) = testkit::may_load_programs() else {
        return;
    };
    let mut runner = TestRunner::deterministic();
    let mut harness = Harness::load();
    let pool = some(vec(event(), 6000), &mut runner);
    let pool: Vec<common::Event> = pool.into_iter().map(common::Event::known).collect();
    let (mut compared, mut with_marks) = (0, 0);
    for round in 0..400 {
        let rules: Vec<Rule> = match round {
            0..8 => some(vec(exit_rule(), 1000..2000), &mut runner),
            8..40 => some(vec(exit_rule(), 60..300), &mut runner),
            _ => some(vec(exit_rule(), 1..12), &mut runner),
        };
        // A rule that matches everything would hide all rules after it.
        let certain = round % 2 == 0 || rules.len() < 12;
        let rules: Vec<Rule> = rules
            .into_iter()
            .filter(|rule| certain || rule.conditions.len() > 1)
            .collect();
        let plan = plan(&rules);
        let events = if round < 8 { 2000 } else { 400 };
        let start = round * 97 % (pool.len() - events);
        let (all, marked) = harness.compare(&plan, &pool[start..start + events]);
        compared += all;
        with_marks += marked;
    }
    assert!(
        compared >= 100_000,
        "only {compared} pairs had a watched call"
    );
    assert!(with_marks >= 5_000, "only {with_marks} pairs had marks");
    println!("{compared} pairs of rule set and call compared, {with_marks} with marks");
}

#[test]
fn an_executable_is_known_by_its_file_by_its_name_in_a_directory_and_by_its_path() {
    let Some(_lock) = testkit::may_load_programs() else {
        return;
    };
    let mut harness = Harness::load();
    let path = std::fs::read_link("/proc/self/exe").expect("our path");
    let (name, dir) = (
        path.to_str().expect("a path"),
        path.parent().expect("a directory"),
    );
    let other = ObjectId { dev: 1, ino: 1 };
    let rules = common::ruleset(&[&format!(
        "-a always,exit -F arch=b64 -S getpid -F exe={name} -k e"
    )]);
    let ours = Some(our_executable());
    let its_directory = Some(id_of(dir));
    let root = Some(id_of(Path::new("/")));
    for (object, directory, root, is_ours) in [
        (ours, its_directory, None, true),
        (ours, None, None, true),
        (None, its_directory, None, true),
        (Some(other), its_directory, None, true),
        // The directory was replaced.
        (Some(other), Some(other), root, true),
        (None, None, root, true),
        // The path is that of another mount namespace, whose root is another.
        (Some(other), Some(other), Some(other), false),
        (None, None, None, false),
    ] {
        let mut identities = Identities::below(root, [3, 5]);
        let identity = PathIdentity {
            object,
            directory,
            canonical: name.into(),
            ..PathIdentity::default()
        };
        identities.insert(name.into(), identity);
        let plan = Plan::new(&rules, &common::capabilities(), &identities, 7).expect("it fits");
        harness.set_tables(&plan);
        let facts = common::plain_call();
        let call = &plan.calls[&(facts.entry, facts.nr)];
        let values = plan.values(&facts, &call.shape, &identities);
        let mut input = harness.call(&facts, &values, call, plan.rows[tables::INDEX + 39]);
        input.given = 0;
        let found = harness.run(&input);
        assert_eq!(
            found != Verdict::NoMatch,
            is_ours,
            "{object:?} {directory:?} {root:?}"
        );
    }
}

#[test]
fn every_supplementary_group_is_compared() {
    let Some(_lock) = testkit::may_load_programs() else {
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
        let values = plan.values(&facts, &call.shape, &Identities::default());
        harness.set_surroundings(&facts);
        let input = harness.call(&facts, &values, call, row);
        assert_eq!(harness.run(&input), expected);
        let what = tables::Call::from_row(row);
        let reference = tables::evaluate(&plan.rows, what.pages, what.npages.into(), &values);
        assert_eq!(reference, expected);
    }
}
