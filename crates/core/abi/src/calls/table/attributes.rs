//! Calls on the attributes of files: fs/attr.c, fs/xattr.c, fs/stat.c, fs/utimes.c.

use super::{row, AT_EMPTY_PATH, AT_SYMLINK_FOLLOW, AT_SYMLINK_NOFOLLOW};
use crate::calls::row::CallRow;
use crate::calls::SyscallClass::{ChangeAttr, Read, Write};
use crate::calls::{ByFlag, EmptyName, EntryHook, NameUse, NameUse::Lookup, ObjectClass, Verb};
use ByFlag as By;

const IN_DONT_FOLLOW: u64 = 0x0200_0000;

/// A symbolic link at the end is followed unless argument `flags` says otherwise.
const fn unless(flags: u8) -> By {
    By::unless(flags, AT_SYMLINK_NOFOLLOW)
}

/// An empty path stands for the descriptor if argument `flags` says so.
const fn if_empty(flags: u8) -> By {
    By::only_if(flags, AT_EMPTY_PATH)
}

const fn sets_mode(name: &'static str) -> CallRow {
    row(name)
        .class(ChangeAttr)
        .hooks(ObjectClass::Lookup, &["security_path_chmod"])
        .entry(EntryHook::Before)
        .verb(Verb::SetMode)
}

const fn sets_owner(name: &'static str) -> CallRow {
    row(name)
        .class(ChangeAttr)
        .hooks(ObjectClass::Lookup, &["security_path_chown"])
        .verb(Verb::SetOwner)
}

const fn sets_xattr(name: &'static str) -> CallRow {
    row(name)
        .class(ChangeAttr)
        .hooks(ObjectClass::Lookup, &["security_inode_setxattr"])
        .verb(Verb::SetXattr)
}

const fn removes_xattr(name: &'static str) -> CallRow {
    row(name)
        .class(ChangeAttr)
        .hooks(ObjectClass::Lookup, &["security_inode_removexattr"])
        .verb(Verb::RemoveXattr)
}

const fn gets_xattr(name: &'static str) -> CallRow {
    row(name)
        .class(Read)
        .hooks(ObjectClass::Lookup, &["security_inode_getxattr"])
        .verb(Verb::GetXattr)
}

const fn lists_xattr(name: &'static str) -> CallRow {
    row(name)
        .class(Read)
        .hooks(ObjectClass::Lookup, &["security_inode_listxattr"])
        .verb(Verb::ListXattr)
}

const fn sets_times(name: &'static str) -> CallRow {
    row(name)
        .hooks(ObjectClass::Lookup, &["vfs_utimes"])
        .verb(Verb::SetTimes)
}

const fn stats(name: &'static str) -> CallRow {
    row(name).verb(Verb::Stat)
}

const fn stats_file_system(name: &'static str) -> CallRow {
    row(name).verb(Verb::StatFileSystem)
}

