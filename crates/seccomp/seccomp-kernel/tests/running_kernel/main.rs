//! The seccomp crate against the running kernel: its bitmaps, what its filters decide, and which
//! programs it takes.
//!
//! TARSIER_SECCOMP_ROUNDS sets how much is compared (CONTRIBUTING.md): so many random chains in the
//! first test, twenty times as many calls in the second, ten times as many programs in the third.

mod child;
#[path = "../../../seccomp/tests/support/mod.rs"]
mod filters;

use child::{rounds, Call, Child, Outcome};
use filters::{random_filter, Rng};
use seccomp::{code, Action, CacheTable, Chain, ConstantAllow, Filter, Insn, Verdict};
use seccomp_kernel::bitmaps::{SeccompCaches, TaskCache};
use testkit::{machine_lock, may_load_programs};

/// Chains that are compared at a time: so many children are held.
const BATCH: usize = 50;

fn tables(caches: &SeccompCaches) -> [CacheTable; 2] {
    let sizes = caches.sizes().expect("the bitmaps can be measured");
    assert!(sizes.native > 400, "{sizes:?}");
    [
        CacheTable {
            arch: abi::Arch::native(),
            size: sizes.native,
            exempt: sizes.exempt,
        },
        CacheTable {
            arch: abi::Arch::native().compat().expect("a 64-bit machine"),
            size: sizes.compat,
            exempt: Vec::new(),
        },
    ]
}

/// Differing bits of a chain, and how many were compared; `None` if not all of its filters could
/// be installed, since an older one does not let the child.
fn differing(cache: &TaskCache, chain: &Chain, tables: &[CacheTable; 2]) -> Option<(usize, usize)> {
    if cache.filters as usize != chain.filters().len() {
        return None;
    }
    let (mut differ, mut compared) = (0, 0);
    for (table, bitmap) in tables.iter().zip([&cache.native, &cache.compat]) {
        let computed = ConstantAllow::of(chain, table);
        for nr in 0..table.size {
            compared += 1;
            if computed.allows(nr) != TaskCache::bit(bitmap, nr) {
                differ += 1;
                println!("{} {nr} differs: {chain:x?}", table.kernel_name());
            }
        }
    }
    Some((differ, compared))
}

/// The programs of libseccomp's own tests.
fn libseccomp() -> Vec<Chain> {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../seccomp/tests/data/libseccomp-cases.txt"
    );
    let text = std::fs::read_to_string(path).expect("the cases of libseccomp");
    let programs = text.split("filter ").skip(1).map(|part| {
        let lines = part
            .lines()
            .skip(1)
            .filter(|line| !line.starts_with("case "));
        lines.collect::<Vec<_>>().join("\n")
    });
    programs
        .map(|hex| Chain::from(seccomp::text::from_hex(&hex).expect("a filter")))
        .collect()
}

fn compare(chains: &[Chain]) -> (usize, usize, usize) {
    let caches = SeccompCaches::load().expect("the iterator loads");
    let tables = tables(&caches);
    let (mut differ, mut compared, mut used) = (0, 0, 0);
    for batch in chains.chunks(BATCH) {
        let mut children = Vec::new();
        for chain in batch {
            children.extend(Child::hold(chain).map(|child| (child, chain)));
        }
        let read = caches.read().expect("the iterator is read");
        for (child, chain) in &children {
            let cache = read.iter().find(|cache| cache.tid == child.pid);
            let cache = cache.expect("a child with filters is listed");
            if let Some((d, c)) = differing(cache, chain, &tables) {
                (differ, compared, used) = (differ + d, compared + c, used + 1);
            }
        }
    }
    (used, compared, differ)
}

/// A filter of a chain that lets the child install the next one.
fn passing(filter: &Filter) -> Filter {
    let mut insns = vec![
        Insn::new(code::LD_ABS, 0),
        Insn::jump(code::JEQ, libc::SYS_seccomp as u32, 0, 1),
        Insn::new(code::RET_K, Verdict::ALLOW.0),
    ];
    insns.extend(filter.insns());
    Filter::new(insns).unwrap_or_else(|_| filter.clone())
}

