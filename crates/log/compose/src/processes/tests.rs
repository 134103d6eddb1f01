use super::*;
use crate::lineage::{ANCESTORS_MAX, KEPT_MAX};
use plan::{Capabilities, Identities, Plan, ProcessClass};
use record::wire::{
    Part, TARSIER_PART_CWD, TARSIER_PART_EXE, TARSIER_PART_PATH, TARSIER_PART_PROCTITLE,
};
use record::{Encoder, Format, NoNames, ProcessText, Stamp};
use rules::{parse_line_as, Command, Dialect, Source, StaticHost};
use serde_json::Value;

fn process(pid: u32, start_ns: u64) -> ProcessId {
    ProcessId { start_ns, pid }
}

fn frame<'a>(process: ProcessId, image: u64, change: ProcessChange<'a>) -> ProcessFrame<'a> {
    ProcessFrame {
        process,
        image,
        change,
    }
}

fn executed<'a>(walk: &'a [u8], title: &'a [u8]) -> Executed<'a> {
    let part = |tag, data| Part {
        tag,
        index: 0,
        flags: 0,
        data,
    };
    Executed {
        exe: Some(part(TARSIER_PART_EXE, walk)),
        title: Some(part(TARSIER_PART_PROCTITLE, title)),
        ..Executed::default()
    }
}

fn make(processes: &mut Processes, process: ProcessId, maker: ProcessId, image: u64) {
    processes.take(&frame(process, image, ProcessChange::Made(maker)));
}

fn run(processes: &mut Processes, process: ProcessId, image: u64, name: &str) {
    let (walk, title) = (format!("{name}\0bin\0"), format!("{name}\0-x\0"));
    let executed = executed(walk.as_bytes(), title.as_bytes());
    processes.take(&frame(process, image, ProcessChange::Executed(executed)));
}

/// Object `process` of an event in the JSON log.
fn told(processes: &mut Processes, process: ProcessId) -> Value {
    let mut encoder = Encoder::new(Format::Json, Box::new(NoNames));
    encoder.set_workload(true);
    let (mut out, ancestors) = (Vec::new(), processes.ancestors(process));
    let mut event = encoder.begin(&mut out, Stamp::from_unix_ns(0, 1));
    event.process(&ProcessText {
        process,
        boot: b"b",
        exe: None,
        script: None,
        cwd: None,
        ancestors: &ancestors,
    });
    event.raw(1307, b"cwd=\"/\"");
    event.end();
    let event: Value = serde_json::from_slice(&out).expect("JSON");
    event["process"].clone()
}

/// `PID:PATH` of each ancestor, then `partial` if some are not known.
fn names(processes: &mut Processes, process: ProcessId) -> Vec<String> {
    let told = told(processes, process);
    let ancestors = told["ancestors"].as_array().expect("a list").iter();
    let name = |ancestor: &Value| {
        let exe = ancestor["exe"].as_str().unwrap_or("?");
        format!("{}:{exe}", ancestor["pid"])
    };
    let mut names: Vec<String> = ancestors.map(name).collect();
    names.extend((told["ancestors_partial"] == true).then(|| "partial".to_owned()));
    names
}

/// The first process, and what it has made: a shell.
fn with_shell() -> (Processes, ProcessId) {
    let mut processes = Processes::default();
    let init = frame(
        process(1, 1),
        1,
        ProcessChange::Found(process(0, 0), executed(b"init\0", b"")),
    );
    processes.survey(&[init]);
    let shell = process(7, 70);
    make(&mut processes, shell, process(1, 1), 1);
    run(&mut processes, shell, 2, "sh");
    (processes, shell)
}

#[test]
fn ancestors_are_those_that_made_it_however_they_ended() {
    let (mut processes, shell) = with_shell();
    assert_eq!(names(&mut processes, shell), ["1:/init"]);
    let child = process(8, 80);
    make(&mut processes, child, shell, 2);
    processes.take(&frame(shell, 2, ProcessChange::Ended));
    assert_eq!(names(&mut processes, child), ["7:/bin/sh", "1:/init"]);
    run(&mut processes, child, 3, "cat");
    let told = told(&mut processes, child);
    assert_eq!(
        told["ancestors"][0]["argv"],
        serde_json::json!(["sh", "-x"])
    );
    assert_eq!(told["ancestors"][0]["start"], 70);
    assert_eq!(told["ancestors"][1].get("argv"), None);
    assert_eq!(processes.counts().partial_events, 0);
}

