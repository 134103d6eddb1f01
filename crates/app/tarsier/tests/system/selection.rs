//! Rules select what they select in the kernel: fields, operators, order, lists, entries.

use crate::calls::{call, int80_is_possible, Call, Caller};
use crate::daemon::{Daemon, Setup};
use crate::{log, machine};
use std::time::Duration;

/// Rules, and the calls that they select from some callers.
pub(crate) struct Row {
    pub(crate) rules: String,
    pub(crate) makes: Vec<Make>,
}

/// A caller, its calls, and those of them that are in the log, with keys.
pub(crate) struct Make {
    caller: Caller,
    calls: Vec<Call>,
    logged: Vec<&'static str>,
    after_refresh: bool,
}

impl Make {
    /// Makes the calls only after the daemon has checked again which files the rules' paths are.
    pub(crate) fn after_refresh(self) -> Make {
        Make {
            after_refresh: true,
            ..self
        }
    }
}

pub(crate) fn make(caller: Caller, calls: &[Call], logged: &[&'static str]) -> Make {
    Make {
        caller,
        calls: calls.to_vec(),
        logged: logged.to_vec(),
        after_refresh: false,
    }
}

pub(crate) fn row(rules: impl Into<String>, makes: Vec<Make>) -> Row {
    Row {
        rules: rules.into() + "\n",
        makes,
    }
}

/// Arms the rules of one row after the other in one daemon, then compares the log with all rows.
pub(crate) fn rows_select(name: &str, rows: impl FnOnce(&Setup) -> Vec<Row>) {
    machine::test(name, |setup| {
        let rows = rows(setup);
        let daemon = setup.tarsier(&rows[0].rules).format("raw").start();
        let mut made = Vec::new();
        for (i, row) in rows.iter().enumerate() {
            if i > 0 {
                setup.write("test.rules", &row.rules);
                daemon.reload();
            }
            for make in &row.makes {
                if make.after_refresh {
                    wait_for_refresh(&daemon);
                }
                made.push((row, make, make.caller.make(&make.calls)));
            }
        }
        let ended = daemon.stop();
        assert!(ended.status.success(), "{}", ended.said);
        assert!(!ended.said.contains("reload failed"), "{}", ended.said);
        let events = log::events(&ended.log);
        let mut wrong = Vec::new();
        for (row, make, made) in made {
            let logged = log::calls_of(&events, made.pid);
            if logged != make.logged {
                wrong.push(format!(
                    "\n{}{:?}\n{:?} = {:?}\n  wanted {:?}\n  logged {logged:?}\n",
                    row.rules, make.caller, make.calls, made.results, make.logged
                ));
            }
        }
        assert!(wrong.is_empty(), "{}{}", wrong.concat(), ended.said);
    });
}

/// Waits until the daemon has checked again the files that rules name. It does so once a second,
/// without reporting it.
fn wait_for_refresh(daemon: &Daemon) {
    let uptime_s = || daemon.status()["uptime_s"].as_u64().expect("a number");
    let begun = uptime_s();
    while uptime_s() < begun + 2 {
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn getppid() -> [Call; 1] {
    [call!(getppid)]
}

/// `-a always,exit -F arch=b64 -S getppid … -k k`
fn rule(conditions: &str) -> String {
    format!("-a always,exit -F arch=b64 -S getppid {conditions} -k k")
}

fn ids(real: u32, effective: u32, saved: u32) -> Caller {
    Caller {
        uids: Some([real, effective, saved]),
        ..Caller::default()
    }
}

fn member(gid: u32, groups: &[u32]) -> Caller {
    Caller {
        groups: groups.to_vec(),
        ..Caller::gid(gid)
    }
}

const YES: &[&str] = &["getppid k"];
const NO: &[&str] = &[];

/// Rows on getppid: conditions, and callers with the events they should make.
fn on_callers(conditions: &str, callers: Vec<(Caller, &[&'static str])>) -> Row {
    let makes = callers.into_iter();
    let makes = makes.map(|(caller, logged)| make(caller, &getppid(), logged));
    row(rule(conditions), makes.collect())
}

#[test]
fn what_the_kernel_does_not_look_at_in_a_number_hides_no_call() {
    // 64-bit entry dispatches by the low half of the register.
    let high = |nr: i64, bits: i64| nr | bits << 32;
    rows_select("numbers", |setup| {
        let dir = setup.path("made");
        let dir = dir.to_str().expect("a test's path is UTF-8").to_owned();
        let at = i64::from(libc::AT_FDCWD);
        let mkdir = |bits| {
            let nr = high(libc::SYS_mkdirat, bits);
            Call::new(nr, vec![at.into(), dir.as_str().into(), 0o700.into()])
        };
        let rmdir = vec![at.into(), dir.as_str().into(), libc::AT_REMOVEDIR.into()];
        let rmdir = Call::new(high(libc::SYS_unlinkat, 1), rmdir);
        let getppid = Call::new(high(libc::SYS_getppid, -1), Vec::new());
        let execve = high(libc::SYS_execve, 0x4000_0000);
        let execve = Call::new(execve, vec!["/bin/true".into(), 0.into(), 0.into()]);
        let calls = "-a always,exit -F arch=b64 -S getppid,mkdirat,execve -F gid=61238 -k mine";
        let path = format!("-a always,exit -F arch=b64 -S all -F path={dir} -F gid=61238 -k path");
        vec![
            row(
                calls,
                vec![
                    make(
                        Caller::gid(61238),
                        &[mkdir(1), getppid, mkdir(0x7fff_ffff)],
                        &["mkdirat mine", "getppid mine", "mkdirat mine"],
                    ),
                    make(Caller::gid(61238), &[execve], &["execve mine"]),
                ],
            ),
            row(
                path,
                vec![make(Caller::gid(61238), &[rmdir], &["unlinkat path"])],
            ),
        ]
    });
}

#[test]
fn rules_on_uids_select_their_callers() {
    rows_select("uids", |_| {
        vec![
            on_callers(
                "-F uid=61101",
                vec![(Caller::uid(61101), YES), (Caller::uid(61102), NO)],
            ),
            on_callers(
                "-F uid!=61101",
                vec![(Caller::uid(61101), NO), (Caller::uid(61102), YES)],
            ),
            on_callers(
                "-F uid>=61102 -F uid<61103",
                vec![
                    (Caller::uid(61101), NO),
                    (Caller::uid(61102), YES),
                    (Caller::uid(61103), NO),
                ],
            ),
            on_callers(
                "-F uid>61102 -F uid<=61103",
                vec![(Caller::uid(61102), NO), (Caller::uid(61103), YES)],
            ),
            on_callers(
                "-F euid=61103",
                vec![
                    (ids(61101, 61103, 61101), YES),
                    (ids(61103, 61101, 61103), NO),
                ],
            ),
            on_callers(
                "-F suid=61103",
                vec![
                    (ids(61101, 61101, 61103), YES),
                    (ids(61103, 61103, 61101), NO),
                ],
            ),
            on_callers(
                "-F fsuid=61103",
                vec![
                    (ids(61101, 61103, 61101), YES),
                    (ids(61103, 61101, 61103), NO),
                ],
            ),
            on_callers(
                "-C uid!=euid -F uid>61100",
                vec![(ids(61101, 61102, 61102), YES), (Caller::uid(61102), NO)],
            ),
            on_callers(
                "-C uid=suid -F uid=61101",
                vec![
                    (ids(61101, 61102, 61101), YES),
                    (ids(61101, 61101, 61102), NO),
                ],
            ),
        ]
    });
}

#[test]
fn gid_and_egid_are_also_looked_for_among_the_supplementary_groups() {
    rows_select("gids", |_| {
        vec![
            on_callers(
                "-F gid=61201",
                vec![
                    (Caller::gid(61201), YES),
                    (member(61202, &[61200, 61201]), YES),
                    (member(61202, &[61200]), NO),
                ],
            ),
            on_callers(
                "-F gid!=61201 -F gid>61200",
                vec![
                    (Caller::gid(61202), YES),
                    (member(61202, &[61201]), NO),
                    (Caller::gid(61201), NO),
                ],
            ),
            on_callers(
                "-F egid=61201",
                vec![(member(61202, &[61201]), YES), (Caller::gid(61202), NO)],
            ),
            on_callers(
                "-F sgid=61201",
                vec![(member(61202, &[61201]), NO), (Caller::gid(61201), YES)],
            ),
            on_callers(
                "-F fsgid=61201",
                vec![(member(61202, &[61201]), NO), (Caller::gid(61201), YES)],
            ),
            on_callers(
                "-C gid!=egid -F gid>61200",
                vec![
                    (
                        Caller {
                            gids: Some([61201, 61202, 61202]),
                            ..Caller::default()
                        },
                        YES,
                    ),
                    (Caller::gid(61201), NO),
                ],
            ),
        ]
    });
}

#[test]
fn auid_is_the_login_uid_and_unset_is_the_largest_number() {
    rows_select("auid", |_| {
        let logged_in = |uid| Caller {
            auid: Some(61301),
            ..Caller::uid(uid)
        };
        vec![
            on_callers(
                "-F auid=61301",
                vec![
                    (logged_in(61101), YES),
                    (Caller::auid(61302), NO),
                    (Caller::uid(61101), NO),
                ],
            ),
            on_callers(
                "-F auid>=1000 -F uid=61101",
                vec![(logged_in(61101), YES), (Caller::uid(61101), YES)],
            ),
            on_callers(
                "-F auid>=1000 -F auid!=unset -F uid=61101",
                vec![(logged_in(61101), YES), (Caller::uid(61101), NO)],
            ),
            on_callers(
                "-F auid=unset -F uid=61101",
                vec![(logged_in(61101), NO), (Caller::uid(61101), YES)],
            ),
            on_callers(
                "-C auid!=uid -F auid!=unset -F auid>61300",
                vec![(logged_in(61101), YES), (logged_in(61301), NO)],
            ),
        ]
    });
}

#[test]
fn exit_and_success_are_those_of_the_call_and_exit_is_compared_as_u32() {
    rows_select("exit and success", |_| {
        let calls = [
            call!(openat, libc::AT_FDCWD, "/no/such/file", 0),
            call!(openat, libc::AT_FDCWD, "/", 0),
        ];
        let on = |conditions: &str, logged: &[&'static str]| {
            row(
                format!("-a always,exit -F arch=b64 -S openat -F uid=0 {conditions} -k k"),
                vec![make(Caller::default(), &calls, logged)],
            )
        };
        let (one, both) = (&["openat k"], &["openat k", "openat k"]);
        vec![
            on("", both),
            on("-F exit=-ENOENT", one),
            on("-F exit=-EACCES", NO),
            on("-F exit!=-2 -F exit!=-1", one),
            on("-F exit>=0", both),
            on("-F exit<0", NO),
            on("-F exit>-3 -F exit<-1", one),
            on("-F success=0", one),
            on("-F success=1", one),
            on("-F success!=1 -F exit=-ENOENT", one),
            on("-F success=1 -F exit=-ENOENT", NO),
        ]
    });
}

#[test]
fn arguments_are_compared_by_their_low_32_bits_with_all_operators() {
    rows_select("arguments", |_| {
        let on = |conditions: &str, makes: &[(i64, i64, bool)]| {
            let makes = makes.iter().map(|&(a0, a1, selected)| {
                let logged = if selected { YES } else { NO };
                make(Caller::default(), &[call!(getppid, a0, a1)], logged)
            });
            row(rule(conditions), makes.collect())
        };
        vec![
            on(
                "-F a0=5",
                &[(5, 9, true), (6, 9, false), (0x1_0000_0005, 9, true)],
            ),
            on("-F a0!=5 -F a1=9", &[(5, 9, false), (6, 9, true)]),
            on(
                "-F a1>=0x10 -F a1<0x20",
                &[(5, 0x10, true), (5, 0x20, false), (5, 0xf, false)],
            ),
            on("-F a0&0x18 -F a1=3", &[(0x10, 3, true), (7, 3, false)]),
            on("-F a0&=0x18 -F a1=3", &[(0x10, 3, false), (0x1f, 3, true)]),
            on(
                "-F a0=-1",
                &[(-1, 3, true), (0xffff_ffff, 3, true), (1, 3, false)],
            ),
        ]
    });
}

#[test]
fn exe_and_ppid_name_the_program_and_the_parent() {
    rows_select("exe and ppid", |_| {
        let exe = std::env::current_exe().expect("this program");
        let exe = exe.display();
        let this = std::process::id();
        let caller = || Caller::uid(61101);
        vec![
            on_callers(&format!("-F exe={exe}"), vec![(caller(), YES)]),
            on_callers("-F exe=/bin/true", vec![(caller(), NO)]),
            on_callers("-F exe!=/bin/true -F uid=61101", vec![(caller(), YES)]),
            on_callers(&format!("-F ppid={this}"), vec![(caller(), YES)]),
            on_callers("-F ppid=1 -F uid=61101", vec![(caller(), NO)]),
        ]
    });
}

#[test]
fn the_first_rule_that_matches_decides_never_included() {
    rows_select("order", |_| {
        let always = rule("-F uid>61100");
        let never = "-a never,exit -F arch=b64 -S getppid -F uid=61101";
        let never_all = "-a never,exit -F uid=61101";
        let other = rule("-F uid=61101").replace("-k k", "-k other");
        let both = |first: &[&'static str]| {
            vec![
                make(Caller::uid(61101), &getppid(), first),
                make(Caller::uid(61102), &getppid(), YES),
            ]
        };
        vec![
            row(format!("{never}\n{always}"), both(NO)),
            row(format!("{always}\n{never}"), both(YES)),
            row(format!("{never_all}\n{always}"), both(NO)),
            row(format!("{other}\n{always}"), both(&["getppid other"])),
            row(format!("{always}\n{other}"), both(YES)),
            row(
                format!("{always}\n{}", other.replace("-a always", "-A always")),
                both(&["getppid other"]),
            ),
        ]
    });
}

#[test]
fn the_32_bit_entry_is_told_apart_by_how_it_was_entered_and_x32_is_never_logged() {
    if !cfg!(target_arch = "x86_64") {
        println!("skipped: entries: x86-64 only");
        return;
    }
    rows_select("entries", |_| {
        const GETPPID_I386: i64 = 64;
        const X32: i64 = 0x4000_0000;
        let mut calls = vec![call!(getppid), Call::new(X32 | libc::SYS_getppid, vec![])];
        let with_compat = int80_is_possible();
        if with_compat {
            calls.push(Call::int80(GETPPID_I386));
        } else {
            println!("skipped: entries, b32: no 32-bit entry here");
        }
        let on = |rules: &str, logged: &[&'static str]| {
            row(rules, vec![make(Caller::gid(61234), &calls, logged)])
        };
        let narrow: &[&'static str] = if with_compat { &["b32:getppid k"] } else { NO };
        let mut either = YES.to_vec();
        either.extend(narrow);
        vec![
            on(
                "-a always,exit -F arch=b64 -S getppid -F gid=61234 -k k",
                YES,
            ),
            on(
                "-a always,exit -F arch=b32 -S getppid -F gid=61234 -k k",
                narrow,
            ),
            on(
                "-a always,exit -F arch=b64 -S getppid -F gid=61234 -k k\n\
                 -a always,exit -F arch=b32 -S getppid -F gid=61234 -k k",
                &either,
            ),
            on(
                "-a always,exit -F arch=b64 -S all -F gid=61234 -k k",
                &["setresgid k", "getppid k", "exit_group k"],
            ),
        ]
    });
}

#[test]
fn a_process_that_ends_has_no_success_and_a_fork_is_one_event_of_the_caller() {
    rows_select("exit_group", |_| {
        let ends = |conditions: &str, logged: &[&'static str]| {
            row(
                format!("-a always,exit -F arch=b64 -S exit_group -F gid=61234 {conditions} -k k"),
                vec![make(Caller::gid(61234), &[], logged)],
            )
        };
        vec![
            ends("", &["exit_group k"]),
            ends("-F success=1", NO),
            ends("-F success=0", NO),
        ]
    });
    machine::test("fork", |setup| {
        let rules = "-a always,exit -F arch=b64 -S clone,fork,vfork -F gid=61234 -k k\n";
        let daemon = setup.tarsier(rules).format("raw").start();
        let caller = Caller {
            in_child: true,
            ..Caller::gid(61234)
        };
        let made = caller.make(&getppid());
        let events = log::events(&daemon.stop().log);
        assert_eq!(log::calls_of(&events, made.parent), ["fork k"]);
        assert_eq!(log::calls_of(&events, made.pid), NO);
    });
}

#[test]
fn a_task_made_under_a_never_task_rule_is_not_audited() {
    rows_select("task,never", |_| {
        let in_child = |uid| Caller {
            in_child: true,
            ..Caller::uid(uid)
        };
        vec![row(
            format!("-a task,never -F uid=61101\n{}", rule("-F uid>61100")),
            vec![
                make(in_child(61101), &getppid(), NO),
                make(in_child(61102), &getppid(), YES),
                // It became 61101 after it was created.
                make(Caller::uid(61101), &getppid(), YES),
            ],
        )]
    });
}

#[test]
fn exclude_rules_drop_records_by_type_and_by_who_made_them() {
    machine::test("exclude", |setup| {
        let always = rule("-F uid>61100 -F uid<61110");
        let exclude = |rules: &str| format!("{rules}\n{always}\n");
        let all = exclude("-a always,exclude -F msgtype=PROCTITLE\n-a never,exclude -F uid=61102");
        let daemon = setup.tarsier(&all).format("raw").start();
        let kept = Caller::uid(61101).make(&getppid());
        let dropped = Caller::uid(61102).make(&getppid());
        setup.write(
            "test.rules",
            &exclude("-a always,exclude -F msgtype=SYSCALL"),
        );
        daemon.reload();
        let without = Caller::uid(61103).make(&getppid());
        let events = log::events(&daemon.stop().log);
        let of = |pid| log::events_of(&events, pid).map(log::Event::kinds);
        assert_eq!(of(kept.pid).collect::<Vec<_>>(), [["SYSCALL"]]);
        assert_eq!(of(dropped.pid).count(), 0);
        assert_eq!(of(without.pid).count(), 0);
        // As in the kernel, an excluded SYSCALL record ends its event.
        let rest = events.iter().filter(|event| event.kinds() == ["PROCTITLE"]);
        assert_eq!(rest.count(), 0);
    });
}
