//! From frames to lines: the second stage of matching, and the records of an event.

use super::chunks::Chunks;
use super::clock::{Clock, Serials};
use super::labels::Labels;
use super::live::Live;
use super::operations::Operations;
use super::rule_costs::RuleCosts;
use super::titles::Titles;
use super::{fcaps, filter, queues, target};
use capture::resolve::{Item, Resolver};
use event::record::{
    Capset, Cwd, Execve, FdPair, FileCaps, Ipc, IpcSetPerm, KernModule, Mmap, NameType, ObjPid,
    Openat2, PathItem, Proctitle, Sockaddr, Socketcall, Syscall, UringOp, Written,
};
use event::wire::{self, Chunk, Event, FrameKind, OperationResult};
use event::{Encoder, EventWriter, RecordType, Stamp};
use plan::{Decision, Entry, Facts, Identities, ObjectId, Plan, RecordFilter, Shape};
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

/// Rule sets whose events may still be in the rings.
const PLANS_KEPT: usize = 8;
const MAP_ANONYMOUS: u64 = 0x20;
const PTRACE_ATTACH: u64 = 16;
const PTRACE_SEIZE: u64 = 0x4206;
const EINVAL: i64 = -22;
const OPEN_HOW_SIZE_VER0: u64 = 24;

/// A rule set in force.
pub(super) struct Generation {
    pub(super) plan: Plan,
    pub(super) identities: Identities,
    pub(super) exclude: Option<RecordFilter>,
    pub(super) user: Option<RecordFilter>,
    /// Places of the rules whose events are flushed at once.
    pub(super) urgent: BTreeSet<u32>,
}

/// A rule set whose events are understood.
struct Known {
    generation: Arc<Generation>,
    /// What its paths are by now, as far as events have told.
    identities: Identities,
    /// Rules of the filesystem list may leave names out.
    leaves_out: bool,
}

/// What became of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Its records were appended.
    Recorded,
    /// The same, and they are to be flushed at once.
    Urgent,
    /// The second stage selected no rule.
    Dropped,
    /// No event by itself.
    Part,
    /// An exclude rule drops it.
    Excluded,
}

/// Turns frames into log lines.
pub(super) struct Recorder {
    pub(super) encoder: Encoder,
    pub(super) serials: Serials,
    pub(super) clock: Clock,
    pub(super) labels: Labels,
    pub(super) costs: RuleCosts,
    resolver: Resolver,
    chunks: Chunks,
    titles: Titles,
    /// Operations of rings that are under way.
    pub(super) operations: Operations,
    generations: VecDeque<Known>,
    calls: HashMap<(u32, i32), Arc<CallFacts>>,
    /// The call that was looked up last: the next one is often the same.
    last_call: Option<((u32, i32), Arc<CallFacts>)>,
    exe: Executable,
}

/// The path of an executable: the next event often has the same.
#[derive(Default)]
struct Executable {
    walk: Vec<u8>,
    flags: u8,
    path: Vec<u8>,
}

impl Executable {
    fn of(&mut self, part: &wire::Part<'_>) -> &[u8] {
        if self.path.is_empty() || self.flags != part.flags || self.walk != part.data {
            self.walk.clear();
            self.walk.extend_from_slice(part.data);
            self.flags = part.flags;
            self.path.clear();
            part.walked(&mut self.path);
            // A file that never had a name: simple_dname(), fs/d_path.c.
            if part.is_unreachable() && self.path.starts_with(b"/memfd:") {
                self.path.extend_from_slice(b" (deleted)");
            }
        }
        &self.path
    }
}

/// What is looked up once per call number.
struct CallFacts {
    name: String,
    shape: Shape,
}

