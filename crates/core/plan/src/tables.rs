//! The match tables: pages of 64 candidates and, for each page and field, masks by value. Layout and
//! meaning are those of crates/kernel/bpf/programs/tables.h, which the programs use.

mod evaluate;
mod marks;
mod summary;
mod values;

pub use evaluate::{evaluate, Verdict};
pub use values::Values;

use crate::conditions::{BitOp, Candidate, Fact, Test};
use crate::facts::Entry;
use abi::NONE;
use abi::{NameUse, Shape};
use std::collections::BTreeMap;

/// A row of the tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Row {
    /// First word.
    pub a: u64,
    /// Second word.
    pub b: u64,
}

/// The most rows of all tables.
pub const ROWS: usize = 131_072;
/// Number of entries: native, 32-bit, io_uring.
pub const ENTRIES: usize = 3;
/// Number of call numbers per entry.
pub const CALLS: usize = 2048;
/// Row of the first call.
pub const INDEX: usize = 16;
/// Row of the task list, which is described like a call.
pub const TASK_LIST: usize = 1;
/// Row of the place of the marks of `path=` and `dir=` conditions.
pub const MARKS: usize = 2;
/// Row of the place of the marks of `exe=` conditions.
pub const EXECUTABLES: usize = 3;
/// Row of the place of the filter of the marks of `path=` and `dir=` conditions.
pub const MARK_FILTER: usize = 4;
/// Row of the factors of the hashes of all marks.
pub const MARK_KEY: usize = 5;
/// Limit of the slots that are looked at for one mark.
pub const MARK_PROBES: u32 = crate::marks::PROBES as u32;
/// Bit of the second word of a mark: an object with this mark proves its path.
pub const MARK_PROOF_BIT: u32 = crate::marks::PROOF_BIT;
/// Bit of the second word of a mark: it proves it for the kernel's audit, too.
pub const MARK_KERNEL_BIT: u32 = crate::marks::KERNEL_BIT;

/// Bit of a call's gate: it asks about the workload.
pub const GATE_LATER: u32 = 1 << 31;

/// Bit of a call's spec: rules select the call only if it fails or reaches something with a mark.
pub const SPEC_ONLY_MARKED: u32 = 1 << 31;

/// `struct table_call` of tables.h: the entry of a call in the tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Call {
    /// First row of the list of pages; 0 if no rule watches the call.
    pub pages: u32,
    /// First row of the gate, and [`GATE_LATER`]; 0 if there is none.
    pub gate: u32,
    /// Row of the spec, and [`SPEC_ONLY_MARKED`].
    pub spec: u32,
    /// Number of pages.
    pub npages: u16,
    /// Number of the candidate list.
    pub list: u16,
}

impl Call {
    /// The entry as a row.
    pub fn row(&self) -> Row {
        Row {
            a: u64::from(self.pages) | u64::from(self.gate) << 32,
            b: u64::from(self.spec) | u64::from(self.npages) << 32 | u64::from(self.list) << 48,
        }
    }

    /// The inverse of [`Call::row`].
    pub fn from_row(row: Row) -> Call {
        Call {
            pages: row.a as u32,
            gate: (row.a >> 32) as u32,
            spec: row.b as u32,
            npages: (row.b >> 32) as u16,
            list: (row.b >> 48) as u16,
        }
    }
}

/// The row of a call.
pub fn call_row(entry: Entry, nr: u32) -> usize {
    INDEX + entry as usize * CALLS + nr as usize
}

/// The most rules of a page.
pub const PAGE: usize = 64;
/// The most pages of a candidate list.
pub const PAGES_MAX: usize = 64;
/// The most lookups of a page.
pub const LOOKUPS_MAX: usize = 64;
/// The most entries of a lookup that is searched; the search steps in tables.h suffice for them.
pub const ENTRIES_MAX: usize = 256;
/// Limit of the marks in a lookup, plus one. A page with more leaves them to the second stage.
const MARK_ENTRIES_MAX: usize = 4096;
/// Limit of the entries of a lookup in a summary of pages.
pub const SUMMARY_ENTRIES_MAX: usize = 8192;
/// The most supplementary groups that are compared: as many as a task can have (`NGROUPS_MAX`).
pub const GROUPS_MAX: usize = 65_536;

