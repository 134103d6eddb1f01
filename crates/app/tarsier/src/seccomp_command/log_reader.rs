//! System calls in audit logs.

use abi::record_type as kinds;
use anyhow::{Context, Result};
use cli::messages::report;
use logs::Log as LogText;
use query::{Assembler, Dialect, Event, Feed, Lines, TimeRange};
use record::text;
use seccomp::compile::Frequencies;
use seccomp::policy::Abi;
use seccomp::profile::learned::{telling, Observed};
use seccomp::{Action, Verdict};
use std::collections::BTreeSet;
use std::path::Path;

/// Which records of a log count.
#[derive(Default)]
pub(super) struct Wanted<'a> {
    /// Executable whose records are wanted.
    pub(super) exe: Option<&'a Path>,
    /// Time of the first record that is wanted, in seconds since 1970.
    pub(super) since_s: Option<u64>,
}

impl Wanted<'_> {
    /// ` of PROGRAM since TIME`, for messages.
    fn text(&self) -> String {
        let of = self.exe.map(|exe| format!(" of {}", exe.display()));
        let since = self.since_s.map(|at_s| format!(" since {}", date(at_s)));
        of.unwrap_or_default() + &since.unwrap_or_default()
    }
}

/// A time as the daemon's other messages have it.
pub(super) fn date(at_s: u64) -> String {
    let mut text = Vec::new();
    query::time::write_date_time(at_s, &mut text);
    String::from_utf8_lossy(&text).into_owned()
}

/// The calls in the SYSCALL records of a log. Lines that are not records are ignored.
///
/// # Errors
/// The log cannot be read, or has no such record.
fn observed(path: &Path) -> Result<Observed> {
    let log = read(path, &Wanted::default())?;
    if log.made.calls.is_empty() {
        anyhow::bail!(
            "{}: no SYSCALL record in it; record with a rule on all system calls, \
             such as -a always,exit -S all -F exe=PROGRAM",
            path.display()
        );
    }
    Ok(log.made)
}

/// The calls that a profile should allow, by a log: those that were made, as SYSCALL records or
/// SCMP_ACT_LOG show; with `with_denied`, also those that a filter denied.
///
/// # Errors
/// The log cannot be read, or has no such record.
pub(super) fn learnt(path: &Path, wanted: &Wanted<'_>, with_denied: bool) -> Result<Observed> {
    let mut log = read(path, wanted)?;
    if with_denied {
        log.made.merge(std::mem::take(&mut log.denied));
    }
    if !log.denied.calls.is_empty() {
        let names: Vec<&str> = log.denied.calls.keys().map(String::as_str).collect();
        report!(
            "tarsier: {}: a filter denied {} (--denied allows them, too)",
            path.display(),
            names.join(" ")
        );
    }

    if let (Some(since_s), Some(first_s)) = (wanted.since_s, log.first_s) {
        if first_s > since_s {
            report!(
                "tarsier: {}: its first record is of {}: which calls were used before is not known",
                path.display(),
                date(first_s)
            );
        }
    }

    if log.made.calls.is_empty() {
        anyhow::bail!(
            "{}: no SYSCALL record{} in it, nor any of SCMP_ACT_LOG; record with a rule on all system \
             calls, such as -a always,exit -S all -F exe=PROGRAM, or run the program under a profile \
             whose defaultAction is SCMP_ACT_LOG",
            path.display(),
            wanted.text()
        );
    }

    Ok(log.made)
}

/// The calls in a log.
#[derive(Default)]
struct Log {
    made: Observed,
    denied: Observed,
    /// Calls that a record without arguments shows.
    without_values: BTreeSet<&'static str>,
    /// Time of the earliest record.
    first_s: Option<u64>,
}

/// `end_of_event_timeout` of auditd.conf(5), its default.
const TIMEOUT_S: u64 = 2;

/// Reads a log as `tarsier search` does: in any format, compressed, behind the prefixes of the
/// kernel's log and of syslog, or from a journal.
fn read(path: &Path, wanted: &Wanted<'_>) -> Result<Log> {
    let reading = || format!("cannot read {}", path.display());
    let log = if path.as_os_str() == "-" {
        LogText::Stdin
    } else {
        LogText::File(path.to_owned())
    };
    let opened = log.open();
    let opened = opened.map_err(|error| anyhow::anyhow!("{}: {error}", reading()))?;
    let mut lines = Lines::new(opened, None);

    let mut found = Log::default();
    let mut feed = Feed::default();
    let mut assembler = Assembler::new(Dialect::Own, TIMEOUT_S, TimeRange::default());
    while let Some(line) = lines.next_line().with_context(reading)? {
        match of_short_journal(line) {
            Some(record) => add_line(&mut found, &record, kinds::SECCOMP, wanted.exe),
            None => feed.add(line, &mut assembler),
        }
        take_events(&mut found, &mut assembler, wanted);
    }

    feed.end(&mut assembler);
    assembler.finish();
    take_events(&mut found, &mut assembler, wanted);

    for seen in [&mut found.made, &mut found.denied] {
        seen.values
            .retain(|name, _| !found.without_values.contains(name.as_str()));
    }

    Ok(found)
}

