//! Facts about the names of a call, derived from its number, arguments and result.

use super::kernel::Kernel;
use abi::exit::{E2BIG, EACCES, EBADF, EFAULT, EINVAL, ELOOP, ENOENT, ENOTDIR, EPERM, EXDEV};
use abi::{Arch, CallRow, EmptyName, EmptyPath, LengthLimit, NameUse, ShapeKind, Verb, NONE};
use record::wire::{self, tarsier_found, Event};

const MS_REMOUNT: u64 = 0x20;
/// MS_SHARED and the like.
const CHANGES_KIND: u64 = 0x1e_0000;
/// Commands of bpf(2).
const BPF_OBJ_PIN: u64 = 6;
const BPF_OBJ_GET: u64 = 7;

/// Existence of the object that a path named, as far as the result of the call shows it.
#[derive(Clone, Copy)]
pub(super) enum LookupOutcome {
    There,
    Missing,
    Nothing,
}

impl LookupOutcome {
    pub(super) fn by(event: &Event<'_>) -> LookupOutcome {
        let row = call(event);
        match event.exit() {
            Some(ENOENT) => LookupOutcome::Missing,
            // The object may exist, but audit does not note it: it is not a directory, as a name before a '/' has to be, or
            // openat2's `resolve` forbids the way to it. Some calls compare what they have found.
            Some(ENOTDIR) if row.finds_first => LookupOutcome::Nothing,
            Some(ENOTDIR) => LookupOutcome::Missing,
            Some(ELOOP | EXDEV) if row.shape.how != NONE => LookupOutcome::Missing,
            Some(exit) if record::record::is_success(exit) => LookupOutcome::There,
            _ => LookupOutcome::Nothing,
        }
    }
}

