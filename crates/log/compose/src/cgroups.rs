//! The cgroups that exist, and those that existed lately: they lead from the id in an event to the workload.
//!
//! Frames of the rings tell of each cgroup before the first event of a task in it, and of its end after the last one.
//! Ids are never used again, and cgroup2 has no rename: an id that is known can only be right. A cgroup that no frame
//! told of, because it is older than the programs or the frame was lost, is looked up by its id.

use crate::system::{Cgroup, System};
use identity::{Place, Workload};
use record::wire::CgroupFrame;
use record::{ContainerNames, WorkloadText};
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

/// Removed cgroups that are kept. An event is at most as far behind the removal as its program was preempted between
/// reading the cgroup and the clock; only io_uring operations that end later need more.
const REMOVED_MAX: usize = 16_384;
/// Cgroups that are kept, removed ones included; the kernel needs far more memory for each. Others are looked up.
const KNOWN_MAX: usize = 1 << 18;
/// Length of the ids of containers whose names are elsewhere: 32 bytes in hexadecimal digits.
const ID_DIGITS: usize = 64;
/// Containers whose names are kept.
const CONTAINERS_MAX: usize = 4096;
/// Ids that are known to be unknown.
const MISSING_MAX: usize = 4096;
/// Limit of the bytes of a path that are logged. A longer path is cut at the end of a name, so that units, which come
/// first, stay what they are.
const PATH_MAX: usize = 16_384;

/// Counts of cgroups and of the events that are told of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CgroupCounts {
    /// Cgroups that are known, removed ones included.
    pub known: u64,
    /// Events whose cgroup is not known.
    pub unknown_events: u64,
    /// Lookups of cgroups that no frame told of.
    pub looked_up: u64,
    /// Containers that no runtime's file names.
    pub unnamed_containers: u64,
}

/// Path of a cgroup.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CgroupPath {
    pub(crate) bytes: Vec<u8>,
    /// Bytes at the begin whose names only root can have given.
    pub(crate) of_root: usize,
    /// Whether names are missing at the end.
    pub(crate) is_cut: bool,
}

impl CgroupPath {
    /// What rules ask about.
    pub(crate) fn place(&self) -> Place<'_> {
        Place::of(&self.bytes, self.of_root)
    }
}

struct Known {
    cgroup: Cgroup,
    is_removed: bool,
    text: Option<Arc<WorkloadText>>,
}

/// The cgroups by id.
#[derive(Default)]
pub(crate) struct Cgroups {
    known: HashMap<u64, Known>,
    /// Ids of removed cgroups, the first removed first.
    removed: VecDeque<u64>,
    missing: HashSet<u64>,
    /// Cgroups that were removed since the caller last took them out, as far as there is room.
    gone: Vec<u64>,
    /// Names by ids of container and pod, as far as they are known.
    containers: HashMap<(Vec<u8>, Vec<u8>), ContainerNames>,
    counts: CgroupCounts,
}

impl Cgroups {
    /// Takes a frame in its turn. If it says that a cgroup was removed, only late events of that cgroup can follow.
    pub(crate) fn take(&mut self, frame: &CgroupFrame<'_>) {
        self.learn(frame);
        if frame.is_removed {
            self.retire(frame.id);
        }
    }

    /// Learns the path of the frame's cgroup, before its turn.
    pub(crate) fn learn(&mut self, frame: &CgroupFrame<'_>) {
        let cgroup = || Cgroup {
            parent: frame.parent,
            name: frame.name.into(),
            is_of_root: frame.is_of_root,
        };
        if !self.known.contains_key(&frame.id) {
            self.add(frame.id, cgroup());
        }
    }

