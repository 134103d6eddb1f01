//! Turns rules into hooks and tables.

use crate::call_plan::CallPlan;
use crate::capabilities::{Capabilities, Form, Gap, IoUring, Preemption};
use crate::conditions::{candidate, task_candidate, Candidate, Context};
use crate::entries::{calls_of, Entries};
use crate::evaluate::{decide_names, result_holds, Decision};
use crate::exactness::{exactness, kernel_exactness, Exactness};
use crate::executables::Executables;
use crate::facts::{Entry, Facts, Identities};
use crate::gate::{self, Gate};
use crate::hooks::Hooks;
use crate::marks::{Marks, Seen};
use crate::shadow::shadowing;
use crate::tables::{self, Builder, Row, TooLarge, Values, Verdict};
use crate::uring;
use crate::workload::{self, WorkloadNames};
use abi::{shape, CallNames, Shape};
use rules::{Action, List, Rule, SyscallSet};
use std::collections::{BTreeMap, HashMap};

/// Everything that an engine does for a rule set on a host. Pure data.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The rules, in the order in which they are tried.
    pub rules: Vec<Rule>,
    /// Architectures of the entries.
    pub entries: Entries,
    /// Attach points.
    pub hooks: Hooks,
    /// One note per rule.
    pub notes: Vec<RuleNote>,
    /// The calls and io_uring operations that some rule watches.
    pub calls: BTreeMap<(Entry, u32), CallPlan>,
    /// Candidate lists; several calls may share one.
    pub lists: Vec<Vec<Candidate>>,
    /// Rows of the match tables, which the programs read.
    pub rows: Vec<Row>,
    /// The executables that rules name, with their numbers in the tables.
    pub executables: Executables,
    /// The marks of the objects that paths of rules name.
    pub marks: Marks,
    /// The units, slices, containers, labels and ancestors that rules name.
    pub workloads: WorkloadNames,
    /// Bits of the labels that events of rules give, among those that rules ask about, by place of the rule.
    pub labellings: BTreeMap<u32, u32>,
    /// Number that identifies this rule set; in row 0 of the tables.
    pub generation: u64,
    /// Whether some rule of the task list is in force.
    pub task_list: bool,
    /// The engine and the kernel that the plan is for.
    pub platform: Platform,
}

/// The engine and the kernel that a plan is for.
#[derive(Clone, Debug)]
pub struct Platform {
    /// Places where the engine sees calls end.
    pub form: Form,
    /// The kernel's model of preemption.
    pub preemption: Preemption,
    /// Numbers of the kernel's io_uring operations that this program has no names for.
    pub unnamed_operations: std::ops::Range<u32>,
    /// Parts that the engine's programs use and the kernel lacks.
    pub gaps: Vec<Gap>,
    /// See [`Capabilities::objects_before`].
    pub objects_before: bool,
}

impl Platform {
    fn of(capabilities: &Capabilities) -> Platform {
        Platform {
            form: capabilities.form(),
            preemption: capabilities.preemption,
            unnamed_operations: uring::unnamed(capabilities.uring_operations),
            gaps: capabilities.gaps.clone(),
            objects_before: capabilities.objects_before,
        }
    }
}

/// The plan for one rule.
#[derive(Clone, Debug)]
pub struct RuleNote {
    /// Exactness with which the rule is honoured.
    pub exactness: Exactness,
    /// Position of an earlier rule that always matches first, if there is one.
    pub shadowed_by: Option<u32>,
    /// Number of calls that the rule is a candidate of; 1 for a task-list rule that is honoured.
    pub calls: u32,
    /// Numbers of the io_uring operations that the rule, or its twin, is a candidate of.
    pub operations: Vec<u32>,
}

