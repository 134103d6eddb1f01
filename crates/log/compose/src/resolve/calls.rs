//! Facts about the names of a call, derived from its number, arguments and result.

use super::kernel::Kernel;
use record::wire::{self, tarsier_found, Event};

const AT_EMPTY_PATH: u64 = 0x1000;
const MS_REMOUNT: u64 = 0x20;
/// MS_SHARED and the like.
const CHANGES_KIND: u64 = 0x1e_0000;
/// Commands of bpf(2).
const BPF_OBJ_PIN: u64 = 6;
const BPF_OBJ_GET: u64 = 7;
const ENOENT: i64 = -2;
const EPERM: i64 = -1;
const E2BIG: i64 = -7;
const EACCES: i64 = -13;
const EFAULT: i64 = -14;
const EXDEV: i64 = -18;
const ENOTDIR: i64 = -20;
const EINVAL: i64 = -22;
const ELOOP: i64 = -40;

/// Existence of the object that a path named, as far as the result of the call shows it.
#[derive(Clone, Copy)]
pub(super) enum LookupOutcome {
    There,
    Missing,
    Nothing,
}

impl LookupOutcome {
    pub(super) fn by(event: &Event<'_>) -> LookupOutcome {
        match (event.exit(), call_name(event)) {
            (Some(ENOENT), _) => LookupOutcome::Missing,
            // The object may exist, but audit does not note it: it is not a directory, as a name before a '/' has to be, or
            // openat2's `resolve` forbids the way to it. Calls on mounts compare what they have found.
            (Some(ENOTDIR), Some("mount" | "move_mount" | "open_tree" | "open_tree_attr")) => {
                LookupOutcome::Nothing
            }
            (Some(ENOTDIR), Some(name)) if !opens(name) => LookupOutcome::Missing,
            (Some(ELOOP | EXDEV), Some("openat2")) => LookupOutcome::Missing,
            (Some(exit), _) if record::record::is_success(exit) => LookupOutcome::There,
            _ => LookupOutcome::Nothing,
        }
    }
}

/// Whether a call opens a file: it looks at what it has found before it asks whether that is a directory.
fn opens(name: &str) -> bool {
    matches!(
        name,
        "open" | "openat" | "openat2" | "creat" | "swapon" | "swapoff" | "acct"
    )
}

