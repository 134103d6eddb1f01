//! The daemon has a higher priority while it is late, and only then.

use crate::{machine, programs};
use rustix::process::{getpriority_process, Pid};
use std::process::Command;
use std::time::{Duration, Instant};

const GROUP: u32 = 61244;
const RULE: &str = "-a always,exit -F arch=b64 -S getppid -F gid=61244 -k mine\n";

#[test]
fn a_late_daemon_has_a_better_nice_value_until_it_has_caught_up() {
    machine::test("nice value", |setup| {
        let own = getpriority_process(None).expect("own nice value");
        let run = setup.tarsier(RULE).format("raw").ring_kib(128);
        setup.configure("max_log_file_action = IGNORE\npriority_boost = 2\n");
        let daemon = run.start();
        let id = Pid::from_raw(daemon.pid() as i32);
        let nice = || getpriority_process(id).expect("it lives");
        let wait_until = |what: &str, holds: &dyn Fn(i32) -> bool| {
            let end = Instant::now() + Duration::from_secs(60);
            while !holds(nice()) {
                assert!(Instant::now() < end, "{what}: {}", nice());
                std::thread::sleep(Duration::from_micros(200));
            }
        };
        wait_until("boosted", &|nice| nice == own - 2);
        // Far more events than these rings can hold, as fast as possible.
        let mut calls = Command::new(programs::workload())
            .args(["--count", "1000000", "--threads", "4", "--mark"])
            .args([&GROUP.to_string(), "getppid"])
            .spawn()
            .expect("the workload starts");
        wait_until("late", &|nice| nice <= own - 8);
        calls.kill().expect("it is there");
        calls.wait().expect("it ends");
        wait_until("caught up", &|nice| nice == own - 2);
        let ended = daemon.stop();
        assert!(ended.status.success(), "{}", ended.said);
    });
}
