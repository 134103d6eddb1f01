//! Features that are lost or less exact without a member, function or tracepoint that the programs use.

use Need::{Essential, Trampoline, Useful};

/// Importance of a member, function or tracepoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    /// Without this part, no event is worth recording.
    Essential,
    /// Without this part, records are incomplete.
    Useful,
    /// Without this part, records are incomplete; the tracepoint engine does not use it.
    Trampoline,
}

/// What the programs find in the kernel's cache of names.
const FOUND: &str = "objects of names as they were when the call was over";

/// What the programs find by the kernel's table of names.
const UNMARKED: &str = "calls by name that no rule selects, dropped without the daemon";

/// What the programs find of objects that were made a moment ago.
const ALIASES: &str =
    "path= rules on a file that was made less than a second ago, by its other hard links";

/// What the programs find of an execve.
const EXECUTED: &str = "scripts, interpreters and loaders as an execve has opened them";

/// What the programs read of SELinux.
const LABELS: &str = "labels of tasks and objects, by SELinux";

/// The feature that needs to know who may have named a container.
const MADE: &str = "rules on containers decided in the kernel";

pub(super) type Feature = (&'static str, Need);

/// The feature that depends on a member of a type; `None` if the member has no entry here yet.
pub(super) fn of_member(ty: &str, member: &str) -> Option<Feature> {
    let is_it = |row: &&(&str, &[&str], &str, Need)| {
        row.0 == ty && (row.1.is_empty() || row.1.contains(&member))
    };
    let row = MEMBERS.iter().find(is_it)?;
    Some((row.2, row.3))
}

/// Type, members (if none are named: all others), feature, need.
#[rustfmt::skip]
const MEMBERS: &[(&str, &[&str], &str, Need)] = &[
    ("pt_regs", &[], "numbers and arguments of system calls", Essential),
    ("user_pt_regs", &[], "numbers and arguments of system calls", Essential),
    ("thread_info", &[], "arch of records", Essential),
    ("kuid_t", &[], "uids and auid of records", Essential),
    ("kgid_t", &[], "gids of records", Essential),
    ("task_struct", &["thread_info"], "arch of records", Essential),
    ("task_struct", &["pid", "tgid"], "pid of records", Essential),
    ("task_struct", &["real_parent"], "ppid of records", Essential),
    ("task_struct", &["loginuid"], "auid of records", Essential),
    ("task_struct", &["sessionid"], "ses of records", Essential),
    ("task_struct", &["personality"], "pers of records", Essential),
    ("task_struct", &["cred", "real_cred"], "uids and gids of records", Essential),
    ("task_struct", &["flags"], "objects of system calls", Trampoline),
    ("task_struct", &["group_leader", "start_boottime"], "telling the daemon's own calls from those of a later process with its pid", Useful),
    ("task_struct", &["self_exec_id"], "ancestors of processes", Useful),
    ("task_struct", &["comm"], "comm of records", Useful),
    ("task_struct", &["fs"], "CWD records and paths", Useful),
    ("task_struct", &["files"], "files that descriptors stand for", Useful),
    ("task_struct", &["signal"], "tty of records", Useful),
    ("task_struct", &["nsproxy"], "the mount namespace of an event", Useful),
    ("task_struct", &["cgroups"], "the cgroup of an event", Useful),
    ("task_struct", &["thread_pid", "pid_links"], "OBJ_PID records", Useful),
    ("task_struct", &["task_works"], EXECUTED, Useful),
    ("task_struct", &["mm"], "exe of records, EXECVE and PROCTITLE records", Useful),
    ("cred", &["uid", "gid", "suid", "sgid", "euid", "egid", "fsuid", "fsgid"], "uids and gids of records", Essential),
    ("cred", &["security"], LABELS, Useful),
    ("cred", &["group_info"], "supplementary groups in rules on gid and egid", Useful),
    ("cred", &["user_ns"], "counting the uids of a user namespace as one under overload", Useful),
    ("user_namespace", &[], "counting the uids of a user namespace as one under overload", Useful),
    ("cred", &[], "BPRM_FCAPS and CAPSET records", Useful),
    ("kernel_cap_t", &[], "BPRM_FCAPS and CAPSET records", Useful),
    ("group_info", &[], "supplementary groups in rules on gid and egid", Useful),
    ("mm_struct", &["exe_file"], "exe of records", Useful),
    ("mm_struct", &["mm_users"], "files that descriptors stand for", Useful),
    ("mm_struct", &[], "EXECVE and PROCTITLE records", Useful),
    ("tty_struct", &[], "tty of records", Useful),
    ("signal_struct", &["live"], "ancestors of processes", Useful),
    ("signal_struct", &["sum_sched_runtime"], "files that descriptors stand for", Useful),
    ("signal_struct", &[], "tty of records", Useful),
    ("ns_common", &[], "the mount namespace of an event", Useful),
    ("mnt_namespace", &[], "the mount namespace of an event", Useful),
    ("nsproxy", &["ipc_ns"], "IPC records", Useful),
    ("nsproxy", &[], "the mount namespace of an event", Useful),
    ("kernfs_node", &["mode", "iattr"], MADE, Useful),
    ("kernfs_iattrs", &[], MADE, Useful),
    ("kernfs_node", &["name"], "paths of cgroups that end soon", Useful),
    ("kernfs_node", &[], "the cgroup of an event", Useful),
    ("cgroup", &["self", "root"], "paths of cgroups that end soon", Useful),
    ("cgroup", &[], "the cgroup of an event", Useful),
    ("css_set", &[], "the cgroup of an event", Useful),
    ("cgroup_subsys_state", &[], "paths of cgroups that end soon", Useful),
    ("cgroup_root", &[], "paths of cgroups that end soon", Useful),
    ("fs_struct", &["root"], "paths below a changed root directory", Useful),
    ("fs_struct", &[], "CWD records", Useful),
    ("fs_context", &["source"], "PATH of the source of a file system that fsconfig creates", Useful),
    ("path", &[], "paths", Useful),
    ("dentry", &["d_hash"], "marks of deleted files in paths", Useful),
    ("dentry", &["d_sb"], "dir= rules on what mounts show in part", Useful),
    ("dentry", &["d_shortname", "d_iname"], "short names in paths", Useful),
    ("dentry", &["d_seq"], "names that change while they are copied", Useful),
    ("seqcount", &[], "names that change while they are copied", Useful),
    ("seqcount_spinlock", &[], "names that change while they are copied", Useful),
    ("dentry", &["d_flags", "d_child", "d_subdirs", "d_sib", "d_children"], FOUND, Useful),
    ("dentry", &["d_u", "d_alias"], ALIASES, Useful),
    ("dentry", &[], "paths", Useful),
    ("dentry_flags", &[], FOUND, Useful),
    ("shortname_store", &[], "short names in paths", Useful),
    ("hlist_bl_node", &[], "marks of deleted files in paths", Useful),
    ("qstr", &["hash"], UNMARKED, Useful),
    ("qstr", &[], "paths", Useful),
    ("vfsmount", &[], "paths across mounts", Useful),
    ("mount", &["mnt_instance"], "paths of objects of calls on extended attributes and links", Trampoline),
    ("mount", &["mnt_mounts", "mnt_child"], FOUND, Useful),
    ("mount", &[], "paths across mounts", Useful),
    ("super_block", &["s_root", "s_fs_info"], FOUND, Useful),
    ("proc_fs_info", &[], FOUND, Useful),
    ("pid_namespace", &["level"], FOUND, Useful),
    ("super_block", &["s_mounts"], "paths of objects of calls on extended attributes and links", Trampoline),
    ("super_block", &[], "dev of PATH records", Useful),
    ("list_head", &[], FOUND, Useful),
    ("inode", &["i_security"], LABELS, Useful),
    ("inode", &["i_dentry"], ALIASES, Useful),
    ("inode", &["i_link", "i_size"], FOUND, Useful),
    ("inode", &[], "PATH records", Useful),
    ("file", &["f_task_work", "f_rcuhead"], EXECUTED, Useful),
    ("callback_head", &[], EXECUTED, Useful),
    ("backing_file", &[], EXECUTED, Useful),
    ("vm_area_struct", &[], EXECUTED, Useful),
    ("file", &["f_flags"], "perm= rules on openat2: every access counts", Useful),
    ("file", &["f_mode"], "nametype=CREATE of files that were opened", Useful),
    ("file", &["f_inode"], "exe= rules, inodes of opened files", Useful),
    ("file", &[], "paths of opened files and exe of records", Useful),
    ("fdtable", &["open_fds"], "FD_PAIR records of pipe(2) that fails", Useful),
    ("files_struct", &["next_fd"], "FD_PAIR records of pipe(2) that fails", Useful),
    ("fdtable", &[], "files that descriptors stand for", Useful),
    ("files_struct", &[], "files that descriptors stand for", Useful),
    ("bpf_iter__task", &[], "ancestors of processes from before the start", Useful),
    ("bpf_iter_meta", &[], "ancestors of processes from before the start", Useful),
    ("atomic64_t", &[], "files that descriptors stand for", Useful),
    ("file_ref_t", &[], "files that descriptors stand for", Useful),
    ("atomic_t", &[], "rules on paths decided in the kernel", Useful),
    ("module", &[], "KERN_MODULE records of init_module and finit_module", Useful),
    ("bpf_prog", &[], "BPF records in the events of bpf", Useful),
    ("bpf_prog_aux", &[], "BPF records in the events of bpf", Useful),
    ("socket", &[], "saddr_fam= where another thread changes the address", Useful),
    ("sock", &[], "saddr_fam= where another thread changes the address", Useful),
    ("sock_common", &[], "saddr_fam= where another thread changes the address", Useful),
    ("filename", &[], "names of io_uring operations, and of calls under the trampoline engine", Useful),
    ("open_flags", &[], "nametype=CREATE of files that were opened", Trampoline),
    ("renamedata", &[], "objects of rename", Trampoline),
    ("pid", &[], "OBJ_PID records", Useful),
    ("upid", &[], "OBJ_PID records", Useful),
    ("proc_inode", &[], "OBJ_PID records of pidfd_send_signal", Useful),
    ("pid_namespace", &[], "OBJ_PID records", Useful),
    ("hlist_node", &[], FOUND, Useful),
    ("hlist_head", &[], "OBJ_PID records", Useful),
    ("ipc_namespace", &[], "IPC records", Useful),
    ("kern_ipc_perm", &[], "IPC records", Useful),
    ("ipc_ids", &[], "IPC records", Useful),
    ("idr", &[], "OBJ_PID and IPC records", Useful),
    ("xarray", &[], "OBJ_PID and IPC records", Useful),
    ("xa_node", &[], "OBJ_PID and IPC records", Useful),
    ("ipc64_perm", &[], "IPC_SET_PERM records", Useful),
    ("linux_binprm", &["execfd"], EXECUTED, Useful),
    ("linux_binprm", &[], "PATH records of execve", Useful),
    ("io_cqe", &["res"], "results of io_uring operations", Trampoline),
    ("io_cqe", &[], "io_uring operations: their descriptors and results", Useful),
    ("io_uring_cqe", &[], "results of io_uring operations", Useful),
    ("io_kiocb", &["async_data"], "socket addresses as io_uring's operations use them", Useful),
    ("io_kiocb", &["creds"], "uids of io_uring operations with credentials of their own", Useful),
    ("io_kiocb", &[], "io_uring operations", Useful),
    ("open_how", &[], "OPENAT2 records of io_uring operations", Useful),
    ("delayed_filename", &[], "names of io_uring operations", Useful),
    ("io_open", &[], "names of io_uring's openat and openat2", Useful),
    ("io_close", &[], "a0 of io_uring's close", Useful),
    ("io_unlink", &[], "names of io_uring's unlinkat", Useful),
    ("io_mkdir", &[], "names of io_uring's mkdirat", Useful),
    ("io_rename", &[], "names of io_uring's renameat", Useful),
    ("io_link", &[], "names of io_uring's linkat and symlinkat", Useful),
    ("io_xattr", &[], "names of io_uring's setxattr and getxattr", Useful),
    ("io_statx", &[], "names of io_uring's statx", Useful),
    ("kiocb", &[], "arguments of io_uring's read and write", Useful),
    ("io_rw", &[], "arguments of io_uring's read and write", Useful),
    ("io_splice", &[], "a0 of io_uring's splice and tee", Useful),
    ("io_connect", &[], "SOCKADDR records of io_uring's connect", Useful),
    ("io_async_msghdr", &[], "socket addresses as io_uring's operations use them", Useful),
    ("msghdr", &[], "socket addresses as io_uring's operations use them", Useful),
    ("io_sr_msg", &["addr", "addr_len"], "socket addresses as io_uring's operations use them", Useful),
    ("io_sr_msg", &[], "arguments of io_uring's send and recv", Useful),
    ("io_socket", &[], "arguments of io_uring's socket", Useful),
    ("io_uring_cmd", &[], "io_uring's commands on sockets", Useful),
    ("io_uring_sqe", &[], "arguments of io_uring's commands on sockets", Useful),
    ("bpf_func_id", &["BPF_FUNC_loop"], "loops at their lowest cost", Useful),
    ("bpf_func_id", &["BPF_FUNC_find_vma"], EXECUTED, Useful),
    ("bpf_func_id", &["BPF_FUNC_get_func_arg", "BPF_FUNC_get_func_ret"], "arguments of hooked functions at their lowest cost", Trampoline),
    ("bpf_func_id", &[], "TIME_INJOFFSET records of settimeofday", Trampoline),
];

/// Alternatives, of which a kernel has one: type and member of each.
pub(super) const ALTERNATIVES: &[&[(&str, &str)]] = &[
    &[("dentry", "d_shortname"), ("dentry", "d_iname")],
    &[
        ("mount", "mnt_instance"),
        ("super_block___mounts", "s_mounts"),
    ],
    &[("dentry", "d_sib"), ("dentry", "d_child")],
    // Older kernels, which have d_iname, have a macro with a value that is known.
    &[("dentry_flags", "DCACHE_MOUNTED"), ("dentry", "d_iname")],
    &[("dentry_flags", "DCACHE_OP_HASH"), ("dentry", "d_iname")],
    &[("dentry", "d_children"), ("dentry", "d_subdirs")],
    &[("dentry", "d_u"), ("dentry", "d_alias")],
    &[("file", "f_task_work"), ("file", "f_rcuhead")],
    &[("file", "f_count"), ("file", "f_ref")],
    &[("backing_file", "user_path"), ("backing_file", "real_path")],
];

/// Tracepoints and functions of which a kernel has one.
pub(super) const NAMES: &[&[&str]] = &[
    &["io_uring_submit_req", "io_uring_submit_sqe"],
    &["do_unlinkat", "filename_unlinkat"],
    &["do_rmdir", "filename_rmdir"],
    &["do_mkdirat", "filename_mkdirat"],
    &["do_mknodat", "filename_mknodat"],
    &["do_renameat2", "filename_renameat2"],
    &["do_linkat", "filename_linkat"],
    &["do_symlinkat", "filename_symlinkat"],
    &["do_filp_open", "do_file_open"],
    &["__do_adjtimex", "ntp_adjtimex"],
];

/// All names of a tracepoint or function, the given one included.
pub(super) fn names(name: &str) -> impl Iterator<Item = &str> {
    let names = NAMES.iter().find(|names| names.contains(&name));
    let names = names.copied().unwrap_or_default();
    let others = names.iter().copied().filter(move |other| *other != name);
    others.chain([name])
}

/// Enumerators whose values the programs need.
pub(super) const ENUMERATORS: [(&str, Feature); 3] = [
    ("IORING_OP_LAST", ("io_uring operations", Useful)),
    ("REQ_F_CREDS_BIT", ("io_uring operations", Useful)),
    ("REQ_F_CQE_SKIP_BIT", ("io_uring operations", Useful)),
];

/// The feature that depends on a tracepoint.
pub(super) fn of_tracepoint(name: &str) -> Option<Feature> {
    Some(match name {
        "sys_exit" => ("32-bit calls, and rules on all calls", Useful),
        "sys_enter" => (
            "CWD records of calls that change the directory, IPC records",
            Useful,
        ),
        "task_rename" | "sched_process_exec" => ("execve", Useful),
        "module_load" => (
            "KERN_MODULE records of init_module and finit_module",
            Useful,
        ),
        "sched_process_exit" => ("exit and exit_group", Useful),
        "cgroup_mkdir" | "cgroup_rmdir" => ("paths of cgroups that end soon", Useful),
        "sched_process_fork" => ("the task list, and forks that a tracer changes", Useful),
        "io_uring_cqe_overflow" => (
            "results of io_uring operations whose completions overflow the ring",
            Useful,
        ),
        "io_uring_fail_link" => (
            "io_uring operations by the functions that carry them out",
            Trampoline,
        ),
        name if name.starts_with("io_uring_") => ("io_uring operations", Useful),
        _ => return None,
    })
}

/// The call that a function, tracepoint or type is for: a kernel without the call does not lack it.
pub(super) fn call_of(name: &str) -> Option<&'static str> {
    match name {
        "module" | "module_load" => Some("init_module"),
        "security_inode_file_getattr" => Some("file_getattr"),
        "security_inode_file_setattr" => Some("file_setattr"),
        _ => None,
    }
}

