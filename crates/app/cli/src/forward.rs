//! `tarsier-forward`, which `tarsier forward` runs.

use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;

/// Send the log off the host: to Kafka, NATS JetStream, an OTLP receiver, or as lines.
#[derive(Parser, Debug)]
#[command(name = "tarsier-forward", version, max_term_width = 100)]
pub struct ForwardCli {
    /// Configuration
    #[arg(
        long,
        value_name = "FILE",
        global = true,
        default_value = "/etc/tarsier/forward.conf"
    )]
    pub config: PathBuf,
    #[command(subcommand)]
    pub command: Option<ForwardCommand>,
}

#[derive(Subcommand, Debug)]
pub enum ForwardCommand {
    /// Send until stopped (also without a command); SIGHUP reads the configuration again
    Run,
    /// Show what has arrived at the far side, and what waits
    Status,
    /// Check the configuration, connect and authenticate, and write nothing
    Check,
    /// Send events again from a position or time, with the sender stopped
    Replay(ReplayArgs),
    /// At the far side: report for each host what arrived, what is missing, and whether it is what
    /// was sealed (status 0: complete and intact, 1: missing or altered, 2: not verifiable, 3:
    /// intact, and more may follow)
    Verify(crate::central::CentralVerifyArgs),
}

#[derive(Args, Debug)]
pub struct ReplayArgs {
    /// `FILE/BYTE/SEALBYTE` as in the headers, or seconds since 1970
    #[arg(long, value_name = "WHERE")]
    pub from: String,
}
