//! Numbers of the per-syscall tracepoints, read from tracefs. Where tracefs is not mounted, it is
//! mounted for this process's eyes only, attached to no directory.

use rustix::fd::OwnedFd;
use rustix::fs::{openat, Mode, OFlags, CWD};
use rustix::mount::{fsconfig_create, fsmount, fsopen, FsMountFlags, FsOpenFlags, MountAttrFlags};
use std::io::Read;

/// The directory `events/syscalls` of tracefs.
pub(crate) struct SyscallEvents(OwnedFd);

impl SyscallEvents {
    /// Opens it where it is mounted, or by a mount of our own.
    pub(crate) fn open() -> rustix::io::Result<SyscallEvents> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        for place in ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"] {
            let path = format!("{place}/events/syscalls");
            if let Ok(dir) = openat(CWD, path, flags, Mode::empty()) {
                return Ok(SyscallEvents(dir));
            }
        }
        let fs = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
        fsconfig_create(&fs)?;
        let root = fsmount(&fs, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())?;
        openat(root, "events/syscalls", flags, Mode::empty()).map(SyscallEvents)
    }

    /// Number of the exit tracepoint of the call with this name; `None` when there is none.
    pub(crate) fn exit_event(&self, name: &str) -> Option<u64> {
        self.event("sys_exit", name)
    }

    /// The same of the entry.
    pub(crate) fn enter_event(&self, name: &str) -> Option<u64> {
        self.event("sys_enter", name)
    }

    fn event(&self, kind: &str, name: &str) -> Option<u64> {
        // Tracepoints are named after the kernel's functions, which for some calls differ.
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
