//! The findings of `tarsier rules check`.

mod common;

use common::{capabilities, ruleset};
use plan::{lint, Capabilities, Finding, Lint};

fn findings(lines: &[&str]) -> Vec<Finding> {
    lint(&ruleset(lines), &capabilities())
}

fn found(lines: &[&str]) -> Vec<(usize, Lint)> {
    findings(lines)
        .iter()
        .map(|f| (f.rule.expect("a rule"), f.lint))
        .collect()
}

/// The only finding of the last of `lines`.
fn only(lines: &[&str]) -> (Lint, String) {
    let found: Vec<Finding> = findings(lines)
        .into_iter()
        .filter(|finding| finding.rule == Some(lines.len() - 1))
        .filter(|finding| finding.lint != Lint::OtherCalls)
        .collect();
    assert_eq!(found.len(), 1, "{found:#?}");
    assert!(!found[0].remedy.is_empty());
    (found[0].lint, found[0].message.clone())
}

const CLEAN: [&str; 3] = [
    "-a always,exit -F arch=b64 -S chmod,fchmod,fchmodat,fchmodat2 -F auid>=1000 -F auid!=unset -F key=perm",
    "-a always,exit -F arch=b32 -S chmod,fchmod,fchmodat,fchmodat2 -F auid>=1000 -F auid!=unset -F key=perm",
    "-a always,exit -F path=/a -F perm=x -F arch=b64 -F key=a",
];

#[test]
fn clean_rules_have_no_findings() {
    assert_eq!(found(&CLEAN), []);
}

#[test]
fn a_missing_arch_is_named_with_what_the_numbers_mean() {
    let (lint, message) = only(&["-a always,exit -S chmod,mount -F key=k"]);
    assert_eq!(lint, Lint::MissingArch);
    assert!(message.contains("chmod ("), "{message}");
    // The same number on both architectures.
    assert_eq!(found(&["-a never,exit -S openat2"]), []);
}

#[test]
fn an_arch_is_not_missing_where_the_access_decides() {
    let watch = ruleset(&["-a always,exit -F dir=/a -F perm=wa -F key=k"]);
    let optimised = plan::optimise(&watch, common::entries(), plan::Effort::default());
    assert!(!optimised.rules[0].syscalls.is_all());
    let found = lint(&optimised.rules, &capabilities());
    assert!(
        found.iter().all(|f| f.lint != Lint::MissingArch),
        "{found:?}"
    );
    let mut fewer = optimised.rules.clone();
    fewer[0].syscalls.0[2] = 0;
    let found = lint(&fewer, &capabilities());
    assert!(
        found.iter().any(|f| f.lint == Lint::MissingArch),
        "{found:?}"
    );
}

#[test]
fn calls_of_the_other_architecture_are_missed() {
    let (lint, message) = only(&[
        "-a always,exit -F arch=b32 -S chmod -F key=k",
        "-a always,exit -F arch=b64 -S chmod,fchmod -F key=k",
    ]);
    assert_eq!(lint, Lint::OneArch);
    assert_eq!(message, "32-bit programs can call fchmod unseen");
    // Programs cannot make a call that their architecture does not have.
    assert_eq!(
        found(&["-a always,exit -F arch=b32 -S waitpid -F key=k"]),
        []
    );
    // Nor can a host without 32-bit entry.
    let capabilities = Capabilities {
        compat_entry: false,
        ..capabilities()
    };
    let rules = ruleset(&["-a always,exit -F arch=b64 -S umask -F key=k"]);
    assert_eq!(lint_count(&rules, &capabilities), 0);
}

fn lint_count(rules: &[rules::Rule], capabilities: &Capabilities) -> usize {
    lint(rules, capabilities).len()
}

#[test]
fn rules_that_come_too_late_name_the_one_before() {
    let first = "-a never,exit -F arch=b64 -S getpid -F uid>=10";
    let (lint, message) = only(&[first, "-a never,exit -F arch=b64 -S getpid -F uid=20"]);
    assert_eq!(lint, Lint::Shadowed);
    assert!(message.starts_with("rule 1 "), "{message}");
    let (lint, _) = only(&[
        "-a never,exit -F arch=b64 -S getpid -F uid=10 -F gid=5",
        "-a never,exit -F arch=b64 -S getpid -F gid=5 -F uid=10",
    ]);
    assert_eq!(lint, Lint::Duplicate);
}

