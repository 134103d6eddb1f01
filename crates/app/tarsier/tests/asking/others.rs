//! Files of other kinds: an error that names the file, or the events in it. Never a report of nothing with status 0.
//!
//! `TARSIER_FILES=N` takes so many files; by default there are few.

use crate::made::{output, report, search};
use std::fs;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

const LINE: &str = "type=USER_LOGIN msg=audit(1700000001.100:7): pid=5 uid=0 auid=1000 ses=4 msg='op=x acct=\"a\" \
                    exe=\"/usr/sbin/sshd\" hostname=? addr=192.0.2.9 terminal=ssh res=success'\n";

/// Pseudo-random bytes of a seed.
fn noise(seed: u64, count: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut byte = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 24) as u8
    };
    (0..count).map(|_| byte()).collect()
}

/// A file of some kind, and whether it has an event.
fn file(number: u64, dir: &Path) -> (Vec<u8>, bool) {
    let size = 1 + (number as usize * 37) % 5000;
    let noise = |count| noise(number, count);
    let magic = |magic: &[u8]| [magic, &noise(size)].concat();
    let packed = |program: &str, text: &[u8]| {
        let plain = dir.join("packed");
        fs::write(&plain, text).expect("written");
        let output = Command::new(program).arg("-c").arg(&plain).output();
        output.map_or_else(|_| magic(b"\x1f\x8b\x08"), |output| output.stdout)
    };
    let text = LINE.repeat(1 + number as usize % 40);
    match number % 16 {
        0 => (magic(b"\x7fELF\x02\x01\x01\0"), false),
        1 => (magic(b"\x89PNG\r\n\x1a\n"), false),
        2 => (noise(size), false),
        3 => (
            format!("{{\"a\":[{number}],\"b\":{{\"type\":\"x\"}}}}\n").into_bytes(),
            false,
        ),
        4 => (format!("[{{\"time\":{number}}}]\n").into_bytes(), false),
        5 => (magic(b"PK\x03\x04"), false),
        6 => (magic(b"\x1f\x8b\x08"), false),
        7 => (magic(b"\x28\xb5\x2f\xfd"), false),
        8 => (magic(b"\xfd7zXZ\0"), false),
        9 => (magic(b"BZh9"), false),
        10 => (
            b"Nov 14 22:13:20 web1 kernel: eth0: link up\n".repeat(size % 50 + 1),
            false,
        ),
        11 => {
            // An archive without its end, of a text with events or none.
            let mut whole = packed("gzip", text.as_bytes());
            whole.truncate(whole.len() * 3 / 4);
            (whole, false)
        }
        12 => (packed("gzip", &noise(size)), false),
        13 => (packed("zstd", b"no records here\n"), false),
        14 => ([&noise(size), &b"\n"[..], LINE.as_bytes()].concat(), true),
        _ => (packed("gzip", text.as_bytes()), true),
    }
}

#[test]
fn a_file_of_another_kind_is_an_error_that_names_it_or_its_events_are_found() {
    let count = std::env::var("TARSIER_FILES")
        .ok()
        .and_then(|count| count.parse().ok());
    for number in 0..count.unwrap_or(32) {
        let dir = TempDir::new().expect("a directory");
        let (bytes, has_event) = file(number, dir.path());
        let path = dir.path().join("some.file");
        fs::write(&path, bytes).expect("written");
        let input = path.to_str().expect("text");
        let commands: [&mut Command; 5] = [
            &mut search(&["-if", input, "-r"]),
            &mut search(&["-if", input, "-k", "none", "--format", "csv"]),
            &mut report(&["-if", input]),
            &mut report(&["-if", input, "--overview"]),
            &mut report(&["-if", input, "--html", "-"]),
        ];
        for (place, command) in commands.into_iter().enumerate() {
            let output = output(command);
            let error = String::from_utf8_lossy(&output.stderr);
            let is_found = place == 0 && output.stdout.starts_with(b"type=USER_LOGIN");
            let kind = number % 16;
            match (has_event, place) {
                (true, 1) => assert_eq!(output.status.code(), Some(1), "{number}, {kind}"),
                (true, _) => assert!(
                    output.status.success(),
                    "{number}, {kind}, {place}: {error}"
                ),
                (false, _) => {
                    let code = output.status.code();
                    assert_eq!(code, Some(1), "{number}, {kind}, {place}: {error}");
                    assert!(
                        error.contains("some.file"),
                        "{number}, {kind}, {place}: {error}"
                    );
                }
            }
            assert!(
                place != 0 || !has_event || is_found,
                "{number}, {kind}: {error}"
            );
        }
    }
}
