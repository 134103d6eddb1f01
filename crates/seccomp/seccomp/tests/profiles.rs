//! Profiles of every form, and errors in them.

use seccomp::compile::{compile, Frequencies};
use seccomp::policy::{Abi, Policy};
use seccomp::profile::learned::Observed;
use seccomp::profile::{self, systemd, Context, Form};
use seccomp::{Filter, SeccompData, Verdict};

const EPERM: Verdict = Verdict(0x0005_0001);
const ENOSYS: Verdict = Verdict(0x0005_0026);
const EAFNOSUPPORT: Verdict = Verdict(0x0005_0061);
const KILL_PROCESS: Verdict = Verdict(0x8000_0000);
const KILL_THREAD: Verdict = Verdict(0);
const ALLOW: Verdict = Verdict::ALLOW;

fn context() -> Context {
    Context::docker(Abi::X86_64, (6, 18))
}

fn parse(text: &str) -> Policy {
    profile::parse(text, &context()).expect("a good profile")
}

fn refusal(text: &str) -> String {
    profile::parse(text, &context())
        .expect_err("a bad profile")
        .to_string()
}

/// The verdict of the compiled filter, which is compared with the rules themselves.
fn verdict(policy: &Policy, filter: &Filter, abi: Abi, name: &str, args: &[u64]) -> Verdict {
    let nr = abi.number(name).expect(name);
    let mut data = SeccompData {
        nr,
        arch: abi.audit_arch(),
        ..SeccompData::default()
    };
    data.args[..args.len()].copy_from_slice(args);
    let verdict = filter.run(&data).verdict;
    assert_eq!(
        policy.decide(&data).map(|ruling| ruling.verdict),
        Some(verdict),
        "{name}"
    );
    verdict
}

/// Compiles a text and checks verdicts on x86-64.
fn check(text: &str, expected: &[(&str, &[u64], Verdict)]) {
    check_on(Abi::X86_64, text, expected);
}

fn check_on(abi: Abi, text: &str, expected: &[(&str, &[u64], Verdict)]) {
    let policy = parse(text);
    let filter = compile(&policy, &Frequencies::usual()).expect("compiles");
    for (name, args, wanted) in expected {
        assert_eq!(
            verdict(&policy, &filter, abi, name, args),
            *wanted,
            "{name} {args:x?} {abi:?}"
        );
    }
}

#[test]
fn dockers_profile_depends_on_capabilities_architecture_and_kernel() {
    let docker = profile::DOCKER_DEFAULT;
    let with = |change: &dyn Fn(&mut Context)| {
        let mut context = context();
        change(&mut context);
        let policy = profile::parse(docker, &context).expect("docker's profile");
        assert_eq!(policy.notes, [""; 0]);
        let filter = compile(&policy, &Frequencies::usual()).expect("compiles");
        (policy, filter)
    };
    let ask = |made: &(Policy, Filter), name, args: &[u64]| {
        verdict(&made.0, &made.1, Abi::X86_64, name, args)
    };
    let plain = with(&|_| {});
    assert_eq!(ask(&plain, "clone", &[0x11]), ALLOW);
    assert_eq!(ask(&plain, "clone", &[0x1000_0000]), EPERM);
    assert_eq!(ask(&plain, "clone3", &[]), ENOSYS);
    assert_eq!(ask(&plain, "mount", &[]), EPERM);
    assert_eq!(ask(&plain, "ptrace", &[]), ALLOW);
    assert_eq!(ask(&plain, "arch_prctl", &[]), ALLOW);
    let admin = with(&|context| context.caps.push("CAP_SYS_ADMIN".to_owned()));
    assert_eq!(ask(&admin, "clone", &[0x1000_0000]), ALLOW);
    assert_eq!(ask(&admin, "clone3", &[]), ALLOW);
    assert_eq!(ask(&admin, "mount", &[]), ALLOW);
    let old = with(&|context| context.kernel = (4, 7));
    assert_eq!(ask(&old, "ptrace", &[]), EPERM);
    let arm = with(&|context| context.native = Abi::Aarch64);
    assert_eq!(arm.0.abis(), [Abi::Aarch64, Abi::Arm]);
    assert_eq!(verdict(&arm.0, &arm.1, Abi::Arm, "read", &[]), ALLOW);
}

