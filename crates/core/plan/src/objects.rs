//! The kernel functions that are hooked to find out what a call really touched, and for which calls.
//! The programs are in crates/kernel/bpf/programs: object_hooks.bpf.inc.c, ipc_hooks.bpf.inc.c and
//! clock_hooks.bpf.inc.c.
//!
//! The functions are those that act on objects (fs/namei.c, fs/open.c, security/security.c,
//! net/socket.c, ipc/util.c). stat, read and write call none of them, and thus cost nothing more unless
//! rules watch them. If a function has had several names, all are listed; a kernel has one of them.

use crate::facts::Entry;
use crate::plan::Plan;
use crate::tables::CALLS;
use crate::uring::OPERATIONS;
use std::collections::BTreeSet;

/// The function by which calls on directory entries look up the last name of a path in its directory.
pub const PARENT_LOOKUP: &str = "lookup_one_qstr_excl";

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

/// The class of the call with this name, and the functions to hook for its objects.
pub fn object_functions(name: &str) -> Option<(ObjectClass, &'static [&'static str])> {
    entries(name).or_else(|| others(name))
}

fn entries(name: &str) -> Option<(ObjectClass, &'static [&'static str])> {
    const LOOKUP: &str = PARENT_LOOKUP;
    let functions: &[&str] = match name {
        "unlink" => &[
            "do_unlinkat",
            "filename_unlinkat",
            LOOKUP,
            "security_path_unlink",
            "vfs_unlink",
        ],
        "rmdir" => &[
            "do_rmdir",
            "filename_rmdir",
            LOOKUP,
            "security_path_rmdir",
            "vfs_rmdir",
        ],
        "unlinkat" => &[
            "do_unlinkat",
            "filename_unlinkat",
            "do_rmdir",
            "filename_rmdir",
            LOOKUP,
            "security_path_unlink",
            "security_path_rmdir",
            "vfs_unlink",
            "vfs_rmdir",
        ],
        "rename" | "renameat" | "renameat2" => &[
            "do_renameat2",
            "filename_renameat2",
            LOOKUP,
            "security_path_rename",
            "vfs_rename",
        ],
        "link" | "linkat" => &[
            "do_linkat",
            "filename_linkat",
            LOOKUP,
            "security_path_link",
            "vfs_link",
        ],
        "symlink" | "symlinkat" => &[
            "do_symlinkat",
            "filename_symlinkat",
            LOOKUP,
            "security_path_symlink",
            "vfs_symlink",
        ],
        "mkdir" | "mkdirat" => &[
            "do_mkdirat",
            "filename_mkdirat",
            LOOKUP,
            "security_path_mkdir",
            "vfs_mkdir",
        ],
        "mknod" | "mknodat" => &[
            "do_mknodat",
            "filename_mknodat",
            LOOKUP,
            "security_path_mknod",
            "vfs_mknod",
            "vfs_create",
        ],
        "mq_open" => &["vfs_mkobj"],
        "mq_unlink" => &["vfs_unlink"],
        _ => return None,
    };

    Some((ObjectClass::Entries, functions))
}

