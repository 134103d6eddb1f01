//! Capture that outlives the daemon: finds what the last daemon left, repairs the end of its log,
//! decodes its events, and accounts for the time without a daemon.

use crate::clock::monotonic_ns;
use crate::pipeline::kernel_records::KEPT_RULE;
use crate::protocol::{hex, unhex};
use crate::start::settings::Settings;
use crate::stderr::say;
use anyhow::{Context, Result};
use capture::{Counters, LOSS_CAUSES};
use capture::{Handed, Handover, Leftover, Pins, UnfinishedWrite};
use compose::Generation;
use conf::Config;
use journal::{Witness, Write};
use plan::{Form, Plan};
use rustix::fs::OFlags;
use std::fs::File;
use std::io::{Read, Write as _};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// File in the run directory that contains the path where capture is pinned.
const NOTE: &str = "pinned";
/// The longest path that it may contain: PATH_MAX.
const NOTE_BYTES_MAX: u64 = 4096;

/// The capture that an earlier daemon left.
pub(crate) struct Inherited {
    leftover: Leftover,
    /// The capture that was to replace it, and had just done so, when its daemon was killed.
    ahead: Option<Leftover>,
    /// Rule sets that its events may come from, newest first.
    rule_sets: Vec<(u64, Vec<rules::Rule>)>,
    downtime: Downtime,
}