fn take_events(found: &mut Log, assembler: &mut Assembler, wanted: &Wanted<'_>) {
    while let Some(event) = assembler.pop() {
        take_event(found, &event, wanted);
        assembler.recycle(event);
    }
}

fn take_event(found: &mut Log, event: &Event, wanted: &Wanted<'_>) {
    let at_s = event.key().sec;
    found.first_s = Some(found.first_s.map_or(at_s, |first| first.min(at_s)));
    if wanted.since_s.is_some_and(|since_s| at_s < since_s) {
        return;
    }

    for record in event.records() {
        add_line(found, record.text, record.kind, wanted.exe);
    }
}

fn add_line(found: &mut Log, line: &[u8], kind: i32, exe: Option<&Path>) {
    if let Ok(record) = text::parse_line(line) {
        add(found, &record, kind, exe);
    }
}

/// The record in a line that `journalctl` writes of the journal's own audit socket, which has neither
/// time nor number: `… audit[4242]: SECCOMP auid=…`. When it was is not known: it counts.
fn of_short_journal(line: &[u8]) -> Option<Vec<u8>> {
    const SECCOMP: &[u8] = b"]: SECCOMP auid=";
    let at = memchr::memmem::find(line, SECCOMP)?;
    let is_audit = memchr::memmem::rfind(&line[..at], b" audit[").is_some();
    let body = &line[at + b"]: SECCOMP ".len()..];
    is_audit.then(|| [b"type=SECCOMP msg=audit(0.000:0): ", body].concat())
}

fn add(found: &mut Log, record: &text::Record, kind: i32, exe: Option<&Path>) {
    let number = |name: &[u8], base| text::number(record.value(name)?, base);
    let seen = match kind {
        kinds::SYSCALL => &mut found.made,
        kinds::SECCOMP => {
            // The code has no data.
            let code = record
                .value(b"code")
                .map(|code| code.strip_prefix(b"0x").unwrap_or(code));
            let code = code.and_then(|code| text::number(code, 16));
            let verdict = code.map(|code| Verdict(code as u32));
            match verdict.map(Verdict::action) {
                Some(Action::Log | Action::Allow) => &mut found.made,
                Some(_) => &mut found.denied,
                None => return,
            }
        }
        _ => return,
    };

    if let Some(wanted) = exe {
        let mut path = Vec::new();
        match record.value(b"exe") {
            Some([b'"', inner @ .., b'"']) => path.extend_from_slice(inner),
            Some(hex) if text::is_hex(hex) => text::unhex(&mut path, hex),
            _ => return,
        }
        if path != std::os::unix::ffi::OsStrExt::as_bytes(wanted.as_os_str()) {
            return;
        }
    }

    let (Some(arch), Some(nr)) = (number(b"arch", 16), number(b"syscall", 10)) else {
        return;
    };
    let Some(name) = seen.add(arch as u32, nr as u32, 1) else {
        return;
    };

    if let Some(argument) = telling(name) {
        // SECCOMP records have no arguments: any may be needed.
        if kind == kinds::SECCOMP {
            found.without_values.insert(name);
        }
        let fields: [&[u8]; 4] = [b"a0", b"a1", b"a2", b"a3"];
        if let Some(value) = fields
            .get(usize::from(argument))
            .and_then(|field| number(field, 16))
        {
            seen.add_value(name, value);
        }
    }
}

/// Frequencies of the calls in a log.
///
/// # Errors
/// The errors of [`observed`].
pub(super) fn frequencies(path: &Path) -> Result<Frequencies> {
    let seen = observed(path)?;
    Ok(seen.calls.into_iter().collect())
}

/// The call arguments that the kernel is to report, for every ABI of this host.
pub(super) fn telling_calls() -> Vec<((u32, u32), u32)> {
    let family = Abi::native().family().iter();
    family
        .flat_map(|abi| {
            abi.calls()
                .map(move |(nr, name)| (abi.audit_arch(), nr, name))
        })
        .filter_map(|(arch, nr, name)| Some(((arch, nr), u32::from(telling(name)?))))
        .collect()
}
