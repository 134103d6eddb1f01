//! Explains a plan, for people (as text) and programs (as JSON).

use crate::capabilities::{Gap, Preemption};
use crate::decided::{decided_in_each, DecidedIn};
use crate::exactness::{Exactness, TRACEPOINT_NOTES, TRAMPOLINE_NOTES};
use crate::facts::Entry;
use crate::hooks::{Hooks, SysExit, FUNCTIONS_MAX, PER_SYSCALL_NS, TP_BTF_NS};
use crate::plan::{Plan, RuleNote};
use rules::List;
use serde::Serialize;
use std::fmt;

/// The output of `tarsier plan`; serialises to the output with `--json`.
#[derive(Debug, Serialize)]
pub struct Explanation {
    /// Name of the engine that the plan is for.
    pub engine: &'static str,
    /// Attach points.
    pub hooks: Hooks,
    /// Nanoseconds that the hooks add to a call that no rule names.
    pub unwatched_ns: u32,
    /// Number of pairs of entry and call that are watched.
    pub watched_calls: usize,
    /// Number of io_uring operations that are watched.
    pub watched_operations: usize,
    /// Number of rows of the match tables.
    pub table_rows: usize,
    /// Notes that apply to every rule under this engine.
    pub notes: Vec<String>,
    /// Parts that the kernel lacks, each with what is less exact without it.
    pub gaps: Vec<Gap>,
    /// One entry per rule, in the order in which they are tried.
    pub rules: Vec<RuleExplanation>,
}

/// Numbers of the rules of an [`Explanation`] by how they are honoured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Honoured exactly.
    pub exact: usize,
    /// Honoured approximately.
    pub approximate: usize,
    /// Not honoured.
    pub not_honoured: usize,
    /// Shadowed by an earlier rule.
    pub shadowed: usize,
}

impl Explanation {
    /// Counts the rules by how they are honoured.
    pub fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        for rule in &self.rules {
            match rule.exactness {
                Exactness::Exact => totals.exact += 1,
                Exactness::Approximate(_) => totals.approximate += 1,
                Exactness::NotHonoured(_) => totals.not_honoured += 1,
            }
            totals.shadowed += usize::from(rule.shadowed_by.is_some());
        }
        totals
    }
}

/// One rule of an [`Explanation`].
#[derive(Debug, Serialize)]
pub struct RuleExplanation {
    /// The rule as `auditctl -l` prints it.
    pub rule: String,
    /// The list of the rule: `exit`, `task`, `exclude` and so on.
    pub list: &'static str,
    /// File and line of the rule.
    pub source: String,
    /// Names of the hooks that it needs.
    pub hooks: Vec<&'static str>,
    /// Number of calls that it is a candidate of.
    pub calls: u32,
    /// Names of the io_uring operations that it, or its twin, watches.
    pub operations: Vec<String>,
    /// The side that decides the rule.
    pub decided_in: DecidedIn,
    /// Cost of a call that the rule names but does not select.
    pub cost: &'static str,
    /// Exactness with which the rule is honoured.
    pub exactness: Exactness,
    /// Position, from 1, of an earlier rule that always matches first.
    pub shadowed_by: Option<u32>,
}

/// The hook that evaluates the task list.
const FORK_HOOK: &str = "tp_btf/sched_process_fork";

/// Explains a plan.
pub fn explain(plan: &Plan) -> Explanation {
    let rules = plan
        .rules
        .iter()
        .zip(&plan.notes)
        .zip(decided_in_each(plan))
        .map(|((rule, note), decided_in)| RuleExplanation {
            rule: rule.to_string(),
            list: rule.list.name(),
            source: rule.source.place(),
            hooks: hooks_of(&plan.hooks, rule.list, note),
            calls: note.calls,
            operations: operations(&note.operations),
            decided_in: decided_in.unwrap_or(DecidedIn::Kernel),
            cost: decided_in.map_or("none", DecidedIn::cost),
            exactness: note.exactness.clone(),
            shadowed_by: note.shadowed_by.map(|position| position + 1),
        })
        .collect();

    Explanation {
        engine: plan.engine(),
        hooks: plan.hooks.clone(),
        unwatched_ns: plan.hooks.unwatched_ns(),
        watched_calls: plan.calls.keys().filter(|k| k.0 != Entry::Uring).count(),
        watched_operations: watched_operations(plan),
        table_rows: plan.rows.len(),
        notes: notes(plan),
        gaps: plan.platform.gaps.clone(),
        rules,
    }
}

