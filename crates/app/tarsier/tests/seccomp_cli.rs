//! `tarsier seccomp` as a program: status, text and files. Filters need no privileges.

use std::path::PathBuf;
use std::process::{Command, Output};
use tempfile::TempDir;

fn seccomp(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tarsier"));
    command
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

struct Files(TempDir);

impl Files {
    fn new() -> Files {
        Files(TempDir::new().expect("a directory"))
    }

    fn path(&self, name: &str) -> String {
        let path: PathBuf = self.0.path().join(name);
        path.to_str().expect("paths are text").to_owned()
    }

    fn write(&self, name: &str, text: &str) -> String {
        std::fs::write(self.path(name), text).expect("the file is written");
        self.path(name)
    }
}

#[test]
fn an_answer_has_its_status_though_its_reader_ended_first() {
    let files = Files::new();
    let less = files.write("less.txt", "allow read write");
    for command in ["diff", "covers"] {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let mut tarsier = Command::new(env!("CARGO_BIN_EXE_tarsier"));
        tarsier.args(["seccomp", command, &less, "docker"]);
        let output = tarsier.stdout(writer).output().expect("tarsier runs");
        assert_eq!(output.status.code(), Some(1), "{command}");
        assert_eq!(stderr(&output), "", "{command}");
    }
}

#[test]
fn every_form_of_output_is_the_same_filter() {
    let files = Files::new();
    let compile = |format| seccomp(&["compile", "docker", "--format", format]);
    let raw = compile("raw").stdout;
    assert!(raw.len() % 8 == 0 && raw.len() / 8 > 100, "{}", raw.len());
    let filter = seccomp::Filter::from_bytes(&raw).expect("valid");
    for format in ["hex", "c", "asm"] {
        let text = compile(format).stdout;
        assert_eq!(seccomp::text::read(&text).as_ref(), Ok(&filter), "{format}");
    }
    assert_eq!(
        stdout(&compile("listing")).lines().count(),
        filter.insns().len()
    );
    let path = files.path("filter.bpf");
    let output = seccomp(&["compile", "docker", "--format", "raw", "-o", &path]);
    assert!(
        output.status.success() && output.stdout.is_empty(),
        "{output:?}"
    );
    assert_eq!(std::fs::read(&path).expect("written"), raw);
}

#[test]
fn options_change_what_the_profile_depends_on() {
    let raw = |options: &[&str]| {
        let output = seccomp(&[&["compile", "docker", "--format", "raw"], options].concat());
        assert!(output.status.success(), "{output:?}");
        output.stdout
    };
    let plain = raw(&[]);
    for options in [
        &["--caps", "sys_admin,CAP_BPF"][..],
        &["--caps", "all"],
        &["--caps", "none"],
        &["--kernel", "4.7"],
        &["--arch", "arm64"],
        &["--no-enosys"],
    ] {
        assert_ne!(raw(options), plain, "{options:?}");
    }
}

#[test]
fn weights_come_from_an_audit_log() {
    let files = Files::new();
    let record = |nr: u32| {
        format!(
            "type=SYSCALL msg=audit(1700000000.001:{nr}): arch=c000003e syscall={nr} success=yes \
             exit=0 a0=11 a1=2 a2=3 a3=0 items=0 ppid=1 pid=2 exe=\"/usr/bin/x\" key=(null)\n"
        )
    };
    let log = files.write("audit.log", &(record(135).repeat(50) + &record(41)));
    let output = seccomp(&["compile", "docker", "--profile", &log]);
    assert!(output.status.success(), "{output:?}");
    assert_ne!(stdout(&output), stdout(&seccomp(&["compile", "docker"])));
    let learnt = seccomp(&["learn", "--args", "--log", &log, "--exe", "/usr/bin/x"]);
    assert!(learnt.status.success(), "{learnt:?}");
    let profile: serde_json::Value = serde_json::from_slice(&learnt.stdout).expect("JSON");
    let personality = &profile["syscalls"][1];
    assert_eq!(personality["names"][0], "personality");
    assert_eq!(personality["args"][0]["value"], 0x11);
    let other = seccomp(&["learn", "--log", &log, "--exe", "/usr/bin/y"]);
    assert_eq!(other.status.code(), Some(2));
    assert!(
        stderr(&other).contains("no SYSCALL record of /usr/bin/y"),
        "{other:?}"
    );
}

#[test]
fn a_log_says_what_a_profile_has_not_been_used_for_since_a_time() {
    let files = Files::new();
    let record = |sec: u32, nr: u32| {
        format!(
            "type=SYSCALL msg=audit({sec}.001:{nr}): arch=c000003e syscall={nr} success=yes exit=0 \
             a0=11 a1=2 a2=3 a3=0 items=0 ppid=1 pid=2 exe=\"/usr/bin/x\" key=(null)\n"
        )
    };
    // read, then a day later write.
    let log = files.write(
        "audit.log",
        &(record(1_700_000_000, 0) + &record(1_700_086_400, 1)),
    );
    let profile = files.write(
        "p.json",
        r#"{"defaultAction": "SCMP_ACT_ERRNO",
            "syscalls": [{"names": ["read", "write", "mkdir"], "action": "SCMP_ACT_ALLOW"}]}"#,
    );
    let report = format!("--report={profile}");
    let unused = |since: &[&str]| {
        let words = [&["learn", "--log", &log, &report][..], since].concat();
        let output = seccomp(&words);
        let said = stderr(&output);
        let list = said.split_once("never used").map(|(_, list)| {
            let (_, names) = list.split_once(":\n").expect("a list");
            let names = names.split_whitespace().map(str::to_owned);
            names.collect::<Vec<_>>()
        });
        (list, said)
    };
    let (list, said) = unused(&[]);
    assert_eq!(list.expect(&said), ["mkdir"]);
    let (list, said) = unused(&["--since", "2023-11-15"]);
    assert_eq!(list.expect(&said), ["read", "mkdir"]);
    assert!(
        said.contains("never used since 11/15/23 00:00:00"),
        "{said}"
    );
    let (list, said) = unused(&["--since", "2023-11-01", "12:00"]);
    assert_eq!(list.expect(&said), ["mkdir"]);
    assert!(
        said.contains("which calls were used before is not known"),
        "{said}"
    );
    let (list, said) = unused(&["--since", "2024-11-15"]);
    assert_eq!(list, None);
    assert!(said.contains("no SYSCALL record since 11/15/24"), "{said}");
    let (_, said) = unused(&["--since", "yesterdayish"]);
    assert!(said.contains("--since: "), "{said}");
}

