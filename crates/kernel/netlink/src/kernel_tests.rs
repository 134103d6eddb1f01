//! Tests with the kernel's audit. They are short, hold a lock, and restore the state that they found,
//! even if they fail.

use std::fs::File;
use std::os::fd::AsFd;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{poll, PollFd, PollFlags, Timespec};

use super::*;

/// Holds the machine-wide lock for tests of audit, and cleans up when it is dropped.
struct Machine {
    _lock: File,
    before: Status,
}

impl Machine {
    /// `None`, with the reason printed, if this machine is not fit for the test.
    fn claim(test: &str) -> Option<Self> {
        let skip = |why: String| {
            println!("skipped: {test}: {why}");
            None
        };
        if !rustix::process::geteuid().is_root() {
            return skip("needs root".into());
        }
        let lock = testkit::machine_lock();
        let mut socket = match AuditSocket::open() {
            Ok(socket) => socket,
            Err(error) => return skip(error.to_string()),
        };
        let before = match socket.status() {
            Ok(status) => status,
            Err(error) => return skip(error.to_string()),
        };
        let rules = socket.list_rules().unwrap().len();
        if before.enabled != 0 || before.pid != 0 || rules != 0 {
            return skip(format!(
                "audit is in use (enabled {}, pid {}, {rules} rules)",
                before.enabled, before.pid
            ));
        }
        Some(Machine {
            _lock: lock,
            before,
        })
    }

    fn assert_as_before(&self) {
        let mut socket = AuditSocket::open().unwrap();
        let settings = |status: Status| Status {
            lost: 0,
            backlog: 0,
            backlog_wait_time_actual: 0,
            ..status
        };
        let now = socket.status().unwrap();
        assert_eq!(settings(now), settings(self.before));
        assert_eq!(socket.list_rules().unwrap(), Vec::<Vec<u8>>::new());
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let Ok(mut socket) = AuditSocket::open() else {
            return;
        };
        let _ = socket.set_enabled(0);
        for rule in socket.list_rules().unwrap_or_default() {
            let _ = socket.delete_rule(&rule);
        }
        let _ = socket.unregister();
    }
}

/// Reads records until one contains `text`.
fn wait_for(socket: &mut AuditSocket, text: &str) -> (u16, String) {
    let deadline = Instant::now() + Duration::from_secs(10);
    let mut buffer = vec![0; RECORD_BYTES_MAX];
    while Instant::now() < deadline {
        if let Some(record) = socket.receive(&mut buffer).unwrap() {
            let line = String::from_utf8_lossy(record.text).into_owned();
            if line.contains(text) {
                return (record.kind, line);
            }
            continue;
        }
        let second = Timespec {
            tv_sec: 1,
            tv_nsec: 0,
        };
        let mut fds = [PollFd::from_borrowed_fd(socket.as_fd(), PollFlags::IN)];
        poll(&mut fds, Some(&second)).unwrap();
    }
    panic!("no record with {text:?} came");
}

fn assert_owned(state_file: &Path) {
    let mut other = AuditSocket::open().unwrap();
    let status = other.status().unwrap();
    assert_eq!((status.enabled, status.pid), (1, std::process::id()));
    let rules = other.list_rules().unwrap();
    assert_eq!(rules.len(), 1);
    assert!(message::is_never_task_rule(&rules[0]));
    assert!(state_file.exists());
}