#[test]
fn calls_newer_than_the_profile_fail_with_enosys_as_under_runc() {
    let profile = r#"{"defaultAction": "SCMP_ACT_ERRNO", "architectures": ["SCMP_ARCH_X86"],
        "syscalls": [{"names": ["read", "openat2"], "action": "SCMP_ACT_ALLOW"}]}"#;
    let expected: &[(&str, &[u64], Verdict)] = &[
        ("read", &[], ALLOW),
        ("write", &[], EPERM),
        ("openat2", &[], ALLOW),
        ("faccessat2", &[], ENOSYS),
        ("mseal", &[], ENOSYS),
    ];
    check(profile, expected);
    check_on(Abi::I386, profile, expected);
    let policy = profile::parse(
        profile,
        &Context {
            enosys: false,
            ..context()
        },
    )
    .expect("good");
    let filter = compile(&policy, &Frequencies::usual()).expect("compiles");
    assert_eq!(verdict(&policy, &filter, Abi::X86_64, "mseal", &[]), EPERM);
    let permissive = profile.replace("SCMP_ACT_ERRNO", "SCMP_ACT_LOG");
    check(&permissive, &[("mseal", &[], Verdict(0x7ffc_0000))]);
}

#[test]
fn x32_calls_are_refused_unless_the_profile_names_x32() {
    let profile = r#"{"defaultAction": "SCMP_ACT_ALLOW", "architectures": ["ARCHS"],
        "syscalls": [{"names": ["ptrace"], "action": "SCMP_ACT_ERRNO"}]}"#;
    let without = profile.replace("ARCHS", "SCMP_ARCH_X86_64");
    check_on(
        Abi::X32,
        &without,
        &[("read", &[], KILL_THREAD), ("ptrace", &[], KILL_THREAD)],
    );
    check_on(Abi::I386, &without, &[("read", &[], KILL_THREAD)]);
    let with = profile.replace("ARCHS", "SCMP_ARCH_X32");
    check_on(
        Abi::X32,
        &with,
        &[("read", &[], ALLOW), ("ptrace", &[], EPERM)],
    );
}

#[test]
fn conditions_are_on_64_bits_where_arguments_have_them() {
    let profile = r#"{"defaultAction": "SCMP_ACT_ERRNO", "syscalls": [
        {"names": ["personality"], "action": "SCMP_ACT_ALLOW",
         "args": [{"index": 0, "value": 4294967296, "op": "SCMP_CMP_EQ"}]},
        {"names": ["lseek"], "action": "SCMP_ACT_ALLOW",
         "args": [{"index": 1, "value": 4294967295, "op": "SCMP_CMP_GT"}]}],
        "architectures": ["SCMP_ARCH_X86"]}"#;
    check(
        profile,
        &[
            ("personality", &[1 << 32], ALLOW),
            ("personality", &[0], EPERM),
            ("lseek", &[0, u64::MAX], ALLOW),
            ("lseek", &[0, 0xffff_ffff], EPERM),
            ("lseek", &[0, 1 << 32], ALLOW),
        ],
    );
    // libseccomp compares only the lower half, and so allows 0.
    check_on(
        Abi::I386,
        profile,
        &[
            ("personality", &[0], EPERM),
            ("lseek", &[0, u32::MAX.into()], EPERM),
        ],
    );
}

#[test]
fn of_several_rules_that_match_the_strictest_answers() {
    let profile = r#"{"defaultAction": "SCMP_ACT_ERRNO", "syscalls": [
        {"names": ["socket"], "action": "SCMP_ACT_ALLOW"},
        {"names": ["socket"], "action": "SCMP_ACT_KILL_PROCESS",
         "args": [{"index": 0, "value": 17, "op": "SCMP_CMP_EQ"}]},
        {"names": ["fcntl"], "action": "SCMP_ACT_ALLOW", "args": [
          {"index": 1, "value": 1, "op": "SCMP_CMP_EQ"},
          {"index": 1, "value": 2, "op": "SCMP_CMP_EQ"}]}]}"#;
    check(
        profile,
        &[
            ("socket", &[1], ALLOW),
            ("socket", &[17], KILL_PROCESS),
            ("fcntl", &[0, 1], ALLOW),
            ("fcntl", &[0, 2], ALLOW),
            ("fcntl", &[0, 3], EPERM),
        ],
    );
    assert!(parse(profile).notes[0].contains("syscalls[2].args: one argument has several"));
}

