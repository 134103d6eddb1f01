//! The plan as people and programs read it.

use crate::exactness::Exactness;
use crate::hooks::{Hooks, SysExit, PER_SYSCALL_NS, TP_BTF_NS};
use crate::plan::Plan;
use serde::Serialize;
use std::fmt;

/// What `tarsier plan` prints; serialises to its `--json` form.
#[derive(Debug, Serialize)]
pub struct Explanation {
    /// Engine that the plan is for.
    pub engine: &'static str,
    /// Attach points.
    pub hooks: Hooks,
    /// Nanoseconds added to a call that no rule names.
    pub unwatched_ns: u32,
    /// How many (entry, call) pairs are watched.
    pub watched_calls: usize,
    /// Rows of the match tables.
    pub table_rows: usize,
    /// One per rule, in the order that decides.
    pub rules: Vec<RuleExplanation>,
}

/// One rule of an [`Explanation`].
#[derive(Debug, Serialize)]
pub struct RuleExplanation {
    /// The rule as `auditctl -l` prints it.
    pub rule: String,
    /// Where it was read.
    pub source: String,
    /// Hooks that carry it.
    pub hooks: Vec<&'static str>,
    /// How many calls it is a candidate of.
    pub calls: u32,
    /// Where it is decided: `kernel`, or `daemon` when that needs names.
    pub decided_in: &'static str,
    /// What a call pays that it names but does not select: `hook` is the hook's own cost.
    pub cost: &'static str,
    /// How exactly it is honoured.
    pub exactness: Exactness,
    /// Position, from 1, of an earlier rule that always matches first.
    pub shadowed_by: Option<u32>,
}

/// Explains a plan.
pub fn explain(plan: &Plan) -> Explanation {
    let rules = plan
        .rules
        .iter()
        .zip(&plan.notes)
        .map(|(rule, note)| RuleExplanation {
            rule: rule.to_string(),
            source: match rule.source.line {
                0 => rule.source.file.clone(),
                line => format!("{}:{line}", rule.source.file),
            },
            hooks: if note.calls > 0 {
                hook_names(&plan.hooks)
            } else {
                Vec::new()
            },
            calls: note.calls,
            decided_in: if note.stage2 { "daemon" } else { "kernel" },
            cost: cost(note.calls, note.stage2),
            exactness: note.exactness.clone(),
            shadowed_by: note.shadowed_by.map(|position| position + 1),
        })
        .collect();
    Explanation {
        engine: "tracepoint",
        hooks: plan.hooks.clone(),
        unwatched_ns: plan.hooks.unwatched_ns(),
        watched_calls: plan.calls.len(),
        table_rows: plan.rows.len(),
        rules,
    }
}

fn cost(calls: u32, stage2: bool) -> &'static str {
    match (calls, stage2) {
        (0, _) => "none",
        (_, false) => "lookup per field",
        (_, true) => "lookup per field, and an event per candidate call",
    }
}

fn hook_names(hooks: &Hooks) -> Vec<&'static str> {
    let sys_exit = match hooks.sys_exit {
        SysExit::None => None,
        SysExit::Every => Some("tp_btf/sys_exit"),
        SysExit::PerSyscall(_) => Some("tracepoint/syscalls/sys_exit_*"),
    };
    let other = [
        (hooks.exec, "tp_btf/sched_process_exec"),
        (hooks.exit, "tp_btf/sched_process_exit"),
        (hooks.fork, "tp_btf/sched_process_fork"),
    ];
    let other = other
        .into_iter()
        .filter(|(used, _)| *used)
        .map(|(_, name)| name);
    sys_exit.into_iter().chain(other).collect()
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "engine      {}", self.engine)?;
        writeln!(f, "hooks       {}", hook_names(&self.hooks).join(", "))?;
        writeln!(f, "because     {}", self.hooks.reason)?;
        writeln!(
            f,
            "unwatched   +{} ns per call (measured: {} tp_btf, {} per-syscall tracepoint)",
            self.unwatched_ns, TP_BTF_NS, PER_SYSCALL_NS
        )?;
        writeln!(
            f,
            "watched     {} calls, {} table rows",
            self.watched_calls, self.table_rows
        )?;
        writeln!(f, "rules       {}", self.rules.len())?;
        for (i, rule) in self.rules.iter().enumerate() {
            write!(
                f,
                "\n{rule_number:>4}  {}\n",
                rule.rule,
                rule_number = i + 1
            )?;
            writeln!(f, "      from {}", rule.source)?;
            writeln!(
                f,
                "      {} calls, {}, decided in the {}",
                rule.calls, rule.cost, rule.decided_in
            )?;
            match &rule.exactness {
                Exactness::Exact => writeln!(f, "      exact")?,
                Exactness::Approximate(reasons) => {
                    for reason in reasons {
                        writeln!(f, "      may differ: {reason}")?;
                    }
                }
                Exactness::NotHonoured(reason) => writeln!(f, "      not honoured: {reason}")?,
            }
            if let Some(earlier) = rule.shadowed_by {
                writeln!(f, "      shadowed: rule {earlier} always matches first")?;
            }
        }
        Ok(())
    }
}
