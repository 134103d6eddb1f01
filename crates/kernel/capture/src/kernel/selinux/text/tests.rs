//! Labels read from memory that is made here.

use super::*;
use crate::kernel::selinux::layout::{Bits, Context, Rows};
use std::cell::RefCell;
use std::collections::BTreeMap;

const POLICY: u64 = 0x1000;
const TABLE: u64 = 0x2000;

/// Memory by address; what was not written cannot be read, except that words of some structures are 0.
#[derive(Default)]
struct Made(RefCell<BTreeMap<u64, u8>>);

impl ReadMemory for Made {
    fn bytes(&self, address: u64, len: usize) -> Option<Vec<u8>> {
        let bytes = self.0.borrow();
        let first = *bytes.get(&address)?;
        let rest = (address + 1..address + len as u64).map(|at| *bytes.get(&at).unwrap_or(&0));
        Some(std::iter::once(first).chain(rest).collect())
    }
}

impl Made {
    fn put(&self, at: u64, bytes: &[u8]) {
        self.0
            .borrow_mut()
            .extend((at..).zip(bytes.iter().copied()));
    }

    fn number(&self, at: u64, number: u32) {
        self.put(at, &number.to_ne_bytes());
    }

    fn pointer(&self, at: u64, to: u64) {
        self.put(at, &to.to_ne_bytes());
    }
}

fn layout() -> KernelLayout {
    KernelLayout {
        cred: 0,
        parent: 0,
        fs: 0,
        mm: 0,
        exe: 0,
        inode_of_file: 0,
        security: 0,
        root: 0,
        inode: 0,
        i_security: 0,
        sid_of_cred: 0,
        sid_of_inode: 0,
        back: 0,
        policy: 0,
        loads: 0,
        table: 8,
        has_levels: 16,
        names: 32,
        roots: 0,
        count: 64,
        initial: Rows {
            at: 128,
            count: 4,
            bytes: 136,
        },
        is_set: 0,
        initial_entry: 8,
        entry_bytes: 120,
        sid: 0,
        context: Context {
            user: 8,
            role: 12,
            kind: 16,
            len: 20,
            levels: [24, 48],
        },
        bits: Bits {
            sensitivity: 0,
            first: 8,
            next: 0,
            start: 56,
            map: 8,
            map_bytes: 48,
        },
    }
}

/// A policy with some names of each kind.
fn policy() -> Made {
    let made = Made::default();
    made.pointer(POLICY + 8, TABLE);
    made.number(POLICY + 16, 1);
    let kinds: [(Names, &str); 5] = [
        (Names::Users, "u"),
        (Names::Roles, "r"),
        (Names::Types, "t"),
        (Names::Levels, "s"),
        (Names::Categories, "c"),
    ];
    for (kind, letter) in kinds {
        let list = 0x10_0000 * (1 + kind as u64);
        made.pointer(POLICY + 32 + 8 * kind as u64, list);
        for place in 0..1024 {
            let name = list + 0x8000 + 64 * place;
            made.pointer(list + 8 * place, name);
            made.put(name, format!("{letter}{place}\0").as_bytes());
        }
    }
    made
}

/// Puts an entry at this address; its type is `kind`, its levels have these categories.
fn entry(made: &Made, at: u64, sid: u32, kind: u32, levels: [&[u32]; 2]) {
    made.number(at, sid);
    for (place, number) in [(8, 1), (12, 2), (16, kind), (20, 0)] {
        made.number(at + place, number);
    }
    for (number, categories) in levels.into_iter().enumerate() {
        let level = at + 24 + 24 * number as u64;
        made.number(level, 1);
        let mut from = level + 8;
        for start in (0..1024).step_by(384) {
            let mut words = [0_u64; 6];
            for category in categories.iter().filter(|&&c| c / 384 * 384 == start) {
                let bit = category - start;
                words[bit as usize / 64] |= 1 << (bit % 64);
            }
            if words == [0; 6] {
                continue;
            }
            let node = 0x4000_0000 + at * 64 + 4096 * number as u64 + u64::from(start);
            made.pointer(from, node);
            for (place, word) in (0..).zip(words) {
                made.put(node + 8 + 8 * place, &word.to_ne_bytes());
            }
            made.number(node + 56, start);
            from = node;
        }
        made.pointer(from, 0);
    }
}

fn initial(made: &Made, id: u32, kind: u32) {
    let row = TABLE + 128 + u64::from(id - 1) * 136;
    made.put(row, &[1]);
    entry(made, row + 8, id, kind, [&[], &[]]);
}

