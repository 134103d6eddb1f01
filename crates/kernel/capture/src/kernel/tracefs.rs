//! Information from tracefs: ids of the per-syscall tracepoints, and which functions can be traced.

use crate::kernel::file_systems;
use rustix::fd::OwnedFd;
use rustix::fs::{openat, Mode, OFlags};
use std::io::{BufRead, BufReader, Read};

/// Directories where tracefs may be mounted.
const PLACES: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// Opens what a process can no longer open once it is confined. If tracefs is missing, the code that needs it reports
/// that later.
pub(crate) fn prepare() {
    let _ = file_systems::prepare("tracefs", &PLACES, "events/syscalls");
}

/// Whether a function whose name ends with `name_end` can be traced. The kernel's entry code cannot.
pub(crate) fn has_traced(name_end: &str) -> bool {
    let flags = OFlags::RDONLY;
    let Ok(list) = file_systems::open("tracefs", &PLACES, "available_filter_functions", flags)
    else {
        return false;
    };
    let mut list = BufReader::new(std::fs::File::from(list));
    let mut line = Vec::new();
    while matches!(list.read_until(b'\n', &mut line), Ok(count) if count > 0) {
        // NAME, or NAME [MODULE]
        let mut words = line.split(|byte| byte.is_ascii_whitespace());
        if words
            .next()
            .is_some_and(|name| name.ends_with(name_end.as_bytes()))
        {
            return true;
        }
        line.clear();
    }
    false
}

/// The directory `events/syscalls` of tracefs.
pub(crate) struct SyscallEvents(OwnedFd);

impl SyscallEvents {
    /// Opens the directory where it is mounted, or through a private mount.
    pub(crate) fn open() -> rustix::io::Result<SyscallEvents> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        file_systems::open("tracefs", &PLACES, "events/syscalls", flags).map(SyscallEvents)
    }

    /// Id of the exit tracepoint of the call with this name; `None` if there is none.
    pub(crate) fn exit_event(&self, name: &str) -> Option<u64> {
        self.event("sys_exit", name)
    }

    /// Id of the entry tracepoint of the call with this name; `None` if there is none.
    pub(crate) fn enter_event(&self, name: &str) -> Option<u64> {
        self.event("sys_enter", name)
    }

    fn event(&self, kind: &str, name: &str) -> Option<u64> {
        // Tracepoints are named after the kernel's functions, which differ from some calls' names.
        let functions = abi::entry_points(abi::Arch::native(), name);
        functions.into_iter().find_map(|name| self.id(kind, name))
    }

    fn id(&self, kind: &str, name: &str) -> Option<u64> {
        let path = format!("{kind}_{name}/id");
        let file = openat(
            &self.0,
            path,
            OFlags::RDONLY | OFlags::CLOEXEC,
            Mode::empty(),
        )
        .ok()?;
        let mut text = String::new();
        std::fs::File::from(file).read_to_string(&mut text).ok()?;
        text.trim().parse().ok()
    }
}