#[test]
fn an_ancestor_has_the_program_with_which_it_made_the_next_one() {
    let (mut processes, shell) = with_shell();
    let (early, late) = (process(8, 80), process(9, 90));
    make(&mut processes, early, shell, 2);
    run(&mut processes, shell, 3, "other");
    make(&mut processes, late, shell, 3);
    assert_eq!(names(&mut processes, early)[0], "7:/bin/sh");
    assert_eq!(names(&mut processes, late)[0], "7:/bin/other");
}

#[test]
fn a_number_that_is_used_again_is_another_process() {
    let (mut processes, shell) = with_shell();
    let (earlier, later) = (process(8, 80), process(8, 85));
    make(&mut processes, earlier, shell, 2);
    run(&mut processes, earlier, 3, "cat");
    // Its end was not seen.
    make(&mut processes, later, process(1, 1), 1);
    let child = process(9, 90);
    make(&mut processes, child, later, 1);
    assert_eq!(names(&mut processes, child), ["8:/init", "1:/init"]);
    // A late event of the earlier one.
    assert_eq!(names(&mut processes, earlier), ["7:/bin/sh", "1:/init"]);
    assert_eq!(processes.living[&8], 85);
}

fn script_of(processes: &Processes, process: ProcessId) -> Option<Vec<u8>> {
    let program = processes.program(process)?;
    program.script().map(<[u8]>::to_vec)
}

#[test]
fn a_script_is_told_beside_its_interpreter() {
    let (mut processes, shell) = with_shell();
    let part = |tag, data: &'static [u8]| Part {
        tag,
        index: 0,
        flags: 0,
        data,
    };
    let mut execute = |script: Option<&'static [u8]>| {
        let change = ProcessChange::Executed(Executed {
            script: script.map(|path| part(TARSIER_PART_PATH, path)),
            cwd: Some(part(TARSIER_PART_CWD, b"jobs\0srv\0")),
            ..executed(b"sh\0bin\0", b"sh\0")
        });
        processes.take(&frame(shell, 2, change));
        script_of(&processes, shell)
    };
    let cases: [(&[u8], &[u8]); 3] = [
        (b"/opt/run", b"/opt/run"),
        (b"./run", b"/srv/jobs/run"),
        (b"../run", b"/srv/jobs/../run"),
    ];
    for (given, expected) in cases {
        assert_eq!(execute(Some(given)).as_deref(), Some(expected));
    }
    let child = process(8, 80);
    make(&mut processes, child, shell, 2);
    let told = told(&mut processes, child);
    assert_eq!(told["ancestors"][0]["exe"], "/bin/sh");
    assert_eq!(told["ancestors"][0]["script"], "/srv/jobs/../run");
    // The next program is none.
    let next = ProcessChange::Executed(executed(b"cat\0bin\0", b"cat\0"));
    processes.take(&frame(shell, 3, next));
    assert_eq!(script_of(&processes, shell), None);
}

#[test]
fn the_past_of_a_process_is_whole_if_its_ancestors_lead_to_the_first() {
    let (mut processes, shell) = with_shell();
    let first = frame(
        process(1, 1),
        1,
        ProcessChange::Executed(Executed {
            file: Some((1, 10)),
            ..executed(b"init\0", b"")
        }),
    );
    processes.take(&first);
    let child = process(8, 80);
    make(&mut processes, child, process(1, 1), 1);
    let past = |processes: &Processes, process| {
        let past = processes.past(process);
        let ancestors = past.ancestors.iter().map(|exe| exe.object.ino);
        (ancestors.collect::<Vec<u64>>(), past.are_all_ancestors)
    };
    assert_eq!(past(&processes, child), (vec![10], true));
    // Of the shell, the file of the first process was not known yet.
    assert_eq!(past(&processes, shell), (vec![], false));
    assert_eq!(past(&processes, process(9, 90)), (vec![], false));
    let mut last = child;
    for step in 1..=KEPT_MAX as u32 {
        let next = process(100 + step, 1000 + u64::from(step));
        make(&mut processes, next, last, 1);
        last = next;
    }
    // There are more than are kept.
    assert_eq!(past(&processes, last), (vec![10; KEPT_MAX], false));
}

