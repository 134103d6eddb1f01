//! The output of `tarsier plan`.

mod common;

use common::{capabilities, identities, plan, ruleset};
use plan::{Capabilities, Entry, Plan, Preemption};

const LINES: [&str; 7] = [
    "-a always,exit -F arch=b64 -S chmod,fchmod,fchmodat,chown,fchown,fchownat,lchown,setxattr,\
     lsetxattr,fsetxattr,removexattr -F auid>=1000 -F auid!=unset -F key=perm_mod",
    "-w /a -p wa -k one",
    "-w /a -p w -k two",
    "-a never,exit -F arch=b64 -S getpid",
    "-a never,task -F uid=1000",
    "-a always,exclude -F msgtype=CWD",
    "-a always,task",
];

#[test]
fn text_is_at_most_80_columns_wide_and_names_every_rule_once() {
    let explanation = plan::explain(&plan(&ruleset(&LINES)));
    let text = explanation.to_string();
    for line in text.lines() {
        assert!(line.len() <= 80 && line.trim_end() == line, "{line:?}");
    }
    for number in 1..=LINES.len() {
        let start = format!("{number:>4}  -");
        assert_eq!(
            text.lines().filter(|line| line.starts_with(&start)).count(),
            1,
            "{text}"
        );
    }
    assert!(
        text.ends_with("7 rules: 4 exact, 2 approximate, 1 not honoured; 1 shadowed\n"),
        "{text}"
    );
}

#[test]
fn a_word_too_long_for_a_line_is_kept_whole() {
    let key = "k".repeat(100);
    let line = format!("-a always,exit -F arch=b64 -S getpid -F key={key}");
    let text = plan::explain(&plan(&ruleset(&[&line]))).to_string();
    assert!(text.contains(&key), "{text}");
}

#[test]
fn blocks_say_only_what_is_worth_saying() {
    let text = plan::explain(&plan(&ruleset(&LINES))).to_string();
    let blocks: Vec<&str> = text.split("\n\n").collect();
    assert_eq!(blocks.len(), LINES.len() + 2);
    assert!(
        blocks[3].contains("shadowed: rule 2 always matches first"),
        "{text}"
    );
    assert!(
        blocks[4].ends_with("no effect: it changes nothing for any call"),
        "{text}"
    );
    assert!(blocks[5].contains("asked when a task is made"), "{text}");
    assert_eq!(blocks[6].lines().count(), 1, "{text}");
    assert!(blocks[7].contains("not honoured"), "{text}");
}

#[test]
fn json_holds_what_the_text_says() {
    let explanation = plan::explain(&plan(&ruleset(&LINES)));
    let json = serde_json::to_value(&explanation).unwrap();
    assert_eq!(json["rules"].as_array().unwrap().len(), LINES.len());
    assert_eq!(json["rules"][0]["exactness"]["level"], "exact");
    assert_eq!(json["rules"][2]["shadowed_by"], 2);
    assert_eq!(json["rules"][4]["hooks"][0], "tp_btf/sched_process_fork");
    assert_eq!(json["hooks"]["sys_exit"]["hook"], "every");
    assert_eq!(
        json["notes"].as_array().unwrap().len(),
        plan::TRACEPOINT_NOTES.len()
    );
}

#[test]
fn a_call_shows_its_candidates_in_order_and_its_tables() {
    let rules = [
        "-a never,exit -F arch=b64 -S chmod -F uid=7",
        "-a always,exit -F arch=b64 -S mkdir -F key=other",
        "-a always,exit -F arch=b64 -S chmod,fchmod -F auid>=1000 -F auid!=unset -F key=perm",
        "-a always,exit -F path=/a -F perm=a -F key=a",
        "-a always,exit -F arch=b64 -S chmod -F gid=5 -F key=group",
    ];
    let plan = plan(&ruleset(&rules));
    let calls = plan::explain_call(&plan, "chmod");
    assert_eq!(calls.len(), 2);
    let native = &calls[0];
    assert_eq!((native.arch, native.nr), ("x86_64", 90));
    let numbers: Vec<u32> = native.candidates.iter().map(|c| c.number).collect();
    assert_eq!(numbers, [1, 3, 4, 5]);
    assert_eq!(native.candidates[2].decided_in, plan::DecidedIn::Daemon);
    let lookups: Vec<_> = native.pages[0]
        .iter()
        .map(|l| (l.field, l.kind, l.bytes))
        .collect();
    // Ranges of uid: below 7, 7, from 8. Ranges of auid: below 1000, from 1000, unset.
    let expected = [
        ("uid", "ranges", 48),
        ("auid", "ranges", 48),
        ("gid", "group", 16),
        // No mark, and the name of the file, which has no object here.
        ("path, dir", "marks", 64),
    ];
    assert_eq!(lookups, expected);
    assert_eq!(calls[1].candidates.len(), 1);
    let text = native.to_string();
    assert!(text.lines().all(|line| line.len() <= 80), "{text}");
    assert!(
        text.ends_with("4 candidates, 1 page, 4 lookups, 176 bytes of tables\n"),
        "{text}"
    );
    let none = plan::explain_call(&plan, "getpid");
    assert!(none[0].to_string().ends_with("no rule can select it\n"));
    assert!(plan::explain_call(&plan, "nosuchcall").is_empty());
}

#[test]
fn calls_that_a_preempted_tracepoint_may_miss_are_told() {
    let rules = ruleset(&["-a always,exit -F arch=b32 -S openat -F key=k"]);
    let openat = abi::syscall_number(abi::Arch::I386, "openat").expect("a call");
    let misses = |unhooked: &[u32]| {
        let capabilities = Capabilities {
            trampoline: true,
            probes: true,
            preempted_tracepoints: true,
            preemption: Preemption::Full,
            unhooked_calls: unhooked.iter().map(|nr| (Entry::Compat, *nr)).collect(),
            ..capabilities()
        };
        let plan = Plan::new(&rules, &capabilities, &identities(), 7).expect("the rules fit");
        let notes = plan::explain(&plan).notes;
        let is_told = |text: &str| notes.iter().any(|note| note.contains(text));
        assert_ne!(is_told("counted as missed"), is_told("miss none"));
        is_told("counted as missed")
    };
    assert!(misses(&[openat]));
    assert!(!misses(&[]));
}
