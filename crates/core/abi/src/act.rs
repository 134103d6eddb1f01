//! Acts, each with all system calls by which a program does it. Who watches one of the calls usually wants all.
//!
//! The io_uring operations of an act are those that do what one of its calls does: [`crate::uring_op_calls`].

/// Something that programs do.
#[derive(Clone, Copy, Debug)]
pub struct Act {
    /// What programs do, after "programs can".
    pub name: &'static str,
    /// All ways to do it.
    pub ways: &'static [Way],
}

/// A system call that does an act.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Way {
    /// The name of the call; not every architecture has it.
    pub call: &'static str,
    /// The argument by which the call does this act, if it does others too and the argument can be asked about.
    pub argument: Option<Argument>,
    /// Which rules on the call mean the act.
    pub meant: Meant,
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

const fn call(call: &'static str) -> Way {
    Way {
        call,
        argument: None,
        meant: Meant::ByCall,
    }
}

const fn also(call: &'static str) -> Way {
    Way {
        call,
        argument: None,
        meant: Meant::Never,
    }
}

const fn with(call: &'static str, index: u8, is_mask: bool, value: u32) -> Way {
    Way {
        call,
        argument: Some(Argument {
            index,
            is_mask,
            value,
        }),
        meant: Meant::ByArgument,
    }
}

/// A call whose first argument is the clock, here CLOCK_REALTIME: the others are not the host's.
const fn clock(call: &'static str) -> Way {
    Way {
        meant: Meant::ByCall,
        ..with(call, 0, false, 0)
    }
}

/// socketcall(2) with this first argument (`SYS_*` of linux/net.h): the call of 32-bit programs for all of sockets.
const fn socketcall(value: u32) -> Way {
    with("socketcall", 0, false, value)
}

/// `O_CREAT` (asm-generic/fcntl.h).
const CREATE: u32 = 0o100;
/// `PTRACE_POKETEXT` and `PTRACE_POKEDATA` (linux/ptrace.h).
const POKE: [u32; 2] = [4, 5];

