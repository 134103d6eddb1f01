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
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../seccomp/seccomp/tests/data");
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
    let table = stdout(&diff);
    let row = |line: &str| {
        line.split("  ")
            .map(str::trim)
            .filter(|cell| !cell.is_empty())
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let rows: Vec<Vec<String>> = table.lines().map(row).collect();
    assert_eq!(
        rows[0],
        [
            "call",
            "systemd-hardened.hex",
            "other.asm",
            "arguments",
            "example"
        ]
    );
    let expected = [
        "x86_64 openat",
        "ERRNO(1 EPERM) (filter 10)",
        "ERRNO(2 ENOENT)",
        "some values of a2, a3",
        "x86_64 openat(0x0, 0x0, 0x40, 0x400)",
    ];
    assert!(rows.iter().any(|row| *row == expected), "{table}");
}

#[test]
fn check_names_the_instruction_that_lost_each_bit() {
    // It reads the sizes of the kernel's bitmaps with a BPF program.
    let _lock = testkit::machine_lock();
    let check = seccomp(&["check", &data("systemd-hardened.hex")]);
    let text = stdout(&check);
    assert_eq!(check.status.code(), Some(0), "{}", stderr(&check));
    assert!(
        text.contains("  filter 10, instruction 42: depends on arg2 high: 1 calls\n    openat\n"),
        "{text}"
    );
    assert!(
        text.contains("x32: no call is in a bitmap: all run every filter"),
        "{text}"
    );
    let measured = seccomp(&["check", &data("systemd-hardened.hex"), "--measure"]);
    assert!(
        stdout(&measured).starts_with("measured: from the bitmap "),
        "{measured:?}"
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
    // Once cat has answered, it runs under the filter.
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

/// The process that has the filter: the one that was started, or its child.
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

/// A process under a filter that allows what it does.
fn held(directory: &tempfile::TempDir, capabilities: bool) -> std::process::Child {
    let list = file(directory, "held", "default allow\ndeny swapon\n");
    let tarsier = env!("CARGO_BIN_EXE_tarsier");
    let words = ["seccomp", "run", "--profile", &list, "--", "cat"];
    let mut command = if capabilities {
        Command::new(tarsier)
    } else {
        without_capabilities(tarsier)
    };
    let mut child = command
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("tarsier runs");
    use std::io::{Read, Write};
    // Once cat has answered, it runs under the filter.
    let input = child.stdin.as_mut().expect("a pipe");
    input.write_all(b"1").expect("written");
    let output = child.stdout.as_mut().expect("a pipe");
    output.read_exact(&mut [0]).expect("read");
    child
}

/// Runs a program as root without any capability.
fn without_capabilities(program: &str) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--bounding-set=-all", "--inh-caps=-all", program]);
    command
}

#[test]
fn missing_privileges_are_said_with_what_they_are_missing_for() {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: missing privileges: not root, who has them");
        return;
    }
    let directory = tempfile::TempDir::new().expect("a directory");
    let with = held(&directory, true);
    let without = held(&directory, false);
    let (with_pid, without_pid) = (with.id().to_string(), without.id().to_string());
    let cases: [(&[&str], &str); 5] = [
        (
            &["check", "--pid", &with_pid],
            "PTRACE_SEIZE of thread {pid}: Operation not permitted (os error 1); run as root",
        ),
        (
            &["check", "--pid", &without_pid],
            "PTRACE_SECCOMP_GET_FILTER of thread {pid}: Permission denied (os error 13); run with CAP_SYS_ADMIN",
        ),
        (
            &["check", "--bitmap", "--pid", &with_pid],
            "needs CAP_BPF and CAP_PERFMON",
        ),
        (&["learn", "--", "true"], "needs BPF, as root has it"),
        (
            &["check", "--arch", "arm64", "--pid", &with_pid],
            "--arch arm64: this machine has no such processes",
        ),
    ];
    for (args, expected) in cases {
        let pid = args.last().unwrap_or(&"");
        let expected = expected.replace("{pid}", pid);
        let output = without_capabilities(env!("CARGO_BIN_EXE_tarsier"))
            .arg("seccomp")
            .args(args)
            .output()
            .expect("setpriv runs");
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        let said = stderr(&output);
        assert!(said.contains(&expected), "{args:?}: {said}");
        assert!(
            said.matches("os error").count() <= 1 || said.contains("libbpf"),
            "{said}"
        );
    }
    for mut child in [with, without] {
        child.kill().expect("our own child");
        child.wait().expect("our own child");
    }
}

#[test]
fn filters_of_other_machines_are_checked_against_their_tables() {
    let directory = tempfile::TempDir::new().expect("a directory");
    let list = file(
        &directory,
        "list",
        "default allow\ndeny swapon\nerrno:EPERM socket a0==16\n",
    );
    let check = |options: &[&str]| {
        let output = seccomp(&[&["check", "--profile", &list], options].concat());
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        stdout(&output)
    };
    let arm = check(&["--arch", "arm64"]);
    let wanted = [
        "aarch64: ",
        "arm: ",
        "depends on arg0 low: 1 calls\n    socket\n",
        "    swapon\n",
    ];
    for part in wanted {
        assert!(arm.contains(part), "{part}: {arm}");
    }
    assert!(!arm.contains("x32"), "{arm}");
    let table = check(&["--arch", "arm64", "--kernel-format"]);
    assert!(table.starts_with("aarch64 0 ALLOW\n"), "{table}");
    assert!(table.contains("\naarch64 198 FILTER\n") && table.contains("\narm 281 FILTER\n"));
}