/// A lookup by ranges of values.
pub const LOOKUP_RANGES: u32 = 0;
/// A lookup by bits of the value.
pub const LOOKUP_BITS: u32 = 1;
/// A lookup of rules that require an id to be among the task's groups.
pub const LOOKUP_ANY_OF: u32 = 2;
/// A lookup of rules that require an id not to be among the task's groups.
pub const LOOKUP_NONE_OF: u32 = 3;
/// A lookup of rules that require one of some marks.
pub const LOOKUP_MARKS: u32 = 4;

/// Number of rows of a page before its lookups.
pub const PAGE_HEAD: usize = 2;
/// Flag of a spec: `sockaddr_len` points to the length.
pub const SPEC_SOCKADDR_LEN_PTR: u8 = 1;
/// Flag of a spec: `sockaddr` is a `struct msghdr`.
pub const SPEC_MSGHDR: u8 = 2;
/// Flag of a spec: the first path names an entry that the call removes.
pub const SPEC_REMOVES: u8 = 4;
/// Flag of a spec: the kernel writes the address.
pub const SPEC_SOCKADDR_OUT: u8 = 8;
/// The target is a descriptor.
pub const SPEC_TARGET_PIDFD: u8 = 16;
/// The first path is the text of a symbolic link, which is not looked up.
pub const SPEC_TEXT_FIRST: u8 = 32;
/// A symbolic link that is the last name of the first path is not followed.
pub const SPEC_ENTRY_FIRST: u8 = 64;
/// A symbolic link that is the last name of the second path is not followed.
pub const SPEC_ENTRY_SECOND: u8 = 128;

/// `struct table_spec` of tables.h: what to collect for a call of this shape.
pub fn spec_bytes(shape: &Shape) -> [u8; 16] {
    let path = |i: usize| shape.paths[i].map_or((NONE, NONE), |path| (path.path, path.dir));
    let (path0, dir0) = path(0);
    let (path1, dir1) = path(1);
    let flag = |is_set: bool, bit: u8| if is_set { bit } else { 0 };
    let is_text_first = shape.paths[0].is_some_and(|path| path.use_ == NameUse::SymlinkTarget);
    let removes = shape.paths[0].is_some_and(|path| path.use_ == NameUse::Delete);
    let is_entry = |i: usize| {
        let changes = |use_| matches!(use_, NameUse::Create | NameUse::Delete | NameUse::Rename);
        shape.paths[i].is_some_and(|path| !path.follow.is_possible() || changes(path.use_))
    };
    let flags = flag(shape.len_is_pointer, SPEC_SOCKADDR_LEN_PTR)
        | flag(shape.msghdr, SPEC_MSGHDR)
        | flag(removes, SPEC_REMOVES)
        | flag(shape.sockaddr_out, SPEC_SOCKADDR_OUT)
        | flag(shape.target_is_fd, SPEC_TARGET_PIDFD)
        | flag(is_text_first, SPEC_TEXT_FIRST)
        | flag(is_entry(0), SPEC_ENTRY_FIRST)
        | flag(is_entry(1), SPEC_ENTRY_SECOND);

    [
        path0,
        path1,
        dir0,
        dir1,
        shape.fd,
        shape.sockaddr,
        shape.sockaddr_len,
        shape.fd_pair,
        shape.target,
        shape.how,
        shape.module,
        shape.kind as u8,
        flags,
        shape.open_flags,
        shape.memory,
        shape.memory_len,
    ]
}

/// Reason why rules do not fit the tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TooLarge {
    /// More rules may select one call than fit into [`PAGES_MAX`] pages; the position of the first
    /// rule that does not fit.
    Candidates(u32),
    /// A page needs more lookups than [`LOOKUPS_MAX`]; the position of its first rule.
    Lookups(u32),
    /// More than [`ROWS`] rows are needed.
    Rows,
    /// The rules name more units, slices and containers than [`crate::NAMES_MAX`].
    Names,
    /// The rules ask about more labels, or executables of ancestors, than [`crate::PAST_NAMES_MAX`].
    PastNames,
}

