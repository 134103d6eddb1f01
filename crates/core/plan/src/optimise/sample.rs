//! Random calls for a rule set, with the values that its conditions mention, and neighbouring values.

use super::residual::Kinds;
use crate::entries::Entries;
use crate::facts::lies_below;
use crate::facts::{
    Entry, Executable, Facts, Identities, Inode, Name, ObjectId, PathIdentity, Proven,
};
use crate::task::{TaskContainers, TaskPast, TaskWorkload, WorkloadName};
use abi::Field;
use rules::{Op, Rule, SyscallSet, Value};

/// Makes random calls for one rule set.
pub(super) struct Sampler {
    state: u64,
    entries: Entries,
    identities: Identities,
    /// The paths that rules mention, with invented objects.
    paths: Vec<(Vec<u8>, ObjectId)>,
    /// The numbers that rules mention, and their neighbours.
    numbers: Vec<u32>,
}

/// A call, with ownership of what its facts borrow.
pub(super) struct Sample {
    facts: Facts<'static>,
    groups: Vec<u32>,
    names: Vec<Name>,
    /// Unit, slice and container, if the cgroup is known.
    workload: Option<[Option<Vec<u8>>; 3]>,
}

impl Sample {
    pub(super) fn facts(&self) -> Facts<'_> {
        Facts {
            groups: &self.groups,
            names: &self.names,
            above: &[],
            are_above_used: true,
            workload: self.workload(),
            ..self.facts.clone()
        }
    }

    fn workload(&self) -> TaskWorkload<'_> {
        let Some(names) = &self.workload else {
            return TaskWorkload::UNKNOWN;
        };

        let [unit, slice, container] = names.each_ref().map(|name| {
            name.as_deref()
                .map_or(WorkloadName::Nothing, WorkloadName::Is)
        });
        TaskWorkload {
            unit,
            slice,
            containers: TaskContainers {
                made: container,
                claimed: &[],
            },
            past: TaskPast::UNKNOWN,
        }
    }
}

impl Sampler {
    /// A sampler for `rules`. The same `seed` gives the same calls.
    pub(super) fn new(rules: &[Rule], entries: Entries, seed: u64) -> Sampler {
        let mut sampler = Sampler {
            state: seed,
            entries,
            identities: Identities::default(),
            paths: Vec::new(),
            numbers: vec![0, 1, 2, 1000, u32::MAX],
        };

        for condition in rules.iter().flat_map(|rule| &rule.conditions) {
            match &condition.value {
                Value::Number(number) => sampler.numbers.extend([
                    *number,
                    number.wrapping_add(1),
                    number.wrapping_sub(1),
                ]),
                Value::Text(path) if is_path(condition.field) => sampler.path(path),
                Value::Text(_) => {}
            }
        }

        sampler.numbers.sort_unstable();
        sampler.numbers.dedup();
        sampler
    }

    /// The objects that the paths of the calls name.
    pub(super) fn identities(&self) -> &Identities {
        &self.identities
    }

    fn path(&mut self, path: &[u8]) {
        if self.identities.object(path).is_some() {
            return;
        }

        let object = ObjectId {
            dev: 0x0080_0001,
            ino: 100 + self.paths.len() as u64,
        };
        self.identities.insert(
            path.to_vec(),
            PathIdentity {
                object: Some(object),
                canonical: path.to_vec(),
                ..PathIdentity::default()
            },
        );

        self.paths.push((path.to_vec(), object));
    }

