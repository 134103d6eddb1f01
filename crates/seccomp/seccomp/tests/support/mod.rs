//! Random filters and calls for the tests; the seed makes a run repeatable.
#![allow(dead_code, unreachable_pub)] // Each test binary uses its part.

use seccomp::{code, Filter, Insn, SeccompData, Verdict};

/// SplitMix64.
pub struct Rng(pub u64);

impl Rng {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
}

/// Seeds of `rounds` cases, or of TARSIER_SECCOMP_ROUNDS, from TARSIER_SECCOMP_SEED on.
pub fn seeds(rounds: u64) -> std::ops::Range<u64> {
    let number = |name: &str, usual| match std::env::var(name) {
        Ok(text) => text
            .parse()
            .unwrap_or_else(|_| panic!("{name} is a number, not {text:?}")),
        Err(_) => usual,
    };
    let first = number("TARSIER_SECCOMP_SEED", 0);
    first..first + number("TARSIER_SECCOMP_ROUNDS", rounds)
}

pub const X86_64: u32 = 0xc000_003e;
pub const I386: u32 = 0x4000_0003;

/// Verdicts that filters return, most often ALLOW.
pub fn random_verdict(rng: &mut Rng) -> u32 {
    const VERDICTS: [u32; 12] = [
        Verdict::ALLOW.0,
        Verdict::ALLOW.0,
        Verdict::ALLOW.0,
        Verdict::ALLOW.0,
        0x0005_0001,
        0x0005_0026,
        0x8000_0000,
        0,
        0x0003_0007,
        0x7ff0_0001,
        0x7ffc_0000,
        0x7fff_0001,
    ];
    rng.pick(&VERDICTS)
}

/// A constant that is worth comparing with.
fn constant(rng: &mut Rng) -> u32 {
    match rng.below(8) {
        0..=3 => rng.below(480) as u32,
        4 => rng.pick(&[X86_64, I386]),
        5 => rng.pick(&[0, 1, 0x4000_0000, 0x7fff_ffff, 0x8000_0000, u32::MAX]),
        6 => 1 << rng.below(32),
        _ => rng.next() as u32,
    }
}

/// A valid filter of at most `max` instructions. With `wild`, it may have every instruction that
/// seccomp accepts; without, only those that real filters have.
pub fn random_filter(rng: &mut Rng, max: usize, wild: bool) -> Filter {
    loop {
        let len = 1 + rng.below(max);
        let mut insns: Vec<Insn> = (0..len - 1)
            .map(|at| random_insn(rng, len - 1 - at, wild))
            .collect();
        insns.push(Insn::new(code::RET_K, random_verdict(rng)));
        if let Ok(filter) = Filter::new(insns) {
            return filter;
        }
    }
}

/// An instruction that is followed by `left` others.
fn random_insn(rng: &mut Rng, left: usize, wild: bool) -> Insn {
    const JUMPS: [u16; 4] = [code::JEQ, code::JGT, code::JGE, code::JSET];
    const ALU: [u16; 9] = [
        code::ADD,
        code::SUB,
        code::MUL,
        code::DIV,
        code::OR,
        code::AND,
        code::LSH,
        code::RSH,
        code::XOR,
    ];
    let kinds = if wild { 20 } else { 12 };
    match rng.below(kinds) {
        0 => Insn::new(code::LD_ABS, 0),
        1 => Insn::new(code::LD_ABS, rng.pick(&[0, 0, 0, 4, 4, 16, 20, 24])),
        2 => Insn::new(
            code::LD_ABS,
            rng.pick(&[4, 4, 4, 0, 16, 20, 24, 28, 60, 8, 12]),
        ),
        3 if rng.chance(30) => Insn::new(code::AND, constant(rng)),
        4 => Insn::new(code::JA, rng.below(left.min(6)) as u32),
        5 if rng.chance(40) => Insn::new(code::RET_K, random_verdict(rng)),
        6..=11 | 3 | 5 => {
            let reach = left.min(if rng.chance(80) { 6 } else { 200 });
            Insn::jump(
                rng.pick(&JUMPS),
                constant(rng),
                rng.below(reach) as u8,
                rng.below(reach) as u8,
            )
        }
        12 => Insn::new(
            rng.pick(&ALU) | rng.pick(&[0, code::X]),
            rng.below(32) as u32,
        ),
        13 => Insn::new(rng.pick(&ALU), constant(rng) & 31 | 1),
        14 => Insn::new(rng.pick(&[code::LD_IMM, code::LDX_IMM]), constant(rng)),
        15 => Insn::new(rng.pick(&[code::LD_LEN, code::LDX_LEN, code::NEG]), 0),
        16 => Insn::new(rng.pick(&[code::TAX, code::TXA]), 0),
        17 => Insn::new(rng.pick(&[code::ST, code::STX]), rng.below(3) as u32),
        18 => Insn::new(
            rng.pick(&[code::LD_MEM, code::LDX_MEM]),
            rng.below(3) as u32,
        ),
        _ if rng.chance(20) => Insn::new(code::RET_A, 0),
        _ => Insn::jump(
            rng.pick(&JUMPS) | code::X,
            0,
            rng.below(left.min(6)) as u8,
            rng.below(left.min(6)) as u8,
        ),
    }
}

/// A call whose words are often constants that `filters` compare with, or neighbours of them.
pub fn random_call(rng: &mut Rng, filters: &[Filter]) -> SeccompData {
    let mut data = SeccompData {
        nr: rng.below(480) as u32,
        arch: rng.pick(&[X86_64, X86_64, I386, 0xc000_00b7]),
        ..SeccompData::default()
    };
    for offset in (0..64).step_by(4) {
        let special = match rng.below(6) {
            0..=2 if !filters.is_empty() => {
                let filter = &filters[rng.below(filters.len())];
                let k = filter.insns()[rng.below(filter.insns().len())].k;
                k.wrapping_add(rng.pick(&[0, 0, 0, 1, u32::MAX]))
            }
            3 => rng.next() as u32,
            4 => 0,
            _ => constant(rng),
        };
        if offset >= 8 || rng.chance(50) {
            data.store(offset, special);
        }
    }
    data
}

/// A chain from tests/data.
pub fn data(name: &str) -> seccomp::Chain {
    let path = format!(
        "{}/../seccomp/tests/data/{name}.hex",
        env!("CARGO_MANIFEST_DIR")
    );
    let bytes = std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    seccomp::text::read_chain(&bytes).unwrap()
}
