//! Random rules, and random calls that often have the values which such rules mention.
#![allow(dead_code)] // every test file uses some of it

mod names;

use abi::{Arch, Field};
use names::{above, executable, name};
use plan::{CallNames, Capabilities, Entries, Entry, Executable, Facts, Identities};
use plan::{Marks, PathIdentity, Plan, RunExe, Seen, TaskContainers, TaskPast, TaskWorkload};
use plan::{Name, ObjectId, Proven, ShapeKind};
use plan::{WorkloadName, NONE};
use proptest::prelude::*;
use proptest::sample::select;
use rules::{Action, Condition, List, Op, Rule, Source, SyscallSet, Value};
use std::borrow::Cow;

pub(crate) const HOST: Arch = Arch::X86_64;

pub(crate) fn entries() -> Entries {
    Entries::of(HOST, abi::PermLists::default())
}

/// A host without io_uring.
pub(crate) fn capabilities() -> Capabilities {
    Capabilities {
        io_uring: plan::IoUring::Unseen,
        ..Capabilities::assumed(HOST)
    }
}

pub(crate) fn plan(rules: &[Rule]) -> Plan {
    Plan::new(rules, &capabilities(), &identities(), 7).expect("the rules fit")
}

/// Parses a rule in auditctl's syntax for [`HOST`].
pub(crate) fn rule(text: &str) -> Rule {
    let host = rules::StaticHost::new(HOST);
    match rules::parse_line(text, &Source::default(), &host) {
        Ok(Some(rules::Command::Append(rule))) => rule,
        other => panic!("{text}: {other:?}"),
    }
}

pub(crate) fn ruleset(lines: &[&str]) -> Vec<Rule> {
    lines.iter().map(|line| rule(line)).collect()
}

const OBJECTS: [ObjectId; 5] = [
    ObjectId {
        dev: 0x0080_0001,
        ino: 5,
    },
    ObjectId {
        dev: 0x0080_0001,
        ino: 37,
    },
    ObjectId {
        dev: 0x0080_0002,
        ino: 5,
    },
    ObjectId {
        dev: 0x0010_0000,
        ino: 0x1_0000_0005,
    },
    ObjectId {
        dev: 0x0080_0002,
        ino: 1000,
    },
];

/// Paths that rules name. The last but one is below a symbolic link, the last does not exist.
const PATHS: [&str; 5] = ["/a", "/a/b", "/c", "/link/b", "/missing"];
const NAMES: [&str; 6] = ["/a", "/a/b", "/a/b/c", "/ab", "/c", ""];

pub(crate) fn identities() -> Identities {
    let mut identities = Identities::default();
    for (i, path) in PATHS.iter().enumerate() {
        let canonical = if *path == "/link/b" { "/a/b" } else { path };
        let object = (i < 4).then(|| OBJECTS[if i == 3 { 1 } else { i }]);
        identities.insert(
            path.as_bytes().to_vec(),
            PathIdentity {
                object,
                canonical: canonical.as_bytes().to_vec(),
                directory: parent(canonical).and_then(directory),
                ..PathIdentity::default()
            },
        );
    }
    identities
}

fn parent(path: &str) -> Option<&str> {
    let (parent, _) = path.rsplit_once('/')?;
    Some(if parent.is_empty() { "/" } else { parent })
}

/// The object of a directory of [`NAMES`].
fn directory(path: &str) -> Option<ObjectId> {
    match path {
        "/" => Some(OBJECTS[4]),
        "/a" => Some(OBJECTS[0]),
        "/a/b" => Some(OBJECTS[1]),
        _ => None,
    }
}

/// The marks that the programs see at the names of a call, from each object up to the root. `None` if they do not
/// know everything that the call reached.
pub(crate) fn marks_at(facts: &Facts<'_>, marks: &Marks) -> Option<Seen> {
    let mut seen = Seen {
        is_several: facts.names.len() > 1,
        ..Seen::default()
    };
    for name in facts.names {
        let object = name.inode?.id;
        if name.object < Proven::InCall || name.place < Proven::InCall {
            return None;
        }
        let mut path = std::str::from_utf8(&name.path)
            .ok()
            .filter(|path| !path.is_empty())?;
        let mut is_above = false;
        let hits = &mut seen.hits;
        while let (Some(dir), true) = (parent(path), path != "/") {
            let last = path.rsplit('/').next().unwrap_or_default().as_bytes();
            let here = if is_above {
                directory(path)
            } else {
                Some(object)
            };
            hits.extend(marks.at(last, directory(dir), here, is_above));
            path = dir;
            is_above = true;
        }
        hits.extend(marks.at(b"/", None, directory("/"), true));
    }
    Some(seen)
}

