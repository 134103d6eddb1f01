//! Gates: one cheap test per call. If the test fails, no rule can select the call. Programs make it
//! before anything else is done for a call, so that the calls that rules do not select, which are
//! most, cost next to nothing.

use crate::conditions::{field_name, BitOp, Candidate, Fact, Test, FACTS};
use crate::marks::Seen;
use crate::tables;
use abi::{Shape, ShapeKind};
use serde::Serialize;
use std::fmt;

/// No rule can select a call unless `fact & mask` lies in one of two closed ranges, or the result in another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Gate {
    /// The fact that is tested.
    pub fact: Fact,
    /// The bits of the fact that are compared.
    pub mask: u32,
    /// Closed ranges `(first, last)`; both are equal if one range will do.
    pub ranges: [(u32, u32); 2],
    /// Closed range of results, as the call returns them, with which a call is admitted in any case.
    pub results: (u32, u32),
}

/// A gate, for people and programs to read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GateExplanation {
    /// Name of the field that is tested.
    pub field: &'static str,
    /// The bits of the field that are compared.
    pub mask: u32,
    /// Closed ranges.
    pub ranges: Vec<(u32, u32)>,
    /// Closed range of the results with which a call is admitted in any case.
    pub results: Option<(i32, i32)>,
}

/// A set of values, as ascending closed ranges that neither overlap nor touch.
type Ranges = Vec<(u32, u32)>;

const EVERYTHING: (u32, u32) = (0, u32::MAX);
/// The first of the values of `exit` of a call that failed: -4095 to -1.
const ERRORS_FIRST: u32 = -4095i32 as u32;
/// Stands for no range of results: no call returns this value.
const NO_RESULTS: (u32, u32) = (1 << 31, 1 << 31);
/// A set of ids up to this size means a few ids, rather than all but a few.
const FEW: u64 = 1 << 16;

/// The ids of a task that a gate can test.
const IDS: [Fact; 5] = [Fact::Auid, Fact::Uid, Fact::Euid, Fact::Suid, Fact::Fsuid];

/// The facts that a gate can test: `gate_value()` of crates/kernel/bpf/programs/gate.h and, for the last three,
/// `workload_admits()` of workloads.h. Among equally good gates, the first one is used.
const ASKED: [Fact; 14] = [
    Fact::Auid,
    Fact::Uid,
    Fact::Euid,
    Fact::Suid,
    Fact::Fsuid,
    Fact::Exit,
    Fact::Success,
    Fact::A0,
    Fact::A1,
    Fact::A2,
    Fact::A3,
    Fact::Unit,
    Fact::Slice,
    Fact::Container,
];

impl Gate {
    /// The gate of a call with these candidates; `None` if there is no cheap test.
    pub(crate) fn of(candidates: &[Candidate], shape: &Shape) -> Option<Gate> {
        let facts = ASKED
            .into_iter()
            .filter_map(|fact| Gate::on(fact, candidates.iter(), shape));
        facts
            .chain(Gate::on_open_flags(candidates, shape))
            .min_by_key(Gate::rank)
    }

    /// The gate, on an id of the task, of the rules that select calls which have reached nothing with a mark;
    /// `None` if no id tells. What starts or ends a program is looked at in any case.
    pub(crate) fn without_mark(candidates: &[Candidate], shape: &Shape) -> Option<Gate> {
        if is_of_programs(shape) {
            return None;
        }
        let needs_none = || candidates.iter().filter(|each| each.marks.is_none());
        if needs_none().all(|candidate| candidate.never) {
            return Some(Gate::CLOSED);
        }
        IDS.into_iter()
            .filter_map(|fact| Gate::on(fact, needs_none(), shape))
            .min_by_key(Gate::rank)
    }

    /// Admits no call.
    const CLOSED: Gate = Gate {
        fact: Fact::Auid,
        mask: 0,
        ranges: [(1, 1); 2],
        results: NO_RESULTS,
    };

