//! The programs' definition of the tables, crates/kernel/bpf/programs/tables.h, agrees with ours.

use plan::tables::{self, Row};
use plan::{BitOp, Fact, Shape, ShapeKind, FACTS};
use std::collections::BTreeMap;

fn header() -> String {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../kernel/bpf/programs/tables.h"
    );
    std::fs::read_to_string(path).expect("tables.h is where it was")
}

/// The values of `#define NAME number` and of enumerators, and the enumerators in their order.
fn constants(text: &str) -> (BTreeMap<String, u32>, Vec<String>) {
    let mut values = BTreeMap::new();
    let mut order = Vec::new();
    let mut text = text.to_owned();
    while let (Some(start), Some(end)) = (text.find("/*"), text.find("*/")) {
        text.replace_range(start..end + 2, "");
    }
    for line in text.lines() {
        if let Some(define) = line.strip_prefix("#define ") {
            let mut words = define.split_whitespace();
            if let (Some(name), Some(value)) = (words.next(), words.next()) {
                let known = values.get(value).copied();
                if let Some(value) = value.parse().ok().or(known) {
                    values.insert(name.to_owned(), value);
                }
            }
        }
    }
    for body in text
        .split("enum ")
        .skip(1)
        .filter_map(|rest| rest.split_once('{'))
    {
        let mut next = 0;
        let body = body.1.split_once('}').map_or("", |body| body.0);
        for item in body
            .split(',')
            .map(str::trim)
            .filter(|item| !item.is_empty())
        {
            let (name, value) = item.split_once('=').unwrap_or((item, ""));
            next = value.trim().parse().unwrap_or(next);
            values.insert(name.trim().to_owned(), next);
            order.push(name.trim().to_owned());
            next += 1;
        }
    }
    (values, order)
}

/// Flags of a spec.
const FLAGS: [(&str, u8); 8] = [
    ("SPEC_SOCKADDR_LEN_PTR", tables::SPEC_SOCKADDR_LEN_PTR),
    ("SPEC_MSGHDR", tables::SPEC_MSGHDR),
    ("SPEC_REMOVES", tables::SPEC_REMOVES),
    ("SPEC_SOCKADDR_OUT", tables::SPEC_SOCKADDR_OUT),
    ("SPEC_TARGET_PIDFD", tables::SPEC_TARGET_PIDFD),
    ("SPEC_TEXT_FIRST", tables::SPEC_TEXT_FIRST),
    ("SPEC_ENTRY_FIRST", tables::SPEC_ENTRY_FIRST),
    ("SPEC_ENTRY_SECOND", tables::SPEC_ENTRY_SECOND),
];

const KINDS: [(&str, ShapeKind); 14] = [
    ("KIND_PLAIN", ShapeKind::Plain),
    ("KIND_OPEN", ShapeKind::Open),
    ("KIND_EXEC", ShapeKind::Exec),
    ("KIND_FORK", ShapeKind::Fork),
    ("KIND_EXIT", ShapeKind::Exit),
    ("KIND_CAPSET", ShapeKind::Capset),
    ("KIND_SOCKETCALL", ShapeKind::Socketcall),
    ("KIND_BPF", ShapeKind::Bpf),
    ("KIND_MODULE", ShapeKind::Module),
    ("KIND_MESSAGES", ShapeKind::Messages),
    ("KIND_MOUNT", ShapeKind::Mount),
    ("KIND_FSCONFIG", ShapeKind::Fsconfig),
    ("KIND_RENAME", ShapeKind::Rename),
    ("KIND_LOST", ShapeKind::Lost),
];

