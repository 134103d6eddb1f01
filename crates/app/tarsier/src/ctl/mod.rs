//! `tarsier ctl`: auditctl's options for a running Tarsier, or with `--kernel` for the kernel.

mod audit;
pub(crate) mod augenrules;
mod client;
mod kernel;
mod listing;
mod merge;
mod message;
mod rules_file;
mod session;
mod usage;

use anyhow::{bail, Result};
use audit::Audit;
use cli::messages::report;
pub(crate) use client::ask;
use client::Client;
use kernel::Kernel;
pub(crate) use merge::merge;
use rules::{Command, Dialect, Source};
use session::Session;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// Exit status of a call without options, as in auditctl.
const NO_OPTIONS: u8 = 1;
/// Exit status for callers other than root.
const NOT_ROOT: u8 = 4;

/// Directory of the running Tarsier.
const RUN_DIR: &str = "/run/tarsier";

/// Options that are not auditctl's: the target, and the dialect.
struct SessionOptions {
    kernel: bool,
    run_dir: PathBuf,
    dialect: Dialect,
}

/// Carries out `args`, the words after `auditctl` or `tarsier ctl`. Returns auditctl's exit status.
///
/// # Errors
/// The options that are not auditctl's are wrong, or the output cannot be written.
pub(crate) fn run(args: Vec<OsString>) -> Result<u8> {
    let mut args = args.into_iter();
    let options = SessionOptions::take(&mut args)?;
    let args: Vec<Vec<u8>> = args.map(OsStringExt::into_vec).collect();
    if args.is_empty() {
        usage::print()?;
        return Ok(NO_OPTIONS);
    }

    let is_harmless =
        matches!(args.as_slice(), [option] if matches!(option.as_slice(), b"-h" | b"-v"));
    if !is_harmless && !rustix::process::geteuid().is_root() {
        report!("You must be root to run this program.");
        return Ok(NOT_ROOT);
    }

    options.with_session(|session| Ok(session.call(&args)?))
}

/// Loads lines as `-R` does; errors are printed with file and line. Returns the exit status.
fn load<'l>(
    kernel: bool,
    run_dir: &Path,
    lines: impl Iterator<Item = (Source, &'l [u8])>,
) -> Result<u8> {
    let options = SessionOptions {
        kernel,
        run_dir: run_dir.to_owned(),
        dialect: Dialect::default(),
    };
    let wanted = [Command::ReadFile(Vec::new())];
    options.with_session(|session| {
        if session.may_change_rules(&wanted) {
            Ok(session.load(lines)?)
        } else {
            Ok(session::SUCCESS)
        }
    })
}

impl SessionOptions {
    /// Takes the options that are not auditctl's, which come before auditctl's.
    fn take(args: &mut std::vec::IntoIter<OsString>) -> Result<SessionOptions> {
        let mut options = SessionOptions {
            kernel: false,
            run_dir: PathBuf::from(RUN_DIR),
            dialect: Dialect::default(),
        };

        loop {
            let next = args.as_slice().first().map(|arg| arg.as_bytes());
            match next {
                Some(b"--kernel") => options.kernel = true,
                Some(b"--run-dir") => {
                    args.next();
                    match args.as_slice().first() {
                        Some(dir) => options.run_dir = dir.into(),
                        None => bail!("--run-dir: expected a directory"),
                    }
                }
                Some(b"--dialect") => {
                    args.next();
                    options.dialect = match args.as_slice().first().map(|arg| arg.as_bytes()) {
                        Some(b"3") => Dialect::V3,
                        Some(b"4") => Dialect::V4,
                        _ => bail!("--dialect: expected 3 (audit 3.0.9) or 4 (audit 4.x)"),
                    };
                }
                _ => return Ok(options),
            }
            args.next();
        }
    }

    fn with_session(&self, work: impl FnOnce(&mut Session<'_>) -> Result<u8>) -> Result<u8> {
        let (mut kernel, mut client);
        let audit: &mut dyn Audit = if self.kernel {
            kernel = Kernel::default();
            &mut kernel
        } else {
            client = Client::new(&self.run_dir);
            &mut client
        };

        work(&mut Session {
            audit,
            dialect: self.dialect,
            has_shown_state: false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_options_come_first_and_the_rest_is_auditctl_s() {
        let take = |words: &[&str]| {
            let words: Vec<OsString> = words.iter().map(OsString::from).collect();
            let mut words = words.into_iter();
            let options = SessionOptions::take(&mut words)?;
            anyhow::Ok((options, words.count()))
        };
        let (options, rest) = take(&["--kernel", "--run-dir", "/d", "-l", "--kernel"]).unwrap();
        assert!(options.kernel && options.run_dir == Path::new("/d"));
        assert_eq!(rest, 2);
        assert_eq!(take(&["--dialect", "3"]).unwrap().0.dialect, Dialect::V3);
        assert!(take(&["--dialect", "5"]).is_err());
        assert!(take(&["--run-dir"]).is_err());
    }
}
