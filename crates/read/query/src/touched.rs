//! Events that touched a file, under the name that is asked for or any other name of the same inode.
//!
//! The log is read twice: first for the inodes that had the name at some time, then for the events. The kernel
//! reuses the inode number of a deleted file: a CREATE of that inode in an event that does not rename or link begins
//! a new file. Inodes and names are those of one host: those of another node are others.

use crate::event_summary::{absolute, EventSummary, Item};
use crate::EventView;
use std::collections::{HashMap, HashSet};

/// Most inodes whose creation is remembered. Beyond that, one inode number counts as one file.
const INODES_MAX: usize = 1 << 20;

/// An inode: device and number, on a node.
type Inode = (Node, Vec<u8>, u64);
/// Value of `node=`; empty without one.
type Node = Box<[u8]>;

/// The file that is asked for.
pub struct Touched {
    path: Vec<u8>,
    /// Number of the file that each inode is now, counted from 0.
    files: HashMap<Inode, u32>,
    of_interest: HashSet<(Inode, u32)>,
    /// Other names, for records without an inode.
    names: HashSet<(Node, Vec<u8>)>,
}

impl Touched {
    /// Events that touched `path`: an absolute path, or the end of one.
    pub fn new(path: &[u8]) -> Touched {
        Touched {
            path: absolute(None, path),
            files: HashMap::new(),
            of_interest: HashSet::new(),
            names: HashSet::new(),
        }
    }

    fn has_name(&self, item: &Item) -> bool {
        if item.nametype == b"PARENT" {
            return false;
        }
        let Some(path) = item.path.as_deref() else {
            return false;
        };

        match self.path.first() {
            Some(b'/') => path == self.path,
            // All of its last parts.
            _ => path
                .strip_suffix(&self.path[..])
                .is_some_and(|rest| rest.is_empty() || rest.ends_with(b"/")),
        }
    }

    fn is_of_interest(&self, node: &Node, item: &Item) -> bool {
        if item.nametype == b"PARENT" {
            return false;
        }
        let Some(inode) = inode(node, item) else {
            let name = item.path.clone();
            return name.is_some_and(|name| self.names.contains(&(node.clone(), name)));
        };
        let file = self.files.get(&inode).copied().unwrap_or(0);
        self.of_interest.contains(&(inode, file))
    }

    /// Counts the files that begin with this event.
    fn begin(&mut self, node: &Node, summary: &EventSummary) {
        for item in &summary.items {
            if item.nametype != b"CREATE" {
                continue;
            }
            let Some(inode) = inode(node, item) else {
                continue;
            };

            let same = summary
                .items
                .iter()
                .filter(|other| other.inode == item.inode)
                .count();
            if same > 1 || summary.is_failed {
                continue;
            }
            let has_room = self.files.len() < INODES_MAX;
            match self.files.get_mut(&inode) {
                Some(file) => *file += 1,
                None if has_room => drop(self.files.insert(inode, 1)),
                None => {}
            }
        }
    }

    /// First reading: learns the inodes of the name. Returns whether something new was learnt: then another first
    /// reading may find more.
    pub fn learn(&mut self, event: EventView<'_>, summary: &EventSummary) -> bool {
        let node = node(event);
        self.begin(&node, summary);
        let known = (self.of_interest.len(), self.names.len());
        let mut is_touched = false;

        for item in &summary.items {
            if !self.has_name(item) && !self.is_of_interest(&node, item) {
                continue;
            }
            is_touched = true;
            if !self.has_name(item) {
                continue;
            }
            if let Some(inode) = inode(&node, item) {
                let file = self.files.get(&inode).copied().unwrap_or(0);
                self.of_interest.insert((inode, file));
            }
        }

        // A rename without inodes tells the other name.
        let has = |nametype: &[u8]| summary.items.iter().any(|item| item.nametype == nametype);
        if is_touched && has(b"CREATE") && has(b"DELETE") && !summary.is_failed {
            let named = summary
                .items
                .iter()
                .filter(|item| item.nametype != b"PARENT" && item.inode.is_none());
            let named = named.filter_map(|item| Some((node.clone(), item.path.clone()?)));
            self.names.extend(named);
        }

        known != (self.of_interest.len(), self.names.len())
    }

    /// Begins the next reading.
    pub fn restart(&mut self) {
        self.files.clear();
    }

    /// Second reading: whether the event touched the file.
    pub fn is_touched(&mut self, event: EventView<'_>, summary: &EventSummary) -> bool {
        let node = node(event);
        self.begin(&node, summary);
        summary
            .items
            .iter()
            .any(|item| self.has_name(item) || self.is_of_interest(&node, item))
    }
}

fn node(event: EventView<'_>) -> Node {
    event.node().unwrap_or_default().into()
}

fn inode(node: &Node, item: &Item) -> Option<Inode> {
    let (device, number) = item.inode.clone()?;
    Some((node.clone(), device, number))
}