/// Account of the time without a daemon.
pub(crate) struct Downtime {
    /// Time since the last daemon was seen, in milliseconds.
    pub(crate) ms: u64,
    /// Bytes waiting in the rings.
    pub(crate) waiting_bytes: u64,
    /// Losses that were not reported, by cause.
    pub(crate) lost: Vec<(&'static str, u64)>,
    /// Events over a budget that no daemon has reported.
    pub(crate) suppressed: u64,
    /// All losses that the programs had counted, by cause, and events over a budget.
    pub(crate) counted: Vec<u64>,
}

/// Stores where capture is pinned, or that it is not.
pub(crate) fn note(run_dir: &Path, dir: Option<&Path>) -> Result<()> {
    let path = run_dir.join(NOTE);
    match dir {
        Some(dir) => {
            use std::os::unix::ffi::OsStrExt;
            let mut options = File::options();
            options.write(true).create(true).truncate(true).mode(0o600);
            let file = options.custom_flags(OFlags::NOFOLLOW.bits() as i32);
            file.open(&path)
                .and_then(|mut file| file.write_all(dir.as_os_str().as_bytes()))
        }
        None => match std::fs::remove_file(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            other => other,
        },
    }
    .with_context(|| format!("cannot write {}", path.display()))
}

/// Directory where an earlier daemon with this run directory pinned its capture.
pub(crate) fn noted(run_dir: &Path) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStringExt;
    let mut options = File::options();
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let options = options.read(true).custom_flags(flags.bits() as i32);
    let file = options.open(run_dir.join(NOTE)).ok()?;
    let mut bytes = Vec::new();
    file.take(NOTE_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    Some(PathBuf::from(std::ffi::OsString::from_vec(bytes)))
}

/// Opens the directory for the new capture, and finds what an earlier daemon left, either there or in the directory
/// that its note names.
pub(crate) fn inherit(
    run_dir: &Path,
    wanted: Option<&Path>,
    config: &Config,
) -> Result<(Option<Arc<Pins>>, Option<Inherited>)> {
    let elsewhere = noted(run_dir).filter(|dir| Some(dir.as_path()) != wanted);
    let mut dirs = elsewhere.as_deref().into_iter().chain(wanted);
    dirs.try_for_each(end_unfinished)?;

    // A capture in another directory comes first: it is the one that has recorded until now.
    let elsewhere = elsewhere.map(|dir| Pins::find(&dir)).transpose()?.flatten();
    let pins = wanted.map(Pins::open).transpose()?.map(Arc::new);
    let mut leftover = None;
    if let Some(elsewhere) = elsewhere.map(Arc::new) {
        leftover = Leftover::find(&elsewhere)?;
        if leftover.is_none() {
            elsewhere.remove();
        }
    }

    if let (Some(pins), None) = (&pins, &leftover) {
        leftover = Leftover::find(pins).with_context(|| {
            let dir = pins.dir().display();
            format!("what is pinned in {dir} cannot be used; `tarsier stop --disarm` removes it")
        })?;
    }

    // From here on a killed daemon is found where this one pins.
    note(run_dir, wanted)?;
    let inherited = leftover.map(|leftover| Inherited::take(leftover, &config.log_file));
    Ok((pins, inherited.transpose()?))
}

/// Puts right what a daemon left that was killed while it replaced the capture in `dir` (crate::handover::succession). As long as
/// the earlier programs record, they have recorded everything, and the capture that was to replace them is removed.
/// Once the earlier capture is gone, its successor takes its place. In between, both are read: see [`ahead_of`].
fn end_unfinished(dir: &Path) -> Result<()> {
    let Some(next) = Pins::find(&Pins::next_to(dir))? else {
        return Ok(());
    };

    let earlier = Pins::find(dir)?.map(Arc::new);
    let earlier = earlier.map(|pins| Leftover::find(&pins)).transpose()?;
    match earlier.flatten() {
        Some(earlier) if earlier.is_muted() => {}
        Some(_) => {
            next.remove();
        }
        None => next.move_to(dir)?,
    }

    Ok(())
}

/// The capture that has replaced `leftover`, if that is not removed yet.
fn ahead_of(leftover: &Leftover) -> Result<Option<Leftover>> {
    let next = Pins::find(&Pins::next_to(leftover.dir()))?.map(Arc::new);
    let ahead = next
        .map(|pins| Leftover::find(&pins))
        .transpose()?
        .flatten();
    Ok(ahead.map(|mut ahead| {
        ahead.settle();
        ahead
    }))
}

impl Inherited {
    /// Repairs the end of the log, which must not be open, and skips the events that are in it
    /// already.
    fn take(mut leftover: Leftover, log_file: &Path) -> Result<Inherited> {
        let handover = leftover.handover().clone();
        let (last_seen_ns, _) = handover.last_seen();

        // The log is whole before its events are compared with those in the rings.
        if let Some(write) = handover.unfinished_write() {
            end_write(&handover, &write, log_file)?;
        }
        let unwritten = leftover.settle();

        let counters = leftover.counters();
        let mut counted = counted(&counters);
        let (told, untold) = handover.told();
        // `missed` is kept by the programs themselves, which are not read here.
        counted[LOSS_CAUSES.len()] = told[LOSS_CAUSES.len()];

        let by_cause = LOSS_CAUSES.iter().copied().chain(["missed"]);
        let suppressed = counters
            .suppressed
            .saturating_sub(told[LOSS_CAUSES.len() + 1]);
        let counts = counted.iter().zip(told);
        let mut lost: Vec<(&'static str, u64)> = by_cause
            .zip(counts.map(|(now, told)| now.saturating_sub(told)))
            .collect();
        lost.push(("untold", untold));
        lost.push(("unwritten", unwritten));
        lost.retain(|(_, count)| *count > 0);

        // Events of both captures are decoded, so the rule sets of both are needed.
        let ahead = ahead_of(&leftover)?;
        let mut rule_sets = ahead.as_ref().map(Leftover::rule_sets).unwrap_or_default();
        rule_sets.extend(leftover.rule_sets());
        let rule_sets = rule_sets.iter().filter_map(|(number, text)| {
            let texts: Vec<String> = serde_json::from_slice(text).ok()?;
            let rules = texts
                .iter()
                .map(|text| rules::from_kernel(&unhex(text)?).ok());
            Some((*number, rules.collect::<Option<_>>()?))
        });

        let downtime = Downtime {
            ms: monotonic_ns().saturating_sub(last_seen_ns) / 1_000_000,
            waiting_bytes: leftover.stream().unread_bytes(),
            lost,
            suppressed,
            counted,
        };
        Ok(Inherited {
            rule_sets: rule_sets.collect(),
            leftover,
            ahead,
            downtime,
        })
    }

    /// Separates what is to be reported from the capture that is left. The latter is returned if it cannot be taken
    /// over in `pins` and so has to be read and replaced; with it, the capture that has replaced it, if there is one.
    pub(crate) fn split(
        self,
        pins: Option<&Arc<Pins>>,
        form: Form,
    ) -> (Downtime, Option<(Leftover, Option<Leftover>)>) {
        let is_there = pins.is_some_and(|pins| pins.dir() == self.leftover.dir());
        let is_whole = is_there && self.ahead.is_none();
        let is_taken_over = is_whole && self.leftover.can_be_taken_over(form);
        let left = (!is_taken_over).then_some((self.leftover, self.ahead));
        (self.downtime, left)
    }

    /// The number for the next rule set.
    pub(crate) fn next_number(&self) -> u64 {
        1 + self
            .rule_sets
            .iter()
            .map(|(number, _)| *number)
            .max()
            .unwrap_or(0)
    }

    /// The rule sets that its events may come from, oldest first.
    pub(crate) fn generations(&self, settings: &Settings) -> Vec<Arc<Generation>> {
        let sets = self.rule_sets.iter().rev();
        let made = sets
            .filter_map(|(number, rules)| settings.generation(rules.clone(), false, *number).ok());
        made.collect()
    }
}

impl Downtime {
    /// Adds what the programs have counted since, until they were replaced.
    pub(crate) fn add(&mut self, counters: &Counters) {
        let causes = LOSS_CAUSES.iter().zip(counted(counters));
        for ((cause, now), before) in causes.zip(&self.counted) {
            let more = now.saturating_sub(*before);
            match self.lost.iter_mut().find(|(known, _)| known == cause) {
                Some((_, count)) => *count += more,
                None if more > 0 => self.lost.push((cause, more)),
                None => {}
            }
        }
    }
}

/// Losses that the programs have counted, by cause, and events over a budget.
pub(crate) fn counted(counters: &Counters) -> Vec<u64> {
    let mut counted = vec![0; LOSS_CAUSES.len()];
    for cpu in &counters.lost {
        counted.iter_mut().zip(cpu).for_each(|(sum, n)| *sum += n);
    }
    counted.extend([counters.missed, counters.suppressed]);
    counted
}

/// Repairs the unfinished write of a killed daemon: whole events stay, and the beginning of an
/// event is cut off.
fn end_write(handover: &Handover, write: &UnfinishedWrite, log_file: &Path) -> Result<()> {
    let files = journal::log_files(log_file).unwrap_or_default();
    let is_it = |path: &&PathBuf| {
        let found = std::fs::metadata(path);
        found.is_ok_and(|found| (found.dev(), found.ino()) == (write.dev, write.ino))
    };
    let path = files.iter().find(is_it);

    let size = match path {
        Some(path) => std::fs::metadata(path)
            .with_context(|| format!("cannot read {}", path.display()))?
            .len(),
        // The file is gone: its events are written again.
        None => 0,
    };

    // The page has what was to be written; only the file shows how much the kernel took.
    let got = size.saturating_sub(write.offset).min(write.stored);
    let whole = handover.whole_of(write, got);

    // Whole events stay; the begun one is cut off here and written again from the ring.
    let is_torn = whole < got && !write.is_whole;
    match path {
        Some(path) if is_torn => {
            let file = File::options().write(true).open(path);
            file.and_then(|file| file.set_len(write.offset + whole))
                .with_context(|| format!("cannot cut the torn end of {}", path.display()))?;
        }
        _ => {}
    }

    handover.end_write(write.start + whole);
    Ok(())
}

/// Reports to the page for the next daemon what is being written.
pub(crate) struct PageWitness(pub(crate) Arc<Handover>);

impl Witness for PageWitness {
    fn begin(&mut self, write: &Write<'_>) {
        // Device and inode find the file again even if it was rotated since.
        let Ok(found) = write.file.metadata() else {
            return;
        };

        self.0.begin_write(&UnfinishedWrite {
            dev: found.dev(),
            ino: found.ino(),
            offset: write.offset,
            start: write.start,
            len: write.len,
            stored: write.stored,
            is_whole: write.is_whole,
        });
    }