#[test]
fn what_was_lost_makes_ancestors_partial_never_wrong() {
    let (mut processes, shell) = with_shell();
    // The shell executed something, of which the frame was lost.
    let child = process(8, 80);
    make(&mut processes, child, shell, 5);
    assert_eq!(names(&mut processes, child), ["7:?", "1:/init", "partial"]);
    // Its own frame was lost.
    let unknown = process(10, 100);
    assert_eq!(names(&mut processes, unknown), ["partial"]);
    run(&mut processes, unknown, 1, "x");
    assert_eq!(names(&mut processes, unknown), ["partial"]);
    let below = process(11, 110);
    make(&mut processes, below, unknown, 1);
    assert_eq!(names(&mut processes, below), ["10:/bin/x", "partial"]);
    assert_eq!(processes.counts().partial_events, 4);
    // A survey tells again what the shell runs. Of what it finds for the first time, it knows no maker.
    let now = executed(b"zsh\0bin\0", b"");
    let stray = process(12, 120);
    let found = |process, image| {
        let change = ProcessChange::Found(super::tests::process(1, 1), now);
        frame(process, image, change)
    };
    processes.survey(&[found(process(1, 1), 1), found(shell, 5), found(stray, 2)]);
    let child = process(13, 130);
    make(&mut processes, child, shell, 5);
    assert_eq!(names(&mut processes, child), ["7:/bin/zsh", "1:/init"]);
    assert_eq!(names(&mut processes, stray), ["partial"]);
    assert!(processes.known[&unknown].has_ended);
}

fn labels_of(processes: &Processes, process: ProcessId) -> Vec<&str> {
    let labels = processes.labels(process);
    let names = processes.label_names().of(labels);
    names.chain(labels.is_partial.then_some("?")).collect()
}

fn give(processes: &mut Processes, process: ProcessId, label: &str) {
    processes.label(process, &[label.to_owned()]);
}

#[test]
fn labels_are_those_of_the_maker_when_it_made_the_process_and_stay_over_execve() {
    let (mut processes, shell) = with_shell();
    let (early, late) = (process(8, 80), process(9, 90));
    make(&mut processes, early, shell, 2);
    give(&mut processes, shell, "web");
    make(&mut processes, late, shell, 2);
    run(&mut processes, late, 3, "cat");
    give(&mut processes, late, "odd");
    assert_eq!(labels_of(&processes, early), [""; 0]);
    assert_eq!(labels_of(&processes, shell), ["web"]);
    assert_eq!(labels_of(&processes, late), ["web", "odd"]);
    // Another capture tells of it once more.
    make(&mut processes, late, shell, 2);
    assert_eq!(labels_of(&processes, late), ["web", "odd"]);
    // The number is used again.
    let next = process(9, 95);
    make(&mut processes, next, process(1, 1), 1);
    assert_eq!(labels_of(&processes, next), [""; 0]);
}

#[test]
fn labels_of_processes_whose_makers_are_unknown_are_partial() {
    let (mut processes, _) = with_shell();
    let (stray, below) = (process(20, 200), process(21, 210));
    assert_eq!(labels_of(&processes, stray), ["?"]);
    give(&mut processes, stray, "web");
    make(&mut processes, below, stray, 7);
    assert_eq!(labels_of(&processes, below), ["web", "?"]);
}

#[test]
fn labels_that_no_process_has_any_more_make_room_for_others() {
    let (mut processes, shell) = with_shell();
    for number in 0..64 {
        let one = process(100 + number, 1000);
        make(&mut processes, one, shell, 2);
        give(&mut processes, one, &format!("label-{number}"));
    }
    give(&mut processes, shell, "one-more");
    assert_eq!(labels_of(&processes, shell), ["?"]);
    let (mut processes, shell) = with_shell();
    for number in 0..64 {
        give(&mut processes, process(500, 1), &format!("label-{number}"));
        processes.known.remove(&process(500, 1));
    }
    give(&mut processes, shell, "one-more");
    assert_eq!(labels_of(&processes, shell), ["one-more"]);
}

#[test]
fn eight_ancestors_are_told_and_older_ones_are_not_missed() {
    let (mut processes, shell) = with_shell();
    let mut last = shell;
    for step in 1..=20 {
        let next = process(100 + step, 1000 + u64::from(step));
        make(&mut processes, next, last, 2);
        processes.take(&frame(last, 2, ProcessChange::Ended));
        last = next;
    }
    let names = names(&mut processes, last);
    assert_eq!(names.len(), ANCESTORS_MAX);
    assert_eq!(names[0], "119:/bin/sh");
    assert_eq!(names[7], "112:/bin/sh");
}

