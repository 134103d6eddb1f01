//! The kernel functions that are hooked to find out what a call really touched. The programs are in
//! crates/kernel/bpf/programs: object_hooks.bpf.inc.c, ipc_hooks.bpf.inc.c and clock_hooks.bpf.inc.c.

/// Families of calls; the numbers are `enum object_class` of crates/kernel/bpf/programs/shared.h.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ObjectClass {
    /// Creates, removes or renames directory entries.
    Entries = 1,
    /// Opens a file.
    Open = 2,
    /// Acts on the object that a path leads to.
    Lookup = 3,
    /// Changes the current or the root directory.
    Directory = 4,
    /// Mounts and unmounts.
    Mount = 5,
    /// Takes or returns socket addresses.
    Address = 6,
    /// Sends signals.
    Signal = 7,
    /// Acts on System V objects.
    Ipc = 8,
    /// Sets the clock.
    Time = 9,
    /// Opens a file, with rules that cannot select a successful open for reading only; such opens are
    /// ignored.
    OpenChanges = 10,
}

/// What a hook on the entry of a call keeps where functions are not hooked; the numbers are of the same `enum
/// object_class`. Where there is none, the end of the call shows all that is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum EntryHook {
    /// The directory that the call leaves.
    Directory = ObjectClass::Directory as u8,
    /// The semaphores that it uses.
    Semaphores = 12,
    /// The queue that it uses.
    Messages = 13,
    /// The shared memory that it uses.
    Memory = 14,
    /// The objects as they were before it changed them, where rules ask for that.
    Before = 15,
    /// The semaphores that semctl(2) changes or removes.
    SemaphoreControl = 12 | 16,
    /// The queue that msgctl(2) changes or removes.
    MessageControl = 13 | 16,
    /// The shared memory that shmctl(2) changes or removes.
    MemoryControl = 14 | 16,
}

/// The function by which calls on directory entries look up the last name of a path in its directory.
pub const PARENT_LOOKUP: &str = "lookup_one_qstr_excl";