    fn end(&mut self, written: u64) {
        self.0.end_write(written);
    }
}

/// The frames of a pass whose events are not handed to the log yet.
pub(crate) struct HandoverBatch {
    handover: Option<Arc<Handover>>,
    /// Frames of the batch: the length of the gathered lines including the frame's own, its CPU, and its end in the
    /// ring.
    batch: Vec<(usize, usize, u64)>,
    /// Ring positions up to which space is to be released.
    pub(crate) given_up: Vec<(usize, u64)>,
    bytes: u64,
    bytes_max: u64,
}

/// Bytes of frames after which the gathered lines are written, so that rings get their space back.
const PASS_BYTES: u64 = 256 * 1024;

impl HandoverBatch {
    pub(crate) fn new(handover: Option<Arc<Handover>>, ring_bytes: u64) -> HandoverBatch {
        HandoverBatch {
            bytes_max: match handover {
                Some(_) => PASS_BYTES.min(ring_bytes / 4),
                None => u64::MAX,
            },
            handover,
            batch: Vec::new(),
            given_up: Vec::new(),
            bytes: 0,
        }
    }

    /// Notes a frame that was read; `len` is the length of the gathered lines including those of
    /// its event. Chunks keep their space until their event has come.
    pub(crate) fn read(&mut self, cpu: usize, end: u64, frame: &[u8], len: usize) {
        self.bytes += frame.len() as u64;
        let is_chunk = record::wire::frame_kind(frame)
            .is_ok_and(|(kind, _)| kind == record::wire::FrameKind::Chunk);
        if self.handover.is_none() || is_chunk {
            return;
        }
        match self.batch.last_mut() {
            Some((last, of, position)) if *last == len && *of == cpu => *position = end,
            _ => self.batch.push((len, cpu, end)),
        }
    }