fn others(name: &str) -> Option<(ObjectClass, &'static [&'static str])> {
    use ObjectClass::*;
    let (class, functions): (_, &[&str]) = match name {
        "open" | "openat" | "openat2" | "creat" => (Open, &["do_filp_open", "do_file_open"]),
        "chmod" | "fchmod" | "fchmodat" | "fchmodat2" => (Lookup, &["security_path_chmod"]),
        "chown" | "lchown" | "fchown" | "fchownat" | "chown32" | "lchown32" | "fchown32" => {
            (Lookup, &["security_path_chown"])
        }
        "truncate" | "truncate64" => (Lookup, &["vfs_truncate"]),
        "utime" | "utimes" | "futimesat" | "utimensat" | "utimensat_time64" => {
            (Lookup, &["vfs_utimes"])
        }
        "setxattr" | "lsetxattr" | "fsetxattr" | "setxattrat" => {
            (Lookup, &["security_inode_setxattr"])
        }
        "removexattr" | "lremovexattr" | "fremovexattr" | "removexattrat" => {
            (Lookup, &["security_inode_removexattr"])
        }
        "getxattr" | "lgetxattr" | "fgetxattr" | "getxattrat" => {
            (Lookup, &["security_inode_getxattr"])
        }
        "listxattr" | "llistxattr" | "flistxattr" | "listxattrat" => {
            (Lookup, &["security_inode_listxattr"])
        }
        "file_getattr" => (Lookup, &["security_inode_file_getattr"]),
        "file_setattr" => (Lookup, &["security_inode_file_setattr"]),
        "readlink" | "readlinkat" => (Lookup, &["security_inode_readlink"]),
        "chdir" | "fchdir" => (Directory, &["set_fs_pwd"]),
        "chroot" | "fchroot" => (Directory, &["set_fs_root"]),
        "pivot_root" => (Directory, &["security_sb_pivotroot"]),
        "mount" => (Mount, &["security_sb_mount"]),
        "umount" | "umount2" | "oldumount" => (Mount, &["security_sb_umount"]),
        "move_mount" => (Mount, &["security_move_mount"]),
        "connect" | "bind" | "sendto" | "sendmsg" | "sendmmsg" => {
            (Address, &["move_addr_to_kernel"])
        }
        "accept" | "accept4" | "getsockname" | "getpeername" | "recvfrom" | "recvmsg" => {
            (Address, &["move_addr_to_user"])
        }
        "socketcall" => (Address, &["move_addr_to_kernel", "move_addr_to_user"]),
        "kill" | "tkill" | "tgkill" | "pidfd_send_signal" | "rt_sigqueueinfo"
        | "rt_tgsigqueueinfo" => (Signal, &["audit_signal_info"]),
        "msgget" | "msgsnd" | "msgrcv" | "msgctl" | "semget" | "semop" | "semtimedop"
        | "semtimedop_time64" | "semctl" | "shmget" | "shmat" | "shmctl" | "ipc" => {
            (Ipc, &["ipcperms", "ipcctl_obtain_check"])
        }
        "adjtimex" | "clock_adjtime" | "clock_adjtime64" => {
            (Time, &["do_adjtimex", "__do_adjtimex", "ntp_adjtimex"])
        }
        "settimeofday" | "clock_settime" | "clock_settime64" | "stime" => {
            (Time, &["do_settimeofday64"])
        }
        _ => return None,
    };

    Some((class, functions))
}

/// Classes for hooks on the entries of calls, besides [`ObjectClass::Directory`]: `enum object_class`.
const SEMAPHORES: u8 = 12;
const MESSAGES: u8 = 13;
const MEMORY: u8 = 14;
const BEFORE: u8 = 15;
const CONTROL: u8 = 16;

/// The class of the call with this name for hooks on the entries of calls (`enum object_class`), where functions are not
/// hooked; 0: its end shows all that is recorded.
fn entry_class(name: &str, objects_before: bool) -> u8 {
    match name {
        "chdir" | "fchdir" | "chroot" | "fchroot" => ObjectClass::Directory as u8,
        "semop" | "semtimedop" => SEMAPHORES,
        "semctl" => SEMAPHORES | CONTROL,
        "msgsnd" | "msgrcv" => MESSAGES,
        "msgctl" => MESSAGES | CONTROL,
        "shmat" => MEMORY,
        "shmctl" => MEMORY | CONTROL,
        "unlink" | "unlinkat" | "rmdir" | "rename" | "renameat" | "renameat2" | "chmod"
        | "fchmod" | "fchmodat" | "fchmodat2" | "chown" | "lchown" | "fchown" | "fchownat"
        | "umount2" | "mount" | "move_mount"
            if objects_before =>
        {
            BEFORE
        }
        _ => 0,
    }
}

/// Whether programs on the functions of a call find the marks of all that it reaches.
pub(crate) fn reached_objects(call: &str) -> bool {
    let finds_marks = |function: &&str| {
        function.starts_with("security_path_") || matches!(*function, "vfs_truncate" | "vfs_utimes")
    };
    // The files of an execve are found when it is over: see chain.h of crates/kernel/bpf/programs.
    matches!(call, "execve" | "execveat")
        || object_functions(call).is_some_and(|(_, functions)| functions.iter().any(finds_marks))
}

/// The function that gets the address in kernel memory, for io_uring operations that do the same as
/// this call: their address may have been copied when they were submitted.
fn address_function(name: &str) -> Option<&'static str> {
    match name {
        "bind" => Some("security_socket_bind"),
        "connect" => Some("security_socket_connect"),
        _ => None,
    }
}

