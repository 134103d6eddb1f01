//! OBJ_PID: the process that a signal was for.

use crate::calls::{call, Arg, Call, Caller};
use crate::{log, machine};
use abi::exit::ESRCH;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

const GID: u32 = 61312;

fn rule() -> String {
    format!(
        "-a always,exit -F arch=b64 -S kill,tkill,tgkill,rt_sigqueueinfo,rt_tgsigqueueinfo,\
         pidfd_send_signal,ptrace -F gid={GID} -k k\n"
    )
}

/// A process that waits until it is ended.
struct Victim(Child);

impl Victim {
    /// The name of the process is `sleep` when this returns: the kernel lets the parent of a vfork go on just before it sets the name.
    fn start() -> Victim {
        let child = Command::new("/bin/sleep").arg("600").spawn();
        let victim = Victim(child.expect("sleep"));
        let comm = format!("/proc/{}/comm", victim.0.id());
        let end = Instant::now() + Duration::from_secs(60);
        while std::fs::read_to_string(&comm).expect("it runs") != "sleep\n" {
            assert!(Instant::now() < end, "no program was executed");
            std::thread::yield_now();
        }
        victim
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Calls that name process `pid`, and one after another that name none.
fn calls(pid: u32) -> Vec<Call> {
    // siginfo_t: signal, errno, and SI_QUEUE.
    let info: Vec<u8> = [0, 0, -1].map(i32::to_ne_bytes).concat();
    let info = || [info.clone(), vec![0; 116]].concat();
    let path = format!("/proc/{pid}");
    vec![
        call!(pidfd_open, pid, 0),
        call!(openat, libc::AT_FDCWD, path.as_str(), libc::O_RDONLY, 0),
        call!(kill, pid, 0),
        call!(tkill, pid, 0),
        call!(tgkill, pid, pid, 0),
        call!(rt_sigqueueinfo, pid, 0, info()),
        call!(rt_tgsigqueueinfo, pid, pid, 0, info()),
        call!(pidfd_send_signal, Arg::Result(0), 0, 0, 0),
        call!(pidfd_send_signal, Arg::Result(1), 0, 0, 0),
        call!(ptrace, libc::PTRACE_SEIZE, pid, 0, 0),
        call!(kill, 1 << 22, 0),
        call!(tgkill, 1, pid, 0),
        call!(pidfd_send_signal, 99, 0, 0, 0),
        call!(kill, pid, 99),
    ]
}

#[test]
fn the_target_of_a_signal_is_recorded_whichever_call_sends_it() {
    machine::test("targets", |setup| {
        let daemon = setup.tarsier(&rule()).format("raw").start();
        let victim = Victim::start();
        let pid = victim.0.id();
        let made = Caller::gid(GID).make(&calls(pid));
        assert!(
            made.results[..10].iter().all(|ret| *ret >= 0),
            "{:?}",
            made.results
        );
        assert_eq!(made.results[11], ESRCH);
        let events = log::events(&daemon.stop().log);
        let targets: Vec<_> = log::events_of(&events, made.pid)
            .map(|event| {
                let target = event.record("OBJ_PID")?;
                assert_eq!(target.field("ocomm"), Some("sleep"));
                target.number("opid")
            })
            .collect();
        let pid = Some(i64::from(pid));
        assert_eq!(targets, [[pid; 8].as_slice(), &[None; 4]].concat());
    });
}

#[test]
fn a_number_is_looked_up_in_the_pid_namespace_of_the_caller() {
    machine::test("targets in a namespace", |setup| {
        let daemon = setup.tarsier(&rule()).format("raw").start();
        let status = Command::new("/usr/bin/unshare")
            .args([
                "--pid",
                "--fork",
                "/bin/sh",
                "-c",
                "test $$ = 1 && kill -0 1",
            ])
            .gid(GID)
            .status()
            .expect("util-linux");
        assert!(status.success());
        let events = log::events(&daemon.stop().log);
        let to_one = events.iter().find(|event| {
            let call = event.record("SYSCALL");
            call.is_some_and(|call| call.field("a0") == Some("1"))
        });
        let event = to_one.expect("the signal");
        let opid = event
            .record("OBJ_PID")
            .and_then(|target| target.number("opid"));
        assert!(opid.is_some_and(|pid| pid > 1));
        assert_eq!(
            opid,
            event.record("SYSCALL").and_then(|call| call.number("pid"))
        );
    });
}