#[test]
fn messages_of_others_arrive_while_owned_and_all_is_as_before_after_release() {
    let Some(machine) = Machine::claim("take_over") else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let state_file = dir.path().join("audit-state");
    let mut ownership = take_over(&state_file, false).unwrap();
    assert_eq!(ownership.predecessor(), None);
    assert_owned(&state_file);

    let mut sender = AuditSocket::open().unwrap();
    let text = "op=tarsier-test acct=\"nobody\" res=success";
    sender.send_user_message(1112, text).unwrap();
    let (kind, line) = wait_for(ownership.socket(), "op=tarsier-test");
    assert_eq!(kind, 1112);
    assert!(line.starts_with("audit("), "{line}");
    assert!(
        line.contains(&format!("pid={} ", std::process::id())),
        "{line}"
    );
    assert!(line.ends_with(&format!("msg='{text}'")), "{line}");

    // A second owner is refused, by the state file or by the kernel, and changes nothing.
    let second = take_over(&state_file, false).unwrap_err();
    assert!(matches!(second, TakeOverError::AnotherInstance { .. }));
    let second = take_over(&dir.path().join("other-state"), false).unwrap_err();
    assert!(matches!(second, TakeOverError::AnotherDaemon { pid } if pid == std::process::id()));
    let refused = sender.register().unwrap_err();
    assert!(matches!(refused, NetlinkError::AnotherDaemon { pid } if pid == std::process::id()));
    assert!(!dir.path().join("other-state").exists());
    assert_owned(&state_file);

    // Changes made through the socket are put back too.
    let backlog_limit = machine.before.backlog_limit + 100;
    ownership.socket().set_backlog_limit(backlog_limit).unwrap();
    let late = ownership.release().unwrap();
    let texts: Vec<_> = late
        .iter()
        .map(|(_, text)| String::from_utf8_lossy(text))
        .collect();
    assert!(
        texts
            .iter()
            .any(|text| text.contains("op=set audit_enabled=0 old=1")),
        "{texts:?}"
    );
    machine.assert_as_before();
    assert!(!state_file.exists());
}

#[test]
fn dropping_an_ownership_puts_back_what_was_found() {
    let Some(machine) = Machine::claim("drop") else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let state_file = dir.path().join("audit-state");
    drop(take_over(&state_file, false).unwrap());
    machine.assert_as_before();
    assert!(!state_file.exists());
}

#[test]
fn what_a_killed_predecessor_found_is_what_is_put_back() {
    let Some(machine) = Machine::claim("predecessor") else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let state_file = dir.path().join("audit-state");
    // What kill -9 leaves: the file, the rule, audit enabled, a socket that is closed.
    let leave_behind = || {
        let mut ownership = take_over(&state_file, false).unwrap();
        let mut writer = state::Writer::this_process();
        writer.start_ticks += 1;
        state::write(&state_file, &writer, *ownership.found(), &[]).unwrap();
        ownership.socket().unregister().unwrap();
        ownership.forget();
    };
    leave_behind();
    let successor = take_over(&state_file, false).unwrap();
    assert_eq!(successor.predecessor(), Some(std::process::id()));
    assert_eq!(successor.found().enabled, 0);
    assert_owned(&state_file);
    successor.release().unwrap();
    machine.assert_as_before();

    leave_behind();
    let restored = restore_leftover(&state_file).unwrap().unwrap();
    assert_eq!((restored.enabled, restored.rules), (0, 0));
    machine.assert_as_before();
    assert_eq!(restore_leftover(&state_file).unwrap(), None);
}

#[test]
fn a_rule_of_the_administrator_stays() {
    let Some(_machine) = Machine::claim("administrator's rule") else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let state_file = dir.path().join("audit-state");
    let mut admin = AuditSocket::open().unwrap();
    admin.add_rule(&message::never_task_rule(false)).unwrap();
    let before = admin.list_rules().unwrap();
    let ownership = take_over(&state_file, false).unwrap();
    assert_eq!(ownership.found().never_task, 1);
    assert_owned(&state_file);
    ownership.release().unwrap();
    assert_eq!(admin.list_rules().unwrap(), before);
    admin.delete_rule(&before[0]).unwrap();
}

