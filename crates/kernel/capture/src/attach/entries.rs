//! Hooks on the entries of calls whose end no longer shows what their records are about: see
//! `entry_hooks.bpf.inc.c` of the programs.

use crate::attach::programs::Programs;
use crate::error::CaptureError;
use crate::pins::Attached;
use plan::{Entry, Plan, SysExit};
use std::collections::{BTreeMap, BTreeSet};

/// The program for the entries of all calls, and that for the entry of one.
pub(crate) const PROGRAMS: [&str; 2] = ["sys_enter", "call_entry"];

/// The native calls whose entries `plan` needs, by number; `None` stands for all calls of every entry.
pub(crate) fn wanted(plan: &Plan) -> BTreeSet<Option<u32>> {
    let mut calls = plan.entry_classes();
    if plan.hooks.sys_exit == SysExit::Every {
        return calls.next().map(|_| None).into_iter().collect();
    }
    let native = calls.filter(|(entry, ..)| *entry == Entry::Native);
    native.map(|(_, nr, _)| Some(nr)).collect()
}

/// Attaches what `plan` needs and `armed` lacks.
pub(crate) fn attach(
    programs: &mut Programs,
    plan: &Plan,
    armed: &BTreeMap<Option<u32>, Attached>,
) -> Result<BTreeMap<Option<u32>, Attached>, CaptureError> {
    let mut added = BTreeMap::new();
    for call in wanted(plan) {
        if armed.contains_key(&call) {
            continue;
        }
        let link = match call {
            Some(nr) => attach_one(programs, plan, nr).map(Some)?,
            None => programs.attach_if(true, "sys_enter")?,
        };
        added.extend(link.map(|link| (call, link)));
    }
    Ok(added)
}

fn attach_one(programs: &mut Programs, plan: &Plan, nr: u32) -> Result<Attached, CaptureError> {
    let arch = plan.entries.arch(Entry::Native);
    let name = arch.and_then(|arch| abi::syscall_name(arch, nr));
    let name = name.unwrap_or("?");
    let events = programs.events.as_ref();
    let event = events.and_then(|events| events.enter_event(name));
    programs.attach_event("call_entry", event, &format!("sys_enter_{name}"))
}