#[test]
fn every_constant_of_the_header_has_the_value_it_has_here() {
    let (mut values, order) = constants(&header());
    let mut expected: BTreeMap<String, u32> = [
        ("TABLE_ROWS", tables::ROWS as u32),
        ("TABLE_CALLS", tables::CALLS as u32),
        ("TABLE_ARCHES", tables::ENTRIES as u32),
        ("TABLE_INDEX", tables::INDEX as u32),
        ("TABLE_TASK_LIST", tables::TASK_LIST as u32),
        ("TABLE_MARKS", tables::MARKS as u32),
        ("TABLE_EXECUTABLES", tables::EXECUTABLES as u32),
        ("TABLE_MARK_FILTER", tables::MARK_FILTER as u32),
        ("TABLE_MARK_KEY", tables::MARK_KEY as u32),
        ("TABLE_SPEC_ONLY_MARKED", tables::SPEC_ONLY_MARKED),
        ("TABLE_GATE_LATER", tables::GATE_LATER),
        ("TABLE_MARK_PROBES", tables::MARK_PROBES),
        ("TABLE_MARK_PROOF_BIT", tables::MARK_PROOF_BIT),
        ("TABLE_MARK_KERNEL_BIT", tables::MARK_KERNEL_BIT),
        ("TABLE_PAGES_MAX", tables::PAGES_MAX as u32),
        ("TABLE_LOOKUPS_MAX", tables::LOOKUPS_MAX as u32),
        ("TABLE_ENTRIES_MAX", tables::ENTRIES_MAX as u32),
        (
            "TABLE_SUMMARY_ENTRIES_MAX",
            tables::SUMMARY_ENTRIES_MAX as u32,
        ),
        ("TABLE_UNDECIDED_MAX", tables::PAGES_MAX as u32),
        ("PAGE_LOOKUPS", tables::PAGE_HEAD as u32),
        ("LOOKUP_RANGES", tables::LOOKUP_RANGES),
        ("LOOKUP_BITS", tables::LOOKUP_BITS),
        ("LOOKUP_ANY_OF", tables::LOOKUP_ANY_OF),
        ("LOOKUP_NONE_OF", tables::LOOKUP_NONE_OF),
        ("LOOKUP_MARKS", tables::LOOKUP_MARKS),
        ("BIT_ANY", BitOp::Any as u32),
        ("BIT_ALL", BitOp::All as u32),
        ("BIT_NONE", BitOp::None as u32),
        ("GATE_OPEN", 0),
        ("FACTS", FACTS as u32),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into();
    expected.extend(FLAGS.map(|(name, value)| (name.to_owned(), value.into())));
    expected.extend(KINDS.map(|(name, kind)| (name.to_owned(), kind as u32)));
    for fact in Fact::EVERY {
        expected.insert(format!("FACT_{}", in_capitals(fact)), fact as u32);
    }
    // Constants that only the programs use.
    let steps = values
        .remove("TABLE_SEARCH_STEPS")
        .expect("the search has steps");
    assert!(
        tables::SUMMARY_ENTRIES_MAX <= 1 << steps,
        "{steps} steps do not reach every entry"
    );
    assert_eq!(values, expected);
    let facts: Vec<_> = order
        .iter()
        .filter(|name| name.starts_with("FACT_"))
        .collect();
    assert_eq!(facts.len(), FACTS);
}

/// The name of a fact as the header spells it, such as SADDR_FAM for `SaddrFam`.
fn in_capitals(fact: Fact) -> String {
    let mut name = String::new();
    for letter in format!("{fact:?}").chars() {
        if letter.is_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.push(letter.to_ascii_uppercase());
    }
    name
}

/// The members of `struct table_spec`, in order, with their sizes in bytes.
fn spec_members() -> Vec<(String, usize)> {
    let header = header();
    let body = header
        .split_once("struct table_spec {")
        .expect("the struct is there")
        .1;
    let body = body.split_once('}').expect("it ends").0;
    body.lines()
        .filter_map(|line| line.trim().strip_prefix("__u8 "))
        .map(|line| line.split_once(';').expect("a member ends").0)
        .map(|member| match member.split_once('[') {
            Some((name, size)) => (name.to_owned(), size.trim_end_matches(']').parse().unwrap()),
            None => (member.to_owned(), 1),
        })
        .collect()
}

#[test]
fn specs_have_the_layout_of_the_header() {
    let shape = Shape {
        kind: ShapeKind::Capset,
        fd: 13,
        sockaddr: 14,
        sockaddr_len: 15,
        len_is_pointer: true,
        msghdr: false,
        sockaddr_out: true,
        fd_pair: 16,
        target: 17,
        target_is_fd: true,
        how: 18,
        module: 19,
        open_flags: 20,
        memory: 21,
        memory_len: 22,
        paths: abi::call("renameat2").shape.paths,
    };
    let values = |member: &str| match member {
        "path" => vec![1, 3],
        "dir" => vec![0, 2],
        "fd" => vec![13],
        "sockaddr" => vec![14],
        "sockaddr_len" => vec![15],
        "fd_pair" => vec![16],
        "target" => vec![17],
        "how" => vec![18],
        "module" => vec![19],
        "kind" => vec![ShapeKind::Capset as u8],
        "flags" => vec![
            tables::SPEC_SOCKADDR_LEN_PTR
                | tables::SPEC_SOCKADDR_OUT
                | tables::SPEC_TARGET_PIDFD
                | tables::SPEC_ENTRY_FIRST
                | tables::SPEC_ENTRY_SECOND,
        ],
        "open_flags" => vec![20],
        "memory" => vec![21],
        "memory_len" => vec![22],
        other => panic!("the tables do not fill {other}"),
    };
    let expected: Vec<u8> = spec_members()
        .iter()
        .flat_map(|(name, size)| {
            let bytes = values(name);
            assert_eq!(bytes.len(), *size, "{name}");
            bytes
        })
        .collect();
    assert_eq!(tables::spec_bytes(&shape).to_vec(), expected);
    assert_eq!(expected.len(), size_of::<Row>());
}
