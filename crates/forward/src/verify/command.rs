//! `tarsier-forward verify`.

use super::{print, to_json, verdict, verify, KeySource, Request};
use anyhow::Result;
use cli::central::CentralVerifyArgs;
use std::io::{self, Write};

/// Verifies what hosts sent, and prints what is there. Returns the exit status, which means what that of
/// `tarsier verify` does: 0 complete and intact, 1 something is missing or altered, 2 nothing can be said, 3 intact
/// up to a time, and not closed.
///
/// # Errors
/// The store cannot be read.
pub fn command(args: &CentralVerifyArgs) -> Result<u8> {
    let keys = match (&args.key, &args.keys) {
        (Some(key), _) => KeySource::One(key.clone()),
        (None, Some(keys)) => KeySource::Directory(keys.clone()),
        (None, None) => KeySource::None,
    };
    let hosts = verify(&Request {
        from: args.from.clone(),
        hosts: args.hosts.clone(),
        keys,
        age_max: args.max_age,
    })?;
    let verdict = verdict(&hosts);
    let mut out = io::stdout().lock();
    match args.json {
        true => writeln!(out, "{:#}", to_json(&hosts, verdict))?,
        false => print(&hosts, &mut out)?,
    }
    Ok(verdict as u8)
}