/// The feature that depends on a hooked function: the class of calls that it is hooked for.
pub(super) fn of_function(name: &str) -> Option<Feature> {
    let feature = match name {
        plan::PARENT_LOOKUP => "parents of what calls on directory entries touch",
        "io_req_defer_failed" | "io_req_complete_failed" => "io_uring operations that fail",
        "do_unlinkat" | "do_rmdir" | "do_mkdirat" | "do_mknodat" | "do_renameat2" | "do_linkat"
        | "do_symlinkat" => "names of calls on directory entries",
        "vfs_mkobj" => "objects of mq_open",
        name if name.starts_with("filename_") => "names of calls on directory entries",
        "do_filp_open" | "do_file_open" => "objects of open",
        "set_fs_pwd" => "objects of chdir",
        "set_fs_root" | "security_sb_pivotroot" => "objects of chroot and pivot_root",
        "security_sb_mount" | "security_sb_umount" | "security_move_mount" => {
            "objects of mount and umount"
        }
        "move_addr_to_kernel"
        | "move_addr_to_user"
        | "security_socket_bind"
        | "security_socket_connect" => "socket addresses as the kernel saw them",
        "audit_signal_info" => "OBJ_PID records",
        "ipcperms" | "ipcctl_obtain_check" => "IPC and IPC_SET_PERM records",
        "do_adjtimex" | "__do_adjtimex" | "ntp_adjtimex" | "do_settimeofday64" => "TIME_* records",
        name if name.starts_with("security_path_ch") || name.starts_with("security_inode_") => {
            "objects of calls that act on what a path leads to"
        }
        "vfs_truncate" | "vfs_utimes" => "objects of calls that act on what a path leads to",
        name if name.starts_with("security_path_") => {
            "parents of what calls on directory entries touch"
        }
        name if name.starts_with("vfs_") => "objects of calls on directory entries",
        _ => return None,
    };
    Some((feature, Trampoline))
}
