//! The promises of a plan.

mod common;

use common::{capabilities, identities, plan, rule, ruleset, HOST};
use plan::tables::{self, TooLarge};
use plan::{Capabilities, Entry, Exactness, Gap, Hooks, Plan, SysExit};
use rules::{List, Rule};

fn number(name: &str) -> u32 {
    abi::syscall_number(HOST, name).unwrap()
}

fn watched(lines: &[&str]) -> Vec<(Entry, u32)> {
    plan(&ruleset(lines)).calls.keys().copied().collect()
}

fn hooks(lines: &[&str], capabilities: &Capabilities) -> Hooks {
    Plan::new(&ruleset(lines), capabilities, &identities(), 1)
        .unwrap()
        .hooks
}

fn shadows(lines: &[&str]) -> Vec<Option<u32>> {
    plan(&ruleset(lines))
        .notes
        .iter()
        .map(|note| note.shadowed_by)
        .collect()
}

#[test]
fn calls_that_no_rule_can_record_are_not_hooked() {
    assert_eq!(watched(&["-a never,exit -F arch=b64 -S openat"]), []);
    assert_eq!(
        watched(&[
            "-a never,exit -S all -F uid=0",
            "-a always,exit -F arch=b64 -S openat",
            "-a never,exit -F arch=b64 -S read -F gid=5",
        ]),
        [(Entry::Native, number("openat"))]
    );
    // The first rule decides whatever the call is.
    assert_eq!(
        watched(&["-a never,exit -S all", "-a always,exit -S all"]),
        []
    );
    // A path rule cannot select a call that has no names.
    assert_eq!(
        watched(&["-a always,exit -F arch=b64 -S getpid -F path=/a"]),
        []
    );
    assert!(matches!(
        hooks(&[], &capabilities()).sys_exit,
        SysExit::None
    ));
}

#[test]
fn conditions_known_beforehand_leave_no_test_behind() {
    let rules = ruleset(&["-a always,exit -F arch=b64 -S unlink -F perm=wa -k k"]);
    let plan = plan(&rules);
    assert_eq!(plan.lists.len(), 1);
    assert!(plan.lists[0][0].is_certain(), "{:?}", plan.lists);
    assert_eq!(plan.calls.len(), 1);
    // Every call that writes or changes attributes, and none that only reads.
    let calls = watched(&["-a always,exit -F arch=b64 -S all -F perm=wa"]);
    assert!(calls.contains(&(Entry::Native, number("rename"))));
    assert!(calls.contains(&(Entry::Native, number("openat2"))));
    assert!(!calls.contains(&(Entry::Native, number("readlink"))));
    assert!(calls.iter().all(|(entry, _)| *entry == Entry::Native));
}

#[test]
fn rules_after_one_that_always_matches_are_not_looked_at() {
    let plan = plan(&ruleset(&[
        "-a always,exit -F arch=b64 -S unlink -F uid=5",
        "-a always,exit -F arch=b64 -S unlink",
        "-a always,exit -F arch=b64 -S unlink -F uid=6",
        "-a never,exit -F arch=b64 -S unlink",
    ]));
    let positions: Vec<u32> = plan.lists[0]
        .iter()
        .map(|candidate| candidate.rule)
        .collect();
    assert_eq!(positions, [0, 1]);
    assert_eq!(
        plan.notes.iter().map(|note| note.calls).collect::<Vec<_>>(),
        [1, 1, 0, 0]
    );
}

#[test]
fn trailing_never_rules_go_unless_they_end_a_search_through_names() {
    let kept = |lines: &[&str]| {
        let plan = plan(&ruleset(lines));
        plan.lists[0]
            .iter()
            .map(|candidate| candidate.rule)
            .collect::<Vec<_>>()
    };
    let rename = "-a always,exit -F arch=b64 -S rename -F path=/c";
    assert_eq!(
        kept(&[rename, "-a never,exit -F arch=b64 -S rename -F uid=0"]),
        [0]
    );
    assert_eq!(
        kept(&[rename, "-a never,exit -F arch=b64 -S rename -F dir=/a"]),
        [0]
    );
    assert_eq!(
        kept(&[rename, "-a never,exit -F arch=b64 -S rename -F path=/a"]),
        [0, 1]
    );
}

