//! Compares random profiles with what they say, and with the filters that runc would make of them
//! by libseccomp: equal but for what decision 0009 lists, and never weaker than what is written.
//!
//! TARSIER_LIBSECCOMP names another library than the system's, TARSIER_SECCOMP_ROUNDS the number
//! of profiles, TARSIER_SECCOMP_SEED the seed of the first one.

#![allow(unreachable_pub)] // Modules of one test binary.

mod generate;
mod library;
mod model;
mod programs;
mod ranges;
#[path = "../support/mod.rs"]
mod support;

use generate::Profile;
use library::{Library, Made, SECONDS_MAX};
use model::{Kind, Rules};
use seccomp::compile::{compile, Frequencies};
use seccomp::policy::Abi;
use seccomp::profile::{self, Context};
use seccomp::{prove_equal, Filter, Proof, SeccompData, Verdict};
use std::collections::BTreeMap;
use std::io::Write;
use support::Rng;

/// Calls on which the library answers otherwise.
#[derive(Debug, Default)]
struct Seen {
    stricter: u64,
    weaker: u64,
}

/// What a run of profiles came to.
#[derive(Debug, Default)]
struct Outcome {
    profiles: u64,
    /// Profiles that the library does not take.
    refused: u64,
    /// Profiles for which the library needs too long, so that nothing says what it would decide.
    late: u64,
    seen: BTreeMap<Kind, Seen>,
}

impl Outcome {
    /// What the library makes of a profile.
    fn filter(&mut self, library: &Library, profile: &Profile) -> Option<Filter> {
        match library.filter(profile) {
            Made::Filter(filter) => return Some(filter),
            Made::Refused => self.refused += 1,
            Made::Late => {
                self.late += 1;
                // Not by a macro, whose output a test that passes does not show.
                let _ = writeln!(
                    std::io::stderr(),
                    "not compared: libseccomp {:?} has no filter after {SECONDS_MAX} s for {}",
                    library.version,
                    profile.json()
                );
            }
        }
        None
    }

    /// Few profiles may stay without the library's answer.
    fn check(&self) {
        println!("{self:?}");
        assert!(self.refused <= 2 + self.profiles / 10, "{self:?}");
        assert!(self.late <= 1 + self.profiles / 1000, "{self:?}");
    }
}

/// Values near those of the rules' conditions.
fn args(rng: &mut Rng, rules: &Rules) -> [u64; 6] {
    let conditions: Vec<_> = rules.list.iter().flat_map(|rule| &rule.0).collect();
    let mut args = [0; 6];
    for (index, arg) in args.iter_mut().enumerate() {
        let own: Vec<_> = conditions.iter().filter(|it| it.arg == index).collect();
        if own.is_empty() {
            continue;
        }
        let condition = own[rng.below(own.len())];
        let base = match rng.below(4) {
            0 => condition.second & condition.value,
            1 => condition.second | !condition.value,
            _ => condition.value,
        };
        *arg = match rng.below(8) {
            0 => base.wrapping_add(1),
            1 => base.wrapping_sub(1),
            2 => base ^ 1 << rng.below(64),
            3 => base & 0xffff_ffff,
            4 => rng.next() >> rng.below(64),
            _ => base,
        };
    }
    args
}

/// Lengths of filters that are proven to decide alike, in instructions.
#[derive(Debug, Default)]
struct Lengths {
    equal: usize,
    ours: usize,
    theirs: usize,
    /// Profiles whose filter is longer here, and by how much at most.
    longer: usize,
    most_longer: usize,
    /// Profiles that decide otherwise: their number, the length of their filters here and of the library's.
    others: [usize; 3],
}

impl Lengths {
    fn count(&mut self, ours: &Filter, theirs: &Filter) {
        let proof = prove_equal(&ours.clone().into(), &theirs.clone().into());
        let (own, other) = (ours.insns().len(), theirs.insns().len());
        if !matches!(proof, Ok(Proof::Equal)) {
            let [count, all_own, all_other] = self.others;
            self.others = [count + 1, all_own + own, all_other + other];
            return;
        }
        self.equal += 1;
        self.ours += own;
        self.theirs += other;
        self.longer += usize::from(own > other);
        self.most_longer = self.most_longer.max(own.saturating_sub(other));
    }
}

struct Comparison<'a> {
    profile: &'a Profile,
    ours: Filter,
    theirs: Option<Filter>,
    library: Option<&'a Library>,
    outcome: &'a mut Outcome,
}

impl Comparison<'_> {
    fn compare(&mut self, abi: Abi, name: &str, args: [u64; 6]) {
        let Some(nr) = abi.number(name) else { return };
        // The kernel takes 32 bits from programs of these ABIs.
        let args = match abi {
            Abi::I386 | Abi::Arm => args.map(|arg| arg & 0xffff_ffff),
            _ => args,
        };
        let data = SeccompData {
            nr,
            arch: abi.audit_arch(),
            args,
            ..SeccompData::default()
        };
        let rules = Rules::new(self.profile, abi, name);
        let ours = self.ours.run(&data).verdict;
        let wanted = rules.verdicts(args);
        let place = || format!("{abi:?} {name}({args:x?}) in {}", self.profile.json());
        if rules.is_multiplexed() {
            assert!(
                name == "socketcall" || name == "ipc" || ours.order() <= wanted[0].order(),
                "weaker: {ours}, not {wanted:?}: {}",
                place()
            );
        } else {
            assert!(
                wanted.contains(&ours),
                "{ours}, not {wanted:?}: {}",
                place()
            );
        }
        let Some(theirs) = self.theirs.as_ref().map(|filter| filter.run(&data).verdict) else {
            return;
        };
        if ours == theirs {
            return;
        }
        let is_known = self.library.is_some_and(|library| library.knows(name));
        let kinds = rules.kinds(args, theirs, is_known);
        let is_weaker = ours.order() > theirs.order();
        let listed = kinds
            .iter()
            .find(|kind| !is_weaker || kind.may_be_stricter());
        let listed = listed.unwrap_or_else(|| panic!("{ours}, libseccomp {theirs}: {}", place()));
        let seen = self.outcome.seen.entry(*listed).or_default();
        seen.weaker += u64::from(is_weaker);
        seen.stricter += u64::from(!is_weaker);
    }
}