#[test]
fn conditions_that_cannot_be_met_are_explained() {
    let cases = [
        (
            "-a never,exit -F arch=b64 -S getpid -F uid=1 -F uid=2",
            "uid",
        ),
        (
            "-a never,exit -F arch=b64 -S getpid -F uid>5 -F uid<=5",
            "uid",
        ),
        (
            "-a never,exit -F arch=b64 -S exit_group -F success=1",
            "do not return",
        ),
        (
            "-a never,exit -F arch=b64 -S getpid -F perm=r",
            "kind of access",
        ),
        (
            "-a never,exit -F arch=b64 -S openat -F perm=x",
            "kind of access",
        ),
        ("-a never,exit -F arch=aarch64 -S openat", "arch"),
        ("-a never,exit -F arch=b64 -F arch=b32 -S all", "arch"),
    ];
    for (line, reason) in cases {
        let (lint, message) = only(&[line]);
        assert_eq!(lint, Lint::NeverMatches, "{line}");
        assert!(message.contains(reason), "{line}: {message}");
    }
}

#[test]
fn auid_bounds_that_take_unset_are_found() {
    let rule = |conditions: &str| format!("-a never,exit -F arch=b64 -S getpid {conditions}");
    let (lint, message) = only(&[&rule("-F auid>=1000")]);
    assert_eq!(lint, Lint::UnsetAuid);
    assert!(message.starts_with("auid>=1000 "), "{message}");
    for fine in [
        "-F auid>=1000 -F auid!=unset",
        "-F auid>=1000 -F auid!=4294967295",
        "-F auid>=1000 -F auid<60000",
        "-F auid=unset",
    ] {
        assert_eq!(found(&[&rule(fine)]), [], "{fine}");
    }
}

#[test]
fn old_watches_and_rules_without_key_are_found() {
    assert_eq!(only(&["-w /a -p wa -k k"]).0, Lint::OldWatch);
    assert_eq!(
        found(&["-a always,exit -F arch=b64 -S getppid", CLEAN[2]]),
        [(0, Lint::OneArch), (0, Lint::NoKey)]
    );
}

#[test]
fn rules_on_all_calls_say_what_each_call_pays() {
    let always = findings(&["-a always,exit -F arch=b64 -S all -F uid=5 -F key=k"]);
    let all = always
        .iter()
        .find(|f| f.lint == Lint::AllCalls)
        .expect("found");
    let cost = all.cost.as_deref().expect("a cost");
    assert!(
        cost.contains("under Tarsier ") && cost.contains("calls pay up to "),
        "{cost}"
    );
    assert!(
        cost.ends_with("; under kernel audit each call pays 26 ns"),
        "{cost}"
    );

    // A rule that drops calls makes Tarsier watch none.
    let never = findings(&["-a never,exit -S all -F auid=5"]);
    assert_eq!(never[0].lint, Lint::AllCalls);
    assert_eq!(
        never[0].cost.as_deref(),
        Some("under kernel audit each call pays 17 ns")
    );

    let every = findings(&["-a always,exit -S all -F key=k"]);
    assert_eq!(every.len(), 1, "{every:#?}");
    assert_eq!(every[0].lint, Lint::EveryCall);
    assert!(every[0]
        .cost
        .as_deref()
        .is_some_and(|cost| cost.contains("2300 ns")));

    // A directory alone does not tell which calls matter.
    let directory = findings(&["-a always,exit -F arch=b64 -S all -F dir=/a -F key=k"]);
    assert!(directory.iter().any(|f| f.lint == Lint::AllCalls));

    // A file, or a kind of access, names its calls.
    for watch in [
        "-w /a -p wa -k k",
        "-a always,exit -F arch=b64 -S all -F perm=x -F key=k",
    ] {
        assert!(
            found(&[watch])
                .iter()
                .all(|(_, lint)| *lint != Lint::AllCalls),
            "{watch}"
        );
    }
}

#[test]
fn a_missing_arch_says_which_calls_pay_for_it() {
    let found = findings(&["-a always,exit -S connect -F uid=5 -F key=k"]);
    let missing = found
        .iter()
        .find(|f| f.lint == Lint::MissingArch)
        .expect("found");
    let cost = missing.cost.as_deref().expect("a cost");
    assert_eq!(
        cost,
        "under Tarsier calls of 32-bit programs are watched too: 1, and every other call pays 74 ns instead of 37; \
         under kernel audit each call with one of its numbers pays 17 ns"
    );
}

