//! Tests that changes of the capture by another process with root's rights are undone, and in the log.

use crate::calls::{call, Caller};
use crate::{log, machine, programs};
use capture::map_ids;
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use rustix::process::Signal;
use std::process::Command;

const RULE: &str = "-a always,exit -F arch=b64 -S getppid -F gid=61248 -k mine\n";

#[test]
fn a_change_of_what_the_programs_read_is_undone_and_in_the_log() {
    machine::test("integrity", |setup| {
        let before = map_ids();
        let daemon = setup.tarsier(RULE).format("raw").start();
        let status = || {
            let mut status = Command::new(programs::tarsier());
            status.arg("status").arg("--run-dir").arg(setup.path("run"));
            status.output().expect("tarsier runs")
        };
        assert_eq!(status().status.code(), Some(0));
        let new = map_ids().into_iter().filter(|id| !before.contains(id));
        let mut maps = new.filter_map(|id| MapHandle::from_map_id(id).ok());
        let control = maps.find(|map| map.name().to_string_lossy().ends_with(".bss"));
        let control = control.expect("the daemon's control map");
        let mut value = control
            .lookup(&[0; 4], MapFlags::ANY)
            .expect("it can be read")
            .expect("a value");
        // No call is watched, and none is seen by sys_exit.
        value[..68].fill(0);
        control
            .update(&[0; 4], &value, MapFlags::ANY)
            .expect("root may write it");
        daemon.wait_for_record(" op=integrity ");
        daemon.wait_for("another process has changed control.watched of the capture");
        let made = Caller::gid(61248).make(&[call!(getppid)]);
        let said = status();
        let text = String::from_utf8_lossy(&said.stdout).into_owned();
        assert_eq!(said.status.code(), Some(2), "{text}");
        assert!(text.contains("CHANGED BY OTHERS   "), "{text}");
        let ended = daemon.stop();
        let events = log::events(&ended.log);
        assert_eq!(log::calls_of(&events, made.pid), ["getppid mine"]);
        let text = setup.read("audit.log");
        assert!(text.contains(" what=control.watched mended=yes "), "{text}");
    });
}

#[test]
fn a_daemon_that_was_stopped_says_so_and_records_what_was_called_meanwhile() {
    machine::test("stopped", |setup| {
        let daemon = setup.tarsier(RULE).format("raw").start();
        daemon.signal(Signal::STOP);
        let made = Caller::gid(61248).make(&[call!(getppid)]);
        std::thread::sleep(std::time::Duration::from_millis(1500));
        daemon.signal(Signal::CONT);
        daemon.wait_for_record(" what=stopped-for-up-to-");
        let ended = daemon.stop();
        let events = log::events(&ended.log);
        assert_eq!(log::calls_of(&events, made.pid), ["getppid mine"]);
        let text = setup.read("audit.log");
        assert!(!text.contains(" what=canary-"), "{text}");
    });
}
