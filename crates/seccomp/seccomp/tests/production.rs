//! Profiles decide as they do in production: under runc with libseccomp, and in systemd.

use seccomp::compile::{compile, Frequencies};
use seccomp::policy::{Abi, Policy};
use seccomp::profile::{self, Context};
use seccomp::{SeccompData, Verdict};

const EPERM: Verdict = Verdict(0x0005_0001);
const ENOSYS: Verdict = Verdict(0x0005_0026);
const EAFNOSUPPORT: Verdict = Verdict(0x0005_0061);
const ALLOW: Verdict = Verdict::ALLOW;

const fn errno(number: u32) -> Verdict {
    Verdict(0x0005_0000 | number)
}

fn parse_for(native: Abi, text: &str) -> Policy {
    profile::parse(text, &Context::docker(native, (6, 18))).expect("a good profile")
}

/// Checks the verdicts of a profile's filter on calls of `abi`, and that the rules say the same.
fn check_on(native: Abi, abi: Abi, text: &str, expected: &[(&str, &[u64], Verdict)]) {
    let policy = parse_for(native, text);
    let filter = compile(&policy, &Frequencies::usual()).expect("compiles");
    for (name, args, wanted) in expected {
        let mut data = SeccompData {
            nr: abi.number(name).expect(name),
            arch: abi.audit_arch(),
            ..SeccompData::default()
        };
        data.args[..args.len()].copy_from_slice(args);
        assert_eq!(
            filter.run(&data).verdict,
            *wanted,
            "{text}: {name} {args:x?}"
        );
        let ruling = policy.decide(&data).expect("a layer");
        assert_eq!(ruling.verdict, *wanted, "{text}: {name} {args:x?}");
    }
}

fn check(text: &str, expected: &[(&str, &[u64], Verdict)]) {
    check_on(Abi::X86_64, Abi::X86_64, text, expected);
}

fn notes(text: &str) -> String {
    parse_for(Abi::X86_64, text).notes.join("\n")
}

/// A profile with these rules, whose default is `default`.
fn rules(default: &str, rules: &str) -> String {
    format!(
        r#"{{"defaultAction": "SCMP_ACT_{default}", "architectures": ["SCMP_ARCH_X86"],
            "syscalls": [{rules}]}}"#
    )
}

#[test]
fn thirty_two_bit_arm_programs_get_their_private_calls() {
    let private: &[(&str, &[u64], Verdict)] = &[
        ("set_tls", &[], ALLOW),
        ("cacheflush", &[], ALLOW),
        ("breakpoint", &[], ALLOW),
    ];
    let docker = profile::DOCKER_DEFAULT;
    check_on(Abi::Arm, Abi::Arm, docker, private);
    check_on(Abi::Aarch64, Abi::Arm, docker, private);
    let unit = "SystemCallFilter=@system-service";
    check_on(Abi::Arm, Abi::Arm, unit, &private[..2]);
    check_on(Abi::Aarch64, Abi::Arm, unit, &private[..2]);
}

#[test]
fn lines_about_namespaces_are_merged_as_systemd_merges_them() {
    const NET: u64 = 0x4000_0000;
    const USER: u64 = 0x1000_0000;
    const CGROUP: u64 = 0x0200_0000;
    const TIME: u64 = 0x80;
    let cases: [(&str, &[(u64, Verdict)]); 9] = [
        (
            "~user|~net",
            &[(USER, EPERM), (NET, EPERM), (CGROUP, ALLOW)],
        ),
        (
            "cgroup ipc|~cgroup net",
            &[(CGROUP, EPERM), (NET, EPERM), (0x0800_0000, ALLOW)],
        ),
        (
            "cgroup ipc|cgroup net",
            &[(CGROUP, ALLOW), (NET, ALLOW), (USER, EPERM)],
        ),
        ("yes|~user", &[(USER, EPERM), (NET, EPERM), (CGROUP, EPERM)]),
        ("yes|net", &[(NET, ALLOW), (USER, EPERM)]),
        ("~user|no", &[(USER, ALLOW), (NET, ALLOW)]),
        ("~user||net", &[(NET, ALLOW), (USER, EPERM)]),
        ("~user|nett", &[(USER, EPERM), (NET, ALLOW), (TIME, EPERM)]),
        ("time", &[(TIME, ALLOW), (NET, EPERM)]),
    ];
    for (lines, expected) in cases {
        let lines: Vec<String> = lines
            .split('|')
            .map(|value| format!("RestrictNamespaces={value}"))
            .collect();
        let unit = format!("ProtectClock=yes\n{}", lines.join("\n"));
        for &(flag, wanted) in expected {
            check(&unit, &[("unshare", &[flag], wanted)]);
        }
    }
    check("RestrictNamespaces=time", &[("setns", &[3, 0x80], EPERM)]);
}