#[test]
fn what_io_uring_does_unseen_is_found_until_a_rule_asks_for_it() {
    let watched = [
        "-a always,exit -F arch=b64 -S mkdirat,unlinkat,accept4 -F uid=5 -F key=k",
        "-a always,exit -F arch=b32 -S mkdirat,unlinkat,accept4 -F uid=5 -F key=k",
    ];
    let mut all = findings(&watched);
    all.retain(|finding| finding.lint != Lint::OtherCalls);
    assert_eq!(all.len(), 2, "{all:#?}");
    assert_eq!(all[0].lint, Lint::IoUring);
    assert!(
        all[0].message.ends_with("accept, unlinkat, mkdirat"),
        "{:?}",
        all[0]
    );
    let twin = "-a always,io_uring -S mkdirat,unlinkat,accept -F uid=5 -F key=k";
    let with_twin = [watched[0], watched[1], twin];
    assert!(!found(&with_twin)
        .iter()
        .any(|(_, lint)| *lint == Lint::IoUring));
    let narrower = "-a always,io_uring -S mkdirat,unlinkat,accept -F uid=5 -F gid=5 -F key=k";
    let with_narrower = [watched[0], watched[1], narrower];
    assert_eq!(
        found(&with_narrower)
            .iter()
            .filter(|(_, lint)| *lint == Lint::IoUring)
            .count(),
        2
    );
}

/// Messages and remedies of the findings about other calls of an act.
fn other_calls(lines: &[&str]) -> Vec<(String, String)> {
    let found = findings(lines).into_iter();
    let found = found.filter(|finding| finding.lint == Lint::OtherCalls);
    found.map(|f| (f.message, f.remedy)).collect()
}

#[test]
fn calls_that_do_what_a_rule_watches_are_named_with_the_line_to_add() {
    let found = other_calls(&[
        "-a always,exit -F arch=b64 -S chmod,fchmodat -F auid>=1000 -F key=one",
        "-a always,exit -F arch=b64 -S fchmod -F auid>=1000 -F key=two",
    ]);
    let message = "programs can change modes of files unseen: fchmodat2";
    let line = "-a always,exit -F arch=b64 -S fchmodat2 -F auid>=1000 -F key=one";
    let remedy = format!("add {line} (for auditctl 3: fchmodat2 is 452)");
    assert_eq!(found, [(message.to_owned(), remedy)]);
    let complete = [
        "-a always,exit -F arch=b64 -S chmod,fchmodat -F auid>=1000 -F key=one",
        "-a always,exit -F arch=b64 -S fchmod -F auid>=1000 -F key=two",
        line,
    ];
    assert_eq!(other_calls(&complete), []);
}

#[test]
fn calls_of_others_or_with_other_results_do_not_count_as_watched() {
    let narrower = other_calls(&[
        "-a always,exit -F arch=b64 -S setxattr,lsetxattr,fsetxattr -F auid>=1000 -F key=x",
        "-a always,exit -F arch=b64 -S setxattrat -F auid>=1000 -F exit=-EACCES -F key=x",
        "-a always,exit -F arch=b32 -S setxattrat -F auid>=1000 -F key=x",
        "-a never,exit -F arch=b64 -S setxattrat -F auid>=1000",
    ]);
    // The narrower rules miss the others for themselves, which the first selects.
    let texts: Vec<&str> = narrower.iter().map(|found| found.0.as_str()).collect();
    assert_eq!(
        texts,
        [
            "programs can set extended attributes unseen: setxattrat",
            "programs can set extended attributes unseen: setxattr, lsetxattr, fsetxattr"
        ]
    );
    assert!(narrower[1].1.contains("-F arch=b32"), "{}", narrower[1].1);
}

