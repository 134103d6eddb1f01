//! The arguments of hooked functions that the programs of `bpf/object_hooks.bpf.inc.c` read, with their types. If
//! a kernel's function has other arguments, it is not hooked, so that nothing is misread.

use crate::attach::probes::PROBE;
use crate::kernel::kernel_btf::Types;

/// HookArguments that are pointers to structures: index, and name of the structure.
type HookArguments = &'static [(usize, &'static str)];

/// Whether the kernel has the function, with the arguments that the program reads.
pub(super) fn are_as_read(types: &Types, program: &str, function: &str) -> bool {
    let Some(known) = types.functions().get(function) else {
        return false;
    };
    let arguments = of_program(program).unwrap_or_else(|| of_function(function));
    arguments
        .iter()
        .all(|(place, name)| types.argument_is(known.prototype, *place, name))
}

/// The arguments of programs for which functions exist in several forms.
fn of_program(program: &str) -> Option<HookArguments> {
    match program.strip_prefix(PROBE).unwrap_or(program) {
        "on_vfs_create__at1" | "after_vfs_create__at1" => Some(&[(1, "dentry")]),
        "on_vfs_create__at2" | "after_vfs_create__at2" => Some(&[(2, "dentry")]),
        _ => None,
    }
}

fn of_function(function: &str) -> HookArguments {
    match function {
        "do_unlinkat" | "filename_unlinkat" | "do_rmdir" | "filename_rmdir" | "do_mkdirat"
        | "filename_mkdirat" | "do_mknodat" | "filename_mknodat" => &[(1, "filename")],
        "do_renameat2" | "filename_renameat2" | "do_linkat" | "filename_linkat" => {
            &[(1, "filename"), (3, "filename")]
        }
        "do_symlinkat" | "filename_symlinkat" => &[(0, "filename"), (2, "filename")],
        plan::PARENT_LOOKUP => &[(1, "dentry")],
        "security_path_rename" => &[(0, "path"), (1, "dentry"), (2, "path"), (3, "dentry")],
        "security_path_link" => &[(0, "dentry"), (1, "path"), (2, "dentry")],
        "security_move_mount" | "security_sb_pivotroot" => &[(0, "path"), (1, "path")],
        "security_path_unlink"
        | "security_path_rmdir"
        | "security_path_mkdir"
        | "security_path_mknod"
        | "security_path_symlink" => &[(0, "path"), (1, "dentry")],
        "security_path_chmod" | "security_path_chown" | "vfs_truncate" | "vfs_utimes" => {
            &[(0, "path")]
        }
        "security_sb_mount" | "set_fs_pwd" | "set_fs_root" => &[(1, "path")],
        "vfs_unlink" | "vfs_rmdir" | "vfs_mkdir" | "vfs_mknod" | "vfs_symlink" => &[(2, "dentry")],
        "vfs_rename" => &[(0, "renamedata")],
        "vfs_link" => &[(0, "dentry"), (3, "dentry")],
        "vfs_mkobj"
        | "security_inode_getxattr"
        | "security_inode_listxattr"
        | "security_inode_readlink"
        | "security_inode_file_getattr"
        | "security_inode_file_setattr" => &[(0, "dentry")],
        "security_inode_setxattr" | "security_inode_removexattr" => &[(1, "dentry")],
        "do_filp_open" | "do_file_open" => &[(1, "filename"), (2, "open_flags")],
        "security_sb_umount" => &[(0, "vfsmount")],
        "security_socket_bind" | "security_socket_connect" => &[(1, "sockaddr")],
        "move_addr_to_kernel" => &[(2, "__kernel_sockaddr_storage")],
        "move_addr_to_user" => &[(0, "__kernel_sockaddr_storage")],
        "audit_signal_info" => &[(1, "task_struct")],
        "ipcperms" => &[(1, "kern_ipc_perm")],
        "ipcctl_obtain_check" => &[(1, "ipc_ids"), (4, "ipc64_perm")],
        "__do_adjtimex" => &[(0, "__kernel_timex"), (3, "audit_ntp_data")],
        "ntp_adjtimex" => &[(1, "__kernel_timex"), (4, "audit_ntp_data")],
        _ => &[],
    }
}
