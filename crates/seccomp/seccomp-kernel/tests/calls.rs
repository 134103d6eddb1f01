//! Tests that the calls of a program are counted, and the values of an argument that was asked for.

use rustix::process::{pidfd_open, Pid, PidfdFlags};
use seccomp_kernel::calls::{CallCounter, Scope};
use std::process::{Command, Stdio};

#[test]
fn calls_and_values_of_a_program_are_counted() {
    let Some(_lock) = testkit::may_load_programs() else {
        return;
    };
    let kill = (abi::Arch::native().audit_arch(), libc::SYS_kill as u32);
    let counter = CallCounter::start(&[(kill, 1)], Scope::default()).expect("the programs load");
    // It waits to be followed. Signals that do nothing to a shell: 0, SIGCONT, SIGURG.
    let script = "read line; kill -0 $$; kill -0 $$; kill -CONT $$; kill -URG $$";
    let mut shell = Command::new("sh");
    shell.args(["-c", script]).stdin(Stdio::piped());
    let mut child = shell.spawn().expect("a shell starts");
    let pidfd = pidfd_open(Pid::from_child(&child), PidfdFlags::empty()).expect("a pidfd");
    counter.follow(&pidfd).expect("the shell is there");
    // The end of its input lets it go on.
    drop(child.stdin.take());
    child.wait().expect("the shell ends");
    let counts = counter.counts().expect("the maps can be read");
    assert_eq!(counts.calls[&kill], 4);
    let (cont, urg) = (libc::SIGCONT as u64, libc::SIGURG as u64);
    assert_eq!(counts.values[&kill], [(0, 2), (cont, 1), (urg, 1)].into());
    assert_eq!(counts.missed, [0; 3]);
}