/// Name of the call, or of the call that does the same as the io_uring operation.
pub(super) fn call_name(event: &Event<'_>) -> Option<&'static str> {
    let header = event.header();
    let nr = event.call_number();
    if event.has_flag(wire::TARSIER_URING) {
        return abi::uring_op_calls(nr).first().copied();
    }
    abi::Arch::from_audit_arch(header.arch).and_then(|arch| abi::syscall_name(arch, nr))
}

/// The flags of calls that look at them before they read a name: the argument, and those that the call knows.
const KNOWN_FLAGS: [(&str, usize, u32); 12] = [
    ("access", 1, 0o7),
    ("faccessat", 2, 0o7),
    ("faccessat2", 3, 0x1300),
    ("fchmodat2", 3, 0x1100),
    ("fchownat", 4, 0x1100),
    ("fspick", 2, 0xf),
    ("mount_setattr", 2, 0x9900),
    ("name_to_handle_at", 4, 0x1601),
    ("open_tree", 2, 0x8_9901),
    ("umount2", 1, 0xf),
    ("unlinkat", 2, 0x200),
    ("utimensat", 3, 0x1100),
];

/// Whether the call was refused before it read a name: for flags that it does not know, or since the task may not make
/// such calls.
fn is_refused_first(event: &Event<'_>) -> bool {
    let name = call_name(event).unwrap_or_default();
    let args = &event.header().args;
    match (event.exit(), name) {
        (Some(EINVAL), "readlink") => args[2] as i32 <= 0,
        (Some(EINVAL), "readlinkat") => args[3] as i32 <= 0,
        (Some(EINVAL), "truncate" | "truncate64") => (args[1] as i64) < 0,
        (Some(EINVAL), name) => {
            let mut flags = KNOWN_FLAGS.iter().filter(|flags| flags.0 == name);
            flags.any(|&(_, argument, known)| args[argument] as u32 & !known != 0)
        }
        (Some(EPERM), name) => matches!(
            name,
            "acct"
                | "fspick"
                | "open_tree"
                | "open_tree_attr"
                | "mount_setattr"
                | "move_mount"
                | "pivot_root"
                | "swapoff"
                | "swapon"
        ),
        _ => false,
    }
}

/// Whether the call was refused because the task may not search a directory on the way to path `index`.
pub(super) fn is_barred(event: &Event<'_>, index: u8) -> bool {
    let is_barred = |found: tarsier_found| found.known & wire::TARSIER_FOUND_BARRED != 0;
    event.exit() == Some(EACCES) && event.found(index).is_some_and(is_barred)
}

/// Whether the call was refused for its other arguments, before it looked anything up: mknod(2) of what it does not make
/// (`may_mknod()`, fs/namei.c).
pub(super) fn is_refused_at_once(event: &Event<'_>) -> bool {
    const S_IFMT: u64 = 0o170000;
    const S_IFDIR: u64 = 0o040000;
    const S_IFLNK: u64 = 0o120000;
    let mode = match call_name(event) {
        Some("mknod") => event.header().args[1],
        Some("mknodat") => event.header().args[2],
        _ => return false,
    };
    matches!(
        (event.exit(), mode & S_IFMT),
        (Some(EPERM), S_IFDIR) | (Some(EINVAL), S_IFLNK)
    )
}

/// Whether the kernel collected names for the call. It does not if openat2 refused its structure, nor, on kernels that
/// make this difference, for an empty path that stands for a descriptor alone (AT_EMPTY_PATH).
pub(super) fn collects_names(event: &Event<'_>, kernel: Kernel) -> bool {
    let is_empty = |index| event.path(index).is_some_and(|path| path.data.is_empty());
    let empty_path = || is_empty(0);
    let is_nameless = |index| is_empty(index) && names_descriptor_alone(event, index, kernel);
    if is_refused_first(event) {
        return false;
    }

    match (call_name(event), event.exit()) {
        (Some("openat2"), Some(EINVAL | EFAULT | E2BIG)) => false,
        (Some("newfstatat" | "fstatat64"), _) if kernel.fstatat_takes_descriptor => {
            event.header().args[3] & AT_EMPTY_PATH == 0 || !empty_path()
        }
        (Some("statx"), _) if kernel.statx_takes_descriptor => {
            event.header().args[2] & AT_EMPTY_PATH == 0 || !empty_path()
        }
        (Some("move_mount"), _) => !(is_nameless(0) && is_nameless(1)),
        (Some("sysfs"), _) => kernel.sysfs_takes_path,
        // An empty path stands for the descriptor alone: fs/file_attr.c.
        (Some("file_getattr" | "file_setattr"), _) => {
            event.header().args[4] & AT_EMPTY_PATH == 0 || !empty_path()
        }
        _ => true,
    }
}

/// Whether the kernel treats path argument `index` as a path. mount(2) does so with its source only for a bind or move
/// mount (path_mount(), fs/namespace.c), sysfs(2) with its second argument only for option 1.
pub(super) fn looks_up(event: &Event<'_>, index: u8) -> bool {
    const MS_BIND: u64 = 0x1000;
    const MS_MOVE: u64 = 0x2000;
    let args = &event.header().args;
    match (call_name(event), index) {
        (Some("mount"), 1) => {
            let flags = args[3];
            flags & MS_REMOUNT == 0
                && (flags & MS_BIND != 0 || flags & MS_MOVE != 0 && flags & CHANGES_KIND == 0)
        }
        (Some("sysfs"), _) => args[0] == 1,
        (Some("bpf"), _) => matches!(args[0], BPF_OBJ_PIN | BPF_OBJ_GET),
        (Some("fsconfig"), _) => false,
        _ => true,
    }
}

/// Whether the call makes the entry that its path names, although other calls of that name do not: bpf(2).
pub(super) fn pins(event: &Event<'_>) -> bool {
    call_name(event) == Some("bpf") && event.header().args[0] == BPF_OBJ_PIN
}

/// Whether a file system may have looked up names that are not among the arguments: the device of mount(2), and what
/// options name (FSCONFIG_SET_STRING, _SET_PATH, _SET_PATH_EMPTY, _CMD_CREATE and _CMD_CREATE_EXCL of fsconfig(2)).
pub(super) fn may_look_up_more(event: &Event<'_>) -> bool {
    const MS_BIND: u64 = 0x1000;
    const MS_MOVE: u64 = 0x2000;
    const EBADF: i64 = -9;
    let args = &event.header().args;
    if matches!(event.exit(), Some(EPERM | EBADF | EFAULT)) {
        return false;
    }

    match call_name(event) {
        Some("mount") => args[3] & (MS_REMOUNT | MS_BIND | MS_MOVE | CHANGES_KIND) == 0,
        Some("fsconfig") => matches!(args[1] as u32, 1 | 3 | 4 | 6 | 8),
        _ => false,
    }
}

/// Whether the call has mounted something on its first path argument: mount(2), path_mount() of fs/namespace.c.
pub(super) fn mounts_on_first(event: &Event<'_>) -> bool {
    let is_mount = call_name(event) == Some("mount") && event.exit() == Some(0);
    is_mount && event.header().args[3] & (MS_REMOUNT | CHANGES_KIND) == 0
}

/// Whether the call has mounted something on its second path argument: move_mount(2).
pub(super) fn mounts_on_second(event: &Event<'_>) -> bool {
    call_name(event) == Some("move_mount") && event.exit() == Some(0)
}

/// Whether an empty path has a name in audit even if its descriptor is not known: execveat(2) with AT_EMPTY_PATH.
pub(super) fn takes_empty_path(event: &Event<'_>) -> bool {
    call_name(event) == Some("execveat") && event.header().args[4] & AT_EMPTY_PATH != 0
}

/// Whether an empty path argument `index` stands for its descriptor alone, so that the kernel collects no name:
/// move_mount(2) with `getname_maybe_null()`, fs/namei.c.
pub(super) fn names_descriptor_alone(event: &Event<'_>, index: u8, kernel: Kernel) -> bool {
    const MOVE_MOUNT_F_EMPTY_PATH: u64 = 4;
    const MOVE_MOUNT_T_EMPTY_PATH: u64 = 0x40;
    let flag = match index {
        0 => MOVE_MOUNT_F_EMPTY_PATH,
        _ => MOVE_MOUNT_T_EMPTY_PATH,
    };
    let is_move = kernel.target_first && call_name(event) == Some("move_mount");
    is_move && event.header().args[4] & flag != 0
}

/// Whether an empty or null path of setxattrat(2) and its like stands for the descriptor. Audit then notes the
/// descriptor's file without a name: `audit_file()`, fs/xattr.c. `None` for other calls.
pub(super) fn looks_at_descriptor(event: &Event<'_>) -> Option<bool> {
    match call_name(event) {
        Some("setxattrat" | "getxattrat" | "listxattrat" | "removexattrat") => {
            Some(event.header().args[2] & AT_EMPTY_PATH != 0)
        }
        _ => None,
    }
}

/// Whether the call changed the current or the root directory, so that its paths were not relative to the directories
/// that the task has now.
pub(super) fn moves_directory(event: &Event<'_>) -> bool {
    event.exit() == Some(0)
        && matches!(
            call_name(event),
            Some("chdir" | "fchdir" | "chroot" | "fchroot" | "pivot_root")
        )
}