pub(super) const ROWS: &[CallRow] = &[
    sets_mode("chmod").path(0, Lookup),
    sets_mode("fchmod").fd(0),
    sets_mode("fchmodat").path_at(1, 0, Lookup),
    sets_mode("fchmodat2")
        .path_at(1, 0, Lookup)
        .follow(unless(3))
        .knows(3, 0x1100),
    sets_owner("chown").path(0, Lookup).entry(EntryHook::Before),
    sets_owner("fchown").fd(0).entry(EntryHook::Before),
    sets_owner("lchown")
        .path(0, Lookup)
        .no_follow()
        .entry(EntryHook::Before),
    sets_owner("fchownat")
        .path_at(1, 0, Lookup)
        .follow(unless(4))
        .knows(4, 0x1100)
        .entry(EntryHook::Before),
    sets_owner("chown32").path(0, Lookup).wordless(),
    sets_owner("fchown32").fd(0).wordless(),
    sets_owner("lchown32")
        .path(0, Lookup)
        .no_follow()
        .wordless(),
    sets_xattr("setxattr")
        .path(0, Lookup)
        .uring(&[("setxattr", 0)]),
    sets_xattr("lsetxattr").path(0, Lookup).no_follow(),
    sets_xattr("fsetxattr").fd(0).uring(&[("fsetxattr", 0)]),
    sets_xattr("setxattrat")
        .path_at(1, 0, Lookup)
        .follow(unless(2))
        .empty(if_empty(2), EmptyName::Unnamed)
        .wordless(),
    removes_xattr("removexattr").path(0, Lookup),
    removes_xattr("lremovexattr").path(0, Lookup).no_follow(),
    removes_xattr("fremovexattr").fd(0),
    removes_xattr("removexattrat")
        .path_at(1, 0, Lookup)
        .follow(unless(2))
        .empty(if_empty(2), EmptyName::Unnamed)
        .wordless(),
    gets_xattr("getxattr")
        .path(0, Lookup)
        .uring(&[("getxattr", 0)]),
    gets_xattr("lgetxattr").path(0, Lookup).no_follow(),
    gets_xattr("fgetxattr").fd(0).uring(&[("fgetxattr", 0)]),
    gets_xattr("getxattrat")
        .path_at(1, 0, Lookup)
        .follow(unless(2))
        .empty(if_empty(2), EmptyName::Unnamed),
    lists_xattr("listxattr").path(0, Lookup),
    lists_xattr("llistxattr").path(0, Lookup).no_follow(),
    lists_xattr("flistxattr").fd(0),
    lists_xattr("listxattrat")
        .path_at(1, 0, Lookup)
        .follow(unless(2))
        .empty(if_empty(2), EmptyName::Unnamed),
    sets_times("utime").path(0, Lookup),
    sets_times("utimes").path(0, Lookup),
    sets_times("futimesat").path_at(1, 0, Lookup),
    sets_times("utimensat")
        .path_at(1, 0, Lookup)
        .follow(unless(3))
        .knows(3, 0x1100),
    sets_times("utimensat_time64")
        .path_at(1, 0, Lookup)
        .follow(unless(3))
        .wordless(),
    stats("stat").path(0, Lookup).later_class(Read),
    stats("lstat").path(0, Lookup).no_follow().later_class(Read),
    stats("fstat").later_class(Read),
    // fstat in the table of arm64, which knows that name too.
    row("newfstat").later_class(Read),
    stats("newfstatat")
        .path_at(1, 0, Lookup)
        .follow(unless(3))
        .empty(if_empty(3), EmptyName::MissingInFstatat)
        .later_class(Read),
    stats("statx")
        .path_at(1, 0, Lookup)
        .follow(unless(2))
        .empty(if_empty(2), EmptyName::MissingInStatx)
        .later_class(Read)
        .uring(&[("statx", 0)]),
    stats("stat64").path(0, Lookup).later_class(Read),
    stats("lstat64")
        .path(0, Lookup)
        .no_follow()
        .later_class(Read)
        .wordless(),
    stats("fstat64").later_class(Read).wordless(),
    stats("fstatat64")
        .path_at(1, 0, Lookup)
        .follow(unless(3))
        .empty(if_empty(3), EmptyName::MissingInFstatat)
        .later_class(Read)
        .wordless(),
    stats("oldstat").path(0, Lookup).wordless(),
    stats("oldlstat").path(0, Lookup).no_follow().wordless(),
    stats("oldfstat").wordless(),
    row("access")
        .path(0, Lookup)
        .knows(1, 0o7)
        .verb(Verb::CheckAccess),
    row("faccessat")
        .path_at(1, 0, Lookup)
        .knows(2, 0o7)
        .verb(Verb::CheckAccess),
    row("faccessat2")
        .path_at(1, 0, Lookup)
        .follow(unless(3))
        .knows(3, 0x1300)
        .verb(Verb::CheckAccess),
    row("file_getattr")
        .path_at(1, 0, Lookup)
        .follow(unless(4))
        .empty(if_empty(4), EmptyName::Missing)
        .hooks(ObjectClass::Lookup, &["security_inode_file_getattr"])
        .later_class(Read),
    row("file_setattr")
        .path_at(1, 0, Lookup)
        .follow(unless(4))
        .empty(if_empty(4), EmptyName::Missing)
        .hooks(ObjectClass::Lookup, &["security_inode_file_setattr"])
        .later_class(ChangeAttr),
    stats_file_system("statfs").path(0, Lookup),
    stats_file_system("fstatfs"),
    stats_file_system("statmount"),
    stats_file_system("statfs64").path(0, Lookup).wordless(),
    stats_file_system("fstatfs64").wordless(),
    row("name_to_handle_at")
        .path_at(1, 0, Lookup)
        .follow(By::only_if(4, AT_SYMLINK_FOLLOW))
        .knows(4, 0x1601),
    row("inotify_add_watch")
        .path(1, Lookup)
        .follow(By::unless(2, IN_DONT_FOLLOW)),
    row("quotactl")
        .path(1, NameUse::Device)
        .class(Write)
        .class(Read)
        .verb(Verb::SetQuota),
    row("quotactl_fd")
        .later_class(Write)
        .later_class(Read)
        .verb(Verb::SetQuota),
    row("acct")
        .path(0, Lookup)
        .class(Write)
        .finds_first()
        .privileged(),
    row("uselib").path(0, Lookup),
];
