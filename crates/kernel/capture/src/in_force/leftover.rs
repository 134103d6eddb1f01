//! The capture that an earlier daemon left running: the next one takes it over, or reads and replaces it.

use crate::error::{system, CaptureError};
use crate::load::map_options::map_options;
use crate::pins::{Handover, Pins};
use crate::rings::Ring;
use crate::rings::RingStream;
use crate::shared::counters::{self, Counters};
use crate::shared::map_access::MapAccess;
use bpf::load::refused;
use bpf::shared::control;
use libbpf_rs::{MapCore, MapHandle, Object, OpenObject};
use plan::Form;
use std::ffi::OsStr;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;

/// Prefix of the pin names of maps.
const MAP: &str = "map-";
/// Prefix of the pin names of rule sets.
const RULES: &str = "rules-";
/// Number of rule sets whose events may still be in the rings.
const RULE_SETS_KEPT: usize = 8;

/// Key of the first element of an array.
const FIRST: [u8; 4] = [0; 4];

/// Hash of these programs, and the version of their events. Programs with the same layout can take over from each
/// other.
pub(crate) fn layout(cpus: usize, form: Form) -> ([u64; 4], u64) {
    let mut hash = blake3::Hasher::new();
    hash.update(&bpf::tarsier());
    hash.update(&(cpus as u64).to_ne_bytes());
    hash.update(&[form.trampoline, form.probes, form.copies].map(u8::from));
    let bytes = hash.finalize();

    let mut words = [0; 4];
    for (word, bytes) in words.iter_mut().zip(bytes.as_bytes().chunks_exact(8)) {
        *word = bytes
            .iter()
            .fold(0, |word: u64, byte| word << 8 | u64::from(*byte));
    }
    (words, record::wire::TARSIER_WIRE_VERSION.into())
}

/// Name of a map's pin. libbpf puts a varying prefix before the names of sections, which is removed here.
fn pin_of(map: &OsStr) -> String {
    let name = map.to_string_lossy();
    let section = name.find('.').unwrap_or(0);
    format!("{MAP}{}", &name[section..])
}

/// The page of an earlier daemon whose programs are the same; `None` if nothing is pinned.
pub(crate) fn find_like(
    pins: &Pins,
    layout: ([u64; 4], u64),
) -> Result<Option<Handover>, CaptureError> {
    match Handover::find(pins)? {
        Some(other) if other.layout() != layout => Err(CaptureError::PinDir {
            dir: pins.dir().to_owned(),
            fault: "it holds a capture with other programs".to_owned(),
            remedy: "remove it with `tarsier stop --disarm`",
        }),
        found => Ok(found),
    }
}

/// Makes `open` use the maps of an earlier daemon instead of new ones.
pub(crate) fn take_maps(open: &mut OpenObject, pins: &Pins) -> Result<(), CaptureError> {
    for mut map in open.maps_mut() {
        let name = pin_of(map.name());
        let pinned = pins.get(&name)?;
        let pinned = pinned.ok_or_else(|| crate::error::missing(&format!("pinned {name}")))?;
        map.reuse_fd(pinned.as_fd())
            .map_err(refused(format!("pinned {name}")))?;
    }
    Ok(())
}

/// The rings of an earlier daemon, by CPU.
pub(crate) fn rings(pins: &Pins) -> Result<Vec<Ring>, CaptureError> {
    let rings = find_map(pins, "rings")?.ok_or_else(|| crate::error::missing("pinned rings"))?;
    (0..rings.max_entries())
        .map(|cpu| {
            let id = rings
                .get(&cpu.to_ne_bytes())
                .map_err(refused("pinned rings"))?;
            let id = id.and_then(|id| id.try_into().ok().map(u32::from_ne_bytes));
            let id = id.ok_or_else(|| crate::error::missing("pinned ring"))?;
            let ring = MapHandle::from_map_id(id).map_err(refused("pinned ring"))?;
            Ring::map(&ring, ring.max_entries() as usize).map_err(system("mmap of a pinned ring"))
        })
        .collect()
}

fn find_map(pins: &Pins, name: &str) -> Result<Option<MapHandle>, CaptureError> {
    pins.get_map(&format!("{MAP}{name}"))
}

