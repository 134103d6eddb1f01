//! Whether the programs still read what the daemon has told them. Who may use bpf(2) can change maps of others; such a
//! change is undone, and reported.

use super::map_access::MapAccess;
use super::programs::Programs;
use super::trampoline::new_fd;
use super::{EbpfEngine, Hooks};
use crate::error::CaptureError;
use bpf::load::refused;
use libbpf_rs::libbpf_sys::{bpf_map_get_fd_by_id, bpf_prog_get_fd_by_id};
use libbpf_rs::{MapCore, MapHandle, MapType};
use std::collections::BTreeMap;
use std::os::fd::{AsRawFd, OwnedFd};

/// The map whose slot is the match table in force.
const TABLES: &str = "tables";
/// Maps that only the daemon writes, and only while it replaces rules.
const MAPS: [&str; 6] = [
    TABLES,
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

/// [`MAPS`], with their values after the last replacement of the rules.
pub(super) struct Told(Vec<ToldMap>);

struct ToldMap {
    map: MapHandle,
    name: &'static str,
    /// By slot.
    values: Vec<Value>,
}

struct Value {
    /// As the kernel returns it: of a map or program, the id.
    told: Option<Vec<u8>>,
    /// Keeps the table, which nothing else holds if it is replaced.
    table: Option<OwnedFd>,
}

impl Told {
    /// Finds the maps. Nothing is known of them before [`Told::note`].
    pub(super) fn new(programs: &Programs) -> Result<Told, CaptureError> {
        let map = |name| {
            let map = programs.map(name)?;
            Ok(ToldMap {
                map: MapHandle::try_from(&map).map_err(refused(format!("map {name}")))?,
                name,
                values: Vec::new(),
            })
        };
        MAPS.into_iter()
            .map(map)
            .collect::<Result<_, _>>()
            .map(Told)
    }

    /// Takes what the maps contain for what they have to contain.
    pub(super) fn note(&mut self) {
        for known in &mut self.0 {
            let (map, name) = (&known.map, known.name);
            let value = |slot| {
                let told = lookup(map, slot);
                let id = told.as_deref().filter(|_| name == TABLES);
                Value {
                    table: id.and_then(|id| object(map, id)),
                    told,
                }
            };
            known.values = (0..map.max_entries()).map(value).collect();
        }
    }

    /// Restores what differs.
    fn restore(&self) -> BTreeMap<&'static str, bool> {
        let mut changed = BTreeMap::new();
        for ToldMap { map, name, values } in &self.0 {
            for (slot, value) in (0..).zip(values) {
                if lookup(map, slot) != value.told {
                    *changed.entry(*name).or_insert(true) &= value.restore(map, slot);
                }
            }
        }
        changed
    }
}

impl Value {
    /// Writes the value again. Returns whether the map has it now.
    fn restore(&self, map: &MapHandle, slot: u32) -> bool {
        let key = slot.to_ne_bytes();
        let found = self.told.as_deref().filter(|_| self.table.is_none());
        let found = found.and_then(|id| object(map, id));
        let fd = self.table.as_ref().or(found.as_ref());
        let fd = fd.map(|fd| fd.as_raw_fd().to_ne_bytes());
        let written = match (&self.told, &fd) {
            (Some(_), Some(fd)) => map.put(&key, fd),
            (Some(value), None) => map.put(&key, value),
            (None, _) => map.remove(&key),
        };
        written.is_ok() && lookup(map, slot) == self.told
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

impl EbpfEngine {
    /// Compares the numbers of events counted and taken; only if all that were counted before have been taken.
    pub(super) fn check_sums(&mut self) -> Option<Breach> {
        let counted = self.cpu_states.read().events;
        if !self.stream.is_empty() || self.cpu_states.read().events != counted {
            return None;
        }
        let more = self.sums.compare(counted)?;
        Some(Breach {
            what: format!("number of events ({more:+} counted beside those in rings)"),
            is_mended: false,
        })
    }
}

fn is_ftrace_off() -> bool {
    std::fs::read_to_string(FTRACE_ENABLED).is_ok_and(|text| text.trim() == "0")
}

/// The value; `None` if there is none, or none can be read.
fn lookup(map: &MapHandle, slot: u32) -> Option<Vec<u8>> {
    map.get(&slot.to_ne_bytes()).ok().flatten()
}

/// The map or program with this id, if `map` is one of such.
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