#[test]
fn what_others_change_while_our_rules_are_shown_is_a_change_afterwards() {
    let Some(machine) = Machine::claim("changes while rules are shown") else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let mut ownership = take_over(&dir.path().join("audit-state"), false).unwrap();
    let mut admin = AuditSocket::open().unwrap();
    let rule = |number: u32| {
        const EXCLUDE: u32 = 5;
        const NEVER: u32 = 0;
        const UID: u32 = 1;
        const EQUAL: u32 = 0x4000_0000;

        let mut words = vec![0; message::RULE_BYTES_MIN / 4];
        words[..3].copy_from_slice(&[EXCLUDE, NEVER, 1]);
        words[67] = UID;
        words[67 + 64] = 4_000_000 + number;
        words[67 + 128] = EQUAL;
        words
            .into_iter()
            .flat_map(u32::to_ne_bytes)
            .collect::<Vec<u8>>()
    };
    let [ours, theirs, later] = [rule(1), rule(2), rule(3)];
    admin.add_rule(&theirs).unwrap();
    ownership.show_rules(std::slice::from_ref(&ours)).unwrap();
    assert_eq!(
        ownership.list_change().unwrap().added(),
        Vec::<&Vec<u8>>::new()
    );

    // As augenrules: all are deleted, and while that is put in force, others come.
    admin.delete_rule(&ours).unwrap();
    let change = ownership.list_change().unwrap();
    assert_eq!(change.removed(), [&ours]);
    ownership.accept_list(change).unwrap();
    admin.add_rule(&later).unwrap();
    admin.add_rule(&ours).unwrap();
    ownership.show_rules(&[]).unwrap();
    let change = ownership.list_change().unwrap();
    assert_eq!(
        (change.removed(), change.added()),
        (vec![], vec![&later, &ours])
    );

    // What is deleted in the meantime is not added again: it is a removal afterwards.
    ownership.accept_list(change).unwrap();
    admin.delete_rule(&later).unwrap();
    ownership
        .show_rules(&[later.clone(), ours.clone()])
        .unwrap();
    let change = ownership.list_change().unwrap();
    assert_eq!((change.removed(), change.added()), (vec![&later], vec![]));

    ownership.accept_list(change).unwrap();
    ownership.release().unwrap();
    admin.delete_rule(&theirs).unwrap();
    machine.assert_as_before();
}

/// The rule is taken away again: on the machine of the tests audit has been enabled before.
#[test]
fn where_audit_was_never_enabled_the_rule_stays_and_nothing_else() {
    let Some(machine) = Machine::claim("first use") else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let state_file = dir.path().join("audit-state");
    let mut admin = AuditSocket::open().unwrap();
    let mut is_left_alone = || {
        let rules = admin.list_rules().unwrap();
        let is_there = rules.len() == 1 && message::is_never_task_rule(&rules[0]);
        admin.delete_rule(&message::never_task_rule(false)).unwrap();
        machine.assert_as_before();
        is_there && !state_file.exists()
    };
    take_over(&state_file, true).unwrap().release().unwrap();
    assert!(is_left_alone(), "after an end");

    // The next daemon finds the rule, and leaves it although it is not the first one.
    take_over(&state_file, true).unwrap().release().unwrap();
    take_over(&state_file, false).unwrap().release().unwrap();
    assert!(is_left_alone(), "after another end");

    // kill -9, and a successor to which audit seems enabled.
    let mut ownership = take_over(&state_file, true).unwrap();
    let mut writer = state::Writer::this_process();
    writer.start_ticks += 1;
    state::write(&state_file, &writer, *ownership.found(), &[]).unwrap();
    ownership.socket().unregister().unwrap();
    ownership.forget();
    restore_leftover(&state_file).unwrap().unwrap();
    assert!(is_left_alone(), "after a kill");

    // The engine that has the kernel match rules gives way to the rule and puts it back.
    take_over(&state_file, true).unwrap().release().unwrap();
    let owner = take_over_with_rules(&state_file, Vec::new(), false).unwrap();
    let mut other = AuditSocket::open().unwrap();
    assert_eq!(other.list_rules().unwrap(), Vec::<Vec<u8>>::new());
    owner.release().unwrap();
    assert!(is_left_alone(), "after the kernel engine");
}

#[test]
fn the_kernel_s_refusals_are_typed() {
    let Some(_machine) = Machine::claim("refusals") else {
        return;
    };
    let mut socket = AuditSocket::open().unwrap();
    let missing = socket
        .delete_rule(&message::never_task_rule(false))
        .unwrap_err();
    assert_eq!(missing.errno(), Some(rustix::io::Errno::NOENT));
    let bad = socket.add_rule(&[0; 8]).unwrap_err();
    assert_eq!(bad.errno(), Some(rustix::io::Errno::INVAL));
    socket.features().unwrap();
}