    /// The next random number (SplitMix64).
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }

    fn number(&mut self) -> u32 {
        let i = self.below(self.numbers.len());
        self.numbers[i]
    }

    /// A random call in `touched`, for one of `rules`, that meets most of the rule's conditions.
    pub(super) fn call(&mut self, rules: &[Rule], touched: &SyscallSet) -> Sample {
        let i = self.below(rules.len());
        let rule = rules.get(i);
        let calls = rule.map_or(touched, |rule| &rule.syscalls);
        let mut nr = self.below(512) as u32;
        for _ in 0..2048 {
            if touched.contains(nr) && calls.contains(nr) {
                break;
            }
            nr = (nr + 1) % 2048;
        }

        let mut sample = self.anything(nr);
        for condition in rule.into_iter().flat_map(|rule| &rule.conditions) {
            if self.below(8) > 0 {
                self.satisfy(&mut sample, condition);
            }
        }

        let facts = &mut sample.facts;
        let arch = self.entries.arch(facts.entry);
        if arch.is_some_and(|arch| !Kinds::of(arch, self.entries.lists()).returns(nr)) {
            facts.result = None;
        }

        sample
    }

    fn anything(&mut self, nr: u32) -> Sample {
        let compat = self.entries.arches()[1].is_some() && self.below(3) == 0;
        let entry = if compat { Entry::Compat } else { Entry::Native };
        let result = [0, 1, -1, -13, -4096, 1000][self.below(6)];
        let names = (0..self.below(3)).map(|_| self.name()).collect();
        let groups = (0..self.below(3)).map(|_| self.number()).collect();
        let mut number = || self.number();
        let facts = Facts {
            entry,
            nr,
            args: [(); 4].map(|()| u64::from(number())),
            result: (!nr.is_multiple_of(7)).then_some(result),
            pid: number(),
            ppid: number(),
            auid: number(),
            ses: number(),
            uid: number(),
            euid: number(),
            suid: number(),
            fsuid: number(),
            gid: number(),
            egid: number(),
            sgid: number(),
            fsgid: number(),
            groups: &[],
            personality: number(),
            exe: Executable::default(),
            open_flags: Some(number()),
            saddr_fam: Some(number()),
            names: &[],
            above: &[],
            are_above_used: true,
            workload: TaskWorkload::UNKNOWN,
        };

        let workload = (self.below(4) > 0).then(Default::default);
        Sample {
            facts,
            groups,
            names,
            workload,
        }
    }

    fn name(&mut self) -> Name {
        let at = self.below(self.paths.len() + 1);
        let (path, id) = match self.paths.get(at) {
            Some((path, id)) => (path.clone(), *id),
            None => (b"/elsewhere".to_vec(), ObjectId { dev: 1, ino: 1 }),
        };
        let inode = Inode {
            id,
            mode: [0o100_644, 0o040_755][self.below(2)],
            uid: self.number(),
            gid: self.number(),
            rdev: 0,
        };

        Name {
            path,
            inode: (self.below(4) > 0).then_some(inode),
            existed: self.below(2) == 0,
            is_unknown: self.below(16) == 0,
            is_path_moot: self.below(16) == 0,
            directory: None,
            is_possible: self.below(16) == 0,
            is_owner_changed: self.below(16) == 0,
            object: Proven::InCall,
            place: Proven::InCall,
        }
    }

    fn satisfy(&mut self, sample: &mut Sample, condition: &rules::Condition) {
        let value = match &condition.value {
            Value::Number(value) => *value,
            Value::Text(path) => {
                self.satisfy_path(sample, condition.field, path);
                return;
            }
        };

        let value = match condition.op {
            Op::Ne => value.wrapping_add(1 + self.below(2) as u32),
            Op::Lt => value.saturating_sub(1),
            Op::Gt => value.saturating_add(1),
            Op::Ge => value.saturating_add(self.below(2) as u32),
            _ => value,
        };

        let facts = &mut sample.facts;
        let args = &mut facts.args;
        match condition.field {
            Field::Pid => facts.pid = value,
            Field::Ppid => facts.ppid = value,
            Field::Uid => facts.uid = value,
            Field::Euid => facts.euid = value,
            Field::Suid => facts.suid = value,
            Field::Fsuid => facts.fsuid = value,
            Field::Gid => facts.gid = value,
            Field::Egid => facts.egid = value,
            Field::Sgid => facts.sgid = value,
            Field::Fsgid => facts.fsgid = value,
            Field::Loginuid => facts.auid = value,
            Field::LoginuidSet if value == 0 => facts.auid = u32::MAX,
            Field::Sessionid => facts.ses = value,
            Field::Pers => facts.personality = value,
            Field::Exit => facts.result = Some(i64::from(value as i32)),
            Field::Success => facts.result = Some(if value != 0 { 0 } else { -13 }),
            Field::Arg0 => args[0] = value.into(),
            Field::Arg1 => args[1] = value.into(),
            Field::Arg2 => args[2] = value.into(),
            Field::Arg3 => args[3] = value.into(),
            Field::SaddrFam => facts.saddr_fam = Some(value),
            Field::Arch => facts.entry = self.entries.entry(value).unwrap_or(facts.entry),
            _ => {}
        }
    }

    fn satisfy_path(&mut self, sample: &mut Sample, field: Field, path: &[u8]) {
        let object = self.identities.object(path);
        match field {
            Field::Exe => sample.facts.exe.object = object,
            Field::Unit | Field::Slice | Field::Container => {
                let place = (field.number() - Field::Unit.number()) as usize;
                if let Some(names) = &mut sample.workload {
                    names[place] = Some(path.to_vec());
                }
            }
            Field::Watch | Field::Dir => {
                let is_there = |name: &Name| lies_below(&name.path, path);
                if !sample.names.iter().any(is_there) {
                    let mut name = self.name();
                    name.path = path.to_vec();
                    name.existed = true;
                    if let (Some(inode), Some(id)) = (&mut name.inode, object) {
                        inode.id = id;
                    }
                    sample.names.push(name);
                }
            }
            _ => {}
        }
    }
}

fn is_path(field: Field) -> bool {
    matches!(field, Field::Exe | Field::Watch | Field::Dir)
}