#[test]
fn threads_of_the_kernel_are_told_as_such() {
    let mut processes = Processes::default();
    let kernel = frame(process(2, 1), 0, ProcessChange::Kernel(process(0, 0)));
    processes.survey(&[kernel]);
    let helper = process(30, 300);
    make(&mut processes, helper, process(2, 1), 0);
    run(&mut processes, helper, 1, "modprobe");
    let told = told(&mut processes, helper);
    assert_eq!(told["ancestors"][0]["kernel"], true);
    assert_eq!(told.get("ancestors_partial"), None);
}

#[test]
fn a_flood_of_processes_takes_a_bounded_space() {
    let (mut processes, shell) = with_shell();
    let title = [b'a'; 128];
    let walk = [&[b'n'; 1024][..], b"\0"].concat();
    for pid in 0..2 * KNOWN_MAX as u32 {
        let one = process(1000 + pid, 10_000 + u64::from(pid));
        make(&mut processes, one, shell, 2);
        let change = ProcessChange::Executed(executed(&walk, &title));
        processes.take(&frame(one, 3, change));
        // An event of each that there is.
        processes.ancestors(one);
    }
    let counts = processes.counts();
    assert_eq!(counts.known, KNOWN_MAX as u64);
    assert!(counts.bytes < 112 << 20, "{counts:?}");
    assert!(counts.partial_events > 0);
    processes.forget();
    assert_eq!(processes.counts().bytes, 0);
}

#[test]
fn ended_processes_are_kept_for_a_while() {
    let (mut processes, shell) = with_shell();
    for pid in 0..2 * ENDED_MAX as u32 {
        let one = process(1000 + pid, 10_000 + u64::from(pid));
        make(&mut processes, one, shell, 2);
        processes.take(&frame(one, 2, ProcessChange::Ended));
        assert_eq!(names(&mut processes, one).len(), 2);
    }
    assert_eq!(processes.counts().known, ENDED_MAX as u64 + 2);
}

/// A plan of one rule that asks for a label.
fn plan_of_label() -> Plan {
    let line = b"-a never,exit -F arch=b64 -S chmod -F label=web";
    let host = StaticHost::new(abi::Arch::X86_64);
    let parsed = parse_line_as(Dialect::Tarsier, line, &Source::default(), &host);
    let Some(Command::Append(rule)) = parsed.commands.into_iter().next() else {
        panic!("{:?}", parsed.error);
    };
    let capabilities = Capabilities::assumed(abi::Arch::X86_64);
    Plan::new(&[rule], &capabilities, &Identities::default(), 1).expect("it fits")
}

#[test]
fn a_class_that_only_another_process_can_have_changed_is_found() {
    let (mut processes, shell) = with_shell();
    let plan = plan_of_label();
    let is_possible = |processes: &mut Processes, class, losses| {
        let looked = LookedAt { class, losses };
        let names = &plan.workloads.past;
        processes.is_class_possible(shell, looked, names, &Identities::default())
    };
    let image = processes.known[&shell].image;
    let class = ProcessClass {
        image,
        ..ProcessClass::default()
    };
    let with = |change: fn(&mut ProcessClass)| {
        let mut changed = class;
        change(&mut changed);
        Some(changed)
    };
    assert!(
        is_possible(&mut processes, Some(class), 0),
        "the first look"
    );
    let changes: [fn(&mut ProcessClass); 4] = [
        |class| class.labels = 1,
        |class| class.ancestors = 1,
        |class| class.own = 1,
        |class| class.image += 1,
    ];
    for change in changes {
        assert!(!is_possible(&mut processes, with(change), 0));
    }
    assert!(!is_possible(&mut processes, None, 0), "it has not ended");
    // An event that was lost may have given the label.
    assert!(is_possible(
        &mut processes,
        with(|class| class.labels = 1),
        1
    ));
    assert!(
        !is_possible(&mut processes, Some(class), 1),
        "a label stays"
    );
    let labelled = |class: &mut ProcessClass| class.labels = 1;
    assert!(is_possible(&mut processes, with(labelled), 1));
    processes.forget_classes();
    assert!(is_possible(&mut processes, Some(class), 1));
    give(&mut processes, shell, "web");
    assert!(is_possible(&mut processes, with(labelled), 1));
    processes.take(&frame(shell, image, ProcessChange::Ended));
    assert!(is_possible(&mut processes, None, 1));
}
