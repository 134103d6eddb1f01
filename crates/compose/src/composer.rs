//! From frames to lines: the second stage of matching, and the records of an event.

use crate::call_facts::Calls;
use crate::chunks::Chunks;
use crate::clock::{Clock, Serials};
use crate::executable::Executable;
use crate::fcaps;
use crate::filter;
use crate::generation::Generation;
use crate::labels::Labels;
use crate::pending_operations::PendingOperations;
use crate::proctitle_cache::ProctitleCache;
use crate::records::{first_record, Records};
use crate::resolve::{Item, Resolver};
use crate::second_stage::Known;
use crate::system::System;
use event::wire::{self, Chunk, Event, FrameKind, OperationResult, WireError};
use event::{Encoder, Stamp};
use plan::Decision;
use rules::Rule;
use std::collections::VecDeque;
use std::sync::Arc;

/// Rule sets whose events may still be in the rings.
const PLANS_KEPT: usize = 8;

/// What became of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The event's records were appended.
    Recorded,
    /// The event's records were appended, and are to be flushed at once.
    Urgent,
    /// No rule was selected by the second stage.
    Dropped,
    /// The frame is a part of an event, or of an operation under way.
    Part,
    /// An exclude rule drops the event.
    Excluded,
}

/// A counter of what became of the events of each rule. `rule` is the rule's place in the rule set with number
/// `generation`.
pub trait Tally {
    /// An event of the rule is `bytes` bytes of lines.
    fn recorded(&mut self, generation: u64, rule: u32, bytes: usize);

    /// An event came for the rule, and is not recorded.
    fn dropped(&mut self, generation: u64, rule: u32);
}

/// Counts nothing.
impl Tally for () {
    fn recorded(&mut self, _: u64, _: u32, _: usize) {}
    fn dropped(&mut self, _: u64, _: u32) {}
}

/// A viewer, which is shown each event that is recorded.
pub trait Watcher {
    /// The lines of this event have been appended.
    fn event(&mut self, event: &Composed<'_>);
}

/// Sees nothing.
impl Watcher for () {
    fn event(&mut self, _: &Composed<'_>) {}
}

/// An event whose lines have been appended.
pub struct Composed<'a> {
    /// When the call returned: time of the epoch, nanoseconds.
    pub unix_ns: u64,
    /// Name of the call, or `io_uring:NAME`.
    pub call: &'a str,
    /// What the kernel sent.
    pub event: &'a Event<'a>,
    /// Names that the call had.
    pub items: &'a [Item],
    /// Arguments of execve, each ended by NUL.
    pub argv: &'a [u8],
    /// The key of the rule that selected it.
    pub key: Option<&'a [u8]>,
}

/// Turns frames into log lines.
pub struct Composer<T> {
    /// Makes the lines: also those of records from elsewhere.
    pub encoder: Encoder,
    /// Numbers of the events made here.
    pub serials: Serials,
    /// Operations of rings that are under way.
    pub operations: PendingOperations,
    /// Counts of each rule's events.
    pub costs: T,
    system: Arc<dyn System>,
    clock: Clock,
    labels: Labels,
    all_caps: u64,
    resolver: Resolver,
    chunks: Chunks,
    proctitles: ProctitleCache,
    generations: VecDeque<Known>,
    calls: Calls,
    exe: Executable,
}

impl<T: Tally> Composer<T> {
    /// A composer that knows no rule set yet, for events of `system`.
    pub fn new(encoder: Encoder, system: Arc<dyn System>, costs: T) -> Composer<T> {
        Composer {
            encoder,
            serials: Serials::new(&*system),
            operations: PendingOperations::new(Arc::clone(&system)),
            costs,
            clock: Clock::now(&*system),
            labels: Labels::now(&*system),
            all_caps: fcaps::all_caps(&*system),
            resolver: Resolver::new(&system),
            chunks: Chunks::default(),
            proctitles: ProctitleCache::default(),
            generations: VecDeque::new(),
            calls: Calls::default(),
            exe: Executable::default(),
            system,
        }
    }

    /// Looks again at what may change of the system: its clocks, and how it labels processes. To be called every second.
    pub fn refresh(&mut self) {
        self.clock = Clock::now(&*self.system);
        self.labels = Labels::now(&*self.system);
    }

