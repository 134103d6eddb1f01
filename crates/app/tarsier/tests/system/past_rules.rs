//! Rules by the past of a process: what they select from its first call on, and who tries to hide behind them.

use crate::daemon::{Daemon, Run, Setup};
use crate::log::{events, Event};
use crate::machine;
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The calls of the test's processes.
const CALLS: &str = "-F arch=b64 -S chmod,fchmodat -F gid=61335";
const GROUP: &str = "61335";

fn tarsier(setup: &Setup, rules: &str) -> Run {
    let run = setup.tarsier("");
    setup.configure("flush = NONE\nmax_log_file_action = IGNORE\nlabel_keys = give:web\n");
    let rules = rules
        .replace("CALLS", CALLS)
        .replace("GATE", &gate(setup).to_string_lossy());
    let rules = setup.write("own.tarsier", &rules);
    run.rules(rules).option("--no-kernel-records")
}

/// The path of a shell that is the test's own.
fn gate(setup: &Setup) -> PathBuf {
    setup.path("gate")
}

/// Makes that shell, and an empty file for each name.
fn make(setup: &Setup, names: &[&str]) {
    std::fs::copy("/bin/sh", gate(setup)).expect("a shell");
    for name in names {
        setup.write(name, "");
    }
}

/// A process of the test's group, in its directory.
fn process(setup: &Setup, words: &[&str]) -> Command {
    let mut command = Command::new("setpriv");
    command
        .args(["--regid", GROUP, "--keep-groups", "--"])
        .args(words);
    command.current_dir(setup.path(""));
    command
}

fn run(setup: &Setup, words: &[&str]) {
    let status = process(setup, words).status().expect("the process");
    assert!(status.success(), "{words:?}: {status}");
}

/// A process that runs lines of shell as it is given them.
struct Waiting(Child);

impl Waiting {
    fn start(setup: &Setup, words: &[&str]) -> Waiting {
        let mut command = process(setup, words);
        Waiting(command.stdin(Stdio::piped()).spawn().expect("a shell"))
    }

    fn give(&mut self, line: &str) {
        let input = self.0.stdin.as_mut().expect("a pipe");
        writeln!(input, "{line}").expect("the shell reads");
    }

    fn end(mut self) {
        drop(self.0.stdin.take());
        assert!(self.0.wait().expect("the shell").success());
    }
}

/// Puts other rules in force.
fn replace(setup: &Setup, daemon: &Daemon, rules: &str) {
    setup.write("own.tarsier", rules);
    daemon.reload();
}

/// The key of each recorded call, by the last name of the file.
fn recorded(log: &Path) -> BTreeMap<String, String> {
    let one = |event: &Event| {
        let key = event
            .record("SYSCALL")?
            .field("key")?
            .trim_matches('"')
            .to_owned();
        let path = event
            .record("PATH")?
            .field("name")?
            .trim_matches('"')
            .to_owned();
        Some((path.rsplit('/').next()?.to_owned(), key))
    };
    events(log).iter().filter_map(one).collect()
}

fn expect(log: &Path, expected: &[(&str, &str)]) {
    let expected = expected.iter();
    let expected = expected.map(|(name, key)| ((*name).to_owned(), (*key).to_owned()));
    assert_eq!(recorded(log), expected.collect::<BTreeMap<_, _>>());
}

fn undecided(daemon: &Daemon) -> u64 {
    let status = daemon.status();
    status["events_candidate"].as_u64().expect("a number")
}