#[test]
fn errors_name_file_place_expectation_and_remedy() {
    let files = Files::new();
    let bad = files.write("bad.json", r#"{"defaultAction": "SCMP_ACT_DENY"}"#);
    let output = seccomp(&["compile", &bad]);
    assert_eq!(output.status.code(), Some(2));
    let said = stderr(&output);
    assert!(
        said.contains("bad.json: defaultAction: found \"SCMP_ACT_DENY\", expected"),
        "{said}"
    );
    for (text, expected) in [
        (r#"{"defaultAction": "#, "line 1, column 18: not JSON"),
        (
            r#"{"defaultAction": "SCMP_ACT_ALLOW", "architectures": ["x86-64"]}"#,
            "architectures[0]: found \"x86-64\", expected an architecture of libseccomp",
        ),
        (
            "allow read\nallow opnat\n",
            "line 2: found \"opnat\", expected a system call",
        ),
        (
            "SystemCallArchitectures=z80",
            "line 1, SystemCallArchitectures=: \"z80\" is ignored, as systemd ignores it",
        ),
        (
            "[Service]\nExecStart=/bin/true\n",
            "no directive that restricts system calls",
        ),
        (
            "\n",
            "no rule, expected JSON, a systemd unit, or lines such as",
        ),
    ] {
        let output = seccomp(&["compile", &files.write("profile", text)]);
        assert_eq!(output.status.code(), Some(2), "{text}");
        let said = stderr(&output);
        assert!(said.contains(expected), "{text}: {said}");
    }
    // Ignored, as by runc and systemd, but with a warning.
    let unknown = r#"{"defaultAction": "SCMP_ACT_ERRNO", "syscalls": [
        {"names": ["opnat"], "action": "SCMP_ACT_ALLOW"}]}"#;
    let output = seccomp(&["compile", &files.write("unknown.json", unknown)]);
    assert_eq!(output.status.code(), Some(0));
    let said = stderr(&output);
    assert!(
        said.contains("syscalls[0].names[0]: no system call \"opnat\"; it has no effect: did you mean openat?"),
        "{said}"
    );
    let names: Vec<String> = (0..300).map(|at| format!("\"opnat{at}\"")).collect();
    let many = unknown.replace("\"opnat\"", &names.join(","));
    let output = seccomp(&["compile", &files.write("many.json", &many)]);
    let said = stderr(&output);
    assert_eq!(said.lines().count(), 21, "{said}");
    assert!(said.ends_with("note: 280 more notes\n"), "{said}");
    let missing = seccomp(&["compile", &files.path("missing")]);
    assert_eq!(missing.status.code(), Some(2));
    assert!(
        stderr(&missing).contains("give a file, - or docker"),
        "{missing:?}"
    );
    for (option, value, part) in [
        ("--caps", "sys_admn", "capabilities(7)"),
        ("--arch", "z80", "x86-64"),
        ("--kernel", "six", "such as 6.1"),
    ] {
        let output = seccomp(&["compile", "docker", option, value]);
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains(part), "{output:?}");
    }
}