    /// The gate that admits calls whose first argument has this low word.
    pub fn on_first_argument(value: u32) -> Gate {
        Gate {
            fact: Fact::A0,
            mask: u32::MAX,
            ranges: [(value, value); 2],
            results: NO_RESULTS,
        }
    }

    /// Whether a call whose fact has this value, and which has this result, may be selected. `value` is `None` if the
    /// call does not have the fact; a workload is then not known, and any rule may select the call.
    pub fn admits(&self, value: Option<u32>, result: Option<u32>) -> bool {
        let within = |value: u32, (first, last): (u32, u32)| (first..=last).contains(&value);
        let fact = value.map(|value| value & self.mask);
        (fact.is_none() && self.asks_workload())
            || fact.is_some_and(|fact| self.ranges.iter().any(|&range| within(fact, range)))
            || result.is_some_and(|result| within(result, self.results))
    }

    /// Whether the gate depends on the result of the call.
    pub fn asks_result(&self) -> bool {
        matches!(self.fact, Fact::Exit | Fact::Success) || self.results != NO_RESULTS
    }

    /// Whether the gate asks about the cgroup of the task, which takes a work area. Hooks on functions leave it to what
    /// they call.
    pub fn asks_workload(&self) -> bool {
        self.fact.is_of_workload()
    }

    fn on<'c>(
        fact: Fact,
        candidates: impl Iterator<Item = &'c Candidate>,
        shape: &Shape,
    ) -> Option<Gate> {
        let returns = shape.kind != ShapeKind::Exit;
        if matches!(fact, Fact::Exit | Fact::Success) && !returns {
            return None;
        }
        let mut union = Ranges::new();
        for candidate in candidates.filter(|candidate| !candidate.never) {
            union.extend(accepted(candidate, fact));
        }
        Gate::new(fact, u32::MAX, united(union))
    }

    /// The gate for `perm=` of a call that opens files: the access modes that its flags may have. Rules that only
    /// select calls that fail need no certain access, but one of their errors.
    fn on_open_flags(candidates: &[Candidate], shape: &Shape) -> Option<Gate> {
        const ACCESS_MODE: u32 = 3;
        let fact = *[Fact::A0, Fact::A1, Fact::A2, Fact::A3].get(usize::from(shape.open_flags))?;
        if shape.kind == ShapeKind::Socketcall || shape.how != abi::NONE {
            return None;
        }

        let selecting = candidates.iter().filter(|candidate| !candidate.never);
        let (of_failures, others): (Vec<_>, Vec<_>) =
            selecting.partition(|candidate| is_of_failures(candidate));
        let modes = (0..=ACCESS_MODE).filter(|&mode| {
            let access = abi::PermClass::open_bits(mode);
            others.iter().any(|candidate| may_access(candidate, access))
        });
        let modes = united(modes.map(|mode| (mode, mode)).collect());
        if modes == [(0, ACCESS_MODE)] {
            return None;
        }

        let results = united(of_failures.into_iter().flat_map(results).collect());
        let gate = Gate::new(fact, ACCESS_MODE, modes)?;
        Some(Gate {
            results: span_of(&results).map_or(NO_RESULTS, as_returned),
            ..gate
        })
    }

    fn new(fact: Fact, mask: u32, mut ranges: Ranges) -> Option<Gate> {
        while ranges.len() > 2 {
            join_nearest(&mut ranges);
        }
        let (&first, &last) = (ranges.first()?, ranges.last()?);
        (first != EVERYTHING).then_some(Gate {
            fact,
            mask,
            ranges: [first, last],
            results: NO_RESULTS,
        })
    }

    fn size(&self) -> u64 {
        let [a, b] = self.ranges;
        let size = |(first, last): (u32, u32)| u64::from(last - first) + 1;
        size(a) + if a == b { 0 } else { size(b) }
    }

    /// A rank by how many calls the gate is likely to admit; the lowest admits the fewest.
    fn rank(&self) -> u32 {
        let is_error = |&(first, _): &(u32, u32)| first >= ERRORS_FIRST;
        let few = self.size() <= FEW;
        match self.fact {
            Fact::Exit if self.ranges.iter().all(is_error) => 0,
            Fact::Exit => 7,
            Fact::Success if self.ranges == [(2, 2); 2] => 2,
            Fact::Success => 8,
            Fact::A0 | Fact::A1 | Fact::A2 | Fact::A3 if few => 4,
            Fact::A0 | Fact::A1 | Fact::A2 | Fact::A3 => 6,
            _ if few && self.ranges != [(0, 0); 2] => 1,
            // root makes many calls.
            _ if few => 5,
            _ => 3,
        }
    }

    /// The explanation that `tarsier plan --syscall` prints.
    pub fn explain(&self) -> GateExplanation {
        let [a, b] = self.ranges;
        GateExplanation {
            field: field_name(self.fact as u32),
            mask: self.mask,
            ranges: if a == b { vec![a] } else { vec![a, b] },
            results: (self.results != NO_RESULTS)
                .then_some((self.results.0 as i32, self.results.1 as i32)),
        }
    }

    /// `struct gate` of tables.h, as the four words of its two rows.
    pub fn words(&self) -> [u64; 4] {
        let pair = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        let [a, b, results] = [self.ranges[0], self.ranges[1], self.results]
            .map(|(first, last)| pair(first, last - first));
        [pair(self.fact as u32, self.mask), a, b, results]
    }

    /// The two rows of a gate; those of `None` admit any call.
    pub(crate) fn rows(gate: Option<Gate>) -> [tables::Row; 2] {
        let [a, b, c, d] = gate.map_or([0; 4], |gate| gate.words());
        [tables::Row { a, b }, tables::Row { a: c, b: d }]
    }

    /// The gate whose first row is `row`; `None` if it admits any call.
    pub(crate) fn at(rows: &[tables::Row], row: u32) -> Option<Gate> {
        let [first, second] = *rows.get(row as usize..)?.first_chunk()?;
        Gate::from_words([first.a, first.b, second.a, second.b])
    }

    /// The inverse of [`Gate::words`]; `None` for an open gate.
    pub(crate) fn from_words(words: [u64; 4]) -> Option<Gate> {
        let fact = *Fact::EVERY[..FACTS].get(words[0] as u32 as usize)?;
        let range = |word: u64| {
            let (first, span) = (word as u32, (word >> 32) as u32);
            (first, first.wrapping_add(span))
        };
        ASKED.contains(&fact).then_some(Gate {
            fact,
            mask: (words[0] >> 32) as u32,
            ranges: [range(words[1]), range(words[2])],
            results: range(words[3]),
        })
    }
}