impl CallFacts {
    fn of(event: &Event<'_>) -> CallFacts {
        let header = event.header();
        let nr = header.nr as u32;
        if event.has_flag(wire::TARSIER_URING) {
            let name = abi::uring_op_name(nr).map_or_else(|| nr.to_string(), str::to_owned);
            return CallFacts {
                name: format!("io_uring:{name}"),
                shape: plan::uring::shape_of_op(nr),
            };
        }
        let arch = abi::Arch::from_audit_arch(header.arch);
        let name = arch.and_then(|arch| abi::syscall_name(arch, nr));
        CallFacts {
            name: name.unwrap_or("?").to_owned(),
            shape: arch.map_or(Shape::PLAIN, |arch| plan::shape(arch, nr)),
        }
    }
}

impl Recorder {
    pub(super) fn new(encoder: Encoder) -> Recorder {
        Recorder {
            encoder,
            serials: Serials::new(),
            clock: Clock::now(),
            labels: Labels::now(),
            costs: RuleCosts::default(),
            resolver: Resolver::new(),
            chunks: Chunks::default(),
            titles: Titles::default(),
            operations: Operations::default(),
            generations: VecDeque::new(),
            calls: HashMap::new(),
            last_call: None,
            exe: Executable::default(),
        }
    }

    /// Makes `generation` known; events of earlier ones are still understood.
    pub(super) fn add_generation(&mut self, generation: Arc<Generation>) {
        let mut identities = generation.identities.clone();
        if let Some(before) = self.generations.front() {
            identities.keep_moves(&before.identities);
        }
        let is_about = |rule: &rules::Rule| rule.list == rules::List::Filesystem;
        self.generations.push_front(Known {
            leaves_out: generation.plan.rules.iter().any(is_about),
            generation,
            identities,
        });
        self.generations.truncate(PLANS_KEPT);
    }

    /// The second stage has dropped an event: it came for every rule that was still a candidate.
    fn count_dropped(&mut self, generation: &Generation, event: &Event<'_>) {
        for (rule, _) in remaining(generation, event).filter(|(_, rule)| !is_never(rule)) {
            self.costs.dropped(generation.plan.generation, rule);
        }
    }

