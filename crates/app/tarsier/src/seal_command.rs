//! `tarsier seal init` and `tarsier verify`.

use crate::answer::answered;
use crate::search_command::index_file::{self, Verdict};
use anyhow::{bail, Context, Result};
use cli::messages::{reasons, report};
use cli::{SealCommand, SealInitArgs, VerifyArgs};
use conf::LoadOptions;
use journal::seal::verify::{End, Options, Report, SealFinding};
use journal::seal::{self, time_text, VerificationKey};
use rustix::fs::{Mode, OFlags};
use rustix::mm::{mlockall, MlockAllFlags};
use rustix::process::DumpableBehavior;
use serde_json::json;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Exit status of a log that differs from what was sealed.
const ALTERED: u8 = 1;
/// Exit status if the log cannot be verified.
const UNKNOWN: u8 = 2;
/// Exit status of a log that is unaltered, but whose end may be missing.
const NOT_CLOSED: u8 = 3;

/// `tarsier seal`.
pub(crate) fn seal(command: &SealCommand) -> Result<u8> {
    match command {
        SealCommand::Init(args) => init(args),
    }
}

fn init(args: &SealInitArgs) -> Result<u8> {
    keep_in_memory();
    let log = match &args.log_file {
        Some(log) => std::path::absolute(log)?,
        None => configured_log(args.config.as_deref())?,
    };

    // Created before the keys: these must not exist without a place for the verification key.
    let key_file = args.key.as_deref();
    let key_file = key_file.map(|path| create_key_file(path, args.on_disk));
    let mut key_file = key_file.transpose()?;
    let made = seal::init(&log);
    if let (Err(_), Some(path)) = (&made, &args.key) {
        // The file is still empty.
        let _ = std::fs::remove_file(path);
    }

    // The key file reaches the disk before anything is sealed that only it can verify.
    let text = made?.to_text();
    let given = match &mut key_file {
        Some(file) => give(file, &text).and_then(|()| file.sync_all()),
        None => give(&mut io::stdout(), &text),
    };

    if let Err(error) = given {
        // Nobody has the verification key: nothing must be sealed with these keys.
        seal::take_back(&log);
        if let (Some(file), Some(path)) = (&key_file, &args.key) {
            wipe(file, text.len());
            let _ = std::fs::remove_file(path);
        }
        return Err(error).context("writing the verification key; no keys were made");
    }

    match &args.key {
        Some(path) => {
            let path = path.display();
            report!("tarsier: move {path} off this host: who has it can forge the log");
        }
        None => report!("tarsier: keep this key off this host: who has it can forge the log"),
    }

    report!(
        "tarsier: keys for {} are made; set `seal = yes` and reload the daemon",
        log.display()
    );

    Ok(0)
}

fn give(to: &mut impl Write, text: &str) -> io::Result<()> {
    to.write_all(text.as_bytes())?;
    to.flush()
}

/// Overwrites the file's contents, as far as that works; the file is removed in any case.
fn wipe(file: &File, len: usize) {
    let _ = file.write_all_at(&vec![0; len], 0);
    let _ = file.sync_all();
}

/// Keeps this process, which holds the first key, out of swap and core dumps.
fn keep_in_memory() {
    let outcome = rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)
        .and_then(|()| mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE));
    if let Err(errno) = outcome {
        report!("tarsier: the key may reach swap or a core dump while it is made: {errno}");
    }
}

/// Creates the file of the verification key.
///
/// # Errors
/// The file exists, or it would be on a disk without `on_disk`. A file removed from a disk stays readable
/// to anybody who reads the device.
fn create_key_file(path: &Path, on_disk: bool) -> Result<File> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let fd = rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR)
        .with_context(|| format!("{}: the key goes to a new file", path.display()))?;
    if !on_disk && !is_off_disk(&fd) {
        let _ = std::fs::remove_file(path);
        bail!(
            "{}: would be on a disk of this host, where traces of the key stay when it is moved away; \
             pipe the key off (tarsier seal init | ssh HOST 'umask 077; cat >audit.key'), name a file \
             below /run and move that, or give --on-disk for a disk that leaves the host",
            path.display()
        );
    }

    Ok(File::from(fd))
}

/// Magic numbers of statfs(2): tmpfs, ramfs, NFS, CIFS and SMB2.
const OFF_DISK: [u32; 5] = [0x0102_1994, 0x8584_58f6, 0x6969, 0xff53_4d42, 0xfe53_4d42];

/// Whether a file is in memory, or on another host.
fn is_off_disk(file: &OwnedFd) -> bool {
    rustix::fs::fstatfs(file).is_ok_and(|found| OFF_DISK.contains(&(found.f_type as u32)))
}