#[test]
fn multiplexed_calls_of_32_bit_x86_are_never_weaker() {
    let allow = r#"{"defaultAction": "SCMP_ACT_ERRNO", "architectures": ["SCMP_ARCH_X86"],
        "syscalls": [
          {"names": ["bind", "shmget"], "action": "SCMP_ACT_ALLOW"},
          {"names": ["socket"], "action": "SCMP_ACT_ALLOW",
           "args": [{"index": 0, "value": 1, "op": "SCMP_CMP_EQ"}]}]}"#;
    check_on(
        Abi::I386,
        allow,
        &[
            ("socketcall", &[2], ALLOW),
            ("socketcall", &[1], EPERM),
            ("socket", &[1], ALLOW),
            ("ipc", &[23], ALLOW),
            ("ipc", &[0x0001_0017], ALLOW),
            ("ipc", &[21], EPERM),
        ],
    );
    let deny = r#"{"defaultAction": "SCMP_ACT_ALLOW", "architectures": ["SCMP_ARCH_X86"],
        "syscalls": [{"names": ["socket"], "action": "SCMP_ACT_ERRNO",
           "args": [{"index": 0, "value": 17, "op": "SCMP_CMP_EQ"}]}]}"#;
    check_on(
        Abi::I386,
        deny,
        &[("socketcall", &[1], EPERM), ("socketcall", &[2], ALLOW)],
    );
}

