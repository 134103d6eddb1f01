//! Copies of programs on tracepoints: if the kernel preempts programs there, the next copy handles what a
//! preempted one misses. See `COPIES` in bpf/copies.h.

use crate::attach::trampoline;
use libbpf_rs::{Object, OpenObject};
use plan::Form;
use std::os::fd::AsFd;

/// Programs that have copies.
const COPIED: [&str; 11] = [
    "exec_broken",
    "exec_entry",
    "exec_done",
    "exit_call",
    "fork_done",
    "module_load",
    "process_ended",
    "process_exec",
    "process_made",
    "task_made",
    "uring_link_failed",
];
/// Programs among them that tell of processes, in the order in which they are attached: if the beginning of a process is
/// seen, so is its end.
pub(crate) const OF_PROCESSES: [&str; 3] = ["process_ended", "process_exec", "process_made"];
/// Suffixes of the names of copies.
const SUFFIXES: [&str; 3] = ["_1", "_2", "_3"];

/// Leaves out either the copies or the originals; and the copies of originals that are left out already.
pub(crate) fn choose(open: &mut OpenObject, wanted: bool) {
    let left_out: Vec<String> = open
        .progs()
        .filter(|program| !program.autoload())
        .map(|program| program.name().to_string_lossy().into_owned())
        .collect();

    for mut program in open.progs_mut() {
        let name = program.name().to_string_lossy().into_owned();
        match original(&name) {
            Some(original) => {
                program.set_autoload(wanted && !left_out.iter().any(|name| name == original));
            }
            None if wanted && COPIED.contains(&name.as_str()) => program.set_autoload(false),
            None => {}
        };
    }
}

/// Name of the program that this one is a copy of.
pub(crate) fn original(name: &str) -> Option<&str> {
    let mut originals = SUFFIXES
        .iter()
        .filter_map(|suffix| name.strip_suffix(suffix));
    originals.find(|name| COPIED.contains(name))
}

/// Whether the program, or the one that it is a copy of, tells of processes.
pub(crate) fn is_of_processes(name: &str) -> bool {
    OF_PROCESSES.contains(&original(name).unwrap_or(name))
}

/// Whether the program is a copy of another.
pub(crate) fn is_copy(name: &str) -> bool {
    original(name).is_some()
}

/// The names of a program's copies, if it has any and they are wanted; otherwise the program's own name.
pub(crate) fn of(program: &str, wanted: bool) -> Vec<String> {
    if wanted && COPIED.contains(&program) {
        SUFFIXES.map(|suffix| format!("{program}{suffix}")).into()
    } else {
        vec![program.to_owned()]
    }
}

/// Programs whose missed runs are counted, by their places in the object.
pub(crate) struct CountedPrograms {
    /// What stands for each other: the copies of a program, or one program.
    groups: Vec<Vec<usize>>,
}

impl CountedPrograms {
    /// The programs of a loaded object for which `counts` holds. An execve that all copies missed is recorded by the
    /// probe at the end of its function, and does not count where `form` has probes.
    pub(crate) fn of(
        object: &Object,
        form: Form,
        counts: impl Fn(&str) -> bool,
    ) -> CountedPrograms {
        let mut groups: Vec<(String, Vec<usize>)> = Vec::new();
        for (place, program) in object.progs().enumerate() {
            let name = program.name().to_string_lossy().into_owned();
            let of = original(&name).unwrap_or(&name);
            let is_made_good = form.probes && COPIED.contains(&of) && of.starts_with("exec_");
            if !program.autoload() || !counts(&name) || is_made_good {
                continue;
            }

            match groups.iter_mut().find(|(original, _)| original == of) {
                Some((_, places)) => places.push(place),
                None => groups.push((of.to_owned(), vec![place])),
            }
        }

        CountedPrograms {
            groups: groups.into_iter().map(|(_, places)| places).collect(),
        }
    }

    /// Number of runs that the programs missed. For copies it is the smallest count of any copy, an upper bound: what
    /// all of them missed, each of them counted.
    pub(crate) fn missed(&self, object: &Object) -> u64 {
        let programs: Vec<_> = object.progs().collect();
        let misses = |place: &usize| Some(trampoline::misses(programs.get(*place)?.as_fd()));
        let groups = self.groups.iter();
        groups
            .filter_map(|places| places.iter().filter_map(misses).min())
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_without_copies_stands_for_itself() {
        assert_eq!(of("uring_complete", true), ["uring_complete"]);
    }

    #[test]
    fn copies_are_told_from_programs_whose_names_end_alike() {
        assert_eq!(of("exec_done", false), ["exec_done"]);
        assert_eq!(
            of("exec_done", true),
            ["exec_done_1", "exec_done_2", "exec_done_3"]
        );
        assert!(is_copy("exit_call_3") && !is_copy("exit_call") && !is_copy("on_do_renameat_2"));
    }
}
