//! Every execve is recorded, however long its arguments are.

use crate::daemon::Run;
use crate::{log, machine};
use record::text::ArgvBuilder;
use rustix::process::{setrlimit, Resource, Rlimit};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

const GID: u32 = 61310;
/// Length of an argument with its NUL; the kernel's limit is 128 KiB.
const ARGUMENT_BYTES: usize = 100_000;
/// A quarter of it is the limit of arguments and environment, but at most 6 MiB.
const STACK_BYTES: u64 = 64 << 20;

/// Numbers of arguments of the programs that run one after the other, each [`TIMES`] times.
const ALONE: [usize; 4] = [0, 1, 20, 50];
const TIMES: usize = 8;

fn rule() -> String {
    format!("-a always,exit -F arch=b64 -S execve -F gid={GID} -k mine\n")
}

/// A program that does nothing, with this number of long arguments, each of another letter.
fn start(arguments: usize) -> Child {
    let letters = (b'a'..=b'z').cycle().map(char::from);
    let arguments = letters
        .take(arguments)
        .map(|letter| letter.to_string().repeat(ARGUMENT_BYTES - 1));
    let mut command = Command::new("/bin/true");
    command.args(arguments).env_clear().gid(GID);
    // SAFETY: setrlimit(2) is async-signal-safe.
    unsafe {
        command.pre_exec(|| {
            let limit = Rlimit {
                current: Some(STACK_BYTES),
                maximum: None,
            };
            Ok(setrlimit(Resource::Stack, limit)?)
        })
    };
    command.spawn().expect("it starts")
}

/// Runs programs with lists of arguments of 100 KB, 2 MB and 5 MB, one after the other and then several at the same
/// time. Returns the daemon's count of events that are cut, the log's events, and pid and number of arguments of each.
fn run(run: Run) -> (u64, Vec<log::Event>, Vec<(u32, usize)>) {
    let daemon = run.format("raw").start();
    let mut made = Vec::new();
    let mut end = |children: Vec<(Child, usize)>| {
        for (mut child, arguments) in children {
            assert!(child.wait().expect("our child").success());
            made.push((child.id(), arguments));
        }
    };
    for arguments in ALONE {
        for _ in 0..TIMES {
            end(vec![(start(arguments), arguments)]);
        }
    }
    end([50, 20, 50, 1, 50, 50].map(|n| (start(n), n)).into());
    let ended = daemon.stop();
    assert!(ended.said.contains(" 0 lost;"), "{}", ended.said);
    let events = log::events(&ended.log);
    let cut = events.iter().filter(|event| {
        let call = event.record("SYSCALL");
        call.and_then(|call| call.field("cut")) == Some("yes")
    });
    (cut.count() as u64, events, made)
}

/// Checks the event of one execve. Returns the number of bytes of arguments that are missing.
fn missing(events: &[log::Event], pid: u32, arguments: usize) -> usize {
    let found: Vec<_> = log::events_of(events, pid).collect();
    let [event] = found[..] else {
        panic!("{} events of an execve", found.len());
    };
    let call = event.record("SYSCALL").expect("the call");
    assert_eq!(call.field("exe"), Some("/usr/bin/true"));
    assert_eq!(call.number("gid"), Some(GID.into()));
    for kind in ["CWD", "PATH", "PROCTITLE"] {
        assert!(event.record(kind).is_some(), "{kind}");
    }
    let mut builder = ArgvBuilder::new();
    for line in event.records.iter().filter(|line| line.kind == "EXECVE") {
        builder.push(line.body().as_bytes()).expect("EXECVE");
    }
    assert!(builder.is_complete());
    let record = builder.record();
    assert_eq!(record.argc(), arguments as u64 + 1);
    let letters = (b'a'..=b'z').cycle();
    let mut come = 0;
    for (argument, letter) in record.iter().skip(1).zip(letters) {
        assert!(argument.iter().all(|byte| *byte == letter));
        come += argument.len() + 1;
    }
    let all = "/bin/true".len() + 1 + arguments * ARGUMENT_BYTES;
    let come = come + record.iter().next().map_or(0, |name| name.len() + 1);
    let missing = record.cut_bytes as usize;
    assert_eq!(call.field("cut"), (missing > 0).then_some("yes"));
    // The end of what is cut has no NUL.
    assert!(
        (all..=all + 1).contains(&(come + missing)),
        "{come} {missing}"
    );
    missing
}

#[test]
fn arguments_of_any_length_are_recorded_whole() {
    machine::test("arguments", |setup| {
        // The default sizes of few processors and of 128.
        for ring_kib in [4096, 2048] {
            let (_, events, made) = run(setup.tarsier(&rule()).ring_kib(ring_kib));
            let counts: Vec<usize> = made
                .into_iter()
                .map(|(pid, arguments)| missing(&events, pid, arguments))
                .collect();
            // Where other work keeps the reader from its processor, not every one is whole.
            for (of_length, arguments) in counts.chunks(TIMES).zip(ALONE) {
                assert!(of_length.contains(&0), "{arguments} arguments: {counts:?}");
            }
            std::fs::remove_file(setup.path("audit.log")).expect("the log");
        }
    });
}

#[test]
fn arguments_larger_than_the_smallest_rings_cost_no_event_and_what_is_missing_is_said() {
    machine::test("arguments", |setup| {
        let (_, events, made) = run(setup.tarsier(&rule()).ring_kib(128));
        for (pid, arguments) in made {
            missing(&events, pid, arguments);
        }
    });
}

#[test]
fn where_calls_do_not_wait_half_of_the_room_is_left_to_others() {
    machine::test("arguments", |setup| {
        let run_it = || {
            let run = setup.tarsier(&rule()).ring_kib(128);
            setup.configure("flush = NONE\nmax_log_file_action = IGNORE\noverload = DROP\n");
            run
        };
        let (cut, events, made) = run(run_it());
        let missing = made.iter().map(|(pid, n)| missing(&events, *pid, *n));
        let counts: Vec<_> = missing.collect();
        let are_cut = counts.iter().filter(|missing| **missing > 0).count();
        assert_eq!(cut, are_cut as u64);
        // 64 KiB, the half of an empty ring, hold none of the longer lists.
        assert!(are_cut >= 3 * TIMES, "{counts:?}");
        assert_eq!(counts[..TIMES], [0; TIMES]);
    });
}
