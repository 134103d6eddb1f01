//! `--follow`.

use crate::made::{call, search, task, write};
use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader, Write as _};
use std::process::Stdio;
use std::sync::mpsc;
use std::time::Duration;
use tempfile::TempDir;

#[test]
fn follow_goes_on_over_a_rotation() {
    let dir = TempDir::new().expect("a directory");
    let log = write(
        &dir,
        "audit.log",
        &call(0, 1, 59, 0, &task(500, 1, "before"), &[]),
    );
    let mut child = search(&[
        "-if",
        log.to_str().expect("text"),
        "--follow",
        "-r",
        "-k",
        "watched",
        "--eoe-timeout",
        "1",
    ])
    .stdout(Stdio::piped())
    .spawn()
    .expect("it starts");
    let out = BufReader::new(child.stdout.take().expect("its output"));
    let (send, receive) = mpsc::channel();
    let reader = std::thread::spawn(move || {
        out.lines()
            .map_while(Result::ok)
            .for_each(|line| drop(send.send(line)));
    });
    let add = |text: &str| {
        let mut file = OpenOptions::new()
            .append(true)
            .create(true)
            .open(&log)
            .expect("the log");
        file.write_all(text.as_bytes()).expect("written");
    };
    let wait = |what: &str| {
        let line = receive
            .recv_timeout(Duration::from_secs(60))
            .unwrap_or_else(|_| panic!("no line of {what} in 60 s"));
        assert!(line.contains(what), "{line}");
    };
    // Nothing says when it has begun: events are added until one comes.
    let mut first = None;
    for serial in 10..600 {
        add(&call(serial, serial, 59, 0, &task(500, 1, "first"), &[]));
        first = receive.recv_timeout(Duration::from_millis(100)).ok();
        if first.is_some() {
            break;
        }
    }
    assert!(
        first.expect("an event within 60 s").contains("first"),
        "not from the end of the log"
    );
    add(&call(1000, 1000, 59, 0, &task(500, 1, "last"), &[]));
    fs::rename(&log, dir.path().join("audit.log.1")).expect("rotated");
    add(&call(1001, 1001, 59, 0, &task(500, 1, "rotated"), &[]));
    let mut line = String::new();
    while !line.contains("last") {
        line = receive
            .recv_timeout(Duration::from_secs(60))
            .expect("a line within 60 s");
    }
    wait("rotated");
    child.kill().expect("killed");
    child.wait().expect("its end");
    reader.join().expect("the reader");
}
