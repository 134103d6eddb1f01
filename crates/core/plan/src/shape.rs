//! The objects that a system call touches, by its name: the arguments that are paths, directories, descriptors or
//! socket addresses. Sources: the manual pages of the calls (section 2) and, for what audit collects, kernel/auditsc.c,
//! fs/namei.c and net/socket.c.

use crate::follow::{Follow, NONE};
use abi::Arch;

/// Flags by which calls follow a symbolic link or not: linux/fcntl.h, linux/mount.h, linux/fs.h (`UMOUNT_NOFOLLOW`),
/// linux/inotify.h and linux/fanotify.h.
const AT_SYMLINK_NOFOLLOW: u64 = 0x100;
const AT_SYMLINK_FOLLOW: u64 = 0x400;
const UMOUNT_NOFOLLOW: u64 = 8;
const FSPICK_SYMLINK_NOFOLLOW: u64 = 2;
const MOVE_MOUNT_F_SYMLINKS: u64 = 1;
const MOVE_MOUNT_T_SYMLINKS: u64 = 0x10;
const IN_DONT_FOLLOW: u64 = 0x0200_0000;
const FAN_MARK_DONT_FOLLOW: u64 = 4;

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
    pub follow: Follow,
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

    fn path(mut self, path: u8, dir: u8, use_: NameUse, follow: Follow) -> Shape {
        let slot = usize::from(self.paths[0].is_some());
        self.paths[slot] = Some(PathArg {
            path,
            dir,
            use_,
            follow,
        });
        self
    }

    fn kind(self, kind: ShapeKind) -> Shape {
        Shape { kind, ..self }
    }

    fn sockaddr(self, sockaddr: u8, sockaddr_len: u8) -> Shape {
        Shape {
            sockaddr,
            sockaddr_len,
            ..self
        }
    }
}

/// The shape of call `nr` of `arch`.
pub fn shape(arch: Arch, nr: u32) -> Shape {
    match abi::syscall_name(arch, nr) {
        // Its mask of 64 bits takes two arguments of 32-bit programs.
        Some("fanotify_mark") if matches!(arch, Arch::I386 | Arch::Arm) => {
            let follow = Follow::unless(1, FAN_MARK_DONT_FOLLOW);
            Shape::PLAIN.path(5, 4, NameUse::Lookup, follow)
        }
        name => name.map_or(Shape::PLAIN, shape_of_name),
    }
}

/// The shape of the call with this name.
pub fn shape_of_name(name: &str) -> Shape {
    opens(name)
        .or_else(|| names_changed(name))
        .or_else(|| attributes(name))
        .or_else(|| looked_up(name))
        .or_else(|| sockets(name))
        .or_else(|| processes(name))
        .or_else(|| queues(name))
        .unwrap_or(Shape::PLAIN)
}

fn opens(name: &str) -> Option<Shape> {
    let open = Shape::PLAIN.kind(ShapeKind::Open);
    Some(match name {
        "open" => Shape {
            open_flags: 1,
            ..open.path(0, NONE, NameUse::Open, Follow::ALWAYS)
        },
        "creat" => open.path(0, NONE, NameUse::Open, Follow::ALWAYS),
        "openat" => Shape {
            open_flags: 2,
            ..open.path(1, 0, NameUse::Open, Follow::ALWAYS)
        },
        "openat2" => Shape {
            how: 2,
            ..open.path(1, 0, NameUse::Open, Follow::ALWAYS)
        },
        // The file is looked up by a handle; audit has it with an empty name.
        "open_by_handle_at" => Shape {
            open_flags: 2,
            ..open
        },
        "execve" => Shape::PLAIN
            .kind(ShapeKind::Exec)
            .path(0, NONE, NameUse::Exec, Follow::ALWAYS),
        "execveat" => Shape::PLAIN.kind(ShapeKind::Exec).path(
            1,
            0,
            NameUse::Exec,
            Follow::unless(4, AT_SYMLINK_NOFOLLOW),
        ),
        _ => return None,
    })
}

