//! Random rules and calls: the tables decide as the plain loop over rules.

use abi::{Arch, Field};
use plan::{
    Capabilities, Entries, Entry, Executable, Facts, Identities, ObjectId, Plan, ShapeKind, NONE,
};
use plan::{RunExe, TaskContainers, TaskPast, TaskWorkload, WorkloadName};
use rules::{Action, Condition, List, Op, Rule, Source, SyscallSet, Value};
use std::borrow::Cow;

const OPS: [Op; 8] = [
    Op::Eq,
    Op::Ne,
    Op::Lt,
    Op::Le,
    Op::Gt,
    Op::Ge,
    Op::BitMask,
    Op::BitTest,
];
const FIELDS: [Field; 28] = [
    Field::Label,
    Field::AncestorExe,
    Field::Unit,
    Field::Container,
    Field::Uid,
    Field::Euid,
    Field::Suid,
    Field::Fsuid,
    Field::Loginuid,
    Field::Sgid,
    Field::Fsgid,
    Field::Gid,
    Field::Egid,
    Field::Sessionid,
    Field::Pid,
    Field::Ppid,
    Field::Pers,
    Field::Arg0,
    Field::Arg1,
    Field::Arg2,
    Field::Arg3,
    Field::Exit,
    Field::Success,
    Field::Arch,
    Field::Perm,
    Field::SaddrFam,
    Field::FieldCompare,
    Field::Exe,
];
const WORDS: [u32; 16] = [
    0,
    1,
    2,
    4,
    8,
    10,
    15,
    1000,
    1001,
    0x8000,
    0x8001,
    0xC000_003E,
    0x4000_0003,
    -13i32 as u32,
    u32::MAX - 1,
    u32::MAX,
];
const CALLS: [u32; 16] = [
    0, 1, 2, 5, 11, 41, 42, 59, 82, 87, 102, 231, 257, 437, 1999, 2040,
];
const PATHS: [&[u8]; 2] = [b"/bin/a", b"/bin/missing"];
const EXECUTABLE: ObjectId = ObjectId { dev: 1, ino: 5 };
const UNITS: [&[u8]; 2] = [b"a.service", b"b.service"];
const CONTAINERS: [&[u8]; 4] = [b"any", b"none", b"one", b"two"];
const CLAIMED: [&[Cow<'static, [u8]>]; 3] = [&[], &[], &[Cow::Borrowed(b"two")]];
const LABELS: [&[u8]; 2] = [b"web", b"db"];
const RAN: [RunExe<'static>; 1] = [RunExe {
    path: PATHS[0],
    object: EXECUTABLE,
}];
/// A file that was at the path of the other one.
const RAN_BEFORE: [RunExe<'static>; 1] = [RunExe {
    path: PATHS[0],
    object: ObjectId { dev: 1, ino: 6 },
}];
const PASTS: [TaskPast<'static>; 3] = [
    TaskPast::UNKNOWN,
    TaskPast {
        labels: &[b"web"],
        are_all_labels: true,
        ancestors: &RAN,
        are_all_ancestors: true,
    },
    TaskPast {
        labels: &[],
        are_all_labels: true,
        ancestors: &RAN_BEFORE,
        are_all_ancestors: true,
    },
];
const RULES_MAX: u8 = 100;

/// Bytes as choices; 0 when they have run out.
struct Choices<'a>(std::slice::Iter<'a, u8>);

