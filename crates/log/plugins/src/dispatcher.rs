//! All plugins, and the events that are not durable yet.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use conf::Plugins;
use journal::{OwnerAction, Severity};
use privsep::spawn::Launcher;
use rustix::event::{poll, PollFd, Timespec};

use crate::frame::Events;
use crate::process::Ending;
use crate::runner::Runner;
use conf::plugins::Plugin;

/// Limit of the bytes of events that wait until they are durable. Further events count as overflow.
pub const WAITING_BYTES_MAX: usize = 16 << 20;
/// Time that plugins get to read what is queued for them when the daemon ends.
const LAST_PATIENCE: Duration = Duration::from_secs(1);

/// Events that have not been released yet.
struct Waiting {
    /// Number of events that must be durable in the log before these are released.
    upto: u64,
    events: Events,
}

/// State of a plugin, as `tarsier status` shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginState {
    /// Name of the plugin's file.
    pub name: String,
    /// Whether its program runs, or its socket exists.
    pub is_running: bool,
    /// Number of records in its queue.
    pub queued: u64,
    /// Number of records sent to it.
    pub passed: u64,
    /// Number of records not sent because its queue was full, or because its program or the reader of its socket was gone
    /// while they waited.
    pub lost: u64,
    /// Number of restarts of its program since the last reload.
    pub restarts: u32,
}

/// Runs plugins and passes events on to them.
///
/// Events go [`push`](Self::push) → [`release`](Self::release) → the plugins' queues →
/// [`pump`](Self::pump). Call `pump` when one of [`poll_fds`](Self::poll_fds) is ready, when
/// [`due_in`](Self::due_in) has passed, and after `release`.
pub struct Dispatcher {
    launcher: Launcher,
    settings: Plugins,
    nice: i32,
    runners: Vec<Runner>,
    ending: Vec<Ending>,
    waiting: VecDeque<Waiting>,
    waiting_bytes: usize,
    actions: Vec<OwnerAction>,
}

impl Dispatcher {
    /// Starts `plugins` (see [`conf::plugins::load`]) through `launcher` with this nice value.
    /// Failures to start are among the [actions](Self::take_actions).
    pub fn start(
        launcher: Launcher,
        plugins: Vec<Plugin>,
        settings: &Plugins,
        nice: i32,
    ) -> Dispatcher {
        let mut dispatcher = Dispatcher {
            launcher,
            settings: settings.clone(),
            nice,
            runners: plugins.into_iter().map(Runner::new).collect(),
            ending: Vec::new(),
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            actions: Vec::new(),
        };

        dispatcher.start_runners();
        dispatcher
    }

    /// Starts plugins that should run but do not, unless their previous program is still running.
    fn start_runners(&mut self) {
        for runner in &mut self.runners {
            let name = &runner.plugin.name;
            // Two programs of one plugin must not run side by side.
            if !self.ending.iter().any(|ending| ending.name == *name) {
                runner.start(&self.launcher, self.nice, &mut self.actions);
            }
        }
    }

    /// Whether any plugin takes events.
    pub fn is_wanted(&self) -> bool {
        self.runners.iter().any(|runner| !runner.is_given_up)
    }

    /// Whether events wait until they are durable.
    pub fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Takes lines of whole events that were appended to the log. They may be released once `upto`
    /// events of the log are durable.
    pub fn push(&mut self, lines: &[u8], upto: u64) {
        if lines.is_empty() || !self.is_wanted() {
            return;
        }

        let events = Events::of(lines);
        // A log that stays behind must not fill the memory.
        if self.waiting_bytes + events.bytes() > WAITING_BYTES_MAX {
            for runner in &mut self.runners {
                runner.overflow(events.lines(), &self.settings, &mut self.actions);
            }
            return;
        }

        self.waiting_bytes += events.bytes();
        self.waiting.push_back(Waiting { upto, events });
    }

    /// Passes on the events that are durable, given the number of durable events in the log; all
    /// events if `durable` is `None`.
    pub fn release(&mut self, durable: Option<u64>) {
        let is_free = |waiting: &Waiting| durable.is_none_or(|durable| waiting.upto <= durable);
        while self.waiting.front().is_some_and(is_free) {
            let Some(Waiting { events, .. }) = self.waiting.pop_front() else {
                return;
            };
            self.waiting_bytes -= events.bytes();
            for runner in &mut self.runners {
                runner.push(&events, &self.settings, &mut self.actions);
                // Sent at once, so that a burst does not overflow a queue whose reader keeps up.
                let ending = runner.pump(&self.settings, &mut self.actions);
                self.ending.extend(ending);
            }
        }
    }

