//! Compares diagrams with the interpreter, call by call.

#[path = "../../tests/support/mod.rs"]
mod support;

use super::{word_of, Diagrams, Ref, Store};
use crate::{Chain, SeccompData};
use support::{random_call, random_filter, Rng};

/// The value of a diagram for one call.
fn value(store: &Store, mut f: Ref, data: &SeccompData) -> u32 {
    loop {
        if let Some(value) = store.value(f) {
            return value;
        }
        let variable = store.variable(f);
        let (low, high) = store.cofactors(f, variable);
        let word = data.load(word_of(variable).0);
        let set = word >> (31 - variable % 32) & 1 == 1;
        f = if set { high } else { low };
    }
}

/// Number of calls to compare; the environment can ask for a long run.
fn wanted() -> usize {
    match std::env::var("TARSIER_SECCOMP_ROUNDS") {
        Ok(text) => text.parse().expect("TARSIER_SECCOMP_ROUNDS is a number"),
        Err(_) => 200_000,
    }
}

#[test]
fn diagrams_say_of_every_call_what_the_interpreter_says() {
    let mut rng = Rng(99);
    let (mut compared, mut chains, mut too_large) = (0, 0, 0);
    while compared < wanted() {
        let wild = rng.chance(50);
        let count = 1 + rng.below(3);
        let filters: Vec<_> = (0..count)
            .map(|_| random_filter(&mut rng, 40, wild))
            .collect();
        let chain = Chain::new(filters);
        // Small, so that chains whose diagrams explode are given up soon.
        let mut diagrams = Diagrams::new(200_000);
        chains += 1;
        let Ok(f) = diagrams.chain(&chain) else {
            too_large += 1;
            continue;
        };
        for _ in 0..1000 {
            let data = random_call(&mut rng, chain.filters());
            let verdict = chain.run(&data).verdict;
            assert_eq!(
                value(&diagrams.store, f, &data),
                verdict.0,
                "{data:x?} {chain:x?}"
            );
            compared += 1;
        }
    }
    println!("{compared} calls compared; {too_large} of {chains} chains too large");
    assert!(too_large * 5 < chains);
}