impl Choices<'_> {
    fn byte(&mut self) -> u8 {
        self.0.next().copied().unwrap_or(0)
    }

    fn of<T: Copy>(&mut self, values: &[T]) -> T {
        values[usize::from(self.byte()) % values.len()]
    }

    /// One of the words that rules mention too.
    fn word(&mut self) -> u32 {
        self.of(&WORDS)
    }

    fn condition(&mut self) -> Condition {
        let field = self.of(&FIELDS);
        let value = match field {
            Field::Exe | Field::AncestorExe => Value::Text(self.of(&PATHS).to_vec()),
            Field::Label => Value::Text(self.of(&LABELS).to_vec()),
            Field::Unit => Value::Text(self.of(&UNITS).to_vec()),
            Field::Container => Value::Text(self.of(&CONTAINERS).to_vec()),
            Field::FieldCompare => Value::Number(u32::from(self.byte() % 27)),
            _ => Value::Number(self.word()),
        };
        Condition {
            field,
            op: self.of(&OPS),
            value,
        }
    }

    fn rule(&mut self) -> Rule {
        let head = self.byte();
        let mut syscalls = SyscallSet::ALL;
        if head & 1 != 0 {
            syscalls = SyscallSet::EMPTY;
            for _ in 0..=head >> 6 {
                syscalls.insert(self.of(&CALLS));
            }
        }
        Rule {
            list: List::Exit,
            action: match head & 2 {
                0 => Action::Always,
                _ => Action::Never,
            },
            syscalls,
            conditions: (0..head >> 2 & 3).map(|_| self.condition()).collect(),
            source: Source::default(),
        }
    }

    fn workload(&mut self) -> TaskWorkload<'static> {
        let name = |name: &'static [u8]| match name {
            b"none" => WorkloadName::Nothing,
            name => WorkloadName::Is(name),
        };
        let workload = TaskWorkload {
            unit: name(self.of(&UNITS)),
            slice: WorkloadName::Nothing,
            containers: TaskContainers {
                made: name(self.of(&CONTAINERS)),
                claimed: self.of(&CLAIMED),
            },
            past: self.of(&PASTS),
        };
        self.of(&[workload, TaskWorkload::UNKNOWN])
    }

    fn facts(&mut self, entries: Entries) -> Option<Facts<'static>> {
        let entry = self.of(&[Entry::Native, Entry::Compat]);
        let nr = self.of(&CALLS);
        let shape = plan::shape(entries.arch(entry)?, nr);
        let args = [0; 4].map(|_| u64::from(self.word()) | u64::from(self.byte() & 1) << 40);
        let result = self.of(&[
            0,
            1,
            1000,
            -1,
            -13,
            -4095,
            -4096,
            -512,
            -515,
            i64::MIN,
            1 << 32,
        ]);
        let flags = self.word();
        let open_flags = match shape.open_flags {
            NONE => (shape.how != NONE).then_some(flags),
            arg => args.get(usize::from(arg)).map(|&arg| arg as u32),
        };
        Some(Facts {
            entry,
            nr,
            args,
            result: (shape.kind != ShapeKind::Exit).then_some(result),
            pid: self.word(),
            ppid: self.word(),
            auid: self.word(),
            ses: self.word(),
            uid: self.word(),
            euid: self.word(),
            suid: self.word(),
            fsuid: self.word(),
            gid: self.word(),
            egid: self.word(),
            sgid: self.word(),
            fsgid: self.word(),
            groups: self.of(&[&[][..], &[0], &[1, 1000], &[2, 1001, u32::MAX - 1]]),
            personality: self.word(),
            exe: Executable {
                object: self.of(&[None, Some(EXECUTABLE), Some(ObjectId { dev: 2, ino: 5 })]),
                at: self.of(&[None, Some(&b""[..])]),
            },
            open_flags,
            saddr_fam: {
                // Taken in any case, so that seeds go on meaning what they do.
                let family = self.word();
                (shape.sockaddr != NONE).then_some(family)
            },
            names: &[],
            above: &[],
            are_above_used: true,
            workload: self.workload(),
        })
    }
}

/// Reads the number of rules, the rules, and calls until the bytes end.
pub(crate) fn tables(data: &[u8]) {
    let mut choices = Choices(data.iter());
    let count = choices.byte() % RULES_MAX;
    let rules: Vec<Rule> = (0..count)
        .map(|_| choices.rule())
        .filter(|rule| rules::check(rule, None).is_ok())
        .collect();
    let mut identities = Identities::default();
    for (path, object) in PATHS.into_iter().zip([Some(EXECUTABLE), None]) {
        let canonical = path.to_vec();
        identities.insert(
            path.to_vec(),
            plan::PathIdentity {
                object,
                canonical,
                ..plan::PathIdentity::default()
            },
        );
    }
    let capabilities = Capabilities::assumed(Arch::X86_64);
    let entries = capabilities.entries();
    let plan = Plan::new(&rules, &capabilities, &identities, 1);
    let plan = plan.expect("so few rules fit");
    while !choices.0.as_slice().is_empty() {
        let Some(facts) = choices.facts(entries) else {
            return;
        };
        let expected = plan::decide(&rules, entries, &facts, &identities);
        assert_eq!(plan.decide(&facts, &identities), expected, "{facts:?}");
    }
}