#[test]
fn lines_about_address_families_are_merged_as_systemd_merges_them() {
    const NO: Verdict = EAFNOSUPPORT;
    // AF_UNIX, AF_INET and AF_PACKET.
    let cases: [(&str, [Verdict; 3]); 8] = [
        ("AF_UNIX|none", [NO, NO, NO]),
        ("none|~AF_PACKET", [ALLOW, ALLOW, NO]),
        ("none|AF_INET", [NO, ALLOW, NO]),
        ("AF_UNIX|~AF_UNIX", [NO, NO, NO]),
        ("~AF_UNIX|AF_UNIX", [ALLOW, ALLOW, ALLOW]),
        ("~AF_UNIX|AF_INET", [NO, ALLOW, ALLOW]),
        ("AF_UNIX||~AF_INET", [ALLOW, NO, ALLOW]),
        ("AF_UNIX AF_NEWEST", [ALLOW, NO, NO]),
    ];
    for (lines, wanted) in cases {
        let lines: Vec<String> = lines
            .split('|')
            .map(|value| format!("RestrictAddressFamilies={value}"))
            .collect();
        let unit = format!("ProtectClock=yes\n{}", lines.join("\n"));
        for (family, wanted) in [1, 2, 17].into_iter().zip(wanted) {
            check(&unit, &[("socket", &[family], wanted)]);
        }
    }
}

#[test]
fn switches_keep_their_value_when_a_later_line_has_none() {
    let locked: &[(&str, &[u64], Verdict)] = &[("personality", &[8], EPERM)];
    check("LockPersonality=yes\nLockPersonality=", locked);
    check("LockPersonality=yes\nLockPersonality=maybe", locked);
    check(
        "LockPersonality=yes\nLockPersonality=no\nProtectClock=yes",
        &[("personality", &[8], ALLOW)],
    );
    check("ProtectHostname=yes:web1", &[("sethostname", &[], EPERM)]);
    check(
        "ProtectHostname=private\nProtectClock=yes",
        &[("sethostname", &[], ALLOW)],
    );
    check(
        "RestrictSUIDSGID=no\nDynamicUser=yes",
        &[("chmod", &[0, 0o4755], EPERM)],
    );
}

#[test]
fn a_unit_may_name_architectures_and_sets_that_only_other_versions_know() {
    let unit = "SystemCallArchitectures=native s390x riscv64 ppc64-le\n\
                SystemCallFilter=@system-service @some-new-set";
    check(unit, &[("read", &[], ALLOW)]);
    check_on(Abi::X86_64, Abi::I386, unit, &[("read", &[], Verdict(0))]);
    assert!(notes(unit).contains("@some-new-set"));
    // Only the native ABI decides which calls systemd knows.
    check_on(
        Abi::X86_64,
        Abi::I386,
        "SystemCallFilter=read",
        &[
            ("waitpid", &[], ENOSYS),
            ("wait4", &[], Verdict(0x8000_0000)),
        ],
    );
}

#[test]
fn values_under_a_mask_are_cut_to_the_mask() {
    let profile = rules(
        "ALLOW",
        r#"{"names": ["personality"], "action": "SCMP_ACT_ERRNO", "errnoRet": 13,
            "args": [{"index": 0, "op": "SCMP_CMP_MASKED_EQ", "value": 255, "valueTwo": 264}]}"#,
    );
    check(
        &profile,
        &[
            ("personality", &[8], errno(13)),
            ("personality", &[9], ALLOW),
        ],
    );
    assert!(notes(&profile).contains("syscalls[0].args[0]: valueTwo 0x108 has bits"));
}

