//! A missing part costs only what depends on it. Each member, enumerator, tracepoint and function that the
//! programs use is renamed in the kernel's types, one at a time. The engine must still start, record, and report
//! the loss; if every record needs the part, it must refuse and name it.
//!
//! `TARSIER_BREAK=io_statx` breaks only parts whose name contains this text; `TARSIER_BREAK_ENGINE=trampoline` tests one
//! engine; `TARSIER_BREAK_TOGETHER=16` renames 16 parts at a time, and fewer only if that costs more than their
//! features: for machines on which an engine takes long to start.

mod btf;
mod child;

use btf::Kernel;
use capture::btf::{Btf, TypeKind};
use capture::relocations::{self, Member, Question, Relocation};
use child::Answer;
use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::path::Path;
use std::sync::Mutex;
use std::time::Instant;

/// Enumerators whose values are looked up for the programs.
const ENUMERATORS: [&str; 3] = ["IORING_OP_LAST", "REQ_F_CREDS_BIT", "REQ_F_CQE_SKIP_BIT"];
/// Number of kernels tested at the same time.
const WORKERS: usize = 3;

/// A part that is taken away.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Break {
    /// A member of a structure, union or enumeration: its type and name.
    Member(String, String),
    Type(String),
    /// An enumerator of any enumeration.
    Enumerator(&'static str),
    Tracepoint(&'static str),
    Function(&'static str),
}

impl fmt::Display for Break {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Break::Member(ty, member) => write!(f, "{ty}.{member}"),
            Break::Type(name) => write!(f, "{name}."),
            Break::Enumerator(name) => f.write_str(name),
            Break::Tracepoint(name) => write!(f, "tracepoint {name}"),
            Break::Function(name) => write!(f, "function {name}"),
        }
    }
}

impl Break {
    /// Offsets of the names to change; empty if the kernel does not have the part.
    fn places(&self, btf: &Btf<'_>) -> BTreeSet<usize> {
        match self {
            Break::Member(ty, member) => btf::members(btf, ty, member),
            Break::Type(name) => btf::types(btf, TypeKind::Struct, name),
            Break::Enumerator(name) => btf::members(btf, "", name),
            Break::Tracepoint(name) => {
                btf::types(btf, TypeKind::Typedef, &format!("btf_trace_{name}"))
            }
            Break::Function(name) => btf::types(btf, TypeKind::Function, name),
        }
    }

    /// Whether programs use it on this kernel: of several forms of a member, a kernel has one.
    fn is_in_use(&self, used: &BTreeSet<Member>) -> bool {
        let is_it = |m: &Member, ty: &str, name: &str| m.ty == ty && m.member == name;
        match self {
            Break::Member(ty, name) => used.iter().any(|member| is_it(member, ty, name)),
            _ => true,
        }
    }

    /// Whether hooks may be left out because of it.
    fn costs_hooks(&self) -> bool {
        !matches!(self, Break::Member(..) | Break::Type(_))
    }

    /// Checks an answer. The error describes what is wrong.
    fn check(&self, answer: &Answer, whole: &Answer) -> Result<(), String> {
        let is_named = |lines: &[String]| lines.iter().any(|line| self.is_in(line));
        if is_named(&answer.essential) {
            return match &answer.refusal {
                Some(refusal) if refusal.contains(&self.to_string()) => Ok(()),
                Some(refusal) => Err(format!("the refusal does not name it: {refusal}")),
                None => Err("the engine starts without what every record needs".to_owned()),
            };
        }
        if let Some(refusal) = &answer.refusal {
            return Err(format!("refused: {refusal}"));
        }
        if !answer.is_recorded {
            return Err(format!("no event: {}", answer.text));
        }
        if !is_named(&answer.gaps) && !is_named(&answer.others) {
            return Err(format!("not named in {:?}", answer.gaps));
        }
        let is_less = answer.links < whole.links;
        if is_less && !self.costs_hooks() {
            let (links, all) = (answer.links, whole.links);
            return Err(format!("{links} hooks instead of {all}"));
        }
        Ok(())
    }