    /// Looks at all cgroups that there are. Those that are not there any more count as removed. Returns whether the
    /// system shows all.
    pub(crate) fn survey(&mut self, system: &dyn System) -> bool {
        let mut there = HashSet::new();
        let is_all = system.cgroups(&mut |id, cgroup| {
            there.insert(id);
            if !self.known.contains_key(&id) {
                self.add(id, cgroup);
            }
        });

        self.missing.clear();
        if !is_all {
            return false;
        }

        let is_gone =
            |(id, known): (&u64, &Known)| (!known.is_removed && !there.contains(id)).then_some(*id);
        let gone: Vec<u64> = self.known.iter().filter_map(is_gone).collect();
        gone.into_iter().for_each(|id| self.retire(id));
        true
    }

    /// The workload of an event with this cgroup; for an unknown cgroup, the text that says so. Such events are counted.
    pub(crate) fn text(&mut self, id: u64, system: &dyn System) -> Arc<WorkloadText> {
        self.find(id, system, true).unwrap_or_else(|| {
            self.counts.unknown_events += 1;
            Arc::new(WorkloadText::unknown())
        })
    }

    /// The workload of the events with this cgroup; `None` for an unknown cgroup. `is_named`: the names of its container
    /// are wanted, too.
    pub(crate) fn find(
        &mut self,
        id: u64,
        system: &dyn System,
        is_named: bool,
    ) -> Option<Arc<WorkloadText>> {
        if let Some(text) = self.known.get(&id).and_then(|known| known.text.as_ref()) {
            return Some(Arc::clone(text));
        }

        let path = self.path(id, system)?;
        let names = if is_named {
            self.names(&path.bytes, system)
        } else {
            None
        };

        let text = Arc::new(WorkloadText::of(&path.bytes, path.is_cut, names.as_ref()));
        if let Some(known) = self.known.get_mut(&id) {
            known.text = Some(Arc::clone(&text));
        }

        Some(text)
    }

    /// Asks for the names of a container when its first cgroup is made: its files may be gone by its first event.
    pub(crate) fn name(&mut self, id: u64, system: &dyn System) {
        if let Some(path) = self.path(id, system) {
            self.names(&path.bytes, system);
        }
    }

    /// The names of the container and pod of a path, from their runtime; `None` if it is not the path of a container that
    /// runtimes describe. A container inside another one has no names, because whoever runs there may choose its id.
    fn names(&mut self, path: &[u8], system: &dyn System) -> Option<ContainerNames> {
        let workload = Workload::of(path);
        if workload.outer.is_some() {
            return None;
        }
        let container = workload.container?;
        if container.id.len() != ID_DIGITS {
            // That of LXC or systemd-nspawn is its name.
            return None;
        }

        let pod = workload.pod.unwrap_or_default();
        let key = (container.id.into_owned(), pod.into_owned());
        if let Some(names) = self.containers.get(&key) {
            return Some(names.clone());
        }

        let names = system.container_names(&key.0, &key.1);
        self.counts.unnamed_containers += u64::from(names.is_none());
        let names = names.unwrap_or_default();
        if self.containers.len() >= CONTAINERS_MAX {
            self.containers.clear();
        }

        self.containers.insert(key, names.clone());
        Some(names)
    }

    pub(crate) fn counts(&self) -> CgroupCounts {
        CgroupCounts {
            known: self.known.len() as u64,
            ..self.counts
        }
    }

    /// Ids of the root and of all cgroups that are known and not removed.
    pub(crate) fn living(&self) -> Vec<u64> {
        let known = self.known.iter().filter(|(_, known)| !known.is_removed);
        let known = known.map(|(&id, _)| id);
        std::iter::once(Cgroup::ROOT).chain(known).collect()
    }

    /// Whether the cgroup was removed, as far as is known.
    pub(crate) fn is_removed(&self, id: u64) -> bool {
        self.known.get(&id).is_some_and(|known| known.is_removed)
    }

