//! Decides when a batch is due, and waits for the log to grow.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::fs::inotify;

use crate::config::Config;
use crate::cursor::Cursor;
use crate::events::{Events, SETTLED};
use crate::filter::Filter;
use crate::position::Position;
use crate::spool::Files;

/// Time between two looks for urgent events.
const LOOK: Duration = Duration::from_millis(5);
/// Time to wait when there is nothing to send.
const IDLE: Duration = Duration::from_secs(1);
/// Bytes that are read of an event for its time.
const STAMP_BYTES: usize = 4096;

/// Decides when a batch is due.
pub(super) struct Pace {
    linger: Duration,
    filter: Filter,
    /// Time since which something waits.
    since: Option<Instant>,
    /// End of the log at the last look, and the time since which it is there.
    end: (Position, Instant),
    /// Position up to which urgent events were looked for.
    looked: Position,
}

impl Pace {
    pub(super) fn new(config: &Config) -> Pace {
        Pace {
            linger: config.linger,
            filter: Filter::new(config),
            since: None,
            end: (Position::default(), Instant::now()),
            looked: Position::default(),
        }
    }

    /// `None` if a batch is due; else how long to wait.
    pub(super) fn ready(
        &mut self,
        cursor: &Cursor,
        files: &Files,
        bytes: usize,
    ) -> Option<Duration> {
        let now = Instant::now();
        let end = super::end_of(files);
        if end != self.end.0 {
            self.end = (end, now);
        }
        if cursor.gap.is_none() && end == cursor.read {
            self.since = None;
            return Some(IDLE);
        }

        let since = *self.since.get_or_insert(now);
        let is_old_file = files.from(cursor.read.file.max(1)) != files.newest();
        let waiting = end.offset.saturating_sub(cursor.read.offset);
        if is_old_file || waiting >= bytes as u64 || now >= since + self.linger {
            return None;
        }

        let left = since + self.linger - now;
        if !self.filter.has_urgent() {
            return Some(left);
        }

        if self.finds_urgent(cursor, files, end) {
            None
        } else {
            Some(left.min(LOOK))
        }
    }

    fn finds_urgent(&mut self, cursor: &Cursor, files: &Files, end: Position) -> bool {
        let from = self.looked.max(cursor.read);
        let from = if from.file == end.file {
            from.offset
        } else {
            0
        };
        let mut text = vec![0; end.offset.saturating_sub(from) as usize];
        let file = File::open(files.path(end.file));
        if file
            .and_then(|file| file.read_exact_at(&mut text, from))
            .is_err()
        {
            return false;
        }

        // The line with the key may be behind the last one that was looked at, so lines count alone.
        let whole = memchr::memrchr(b'\n', &text).map_or(0, |at| at + 1);
        self.looked = Position {
            offset: from + whole as u64,
            ..end
        };

        Events::new(&text).any(|event| self.filter.is_urgent(event.lines))
    }

    /// Time for which the log has not grown.
    pub(super) fn quiet(&self) -> Duration {
        self.end.1.elapsed()
    }

    /// A batch was taken.
    pub(super) fn taken(&mut self) {
        self.since = None;
    }

    /// Time to wait if a batch was due and nothing is complete.
    pub(super) fn idle(&self) -> Duration {
        if self.quiet() >= SETTLED {
            IDLE
        } else {
            SETTLED
        }
    }
}

/// Waits for the log to grow, by inotify where there is some.
pub(super) struct Waiting {
    notes: Option<OwnedFd>,
}

impl Waiting {
    pub(super) fn new(log_file: &Path) -> Waiting {
        let dir = log_file.parent().unwrap_or(Path::new("."));
        let flags = inotify::WatchFlags::MODIFY | inotify::WatchFlags::CREATE;
        let notes = inotify::init(inotify::CreateFlags::NONBLOCK | inotify::CreateFlags::CLOEXEC);
        let notes = notes
            .ok()
            .filter(|fd| inotify::add_watch(fd, dir, flags).is_ok());
        Waiting { notes }
    }

    /// Waits at most `most`; true if the log has grown. Without inotify, or if growth does not
    /// matter, simply waits.
    pub(super) fn for_growth(&mut self, most: Duration, is_blind: bool) -> bool {
        let time = Timespec {
            tv_sec: most.as_secs() as i64,
            tv_nsec: i64::from(most.subsec_nanos()),
        };
        match &self.notes {
            Some(fd) if !is_blind => {
                let mut fds = [PollFd::new(fd, PollFlags::IN)];
                // An interruption is a signal: the caller looks.
                let count = poll(&mut fds, Some(&time)).unwrap_or(0);
                let mut buffer = [0; 4096];
                while count > 0 && rustix::io::read(fd, &mut buffer[..]).is_ok_and(|n| n > 0) {}
                count > 0
            }
            _ => {
                let _ = poll(&mut [], Some(&time));
                false
            }
        }
    }
}

/// Age of the event at `from`, in seconds; 0 if it has no time.
pub(super) fn age_s(files: &Files, from: Position) -> f64 {
    let Some(number) = files.from(from.file.max(1)) else {
        return 0.0;
    };

    let offset = if number == from.file { from.offset } else { 0 };
    let mut text = vec![0; STAMP_BYTES];
    let read = File::open(files.path(number)).and_then(|file| file.read_at(&mut text, offset));
    text.truncate(read.unwrap_or(0));
    let Some(event) = Events::of_whole(&text).next() else {
        return 0.0;
    };

    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let event_s = event.stamp.sec as f64 + f64::from(event.stamp.msec) / 1000.0;
    match event.stamp.sec {
        0 => 0.0,
        _ => (since.as_secs_f64() - event_s).max(0.0),
    }
}