fn names_changed(name: &str) -> Option<Shape> {
    use NameUse::*;
    let plain = Shape::PLAIN;
    Some(match name {
        "unlink" | "rmdir" => plain.path(0, NONE, Delete, Follow::NEVER),
        "unlinkat" => plain.path(1, 0, Delete, Follow::NEVER),
        "rename" => plain
            .kind(ShapeKind::Rename)
            .path(0, NONE, Rename, Follow::NEVER)
            .path(1, NONE, Rename, Follow::NEVER),
        "renameat" | "renameat2" => plain
            .kind(ShapeKind::Rename)
            .path(1, 0, Rename, Follow::NEVER)
            .path(3, 2, Rename, Follow::NEVER),
        "link" => {
            plain
                .path(0, NONE, LinkSource, Follow::NEVER)
                .path(1, NONE, Create, Follow::NEVER)
        }
        "linkat" => plain
            .path(1, 0, LinkSource, Follow::only_if(4, AT_SYMLINK_FOLLOW))
            .path(3, 2, Create, Follow::NEVER),
        "symlink" => {
            plain
                .path(0, NONE, SymlinkTarget, Follow::NEVER)
                .path(1, NONE, Create, Follow::NEVER)
        }
        "symlinkat" => {
            plain
                .path(0, NONE, SymlinkTarget, Follow::NEVER)
                .path(2, 1, Create, Follow::NEVER)
        }
        "mkdir" | "mknod" => plain.path(0, NONE, Create, Follow::NEVER),
        "mkdirat" | "mknodat" => plain.path(1, 0, Create, Follow::NEVER),
        _ => return None,
    })
}

fn attributes(name: &str) -> Option<Shape> {
    use NameUse::Lookup;
    let plain = Shape::PLAIN;
    let unless = |flags| Follow::unless(flags, AT_SYMLINK_NOFOLLOW);
    Some(match name {
        "chmod" | "chown" | "chown32" | "truncate" | "truncate64" | "utime" | "utimes"
        | "setxattr" | "getxattr" | "listxattr" | "removexattr" => {
            plain.path(0, NONE, Lookup, Follow::ALWAYS)
        }
        "lchown" | "lchown32" | "lsetxattr" | "lgetxattr" | "llistxattr" | "lremovexattr" => {
            plain.path(0, NONE, Lookup, Follow::NEVER)
        }
        "fchmodat" | "futimesat" => plain.path(1, 0, Lookup, Follow::ALWAYS),
        "setxattrat" | "getxattrat" | "listxattrat" | "removexattrat" => {
            plain.path(1, 0, Lookup, unless(2))
        }
        "fchmodat2" | "utimensat" | "utimensat_time64" => plain.path(1, 0, Lookup, unless(3)),
        "fchownat" | "file_getattr" | "file_setattr" => plain.path(1, 0, Lookup, unless(4)),
        "fchmod" | "fchown" | "fchown32" | "fsetxattr" | "fgetxattr" | "flistxattr"
        | "fremovexattr" => Shape { fd: 0, ..plain },
        _ => return None,
    })
}

fn looked_up(name: &str) -> Option<Shape> {
    use NameUse::Lookup;
    let plain = Shape::PLAIN;
    let lost = plain.kind(ShapeKind::Lost);
    let unless = |flags| Follow::unless(flags, AT_SYMLINK_NOFOLLOW);

    Some(match name {
        "stat" | "stat64" | "oldstat" | "access" | "statfs" | "statfs64" | "acct" | "swapon"
        | "swapoff" | "uselib" => plain.path(0, NONE, Lookup, Follow::ALWAYS),
        "chdir" | "chroot" | "umount" | "oldumount" => lost.path(0, NONE, Lookup, Follow::ALWAYS),
        "umount2" => lost.path(0, NONE, Lookup, Follow::unless(1, UMOUNT_NOFOLLOW)),
        "lstat" | "lstat64" | "oldlstat" | "readlink" => plain.path(0, NONE, Lookup, Follow::NEVER),
        "faccessat" => plain.path(1, 0, Lookup, Follow::ALWAYS),
        "statx" | "open_tree" | "open_tree_attr" | "mount_setattr" => {
            plain.path(1, 0, Lookup, unless(2))
        }
        "newfstatat" | "fstatat64" | "faccessat2" => plain.path(1, 0, Lookup, unless(3)),
        "name_to_handle_at" => {
            let follow = Follow::only_if(4, AT_SYMLINK_FOLLOW);
            plain.path(1, 0, Lookup, follow)
        }
        "fspick" => {
            let follow = Follow::unless(2, FSPICK_SYMLINK_NOFOLLOW);
            plain.path(1, 0, Lookup, follow)
        }
        "inotify_add_watch" => plain.path(1, NONE, Lookup, Follow::unless(2, IN_DONT_FOLLOW)),
        "readlinkat" => plain.path(1, 0, Lookup, Follow::NEVER),
        // The source is a path only if the call attaches something that is mounted elsewhere.
        "mount" => plain
            .kind(ShapeKind::Mount)
            .path(1, NONE, Lookup, Follow::ALWAYS)
            .path(0, NONE, Lookup, Follow::ALWAYS),
        "sysfs" => plain.path(1, NONE, Lookup, Follow::NEVER),
        "quotactl" => plain.path(1, NONE, Lookup, Follow::ALWAYS),
        "pivot_root" => {
            lost.path(0, NONE, Lookup, Follow::ALWAYS)
                .path(1, NONE, Lookup, Follow::ALWAYS)
        }
        "move_mount" => lost
            .path(1, 0, Lookup, Follow::only_if(4, MOVE_MOUNT_F_SYMLINKS))
            .path(3, 2, Lookup, Follow::only_if(4, MOVE_MOUNT_T_SYMLINKS)),
        "fanotify_mark" => plain.path(4, 3, Lookup, Follow::unless(1, FAN_MARK_DONT_FOLLOW)),
        _ => return None,
    })
}