fn shown(made: &Made, id: u32) -> Option<String> {
    of(made, &layout(), POLICY, &RefCell::default(), id)
        .map(|text| String::from_utf8(text).unwrap())
}

#[test]
fn levels_are_written_as_the_kernel_writes_them() {
    let cases: [([&[u32]; 2], &str); 6] = [
        ([&[], &[]], "s0"),
        ([&[], &[0, 1, 2]], "s0-s0:c0.c2"),
        ([&[0, 1], &[0, 1]], "s0:c0,c1"),
        ([&[3], &[3, 5, 6, 7, 9]], "s0:c3-s0:c3,c5.c7,c9"),
        ([&[], &[383, 384, 385]], "s0-s0:c383.c385"),
        ([&[1023], &[1, 2, 1023]], "s0:c1023-s0:c1,c2,c1023"),
    ];
    for (levels, text) in cases {
        let made = policy();
        initial(&made, 1, 3);
        entry(&made, TABLE + 136, 1, 3, levels);
        assert_eq!(shown(&made, 1), Some(format!("u0:r1:t2:{text}")));
        made.number(POLICY + 16, 0);
        assert_eq!(shown(&made, 1).as_deref(), Some("u0:r1:t2"));
    }
}

#[test]
fn numbers_are_found_at_every_depth_of_the_table() {
    let (in_leaf, fan) = (4096 / 120, 512);
    let made = policy();
    made.number(TABLE + 64, 40_000);
    // A leaf, a node above leaves, and a node above such nodes.
    for (index, level) in [
        (0, 0),
        (33, 0),
        (34, 1),
        (17_407, 1),
        (17_408, 2),
        (39_999, 2),
    ] {
        let leaf = 0x900_0000 + u64::from(index / in_leaf) * 4096;
        let of_leaf = index / in_leaf;
        let nodes = [0xa00_0000, 0xb00_0000 + u64::from(of_leaf / fan) * 4096];
        match level {
            0 => made.pointer(TABLE, leaf),
            1 => {
                made.pointer(TABLE + 8, nodes[0]);
                made.pointer(nodes[0] + 8 * u64::from(of_leaf), leaf);
            }
            _ => {
                made.pointer(TABLE + 16, nodes[0] + 0x1000);
                made.pointer(nodes[0] + 0x1000 + 8 * u64::from(of_leaf / fan), nodes[1]);
                made.pointer(nodes[1] + 8 * u64::from(of_leaf % fan), leaf);
            }
        }
        let id = 5 + index;
        let kind = 1 + index % 1000;
        let at = leaf + u64::from(index % in_leaf) * 120;
        entry(&made, at, id, kind, [&[], &[]]);
        let expected = format!("u0:r1:t{}:s0", index % 1000);
        assert_eq!(shown(&made, id), Some(expected), "{index}");

        // Another label stands there: the table is being replaced.
        made.number(at, id + 1);
        assert_eq!(shown(&made, id), None);
        made.number(at, id);
    }
    assert_eq!(shown(&made, 5 + 40_000), None);
    assert_eq!(shown(&made, 0), None);
}

#[test]
fn a_label_that_the_policy_does_not_know_is_shown_as_unlabeled() {
    let made = policy();
    initial(&made, 1, 3);
    initial(&made, 3, 7);
    made.put(TABLE + 128 + 136, &[0]);
    assert_eq!(shown(&made, 2).as_deref(), Some("u0:r1:t6:s0"));
    made.number(TABLE + 136 + 20, 9);
    assert_eq!(shown(&made, 1).as_deref(), Some("u0:r1:t6:s0"));
}

#[test]
fn what_is_not_as_expected_has_no_text() {
    let break_it: [fn(&Made); 4] = [
        |made| made.pointer(POLICY + 8, 0),
        |made| made.number(TABLE + 136 + 16, 0),
        |made| made.pointer(POLICY + 32 + 8 * Names::Users as u64, 0x7000_0000),
        // Categories that go round in a circle.
        |made| {
            let node = 0x5000_0000;
            made.pointer(TABLE + 136 + 24 + 8, node);
            made.pointer(node, node);
            made.number(node + 56, 0);
            made.put(node + 8, &[1]);
        },
    ];
    for (place, broken) in break_it.iter().enumerate() {
        let made = policy();
        initial(&made, 1, 3);
        assert!(shown(&made, 1).is_some());
        broken(&made);
        assert_eq!(shown(&made, 1), None, "{place}");
    }
}
