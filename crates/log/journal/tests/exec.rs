//! Programs that the journal starts.
//!
//! In a test program of its own: until it execs, a child has the files of all tests in the process
//! open, and their locks.

mod common;

use std::os::unix::fs::PermissionsExt;

use common::{event, open, quiet, says};
use conf::{Config, SizeAction};

#[test]
fn exec_suspends_and_runs_the_program() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("audit.log");
    let program = dir.path().join("act");
    let fifo = dir.path().join("done");
    let perm = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, perm, 0).unwrap();
    let script = format!("#!/bin/sh\necho \"$#\" > {}\n", fifo.display());
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    let config = Config {
        max_log_file_mib: 1,
        max_log_file_action: SizeAction::Exec(program),
        ..quiet()
    };
    let mut journal = open(&log, &config);
    journal.append(&event(1, 1 << 20), 1);
    journal.commit().unwrap();
    assert!(journal.is_suspended());
    // Waits for the program.
    assert_eq!(std::fs::read_to_string(&fifo).unwrap(), "0\n");
    assert!(says(&journal.take_actions(), "act started"));
}
