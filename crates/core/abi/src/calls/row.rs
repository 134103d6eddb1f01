//! A row of the table, and the methods that write one.

use super::by_flag::{ByFlag, NONE};
use super::class::SyscallClass;
use super::hooked::{EntryHook, ObjectClass};
use super::shape::{EmptyName, EmptyPath, NameUse, PathArg, Shape, ShapeKind};
use super::verb::{Argument, Meant, Verb};

/// The row of a system call.
#[derive(Clone, Copy, Debug)]
pub struct CallRow {
    /// The call's name, as audit prints it.
    pub name: &'static str,
    /// The objects that the call touches.
    pub shape: Shape,
    /// The objects that it touches for programs of 32 bits, if their arguments stand elsewhere.
    pub shape_32: Option<Shape>,
    /// The kernel functions that are hooked for its objects; all names that a function has had, of which a kernel has
    /// one. stat, read and write have none, and thus cost nothing more unless rules watch them.
    pub functions: Option<(ObjectClass, &'static [&'static str])>,
    /// The hook on the call's entry, where functions are not hooked.
    pub entry: Option<EntryHook>,
    /// The function that gets the address in kernel memory, for io_uring operations that do the same: their address may
    /// have been copied when they were submitted.
    pub address_function: Option<&'static str>,

    /// The kernel's classes that it is in, by [`SyscallClass::bit`].
    pub classes: u16,
    /// The classes that the call is in since Linux 7.3, by [`SyscallClass::bit`].
    pub later_classes: u16,
    /// The io_uring operations that do the same, each with its place among the calls that an operation is like: the
    /// arguments of an operation are recorded like those of the call at place 0.
    pub twins: &'static [(&'static str, u8)],
    /// The commands on sockets (`enum io_uring_socket_op`) that do the same, with places as in `twins`.
    pub socket_commands: &'static [(u32, u8)],

    /// Whether ENOTDIR may be about the object that it has found, since it looks at that before it asks whether it is a
    /// directory; else it is about the way to the object.
    pub finds_first: bool,
    /// The argument with flags, and the flags that it knows, if it fails with EINVAL for others before it reads a name.
    pub known_flags: Option<(u8, u32)>,
    /// The length for which it fails with EINVAL before it reads a name.
    pub length: Option<LengthLimit>,
    /// Whether the call asks for a right, and fails with EPERM, before it reads a name.
    pub is_privileged: bool,
    /// The argument with the mode of the file that it makes, of which it refuses some before it looks anything up; or
    /// [`NONE`].
    pub node_mode: u8,
    /// The argument with flags of renameat2(2) (`RENAME_EXCHANGE`), or [`NONE`].
    pub rename_flags: u8,
    /// Whether the call removes a directory.
    pub removes_directory: ByFlag,
    /// The directory of the task that it changes.
    pub moves: Option<NewDirectory>,

    /// The act of the call.
    pub verb: Option<Verb>,
    /// The argument by which it does so, if another value means another object.
    pub verb_by: Option<Argument>,
    /// Further acts of the call, each with the rules that mean it and the argument by which it is done.
    pub others: &'static [(Verb, Meant, Option<Argument>)],
    /// Whether auparse 4.0 has no words for it, so that csv and text name the rule instead.
    pub is_wordless: bool,
}

/// A length that a call refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LengthLimit {
    /// One that is not positive; the argument is of 32 bits.
    Positive(u8),
    /// A negative one; the argument is of 64 bits.
    NotNegative(u8),
}

/// A directory of a task that a call changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NewDirectory {
    /// The current directory.
    Current,
    /// The root directory.
    Root,
    /// The root of the mount namespace, and the root and current directories of those who have the old one.
    Pivot,
}

impl CallRow {
    /// A call that is not known: it is taken to touch nothing.
    pub const UNKNOWN: CallRow = row("");

    const fn add(mut self, arg: PathArg) -> CallRow {
        let slot = if self.shape.paths[0].is_some() { 1 } else { 0 };
        self.shape.paths[slot] = Some(arg);
        self
    }

    /// Argument `path` is a path, relative to the current directory, of which a symbolic link at the end is followed.
    pub(super) const fn path(self, path: u8, use_: NameUse) -> CallRow {
        self.path_at(path, NONE, use_)
    }

