//! Compares directives of units with the filters that systemd 252 itself makes for them
//! (data/systemd_directives.c).

mod support;

use seccomp::compile::{compile, Frequencies};
use seccomp::policy::Abi;
use seccomp::profile::{self, Context};
use seccomp::text::from_hex;
use seccomp::{Chain, SeccompData, Verdict};

const FILTERS: &str = include_str!("data/systemd-directives.hex");

/// The directives, each with the chain that systemd installs for it.
fn chains() -> Vec<(&'static str, Chain)> {
    let units = FILTERS.split("unit ").skip(1).map(|unit| {
        let (directive, filters) = unit.split_once('\n').expect("a line");
        let filters = filters.split("filter\n").skip(1);
        let filters: Vec<_> = filters.map(|hex| from_hex(hex).expect("valid")).collect();
        (directive, Chain::new(filters))
    });
    units.collect()
}

/// Every single bit, values that conditions use, and their neighbours, with and without upper
/// halves.
fn values() -> Vec<u64> {
    let mut values: Vec<u64> = (0..48).collect();
    values.extend((6..32).map(|bit| 1 << bit));
    values.extend([
        0o4100,
        0o2100,
        0o4755,
        0o2755,
        0o755,
        0x7e02_0000,
        0xffff_ffff,
        6,
        7,
    ]);
    let upper = values
        .iter()
        .flat_map(|&low| [low | 1 << 32, low | 0xffff_ffff << 32]);
    let upper: Vec<u64> = upper.collect();
    values.extend(upper);
    values
}

#[test]
fn directives_answer_as_systemds_own_filters_and_never_weaker() {
    let chains = chains();
    assert_eq!(chains.len(), 13);
    let values = values();
    for (directive, chain) in chains {
        let context = Context::docker(Abi::X86_64, (6, 18));
        let policy = profile::parse(directive, &context).expect(directive);
        let ours = compile(&policy, &Frequencies::usual()).expect("compiles");
        assert!(ours.insns().len() <= chain.insns(), "{directive}");
        let mut denied = 0;
        for &abi in Abi::X86_64.family() {
            for (nr, name) in abi.calls() {
                for &value in &values {
                    let arch = abi.audit_arch();
                    let data = SeccompData {
                        nr,
                        arch,
                        args: [value; 6],
                        ..SeccompData::default()
                    };
                    let (a, b) = (ours.run(&data).verdict, chain.run(&data).verdict);
                    denied += u64::from(a.order() != seccomp::Verdict::ALLOW.order());
                    // libseccomp compares upper halves that the kernel drops, or ignores those of
                    // x32.
                    let is_stricter = a.order() < b.order() && value > 0xffff_ffff;
                    assert!(
                        a == b || is_stricter,
                        "{directive} {name} {abi:?} {value:#x}: {a}, {b}"
                    );
                }
            }
        }
        assert!(denied > 0, "{directive}");
    }
}

#[test]
fn units_that_systemd_does_not_start_are_refused_with_the_reason() {
    let context = Context::docker(Abi::X86_64, (6, 18));
    for (unit, reason) in [
        ("SystemCallFilter=~mount:4095", "an errno above 4094"),
        (
            "SystemCallFilter=read\nSystemCallFilter=~mmap:ENOSYS",
            "ENOSY",
        ),
        (
            "SystemCallFilter=read\nSystemCallFilter=~write:EPERM",
            "write with an errno",
        ),
        (
            "SystemCallFilter=read\nSystemCallFilter=~@default read @known",
            "that is empty",
        ),
        ("[Service]\nDynamicUser=maybe", "expected yes or no"),
        ("[Service\nProtectClock=yes", "expected ] at the end"),
    ] {
        let error = profile::parse(unit, &context).expect_err(unit).to_string();
        assert!(
            error.contains(reason) && error.contains("does not start"),
            "{unit}: {error}"
        );
    }
    // In a drop-in, what follows in it is ignored.
    let unit = "[Service]\nProtectClock=yes\n# /etc/systemd/system/a.service.d/1.conf\n[Service]\n\
         DynamicUser=\nProtectClock=no\n# /etc/systemd/system/a.service.d/2.conf\n[Service]\n\
         RestrictAddressFamilies='af_inet' \"AF_UNIX\"";
    let policy = profile::parse(unit, &context).expect("a unit");
    for (name, arg, wanted) in [
        ("clock_settime", 0, Verdict(0x0005_0001)),
        ("socket", 2, Verdict::ALLOW),
        ("socket", 16, Verdict(0x0005_0061)),
    ] {
        let data = SeccompData {
            nr: Abi::X86_64.number(name).expect("a call"),
            arch: Abi::X86_64.audit_arch(),
            args: [arg; 6],
            ..SeccompData::default()
        };
        let verdict = policy.decide(&data).map(|ruling| ruling.verdict);
        assert_eq!(verdict, Some(wanted), "{name} {arg}");
    }
}