fn configured_log(file: Option<&Path>) -> Result<PathBuf> {
    let standard = Path::new(conf::AUDITD_CONF);
    let file = file.unwrap_or(standard);
    Ok(conf::load(file, LoadOptions::default())?.config.log_file)
}

/// `tarsier verify`: status 0 if the log is unaltered and complete, 1 if it is altered, 2 if that cannot
/// be verified, 3 if it is unaltered and its end may be missing.
pub(crate) fn verify(args: &VerifyArgs) -> Result<u8> {
    if args.index {
        return verify_indexes(&args.logs);
    }

    match report(args) {
        Ok(report) => {
            let mut out = io::stdout().lock();
            let written = if args.json {
                writeln!(out, "{:#}", to_json(&report))
            } else {
                print(&report, &mut out)
            };
            let status = match (report.is_intact(), report.end) {
                (false, _) => ALTERED,
                (true, End::Open) => NOT_CLOSED,
                (true, End::InOrder | End::Vouched) => 0,
            };
            answered(status, written.map_err(Into::into))
        }
        Err(error) => {
            report!("tarsier: {}", reasons(&error));
            Ok(UNKNOWN)
        }
    }
}

/// `tarsier verify --index`: status 1 if an index hides something or is not used.
fn verify_indexes(logs: &[PathBuf]) -> Result<u8> {
    let files = match logs {
        [log] => journal::log_files(log).with_context(|| log.display().to_string())?,
        logs => logs.to_vec(),
    };
    if files.is_empty() {
        bail!("{}: no such log", logs[0].display());
    }

    let mut status = 0;
    let mut lines = String::new();

    for file in &files {
        let path = index_file::index_path(file);
        let (is_bad, text) = match index_file::verify(file)? {
            Verdict::None => (false, "none"),
            Verdict::Right => (false, "right"),
            Verdict::Unused => (
                true,
                "not used: of another file or version, damaged, or writable by others",
            ),
            Verdict::Wrong => (true, "WRONG: searches may have missed events; remove it"),
        };
        lines += &format!("{}: {text}\n", path.display());
        status = status.max(if is_bad { ALTERED } else { 0 });
    }

    let written = io::stdout().write_all(lines.as_bytes());
    answered(status, written.map_err(Into::into))
}

/// Verifies the logs of `args`.
///
/// # Errors
/// The key, a log or a seal cannot be read.
pub(crate) fn report(args: &VerifyArgs) -> Result<Report> {
    let key = args.key.as_deref().context("--key is missing")?;
    let key = VerificationKey::read(key)?;

    // A single log stands for all of its files; several files stand only for themselves.
    let (logs, is_complete) = match &args.logs[..] {
        [log] => (
            journal::log_files(log).with_context(|| log.display().to_string())?,
            true,
        ),
        logs => (logs.to_vec(), false),
    };

    if logs.is_empty() {
        bail!("{}: no such log", args.logs[0].display());
    }

    let options = Options {
        is_complete,
        age_max: args.max_age,
    };

    Ok(seal::verify(&logs, &key, options)?)
}

fn print(report: &Report, out: &mut impl Write) -> io::Result<()> {
    for note in &report.notes {
        writeln!(out, "note: {note}")?;
    }
    for file in &report.files {
        let until = file.until_ms.map_or_else(|| "?".to_owned(), time_text);
        writeln!(
            out,
            "{}: intact up to {until}, byte {}",
            file.path.display(),
            file.intact_bytes
        )?;
    }

    match &report.finding {
        Some(finding) => writeln!(out, "NOT INTACT: {finding}"),
        None => writeln!(
            out,
            "{}",
            match report.end {
                End::InOrder => "intact; the log was closed in order",
                End::Vouched => "intact up to now; not closed",
                End::Open =>
                    "NOT CLOSED: intact up to the time above; what followed may have been cut off, or \
                     the daemon was killed",
            }
        ),
    }
}

fn to_json(report: &Report) -> serde_json::Value {
    let finding = |finding: &SealFinding| {
        json!({
            "file": finding.path, "what": finding.what, "line": finding.line,
            "from_byte": finding.bytes.as_ref().map(|bytes| bytes.start),
            "to_byte": finding.bytes.as_ref().map(|bytes| bytes.end),
            "sealed_ms": finding.sealed_ms,
        })
    };

    let files = report.files.iter().map(|file| {
        json!({"file": file.path, "intact_bytes": file.intact_bytes, "until_ms": file.until_ms})
    });
    json!({
        "intact": report.is_intact(),
        "closed": report.is_closed(),
        "end": match report.end {
            End::InOrder => "in order",
            End::Vouched => "vouched",
            End::Open => "open",
        },
        "files": files.collect::<Vec<_>>(),
        "notes": report.notes.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "finding": report.finding.as_ref().map(finding),
    })
}