/// Pins everything of a capture except links, unless `left`, whose maps it uses, is pinned already. The page, which makes
/// the capture complete, is pinned last.
pub(crate) fn keep(
    pins: &Pins,
    left: Option<Handover>,
    object: &Object,
    layout: ([u64; 4], u64),
) -> Result<Handover, CaptureError> {
    if let Some(left) = left {
        return Ok(left);
    }
    pins.leave(false);
    for map in object.maps() {
        pins.pin(map.as_fd(), &pin_of(map.name()))?;
    }
    let muted_at = std::mem::offset_of!(control, muted) as u64;
    let handover = Handover::create(layout.0, layout.1, muted_at)?;
    handover.pin(pins)?;
    Ok(handover)
}

/// An earlier daemon's capture, which still runs.
pub struct Leftover {
    pins: Arc<Pins>,
    handover: Arc<Handover>,
    stream: RingStream,
}

impl Leftover {
    /// Finds the capture pinned in `pins`. `None` if nothing is pinned, or if the capture is incomplete, which
    /// removes it.
    ///
    /// # Errors
    /// The kernel does not return the pinned objects.
    pub fn find(pins: &Arc<Pins>) -> Result<Option<Leftover>, CaptureError> {
        let handover = Handover::find(pins)?;
        let rings = handover.as_ref().map(|_| rings(pins)).transpose()?;
        match handover.zip(rings) {
            Some((handover, rings)) => Ok(Some(Leftover {
                pins: pins.clone(),
                handover: Arc::new(handover),
                stream: RingStream::new(rings),
            })),
            None => {
                pins.clear();
                Ok(None)
            }
        }
    }

    /// Whether [`crate::in_force::engine::EbpfEngine::start_pinned`] will take the capture over, for plans of this form.
    pub fn can_be_taken_over(&self, form: Form) -> bool {
        let cpus = libbpf_rs::num_possible_cpus().unwrap_or(0);
        self.handover.layout() == layout(cpus, form)
    }

    /// Whether the events in its rings can be decoded.
    pub fn is_readable(&self) -> bool {
        self.handover.layout().1 == u64::from(record::wire::TARSIER_WIRE_VERSION)
    }

    /// Moves it to another directory: see [`Pins::move_to`].
    ///
    /// # Errors
    /// The file system refuses it.
    pub fn move_to(&self, dir: &std::path::Path) -> Result<(), CaptureError> {
        self.pins.move_to(dir)
    }

    /// The pins that hold this capture.
    pub fn pins(&self) -> &Arc<Pins> {
        &self.pins
    }

    /// The directory where it is pinned.
    pub fn dir(&self) -> &std::path::Path {
        self.pins.dir()
    }

    /// The page of the earlier daemon.
    pub fn handover(&self) -> &Arc<Handover> {
        &self.handover
    }

    /// Skips the events that are in the log. Call this once, after [`Handover::unfinished_write`] has been
    /// handled. Returns the number of events that were read but are in neither the log nor the rings.
    pub fn settle(&mut self) -> u64 {
        let stream = &mut self.stream;
        self.handover
            .settle(|cpu, position| stream.skip_to(cpu, position));
        let (_, held) = self.handover.last_seen();
        self.handover.begin_anew() + held
    }

    /// Counters of its programs; zero if their format is unknown.
    pub fn counters(&self) -> Counters {
        if !self.is_readable() {
            return Counters::default();
        }
        let map = find_map(&self.pins, "cpu_states").ok().flatten();
        let read = map.and_then(|map| counters::read_left(&map).ok());
        read.unwrap_or_default()
    }

    /// The rule sets that its events may come from, newest first: number, and the text given to
    /// [`Leftover::remember`].
    pub fn rule_sets(&self) -> Vec<(u64, Vec<u8>)> {
        let mut sets: Vec<(u64, Vec<u8>)> = numbers(&self.pins)
            .into_iter()
            .filter_map(|number| {
                let map = self.pins.get_map(&format!("{RULES}{number}")).ok()??;
                let text = map.get(&0u32.to_ne_bytes()).ok()??;
                Some((number, text))
            })
            .collect();
        sets.reverse();
        sets
    }