impl TooLarge {
    /// Position of the rule at which the tables are exceeded, if the error is about a rule.
    pub fn rule(&self) -> Option<u32> {
        match self {
            TooLarge::Candidates(rule) | TooLarge::Lookups(rule) => Some(*rule),
            TooLarge::Rows | TooLarge::Names | TooLarge::PastNames => None,
        }
    }
}

impl std::fmt::Display for TooLarge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            TooLarge::Candidates(rule) => write!(
                f,
                "rule {} is one more than the {} that may ask about the same call: \
                 name fewer calls in it or in earlier rules",
                rule + 1,
                PAGE * PAGES_MAX
            ),
            TooLarge::Lookups(rule) => write!(
                f,
                "rule {} and those after it have too many conditions on the same fields: \
                 at most {LOOKUPS_MAX} lookups serve {PAGE} rules",
                rule + 1
            ),
            TooLarge::Names => write!(
                f,
                "the rules name more than {} units, slices and containers: name fewer, for example \
                 a slice instead of its units",
                crate::NAMES_MAX
            ),
            TooLarge::PastNames => write!(
                f,
                "the rules ask about more than {0} labels, or more than {0} executables of ancestors: \
                 name fewer, for example one label for several keys (label_keys)",
                crate::PAST_NAMES_MAX
            ),
            TooLarge::Rows => write!(
                f,
                "the rules need more than {ROWS} table rows: load fewer rules, or rules with \
                 fewer conditions"
            ),
        }
    }
}

impl std::error::Error for TooLarge {}

/// Tables under construction.
#[derive(Clone, Debug)]
pub struct Builder {
    rows: Vec<Row>,
}

impl Default for Builder {
    fn default() -> Builder {
        Builder {
            rows: vec![Row::default(); INDEX + ENTRIES * CALLS],
        }
    }
}

impl Builder {
    /// Ends the construction. Returns the rows that are used, from row 0.
    pub fn finish(self) -> Result<Vec<Row>, TooLarge> {
        if self.rows.len() > ROWS {
            return Err(TooLarge::Rows);
        }
        Ok(self.rows)
    }

    /// Sets one row.
    pub fn set(&mut self, row: usize, value: Row) {
        self.rows[row] = value;
    }

    /// Adds a row at the end and returns its index.
    pub fn push(&mut self, row: Row) -> u32 {
        self.rows.push(row);
        (self.rows.len() - 1) as u32
    }

    /// Adds a candidate list. Returns the first row of its list of pages, and the number of pages.
    pub fn list(&mut self, candidates: &[Candidate]) -> Result<(u32, u16), TooLarge> {
        if candidates.len() > PAGE * PAGES_MAX {
            return Err(TooLarge::Candidates(candidates[PAGE * PAGES_MAX].rule));
        }

        let mut pages = Vec::new();
        let mut asked = Vec::new();
        for page in candidates.chunks(PAGE) {
            let (row, ranges) = self.page(page)?;
            pages.push(row);
            asked.push(ranges);
        }

        let summary = self.summary(&asked);
        let first = self.rows.len() as u32;
        for (i, &page) in pages.iter().enumerate() {
            self.push(Row {
                a: page.into(),
                b: if i == 0 { summary.into() } else { 0 },
            });
        }

        // At most PAGES_MAX.
        Ok((first, pages.len() as u16))
    }

    /// Adds a summary: a page whose "rules" are the pages of a list. A page of the list has to be
    /// evaluated only if the values may meet some rule of it. Returns row 0 if there is no summary.
    fn summary(&mut self, pages: &[PageRanges]) -> u32 {
        if pages.len() < 2 {
            return 0;
        }
        let lookups = summary::lookups(pages);
        if lookups.is_empty() {
            return 0;
        }
        let all = u64::MAX >> (64 - pages.len());
        self.page_rows((all, 0), (0, 0), &lookups)
    }