fn sockets(name: &str) -> Option<Shape> {
    let plain = Shape::PLAIN;
    let filled = Shape {
        len_is_pointer: true,
        sockaddr_out: true,
        ..plain
    };

    Some(match name {
        "connect" | "bind" => plain.sockaddr(1, 2),
        "sendto" => plain.sockaddr(4, 5),
        "accept" | "accept4" | "getsockname" | "getpeername" => filled.sockaddr(1, 2),
        "recvfrom" => filled.sockaddr(4, 5),
        "sendmsg" => Shape {
            msghdr: true,
            ..plain.sockaddr(1, NONE)
        },
        "sendmmsg" => Shape {
            msghdr: true,
            ..plain.kind(ShapeKind::Messages).sockaddr(1, NONE)
        },
        "recvmsg" => Shape {
            msghdr: true,
            sockaddr_out: true,
            ..plain.sockaddr(1, NONE)
        },
        "pipe" | "pipe2" => Shape {
            fd_pair: 0,
            ..plain
        },
        "socketpair" => Shape {
            fd_pair: 3,
            ..plain
        },
        "socketcall" => plain.kind(ShapeKind::Socketcall),
        _ => return None,
    })
}

/// Calls on POSIX message queues. The sizes are those in 64-bit programs; other programs have
/// structures that are no smaller.
fn queues(name: &str) -> Option<Shape> {
    const MQ_ATTR_BYTES: u8 = 64;
    const TIMESPEC_BYTES: u8 = 16;
    const SIGEVENT_HEAD_BYTES: u8 = 16;
    let memory = |memory, memory_len| Shape {
        memory,
        memory_len,
        ..Shape::PLAIN
    };

    Some(match name {
        "mq_open" => memory(3, MQ_ATTR_BYTES).kind(ShapeKind::Open).path(
            0,
            NONE,
            NameUse::Queue,
            Follow::NEVER,
        ),
        "mq_unlink" => {
            Shape::PLAIN
                .kind(ShapeKind::Lost)
                .path(0, NONE, NameUse::Queue, Follow::NEVER)
        }
        "mq_timedsend" | "mq_timedreceive" | "mq_timedsend_time64" | "mq_timedreceive_time64" => {
            Shape {
                fd: 0,
                ..memory(4, TIMESPEC_BYTES)
            }
        }
        "mq_notify" => memory(1, SIGEVENT_HEAD_BYTES),
        "mq_getsetattr" => memory(1, MQ_ATTR_BYTES),
        _ => return None,
    })
}

