//! `tarsier top`: a view of the live log, or of a log file, on the terminal.

mod draw;
mod events;
mod follow;
mod keys;
mod model;
#[cfg(test)]
mod tests;

use crate::ctl;
use crate::search_command::logs::{self, take_complete};
use anyhow::{bail, Result};
use cli::top::TopArgs;
use daemon::protocol::{socket_path, Request, Status};
use draw::Around;
use follow::Follower;
use model::{Action, Model};
use query::{Assembler, Dialect, Feed, TimeRange};
use ratatui::crossterm::event;
use ratatui::DefaultTerminal;
use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Time between looks at the log.
const TICK: Duration = Duration::from_secs(1);
/// Ticks between questions to the daemon.
const DAEMON_TICKS: u32 = 3;
/// Ticks without a line after which open events are taken for complete.
const QUIET_TICKS: u32 = 3;

/// The arguments with `-if`, which ausearch has, as clap knows it.
pub(crate) fn spelled_out(args: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut args: Vec<_> = args.collect();
    if args.get(1).is_some_and(|command| command == "top") {
        for word in args.iter_mut().skip(2).filter(|word| *word == "-if") {
            *word = "--input".into();
        }
    }
    args
}

/// Carries out `tarsier top`.
///
/// # Errors
/// There is no terminal, or the log cannot be read.
pub(crate) fn top(args: &TopArgs) -> Result<u8> {
    let defaults = logs::defaults(Dialect::Own)?;
    let path = args
        .input
        .clone()
        .unwrap_or_else(|| defaults.log_file.clone());
    let follower = Follower::open(&path, args.all || args.input.is_some())?;

    if !std::io::stdout().is_terminal() {
        bail!("top needs a terminal; `tarsier search` and `tarsier report` write text");
    }

    let mut top = Top {
        log: path.display().to_string(),
        follower,
        feed: Feed::default(),
        assembler: Assembler::new(Dialect::Own, defaults.timeout_s, TimeRange::default()),
        model: Model::new(events::EVENTS_MAX),
        daemon: String::new(),
        has_losses: false,
        quiet_ticks: 0,
    };

    let terminal = ratatui::try_init()?;
    let result = top.run(terminal, &args.run_dir);
    ratatui::restore();
    result?;
    Ok(0)
}

struct Top {
    log: String,
    follower: Follower,
    feed: Feed,
    assembler: Assembler,
    model: Model,
    daemon: String,
    has_losses: bool,
    quiet_ticks: u32,
}

impl Top {
    fn run(&mut self, mut terminal: DefaultTerminal, run_dir: &Path) -> Result<()> {
        let mut tick = 0_u32;
        let mut next = Instant::now();
        while !self.model.has_quit {
            if Instant::now() >= next {
                if tick.is_multiple_of(DAEMON_TICKS) {
                    self.ask_daemon(run_dir);
                }
                tick = tick.wrapping_add(1);
                let has_more = !self.model.is_paused && self.read()?;
                next = Instant::now() + if has_more { Duration::ZERO } else { TICK };
            }
            terminal.draw(|frame| self.draw(frame))?;
            self.keys(next)?;
        }

        Ok(())
    }

    fn draw(&self, frame: &mut ratatui::Frame<'_>) {
        let around = Around {
            log: &self.log,
            daemon: &self.daemon,
            has_losses: self.has_losses,
        };
        draw::draw(frame, &self.model, &around);
    }

    /// Answers keys until one changes the screen, or until `deadline`.
    fn keys(&mut self, deadline: Instant) -> Result<()> {
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if !event::poll(left)? {
                return Ok(());
            }
            let is_typing = self.model.is_typing;
            match keys::action(&event::read()?, is_typing) {
                Some(action) if self.model.act(action) || action == Action::Quit => return Ok(()),
                Some(_) => {}
                // The window has another size, or a key means nothing.
                None => return Ok(()),
            }
        }
    }

    /// Reads what was added to the log. Returns whether there is more at once.
    fn read(&mut self) -> Result<bool> {
        let mut lines = 0_u64;
        let (feed, assembler, model) = (&mut self.feed, &mut self.assembler, &mut self.model);
        let has_more = self.follower.read(|line| {
            lines += 1;
            feed.add(line, assembler);
            take_complete(assembler, |event| model.events.add(event));
        })?;

        self.quiet_ticks = if lines > 0 { 0 } else { self.quiet_ticks + 1 };
        if !has_more && (!self.follower.is_live() || self.quiet_ticks == QUIET_TICKS) {
            self.assembler.finish();
            take_complete(&mut self.assembler, |event| self.model.events.add(event));
        }

        // Rates of a log that is not written end with its last event.
        let now_ms = if self.follower.is_live() {
            now_ms().max(self.model.events.last_ms)
        } else {
            self.model.events.last_ms
        };
        self.model.refresh(now_ms);

        Ok(has_more)
    }

    fn ask_daemon(&mut self, run_dir: &Path) {
        let answer = ctl::ask(&socket_path(run_dir), &Request::Status);
        let status = answer
            .ok()
            .and_then(|text| serde_json::from_str::<Status>(&text).ok());
        (self.daemon, self.has_losses) = match status {
            Some(status) => said(&status),
            None => ("no daemon answers".to_owned(), false),
        };
    }
}

/// The daemon's losses, in a line.
fn said(status: &Status) -> (String, bool) {
    let lost: u64 = status.lost.values().sum();
    let causes: Vec<_> = status
        .lost
        .iter()
        .filter(|(_, count)| **count > 0)
        .map(|(cause, count)| format!("{cause} {count}"))
        .collect();
    let mut text = format!(
        "daemon: {} rules, {} events recorded, {lost} lost",
        status.rules, status.events_recorded
    );

    if lost > 0 {
        text.push_str(&format!(" ({})", causes.join(", ")));
    }

    (text, lost > 0)
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as u64)
}
