//! Gives one test at a time the kernel's audit.

use crate::{kernel, text};
use std::fs::File;
use std::sync::Once;
use std::time::{Duration, Instant};

/// Takes the machine's lock for tests of audit. `None`, with a message, without root or if audit is
/// in use.
pub(crate) fn claim(test: &str) -> Option<File> {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: {test}: needs root");
        return None;
    }
    let lock = testkit::machine_lock();
    let status = text(&kernel(&["-s"]));
    let rules = text(&kernel(&["-l"]));
    if !status.starts_with("enabled 0\nfailure 1\npid 0\n") || rules != "No rules\n" {
        println!("skipped: {test}: audit is in use or not to be had: {status}{rules}");
        return None;
    }
    static ENABLED: Once = Once::new();
    ENABLED.call_once(enable_audit);
    Some(lock)
}

/// Enables audit and disables it again: where it was never enabled, Tarsier leaves a rule at its end. Waits until the
/// kernel has no record of that any more.
fn enable_audit() {
    for enabled in ["1", "0"] {
        assert!(kernel(&["-e", enabled]).status.success(), "-e {enabled}");
    }
    let deadline = Instant::now() + Duration::from_secs(60);
    while !text(&kernel(&["-s"])).contains("\nbacklog 0\n") {
        assert!(Instant::now() < deadline, "records stay in the backlog");
        std::thread::sleep(Duration::from_millis(20));
    }
}