impl Plan {
    /// Entry, number and name of the calls that rules watch, without io_uring operations, which
    /// have other numbers.
    fn watched_names(&self) -> impl Iterator<Item = (Entry, u32, &'static str)> + '_ {
        let calls = self.calls.keys().filter(|key| key.0 != Entry::Uring);
        calls.filter_map(|&(entry, nr)| {
            let arch = self.entries.arch(entry)?;
            Some((entry, nr, abi::syscall_name(arch, nr)?))
        })
    }

    /// The functions to hook for the calls and operations that rules watch.
    pub fn object_functions(&self) -> BTreeSet<&'static str> {
        let of_calls = self
            .watched_names()
            .filter_map(|(_, _, name)| object_functions(name))
            .flat_map(|(_, functions)| functions.iter().copied());
        let of_operations = self
            .seen_operations()
            .filter_map(|(_, name, _)| address_function(name));
        of_calls.chain(of_operations).collect()
    }

    /// The watched io_uring operations whose objects are seen by the hooks for calls: those that do the
    /// same as a watched call. For other operations nothing is hooked, since it would slow down calls.
    fn seen_operations(&self) -> impl Iterator<Item = (u32, &'static str, ObjectClass)> + '_ {
        let operations = self.calls.keys().filter(|key| key.0 == Entry::Uring);
        operations.filter_map(|&(_, op)| {
            let arch = self.entries.arch(Entry::Native)?;
            let is_watched = |name: &&&str| {
                let nr = abi::syscall_number(arch, name);
                nr.is_some_and(|nr| self.calls.contains_key(&(Entry::Native, nr)))
            };
            let name = *abi::uring_op_calls(op).iter().find(is_watched)?;
            Some((op, name, object_functions(name)?.0))
        })
    }

    /// [`ObjectClass`] of every io_uring operation whose objects are seen, by number; 0 for others.
    pub fn operation_classes(&self) -> [u8; OPERATIONS] {
        let mut classes = [0; OPERATIONS];
        for (op, _, class) in self.seen_operations() {
            if let Some(slot) = classes.get_mut(op as usize) {
                *slot = class as u8;
            }
        }
        classes
    }

    /// The calls whose entries have to be hooked where functions are not: entry, number and class.
    pub fn entry_classes(&self) -> impl Iterator<Item = (Entry, u32, u8)> + '_ {
        let is_hooked = !self.form().trampoline;
        let before = self.platform.objects_before;
        let calls = self.watched_names().filter(move |_| is_hooked);
        // The structures of System V calls are others for 32-bit calls.
        let is_known =
            |entry, class| entry == Entry::Native || class < SEMAPHORES || class == BEFORE;
        calls
            .map(move |(entry, nr, name)| (entry, nr, entry_class(name, before)))
            .filter(move |(entry, _, class)| *class != 0 && is_known(*entry, *class))
    }

    /// [`ObjectClass`] of every watched call, by entry and number; 0 for others.
    pub fn object_classes(&self) -> [[u8; CALLS]; 2] {
        let mut classes = [[0; CALLS]; 2];
        for (entry, nr, name) in self.watched_names() {
            let slot = classes[entry as usize].get_mut(nr as usize);
            if let (Some(slot), Some((class, _))) = (slot, object_functions(name)) {
                let plain_reads = self.calls[&(entry, nr)].plain_reads;
                *slot = match class {
                    ObjectClass::Open if !plain_reads => ObjectClass::OpenChanges as u8,
                    class => class as u8,
                };
            }
        }

        classes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use abi::Arch;

    #[test]
    fn calls_that_touch_no_object_hook_nothing() {
        for name in [
            "stat",
            "newfstatat",
            "statx",
            "read",
            "write",
            "fstat",
            "access",
            "close",
        ] {
            assert!(object_functions(name).is_none(), "{name}");
        }
    }

    #[test]
    fn every_call_that_changes_names_has_the_name_the_directory_and_the_entry() {
        for arch in [Arch::X86_64, Arch::I386, Arch::Aarch64] {
            for (_, name) in abi::syscalls(arch) {
                let shape = crate::shape::shape_of_name(name);
                let changes = shape.paths.iter().flatten().any(|path| {
                    matches!(
                        path.use_,
                        crate::NameUse::Create | crate::NameUse::Delete | crate::NameUse::Rename
                    )
                });
                let functions = object_functions(name).map_or(&[][..], |(_, functions)| functions);
                let of = |prefix: &str| functions.iter().any(|f| f.starts_with(prefix));
                let complete = of("do_") && of("lookup_one") && of("security_path_") && of("vfs_");
                assert_eq!(changes, complete, "{name}");
            }
        }
    }
}