#[test]
fn a_rule_is_shadowed_by_an_earlier_one_that_asks_for_less() {
    assert_eq!(
        shadows(&[
            "-a never,exit -S all -F uid=0",
            "-a always,exit -F arch=b64 -S openat -F uid=0 -F success=1",
            "-a always,exit -F arch=b64 -S openat -F uid=1",
        ]),
        [None, Some(0), None]
    );
    assert_eq!(
        shadows(&["-w /a -p wa -k one", "-w /a -p w -k two", "-w /a -p r"]),
        [None, Some(0), None]
    );
    assert_eq!(
        shadows(&[
            "-a always,exit -S all -F auid>=1000",
            "-a always,exit -S all -F auid=1000",
            "-a always,exit -S all -F auid=999",
        ]),
        [None, Some(0), None]
    );
    // A task may be in both groups, so one condition does not imply the other.
    assert_eq!(
        shadows(&[
            "-a never,exit -S all -F gid!=5",
            "-a always,exit -S all -F gid=6"
        ]),
        [None, None]
    );
    // Rules of other lists, and lists where rules without conditions match nothing.
    assert_eq!(
        shadows(&["-a never,task", "-a always,exit -S all"]),
        [None, None]
    );
}

#[test]
fn per_syscall_tracepoints_carry_rules_on_few_native_calls() {
    let lines = ["-a always,exit -F arch=b64 -S unlink,rename,exit_group"];
    let chosen = hooks(&lines, &capabilities());
    assert_eq!(
        chosen.sys_exit,
        SysExit::PerSyscall(vec![number("rename"), number("unlink")])
    );
    assert_eq!(chosen.reason, "no 32-bit call is watched");
    assert!(chosen.exit && !chosen.exec && !chosen.fork);
    let native_only = Capabilities {
        compat_entry: false,
        ..capabilities()
    };
    assert_eq!(
        hooks(&lines, &native_only).reason,
        "32-bit entry is impossible here"
    );
    assert_eq!(chosen.unwatched_ns(), plan::PER_SYSCALL_NS);
}

#[test]
fn one_hook_for_every_call_is_chosen_when_tracepoints_cannot_carry_the_rules() {
    let unlink = ["-a always,exit -F arch=b64 -S unlink"];
    let reason = |lines: &[&str], capabilities: &Capabilities| {
        let hooks = hooks(lines, capabilities);
        assert_eq!(hooks.sys_exit, SysExit::Every);
        let of_entries = hooks.unwatched_ns() - plan::TP_BTF_NS;
        assert_eq!(of_entries > 0, hooks.entries);
        hooks.reason
    };
    let host = capabilities();
    assert_eq!(
        reason(&["-a always,exit -F arch=b32 -S unlink"], &host),
        "32-bit entry is possible here and watched"
    );
    let native_only = Capabilities {
        compat_entry: false,
        ..capabilities()
    };
    assert_eq!(
        reason(&["-a always,exit -S all"], &native_only),
        "more calls are watched than tracepoints are worth arming"
    );
    let no_tracefs = Capabilities {
        syscall_tracepoints: false,
        ..capabilities()
    };
    assert_eq!(
        reason(&unlink, &no_tracefs),
        "per-syscall tracepoints are not available here"
    );
    let mut untraced = capabilities();
    untraced.untraced_calls.insert(number("unlink"));
    assert_eq!(
        reason(&unlink, &untraced),
        "a watched call has no tracepoint of its own in this kernel"
    );
}

#[test]
fn calls_that_do_not_return_need_no_hook_at_system_call_exit() {
    let chosen = hooks(
        &["-a always,exit -F arch=b64 -S exit_group"],
        &capabilities(),
    );
    assert_eq!(chosen.sys_exit, SysExit::None);
    assert!(chosen.exit);
}

