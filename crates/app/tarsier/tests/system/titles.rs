//! Command lines in PROCTITLE: a task keeps the one it had at its first event.

use crate::{log, machine};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

const UID: u32 = 61108;
/// Makes a call for each line that it reads, then changes its own command line.
const SCRIPT: &str = r#"while(<STDIN>){mkdir"/0/0";$0="changed";syswrite STDOUT,"\n"}"#;

/// Makes the child make its call, and waits until the call is over.
fn make(child: &mut Child) {
    let input = child.stdin.as_mut().expect("a pipe");
    input.write_all(b"\n").expect("it reads");
    let output = child.stdout.as_mut().expect("a pipe");
    let mut line = String::new();
    BufReader::new(output)
        .read_line(&mut line)
        .expect("it answers");
    assert_eq!(line, "\n");
}

#[test]
fn a_task_keeps_its_first_command_line_and_no_other_task_gets_it() {
    machine::test("titles", |setup| {
        let rule = format!("-a always,exit -F arch=b64 -S mkdir -F uid={UID} -k k\n");
        let daemon = setup.tarsier(&rule).format("raw").start();
        // On one processor, so that their events follow each other.
        let start = |name: &str| {
            Command::new("/usr/bin/taskset")
                .args(["-c", "0", "/usr/bin/perl", "-e", SCRIPT, name])
                .uid(UID)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .expect("util-linux and perl")
        };
        let mut children = ["first", "other"].map(start);
        for _ in 0..3 {
            children.iter_mut().for_each(make);
        }
        make(&mut children[1]);
        let pids = children.map(|mut child| {
            drop(child.stdin.take());
            assert!(child.wait().expect("it ends").success());
            child.id()
        });
        let events = log::events(&daemon.stop().log);
        let titles = pids.map(|pid| {
            let of = log::events_of(&events, pid);
            of.map(|event| {
                event
                    .record("PROCTITLE")
                    .and_then(|it| it.field("proctitle"))
            })
            .collect::<Vec<_>>()
        });
        for ((name, titles), count) in ["first", "other"].iter().zip(&titles).zip([3, 4]) {
            let words = ["/usr/bin/perl", "-e", SCRIPT, name].join("\0");
            let hex: String = words.bytes().map(|byte| format!("{byte:02X}")).collect();
            assert_eq!(titles, &vec![Some(hex.as_str()); count]);
        }
    });
}
