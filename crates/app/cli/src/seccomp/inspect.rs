//! The command line of the subcommands that inspect or convert filters.

use super::{Format, ProfileArgs};
use clap::Args;
use std::path::PathBuf;

pub(super) const FILTERS_HELP: &str = "\
FILTER is a file (- is standard input) in any form that `compile` writes: raw, hex, a C array or \
bpf_asm text; or decimal numbers, as `tcpdump -ddd` prints them. Several files form a chain, oldest first. One file may hold a chain as hex digits, \
with an empty line between filters.";

pub(super) const COMPARED_HELP: &str = "\
A and B are profiles, as `compile` takes them (`docker` is Docker's default), or filters or chains, as \
`disasm` takes them. Every architecture, number and argument is compared; each row of the table is a \
system call, with an example.";

/// The filters to work on.
#[derive(Args, Debug)]
pub struct FilterArgs {
    /// Filters of a chain, oldest first
    #[arg(value_name = "FILTER", required_unless_present_any = ["pid", "profile"])]
    pub filters: Vec<PathBuf>,
    /// Filters of this running process; its threads are stopped while they are copied
    #[arg(long, value_name = "PID", conflicts_with_all = ["filters", "profile"])]
    pub pid: Option<i32>,
    /// With --pid: filters of this thread only
    #[arg(long, value_name = "TID", requires = "pid")]
    pub tid: Option<i32>,
    /// The filter that `compile` makes from this profile
    #[arg(long, value_name = "PROFILE", conflicts_with = "filters")]
    pub profile: Option<PathBuf>,
    #[command(flatten)]
    pub with: ProfileArgs,
}

#[derive(Args, Debug)]
pub struct CheckArgs {
    #[command(flatten)]
    pub source: FilterArgs,
    /// Print what /proc/PID/seccomp_cache would show; with --arch, on such a machine
    #[arg(long)]
    pub kernel_format: bool,
    /// With --pid: read the kernel's own bitmaps with a BPF iterator; no thread is stopped
    #[arg(long, requires = "pid")]
    pub bitmap: bool,
    /// Measure what filters cost on this machine, instead of using figures from another
    #[arg(long, conflicts_with_all = ["kernel_format", "bitmap"])]
    pub measure: bool,
    /// Print a line for every call that runs the filters
    #[arg(long)]
    pub all: bool,
    /// Only list the calls that are denied, for some arguments at least
    #[arg(long, conflicts_with_all = ["kernel_format", "bitmap", "measure", "all"])]
    pub denied: bool,
}

#[derive(Args, Debug)]
pub struct MergeArgs {
    #[command(flatten)]
    pub source: FilterArgs,
    /// Limit of instructions in one filter
    #[arg(long, value_name = "N", default_value_t = 4096)]
    pub limit: usize,
    /// Form of the output; a chain is always printed in hex
    #[arg(long, value_name = "FORMAT", default_value = "listing")]
    pub format: Format,
    /// Write to FILE
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub struct OptimiseArgs {
    /// Filter, in any form
    #[arg(value_name = "FILTER")]
    pub filter: PathBuf,
    /// Form of the output
    #[arg(long, value_name = "FORMAT", default_value = "listing")]
    pub format: Format,
    /// Write to FILE
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub struct DiffArgs {
    /// Profile, filter or chain
    #[arg(value_name = "A")]
    pub left: PathBuf,
    /// Profile, filter or chain to compare it with
    #[arg(value_name = "B")]
    pub right: PathBuf,
    #[command(flatten)]
    pub with: ProfileArgs,
}

#[derive(Args, Debug)]
pub struct CoversArgs {
    /// Profile, filter or chain that is to allow enough
    #[arg(value_name = "A")]
    pub left: PathBuf,
    /// Profile, filter or chain whose calls it is to allow
    #[arg(value_name = "B")]
    pub right: PathBuf,
    #[command(flatten)]
    pub with: ProfileArgs,
}

#[derive(Args, Debug)]
pub struct ExplainArgs {
    #[command(flatten)]
    pub source: FilterArgs,
    /// The call, by name or number
    #[arg(long, value_name = "NAME")]
    pub syscall: String,
    /// Argument N (0 to 5), in decimal or 0x; those that are not given are 0
    #[arg(long = "arg", value_name = "N=VALUE")]
    pub args: Vec<String>,
    /// Architecture of the call: x86_64, x32, i386, aarch64, arm [default: that of --arch]
    #[arg(long, value_name = "ARCH")]
    pub call_arch: Option<String>,
    /// Address of the instruction after the call
    #[arg(long, value_name = "ADDRESS", default_value = "0")]
    pub ip: String,
}

#[derive(Args, Debug)]
pub struct ConvertArgs {
    #[command(flatten)]
    pub source: FilterArgs,
    /// Form of the output
    #[arg(long, value_name = "FORMAT")]
    pub format: Option<Format>,
    /// Write to FILE
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}