impl fmt::Display for GateExplanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.field)?;
        if self.mask != u32::MAX {
            write!(f, " & {}", self.mask)?;
        }

        for (i, (first, last)) in self.ranges.iter().enumerate() {
            let or = if i > 0 { " or" } else { "" };
            if first == last {
                write!(f, "{or} {first}")?;
            } else {
                write!(f, "{or} {first} to {last}")?;
            }
        }

        match self.results {
            Some((first, last)) if first == last => write!(f, "; or result {first}"),
            Some((first, last)) => write!(f, "; or result {first} to {last}"),
            None => Ok(()),
        }
    }
}

/// Whether a candidate may select a call that succeeds in opening a file for reading only.
pub(crate) fn selects_plain_reads(candidates: &[Candidate]) -> bool {
    const READ_ONLY: u32 = 0;
    let selects = |candidate: &Candidate| {
        may_access(candidate, abi::PermClass::open_bits(READ_ONLY)) && !is_of_failures(candidate)
    };
    candidates
        .iter()
        .any(|candidate| !candidate.never && selects(candidate))
}

/// Whether a call starts or ends a program.
fn is_of_programs(shape: &Shape) -> bool {
    use ShapeKind::{Exec, Exit, Fork};
    matches!(shape.kind, Exec | Fork | Exit)
}

