//! `tarsier status --memory`: memory of the daemon, its helpers and its BPF programs, as the kernel accounts for it.

use crate::kernel_memory::{fields, mb, KernelMemory};
use anyhow::{Context, Result};
use serde::Serialize;
use std::fs;
use std::io::{self, Write};
use std::path::Path;

/// Memory in bytes.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Memory {
    #[serde(flatten)]
    kernel: KernelMemory,
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
            kernel: KernelMemory::held_by(&process.join("fdinfo"))?,
            ..Memory::default()
        };

        for helper in children(pid)? {
            // One that has just ended takes nothing.
            memory.helpers += anonymous(&helper).unwrap_or_default();
            memory.helper_count += 1;
        }

        Ok(memory)
    }

    /// Memory that the kernel and processes take together.
    fn total(&self) -> u64 {
        self.kernel.total() + self.daemon + self.helpers
    }

    /// Prints the account for people.
    pub(super) fn print(&self, out: &mut impl Write) -> io::Result<()> {
        writeln!(out, "memory              {}", mb(self.total()))?;
        self.kernel.print(out)?;
        writeln!(out, "  daemon            {}", mb(self.daemon))?;
        let helpers = self.helper_count;
        writeln!(
            out,
            "  helpers           {} in {helpers} processes",
            mb(self.helpers)
        )?;
        self.kernel.print_growth(out)
    }
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
    fn anonymous_pages_are_those_of_the_process() {
        let big = vec![1u8; 8 << 20];
        let bytes = anonymous(Path::new("/proc/self")).expect("it is read");
        assert!(bytes >= big.len() as u64, "{bytes}");
    }
}
