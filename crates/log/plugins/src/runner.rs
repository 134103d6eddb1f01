//! One plugin: its program or socket, its queue, and its failures.

use std::io;
use std::os::fd::BorrowedFd;

use conf::{OverflowAction, Plugins};
use journal::{OwnerAction, Runlevel, Severity};
use privsep::spawn::Launcher;
use rustix::event::{PollFd, PollFlags};
use rustix::net::SendFlags;
use rustix::process::Signal;

use crate::frame::Events;
use crate::process::{Ending, Process};
use crate::queue::Queue;
use crate::socket::Socket;
use conf::plugins::{Plugin, PluginKind};

/// Limit of warnings about a full queue until the next reload: `QUEUE_FULL_LIMIT` of
/// `audisp/queue.c`.
const WARNINGS_MAX: u8 = 5;

enum Outlet {
    /// Not started, or waiting for the previous program to end.
    Closed,
    Program(Process),
    Socket(Socket),
}

pub(crate) struct Runner {
    pub(crate) plugin: Plugin,
    outlet: Outlet,
    queue: Queue,
    pub(crate) restarts: u32,
    /// Whether it could not be started, or has ended too often.
    pub(crate) is_given_up: bool,
    /// Whether `overflow_action = SUSPEND` has stopped it.
    is_suspended: bool,
    /// Whether its overflow already requested SINGLE or HALT.
    is_runlevel_changed: bool,
    warnings: u8,
    /// Number of records that were sent to it, and of records left out.
    pub(crate) passed: u64,
    pub(crate) lost: u64,
}

impl Runner {
    pub(crate) fn new(plugin: Plugin) -> Runner {
        Runner {
            plugin,
            outlet: Outlet::Closed,
            queue: Queue::default(),
            restarts: 0,
            is_given_up: false,
            is_suspended: false,
            is_runlevel_changed: false,
            warnings: 0,
            passed: 0,
            lost: 0,
        }
    }

    pub(crate) fn is_running(&self) -> bool {
        !matches!(self.outlet, Outlet::Closed)
    }

    pub(crate) fn queued(&self) -> usize {
        self.queue.len()
    }

    fn say(&self, actions: &mut Vec<OwnerAction>, severity: Severity, text: String) {
        let text = format!("plugin {}: {text}", self.plugin.name);
        actions.push(OwnerAction::Message { severity, text });
    }

    /// Starts the plugin, unless it runs or was given up.
    pub(crate) fn start(&mut self, launcher: &Launcher, nice: i32, actions: &mut Vec<OwnerAction>) {
        if self.is_given_up || self.is_running() {
            return;
        }

        let (path, started) = match &self.plugin.kind {
            PluginKind::Program { path, args } => {
                let process = Process::start(launcher, path, args, nice);
                (path, process.map(Outlet::Program))
            }
            PluginKind::Socket { path, mode } => {
                (path, Socket::bind(path, *mode).map(Outlet::Socket))
            }
        };

        match started {
            Ok(outlet) => self.outlet = outlet,
            Err(error) => {
                self.is_given_up = true;
                let text = format!("{}: {error}; going on without it", path.display());
                self.say(actions, Severity::Error, text);
            }
        }
    }

    /// Queues events. Records that do not fit are counted, and answered as `settings` say.
    pub(crate) fn push(
        &mut self,
        events: &Events,
        settings: &Plugins,
        actions: &mut Vec<OwnerAction>,
    ) {
        // As in auditd, events without a reader do not count as lost.
        let has_reader =
            !matches!(&self.outlet, Outlet::Socket(socket) if socket.reader().is_none());
        if self.is_given_up || !has_reader {
            return;
        }
        if self.is_suspended {
            self.lost += events.lines() as u64;
            return;
        }

        let left_out = self.queue.push(events, settings.q_depth as usize);
        self.overflow(left_out, settings, actions);
    }

    /// Counts `records` that did not fit in the queue, and carries out `overflow_action`.
    pub(crate) fn overflow(
        &mut self,
        records: usize,
        settings: &Plugins,
        actions: &mut Vec<OwnerAction>,
    ) {
        if records == 0 || self.is_given_up {
            return;
        }

        self.lost += records as u64;
        let full = format!("its queue of {} records is full", settings.q_depth);
        let runlevel = match settings.overflow_action {
            OverflowAction::Ignore => return,
            OverflowAction::Syslog if self.warnings < WARNINGS_MAX => {
                self.warnings += 1;
                let last = match self.warnings {
                    WARNINGS_MAX => "; not reported again before a reload",
                    _ => "",
                };
                let text = format!("{full}: {} records left out so far{last}", self.lost);
                return self.say(actions, Severity::Error, text);
            }
            OverflowAction::Syslog => return,
            OverflowAction::Suspend if self.is_suspended => return,
            OverflowAction::Suspend => {
                self.is_suspended = true;
                let text = format!("{full}: it gets no more events before SIGUSR2 or a reload");
                return self.say(actions, Severity::Alert, text);
            }
            OverflowAction::Single => Runlevel::Single,
            OverflowAction::Halt => Runlevel::Halt,
        };

        // Asked for once: the machine is on its way down.
        if !self.is_runlevel_changed {
            self.is_runlevel_changed = true;
            let cause = format!("plugin {}: {full}", self.plugin.name);
            actions.push(OwnerAction::ChangeRunlevel { runlevel, cause });
        }
    }