#[test]
fn computed_bitmaps_are_those_of_the_kernel() {
    let Some(_lock) = may_load_programs() else {
        return;
    };
    let mut rng = Rng(2024);
    let wanted = rounds(300);
    let mut real: Vec<Chain> = REAL.map(filters::data).to_vec();
    real.extend(libseccomp());
    let count = real.len();
    let (used, compared, differ) = compare(&real);
    println!("{compared} bits of {used} real chains compared, {differ} differ");
    assert_eq!((used, differ), (count, 0));

    let (mut used, mut compared) = (0, 0);
    while used < wanted {
        let chains = random_chains(&mut rng, (wanted - used).max(BATCH));
        let (of_kernel, bits, differ) = compare(&chains);
        assert_eq!(differ, 0);
        assert!(of_kernel * 10 > chains.len() * 7, "{of_kernel}");
        (used, compared) = (used + of_kernel, compared + bits);
    }
    println!("{compared} bits of {used} random chains compared, 0 differ");
}

/// Filters that people run.
const REAL: [&str; 8] = [
    "systemd-hardened",
    "systemd-system-service",
    "runc-docker",
    "runc-3arch.bpf",
    "libseccomp-x86_64-linear.bpf",
    "libseccomp-x86_64-tree.bpf",
    "libseccomp-3arch-linear.bpf",
    "libseccomp-3arch-tree.bpf",
];

fn random_chains(rng: &mut Rng, wanted: usize) -> Vec<Chain> {
    let mut chains = Vec::new();
    for round in 0..wanted {
        let count = if round % 2 == 0 { 1 } else { 1 + rng.below(5) };
        let chain: Vec<Filter> = (0..count)
            .map(|_| {
                let wild = rng.chance(25);
                let filter = random_filter(rng, 40, wild);
                if count > 1 {
                    passing(&filter)
                } else {
                    filter
                }
            })
            .collect();
        chains.push(Chain::new(chain));
    }
    chains
}

/// Turns verdicts whose effects look alike into ones that can be told apart.
fn observable(rng: &mut Rng, filter: &Filter) -> Filter {
    let insns: Vec<Insn> = filter
        .insns()
        .iter()
        .map(|&insn| match insn.code {
            code::RET_K if rng.chance(60) => Insn {
                k: 0x0005_0000 | (100 + rng.below(3000)) as u32,
                ..insn
            },
            _ => insn,
        })
        .collect();
    Filter::new(insns).expect("other verdicts keep a filter valid")
}

/// Calls that do nothing but answer: numbers that the kernel does not have, among them some of its
/// table, and getpid.
fn random_call(rng: &mut Rng, chain: &Chain, has_compat: bool) -> Call {
    let data = filters::random_call(rng, chain.filters());
    let is_compat = has_compat && rng.chance(30);
    let nr = match (rng.below(3), is_compat) {
        (0, false) => rng.pick(&[libc::SYS_getpid as u32, 600, 9999, 0x4000_0000 + 2000]),
        (0, true) => rng.pick(&[COMPAT_GETPID, 600, 9999, 0x4000_0000 + 2000]),
        // Never given to a call (arch/x86/entry/syscalls/syscall_64.tbl).
        (_, false) => 337 + rng.below(423 - 337) as u32,
        // Calls that were never made, or removed (syscall_32.tbl).
        (_, true) => rng.pick(&[17, 31, 32, 35, 44, 53, 56, 58, 98, 188, 189, 222, 223, 285]),
    };
    Call {
        is_compat,
        nr,
        args: data.args,
    }
}

const COMPAT_GETPID: u32 = 20;

/// Whether this kernel takes 32-bit calls, which may be switched off (`ia32_emulation=`).
fn has_compat() -> bool {
    let getpid = Call {
        is_compat: true,
        nr: COMPAT_GETPID,
        args: [0; 6],
    };
    let outcomes = child::outcomes(&Chain::default(), &[getpid]);
    outcomes.is_some_and(|outcomes| outcomes[0].1 == Outcome::OwnPid)
}

/// Outcome for a caller that nobody traces or supervises.
fn expected(verdict: Verdict, call: &Call) -> Outcome {
    let getpid = if call.is_compat {
        COMPAT_GETPID
    } else {
        libc::SYS_getpid as u32
    };
    match verdict.action() {
        Action::Allow | Action::Log if call.nr == getpid => Outcome::OwnPid,
        Action::Allow | Action::Log | Action::Trace | Action::UserNotif => {
            Outcome::Errno(libc::ENOSYS)
        }
        Action::Errno if verdict.data() == 0 => Outcome::Zero,
        Action::Errno => Outcome::Errno(i32::from(verdict.data()).min(4095)),
        _ => Outcome::Killed,
    }
}

