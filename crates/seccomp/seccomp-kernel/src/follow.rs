//! BPF programs that follow tasks (programs/follow.h), and their maps.

use crate::error::{system, SeccompKernelError};
use bpf::load::{keep_libbpf_quiet, need_btf, refused};
use bpf::shared::{follow_state, LEARN_MISSED_KINDS};
use libbpf_rs::{Link, Map, MapCore, MapFlags, Object, ObjectBuilder};
use std::os::fd::{AsFd, AsRawFd};
use zerocopy::{FromBytes, IntoBytes};

/// `MARK_FOLLOWED`, and that the task is in a call, as one that waits for its start is.
const WAITING: u8 = 1 | 4;

/// `MARK_COUNTED`
const COUNTED: u8 = 2;

/// Loaded and attached programs. Dropping this removes the hooks.
pub(crate) struct Follower {
    object: Object,
    _links: Vec<Link>,
}

impl Follower {
    /// Loads an object; `fill` sets its maps before anything is attached.
    pub(crate) fn start(
        object: &[u8],
        fill: impl FnOnce(&Follower) -> Result<(), SeccompKernelError>,
    ) -> Result<Follower, SeccompKernelError> {
        need_btf()?;
        keep_libbpf_quiet();
        let open = ObjectBuilder::default()
            .open_memory(object)
            .map_err(refused("object of BPF programs"))?;
        let object = open.load().map_err(refused("BPF programs"))?;
        let mut follower = Follower {
            object,
            _links: Vec::new(),
        };
        fill(&follower)?;
        let mut links = Vec::new();
        for program in follower.object.progs_mut() {
            let name = program.name().to_string_lossy().into_owned();
            let link = program.attach_trace();
            links.push(link.map_err(refused(format!("hook {name}")))?);
        }

        follower._links = links;
        Ok(follower)
    }

    /// Follows the task of `process` (a pidfd), which waits for its start, and all that it starts.
    /// If it is not `counted`, its calls count after an execve(2) only.
    pub(crate) fn follow(
        &self,
        process: impl AsFd,
        counted: bool,
    ) -> Result<(), SeccompKernelError> {
        let fd = process.as_fd().as_raw_fd();
        let bits = if counted { WAITING | COUNTED } else { WAITING };
        self.map("recorded")?
            .update(fd.as_bytes(), &[bits], MapFlags::ANY)
            .map_err(refused("mark on the task"))
            .map_err(SeccompKernelError::from)?;
        Ok(())
    }

    /// Number of calls, values or denials, and tasks that are missing because maps had no room; and
    /// the number of threads that marks were passed on to, less those that have ended. A task marked
    /// by [`Follower::follow`] counts as ended only.
    pub(crate) fn state(
        &self,
    ) -> Result<([u64; LEARN_MISSED_KINDS as usize], i64), SeccompKernelError> {
        let found = self
            .object
            .maps()
            .find(|map| map.name().to_string_lossy().ends_with(".bss"));
        let found = found.ok_or_else(|| missing("state"))?;
        let bytes = found
            .lookup(0u32.as_bytes(), MapFlags::ANY)
            .map_err(refused("counters of the programs"))?;
        let state = bytes.and_then(|bytes| Some(follow_state::read_from_prefix(&bytes).ok()?.0));
        let state = state.ok_or_else(|| missing("state"))?;
        Ok((state.missed, state.alive))
    }

    pub(crate) fn map(&self, name: &str) -> Result<Map<'_>, SeccompKernelError> {
        let found = self.object.maps().find(|map| map.name() == name);
        found.ok_or_else(|| missing(name))
    }

    /// Sets an entry of a map.
    pub(crate) fn set(
        &self,
        name: &str,
        key: &[u8],
        value: &[u8],
    ) -> Result<(), SeccompKernelError> {
        let updated = self.map(name)?.update(key, value, MapFlags::ANY);
        updated.map_err(refused(format!("map {name}")))?;
        Ok(())
    }

    /// All entries of a map. Those that are added meanwhile may be missing.
    pub(crate) fn entries<K: FromBytes, V: FromBytes>(
        &self,
        name: &str,
    ) -> Result<Vec<(K, V)>, SeccompKernelError> {
        let map = self.map(name)?;
        let mut entries = Vec::new();
        for bytes in map.keys() {
            let key = K::read_from_bytes(&bytes).map_err(|_| missing(name))?;
            let value = map
                .lookup(&bytes, MapFlags::ANY)
                .map_err(refused(format!("map {name}")))?;
            if let Some(value) = value.and_then(|value| V::read_from_bytes(&value).ok()) {
                entries.push((key, value));
            }
        }
        Ok(entries)
    }
}

fn missing(name: &str) -> SeccompKernelError {
    system(format!("the object of BPF programs has no {name}"))(rustix::io::Errno::NOENT)
}