    /// Sends what can be sent without blocking. Returns the program if it no longer reads.
    pub(crate) fn pump(
        &mut self,
        settings: &Plugins,
        actions: &mut Vec<OwnerAction>,
    ) -> Option<Ending> {
        if let Outlet::Socket(socket) = &mut self.outlet {
            if socket.accept() || socket.reader().is_none() {
                self.queue.clear();
            }
        }

        let input = match &self.outlet {
            Outlet::Closed => return None,
            Outlet::Program(process) => process.input(),
            Outlet::Socket(socket) => socket.reader()?,
        };
        let (lines, outcome) = self
            .queue
            .send(self.plugin.format, |bytes| send(input, bytes));
        self.passed += lines;
        if outcome.is_ok() {
            return None;
        }
        if let Outlet::Socket(socket) = &mut self.outlet {
            socket.forget_reader();
            self.lost += self.queue.clear() as u64;
            return None;
        }

        self.ended(settings, actions)
    }

    /// Whether the plugin's program has ended by itself.
    pub(crate) fn has_ended(&mut self) -> bool {
        match &mut self.outlet {
            Outlet::Program(process) => process.has_ended(),
            _ => false,
        }
    }

    /// Closes a program that has ended or no longer reads, and starts it again or gives it up.
    pub(crate) fn ended(
        &mut self,
        settings: &Plugins,
        actions: &mut Vec<OwnerAction>,
    ) -> Option<Ending> {
        let ending = self.close();
        // A line that was sent in part is sent again: its first half went down with the program.
        self.queue.start_over();
        self.restarts += 1;
        if self.restarts <= settings.max_restarts {
            let text = "its program has ended unexpectedly and is started again";
            self.say(actions, Severity::Error, text.to_owned());
            return ending;
        }

        self.is_given_up = true;
        self.lost += self.queue.clear() as u64;
        let max = settings.max_restarts;
        let text = format!(
            "its program has ended unexpectedly, more than max_restarts = {max} times: it gets no \
             more events before a reload"
        );
        self.say(actions, Severity::Alert, text);

        ending
    }

    /// Closes the program's standard input, or removes the socket.
    pub(crate) fn close(&mut self) -> Option<Ending> {
        match std::mem::replace(&mut self.outlet, Outlet::Closed) {
            Outlet::Program(process) => Some(process.end(&self.plugin.name)),
            Outlet::Socket(_) | Outlet::Closed => None,
        }
    }

    /// Handles a reload that left this plugin's configuration unchanged.
    pub(crate) fn reload(&mut self) {
        self.resume();
        self.restarts = 0;
        self.warnings = 0;
        self.is_given_up = false;
        self.is_runlevel_changed = false;
        if let Outlet::Program(process) = &self.outlet {
            process.signal(Signal::HUP);
        }
    }

    /// Resumes the plugin after `overflow_action = SUSPEND`.
    pub(crate) fn resume(&mut self) {
        self.is_suspended = false;
    }

    /// Whether everything in its queue has been sent.
    pub(crate) fn is_drained(&self) -> bool {
        self.queue.is_empty() || !self.is_running()
    }

    /// Discards what was not sent. Returns the number of records discarded.
    pub(crate) fn give_up_rest(&mut self) -> usize {
        let count = self.queue.clear();
        self.lost += count as u64;
        count
    }

    pub(crate) fn poll_fds<'s>(&'s self, fds: &mut Vec<PollFd<'s>>) {
        let out = if self.queue.is_empty() {
            PollFlags::empty()
        } else {
            PollFlags::OUT
        };

        match &self.outlet {
            Outlet::Closed => {}
            Outlet::Program(process) if !self.queue.is_empty() => {
                fds.push(PollFd::from_borrowed_fd(process.input(), out));
            }
            Outlet::Program(_) => {}
            Outlet::Socket(socket) => fds.push(match socket.reader() {
                Some(reader) => PollFd::from_borrowed_fd(reader, out | PollFlags::IN),
                None => PollFd::from_borrowed_fd(socket.listener(), PollFlags::IN),
            }),
        }
    }
}

fn send(to: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<usize> {
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    rustix::net::send(to, bytes, flags).map_err(io::Error::from)
}