impl Plan {
    /// Plans `rules` for a host. `generation` tells the events of this rule set from those of
    /// others.
    ///
    /// # Errors
    /// The rules do not fit the tables.
    pub fn new(
        rules: &[Rule],
        capabilities: &Capabilities,
        identities: &Identities,
        generation: u64,
    ) -> Result<Plan, TooLarge> {
        let rules = rules.to_vec();
        let entries = capabilities.entries();
        let executables = Executables::of(&rules, identities);
        let marks = Marks::of_names(&rules, identities);
        let workloads = WorkloadNames::of(&rules, &executables);
        if workloads.len() > workload::NAMES_MAX {
            return Err(TooLarge::Names);
        }
        if !workloads.past.fit() {
            return Err(TooLarge::PastNames);
        }

        let context = Context {
            entries,
            identities,
            executables: &executables,
            marks: &marks,
            workloads: &workloads,
        };

        let mut planner = Planner::default();
        planner.builder.set(
            0,
            Row {
                a: generation,
                b: workloads.epoch(),
            },
        );

        for entry in [Entry::Native, Entry::Compat] {
            if entry == Entry::Compat && !capabilities.compat_entry {
                continue;
            }
            planner.entry(&rules, entry, context)?;
        }

        if capabilities.io_uring != IoUring::Unseen {
            planner.uring(&rules, capabilities.io_uring == IoUring::Twins, context)?;
        }

        let task_list = planner.task_list(&rules, context)?;
        let builder = &mut planner.builder;
        builder.all_marks(&marks, &executables.marks(identities));
        let notes = notes(&rules, &mut planner, entries, capabilities);
        let mut hooks = Hooks::choose(&planner.calls, task_list, capabilities);
        hooks.processes = !workloads.past.is_empty();
        let mut plan = Plan {
            rules,
            entries,
            hooks,
            notes,
            calls: planner.calls,
            lists: planner.lists,
            rows: planner.builder.finish()?,
            executables,
            marks,
            workloads,
            labellings: BTreeMap::new(),
            generation,
            task_list,
            platform: Platform::of(capabilities),
        };

        let entries = plan.entry_classes().count() > 0;
        plan.hooks.entries = entries;
        Ok(plan)
    }

    /// The plan for the kernel engine, which leaves matching to the kernel's audit: nothing is
    /// hooked, every rule that audit knows is exact, and there may be any number of rules.
    pub fn for_kernel(rules: &[Rule], capabilities: &Capabilities, generation: u64) -> Plan {
        let entries = capabilities.entries();
        let mut shadowed = shadowing(rules, entries);
        let notes = shadowed
            .iter_mut()
            .zip(rules)
            .map(|(shadowed_by, rule)| RuleNote {
                exactness: kernel_exactness(rule),
                shadowed_by: shadowed_by.take(),
                calls: 0,
                operations: Vec::new(),
            });

        Plan {
            rules: rules.to_vec(),
            entries,
            hooks: Hooks::choose(&BTreeMap::new(), false, capabilities),
            notes: notes.collect(),
            calls: BTreeMap::new(),
            lists: Vec::new(),
            rows: Vec::new(),
            executables: Executables::default(),
            marks: Marks::default(),
            workloads: WorkloadNames::default(),
            labellings: BTreeMap::new(),
            generation,
            task_list: false,
            platform: Platform {
                form: Form::default(),
                preemption: capabilities.preemption,
                unnamed_operations: uring::unnamed(0),
                gaps: Vec::new(),
                objects_before: false,
            },
        }
    }

    /// Places where the engine of this plan sees calls end.
    pub fn form(&self) -> Form {
        self.platform.form
    }

