//! The act that an event is about, as ECS and OCSF both need to know it: by its records, or by its call.

use super::parsed::{kind_of, text_of, Parsed};

/// Act that an event reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[rustfmt::skip]
#[allow(missing_docs)]
pub(crate) enum Act {
    // Processes.
    Execute, Command, Fork, Exit, Crash, Signal, Trace, ChangeUser, ChangeGroup, Capabilities,
    // Files.
    Open, Create, Delete, Rename, Link, Mode, Owner, Xattr, Times, Truncate, Look, Mount, Unmount,
    // Network.
    Connect, Accept, Bind, Send, Receive,
    // The kernel.
    Load, Unload, Bpf, Clock, Firewall, Promiscuous, Call, Seccomp, Denied,
    // Logins and accounts.
    Login, Logout, Authenticate, SessionStart, SessionEnd, Credentials, LoginId,
    AddUser, DeleteUser, ChangeAccount, Password, Lock, Unlock,
    AddGroup, DeleteGroup, ChangeMembers, AddMember, RemoveMember,
    // Services and the machine.
    ServiceStart, ServiceStop, Boot, Shutdown, Software,
    // Auditing itself.
    AuditRules, AuditStart, AuditStop, AuditRotate, AuditError, AuditOther,
    // Anything else.
    Terminal, Message, Other,
}

use Act::*;

/// Acts told by the type of a record alone. A type with other records beside it counts before the call.
#[rustfmt::skip]
const RECORDS: &[(&str, Act)] = &[
    ("AVC", Denied), ("USER_AVC", Denied), ("SELINUX_ERR", Denied), ("APPARMOR_DENIED", Denied),
    ("SECCOMP", Seccomp), ("ANOM_ABEND", Crash), ("ANOM_PROMISCUOUS", Promiscuous),
    ("CONFIG_CHANGE", AuditRules), ("FEATURE_CHANGE", AuditRules), ("NETFILTER_CFG", Firewall),
    ("BPF", Bpf), ("TIME_INJOFFSET", Clock), ("TIME_ADJNTPVAL", Clock), ("LOGIN", LoginId),
    ("USER_LOGIN", Login), ("USER_LOGOUT", Logout), ("USER_AUTH", Authenticate),
    ("USER_ACCT", Authenticate), ("GRP_AUTH", Authenticate), ("USER_START", SessionStart),
    ("USER_END", SessionEnd), ("CRED_ACQ", Credentials), ("CRED_REFR", Credentials),
    ("CRED_DISP", Credentials), ("USER_CMD", Command), ("ADD_USER", AddUser),
    ("DEL_USER", DeleteUser), ("USER_MGMT", ChangeAccount), ("USER_CHAUTHTOK", Password),
    ("ACCT_LOCK", Lock), ("ACCT_UNLOCK", Unlock), ("ADD_GROUP", AddGroup),
    ("DEL_GROUP", DeleteGroup), ("GRP_MGMT", ChangeMembers), ("GRP_CHAUTHTOK", ChangeMembers),
    ("SERVICE_START", ServiceStart), ("SERVICE_STOP", ServiceStop), ("SYSTEM_BOOT", Boot),
    ("SYSTEM_SHUTDOWN", Shutdown), ("SYSTEM_RUNLEVEL", Boot), ("SOFTWARE_UPDATE", Software),
    ("DAEMON_START", AuditStart), ("DAEMON_RESUME", AuditStart), ("DAEMON_END", AuditStop),
    ("DAEMON_ABORT", AuditStop), ("DAEMON_ROTATE", AuditRotate), ("DAEMON_ERR", AuditError),
    ("DAEMON_CONFIG", AuditRules), ("DAEMON_ACCEPT", AuditOther), ("DAEMON_CLOSE", AuditOther),
    ("EVENT_LISTENER", AuditOther), ("TTY", Terminal), ("USER_TTY", Terminal), ("USER", Message),
    ("TRUSTED_APP", Message),
];