#[test]
fn conditions_that_never_or_always_hold_are_told() {
    for (op, value, outcome) in [
        ("LT", "0", "never"),
        ("GT", "18446744073709551615", "never"),
        ("GE", "0", "always"),
        ("LE", "18446744073709551615", "always"),
        ("MASKED_EQ", "0", "always"),
    ] {
        let profile = rules(
            "ALLOW",
            &format!(
                r#"{{"names": ["read"], "action": "SCMP_ACT_ERRNO",
                    "args": [{{"index": 2, "op": "SCMP_CMP_{op}", "value": {value}}}]}}"#
            ),
        );
        let wanted = format!("syscalls[0].args[0]: this condition {outcome} holds");
        assert!(notes(&profile).contains(&wanted), "{}", notes(&profile));
    }
    for list in ["deny read a0&0xf==0x18", "deny read a0<0"] {
        let context = Context::docker(Abi::X86_64, (6, 18));
        let error = profile::parse(list, &context).expect_err("never holds");
        assert!(error.to_string().contains("line 1"), "{error}");
    }
}

#[test]
fn a_rule_that_forbids_a_value_of_64_bits_forbids_its_lower_half_where_registers_have_32() {
    let profile = rules(
        "ALLOW",
        r#"{"names": ["personality"], "action": "SCMP_ACT_ERRNO",
            "args": [{"index": 0, "op": "SCMP_CMP_EQ", "value": 4294967304}]}"#,
    );
    check_on(
        Abi::X86_64,
        Abi::I386,
        &profile,
        &[("personality", &[8], EPERM), ("personality", &[9], ALLOW)],
    );
    check(&profile, &[("personality", &[8], ALLOW)]);
}

#[test]
fn of_rules_without_conditions_the_first_counts_as_in_libseccomp() {
    let podman = rules(
        "ERRNO",
        r#"{"names": ["setns"], "action": "SCMP_ACT_ALLOW"},
           {"names": ["setns", "mount"], "action": "SCMP_ACT_ERRNO", "errnoRet": 38,
            "excludes": {"caps": ["CAP_SYS_ADMIN"]}}"#,
    );
    check(&podman, &[("setns", &[], ALLOW), ("mount", &[], ENOSYS)]);
    assert!(notes(&podman).contains("syscalls[1].names[0]: no effect on setns: syscalls[0]"));
    // runc leaves out what the default does anyway.
    let default = rules(
        "ERRNO",
        r#"{"names": ["mount"], "action": "SCMP_ACT_ERRNO"},
           {"names": ["mount"], "action": "SCMP_ACT_ALLOW"}"#,
    );
    check(&default, &[("mount", &[], ALLOW)]);
}

#[test]
fn of_rules_with_one_action_the_narrowest_gives_the_errno() {
    let rule = |op: &str, value: u64, errno: u32| {
        format!(
            r#"{{"names": ["read"], "action": "SCMP_ACT_ERRNO", "errnoRet": {errno},
                "args": [{{"index": 2, "op": "SCMP_CMP_{op}", "value": {value}}}]}}"#
        )
    };
    let above = [rule("GT", 128, 5), rule("GT", 256, 6), rule("GT", 512, 7)].join(",");
    check(
        &rules("ALLOW", &above),
        &[
            ("read", &[0, 0, 128], ALLOW),
            ("read", &[0, 0, 200], errno(5)),
            ("read", &[0, 0, 300], errno(6)),
            ("read", &[0, 0, 600], errno(7)),
        ],
    );
    let below = [rule("LT", 512, 7), rule("LT", 128, 5), rule("EQ", 7, 9)].join(",");
    check(
        &rules("ALLOW", &below),
        &[
            ("read", &[0, 0, 200], errno(7)),
            ("read", &[0, 0, 100], errno(5)),
            ("read", &[0, 0, 7], errno(9)),
        ],
    );
}

