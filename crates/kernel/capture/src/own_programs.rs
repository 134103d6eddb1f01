//! The BPF programs that this process has loaded, by the kernel's ids, so that the kernel's records of them can be told
//! from those of other programs.
//!
//! The kernel writes a record (BPF, `op=LOAD`) while it loads a program, before the loader can know the id, and another
//! (`op=UNLOAD`) before it gives the id free. So records with one id are always LOAD, UNLOAD, LOAD, UNLOAD, and each
//! program is known here for one pair of them. The kernel gives ids in a cycle of 2³¹ (`bpf_prog_alloc_id()` in
//! kernel/bpf/syscall.c): none comes again while programs are being loaded.

use crate::ids::program_ids;
use libbpf_rs::libbpf_sys::{
    bpf_link_info, bpf_obj_get_info_by_fd, bpf_prog_get_fd_by_id, bpf_prog_info,
};
use libbpf_rs::Object;
use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The loader of the program that a record is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loader {
    /// This process.
    Own,
    /// Another process.
    Other,
    /// Not known until [`OwnPrograms::is_loading`] is false: this process is loading programs, and does not know their
    /// ids yet.
    Undecided,
}

/// The records that are still to come of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expected {
    LoadAndUnload,
    Unload,
}

#[derive(Debug)]
struct OwnProgram {
    expected: Expected,
    /// Whether the kernel no longer had the program when it was last asked.
    is_gone: bool,
}

/// The programs of one process. All threads share it.
#[derive(Debug, Default)]
pub struct OwnPrograms(Mutex<ProgramRecords>);

#[derive(Debug, Default)]
struct ProgramRecords {
    programs: BTreeMap<u32, OwnProgram>,
    /// Hashes of their instructions without the addresses of maps (bpf_prog_calc_tag() in kernel/bpf/core.c).
    tags: BTreeSet<[u8; 8]>,
    /// Number of threads that are loading programs.
    loading: u32,
}

static OF_THIS_PROCESS: OwnPrograms = OwnPrograms(Mutex::new(ProgramRecords {
    programs: BTreeMap::new(),
    tags: BTreeSet::new(),
    loading: 0,
}));

/// The programs of this process.
pub fn own_programs() -> &'static OwnPrograms {
    &OF_THIS_PROCESS
}

/// Guard held while a thread loads programs, whose ids may not be known yet.
#[must_use]
pub struct Loading<'p>(&'p OwnPrograms);

impl Drop for Loading<'_> {
    fn drop(&mut self) {
        self.0.known().loading -= 1;
    }
}

impl OwnPrograms {
    fn known(&self) -> MutexGuard<'_, ProgramRecords> {
        // No step in between leaves it inconsistent.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Announces that this thread is about to load programs; until the value is dropped, it notes them all.
    pub fn load(&self) -> Loading<'_> {
        self.known().loading += 1;
        Loading(self)
    }

    /// Whether some thread is loading programs.
    pub fn is_loading(&self) -> bool {
        self.known().loading > 0
    }

    /// Notes a program that this process has just loaded. Without an id, its records count as another's.
    pub(crate) fn note(&self, program: BorrowedFd<'_>) {
        if let Some(info) = info_of_program(program) {
            self.known().tags.insert(info.tag);
            self.insert(info.id, Expected::LoadAndUnload);
        }
    }

    /// Loads an object of programs, and notes those that were loaded with it. No id is known of an object that the
    /// kernel refuses, nor of the programs by which libbpf tries what the kernel can do: these count as another's.
    pub(crate) fn of<E>(&self, load: impl FnOnce() -> Result<Object, E>) -> Result<Object, E> {
        let _loading = self.load();
        let object = load()?;
        for program in object.progs().filter(|program| program.autoload()) {
            self.note(program.as_fd());
        }
        Ok(object)
    }

    /// Notes the program of a link that was pinned, if it is one that an earlier daemon of the same version left: its
    /// instructions are those of a program of this process. Whoever may pin there could pin another's. The record that
    /// it was loaded came before this process did.
    pub(crate) fn note_inherited(&self, link: &bpf_link_info) {
        let id = link.prog_id;
        if self.known().programs.contains_key(&id) {
            return;
        }

        // SAFETY: takes a number and gives a new descriptor or an error.
        let fd = unsafe { bpf_prog_get_fd_by_id(id) };
        if fd < 0 {
            return;
        }
        // SAFETY: the kernel has just made this descriptor for us.
        let program = unsafe { OwnedFd::from_raw_fd(fd) };

        let info = info_of_program(program.as_fd());
        if info.is_some_and(|info| self.known().tags.contains(&info.tag)) {
            self.insert(id, Expected::Unload);
        }
    }

    /// Counts the program with this id as one of this process. For tests.
    #[doc(hidden)]
    pub fn assume(&self, id: u32) {
        self.insert(id, Expected::LoadAndUnload);
    }

    fn insert(&self, id: u32, expected: Expected) {
        let program = OwnProgram {
            expected,
            is_gone: false,
        };
        self.known().programs.insert(id, program);
    }

    /// Takes the record that the program with this id was loaded. Returns who loaded it.
    pub fn loader(&self, id: u32) -> Loader {
        let mut known = self.known();
        let is_loading = known.loading > 0;

        match known.programs.get_mut(&id) {
            Some(program) if program.expected == Expected::LoadAndUnload => {
                program.expected = Expected::Unload;
                Loader::Own
            }
            Some(_) => {
                // The record that it was unloaded is lost, and the id is another program's.
                known.programs.remove(&id);
                Loader::Other
            }
            None if is_loading => Loader::Undecided,
            None => Loader::Other,
        }
    }

    /// Takes the record that the program with this id was unloaded, and forgets the program. Returns whether it was one
    /// of this process.
    pub fn unloaded(&self, id: u32) -> bool {
        self.known().programs.remove(&id).is_some()
    }

    /// Forgets programs that the kernel no longer has and did not have at the last call either: if the record of their
    /// unloading has not come in between, it is lost. Call this about every ten seconds.
    pub fn forget_gone(&self) {
        // Before the lock: another thread may note programs in the meantime, and they are there.
        let before: Vec<u32> = self.known().programs.keys().copied().collect();
        if before.is_empty() {
            return;
        }

        let there = program_ids();
        let mut known = self.known();
        for id in before.into_iter().filter(|id| !there.contains(id)) {
            match known.programs.get_mut(&id) {
                Some(program) if !program.is_gone => program.is_gone = true,
                _ => drop(known.programs.remove(&id)),
            }
        }
    }
}