static IDS: [u32; 6] = [0, 1, 1000, 1001, u32::MAX - 1, u32::MAX];
const WORDS: [u32; 8] = [0, 1, 2, 0x8000, 0x8001, 1000, -13i32 as u32, u32::MAX];
const NATIVE: [u32; 15] = [
    0, 2, 41, 42, 59, 62, 82, 85, 87, 90, 91, 231, 257, 437, 1999,
];
const COMPAT: [u32; 8] = [1, 2, 5, 102, 295, 11, 38, 437];
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

fn number(fields: &'static [Field], ops: &'static [Op], values: &'static [u32]) -> Cond {
    (select(fields), select(ops), select(values))
        .prop_map(|(field, op, value)| Condition {
            field,
            op,
            value: Value::Number(value),
        })
        .boxed()
}

fn text(fields: &'static [Field], ops: &'static [Op], values: &'static [&'static str]) -> Cond {
    (select(fields), select(ops), select(values))
        .prop_map(|(field, op, value)| Condition {
            field,
            op,
            value: Value::Text(value.into()),
        })
        .boxed()
}

type Cond = BoxedStrategy<Condition>;

const UNITS: [&str; 3] = ["a.service", "b.service", "c.scope"];
const SLICES: [&str; 2] = ["system.slice", "user.slice"];
const CONTAINERS: [&str; 4] = ["any", "none", "one", "two"];

/// A name that rules have or have not, or none.
fn work(named: &'static [&'static str]) -> BoxedStrategy<WorkloadName<'static>> {
    let known = select(named).prop_map(|name| WorkloadName::Is(name.as_bytes()));
    let other = Just(WorkloadName::Is(b"other"));
    prop_oneof![4 => known, 2 => other, 2 => Just(WorkloadName::Nothing)].boxed()
}

/// Containers whose names others than root may have chosen.
const CLAIMED: [Cow<'static, [u8]>; 2] = [Cow::Borrowed(b"two"), Cow::Borrowed(b"other")];

/// The programs know all of a cgroup, or nothing.
fn workload() -> BoxedStrategy<TaskWorkload<'static>> {
    let containers =
        (work(&CONTAINERS[2..]), 0..6usize).prop_map(|(made, claimed)| TaskContainers {
            made,
            claimed: CLAIMED.get(..claimed).unwrap_or_default(),
        });
    let known = (work(&UNITS), work(&SLICES), containers);
    let past = select(PASTS.to_vec());
    let known = (known, past).prop_map(|((unit, slice, containers), past)| TaskWorkload {
        unit,
        slice,
        containers,
        past,
    });
    prop_oneof![4 => known, 1 => Just(TaskWorkload::UNKNOWN)].boxed()
}

/// What may be known of a process: labels, or ancestors, all of them or not. The executables are those of [`PATHS`], or
/// files that were once at these paths.
const PASTS: [TaskPast<'static>; 6] = [
    TaskPast::UNKNOWN,
    past(&[], &[], true),
    past(&[b"web"], &[RAN[0]], true),
    past(&[b"web", b"db"], &[RAN[1], RAN[2]], true),
    past(&[b"db"], &[RAN[0]], false),
    past(&[b"other"], &[RAN[2]], true),
];
const LABELS: [&str; 3] = ["web", "db", "none"];
const RAN: [RunExe<'static>; 3] = [
    ran(PATHS[0], OBJECTS[0]),
    ran(PATHS[1], OBJECTS[1]),
    ran(PATHS[0], OBJECTS[4]),
];

const fn ran(path: &'static str, object: ObjectId) -> RunExe<'static> {
    RunExe {
        path: path.as_bytes(),
        object,
    }
}

const fn past(
    labels: &'static [&'static [u8]],
    ancestors: &'static [RunExe<'static>],
    are_all: bool,
) -> TaskPast<'static> {
    TaskPast {
        labels,
        are_all_labels: are_all,
        ancestors,
        are_all_ancestors: are_all,
    }
}

const EQ: &[Op] = &[Op::Eq, Op::Eq, Op::Eq, Op::Ne];

