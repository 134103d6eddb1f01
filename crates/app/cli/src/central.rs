//! `tarsier-forward verify`: options for the verification of what many hosts sent.

use clap::{ArgGroup, Args};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// Source of the messages to verify.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A Kafka topic.
    Kafka,
    /// A stream of NATS JetStream.
    Nats,
    /// Files.
    Path(PathBuf),
}

impl FromStr for Source {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Source, Self::Err> {
        Ok(match text {
            "kafka" => Source::Kafka,
            "nats" => Source::Nats,
            path => Source::Path(path.into()),
        })
    }
}

#[derive(Args, Debug)]
#[group(skip)]
#[command(group = ArgGroup::new("seals").required(true).args(["key", "keys", "no_seals"]))]
pub struct CentralVerifyArgs {
    /// Messages to verify: `kafka` or `nats` for all on the configured server, or what consumers stored: a directory
    /// with a directory for each host, or with files whose messages name their hosts; or one such file
    #[arg(long, value_name = "FROM")]
    pub from: Source,
    /// Verification key of all hosts, which `tarsier seal init` created
    #[arg(long, value_name = "FILE")]
    pub key: Option<PathBuf>,
    /// Directory with the verification key of each host: HOST.key
    #[arg(long, value_name = "DIR")]
    pub keys: Option<PathBuf>,
    /// Only check that no message is missing
    #[arg(long)]
    pub no_seals: bool,
    /// Only this host; may be given several times
    #[arg(long = "host", value_name = "HOST")]
    pub hosts: Vec<String>,
    /// Reject a seal that ends longer ago than this, unless it was closed in order: 2m, 1h
    #[arg(long, value_name = "T", value_parser = crate::parse_duration)]
    pub max_age: Option<Duration>,
    /// Print JSON, for programs
    #[arg(long)]
    pub json: bool,
}