    fn page(&mut self, candidates: &[Candidate]) -> Result<(u32, PageRanges), TooLarge> {
        let lookups = lookups(candidates);
        if lookups.len() > LOOKUPS_MAX {
            return Err(TooLarge::Lookups(candidates[0].rule));
        }

        let rules = self.rules(candidates);
        let mask_of = |wanted: fn(&Candidate) -> bool| {
            candidates
                .iter()
                .enumerate()
                .filter(|(_, c)| wanted(c))
                .fold(0, |m, (i, _)| m | 1 << i)
        };

        let valid = mask_of(|_| true);
        let page = self.page_rows(
            (valid, mask_of(|c| c.never)),
            (mask_of(|c| c.stage2), rules),
            &lookups,
        );
        let ranges = lookups.into_iter().filter(|l| l.kind == LOOKUP_RANGES);

        Ok((
            page,
            PageRanges {
                valid,
                lookups: ranges.collect(),
            },
        ))
    }

    /// Adds a page, given the masks of valid and of `never` rules, the mask of stage-2 rules, the row
    /// of the rules' numbers, and the lookups.
    fn page_rows(
        &mut self,
        (valid, never): (u64, u64),
        (stage2, rules): (u64, u32),
        lookups: &[Lookup],
    ) -> u32 {
        let entries: Vec<u32> = lookups.iter().map(|lookup| self.entries(lookup)).collect();
        let page = self.push(Row { a: valid, b: never });
        self.push(Row {
            a: stage2,
            b: lookups.len() as u64 | u64::from(rules) << 32,
        });

        for (lookup, first) in lookups.iter().zip(entries) {
            self.push(Row {
                a: u64::from(lookup.fact as u32) | u64::from(lookup.kind) << 32,
                b: lookup.absent,
            });
            self.push(Row {
                a: u64::from(first) | (lookup.entries.len() as u64) << 32,
                b: lookup.decides,
            });
        }

        page
    }

    fn rules(&mut self, candidates: &[Candidate]) -> u32 {
        let first = self.rows.len() as u32;
        for four in candidates.chunks(4) {
            let rule = |i: usize| u64::from(four.get(i).map_or(u32::MAX, |c| c.rule));
            self.push(Row {
                a: rule(0) | rule(1) << 32,
                b: rule(2) | rule(3) << 32,
            });
        }
        first
    }

    fn entries(&mut self, lookup: &Lookup) -> u32 {
        let first = self.rows.len() as u32;
        self.rows.extend(&lookup.entries);
        first
    }
}

/// The lookups by ranges of a page, from which a summary of several pages is made.
struct PageRanges {
    valid: u64,
    lookups: Vec<Lookup>,
}

struct Lookup {
    fact: Fact,
    kind: u32,
    /// Mask of the rules without a condition in this lookup. In one of marks: of the rules among which the order of
    /// the objects of a call decides.
    absent: u64,
    entries: Vec<Row>,
    /// Mask of the rules for which a sure mark leaves nothing to the second stage.
    decides: u64,
}

/// The tests of one fact in a page: index of the rule in the page, and the test.
type Asked = Vec<(usize, Test)>;

fn lookups(candidates: &[Candidate]) -> Vec<Lookup> {
    let mut ranges: BTreeMap<Fact, Asked> = BTreeMap::new();
    let mut bits: BTreeMap<Fact, Asked> = BTreeMap::new();
    let mut groups: BTreeMap<(Fact, u32, usize), Vec<(usize, u32)>> = BTreeMap::new();
    for (i, candidate) in candidates.iter().enumerate() {
        let mut slots: BTreeMap<(Fact, u32), usize> = BTreeMap::new();
        for &test in &candidate.tests {
            match test {
                Test::Range { fact, .. } => ranges.entry(fact).or_default().push((i, test)),
                Test::Bits { fact, .. } => bits.entry(fact).or_default().push((i, test)),
                Test::AnyOf { fact, id } | Test::NoneOf { fact, id } => {
                    let any = matches!(test, Test::AnyOf { .. });
                    let kind = if any { LOOKUP_ANY_OF } else { LOOKUP_NONE_OF };
                    // If several ids must be among the groups, each needs a lookup of its own; ids
                    // that must not be among them can share one.
                    let slot = slots.entry((fact, kind)).or_default();
                    groups.entry((fact, kind, *slot)).or_default().push((i, id));
                    *slot += usize::from(any);
                }
                Test::Never => {}
            }
        }
    }

    let mut all = Vec::new();
    // Two bounds per condition, and the first entry.
    let most = (ENTRIES_MAX - 1) / 2;
    for (fact, asked) in ranges {
        all.extend(asked.chunks(most).map(|asked| ranges_lookup(fact, asked)));
    }

    for (fact, asked) in bits {
        all.push(bits_lookup(fact, &asked));
    }

    for ((fact, kind, _), asked) in groups {
        all.extend(
            asked
                .chunks(ENTRIES_MAX)
                .map(|asked| groups_lookup(fact, kind, asked)),
        );
    }

    all.extend(marks_lookup(candidates));
    all
}

