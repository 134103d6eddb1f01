//! `index_rotated`: the daemon, confined, makes the index of a rotated file.

use crate::calls::{call, Call, Caller};
use crate::{machine, programs};
use std::process::Command;
use std::time::{Duration, Instant};

const RULE: &str = "-a always,exit -F arch=b64 -S getppid -F gid=61248 -k mine\n";
/// Longest that the index may take: its thread waits for a processor that nobody else wants.
const PATIENCE: Duration = Duration::from_secs(300);

#[test]
fn a_rotated_file_gets_an_index_that_is_right() {
    machine::test("index of a rotated file", |setup| {
        let run = setup.tarsier(RULE).format("raw");
        setup.configure(
            "flush = NONE\nmax_log_file = 1\nmax_log_file_action = ROTATE\nnum_logs = 9\nindex_rotated = yes\n",
        );
        let daemon = run.start();
        let calls: Vec<Call> = (0..32).map(|_| call!(getppid)).collect();
        let rotated = setup.path("audit.log.1");
        let (begin, caller) = (Instant::now(), Caller::gid(61248));
        while !rotated.exists() {
            caller.make(&calls);
            assert!(begin.elapsed() < PATIENCE, "the log is not rotated");
        }
        let index = setup.path("audit.log.1.idx");
        while !index.exists() {
            assert!(begin.elapsed() < PATIENCE, "no {}", index.display());
            std::thread::sleep(Duration::from_millis(20));
        }
        let mut verify = Command::new(programs::tarsier());
        let output = verify.args(["verify", "--index"]).arg(&rotated).output();
        let output = output.expect("tarsier runs");
        assert!(output.status.success(), "{output:?}");
        daemon.stop();
    });
}
