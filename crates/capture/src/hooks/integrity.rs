//! Whether the programs still read what the daemon has told them. Who may use bpf(2) can change maps of others; such a
//! change is undone, and reported.

use super::programs::Programs;
use super::trampoline::new_fd;
use super::Hooks;
use crate::error::CaptureError;
use bpf::load::refused;
use libbpf_rs::libbpf_sys::{bpf_map_get_fd_by_id, bpf_prog_get_fd_by_id};
use libbpf_rs::{MapCore, MapFlags, MapHandle, MapType};
use std::collections::BTreeMap;
use std::os::fd::{AsRawFd, OwnedFd};

/// Maps that only the daemon writes, and only while it replaces rules.
const MAPS: [&str; 6] = [
    "tables",
    "rings",
    "bodies",
    "other_bodies",
    "object_calls",
    ".bss.uring",
];
/// Whether the kernel calls what was attached by ftrace, among it the probes (Documentation/trace/ftrace.rst).
const FTRACE_ENABLED: &str = "/proc/sys/kernel/ftrace_enabled";

/// What somebody else has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breach {
    /// The map, or the member of `struct control`, that was changed.
    pub what: String,
    /// Whether it is again as it was.
    pub is_mended: bool,
}

/// The values of [`MAPS`] after the last replacement of the rules.
#[derive(Default)]
pub(super) struct Told(Vec<Value>);

struct Value {
    map: MapHandle,
    name: &'static str,
    slot: u32,
    /// As the kernel returns it: of a map or program, the id.
    value: Option<Vec<u8>>,
    /// The map or program, which stays as long as this.
    object: Option<OwnedFd>,
}

impl Told {
    /// Reads the maps.
    pub(super) fn of(programs: &Programs) -> Result<Told, CaptureError> {
        let mut values = Vec::new();
        for name in MAPS {
            let map = programs.map(name)?;
            for slot in 0..map.max_entries() {
                let map = MapHandle::try_from(&map).map_err(refused(format!("map {name}")))?;
                let value = lookup(&map, slot);
                let object = value.as_deref().and_then(|value| object(&map, value));
                values.push(Value {
                    map,
                    name,
                    slot,
                    value,
                    object,
                });
            }
        }
        Ok(Told(values))
    }

    /// Restores what differs.
    fn restore(&self) -> BTreeMap<&'static str, bool> {
        let mut changed = BTreeMap::new();
        for value in &self.0 {
            if lookup(&value.map, value.slot) != value.value {
                *changed.entry(value.name).or_insert(true) &= value.restore();
            }
        }
        changed
    }
}

impl Value {
    /// Writes the value again. Returns whether the map has it now.
    fn restore(&self) -> bool {
        let slot = self.slot.to_ne_bytes();
        let fd = self.object.as_ref().map(|fd| fd.as_raw_fd().to_ne_bytes());
        let written = match (&self.value, &fd) {
            (Some(_), Some(fd)) => self.map.update(&slot, fd, MapFlags::ANY),
            (Some(value), None) => self.map.update(&slot, value, MapFlags::ANY),
            (None, _) => self.map.delete(&slot),
        };
        written.is_ok() && lookup(&self.map, self.slot) == self.value
    }
}

impl Hooks {
    /// Undoes what somebody else has changed. Returns that, and what was found before the last replacement.
    pub(super) fn check(&mut self) -> Vec<Breach> {
        let mut breaches = std::mem::take(&mut self.breaches);
        breaches.extend(self.restore());
        breaches
    }

    pub(super) fn restore(&mut self) -> Vec<Breach> {
        let breach = |what: String, is_mended| Breach { what, is_mended };
        let control = self.control.restore().into_iter();
        let control = control.map(|member| breach(format!("control.{member}"), true));
        let maps = self.told.restore().into_iter();
        let maps = maps.map(|(name, is_mended)| breach(format!("map {name}"), is_mended));
        let mut breaches: Vec<Breach> = control.chain(maps).collect();
        if self
            .trampolines
            .as_ref()
            .is_some_and(|all| all.restore_gates())
        {
            breaches.push(breach("map gates".to_owned(), true));
        }
        if self.programs.form.probes && is_ftrace_off() {
            let is_mended = std::fs::write(FTRACE_ENABLED, "1").is_ok() && !is_ftrace_off();
            breaches.push(breach(FTRACE_ENABLED.to_owned(), is_mended));
        }
        breaches
    }
}

fn is_ftrace_off() -> bool {
    std::fs::read_to_string(FTRACE_ENABLED).is_ok_and(|text| text.trim() == "0")
}

/// The value; `None` if there is none, or none can be read.
fn lookup(map: &MapHandle, slot: u32) -> Option<Vec<u8>> {
    map.lookup(&slot.to_ne_bytes(), MapFlags::ANY)
        .ok()
        .flatten()
}

/// The map or program with this id, in a map of such.
fn object(map: &MapHandle, id: &[u8]) -> Option<OwnedFd> {
    let id = u32::from_ne_bytes(id.try_into().ok()?);
    let open = match map.map_type() {
        MapType::ArrayOfMaps => bpf_map_get_fd_by_id,
        MapType::ProgArray => bpf_prog_get_fd_by_id,
        _ => return None,
    };
    // SAFETY: both take a number and give a new descriptor or an error.
    new_fd(unsafe { open(id) }).ok()
}
