//! `tarsier status --memory`: memory of the daemon, its helpers and its BPF programs, as the kernel accounts for it.

use anyhow::{Context, Result};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::path::Path;

/// BPF_MAP_TYPE_RINGBUF (linux/bpf.h).
const RING: u64 = 27;

/// Memory in bytes.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Memory {
    /// Rings through which events come.
    rings: u64,
    /// All other maps of the programs: match tables, counters, notes about calls in progress.
    maps: u64,
    /// BPF programs, their machine code, and their type information.
    programs: u64,
    /// Number of programs.
    program_count: usize,
    /// Anonymous pages of the daemon. Those of the program file are shared, and can be dropped.
    daemon: u64,
    /// Anonymous pages of the processes that the daemon has started.
    helpers: u64,
    /// Number of these processes.
    helper_count: usize,
}

impl Memory {
    /// Memory of the daemon with this process id.
    ///
    /// # Errors
    /// The process is gone, or its files below /proc cannot be read.
    pub(super) fn of(pid: u32) -> Result<Memory> {
        let process = Path::new("/proc").join(pid.to_string());
        let mut memory = Memory {
            daemon: anonymous(&process).with_context(|| process.display().to_string())?,
            ..Memory::default()
        };
        memory.add_objects(&process.join("fdinfo"))?;
        for helper in children(pid)? {
            // One that has just ended takes nothing.
            memory.helpers += anonymous(&helper).unwrap_or_default();
            memory.helper_count += 1;
        }
        Ok(memory)
    }

    /// Adds maps and programs by the descriptors that the daemon has of them.
    fn add_objects(&mut self, descriptors: &Path) -> Result<()> {
        let place = || descriptors.display().to_string();
        let mut found = Objects::default();
        for entry in fs::read_dir(descriptors).with_context(place)? {
            // A descriptor may have been closed since.
            let text = fs::read_to_string(entry.with_context(place)?.path()).unwrap_or_default();
            found.add(&text);
        }
        let outer: Vec<u32> = found.maps.keys().copied().collect();
        for inner in outer.into_iter().flat_map(capture::inner_maps) {
            let path = format!("/proc/self/fdinfo/{}", inner.as_raw_fd());
            found.add(&fs::read_to_string(&path).with_context(|| path.clone())?);
        }
        for map in found.maps.into_values() {
            *match map.is_ring {
                true => &mut self.rings,
                false => &mut self.maps,
            } += map.bytes;
        }
        self.program_count = found.programs.len();
        let sizes = capture::program_sizes(&found.programs.keys().copied().collect());
        let code: u64 = sizes.code.values().sum();
        self.programs = found.programs.values().sum::<u64>() + code + sizes.types;
        Ok(())
    }

    /// Memory that the kernel and processes take together.
    fn total(&self) -> u64 {
        self.rings + self.maps + self.programs + self.daemon + self.helpers
    }

    /// Prints the account for people.
    pub(super) fn print(&self, out: &mut impl Write) -> io::Result<()> {
        writeln!(out, "memory              {}", mb(self.total()))?;
        writeln!(out, "  rings             {}", mb(self.rings))?;
        writeln!(out, "  other maps        {}", mb(self.maps))?;
        let (programs, helpers) = (self.program_count, self.helper_count);
        writeln!(
            out,
            "  BPF programs      {} in {programs}",
            mb(self.programs)
        )?;
        writeln!(out, "  daemon            {}", mb(self.daemon))?;
        writeln!(
            out,
            "  helpers           {} in {helpers} processes",
            mb(self.helpers)
        )
    }
}

/// An amount for people.
fn mb(bytes: u64) -> String {
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
    is_ring: bool,
    bytes: u64,
}

impl Objects {
    /// Adds the map or program of a descriptor, by its file in fdinfo (proc_pid_fdinfo(5)).
    fn add(&mut self, text: &str) {
        let fields = fields(text);
        let number = |name: &str| -> Option<u64> { fields.get(name)?.parse().ok() };
        let id = |name: &str| -> Option<u32> { fields.get(name)?.parse().ok() };
        // Links have the id of a program, and take next to nothing.
        let Some(bytes) = number("memlock") else {
            return;
        };
        if let Some(id) = id("map_id") {
            let is_ring = number("map_type") == Some(RING);
            self.maps.insert(id, Map { is_ring, bytes });
        } else if let Some(id) = id("prog_id") {
            self.programs.insert(id, bytes);
        }
    }
}

/// Fields of a file below /proc, `NAME:` and the value in each line.
fn fields(text: &str) -> BTreeMap<&str, &str> {
    let pairs = text.lines().filter_map(|line| line.split_once(':'));
    pairs.map(|(name, value)| (name, value.trim())).collect()
}

/// Bytes of a process's anonymous pages (proc_pid_smaps(5)).
fn anonymous(process: &Path) -> io::Result<u64> {
    let text = fs::read_to_string(process.join("smaps_rollup"))?;
    let fields = fields(&text);
    let kib = fields
        .get("Anonymous")
        .and_then(|value| value.strip_suffix(" kB"));
    Ok(kib
        .and_then(|kib| kib.trim().parse::<u64>().ok())
        .unwrap_or_default()
        * 1024)
}

/// Directories below /proc of the processes that this one has started.
fn children(pid: u32) -> io::Result<Vec<std::path::PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let path = entry?.path();
        let text = fs::read_to_string(path.join("status")).unwrap_or_default();
        if fields(&text).get("PPid") == Some(&pid.to_string().as_str()) {
            found.push(path);
        }
    }
    Ok(found)
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
        let mut memory = Memory::default();
        memory.add_objects(directory.path()).expect("they are read");
        let expected = Memory {
            rings: 4096,
            maps: 100,
            programs: 8192,
            program_count: 1,
            ..Memory::default()
        };
        assert_eq!(memory, expected);
    }

    #[test]
    fn anonymous_pages_are_those_of_the_process() {
        let big = vec![1u8; 8 << 20];
        let bytes = anonymous(Path::new("/proc/self")).expect("it is read");
        assert!(bytes >= big.len() as u64, "{bytes}");
    }
}