    fn is_in(&self, line: &str) -> bool {
        let name = self.to_string();
        match self {
            Break::Type(_) => line.starts_with(&name),
            _ => line.split(": ").next() == Some(&name),
        }
    }
}

/// All breaks, and the number of relocations that they cover.
fn breaks(relocations: &[Relocation]) -> (BTreeSet<Break>, usize) {
    let mut breaks = BTreeSet::new();
    let mut covered = 0;
    for relocation in relocations {
        let members = relocation.members();
        let members = members.map(|m| Break::Member(m.kernel_type().to_owned(), m.member));
        let mut own: BTreeSet<Break> = members.collect();
        use Question::{TypeExists, TypeId, TypeSize};
        if matches!(relocation.question, TypeId | TypeSize | TypeExists) {
            own.insert(Break::Type(relocation.ty.clone()));
        }
        // A kernel cannot lack what the object knows about itself.
        covered += usize::from(!own.is_empty() || relocation.question == Question::Local);
        breaks.extend(own);
    }
    breaks.extend(ENUMERATORS.map(Break::Enumerator));
    let programs: &'static [u8] = bpf::tarsier().to_vec().leak();
    let places = relocations::targets(programs).expect("the object can be read");
    breaks.extend(places.into_iter().map(|place| {
        if place.is_tracepoint() {
            Break::Tracepoint(place.name)
        } else {
            Break::Function(place.name)
        }
    }));
    (breaks, covered)
}

fn engines() -> Vec<&'static str> {
    let mut engines = vec!["tracepoint", "trampoline"];
    if !capture::functions_can_be_hooked() {
        println!(
            "skipped: kernels without functions: this one does not let programs hook functions"
        );
        engines.pop();
    }
    if let Ok(name) = std::env::var("TARSIER_BREAK_ENGINE") {
        engines.retain(|engine| *engine == name);
        assert!(!engines.is_empty(), "no engine {name} on this kernel");
    }
    engines
}

#[test]
fn child_starts_an_engine() {
    child::answer();
}

/// Number of breaks that were made, and the faults found.
#[derive(Default)]
struct Outcome {
    broken: usize,
    kernels: u32,
    wrong: Vec<String>,
}

/// Groups of parts still to be broken; those of a group are renamed together.
type Queue<'a> = Mutex<VecDeque<Vec<&'a Break>>>;

/// A worker: breaks one kernel after another until nothing is left to break.
fn work(kernel: &Kernel, engine: &str, file: &Path, queue: &Queue<'_>) -> Outcome {
    let used = capture::probe::members_in_use();
    std::fs::write(file, kernel.renamed(&BTreeSet::new())).expect("a file");
    let whole = child::ask(file, engine);
    assert!(whole.is_recorded, "on a whole kernel: {}", whole.text);
    let btf = kernel.types();
    let mut outcome = Outcome::default();
    let next = || queue.lock().expect("no worker panics").pop_front();
    while let Some(mut group) = next() {
        group.retain(|one| {
            let has_use = !one.places(&btf).is_empty() && one.is_in_use(&used);
            if !has_use {
                println!("{engine}: this kernel has no use for {one}");
            }
            has_use
        });
        if group.is_empty() {
            continue;
        }
        let places = group.iter().flat_map(|one| one.places(&btf)).collect();
        std::fs::write(file, kernel.renamed(&places)).expect("a file");
        outcome.kernels += 1;
        let answer = child::ask(file, engine);
        let faults = group
            .iter()
            .filter_map(|one| Some((one, one.check(&answer, &whole).err()?)));
        let faults: Vec<_> = faults.collect();
        if group.len() > 1 && (answer.refusal.is_some() || !faults.is_empty()) {
            let mut queue = queue.lock().expect("no worker panics");
            queue.extend(parts(group, &answer));
            continue;
        }
        outcome.broken += group.len();
        let faults = faults.into_iter();
        let faults = faults.map(|(one, fault)| format!("{engine}: without {one}: {fault}"));
        outcome.wrong.extend(faults);
    }
    outcome
}

