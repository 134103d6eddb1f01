//! The programs that are copied for the functions of calls. Most gates ask about one fact, and have one range: their
//! programs (`GATE` of bpf/tarsier.bpf.c) contain the code of the fact, and compare it with what the gate has.
//! `call_gate` interprets any gate but those on ids.

use crate::kernel::syscall_functions::KernelFunction;
use bpf::shared;
use libbpf_rs::OpenObject;
use plan::{Fact, Gate};
use zerocopy::FromZeros;

/// The program that interprets gates.
pub(crate) const ANY: &str = "call_gate";
/// Facts with programs of their own: the program for gates with one range and no mask, and that for others.
const OWN: [(Fact, [&str; 2]); 7] = [
    (Fact::Auid, ["gate_auid", "gate_auid_wide"]),
    (Fact::Uid, ["gate_uid", "gate_uid_wide"]),
    (Fact::Euid, ["gate_euid", "gate_euid_wide"]),
    (Fact::Suid, ["gate_suid", "gate_suid_wide"]),
    (Fact::Fsuid, ["gate_fsuid", "gate_fsuid_wide"]),
    (Fact::Exit, ["gate_exit", "gate_exit_wide"]),
    (Fact::Success, ["gate_success", "gate_success_wide"]),
];
/// Prefix of the pin names of hooks.
const PIN: &str = "end-";

/// The gate of a hook, and the program that tests it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AtGate {
    pub(crate) place: usize,
    pub(crate) program: &'static str,
}

impl AtGate {
    /// The gate that the hook can use: one that it cannot test is left open, and the body tests instead.
    pub(crate) fn told(self, gate: Option<&Gate>) -> shared::gate {
        as_told(gate.filter(|gate| tests(self.program, gate)))
    }
}

/// The program, as its name is known here, if it is one of these.
pub(crate) fn known(program: &str) -> Option<&'static str> {
    let own = OWN.iter().flat_map(|(_, programs)| programs);
    own.chain(&[ANY]).find(|name| **name == program).copied()
}

/// Leaves these programs out of what is loaded, after relocation: only copies of them run.
pub(crate) fn leave_out(open: &mut OpenObject) {
    for mut program in open.progs_mut() {
        if program.name().to_str().and_then(known).is_some() {
            program.set_autoload(false);
        }
    }
}

/// The program for a gate; without a gate, the one that can be told most others later.
pub(crate) fn of(gate: Option<&Gate>) -> &'static str {
    let own = |gate: &Gate| {
        let (_, programs) = OWN.iter().find(|(fact, _)| *fact == gate.fact)?;
        Some(programs[usize::from(is_wide(gate))])
    };
    gate.and_then(own).unwrap_or(ANY)
}

/// Whether the program can test the gate.
fn tests(program: &str, gate: &Gate) -> bool {
    let own = OWN.iter().find(|(fact, _)| *fact == gate.fact);
    let is_id = matches!(gate.fact, Fact::Uid | Fact::Euid | Fact::Suid | Fact::Fsuid);
    match own {
        _ if program == ANY => !is_id,
        Some((_, [narrow, wide])) => program == *wide || program == *narrow && !is_wide(gate),
        None => false,
    }
}

/// Whether the gate has a mask, or two ranges that differ.
fn is_wide(gate: &Gate) -> bool {
    gate.mask != u32::MAX || gate.ranges[0] != gate.ranges[1]
}

/// Name of a hook's pin.
pub(crate) fn pin_of(function: &KernelFunction, at_gate: AtGate) -> String {
    let AtGate { place, program } = at_gate;
    format!("{PIN}{}-{place}-{program}", function.name)
}

/// KernelFunction and gate of the hook with this pin.
pub(crate) fn pinned(name: &str) -> Option<(String, AtGate)> {
    let (name, program) = name.strip_prefix(PIN)?.rsplit_once('-')?;
    let (function, place) = name.rsplit_once('-')?;
    let at_gate = AtGate {
        place: place.parse().ok()?,
        program: known(program)?,
    };
    Some((function.to_owned(), at_gate))
}