#[test]
fn an_act_by_an_argument_is_found_and_watched_by_it() {
    let (message, remedy) =
        &other_calls(&["-a always,exit -F arch=b64 -S open -F a1&0x40 -F uid=5 -F key=made"])[0];
    assert_eq!(
        message,
        "programs can create files unseen: creat, openat with a2&0x40, openat2"
    );
    assert!(
        remedy.contains("-S creat,openat2 -F uid=5 -F key=made; and ")
            && remedy.contains("-S openat -F a2&0x40 -F uid=5 -F key=made"),
        "{remedy}"
    );
    let injection = other_calls(&[
        "-a always,exit -F arch=b64 -S process_vm_writev -F key=k",
        "-a always,exit -F arch=b64 -S ptrace -F a0=0x4 -F key=k",
        "-a always,exit -F arch=b64 -S ptrace -F a0=0x5 -F key=k",
    ]);
    assert_eq!(injection, []);
    let sockets = other_calls(&["-a always,exit -F arch=b32 -S connect -F key=k"]);
    assert!(
        sockets[0].0.ends_with("socketcall with a0=0x3"),
        "{sockets:?}"
    );
    let clock = |rest: &str| {
        let rules = format!("-a always,exit -F arch=b64 -S adjtimex,settimeofday{rest} -F key=k");
        let realtime =
            "-a always,exit -F arch=b64 -S clock_settime,clock_adjtime -F a0=0x0 -F key=k";
        other_calls(&[&rules, realtime])
    };
    assert_eq!(clock(""), []);
    // Others than the second rule is about have to be watched, too.
    assert_eq!(clock(" -F auid=5").len(), 1);
    // What the argument means elsewhere is not known.
    let other = other_calls(&["-a always,exit -F arch=b64 -S kill -F a1=9 -F key=k"]);
    assert!(other[0]
        .1
        .starts_with("add rules on them, with the arguments"));
}

#[test]
fn every_act_is_found_by_each_of_its_calls_and_the_lines_end_it() {
    for act in abi::acts() {
        for way in act
            .ways
            .iter()
            .filter(|way| way.meant == abi::Meant::ByCall)
        {
            let arch = match abi::syscall_number(abi::Arch::X86_64, way.call) {
                Some(_) => "b64",
                None if abi::syscall_number(abi::Arch::I386, way.call).is_some() => "b32",
                None => continue,
            };
            let line = format!(
                "-a always,exit -F arch={arch} -S {} -F uid=5 -F key=k",
                way.call
            );
            let mut lines = vec![line];
            // Calls may do other acts, too, so that lines are added until all is watched.
            for _ in 0..4 {
                let given: Vec<&str> = lines.iter().map(String::as_str).collect();
                for (_, remedy) in other_calls(&given) {
                    let added = remedy.strip_prefix("add ").expect("lines");
                    let added = added.split(" (for").next().expect("a line");
                    lines.extend(added.split("; and ").map(str::to_owned));
                }
            }
            let given: Vec<&str> = lines.iter().map(String::as_str).collect();
            assert_eq!(other_calls(&given), [], "{}: {lines:#?}", way.call);
            let rules = ruleset(&given);
            let host = abi::Arch::X86_64;
            let arch = if arch == "b64" { host } else { abi::Arch::I386 };
            for other in &act.ways {
                let Some(nr) = abi::syscall_number(arch, other.call) else {
                    continue;
                };
                let is_watched = rules.iter().any(|rule| rule.syscalls.contains(nr));
                assert!(is_watched, "{}: {} is not watched", act.name, other.call);
            }
        }
    }
}

#[test]
fn operations_of_io_uring_that_do_the_act_are_named() {
    let found = findings(&["-a always,exit -F arch=b64 -S open -F key=k"]);
    let found = found.iter().find(|f| f.lint == Lint::IoUring).expect("one");
    assert_eq!(
        found.remedy,
        "add -a always,io_uring -S openat,openat2 -F key=k"
    );
    assert!(
        found.message.ends_with("openat, openat2"),
        "{}",
        found.message
    );
}

#[test]
fn what_the_engine_cannot_honour_is_found() {
    let (lint, message) = only(&["-a never,exit -F arch=b64 -S getpid -F subj_type=t"]);
    assert_eq!(lint, Lint::Label);
    assert!(message.starts_with("subj_type"), "{message}");
    assert_eq!(only(&["-a always,task"]).0, Lint::NotHonoured);
}

#[test]
fn findings_say_where_the_rule_is() {
    let mut rules = ruleset(&["-w /a -p wa -k k"]);
    rules[0].source = rules::Source {
        file: "some.rules".to_owned(),
        line: 7,
    };
    let found = lint(&rules, &capabilities());
    assert_eq!((found[0].file.as_str(), found[0].line), ("some.rules", 7));
    let json = serde_json::to_value(&found[0]).unwrap();
    assert_eq!(json["lint"], found[0].lint.name());
}
