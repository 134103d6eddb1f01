//! Checks that the programs still read what the daemon has told them. Any process that may use bpf(2) can change the
//! maps of others. Such a change is undone and reported.

use crate::attach::programs::Programs;
use crate::attach::trampoline::Trampolines;
use crate::error::CaptureError;
use crate::shared::control::Control;
use crate::shared::map_access::MapAccess;
use crate::tracing::new_fd;
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
/// Hash tables that only the daemon writes, and only while it replaces rules.
const NAMES: [&str; 2] = ["labellings", "workload_names"];
/// The switch for everything that is attached by ftrace, probes included (Documentation/trace/ftrace.rst).
const FTRACE_ENABLED: &str = "/proc/sys/kernel/ftrace_enabled";

/// A change by another process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breach {
    /// The map, or the member of `struct control`, that was changed.
    pub what: String,
    /// Whether it is again as it was.
    pub is_mended: bool,
}

/// [`MAPS`] and [`NAMES`], with what they have to contain.
pub(crate) struct Integrity {
    maps: Vec<ToldMap>,
    names: Vec<ToldNames>,
    /// Breaches that were found before the last replacement of the rules.
    before: Vec<Breach>,
}

/// Data beside [`MAPS`] that the programs read and this process can restore.
#[derive(Clone, Copy)]
pub(crate) struct Read<'h> {
    pub(crate) control: &'h Control,
    pub(crate) trampolines: Option<&'h Trampolines>,
    /// Whether hooks are probes, which the kernel calls by ftrace.
    pub(crate) probes: bool,
}

struct ToldMap {
    map: MapHandle,
    name: &'static str,
    /// Values, by slot.
    values: Vec<SlotValue>,
}

struct ToldNames {
    map: MapHandle,
    name: &'static str,
    told: BTreeMap<Vec<u8>, Vec<u8>>,
}

struct SlotValue {
    /// The value as the kernel returns it; for a map or program, its id.
    told: Option<Vec<u8>>,
    /// Keeps the table, which nothing else holds if it is replaced.
    table: Option<OwnedFd>,
}

impl Integrity {
    /// Finds the maps. Nothing is known of them before [`Integrity::note`].
    pub(crate) fn new(programs: &Programs) -> Result<Integrity, CaptureError> {
        let handle = |name| -> Result<MapHandle, CaptureError> {
            let map = programs.map(name)?;
            Ok(MapHandle::try_from(&map).map_err(refused(format!("map {name}")))?)
        };

        let map = |name| {
            Ok(ToldMap {
                map: handle(name)?,
                name,
                values: Vec::new(),
            })
        };

        let names = |name| {
            Ok(ToldNames {
                map: handle(name)?,
                name,
                told: BTreeMap::new(),
            })
        };

        let (maps, names) = (MAPS.into_iter().map(map), NAMES.into_iter().map(names));
        Ok(Integrity {
            maps: maps.collect::<Result<_, CaptureError>>()?,
            names: names.collect::<Result<_, CaptureError>>()?,
            before: Vec::new(),
        })
    }

    /// Takes the present contents of the maps as the expected ones.
    pub(crate) fn note(&mut self) {
        for known in &mut self.maps {
            let (map, name) = (&known.map, known.name);
            let value = |slot| {
                let told = lookup(map, slot);
                let mut table = None;
                if name == TABLES {
                    table = told.as_deref().and_then(|id| object(map, id));
                }
                SlotValue { told, table }
            };
            known.values = (0..map.max_entries()).map(value).collect();
        }

        for known in &mut self.names {
            known.told = known.map.contents().unwrap_or_default();
        }
    }

    /// Undoes changes by other processes. Returns them, and those that [`Integrity::mend`] found.
    pub(crate) fn check(&mut self, read: Read<'_>) -> Vec<Breach> {
        self.mend(read);
        std::mem::take(&mut self.before)
    }

    /// Undoes changes by other processes, and keeps them for the next check. Call it before [`Integrity::note`]:
    /// changed values must not count as told.
    pub(crate) fn mend(&mut self, read: Read<'_>) {
        let breach = |what: String, is_mended| Breach { what, is_mended };
        let control = read.control.restore().into_iter();
        let control = control.map(|member| breach(format!("control.{member}"), true));
        self.before.extend(control);

        let maps = self.restore_maps().into_iter();
        let names = self.names.iter();
        let names = names.filter_map(|names| Some((names.name, names.restore()?)));
        let maps = maps
            .chain(names)
            .map(|(name, is_mended)| breach(format!("map {name}"), is_mended));
        self.before.extend(maps);

        if read.trampolines.is_some_and(Trampolines::restore_gates) {
            self.before.push(breach("map gates".to_owned(), true));
        }

        if read.probes && is_ftrace_off() {
            let is_mended = std::fs::write(FTRACE_ENABLED, "1").is_ok() && !is_ftrace_off();
            self.before
                .push(breach(FTRACE_ENABLED.to_owned(), is_mended));
        }
    }

    /// Restores what differs. Returns the maps that did, and whether each of them is again as it was.
    fn restore_maps(&self) -> BTreeMap<&'static str, bool> {
        let mut changed = BTreeMap::new();
        for ToldMap { map, name, values } in &self.maps {
            for (slot, value) in (0..).zip(values) {
                if lookup(map, slot) != value.told {
                    *changed.entry(*name).or_insert(true) &= value.restore(map, slot);
                }
            }
        }
        changed
    }
}

impl ToldNames {
    /// Restores the entries that differ. Returns whether all are again as they were; `None` if none differed. What others
    /// have added is not looked for: it makes classes of cgroups or processes wrong, which the daemon compares.
    fn restore(&self) -> Option<bool> {
        // Where rules ask for none, the programs look for none.
        if self.told.is_empty() {
            return None;
        }
        let map = &self.map;
        let has = map.contents().unwrap_or_default();
        let differs = |(key, value): &(&Vec<u8>, &Vec<u8>)| {
            // An entry may be missing because it could not be read among the others.
            has.get(*key) != Some(*value) && map.get(key).ok().flatten().as_ref() != Some(*value)
        };
        let differing = self.told.iter().filter(differs);
        let put: Vec<bool> = differing
            .map(|(key, value)| map.put(key, value).is_ok())
            .collect();
        (!put.is_empty()).then(|| put.into_iter().all(|is_done| is_done))
    }
}

impl SlotValue {
    /// Writes the value again. Returns whether the map has it now.
    fn restore(&self, map: &MapHandle, slot: u32) -> bool {
        let key = slot.to_ne_bytes();
        let mut opened = None;
        if self.table.is_none() {
            opened = self.told.as_deref().and_then(|id| object(map, id));
        }
        let object = self.table.as_ref().or(opened.as_ref());
        let fd = object.map(|object| object.as_raw_fd().to_ne_bytes());

        let written = match (&self.told, &fd) {
            (Some(_), Some(fd)) => map.put(&key, fd),
            (Some(value), None) => map.put(&key, value),
            (None, _) => map.remove(&key),
        };
        written.is_ok() && lookup(map, slot) == self.told
    }
}

fn is_ftrace_off() -> bool {
    std::fs::read_to_string(FTRACE_ENABLED).is_ok_and(|text| text.trim() == "0")
}

/// The value; `None` if there is none, or none can be read.
fn lookup(map: &MapHandle, slot: u32) -> Option<Vec<u8>> {
    map.get(&slot.to_ne_bytes()).ok().flatten()
}

/// The map or program with this id, if `map` holds maps or programs.
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
