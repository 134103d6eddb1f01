//! The event loop: one thread that reads rings, encodes and commits.

mod control;
mod end;
mod losses;
mod plugins;
mod status;
mod survival;

use super::administrator::Administrator;
use super::child;
use super::clock::monotonic_ns;
use super::control_socket::ControlSocket;
use super::daemon_records::{self, Action, Who};
use super::durability::Durability;
use super::engine::Engine;
use super::instance::Instance;
use super::kernel_records::KernelRecords;
use super::live::Live;
use super::metrics::Metrics;
use super::plugins::{log, nice};
use super::pressure::Pressure;
use super::recorder::Recorder;
use super::signals::Signals;
use super::sources::Sources;
use super::survival::Handing;
use crate::stderr::say;
use anyhow::{Context, Result};
use compose::{Generation, Outcome};
use conf::Config;
use dispatch::Dispatcher;
use event::RecordType;
use journal::{Journal, Position};
use plan::Capabilities;
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2};
use std::process::Child;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(super) use control::Control;
use losses::Told;

/// Longest time that an event waits in a ring while the daemon is awake.
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// The same with `flush = DATA` or `SYNC`, where somebody wants it on the disk soon.
const DURABLE_POLL_INTERVAL: Duration = Duration::from_millis(5);
/// How long a pass reads, so that clients are answered and the daemon's priority follows its need also where it is slow;
/// and after how many frames it looks at the clock. Nanoseconds.
const PASS_NS: u64 = 50_000_000;
const FRAMES_PER_LOOK: u32 = 32;
/// Passes without an event after which the daemon sleeps until it is woken.
const IDLE_PASSES: u32 = 3;
/// Fill of a ring, parts per thousand, from which on the daemon reads on without a pause: what came while
/// it wrote is a batch large enough.
const BUSY_PER_MILLE: u32 = 50;
/// How often the paths that rules name are looked at again.
const IDENTITY_INTERVAL: Duration = Duration::from_secs(1);
/// Lines gathered before they are handed to the journal, which on a full disk keeps or counts each
/// batch whole.
const BATCH_BYTES: usize = 16 * 1024;

/// Cause of losses in the kernel's audit, where it is the engine.
pub(super) const KERNEL_BACKLOG: &str = "kernel_backlog";

/// What the daemon counts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Totals {
    pub(super) recorded: u64,
    pub(super) dropped: u64,
    pub(super) malformed: u64,
    /// Events of Tarsier itself and of others than the engine that the log could not take.
    pub(super) others_lost: u64,
}

/// Why recording ended.
pub(super) struct End {
    pub(super) status: u8,
    pub(super) sender: Option<Who>,
    /// What is pinned stays armed for the next daemon.
    pub(super) keeps: bool,
}

/// A daemon with everything armed.
pub(super) struct Daemon {
    pub(super) engine: Engine,
    pub(super) kernel: Option<KernelRecords>,
    pub(super) recorder: Recorder,
    pub(super) journal: Journal,
    pub(super) administrator: Administrator,
    pub(super) plugins: Dispatcher,
    pub(super) server: ControlSocket,
    pub(super) control: Control,
    pub(super) signals: Signals,
    pub(super) live: Option<Live>,
    pub(super) sources: Sources,
    pub(super) config: Config,
    pub(super) capabilities: Capabilities,
    pub(super) generation: Arc<Generation>,
    pub(super) instance: Instance,
    pub(super) started: Instant,
    pub(super) totals: Totals,
    /// Lines on their way to the journal; kept for its capacity.
    pub(super) lines: Vec<u8>,
    pub(super) told: Told,
    pub(super) durability: Durability,
    pub(super) metrics: Option<Metrics>,
    /// When the oldest event was made that is not committed yet, CLOCK_MONOTONIC.
    pub(super) oldest_ns: Option<u64>,
    pub(super) pressure: Pressure,
    /// Nice value that the daemon was started with.
    pub(super) started_nice: i32,
    /// What the journal had written when that was last looked at.
    pub(super) noted: Position,
    /// The last pass over the rings was ended early, for what it gathered to be written.
    pub(super) has_more: bool,
    pub(super) asked_to_stop: Option<End>,
    /// Losses but for those that the programs count, when the log was last told of losses.
    pub(super) told_elsewhere: u64,
}

