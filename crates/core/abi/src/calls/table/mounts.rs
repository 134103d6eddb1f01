//! Calls on mounts, file systems and swap space: fs/namespace.c, fs/fsopen.c, mm/swapfile.c.

use super::{row, AT_SYMLINK_NOFOLLOW};
use crate::calls::row::CallRow;
use crate::calls::SyscallClass::Write;
use crate::calls::{ByFlag, EmptyName, EntryHook, NameUse, NameUse::Lookup, ObjectClass::Mount};
use crate::calls::{ShapeKind, Verb, NONE};
use ByFlag as By;

/// Flags of linux/fs.h, linux/mount.h and linux/fanotify.h.
const UMOUNT_NOFOLLOW: u64 = 8;
const FSPICK_SYMLINK_NOFOLLOW: u64 = 2;
const MOVE_MOUNT_F_SYMLINKS: u64 = 1;
const MOVE_MOUNT_F_EMPTY_PATH: u64 = 4;
const MOVE_MOUNT_T_SYMLINKS: u64 = 0x10;
const MOVE_MOUNT_T_EMPTY_PATH: u64 = 0x40;
const FAN_MARK_DONT_FOLLOW: u64 = 4;

const NOT_FOLLOWED: By = By::unless(2, AT_SYMLINK_NOFOLLOW);

const fn unmounts(name: &'static str) -> CallRow {
    row(name)
        .kind(ShapeKind::Lost)
        .path(0, Lookup)
        .hooks(Mount, &["security_sb_umount"])
        .verb(Verb::Unmount)
}

const fn opens_mount(name: &'static str) -> CallRow {
    row(name)
        .path_at(1, 0, Lookup)
        .follow(NOT_FOLLOWED)
        .finds_first()
        .privileged()
        .verb(Verb::OpenMount)
}

const fn changes_swap(name: &'static str) -> CallRow {
    row(name)
        .path(0, Lookup)
        .finds_first()
        .privileged()
        .verb(Verb::Swap)
}

pub(super) const ROWS: &[CallRow] = &[
    // The source is a path only if the call attaches something that is mounted elsewhere.
    row("mount")
        .kind(ShapeKind::Mount)
        .path(1, Lookup)
        .path(0, Lookup)
        .finds_first()
        .hooks(Mount, &["security_sb_mount"])
        .entry(EntryHook::Before)
        .verb(Verb::Mount),
    row("fsopen").verb(Verb::PrepareMount),
    // Some file systems look up what their options name.
    row("fsconfig")
        .kind(ShapeKind::Fsconfig)
        .path(NONE, Lookup)
        .verb(Verb::PrepareMount),
    row("fsmount").verb(Verb::Mount),
    row("fspick")
        .path_at(1, 0, Lookup)
        .follow(By::unless(2, FSPICK_SYMLINK_NOFOLLOW))
        .knows(2, 0xf)
        .privileged()
        .verb(Verb::PrepareMount),
    row("move_mount")
        .kind(ShapeKind::Lost)
        .path_at(1, 0, Lookup)
        .follow(By::only_if(4, MOVE_MOUNT_F_SYMLINKS))
        .empty(
            By::only_if(4, MOVE_MOUNT_F_EMPTY_PATH),
            EmptyName::MissingInMoveMount,
        )
        .path_at(3, 2, Lookup)
        .follow(By::only_if(4, MOVE_MOUNT_T_SYMLINKS))
        .empty(
            By::only_if(4, MOVE_MOUNT_T_EMPTY_PATH),
            EmptyName::MissingInMoveMount,
        )
        .finds_first()
        .privileged()
        .hooks(Mount, &["security_move_mount"])
        .entry(EntryHook::Before)
        .verb(Verb::MoveMount),
    opens_mount("open_tree").knows(2, 0x8_9901),
    opens_mount("open_tree_attr"),
    row("mount_setattr")
        .path_at(1, 0, Lookup)
        .follow(NOT_FOLLOWED)
        .knows(2, 0x9900)
        .privileged()
        .verb(Verb::SetMountAttributes),
    unmounts("umount"),
    unmounts("umount2")
        .follow(By::unless(1, UMOUNT_NOFOLLOW))
        .knows(1, 0xf)
        .entry(EntryHook::Before),
    changes_swap("swapon").class(Write),
    changes_swap("swapoff"),
    row("sysfs").path(1, NameUse::FileSystemKind),
    // Its mask of 64 bits takes two arguments of 32-bit programs.
    row("fanotify_mark")
        .path_at(4, 3, Lookup)
        .follow(By::unless(1, FAN_MARK_DONT_FOLLOW))
        .on_32_bit(
            row("fanotify_mark")
                .path_at(5, 4, Lookup)
                .follow(By::unless(1, FAN_MARK_DONT_FOLLOW)),
        ),
];
