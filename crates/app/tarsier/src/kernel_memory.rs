//! Memory that maps and programs of BPF take in the kernel, by the kernel's own account.

use anyhow::{Context, Result};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::path::Path;

/// BPF_MAP_TYPE_ARRAY, _RINGBUF, _TASK_STORAGE (linux/bpf.h).
const ARRAY: u64 = 2;
const RING: u64 = 27;
const TASK_STORAGE: u64 = 29;

/// Memory in bytes.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct KernelMemory {
    /// Rings through which events come.
    pub(crate) rings: u64,
    /// Match tables, which have room for any rule set. While rules are replaced, there are two.
    pub(crate) tables: u64,
    /// All other maps of the programs: counters, budgets, notes about calls in progress.
    pub(crate) maps: u64,
    /// BPF programs, their machine code, and their type information.
    pub(crate) programs: u64,
    /// Number of programs.
    pub(crate) program_count: usize,
    /// Bytes among these that each possible CPU adds: its ring, and its part of maps.
    pub(crate) per_cpu: u64,
    /// Contents of all notes that one task can have, of the last program that it executed and of what its call touched.
    /// They are not among the other bytes.
    pub(crate) task_notes: u64,
}

impl KernelMemory {
    /// What the process with these descriptors (its directory fdinfo below /proc) holds.
    ///
    /// # Errors
    /// The descriptors cannot be read.
    pub(crate) fn held_by(descriptors: &Path) -> Result<KernelMemory> {
        let place = || descriptors.display().to_string();
        let mut found = Objects::default();
        for entry in fs::read_dir(descriptors).with_context(place)? {
            // A descriptor may have been closed since.
            let text = fs::read_to_string(entry.with_context(place)?.path()).unwrap_or_default();
            found.add(&text, false);
        }

        let outer: Vec<u32> = found.maps.keys().copied().collect();
        for inner in outer.into_iter().flat_map(capture::inner_maps) {
            let path = format!("/proc/self/fdinfo/{}", inner.as_raw_fd());
            let text = fs::read_to_string(&path).with_context(|| path.clone())?;
            found.add(&text, true);
        }

        Ok(found.sum())
    }

    /// Memory that the kernel takes for all of it.
    pub(crate) fn total(&self) -> u64 {
        self.rings + self.tables + self.maps + self.programs
    }

    /// Prints the account for people, without a total.
    pub(crate) fn print(&self, out: &mut impl Write) -> io::Result<()> {
        writeln!(out, "  rings             {}", mb(self.rings))?;
        writeln!(
            out,
            "  match tables      {}, twice while rules are replaced",
            mb(self.tables)
        )?;
        writeln!(out, "  other maps        {}", mb(self.maps))?;
        let programs = self.program_count;

        writeln!(
            out,
            "  BPF programs      {} in {programs}",
            mb(self.programs)
        )
    }

    /// Prints how the account grows.
    pub(crate) fn print_growth(&self, out: &mut impl Write) -> io::Result<()> {
        writeln!(out, "per processor       {}", mb(self.per_cpu))?;
        writeln!(
            out,
            "per 1,000 rules     0.0 MB: the match tables have room for them"
        )?;
        writeln!(
            out,
            "per task with notes {:.1} KB at most",
            self.task_notes as f64 / 1e3
        )
    }
}

/// An amount for people.
pub(crate) fn mb(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}

/// Maps and programs by their ids.
#[derive(Default)]
struct Objects {
    maps: BTreeMap<u32, Map>,
    /// Bytes of instructions.
    programs: BTreeMap<u32, u64>,
}

struct Map {
    kind: Option<u64>,
    value_bytes: u64,
    bytes: u64,
    /// Whether another map holds it: rings and match tables.
    is_inner: bool,
}

impl Objects {
    /// Adds the map or program of a descriptor, by its file in fdinfo (proc_pid_fdinfo(5)).
    fn add(&mut self, text: &str, is_inner: bool) {
        let fields = fields(text);
        let number = |name: &str| -> Option<u64> { fields.get(name)?.parse().ok() };
        let id = |name: &str| -> Option<u32> { fields.get(name)?.parse().ok() };

        // Links have the id of a program, and take next to nothing.
        let Some(bytes) = number("memlock") else {
            return;
        };

        if let Some(id) = id("map_id") {
            let map = Map {
                kind: number("map_type"),
                value_bytes: number("value_size").unwrap_or_default(),
                bytes,
                is_inner,
            };
            self.maps.insert(id, map);
        } else if let Some(id) = id("prog_id") {
            self.programs.insert(id, bytes);
        }
    }

    fn sum(self) -> KernelMemory {
        let mut memory = KernelMemory::default();
        let ids: BTreeSet<u32> = self.maps.keys().copied().collect();
        let by_cpu = capture::maps_by_cpu(&ids);
        let (mut of_cpus, mut rings) = (0, 0);

        for (id, map) in self.maps {
            match map.kind {
                Some(RING) => {
                    memory.rings += map.bytes;
                    of_cpus += if map.is_inner { map.bytes } else { 0 };
                    rings += u64::from(map.is_inner);
                }
                Some(ARRAY) if map.is_inner => memory.tables += map.bytes,
                kind => {
                    memory.maps += map.bytes;
                    of_cpus += if by_cpu.contains(&id) { map.bytes } else { 0 };
                    if kind == Some(TASK_STORAGE) {
                        memory.task_notes += map.value_bytes;
                    }
                }
            }
        }

        // There is a ring for each possible CPU.
        memory.per_cpu = of_cpus / rings.max(1);
        memory.program_count = self.programs.len();
        let sizes = capture::program_sizes(&self.programs.keys().copied().collect());
        let code: u64 = sizes.code.values().sum();
        memory.programs = self.programs.values().sum::<u64>() + code + sizes.types;

        memory
    }
}

/// Fields of a file below /proc, `NAME:` and the value in each line.
pub(crate) fn fields(text: &str) -> BTreeMap<&str, &str> {
    let pairs = text.lines().filter_map(|line| line.split_once(':'));
    pairs.map(|(name, value)| (name, value.trim())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_map_and_program_counts_once_and_links_and_files_do_not() {
        let directory = tempfile::TempDir::new().expect("a directory");
        let put = |name: &str, text: &str| {
            fs::write(directory.path().join(name), text).expect("it is written");
        };
        put(
            "3",
            "pos:\t0\nmap_type:\t27\nmax_entries:\t65536\nmemlock:\t4096\nmap_id:\t4294967294\n",
        );
        put(
            "4",
            "pos:\t0\nmap_type:\t27\nmax_entries:\t65536\nmemlock:\t4096\nmap_id:\t4294967294\n",
        );
        put(
            "5",
            "pos:\t0\nmap_type:\t2\nmemlock:\t100\nmap_id:\t4294967293\n",
        );
        put(
            "6",
            "pos:\t0\nprog_type:\t26\nmemlock:\t8192\nprog_id:\t4294967295\n",
        );
        put("7", "pos:\t0\nlink_type:\ttracing\nprog_id:\t4294967295\n");
        put("8", "pos:\t0\nflags:\t02\n");
        let memory = KernelMemory::held_by(directory.path()).expect("they are read");
        let expected = KernelMemory {
            rings: 4096,
            maps: 100,
            programs: 8192,
            program_count: 1,
            ..KernelMemory::default()
        };
        assert_eq!(memory, expected);
    }
}
