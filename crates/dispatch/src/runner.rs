//! One plugin: its program or socket, its queue, and what went wrong with it.

use std::io;
use std::os::fd::BorrowedFd;

use conf::{OverflowAction, Plugins};
use journal::{Action, Runlevel, Severity};
use rustix::event::{PollFd, PollFlags};
use rustix::net::SendFlags;
use rustix::process::Signal;

use crate::frame::Events;
use crate::process::{Ending, Process};
use crate::queue::Queue;
use crate::socket::Socket;
use conf::plugins::{Kind, Plugin};

/// Warnings about a full queue, until it is configured anew: `QUEUE_FULL_LIMIT` of `audisp/queue.c`.
const WARNINGS_MAX: u8 = 5;

enum Outlet {
    /// Not started, or waiting for its predecessor's end.
    Closed,
    Program(Process),
    Socket(Socket),
}

pub(crate) struct Runner {
    pub(crate) plugin: Plugin,
    outlet: Outlet,
    queue: Queue,
    pub(crate) restarts: u32,
    /// It could not be started, or has ended too often.
    pub(crate) is_given_up: bool,
    /// `overflow_action = SUSPEND` happened.
    is_suspended: bool,
    /// SINGLE or HALT was asked for.
    is_runlevel_changed: bool,
    warnings: u8,
    /// Records that it was sent, and those left out.
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

    fn say(&self, actions: &mut Vec<Action>, severity: Severity, text: String) {
        let text = format!("plugin {}: {text}", self.plugin.name);
        actions.push(Action::Say { severity, text });
    }

    /// Starts it, if it is to run and does not.
    pub(crate) fn start(&mut self, nice: i32, actions: &mut Vec<Action>) {
        if self.is_given_up || self.is_running() {
            return;
        }
        let (path, started) = match &self.plugin.kind {
            Kind::Program { path, args } => {
                let process = Process::start(path, args, nice);
                (path, process.map(Outlet::Program))
            }
            Kind::Socket { path, mode } => (path, Socket::bind(path, *mode).map(Outlet::Socket)),
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

    /// Queues events. What does not fit is counted and answered as `settings` say.
    pub(crate) fn push(&mut self, events: &Events, settings: &Plugins, actions: &mut Vec<Action>) {
        // As auditd: without a reader there is nobody who misses anything.
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

    /// `records` found no room.
    pub(crate) fn overflow(
        &mut self,
        records: usize,
        settings: &Plugins,
        actions: &mut Vec<Action>,
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
                    WARNINGS_MAX => "; this is not said again before a reload",
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
        if !self.is_runlevel_changed {
            self.is_runlevel_changed = true;
            let cause = format!("plugin {}: {full}", self.plugin.name);
            actions.push(Action::ChangeRunlevel { runlevel, cause });
        }
    }

    /// Sends what can be sent without waiting. A program that does not read any more is given back.
    pub(crate) fn pump(&mut self, settings: &Plugins, actions: &mut Vec<Action>) -> Option<Ending> {
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
            self.queue.clear();
            return None;
        }
        self.ended(settings, actions)
    }

    /// Whether its program has ended by itself.
    pub(crate) fn has_ended(&mut self) -> bool {
        match &mut self.outlet {
            Outlet::Program(process) => process.has_ended(),
            _ => false,
        }
    }

    /// Its program has ended, or does not read any more.
    pub(crate) fn ended(
        &mut self,
        settings: &Plugins,
        actions: &mut Vec<Action>,
    ) -> Option<Ending> {
        let ending = self.close();
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

    /// Ends its standard input, or removes its socket.
    pub(crate) fn close(&mut self) -> Option<Ending> {
        match std::mem::replace(&mut self.outlet, Outlet::Closed) {
            Outlet::Program(process) => Some(process.end(&self.plugin.name)),
            Outlet::Socket(_) | Outlet::Closed => None,
        }
    }

    /// The configuration was read anew, and this plugin's is as before.
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

    /// After `overflow_action = SUSPEND`.
    pub(crate) fn resume(&mut self) {
        self.is_suspended = false;
    }

    /// Whether everything that it was given has been sent.
    pub(crate) fn is_drained(&self) -> bool {
        self.queue.is_empty() || !self.is_running()
    }

    /// Forgets what it has not been sent; how many records those were.
    pub(crate) fn give_up_rest(&mut self) -> usize {
        let count = self.queue.clear();
        self.lost += count as u64;
        count
    }

    pub(crate) fn poll_fds<'s>(&'s self, fds: &mut Vec<PollFd<'s>>) {
        let out = match self.queue.is_empty() {
            true => PollFlags::empty(),
            false => PollFlags::OUT,
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
