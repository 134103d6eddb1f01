//! System calls in audit logs.

use anyhow::{Context, Result};
use cli::messages::report;
use record::text;
use seccomp::compile::Frequencies;
use seccomp::policy::Abi;
use seccomp::profile::learned::{telling, Observed};
use seccomp::{Action, Verdict};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead, BufReader};
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

/// The calls in the SYSCALL records of a log, RAW or ENRICHED, Tarsier's or auditd's. Lines that are
/// not records are ignored.
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

fn read(path: &Path, wanted: &Wanted<'_>) -> Result<Log> {
    let reading = || format!("cannot read {}", path.display());
    let mut log: Box<dyn BufRead> = if path.as_os_str() == "-" {
        Box::new(std::io::stdin().lock())
    } else {
        let opened = File::open(path);
        Box::new(BufReader::new(
            opened.map_err(|error| anyhow::anyhow!("{}: {error}", reading()))?,
        ))
    };

    let mut found = Log::default();
    let mut line = Vec::new();

    while log.read_until(b'\n', &mut line).with_context(reading)? > 0 {
        let message = from_kernel_message(&line);
        if let Ok(record) = text::parse_line(message.as_deref().unwrap_or(&line)) {
            let at_s = record.stamp.sec;
            found.first_s = Some(found.first_s.map_or(at_s, |first| first.min(at_s)));
            if wanted.since_s.is_none_or(|since_s| at_s >= since_s) {
                add(&mut found, &record, wanted.exe);
            }
        }
        line.clear();
    }

    for seen in [&mut found.made, &mut found.denied] {
        seen.values
            .retain(|name, _| !found.without_values.contains(name.as_str()));
    }

    Ok(found)
}

/// The record in a line of the kernel's messages (dmesg, syslog, journalctl), which has the number of
/// its type: `… audit: type=1326 audit(1780000000.123:35): auid=…`.
fn from_kernel_message(line: &[u8]) -> Option<Vec<u8>> {
    const SECCOMP: &[u8] = b"type=1326 audit(";
    let at = line
        .windows(SECCOMP.len())
        .position(|window| window == SECCOMP)?;
    let mut record = b"type=SECCOMP msg=audit(".to_vec();
    record.extend_from_slice(&line[at + SECCOMP.len()..]);
    Some(record)
}

fn add(found: &mut Log, record: &text::Record, exe: Option<&Path>) {
    let number = |name: &[u8], base| text::number(record.value(name)?, base);
    let seen = match record.type_name {
        b"SYSCALL" => &mut found.made,
        b"SECCOMP" => {
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
        if record.type_name == b"SECCOMP" {
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