/// The lookup of the marks of a page; `None` if no rule has any.
fn marks_lookup(candidates: &[Candidate]) -> Option<Lookup> {
    let mut masks: BTreeMap<u32, u64> = BTreeMap::new();
    let (mut decides, mut in_order) = (0, 0);
    for (i, candidate) in candidates.iter().enumerate() {
        for &mark in candidate.marks.iter().flatten() {
            *masks.entry(mark).or_default() |= 1 << i;
        }
        decides |= u64::from(candidate.is_decided_by_marks) << i;
        in_order |= u64::from(candidate.by_inode) << i;
    }

    if masks.is_empty() || masks.len() >= MARK_ENTRIES_MAX {
        return None;
    }

    let with_marks = |(_, candidate): &(usize, &Candidate)| candidate.marks.is_some();
    let with_marks = candidates.iter().enumerate().filter(with_marks);
    // The first entry stands for no mark.
    masks.insert(0, absent(with_marks.map(|(i, _)| i)));
    Some(Lookup {
        fact: Fact::Marks,
        kind: LOOKUP_MARKS,
        absent: in_order,
        entries: masks
            .iter()
            .map(|(&mark, &mask)| Row {
                a: mark.into(),
                b: mask,
            })
            .collect(),
        decides,
    })
}

fn absent(rules: impl Iterator<Item = usize>) -> u64 {
    !rules.fold(0u64, |mask, rule| mask | 1 << rule)
}

fn ranges_lookup(fact: Fact, asked: &[(usize, Test)]) -> Lookup {
    let mut starts = vec![0u32];
    for (_, test) in asked {
        if let Test::Range { first, last, .. } = *test {
            starts.push(first);
            starts.extend(last.checked_add(1));
        }
    }

    starts.sort_unstable();
    starts.dedup();
    let mask_at = |value: u32| {
        asked
            .iter()
            .fold(u64::MAX, |mask, (rule, test)| match *test {
                Test::Range {
                    first,
                    last,
                    inside,
                    ..
                } if (first..=last).contains(&value) != inside => mask & !(1 << rule),
                _ => mask,
            })
    };

    Lookup {
        fact,
        kind: LOOKUP_RANGES,
        absent: absent(asked.iter().map(|&(rule, _)| rule)),
        entries: starts
            .iter()
            .map(|&s| Row {
                a: s.into(),
                b: mask_at(s),
            })
            .collect(),
        decides: 0,
    }
}

fn bits_lookup(fact: Fact, asked: &[(usize, Test)]) -> Lookup {
    let mut masks: BTreeMap<(BitOp, u32), u64> = BTreeMap::new();
    for (rule, test) in asked {
        if let Test::Bits { op, operand, .. } = *test {
            *masks.entry((op, operand)).or_default() |= 1 << rule;
        }
    }

    let entry = |(&(op, operand), &mask): (&(BitOp, u32), &u64)| Row {
        a: u64::from(operand) | u64::from(op as u32) << 32,
        b: mask,
    };
    Lookup {
        fact,
        kind: LOOKUP_BITS,
        absent: absent(asked.iter().map(|&(rule, _)| rule)),
        entries: masks.iter().map(entry).collect(),
        decides: 0,
    }
}

fn groups_lookup(fact: Fact, kind: u32, asked: &[(usize, u32)]) -> Lookup {
    let mut masks: BTreeMap<u32, u64> = BTreeMap::new();
    for &(rule, id) in asked {
        *masks.entry(id).or_default() |= 1 << rule;
    }

    Lookup {
        fact,
        kind,
        absent: absent(asked.iter().map(|&(rule, _)| rule)),
        entries: masks
            .iter()
            .map(|(&id, &mask)| Row {
                a: id.into(),
                b: mask,
            })
            .collect(),
        decides: 0,
    }
}