#[test]
fn what_is_wrong_with_json_is_told_with_its_path_and_a_remedy() {
    let call =
        |rest: &str| format!(r#"{{"defaultAction": "SCMP_ACT_ERRNO", "syscalls": [{rest}]}}"#);
    let arg = |rest: &str| {
        call(&format!(
            r#"{{"names": ["read"], "action": "SCMP_ACT_ALLOW", "args": [{rest}]}}"#
        ))
    };
    let cases: Vec<(String, &[&str])> = vec![
        ("{\n \"defaultAction\": }".into(), &["line 2, column 19", "not JSON"]),
        ("{}".into(), &["defaultAction: found nothing", "SCMP_ACT_ERRNO"]),
        (r#"{"defaultAction": 5}"#.into(), &["defaultAction: found 5", "quotes"]),
        (r#"{"defaultAction": "ALLOW"}"#.into(), &["found \"ALLOW\"", "SCMP_ACT_ALLOW"]),
        (r#"{"defaultAction": "SCMP_ACT_NOTIFY"}"#.into(), &["needs no agent"]),
        (r#"{"defaultAction": "SCMP_ACT_ERRNO", "defaultErrnoRet": 5000}"#.into(),
         &["defaultErrnoRet: found 5000", "0 to 4094"]),
        (r#"{"defaultAction": "SCMP_ACT_ERRNO", "architectures": ["x86-64"]}"#.into(),
         &["architectures[0]", "x86-64", "SCMP_ARCH_X86_64"]),
        (r#"{"defaultAction": "SCMP_ACT_ERRNO", "architectures": ["SCMP_ARCH_X86"], "archMap": []}"#
            .into(), &["archMap", "either architectures or archMap"]),
        (r#"{"defaultAction": "SCMP_ACT_ERRNO", "flags": ["X"]}"#.into(), &["flags[0]", "_TSYNC"]),
        (call(r#"{"names": ["read"]}"#), &["syscalls[0]", "a member action"]),
        (call(r#"{"names": "read", "action": "SCMP_ACT_ALLOW"}"#), &["syscalls[0].names", "a list"]),
        (call(r#"{"names": ["read"], "name": "write", "action": "SCMP_ACT_ALLOW"}"#),
         &["syscalls[0].name", "either name or names"]),
        (call(r#"{"names": [""], "action": "SCMP_ACT_ALLOW"}"#), &["syscalls[0].names[0]"]),
        (call(r#"{"names": ["read"], "action": "SCMP_ACT_ALLOW", "includes": {"minKernel": "4"}}"#),
         &["syscalls[0].includes.minKernel", "4.8"]),
        (arg(r#"{"index": 6, "value": 1, "op": "SCMP_CMP_EQ"}"#),
         &["syscalls[0].args[0].index: found 6", "0 to 5"]),
        (arg(r#"{"index": 0, "value": -1, "op": "SCMP_CMP_EQ"}"#),
         &["syscalls[0].args[0].value: found -1", "without quotes, sign"]),
        (arg(r#"{"index": 0, "value": 1, "op": "EQ"}"#), &["args[0].op", "_MASKED_EQ"]),
        (arg(r#"{"index": 0, "value": 1}"#), &["args[0]", "add op"]),
        (arg("7"), &["args[0]: found 7, expected an object"]),
    ];
    for (text, parts) in cases {
        let message = refusal(&text);
        for part in parts {
            assert!(message.contains(part), "{text}: {message}");
        }
    }
}

#[test]
fn unknown_names_are_noted_with_a_suggestion() {
    let policy = parse(
        r#"{"defaultAction": "SCMP_ACT_ALLOW", "defaultErrnoReturn": 1, "syscalls": [
            {"names": ["opennat"], "action": "SCMP_ACT_ERRNO"}]}"#,
    );
    assert_eq!(
        policy.notes[0],
        "defaultErrnoReturn: no such member; it has no effect: did you mean defaultErrnoRet?"
    );
    assert!(policy.notes[1].contains("syscalls[0].names[0]: no system call \"opennat\""));
    assert!(
        policy.notes[1].contains("did you mean openat?"),
        "{:?}",
        policy.notes
    );
}

#[test]
fn a_units_filter_allows_what_is_listed_and_always_what_every_program_needs() {
    let unit = "[Service]\nExecStart=/bin/x\nSystemCallFilter=@system-service\n\
                SystemCallFilter=~@resources ptrace:EACCES\nSystemCallErrorNumber=EPERM\n";
    check(
        unit,
        &[
            ("openat", &[], ALLOW),
            ("execve", &[], ALLOW),
            ("setrlimit", &[], EPERM),
            ("ptrace", &[], Verdict(0x0005_000d)),
            ("mount", &[], EPERM),
        ],
    );
    let data = SeccompData {
        nr: 600,
        arch: Abi::X86_64.audit_arch(),
        ..SeccompData::default()
    };
    let newest = parse(unit).decide(&data).map(|ruling| ruling.verdict);
    assert_eq!(
        newest,
        Some(ENOSYS),
        "calls that systemd does not know are taken for too new"
    );
    check(
        "SystemCallFilter=read",
        &[
            ("openat", &[], KILL_PROCESS),
            ("read", &[], ALLOW),
            ("write", &[], ALLOW),
        ],
    );
    check(
        "SystemCallFilter=~write mount",
        &[("mount", &[], KILL_PROCESS), ("write", &[], ALLOW)],
    );
    check(
        "SystemCallFilter=~mount",
        &[("mount", &[], KILL_PROCESS), ("write", &[], ALLOW)],
    );
    check(
        "SystemCallFilter=~mount\nSystemCallFilter=\nSystemCallFilter=~\\\n ptrace",
        &[("mount", &[], ALLOW), ("ptrace", &[], KILL_PROCESS)],
    );
}

#[test]
fn restrictions_of_address_families_and_namespaces_do_what_systemd_documents() {
    check(
        "RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6",
        &[
            ("socket", &[1], ALLOW),
            ("socket", &[2], ALLOW),
            ("socket", &[10], ALLOW),
            ("socket", &[3], EAFNOSUPPORT),
            ("socket", &[16], EAFNOSUPPORT),
            ("socket", &[0], EAFNOSUPPORT),
            ("socket", &[1 | 1 << 32], EAFNOSUPPORT),
        ],
    );
    check(
        "RestrictAddressFamilies=~AF_PACKET",
        &[
            ("socket", &[17], EAFNOSUPPORT),
            ("socket", &[17 | 1 << 32], EAFNOSUPPORT),
            ("socket", &[2], ALLOW),
        ],
    );
    check(
        "RestrictAddressFamilies=none",
        &[("socket", &[1], EAFNOSUPPORT)],
    );
    check(
        "RestrictNamespaces=yes",
        &[
            ("unshare", &[0x4000_0000], EPERM),
            ("clone", &[0x1000_0000], EPERM),
            ("clone", &[0x11], ALLOW),
            ("clone3", &[], ENOSYS),
            ("setns", &[3, 0], EPERM),
        ],
    );
    check(
        "RestrictNamespaces=~user",
        &[
            ("unshare", &[0x4000_0000], ALLOW),
            ("unshare", &[0x1000_0000], EPERM),
            ("setns", &[3, 0x4000_0000], ALLOW),
            ("setns", &[3, 0], EPERM),
        ],
    );
}

#[test]
fn restrictions_of_what_a_process_does_are_what_systemd_documents() {
    check(
        "MemoryDenyWriteExecute=yes",
        &[
            ("mmap", &[0, 4096, 3], ALLOW),
            ("mmap", &[0, 4096, 5], ALLOW),
            ("mmap", &[0, 4096, 7], EPERM),
            ("mprotect", &[0, 4096, 1], ALLOW),
            ("mprotect", &[0, 4096, 4], EPERM),
            ("shmat", &[0, 0, 0o100000], EPERM),
        ],
    );
    check(
        "RestrictRealtime=yes",
        &[
            ("sched_setscheduler", &[0, 0], ALLOW),
            ("sched_setscheduler", &[0, 1], EPERM),
            ("sched_setscheduler", &[0, 1 | 1 << 32], EPERM),
            ("sched_setscheduler", &[0, 3], ALLOW),
            ("sched_setscheduler", &[0, 6], EPERM),
        ],
    );
    check(
        "RestrictSUIDSGID=yes",
        &[
            ("chmod", &[0, 0o755], ALLOW),
            ("chmod", &[0, 0o4755], EPERM),
            ("openat", &[0, 0, 0, 0o4755], ALLOW),
            ("openat", &[0, 0, 0o100, 0o2755], EPERM),
            ("openat2", &[], ENOSYS),
        ],
    );
}

#[test]
fn protections_and_architectures_of_a_unit_do_what_systemd_documents() {
    check(
        "LockPersonality=yes",
        &[("personality", &[0], ALLOW), ("personality", &[8], EPERM)],
    );
    check(
        "ProtectKernelModules=1\nProtectClock=1\nProtectKernelLogs=1\nProtectHostname=1\n\
           PrivateDevices=1\nProtectKernelTunables=1",
        &[
            ("init_module", &[], EPERM),
            ("clock_settime", &[], EPERM),
            ("syslog", &[], EPERM),
            ("sethostname", &[], EPERM),
            ("ioperm", &[], EPERM),
            ("_sysctl", &[], EPERM),
            ("read", &[], ALLOW),
        ],
    );
    let native = "SystemCallArchitectures=native\nSystemCallLog=read";
    check(
        native,
        &[("write", &[], ALLOW), ("read", &[], Verdict(0x7ffc_0000))],
    );
    check_on(Abi::I386, native, &[("write", &[], KILL_THREAD)]);
    check_on(Abi::X32, native, &[("write", &[], KILL_THREAD)]);
}

#[test]
fn what_systemd_ignores_in_a_unit_is_ignored_with_a_note_that_has_its_line() {
    let cases: [(&str, &[&str]); 12] = [
        (
            "[Service]\nSystemCallFilter=@sytem",
            &["line 2, SystemCallFilter=", "a set of systemd 257"],
        ),
        ("SystemCallFilter=read:EPERM", &["or ~ before the list"]),
        ("SystemCallFilter=~read:EPREM", &["EPREM", "such as EPERM"]),
        (
            "SystemCallFilter=read\nSystemCallErrorNumber=x",
            &["line 2, SystemCallErrorNumber="],
        ),
        (
            "SystemCallFilter=read\nSystemCallErrorNumber=0",
            &["from 1 to 4095"],
        ),
        ("RestrictAddressFamilies=INET", &["AF_INET"]),
        ("RestrictAddressFamilies=AF_UNSPEC", &["AF_INET"]),
        ("RestrictNamespaces=nett", &["cgroup, ipc, net"]),
        ("LockPersonality=maybe", &["yes or no"]),
        ("SystemCallArchitectures=z80", &["x86-64"]),
        (
            "[Service]\nSystemCallFilter=~uname\n[Install]\nfoo",
            &["line 4", "DIRECTIVE=VALUE"],
        ),
        (
            "[Unit]\nSystemCallFilter=~uname",
            &["line 2, SystemCallFilter=", "belongs to [Service]"],
        ),
    ];
    for (text, parts) in cases {
        let with_another = format!("[Service]\nProtectClock=yes\n{text}");
        let notes = parse(&with_another).notes.join("\n");
        for part in parts {
            let part = part.replace("line 4", "line 6").replace("line 2", "line 4");
            assert!(notes.contains(&part), "{text}: {notes}");
        }
    }
    let policy = parse("SystemCallFilter=~opennat mount");
    assert!(
        policy.notes[0].contains("did you mean openat?"),
        "{:?}",
        policy.notes
    );
    let nspawn = refusal("[Exec]\nSystemCallFilter=~@keyring");
    assert!(nspawn.contains("line 1: found [Exec]"), "{nspawn}");
}

#[test]
fn sets_hold_what_systemd_analyze_of_257_prints() {
    assert_eq!(systemd::set_names().count(), 30);
    let service = systemd::set("@system-service").expect("known");
    assert!(service.contains(&"openat") && !service.contains(&"mount"));
}

#[test]
fn a_list_allows_or_denies_what_it_names() {
    check(
        "allow read write # two\nallow socket a0==1 a1&0xf==1\nerrno:ENOSYS clone3\nkill ptrace",
        &[
            ("read", &[], ALLOW),
            ("openat", &[], EPERM),
            ("socket", &[1, 0x80001], ALLOW),
            ("socket", &[1, 2], EPERM),
            ("clone3", &[], ENOSYS),
            ("ptrace", &[], KILL_PROCESS),
        ],
    );
    check(
        "deny mount @module",
        &[
            ("mount", &[], EPERM),
            ("read", &[], ALLOW),
            ("init_module", &[], EPERM),
        ],
    );
    check(
        "default errno:5\n@basic-io",
        &[("read", &[], ALLOW), ("mount", &[], Verdict(0x0005_0005))],
    );
    for (text, parts) in [
        ("allow raed", ["line 1", "did you mean read?"]),
        ("read\nallow socket a7==1", ["line 2", "a0 to a5"]),
        ("allow", ["line 1", "name one"]),
        ("errno:EPREM read", ["line 1", "errno:NAME"]),
        ("default never", ["line 1", "errno:NAME"]),
        ("allow @nonsense", ["line 1", "@basic-io"]),
    ] {
        let message = refusal(text);
        assert!(
            parts.iter().all(|part| message.contains(part)),
            "{text}: {message}"
        );
    }
}

#[test]
fn forms_are_told_apart() {
    assert_eq!(Form::of(" {}"), Form::Oci);
    assert_eq!(Form::of("[Service]\nRestrictRealtime = yes"), Form::Systemd);
    assert_eq!(Form::of("allow socket a0==1"), Form::List);
    assert!(refusal("[Unit]\nDescription=x\nLockPersonality=no").contains("no directive"));
}

#[test]
fn a_learnt_profile_allows_what_was_seen_and_merges() {
    let arch = Abi::X86_64.audit_arch();
    let mut first = Observed::default();
    for name in ["read", "execve", "socket", "ioctl"] {
        first.add(arch, Abi::X86_64.number(name).expect(name), 3);
    }
    first.add_value("socket", 1);
    (0..9).for_each(|value| first.add_value("ioctl", value));
    let profile = first.profile(Abi::X86_64, &[]).to_string();
    let expected: &[(&str, &[u64], Verdict)] = &[
        ("read", &[], ALLOW),
        ("socket", &[1], ALLOW),
        ("socket", &[2], EPERM),
        ("ioctl", &[0, 77], ALLOW),
        ("write", &[], EPERM),
    ];
    check(&profile, expected);
    let mut second = Observed::default();
    for name in ["write", "socket"] {
        second.add(
            Abi::I386.audit_arch(),
            Abi::I386.number(name).expect(name),
            1,
        );
    }
    second.add_value("socket", 2);
    second.merge(Observed::from_profile(&profile, &context()).expect("learnt"));
    let merged = second.profile(Abi::X86_64, &[]).to_string();
    check(
        &merged,
        &[
            ("socket", &[1], ALLOW),
            ("socket", &[2], ALLOW),
            ("socket", &[3], EPERM),
            ("ioctl", &[0, 77], ALLOW),
            ("write", &[], ALLOW),
        ],
    );
    check_on(
        Abi::I386,
        &merged,
        &[("write", &[], ALLOW), ("mkdir", &[], EPERM)],
    );
    let other = profile::DOCKER_DEFAULT;
    let error = Observed::from_profile(other, &context())
        .expect_err("not learnt")
        .to_string();
    assert!(
        error.contains("tarsier seccomp learn") && error.contains("syscalls["),
        "{error}"
    );
    let unused = first.unused(&parse(profile::DOCKER_DEFAULT), Abi::X86_64);
    assert!(unused.contains(&"openat") && !unused.contains(&"read") && !unused.contains(&"mount"));
}