#[test]
fn more_candidates_than_a_call_can_have_are_refused_by_the_rule_that_is_too_many() {
    let rules = |count: usize| -> Vec<Rule> {
        let first = rule("-a always,exit -F arch=b64 -S unlink -F uid=7");
        let on = |nr| {
            let mut rule = first.clone();
            rule.syscalls = rules::SyscallSet::EMPTY;
            rule.syscalls.insert(nr);
            rule
        };
        // The first rule is on another call, so that positions and counts differ.
        let others = std::iter::repeat_n(on(number("unlink")), count);
        std::iter::once(on(number("rename")))
            .chain(others)
            .collect()
    };
    let planned = |count| Plan::new(&rules(count), &capabilities(), &identities(), 1);
    let fits = planned(4096).unwrap();
    assert_eq!(fits.lists.iter().map(Vec::len).max(), Some(4096));
    let error = planned(4097).unwrap_err();
    assert_eq!(error, TooLarge::Candidates(4097));
    assert_eq!(
        error.to_string(),
        "rule 4098 is one more than the 4096 that may ask about the same call: name fewer calls \
         in it or in earlier rules"
    );
}

#[test]
fn rules_with_too_many_group_conditions_are_refused_by_name() {
    let mut greedy = rule("-a always,exit -F arch=b64 -S unlink");
    let gid = |id| rules::Condition {
        field: abi::Field::Gid,
        op: rules::Op::Eq,
        value: rules::Value::Number(id),
    };
    greedy.conditions.extend((0..65).map(gid));
    let error = Plan::new(&[greedy], &capabilities(), &identities(), 1).unwrap_err();
    assert_eq!(error, TooLarge::Lookups(0));
    assert!(
        error.to_string().starts_with("rule 1 and those after it"),
        "{error}"
    );
}

#[test]
fn every_group_that_a_rule_asks_for_must_be_there() {
    let rules = ruleset(&["-a always,exit -F arch=b64 -S getpid -F gid=5 -F gid=6 -F egid!=7"]);
    let plan = plan(&rules);
    for (groups, expected) in [
        (&[5, 6][..], plan::Decision::Record(0)),
        (&[5], plan::Decision::Drop),
        (&[5, 6, 7], plan::Decision::Drop),
    ] {
        let facts = plan::Facts {
            groups,
            ..common::plain_call()
        };
        assert_eq!(plan.decide(&facts, &identities()), expected, "{groups:?}");
    }
}

#[test]
fn calls_with_the_same_candidates_share_a_list_and_its_rows() {
    let one = plan(&ruleset(&["-a always,exit -F arch=b64 -S read -F uid=5"]));
    let many = plan(&ruleset(&[
        "-a always,exit -F arch=b64 -S read,write,getpid -F uid=5",
    ]));
    assert_eq!((one.calls.len(), many.calls.len()), (1, 3));
    assert_eq!((one.lists.len(), many.lists.len()), (1, 1));
    assert_eq!(one.rows.len(), many.rows.len());
}

#[test]
fn a_watch_for_reads_asks_about_stat_where_the_kernel_counts_it() {
    let rules = ruleset(&["-w /etc/shadow -p r"]);
    let stats = |perm_lists| {
        let host = Capabilities {
            perm_lists,
            ..capabilities()
        };
        let plan = Plan::new(&rules, &host, &identities(), 1).expect("the rules fit");
        let asks = |name: &&str| {
            let nr = abi::syscall_number(HOST, name).unwrap();
            plan.calls.contains_key(&(Entry::Native, nr))
        };
        ["getxattr", "newfstatat", "statx", "quotactl_fd"]
            .iter()
            .filter(|name| asks(name))
            .count()
    };
    assert_eq!(stats(abi::PermLists::Short), 1);
    assert_eq!(stats(abi::PermLists::Long), 3);
}

#[test]
fn class_selectors_stand_for_the_calls_of_their_class() {
    let classes = [
        (2047, Entry::Native, abi::SyscallClass::DirWrite),
        (2046, Entry::Compat, abi::SyscallClass::DirWrite),
        (2039, Entry::Native, abi::SyscallClass::Signal),
        (2038, Entry::Compat, abi::SyscallClass::Signal),
    ];
    for (selector, entry, class) in classes {
        let arch = if entry == Entry::Native { "b64" } else { "b32" };
        let line = format!("-a always,exit -F arch={arch} -S {selector}");
        let table = if entry == Entry::Native {
            HOST
        } else {
            HOST.compat().unwrap()
        };
        let mut expected: Vec<_> = abi::class_syscalls(table, class, abi::PermLists::default())
            .map(|nr| (entry, nr))
            .collect();
        expected.sort();
        assert_eq!(watched(&[&line]), expected, "{line}");
    }
    assert_eq!(watched(&["-a always,exit -F arch=b64 -S 2036,2032"]), []);
}

