//! The interface through which composing reads the running system.

use plan::ObjectId;
use record::record::Inode;
use record::{ContainerNames, Digests, HashedFile, NameAnswer};
use std::borrow::Cow;
use std::ffi::{CStr, CString};

/// The system whose events are composed: the running one (crate `lookup`), or in tests
/// [`StaticSystem`](crate::StaticSystem).
///
/// No method fails: what cannot be found out is `None`, and the record is written without it. `None` says that there is
/// no such thing only if [`System::refusals`] is the same before and after. Methods that take a path may be given one that
/// an audited process chose, so an implementation must not wait for what it leads to. All else is asked of the kernel,
/// which answers at once. Paths are absolute, as seen from the root directory and mount namespace of this system, and may
/// be longer than PATH_MAX.
pub trait System: Send + Sync {
    /// The look-ups that follow are for this event, until [`System::end_event`]. Together they have little time; so have
    /// those of all events of its maker. What takes longer is refused.
    fn begin_event(&self, _origin: Origin) {}

    /// The look-ups that follow are for no event.
    fn end_event(&self) {}

    /// Number of look-ups since [`System::begin_event`] whose results are not known, because there was no time for them or
    /// because a file system did not answer; also of lists that lack something for this reason.
    fn refusals(&self) -> u32 {
        0
    }

    /// The paths of this event are those that process `pid` saw: the first bytes of each, `prefix`, lead to its root
    /// directory, which no link and no `..` leaves.
    fn seen_by(&self, _pid: u32, _prefix: &[u8]) {}

    /// The object at `path`: stat(2) if `follow`, else lstat(2). Devices are in the kernel's own encoding
    /// ([`kernel_dev`]).
    fn inode(&self, path: &CStr, follow: bool) -> Option<Inode>;

    /// `path` without symbolic links, as realpath(3) returns it; `None` if any part of it does not exist.
    fn real_path(&self, path: &CStr) -> Option<Vec<u8>>;

    /// The extended attribute `security.capability` (capabilities(7)) of the object that `path` leads to, at most 24
    /// bytes. With `of`, `None` if that is another object.
    fn file_capabilities(&self, path: &CStr, of: Option<ObjectId>) -> Option<Vec<u8>>;

    /// The first `bytes_max` bytes, at most [`HEAD_BYTES_MAX`], of the regular file that `path` leads to, which somebody may
    /// execute; all of a shorter one. With `of`, `None` if that is another object. Refused for a file that nobody may
    /// execute.
    fn head(&self, path: &CStr, of: Option<ObjectId>, bytes_max: u32) -> Option<Vec<u8>>;

    /// The digests of a file that a process has executed: of its contents when the execve was done, never of another
    /// file's.
    fn digests(&self, file: &ExecutedFile<'_>) -> Digests;

    /// The directories above `path`, the nearest first, up to the root directory to which the first `prefix` bytes lead and
    /// without that. If something of `path` does not exist: those above what exists.
    fn directories_above(&self, path: &CStr, prefix: usize) -> Vec<ObjectId> {
        let object = |dir: &[u8]| {
            let Inode { dev, ino, .. } = self.inode(&CString::new(dir).ok()?, true)?;
            Some(ObjectId { dev, ino })
        };
        let above = directories_above(path.to_bytes(), prefix);
        above.filter_map(object).collect()
    }

    /// The kind of the file system at `path`: `f_type` of statfs(2).
    fn file_system(&self, path: &CStr) -> Option<u32>;

    /// Name of a user.
    fn user(&self, uid: u32) -> NameAnswer;

    /// Name of a group.
    fn group(&self, gid: u32) -> NameAnswer;

    /// The whole contents of a file that the kernel itself makes.
    fn kernel_file(&self, file: KernelFile) -> Option<Vec<u8>>;

    /// Passes each cgroup of the cgroup2 hierarchy to `found`, after the one that it is in; the root, number
    /// [`Cgroup::ROOT`], is left out. Returns whether that was all of them: `false` if no mount shows the whole
    /// hierarchy.
    fn cgroups(&self, found: &mut dyn FnMut(u64, Cgroup)) -> bool;

    /// The cgroup of the cgroup2 hierarchy with this id.
    fn cgroup(&self, id: u64) -> Option<Cgroup>;

    /// The names of the container with this id, and of the pod with this uid, which may be empty, from the files of their
    /// runtimes; `None` if none is known.
    fn container_names(&self, id: &[u8], pod: &[u8]) -> Option<ContainerNames>;

    /// Inode number of the mount namespace of process `pid`, or of this system if that is `None`.
    fn mount_namespace(&self, pid: Option<u32>) -> Option<u64>;

    /// Nanoseconds of CLOCK_MONOTONIC.
    fn monotonic_ns(&self) -> u64;

    /// Nanoseconds of CLOCK_REALTIME.
    fn realtime_ns(&self) -> u64;

    /// Major and minor version of the kernel, such as (6, 12); 0 for a number that uname(2) does not give.
    fn release(&self) -> (u32, u32);

    /// Whether the kernel's BTF types have this sign; `false` also if they cannot be read.
    fn kernel_has(&self, sign: Sign<'_>) -> bool;
}

/// The maker of an event, and its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Real uid of the task.
    pub uid: u32,
    /// Id of the task's cgroup.
    pub cgroup_id: u64,
    /// Time of the frame that completed the event, in nanoseconds of CLOCK_MONOTONIC.
    pub made_ns: u64,
}

/// A file that a process has executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExecutedFile<'a> {
    /// Path at which it was executed.
    pub path: &'a CStr,
    /// The object. A script's is the one that was found at `path` after the execve.
    pub object: ObjectId,
    /// Program or script.
    pub file: HashedFile,
    /// The process.
    pub pid: u32,
    /// Inode number of the mount namespace of the process.
    pub mnt_ns: u32,
    /// Time of the execve, in nanoseconds of CLOCK_MONOTONIC.
    pub time_ns: u64,
}

