//! Proves that two chains decide alike, or finds where they do not.

mod arguments;
mod search;

pub use arguments::Arguments;

use crate::diagram::{set_bit, Diagrams, Join, Ref, Store, FALSE, ORDER, TERMINAL, TRUE};
use crate::policy::Abi;
use crate::{Chain, SeccompData, TooLarge, Verdict};
use abi::Arch;

/// Default limit of nodes in a proof; they take about 400 MB.
pub const NODES_MAX: usize = 6 << 20;

/// The result of comparing two chains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Proof {
    /// The kernel decides every possible call alike.
    Equal,
    /// There is at least this call that it decides differently.
    Differ(Box<Difference>),
}

/// A call that two chains decide differently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The call.
    pub data: SeccompData,
    /// The verdict of the first chain.
    pub left: Verdict,
    /// The verdict of the second chain.
    pub right: Verdict,
    /// Whether every call with this number and architecture is decided differently, with any
    /// arguments.
    pub always: bool,
    /// The arguments for which it is decided differently.
    pub arguments: Arguments,
}

/// Compares the verdicts (all 32 bits) that the kernel acts on, for every architecture, number,
/// argument and instruction pointer.
///
/// # Errors
/// [`TooLarge`]: neither equality nor a difference was found.
pub fn prove_equal(left: &Chain, right: &Chain) -> Result<Proof, TooLarge> {
    let differ = |data| {
        let some = Arguments::Some(Vec::new());
        Proof::Differ(Box::new(difference(left, right, data, some)))
    };
    match compare(left, right) {
        Ok(None) => Ok(Proof::Equal),
        Ok(Some(data)) => Ok(differ(data)),
        // A filter that returns an argument has no diagram within the limit; the search may still
        // find a call.
        Err(too_large) => search::search(left, right).map(differ).ok_or(too_large),
    }
}

/// A call that two chains decide differently; `None` if there is none.
fn compare(left: &Chain, right: &Chain) -> Result<Option<SeccompData>, TooLarge> {
    let mut diagrams = Diagrams::new(NODES_MAX);
    let f = diagrams.chain(left)?;
    let g = diagrams.chain(right)?;
    // Functions in one store are equal exactly if their references are.
    if f == g {
        return Ok(None);
    }
    let differs = diagrams.store.join(Join::Differs, f, g)?;
    Ok(Some(example(&diagrams.store, differs)))
}

/// Every system call that two chains decide differently for some arguments, with one example each:
/// the known calls of the four architectures and of x32, and one for all other calls together.
///
/// # Errors
/// [`TooLarge`]: nothing is known.
pub fn differences(left: &Chain, right: &Chain) -> Result<Vec<Difference>, TooLarge> {
    listed(left, right, Join::Differs)
}

/// Every system call that `right` runs and `left` does not, for some arguments, as in
/// [`differences`]. SECCOMP_RET_LOG runs calls, too.
///
/// # Errors
/// [`TooLarge`]: nothing is known.
pub fn uncovered(left: &Chain, right: &Chain) -> Result<Vec<Difference>, TooLarge> {
    listed(left, right, Join::Lacks)
}

fn listed(left: &Chain, right: &Chain, join: Join) -> Result<Vec<Difference>, TooLarge> {
    let mut diagrams = Diagrams::new(NODES_MAX);
    let f = diagrams.chain(left)?;
    let g = diagrams.chain(right)?;
    let store = &mut diagrams.store;
    let mut differs = store.join(join, f, g)?;
    let mut found = Vec::new();

    for (arch, nr) in known_calls() {
        let here = at_word(store, at_word(store, differs, 4, arch), 0, nr);
        if here != FALSE {
            let mut data = example(store, here);
            (data.arch, data.nr) = (arch, nr);
            let arguments = arguments::describe(store, here);
            found.push(difference(left, right, data, arguments));
        }
    }

    for (arch, nr) in known_calls() {
        // Without the calls that are listed above, what is left is an unknown number or architecture.
        let call = call_condition(store, arch, nr)?;
        differs = store.ite(call, FALSE, differs)?;
    }

    if differs != FALSE {
        let data = example(store, differs);
        found.push(difference(left, right, data, Arguments::Some(Vec::new())));
    }

    Ok(found)
}

fn difference(left: &Chain, right: &Chain, data: SeccompData, arguments: Arguments) -> Difference {
    Difference {
        data,
        left: left.run(&data).verdict,
        right: right.run(&data).verdict,
        always: arguments == Arguments::Any,
        arguments,
    }
}

/// Calls with known names, as (AUDIT_ARCH, number).
fn known_calls() -> impl Iterator<Item = (u32, u32)> {
    const X32: u32 = 0x4000_0000;

    let own = Arch::EVERY
        .into_iter()
        .flat_map(|arch| abi::syscalls(arch).map(move |(nr, _)| (arch.audit_arch(), nr)));
    let x32 = abi::syscalls(Arch::X86_64).map(|(nr, _)| (Arch::X86_64.audit_arch(), nr | X32));

    // Calls that no table of an architecture has: from 512 on those of x32, and Arm's private ones.
    let rest = Abi::EVERY.into_iter().flat_map(|abi| {
        let calls = abi.calls().map(move |(nr, _)| (abi.audit_arch(), nr));
        calls.filter(move |row| match abi {
            Abi::X32 => abi.bare(row.1) >= 512,
            Abi::Arm => row.1 >= 0x000f_0000,
            _ => false,
        })
    });

    own.chain(x32).chain(rest)
}

/// `f` with the word at `offset` set to `value`. That word must be the first that `f` tests.
pub(crate) fn at_word(store: &Store, mut f: Ref, offset: u32, value: u32) -> Ref {
    let start = crate::diagram::rank(offset) * 32;
    while (start..start + 32).contains(&store.variable(f)) {
        let variable = store.variable(f);
        let (low, high) = store.cofactors(f, variable);
        let set = value >> (31 - (variable - start)) & 1 == 1;
        f = if set { high } else { low };
    }
    f
}

/// Condition that architecture and number are these.
fn call_condition(store: &mut Store, arch: u32, nr: u32) -> Result<Ref, TooLarge> {
    let mut condition = TRUE;
    for (offset, value) in [(0, nr), (4, arch)] {
        for bit in 0..32 {
            let variable = crate::diagram::variable(offset, bit);
            let is_set = store.bit(variable)?;
            condition = if value >> bit & 1 == 1 {
                store.ite(is_set, condition, FALSE)?
            } else {
                store.ite(is_set, FALSE, condition)?
            };
        }
    }

    Ok(condition)
}

/// A call that satisfies `condition`, which must not be [`FALSE`]: a well-known call, if one does;
/// bits that do not matter are 0.
fn example(store: &Store, condition: Ref) -> SeccompData {
    let mut data = SeccompData::default();
    let mut f = condition;
    let known = known_calls().find_map(|(arch, nr)| {
        let rest = at_word(store, at_word(store, condition, 4, arch), 0, nr);
        (rest != FALSE).then_some((arch, nr, rest))
    });
    if let Some((arch, nr, rest)) = known {
        (data.arch, data.nr, f) = (arch, nr, rest);
    }

    while store.variable(f) != TERMINAL {
        let variable = store.variable(f);
        let (low, high) = store.cofactors(f, variable);
        // Bits are left 0 where the condition allows it, so that the example is simple.
        f = low;
        if low == FALSE {
            set_bit(&mut data, variable);
            f = high;
        }
    }

    debug_assert!(ORDER.len() == 16 && f == TRUE);

    data
}