#[test]
fn x32_numbers_are_never_selected() {
    let all = plan(&ruleset(&["-a always,exit -S all"]));
    assert!(all
        .calls
        .keys()
        .all(|&(_, nr)| (nr as usize) < tables::CALLS));
    let rules = ruleset(&["-a always,exit -S all"]);
    for nr in [2048, 0x4000_0000 | number("openat")] {
        let facts = plan::Facts {
            nr,
            ..common::plain_call()
        };
        assert_eq!(all.decide(&facts, &identities()), plan::Decision::Drop);
        let loop_says = plan::decide(&rules, common::entries(), &facts, &identities());
        assert_eq!(loop_says, plan::Decision::Drop);
    }
}

#[test]
fn the_task_list_has_a_row_only_when_it_can_keep_a_task_out() {
    let row = |lines: &[&str]| {
        let plan = plan(&ruleset(lines));
        assert_eq!(
            plan.task_list,
            plan.rows[tables::TASK_LIST] != tables::Row::default()
        );
        assert_eq!(plan.task_list, plan.hooks.task_list);
        plan.task_list
    };
    assert!(row(&["-a never,task"]));
    assert!(row(&["-a always,task -F uid=0", "-a never,task"]));
    assert!(!row(&["-a always,task"]));
    assert!(!row(&["-a always,task", "-a never,task"]));
    assert!(!row(&["-a never,exit -S all"]));
    // When a task is created, the kernel has no call to compare.
    let arch = rules::Rule {
        conditions: rule("-a always,exit -F arch=b64 -S read").conditions,
        ..rule("-a never,task")
    };
    assert!(!plan(&[arch]).task_list);
}

#[test]
fn rules_without_effect_say_so() {
    let level = |line: &str, capabilities: &Capabilities| {
        let plan = Plan::new(&[rule(line)], capabilities, &identities(), 1).unwrap();
        plan.notes[0].exactness.clone()
    };
    let native_only = Capabilities {
        compat_entry: false,
        ..capabilities()
    };
    let exact = "-a always,exit -F arch=b64 -S kill -F a1=9 -F auid>=1000 -F exit=-EPERM -k kill";
    assert_eq!(level(exact, &capabilities()), Exactness::Exact);
    for line in ["-a always,exit -F arch=b32 -S kill", "-a always,task"] {
        assert!(
            matches!(level(line, &native_only), Exactness::NotHonoured(_)),
            "{line}"
        );
    }
    let both = "-a always,exit -S kill";
    assert_eq!(level(both, &native_only), Exactness::Exact);
    let exe = "-a always,exit -F exe=/c -S kill";
    assert!(matches!(
        level(exe, &capabilities()),
        Exactness::Approximate(_)
    ));
}

#[test]
fn only_exit_rules_record() {
    assert!(plan::records_something(&ruleset(&["-w /a -p w"])));
    assert!(!plan::records_something(&ruleset(&[
        "-a never,exit -S all",
        "-a always,task"
    ])));
    assert_eq!(rule("-w /a -p w").list, List::Exit);
}

#[test]
fn results_count_as_the_kernel_counts_them() {
    let of = |result| {
        let facts = plan::Facts {
            result,
            ..common::plain_call()
        };
        (facts.audit_result(), facts.return_valid())
    };
    let (success, failure) = (Some(1), Some(2));
    assert_eq!(of(Some(-4095)), (Some(-4095), failure));
    // Results beyond the error numbers are addresses.
    assert_eq!(of(Some(-4096)), (Some(-4096), success));
    assert_eq!(of(Some(0)), (Some(0), success));
    for restart in [-512, -513, -514, -516] {
        assert_eq!(of(Some(restart)), (Some(-4), failure));
    }
    assert_eq!(of(Some(-515)), (Some(-515), failure));
    assert_eq!(of(None), (None, None));
}

