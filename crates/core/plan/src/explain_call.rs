//! Explains the plan for one system call, for people (as text) and programs (as JSON).

use crate::conditions::field_name;
use crate::decided::{decided_in, DecidedIn};
use crate::explain::paragraph;
use crate::facts::Entry;
use crate::gate::GateExplanation;
use crate::plan::Plan;
use crate::tables::{self, Row};
use serde::Serialize;
use std::fmt;

/// The output of `tarsier plan --syscall` for a call at one entry.
#[derive(Debug, Serialize)]
pub struct CallExplanation {
    /// Name of the call.
    pub syscall: String,
    /// Name of its architecture.
    pub arch: &'static str,
    /// Number of the call in that architecture.
    pub nr: u32,
    /// Rules that may select the call, in the order in which they are tried.
    pub candidates: Vec<CandidateExplanation>,
    /// The test that is made first: no rule selects a call that fails it.
    pub gate: Option<GateExplanation>,
    /// Pages of up to 64 candidates, each with its lookups.
    pub pages: Vec<Vec<LookupExplanation>>,
}

/// One candidate of a call.
#[derive(Debug, Serialize)]
pub struct CandidateExplanation {
    /// Position in the rule set, from 1.
    pub number: u32,
    /// The rule as `auditctl -l` prints it.
    pub rule: String,
    /// Number of tests of task and call that are left of its conditions for this call.
    pub tests: usize,
    /// The side that decides the rule.
    pub decided_in: DecidedIn,
}

/// One decision table.
#[derive(Debug, Serialize)]
pub struct LookupExplanation {
    /// Field that is looked up.
    pub field: &'static str,
    /// Kind of the table: `ranges`, `bits`, `group`, `no group`.
    pub kind: &'static str,
    /// Number of entries of the table.
    pub entries: usize,
    /// Size of the entries, in bytes.
    pub bytes: usize,
    /// The most comparisons that one lookup takes.
    pub steps_max: usize,
}

/// Explains call `name` of a plan, for each entry at which it exists. Returns nothing if no
/// architecture of the host has a call of that name.
pub fn explain_call(plan: &Plan, name: &str) -> Vec<CallExplanation> {
    [Entry::Native, Entry::Compat]
        .into_iter()
        .filter_map(|entry| {
            let arch = plan.entries.arch(entry)?;
            let nr = abi::syscall_number(arch, name)?;
            Some(CallExplanation {
                syscall: abi::syscall_name(arch, nr).unwrap_or(name).to_owned(),
                arch: arch.name(),
                nr,
                candidates: candidates(plan, entry, nr),
                gate: plan.gate(entry, nr).map(|gate| gate.explain()),
                pages: pages(plan, entry, nr),
            })
        })
        .collect()
}

fn candidates(plan: &Plan, entry: Entry, nr: u32) -> Vec<CandidateExplanation> {
    let call = plan.calls.get(&(entry, nr));
    let list = call.and_then(|call| plan.lists.get(call.list));
    let candidates = list.into_iter().flatten();
    candidates
        .map(|candidate| CandidateExplanation {
            number: candidate.rule + 1,
            rule: plan
                .rules
                .get(candidate.rule as usize)
                .map(ToString::to_string)
                .unwrap_or_default(),
            tests: candidate.tests.len(),
            decided_in: decided_in(plan, entry, nr, candidate),
        })
        .collect()
}

/// Reads the lookups from the tables, as the programs do.
fn pages(plan: &Plan, entry: Entry, nr: u32) -> Vec<Vec<LookupExplanation>> {
    let row = |i: usize| plan.rows.get(i).copied().unwrap_or_default();
    if nr as usize >= tables::CALLS {
        return Vec::new();
    }

    let call = tables::Call::from_row(row(tables::call_row(entry, nr)));
    let (first, count) = (call.pages as usize, usize::from(call.npages));
    (first..first + count)
        .map(|i| {
            let page = row(i).a as u32 as usize;
            let lookups = row(page + 1).b as u32 as usize;
            (0..lookups)
                .map(|l| {
                    let at = page + tables::PAGE_HEAD + 2 * l;
                    lookup(row(at), row(at + 1))
                })
                .collect()
        })
        .collect()
}

fn lookup(head: Row, place: Row) -> LookupExplanation {
    let entries = (place.a >> 32) as usize;
    let kind = (head.a >> 32) as u32;
    // Tests of bits are made one after the other; values are found by binary search.
    let halves = (usize::BITS - entries.leading_zeros()) as usize;
    LookupExplanation {
        field: field_name(head.a as u32),
        kind: match kind {
            tables::LOOKUP_RANGES => "ranges",
            tables::LOOKUP_BITS => "bits",
            tables::LOOKUP_ANY_OF => "group",
            tables::LOOKUP_MARKS => "marks",
            _ => "no group",
        },
        entries,
        bytes: entries * std::mem::size_of::<Row>(),
        steps_max: if kind == tables::LOOKUP_BITS {
            entries
        } else {
            halves
        },
    }
}

impl fmt::Display for CallExplanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} ({}, call {})", self.syscall, self.arch, self.nr)?;
        if self.candidates.is_empty() {
            return writeln!(f, "  no rule can select it");
        }

        for candidate in &self.candidates {
            let label = format!("{:>6}  ", candidate.number);
            paragraph(f, &label, candidate.rule.trim())?;
            let tests = match candidate.tests {
                0 => "always matches this call".to_owned(),
                1 => "1 test".to_owned(),
                tests => format!("{tests} tests"),
            };
            let decided = match (candidate.decided_in, candidate.tests) {
                (DecidedIn::Daemon, 0) => "decided in the daemon, by names".to_owned(),
                (DecidedIn::Daemon, _) => format!("{tests}, then decided in the daemon, by names"),
                _ => tests,
            };
            paragraph(f, "        ", &decided)?;
        }

        writeln!(f)?;
        if let Some(gate) = &self.gate {
            paragraph(f, "  gate  ", &gate.to_string())?;
        }

        writeln!(
            f,
            "  page  field      table     entries   bytes  steps at most"
        )?;
        for (i, page) in self.pages.iter().enumerate() {
            for lookup in page {
                writeln!(
                    f,
                    "  {:>4}  {:<9}  {:<8}  {:>7}  {:>6}  {:>13}",
                    i + 1,
                    lookup.field,
                    lookup.kind,
                    lookup.entries,
                    lookup.bytes,
                    lookup.steps_max
                )?;
            }
        }

        let lookups = self.pages.iter().flatten();
        let bytes: usize = lookups.clone().map(|lookup| lookup.bytes).sum();
        let total = format!(
            "{}, {}, {}, {bytes} bytes of tables",
            counted(self.candidates.len(), "candidate"),
            counted(self.pages.len(), "page"),
            counted(lookups.count(), "lookup"),
        );

        paragraph(f, "  ", &total)
    }
}

fn counted(count: usize, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {what}{plural}")
}