    /// Takes a frame from the ring of `cpu` and appends its records to `out`.
    pub(super) fn frame(
        &mut self,
        cpu: usize,
        frame: &[u8],
        out: &mut Vec<u8>,
        live: Option<&mut Live>,
    ) -> Result<Outcome, wire::WireError> {
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
    pub(super) fn overdue(&mut self, at_end: bool, out: &mut Vec<u8>) -> u64 {
        let frames = match at_end {
            true => self.operations.take_all(),
            false => self.operations.overdue(),
        };
        let mut recorded = 0;
        for frame in frames {
            if let Ok(event) = Event::parse(&frame) {
                let outcome = self.event(0, &event, out, None);
                recorded += u64::from(outcome == Outcome::Recorded);
            }
        }
        recorded
    }

    fn call(&mut self, number: (u32, i32), event: &Event<'_>) -> Arc<CallFacts> {
        match &self.last_call {
            Some((last, call)) if *last == number => Arc::clone(call),
            _ => {
                let call = self.calls.entry(number);
                let call = Arc::clone(call.or_insert_with(|| Arc::new(CallFacts::of(event))));
                self.last_call = Some((number, Arc::clone(&call)));
                call
            }
        }
    }

    fn event(
        &mut self,
        cpu: usize,
        event: &Event<'_>,
        out: &mut Vec<u8>,
        live: Option<&mut Live>,
    ) -> Outcome {
        let header = event.header();
        // Operations of rings have no architecture of their own.
        let arch = match event.has_flag(wire::TARSIER_URING) {
            true => 0,
            false => header.arch,
        };
        let call = self.call((arch, header.nr), event);
        let (name, shape) = (call.name.as_str(), call.shape);
        let of_event = |known: &Known| known.generation.plan.generation == header.generation;
        let place = self.generations.iter().position(of_event).unwrap_or(0);
        let Some(known) = self.generations.get_mut(place) else {
            return Outcome::Dropped;
        };
        let generation = Arc::clone(&known.generation);
        self.resolver.resolve(event, &shape);
        if known.leaves_out {
            let rules = &generation.plan.rules;
            self.resolver
                .leave_out(|kind| plan::leaves_out(rules, kind));
        }
        follow(&mut known.identities, event, &mut self.resolver);
        let rule = match decide(known, event, &mut self.resolver) {
            Decision::Record(rule) => rule,
            Decision::Drop => {
                self.count_dropped(&generation, event);
                return Outcome::Dropped;
            }
        };
        let number = generation.plan.generation;
        if filter::excludes(&generation, first_record(event), event) {
            self.costs.dropped(number, rule);
            return Outcome::Excluded;
        }
        let key = generation
            .plan
            .rules
            .get(rule as usize)
            .and_then(rules::Rule::key);
        let exe = event.exe().map(|part| self.exe.of(&part));
        let unix_ns = self.clock.unix_ns(header.frame.time_ns);
        let stamp = Stamp::from_unix_ns(unix_ns, self.serials.next());
        let argv = self.chunks.take(cpu, header.frame.id, header.chunks);
        let before = out.len();
        let mut writer = Filtered {
            writer: self.encoder.begin(out, stamp),
            generation: &generation,
            event,
            labels: self.labels,
            exec_caps: self.resolver.items().first().map(|item| item.caps),
        };
        writer.syscall(&self.resolver, exe, key);
        writer.details(name, &shape, argv);
        writer.names(&self.resolver);
        writer.title(&mut self.titles);
        writer.end();
        let bytes = out.len() - before;
        if let Some(live) = live {
            live.event(unix_ns, name, event, &self.resolver, argv, key);
        }
        self.costs.recorded(number, rule, bytes);
        match generation.urgent.contains(&rule) {
            true => Outcome::Urgent,
            false => Outcome::Recorded,
        }
    }
}

/// The type of an event's first record, without which there is no event.
fn first_record(event: &Event<'_>) -> RecordType {
    match event.has_flag(wire::TARSIER_URING) {
        true => RecordType::URINGOP,
        false => RecordType::SYSCALL,
    }
}

fn is_never(rule: &rules::Rule) -> bool {
    rule.action == rules::Action::Never
}

/// The rules among which the first stage has left the decision.
fn remaining<'a>(
    generation: &'a Generation,
    event: &'a Event<'_>,
) -> impl Iterator<Item = (u32, &'a rules::Rule)> {
    let list = event.candidates().next().map_or(0, |first| first.list);
    let pages = event.candidates().map(|page| (page.page, page.mask));
    generation.plan.remaining(list, pages)
}

/// Keeps up with what the call did to the paths that rules name: they are about the object that has such a name
/// by the time the event is matched (audit_update_watch(), kernel/audit_watch.c), and about a directory under
/// each name that it gets.
fn follow(identities: &mut Identities, event: &Event<'_>, resolver: &mut Resolver) {
    let succeeded = event.exit().is_some_and(event::record::is_success);
    if identities.is_empty() || !succeeded {
        return;
    }
    let concerns = |item: &Item| {
        let is_change = matches!(item.nametype, NameType::Delete | NameType::Create);
        let name = item.path.rsplit(|&byte| byte == b'/').next();
        is_change && name.is_some_and(|name| identities.concern(name))
    };
    if !resolver.items().iter().any(concerns) {
        return;
    }
    let names = resolver.names();
    let of_type = |wanted| {
        let both = resolver.items().iter().zip(&names);
        both.filter(move |(item, _)| item.nametype == wanted)
            .map(|(_, name)| (&name.path, name.inode.map(|inode| inode.id)))
    };
    for (path, _) in of_type(NameType::Delete) {
        identities.replaced(path, None);
    }
    for (path, object) in of_type(NameType::Create) {
        identities.replaced(path, object);
        let same = |(_, deleted): &(&Vec<u8>, _)| object.is_some() && *deleted == object;
        if let Some((from, _)) = of_type(NameType::Delete).find(same) {
            identities.moved(from, path);
        }
    }
}

