//! The command line of `tarsier seccomp`.

mod inspect;

pub use inspect::{
    CheckArgs, ConvertArgs, DiffArgs, ExplainArgs, FilterArgs, MergeArgs, OptimiseArgs,
};

use clap::{Args, Subcommand, ValueEnum};
use inspect::FILTERS_HELP;
use std::ffi::OsString;
use std::path::PathBuf;

#[derive(Subcommand, Debug)]
pub enum SeccompCommand {
    /// Compile a profile to one filter
    #[command(after_help = COMPILE_HELP)]
    Compile(CompileArgs),
    /// Make a profile of the calls that a program makes
    #[command(after_help = LEARN_HELP)]
    Learn(LearnArgs),
    /// Show which calls never run the filters, what the others cost, and why they run them
    #[command(after_help = FILTERS_HELP)]
    Check(CheckArgs),
    /// Merge a chain into one filter, proven to decide every call alike (status 1: only in parts)
    #[command(after_help = FILTERS_HELP)]
    Merge(MergeArgs),
    /// Shorten a filter, proven to decide every call alike
    #[command(after_help = FILTERS_HELP)]
    Optimise(OptimiseArgs),
    /// Show which calls two filters or chains decide differently (status 0: none, 1: some)
    #[command(after_help = FILTERS_HELP)]
    Diff(DiffArgs),
    /// Show what a filter or chain does with one call, and the path through its instructions
    #[command(after_help = FILTERS_HELP)]
    Explain(ExplainArgs),
    /// Print a filter as annotated instructions, or in another form
    #[command(after_help = FILTERS_HELP)]
    Disasm(ConvertArgs),
    /// Convert bpf_asm text to hex digits, or another form
    #[command(after_help = FILTERS_HELP)]
    Asm(ConvertArgs),
    /// Run a program under a profile, and report what it was denied
    #[command(after_help = RUN_HELP)]
    Run(RunArgs),
}

const COMPILE_HELP: &str = "\
PROFILE is one of
  JSON of the OCI runtime specification, with Docker's includes, excludes and archMap;
  a systemd unit, or lines of one: SystemCallFilter=, SystemCallErrorNumber=,
  SystemCallArchitectures=, SystemCallLog=, RestrictAddressFamilies=, RestrictNamespaces=,
  RestrictRealtime=, RestrictSUIDSGID=, MemoryDenyWriteExecute=, LockPersonality=, Protect…=,
  PrivateDevices=;
  a list: lines of `allow NAME…`, `deny NAME…`, `errno:ENOSYS NAME…`, `log`, `trap`, `kill`,
  with conditions such as a0==1 or a1&0xff==3, and `default ACTION`.
- is standard input, and `docker` Docker's default profile.

If several rules match a call, the strictest applies. All 64 bits of arguments are compared. \
Calls newer than the profile fail with ENOSYS, as under runc, unless --no-enosys is given.

Examples:
  tarsier seccomp compile docker --format c
  tarsier seccomp compile /lib/systemd/system/systemd-logind.service
  tarsier seccomp compile profile.json --format raw -o filter.bpf";

const LEARN_HELP: &str = "\
Records every system call of COMMAND and of its descendants, in the kernel, and prints an OCI \
profile that allows them. Most calls are allowed with any arguments. Calls such as socket, ioctl and \
prctl are allowed only with the recorded values of one significant argument, if there were at most \
8. Make the program do everything that it must be able to do, or learn in several runs with --merge.

Examples:
  tarsier seccomp learn -o nginx.json -- nginx -t
  tarsier seccomp learn --merge nginx.json -o nginx.json -- nginx -g 'daemon off;'
  tarsier seccomp learn --log /var/log/audit/audit.log --exe /usr/sbin/nginx";

const RUN_HELP: &str = "\
COMMAND gets no_new_privs and one filter, which its descendants inherit. The filter is installed \
with SECCOMP_FILTER_FLAG_LOG: while an audit daemon such as `tarsier run` is running, the kernel \
makes a SECCOMP record of every denial, which appears in the log.

