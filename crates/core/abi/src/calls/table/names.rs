//! Calls that change the entries of directories, or the directories of the task: fs/namei.c, fs/open.c.

use super::{row, AT_SYMLINK_FOLLOW};
use crate::calls::row::{CallRow, NewDirectory};
use crate::calls::SyscallClass::{ChangeAttr, DirWrite, Read};
use crate::calls::{ByFlag, EmptyName, EntryHook, LengthLimit, NameUse, ObjectClass};
use crate::calls::{ShapeKind, Verb, PARENT_LOOKUP};
use ByFlag as By;
use NameUse::{Create, Delete, LinkSource, Lookup, Rename, SymlinkTarget};
use ObjectClass::{Directory, Entries};

const AT_REMOVEDIR: u64 = 0x200;

/// A call on an entry, with the functions that act on it.
const fn entry(name: &'static str, functions: &'static [&'static str]) -> CallRow {
    row(name).class(DirWrite).hooks(Entries, functions)
}

#[rustfmt::skip]
const UNLINK: [&str; 5] = ["do_unlinkat", "filename_unlinkat", PARENT_LOOKUP, "security_path_unlink", "vfs_unlink"];
#[rustfmt::skip]
const RMDIR: [&str; 5] = ["do_rmdir", "filename_rmdir", PARENT_LOOKUP, "security_path_rmdir", "vfs_rmdir"];
#[rustfmt::skip]
const UNLINKAT: [&str; 9] = [
    "do_unlinkat", "filename_unlinkat", "do_rmdir", "filename_rmdir", PARENT_LOOKUP, "security_path_unlink",
    "security_path_rmdir", "vfs_unlink", "vfs_rmdir",
];
#[rustfmt::skip]
const RENAME: [&str; 5] = ["do_renameat2", "filename_renameat2", PARENT_LOOKUP, "security_path_rename", "vfs_rename"];
#[rustfmt::skip]
const LINK: [&str; 5] = ["do_linkat", "filename_linkat", PARENT_LOOKUP, "security_path_link", "vfs_link"];
#[rustfmt::skip]
const SYMLINK: [&str; 5] = ["do_symlinkat", "filename_symlinkat", PARENT_LOOKUP, "security_path_symlink", "vfs_symlink"];
#[rustfmt::skip]
const MKDIR: [&str; 5] = ["do_mkdirat", "filename_mkdirat", PARENT_LOOKUP, "security_path_mkdir", "vfs_mkdir"];
#[rustfmt::skip]
const MKNOD: [&str; 6] = [
    "do_mknodat", "filename_mknodat", PARENT_LOOKUP, "security_path_mknod", "vfs_mknod", "vfs_create",
];

pub(super) const ROWS: &[CallRow] = &[
    entry("unlink", &UNLINK)
        .path(0, Delete)
        .entry(EntryHook::Before)
        .verb(Verb::Delete),
    entry("unlinkat", &UNLINKAT)
        .path_at(1, 0, Delete)
        .removes_directory(By::only_if(2, AT_REMOVEDIR))
        .knows(2, 0x200)
        .entry(EntryHook::Before)
        .uring(&[("unlinkat", 0)])
        .verb(Verb::Delete),
    entry("rmdir", &RMDIR)
        .path(0, Delete)
        .removes_directory(By::ALWAYS)
        .entry(EntryHook::Before)
        .verb(Verb::Delete),
    entry("rename", &RENAME)
        .kind(ShapeKind::Rename)
        .path(0, Rename)
        .path(1, Rename)
        .entry(EntryHook::Before)
        .verb(Verb::Rename),
    entry("renameat", &RENAME)
        .kind(ShapeKind::Rename)
        .path_at(1, 0, Rename)
        .path_at(3, 2, Rename)
        .entry(EntryHook::Before)
        .uring(&[("renameat", 1)])
        .verb(Verb::Rename),
    entry("renameat2", &RENAME)
        .kind(ShapeKind::Rename)
        .path_at(1, 0, Rename)
        .path_at(3, 2, Rename)
        .rename_flags(4)
        .entry(EntryHook::Before)
        .uring(&[("renameat", 0)])
        .verb(Verb::Rename),
    entry("mkdir", &MKDIR)
        .path(0, Create)
        .verb(Verb::MakeDirectory),
    entry("mkdirat", &MKDIR)
        .path_at(1, 0, Create)
        .uring(&[("mkdirat", 0)])
        .verb(Verb::MakeDirectory),
    entry("mknod", &MKNOD)
        .path(0, Create)
        .node_mode(1)
        .verb(Verb::MakeNode),
    entry("mknodat", &MKNOD)
        .path_at(1, 0, Create)
        .node_mode(2)
        .verb(Verb::MakeNode),
    entry("link", &LINK)
        .path(0, LinkSource)
        .path(1, Create)
        .class(ChangeAttr)
        .verb(Verb::Link),
    entry("linkat", &LINK)
        .path_at(1, 0, LinkSource)
        .follow(By::only_if(4, AT_SYMLINK_FOLLOW))
        .path_at(3, 2, Create)
        .class(ChangeAttr)
        .uring(&[("linkat", 0)])
        .verb(Verb::Link),
    entry("symlink", &SYMLINK)
        .path(0, SymlinkTarget)
        .path(1, Create)
        .verb(Verb::Symlink),
    entry("symlinkat", &SYMLINK)
        .path(0, SymlinkTarget)
        .path_at(2, 1, Create)
        .uring(&[("symlinkat", 0)])
        .verb(Verb::Symlink),
    row("readlink")
        .path(0, Lookup)
        .no_follow()
        .hooks(ObjectClass::Lookup, &["security_inode_readlink"])
        .class(Read)
        .length(LengthLimit::Positive(2))
        .verb(Verb::ReadLink),
    row("readlinkat")
        .path_at(1, 0, Lookup)
        .no_follow()
        .empty(By::ALWAYS, EmptyName::Item)
        .hooks(ObjectClass::Lookup, &["security_inode_readlink"])
        .class(Read)
        .length(LengthLimit::Positive(3))
        .verb(Verb::ReadLink),
    row("chdir")
        .kind(ShapeKind::Lost)
        .path(0, Lookup)
        .hooks(Directory, &["set_fs_pwd"])
        .entry(EntryHook::Directory)
        .moves(NewDirectory::Current)
        .verb(Verb::ChangeDirectory),
    row("fchdir")
        .hooks(Directory, &["set_fs_pwd"])
        .entry(EntryHook::Directory)
        .moves(NewDirectory::Current)
        .verb(Verb::ChangeDirectory),
    row("chroot")
        .kind(ShapeKind::Lost)
        .path(0, Lookup)
        .hooks(Directory, &["set_fs_root"])
        .entry(EntryHook::Directory)
        .moves(NewDirectory::Root)
        .verb(Verb::ChangeRoot),
    row("fchroot")
        .hooks(Directory, &["set_fs_root"])
        .entry(EntryHook::Directory)
        .moves(NewDirectory::Root)
        .verb(Verb::ChangeRoot),
    row("pivot_root")
        .kind(ShapeKind::Lost)
        .path(0, Lookup)
        .path(1, Lookup)
        .privileged()
        .hooks(Directory, &["security_sb_pivotroot"])
        .moves(NewDirectory::Pivot)
        .verb(Verb::PivotRoot),
];
