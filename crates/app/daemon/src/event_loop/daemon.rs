//! The event loop: one thread that does what poll(2) reports as ready.

use crate::account::daemon_records::{LoggedAction, Who};
use crate::account::losses;
use crate::control::asker::Asker;
use crate::control::lock;
use crate::control::metrics::{self, Metrics};
use crate::control::status;
use crate::control::{Control, ControlSocket};
use crate::event_loop::child;
use crate::event_loop::recording::Recording;
use crate::event_loop::signals::{Received, Sender, Signals};
use crate::handover::takeover;
use crate::start::instance::Instance;
use crate::stderr::{reasons, say};
use anyhow::{Context, Result};
use privsep::spawn::Child;
use record::RecordType;
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use signal_hook::consts::{SIGCHLD, SIGCONT, SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Longest time for which an event waits in a ring while the daemon is awake.
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// Longest such time with `flush = DATA` or `SYNC`, where events should be durable soon.
const DURABLE_POLL_INTERVAL: Duration = Duration::from_millis(5);
/// Passes without an event after which the daemon sleeps until it is woken.
const IDLE_PASSES: u32 = 3;
/// Fill of a ring, in parts per thousand, from which the daemon goes on reading without a pause:
/// what came while it wrote is a large enough batch.
const BUSY_PER_MILLE: u32 = 50;
/// Interval at which the paths that rules name are checked again, and losses are reported.
const TIDY_INTERVAL: Duration = Duration::from_secs(1);

/// End of the recording: the exit status, and the process that asked for it.
pub(crate) struct End {
    pub(crate) status: u8,
    pub(crate) sender: Option<Who>,
    /// Whether pinned programs stay armed for the next daemon.
    pub(crate) keeps: bool,
}

impl End {
    fn with_status(status: u8) -> End {
        End {
            status,
            sender: None,
            keeps: false,
        }
    }
}

/// A daemon with everything armed.
pub(crate) struct Daemon {
    recording: Recording,
    control: Control,
    server: ControlSocket,
    metrics: Option<Metrics>,
    signals: Signals,
    instance: Instance,
}

/// The sources that have something for the daemon.
struct Ready {
    signals: bool,
    clients: bool,
}

impl Ready {
    /// All have to be asked.
    const ALL: Ready = Ready {
        signals: true,
        clients: true,
    };
}

impl Daemon {
    /// Takes a recording that is already armed, and the sources of requests and signals.
    pub(crate) fn new(
        recording: Recording,
        server: ControlSocket,
        signals: Signals,
        instance: Instance,
    ) -> Daemon {
        let control = Control::new(&recording);
        let mut daemon = Daemon {
            recording,
            control,
            server,
            metrics: None,
            signals,
            instance,
        };
        daemon.follow_metrics();
        daemon
    }

    /// Records until a signal or a request to stop, or until `command` ends or `duration` is over.
    pub(crate) fn record(
        &mut self,
        mut command: Option<Child>,
        duration: Option<Duration>,
    ) -> Result<End> {
        // Only after the command has started, since it would inherit the priority.
        self.recording.boost_priority();

        let deadline = duration.map(|duration| Instant::now() + duration);
        let mut idle_passes = 0;
        let mut tidy_due = Instant::now() + TIDY_INTERVAL;

        // Armed, and everything that was started is there: a service that needs the log may start now.
        self.recording.notify_ready();
        #[cfg(debug_assertions)]
        crate::pipeline::planted::make();
        loop {
            // The rings first: whatever the rest of a turn takes, they have just been emptied.
            let frames = self.recording.pass();
            idle_passes = if frames > 0 { 0 } else { idle_passes + 1 };
            let awake = idle_passes < IDLE_PASSES;
            let ready = self.wait(awake, deadline)?;
            let is_tidy_due = Instant::now() >= tidy_due;

            // Signals before clients: what an administrator orders is not held up by what others ask.
            let signals = ready.signals.then(|| self.signals.pending());
            for signal in signals.into_iter().flatten() {
                if let Some(end) = self.signal(signal, &mut command)? {
                    return Ok(end);
                }
            }

            // Clients that do not read their answers are dropped in time.
            if ready.clients || is_tidy_due {
                if let Some(end) = self.answer_clients() {
                    end_command(&mut command);
                    return Ok(end);
                }
                if let Some(metrics) = &mut self.metrics {
                    metrics.serve(|| {
                        let makers = status::exported_makers(&mut self.recording);
                        metrics::text(&status::of(&self.recording), &makers)
                    });
                }
            }

            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                end_command(&mut command);
                return Ok(End::with_status(0));
            }

            let Daemon {
                recording,
                control,
                server,
                ..
            } = self;
            // Classes in doubt are due before the next second.
            recording.look_again();
            control.follow_list(is_tidy_due, recording, server);
            if is_tidy_due {
                tidy_due = Instant::now() + TIDY_INTERVAL;
                control.follow_lock(recording, server);
                recording.tidy(&mut |recording| control.serve(server, recording));
            }
        }
    }

    /// Answers all complete requests. Returns the end of recording, if a request asked for it,
    /// after the answer was queued.
    fn answer_clients(&mut self) -> Option<End> {
        // Not more at a time, so that clients cannot keep the rings from being read.
        for _ in 0..ControlSocket::CLIENTS_MAX {
            let Some(asked) = self.server.request() else {
                break;
            };
            let text = self
                .control
                .answer(&asked, &mut self.recording, &mut self.server);
            self.server.answer(asked.client, text);
        }

        self.server.flush();
        let stop = self.control.take_stop()?;
        Some(End {
            status: 0,
            sender: Some(stop.who),
            keeps: stop.keeps,
        })
    }

    /// Waits for something to do: at most the poll interval while awake, otherwise until woken. Returns who has
    /// something for the daemon.
    fn wait(&mut self, awake: bool, deadline: Option<Instant>) -> Result<Ready> {
        let pipeline = &mut self.recording.pipeline;
        let is_asked = self.server.has_requests();
        // The programs ring from here on, so that what comes after this look wakes poll(2) below.
        if pipeline.must_not_wait(awake) || is_asked {
            pipeline.woken();
            return Ok(Ready::ALL);
        }

        // A busy ring is read again at once; otherwise a short rest lets a batch gather, for which one write(2) is
        // enough.
        let interval = match (awake, pipeline.output().promises_durability()) {
            _ if pipeline.engine().fill_per_mille() >= BUSY_PER_MILLE => Duration::ZERO,
            (true, true) => DURABLE_POLL_INTERVAL,
            (true, false) => POLL_INTERVAL,
            (false, _) => TIDY_INTERVAL,
        };
        let until_deadline =
            deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let due = [
            pipeline.due_in(),
            self.recording.integrity.due_in(),
            until_deadline,
        ];
        let longest = due.into_iter().flatten().fold(interval, Duration::min);
        let timeout = Timespec {
            tv_sec: longest.as_secs() as i64,
            tv_nsec: longest.subsec_nanos().into(),
        };

        let readable = |fd| PollFd::from_borrowed_fd(fd, PollFlags::IN);
        let mut fds: Vec<PollFd<'_>> = self.signals.fds().map(readable).collect();
        let signals = 0..fds.len();
        self.server.poll_fds(&mut fds);
        if let Some(metrics) = &self.metrics {
            metrics.poll_fds(&mut fds);
        }
        let clients = signals.end..fds.len();
        pipeline.poll_fds(&mut fds);
        let ready = match poll(&mut fds, Some(&timeout)) {
            Ok(_) => {
                let any = |of: Range<usize>| fds[of].iter().any(|fd| !fd.revents().is_empty());
                Ready {
                    signals: any(signals),
                    clients: any(clients),
                }
            }
            // A handler has run; which descriptors are ready is not known.
            Err(rustix::io::Errno::INTR) => Ready::ALL,
            Err(error) => return Err(error).context("poll"),
        };
        drop(fds);

        // The time in poll(2) was a rest, not a pause in which the rings were neglected.
        pipeline.rested();
        Ok(ready)
    }

    fn signal(&mut self, received: Received, command: &mut Option<Child>) -> Result<Option<End>> {
        let sender = received.sender;
        match received.signal {
            SIGTERM | SIGINT => {
                let sender = Some(self.recording.pipeline.sender(sender));
                end_command(command);
                return Ok(Some(End {
                    sender,
                    ..End::with_status(0)
                }));
            }
            SIGHUP => self.reload(sender),
            SIGUSR1 => self.rotate(sender),
            SIGUSR2 => self.resume(sender),
            // Nobody can catch SIGSTOP, but SIGCONT shows that the daemon may have been stopped.
            SIGCONT => {
                let Recording {
                    integrity,
                    pipeline,
                    ..
                } = &mut self.recording;
                integrity.continued(pipeline);
            }
            SIGCHLD => {
                self.recording.child_ended();
                if let Some(child) = command {
                    if let Some(status) = child.try_wait().context("waiting for the command")? {
                        *command = None;
                        return Ok(Some(End::with_status(child::code(status))));
                    }
                }
            }
            _ => {}
        }

        Ok(None)
    }

    /// Reloads configuration and rules. If anything is wrong, the old ones stay in force.
    fn reload(&mut self, sender: Option<Sender>) {
        let recording = &mut self.recording;
        recording.service.reloading();
        let who = recording.pipeline.sender(sender);
        let reloaded = recording.reload_config(who);
        // Rules are planned with the settings, so the configuration comes first; if it is wrong, the rules stay
        // too.
        let is_refused = matches!(reloaded, Ok(true));

        let mut outcome = reloaded.map(drop);
        if outcome.is_ok() {
            let lookups = Arc::clone(recording.pipeline.lookups());
            let by = Asker::of(who, |pid| lookups.executable(pid));
            if is_refused {
                lock::settings_refused(recording, &by);
            }
            outcome = self.control.reload_rules(&by, recording, &mut self.server);
            self.follow_metrics();
            self.recording.boost_priority();
        }

        if let Err(error) = &outcome {
            say!(
                "tarsier: reload failed, what was in force stays: {}",
                reasons(error)
            );
        }

        // Logged whether it succeeded or not: the digest is that of the rules which are in force now.
        let digest = self.recording.rules_in_force.digest.as_str();
        self.recording.pipeline.log_action(&LoggedAction {
            kind: RecordType::DAEMON_CONFIG,
            op: "reconfigure",
            who,
            extra: &[("rules_digest", digest)],
            is_success: outcome.is_ok(),
        });
        self.recording.notify_ready();
    }

    /// Listens for scrapes at the configured address; prints an error if that fails.
    fn follow_metrics(&mut self) {
        let wanted = self.recording.settings.config.metrics.as_ref();
        if self.metrics.as_ref().map(Metrics::address) == wanted {
            return;
        }
        // The old listener releases its address first.
        self.metrics = None;
        match wanted.map(Metrics::start).transpose() {
            Ok(metrics) => self.metrics = metrics,
            Err(error) => say!("tarsier: {}", reasons(&error)),
        }
    }

    fn rotate(&mut self, sender: Option<Sender>) {
        let pipeline = &mut self.recording.pipeline;
        let who = pipeline.sender(sender);
        let rotated = pipeline.output_mut().rotate();
        if let Err(error) = &rotated {
            say!("tarsier: {error}");
        }

        pipeline.log_outcome(
            RecordType::DAEMON_ROTATE,
            "rotate-logs",
            who,
            rotated.is_ok(),
        );
    }

    fn resume(&mut self, sender: Option<Sender>) {
        let pipeline = &mut self.recording.pipeline;
        let who = pipeline.sender(sender);
        let resumed = pipeline.output_mut().resume();
        if let Err(error) = &resumed {
            say!("tarsier: {error}");
        }

        pipeline.log_outcome(
            RecordType::DAEMON_RESUME,
            "resume-logging",
            who,
            resumed.is_ok(),
        );
    }

    /// Disarms unless `keeps`, reads what is left, reports losses, and restores the kernel's audit
    /// state.
    ///
    /// # Errors
    /// The kernel's audit state could not be restored.
    pub(crate) fn stop(self, sender: Option<Who>, keeps: bool) -> Result<()> {
        let Daemon {
            mut recording,
            instance,
            ..
        } = self;
        recording.service.stopping();
        recording.run_first();
        let pipeline = &mut recording.pipeline;

        // Disarmed before the rings are read, so that what is read is all there is.
        if !keeps {
            pipeline.disarm();
        }
        // Programs still running on other CPUs finish within this pass or the next.
        for _ in 0..2 {
            std::thread::yield_now();
            pipeline.drain_at_end(keeps);
        }
        pipeline.operations_without_result(true);

        // Losses are complete now, and stand before DAEMON_END in the log.
        pipeline.count_kernel_losses();
        if keeps {
            recording.losses.log(pipeline);
        }
        let lost = losses::by_cause(pipeline, &pipeline.engine().counters());
        let who = sender.unwrap_or_else(Who::this_process);
        recording.losses.log_all(who, pipeline);
        pipeline.log_outcome(RecordType::DAEMON_END, "terminate", who, true);

        // What arrived over the audit socket until its release is logged behind DAEMON_END, rather than lost.
        let restored = pipeline.release_kernel();
        pipeline.commit();

        // The note for the next daemon names a capture only if one stays.
        match pipeline.engine().pins() {
            Some(pins) if keeps => pins.leave(true),
            _ => takeover::note(instance.run_dir(), None)?,
        }
        close(recording, lost);
        restored
    }
}

/// Closes the log and prints a summary. Records of Tarsier itself and of other sources that did not
/// fit on the disk count as lost.
fn close(recording: Recording, mut lost: BTreeMap<String, u64>) {
    let pipeline = recording.pipeline;
    let (log, totals) = (pipeline.output().log_text(), pipeline.totals());
    // How much the log could not write is known only when it is closed.
    let lost_by_log = pipeline.close();
    lost.insert("log".to_owned(), lost_by_log);
    say!(
        "tarsier: {} events recorded, {} candidates dropped, {} lost; {log}",
        totals.recorded.saturating_sub(lost_by_log),
        totals.dropped,
        lost.values().sum::<u64>(),
    );

    for (cause, count) in lost.iter().filter(|(_, count)| **count > 0) {
        say!("tarsier: lost {count}: {cause}");
    }
}

/// Terminates a command that is still running when recording ends, and waits for it.
fn end_command(command: &mut Option<Child>) {
    if let Some(mut child) = command.take() {
        child.signal(rustix::process::Signal::TERM);
        let _ = child.wait();
    }
}