#[test]
fn descendants_of_a_program_match_however_they_descend_and_nobody_else() {
    machine::test("rules on ancestors", |setup| {
        let names = [
            "before", "again", "plain", "child", "deep", "itself", "orphan", "other",
        ];
        make(setup, &names);
        let shell = gate(setup);
        let shell = shell.to_str().expect("a path");
        let mut early = Waiting::start(setup, &[shell]);
        early.give("true");
        let daemon = tarsier(
            setup,
            "-a always,exit CALLS -F ancestor_exe=GATE -k below\n",
        )
        .start();
        run(setup, &["sh", "-c", "chmod 600 plain; true"]);
        run(setup, &[shell, "-c", "chmod 600 child; true"]);
        run(
            setup,
            &[
                shell,
                "-c",
                "sh -c 'sh -c \"chmod 600 deep; true\"; true'; true",
            ],
        );
        // It ran the shell itself, but nobody above it.
        run(setup, &[shell, "-c", "exec chmod 600 itself"]);
        run(
            setup,
            &[shell, "-c", "(sleep 0.3; chmod 600 orphan; true) & true"],
        );
        std::fs::copy("/bin/sh", setup.path("copy")).expect("a shell");
        run(setup, &["./copy", "-c", "chmod 600 other; true"]);
        early.give("chmod 600 before; true");
        early.give("chmod 600 again; true");
        early.end();
        daemon.wait_for_record("name=\"orphan\"");
        // Of processes from before the start, the programs ask the daemon once: here the test and its ancestors, the early
        // shell, and what these made before the answer.
        let asked = undecided(&daemon);
        println!("{asked} calls decided by the daemon");
        let ended = daemon.stop();
        let below = ["before", "again", "child", "deep", "orphan"];
        expect(&ended.log, &below.map(|name| (name, "below")));
    });
}

/// Makes calls before and after the one that labels it, and starts a program before and after.
const LABELLED: &str = r#"
for my $n (1 .. $ARGV[0]) {
    my $pid = fork();
    if ($pid == 0) {
        chmod 0600, "early";
        my $child = fork();
        if ($child == 0) { select undef, undef, undef, 0.002; chmod 0600, "elder"; exit 0 }
        chmod 0640, "give";
        chmod 0600, "own";
        my $late = fork();
        if ($late == 0) { exec "chmod", "600", "younger" }
        waitpid $late, 0;
        waitpid $child, 0;
        exit 0;
    }
    waitpid $pid, 0;
}
"#;

#[test]
fn a_label_counts_from_the_next_call_on_for_the_process_and_what_it_makes() {
    machine::test("rules on labels", |setup| {
        let names = ["early", "elder", "give", "own", "younger"];
        make(setup, &names);
        let rules = "-a always,exit CALLS -F a1=0640 -k give\n\
                     -a always,exit CALLS -F label=web -k labelled\n\
                     -a always,exit CALLS -F label!=web -k rest\n";
        let daemon = tarsier(setup, rules).start();
        let script = setup.write("labelled.pl", LABELLED);
        let script = script.to_str().expect("a path");
        run(setup, &["perl", script, "300"]);
        let asked = undecided(&daemon);
        let ended = daemon.stop();
        let mut counts: BTreeMap<(String, String), u64> = BTreeMap::new();
        for event in events(&ended.log) {
            let (Some(call), Some(path)) = (event.record("SYSCALL"), event.record("PATH")) else {
                continue;
            };
            let field = |record: &crate::log::Record, name: &str| {
                let value = record.field(name).unwrap_or_default();
                value.trim_matches('"').to_owned()
            };
            *counts
                .entry((field(path, "name"), field(call, "key")))
                .or_default() += 1;
        }
        let expected = [
            ("early", "rest"),
            ("elder", "rest"),
            ("give", "give"),
            ("own", "labelled"),
            ("younger", "labelled"),
        ];
        let expected = expected.map(|(name, key)| ((name.to_owned(), key.to_owned()), 300));
        assert_eq!(counts, BTreeMap::from(expected));
        println!("1500 of 1500 right, {asked} decided by the daemon");
        assert!(asked < 100, "{asked} calls were left to the daemon");
    });
}