#[test]
fn calls_of_x32_are_told_from_those_of_x86_64() {
    let directory = tempfile::TempDir::new().expect("a directory");
    let filter = "ld [4]\njne #0xc000003e, bad\nld [0]\njeq #0x40000208, bad\nret #0x7fff0000\nbad: ret #0x50001\n";
    let filter = file(&directory, "x32.asm", filter);
    let explain = |arch: &str| {
        stdout(&seccomp(&[
            "explain",
            &filter,
            "--syscall",
            "execve",
            "--call-arch",
            arch,
        ]))
    };
    let x32 = explain("x32");
    assert!(
        x32.contains("x86_64 (x32) execve(): ERRNO(1 EPERM)"),
        "{x32}"
    );
    let own = explain("x86_64");
    assert!(own.contains("x86_64 execve(): ALLOW"), "{own}");
    let other = explain("i386");
    assert!(other.contains("i386 execve(): ERRNO(1 EPERM)"), "{other}");
}

#[test]
fn profiles_are_compared_by_calls_and_arguments() {
    let directory = tempfile::TempDir::new().expect("a directory");
    let few = file(&directory, "few.list", "allow read\nallow socket a0==1\n");
    let many = file(
        &directory,
        "many.list",
        "allow read write\nallow socket a0==1\nallow socket a0==16\n",
    );
    let covered = seccomp(&["covers", &many, &few]);
    assert_eq!(covered.status.code(), Some(0), "{covered:?}");
    assert_eq!(
        stdout(&covered),
        "proven: many.list allows every call that few.list allows\n"
    );

    let lacking = seccomp(&["covers", &few, &many]);
    assert_eq!(lacking.status.code(), Some(1), "{lacking:?}");
    let table = stdout(&lacking);
    assert!(table.contains("x86_64 write"), "{table}");
    assert!(table.contains("a0 = 0x10"), "{table}");
    assert!(table.contains("x86_64 socket(0x10)"), "{table}");
    assert!(!table.contains("read"), "{table}");

    // A profile and a filter.
    let filter = directory
        .path()
        .join("few.hex")
        .to_str()
        .expect("text")
        .to_owned();
    let compiled = seccomp(&["compile", &few, "--format", "hex", "-o", &filter]);
    assert!(compiled.status.success(), "{compiled:?}");
    let same = seccomp(&["diff", &few, &filter]);
    assert_eq!(same.status.code(), Some(0), "{same:?}");
    let neither = file(&directory, "neither", "allow opnat\n");
    let refused = seccomp(&["diff", &few, &neither]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        stderr(&refused).contains("did you mean openat?"),
        "{refused:?}"
    );
}

#[test]
fn denied_calls_are_listed_and_whole_abis_in_one_line() {
    let directory = tempfile::TempDir::new().expect("a directory");
    let profile = file(
        &directory,
        "p.json",
        r#"{"defaultAction": "SCMP_ACT_ALLOW", "architectures": ["SCMP_ARCH_X86_64"], "syscalls": [
            {"names": ["ptrace"], "action": "SCMP_ACT_ERRNO"}]}"#,
    );
    let listed = stdout(&seccomp(&[
        "check",
        "--denied",
        "--arch",
        "x86-64",
        "--profile",
        &profile,
    ]));
    let rows: Vec<Vec<&str>> = listed
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(rows.len(), 3, "{listed}");
    assert!(rows.contains(&vec![
        "x86-64",
        "ptrace",
        "ERRNO(1",
        "EPERM)",
        "any",
        "arguments"
    ]));
    assert!(rows.contains(&vec![
        "x32",
        "(every",
        "call)",
        "KILL_THREAD",
        "any",
        "arguments"
    ]));
}

#[test]
fn explain_names_the_entry_of_a_profile_and_its_line() {
    let directory = tempfile::TempDir::new().expect("a directory");
    let text = "{\n \"defaultAction\": \"SCMP_ACT_ERRNO\",\n \"syscalls\": [\n  \
                {\"names\": [\"read\"], \"action\": \"SCMP_ACT_ALLOW\"},\n  \
                {\"names\": [\"uname\", \"mseal\"],\n   \"action\": \"SCMP_ACT_KILL\"}]}\n";
    let profile = file(&directory, "p.json", text);
    let rule = |call: &str| {
        let explained = seccomp(&["explain", "--profile", &profile, "--syscall", call]);
        assert!(explained.status.success(), "{explained:?}");
        stdout(&explained)
    };
    assert!(
        rule("uname").contains("p.json: syscalls[1] (line 5)"),
        "{}",
        rule("uname")
    );
    assert!(
        rule("write").contains("p.json: defaultAction (line 2): write is not listed"),
        "{}",
        rule("write")
    );
}

#[test]
fn lists_of_tcpdump_are_read_as_decimal() {
    let directory = tempfile::TempDir::new().expect("a directory");
    let text = "4\n32 0 0 4\n21 0 1 3221225534\n6 0 0 2147418112\n6 0 0 0\n";
    let listing = seccomp(&["disasm", &file(&directory, "filter", text)]);
    assert!(listing.status.success(), "{listing:?}");
    assert!(stdout(&listing).contains("jeq  #0xc000003e  to 2 else 3  ; x86_64"));
}
