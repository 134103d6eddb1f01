//! The objects that a call touches: the arguments that are paths, directories, descriptors or socket addresses.

use super::by_flag::{ByFlag, NONE};

/// The kind of a call, as far as capture and records treat it specially. The numbers are `enum
/// table_kind` of crates/kernel/bpf/programs/tables.h.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum ShapeKind {
    /// An ordinary call.
    Plain = 0,
    /// The call opens a file; its result is a descriptor of that file.
    Open = 1,
    /// The call executes a program; its success is seen when the new image is in place, not at the
    /// return.
    Exec = 2,
    /// The call also returns 0 in the child, which did not make it.
    Fork = 3,
    /// The call does not return.
    Exit = 4,
    /// capset(2): the new capabilities are recorded.
    Capset = 5,
    /// 32-bit socketcall(2).
    Socketcall = 6,
    /// bpf(2): the id of a program that it loads is recorded.
    Bpf = 7,
    /// init_module(2), finit_module(2): the name of a module that they load is recorded.
    Module = 8,
    /// sendmmsg(2): each of its messages may have an address.
    Messages = 9,
    /// mount(2): the options of overlayfs name directories.
    Mount = 10,
    /// fsconfig(2): the value of an option may be a path, and a file system looks up its source when it is created.
    Fsconfig = 11,
    /// rename(2) and the like: the first path names an entry that the call renames.
    Rename = 12,
    /// After the call, its paths no longer tell what it reached: it has changed what they lead to, or they are names of
    /// queues.
    Lost = 13,
}

/// When audit collects names (PATH records) of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CallNames {
    /// Never.
    None,
    /// If it is given the path of a UNIX socket.
    OfSocket,
    /// For its arguments.
    Always,
}

/// Use that a call makes of the name in a path argument. It decides the PATH records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NameUse {
    /// Looked up: one NORMAL record.
    Lookup,
    /// Opened, perhaps created.
    Open,
    /// Created: PARENT and CREATE.
    Create,
    /// Removed: PARENT and DELETE.
    Delete,
    /// Renamed, old or new name.
    Rename,
    /// The existing name of link(2): NORMAL.
    LinkSource,
    /// The text of a symbolic link, which is never resolved: UNKNOWN.
    SymlinkTarget,
    /// Executed.
    Exec,
    /// Name of a POSIX message queue, which is no path in the task's file systems.
    Queue,
    /// Name of a kind of file system: read as a path if the first argument is 1, and never looked up.
    FileSystemKind,
    /// Read as a path, and then looked up as the name of a device.
    Device,
}

/// Record of an empty path that stands for its descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EmptyName {
    /// An item of the descriptor's file.
    Item,
    /// An item of the descriptor's file, without a name: `audit_file()`, fs/xattr.c.
    Unnamed,
    /// An item whose name is made of the descriptor's number, even if its file is not known: execveat(2).
    Numbered,
    /// None: fs/file_attr.c.
    Missing,
    /// None since Linux 6.6: `vfs_fstatat()`, fs/stat.c.
    MissingInFstatat,
    /// None in kernels that have `do_statx_fd()`, fs/stat.c.
    MissingInStatx,
    /// None in kernels whose move_mount(2) takes its names by `getname_maybe_null()`, fs/namei.c.
    MissingInMoveMount,
}

/// The meaning of an empty path argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EmptyPath {
    /// Whether an empty path stands for the descriptor beside it.
    pub is_descriptor: ByFlag,
    /// The record, if it does.
    pub name: EmptyName,
}

impl EmptyPath {
    /// Not treated specially.
    pub const PLAIN: EmptyPath = EmptyPath {
        is_descriptor: ByFlag::NEVER,
        name: EmptyName::Item,
    };
}

/// One path argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PathArg {
    /// Index of the argument that is the path.
    pub path: u8,
    /// Index of the argument that is the directory descriptor, or [`NONE`].
    pub dir: u8,
    /// Use that the call makes of the name.
    pub use_: NameUse,
    /// Whether a symbolic link that is the last name is followed.
    pub follow: ByFlag,
    /// The meaning of an empty path.
    pub empty: EmptyPath,
}

/// The objects that a call touches. Arguments are given by their index, or as [`NONE`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    /// Kind of the call.
    pub kind: ShapeKind,
    /// Path arguments, in the order of the call's arguments.
    pub paths: [Option<PathArg>; 2],
    /// Argument that is a descriptor whose file is recorded with `name=(null)`, or [`NONE`].
    pub fd: u8,
    /// Argument that is a `struct sockaddr`, or [`NONE`].
    pub sockaddr: u8,
    /// Argument that is the length of the address, or [`NONE`].
    pub sockaddr_len: u8,
    /// Whether `sockaddr_len` is a pointer to the length.
    pub len_is_pointer: bool,
    /// Whether `sockaddr` is a `struct msghdr`.
    pub msghdr: bool,
    /// Whether the kernel writes the address.
    pub sockaddr_out: bool,
    /// Argument that points to two descriptors, or [`NONE`].
    pub fd_pair: u8,
    /// Argument that is a process id, or [`NONE`].
    pub target: u8,
    /// Whether `target` is a descriptor instead.
    pub target_is_fd: bool,
    /// Argument that is a `struct open_how`, or [`NONE`].
    pub how: u8,
    /// Argument that is a module's name, or [`NONE`].
    pub module: u8,
    /// Argument with open(2) flags, or [`NONE`].
    pub open_flags: u8,
    /// Argument that points to a structure that is copied as it is, or [`NONE`].
    pub memory: u8,
    /// Length of that structure, in bytes.
    pub memory_len: u8,
}

impl Shape {
    /// A call that touches nothing.
    pub const PLAIN: Shape = Shape {
        kind: ShapeKind::Plain,
        paths: [None, None],
        fd: NONE,
        sockaddr: NONE,
        sockaddr_len: NONE,
        len_is_pointer: false,
        msghdr: false,
        sockaddr_out: false,
        fd_pair: NONE,
        target: NONE,
        target_is_fd: false,
        how: NONE,
        module: NONE,
        open_flags: NONE,
        memory: NONE,
        memory_len: 0,
    };

    /// When audit collects names (PATH records) of such a call.
    pub fn names(&self) -> CallNames {
        if self.paths[0].is_some() || self.fd != NONE || self.kind == ShapeKind::Open {
            CallNames::Always
        } else if self.may_name_socket() {
            CallNames::OfSocket
        } else {
            CallNames::None
        }
    }

    /// Whether the call is given a socket address, which for a UNIX socket may be a path: unix_find_bsd() and
    /// unix_bind_bsd(), net/unix/af_unix.c.
    pub fn may_name_socket(&self) -> bool {
        self.sockaddr != NONE && !self.sockaddr_out || self.kind == ShapeKind::Socketcall
    }
}