/// What is known of the call, or of the call that does the same as the io_uring operation.
pub(super) fn call(event: &Event<'_>) -> &'static CallRow {
    let nr = event.call_number();
    if event.has_flag(wire::TARSIER_URING) {
        let first = abi::uring_op_calls(nr).first();
        return first.map_or(&CallRow::UNKNOWN, |name| abi::call(name));
    }
    let arch = Arch::from_audit_arch(event.header().arch);
    arch.map_or(&CallRow::UNKNOWN, |arch| abi::call_of(arch, nr))
}

/// Whether the call was refused before it read a name: for flags or a length that it does not take, or since the task may
/// not make such calls.
fn is_refused_first(event: &Event<'_>) -> bool {
    let row = call(event);
    let args = &event.header().args;
    let argument = |index: u8| args.get(usize::from(index)).copied().unwrap_or(0);

    match event.exit() {
        Some(EINVAL) => {
            let is_short = match row.length {
                Some(LengthLimit::Positive(index)) => argument(index) as i32 <= 0,
                Some(LengthLimit::NotNegative(index)) => (argument(index) as i64) < 0,
                None => false,
            };
            let has_others = |(index, known): (u8, u32)| argument(index) as u32 & !known != 0;
            is_short || row.known_flags.is_some_and(has_others)
        }
        Some(EPERM) => row.is_privileged,
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
    let node_mode = usize::from(call(event).node_mode);
    let Some(mode) = event.header().args.get(node_mode) else {
        return false;
    };
    matches!(
        (event.exit(), mode & S_IFMT),
        (Some(EPERM), S_IFDIR) | (Some(EINVAL), S_IFLNK)
    )
}

/// Whether the kernel collected names for the call. It does not if openat2 refused its structure, nor, on kernels that
/// make this difference, for an empty path that stands for a descriptor alone (AT_EMPTY_PATH).
pub(super) fn collects_names(event: &Event<'_>, kernel: Kernel) -> bool {
    let row = call(event);
    let is_empty = |index| event.path(index).is_some_and(|path| path.data.is_empty());
    let is_nameless = |index| is_empty(index) && names_descriptor_alone(event, index, kernel);
    let paths = row.shape.paths.iter().flatten().count() as u8;

    if is_refused_first(event) {
        return false;
    }
    // openat2 has not read its structure.
    let is_unread = row.shape.how != NONE && matches!(event.exit(), Some(EINVAL | EFAULT | E2BIG));
    let is_kind = row.shape.paths[0].is_some_and(|path| path.use_ == NameUse::FileSystemKind);
    !is_unread
        && (paths == 0 || !(0..paths).all(is_nameless))
        && (!is_kind || kernel.sysfs_takes_path)
}

/// Whether the kernel treats path argument `index` as a path. mount(2) does so with its source only for a bind or move
/// mount (path_mount(), fs/namespace.c), sysfs(2) with its second argument only for option 1.
pub(super) fn looks_up(event: &Event<'_>, index: u8) -> bool {
    const MS_BIND: u64 = 0x1000;
    const MS_MOVE: u64 = 0x2000;
    let args = &event.header().args;
    let shape = &call(event).shape;
    let arg = shape.paths.get(usize::from(index)).copied().flatten();

    match shape.kind {
        ShapeKind::Mount if index == 1 => {
            let flags = args[3];
            flags & MS_REMOUNT == 0
                && (flags & MS_BIND != 0 || flags & MS_MOVE != 0 && flags & CHANGES_KIND == 0)
        }
        ShapeKind::Bpf => matches!(args[0], BPF_OBJ_PIN | BPF_OBJ_GET),
        ShapeKind::Fsconfig => false,
        _ => args[0] == 1 || arg.is_none_or(|arg| arg.use_ != NameUse::FileSystemKind),
    }
}

/// Whether the call makes the entry that its path names, although other calls of that name do not: bpf(2).
pub(super) fn pins(event: &Event<'_>) -> bool {
    call(event).shape.kind == ShapeKind::Bpf && event.header().args[0] == BPF_OBJ_PIN
}

/// Whether a file system may have looked up names that are not among the arguments: the device of mount(2), and what
/// options name (FSCONFIG_SET_STRING, _SET_PATH, _SET_PATH_EMPTY, _CMD_CREATE and _CMD_CREATE_EXCL of fsconfig(2)).
pub(super) fn may_look_up_more(event: &Event<'_>) -> bool {
    const MS_BIND: u64 = 0x1000;
    const MS_MOVE: u64 = 0x2000;
    let args = &event.header().args;
    if matches!(event.exit(), Some(EPERM | EBADF | EFAULT)) {
        return false;
    }

    match call(event).shape.kind {
        ShapeKind::Mount => args[3] & (MS_REMOUNT | MS_BIND | MS_MOVE | CHANGES_KIND) == 0,
        ShapeKind::Fsconfig => matches!(args[1] as u32, 1 | 3 | 4 | 6 | 8),
        _ => false,
    }
}

/// Whether the call has mounted something on its first path argument: mount(2), path_mount() of fs/namespace.c.
pub(super) fn mounts_on_first(event: &Event<'_>) -> bool {
    let is_mount = call(event).shape.kind == ShapeKind::Mount && event.exit() == Some(0);
    is_mount && event.header().args[3] & (MS_REMOUNT | CHANGES_KIND) == 0
}

/// Whether the call has mounted something on its second path argument: move_mount(2).
pub(super) fn mounts_on_second(event: &Event<'_>) -> bool {
    call(event).verb == Some(Verb::MoveMount) && event.exit() == Some(0)
}

/// What an empty path argument `index` means.
fn empty_path(event: &Event<'_>, index: u8) -> Option<EmptyPath> {
    let paths = &call(event).shape.paths;
    let arg = paths.get(usize::from(index)).copied().flatten()?;
    Some(arg.empty)
}

/// Whether an empty path has a name in audit even if its descriptor is not known.
pub(super) fn takes_empty_path(event: &Event<'_>) -> bool {
    empty_path(event, 0).is_some_and(|empty| {
        empty.name == EmptyName::Numbered && empty.is_descriptor.by(&event.header().args)
    })
}

/// Whether an empty path argument `index` stands for its descriptor alone, so that the kernel collects no name.
pub(super) fn names_descriptor_alone(event: &Event<'_>, index: u8, kernel: Kernel) -> bool {
    empty_path(event, index).is_some_and(|empty| {
        let is_missing = match empty.name {
            EmptyName::Missing => true,
            EmptyName::MissingInFstatat => kernel.fstatat_takes_descriptor,
            EmptyName::MissingInStatx => kernel.statx_takes_descriptor,
            EmptyName::MissingInMoveMount => kernel.target_first,
            EmptyName::Item | EmptyName::Unnamed | EmptyName::Numbered => false,
        };
        is_missing && empty.is_descriptor.by(&event.header().args)
    })
}

/// Whether an empty or null path of setxattrat(2) and its like stands for the descriptor, whose file audit then notes
/// without a name. `None` for other calls.
pub(super) fn looks_at_descriptor(event: &Event<'_>) -> Option<bool> {
    let empty = empty_path(event, 0).filter(|empty| empty.name == EmptyName::Unnamed)?;
    Some(empty.is_descriptor.by(&event.header().args))
}

/// Whether the call changed the current or the root directory, so that its paths were not relative to the directories
/// that the task has now.
pub(super) fn moves_directory(event: &Event<'_>) -> bool {
    event.exit() == Some(0) && call(event).moves.is_some()
}
