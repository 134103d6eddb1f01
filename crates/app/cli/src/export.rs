//! `tarsier export`, which runs the program `tarsier-export` with the same arguments.

use clap::{Args, Parser};
use std::path::PathBuf;

/// `tarsier-export` called by itself.
#[derive(Parser, Debug)]
#[command(name = "tarsier-export", version, max_term_width = 100)]
#[command(about = "Write events as a Parquet table")]
pub struct ExportCli {
    #[command(flatten)]
    pub args: ExportArgs,
}

#[derive(Args, Debug, Clone)]
pub struct ExportArgs {
    /// File for the table; an existing one is replaced
    #[arg(long, short, value_name = "FILE")]
    pub output: PathBuf,
    /// Host of records without node=, unless LOG names one [default: none]
    #[arg(long, value_name = "NAME")]
    pub host: Option<String>,
    /// Leave out events before this time, in seconds since 1970
    #[arg(long, value_name = "SECONDS")]
    pub since: Option<i64>,
    /// Leave out events after this time, in seconds since 1970
    #[arg(long, value_name = "SECONDS")]
    pub until: Option<i64>,
    /// Logs: files, directories with audit.log and its rotated files or with hosts, archives of sos, or HOST=PATH
    #[arg(value_name = "LOG", required = true)]
    pub logs: Vec<String>,
}