/// The kernel's information about a program.
pub(crate) fn info_of_program(program: BorrowedFd<'_>) -> Option<bpf_prog_info> {
    let mut info = bpf_prog_info::default();
    let mut len = std::mem::size_of::<bpf_prog_info>() as u32;
    let place: *mut bpf_prog_info = &mut info;
    // SAFETY: the kernel writes at most `len` bytes, and follows no pointer, for all lengths that
    // stand beside one are 0.
    let failed = unsafe { bpf_obj_get_info_by_fd(program.as_raw_fd(), place.cast(), &mut len) };
    (failed == 0).then_some(info)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(ids: &[u32]) -> OwnPrograms {
        let programs = OwnPrograms::default();
        for id in ids {
            programs.insert(*id, Expected::LoadAndUnload);
        }
        programs
    }

    #[test]
    fn a_program_is_own_for_one_pair_of_records() {
        let programs = with(&[7]);
        assert_eq!(programs.loader(7), Loader::Own);
        assert!(programs.unloaded(7));
        assert_eq!(programs.loader(7), Loader::Other, "the id is used again");
        assert!(!programs.unloaded(7));
    }

    #[test]
    fn a_second_load_with_an_id_is_another_s_program() {
        let programs = with(&[7]);
        assert_eq!(programs.loader(7), Loader::Own);
        assert_eq!(programs.loader(7), Loader::Other);
        assert!(!programs.unloaded(7), "nor is its end hidden");
    }

    #[test]
    fn programs_of_others_between_own_ones_are_others() {
        let programs = with(&[7, 9]);
        assert_eq!(programs.loader(8), Loader::Other);
        assert!(!programs.unloaded(8));
    }

    #[test]
    fn a_load_is_undecided_only_while_programs_are_loaded() {
        let programs = OwnPrograms::default();
        let (first, second) = (programs.load(), programs.load());
        assert_eq!(programs.loader(7), Loader::Undecided);
        drop(first);
        assert_eq!(programs.loader(7), Loader::Undecided);
        programs.insert(7, Expected::LoadAndUnload);
        drop(second);
        assert_eq!(programs.loader(7), Loader::Own);
        assert_eq!(programs.loader(8), Loader::Other);
    }

    #[test]
    fn the_load_of_an_inherited_program_s_id_is_another_s() {
        let programs = OwnPrograms::default();
        programs.insert(7, Expected::Unload);
        programs.insert(8, Expected::Unload);
        assert!(programs.unloaded(8));
        assert_eq!(programs.loader(7), Loader::Other);
        assert!(!programs.unloaded(7));
    }

    #[test]
    fn a_program_that_is_gone_is_forgotten_at_the_second_look() {
        // No program has this id: the kernel gives positive ones of 31 bits.
        let programs = with(&[u32::MAX]);
        programs.forget_gone();
        assert_eq!(programs.loader(u32::MAX), Loader::Own);
        programs.forget_gone();
        assert!(!programs.unloaded(u32::MAX));
    }
}
