//! The large programs that a plan does not need are loaded when a later plan needs them: to verify all takes nearly
//! twice the time. Loading later takes seconds, so what rules are often changed for is there from the start: the
//! programs at the ends of calls, those that tell what calls touch, and those for io_uring.

use crate::attach::copies;
use crate::attach::entries;
use crate::check::canary;
use plan::{Plan, SysExit};
use std::collections::BTreeSet;

/// What a plan needs.
pub(crate) struct Needs<'p> {
    plan: &'p Plan,
    per_syscall: bool,
    entries: BTreeSet<Option<u32>>,
}

impl<'p> Needs<'p> {
    pub(crate) fn of(plan: &'p Plan) -> Needs<'p> {
        Needs {
            plan,
            per_syscall: !canary::per_syscall(plan).is_empty(),
            entries: entries::wanted(plan),
        }
    }

    /// Whether the program, or the one that it is a copy of, has to be there.
    pub(crate) fn include(&self, program: &str) -> bool {
        let hooks = &self.plan.hooks;
        match copies::original(program).unwrap_or(program) {
            "sys_exit" => hooks.sys_exit == SysExit::Every,
            "sys_exit_one" => self.per_syscall,
            "sys_enter" => self.entries.contains(&None),
            "call_entry" => self.entries.iter().any(Option::is_some),
            "exec_broken" | "exec_done" | "exec_entry" => hooks.exec,
            "exit_call" | "exit_entry" => hooks.exit,
            "fork_done" => hooks.fork,
            "task_made" => hooks.task_list,
            program if copies::OF_PROCESSES.contains(&program) => hooks.processes,
            _ => true,
        }
    }
}