/// The rule that selects an event, once its names are known.
fn decide(known: &Known, event: &Event<'_>, resolver: &mut Resolver) -> Decision {
    let generation = &known.generation;
    let header = event.header();
    if !event.has_flag(wire::TARSIER_UNDECIDED) {
        return Decision::Record(header.rule);
    }
    let names = resolver.names();
    let above: Vec<ObjectId> = event
        .above()
        .map(|(ino, dev)| ObjectId { dev, ino })
        .collect();
    let facts = Facts {
        entry: if event.has_flag(wire::TARSIER_URING) {
            Entry::Uring
        } else if event.has_flag(wire::TARSIER_COMPAT) {
            Entry::Compat
        } else {
            Entry::Native
        },
        nr: header.nr as u32,
        args: [
            header.args[0],
            header.args[1],
            header.args[2],
            header.args[3],
        ],
        result: event.exit(),
        pid: header.pid,
        ppid: header.ppid,
        auid: header.auid,
        ses: header.ses,
        uid: header.uid,
        euid: header.euid,
        suid: header.suid,
        fsuid: header.fsuid,
        gid: header.gid,
        egid: header.egid,
        sgid: header.sgid,
        fsgid: header.fsgid,
        groups: &[],
        personality: header.personality,
        exe: None,
        open_flags: None,
        saddr_fam: None,
        names: &names,
        above: &above,
    };
    generation
        .plan
        .decide_remaining(remaining(generation, event), &facts, &known.identities)
}

/// Writes the records of an event that no exclude rule drops.
struct Filtered<'w, 'e> {
    writer: EventWriter<'w>,
    generation: &'e Generation,
    event: &'e Event<'e>,
    labels: Labels,
    /// File capabilities of what execve named.
    exec_caps: Option<FileCaps>,
}

