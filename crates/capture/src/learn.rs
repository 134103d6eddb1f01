//! Which system calls a program and its descendants make, counted in the kernel.

use crate::error::{refused, system, CaptureError};
use libbpf_rs::{Link, MapCore, MapFlags, Object, ObjectBuilder};
use std::collections::BTreeMap;
use std::os::fd::{AsFd, AsRawFd};

/// Counts calls of one program and all that it starts. Dropping it takes the hooks away.
pub struct CallCounter {
    object: Object,
    _links: Vec<Link>,
}

/// A call: `AUDIT_ARCH_*` and number.
pub type Call = (u32, u32);

/// What was counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallCounts {
    /// How often each call was made.
    pub calls: BTreeMap<Call, u64>,
    /// How often the telling argument of a call had each value.
    pub values: BTreeMap<Call, BTreeMap<u64, u64>>,
    /// Calls, values and tasks for which the maps had no room: what they did is missing.
    pub missed: [u64; 3],
}

impl CallCounter {
    /// Loads the programs; nothing is counted before [`CallCounter::follow`]. `telling` says which
    /// argument (0 to 3) of a call has its values counted.
    ///
    /// # Errors
    /// The kernel refuses the programs, or the caller may not load any.
    pub fn start(telling: &[(Call, u32)]) -> Result<CallCounter, CaptureError> {
        if !std::path::Path::new("/sys/kernel/btf/vmlinux").exists() {
            return Err(CaptureError::NoBtf);
        }
        crate::error::keep_libbpf_quiet();
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
        for &(call, argument) in telling {
            map.update(&call_key(call), &argument.to_ne_bytes(), MapFlags::ANY)
                .map_err(refused("map of telling arguments"))?;
        }
        Ok(counter)
    }

    /// Counts what the task of `process` (a pidfd) does from now on, and what it starts.
    ///
    /// # Errors
    /// The task has ended.
    pub fn follow(&self, process: impl AsFd) -> Result<(), CaptureError> {
        let fd = process.as_fd().as_raw_fd();
        self.map("recorded")?
            .update(&fd.to_ne_bytes(), &[1], MapFlags::ANY)
            .map_err(refused("mark on the task"))
    }

    /// What was counted so far.
    ///
    /// # Errors
    /// A map cannot be read.
    pub fn counts(&self) -> Result<CallCounts, CaptureError> {
        let mut counts = CallCounts::default();
        for (key, count) in self.entries("counts")? {
            let (call, _) = split_call(&key);
            counts.calls.insert(call, count);
        }
        for (key, count) in self.entries("values")? {
            let (call, value) = split_call(&key);
            let value = value.try_into().map(u64::from_ne_bytes).unwrap_or_default();
            counts.values.entry(call).or_default().insert(value, count);
        }
        let missed = self
            .object
            .maps()
            .find(|map| map.name().to_string_lossy().ends_with(".bss"));
        let missed = missed.ok_or_else(|| missing("missed"))?;
        let bytes = missed
            .lookup(&0u32.to_ne_bytes(), MapFlags::ANY)
            .map_err(refused("counters of the programs"))?;
        for (count, bytes) in counts
            .missed
            .iter_mut()
            .zip(bytes.unwrap_or_default().chunks(8))
        {
            *count = bytes.try_into().map(u64::from_ne_bytes).unwrap_or_default();
        }
        Ok(counts)
    }

    fn map(&self, name: &str) -> Result<libbpf_rs::Map<'_>, CaptureError> {
        let found = self.object.maps().find(|map| map.name() == name);
        found.ok_or_else(|| missing(name))
    }

    fn entries(&self, name: &str) -> Result<Vec<(Vec<u8>, u64)>, CaptureError> {
        let map = self.map(name)?;
        let mut entries = Vec::new();
        for key in map.keys() {
            let value = map
                .lookup(&key, MapFlags::ANY)
                .map_err(refused(format!("map {name}")))?;
            let count = value.and_then(|value| value.as_slice().try_into().ok());
            entries.push((key, count.map(u64::from_ne_bytes).unwrap_or_default()));
        }
        Ok(entries)
    }
}

fn missing(name: &str) -> CaptureError {
    system(format!("the object of BPF programs has no {name}"))(rustix::io::Errno::NOENT)
}

/// `struct call_key` of bpf/learn.bpf.c.
fn call_key((arch, nr): Call) -> [u8; 8] {
    let mut key = [0; 8];
    key[..4].copy_from_slice(&arch.to_ne_bytes());
    key[4..].copy_from_slice(&nr.to_ne_bytes());
    key
}

fn split_call(key: &[u8]) -> (Call, &[u8]) {
    let word = |bytes: Option<&[u8]>| {
        bytes
            .and_then(|bytes| bytes.try_into().ok())
            .map(u32::from_ne_bytes)
            .unwrap_or_default()
    };
    (
        (word(key.get(..4)), word(key.get(4..8))),
        key.get(8..).unwrap_or_default(),
    )
}
