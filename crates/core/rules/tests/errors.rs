//! The messages about wrong rules.

use abi::Arch;
use rules::{
    parse_line, parse_line_as, Dialect, ErrorKind, PathKind, RuleError, Source, StaticHost,
};

fn host() -> StaticHost {
    StaticHost::new(Arch::X86_64).path("/nodir", PathKind::Missing)
}

fn error(line: &str) -> RuleError {
    let source = Source {
        file: "audit.rules".to_owned(),
        line: 3,
    };
    parse_line(line, &source, &host()).expect_err(line)
}

/// Line, offending word, message, suggestion.
const MISTAKES: [(&str, &str, &str, &str); 10] = [
    (
        "-a always,exit -F uod=0",
        "uod",
        "-F unknown field: uod",
        "uid",
    ),
    (
        "-a always,exit -F arch=b64 -S open,opneat",
        "opneat",
        "Syscall name unknown: opneat",
        "openat",
    ),
    (
        "-a alwasy,exit -S open",
        "alwasy,exit",
        "Append rule - bad keyword alwasy,exit",
        "always",
    ),
    (
        "-A always,exti -S open",
        "always,exti",
        "Add rule - bad keyword always,exti",
        "exit",
    ),
    (
        "-a always,exit -S all -F exit=-EACESS",
        "-EACESS",
        "-F unknown errno - exit",
        "EACCES",
    ),
    (
        "-a always,exclude -F msgtype=SYSCAL",
        "SYSCAL",
        "-F unknown message type - msgtype",
        "SYSCALL",
    ),
    (
        "-a always,exit -F arch=x86-64",
        "x86-64",
        "arch elf mapping not found",
        "x86_64",
    ),
    (
        "-a never,filesystem -F fstype=tracfs",
        "tracfs",
        "file system type is unknown for field: fstype",
        "tracefs",
    ),
    (
        "-a always,exit -C uid!=euidd",
        "euidd",
        "-C unknown right hand value for comparison with: uid",
        "euid",
    ),
    (
        "-a always,io_uring -S opennat",
        "opennat",
        "io_uring op unknown: opennat",
        "openat",
    ),
];

#[test]
fn errors_point_at_the_word_and_name_what_was_probably_meant() {
    for (line, word, message, meant) in MISTAKES {
        let error = error(line);
        assert_eq!(error.message, message, "{line}");
        let start = error.column as usize - 1;
        assert_eq!(&line[start..start + error.len as usize], word, "{line}");
        assert_eq!(
            error.help,
            Some(format!("did you mean `{meant}`?")),
            "{line}"
        );
        assert!(error.expected.is_some(), "{line}");
        assert_eq!((error.file(), error.line()), ("audit.rules", 3));
        assert_eq!(error.source_line, line);
    }
}

#[test]
fn what_the_kernel_would_refuse_is_explained() {
    let cases = [
        (
            "-a always,exit -F path!=/etc/passwd",
            ErrorKind::Invalid,
            "the kernel takes only = for `path`",
        ),
        (
            "-a always,exit -F uid=-1",
            ErrorKind::Invalid,
            "4294967295 is no value for `uid`",
        ),
        (
            "-w /nodir/file",
            ErrorKind::MissingPath,
            "/nodir does not exist",
        ),
        (
            "-a always,exit -F dir=/nodir",
            ErrorKind::MissingPath,
            "/nodir does not exist",
        ),
    ];
    for (line, kind, help) in cases {
        let error = error(line);
        assert_eq!(error.kind, kind, "{line}");
        assert_eq!(error.help.as_deref(), Some(help), "{line}");
        assert!(
            error
                .message
                .starts_with("Error sending add rule data request ("),
            "{error}"
        );
    }
}

#[test]
fn the_dialects_differ_where_auditctl_changed() {
    // Accepted by 3.0.9, accepted by 4.x.
    let cases = [
        ("-a always,exclude -F euid=5", false, true),
        ("-a always,io_uring -S openat -k x", false, true),
        ("-a never,filesystem -F fstype=cgroup2", false, true),
        ("-a always,exit -F arch=b64 -S fchmodat2", true, true),
        ("-a always,exclude -S open", false, false),
    ];
    for (line, old, new) in cases {
        for (dialect, accepted) in [(Dialect::V3, old), (Dialect::V4, new)] {
            let parsed = parse_line_as(dialect, line, &Source::default(), &host());
            assert_eq!(
                parsed.error.is_none(),
                accepted,
                "{dialect:?}: {line}: {:?}",
                parsed.error
            );
        }
    }
}

#[test]
fn values_that_silently_count_as_zero_are_pointed_out() {
    for line in [
        "-a always,exit -F saddr_fam=inet",
        "-a always,exit -F sessionid=mine",
    ] {
        let parsed = parse_line_as(Dialect::V4, line, &Source::default(), &host());
        assert!(parsed.error.is_none());
        assert_eq!(parsed.warnings.len(), 1, "{line}");
        assert!(
            parsed.warnings[0].message.contains("counts as 0"),
            "{}",
            parsed.warnings[0]
        );
    }
}
