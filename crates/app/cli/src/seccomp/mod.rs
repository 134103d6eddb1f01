//! The command line of `tarsier seccomp`.

mod inspect;

pub use inspect::{
    CheckArgs, ConvertArgs, CoversArgs, DiffArgs, ExplainArgs, FilterArgs, MergeArgs, OptimiseArgs,
};

use clap::{Args, Subcommand, ValueEnum};
use inspect::{COMPARED_HELP, FILTERS_HELP};
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
    /// Show which calls two profiles, filters or chains decide differently (status 0: none, 1: some)
    #[command(after_help = COMPARED_HELP)]
    Diff(DiffArgs),
    /// Show which calls B allows and A does not (status 0: none, 1: some)
    #[command(after_help = COMPARED_HELP)]
    Covers(CoversArgs),
    /// Write a profile in another form
    #[command(after_help = WRITE_HELP)]
    Write(WriteArgs),
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
  JSON of the OCI runtime specification, with Docker's includes, excludes and archMap, or Podman's
  names of errnos; a whole config.json of a container;
  a SeccompProfile of the security-profiles-operator, YAML or JSON;
  a systemd unit, or lines of one: SystemCallFilter=, SystemCallErrorNumber=,
  SystemCallArchitectures=, SystemCallLog=, RestrictAddressFamilies=, RestrictNamespaces=,
  RestrictRealtime=, RestrictSUIDSGID=, MemoryDenyWriteExecute=, LockPersonality=, Protect…=,
  PrivateDevices=;
  a list: lines of `allow NAME…`, `deny NAME…`, `errno:ENOSYS NAME…`, `log`, `trap`, `kill`,
  with conditions such as a0==1 or a1&0xff==3, and `default ACTION`.
- is standard input, and `docker` Docker's default profile.

Of several rules of JSON without conditions the first applies to a call; of the others that match, \
the strictest. All 64 bits of arguments are compared. What systemd ignores in a unit is ignored with \
a note; drop-ins follow the unit, as `systemctl cat` prints them. \
Calls newer than the profile fail with ENOSYS, as under runc, unless --no-enosys is given.

Examples:
  tarsier seccomp compile docker --format c
  tarsier seccomp compile /lib/systemd/system/systemd-logind.service
  tarsier seccomp compile profile.json --format raw -o filter.bpf";

const LEARN_HELP: &str = "\
Records system calls in the kernel, and prints an OCI profile that allows them: those of COMMAND and \
of all that it starts, until the last of these processes ends; or those of a process, a container, a \
pod, a unit or a cgroup, until it ends, the time of --for is over, or Ctrl-C. A unit is followed into \
its next start, and so is a container that is not removed, with cgroups of version 2. SIGINT and \
SIGTERM are passed on to COMMAND; if it goes on for 3 more seconds, or at the second signal, learning ends \
without it. Make the program do everything that it must be able to do, or learn in several runs \
with --merge.

Calls are allowed with any arguments, unless --args is given. Calls that the vDSO answers on this \
machine are allowed, too, and so are those that a run makes or not by chance, such as futex and \
restart_syscall. In profiles for containers, so are calls that runc and crun make between \
the installation of the filter and the start of the program. Of `runc run` and `crun run` only what the \
container's program does is recorded.

Examples:
  tarsier seccomp learn -o nginx.json -- nginx -t
  tarsier seccomp learn --merge nginx.json -o nginx.json -- nginx -g 'daemon off;'
  tarsier seccomp learn --unit nginx --for 1h -o nginx.json
  tarsier seccomp learn --container web -o web.json
  tarsier seccomp learn --log /var/log/audit/audit.log --exe /usr/sbin/nginx
  journalctl -k | tarsier seccomp learn --log - --merge web.json -o web.json";

const RUN_HELP: &str = "\
COMMAND gets no_new_privs and one filter, which its descendants inherit. The filter is installed \
with SECCOMP_FILTER_FLAG_LOG: while an audit daemon such as `tarsier run` is running, the kernel \
makes a SECCOMP record of every denial, which appears in the log.