    /// Name of the engine of this plan.
    pub fn engine(&self) -> &'static str {
        if self.platform.form.trampoline {
            "trampoline"
        } else {
            "tracepoint"
        }
    }

    /// One bit per call number that is watched at any entry, as `tp_btf/sys_exit` tests it.
    pub fn watched(&self) -> [u64; tables::CALLS / 64] {
        let mut bits = [0; tables::CALLS / 64];
        for (_, nr) in self.calls.keys().filter(|(e, _)| *e != Entry::Uring) {
            bits[*nr as usize / 64] |= 1 << (nr % 64);
        }
        bits
    }

    /// One bit per io_uring operation that some rule watches.
    pub fn watched_operations(&self) -> [u64; uring::OPERATIONS / 64] {
        let operations = self.calls.keys().filter(|(e, _)| *e == Entry::Uring);
        uring::opcode_bits(operations.map(|(_, op)| *op))
    }

    pub(crate) fn call_row(&self, entry: Entry, nr: u32) -> tables::Call {
        let row = self.rows.get(tables::call_row(entry, nr)).copied();
        tables::Call::from_row(row.unwrap_or_default())
    }

    /// The gate of a call, read from the tables; `None` if it has none.
    pub fn gate(&self, entry: Entry, nr: u32) -> Option<Gate> {
        if nr as usize >= tables::CALLS {
            return None;
        }
        let row = self.call_row(entry, nr).gate & !tables::GATE_LATER;
        if row != 0 {
            Gate::at(&self.rows, row)
        } else {
            None
        }
    }

    /// The rules that the first stage left undecided, given the candidate list, pages and masks of an
    /// event. Returns position and rule.
    pub fn remaining<'a>(
        &'a self,
        list: u32,
        pages: impl Iterator<Item = (u32, u64)> + 'a,
    ) -> impl Iterator<Item = (u32, &'a Rule)> + 'a {
        let list = self.lists.get(list as usize).map_or(&[][..], Vec::as_slice);
        pages.flat_map(move |(page, mask)| {
            (0..64u32)
                .filter(move |bit| mask & 1 << bit != 0)
                .filter_map(move |bit| {
                    let rule = list.get(page as usize * tables::PAGE + bit as usize)?.rule;
                    Some((rule, self.rules.get(rule as usize)?))
                })
        })
    }

    /// Decides an event with the tables, and the candidates that they leave with [`decide_names`].
    /// The result is the same as that of [`crate::decide`] for the plan's rules.
    pub fn decide(&self, facts: &Facts<'_>, identities: &Identities) -> Decision {
        self.decide_with(None, facts, identities)
    }

    /// Like [`Plan::decide`], but also uses the marks that the programs have seen, if these tell everything that the
    /// call reached.
    pub fn decide_with(
        &self,
        seen: Option<Seen>,
        facts: &Facts<'_>,
        identities: &Identities,
    ) -> Decision {
        let Some(call) = self.calls.get(&(facts.entry, facts.nr)) else {
            return Decision::Drop;
        };

        let row = self.call_row(facts.entry, facts.nr);
        let mut values = self.values(facts, &call.shape, identities);
        let without_mark = Gate::at(&self.rows, (row.spec & !tables::SPEC_ONLY_MARKED) + 1);
        let value = |fact: crate::Fact| values.fact[fact as usize];
        if gate::lacks_mark(&row, without_mark, value, seen.as_ref(), facts.result) {
            return Decision::Drop;
        }

        values.marks = seen;
        if let Some(gate) = self.gate(facts.entry, facts.nr) {
            let exit = values.fact[crate::Fact::Exit as usize];
            if !gate.admits(values.fact[gate.fact as usize], exit) {
                return Decision::Drop;
            }
        }

        match tables::evaluate(&self.rows, row.pages, row.npages.into(), &values) {
            Verdict::NoMatch | Verdict::Decided { never: true, .. } => Decision::Drop,
            Verdict::Decided { rule, .. } => Decision::Record(rule),
            Verdict::Undecided(pages) => {
                let remaining = self.remaining(row.list.into(), pages.into_iter());
                self.decide_remaining(remaining, facts, identities)
            }
        }
    }

    /// The values that the programs compute for a call of this shape.
    pub fn values(&self, facts: &Facts<'_>, shape: &Shape, identities: &Identities) -> Values {
        let names = (&self.executables, &self.workloads);
        Values::from_facts(facts, shape, names, identities)
    }

    /// Decides among the candidates that the tables left. For io_uring operations, this is also
    /// where conditions on the result are tested, since the tables are read before it is known; for
    /// tasks of which the programs do not know cgroup or past, those on the workload.
    pub fn decide_remaining<'r>(
        &self,
        remaining: impl Iterator<Item = (u32, &'r Rule)>,
        facts: &Facts<'_>,
        identities: &Identities,
    ) -> Decision {
        let is_possible = |rule: &Rule| facts.entry != Entry::Uring || result_holds(rule, facts);
        let remaining = remaining
            .filter(|(_, rule)| is_possible(rule))
            .filter(|(_, rule)| workload::all_hold(rule, &facts.workload, identities));
        decide_names(remaining, facts, identities)
    }

    /// Whether a new task is audited, by the tables. The result is the same as that of
    /// [`crate::audits_task`] for the plan's rules.
    pub fn audits_task(&self, facts: &Facts<'_>) -> bool {
        let row = self.rows.get(tables::TASK_LIST).copied();
        let row = tables::Call::from_row(row.unwrap_or_default());
        if row.pages == 0 {
            return true;
        }
        let values = Values::from_new_task(facts);
        let verdict = tables::evaluate(&self.rows, row.pages, row.npages.into(), &values);
        match verdict {
            Verdict::Decided { never, .. } => !never,
            _ => true,
        }
    }
}