#[test]
fn labels_stay_when_rules_with_other_names_replace_these() {
    machine::test("rules on labels, replaced", |setup| {
        make(setup, &["early", "give", "own", "later"]);
        let rules = "-a always,exit CALLS -F a2=0640 -k give\n\
                     -a always,exit CALLS -F a1=0640 -k give\n\
                     -a always,exit CALLS -F label=web -k labelled\n";
        let daemon = tarsier(setup, rules).start();
        // Its own calls: a shell's chmod is another process.
        let script = setup.write("waiting.pl", "while (<STDIN>) { chomp; eval $_; }\n");
        let mut process = Waiting::start(setup, &["perl", script.to_str().expect("a path")]);
        process.give("chmod 0600, 'early'");
        process.give("chmod 0640, 'give'");
        daemon.wait_for_record("key=\"give\"");
        let own = setup.read("own.tarsier");
        let more = own.replace(
            "label=web -k labelled",
            "label=web -F ancestor_exe!=/nowhere -k after",
        );
        replace(setup, &daemon, &more);
        process.give("chmod 0600, 'own'");
        process.give("chmod 0600, 'later'");
        process.end();
        daemon.wait_for_record("name=\"later\"");
        let ended = daemon.stop();
        expect(
            &ended.log,
            &[("give", "give"), ("own", "after"), ("later", "after")],
        );
    });
}

#[test]
fn a_label_given_while_no_rule_asks_counts_when_one_asks_again() {
    machine::test("labels between rules", |setup| {
        make(setup, &["early", "give", "own"]);
        let gives = "-a always,exit CALLS -F a1=0640 -k give\n";
        let asks = format!("{gives}-a always,exit CALLS -F label=web -k labelled\n");
        let daemon = tarsier(setup, &asks).start();
        let asks = setup.read("own.tarsier");
        let script = setup.write("waiting.pl", "while (<STDIN>) { chomp; eval $_; }\n");
        let mut process = Waiting::start(setup, &["perl", script.to_str().expect("a path")]);
        // The programs learn that it has no label.
        process.give("chmod 0600, 'early'");
        let pause = || std::thread::sleep(Duration::from_millis(300));
        pause();
        let asked = undecided(&daemon);
        process.give("chmod 0600, 'early'");
        pause();
        assert_eq!(undecided(&daemon), asked, "the programs know it");
        let others = format!("{gives}-a always,exit CALLS -F label=other -k labelled\n");
        replace(setup, &daemon, &others.replace("CALLS", CALLS));
        process.give("chmod 0640, 'give'");
        daemon.wait_for_record("key=\"give\"");
        replace(setup, &daemon, &asks);
        process.give("chmod 0600, 'own'");
        process.end();
        daemon.wait_for_record("name=\"own\"");
        let ended = daemon.stop();
        expect(&ended.log, &[("give", "give"), ("own", "labelled")]);
    });
}

/// Places of members of `struct process_class`.
const IMAGE: Range<usize> = 8..16;
const ANCESTORS: Range<usize> = 16..20;
const OWN: Range<usize> = 20..24;
const LABELS: Range<usize> = 24..28;
const FLAGS: Range<usize> = 28..32;

/// Changes the classes of all processes in the map that was made since `before`.
fn change_classes(before: &BTreeSet<u32>, change: impl Fn(&mut [u8])) {
    let new = machine::bpf_maps()
        .into_iter()
        .filter(|id| !before.contains(id));
    let mut maps = new.filter_map(|id| MapHandle::from_map_id(id).ok());
    let map = maps.find(|map| map.name() == "process_classes");
    let map = map.expect("the map of classes");
    let keys: Vec<Vec<u8>> = map.keys().collect();
    for key in keys {
        let Ok(Some(mut value)) = map.lookup(&key, MapFlags::ANY) else {
            continue;
        };
        change(&mut value);
        map.update(&key, &value, MapFlags::EXIST)
            .expect("root may write it");
    }
}

/// Writes into the classes of processes that they run no program that rules name, and have executed nothing since: as
/// they are if the kernel has not run the program at an execve.
fn forget_execve(before: &BTreeSet<u32>) {
    change_classes(before, |class| {
        class[IMAGE].fill(0xff);
        class[OWN].fill(0);
    });
}

#[test]
fn an_execve_that_the_programs_missed_hides_no_descendant() {
    machine::test("missed execve", |setup| {
        make(setup, &["first", "second"]);
        let shell = gate(setup);
        let shell = shell.to_str().expect("a path");
        let before = machine::bpf_maps();
        let rules = "-a always,exit CALLS -F ancestor_exe=GATE -k below\n";
        let daemon = tarsier(setup, rules).start();
        let mut waiting = Waiting::start(setup, &[shell]);
        waiting.give("chmod 600 first; true");
        daemon.wait_for_record("name=\"first\"");
        // The daemon has told what it knows by then.
        std::thread::sleep(Duration::from_millis(300));
        forget_execve(&before);
        let asked = undecided(&daemon);
        waiting.give("chmod 600 second; true");
        waiting.end();
        daemon.wait_for_record("name=\"second\"");
        assert!(undecided(&daemon) > asked, "the programs knew better");
        let ended = daemon.stop();
        expect(&ended.log, &[("first", "below"), ("second", "below")]);
    });
}

