//! The cases of libseccomp's own regression tests (form bpf-sim): its filters, and the verdicts
//! that they must give.
//!
//! For every such test of libseccomp 2.5.4, tests/data/libseccomp-cases.txt has the program that it
//! generates on x86-64 (`filter NAME`, then one instruction in hex per line), and its cases: `case
//! ARCH FIRST-NR LAST-NR ARG0 … ARG5 VERDICT`, with arguments in hex, and `a-b` for all values from
//! a to b.

use seccomp::{text, Action, Chain, Filter, SeccompData, Verdict};

struct Case {
    arch: u32,
    nrs: std::ops::RangeInclusive<i64>,
    args: Vec<(u64, u64)>,
    verdict: Verdict,
}

fn verdict(text: &str) -> Verdict {
    let (name, data) = match text.split_once('(') {
        Some((name, rest)) => (name, rest.trim_end_matches(')').parse().unwrap()),
        None => (text, 0),
    };
    let name = if name == "KILL" { "KILL_THREAD" } else { name };
    let action = Action::EVERY
        .into_iter()
        .find(|action| action.name() == name);
    Verdict::new(action.unwrap(), data)
}

fn case(line: &str) -> Case {
    let words: Vec<&str> = line.split(' ').collect();
    let hex = |text: &str| u64::from_str_radix(text, 16).unwrap();
    let args = words[3..9].iter().map(|word| match word.split_once('-') {
        Some((first, last)) => (hex(first), hex(last)),
        None => (hex(word), hex(word)),
    });
    Case {
        arch: hex(words[0]) as u32,
        nrs: words[1].parse().unwrap()..=words[2].parse().unwrap(),
        args: args.collect(),
        verdict: verdict(words[9]),
    }
}

/// All calls of a case.
fn calls(case: &Case) -> Vec<SeccompData> {
    let mut calls: Vec<SeccompData> = case
        .nrs
        .clone()
        .map(|nr| SeccompData {
            nr: nr as u32,
            arch: case.arch,
            ..SeccompData::default()
        })
        .collect();
    for (index, &(first, last)) in case.args.iter().enumerate() {
        let with = |data: &SeccompData, value| {
            let mut data = *data;
            data.args[index] = value;
            data
        };
        calls = calls
            .iter()
            .flat_map(|data| (first..=last).map(move |value| with(data, value)))
            .collect();
    }
    calls
}

#[test]
fn filters_of_libseccomp_give_the_verdicts_that_its_own_tests_expect() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/data/libseccomp-cases.txt"
    );
    let content = std::fs::read_to_string(path).unwrap();
    let mut checked = 0;
    for part in content.split("filter ").skip(1) {
        let (name, rest) = part.split_once('\n').unwrap();
        let (cases, program): (Vec<&str>, Vec<&str>) =
            rest.lines().partition(|line| line.starts_with("case "));
        let filter: Filter = text::from_hex(&program.join("\n")).unwrap();
        let shorter = seccomp::optimise(&filter, &seccomp::Weights::default()).unwrap();
        let chains: Vec<Chain> = [Some(filter), shorter]
            .into_iter()
            .flatten()
            .map(Chain::from)
            .collect();
        for line in cases {
            let case = case(&line["case ".len()..]);
            for data in calls(&case) {
                for chain in &chains {
                    let verdict = chain.run(&data).verdict;
                    assert_eq!(verdict, case.verdict, "{name}: {line}: {data:x?}");
                }
                checked += 1;
            }
        }
    }
    assert_eq!(checked, CASES);
}

/// Number of calls in the file.
const CASES: usize = 7263;
