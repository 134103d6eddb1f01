//! Actions of a process and its descendants.
//!
//! A process begins with a fork that makes its pid, or with its first event. It ends when it exits, or when the pid
//! belongs to another process: one made by a fork whose caller is the parent in later events, or one with another
//! parent. (A process whose parent has died gets a new one, mostly pid 1. That change does not count.)
//!
//! Pids are those of one host: the processes of each node are apart. The root needs no event of its own: its
//! children name it.

use crate::event_summary::{write_shown, EventSummary};
use crate::{time, EventView};
use std::collections::HashMap;

/// Most processes that are remembered, and most lines that are kept.
const PROCESSES_MAX: usize = 1 << 20;
const LINES_MAX: usize = 100_000;
/// Most nodes.
const NODES_MAX: usize = 1 << 16;

/// Second and millisecond.
type Moment = (u64, u32);

/// Collects the processes of a log.
pub struct Tree {
    pid: u32,
    at: Option<Moment>,
    processes: Vec<Process>,
    /// Nodes in the order of their appearance; no name for records without one.
    nodes: Vec<Box<[u8]>>,
    current: HashMap<Task, usize>,
    births: HashMap<Task, (usize, Moment)>,
    lines: usize,
    forgotten: u64,
}

/// Number of a node, and a pid there.
type Task = (usize, u32);

struct Process {
    task: Task,
    ppid: u32,
    start: Moment,
    is_made: bool,
    has_ended: bool,
    is_member: bool,
    /// User, task and pid; empty if the process has no event of its own.
    who: Vec<u8>,
    /// Actions of the process and the processes that it made, in order.
    parts: Vec<Part>,
    left_out: u64,
}

enum Part {
    Line(Vec<u8>),
    Child(usize),
}

impl Tree {
    /// The tree of process `pid`: of all that had this pid, or of the one that had it at second and millisecond `at`.
    pub fn new(pid: u32, at: Option<(u64, u32)>) -> Tree {
        Tree {
            pid,
            at,
            processes: Vec::new(),
            nodes: Vec::new(),
            current: HashMap::new(),
            births: HashMap::new(),
            lines: 0,
            forgotten: 0,
        }
    }

    /// Takes an event. `is_shown`: it gets a line if its process belongs to the tree.
    pub fn add(&mut self, event: EventView<'_>, summary: &EventSummary, is_shown: bool) {
        let Some(pid) = summary.pid else {
            return;
        };
        let moment = (event.sec, event.msec);
        let Some(node) = self.node(event.node().unwrap_or_default()) else {
            self.forgotten += 1;
            return;
        };
        let Some(number) = self.process((node, pid), summary, moment) else {
            self.forgotten += 1;
            return;
        };

        if self.processes[number].is_member && is_shown {
            self.add_line(number, moment, summary);
        }

        let process = &mut self.processes[number];
        if process.ppid == 0 {
            process.ppid = summary.ppid.unwrap_or(0);
        }

        process.who = {
            let mut who = Vec::new();
            summary.write_who(&mut who);
            who
        };

        match &summary.what[..] {
            b"fork" | b"vfork" | b"clone" | b"clone3" => {
                let child = summary.exit.and_then(|exit| u32::try_from(exit).ok());
                if let Some(child) =
                    child.filter(|child| *child > 0 && self.births.len() < PROCESSES_MAX)
                {
                    self.births.insert((node, child), (number, moment));
                }
            }
            b"exit_group" => process.has_ended = true,
            _ => {}
        }
    }

    /// The number of a node; `None` if there are too many.
    fn node(&mut self, name: &[u8]) -> Option<usize> {
        let known = self.nodes.iter().position(|node| **node == *name);
        if known.is_none() && self.nodes.len() < NODES_MAX {
            self.nodes.push(name.into());
            return Some(self.nodes.len() - 1);
        }
        known
    }

    fn add_line(&mut self, number: usize, moment: Moment, summary: &EventSummary) {
        let process = &mut self.processes[number];
        if self.lines >= LINES_MAX {
            process.left_out += 1;
            return;
        }
        self.lines += 1;
        let mut line = Vec::new();
        write_moment(moment, &mut line);
        line.push(b' ');
        summary.write_action(&mut line);
        process.parts.push(Part::Line(line));
    }

    /// The process of an event.
    fn process(&mut self, task: Task, summary: &EventSummary, moment: Moment) -> Option<usize> {
        let node = task.0;
        let current = self.current.get(&task).copied();
        let birth = self.births.get(&task).copied();
        let birth =
            birth.filter(|(parent, _)| summary.ppid == Some(self.processes[*parent].task.1));

        // A fork has announced the process: it begins there, unless the one that has the pid began later.
        if let Some((parent, start)) = birth {
            self.births.remove(&task);
            if current.is_none_or(|number| self.processes[number].start <= start) {
                return self.begin(task, summary.ppid, start, Some(parent), true);
            }
        }

        // A process whose parent has ended is init's child, and still the same one.
        if let Some(number) = current {
            let process = &self.processes[number];
            let is_other = summary
                .ppid
                .is_some_and(|ppid| ![1, process.ppid].contains(&ppid) && process.ppid != 0);
            if !process.has_ended && !is_other {
                return Some(number);
            }
        }

        let parent = match summary.ppid {
            Some(ppid) => self.parent((node, ppid), moment),
            None => None,
        };
        self.begin(task, summary.ppid, moment, parent, false)
    }

