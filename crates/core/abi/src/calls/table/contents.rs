//! Calls on what is in files and queues: fs/open.c, fs/exec.c, ipc/mqueue.c.

use super::{row, AT_EMPTY_PATH, AT_SYMLINK_NOFOLLOW};
use crate::calls::row::CallRow;
use crate::calls::SyscallClass::{DirWrite, Write};
use crate::calls::{Argument, ByFlag, EmptyName, LengthLimit, Meant, NameUse, ObjectClass};
use crate::calls::{ShapeKind, Verb};
use ByFlag as By;

/// `O_CREAT` (asm-generic/fcntl.h).
const O_CREAT: u32 = 0o100;
/// Sizes in 64-bit programs; other programs have structures that are no smaller.
const MQ_ATTR_BYTES: u8 = 64;
const TIMESPEC_BYTES: u8 = 16;
const SIGEVENT_HEAD_BYTES: u8 = 16;

const fn creates(flags: u8) -> (Verb, Meant, Option<Argument>) {
    let argument = Argument {
        index: flags,
        is_mask: true,
        value: O_CREAT,
    };
    (Verb::Create, Meant::ByArgument, Some(argument))
}

const fn opens(name: &'static str) -> CallRow {
    row(name)
        .finds_first()
        .hooks(ObjectClass::Open, &["do_filp_open", "do_file_open"])
}

const fn truncates(name: &'static str) -> CallRow {
    row(name).class(Write).verb(Verb::Truncate)
}

/// A call on a queue that is open.
const fn of_queue(name: &'static str) -> CallRow {
    row(name).fd(0).memory(4, TIMESPEC_BYTES)
}

pub(super) const ROWS: &[CallRow] = &[
    opens("creat")
        .kind(ShapeKind::Open)
        .path(0, NameUse::Open)
        .class(DirWrite)
        .verb(Verb::Create)
        .others(&[(Verb::Open, Meant::Never, None)]),
    opens("open")
        .opens(1)
        .path(0, NameUse::Open)
        .verb(Verb::Open)
        .others(&[creates(1)]),
    opens("openat")
        .opens(2)
        .path_at(1, 0, NameUse::Open)
        .uring(&[("openat", 0)])
        .verb(Verb::Open)
        .others(&[creates(2)]),
    opens("openat2")
        .opens_how(2)
        .path_at(1, 0, NameUse::Open)
        .uring(&[("openat2", 0)])
        .verb(Verb::Open)
        .others(&[(Verb::Create, Meant::Never, None)]),
    // The file is looked up by a handle; audit has it with an empty name.
    row("open_by_handle_at").opens(2).verb(Verb::Open),
    row("memfd_create").verb(Verb::MakeMemoryFile),
    row("memfd_secret").verb(Verb::MakeMemoryFile),
    truncates("truncate")
        .path(0, NameUse::Lookup)
        .hooks(ObjectClass::Lookup, &["vfs_truncate"])
        .length(LengthLimit::NotNegative(1)),
    truncates("ftruncate").uring(&[("ftruncate", 0)]),
    truncates("truncate64")
        .path(0, NameUse::Lookup)
        .hooks(ObjectClass::Lookup, &["vfs_truncate"])
        .length(LengthLimit::NotNegative(1))
        .wordless(),
    truncates("ftruncate64").wordless(),
    row("fallocate")
        .class(Write)
        .uring(&[("fallocate", 0)])
        .verb(Verb::Allocate),
    row("execve")
        .kind(ShapeKind::Exec)
        .path(0, NameUse::Exec)
        .verb(Verb::Execute),
    row("execveat")
        .kind(ShapeKind::Exec)
        .path_at(1, 0, NameUse::Exec)
        .follow(By::unless(4, AT_SYMLINK_NOFOLLOW))
        .empty(By::only_if(4, AT_EMPTY_PATH), EmptyName::Numbered)
        .verb(Verb::Execute),
    row("getdents").verb(Verb::ListDirectory),
    row("getdents64").verb(Verb::ListDirectory),
    row("close").uring(&[("close", 0)]),
    row("read").uring(&[("read_fixed", 1), ("read", 1), ("read_multishot", 0)]),
    row("write").uring(&[("write_fixed", 1), ("write", 1)]),
    row("pread").uring(&[("read_fixed", 0), ("read", 0)]),
    row("pwrite").uring(&[("write_fixed", 0), ("write", 0)]),
    row("readv").uring(&[("readv", 2), ("readv_fixed", 2)]),
    row("writev").uring(&[("writev", 2), ("writev_fixed", 2)]),
    row("preadv").uring(&[("readv", 1), ("readv_fixed", 1)]),
    row("pwritev").uring(&[("writev", 1), ("writev_fixed", 1)]),
    row("preadv2").uring(&[("readv", 0), ("readv_fixed", 0)]),
    row("pwritev2").uring(&[("writev", 0), ("writev_fixed", 0)]),
    row("fsync").uring(&[("fsync", 0)]),
    row("fdatasync").uring(&[("fsync", 1)]),
    row("sync_file_range").uring(&[("sync_file_range", 0)]),
    row("fadvise64").uring(&[("fadvise", 0)]),
    row("splice").uring(&[("splice", 0)]),
    row("tee").uring(&[("tee", 0)]),
    row("pipe").fd_pair(0).uring(&[("pipe", 1)]),
    row("pipe2").fd_pair(0).uring(&[("pipe", 0)]),
    row("mq_open")
        .kind(ShapeKind::Open)
        .path(0, NameUse::Queue)
        .memory(3, MQ_ATTR_BYTES)
        .hooks(ObjectClass::Entries, &["vfs_mkobj"]),
    row("mq_unlink")
        .kind(ShapeKind::Lost)
        .path(0, NameUse::Queue)
        .hooks(ObjectClass::Entries, &["vfs_unlink"]),
    of_queue("mq_timedsend"),
    of_queue("mq_timedreceive"),
    of_queue("mq_timedsend_time64"),
    of_queue("mq_timedreceive_time64"),
    row("mq_notify").memory(1, SIGEVENT_HEAD_BYTES),
    row("mq_getsetattr").memory(1, MQ_ATTR_BYTES),
];
