//! `tarsier top`.

use clap::Args;
use std::path::PathBuf;

#[derive(Args, Debug)]
pub struct TopArgs {
    /// Log to show instead of auditd.conf's; also spelled -if
    #[arg(long, value_name = "FILE")]
    pub input: Option<PathBuf>,
    /// Show the whole log from its beginning, instead of its end and new events
    #[arg(long)]
    pub all: bool,
    /// The daemon's --run-dir, for its losses
    #[arg(long, value_name = "DIR", default_value = crate::RUN_DIR)]
    pub run_dir: PathBuf,
}