    /// The cgroups that were removed since the last call.
    pub(crate) fn take_gone(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.gone)
    }

    /// The path of a cgroup from the root.
    pub(crate) fn path(&mut self, id: u64, system: &dyn System) -> Option<CgroupPath> {
        let mut steps = Vec::new();
        let mut at = id;
        while at != Cgroup::ROOT {
            let step = self.step(at, system)?;
            // The programs cannot have seen more steps than there are cgroups.
            if steps.len() > KNOWN_MAX {
                return None;
            }
            at = step.parent;
            steps.push(step);
        }

        let mut path = CgroupPath::default();
        let mut is_of_root = true;
        for step in steps.iter().rev() {
            if path.bytes.len() + 1 + step.name.len() > PATH_MAX {
                path.is_cut = true;
                return Some(path);
            }
            path.bytes.push(b'/');
            path.bytes.extend_from_slice(&step.name);
            is_of_root &= step.is_of_root;
            if is_of_root {
                path.of_root = path.bytes.len();
            }
        }
        if path.bytes.is_empty() {
            path.bytes.push(b'/');
            path.of_root = 1;
        }
        Some(path)
    }

    /// A cgroup: its parent, and its own name.
    fn step(&mut self, id: u64, system: &dyn System) -> Option<Cgroup> {
        if let Some(Known { cgroup, .. }) = self.known.get(&id) {
            return Some(cgroup.clone());
        }
        if id == 0 || self.missing.contains(&id) {
            return None;
        }

        self.counts.looked_up += 1;
        let Some(cgroup) = system.cgroup(id) else {
            if self.missing.len() >= MISSING_MAX {
                self.missing.clear();
            }
            self.missing.insert(id);
            return None;
        };

        self.add(id, cgroup.clone());
        Some(cgroup)
    }

    fn add(&mut self, id: u64, cgroup: Cgroup) {
        if self.known.len() < KNOWN_MAX {
            let known = Known {
                cgroup,
                is_removed: false,
                text: None,
            };
            self.known.insert(id, known);
        }
    }

    /// Counts a cgroup as removed, and forgets the one that was removed first.
    fn retire(&mut self, id: u64) {
        match self.known.get_mut(&id) {
            Some(known) if !known.is_removed => known.is_removed = true,
            _ => return,
        }

        if self.gone.len() < REMOVED_MAX {
            self.gone.push(id);
        }

        self.removed.push_back(id);
        if self.removed.len() > REMOVED_MAX {
            let first = self.removed.pop_front();
            first.and_then(|id| self.known.remove(&id));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::StaticSystem;

    fn frame(id: u64, parent: u64, name: &[u8], is_removed: bool) -> CgroupFrame<'_> {
        CgroupFrame {
            id,
            parent,
            is_removed,
            is_of_root: true,
            name,
        }
    }

    fn told(cgroups: &mut Cgroups, id: u64, system: &StaticSystem) -> Arc<WorkloadText> {
        cgroups.text(id, system)
    }

    fn path(path: &str) -> Arc<WorkloadText> {
        Arc::new(WorkloadText::of(path.as_bytes(), false, None))
    }

    #[test]
    fn a_cgroup_is_known_from_its_frame_until_long_after_its_removal() {
        let (mut cgroups, system) = (Cgroups::default(), StaticSystem::default());
        cgroups.take(&frame(10, 1, b"system.slice", false));
        cgroups.take(&frame(11, 10, b"a.service", false));
        cgroups.take(&frame(11, 10, b"a.service", true));
        // The same name again is another cgroup.
        cgroups.take(&frame(12, 10, b"a.service", false));
        let expected = path("/system.slice/a.service");
        assert_eq!(told(&mut cgroups, 11, &system), expected);
        assert_eq!(told(&mut cgroups, 12, &system), expected);
        assert_eq!(told(&mut cgroups, 1, &system), path("/"));
        for id in 0..REMOVED_MAX as u64 {
            cgroups.take(&frame(100 + id, 10, b"b.service", true));
        }
        assert_eq!(*told(&mut cgroups, 11, &system), WorkloadText::unknown());
        assert_eq!(told(&mut cgroups, 12, &system), expected);
        assert_eq!(cgroups.counts().known, REMOVED_MAX as u64 + 2);
        assert_eq!(cgroups.counts().unknown_events, 1);
    }

    #[test]
    fn what_no_frame_told_of_is_looked_up_and_never_guessed() {
        let mut system = StaticSystem::default();
        let cgroup = |parent, name: &[u8]| Cgroup {
            parent,
            name: name.into(),
            is_of_root: true,
        };
        system.cgroups.insert(5, cgroup(1, b"user.slice"));
        system.cgroups.insert(6, cgroup(5, b"user-7.slice"));
        let mut cgroups = Cgroups::default();
        assert_eq!(
            told(&mut cgroups, 6, &system),
            path("/user.slice/user-7.slice")
        );
        assert_eq!(cgroups.counts().looked_up, 2);
        for _ in 0..3 {
            assert_eq!(*told(&mut cgroups, 7, &system), WorkloadText::unknown());
        }
        assert_eq!(
            (cgroups.counts().looked_up, cgroups.counts().unknown_events),
            (3, 3)
        );
        // A child of a cgroup that nobody knows is not known either.
        cgroups.take(&frame(8, 7, b"x.scope", false));
        assert_eq!(*told(&mut cgroups, 8, &system), WorkloadText::unknown());
    }

    #[test]
    fn a_survey_finds_what_is_there_and_retires_what_is_not() {
        let mut system = StaticSystem::default();
        let name: Box<[u8]> = (*b"system.slice").into();
        let is_of_root = true;
        system.cgroups.insert(
            5,
            Cgroup {
                parent: 1,
                name,
                is_of_root,
            },
        );
        let mut cgroups = Cgroups::default();
        cgroups.take(&frame(9, 5, b"lost.service", false));
        assert!(cgroups.survey(&system));
        assert_eq!(cgroups.removed, [9]);
        assert_eq!(
            told(&mut cgroups, 9, &system),
            path("/system.slice/lost.service")
        );
        // Its frame comes later: it is retired once.
        cgroups.take(&frame(9, 5, b"lost.service", true));
        assert_eq!(cgroups.removed, [9]);
        assert_eq!(cgroups.counts().looked_up, 0);
    }

    #[test]
    fn deep_paths_are_right_and_the_deepest_keep_their_unit() {
        let (mut cgroups, system) = (Cgroups::default(), StaticSystem::default());
        let name = [b'n'; 200];
        cgroups.take(&frame(2, 1, b"system.slice", false));
        cgroups.take(&frame(3, 2, b"a.service", false));
        for id in 4..104 {
            cgroups.take(&frame(id, id - 1, &name, false));
        }
        let unit = "/system.slice/a.service";
        let below = |depth| format!("{unit}{}", format!("/{}", "n".repeat(200)).repeat(depth));
        assert_eq!(told(&mut cgroups, 53, &system), path(&below(50)));
        let cut = WorkloadText::of(below(81).as_bytes(), true, None);
        assert_eq!(*told(&mut cgroups, 103, &system), cut);
    }

    #[test]
    fn names_below_a_directory_that_others_may_write_to_are_not_roots() {
        let (mut cgroups, system) = (Cgroups::default(), StaticSystem::default());
        cgroups.take(&frame(2, 1, b"user.slice", false));
        let of_user = |id, parent, is_of_root| CgroupFrame {
            is_of_root,
            ..frame(id, parent, b"a.scope", false)
        };
        cgroups.take(&of_user(3, 2, false));
        cgroups.take(&of_user(4, 3, true));
        let of_root =
            |cgroups: &mut Cgroups, id| cgroups.path(id, &system).map(|path| path.of_root);
        assert_eq!(of_root(&mut cgroups, 2), Some("/user.slice".len()));
        for id in [3, 4] {
            assert_eq!(of_root(&mut cgroups, id), Some("/user.slice".len()));
        }
    }

    #[test]
    fn cgroups_that_contain_each_other_are_not_known() {
        let (mut cgroups, system) = (Cgroups::default(), StaticSystem::default());
        cgroups.take(&frame(2, 3, b"a", false));
        cgroups.take(&frame(3, 2, b"b", false));
        assert_eq!(*told(&mut cgroups, 2, &system), WorkloadText::unknown());
    }
}
