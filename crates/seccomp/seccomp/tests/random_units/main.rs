//! Compares random units with the filters that systemd itself makes of them.
//!
//! The system's systemd runs in namespaces of its own (`start`). TARSIER_SYSTEMD_ROOT names a
//! directory with another system, such as one that debootstrap made. TARSIER_SECCOMP_ROUNDS is the
//! number of units, TARSIER_SECCOMP_SEED the seed of the first one.

#![allow(unreachable_pub)] // Modules of one test binary.

mod generate;
mod manager;
#[path = "../support/mod.rs"]
mod support;

use generate::Unit;
use manager::Systemd;
use seccomp::compile::{compile, Frequencies};
use seccomp::policy::Abi;
use seccomp::profile::{self, systemd, Context};
use seccomp::{Action, Chain, Filter, SeccompData, Verdict};
use std::collections::BTreeSet;
use support::Rng;

/// Calls whose arguments systemd compares.
const WITH_ARGUMENTS: [&str; 23] = [
    "personality",
    "clone",
    "unshare",
    "setns",
    "socket",
    "mmap",
    "mmap2",
    "mprotect",
    "pkey_mprotect",
    "shmat",
    "sched_setscheduler",
    "chmod",
    "fchmod",
    "fchmodat",
    "fchmodat2",
    "mkdir",
    "mkdirat",
    "mknod",
    "mknodat",
    "creat",
    "open",
    "openat",
    "clone3",
];

/// The verdict on calls that systemd does not know.
const NO_CALL: Verdict = Verdict::new(Action::Errno, libc::ENOSYS as u16);

/// Bits and values that conditions use, and their neighbours; seldom with upper halves.
fn value(rng: &mut Rng) -> u64 {
    let low = match rng.below(5) {
        0 => rng.below(48) as u64,
        1 => 1 << rng.below(32),
        2 => rng.pick(&[
            0o4100,
            0o2100,
            0o4755,
            0o2755,
            0o6000,
            0x7e02_0000,
            0xffff_ffff,
            6,
            7,
            8,
        ]),
        3 => 1 << rng.below(32) | 1 << rng.below(32),
        _ => rng.next() & 0xffff_ffff & rng.next(),
    };
    low | rng.pick(&[0, 0, 0, 0, 0, 1 << 32, 0xffff_ffff << 32])
}

/// Calls that are not compared: those that other versions of the sets have, and those that
/// systemd's libseccomp does not know.
fn not_compared(systemd: &Systemd) -> BTreeSet<String> {
    let mut skipped = BTreeSet::new();
    for name in systemd::set_names() {
        let ours = systemd::set(name).unwrap_or_default();
        let ours: BTreeSet<String> = ours.into_iter().map(str::to_owned).collect();
        let theirs = systemd.sets.get(name).cloned().unwrap_or_default();
        skipped.extend(ours.symmetric_difference(&theirs).cloned());
    }
    let names = Abi::X86_64.family().iter().flat_map(|abi| abi.calls());
    let names: BTreeSet<&str> = names.map(|row| row.1).collect();
    // libseccomp 2.5.4 knows the last one, but not on x32.
    let unknown =
        |name: &&str| !systemd.knows(name) || systemd.version < 257 && *name == "map_shadow_stack";
    let unknown = names.into_iter().filter(unknown);
    skipped.extend(unknown.map(str::to_owned));
    skipped
}

struct Comparison<'a> {
    unit: &'a Unit,
    /// Calls that are not compared.
    skipped: &'a BTreeSet<String>,
    /// Whether systemd is older than version 257, whose units are read.
    is_old: bool,
    seen: &'a mut Seen,
}

/// Numbers of what was compared.
#[derive(Debug, Default)]
struct Seen {
    not_started: u64,
    filters: u64,
    calls: u64,
    denied: u64,
    wrong: Vec<String>,
}

