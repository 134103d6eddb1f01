//! Counts in the kernel, call by call, of the system calls that a program and its descendants make.

use crate::error::{system, SeccompKernelError};
use bpf::load::{keep_libbpf_quiet, need_btf, refused};
use bpf::shared::{call_key, value_key, LEARN_MISSED_KINDS};
use libbpf_rs::{Link, MapCore, MapFlags, Object, ObjectBuilder};
use std::collections::BTreeMap;
use std::os::fd::{AsFd, AsRawFd};
use zerocopy::{FromBytes, IntoBytes};

/// Counts the calls of one program and of all that it starts. Dropping the counter removes the hooks.
pub struct CallCounter {
    object: Object,
    _links: Vec<Link>,
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
}

impl CallCounter {
    /// Loads the programs; nothing is counted before [`CallCounter::follow`]. `telling` names for
    /// some calls the argument (0 to 3) whose values are counted.
    ///
    /// # Errors
    /// The kernel refuses the programs, or the caller may not load any.
    pub fn start(telling: &[(Call, u32)]) -> Result<CallCounter, SeccompKernelError> {
        need_btf()?;
        keep_libbpf_quiet();
        let open = ObjectBuilder::default()
            .open_memory(bpf::LEARN)
            .map_err(refused("object of BPF programs"))?;
        let object = open.load().map_err(refused("BPF programs"))?;
        let mut links = Vec::new();
        for program in object.progs_mut() {
            let name = program.name().to_string_lossy().into_owned();
            links.push(
                program
                    .attach_trace()
                    .map_err(refused(format!("hook {name}")))?,
            );
        }
        let counter = CallCounter {
            object,
            _links: links,
        };
        let map = counter.map("telling")?;
        for &((arch, nr), argument) in telling {
            let key = call_key { arch, nr };
            map.update(key.as_bytes(), argument.as_bytes(), MapFlags::ANY)
                .map_err(refused("map of telling arguments"))?;
        }
        Ok(counter)
    }

    /// Counts what the task of `process` (a pidfd) does from now on, and what it starts.
    ///
    /// # Errors
    /// The task has ended.
    pub fn follow(&self, process: impl AsFd) -> Result<(), SeccompKernelError> {
        let fd = process.as_fd().as_raw_fd();
        self.map("recorded")?
            .update(fd.as_bytes(), &[1], MapFlags::ANY)
            .map_err(refused("mark on the task"))?;
        Ok(())
    }

    /// Counts so far.
    ///
    /// # Errors
    /// A map cannot be read.
    pub fn counts(&self) -> Result<CallCounts, SeccompKernelError> {
        let mut counts = CallCounts::default();
        for (call_key { arch, nr }, count) in self.entries("counts")? {
            counts.calls.insert((arch, nr), count);
        }
        for (value_key { call, value }, count) in self.entries("values")? {
            let values = counts.values.entry((call.arch, call.nr)).or_default();
            values.insert(value, count);
        }
        let missed = self
            .object
            .maps()
            .find(|map| map.name().to_string_lossy().ends_with(".bss"));
        let missed = missed.ok_or_else(|| missing("missed"))?;
        let bytes = missed
            .lookup(0u32.as_bytes(), MapFlags::ANY)
            .map_err(refused("counters of the programs"))?;
        let missed = bytes.and_then(|bytes| FromBytes::read_from_bytes(&bytes).ok());
        counts.missed = missed.unwrap_or_default();
        Ok(counts)
    }

    fn map(&self, name: &str) -> Result<libbpf_rs::Map<'_>, SeccompKernelError> {
        let found = self.object.maps().find(|map| map.name() == name);
        found.ok_or_else(|| missing(name))
    }

    fn entries<K: FromBytes>(&self, name: &str) -> Result<Vec<(K, u64)>, SeccompKernelError> {
        let map = self.map(name)?;
        let mut entries = Vec::new();
        for bytes in map.keys() {
            let key = K::read_from_bytes(&bytes).map_err(|_| missing(name))?;
            let value = map
                .lookup(&bytes, MapFlags::ANY)
                .map_err(refused(format!("map {name}")))?;
            let count = value.and_then(|value| u64::read_from_bytes(&value).ok());
            entries.push((key, count.unwrap_or_default()));
        }
        Ok(entries)
    }
}

fn missing(name: &str) -> SeccompKernelError {
    system(format!("the object of BPF programs has no {name}"))(rustix::io::Errno::NOENT)
}