#[test]
fn the_kernel_decides_calls_as_the_interpreter_does() {
    let _lock = machine_lock();
    let mut rng = Rng(4711);
    let native = abi::Arch::native();
    let compat = if has_compat() { native.compat() } else { None };
    if compat.is_none() {
        println!("skipped: 32-bit calls: this kernel takes none");
    }
    let (mut compared, mut of_compat, mut several) = (0, 0, 0);
    while compared < rounds(300) * 20 {
        let wild = rng.chance(50);
        let count = 1 + rng.below(4);
        let filters: Vec<Filter> = (0..count)
            .map(|_| {
                let filter = random_filter(&mut rng, 40, wild);
                let filter = observable(&mut rng, &filter);
                match count {
                    1 => filter,
                    _ => passing(&filter),
                }
            })
            .collect();
        let chain = Chain::new(filters);
        let calls: Vec<Call> = (0..40)
            .map(|_| random_call(&mut rng, &chain, compat.is_some()))
            .collect();
        let Some(outcomes) = child::outcomes(&chain, &calls) else {
            continue;
        };
        for (call, (ip, outcome)) in calls.iter().zip(outcomes) {
            let arch = if call.is_compat {
                compat.unwrap_or(native)
            } else {
                native
            };
            let data = seccomp::SeccompData {
                nr: call.nr,
                arch: arch.audit_arch(),
                instruction_pointer: ip,
                // The upper halves too, of calls by the 32-bit entry as well.
                args: call.args,
            };
            let verdict = chain.run(&data).verdict;
            let wanted = expected(verdict, call);
            assert_eq!(outcome, wanted, "{verdict} for {data:x?} by {chain:x?}");
            compared += 1;
            of_compat += usize::from(call.is_compat);
            several += usize::from(count > 1);
        }
    }
    println!(
        "{compared} verdicts compared, {of_compat} on 32-bit calls, {several} of several filters"
    );
    assert!(several * 2 > compared && (compat.is_none() || of_compat * 5 > compared));
}

/// A program that is often just not valid.
fn random_program(rng: &mut Rng) -> Vec<Insn> {
    let wild = rng.chance(70);
    let mut insns = random_filter(rng, 30, wild).insns().to_vec();
    for _ in 0..rng.below(3) {
        let at = rng.below(insns.len());
        let insn = &mut insns[at];
        match rng.below(6) {
            0 => insn.code ^= 1 << rng.below(8),
            1 => insn.code = rng.next() as u16,
            2 => insn.k = rng.pick(&[0, 1, 16, 31, 32, 60, 62, 64, u32::MAX]),
            3 => insn.jt = rng.next() as u8,
            4 => insn.jf = insn.jf.wrapping_add(1),
            _ => insn.k ^= 1 << rng.below(32),
        }
    }
    match rng.below(40) {
        0 => insns.clear(),
        1 => insns.truncate(1 + rng.below(insns.len())),
        2 => insns = vec![Insn::new(code::RET_K, 0); 4095 + rng.below(4)],
        _ => {}
    }
    insns
}

#[test]
fn the_kernel_takes_exactly_the_programs_that_are_valid_here() {
    let _lock = machine_lock();
    let mut rng = Rng(31337);
    let (mut valid, mut invalid, wanted) = (0, 0, rounds(300) * 10);
    while valid + invalid < wanted {
        let programs: Vec<Vec<Insn>> = (0..50).map(|_| random_program(&mut rng)).collect();
        let mut rest = programs.as_slice();
        while !rest.is_empty() {
            let (refused, is_taken) = child::refused(rest);
            for program in &rest[..refused] {
                assert!(Filter::new(program.as_slice()).is_err(), "{program:x?}");
            }
            if is_taken {
                let program = &rest[refused];
                let ours = Filter::new(program.as_slice());
                assert!(ours.is_ok(), "{ours:?} {program:x?}");
            }
            let used = refused + usize::from(is_taken);
            (valid, invalid) = (valid + usize::from(is_taken), invalid + refused);
            rest = &rest[used..];
        }
    }
    println!("{valid} valid and {invalid} invalid programs, as the kernel has it");
    assert!(
        valid * 5 > wanted && invalid * 5 > wanted,
        "{valid} {invalid}"
    );
}
