//! `tarsier-forward verify`.

use super::{print, to_json, verdict, verify, KeySource, Origin, Request};
use crate::config::{self, SinkKind};
use anyhow::{ensure, Context, Result};
use cli::central::{CentralVerifyArgs, Source};
use std::io::{self, Write};
use std::path::Path;

/// Verifies what hosts sent, and prints what is there. Returns the exit status, which means what that of
/// `tarsier verify` does: 0 complete and intact, 1 something is missing or altered, 2 nothing can be said, 3 intact
/// up to a time, and not closed. `path`: the configuration that says how a server is reached.
///
/// # Errors
/// The store cannot be read.
pub fn command(args: &CentralVerifyArgs, path: &Path) -> Result<u8> {
    let keys = match (&args.key, &args.keys) {
        (Some(key), _) => KeySource::One(key.clone()),
        (None, Some(keys)) => KeySource::Directory(keys.clone()),
        (None, None) => KeySource::None,
    };
    let hosts = verify(&Request {
        from: origin(&args.from, path)?,
        hosts: args.hosts.clone(),
        keys,
        age_max: args.max_age,
    })?;
    let verdict = verdict(&hosts);
    let mut out = io::stdout().lock();

    if args.json {
        writeln!(out, "{:#}", to_json(&hosts, verdict))?
    } else {
        print(&hosts, &mut out)?
    }

    Ok(verdict as u8)
}

/// Origin of the messages; a server is described by the configuration at `path`.
fn origin(from: &Source, path: &Path) -> Result<Origin> {
    let (name, kind) = match from {
        Source::Path(path) => return Ok(Origin::Files(path.clone())),
        Source::Kafka => ("kafka", SinkKind::Kafka),
        Source::Nats => ("nats", SinkKind::Nats),
    };
    let config = config::load(path).with_context(|| {
        format!("--from {name} needs to know the server and who asks: sink, server and so on, as the hosts' forward.conf")
    })?;
    ensure!(
        config.sink == kind,
        "{}: another sink than {name}; name a configuration with `sink = {name}` by --config, or write ./{name} for a \
         file of that name",
        path.display()
    );

    Ok(Origin::Server(Box::new(config)))
}
