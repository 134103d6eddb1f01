//! The rules that the programs of libseccomp's regression tests add, as profiles.
//!
//! tests/data/libseccomp-programs.txt has them: `program NAME DEFAULT`, then a line for each rule:
//! action, call, conditions (`a0==0x1`, `a2&MASK==VALUE`).

use crate::generate::{Condition, Entry, Op, Profile};
use seccomp::policy::Abi;
use seccomp::{Action, Verdict};

const FILE: &str = include_str!("../data/libseccomp-programs.txt");

fn verdict(text: &str) -> Verdict {
    let (name, data) = match text.split_once('(') {
        Some((name, rest)) => (name, rest.trim_end_matches(')').parse().expect("a number")),
        None => (text, 0),
    };
    let action = Action::EVERY
        .into_iter()
        .find(|action| action.name() == name);
    Verdict::new(action.expect(name), data)
}

fn number(text: &str) -> u64 {
    let digits = text.strip_prefix("0x").expect(text);
    u64::from_str_radix(digits, 16).expect(text)
}

fn condition(text: &str) -> Condition {
    const OPS: [(&str, Op); 6] = [
        ("!=", Op::Ne),
        ("<=", Op::Le),
        (">=", Op::Ge),
        ("==", Op::Eq),
        ("<", Op::Lt),
        (">", Op::Gt),
    ];
    let arg = text[1..2].parse().expect("an argument");
    if let Some((mask, value)) = text[2..]
        .strip_prefix('&')
        .and_then(|it| it.split_once("=="))
    {
        return Condition {
            arg,
            op: Op::MaskedEq,
            value: number(mask),
            second: number(value),
        };
    }
    let starts = |row: &&(&str, Op)| text[2..].starts_with(row.0);
    let (sign, op) = OPS.iter().find(starts).expect(text);
    Condition {
        arg,
        op: *op,
        value: number(&text[2 + sign.len()..]),
        second: 0,
    }
}

/// Each program, with its rules for `abi` beside the native one.
pub fn all(abi: Abi) -> impl Iterator<Item = (&'static str, Profile)> {
    FILE.split("program ").skip(1).map(move |text| {
        let (head, rules) = text.split_once('\n').expect("lines");
        let (name, default) = head.split_once(' ').expect("a name and a verdict");
        let entries = rules.lines().map(|line| {
            let mut words = line.split(' ');
            let action = words.next().expect("an action");
            let call = words.next().expect("a call");
            Entry::always(call, verdict(action), words.map(condition).collect())
        });
        let mut abis = vec![Abi::X86_64, abi];
        abis.dedup();
        let profile = Profile {
            default: verdict(default),
            abis,
            entries: entries.collect(),
        };
        (name, profile)
    })
}