/// What the pins of hooks on the function begin with.
pub(crate) fn predecessor_of(function: &KernelFunction) -> String {
    format!("{PIN}{}-", function.name)
}

/// A gate in the form that the programs read; without a gate it is open.
fn as_told(gate: Option<&Gate>) -> shared::gate {
    let range = |(first, last)| shared::gate_range {
        first,
        span: last - first,
    };
    let told = |gate: &Gate| shared::gate {
        fact: gate.fact as u32,
        mask: gate.mask,
        range: gate.ranges.map(range),
        results: range(gate.results),
    };
    gate.map_or_else(open, told)
}

/// An open gate, in a form that all programs understand.
pub(crate) fn open() -> shared::gate {
    let all = shared::gate_range {
        first: 0,
        span: u32::MAX,
    };
    shared::gate {
        fact: shared::GATE_OPEN,
        range: [all; 2],
        ..shared::gate::new_zeroed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zerocopy::IntoBytes;

    #[test]
    fn a_pin_tells_function_and_gate_of_its_hook() {
        let function = KernelFunction {
            name: "__x64_sys_read".to_owned(),
            btf_id: 1,
            prototype: 0,
            address: 0,
        };
        for program in [ANY, "gate_auid", "gate_uid_wide"] {
            let place = 17;
            let at_gate = AtGate { place, program };
            let found = pinned(&pin_of(&function, at_gate));
            assert_eq!(found, Some((function.name.clone(), at_gate)));
        }
        assert_eq!(pinned("end-__x64_sys_read-17-gate_other"), None);
        assert_eq!(pinned("end-__x64_sys_read-"), None);
        assert_eq!(pinned("on_vfs_link"), None);
    }

    fn gate(fact: Fact, mask: u32, second: (u32, u32)) -> Gate {
        Gate {
            fact,
            mask,
            ranges: [(1, 2), second],
            results: (0, 0),
        }
    }

    #[test]
    fn a_gate_that_a_hook_cannot_ask_stays_open() {
        let one = (1, 2);
        let gates = [
            (gate(Fact::Auid, u32::MAX, one), "gate_auid"),
            (gate(Fact::Auid, 0xff, one), "gate_auid_wide"),
            (gate(Fact::Uid, u32::MAX, one), "gate_uid"),
            (gate(Fact::Uid, u32::MAX, (7, 8)), "gate_uid_wide"),
            (gate(Fact::A0, u32::MAX, one), ANY),
        ];
        for (gate, program) in &gates {
            assert_eq!(of(Some(gate)), *program);
        }
        let told = |program: &'static str| {
            let at_gate = AtGate { place: 0, program };
            let is_told = |(gate, _): &(Gate, &str)| {
                let told = at_gate.told(Some(gate));
                assert!([as_told(Some(gate)), open()].contains(&told));
                told != open()
            };
            gates.each_ref().map(is_told)
        };
        assert_eq!(told(ANY), [true, true, false, false, true]);
        assert_eq!(told("gate_auid"), [true, false, false, false, false]);
        assert_eq!(told("gate_auid_wide"), [true, true, false, false, false]);
        assert_eq!(told("gate_uid_wide"), [false, false, true, true, false]);
        assert_eq!(of(None), ANY);
        assert_eq!(as_told(None), open());
    }

    #[test]
    fn a_gate_is_told_as_the_tables_have_it() {
        let gate = Gate {
            fact: Fact::Auid,
            mask: 0xff0f,
            ranges: [(1000, 60000), (u32::MAX, u32::MAX)],
            results: (-13i32 as u32, -1i32 as u32),
        };
        assert_eq!(as_told(Some(&gate)).as_bytes(), gate.words().as_bytes());
    }
}