/// Notes that apply to every rule under the plan's engine on this kernel.
fn notes(plan: &Plan) -> Vec<String> {
    let of_engine = if plan.form().trampoline {
        &TRAMPOLINE_NOTES[..]
    } else {
        &TRACEPOINT_NOTES[..]
    };
    let mut notes: Vec<String> = of_engine.iter().map(|&note| note.to_owned()).collect();
    notes.extend(preemption(plan));
    let unnamed = &plan.platform.unnamed_operations;
    if !unnamed.is_empty() {
        notes.push(format!(
            "this kernel has io_uring operations that have no name here, {} to {}: only rules \
             on the io_uring list see them, by number or by -S all",
            unnamed.start,
            unnamed.end - 1
        ));
    }
    notes
}

/// The consequences of the kernel's model of preemption, if tasks in the kernel are preempted.
fn preemption(plan: &Plan) -> Option<String> {
    let (form, model) = (plan.form(), plan.platform.preemption.name());
    let watches_most = plan.hooks.sys_exit.functions().len() > FUNCTIONS_MAX;
    let is_preempted = form.copies && plan.hooks.sys_exit == SysExit::Every;
    match (form.probes, form.trampoline, form.copies) {
        _ if plan.platform.preemption == Preemption::Voluntary => None,
        (true, ..) if is_preempted => Some(format!(
            "preempt={model}, and functions of watched calls cannot be hooked: a call that ends while another task is \
             preempted in the program of tp_btf/sys_exit on its processor is missed, and counted as missed"
        )),
        (true, ..) if watches_most => Some(format!(
            "preempt={model}: calls are seen by probes, which cannot be preempted and so miss none; numbers that the \
             kernel has no call for (ENOSYS) are seen only if it has a function that answers for them"
        )),
        (true, ..) => Some(format!(
            "preempt={model}: calls are seen by probes, which cannot be preempted and so miss none; a watched call \
             costs more than with programs in trampolines, other calls pay nothing"
        )),
        (false, true, _) | (false, _, true) => Some(format!(
            "preempt={model}, and the kernel has no probes (kprobe.multi): a call that ends while another task is \
             preempted in the same program on its processor is missed, and counted as missed"
        )),
        (false, false, false) => None,
    }
}

fn hooks_of(hooks: &Hooks, list: List, note: &RuleNote) -> Vec<&'static str> {
    let mut names = match list {
        _ if note.calls == 0 => Vec::new(),
        List::Task => vec![FORK_HOOK],
        _ => hook_names(hooks),
    };
    names.retain(|&name| (name == FORK_HOOK) == (list == List::Task) && Some(name) != hooks.uring);
    if !note.operations.is_empty() {
        names.extend(hooks.uring);
    }
    names
}

fn watched_operations(plan: &Plan) -> usize {
    let watched = plan.watched_operations();
    watched.iter().map(|bits| bits.count_ones() as usize).sum()
}

/// Names of operations. Commands on sockets have that of their operation, which is there already.
fn operations(ops: &[u32]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for &op in ops {
        let name = abi::uring_op_name(op).map_or_else(|| op.to_string(), str::to_owned);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

fn hook_names(hooks: &Hooks) -> Vec<&'static str> {
    let other = [
        (hooks.exec, "tp_btf/sched_process_exec"),
        (hooks.exit, "tp_btf/sched_process_exit"),
        (hooks.fork || hooks.task_list, FORK_HOOK),
        (hooks.module, "tp_btf/module_load"),
    ];

    let other = other
        .into_iter()
        .filter(|(used, _)| *used)
        .map(|(_, name)| name)
        .chain(hooks.entry_hook())
        .chain(hooks.uring);

    hooks.sys_exit.names().into_iter().chain(other).collect()
}

/// Width of the text, in columns.
const WIDTH: usize = 80;

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        paragraph(f, "engine      ", self.engine)?;
        match self.engine {
            "kernel" => self.write_kernel(f)?,
            _ => self.write_hooks(f)?,
        }

        for (i, note) in self.notes.iter().enumerate() {
            paragraph(
                f,
                if i == 0 {
                    "notes       "
                } else {
                    "            "
                },
                note,
            )?;
        }

        for gap in &self.gaps {
            paragraph(f, "without     ", &gap.to_string())?;
        }

        for (i, rule) in self.rules.iter().enumerate() {
            writeln!(f)?;
            rule.write(f, i + 1)?;
        }

        let totals = self.totals();
        writeln!(
            f,
            "\n{} rules: {} exact, {} approximate, {} not honoured; {} shadowed",
            self.rules.len(),
            totals.exact,
            totals.approximate,
            totals.not_honoured,
            totals.shadowed
        )
    }
}

