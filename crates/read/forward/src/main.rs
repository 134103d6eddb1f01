//! `tarsier-forward`: sends the log off the host.

use std::fmt::Write as _;
use std::io::{ErrorKind, Write as _};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{bail, Context};
use clap::Parser;
use cli::forward::{ForwardCli, ForwardCommand};
use forward::config::{self, Config};
use forward::cursor::CursorFile;
use forward::sender::{host_name, Asked, Next, Sender};
use forward::{replay, sink};

/// Statuses that tell the unit what to do: the sender itself may not.
const STATUS_SINGLE: u8 = 81;
const STATUS_HALT: u8 = 82;

fn main() -> ExitCode {
    let cli = ForwardCli::parse();
    match run(&cli) {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            eprintln!("tarsier-forward: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn run(cli: &ForwardCli) -> anyhow::Result<u8> {
    let load = || config::load(&cli.config);
    match &cli.command {
        None | Some(ForwardCommand::Run) => send(&cli.config, load()?),
        Some(ForwardCommand::Status) => status(&load()?),
        Some(ForwardCommand::Check) => check(&load()?),
        // At the destination, where a configuration is needed only to ask a server.
        Some(ForwardCommand::Verify(args)) => forward::verify::command(args, &cli.config),
        Some(ForwardCommand::Replay(args)) => {
            print(&format!("{}\n", replay::replay(&load()?, &args.from)?))?;
            Ok(0)
        }
    }
}

fn send(path: &Path, config: Config) -> anyhow::Result<u8> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR2};
    let asked = Asked::default();
    for (signal, flag) in [
        (SIGTERM, &asked.stop),
        (SIGINT, &asked.stop),
        (SIGHUP, &asked.reload),
        (SIGUSR2, &asked.resume),
    ] {
        signal_hook::flag::register(signal, flag.clone()).context("cannot handle signals")?;
    }

    let next = Sender::open(path, config)?.run(&asked)?;
    let (status, level) = match next {
        Next::GoOn => return Ok(0),
        Next::Single => (STATUS_SINGLE, "1"),
        Next::Halt => (STATUS_HALT, "0"),
    };

    // Under the unit, its ExecStopPost does it.
    if rustix::process::geteuid().is_root() && std::env::var_os("INVOCATION_ID").is_none() {
        let init = trust::Program::find(Path::new("/sbin/init"));
        let started = init.map(|program| {
            let command = program.command(&[level.to_owned()], |_| {});
            command.and_then(|mut command| command.spawn())
        });
        if !matches!(started, Ok(Ok(_))) {
            bail!("cannot run /sbin/init {level}, which the configuration asks for");
        }
    }

    Ok(status)
}

fn status(config: &Config) -> anyhow::Result<u8> {
    let dir = config.spool_dir();
    let path = dir.join("cursor");
    let cursor = CursorFile::read(&path)
        .with_context(|| format!("{}: cannot read the cursor; run as root", path.display()))?;
    let Some(cursor) = cursor else {
        bail!(
            "{}: no cursor: nothing was ever sent from here",
            dir.display()
        );
    };

    let mut out = String::new();
    if let Some(series) = cursor.series {
        writeln!(out, "series        {series}")?;
    }
    writeln!(out, "acknowledged  {}", cursor.acked)?;
    writeln!(out, "events        {}", cursor.events)?;

    if let Some(pending) = &cursor.pending {
        writeln!(out, "pending       up to {}", pending.to)?;
    }
    for gap in [&cursor.gap, &cursor.gap_after].into_iter().flatten() {
        writeln!(
            out,
            "gap           {} events up to {} ({})",
            gap.events, gap.to, gap.cause
        )?;
    }

    let text = std::fs::read_to_string(dir.join("status.prom")).unwrap_or_default();
    let mut is_up = false;
    for line in text.lines() {
        if let Some(error) = line.strip_prefix("# error ") {
            writeln!(out, "error         {error}")?;
        }
        if let Some(rest) = line.strip_prefix("tarsier_forward_") {
            if let Some((name, value)) = rest.split_once(' ') {
                is_up |= name == "up" && value == "1";
                if !name.starts_with("acknowledged") && name != "up" {
                    writeln!(out, "{name:<13} {value}")?;
                }
            }
        }
    }

    print(&out)?;
    Ok(u8::from(!is_up))
}

fn check(config: &Config) -> anyhow::Result<u8> {
    let log = &config.log_file;
    std::fs::File::open(log)
        .with_context(|| format!("{}: cannot read the log; run as root", log.display()))?;
    let mut sink = sink::open(config, &host_name(config))?;
    print(&format!("{}\n", sink.check()?))?;
    Ok(0)
}

/// Writes text to standard output. A reader that has seen enough, as `head`, is no error.
fn print(text: &str) -> anyhow::Result<()> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written.context("standard output"),
    }
}