    /// Makes `generation` known; events of earlier ones are still understood.
    pub fn add_generation(&mut self, generation: Arc<Generation>) {
        let known = Known::new(generation, self.generations.front());
        self.generations.push_front(known);
        self.generations.truncate(PLANS_KEPT);
    }

    /// Takes a frame from the ring of CPU number `cpu` and appends its records to `out`.
    ///
    /// # Errors
    /// The frame is not as [`event::wire`] describes it. Nothing was appended.
    pub fn frame<W: Watcher>(
        &mut self,
        cpu: usize,
        frame: &[u8],
        out: &mut Vec<u8>,
        live: Option<&mut W>,
    ) -> Result<Outcome, WireError> {
        match wire::frame_kind(frame)?.0 {
            FrameKind::Chunk => {
                self.chunks.push(cpu, &Chunk::parse(frame)?);
                Ok(Outcome::Part)
            }
            FrameKind::Result => {
                let result = OperationResult::parse(frame)?;
                let Some(frame) = self.operations.completed(&result)? else {
                    return Ok(Outcome::Part);
                };
                Ok(self.event(cpu, &Event::parse(&frame)?, out, live))
            }
            FrameKind::Event => {
                let event = Event::parse(frame)?;
                if event.has_flag(wire::TARSIER_PENDING) {
                    self.operations.submitted(&event, frame);
                    return Ok(Outcome::Part);
                }
                Ok(self.event(cpu, &event, out, live))
            }
        }
    }

    /// Appends what has been waiting for results long enough; at the end of the recording, all of
    /// it. How many events.
    pub fn overdue(&mut self, at_end: bool, out: &mut Vec<u8>) -> u64 {
        let frames = match at_end {
            true => self.operations.take_all(),
            false => self.operations.overdue(),
        };
        let mut recorded = 0;
        for frame in frames {
            if let Ok(event) = Event::parse(&frame) {
                let outcome = self.event(0, &event, out, None::<&mut ()>);
                recorded += u64::from(matches!(outcome, Outcome::Recorded | Outcome::Urgent));
            }
        }
        recorded
    }

    fn event<W: Watcher>(
        &mut self,
        cpu: usize,
        event: &Event<'_>,
        out: &mut Vec<u8>,
        live: Option<&mut W>,
    ) -> Outcome {
        let header = event.header();
        let call = self.calls.of(event);
        let of_event = |known: &Known| known.generation.plan.generation == header.generation;
        let place = self.generations.iter().position(of_event).unwrap_or(0);
        let Some(known) = self.generations.get_mut(place) else {
            return Outcome::Dropped;
        };
        let generation = Arc::clone(&known.generation);
        let number = generation.plan.generation;
        self.resolver.resolve(event, &call.shape);
        let rule = match known.decide(event, &mut self.resolver) {
            Decision::Record(rule) => rule,
            Decision::Drop => {
                let came_for = generation.came_for(event);
                came_for.for_each(|rule| self.costs.dropped(number, rule));
                return Outcome::Dropped;
            }
        };
        if filter::excludes(&generation, first_record(event), event) {
            self.costs.dropped(number, rule);
            return Outcome::Excluded;
        }
        let selecting = generation.plan.rules.get(rule as usize);
        let key = selecting.and_then(Rule::key);
        let unix_ns = self.clock.unix_ns(header.frame.time_ns);
        let stamp = Stamp::from_unix_ns(unix_ns, self.serials.next());
        let argv = self.chunks.take(cpu, header.frame.id, header.chunks);
        let before = out.len();
        let records = Records {
            writer: self.encoder.begin(out, stamp),
            event,
            generation: &generation,
            call: &call,
            resolver: &self.resolver,
            exe: event.exe().map(|part| self.exe.of(&part)),
            key,
            argv,
            labels: self.labels,
            system: &*self.system,
            all_caps: self.all_caps,
        };
        records.write(&mut self.proctitles);
        if let Some(live) = live {
            live.event(&Composed {
                unix_ns,
                call: &call.name,
                event,
                items: self.resolver.items(),
                argv,
                key,
            });
        }
        self.costs.recorded(number, rule, out.len() - before);
        match generation.urgent.contains(&rule) {
            true => Outcome::Urgent,
            false => Outcome::Recorded,
        }
    }
}
