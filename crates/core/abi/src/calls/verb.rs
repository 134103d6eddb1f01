//! What calls do, for people.

macro_rules! verbs {
    ($($(#[$doc:meta])* $verb:ident $phrase:literal;)*) => {
        /// What a call does, in a word. Searches, reports and the forms of events for other programs choose their own
        /// words for it; records depend on it only where it says so.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Verb {
            $($(#[$doc])* $verb),*
        }

        impl Verb {
            /// Every verb.
            pub const EVERY: &'static [Verb] = &[$(Verb::$verb),*];

            /// What programs that make such calls do, after "programs can"; verbs with the same text are ways to do
            /// one thing. Empty: rules that name one of the calls do not mean the others.
            pub const fn phrase(self) -> &'static str {
                match self {
                    $(Verb::$verb => $phrase),*
                }
            }
        }
    };
}

verbs! {
    // Names.
    /// Removes a name.
    Delete "remove files and directories";
    /// Renames.
    Rename "rename files";
    /// Makes a directory.
    MakeDirectory "make directories";
    /// Makes a device, pipe or socket in a directory.
    MakeNode "make special files";
    /// Makes a hard link.
    Link "make hard links";
    /// Makes a symbolic link.
    Symlink "make symbolic links";
    /// Reads a symbolic link.
    ReadLink "read symbolic links";
    /// Changes the current directory.
    ChangeDirectory "change their directory";
    /// Changes the root directory.
    ChangeRoot "change their root directory";
    /// Exchanges the root of the mount namespace.
    PivotRoot "change their root directory";

    // Contents.
    /// Opens a file.
    Open "open files";
    /// Creates a file and opens it.
    Create "create files";
    /// Changes the size of a file.
    Truncate "truncate files";
    /// Reserves room for a file.
    Allocate "";
    /// Executes a program.
    Execute "execute programs";
    /// Lists a directory.
    ListDirectory "list directories";
    /// Makes a file in memory.
    MakeMemoryFile "";

    // Attributes.
    /// Changes the mode.
    SetMode "change modes of files";
    /// Changes the owner.
    SetOwner "change owners of files";
    /// Sets an extended attribute.
    SetXattr "set extended attributes";
    /// Removes an extended attribute.
    RemoveXattr "remove extended attributes";
    /// Reads an extended attribute.
    GetXattr "read extended attributes";
    /// Lists extended attributes.
    ListXattr "list extended attributes";
    /// Sets the times of a file.
    SetTimes "set times of files";
    /// Reads the attributes of a file.
    Stat "read attributes of files";
    /// Finds out whether a file may be accessed.
    CheckAccess "check access to files";
    /// Reads the attributes of a file system.
    StatFileSystem "";
    /// Reads or sets quotas.
    SetQuota "set quotas";

    // File systems.
    /// Mounts a file system.
    Mount "mount file systems";
    /// Moves a mount, or attaches a detached one.
    MoveMount "mount file systems";
    /// Prepares a mount.
    PrepareMount "mount file systems";
    /// Opens or copies a mount.
    OpenMount "mount file systems";
    /// Changes the attributes of a mount.
    SetMountAttributes "mount file systems";
    /// Unmounts.
    Unmount "unmount file systems";
    /// Changes swap space.
    Swap "change swap space";

    // The system.
    /// Loads a module of the kernel.
    LoadModule "load kernel modules";
    /// Unloads a module of the kernel.
    UnloadModule "";
    /// Loads another kernel.
    LoadKernel "load another kernel";
    /// Loads BPF programs and the like.
    UseBpf "";
    /// Sets the clock.
    SetClock "set the clock";
    /// Changes the name of the host.
    SetHostName "change the host's name";
    /// Uses keys of the kernel.
    UseKeys "use keys of the kernel";

    // Processes.
    /// Makes a process.
    Fork "make processes";
    /// Ends itself.
    Exit "";
    /// Sends a signal.
    Signal "send signals";
    /// Traces another process.
    Trace "trace other processes";
    /// Reads the memory of another process.
    ReadMemory "";
    /// Writes to the memory of another process.
    WriteMemory "write to the memory of other processes";
    /// Takes a descriptor of another process.
    TakeDescriptor "";
    /// Changes its user ids.
    SetUser "change their user ids";
    /// Changes its group ids.
    SetGroup "change their group ids";
    /// Changes its further groups.
    SetGroups "change their groups";
    /// Changes its capabilities.
    SetCapabilities "";
    /// Sets limits of resources.
    SetLimit "set resource limits";
    /// Maps memory.
    MapMemory "";
    /// Changes how a process is scheduled.
    Schedule "";
    /// Gives up rights.
    Confine "";

    // Sockets.
    /// Makes a socket.
    MakeSocket "make sockets";
    /// Gives a socket an address: records may have the name that is made for it.
    Bind "bind sockets";
    /// Connects a socket: records may have the name that it is connected to.
    Connect "connect sockets";
    /// Waits for connections.
    Listen "listen for connections";
    /// Accepts a connection.
    Accept "accept connections";
    /// Sends messages: records may have the names that they are sent to.
    Send "send messages by sockets";
    /// Receives messages.
    Receive "receive messages by sockets";
}

/// The rules on a call that mean an act.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Meant {
    /// Rules without conditions on arguments, and those with the condition of the way.
    ByCall,
    /// Rules with the condition of the way: the call does another act without it.
    ByArgument,
    /// None: the call does other acts that rules on it mean.
    Never,
}

/// A condition on an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Argument {
    /// Index from 0: `a0` to `a3`.
    pub index: u8,
    /// Whether any of the bits is meant (`&`), or exactly the value (`=`).
    pub is_mask: bool,
    /// The bits or the value.
    pub value: u32,
}