impl Comparison<'_> {
    /// Compares what is made here of the unit with what systemd made of it: its filters, or what it
    /// wrote before it gave up.
    fn compare(&mut self, theirs: &Result<Chain, String>) {
        let context = Context::docker(Abi::X86_64, (6, 18));
        let ours = match profile::parse(&self.unit.cat(), &context) {
            Ok(policy) => Ok(Some(
                compile(&policy, &Frequencies::usual()).expect("compiles"),
            )),
            Err(error) => match error.to_string() {
                text if text.contains("no directive that restricts") => Ok(None),
                text => Err(text),
            },
        };

        match (ours, theirs) {
            (Ok(ours), Ok(theirs)) => {
                self.seen.filters += theirs.filters().len() as u64;
                self.compare_calls(ours.as_ref(), theirs);
            }
            (Err(error), Err(_)) if error.contains("systemd does not start") => {
                self.seen.not_started += 1;
            }
            // Of a list, calls with the errno of those that are not listed stop version 252, but not
            // 257, and the other way round.
            _ if self.is_old && self.unit.cat().contains("SystemCallFilter") => {
                self.seen.not_started += 1;
            }
            (Ok(_), Err(written)) => self.wrong(format!("systemd does not start it: {written}")),
            (Err(error), _) => self.wrong(error),
        }
    }

    fn wrong(&mut self, what: String) {
        self.seen.wrong.push(format!("{what}\n{}", self.unit.cat()));
    }

    /// Compares every call of every ABI that systemd makes filters for.
    fn compare_calls(&mut self, ours: Option<&Filter>, theirs: &Chain) {
        let mut rng = Rng(theirs.insns() as u64);
        for &abi in Abi::X86_64.family() {
            let unknown =
                [1000, 0x3fff_ffff].map(|nr| (nr | u32::from(abi == Abi::X32) << 30, "?"));
            let numbers = abi.calls().chain(unknown);
            for (nr, name) in numbers.filter(|row| !self.skipped.contains(row.1)) {
                let points = if WITH_ARGUMENTS.contains(&name) {
                    40
                } else {
                    1
                };
                for _ in 0..points {
                    let data = SeccompData {
                        nr,
                        arch: abi.audit_arch(),
                        args: std::array::from_fn(|_| value(&mut rng)),
                        ..SeccompData::default()
                    };
                    let ours = ours.map_or(Verdict::ALLOW, |filter| filter.run(&data).verdict);
                    let theirs = theirs.run(&data).verdict;
                    self.seen.calls += 1;
                    self.seen.denied += u64::from(theirs != Verdict::ALLOW);
                    if ours != theirs && !self.is_listed(name, &data, ours, theirs) {
                        let args = data.args;
                        return self.wrong(format!(
                            "{name} on {abi:?} {args:x?}: {ours}, systemd {theirs}"
                        ));
                    }
                }
            }
        }
    }

    /// Whether it is known why systemd decides otherwise (docs/decisions/0009-seccomp-policies.md).
    fn is_listed(&self, name: &str, data: &SeccompData, ours: Verdict, theirs: Verdict) -> bool {
        // Version 252 refuses calls that it does not know like those that are not listed, and write.
        // A list of none that it knows logs nothing.
        let is_log = ours.action() == Action::Log && theirs == Verdict::ALLOW;
        let is_newer = ours == NO_CALL && theirs != Verdict::ALLOW;
        if self.is_old && (is_newer || is_log || name == "write") {
            return true;
        }
        // A list may have ipc, and not the calls that it stands for, which libseccomp does not
        // recognise with a version in the upper bits of their number.
        if ["ipc", "socketcall"].contains(&name) {
            let has_version = name == "ipc" && data.args[0] & 0xffff_0000 != 0;
            return has_version || ours.order() < theirs.order();
        }
        // libseccomp compares upper halves that the kernel drops, or ignores those of x32.
        let is_wide = data.args.iter().any(|arg| arg >> 32 != 0);
        is_wide && WITH_ARGUMENTS.contains(&name) && ours.order() < theirs.order()
    }
}

/// Units that `tarsier seccomp write` makes of profiles.
fn written() -> Vec<Unit> {
    const DENIES: &str = r#"{"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [
        {"names": ["mount", "clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": 38},
        {"names": ["ptrace"], "action": "SCMP_ACT_KILL_PROCESS"}]}"#;
    let context = Context::docker(Abi::X86_64, (6, 18));
    let texts = [profile::DOCKER_DEFAULT, DENIES].into_iter().enumerate();
    let units = texts.map(|(index, text)| {
        let oci = profile::convert::to_oci(text, &context).expect("a profile");
        let (unit, _) = profile::convert::to_unit(&oci, &context).expect("it can be said");
        Unit::new(format!("written{index}"), &unit)
    });
    units.collect()
}

#[test]
fn random_units_decide_as_the_filters_of_systemd() {
    let seeds = support::seeds(testkit::times(60, 600));
    let rounds = seeds.end - seeds.start;
    let root = std::env::var("TARSIER_SYSTEMD_ROOT").unwrap_or_else(|_| "/".to_owned());
    let systemd = match Systemd::find(&root) {
        Ok(systemd) => systemd,
        Err(reason) => return println!("skipped: filters of systemd: {reason}"),
    };

    let mut units: Vec<Unit> = seeds.map(Unit::random).collect();
    units.extend(written());
    let skipped = not_compared(&systemd);
    let mut seen = Seen::default();
    for (unit, chain) in units.iter().zip(systemd.filters(&units)) {
        let mut comparison = Comparison {
            unit,
            skipped: &skipped,
            is_old: systemd.version < 257,
            seen: &mut seen,
        };
        comparison.compare(&chain);
    }

    let wrong = std::mem::take(&mut seen.wrong);
    let names = skipped.len();
    println!(
        "systemd {}: {rounds} units, {names} names not compared: {seen:?}",
        systemd.version
    );
    let shown: Vec<&str> = wrong.iter().take(20).map(String::as_str).collect();
    assert!(
        wrong.is_empty(),
        "{} wrong units:\n{}",
        wrong.len(),
        shown.join("\n")
    );
    assert!(seen.filters > rounds && seen.denied > rounds * 100 && seen.not_started < rounds / 4);
}
