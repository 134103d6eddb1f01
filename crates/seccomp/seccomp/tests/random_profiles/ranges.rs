//! Random profiles of comparisons: bounds, single values and bits of several arguments.

use crate::generate::{Condition, Entry, Op, Profile};
use crate::support::Rng;
use seccomp::policy::Abi;
use seccomp::Verdict;

pub const CALLS: [&str; 6] = ["ioctl", "fcntl", "mmap", "prctl", "clone", "socket"];

/// How many bits values have. Those of one profile are alike, as in files.
fn value(rng: &mut Rng, bits: u32) -> u64 {
    rng.next() >> (64 - bits)
}

fn comparison(rng: &mut Rng, arg: usize, bits: u32) -> Condition {
    let value = value(rng, bits);
    let op = rng.pick(&[
        Op::Lt,
        Op::Le,
        Op::Ge,
        Op::Gt,
        Op::Lt,
        Op::Ge,
        Op::Eq,
        Op::Ne,
        Op::MaskedEq,
    ]);
    let second = match op {
        Op::MaskedEq => value & rng.next(),
        _ => 0,
    };
    Condition {
        arg,
        op,
        value,
        second,
    }
}

/// Up to three arguments, in order.
fn some_arguments(rng: &mut Rng) -> Vec<usize> {
    let chosen = 1 + rng.below(7);
    (0..3).filter(|arg| chosen >> arg & 1 != 0).collect()
}

/// Rules that each compare some arguments with a value.
fn comparisons(rng: &mut Rng, call: &'static str, verdict: Verdict, bits: u32) -> Vec<Entry> {
    let rules = rng.pick(&[1, 2, 3, 4, 8, 24]);
    let entries = (0..rules).map(|_| {
        let arguments = some_arguments(rng).into_iter();
        let conditions = arguments.map(|arg| comparison(rng, arg, bits)).collect();
        Entry::always(call, verdict, conditions)
    });
    entries.collect()
}

/// Rules for the values below a range and for those above it, as one rule takes an argument once.
/// With several commands in the first argument, each has a range of the second.
fn windows(rng: &mut Rng, call: &'static str, verdict: Verdict, bits: u32) -> Vec<Entry> {
    let commands = rng.pick(&[0, 0, 1, 3, 8]);
    let mut entries = Vec::new();
    for command in 0..commands.max(1) {
        let of_command = (commands > 0).then_some(Condition {
            arg: 0,
            op: Op::Eq,
            value: command * 3 + 1,
            second: 0,
        });
        for arg in some_arguments(rng) {
            let arg = arg + usize::from(commands > 0);
            let (one, two) = (value(rng, bits), value(rng, bits));
            for (op, value) in [
                (rng.pick(&[Op::Lt, Op::Le]), one.min(two)),
                (rng.pick(&[Op::Gt, Op::Ge]), one.max(two)),
            ] {
                let bound = Condition {
                    arg,
                    op,
                    value,
                    second: 0,
                };
                let conditions = of_command.into_iter().chain([bound]).collect();
                entries.push(Entry::always(call, verdict, conditions));
            }
        }
    }
    entries
}

pub fn random(rng: &mut Rng) -> Profile {
    let refused = Verdict(0x0005_0001);
    let bits = rng.pick(&[4, 8, 16, 32, 48, 64]);
    let is_windows = rng.chance(40);
    let (default, verdict) = if is_windows || rng.chance(30) {
        (Verdict::ALLOW, refused)
    } else {
        (refused, Verdict::ALLOW)
    };
    let mut entries = Vec::new();
    for call in CALLS.into_iter().take(rng.pick(&[1, 1, 2, 3, 6])) {
        let rules = if is_windows { windows } else { comparisons };
        entries.extend(rules(rng, call, verdict, bits));
    }
    Profile {
        default,
        abis: rng
            .pick(&[
                &[Abi::X86_64][..],
                &[Abi::X86_64],
                &[Abi::X86_64, Abi::X32, Abi::I386],
                &[Abi::X86_64, Abi::Aarch64, Abi::Arm],
            ])
            .to_vec(),
        entries,
    }
}
