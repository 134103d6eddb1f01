//! Processes of a log with their parents. Memory is bounded.

use super::ids::Fast;
use super::tree::Count;
use std::collections::{BTreeMap, HashMap, HashSet};

/// Processes that are held before those with the fewest events are forgotten.
const PROCESSES_MAX: usize = 60_000;
/// Bytes of a command line that are kept.
const COMMAND_BYTES_MAX: usize = 200;

/// A process, from its first event to its last. An id that is used again is another process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Process {
    /// Process id.
    pub pid: i32,
    /// Process id of the parent at the first event.
    pub ppid: i32,
    /// Value of `node=`; empty without one.
    pub node: Box<[u8]>,
    /// Path of the last program; empty for a parent that has no event of its own.
    pub exe: Box<[u8]>,
    /// Command line of the last program, if an EXECVE record has it.
    pub command: Box<[u8]>,
    /// Events of the process.
    pub count: Count,
}

/// A process of a picture, with its children.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Branch {
    /// The process.
    pub process: Process,
    /// Whether it is shown for its own events, not only for those of its descendants.
    pub is_chosen: bool,
    /// Children, earliest first.
    pub children: Vec<Branch>,
}

/// Trees of the processes with the most events and their ancestors.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Forest {
    /// Earliest first.
    pub roots: Vec<Branch>,
    /// Processes that are not shown.
    pub others: u64,
    /// Events of those processes.
    pub others_events: u64,
    /// Whether processes with few events were forgotten; the counts leave them out.
    pub is_pruned: bool,
}

/// Facts that an event tells of its process.
pub(super) struct Seen<'e> {
    pub(super) node: &'e [u8],
    /// Number of the node.
    pub(super) host: u32,
    pub(super) pid: i32,
    pub(super) ppid: i32,
    pub(super) exe: &'e [u8],
    pub(super) command: Option<&'e [u8]>,
    pub(super) time_ms: u64,
    pub(super) is_failure: bool,
}

#[derive(Debug, Default)]
struct Entry {
    process: Process,
    parent: Option<u32>,
}

/// The processes of a log.
#[derive(Debug, Default)]
pub(super) struct Processes {
    /// By numbers in the order of appearance.
    entries: HashMap<u32, Entry, Fast>,
    next: u32,
    /// The last process with each id, by the number of its node.
    by_pid: HashMap<(u32, i32), u32, Fast>,
    is_pruned: bool,
}

impl Processes {
    pub(super) fn add(&mut self, seen: &Seen<'_>) {
        if seen.pid < 0 {
            return;
        }

        let number = match self.current(seen.host, seen.pid) {
            Some(number) if self.is_same(number, seen.ppid) => number,
            _ => self.begin(seen),
        };
        self.adopt(number, seen);
        let Some(entry) = self.entries.get_mut(&number) else {
            return;
        };

        let process = &mut entry.process;
        process.count.add(seen.time_ms, seen.is_failure);
        if !seen.exe.is_empty() && *process.exe != *seen.exe {
            process.exe = cut(seen.exe);
        }
        if let Some(command) = seen.command.filter(|command| **command != *process.command) {
            process.command = cut(command);
        }

        if self.entries.len() > PROCESSES_MAX {
            self.prune();
        }
    }

    fn current(&self, host: u32, pid: i32) -> Option<u32> {
        self.by_pid.get(&(host, pid)).copied()
    }

    /// Whether an event with this parent is of the same process: its parent may have ended, and been replaced by init.
    /// A process without events of its own has its first event now.
    fn is_same(&self, number: u32, ppid: i32) -> bool {
        self.entries.get(&number).is_some_and(|entry| {
            let process = &entry.process;
            ppid < 0 || process.ppid < 0 || process.ppid == ppid || ppid == 1
        })
    }