/// Acts of calls, and of the io_uring operations with the same names.
#[rustfmt::skip]
const CALLS: &[(&[&str], Act)] = &[
    (&["execve", "execveat"], Execute),
    (&["fork", "vfork", "clone", "clone3"], Fork),
    (&["exit", "exit_group"], Exit),
    (&["kill", "tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "pidfd_send_signal"], Signal),
    (&["ptrace", "process_vm_readv", "process_vm_writev"], Trace),
    (&["setuid", "setreuid", "setresuid", "setfsuid", "setuid32", "setreuid32", "setresuid32",
       "setfsuid32"], ChangeUser),
    (&["setgid", "setregid", "setresgid", "setfsgid", "setgroups", "setgid32", "setregid32",
       "setresgid32", "setfsgid32", "setgroups32"], ChangeGroup),
    (&["capset"], Capabilities),
    (&["open", "openat", "openat2", "open_by_handle_at"], Open),
    (&["creat", "mkdir", "mkdirat", "mknod", "mknodat", "symlink", "symlinkat"], Create),
    (&["unlink", "unlinkat", "rmdir"], Delete),
    (&["rename", "renameat", "renameat2"], Rename),
    (&["link", "linkat"], Link),
    (&["chmod", "fchmod", "fchmodat", "fchmodat2"], Mode),
    (&["chown", "fchown", "lchown", "fchownat", "chown32", "fchown32", "lchown32"], Owner),
    (&["setxattr", "lsetxattr", "fsetxattr", "setxattrat", "removexattr", "lremovexattr",
       "fremovexattr", "removexattrat"], Xattr),
    (&["utime", "utimes", "utimensat", "futimesat"], Times),
    (&["truncate", "ftruncate", "truncate64", "ftruncate64", "fallocate"], Truncate),
    (&["stat", "lstat", "fstat", "newfstatat", "statx", "stat64", "lstat64", "fstat64",
       "fstatat64", "access", "faccessat", "faccessat2", "readlink", "readlinkat", "getxattr",
       "lgetxattr", "fgetxattr", "listxattr", "llistxattr", "flistxattr"], Look),
    (&["mount", "move_mount", "fsmount", "pivot_root"], Mount),
    (&["umount", "umount2", "oldumount"], Unmount),
    (&["connect"], Connect),
    (&["accept", "accept4"], Accept),
    (&["bind", "listen"], Bind),
    (&["sendto", "sendmsg", "sendmmsg"], Send),
    (&["recvfrom", "recvmsg", "recvmmsg", "recvmmsg_time64"], Receive),
    (&["init_module", "finit_module", "create_module"], Load),
    (&["delete_module"], Unload),
    (&["bpf"], Bpf),
    (&["adjtimex", "settimeofday", "clock_settime", "clock_adjtime", "stime", "clock_settime64",
       "clock_adjtime64"], Clock),
];

impl Act {
    /// The act that an event is about.
    pub(crate) fn of(parsed: &Parsed) -> Act {
        let by_record = |record| {
            let kind = kind_of(record);
            let row = RECORDS.iter().find(|(name, _)| *name == kind);
            row.map(|(_, act)| *act).or_else(|| {
                let is_anomaly = kind.starts_with("ANOM_") || kind.starts_with("RESP_");
                is_anomaly.then_some(Message)
            })
        };
        match parsed.records.iter().find_map(by_record) {
            // A link to the call that it is about.
            Some(Bpf | Clock) | None => by_call(parsed),
            Some(ChangeAccount) => members(parsed).unwrap_or(ChangeAccount),
            Some(Denied) if is_status(parsed) => Message,
            Some(act) => act,
        }
    }

    /// The word for it: `event.action` of ECS, and `activity_name` of OCSF where the schema has no number.
    pub(crate) fn name(self) -> &'static str {
        #[rustfmt::skip]
        let name = match self {
            Execute => "executed", Command => "ran-command", Fork => "forked", Exit => "ended",
            Crash => "crashed-program", Signal => "killed-pid", Trace => "traced-process",
            ChangeUser => "changed-identity-of", ChangeGroup => "changed-group-identity-of",
            Capabilities => "changed-capabilities", Open => "opened-file", Create => "created-file",
            Delete => "deleted", Rename => "renamed", Link => "linked",
            Mode => "changed-file-permissions-of", Owner => "changed-file-ownership-of",
            Xattr => "changed-file-attributes-of", Times => "changed-timestamp-of",
            Truncate => "changed-size-of", Look => "checked-metadata-of", Mount => "mounted",
            Unmount => "unmounted", Connect => "connected-to", Accept => "accepted-connection-from",
            Bind => "bound-socket", Send => "sent-to", Receive => "received-from",
            Load => "loaded-kernel-module", Unload => "unloaded-kernel-module",
            Bpf => "used-bpf", Clock => "changed-system-time", Firewall => "changed-firewall",
            Promiscuous => "changed-promiscuous-mode", Call => "called", Seccomp => "violated-seccomp-policy",
            Denied => "violated-mandatory-access-policy", Login => "logged-in", Logout => "logged-out",
            Authenticate => "authenticated", SessionStart => "started-session",
            SessionEnd => "ended-session", Credentials => "changed-credentials",
            LoginId => "changed-login-id-to", AddUser => "added-user-account",
            DeleteUser => "deleted-user-account", ChangeAccount => "modified-user-account",
            Password => "changed-password", Lock => "locked-account", Unlock => "unlocked-account",
            AddGroup => "added-group", DeleteGroup => "deleted-group",
            ChangeMembers => "modified-group", AddMember => "added-user-to-group",
            RemoveMember => "removed-user-from-group", ServiceStart => "started-service",
            ServiceStop => "stopped-service", Boot => "booted-system", Shutdown => "shutdown-system",
            Software => "updated-software", AuditRules => "changed-audit-configuration",
            AuditStart => "started-audit", AuditStop => "shutdown-audit",
            AuditRotate => "rotated-audit-logs", AuditError => "audit-error",
            AuditOther => "audit-event", Terminal => "typed", Message => "logged-message",
            Other => "other",
        };
        name
    }
}

/// The act of the event's call.
fn by_call(parsed: &Parsed) -> Act {
    let Some((name, _)) = call(parsed) else {
        let has = |kind| parsed.record(kind).is_some();
        return match (has("BPF"), has("TIME_INJOFFSET") || has("TIME_ADJNTPVAL")) {
            (true, _) => Bpf,
            (_, true) => Clock,
            _ => Other,
        };
    };
    let row = CALLS
        .iter()
        .find(|(names, _)| names.contains(&name.as_str()));
    match row.map_or(Call, |(_, act)| *act) {
        Open if has_item(parsed, "CREATE") => Create,
        // ioctl, setsockopt and the like in which the kernel made these records.
        Call if parsed.record("BPF").is_some() => Bpf,
        Call if parsed.record("KERN_MODULE").is_some() => Load,
        act => act,
    }
}

/// The name of the call or io_uring operation of an event, and whether it is an operation.
pub(crate) fn call(parsed: &Parsed) -> Option<(String, bool)> {
    for (kind, field, is_uring) in [("SYSCALL", "syscall", false), ("URINGOP", "uring_op", true)] {
        if let Some(value) = parsed.record(kind).and_then(|record| record.get(field)) {
            return Some((text_of(value).to_ascii_lowercase(), is_uring));
        }
    }
    None
}

fn has_item(parsed: &Parsed, nametype: &str) -> bool {
    let is_it = |item: &super::parsed::Object| {
        item.get("nametype").map(text_of).as_deref() == Some(nametype)
    };
    parsed.records("PATH").any(is_it)
}

/// Whether a change of an account is one of a group's members.
fn members(parsed: &Parsed) -> Option<Act> {
    let fields = parsed.record("USER_MGMT")?.get("msg_fields")?;
    let op = text_of(fields.get("op")?);
    let is_group = op.contains("group") && fields.get("grp").is_some();
    match op {
        op if is_group && op.starts_with("add") => Some(AddMember),
        op if is_group && (op.starts_with("delete") || op.starts_with("remove")) => {
            Some(RemoveMember)
        }
        _ => None,
    }
}

/// Whether an AVC record only reports: AppArmor's messages of its start.
fn is_status(parsed: &Parsed) -> bool {
    let word = parsed
        .record("AVC")
        .and_then(|record| record.get("apparmor"));
    word.is_some_and(|word| matches!(text_of(word).as_str(), "STATUS" | "AUDIT" | "ALLOWED"))
}