--log also prints denials (and calls that SCMP_ACT_LOG allows), with their arguments and the rule \
that caused them, and at the end how many there were. As root, BPF programs observe them, and \
nothing changes for the program. Otherwise Tarsier traces the program: it sees the errnos and \
signals of the profile, but no program in it can trace another (debuggers, strace), SECCOMP records \
have code=0x30000, times that calls wait for begin anew at a signal that the program ignores, and \
if Tarsier is killed, the program ends, too. Where tracing is forbidden (Yama, another tracer) or \
this is not x86-64, Tarsier answers denied calls through SECCOMP_RET_USER_NOTIF: a signal may then \
interrupt them (EINTR), a call for which the profile kills ends the process with SIGKILL, SECCOMP \
records have code=0x7fc00000, traps (SIGSYS) are not reported, and if Tarsier is killed, denied \
calls fail with ENOSYS. Tarsier passes signals on, and runs until the last process of COMMAND ends.

The exit status is that of COMMAND; 127 if it cannot be run.";

const WRITE_HELP: &str = "\
PROFILE is an OCI profile, a config.json or a SeccompProfile, as for `compile`. What depends on \
capabilities, architecture and kernel is decided first.

SystemCallFilter= has no conditions on arguments: rules with conditions are left out where they \
allow, and forbid all arguments where they forbid. Calls that systemd allows without being asked \
are taken out again, if the profile does not allow them.

Examples:
  tarsier seccomp write app.json --form spo --name app -o app.yaml
  tarsier seccomp write config.json --form oci
  tarsier seccomp write app.json --form systemd -o /etc/systemd/system/app.service.d/calls.conf";

/// Form in which a profile is written.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProfileForm {
    /// JSON of the OCI runtime specification
    Oci,
    /// SeccompProfile of the security-profiles-operator, in YAML
    Spo,
    /// SystemCallFilter= and SystemCallErrorNumber= for a unit
    Systemd,
}

#[derive(Args, Debug)]
pub struct WriteArgs {
    /// File, - for standard input, or docker
    #[arg(value_name = "PROFILE")]
    pub source: PathBuf,
    /// Form of the output
    #[arg(long, value_name = "FORM")]
    pub form: ProfileForm,
    /// Name of the SeccompProfile [default: the name of the file]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Write to FILE
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub with: ProfileArgs,
}

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
    /// Learn from the records of this audit log, or the kernel's messages in this log or journal (-:
    /// standard input): calls that SYSCALL records show, and those that SCMP_ACT_LOG logged
    #[arg(long, value_name = "FILE", conflicts_with = "command")]
    pub log: Option<PathBuf>,
    /// Only records of this executable
    #[arg(long, value_name = "PATH", requires = "log")]
    pub exe: Option<PathBuf>,
    /// Only records since then (see tarsier search --help, -ts): with --report, what has not been used
    #[arg(long, value_names = ["DATE", "TIME"], num_args = 1..=2, requires = "log")]
    pub since: Vec<String>,
    /// Also allow calls that a profile denied, as SECCOMP records show
    #[arg(long, requires = "log")]
    pub denied: bool,
    /// Learn from this running process and what it starts
    #[arg(long, value_name = "PID", group = "place", conflicts_with_all = ["command", "log"])]
    pub pid: Vec<u32>,
    /// Learn from the processes of this container: its name or id (Podman, Docker, runc, crun,
    /// Kubernetes)
    #[arg(long, value_name = "NAME", group = "place", conflicts_with_all = ["command", "log"])]
    pub container: Option<String>,
    /// Learn from the containers of this pod: its name, or namespace/name
    #[arg(long, value_name = "NAME", group = "place", conflicts_with_all = ["command", "log"])]
    pub pod: Option<String>,
    /// Learn from this unit of systemd, also when it is restarted
    #[arg(long, value_name = "UNIT", group = "place", conflicts_with_all = ["command", "log"])]
    pub unit: Option<String>,
    /// Learn from the cgroup of this path, also when it is made anew, such as /system.slice/x.service
    #[arg(long, value_name = "PATH", group = "place", conflicts_with_all = ["command", "log"])]
    pub cgroup: Option<String>,
    /// End after this time, such as 90s, 10m or 2h
    #[arg(long = "for", value_name = "TIME", conflicts_with = "log")]
    pub duration: Option<String>,
    /// Allow calls such as socket, ioctl and prctl only with the recorded values of one significant
    /// argument, if there are at most 8
    #[arg(long)]
    pub args: bool,
    /// Also allow what this profile allows; its own rules are kept
    #[arg(long, value_name = "OLD.json")]
    pub merge: Option<PathBuf>,
    /// Write the profile to FILE; an existing file is replaced. While it is learnt, FILE.partial has
    /// it
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
    #[arg(last = true, value_name = "COMMAND",
          required_unless_present_any = ["log", "pid", "container", "pod", "unit", "cgroup"])]
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
