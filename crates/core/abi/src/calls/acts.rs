//! Acts, each with all system calls by which a program does it. Who watches one of the calls usually wants all.
//!
//! The io_uring operations of an act are those that do what one of its calls does: [`crate::uring_op_calls`].

use super::verb::{Argument, Meant, Verb};
use super::{calls, CallRow};
use std::sync::LazyLock;

/// Something that programs do.
#[derive(Clone, Debug)]
pub struct Act {
    /// What programs do, after "programs can".
    pub name: &'static str,
    /// All ways to do it; those that no rule means are the last.
    pub ways: Vec<Way>,
}

/// A system call that does an act.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Way {
    /// The name of the call; not every architecture has it.
    pub call: &'static str,
    /// The argument by which the call does this act, if it does others too and the argument can be asked about.
    pub argument: Option<Argument>,
    /// Which rules on the call mean the act.
    pub meant: Meant,
}

/// Every act that more than one call does, in the order of [`Verb`].
pub fn acts() -> &'static [Act] {
    static ACTS: LazyLock<Vec<Act>> = LazyLock::new(all);
    &ACTS
}

fn all() -> Vec<Act> {
    let mut names: Vec<&str> = Vec::new();
    for verb in Verb::EVERY {
        let name = verb.phrase();
        if !name.is_empty() && !names.contains(&name) {
            names.push(name);
        }
    }

    let acts = names.into_iter().map(|name| {
        let mut ways: Vec<Way> = calls().flat_map(|row| ways_of(row, name)).collect();
        ways.sort_by_key(|way| way.meant == Meant::Never);
        Act { name, ways }
    });
    acts.filter(|act| act.ways.len() > 1).collect()
}

/// The ways in which a call does the act with this name.
fn ways_of(row: &'static CallRow, name: &str) -> Vec<Way> {
    let own = row.verb.map(|verb| (verb, Meant::ByCall, row.verb_by));
    let all = own.into_iter().chain(row.others.iter().copied());

    all.filter(|(verb, ..)| verb.phrase() == name)
        .map(|(_, meant, argument)| Way {
            call: row.name,
            argument,
            meant,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{syscall_number, syscalls, Arch};
    use std::collections::BTreeSet;

    const ARCHES: [Arch; 4] = [Arch::X86_64, Arch::I386, Arch::Aarch64, Arch::Arm];

    fn is_call(name: &str) -> bool {
        let mut arches = ARCHES.iter();
        arches.any(|arch| syscall_number(*arch, name).is_some())
    }

    #[test]
    fn every_way_is_a_call_of_some_architecture_and_stands_once() {
        for act in acts() {
            for (place, way) in act.ways.iter().enumerate() {
                assert!(is_call(way.call), "{}", way.call);
                assert!(
                    !act.ways[..place].contains(way),
                    "{}: {}",
                    act.name,
                    way.call
                );
            }
            assert!(act.ways.len() > 1 && act.ways.iter().any(|way| way.meant != Meant::Never));
        }
    }

    /// A kernel that gets another variant of a call of an act gets it into the table: names of variants differ by these
    /// ends and beginnings.
    #[test]
    fn variants_of_a_call_are_in_its_act() {
        let ends = [
            "at",
            "at2",
            "2",
            "3",
            "4",
            "32",
            "64",
            "_time64",
            "_fd",
            "at_time64",
            "_attr",
        ];
        let begins = ["f", "l", "t", "tg", "old", "pidfd_send_"];
        let known: BTreeSet<&str> = ARCHES
            .iter()
            .flat_map(|arch| syscalls(*arch).map(|(_, name)| name))
            .collect();
        for act in acts() {
            let calls: Vec<&str> = act.ways.iter().map(|way| way.call).collect();
            for call in &calls {
                let later = ends.iter().map(|end| format!("{call}{end}"));
                let other = begins.iter().map(|begin| format!("{begin}{call}"));
                for variant in later.chain(other) {
                    let is_there = calls.contains(&variant.as_str());
                    assert!(
                        is_there || !known.contains(variant.as_str()),
                        "{variant} is not a way to {}, as {call} is",
                        act.name
                    );
                }
            }
        }
    }
}