#[test]
fn a_call_that_stands_for_others_gives_its_own_errno_in_units() {
    let unit = "[Service]\nSystemCallErrorNumber=EUCLEAN\n\
                SystemCallFilter=~socketcall\nSystemCallFilter=~getpeername:EPERM\n";
    let expected: [(&str, &[u64], Verdict); 3] = [
        ("socketcall", &[7], errno(117)),
        ("socketcall", &[1], errno(117)),
        ("getpeername", &[7], EPERM),
    ];
    check_on(Abi::X86_64, Abi::I386, unit, &expected);
}

#[test]
fn podmans_names_of_errnos_count_and_make_no_notes() {
    let profile = r#"{"defaultAction": "SCMP_ACT_ERRNO", "defaultErrno": "ENOSYS",
        "defaultErrnoRet": 1, "architectures": ["SCMP_ARCH_X86_64"], "syscalls": [
          {"names": ["read"], "action": "SCMP_ACT_ALLOW"},
          {"names": ["mount"], "action": "SCMP_ACT_ERRNO", "errnoRet": 1, "errno": "EACCES"},
          {"names": ["umount2"], "action": "SCMP_ACT_ERRNO", "errnoRet": 2, "errno": ""}]}"#;
    check(
        profile,
        &[
            ("mount", &[], errno(13)),
            ("umount2", &[], errno(2)),
            ("write", &[], ENOSYS),
        ],
    );
    assert_eq!(notes(profile), "");
    let context = Context::docker(Abi::X86_64, (6, 18));
    let misspelt = profile.replace("EACCES", "EACESS");
    let error = profile::parse(&misspelt, &context).expect_err("no such errno");
    assert!(error.to_string().contains("syscalls[1].errno"), "{error}");
}

#[test]
fn members_are_read_as_go_reads_them_and_misspelt_ones_are_told_at_every_depth() {
    let profile = r#"{"defaultaction": "SCMP_ACT_ALLOW", "architectures": ["SCMP_ARCH_X86_64"],
        "syscalls": [
          {"names": ["personality"], "action": "SCMP_ACT_KILL_PROCESS", "args": [
            {"index": 0, "op": "SCMP_CMP_MASKED_EQ", "value": 255, "valuetwo": 8}]},
          {"names": ["socket"], "action": "SCMP_ACT_ERRNO", "args": [
            {"index": 0, "op": "SCMP_CMP_EQ", "val": 38}]},
          {"names": ["mount"], "action": "SCMP_ACT_ERRNO", "includes": {"cap": ["CAP_CHOWN"]}},
          {"names": ["reboot"], "action": "SCMP_ACT_ERRNO", "excludes": {"Caps": ["CAP_CHOWN"]}}]}"#;
    check(
        profile,
        &[
            ("personality", &[8], Verdict(0x8000_0000)),
            ("personality", &[0], ALLOW),
            ("socket", &[0], EPERM),
            ("mount", &[], EPERM),
            ("reboot", &[], ALLOW),
        ],
    );
    let notes = notes(profile);
    for note in [
        "defaultaction: taken for defaultAction",
        "syscalls[0].args[0].valuetwo: taken for valueTwo",
        "syscalls[1].args[0].val: no such member; it has no effect",
        "syscalls[2].includes.cap: no such member; it has no effect: did you mean caps?",
        "syscalls[3].excludes.Caps: taken for caps",
    ] {
        assert!(notes.contains(note), "{note}: {notes}");
    }
}

#[test]
fn architectures_of_other_machines_are_left_out_with_a_note() {
    for arch in [
        "SCMP_ARCH_SH",
        "SCMP_ARCH_SHEB",
        "SCMP_ARCH_S390X",
        "SCMP_ARCH_BOGUS",
    ] {
        let profile = format!(
            r#"{{"defaultAction": "SCMP_ACT_ERRNO", "architectures": ["{arch}"],
                "syscalls": [{{"names": ["read"], "action": "SCMP_ACT_ALLOW"}}]}}"#
        );
        check(&profile, &[("read", &[], ALLOW)]);
        assert!(notes(&profile).contains(arch));
    }
}

#[test]
fn a_tracer_gets_sixteen_bits() {
    let profile = rules(
        "ALLOW",
        r#"{"names": ["uname"], "action": "SCMP_ACT_TRACE", "errnoRet": 5000}"#,
    );
    check(&profile, &[("uname", &[], Verdict(0x7ff0_0000 | 5000))]);
}
