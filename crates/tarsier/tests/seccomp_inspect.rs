//! `tarsier seccomp check, merge, optimise, diff, explain, disasm, asm` as a program.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn seccomp(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tarsier"))
        .arg("seccomp")
        .args(args)
        .output()
        .expect("tarsier runs")
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn data(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../seccomp/tests/data");
    path.join(name).display().to_string()
}

fn file(directory: &tempfile::TempDir, name: &str, text: &str) -> String {
    let path: PathBuf = directory.path().join(name);
    std::fs::write(&path, text).expect("a file");
    path.display().to_string()
}

#[test]
fn a_merged_chain_differs_in_nothing_and_a_changed_one_in_what_was_changed() {
    let directory = tempfile::TempDir::new().expect("a directory");
    let chain = data("systemd-hardened.hex");
    let merged = seccomp(&["merge", &chain, "--format", "asm"]);
    assert_eq!(merged.status.code(), Some(0), "{}", stderr(&merged));
    assert!(stderr(&merged).contains("34 filters, 935 instructions -> 1 of"));
    let text = stdout(&merged);
    let one = file(&directory, "one.asm", &text);
    let same = seccomp(&["diff", &chain, &one]);
    assert_eq!(same.status.code(), Some(0), "{}", stdout(&same));
    assert_eq!(stdout(&same), "proven: both decide every call alike\n");

    // openat with O_CREAT and setuid bits fails under the chain with EPERM: now with ENOENT.
    let changed = text.replace("ret #0x50001", "ret #0x50002");
    assert_ne!(changed, text);
    let other = file(&directory, "other.asm", &changed);
    let diff = seccomp(&["diff", &chain, &other]);
    assert_eq!(diff.status.code(), Some(1));
    let expected = "x86_64 openat(0x0, 0x0, 0x40, 0x400): ERRNO(1 EPERM) (filter 10) -> ERRNO(2 ENOENT), for some arguments";
    assert!(
        stdout(&diff).lines().any(|line| line == expected),
        "{}",
        stdout(&diff)
    );
}

#[test]
fn check_names_the_instruction_that_lost_each_bit() {
    // It reads the sizes of the kernel's bitmaps by a BPF program.
    let lock = std::env::temp_dir().join("tarsier-audit-test.lock");
    let lock = std::fs::File::create(lock).expect("the lock file");
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).expect("the lock");
    let check = seccomp(&["check", &data("systemd-hardened.hex")]);
    let text = stdout(&check);
    assert_eq!(check.status.code(), Some(0), "{}", stderr(&check));
    assert!(
        text.contains("  filter 10, instruction 42: depends on arg2 high: 1 calls\n    openat\n"),
        "{text}"
    );
    let kernel = seccomp(&["check", &data("systemd-hardened.hex"), "--kernel-format"]);
    let text = stdout(&kernel);
    assert!(text.starts_with("x86_64 0 ALLOW\n"), "{text}");
    assert!(text.contains("\nx86_64 257 FILTER\n") && text.contains("\nia32 0 FILTER\n"));
}

#[test]
fn explain_shows_the_way_to_the_verdict() {
    let chain = data("systemd-hardened.hex");
    let args = [
        "explain",
        &chain,
        "--syscall",
        "openat",
        "--arg",
        "2=0x40",
        "--arg",
        "3=0x800",
    ];
    let text = stdout(&seccomp(&args));
    assert!(
        text.contains("x86_64 openat(0x0, 0x0, 0x40, 0x800): ERRNO(1 EPERM)\n"),
        "{text}"
    );
    assert!(
        text.contains("filter 10 (decides): ERRNO(1 EPERM)"),
        "{text}"
    );
    assert!(
        text.contains("ret  #0x50001      ; ERRNO(1 EPERM)"),
        "{text}"
    );
}

#[test]
fn a_running_process_is_read_and_goes_on() {
    let directory = tempfile::TempDir::new().expect("a directory");
    let list = file(&directory, "list", "default allow\ndeny ptrace swapon\n");
    let mut child = Command::new(env!("CARGO_BIN_EXE_tarsier"))
        .args(["seccomp", "run", "--profile", &list, "--", "cat"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("tarsier runs");
    let mut input = child.stdin.take().expect("a pipe");
    let mut output = child.stdout.take().expect("a pipe");
    let mut byte = [0];
    use std::io::{Read, Write};
    // What cat has answered to runs under the filter.
    input.write_all(b"1").expect("written");
    output.read_exact(&mut byte).expect("read");
    let pid = filtered(child.id());
    let dump = seccomp(&["disasm", "--pid", &pid.to_string()]);
    assert_eq!(dump.status.code(), Some(0), "{}", stderr(&dump));
    assert!(stdout(&dump).contains("; ptrace"), "{}", stdout(&dump));
    input.write_all(b"2").expect("written");
    output.read_exact(&mut byte).expect("read");
    drop(input);
    assert!(child.wait().expect("waited").success());
}

/// The process that has the filter: the one started, or its child.
fn filtered(pid: u32) -> u32 {
    let children = format!("/proc/{pid}/task/{pid}/children");
    let children = std::fs::read_to_string(children).unwrap_or_default();
    let child = children.split_whitespace().next();
    child.and_then(|child| child.parse().ok()).unwrap_or(pid)
}

#[test]
fn what_cannot_be_done_is_said_with_place_and_remedy() {
    let directory = tempfile::TempDir::new().expect("a directory");
    let bad = file(&directory, "bad.asm", "ld [0]\njeq #1, nowhere\nret #0\n");
    let invalid = file(
        &directory,
        "bad.hex",
        "2000000001000000\n0600000000000000\n",
    );
    for (args, expected) in [
        (
            vec!["disasm", &bad],
            "bad.asm: line 2, column 9: 'nowhere'; expected a label",
        ),
        (
            vec!["check", &invalid],
            "bad.hex: instruction 0: ld [1] is outside",
        ),
        (
            vec!["check", "/nowhere"],
            "cannot read /nowhere: No such file",
        ),
        (
            vec!["check", "--pid", "4194303"],
            "process 4194303 does not exist",
        ),
        (
            vec![
                "explain",
                &data("systemd-hardened.hex"),
                "--syscall",
                "opnat",
            ],
            "--syscall opnat: x86_64 has no such system call",
        ),
        (
            vec![
                "explain",
                &data("systemd-hardened.hex"),
                "--syscall",
                "read",
                "--arg",
                "7=1",
            ],
            "--arg 7=1: expected N=VALUE",
        ),
    ] {
        let output = seccomp(&args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(
            stderr(&output).contains(expected),
            "{args:?}: {}",
            stderr(&output)
        );
    }
}
