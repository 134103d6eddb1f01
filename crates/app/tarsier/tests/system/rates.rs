//! Budgets of rules, and auditctl's -r: what is not recorded is counted.

use crate::calls::{call, Call, Caller};
use crate::daemon::Setup;
use crate::{log, machine, programs};
use std::process::Command;

const GROUP: u32 = 61262;
const CALLS: u64 = 2_000;

fn make_calls() {
    let mut workload = Command::new(programs::workload());
    workload.args(["--count", &CALLS.to_string(), "--mark", &GROUP.to_string()]);
    programs::output_of(workload.arg("getppid"));
}

fn recorded(setup: &Setup) -> u64 {
    log::count_calls(&setup.path("audit.log"), libc::SYS_getppid, "many")
}

/// The sum of the numbers after ` NAME=` in the records with this text.
fn sum(text: &str, op: &str, name: &str) -> u64 {
    let records = text.lines().filter(|line| line.contains(op));
    let number = |line: &str| -> Option<u64> {
        let (_, rest) = line.split_once(&format!(" {name}="))?;
        rest.split(' ').next()?.parse().ok()
    };
    records.filter_map(number).sum()
}

#[test]
fn events_over_a_budget_are_in_the_log_as_a_number() {
    machine::test("budgets", |setup| {
        let place = setup.path("place");
        std::fs::create_dir(&place).expect("a directory");
        let rules = format!(
            "-a always,exit -F arch=b64 -S getppid -F gid={GROUP} -k many\n\
             -a always,exit -F arch=b64 -S chdir -F gid={GROUP} -F path={} -k name\n",
            place.display()
        );
        let run = setup.tarsier(&rules).format("raw");
        setup.configure("rate_budgets = many:50,name:3\nflush = NONE\n");
        let daemon = run.start();
        make_calls();
        daemon.wait_for_record(" op=events-suppressed ");
        let names: Vec<Call> = (0..20).map(|_| call!(chdir, &*place)).collect();
        Caller::gid(GROUP).make(&names);
        let mut ctl = Command::new(programs::tarsier());
        ctl.args(["ctl", "--run-dir"]).arg(setup.path("run"));
        ctl.args("-a always,exit -F arch=b64 -S getpgrp -F gid=61263".split(' '));
        // All is said before the rules have other places.
        programs::output_of(&mut ctl);
        let status = daemon.status();
        daemon.stop();
        let text = setup.read("audit.log");
        let of_rule = |text: &str, rule: &str| -> u64 {
            let rules = text
                .lines()
                .filter(|line| line.contains(" op=events-suppressed "));
            let rules = rules.filter_map(|line| line.split_once(" rule=")?.1.split(' ').next());
            let counts = rules.flat_map(|rules| rules.split(','));
            let counts = counts.filter_map(|count| count.split_once(':'));
            let counts = counts.filter(|(place, _)| *place == rule);
            counts
                .filter_map(|(_, count)| count.parse::<u64>().ok())
                .sum()
        };
        let many = recorded(setup);
        assert!(many >= 50, "{text}");
        assert_eq!(many + of_rule(&text, "1"), CALLS, "{text}");
        let key = |line: &&str| line.starts_with("type=SYSCALL ") && line.contains("key=\"name\"");
        let named = text.lines().filter(key).count() as u64;
        assert!(named >= 3, "{text}");
        assert_eq!(named + of_rule(&text, "2"), 20, "{text}");
        let said = sum(&text, " op=events-suppressed ", "suppressed");
        assert_eq!(said, of_rule(&text, "1") + of_rule(&text, "2"), "{text}");
        let shown = &status["suppressed_by_rule"];
        assert_eq!(shown["1 many"].as_u64(), Some(CALLS - many), "{status}");
        assert_eq!(shown["2 name"].as_u64(), Some(20 - named), "{status}");
    });
}

#[test]
fn records_over_the_rate_limit_are_lost_and_counted() {
    machine::test("rate limit", |setup| {
        let rule =
            format!("-r 100\n-a always,exit -F arch=b64 -S getppid -F gid={GROUP} -k many\n");
        let daemon = setup.tarsier(&rule).format("raw").start();
        make_calls();
        daemon.wait_for_record(" op=events-lost ");
        let ctl = |words: &str| {
            let mut ctl = Command::new(programs::tarsier());
            ctl.args(["ctl", "--run-dir"]).arg(setup.path("run"));
            programs::output_of(ctl.args(words.split(' '))).0
        };
        assert!(ctl("-s").contains("\nrate_limit 100\n"));
        let status = daemon.status();
        let lost = status["lost"]["rate_limit"].as_u64().expect("a count");
        // SYSCALL and PROCTITLE of fifty events in each second.
        let before = CALLS - lost;
        assert!((50..=250).contains(&before), "{status}");
        ctl("-r 0");
        make_calls();
        daemon.stop();
        assert_eq!(recorded(setup), before + CALLS);
    });
}