fn context() -> Context {
    Context {
        enosys: false,
        ..Context::docker(Abi::X86_64, (6, 18))
    }
}

fn library() -> Option<Library> {
    let named = std::env::var("TARSIER_LIBSECCOMP");
    let library = Library::open(named.as_deref().unwrap_or("libseccomp.so.2"));
    assert!(
        named.is_err() || library.is_some(),
        "{named:?} cannot be loaded"
    );
    library
}

impl<'a> Comparison<'a> {
    fn new(
        profile: &'a Profile,
        library: Option<&'a Library>,
        outcome: &'a mut Outcome,
    ) -> Comparison<'a> {
        let text = profile.json();
        let fail = |error: &dyn std::fmt::Display| -> ! { panic!("{error}: {text}") };
        let policy = profile::parse(&text, &context()).unwrap_or_else(|error| fail(&error));
        let ours = compile(&policy, &Frequencies::usual()).unwrap_or_else(|error| fail(&error));
        outcome.profiles += 1;
        Comparison {
            ours,
            theirs: library.and_then(|library| outcome.filter(library, profile)),
            profile,
            library,
            outcome,
        }
    }

    /// Compares calls by these names on every ABI; the number of calls.
    fn compare_all(&mut self, names: &[&str], rng: &mut Rng) -> u64 {
        let mut compared = 0;
        for abi in Abi::EVERY {
            if !self.profile.abis.contains(&abi) {
                let data = SeccompData {
                    nr: 1 | u32::from(abi == Abi::X32) << 30,
                    arch: abi.audit_arch(),
                    ..SeccompData::default()
                };
                let verdict = self.ours.run(&data).verdict;
                assert_eq!(verdict, Verdict(0), "{abi:?} {}", self.profile.json());
                continue;
            }
            for name in names {
                let rules = Rules::new(self.profile, abi, name);
                let points = if rules.list.iter().any(|rule| !rule.0.is_empty()) {
                    60
                } else {
                    1
                };
                for _ in 0..points {
                    self.compare(abi, name, args(rng, &rules));
                    compared += 1;
                }
            }
        }
        compared
    }
}

#[test]
fn random_profiles_say_what_is_written_and_libseccomp_differs_in_listed_ways_only() {
    let seeds = support::seeds(testkit::times(150, 1500));
    let rounds = seeds.end - seeds.start;
    let library = library();
    let mut outcome = Outcome::default();
    let mut compared = 0;
    let mut lengths = Lengths::default();
    for seed in seeds {
        let mut rng = Rng(seed);
        let profile = Profile::random(&mut rng);
        let mut comparison = Comparison::new(&profile, library.as_ref(), &mut outcome);
        compared += comparison.compare_all(&generate::NAMES, &mut rng);
        if let Some(theirs) = &comparison.theirs {
            lengths.count(&comparison.ours, theirs);
        }
    }
    println!("{lengths:?}");
    println!("{compared} calls; {:?}", library.map(|it| it.version));
    outcome.check();
    assert!(compared > rounds * 40);
    // Of 15,418 that decide alike, none was longer (decision 0073).
    assert!(lengths.longer <= lengths.equal / 1000, "{lengths:?}");
}

#[test]
fn filters_of_random_ranges_are_no_longer_than_libseccomps_that_decide_alike() {
    let library = library();
    let mut outcome = Outcome::default();
    let mut lengths = Lengths::default();
    for seed in support::seeds(testkit::times(50, 500)) {
        let mut rng = Rng(seed);
        let profile = ranges::random(&mut rng);
        let mut comparison = Comparison::new(&profile, library.as_ref(), &mut outcome);
        let compared = comparison.compare_all(&ranges::CALLS, &mut rng);
        assert!(compared > 60, "{}", profile.json());
        if let Some(theirs) = &comparison.theirs {
            lengths.count(&comparison.ours, theirs);
        }
    }
    println!("{lengths:?}");
    outcome.check();
    assert!(library.is_none() || lengths.equal > 10, "{lengths:?}");
    assert_eq!(lengths.longer, 0, "{lengths:?}");
}

#[test]
fn the_rules_of_libseccomps_own_programs_are_what_they_say_on_every_abi() {
    let library = library();
    let mut rng = Rng(43);
    for abi in Abi::EVERY {
        let mut programs = 0;
        for (name, profile) in programs::all(abi) {
            let mut outcome = Outcome::default();
            let mut comparison = Comparison::new(&profile, library.as_ref(), &mut outcome);
            let mut names: Vec<&str> = profile.entries.iter().map(|it| it.names[0]).collect();
            names.extend(generate::NAMES);
            names.sort();
            names.dedup();
            let compared = comparison.compare_all(&names, &mut rng);
            assert!(compared > 0, "{name}");
            // Of x32, libseccomp compares half of the registers.
            let seen = &outcome.seen;
            let is_listed = abi == Abi::X32 && seen.values().all(|seen| seen.weaker == 0);
            assert!(seen.is_empty() || is_listed, "{name} {abi:?}: {seen:?}");
            assert_eq!(outcome.late, 0, "{name} {abi:?}");
            programs += 1;
        }
        assert_eq!(programs, 44);
    }
}