/// [`tables::SPEC_ONLY_MARKED`] if no rule can select a call that succeeds and has reached nothing with a mark, or 0. What
/// starts or ends a program is looked at in any case.
pub(crate) fn need_of_mark(candidates: &[Candidate], shape: &Shape) -> u32 {
    let needs = |candidate: &Candidate| candidate.marks.is_some() || is_of_failures(candidate);
    let mut candidates = candidates.iter();
    let is_needed =
        !is_of_programs(shape) && candidates.all(|candidate| candidate.never || needs(candidate));
    if is_needed {
        tables::SPEC_ONLY_MARKED
    } else {
        0
    }
}

/// Whether the programs end before they look at rules, since what the call reached has no mark: `without_mark` does not
/// admit the task, of whose ids `value` is one; or the call has succeeded, and rules then need a mark. `seen`: the
/// marks, if all are known. Rules compare the low half of results, in which a success may look like an error.
pub(crate) fn lacks_mark(
    call: &tables::Call,
    without_mark: Option<Gate>,
    value: impl Fn(Fact) -> Option<u32>,
    seen: Option<&Seen>,
    result: Option<i64>,
) -> bool {
    let is_out = |gate: Gate| !gate.admits(value(gate.fact), None);
    let has_succeeded = result.is_some_and(|result| result as u64 >> 31 == 0);
    seen.is_some_and(|seen| seen.hits.is_empty())
        && (without_mark.is_some_and(is_out)
            || (call.spec & tables::SPEC_ONLY_MARKED != 0 && has_succeeded))
}

/// The results, as audit compares them, with which the candidate may match.
fn results(candidate: &Candidate) -> Ranges {
    const SUCCEEDED: u32 = 1;
    let exits = accepted(candidate, Fact::Exit);
    let success = accepted(candidate, Fact::Success);
    if intersection(&success, &vec![(SUCCEEDED, SUCCEEDED)]).is_empty() {
        intersection(&exits, &vec![(ERRORS_FIRST, u32::MAX)])
    } else {
        exits
    }
}

/// Whether the candidate only matches calls that fail.
fn is_of_failures(candidate: &Candidate) -> bool {
    results(candidate)
        .iter()
        .all(|&(first, _)| first >= ERRORS_FIRST)
}

/// The smallest range that contains all others.
fn span_of(ranges: &Ranges) -> Option<(u32, u32)> {
    Some((ranges.first()?.0, ranges.last()?.1))
}

/// A range of results as calls return them: for EINTR, which audit prints, some return other numbers
/// (`audit_return_fixup()`, kernel/auditsc.c).
fn as_returned((first, last): (u32, u32)) -> (u32, u32) {
    const EINTR: u32 = -4i32 as u32;
    const ERESTART_RESTARTBLOCK: u32 = -516i32 as u32;
    if (first..=last).contains(&EINTR) {
        (first.min(ERESTART_RESTARTBLOCK), last)
    } else {
        (first, last)
    }
}

/// The values of a fact with which the candidate may match.
fn accepted(candidate: &Candidate, asked: Fact) -> Ranges {
    let mut accepted = vec![EVERYTHING];
    for test in &candidate.tests {
        if let Test::Range {
            fact,
            first,
            last,
            inside,
        } = *test
        {
            if fact == asked {
                accepted = intersection(&accepted, &allowed(first, last, inside));
            }
        }
    }

    accepted
}

fn allowed(first: u32, last: u32, inside: bool) -> Ranges {
    if inside {
        return vec![(first, last)];
    }
    let below = first.checked_sub(1).map(|end| (0, end));
    let above = last.checked_add(1).map(|start| (start, u32::MAX));
    below.into_iter().chain(above).collect()
}

fn may_access(candidate: &Candidate, access: u32) -> bool {
    candidate.tests.iter().all(|test| match *test {
        Test::Bits {
            fact: Fact::Access,
            op,
            operand,
        } => match op {
            BitOp::Any => access & operand != 0,
            BitOp::All => access & operand == operand,
            BitOp::None => access & operand == 0,
        },
        _ => true,
    })
}