    fn begin(&mut self, seen: &Seen<'_>) -> u32 {
        // A parent that was only heard of gets its place and program when it has events.
        let parent = (seen.ppid > 0).then(|| match self.current(seen.host, seen.ppid) {
            Some(parent) => parent,
            None => self.insert(seen, seen.ppid, -1, None),
        });
        self.insert(seen, seen.pid, seen.ppid, parent)
    }

    /// Sets the parent of a process that was known only as a parent itself.
    fn adopt(&mut self, number: u32, seen: &Seen<'_>) {
        let heard_of = self
            .entries
            .get(&number)
            .is_some_and(|entry| entry.process.ppid < 0);
        if !heard_of || seen.ppid <= 0 {
            return;
        }

        let parent = match self.current(seen.host, seen.ppid) {
            Some(parent) => parent,
            None => self.insert(seen, seen.ppid, -1, None),
        };
        let is_circle = self.with_ancestors(vec![parent]).contains(&number);
        if let Some(entry) = self.entries.get_mut(&number) {
            entry.process.ppid = seen.ppid;
            entry.parent = (!is_circle).then_some(parent);
        }
    }

    /// Adds a process of the host of an event.
    fn insert(&mut self, of: &Seen<'_>, pid: i32, ppid: i32, parent: Option<u32>) -> u32 {
        let number = self.next;
        self.next = self.next.wrapping_add(1);
        let process = Process {
            pid,
            ppid,
            node: of.node.into(),
            ..Process::default()
        };

        self.entries.insert(number, Entry { process, parent });
        self.by_pid.insert((of.host, pid), number);
        number
    }

    /// Forgets about half of the processes: those with the fewest events, unless others descend from them.
    fn prune(&mut self) {
        let mut counts: Vec<_> = self
            .entries
            .values()
            .map(|each| each.process.count.events)
            .collect();
        let middle = counts.len() / 2;
        let (_, least, _) = counts.select_nth_unstable(middle);
        let least = *least;
        let frequent = self
            .entries
            .iter()
            .filter(|(_, entry)| entry.process.count.events > least)
            .map(|(number, _)| *number);
        let kept = self.with_ancestors(frequent.collect());

        self.entries.retain(|number, _| kept.contains(number));
        self.by_pid.retain(|_, number| kept.contains(number));
        self.is_pruned = true;
    }

    /// The numbers of nodes.
    pub(super) fn hosts(&self) -> impl Iterator<Item = u32> + use<'_> {
        self.by_pid.keys().map(|key| key.0)
    }

    /// Takes the new numbers of nodes.
    pub(super) fn renumber(&mut self, numbers: &[u32]) {
        let by_pid = std::mem::take(&mut self.by_pid).into_iter();
        self.by_pid = by_pid
            .map(|((host, pid), number)| ((numbers[host as usize], pid), number))
            .collect();
    }

    fn with_ancestors(&self, chosen: Vec<u32>) -> HashSet<u32> {
        let mut kept = HashSet::new();
        for mut number in chosen {
            while kept.insert(number) {
                match self.entries.get(&number).and_then(|entry| entry.parent) {
                    Some(parent) => number = parent,
                    None => break,
                }
            }
        }
        kept
    }

    /// The `most` processes with the most events, with their ancestors.
    pub(super) fn forest(&self, most: usize) -> Forest {
        let mut by_events: Vec<_> = self
            .entries
            .iter()
            .filter(|(_, entry)| entry.process.count.events > 0)
            .collect();
        by_events.sort_by_key(|(number, entry)| {
            (std::cmp::Reverse(entry.process.count.events), **number)
        });

        let chosen: HashSet<u32> = by_events.iter().take(most).map(|each| *each.0).collect();
        let shown = self.with_ancestors(chosen.iter().copied().collect());
        let rest = by_events
            .iter()
            .filter(|(number, _)| !shown.contains(number));
        let (others, others_events) = rest.fold((0, 0), |(number, events), (_, entry)| {
            (number + 1, events + entry.process.count.events)
        });

        let mut children: BTreeMap<Option<u32>, Vec<u32>> = BTreeMap::new();
        // In the order in which they appeared.
        let mut numbers: Vec<_> = shown.iter().collect();
        numbers.sort_unstable();
        for number in numbers {
            if let Some(entry) = self.entries.get(number) {
                let parent = entry.parent.filter(|parent| shown.contains(parent));
                children.entry(parent).or_default().push(*number);
            }
        }

        Forest {
            roots: self.branches(None, &children, &chosen, 0),
            others,
            others_events,
            is_pruned: self.is_pruned,
        }
    }

    fn branches(
        &self,
        parent: Option<u32>,
        children: &BTreeMap<Option<u32>, Vec<u32>>,
        chosen: &HashSet<u32>,
        depth: usize,
    ) -> Vec<Branch> {
        /// Deeper ones are left out of the picture.
        const DEPTH_MAX: usize = 40;
        if depth >= DEPTH_MAX {
            return Vec::new();
        }

        let branch = |number: &u32| Branch {
            process: self.entries[number].process.clone(),
            is_chosen: chosen.contains(number),
            children: self.branches(Some(*number), children, chosen, depth + 1),
        };
        let numbers = children.get(&parent).into_iter().flatten();
        numbers.map(branch).collect()
    }
}