#[test]
fn nobody_hides_behind_a_rule_that_leaves_out_descendants() {
    machine::test("hiding behind ancestors", |setup| {
        make(setup, &["left-out", "bound", "renamed"]);
        let shell = gate(setup);
        let shell = shell.to_str().expect("a path");
        let rules = "-a never,exit CALLS -F ancestor_exe=GATE\n-a always,exit CALLS -k seen\n";
        let daemon = tarsier(setup, rules).start();
        run(setup, &[shell, "-c", "chmod 600 left-out; true"]);
        // The path of the program leads to another one, in a mount namespace of one's own.
        std::fs::copy("/bin/sh", setup.path("copy")).expect("a shell");
        let hidden = format!("mount --bind copy {shell} && {shell} -c 'chmod 600 bound; true'");
        run(setup, &["unshare", "--mount", "sh", "-c", &hidden]);
        // A process that calls itself so.
        let named = "exec -a GATE sh -c 'chmod 600 renamed; true'".replace("GATE", shell);
        run(setup, &["bash", "-c", &named]);
        daemon.wait_for_record("name=\"renamed\"");
        let ended = daemon.stop();
        expect(&ended.log, &[("bound", "seen"), ("renamed", "seen")]);
    });
}

#[test]
fn who_changes_classes_hides_no_longer_than_until_the_next_check_and_that_is_in_the_log() {
    machine::test("changed classes", |setup| {
        make(setup, &["give", "hidden", "early", "late", "later"]);
        let before = machine::bpf_maps();
        let rules = "-a always,exit CALLS -F a1=0640 -k give\n\
                     -a never,exit CALLS -F label=web -F ancestor_exe!=GATE\n\
                     -a always,exit CALLS -k seen\n";
        let daemon = tarsier(setup, rules).start();
        let script = setup.write("waiting.pl", "while (<STDIN>) { chomp; eval $_; }\n");
        let words = ["perl", script.to_str().expect("a path")];
        let (mut labelled, mut other) =
            (Waiting::start(setup, &words), Waiting::start(setup, &words));
        labelled.give("chmod 0640, 'give'");
        labelled.give("chmod 0600, 'hidden'");
        other.give("chmod 0600, 'early'");
        daemon.wait_for_record("name=\"early\"");
        // What the programs do is no breach, however often it is looked at.
        std::thread::sleep(Duration::from_millis(2500));
        let breaches = || daemon.status()["integrity_breaches"].as_u64();
        assert_eq!(breaches(), Some(0));
        // Everybody gets all labels.
        change_classes(&before, |class| {
            class[LABELS].fill(0xff);
            class[FLAGS].fill(0);
        });
        daemon.wait_for_record(" what=map-process_classes mended=yes ");
        other.give("chmod 0600, 'late'");
        daemon.wait_for_record("name=\"late\"");
        // Everybody is a descendant of everything.
        std::thread::sleep(Duration::from_millis(1500));
        change_classes(&before, |class| class[ANCESTORS].fill(0xff));
        let end = Instant::now() + Duration::from_secs(60);
        while breaches() != Some(2) {
            assert!(Instant::now() < end, "{:?} breaches", breaches());
        }
        labelled.give("chmod 0600, 'hidden'");
        labelled.end();
        other.give("chmod 0600, 'later'");
        other.end();
        daemon.wait_for_record("name=\"later\"");
        let ended = daemon.stop();
        let expected = ["give", "early", "late", "later"];
        let keys = ["give", "seen", "seen", "seen"];
        let expected: Vec<(&str, &str)> = expected.into_iter().zip(keys).collect();
        expect(&ended.log, &expected);
    });
}