#[test]
fn an_earlier_name_hides_a_path_rule_but_not_one_that_comes_before_the_match_so_far() {
    let name = |path: &str, dev| plan::Name {
        path: path.into(),
        inode: Some(plan::Inode {
            id: plan::ObjectId { dev, ino: 5 },
            mode: 0o100644,
            uid: 0,
            gid: 0,
            rdev: 0,
        }),
        existed: true,
        is_unknown: false,
        is_owner_changed: false,
        is_path_moot: false,
        directory: None,
        is_possible: false,
        object: plan::Proven::InCall,
        place: plan::Proven::InCall,
    };
    let names = [name("/a", 0x0080_0001), name("/c", 0x0080_0002)];
    let facts = plan::Facts {
        nr: number("rename"),
        names: &names,
        ..common::plain_call()
    };
    let decided = |lines: &[&str]| {
        let rules = ruleset(lines);
        let by_loop = plan::decide(&rules, common::entries(), &facts, &identities());
        assert_eq!(plan(&rules).decide(&facts, &identities()), by_loop);
        by_loop
    };
    let on_second = "-a always,exit -F arch=b64 -S rename -F path=/c";
    let on_first = "-a never,exit -F arch=b64 -S rename -F path=/a";
    let on_any = "-a always,exit -F arch=b64 -S rename -F uid=0";
    // The search ends at the first name that has a rule.
    assert_eq!(decided(&[on_second, on_first]), plan::Decision::Drop);
    // The exit list comes first, so that a rule after its match does not end the search.
    assert_eq!(
        decided(&[on_second, on_any, on_first]),
        plan::Decision::Record(0)
    );
    assert_eq!(
        decided(&[on_any, on_second, on_first]),
        plan::Decision::Record(0)
    );
    assert_eq!(
        decided(&[on_first, on_any, on_second]),
        plan::Decision::Drop
    );
}

/// Class of openat under these rules.
fn class_of_openat(lines: &[&str]) -> u8 {
    plan(&ruleset(lines)).object_classes()[Entry::Native as usize][number("openat") as usize]
}

#[test]
fn files_opened_to_be_read_are_noted_only_where_a_rule_can_select_them() {
    let of_writes_and_failures = [
        "-w /etc/passwd -p wa",
        "-a always,exit -F arch=b64 -S openat -F exit=-EACCES -F auid>=1000",
        "-a always,exit -F arch=b64 -S openat -F success=0",
        "-a always,exit -F arch=b64 -S openat -F exit=-EPERM",
    ];
    let changes = plan::ObjectClass::OpenChanges as u8;
    assert_eq!(class_of_openat(&of_writes_and_failures), changes);
    for line in [
        "-w /etc/shadow -p rwa",
        "-a always,exit -F arch=b64 -S openat -F auid>=1000",
        "-a always,exit -F arch=b64 -S openat -F exit!=-EPERM",
        "-a always,exit -F arch=b64 -S openat -F success=1",
    ] {
        let lines = [&of_writes_and_failures[..], &[line]].concat();
        assert_eq!(
            class_of_openat(&lines),
            plan::ObjectClass::Open as u8,
            "{line}"
        );
    }
}

#[test]
fn a_plan_names_what_the_kernel_lacks() {
    let gap = Gap {
        name: "tty_struct.name".to_owned(),
        feature: "tty of records",
        essential: false,
    };
    let capabilities = Capabilities {
        gaps: vec![gap],
        ..capabilities()
    };
    assert_eq!(capabilities.essential_gap(), None);
    let rules = ruleset(&["-a always,exit -F arch=b64 -S openat"]);
    let plan = Plan::new(&rules, &capabilities, &identities(), 1).unwrap();
    let explanation = plan::explain(&plan).to_string();
    assert!(explanation.contains("\nwithout     tty_struct.name: tty of records\n"));
    let kernel = Plan::for_kernel(&rules, &capabilities, 1);
    assert!(!plan::explain_kernel(&kernel)
        .to_string()
        .contains("without"));
}
