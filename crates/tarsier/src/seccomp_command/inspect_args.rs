//! The command line of what looks at filters.

use super::args::{Format, ProfileArgs};
use clap::Args;
use std::path::PathBuf;

pub(super) const FILTERS_HELP: &str = "\
FILTER is a file (- is standard input) in any form that `compile` writes: raw, hex, a C array or
text of bpf_asm. Several are a chain, oldest first; one file may hold a chain as hex digits with an
empty line between filters.";

/// Where filters come from.
#[derive(Args, Debug)]
pub(crate) struct FilterArgs {
    /// Filters of a chain, oldest first
    #[arg(value_name = "FILTER", required_unless_present_any = ["pid", "profile"])]
    pub(crate) filters: Vec<PathBuf>,
    /// Filters of this running process; its threads are stopped while they are copied
    #[arg(long, value_name = "PID", conflicts_with_all = ["filters", "profile"])]
    pub(crate) pid: Option<i32>,
    /// The filter that `compile` makes of a profile
    #[arg(long, value_name = "PROFILE", conflicts_with = "filters")]
    pub(crate) profile: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) with: ProfileArgs,
}

#[derive(Args, Debug)]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    pub(crate) source: FilterArgs,
    /// Print what /proc/PID/seccomp_cache would; with --arch, that of such a machine
    #[arg(long)]
    pub(crate) kernel_format: bool,
    /// With --pid: read the kernel's own bitmaps by a BPF iterator; nothing is stopped
    #[arg(long, requires = "pid")]
    pub(crate) bitmap: bool,
    /// Measure what filters cost on this machine, instead of taking what they cost on another
    #[arg(long, conflicts_with_all = ["kernel_format", "bitmap"])]
    pub(crate) measure: bool,
    /// A line for every call that runs the filters
    #[arg(long)]
    pub(crate) all: bool,
}

#[derive(Args, Debug)]
pub(crate) struct MergeArgs {
    #[command(flatten)]
    pub(crate) source: FilterArgs,
    /// Instructions that one filter may have
    #[arg(long, value_name = "N", default_value_t = 4096)]
    pub(crate) limit: usize,
    /// Form of the output; a chain is printed in hex whatever it says
    #[arg(long, value_name = "FORMAT", default_value = "listing")]
    pub(crate) format: Format,
    /// Write to FILE
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct OptimiseArgs {
    /// Filter, in any form
    #[arg(value_name = "FILTER")]
    pub(crate) filter: PathBuf,
    /// Form of the output
    #[arg(long, value_name = "FORMAT", default_value = "listing")]
    pub(crate) format: Format,
    /// Write to FILE
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct DiffArgs {
    /// Filter or chain
    #[arg(value_name = "A")]
    pub(crate) left: PathBuf,
    /// What it is compared with
    #[arg(value_name = "B")]
    pub(crate) right: PathBuf,
}

#[derive(Args, Debug)]
pub(crate) struct ExplainArgs {
    #[command(flatten)]
    pub(crate) source: FilterArgs,
    /// The call, by name or number
    #[arg(long, value_name = "NAME")]
    pub(crate) syscall: String,
    /// Argument N (0 to 5), in decimal or 0x; those that are not given are 0
    #[arg(long = "arg", value_name = "N=VALUE")]
    pub(crate) args: Vec<String>,
    /// How the call is made: x86_64, x32, i386, aarch64, arm [default: as this machine's own]
    #[arg(long, value_name = "ARCH")]
    pub(crate) call_arch: Option<String>,
    /// Address of the instruction after the call
    #[arg(long, value_name = "ADDRESS", default_value = "0")]
    pub(crate) ip: String,
}

#[derive(Args, Debug)]
pub(crate) struct ConvertArgs {
    #[command(flatten)]
    pub(crate) source: FilterArgs,
    /// Form of the output
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<Format>,
    /// Write to FILE
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}