    /// The process that an event names as the parent of its own. The root that is asked for exists by that alone.
    fn parent(&mut self, task: Task, moment: Moment) -> Option<usize> {
        let current = self.current.get(&task).copied();
        let current = current.filter(|number| !self.processes[*number].has_ended);
        if current.is_some() || task.1 != self.pid {
            return current;
        }
        self.begin(task, None, moment, None, false)
    }

    fn begin(
        &mut self,
        task: Task,
        ppid: Option<u32>,
        start: Moment,
        parent: Option<usize>,
        is_made: bool,
    ) -> Option<usize> {
        if self.processes.len() >= PROCESSES_MAX {
            return None;
        }

        let number = self.processes.len();
        let is_member =
            task.1 == self.pid || parent.is_some_and(|parent| self.processes[parent].is_member);
        self.processes.push(Process {
            task,
            ppid: ppid.unwrap_or(0),
            start,
            is_made,
            has_ended: false,
            is_member,
            who: Vec::new(),
            parts: Vec::new(),
            left_out: 0,
        });

        if let (Some(parent), true) = (parent, is_member) {
            self.processes[parent].parts.push(Part::Child(number));
        }

        self.current.insert(task, number);
        Some(number)
    }

    /// The processes that are asked for: with a time, one of each node.
    fn roots(&self) -> Vec<usize> {
        let all =
            (0..self.processes.len()).filter(|number| self.processes[*number].task.1 == self.pid);
        let Some(at) = self.at else {
            return all.collect();
        };
        let all: Vec<usize> = all.collect();

        let of_node = |node: usize| {
            let its = || {
                all.iter()
                    .filter(move |number| self.processes[**number].task.0 == node)
            };
            let until = its()
                .rev()
                .find(|number| self.processes[**number].start <= at);
            // The first is older than its first event, unless its fork is in the log.
            let first = its()
                .next()
                .filter(|number| !self.processes[**number].is_made);
            until.or(first).copied()
        };

        (0..self.nodes.len()).filter_map(of_node).collect()
    }

    /// Appends the trees, one for each process that is asked for. Returns whether there is any.
    pub fn write(&self, out: &mut Vec<u8>) -> bool {
        let roots = self.roots();
        for root in &roots {
            self.write_tree(*root, out);
        }

        if self.forgotten > 0 {
            let text = format!(
                "{} events of further processes were left out\n",
                self.forgotten
            );
            out.extend_from_slice(text.as_bytes());
        }

        !roots.is_empty()
    }

    fn write_tree(&self, root: usize, out: &mut Vec<u8>) {
        self.write_process(root, out);
        // Process, next part, and what stands before its lines. Trees can be deeper than a stack.
        let mut open: Vec<(usize, usize, String)> = vec![(root, 0, String::new())];
        while let Some((number, next, before)) = open.last_mut() {
            let process = &self.processes[*number];
            let count = process.parts.len() + usize::from(process.left_out > 0);
            if *next == count {
                open.pop();
                continue;
            }
            let is_last = *next + 1 == count;
            out.extend_from_slice(before.as_bytes());
            out.extend_from_slice(if is_last { "└─ " } else { "├─ " }.as_bytes());
            let below = format!("{before}{}", if is_last { "   " } else { "│  " });
            let part = process.parts.get(*next);
            *next += 1;
            match part {
                Some(Part::Line(line)) => {
                    out.extend_from_slice(line);
                    out.push(b'\n');
                }
                Some(Part::Child(child)) => {
                    self.write_process(*child, out);
                    open.push((*child, 0, below));
                }
                None => {
                    let text = format!("… {} more events\n", process.left_out);
                    out.extend_from_slice(text.as_bytes());
                }
            }
        }
    }

    fn write_process(&self, number: usize, out: &mut Vec<u8>) {
        let process = &self.processes[number];
        let node = &self.nodes[process.task.0];
        if !node.is_empty() && process.task.1 == self.pid {
            write_shown(node, out);
            out.extend_from_slice(b": ");
        }

        if process.who.is_empty() {
            out.extend_from_slice(
                format!("process {} (it has no event)", process.task.1).as_bytes(),
            )
        } else {
            write_shown(&process.who, out)
        }

        out.extend_from_slice(if process.is_made {
            b" from "
        } else {
            b" seen from "
        });
        write_moment(process.start, out);
        out.push(b'\n');
    }
}

fn write_moment(moment: Moment, out: &mut Vec<u8>) {
    time::write_date_time(moment.0, out);
    out.extend_from_slice(format!(".{:03}", moment.1).as_bytes());
}