impl Explanation {
    fn write_hooks(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = hook_names(&self.hooks);
        let hooks = if names.is_empty() {
            "none".to_owned()
        } else {
            names.join(", ")
        };
        let cost = format!(
            "+{} ns per call (measured: ends of functions 0 ns, per-syscall tracepoints \
             {PER_SYSCALL_NS} ns, tp_btf {TP_BTF_NS} ns)",
            self.unwatched_ns
        );
        paragraph(f, "hooks       ", &hooks)?;
        paragraph(f, "because     ", self.hooks.reason)?;
        paragraph(f, "unwatched   ", &cost)?;
        let calls = format!(
            "{}, {} io_uring operations, {} table rows",
            calls(self.watched_calls),
            self.watched_operations,
            self.table_rows
        );
        paragraph(f, "watched     ", &calls)
    }

    fn write_kernel(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        paragraph(f, "hooks       ", "the kernel's own audit")?;
        let cost = format!(
            "+{} ns per call (measured with 0 to 160 rules that do not match)",
            self.unwatched_ns
        );
        paragraph(f, "unwatched   ", &cost)
    }
}

impl RuleExplanation {
    fn write(&self, f: &mut fmt::Formatter<'_>, number: usize) -> fmt::Result {
        const INDENT: &str = "      ";
        paragraph(f, &format!("{number:>4}  "), self.rule.trim())?;
        let mut facts = self.source.clone();
        if self.calls > 0 {
            facts += &match self.list {
                "task" => "; asked when a task is made".to_owned(),
                _ => format!(
                    "; {}; {}; {}",
                    calls(self.calls as usize),
                    self.cost,
                    self.decided_in
                ),
            };
        }

        if !self.operations.is_empty() {
            let twin = if self.list == "io_uring" {
                ""
            } else {
                "also through "
            };
            facts += &format!("; {twin}io_uring: {}", self.operations.join(", "));
        }

        let facts = facts.trim_start_matches("; ");
        if !facts.is_empty() {
            paragraph(f, INDENT, facts)?;
        }

        match &self.exactness {
            Exactness::Exact => {}
            Exactness::Approximate(reasons) => {
                for reason in reasons {
                    paragraph(f, INDENT, &format!("may differ: {reason}"))?;
                }
            }
            Exactness::NotHonoured(reason) => {
                paragraph(f, INDENT, &format!("not honoured: {reason}"))?;
            }
        }

        if let Some(earlier) = self.shadowed_by {
            paragraph(
                f,
                INDENT,
                &format!("shadowed: rule {earlier} always matches first"),
            )?;
        } else if self.is_idle() {
            paragraph(f, INDENT, "no effect: it changes nothing for any call")?;
        }

        Ok(())
    }

    /// Whether this is an exit rule that is a candidate of no call, for a reason not printed otherwise.
    fn is_idle(&self) -> bool {
        let is_honoured = !matches!(self.exactness, Exactness::NotHonoured(_));
        self.list == "exit" && self.calls == 0 && is_honoured
    }
}

fn calls(count: usize) -> String {
    match count {
        1 => "1 call".to_owned(),
        _ => format!("{count} calls"),
    }
}

/// Writes `text` after `label`. Long text is broken at blanks, or after commas in long lists of
/// calls; further lines are indented by the width of `label`.
pub(crate) fn paragraph(f: &mut fmt::Formatter<'_>, label: &str, text: &str) -> fmt::Result {
    let room = WIDTH - label.len();
    let mut prefix = label.to_owned();
    let mut rest = text;
    while rest.len() > room {
        let end = (0..=room)
            .rev()
            .find(|&i| rest.is_char_boundary(i))
            .unwrap_or(0);
        let fits = &rest[..end];
        let blank = if rest[end..].starts_with(' ') {
            Some(end)
        } else {
            fits.rfind(' ')
        };
        let comma = fits.rfind(',').map(|comma| comma + 1);
        // After a comma only if the line would otherwise be short.
        let at = blank
            .filter(|&at| at > room / 2)
            .or(comma)
            .or(blank)
            .filter(|&at| at > 0);
        let Some(at) = at.or_else(|| rest.find(' ')) else {
            break;
        };
        writeln!(f, "{prefix}{}", &rest[..at])?;
        rest = rest[at..].trim_start();
        prefix = " ".repeat(label.len());
    }

    writeln!(f, "{prefix}{rest}")
}