/// Every act that more than one call does.
#[rustfmt::skip]
pub const ACTS: &[Act] = &[
    // Names.
    Act { name: "remove files and directories", ways: &[call("unlink"), call("unlinkat"), call("rmdir")] },
    Act { name: "rename files", ways: &[call("rename"), call("renameat"), call("renameat2")] },
    Act { name: "make directories", ways: &[call("mkdir"), call("mkdirat")] },
    Act { name: "make special files", ways: &[call("mknod"), call("mknodat")] },
    Act { name: "make hard links", ways: &[call("link"), call("linkat")] },
    Act { name: "make symbolic links", ways: &[call("symlink"), call("symlinkat")] },
    Act { name: "read symbolic links", ways: &[call("readlink"), call("readlinkat")] },
    Act { name: "change their directory", ways: &[call("chdir"), call("fchdir")] },
    Act { name: "change their root directory", ways: &[call("chroot"), call("fchroot"), call("pivot_root")] },

    // Contents.
    Act { name: "open files", ways: &[
        call("open"), call("openat"), call("openat2"), call("open_by_handle_at"), also("creat"),
    ] },
    Act { name: "create files", ways: &[
        call("creat"), with("open", 1, true, CREATE), with("openat", 2, true, CREATE), also("openat2"),
    ] },
    Act { name: "truncate files", ways: &[
        call("truncate"), call("ftruncate"), call("truncate64"), call("ftruncate64"),
    ] },
    Act { name: "execute programs", ways: &[call("execve"), call("execveat")] },
    Act { name: "list directories", ways: &[call("getdents"), call("getdents64")] },

    // Attributes.
    Act { name: "change modes of files", ways: &[
        call("chmod"), call("fchmod"), call("fchmodat"), call("fchmodat2"),
    ] },
    Act { name: "change owners of files", ways: &[
        call("chown"), call("fchown"), call("lchown"), call("fchownat"),
        call("chown32"), call("fchown32"), call("lchown32"),
    ] },
    Act { name: "set extended attributes", ways: &[
        call("setxattr"), call("lsetxattr"), call("fsetxattr"), call("setxattrat"),
    ] },
    Act { name: "remove extended attributes", ways: &[
        call("removexattr"), call("lremovexattr"), call("fremovexattr"), call("removexattrat"),
    ] },
    Act { name: "read extended attributes", ways: &[
        call("getxattr"), call("lgetxattr"), call("fgetxattr"), call("getxattrat"),
    ] },
    Act { name: "list extended attributes", ways: &[
        call("listxattr"), call("llistxattr"), call("flistxattr"), call("listxattrat"),
    ] },
    Act { name: "set times of files", ways: &[
        call("utime"), call("utimes"), call("futimesat"), call("utimensat"), call("utimensat_time64"),
    ] },
    Act { name: "read attributes of files", ways: &[
        call("stat"), call("lstat"), call("fstat"), call("newfstatat"), call("statx"),
        call("stat64"), call("lstat64"), call("fstat64"), call("fstatat64"), call("oldstat"), call("oldlstat"),
        call("oldfstat"),
    ] },
    Act { name: "check access to files", ways: &[call("access"), call("faccessat"), call("faccessat2")] },
    Act { name: "set quotas", ways: &[call("quotactl"), call("quotactl_fd")] },

    // File systems.
    Act { name: "mount file systems", ways: &[
        call("mount"), call("fsopen"), call("fsconfig"), call("fsmount"), call("fspick"), call("move_mount"),
        call("open_tree"), call("open_tree_attr"), call("mount_setattr"),
    ] },
    Act { name: "unmount file systems", ways: &[call("umount"), call("umount2")] },
    Act { name: "change swap space", ways: &[call("swapon"), call("swapoff")] },

    // The system.
    Act { name: "load kernel modules", ways: &[call("init_module"), call("finit_module")] },
    Act { name: "load another kernel", ways: &[call("kexec_load"), call("kexec_file_load")] },
    Act { name: "set the clock", ways: &[
        call("settimeofday"), call("adjtimex"), call("stime"), clock("clock_settime"), clock("clock_adjtime"),
        clock("clock_settime64"), clock("clock_adjtime64"),
    ] },
    Act { name: "change the host's name", ways: &[call("sethostname"), call("setdomainname")] },
    Act { name: "use keys of the kernel", ways: &[call("add_key"), call("request_key"), call("keyctl")] },

    // Processes.
    Act { name: "make processes", ways: &[call("fork"), call("vfork"), call("clone"), call("clone3")] },
    Act { name: "send signals", ways: &[
        call("kill"), call("tkill"), call("tgkill"), call("rt_sigqueueinfo"), call("rt_tgsigqueueinfo"),
        call("pidfd_send_signal"),
    ] },
    Act { name: "trace other processes", ways: &[
        call("ptrace"), also("process_vm_readv"), also("process_vm_writev"), also("pidfd_getfd"),
    ] },
    Act { name: "write to the memory of other processes", ways: &[
        with("ptrace", 0, false, POKE[0]), with("ptrace", 0, false, POKE[1]), call("process_vm_writev"),
    ] },
    Act { name: "change their user ids", ways: &[
        call("setuid"), call("setreuid"), call("setresuid"), call("setfsuid"),
        call("setuid32"), call("setreuid32"), call("setresuid32"), call("setfsuid32"),
    ] },
    Act { name: "change their group ids", ways: &[
        call("setgid"), call("setregid"), call("setresgid"), call("setfsgid"),
        call("setgid32"), call("setregid32"), call("setresgid32"), call("setfsgid32"),
    ] },
    Act { name: "change their groups", ways: &[call("setgroups"), call("setgroups32")] },
    Act { name: "set resource limits", ways: &[call("setrlimit"), call("prlimit64")] },

    // Sockets.
    Act { name: "make sockets", ways: &[call("socket"), socketcall(1)] },
    Act { name: "bind sockets", ways: &[call("bind"), socketcall(2)] },
    Act { name: "connect sockets", ways: &[call("connect"), socketcall(3)] },
    Act { name: "listen for connections", ways: &[call("listen"), socketcall(4)] },
    Act { name: "accept connections", ways: &[
        call("accept"), call("accept4"), socketcall(5), socketcall(18),
    ] },
    Act { name: "send messages by sockets", ways: &[
        call("send"), call("sendto"), call("sendmsg"), call("sendmmsg"),
        socketcall(9), socketcall(11), socketcall(16), socketcall(20),
    ] },
    Act { name: "receive messages by sockets", ways: &[
        call("recv"), call("recvfrom"), call("recvmsg"), call("recvmmsg"), call("recvmmsg_time64"),
        socketcall(10), socketcall(12), socketcall(17), socketcall(19),
    ] },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{syscall_number, syscalls, Arch};
    use std::collections::BTreeSet;

    const ARCHES: [Arch; 4] = [Arch::X86_64, Arch::I386, Arch::Aarch64, Arch::Arm];

    fn is_call(name: &str) -> bool {
        let mut arches = ARCHES.iter();
        arches.any(|arch| syscall_number(*arch, name).is_some())
    }

    #[test]
    fn every_way_is_a_call_of_some_architecture_and_stands_once() {
        for act in ACTS {
            for (place, way) in act.ways.iter().enumerate() {
                assert!(is_call(way.call), "{}", way.call);
                assert!(
                    !act.ways[..place].contains(way),
                    "{}: {}",
                    act.name,
                    way.call
                );
            }
            assert!(act.ways.len() > 1 && act.ways.iter().any(|way| way.meant != Meant::Never));
        }
    }

    /// A kernel that gets another variant of a call of an act gets it into the table: names of variants differ by these
    /// ends and beginnings.
    #[test]
    fn variants_of_a_call_are_in_its_act() {
        let ends = [
            "at",
            "at2",
            "2",
            "3",
            "4",
            "32",
            "64",
            "_time64",
            "_fd",
            "at_time64",
            "_attr",
        ];
        let begins = ["f", "l", "t", "tg", "old", "pidfd_send_"];
        let known: BTreeSet<&str> = ARCHES
            .iter()
            .flat_map(|arch| syscalls(*arch).map(|(_, name)| name))
            .collect();
        for act in ACTS {
            let calls: Vec<&str> = act.ways.iter().map(|way| way.call).collect();
            for call in &calls {
                let later = ends.iter().map(|end| format!("{call}{end}"));
                let other = begins.iter().map(|begin| format!("{begin}{call}"));
                for variant in later.chain(other) {
                    let is_there = calls.contains(&variant.as_str());
                    assert!(
                        is_there || !known.contains(variant.as_str()),
                        "{variant} is not a way to {}, as {call} is",
                        act.name
                    );
                }
            }
        }
    }
}