#[derive(Default)]
struct Planner {
    builder: Builder,
    calls: BTreeMap<(Entry, u32), CallPlan>,
    lists: Vec<Vec<Candidate>>,
    by_list: HashMap<Vec<Candidate>, (usize, u32, u16)>,
    by_spec: HashMap<([u8; 16], Option<Gate>), u32>,
    by_gate: HashMap<Gate, u32>,
    rule_calls: HashMap<u32, u32>,
    rule_operations: HashMap<u32, Vec<u32>>,
}

/// Everything about a call that its candidates depend on. Calls of the same class share a list.
#[derive(PartialEq, Eq, Hash)]
struct CallClass {
    /// Positions of the exit rules that name the call.
    rules: Vec<u32>,
    names: CallNames,
    access: (u32, bool),
}

impl Planner {
    fn entry(
        &mut self,
        rules: &[Rule],
        entry: Entry,
        context: Context<'_>,
    ) -> Result<(), TooLarge> {
        let Some(arch) = context.entries.arch(entry) else {
            return Ok(());
        };

        let exit_rules: Vec<(u32, SyscallSet)> = rules
            .iter()
            .enumerate()
            .filter(|(_, rule)| rule.list == List::Exit)
            .map(|(i, rule)| (i as u32, calls_of(rule, context.entries)))
            .collect();

        let mut classes: HashMap<CallClass, Vec<Candidate>> = HashMap::new();
        for nr in 0..tables::CALLS as u32 {
            let shape = shape(arch, nr);
            let perm = abi::perm_class(arch, nr, context.entries.lists());
            let in_call = exit_rules.iter().filter(|(_, calls)| calls.contains(nr));
            let class = CallClass {
                rules: in_call.map(|&(i, _)| i).collect(),
                names: shape.names(),
                access: (perm.bits(), perm.open.is_some() || perm.socketcall),
            };
            let candidates = classes.entry(class).or_insert_with_key(|class| {
                reachable(class.rules.iter().filter_map(|&i| {
                    candidate(&rules[i as usize], i, entry, nr, class.names, context)
                }))
            });
            if !candidates.is_empty() {
                self.call(entry, nr, shape, candidates)?;
            }
        }

        Ok(())
    }

    /// Plans io_uring operations, one by one: for rules of the io_uring list and, with `twins`, for
    /// rules on calls that do the same.
    fn uring(&mut self, rules: &[Rule], twins: bool, context: Context<'_>) -> Result<(), TooLarge> {
        for op in 0..uring::OPERATIONS as u32 {
            let shape = uring::shape_of_op(op);
            let call = uring::call_of_op(op, context.entries).unwrap_or(uring::NO_CALL);
            let names = shape.names();
            let candidates = reachable(
                rules
                    .iter()
                    .enumerate()
                    .filter(|(_, rule)| uring::selects(rule, op, context.entries, twins))
                    .filter_map(|(i, rule)| {
                        candidate(rule, i as u32, Entry::Native, call, names, context)
                    })
                    .map(Candidate::with_result_later),
            );
            if !candidates.is_empty() {
                self.call(Entry::Uring, op, shape, &candidates)?;
            }
        }

        Ok(())
    }

    fn call(
        &mut self,
        entry: Entry,
        nr: u32,
        shape: Shape,
        candidates: &[Candidate],
    ) -> Result<(), TooLarge> {
        for candidate in candidates {
            match entry {
                Entry::Uring => self
                    .rule_operations
                    .entry(candidate.rule)
                    .or_default()
                    .push(nr),
                _ => *self.rule_calls.entry(candidate.rule).or_default() += 1,
            }
        }

        let (list, pages, npages) = self.list(candidates)?;
        let without_mark = Gate::without_mark(candidates, &shape);
        let spec = self.spec(&shape, without_mark) | gate::need_of_mark(candidates, &shape);
        // io_uring operations are matched before their result is known.
        let gate = match entry {
            Entry::Uring => None,
            _ => Gate::of(candidates, &shape),
        };
        let gate = gate.map_or(0, |gate| self.gate(gate));
        let row = tables::Call {
            pages,
            gate,
            spec,
            npages,
            list: list as u16,
        };

        self.builder.set(tables::call_row(entry, nr), row.row());
        let call = CallPlan {
            list,
            shape,
            plain_reads: gate::selects_plain_reads(candidates),
        };
        self.calls.insert((entry, nr), call);

        Ok(())
    }