fn cut(text: &[u8]) -> Box<[u8]> {
    text[..text.len().min(COMMAND_BYTES_MAX)].into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(pid: i32, ppid: i32, exe: &str) -> Seen<'_> {
        Seen {
            node: b"",
            host: 0,
            pid,
            ppid,
            exe: exe.as_bytes(),
            command: None,
            time_ms: 1,
            is_failure: false,
        }
    }

    fn drawn(branches: &[Branch]) -> String {
        let branch = |branch: &Branch| {
            let exe = String::from_utf8_lossy(&branch.process.exe).into_owned();
            format!("{}{exe}({})", branch.process.pid, drawn(&branch.children))
        };
        branches.iter().map(branch).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn children_stand_below_their_parents_and_reused_ids_apart() {
        let mut processes = Processes::default();
        processes.add(&seen(10, 5, "sh"));
        processes.add(&seen(11, 10, "ls"));
        processes.add(&seen(10, 5, "bash"));
        // The parent ended.
        processes.add(&seen(11, 1, "ls"));
        // Another process with the id.
        processes.add(&seen(11, 7, "cat"));
        processes.add(&seen(12, 11, "tr"));
        let forest = processes.forest(10);
        assert_eq!(drawn(&forest.roots), "5(10bash(11ls())) 7(11cat(12tr()))");
        assert_eq!((forest.others, forest.others_events), (0, 0));
    }

    #[test]
    fn processes_that_are_not_shown_are_counted() {
        let mut processes = Processes::default();
        for pid in 2..9 {
            for _ in 0..pid {
                processes.add(&seen(pid, pid - 1, "x"));
            }
        }
        let forest = processes.forest(1);
        assert_eq!(drawn(&forest.roots), "1(2x(3x(4x(5x(6x(7x(8x())))))))");
        processes.add(&seen(90, 89, "y"));
        assert_eq!(processes.forest(1).others, 1);
    }

    #[test]
    fn memory_is_bounded_whatever_the_number_of_processes() {
        let mut processes = Processes::default();
        for pid in 0..i32::try_from(3 * PROCESSES_MAX).expect("small") {
            processes.add(&seen(pid, 1, "x"));
        }
        assert!(processes.entries.len() <= PROCESSES_MAX + 1);
        assert!(processes.is_pruned);
    }

    #[test]
    fn a_process_that_is_its_own_parent_ends() {
        let mut processes = Processes::default();
        processes.add(&seen(3, 3, "x"));
        processes.add(&seen(4, 3, "x"));
        processes.add(&seen(3, 4, "x"));
        assert_eq!(processes.forest(9).others, 0);
    }
}
