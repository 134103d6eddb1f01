//! Questions of `tarsier doctor` to a host: a trait, so that the judgement is tested without one.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Facts that decide about the engine.
#[derive(Clone, Debug, Default)]
pub(super) struct EngineFacts {
    /// Whether the kernel has type information.
    pub(super) btf: bool,
    /// Reason why no eBPF engine works here.
    pub(super) ebpf_refusal: Option<String>,
    /// Reason why the trampoline engine does not work; `None` if it does. Known to root only.
    pub(super) trampoline_refusal: Option<String>,
    /// Parts that the kernel lacks, with what is less exact for that under the engine that would be chosen.
    pub(super) gaps: Vec<String>,
    /// Whether programs can make 32-bit calls.
    pub(super) compat_entry: bool,
    /// Whether programs can make calls of x32.
    pub(super) x32_calls: bool,
}

/// State of the kernel's audit.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AuditFacts {
    /// 0 off, 1 on, 2 locked.
    pub(super) enabled: u32,
    /// The registered daemon; 0 for none.
    pub(super) pid: u32,
}

/// Owner and mode of a directory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Owner {
    pub(super) uid: u32,
    /// Permission bits.
    pub(super) mode: u32,
    pub(super) is_directory: bool,
}

/// Room on a file system.
#[derive(Clone, Copy, Debug)]
pub(super) struct Space {
    pub(super) free_mib: u64,
    pub(super) total_mib: u64,
}

/// The configuration in force.
#[derive(Clone, Debug)]
pub(super) struct Configured {
    pub(super) log_dir: PathBuf,
    /// Whether a log is written at all.
    pub(super) writes_logs: bool,
    /// Free MiB below which auditd.conf's last resort is taken; 0 for never.
    pub(super) admin_space_left_mib: u64,
    pub(super) pin_dir: Option<PathBuf>,
    /// Keys that have no effect.
    pub(super) notices: usize,
}

/// A host.
pub(super) trait Machine {
    /// Text of a file of /proc, /sys or /etc.
    fn text(&self, path: &str) -> io::Result<String>;
    fn is_root(&self) -> bool;
    fn engine(&self) -> EngineFacts;
    /// State of the kernel's audit.
    ///
    /// # Errors
    /// The state cannot be asked for; the text says why.
    fn audit(&self) -> Result<AuditFacts, String>;
    /// Processes by number and name.
    fn processes(&self) -> Vec<(u32, String)>;
    fn owner(&self, path: &Path) -> io::Result<Owner>;
    fn space(&self, directory: &Path) -> io::Result<Space>;
    /// Median time of a write of 4 KiB with an fdatasync(2) there. Leaves nothing.
    fn sync_time(&self, directory: &Path) -> io::Result<Duration>;
    /// Whether the kernel's clock is synchronised (adjtimex(2)).
    fn is_clock_synchronised(&self) -> io::Result<bool>;
    /// Whether a BPF file system is mounted at `path`.
    fn is_bpf_file_system(&self, path: &Path) -> bool;
    /// Number of rules that would be loaded; `None` if there is no file of rules.
    ///
    /// # Errors
    /// `tarsier run` would refuse the rules; the text says why.
    fn rules(&self) -> Result<Option<usize>, String>;
    /// What of the files is not in force in the running daemon, in a line; `None` if all is, or no daemon answers.
    fn not_in_force(&self) -> Option<String>;
    /// The configuration.
    ///
    /// # Errors
    /// `tarsier run` would refuse the configuration; the text says why.
    fn configuration(&self) -> Result<Configured, String>;
}