    /// Argument `path` is a path, relative to the directory that argument `dir` stands for.
    pub(super) const fn path_at(self, path: u8, dir: u8, use_: NameUse) -> CallRow {
        let changes = matches!(
            use_,
            NameUse::Create
                | NameUse::Delete
                | NameUse::Rename
                | NameUse::LinkSource
                | NameUse::SymlinkTarget
                | NameUse::Queue
                | NameUse::FileSystemKind
        );
        self.add(PathArg {
            path,
            dir,
            use_,
            follow: if changes {
                ByFlag::NEVER
            } else {
                ByFlag::ALWAYS
            },
            empty: EmptyPath::PLAIN,
        })
    }

    const fn with_last(mut self, follow: Option<ByFlag>, empty: Option<EmptyPath>) -> CallRow {
        let slot = if self.shape.paths[1].is_some() { 1 } else { 0 };
        let Some(mut last) = self.shape.paths[slot] else {
            panic!("a path comes first")
        };
        if let Some(follow) = follow {
            last.follow = follow;
        }
        if let Some(empty) = empty {
            last.empty = empty;
        }
        self.shape.paths[slot] = Some(last);
        self
    }

    /// Whether a symbolic link at the end of the last path is followed.
    pub(super) const fn follow(self, follow: ByFlag) -> CallRow {
        self.with_last(Some(follow), None)
    }

    /// A symbolic link at the end of the last path is meant itself.
    pub(super) const fn no_follow(self) -> CallRow {
        self.follow(ByFlag::NEVER)
    }

    /// Sets the meaning of an empty text as the last path.
    pub(super) const fn empty(self, is_descriptor: ByFlag, name: EmptyName) -> CallRow {
        self.with_last(
            None,
            Some(EmptyPath {
                is_descriptor,
                name,
            }),
        )
    }

    /// Sets the kind of the call.
    pub(super) const fn kind(mut self, kind: ShapeKind) -> CallRow {
        self.shape.kind = kind;
        self
    }

    /// Makes it a call that opens a file, by flags in this argument.
    pub(super) const fn opens(mut self, flags: u8) -> CallRow {
        self.shape.open_flags = flags;
        self.kind(ShapeKind::Open)
    }

    /// Makes it a call that opens a file, by a `struct open_how` in this argument.
    pub(super) const fn opens_how(mut self, how: u8) -> CallRow {
        self.shape.how = how;
        self.kind(ShapeKind::Open)
    }

    /// Argument `fd` is a descriptor whose file is recorded.
    pub(super) const fn fd(mut self, fd: u8) -> CallRow {
        self.shape.fd = fd;
        self
    }

    /// Arguments that are a socket address and its length.
    pub(super) const fn address(mut self, address: u8, length: u8) -> CallRow {
        (self.shape.sockaddr, self.shape.sockaddr_len) = (address, length);
        self
    }

    /// Arguments into which the kernel writes a socket address and its length.
    pub(super) const fn address_out(mut self, address: u8, length: u8) -> CallRow {
        (self.shape.len_is_pointer, self.shape.sockaddr_out) = (true, true);
        self.address(address, length)
    }

    /// Argument that is a `struct msghdr`; `out`: the kernel writes the address.
    pub(super) const fn message(mut self, message: u8, out: bool) -> CallRow {
        (self.shape.msghdr, self.shape.sockaddr_out) = (true, out);
        self.address(message, NONE)
    }

    /// Argument that points to two descriptors.
    pub(super) const fn fd_pair(mut self, pair: u8) -> CallRow {
        self.shape.fd_pair = pair;
        self
    }

    /// Argument that is a process id which the kernel reports to audit: audit_signal_info(), audit_ptrace().
    pub(super) const fn target(mut self, target: u8) -> CallRow {
        self.shape.target = target;
        self
    }

    /// Argument that is a descriptor of such a process.
    pub(super) const fn target_fd(mut self, target: u8) -> CallRow {
        self.shape.target_is_fd = true;
        self.target(target)
    }

    /// Argument that is the name of a module.
    pub(super) const fn module(mut self, module: u8) -> CallRow {
        self.shape.module = module;
        self
    }

    /// Argument that points to a structure of so many bytes.
    pub(super) const fn memory(mut self, memory: u8, bytes: u8) -> CallRow {
        (self.shape.memory, self.shape.memory_len) = (memory, bytes);
        self
    }