    /// Pins a rule set before its first event can come, and unpins the oldest ones.
    pub fn remember(pins: &Pins, number: u64, text: &[u8]) -> Result<(), CaptureError> {
        let map = MapHandle::create(
            libbpf_rs::MapType::Array,
            Some("tarsier_rules"),
            4,
            text.len().max(1) as u32,
            1,
            &map_options(0),
        )
        .map_err(refused("map of rules"))?;
        if !text.is_empty() {
            map.put(&0u32.to_ne_bytes(), text)
                .map_err(refused("map of rules"))?;
        }
        pins.pin(map.as_fd(), &format!("{RULES}{number}"))?;
        let numbers = numbers(pins);
        for old in numbers.iter().rev().skip(RULE_SETS_KEPT) {
            pins.unpin(&format!("{RULES}{old}"));
        }
        Ok(())
    }

    /// Removes its hooks, and waits until they are gone.
    pub fn unhook(&mut self) {
        self.pins.unhook_but(&[]);
        self.pins.wait_for_end_of("");
    }

    /// Whether its programs record nothing any more, because another capture does.
    pub fn is_muted(&self) -> bool {
        let at = self.handover.muted_at() as usize;
        let word = self.data().ok().flatten();
        let word = word.and_then(|(_, data)| data.get(at..at + 4).map(<[u8]>::to_vec));
        word.is_some_and(|word| word.iter().any(|byte| *byte != 0))
    }

    /// Makes its programs record nothing any more, and waits for those under way: all that they record is in the
    /// rings then.
    ///
    /// # Errors
    /// The kernel refuses it, or the programs have no such switch.
    pub fn mute(&self) -> Result<(), CaptureError> {
        let at = self.handover.muted_at() as usize;
        let (map, mut data) = self
            .data()?
            .ok_or_else(|| crate::error::missing("pinned .bss"))?;
        let word = data.get_mut(at..at + 4);
        let word = word.ok_or_else(|| crate::error::missing("switch of pinned programs"))?;
        word.copy_from_slice(&1u32.to_ne_bytes());
        // Nobody else writes: the programs do not, and their daemon is gone.
        map.put(&FIRST, &data).map_err(refused("pinned .bss"))?;
        self.await_programs()
    }

    /// The zero-initialised data of its programs.
    fn data(&self) -> Result<Option<(MapHandle, Vec<u8>)>, CaptureError> {
        let Some(map) = find_map(&self.pins, ".bss")? else {
            return Ok(None);
        };
        let data = map.get(&FIRST).map_err(refused("pinned .bss"))?;
        Ok(data.map(|data| (map, data)))
    }

    /// Waits for all programs under way, as the kernel does after a change of a map of maps
    /// (maybe_wait_bpf_programs(), kernel/bpf/syscall.c). The table is replaced with itself.
    fn await_programs(&self) -> Result<(), CaptureError> {
        let what = || refused("pinned tables");
        let tables = find_map(&self.pins, "tables")?;
        let tables = tables.ok_or_else(|| crate::error::missing("pinned tables"))?;
        let id = tables.get(&FIRST).map_err(what())?;
        let id = id.and_then(|id| id.try_into().ok().map(u32::from_ne_bytes));
        let id = id.ok_or_else(|| crate::error::missing("pinned table"))?;
        let table = MapHandle::from_map_id(id).map_err(what())?;
        let fd = table.as_fd().as_raw_fd() as u32;
        tables.put(&FIRST, &fd.to_ne_bytes()).map_err(what())?;
        Ok(())
    }

    /// The capture's rings.
    pub fn stream(&mut self) -> &mut RingStream {
        &mut self.stream
    }

    /// Removes the capture, and its directory unless that is used again. Returns whether nothing is left.
    pub fn remove(self, keeps_directory: bool) -> bool {
        self.pins.clear();
        keeps_directory || self.pins.remove()
    }
}

/// Numbers of the pinned rule sets, in order.
fn numbers(pins: &Pins) -> Vec<u64> {
    let names = pins.names().into_iter();
    let mut numbers: Vec<u64> = names
        .filter_map(|name| name.strip_prefix(RULES)?.parse().ok())
        .collect();
    numbers.sort_unstable();
    numbers
}
