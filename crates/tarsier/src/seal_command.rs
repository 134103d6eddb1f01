//! `tarsier seal init` and `tarsier verify`.

use anyhow::{bail, Context, Result};
use cli::{SealCommand, SealInitArgs, VerifyArgs};
use conf::LoadOptions;
use daemon::stderr::say;
use journal::seal::verify::{Finding, Options, Report};
use journal::seal::{self, time_text, VerificationKey};
use rustix::fs::{Mode, OFlags};
use serde_json::json;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Exit status of a log that differs from what was sealed.
const ALTERED: u8 = 1;
/// Exit status if the log cannot be verified.
const UNKNOWN: u8 = 2;

/// `tarsier seal`.
pub(crate) fn seal(command: &SealCommand) -> Result<u8> {
    match command {
        SealCommand::Init(args) => init(args),
    }
}

fn init(args: &SealInitArgs) -> Result<u8> {
    let log = match &args.log_file {
        Some(log) => std::path::absolute(log)?,
        None => configured_log(args.config.as_deref())?,
    };
    // Created before the keys: these must not exist without a place for the verification key.
    let mut key_file = args.key.as_deref().map(create_key_file).transpose()?;
    let made = seal::init(&log);
    if let (Err(_), Some(path)) = (&made, &args.key) {
        // The file is still empty.
        let _ = std::fs::remove_file(path);
    }
    let text = made?.to_text();
    match &mut key_file {
        Some(file) => {
            file.write_all(text.as_bytes())
                .and_then(|()| file.sync_all())
                .context("writing the verification key")?;
            let path = args.key.as_deref().unwrap_or(Path::new("")).display();
            say!("tarsier: move {path} off this host: who has it can forge the log");
        }
        None => {
            io::stdout().write_all(text.as_bytes())?;
            say!("tarsier: keep this key off this host: who has it can forge the log");
        }
    }
    say!(
        "tarsier: keys for {} are made; set `seal = yes` and reload the daemon",
        log.display()
    );
    Ok(0)
}

fn create_key_file(path: &Path) -> Result<File> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let fd = rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR)
        .with_context(|| format!("{}: the key goes to a new file", path.display()))?;
    Ok(File::from(fd))
}

fn configured_log(file: Option<&Path>) -> Result<PathBuf> {
    let standard = Path::new(conf::AUDITD_CONF);
    let file = file.unwrap_or(standard);
    Ok(conf::load(file, LoadOptions::default())?.config.log_file)
}

/// `tarsier verify`: status 0 if the log is unaltered, 1 if not, 2 if that cannot be verified.
pub(crate) fn verify(args: &VerifyArgs) -> Result<u8> {
    match report(args) {
        Ok(report) => {
            match args.json {
                true => println!("{}", serde_json::to_string_pretty(&to_json(&report))?),
                false => print(&report, &mut io::stdout().lock())?,
            }
            Ok(if report.is_intact() { 0 } else { ALTERED })
        }
        Err(error) => {
            say!("tarsier: {error:#}");
            Ok(UNKNOWN)
        }
    }
}

fn report(args: &VerifyArgs) -> Result<Report> {
    let key = VerificationKey::read(&args.key)?;
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
        None if report.is_closed => writeln!(out, "intact; the log was closed in order"),
        None => writeln!(
            out,
            "intact; not closed: what came after the time above is not vouched for"
        ),
    }
}

fn to_json(report: &Report) -> serde_json::Value {
    let finding = |finding: &Finding| {
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
        "closed": report.is_closed,
        "files": files.collect::<Vec<_>>(),
        "notes": report.notes.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "finding": report.finding.as_ref().map(finding),
    })
}