/// A cgroup of the cgroup2 hierarchy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cgroup {
    /// Id of the parent cgroup.
    pub parent: u64,
    /// Name within the parent cgroup.
    pub name: Box<[u8]>,
    /// Whether nobody but root may write to the directory of the parent, and so choose the name.
    pub is_of_root: bool,
}

impl Cgroup {
    /// Id of the root of the hierarchy (kernfs_create_root(), fs/kernfs/dir.c).
    pub const ROOT: u64 = 1;
}

/// The paths of the directories above the absolute `path`, the nearest first: without the root directory, and without
/// those that its first `prefix` bytes name.
pub fn directories_above(path: &[u8], prefix: usize) -> impl Iterator<Item = &[u8]> {
    let below = path.iter().enumerate().skip(prefix + 1).rev();
    let slashes = below.filter(|&(_, &byte)| byte == b'/');
    slashes.map(|(at, _)| &path[..at])
}

/// Limit of the bytes that [`System::head`] returns.
pub const HEAD_BYTES_MAX: u32 = 4096;

/// A file whose path no process can choose and whose contents come from the kernel's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KernelFile {
    /// The mounts of this system.
    Mounts,
    /// The kinds of file systems that the kernel knows, one per line, behind `nodev` if they need no device.
    Filesystems,
    /// The number of the kernel's last capability.
    LastCapability,
    /// The loaded AppArmor profiles, one per line.
    AppArmorProfiles,
    /// The security label of a process, or of this one if it is `None`.
    Label(Option<u32>),
    /// The label that AppArmor gave this process.
    AppArmorLabel,
    /// The label that Smack gave this process.
    SmackLabel,
    /// The id of this start of the system.
    BootId,
    /// `status` of a process (proc_pid_status(5)).
    Status(u32),
}

impl KernelFile {
    /// The path of the file.
    pub fn path(self) -> Cow<'static, str> {
        match self {
            KernelFile::Mounts => "/proc/self/mountinfo".into(),
            KernelFile::Filesystems => "/proc/filesystems".into(),
            KernelFile::LastCapability => "/proc/sys/kernel/cap_last_cap".into(),
            KernelFile::AppArmorProfiles => "/sys/kernel/security/apparmor/profiles".into(),
            KernelFile::Label(None) => "/proc/self/attr/current".into(),
            KernelFile::Label(Some(pid)) => format!("/proc/{pid}/attr/current").into(),
            KernelFile::AppArmorLabel => "/proc/self/attr/apparmor/current".into(),
            KernelFile::BootId => "/proc/sys/kernel/random/boot_id".into(),
            KernelFile::SmackLabel => "/proc/self/attr/smack/current".into(),
            KernelFile::Status(pid) => format!("/proc/{pid}/status").into(),
        }
    }
}

/// Something in the kernel's BTF types that came with a change in what the kernel collects for audit, and so shows that
/// the kernel has the change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign<'a> {
    /// A function of this name.
    Function(&'a str),
    /// An enumerator of an enumeration.
    Enumerator {
        /// The enumeration.
        of: &'a str,
        /// The enumerator.
        name: &'a str,
    },
    /// A parameter of a function.
    Parameter {
        /// The function.
        function: &'a str,
        /// The parameter.
        name: &'a str,
    },
}

/// A device number of stat(2) in the kernel's own encoding: MKDEV of linux/kdev_t.h.
pub fn kernel_dev(dev: u64) -> u32 {
    rustix::fs::major(dev) << 20 | rustix::fs::minor(dev)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_above_are_those_below_the_prefix() {
        let above = |path: &'static str, prefix| -> Vec<&'static [u8]> {
            directories_above(path.as_bytes(), prefix).collect()
        };
        assert_eq!(above("/a/bc/d", 0), [&b"/a/bc"[..], b"/a"]);
        assert_eq!(above("/proc/7/root/a/b", 12), [b"/proc/7/root/a"]);
        for (path, prefix) in [("/a", 0), ("/", 0), ("", 0), ("/proc/7/root/a", 12)] {
            assert!(above(path, prefix).is_empty(), "{path}");
        }
    }
}
