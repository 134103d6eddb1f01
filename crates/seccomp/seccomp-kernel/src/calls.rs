//! Counts in the kernel, call by call, of the system calls that a program and its descendants make,
//! or the tasks of a cgroup.

use crate::error::SeccompKernelError;
use crate::follow::Follower;
use bpf::shared::{call_key, follow_options, value_key, FOLLOW_PATH_BYTES, LEARN_MISSED_KINDS};
use std::collections::BTreeMap;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use zerocopy::{FromZeros, IntoBytes};

/// Counts calls. Dropping the counter removes the hooks.
pub struct CallCounter {
    follower: Follower,
    scope: Scope,
}

/// Whose calls are counted, besides those of programs that [`CallCounter::follow`] names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    /// Path of a cgroup below the root of the version-2 hierarchy, such as
    /// `/system.slice/nginx.service`: of every cgroup of this path that exists or is made later.
    pub cgroup: Option<String>,
    /// Processes, with all their threads.
    pub processes: Vec<u32>,
    /// Whether a task's calls count only from the execve(2) on that it makes in a mount namespace
    /// other than ours, as the programs of containers do and their runtimes do not. Of `processes`
    /// all calls count.
    pub inner_only: bool,
}

/// A call: `AUDIT_ARCH_*` and number.
pub type Call = (u32, u32);

/// Counts of calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallCounts {
    /// Number of times that each call was made.
    pub calls: BTreeMap<Call, u64>,
    /// Number of times that the telling argument of a call had each value.
    pub values: BTreeMap<Call, BTreeMap<u64, u64>>,
    /// Number of calls, values and tasks that are missing because the maps had no room.
    pub missed: [u64; LEARN_MISSED_KINDS as usize],
    /// Threads that are followed now; approximate.
    pub threads: i64,
}

impl CallCounter {
    /// Loads the programs. `telling` names for some calls the argument (0 to 3) whose values are
    /// counted.
    ///
    /// # Errors
    /// The kernel refuses the programs, or the caller may not load any.
    pub fn start(telling: &[(Call, u32)], scope: Scope) -> Result<CallCounter, SeccompKernelError> {
        let follower = Follower::start(bpf::LEARN, |follower| {
            for &((arch, nr), argument) in telling {
                let key = call_key { arch, nr };
                follower.set("telling", key.as_bytes(), argument.as_bytes())?;
            }
            set_scope(follower, &scope)
        })?;
        Ok(CallCounter { follower, scope })
    }

    /// Counts what the task of `process` (a pidfd), which waits for its start, does from now on, and
    /// what it starts.
    ///
    /// # Errors
    /// The task has ended.
    pub fn follow(&self, process: impl AsFd) -> Result<(), SeccompKernelError> {
        self.follower.follow(process, !self.scope.inner_only)
    }

    /// Counts so far.
    ///
    /// # Errors
    /// A map cannot be read.
    pub fn counts(&self) -> Result<CallCounts, SeccompKernelError> {
        let mut counts = CallCounts::default();
        for (call_key { arch, nr }, count) in self.follower.entries("counts")? {
            counts.calls.insert((arch, nr), count);
        }
        for (value_key { call, value }, count) in self.follower.entries("values")? {
            let values = counts.values.entry((call.arch, call.nr)).or_default();
            values.insert(value, count);
        }
        (counts.missed, counts.threads) = self.follower.state()?;
        Ok(counts)
    }

    /// Number of threads that are followed now; `followed` is the number of programs that
    /// [`CallCounter::follow`] has named.
    ///
    /// # Errors
    /// A map cannot be read.
    pub fn threads(&self, followed: i64) -> Result<i64, SeccompKernelError> {
        Ok(self.follower.state()?.1 + followed)
    }
}

fn set_scope(follower: &Follower, scope: &Scope) -> Result<(), SeccompKernelError> {
    // MARK_FOLLOWED and MARK_COUNTED.
    const COUNTED: u8 = 1 | 2;

    for process in &scope.processes {
        follower.set("processes", process.as_bytes(), &[COUNTED])?;
    }

    let mut options = follow_options::new_zeroed();
    if scope.inner_only {
        let own = std::fs::metadata("/proc/self/ns/mnt");
        options.outer_mount_ns = own.map_or(0, |own| own.ino() as u32);
    }

    if let Some(path) = &scope.cgroup {
        let path = path.trim_end_matches('/');
        if path.len() >= FOLLOW_PATH_BYTES as usize {
            return Err(SeccompKernelError::LongCgroup { path: path.into() });
        }
        options.cgroup_level = path.split('/').filter(|part| !part.is_empty()).count() as u32;
        for (to, from) in options.cgroup_path.iter_mut().zip(path.bytes()) {
            *to = from as _;
        }
        let directory = cgroup_root().map(|root| root + path);
        if let Some(Ok(found)) = directory.map(|directory| std::fs::metadata(Path::new(&directory)))
        {
            follower.set("cgroups", found.ino().as_bytes(), &[1])?;
        }
    }

    follower.set("options", 0u32.as_bytes(), options.as_bytes())
}

/// Where the version-2 hierarchy is mounted (proc_pid_mountinfo(5)).
pub fn cgroup_root() -> Option<String> {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
    let of_cgroups = |line: &&str| line.contains(" - cgroup2 ");
    let line = mounts.lines().find(of_cgroups)?;
    line.split(' ').nth(4).map(str::to_owned)
}