pub(crate) fn condition() -> Cond {
    use Field::*;
    const ARCHES: &[u32] = &[0xC000_003E, 0x4000_0003, 0xC000_00B7];
    prop_oneof![
        6 => number(&[Uid, Euid, Suid, Fsuid, Loginuid, Sgid, Fsgid, Sessionid], &OPS, &IDS),
        4 => number(&[Gid, Egid], EQ, &IDS),
        1 => number(&[Gid, Egid], &OPS, &IDS),
        3 => number(&[Pid, Ppid, Pers], &OPS, &WORDS),
        4 => number(&[Arg0, Arg1, Arg2, Arg3], &OPS, &WORDS),
        3 => number(&[Exit], &OPS, &WORDS),
        3 => number(&[Success, LoginuidSet], &OPS, &[0, 1, 2]),
        4 => number(&[Arch], EQ, ARCHES),
        3 => number(&[Perm], EQ, &[1, 2, 4, 8, 6, 10, 15]),
        2 => number(&[SaddrFam], &OPS, &[0, 1, 2, 10]),
        3 => (0..27u32, select(&OPS[..3])).prop_map(|(pair, op)| Condition {
            field: FieldCompare,
            op,
            value: Value::Number(pair),
        }),
        3 => text(&[Exe], EQ, &PATHS),
        1 => text(&[SubjUser, ObjRole], EQ, &["label"]),
        1 => text(&[FilterKey], &[Op::Eq], &["key"]),
        2 => text(&[Dir], &[Op::Eq], &PATHS),
        2 => number(&[Devmajor, Devminor, ObjUid, ObjGid], &OPS, &[0, 1, 8, 1000]),
        2 => number(&[Filetype], EQ, &[0o100000, 0o040000]),
        1 => number(&[Msgtype], &OPS, &[1300]),
        3 => text(&[Unit], EQ, &UNITS),
        1 => text(&[Slice], EQ, &SLICES),
        2 => text(&[Container], EQ, &CONTAINERS),
        2 => text(&[Label], EQ, &LABELS),
        2 => text(&[AncestorExe], EQ, &PATHS),
    ]
    .boxed()
}

/// A condition that makes a rule an inode rule; at most one per rule, as in the kernel.
fn inode_condition() -> Cond {
    prop_oneof![
        3 => text(&[Field::Watch], &[Op::Eq], &PATHS),
        1 => number(&[Field::Inode], &[Op::Eq, Op::Ne], &[5, 37, 1000]),
    ]
    .boxed()
}

fn syscalls() -> BoxedStrategy<SyscallSet> {
    let some = |calls: Vec<u32>| {
        let mut set = SyscallSet::EMPTY;
        calls.into_iter().for_each(|nr| set.insert(nr));
        set
    };
    let call = prop_oneof![
        4 => select(&NATIVE[..]),
        2 => select(&COMPAT[..]),
        1 => 2032..2048u32,
    ];
    prop_oneof![
        3 => Just(SyscallSet::ALL),
        4 => prop::collection::vec(call, 1..6).prop_map(some),
    ]
    .boxed()
}

pub(crate) fn action() -> BoxedStrategy<Action> {
    select(vec![Action::Always, Action::Always, Action::Never]).boxed()
}

/// Two conditions on the groups of a task, which may be met by one group each.
fn group_conditions() -> BoxedStrategy<Vec<Condition>> {
    let group = || number(&[Field::Gid, Field::Egid], EQ, &IDS[..3]);
    (group(), group())
        .prop_map(|(one, other)| vec![one, other])
        .boxed()
}

/// A rule of the exit list.
pub(crate) fn exit_rule() -> impl Strategy<Value = Rule> {
    let conditions = (
        prop::option::weighted(0.25, inode_condition()),
        prop_oneof![
            6 => prop::collection::vec(condition(), 0..4),
            1 => group_conditions(),
        ],
    );
    (action(), syscalls(), conditions).prop_map(|(action, syscalls, (inode, mut conditions))| {
        conditions.extend(inode);
        Rule {
            list: List::Exit,
            action,
            syscalls,
            conditions,
            source: Source::default(),
        }
    })
}

/// A rule of any list.
pub(crate) fn any_rule() -> impl Strategy<Value = Rule> {
    let list = select(vec![
        List::Exit,
        List::Exit,
        List::Task,
        List::Task,
        List::Exclude,
    ]);
    (exit_rule(), list).prop_map(|(rule, list)| Rule { list, ..rule })
}

/// An event, with ownership of what [`Facts`] borrows.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    facts: Facts<'static>,
    groups: Vec<u32>,
    names: Vec<Name>,
    above: Vec<ObjectId>,
}

impl Event {
    /// The event with less evidence about the name that `which` selects, in one of five ways.
    pub(crate) fn degraded(mut self, which: usize, how: usize) -> Event {
        let count = self.names.len();
        let Some(name) = self.names.get_mut(which % count.max(1)) else {
            return self;
        };
        match how {
            0 => name.object = Proven::Later,
            1 => {
                (name.object, name.inode, name.existed) = (Proven::Later, None, true);
            }
            2 => {
                name.path.truncate(name.path.len() / 2);
                (name.object, name.place) = (Proven::Later, Proven::Later);
                self.above.clear();
            }
            3 => self.facts.are_above_used = false,
            4 => name.is_owner_changed = true,
            _ => name.is_unknown = true,
        }
        self
    }