impl Daemon {
    /// Records until a signal, the end of `command`, or of `duration`.
    pub(super) fn record(
        &mut self,
        mut command: Option<Child>,
        duration: Option<Duration>,
    ) -> Result<End> {
        // Not before the command has started, which would inherit it.
        self.boost_priority();
        let deadline = duration.map(|duration| Instant::now() + duration);
        let mut idle_passes = 0;
        let mut identities_due = Instant::now() + IDENTITY_INTERVAL;
        loop {
            let fill = self.engine.fill_per_mille();
            let frames = self.pass(monotonic_ns());
            self.operations_without_result(false);
            self.commit();
            let left = self.engine.fill_per_mille();
            let syncer = self.journal.sync_thread();
            self.pressure.note(frames, fill, left, syncer);
            self.show();
            idle_passes = if frames > 0 { 0 } else { idle_passes + 1 };
            let awake = idle_passes < IDLE_PASSES;
            self.wait(awake, deadline)?;
            for signal in self.signals.pending() {
                if let Some(end) = self.signal(signal, &mut command)? {
                    return Ok(end);
                }
            }
            self.answer_clients();
            if let Some(end) = self.asked_to_stop.take() {
                self.end_command(&mut command);
                return Ok(end);
            }
            self.answer_scrapes();
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                self.end_command(&mut command);
                return Ok(End {
                    status: 0,
                    sender: None,
                    keeps: false,
                });
            }
            if Instant::now() >= identities_due {
                identities_due = Instant::now() + IDENTITY_INTERVAL;
                self.recorder.refresh();
                self.count_kernel_losses();
                self.say_losses();
                self.refresh_identities();
                self.engine.tidy();
            }
        }
    }

    /// `priority_boost`: a daemon that is not run has its rings overflow.
    pub(super) fn boost_priority(&mut self) {
        let boost = self.config.priority_boost;
        let nice = nice(&self.config, self.started_nice);
        if let Err(error) = self.pressure.rest_at(nice) {
            say!("tarsier: priority_boost = {boost}: {error}");
        }
    }

    /// Reads what is in the rings.
    pub(super) fn drain(&mut self) {
        let now_ns = monotonic_ns();
        self.pass(now_ns);
        while self.has_more {
            self.commit();
            self.pass(now_ns);
        }
    }

    /// Reads every ring once: what was made until `now_ns`, or as much as is to be written at a time, or as is read in
    /// [`PASS_NS`]. How many frames there were.
    fn pass(&mut self, now_ns: u64) -> usize {
        let handover = self.engine.handover();
        let ring_bytes = self.engine.stream().map_or(0, |stream| stream.ring_bytes());
        let mut handing = Handing::new(handover, ring_bytes);
        let (mut events, records) = self.read_kernel_records(&mut handing);
        let Daemon {
            engine,
            recorder,
            journal,
            plugins,
            live,
            totals,
            lines,
            oldest_ns,
            ..
        } = self;
        let mut is_urgent = false;
        let mut batch_ns = monotonic_ns();
        let until_ns = batch_ns + PASS_NS;
        let (mut read, mut is_cut) = (0_u32, false);
        let frames = engine.drain(now_ns, |cpu, end, frame| {
            oldest_ns.get_or_insert_with(|| capture::frame_time(frame));
            let outcome = recorder.frame(cpu, frame, lines, live.as_mut());
            is_urgent |= matches!(outcome, Ok(Outcome::Urgent));
            match outcome {
                Ok(Outcome::Recorded | Outcome::Urgent) => {
                    totals.recorded += 1;
                    events += 1;
                }
                Ok(Outcome::Dropped | Outcome::Excluded) => totals.dropped += 1,
                Ok(Outcome::Part) => {}
                Err(error) => {
                    totals.malformed += 1;
                    say!("tarsier: a frame from CPU {cpu} is malformed: {error}");
                }
            }
            handing.read(cpu, end, frame, lines.len());
            if lines.len() >= BATCH_BYTES {
                recorder.costs.share(monotonic_ns() - batch_ns);
                hand_over(journal, plugins, &mut handing, lines, events);
                events = 0;
                journal.write_piece();
                if std::mem::take(&mut is_urgent) {
                    // The error is among the actions.
                    let _ = journal.hurry();
                }
                batch_ns = monotonic_ns();
            }
            read += 1;
            is_cut = handing.is_full() || read % FRAMES_PER_LOOK == 0 && monotonic_ns() >= until_ns;
            !is_cut
        });
        if frames > 0 {
            recorder.costs.share(monotonic_ns() - batch_ns);
        }
        hand_over(journal, plugins, &mut handing, lines, events);
        if is_urgent {
            let _ = journal.hurry();
        }
        self.has_more = is_cut;
        self.give_back(handing);
        frames + records
    }

    /// Reads records of the kernel's audit. Where it is the engine they stay among the lines, else they go to the log
    /// at once. Events among the lines, and records of the engine.
    fn read_kernel_records(&mut self, handing: &mut Handing) -> (u32, usize) {
        let Daemon {
            generation,
            engine,
            recorder,
            journal,
            plugins,
            totals,
            lines,
            kernel,
            ..
        } = self;
        let mut events = 0;
        let mut records = 0;
        if let Some(kernel) = kernel {
            let filter = (!engine.is_kernel()).then_some(&**generation);
            let received = kernel.received;
            events += kernel.drain(filter, &mut recorder.encoder, lines);
            if engine.is_kernel() {
                totals.recorded += u64::from(events);
                records = (kernel.received - received) as usize;
            }
        }
        if !engine.is_kernel() && !lines.is_empty() {
            totals.others_lost += log(journal, plugins, lines, events);
            handing.note_other(journal.taken());
            lines.clear();
            events = 0;
        }
        (events, records)
    }

    /// Records io_uring operations whose result does not come: they succeed in silence, or at the
    /// end of the recording are still under way. Those whose result was lost have been counted.
    pub(super) fn operations_without_result(&mut self, at_end: bool) {
        if !at_end && !self.recorder.operations.is_due() {
            return;
        }
        if at_end || self.recorder.operations.has_orphans() {
            let in_flight = self.engine.in_flight();
            self.recorder.operations.keep(&in_flight);
        }
        let mut lines = std::mem::take(&mut self.lines);
        let recorded = self.recorder.overdue(at_end, &mut lines);
        if recorded > 0 {
            self.totals.recorded += recorded;
            log(
                &mut self.journal,
                &mut self.plugins,
                &lines,
                recorded as u32,
            );
            self.note_other();
            lines.clear();
        }
        self.lines = lines;
    }

    /// Writes what was gathered, and does what the journal asks for.
    pub(super) fn commit(&mut self) {
        // The error is among the actions.
        let _ = self.journal.commit();
        self.settle();
        self.note_durability();
        self.pass_on();
        let actions = self.journal.take_actions();
        for action in actions.iter().chain(&self.plugins.take_actions()) {
            self.administrator.tell(action);
        }
    }

    /// Notes what was written and what became durable since the last commit.
    fn note_durability(&mut self) {
        let written = self.journal.written();
        let events = written.events - self.noted.events;
        let oldest_ns = self.oldest_ns.take_if(|_| events > 0);
        if let Some(oldest_ns) = oldest_ns.filter(|_| self.config.write_logs) {
            self.durability.written(written, events, oldest_ns);
        }
        self.noted = written;
        for synced in self.journal.take_synced() {
            self.durability.durable(synced.upto, synced.at_ns);
        }
    }

    fn show(&mut self) {
        let Daemon {
            live,
            engine,
            totals,
            ..
        } = self;
        let Some(live) = live else { return };
        live.show(|| {
            let lost = engine.counters().lost_total();
            let fill = f64::from(engine.fill_per_mille()) / 10.0;
            format!(
                "{} events, {lost} lost, fullest ring {fill:.1} %",
                totals.recorded
            )
        });
    }

    /// Waits for something to do: while awake at most the poll interval, else until woken.
    fn wait(&mut self, awake: bool, deadline: Option<Instant>) -> Result<()> {
        self.engine.set_awake(awake);
        let has_more = self.kernel.as_ref().is_some_and(KernelRecords::has_more);
        if has_more || self.has_more || !awake && !self.engine.is_drained() {
            self.engine.set_awake(true);
            return Ok(());
        }
        let mut longest = match (awake, self.promises_durability()) {
            _ if self.engine.fill_per_mille() >= BUSY_PER_MILLE => Duration::ZERO,
            (true, true) => DURABLE_POLL_INTERVAL,
            (true, false) => POLL_INTERVAL,
            (false, _) => IDENTITY_INTERVAL,
        };
        if let Some(due) = self.plugins.due_in() {
            longest = longest.min(due);
        }
        if let Some(deadline) = deadline {
            longest = longest.min(deadline.saturating_duration_since(Instant::now()));
        }
        let doorbell = self.engine.doorbell()?.into_iter();
        let mut fds: Vec<PollFd<'_>> = doorbell
            .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
            .collect();
        self.server.poll_fds(&mut fds);
        fds.extend(
            self.signals
                .fds()
                .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)),
        );
        if let Some(metrics) = &self.metrics {
            metrics.poll_fds(&mut fds);
        }
        self.plugins.poll_fds(&mut fds);
        let synced = self.journal.sync_fd();
        let synced = synced.filter(|_| self.plugins.is_waiting());
        fds.extend(synced.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
        if let Some(kernel) = &mut self.kernel {
            fds.push(PollFd::from_borrowed_fd(kernel.fd(), PollFlags::IN));
        }
        let timeout = Timespec {
            tv_sec: longest.as_secs() as i64,
            tv_nsec: longest.subsec_nanos().into(),
        };
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error).context("poll"),
        }
        drop(fds);
        self.engine.quiet_doorbell();
        self.engine.set_awake(true);
        Ok(())
    }

    fn answer_scrapes(&mut self) {
        if let Some(mut metrics) = self.metrics.take() {
            metrics.serve(|| self.status());
            self.metrics = Some(metrics);
        }
    }

    /// Follows the configuration to another address; where it cannot listen, that is said.
    pub(super) fn open_metrics(&mut self, config: &Config) {
        let now = self.metrics.as_ref().map(Metrics::address);
        if now == config.metrics.as_ref() {
            return;
        }
        self.metrics = None;
        match config.metrics.as_ref().map(Metrics::start).transpose() {
            Ok(metrics) => self.metrics = metrics,
            Err(error) => say!("tarsier: {error:#}"),
        }
    }

    fn signal(&mut self, signal: i32, command: &mut Option<Child>) -> Result<Option<End>> {
        match signal {
            SIGTERM | SIGINT => {
                let sender = self.sender();
                self.end_command(command);
                return Ok(Some(End {
                    status: 0,
                    sender: Some(sender),
                    keeps: false,
                }));
            }
            SIGHUP => self.reload(),
            SIGUSR1 => self.rotate(),
            SIGUSR2 => self.resume(),
            SIGCHLD => {
                self.administrator.reap();
                self.plugins.child_ended();
                if let Some(child) = command {
                    if let Some(status) = child.try_wait().context("waiting for the command")? {
                        *command = None;
                        return Ok(Some(End {
                            status: child::code(status),
                            sender: None,
                            keeps: false,
                        }));
                    }
                }
            }
            _ => {}
        }
        Ok(None)
    }

    pub(super) fn sender(&mut self) -> Who {
        let sender = self.kernel.as_mut().and_then(KernelRecords::signal_sender);
        match sender {
            Some((auid, pid)) if pid != 0 => Who::sender(auid, pid),
            _ => Who::this_process(),
        }
    }

    /// A command that outlives the recording is told to end, and waited for.
    fn end_command(&mut self, command: &mut Option<Child>) {
        if let Some(mut child) = command.take() {
            if let Some(pid) = rustix::process::Pid::from_raw(child.id() as i32) {
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
            }
            let _ = child.wait();
        }
    }

    pub(super) fn say(&mut self, action: &Action<'_>) {
        let stamp = self.stamp();
        let mut out = std::mem::take(&mut self.lines);
        daemon_records::action(&mut self.recorder.encoder, &mut out, stamp, action);
        self.log_other(&out, 1);
        out.clear();
        self.lines = out;
    }

    pub(super) fn say_done(&mut self, kind: RecordType, op: &str, who: Who, is_success: bool) {
        self.say(&Action {
            kind,
            op,
            who,
            extra: &[],
            is_success,
        });
    }

    fn rotate(&mut self) {
        let who = self.sender();
        let rotated = self.journal.rotate();
        if let Err(error) = &rotated {
            say!("tarsier: {error}");
        }
        self.say_done(
            RecordType::DAEMON_ROTATE,
            "rotate-logs",
            who,
            rotated.is_ok(),
        );
    }

    fn resume(&mut self) {
        let who = self.sender();
        self.plugins.resume();
        let resumed = self.journal.resume();
        if let Err(error) = &resumed {
            say!("tarsier: {error}");
        }
        self.say_done(
            RecordType::DAEMON_RESUME,
            "resume-logging",
            who,
            resumed.is_ok(),
        );
    }

    /// The kernel's count is asked for now and then: it costs a request.
    pub(super) fn count_kernel_losses(&mut self) {
        if let (Engine::Kernel, Some(kernel)) = (&self.engine, &mut self.kernel) {
            kernel.count_lost();
        }
    }
}

/// Gives the lines of events of a pass to the log and to the plugins.
fn hand_over(
    journal: &mut Journal,
    plugins: &mut Dispatcher,
    handing: &mut Handing,
    lines: &mut Vec<u8>,
    events: u32,
) {
    let start = journal.taken();
    let lost = match lines.is_empty() {
        true => 0,
        false => log(journal, plugins, lines, events),
    };
    handing.handed(start, lost > 0);
    lines.clear();
}