    /// Notes that something else was handed to the log, whose stream now ends at `end`.
    pub(crate) fn note_other(&mut self, end: u64) {
        if let Some(handover) = &self.handover {
            self.given_up
                .extend(handover.note(Handed { end, from: None }));
        }
    }

    /// Whether it is time to write.
    pub(crate) fn is_full(&self) -> bool {
        self.bytes >= self.bytes_max
    }

    /// Notes that the lines were handed to the log, whose stream ended at `start` before, or that
    /// the log lost them.
    pub(crate) fn handed(&mut self, start: u64, is_lost: bool) {
        let Some(handover) = &self.handover else {
            return;
        };
        // Lines that the log has lost count as handed: their frames must not keep their space.
        for (len, cpu, position) in self.batch.drain(..) {
            let end = if is_lost { start } else { start + len as u64 };
            let from = Some((cpu, position));
            self.given_up.extend(handover.note(Handed { end, from }));
        }
    }
}

/// Stores a rule set, so that the next daemon can decode its events.
pub(crate) fn remember(pins: &Pins, plan: &Plan) -> Result<()> {
    let rules: Vec<String> = plan
        .rules
        .iter()
        .map(|rule| hex(&rules::to_kernel(rule)))
        .collect();
    let text = serde_json::to_vec(&rules).context("rules as text")?;
    Ok(Leftover::remember(pins, plan.generation, &text)?)
}

/// Outcome of [`remove_left`].
pub enum Removed {
    /// There was nothing to remove.
    Nothing,
    /// A capture was removed.
    Capture {
        /// Bytes of events in its rings that were not read.
        unread_bytes: u64,
    },
}

/// Removes what a daemon with this run directory left when it ended, and restores the kernel's
/// audit state.
///
/// # Errors
/// A daemon is running, or the pins or the kernel's audit state cannot be dealt with.
pub fn remove_left(run_dir: &Path) -> Result<Removed> {
    if !run_dir.exists() {
        return Ok(Removed::Nothing);
    }

    // While a daemon runs, the capture is its own.
    let _instance = crate::start::instance::Instance::lock(run_dir)?;
    let found = netlink::restore_leftover(&run_dir.join("audit-state"))
        .context("the kernel's audit cannot be put back")?;
    if found.is_some_and(|found| found.unused == 1) {
        say!("tarsier: {KEPT_RULE}");
    }

    // The file may be gone, since /run does not survive a reboot.
    let is_standard = run_dir == Path::new(cli::RUN_DIR);
    let standard = is_standard.then(|| PathBuf::from(capture::STANDARD_PIN_DIR));
    let Some(dir) = noted(run_dir).or(standard) else {
        return Ok(Removed::Nothing);
    };

    // First: left alone, it would be taken for the capture that has replaced the other.
    if let Some(next) = Pins::find(&Pins::next_to(&dir))? {
        next.remove();
    }
    let Some(pins) = Pins::find(&dir)?.map(Arc::new) else {
        note(run_dir, None)?;
        return Ok(Removed::Nothing);
    };

    // Remove even what cannot be decoded.
    let left = Leftover::find(&pins).ok().flatten();
    let unread_bytes = left.map_or(0, |mut left| left.stream().unread_bytes());
    if !pins.remove() {
        anyhow::bail!("{} is not empty: remove what is in it", dir.display());
    }
    note(run_dir, None)?;
    Ok(Removed::Capture { unread_bytes })
}