    /// Sets the objects that it touches as a call of 32 bits.
    pub(super) const fn on_32_bit(mut self, other: CallRow) -> CallRow {
        self.shape_32 = Some(other.shape);
        self
    }

    /// The functions to hook for its objects.
    pub(super) const fn hooks(
        mut self,
        class: ObjectClass,
        functions: &'static [&'static str],
    ) -> CallRow {
        self.functions = Some((class, functions));
        self
    }

    /// Sets the hook on the call's entry.
    pub(super) const fn entry(mut self, entry: EntryHook) -> CallRow {
        self.entry = Some(entry);
        self
    }

    /// The function that gets the address in kernel memory.
    pub(super) const fn address_function(mut self, function: &'static str) -> CallRow {
        self.address_function = Some(function);
        self
    }

    /// A class of the kernel that it is in.
    pub(super) const fn class(mut self, class: SyscallClass) -> CallRow {
        self.classes |= class.bit();
        self
    }

    /// A class of the kernel that it is in since Linux 7.3.
    pub(super) const fn later_class(mut self, class: SyscallClass) -> CallRow {
        self.later_classes |= class.bit();
        self
    }

    /// The io_uring operations that do the same.
    pub(super) const fn uring(mut self, twins: &'static [(&'static str, u8)]) -> CallRow {
        self.twins = twins;
        self
    }

    /// The commands on sockets that do the same.
    pub(super) const fn socket_commands(mut self, commands: &'static [(u32, u8)]) -> CallRow {
        self.socket_commands = commands;
        self
    }

    /// ENOTDIR may be about the object.
    pub(super) const fn finds_first(mut self) -> CallRow {
        self.finds_first = true;
        self
    }

    /// The flags that it knows.
    pub(super) const fn knows(mut self, argument: u8, flags: u32) -> CallRow {
        self.known_flags = Some((argument, flags));
        self
    }

    /// The length that it refuses.
    pub(super) const fn length(mut self, limit: LengthLimit) -> CallRow {
        self.length = Some(limit);
        self
    }

    /// Marks a call that asks for a right first.
    pub(super) const fn privileged(mut self) -> CallRow {
        self.is_privileged = true;
        self
    }

    /// Argument with the mode of what it makes.
    pub(super) const fn node_mode(mut self, argument: u8) -> CallRow {
        self.node_mode = argument;
        self
    }

    /// Argument with flags of renameat2(2).
    pub(super) const fn rename_flags(mut self, argument: u8) -> CallRow {
        self.rename_flags = argument;
        self
    }

    /// Sets whether the call removes a directory.
    pub(super) const fn removes_directory(mut self, removes: ByFlag) -> CallRow {
        self.removes_directory = removes;
        self
    }

    /// The directory of the task that it changes.
    pub(super) const fn moves(mut self, moves: NewDirectory) -> CallRow {
        self.moves = Some(moves);
        self
    }

    /// Sets the act of the call.
    pub(super) const fn verb(mut self, verb: Verb) -> CallRow {
        self.verb = Some(verb);
        self
    }

    /// Sets the act that the call does if an argument has this value.
    pub(super) const fn verb_by(mut self, verb: Verb, argument: Argument) -> CallRow {
        self.verb_by = Some(argument);
        self.verb(verb)
    }

    /// Sets further acts of the call.
    pub(super) const fn others(
        mut self,
        others: &'static [(Verb, Meant, Option<Argument>)],
    ) -> CallRow {
        self.others = others;
        self
    }

    /// auparse has no words for it.
    pub(super) const fn wordless(mut self) -> CallRow {
        self.is_wordless = true;
        self
    }
}

/// A row that says nothing yet.
pub(super) const fn row(name: &'static str) -> CallRow {
    CallRow {
        name,
        shape: Shape::PLAIN,
        shape_32: None,
        functions: None,
        entry: None,
        address_function: None,
        classes: 0,
        later_classes: 0,
        twins: &[],
        socket_commands: &[],
        finds_first: false,
        known_flags: None,
        length: None,
        is_privileged: false,
        node_mode: NONE,
        rename_flags: NONE,
        removes_directory: ByFlag::NEVER,
        moves: None,
        verb: None,
        verb_by: None,
        others: &[],
        is_wordless: false,
    }
}
