//! The seccomp crate against the running kernel: its bitmaps, and what its filters decide.

#[path = "../../seccomp/tests/support/mod.rs"]
mod filters;
mod seccomp_child;

use capture::seccomp_cache::{SeccompCaches, TaskCache};
use filters::{random_filter, Rng};
use seccomp::{code, Action, CacheTable, Chain, ConstantAllow, Filter, Insn, Verdict};
use seccomp_child::{lock, rounds, Call, Child, Outcome};

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
    let _lock = lock();
    let mut rng = Rng(2024);
    let wanted = rounds(300);
    let mut chains: Vec<Chain> = ["systemd-hardened", "systemd-system-service", "runc-docker"]
        .map(filters::data)
        .to_vec();
    chains.extend(libseccomp());
    let real = chains.len();
    for round in 0..wanted {
        let count = if round % 2 == 0 { 1 } else { 1 + rng.below(5) };
        let chain: Vec<Filter> = (0..count)
            .map(|_| {
                let wild = rng.chance(25);
                let filter = random_filter(&mut rng, 40, wild);
                if count > 1 {
                    passing(&filter)
                } else {
                    filter
                }
            })
            .collect();
        chains.push(Chain::new(chain));
    }
    let (used, compared, differ) = compare(&chains);
    println!("{compared} bits of {used} chains compared, {differ} differ");
    assert_eq!(differ, 0);
    assert!(
        used * 10 > (wanted + real) * 7,
        "{used} of {} chains",
        chains.len()
    );
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

/// Calls that do nothing but answer: numbers that the kernel does not have, and getpid.
fn random_call(rng: &mut Rng, filter: &Filter) -> Call {
    let data = filters::random_call(rng, std::slice::from_ref(filter));
    let nr = rng.pick(&[libc::SYS_getpid as u32, 600, 9999, 0x4000_0000 + 2000]);
    Call {
        nr,
        args: data.args,
    }
}

#[test]
fn the_kernel_decides_calls_as_the_interpreter_does() {
    let _lock = lock();
    let mut rng = Rng(4711);
    let (mut compared, wanted) = (0, rounds(300) * 20);
    while compared < wanted {
        let wild = rng.chance(50);
        let filter = random_filter(&mut rng, 40, wild);
        let filter = observable(&mut rng, &filter);
        let chain = Chain::from(filter.clone());
        let calls: Vec<Call> = (0..40).map(|_| random_call(&mut rng, &filter)).collect();
        let Some(outcomes) = seccomp_child::outcomes(&chain, &calls) else {
            continue;
        };
        for (call, (ip, outcome)) in calls.iter().zip(outcomes) {
            let data = seccomp::SeccompData {
                nr: call.nr,
                arch: abi::Arch::native().audit_arch(),
                instruction_pointer: ip,
                args: call.args,
            };
            let verdict = chain.run(&data).verdict;
            let expected = match verdict.action() {
                Action::Allow | Action::Log if i64::from(call.nr) == libc::SYS_getpid => {
                    Outcome::OwnPid
                }
                // Nobody traces or supervises the child.
                Action::Allow | Action::Log | Action::Trace | Action::UserNotif => {
                    Outcome::Errno(libc::ENOSYS)
                }
                Action::Errno if verdict.data() == 0 => Outcome::Zero,
                Action::Errno => Outcome::Errno(i32::from(verdict.data()).min(4095)),
                _ => Outcome::Killed,
            };
            compared += 1;
            assert_eq!(outcome, expected, "{verdict} for {data:x?} by {filter:x?}");
        }
    }
    println!("{compared} verdicts compared");
}