fn processes(name: &str) -> Option<Shape> {
    let plain = Shape::PLAIN;
    Some(match name {
        "fork" | "vfork" | "clone" | "clone3" => plain.kind(ShapeKind::Fork),
        "exit" | "exit_group" => plain.kind(ShapeKind::Exit),
        "capset" => plain.kind(ShapeKind::Capset),
        // BPF_OBJ_PIN and BPF_OBJ_GET have a path in memory.
        "bpf" => plain
            .kind(ShapeKind::Bpf)
            .path(NONE, NONE, NameUse::Lookup, Follow::ALWAYS),
        // Some file systems look up what their options name.
        "fsconfig" => {
            plain
                .kind(ShapeKind::Fsconfig)
                .path(NONE, NONE, NameUse::Lookup, Follow::ALWAYS)
        }
        "init_module" | "finit_module" => plain.kind(ShapeKind::Module),
        // The calls whose targets the kernel reports to audit: audit_signal_info(), audit_ptrace().
        "kill" | "tkill" | "rt_sigqueueinfo" => Shape { target: 0, ..plain },
        "tgkill" | "rt_tgsigqueueinfo" | "ptrace" => Shape { target: 1, ..plain },
        "pidfd_send_signal" => Shape {
            target: 0,
            target_is_fd: true,
            ..plain
        },
        "delete_module" => Shape { module: 0, ..plain },
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_in_the_table_is_a_system_call_of_some_architecture() {
        let known = |name: &str| {
            [Arch::X86_64, Arch::I386, Arch::Aarch64, Arch::Arm]
                .iter()
                .any(|&arch| abi::syscall_number(arch, name).is_some())
        };
        for arch in [Arch::X86_64, Arch::I386] {
            let is_other = |name| arch == Arch::I386 && name == "fanotify_mark";
            for (nr, name) in abi::syscalls(arch) {
                assert_eq!(shape(arch, nr) != shape_of_name(name), is_other(name));
            }
        }
        for name in [
            "openat",
            "renameat2",
            "symlinkat",
            "execveat",
            "socketcall",
            "lchown32",
        ] {
            assert!(known(name) && shape_of_name(name) != Shape::PLAIN, "{name}");
        }
    }

    #[test]
    fn both_sides_of_a_rename_are_paths() {
        let shape = shape_of_name("renameat2");
        assert_eq!(shape.paths[0].map(|p| (p.dir, p.path)), Some((0, 1)));
        assert_eq!(shape.paths[1].map(|p| (p.dir, p.path)), Some((2, 3)));
        assert_eq!(shape_of_name("read").names(), CallNames::None);
        assert_eq!(shape_of_name("fchmod").names(), CallNames::Always);
    }

    #[test]
    fn flags_say_whether_a_link_at_the_end_is_followed() {
        let follows = |name, path: usize, args| {
            let path = shape_of_name(name).paths[path].expect("a path");
            path.follow.by(&args)
        };
        let none = [0; 6];
        for (name, path, argument, flag, without) in [
            ("umount2", 0, 1, UMOUNT_NOFOLLOW, true),
            ("inotify_add_watch", 0, 2, IN_DONT_FOLLOW, true),
            ("execveat", 0, 4, AT_SYMLINK_NOFOLLOW, true),
            ("fchmodat2", 0, 3, AT_SYMLINK_NOFOLLOW, true),
            ("name_to_handle_at", 0, 4, AT_SYMLINK_FOLLOW, false),
            ("linkat", 0, 4, AT_SYMLINK_FOLLOW, false),
            ("fspick", 0, 2, FSPICK_SYMLINK_NOFOLLOW, true),
            ("mount_setattr", 0, 2, AT_SYMLINK_NOFOLLOW, true),
            ("fanotify_mark", 0, 1, FAN_MARK_DONT_FOLLOW, true),
            ("move_mount", 0, 4, MOVE_MOUNT_F_SYMLINKS, false),
            ("move_mount", 1, 4, MOVE_MOUNT_T_SYMLINKS, false),
        ] {
            let mut args = none;
            args[argument] = flag;
            assert_eq!(follows(name, path, none), without, "{name}");
            assert_eq!(follows(name, path, args), !without, "{name} with the flag");
        }
        // fchmodat(2) has no flags; what is there is not looked at.
        assert!(follows("fchmodat", 0, [AT_SYMLINK_NOFOLLOW; 6]));
        assert!(!follows("lchown", 0, [AT_SYMLINK_FOLLOW; 6]));
    }

    #[test]
    fn calls_that_take_a_socket_address_may_have_the_path_of_a_socket() {
        let calls = [
            "bind",
            "connect",
            "sendto",
            "sendmsg",
            "sendmmsg",
            "socketcall",
        ];
        for call in calls {
            assert_eq!(shape_of_name(call).names(), CallNames::OfSocket, "{call}");
        }
        for call in ["accept", "recvfrom", "getpeername", "recvmsg"] {
            assert_eq!(shape_of_name(call).names(), CallNames::None, "{call}");
        }
    }
}