/// Groups to try instead of one that costs too much: parts that every record needs one by one, else two halves.
fn parts<'a>(mut group: Vec<&'a Break>, answer: &Answer) -> Vec<Vec<&'a Break>> {
    let is_essential = |one: &&Break| answer.essential.iter().any(|line| one.is_in(line));
    if !group.iter().any(is_essential) {
        let rest = group.split_off(group.len() / 2);
        return vec![group, rest];
    }
    let (essential, rest) = group.into_iter().partition(|one| is_essential(one));
    let essential: Vec<&Break> = essential;
    let alone = essential.into_iter().map(|one| vec![one]);
    alone.chain([rest]).collect()
}

/// Number of parts that are renamed at a time.
fn together() -> usize {
    let number = std::env::var("TARSIER_BREAK_TOGETHER").map(|text| text.parse());
    match number {
        Ok(number) => number.expect("TARSIER_BREAK_TOGETHER takes a number above 0"),
        Err(_) => 1,
    }
}

/// Makes the breaks that `TARSIER_BREAK` selects, several at the same time.
fn break_all(kernel: &Kernel, engine: &str, breaks: &BTreeSet<Break>) -> Outcome {
    let has_functions = engine == "trampoline";
    let name = std::env::var("TARSIER_BREAK").unwrap_or_default();
    let todo = breaks.iter().filter(|one| {
        let is_there = has_functions || !matches!(one, Break::Function(_));
        is_there && one.to_string().contains(&name)
    });
    // What may cost hooks is not taken away together with what may not.
    let (hooks, others): (Vec<_>, Vec<_>) = todo.partition(|one| one.costs_hooks());
    let groups = [hooks, others];
    let groups = groups.iter().flat_map(|all| all.chunks(together()));
    let queue = Mutex::new(groups.map(<[_]>::to_vec).collect());
    let dir = tempfile::tempdir().expect("a directory");
    std::thread::scope(|scope| {
        let start = |worker: usize| {
            let file = dir.path().join(worker.to_string());
            let queue = &queue;
            scope.spawn(move || work(kernel, engine, &file, queue))
        };
        let workers: Vec<_> = (0..WORKERS).map(start).collect();
        let done = workers.into_iter().map(|w| w.join().expect("no panic"));
        done.fold(Outcome::default(), |mut all, one| {
            all.broken += one.broken;
            all.kernels += one.kernels;
            all.wrong.extend(one.wrong);
            all
        })
    })
}

#[test]
fn what_a_kernel_lacks_costs_its_feature_alone() {
    let Some(_lock) = testkit::may_load_programs() else {
        return;
    };
    let relocations = relocations::of_programs().expect("the object can be read");
    let (breaks, covered) = breaks(&relocations);
    assert_eq!(covered, relocations.len(), "relocations without a break");
    let kernel = Kernel::read();
    let mut wrong = Vec::new();
    for engine in engines() {
        let start = Instant::now();
        let outcome = break_all(&kernel, engine, &breaks);
        let (broken, kernels, took) = (outcome.broken, outcome.kernels, start.elapsed());
        println!(
            "{engine}: {covered} relocations, {broken} things missing, {kernels} broken kernels in {took:?}, {:?} each",
            took / kernels.max(1)
        );
        assert!(broken > 0, "nothing was broken");
        wrong.extend(outcome.wrong);
    }
    wrong.sort();
    let count = wrong.len();
    assert!(
        wrong.is_empty(),
        "{count} of the breaks cost more:\n{}",
        wrong.join("\n")
    );
}