fn intersection(left: &Ranges, right: &Ranges) -> Ranges {
    let mut common = Ranges::new();
    for &(a, b) in left {
        for &(c, d) in right {
            let (first, last) = (a.max(c), b.min(d));
            if first <= last {
                common.push((first, last));
            }
        }
    }
    common
}

fn united(mut ranges: Ranges) -> Ranges {
    ranges.sort_unstable();
    let mut united = Ranges::new();
    for (first, last) in ranges {
        match united.last_mut() {
            Some((_, end)) if u64::from(first) <= u64::from(*end) + 1 => *end = last.max(*end),
            _ => united.push((first, last)),
        }
    }
    united
}

/// Joins the two ranges that have the smallest gap between them.
fn join_nearest(ranges: &mut Ranges) {
    let gap = |i: &usize| ranges[i + 1].0 - ranges[*i].1;
    if let Some(nearest) = (0..ranges.len() - 1).min_by_key(gap) {
        ranges[nearest].1 = ranges[nearest + 1].1;
        ranges.remove(nearest + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_united_and_joined_where_the_gap_is_smallest() {
        assert_eq!(united(vec![(5, 9), (0, 4), (20, 30)]), [(0, 9), (20, 30)]);
        assert_eq!(united(vec![(0, u32::MAX), (3, 3)]), [EVERYTHING]);
        let mut ranges = vec![(1, 1), (10, 12), (14, 20), (100, 100)];
        join_nearest(&mut ranges);
        assert_eq!(ranges, [(1, 1), (10, 20), (100, 100)]);
    }

    #[test]
    fn a_gate_on_a_unit_admits_its_tasks_and_those_of_whom_it_is_not_known() {
        let on_unit = Candidate {
            rule: 0,
            tests: vec![Test::Range {
                fact: Fact::Unit,
                first: 2,
                last: 2,
                inside: true,
            }],
            stage2: false,
            never: false,
            by_inode: false,
            marks: None,
            is_decided_by_marks: false,
        };
        let shape = abi::call("getppid").shape;
        let gate = Gate::of(&[on_unit], &shape).expect("a gate");
        assert!(gate.asks_workload());
        let admitted = [Some(2), Some(0), None].map(|unit| gate.admits(unit, Some(0)));
        assert_eq!(admitted, [true, false, true]);
    }

    #[test]
    fn without_a_mark_only_the_rules_count_that_need_none() {
        let rule = |first: Option<u32>, marks: Option<u64>| Candidate {
            rule: 0,
            tests: first
                .map(|first| Test::Range {
                    fact: Fact::Auid,
                    first,
                    last: first + 10,
                    inside: true,
                })
                .into_iter()
                .collect(),
            stage2: false,
            never: false,
            by_inode: false,
            marks: marks.map(|_| Vec::new()),
            is_decided_by_marks: false,
        };
        let shape = abi::call("unlink").shape;
        let admits = |candidates: &[Candidate], auid: u32| {
            let gate = Gate::without_mark(candidates, &shape);
            gate.map(|gate| gate.admits(Some(auid), None))
        };
        let (named, of_users) = (rule(None, Some(1)), rule(Some(1000), None));
        assert_eq!(admits(&[named.clone(), of_users.clone()], 1005), Some(true));
        assert_eq!(admits(&[named.clone(), of_users.clone()], 0), Some(false));
        assert_eq!(admits(std::slice::from_ref(&named), 0), Some(false));
        assert_eq!(admits(&[named, of_users, rule(None, None)], 0), None);
        let starts = abi::call("execve").shape;
        assert_eq!(Gate::without_mark(&[], &starts), None);
    }

    #[test]
    fn words_say_the_gate() {
        let gate = Gate {
            fact: Fact::A2,
            mask: 3,
            ranges: [(1, 1), (3, u32::MAX)],
            results: (-13i32 as u32, -1i32 as u32),
        };
        assert_eq!(Gate::from_words(gate.words()), Some(gate));
        assert_eq!(Gate::from_words([0; 4]), None);
    }
}