--log also prints denials, with their arguments and the rule that caused them. To learn of them, \
Tarsier answers denied calls itself, through SECCOMP_RET_USER_NOTIF; the program sees the same \
errno. A call for which the profile kills ends the process with SIGKILL instead of SIGSYS. SECCOMP \
records then have code=0x7fc00000. Calls that the profile traps (SIGSYS) or logs are left to the \
kernel. If Tarsier is killed, denied calls fail with ENOSYS. Tarsier runs until the last process of \
COMMAND ends.

The exit status is that of COMMAND; 127 if it cannot be run.";

/// Format in which a filter is printed.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Annotated instructions
    Listing,
    /// struct sock_filter, as the kernel takes it
    Raw,
    /// An array for C
    C,
    /// Hex digits, an instruction per line
    Hex,
    /// Text for bpf_asm
    Asm,
}

/// Conditions that a profile depends on.
#[derive(Args, Debug)]
pub struct ProfileArgs {
    /// Capabilities that the program will have in its bounding set, for includes.caps and
    /// excludes.caps: names with commas between them, `all` or `none` [default: Docker's 14]
    #[arg(long, value_name = "CAPS")]
    pub caps: Option<String>,
    /// Architecture of the program: x86-64, x32, x86, arm64 or arm [default: this one]
    #[arg(long, value_name = "ARCH")]
    pub arch: Option<String>,
    /// Kernel version for includes.minKernel [default: the running kernel's]
    #[arg(long, value_name = "X.Y")]
    pub kernel: Option<String>,
    /// Treat calls newer than the profile like any other call that is not listed
    #[arg(long)]
    pub no_enosys: bool,
}

#[derive(Args, Debug)]
pub struct CompileArgs {
    /// File, - for standard input, or docker
    #[arg(value_name = "PROFILE")]
    pub source: PathBuf,
    /// Form of the output
    #[arg(long, value_name = "FORMAT", default_value = "listing")]
    pub format: Format,
    /// Write to FILE
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Audit log (RAW or ENRICHED): its most frequent calls get the shortest path
    /// [default: an ordinary mixture of programs]
    #[arg(long = "profile", value_name = "FROM-AUDIT-LOG")]
    pub weights: Option<PathBuf>,
    #[command(flatten)]
    pub with: ProfileArgs,
}

#[derive(Args, Debug)]
pub struct LearnArgs {
    /// Learn from the SYSCALL records of this audit log instead
    #[arg(long, value_name = "FILE", conflicts_with = "command")]
    pub log: Option<PathBuf>,
    /// Only records of this executable
    #[arg(long, value_name = "PATH", requires = "log")]
    pub exe: Option<PathBuf>,
    /// Also allow what this learnt profile allows
    #[arg(long, value_name = "OLD.json")]
    pub merge: Option<PathBuf>,
    /// Write the profile to FILE; an existing file is replaced
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Print how often each call was made instead of a profile
    #[arg(long, conflicts_with_all = ["merge", "output"])]
    pub counts: bool,
    /// Report on standard error what this profile allows but was never used
    #[arg(long, value_name = "PROFILE", num_args = 0..=1, require_equals = true,
          default_missing_value = "docker")]
    pub report: Option<PathBuf>,
    #[command(flatten)]
    pub with: ProfileArgs,
    /// Program to run and learn from
    #[arg(last = true, value_name = "COMMAND", required_unless_present = "log")]
    pub command: Vec<OsString>,
}

#[derive(Args, Debug)]
pub struct RunArgs {
    /// File, - for standard input, or docker
    #[arg(long, value_name = "PROFILE")]
    pub profile: PathBuf,
    /// Report on standard error which calls were denied, by which rule, and what to do
    #[arg(long)]
    pub log: bool,
    #[command(flatten)]
    pub with: ProfileArgs,
    /// Program to run
    #[arg(last = true, value_name = "COMMAND", required = true)]
    pub command: Vec<OsString>,
}
