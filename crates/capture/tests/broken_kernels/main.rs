//! A missing part costs only what depends on it. Each member, enumerator, tracepoint and function that the
//! programs use is renamed in the kernel's types, one at a time. The engine must still start, record, and report
//! the loss; if every record needs the part, it must refuse and name it. `TARSIER_BREAK=io_statx` breaks only
//! parts whose name contains this text.

#[path = "../support/mod.rs"]
mod support;

mod btf;
mod child;

use btf::Kernel;
use capture::btf::{Btf, Kind};
use capture::relocations::{self, Member, Question, Relocation};
use child::Answer;
use std::collections::BTreeSet;
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
    /// Of a structure, union or enumeration: its type and name.
    Member(String, String),
    Type(String),
    /// Of any enumeration.
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
            Break::Type(name) => btf::types(btf, Kind::Struct, name),
            Break::Enumerator(name) => btf::members(btf, "", name),
            Break::Tracepoint(name) => btf::types(btf, Kind::Typedef, &format!("btf_trace_{name}")),
            Break::Function(name) => btf::types(btf, Kind::Function, name),
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
        if matches!(relocation.question, Question::Type | Question::TypeExists) {
            own.insert(Break::Type(relocation.ty.clone()));
        }
        // A kernel cannot lack what the object knows about itself.
        covered += usize::from(!own.is_empty() || relocation.question == Question::Local);
        breaks.extend(own);
    }
    breaks.extend(ENUMERATORS.map(Break::Enumerator));
    let places = relocations::places_of_programs().expect("the object can be read");
    breaks.extend(places.into_iter().map(|place| match place.is_tracepoint() {
        true => Break::Tracepoint(place.name),
        false => Break::Function(place.name),
    }));
    (breaks, covered)
}

fn engines() -> Vec<&'static str> {
    if capture::functions_can_be_hooked() {
        return vec!["tracepoint", "trampoline"];
    }
    println!("skipped: kernels without functions: this one does not let programs hook functions");
    vec!["tracepoint"]
}

#[test]
fn child_starts_an_engine() {
    child::answer();
}

/// Number of breaks that were made, and the faults found.
#[derive(Default)]
struct Outcome {
    broken: u32,
    wrong: Vec<String>,
}

/// A worker: takes one break after another until none is left.
fn work(kernel: &Kernel, engine: &str, file: &Path, next: impl Fn() -> Option<Break>) -> Outcome {
    let used = capture::probe::members_in_use();
    std::fs::write(file, kernel.renamed(&BTreeSet::new())).expect("a file");
    let whole = child::ask(file, engine);
    assert!(whole.is_recorded, "on a whole kernel: {}", whole.text);
    let btf = kernel.types();
    let mut outcome = Outcome::default();
    while let Some(one) = next() {
        let places = one.places(&btf);
        if places.is_empty() || !one.is_in_use(&used) {
            println!("{engine}: this kernel has no use for {one}");
            continue;
        }
        std::fs::write(file, kernel.renamed(&places)).expect("a file");
        outcome.broken += 1;
        if let Err(fault) = one.check(&child::ask(file, engine), &whole) {
            outcome
                .wrong
                .push(format!("{engine}: without {one}: {fault}"));
        }
    }
    outcome
}

/// Makes the breaks that `TARSIER_BREAK` selects, several at the same time.
fn break_all(kernel: &Kernel, engine: &str, breaks: &BTreeSet<Break>) -> Outcome {
    let has_functions = engine == "trampoline";
    let name = std::env::var("TARSIER_BREAK").unwrap_or_default();
    let todo = breaks.iter().filter(|one| {
        let is_there = has_functions || !matches!(one, Break::Function(_));
        is_there && one.to_string().contains(&name)
    });
    let todo = Mutex::new(todo);
    let dir = tempfile::tempdir().expect("a directory");
    let next = || todo.lock().expect("no worker panics").next().cloned();
    std::thread::scope(|scope| {
        let start = |worker: usize| {
            let file = dir.path().join(worker.to_string());
            scope.spawn(move || work(kernel, engine, &file, next))
        };
        let workers: Vec<_> = (0..WORKERS).map(start).collect();
        let done = workers.into_iter().map(|w| w.join().expect("no panic"));
        done.fold(Outcome::default(), |mut all, one| {
            all.broken += one.broken;
            all.wrong.extend(one.wrong);
            all
        })
    })
}

#[test]
fn what_a_kernel_lacks_costs_its_feature_alone() {
    let Some(_lock) = support::may_load_programs() else {
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
        let (broken, took) = (outcome.broken, start.elapsed());
        println!(
            "{engine}: {covered} relocations, {broken} broken kernels in {took:?}, {:?} each",
            took / broken.max(1)
        );
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