    fn list(&mut self, candidates: &[Candidate]) -> Result<(usize, u32, u16), TooLarge> {
        if let Some(&known) = self.by_list.get(candidates) {
            return Ok(known);
        }
        let (pages, npages) = self.builder.list(candidates)?;
        let list = (self.lists.len(), pages, npages);
        self.lists.push(candidates.to_vec());
        self.by_list.insert(candidates.to_vec(), list);
        Ok(list)
    }

    fn gate(&mut self, gate: Gate) -> u32 {
        let builder = &mut self.builder;
        let row = *self.by_gate.entry(gate).or_insert_with(|| {
            let [first, second] = Gate::rows(Some(gate));
            let row = builder.push(first);
            builder.push(second);
            row
        });

        if gate.asks_workload() {
            row | tables::GATE_LATER
        } else {
            row
        }
    }

    /// Row of a spec, behind which the gate of the rules that need no mark is.
    fn spec(&mut self, shape: &Shape, without_mark: Option<Gate>) -> u32 {
        let bytes = tables::spec_bytes(shape);
        let key = (bytes, without_mark);
        if let Some(&row) = self.by_spec.get(&key) {
            return row;
        }

        let word = |i: usize| u64::from_le_bytes(bytes[i..i + 8].try_into().unwrap_or_default());
        let row = self.builder.push(Row {
            a: word(0),
            b: word(8),
        });
        for row in Gate::rows(without_mark) {
            self.builder.push(row);
        }

        self.by_spec.insert(key, row);
        row
    }

    /// Plans the task list, which is evaluated when a task is created. Only `never` can be honoured;
    /// `always` rules protect tasks from later `never` rules.
    fn task_list(&mut self, rules: &[Rule], context: Context<'_>) -> Result<bool, TooLarge> {
        let mut candidates: Vec<Candidate> = Vec::new();
        for (i, rule) in rules
            .iter()
            .enumerate()
            .filter(|(_, rule)| rule.list == List::Task)
        {
            candidates.extend(task_candidate(rule, i as u32, context));
            if candidates.last().is_some_and(Candidate::is_certain) {
                break;
            }
        }

        while candidates.last().is_some_and(|candidate| !candidate.never) {
            candidates.pop();
        }

        if candidates.is_empty() {
            return Ok(false);
        }

        for candidate in &candidates {
            self.rule_calls.insert(candidate.rule, 1);
        }

        let (list, pages, npages) = self.list(&candidates)?;
        let row = tables::Call {
            pages,
            npages,
            list: list as u16,
            ..tables::Call::default()
        };

        self.builder.set(tables::TASK_LIST, row.row());
        Ok(true)
    }
}

/// The candidates up to the first that always matches, since no later one can be the first match.
fn reachable(candidates: impl Iterator<Item = Candidate>) -> Vec<Candidate> {
    let mut kept = Vec::new();
    for candidate in candidates {
        let certain = candidate.is_certain();
        kept.push(candidate);
        if certain {
            break;
        }
    }

    // Trailing `never` rules have the same effect as no rule, unless one ends the search through the
    // names before an `always` rule finds a name that it matches.
    while kept.last().is_some_and(|last| {
        last.never && !(last.by_inode && kept.iter().any(|other| other.by_inode && !other.never))
    }) {
        kept.pop();
    }

    kept
}

fn notes(
    rules: &[Rule],
    planner: &mut Planner,
    entries: Entries,
    capabilities: &Capabilities,
) -> Vec<RuleNote> {
    let mut shadowed = shadowing(rules, entries);
    rules
        .iter()
        .enumerate()
        .map(|(i, rule)| RuleNote {
            exactness: exactness(rule, capabilities),
            shadowed_by: shadowed[i].take(),
            calls: planner.rule_calls.get(&(i as u32)).copied().unwrap_or(0),
            operations: planner
                .rule_operations
                .remove(&(i as u32))
                .unwrap_or_default(),
        })
        .collect()
}

/// Whether any of the rules can record a system call.
pub fn records_something(rules: &[Rule]) -> bool {
    rules
        .iter()
        .any(|rule| rule.list == List::Exit && rule.action == Action::Always)
}
