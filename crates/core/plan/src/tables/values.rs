//! The values that the programs look up in the tables.

use crate::conditions::{Fact, FACTS};
use crate::evaluate::own_id;
use crate::executables::Executables;
use crate::facts::{Facts, Identities};
use crate::marks::Seen;
use crate::workload::WorkloadNames;
use abi::Field;
use abi::NONE;
use abi::{Shape, ShapeKind};

/// Family of UNIX sockets: linux/socket.h.
const AF_UNIX: u32 = 1;

/// Facts as the programs have them: one value each, `None` if the call does not have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Values {
    /// The values, indexed by [`Fact`].
    pub fact: [Option<u32>; FACTS],
    /// Number of the executable by its name; that of its file is among the facts.
    pub exe_by_name: u32,
    /// Supplementary groups.
    pub groups: Vec<u32>,
    /// The marks at all that the call reached; `None` if not all of that is known.
    pub marks: Option<Seen>,
}

impl Values {
    /// The values that the programs compute for a call of this shape: crates/kernel/bpf/programs/facts.h
    /// and, for those computed on demand, match.h.
    pub(crate) fn from_facts(
        facts: &Facts<'_>,
        shape: &Shape,
        (executables, names): (&Executables, &WorkloadNames),
        identities: &Identities,
    ) -> Values {
        let mut values = Values {
            fact: [None; FACTS],
            exe_by_name: 0,
            groups: facts.groups.to_vec(),
            marks: None,
        };

        let mut set = |fact: Fact, value: u32| values.fact[fact as usize] = Some(value);
        set_ids(&mut set, facts);
        set(Fact::Pers, facts.personality);
        if let (Some(exit), Some(valid)) = (facts.audit_result(), facts.return_valid()) {
            set(Fact::Exit, exit as u32);
            set(Fact::Success, valid);
        }

        for (fact, arg) in [Fact::A0, Fact::A1, Fact::A2, Fact::A3]
            .into_iter()
            .zip(facts.args)
        {
            set(fact, arg as u32);
        }
        let [exe, exe_by_name] = executables.numbers(&facts.exe, identities);
        set(Fact::Exe, exe);
        set(Fact::Access, access(facts, shape));
        set(Fact::Compare, equal_ids(facts));
        values.exe_by_name = exe_by_name;
        values.fact[Fact::SaddrFam as usize] = facts.saddr_fam;
        let is_unix = shape.may_name_socket() && facts.saddr_fam == Some(AF_UNIX);
        values.fact[Fact::SocketName as usize] = Some(is_unix.into());
        let workload = facts.workload;

        // The programs know all of a cgroup, or nothing.
        if workload.is_proven() {
            let (unit, made) = (workload.unit, workload.containers.made);
            values.fact[Fact::Unit as usize] = names.value(Field::Unit, unit);
            values.fact[Fact::Slice as usize] = names.value(Field::Slice, workload.slice);
            values.fact[Fact::Container as usize] = names.value(Field::Container, made);
        }

        let value = |field| names.past.value(field, &workload.past, identities);
        values.fact[Fact::Labels as usize] = value(Field::Label);
        values.fact[Fact::Ancestors as usize] = value(Field::AncestorExe);
        values
    }

    /// The values that the program at task creation computes for a new task. It has none of a call.
    pub fn from_new_task(facts: &Facts<'_>) -> Values {
        let mut values = Values {
            fact: [None; FACTS],
            exe_by_name: 0,
            groups: facts.groups.to_vec(),
            marks: None,
        };
        let mut set = |fact: Fact, value: u32| values.fact[fact as usize] = Some(value);
        set_ids(&mut set, facts);
        set(Fact::Pers, facts.personality);
        values
    }
}

fn set_ids(set: &mut impl FnMut(Fact, u32), facts: &Facts<'_>) {
    set(Fact::Pid, facts.pid);
    set(Fact::Ppid, facts.ppid);
    set(Fact::Uid, facts.uid);
    set(Fact::Euid, facts.euid);
    set(Fact::Suid, facts.suid);
    set(Fact::Fsuid, facts.fsuid);
    set(Fact::Gid, facts.gid);
    set(Fact::Egid, facts.egid);
    set(Fact::Sgid, facts.sgid);
    set(Fact::Fsgid, facts.fsgid);
    set(Fact::Auid, facts.auid);
    set(Fact::Ses, facts.ses);
}

/// `AUDIT_PERM_*` bits of the open flags: `access_of()` of match.h.
fn access(facts: &Facts<'_>, shape: &Shape) -> u32 {
    if shape.kind == ShapeKind::Socketcall {
        return if facts.args[0] == 2 {
            abi::PERM_WRITE
        } else {
            0
        };
    }

    if shape.how == NONE && shape.open_flags == NONE {
        return 0;
    }

    let any = abi::PERM_READ | abi::PERM_WRITE;
    facts.open_flags.map_or(any, abi::PermClass::open_bits)
}

/// One bit `AUDIT_COMPARE_x` for every pair of the task's own ids that are equal: `compare_ids()` of
/// match.h.
fn equal_ids(facts: &Facts<'_>) -> u32 {
    abi::COMPARES
        .iter()
        .filter(|pair| {
            let ids = (own_id(pair.left, facts), own_id(pair.right, facts));
            matches!(ids, (Some(left), Some(right)) if left == right)
        })
        .fold(0, |bits, pair| bits | 1 << pair.number)
}