#[test]
fn a_program_runs_under_its_profile() {
    let files = Files::new();
    let profile = files.write("p.list", "errno:EACCES mkdir mkdirat\n");
    let target = files.path("never-made");
    let run = |log: bool, words: &[&str]| {
        let mut args = vec!["run", "--profile", &profile];
        args.extend(log.then_some("--log"));
        args.push("--");
        args.extend(words);
        seccomp(&args)
    };
    for log in [false, true] {
        let output = run(
            log,
            &[
                "sh",
                "-c",
                "mkdir $0; mkdir $0; grep -E 'NoNewPrivs|Seccomp' /proc/self/status; exit 7",
                &target,
            ],
        );
        assert_eq!(output.status.code(), Some(7), "{output:?}");
        assert!(!std::path::Path::new(&target).exists());
        let status = stdout(&output);
        assert!(
            status.contains("NoNewPrivs:\t1") && status.contains("Seccomp:\t2"),
            "{status}"
        );
        let said = stderr(&output);
        assert!(said.contains("Permission denied"), "{said}");
        assert_eq!(said.contains("mkdir["), log, "{said}");
        if log {
            assert!(said.contains("denied: ERRNO(13 EACCES)"), "{said}");
            assert!(said.contains("p.list: line 1"), "{said}");
            assert!(said.contains("take mkdir out of line 1"), "{said}");
        }
    }
    let killed = run(true, &["sh", "-c", "kill -TERM $$"]);
    assert_eq!(killed.status.code(), Some(143), "{killed:?}");
}

#[test]
fn a_call_that_kills_is_told_first() {
    let files = Files::new();
    let profile = files.write("p.list", "kill personality a0!=0xffffffff\n");
    let run = |options: &[&str]| {
        let command = ["--", "setarch", "-R", "true"];
        seccomp(&[&["run", "--profile", &profile], options, &command[..]].concat())
    };
    let told = run(&["--log"]);
    // Without BPF the supervisor ends the process by SIGKILL.
    let signal = if testkit::may_load_programs().is_some() {
        31
    } else {
        9
    };
    assert_eq!(told.status.code(), Some(128 + signal), "{told:?}");
    let said = stderr(&told);
    assert!(
        said.contains("personality(0x40000") && said.contains("KILL_PROCESS"),
        "{said}"
    );
    let quiet = run(&[]);
    let signal = std::os::unix::process::ExitStatusExt::signal(&quiet.status);
    assert_eq!(signal, Some(31), "{quiet:?}");
}

#[test]
fn what_cannot_run_is_said_with_status_127() {
    let files = Files::new();
    let profile = files.write("p.list", "errno:EPERM execve\n");
    for log in [&[][..], &["--log"]] {
        let options = [&["run", "--profile", &profile], log].concat();
        let denied = seccomp(&[&options[..], &["--", "true"]].concat());
        assert_eq!(denied.status.code(), Some(127), "{denied:?}");
        assert!(
            stderr(&denied).contains("the profile must allow execve"),
            "{denied:?}"
        );
        let missing = seccomp(&[&options[..], &["--", "no-such-program"]].concat());
        assert_eq!(missing.status.code(), Some(127));
        assert!(
            stderr(&missing).contains("no such executable"),
            "{missing:?}"
        );
    }
    let agent = files.write(
        "n.json",
        r#"{"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [
        {"names": ["mkdir"], "action": "SCMP_ACT_NOTIFY"}]}"#,
    );
    let output = seccomp(&["run", "--profile", &agent, "--", "true"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("syscalls[0]: SCMP_ACT_NOTIFY needs an agent"),
        "{output:?}"
    );
}
