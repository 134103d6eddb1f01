//! The output of `--live`: a line per event on standard output, and a status line on a terminal.

use abi::audit_result;
use compose::{Composed, Item, Watcher};
use jiff::tz::TimeZone;
use jiff::Timestamp;
use record::human::Summary;
use record::SockaddrView;
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// Lines shown per interval; the rest are only counted, since a terminal is slower than a ring.
const LINES_MAX: u32 = 500;
const INTERVAL: Duration = Duration::from_millis(500);

/// Output for a person who watches.
pub(crate) struct Live {
    out: Vec<u8>,
    zone: TimeZone,
    lines: u32,
    unshown: u64,
    since: Instant,
    is_terminal: bool,
    gone: bool,
}

impl Live {
    pub(crate) fn new() -> Live {
        Live {
            out: Vec::new(),
            zone: TimeZone::system(),
            lines: 0,
            unshown: 0,
            since: Instant::now(),
            is_terminal: std::io::stdout().is_terminal(),
            gone: false,
        }
    }

    /// Shows the added lines, and `status` below them on a terminal. Cheap if there is nothing to
    /// show.
    pub(crate) fn show(&mut self, status: impl FnOnce() -> String) {
        let interval_over = self.since.elapsed() >= INTERVAL;
        if interval_over {
            self.since = Instant::now();
            self.lines = 0;
            if self.unshown > 0 {
                let text = format!("… {} more events, in the log\n", self.unshown);
                self.out.extend_from_slice(text.as_bytes());
                self.unshown = 0;
            }
            if self.is_terminal {
                let text = format!("\r\x1b[K{}", status());
                self.out.extend_from_slice(text.as_bytes());
            }
        }

        if self.out.is_empty() {
            return;
        }

        // If whoever watched has gone, recording goes on.
        let mut stdout = std::io::stdout().lock();
        if stdout
            .write_all(&self.out)
            .and_then(|()| stdout.flush())
            .is_err()
        {
            self.gone = true;
        }
        self.out.clear();
    }

    /// Finishes the status line.
    pub(crate) fn end(&mut self) {
        self.since = Instant::now() - INTERVAL;
        self.show(String::new);
    }
}

impl Watcher for Live {
    /// Adds the line of an event, unless there are already too many in this interval.
    fn event(&mut self, composed: &Composed<'_>) {
        if self.lines >= LINES_MAX || self.gone {
            self.unshown += 1;
            return;
        }

        self.lines += 1;
        let time = Timestamp::from_nanosecond(composed.unix_ns.into()).unwrap_or_default();
        let time = time.to_zoned(self.zone.clone());
        let (event, argv) = (composed.event, composed.argv);
        let arguments = argv
            .strip_suffix(&[0])
            .unwrap_or(argv)
            .split(|&byte| byte == 0);
        let address = event
            .sockaddr()
            .and_then(|part| SockaddrView::parse(part.data))
            .and_then(address_text);
        let mut objects: Vec<&[u8]> = if argv.is_empty() {
            shown_paths(composed.items)
        } else {
            arguments.collect()
        };

        objects.extend(address.as_deref());
        let header = event.header();
        if self.is_terminal {
            self.out.extend_from_slice(b"\r\x1b[K");
        }

        Summary {
            hour: time.hour() as u8,
            minute: time.minute() as u8,
            second: time.second() as u8,
            msec: time.millisecond() as u16,
            call: composed.call,
            objects: &objects,
            exit: event.exit().map(audit_result),
            comm: event.comm(),
            pid: header.pid,
            auid: header.auid,
            uid: header.uid,
            key: composed.key,
        }
        .write(&mut self.out);

        self.out.push(b'\n');
    }
}

/// An address in readable form; `None` for families without a useful one.
fn address_text(address: SockaddrView<'_>) -> Option<Vec<u8>> {
    match address {
        SockaddrView::Unix(path) => Some(path.to_vec()),
        SockaddrView::Inet(ip, port) => Some(format!("{ip}:{port}").into_bytes()),
        SockaddrView::Inet6(ip, port, _) => Some(format!("[{ip}]:{port}").into_bytes()),
        _ => None,
    }
}

/// The paths to show for a call: names, without the directories that contain them unless there is
/// nothing else.
fn shown_paths(items: &[Item]) -> Vec<&[u8]> {
    let named = |parent: bool| {
        items
            .iter()
            .filter(move |item| (item.nametype == record::record::NameType::Parent) == parent)
            .map(|item| item.path.as_slice())
            .collect::<Vec<_>>()
    };

    let objects = named(false);
    if objects.is_empty() {
        named(true)
    } else {
        objects
    }
}
