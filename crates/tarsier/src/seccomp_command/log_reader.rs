//! System calls in audit logs.

use anyhow::{Context, Result};
use event::text;
use seccomp::compile::Frequencies;
use seccomp::policy::Abi;
use seccomp::profile::learned::{telling, Observed};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

/// The calls in the SYSCALL records of a log, RAW or ENRICHED, Tarsier's or auditd's. With `exe`,
/// only those of this executable. Lines that are not records are ignored.
///
/// # Errors
/// The log cannot be read, or has no such record.
pub(super) fn observed(path: &Path, exe: Option<&Path>) -> Result<Observed> {
    let reading = || format!("cannot read {}", path.display());
    let opened = File::open(path).map_err(|error| anyhow::anyhow!("{}: {error}", reading()))?;
    let mut log = BufReader::new(opened);
    let mut seen = Observed::default();
    let mut line = Vec::new();
    while log.read_until(b'\n', &mut line).with_context(reading)? > 0 {
        if let Ok(record) = text::parse_line(&line) {
            add(&mut seen, &record, exe);
        }
        line.clear();
    }
    if seen.calls.is_empty() {
        let of = exe
            .map(|exe| format!(" of {}", exe.display()))
            .unwrap_or_default();
        anyhow::bail!(
            "{}: no SYSCALL record{of} in it; record with a rule on all system calls, \
             such as -a always,exit -S all -F exe=PROGRAM",
            path.display()
        );
    }
    Ok(seen)
}

fn add(seen: &mut Observed, record: &text::Record, exe: Option<&Path>) {
    // SECCOMP records stand for calls that were denied, or that a profile does not allow yet.
    if record.type_name != b"SYSCALL" {
        return;
    }
    let number = |name: &[u8], base| text::number(record.value(name)?, base);
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
    let seen = observed(path, None)?;
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