impl<'e> Filtered<'_, 'e> {
    fn put(&mut self, record: &impl event::record::Body) {
        if !filter::excludes(self.generation, record.kind(), self.event) {
            self.writer.put(record);
        }
    }

    fn syscall(&mut self, resolver: &Resolver, exe: Option<&[u8]>, key: Option<&[u8]>) {
        let items = resolver.count();
        let subj = self.labels.of(self.event.header().pid);
        let subj = subj.as_deref();
        if self.event.has_flag(wire::TARSIER_URING) {
            self.put(&UringOp::from_event(self.event, items, exe, subj, key));
        } else {
            // It is not excluded, or there would be no event.
            let record = Syscall::from_event(self.event, items, exe, subj, key);
            self.writer.syscall(&record);
        }
    }

    fn details(&mut self, name: &str, shape: &Shape, argv: &[u8]) {
        let event = self.event;
        let header = event.header();
        if let Some(record) = fcaps::record(event, self.exec_caps) {
            self.put(&record);
        }
        if let Some((nargs, args)) = event.socketcall() {
            self.put(&Socketcall {
                nargs,
                args: args.map(u64::from),
            });
        }
        if let Some(ipc) = event.ipc() {
            self.put(&Ipc {
                ouid: ipc.uid,
                ogid: ipc.gid,
                mode: ipc.mode as u16,
                obj: None,
            });
        }
        if let Some(perm) = event.ipc_set_perm() {
            self.put(&IpcSetPerm {
                qbytes: perm.qbytes,
                ouid: perm.uid,
                ogid: perm.gid,
                mode: perm.mode as u16,
            });
        }
        self.queue(name);
        for value in queues::adjusted(event) {
            self.put(&value);
        }
        if let Some(offset) = queues::offset(event) {
            self.put(&offset);
        }
        if let Some(caps) = event.capset() {
            self.put(&Capset::from(&caps));
        }
        if matches!(name, "mmap" | "mmap2") && header.args[3] & MAP_ANONYMOUS == 0 {
            self.put(&Mmap {
                fd: header.args[4] as i32,
                flags: header.args[3] as u32,
            });
        }
        // A structure shorter than the first was is refused before it is looked at.
        let has_how = header.args[3] >= OPEN_HOW_SIZE_VER0;
        if let Some([flags, mode, resolve]) = event.open_how().filter(|_| has_how) {
            self.put(&Openat2 {
                flags,
                mode,
                resolve,
            });
        }
        if capture::resolve::is_exec(shape)
            && event.exec_file().is_some()
            && !filter::excludes(self.generation, RecordType::EXECVE, event)
        {
            self.writer.execve(&Execve { args: argv });
        }
        if let Some(module) = event.module().filter(|module| !module.is_unreadable()) {
            self.put(&KernModule {
                name: Some(module.data),
            });
        }
        if let Some([fd0, fd1]) = event.fd_pair() {
            self.put(&FdPair { fd0, fd1 });
        }
        if let Some(sockaddr) = event.sockaddr().filter(|part| !part.is_unreadable()) {
            self.put(&Sockaddr {
                saddr: sockaddr.data,
            });
        }
        // ptrace_attach(), kernel/ptrace.c, is the only one that tells audit of the tracee; a signal that there is not
        // is refused before its target is looked at: check_kill_permission(), kernel/signal.c.
        let is_told = match name {
            "ptrace" => matches!(header.args[0], PTRACE_ATTACH | PTRACE_SEIZE),
            _ => event.exit() != Some(EINVAL),
        };
        if is_told {
            self.targets(shape);
        }
    }

    fn queue(&mut self, name: &str) {
        let event = self.event;
        if !name.starts_with("mq_") {
            return;
        }
        if let Some(record) = queues::open(name, event) {
            self.put(&record);
        }
        if let Some(record) = queues::sendrecv(name, event) {
            self.put(&record);
        }
        if let Some(record) = queues::notify(name, event) {
            self.put(&record);
        }
        if let Some(record) = queues::getsetattr(name, event) {
            self.put(&record);
        }
    }

    fn targets(&mut self, shape: &Shape) {
        // The first one comes last: audit_log_exit(), kernel/auditsc.c.
        let mut targets = ObjPid::from_event(self.event);
        let first = targets.next();
        for target in targets.chain(first) {
            let obj = self.labels.of(target.opid);
            self.put(&ObjPid {
                obj: obj.as_deref(),
                ..target
            });
        }
        let args = &self.event.header().args;
        if first.is_some() || shape.target == plan::NONE {
            return;
        }
        let pid = args.get(shape.target as usize).map_or(0, |&pid| pid as i32);
        if let Some(target) = target::describe(pid) {
            let target = target.record();
            let obj = self.labels.of(target.opid);
            self.put(&ObjPid {
                obj: obj.as_deref(),
                ..target
            });
        }
    }

    fn names(&mut self, resolver: &Resolver) {
        let items = resolver.items();
        if !resolver.cwd().is_empty() && resolver.count() > 0 {
            self.put(&Cwd {
                cwd: resolver.cwd(),
            });
        }
        for (i, item) in items.iter().enumerate() {
            self.put(&PathItem {
                item: i as u32,
                name: item.name.as_deref(),
                inode: item.inode,
                obj: None,
                nametype: item.nametype,
                caps: item.caps,
            });
        }
    }

    fn title(&mut self, titles: &mut Titles) {
        let title = self.event.proctitle().filter(|part| !part.is_unreadable());
        let title = title.map_or(Proctitle { title: None }, |part| {
            Proctitle::trimmed(part.data)
        });
        // Operations of rings may be made by another task than the one that they are for.
        if !self.event.has_flag(wire::TARSIER_URING) {
            let header = self.event.header();
            let task = (header.tid, header.start_time_ns);
            if let Some(text) = titles.of(task, title.title) {
                let kind = RecordType::PROCTITLE;
                return self.put(&Written { kind, text });
            }
        }
        self.put(&title);
    }

    fn end(self) {
        self.writer.end();
    }
}