    /// The event, if all its names were known as the kernel knows them.
    pub(crate) fn known(mut self) -> Event {
        for name in &mut self.names {
            (name.object, name.place) = (Proven::InCall, Proven::InCall);
            name.existed &= name.inode.is_some();
        }
        self
    }

    pub(crate) fn facts(&self) -> Facts<'_> {
        Facts {
            groups: &self.groups,
            names: &self.names,
            above: &self.above,
            ..self.facts.clone()
        }
    }
}

fn ids() -> impl Strategy<Value = [u32; 10]> {
    prop::array::uniform10(prop_oneof![select(&IDS[..3]), select(&IDS[..])])
}

fn word() -> BoxedStrategy<u64> {
    (
        select(&WORDS[..]),
        select(vec![0u64, 0xffff_ffff_0000_0000]),
    )
        .prop_map(|(low, high)| u64::from(low) | high)
        .boxed()
}

fn call() -> impl Strategy<Value = (Entry, u32)> {
    prop_oneof![
        3 => select(&NATIVE[..]).prop_map(|nr| (Entry::Native, nr)),
        1 => select(&COMPAT[..]).prop_map(|nr| (Entry::Compat, nr)),
        1 => (any::<bool>(), 0..2050u32)
            .prop_map(|(compat, nr)| (if compat { Entry::Compat } else { Entry::Native }, nr)),
    ]
}

const RESULTS: [i64; 12] = [
    0,
    1,
    1000,
    -1,
    -13,
    -4095,
    -4096,
    -512,
    -515,
    -516,
    i64::MIN,
    1 << 32,
];

/// Random facts of a call and its task.
pub(crate) fn event() -> impl Strategy<Value = Event> {
    let task = (
        ids(),
        prop::collection::vec(select(&IDS[..]), 0..5),
        select(&WORDS[..]),
        workload(),
    );
    let more = (
        select(&WORDS[..]),
        select(&WORDS[..]),
        executable(),
        prop::option::of(select(vec![0u32, 1, 2, 3, 0o101])),
        prop::option::of(select(vec![0u32, 1, 2, 10])),
        prop::collection::vec(name(), 0..4),
    );
    (
        call(),
        prop::array::uniform4(word()),
        select(&RESULTS[..]),
        task,
        more,
    )
        .prop_map(
            |((entry, nr), args, result, (ids, groups, personality, workload), more)| {
                let (pid, ppid, exe, how_flags, family, names) = more;
                let shape = plan::shape(entries().arch(entry).expect("both entries"), nr);
                let open_flags = match shape.open_flags {
                    NONE if shape.how == NONE => None,
                    NONE => how_flags,
                    arg => Some(args[arg as usize] as u32),
                };
                let facts = Facts {
                    entry,
                    nr,
                    args,
                    result: (shape.kind != ShapeKind::Exit).then_some(result),
                    pid,
                    ppid,
                    auid: ids[0],
                    ses: ids[1],
                    uid: ids[2],
                    euid: ids[3],
                    suid: ids[4],
                    fsuid: ids[5],
                    gid: ids[6],
                    egid: ids[7],
                    sgid: ids[8],
                    fsgid: ids[9],
                    groups: &[],
                    personality,
                    exe,
                    open_flags,
                    saddr_fam: if shape.sockaddr == NONE { None } else { family },
                    names: &[],
                    above: &[],
                    are_above_used: true,
                    workload,
                };
                let are_there = collects_names(shape.names(), &facts);
                let names: Vec<Name> = if are_there { names } else { Vec::new() };
                Event {
                    facts,
                    groups,
                    above: above(&names),
                    names,
                }
            },
        )
}

/// Whether a call with these facts collects names.
fn collects_names(names: CallNames, facts: &Facts<'_>) -> bool {
    const AF_UNIX: u32 = 1;
    match names {
        CallNames::Always => true,
        CallNames::OfSocket => facts.saddr_fam == Some(AF_UNIX),
        CallNames::None => false,
    }
}

/// The facts of a getpid(2) by root.
pub(crate) fn plain_call() -> Facts<'static> {
    Facts {
        entry: Entry::Native,
        nr: 39,
        args: [0; 4],
        result: Some(1),
        pid: 1,
        ppid: 0,
        auid: u32::MAX,
        ses: u32::MAX,
        uid: 0,
        euid: 0,
        suid: 0,
        fsuid: 0,
        gid: 0,
        egid: 0,
        sgid: 0,
        fsgid: 0,
        groups: &[],
        personality: 0,
        exe: Executable::default(),
        open_flags: None,
        saddr_fam: None,
        names: &[],
        above: &[],
        are_above_used: true,
        workload: TaskWorkload::UNKNOWN,
    }
}