    /// Sends what can be sent, accepts readers of sockets, and restarts programs that have ended.
    pub fn pump(&mut self) {
        for runner in &mut self.runners {
            let ending = runner.pump(&self.settings, &mut self.actions);
            self.ending.extend(ending);
        }
        self.ending.retain_mut(|ending| !ending.has_ended());
        self.start_runners();
    }

    /// Handles SIGCHLD: finds programs that have ended.
    pub fn child_ended(&mut self) {
        for runner in &mut self.runners {
            if runner.has_ended() {
                // It is reaped already.
                drop(runner.ended(&self.settings, &mut self.actions));
            }
        }
        self.pump();
    }

    /// Adds the descriptors to poll.
    pub fn poll_fds<'s>(&'s self, fds: &mut Vec<PollFd<'s>>) {
        for runner in &self.runners {
            runner.poll_fds(fds);
        }
    }

    /// Time after which [`pump`](Self::pump) has something to do that no descriptor shows.
    pub fn due_in(&self) -> Option<Duration> {
        self.ending.iter().map(Ending::due_in).min()
    }

    /// Handles SIGHUP: unchanged plugins get SIGHUP; others are ended and started again.
    pub fn reload(&mut self, plugins: Vec<Plugin>, settings: &Plugins, nice: i32) {
        (self.settings, self.nice) = (settings.clone(), nice);
        let mut old = std::mem::take(&mut self.runners);
        for plugin in plugins {
            let same = old.iter().position(|runner| runner.plugin == plugin);
            self.runners.push(match same {
                Some(place) => {
                    let mut runner = old.swap_remove(place);
                    runner.reload();
                    runner
                }
                None => Runner::new(plugin),
            });
        }

        // What is left is not configured any more, or has changed and is started again.
        for mut runner in old {
            self.ending.extend(runner.close());
        }
        self.pump();
    }

    /// Handles SIGUSR2: resumes plugins that `overflow_action = SUSPEND` has stopped.
    pub fn resume(&mut self) {
        for runner in &mut self.runners {
            runner.resume();
        }
    }

    /// Returns the messages and actions for the owner, oldest first, and empties the list.
    pub fn take_actions(&mut self) -> Vec<OwnerAction> {
        std::mem::take(&mut self.actions)
    }

    /// The state of every plugin.
    pub fn states(&self) -> Vec<PluginState> {
        let state = |runner: &Runner| PluginState {
            name: runner.plugin.name.clone(),
            is_running: runner.is_running(),
            queued: runner.queued() as u64,
            passed: runner.passed,
            lost: runner.lost,
            restarts: runner.restarts,
        };
        self.runners.iter().map(state).collect()
    }

    /// Ends all plugins at the end of the daemon: passes events on for a second at most, then ends
    /// the programs, each within two more seconds. Returns the messages for the owner.
    pub fn stop(mut self) -> Vec<OwnerAction> {
        // At the end, events no longer wait for the disk.
        self.release(None);
        let deadline = Instant::now() + LAST_PATIENCE;
        loop {
            self.pump();
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() || self.runners.iter().all(Runner::is_drained) {
                break;
            }
            let mut fds = Vec::new();
            self.poll_fds(&mut fds);
            wait(&mut fds, left.min(self.due_in().unwrap_or(left)));
        }

        for mut runner in std::mem::take(&mut self.runners) {
            self.ending.extend(runner.close());
            let rest = runner.give_up_rest();
            if rest > 0 {
                let name = &runner.plugin.name;
                let text = format!("plugin {name}: {rest} records were not taken before the end");
                let severity = Severity::Error;
                self.actions.push(OwnerAction::Message { severity, text });
            }
        }

        while let Some(due) = self.due_in() {
            let pidfds: Vec<_> = self.ending.iter().filter_map(Ending::pidfd).collect();
            let mut fds: Vec<_> = pidfds.iter().map(Ending::poll_fd).collect();
            wait(&mut fds, due);
            self.ending.retain_mut(|ending| !ending.has_ended());
        }

        self.actions
    }
}

fn wait(fds: &mut [PollFd<'_>], longest: Duration) {
    let timeout = Timespec {
        tv_sec: longest.as_secs() as i64,
        tv_nsec: longest.subsec_nanos().into(),
    };
    // EINTR is treated like readiness.
    let _ = poll(fds, Some(&timeout));
}
