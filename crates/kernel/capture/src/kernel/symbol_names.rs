//! Names of kernel symbols that the engine looks for.

const PREFIXES: [&str; 8] = [
    "__x64_sys_",
    X32_PREFIX,
    "__ia32_sys_",
    "__ia32_compat_sys_",
    "__arm64_sys_",
    "__arm64_compat_sys_",
    "__do_sys_",
    "__do_compat_sys_",
];

/// Functions of calls that x32 has of its own.
pub(crate) const X32_PREFIX: &str = "__x64_compat_sys_";

/// The list of calls that read: numbers and an end mark (arch/x86/kernel/audit_64.c, lib/audit.c).
pub(crate) const READ_CALLS: &str = "read_class";

/// SELinux's state, which few kernels list, and a short function that reads it (security/selinux/ss/services.c).
pub(crate) const SELINUX: [&str; 2] = ["selinux_state", "security_get_allow_unknown"];

/// Whether the name may be that of a system call's function.
pub(crate) fn is_call_function(name: &str) -> bool {
    PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// Whether the name may be that of an operation's function.
pub(crate) fn is_operation(name: &str) -> bool {
    name.starts_with("io_")
}

/// Whether anything here needs the symbol.
pub(crate) fn is_of_interest(name: &str) -> bool {
    is_call_function(name) || is_operation(name) || name == READ_CALLS || SELINUX.contains(&name)
}
