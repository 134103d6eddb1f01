//! Words for what records and calls say was done.

use super::thing::Thing;
use abi::record_type as kinds;
use abi::Verb;

/// Actions by record type.
#[rustfmt::skip]
static RECORDS: &[(&str, &str)] = &[
    ("ACCT_LOCK", "locked-account"),
    ("ACCT_UNLOCK", "unlocked-account"),
    ("ADD_GROUP", "added-group-account-to"),
    ("ADD_USER", "added-user-account"),
    ("ANOM_ABEND", "crashed-program"),
    ("ANOM_CREAT", "created-suspicious-file"),
    ("ANOM_EXEC", "attempted-execution-of-forbidden-program"),
    ("ANOM_LINK", "used-suspcious-link"),
    ("ANOM_LOGIN_FAILURES", "failed-log-in-too-many-times-to"),
    ("ANOM_LOGIN_LOCATION", "attempted-log-in-from-unusual-place-to"),
    ("ANOM_LOGIN_SESSIONS", "opened-too-many-sessions-to"),
    ("ANOM_LOGIN_TIME", "attempted-log-in-during-unusual-hour-to"),
    ("ANOM_PROMISCUOUS", "changed-socket-promiscuous-mode"),
    ("ANOM_RBAC_INTEGRITY_FAIL", "tested-file-system-integrity-of"),
    ("AVC", "accessed-mac-policy-controlled-object"),
    ("CHGRP_ID", "changed-group"),
    ("CHUSER_ID", "changed-user-id"),
    ("CONFIG_CHANGE", "changed-audit-configuration"),
    ("CRED_ACQ", "acquired-credentials"),
    ("CRED_DISP", "disposed-credentials"),
    ("CRED_REFR", "refreshed-credentials"),
    ("CRYPTO_KEY_USER", "negotiated-crypto-key"),
    ("CRYPTO_LOGIN", "crypto-officer-logged-in"),
    ("CRYPTO_LOGOUT", "crypto-officer-logged-out"),
    ("CRYPTO_SESSION", "started-crypto-session"),
    ("DAC_CHECK", "access-result"),
    ("DAEMON_ABORT", "aborted-auditd-startup"),
    ("DAEMON_ACCEPT", "remote-audit-connected"),
    ("DAEMON_CLOSE", "remote-audit-disconnected"),
    ("DAEMON_CONFIG", "changed-auditd-configuration"),
    ("DAEMON_END", "shutdown-audit"),
    ("DAEMON_ERR", "audit-error"),
    ("DAEMON_RECONFIG", "reconfigured-auditd"),
    ("DAEMON_RESUME", "resumed-audit-logging"),
    ("DAEMON_ROTATE", "rotated-audit-logs"),
    ("DAEMON_START", "started-audit"),
    ("DEL_GROUP", "deleted-group-account-from"),
    ("DEL_USER", "deleted-user-account"),
    ("FANOTIFY", "accessed-policy-controlled-file"),
    ("FEATURE_CHANGE", "changed-audit-feature"),
    ("FS_RELABEL", "relabeled-filesystem"),
    ("GRP_AUTH", "authenticated-to-group"),
    ("GRP_CHAUTHTOK", "changed-group-password"),
    ("GRP_MGMT", "modified-group-account"),
    ("KERNEL", "initialized-audit-subsystem"),
    ("KERN_MODULE", "loaded-kernel-module"),
    ("LABEL_LEVEL_CHANGE", "modified-level-of"),
    ("LABEL_OVERRIDE", "overrode-label-of"),
    ("LOGIN", "changed-login-id-to"),
    ("MAC_CHECK", "mac-permission"),
    ("MAC_CONFIG_CHANGE", "changed-selinux-boolean"),
    ("MAC_MAP_ADD", "added-mac-network-domain-mapping-to"),
    ("MAC_MAP_DEL", "deleted-mac-network-domain-mapping-from"),
    ("MAC_POLICY_LOAD", "loaded-selinux-policy"),
    ("MAC_STATUS", "changed-selinux-enforcement-to"),
    ("ROLE_ASSIGN", "assigned-user-role-to"),
    ("ROLE_MODIFY", "modified-role"),
    ("ROLE_REMOVE", "removed-use-role-from"),
    ("SECCOMP", "called-seccomp-controlled-syscall"),
    ("SERVICE_START", "started-service"),
    ("SERVICE_STOP", "stopped-service"),
    ("SOFTWARE_UPDATE", "installed-software"),
    ("SYSTEM_BOOT", "booted-system"),
    ("SYSTEM_RUNLEVEL", "changed-to-runlevel"),
    ("SYSTEM_SHUTDOWN", "shutdown-system"),
    ("TEST", "sent-test"),
    ("TRUSTED_APP", "unknown"),
    ("TTY", "typed"),
    ("URINGOP", "io_uring-operation"),
    ("USER", "sent-message"),
    ("USER_ACCT", "was-authorized"),
    ("USER_AUTH", "authenticated"),
    ("USER_AVC", "accessed-mac-policy-controlled-object"),
    ("USER_CHAUTHTOK", "changed-password"),
    ("USER_CMD", "ran-command"),
    ("USER_DEVICE", "configured-device"),
    ("USER_END", "ended-session"),
    ("USER_ERR", "caused-account-error"),
    ("USER_LOGIN", "logged-in"),
    ("USER_LOGOUT", "logged-out"),
    ("USER_MAC_CONFIG_CHANGE", "changed-mac-configuration"),
    ("USER_MAC_POLICY_LOAD", "loaded-mac-policy"),
    ("USER_MAC_STATUS", "changed-selinux-enforcement-to"),
    ("USER_MGMT", "modified-user-account"),
    ("USER_ROLE_CHANGE", "changed-role-to"),
    ("USER_SELINUX_ERR", "access-error"),
    ("USER_START", "started-session"),
    ("USER_TTY", "typed"),
    ("USYS_CONFIG", "changed-configuration"),
    ("VIRT_CONTROL", "issued-vm-control"),
    ("VIRT_CREATE", "created-vm-image"),
    ("VIRT_DESTROY", "deleted-vm-image"),
    ("VIRT_INTEGRITY_CHECK", "checked-integrity-of"),
    ("VIRT_MACHINE_ID", "assigned-vm-id"),
    ("VIRT_MIGRATE_IN", "migrated-vm-from"),
    ("VIRT_MIGRATE_OUT", "migrated-vm-to"),
    ("VIRT_RESOURCE", "assigned-vm-resource"),
];

/// The action of an event with this type of record.
pub(super) fn of_record(kind: i32) -> Option<&'static str> {
    let name = abi::record_type_name(u32::try_from(kind).ok()?)?;
    let place = RECORDS.binary_search_by_key(&name, |row| row.0).ok()?;
    Some(RECORDS[place].1)
}

/// Action of a call on its object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Deed {
    Attributes,
    Bpf,
    Delete,
    Execute,
    Firewall,
    Identity,
    Kill,
    Link,
    Listener,
    LoadModule,
    MakeDevice,
    MakeDirectory,
    Memory,
    Mount,
    Open,
    Owner,
    Permissions,
    /// Change of a security policy, by the type of its record.
    Policy(i32),
    PolicyError,
    Promiscuous,
    Rename,
    Scheduler,
    Security,
    /// Call on a socket, by its action.
    Socket(&'static str),
    Stat,
    StatFs,
    SystemName,
    SystemTime,
    Time,
    UnloadModule,
    Unmount,
}

impl Deed {
    /// Action and object, if they are always the same. A PATH record may say more of the object.
    pub(super) fn words(self) -> Option<(&'static str, Thing)> {
        Some(match self {
            Deed::Open => ("opened-file", Thing::File),
            Deed::Attributes => ("changed-file-attributes-of", Thing::File),
            Deed::Permissions => ("changed-file-permissions-of", Thing::File),
            Deed::Owner => ("changed-file-ownership-of", Thing::File),
            Deed::LoadModule => ("loaded-kernel-module", Thing::File),
            Deed::UnloadModule => ("unloaded-kernel-module", Thing::File),
            Deed::MakeDirectory => ("created-directory", Thing::File),
            Deed::Mount => ("mounted", Thing::FileSystem),
            Deed::Rename => ("renamed", Thing::File),
            Deed::Stat => ("checked-metadata-of", Thing::File),
            Deed::StatFs => ("checked-filesystem-metadata-of", Thing::FileSystem),
            Deed::Link => ("symlinked", Thing::File),
            Deed::Unmount => ("unmounted", Thing::FileSystem),
            Deed::Delete => ("deleted", Thing::File),
            Deed::Time => ("changed-timestamp-of", Thing::File),
            Deed::Execute => ("executed", Thing::File),
            Deed::Socket(action) => (action, Thing::Socket),
            Deed::PolicyError => ("caused-mac-policy-error", Thing::System),
            Deed::Firewall => ("loaded-firewall-rule-to", Thing::Firewall),
            Deed::Identity => ("changed-identity-of", Thing::Process),
            Deed::SystemTime => ("changed-system-time", Thing::System),
            Deed::SystemName => ("changed-system-name", Thing::System),
            Deed::Scheduler => ("adjusted-scheduling-policy-of", Thing::Process),
            Deed::Security => ("adjusted-security-policy-of", Thing::Process),
            Deed::Bpf => ("bpf-program", Thing::Process),
            Deed::Listener => ("connected", Thing::Socket),
            Deed::Kill | Deed::MakeDevice | Deed::Memory | Deed::Policy(_) | Deed::Promiscuous => {
                return None
            }
        })
    }
}

/// Action of the call with this name.
pub(super) fn of_call(call: &[u8]) -> Option<Deed> {
    let call = std::str::from_utf8(call).ok()?.to_ascii_lowercase();
    let row = abi::call(&call);
    if row.is_wordless {
        return None;
    }
    of_verb(row.verb?)
}

/// Action of what a call does, if auparse has a word for it.
fn of_verb(verb: Verb) -> Option<Deed> {
    Some(match verb {
        Verb::Delete => Deed::Delete,
        Verb::Rename => Deed::Rename,
        Verb::MakeDirectory => Deed::MakeDirectory,
        Verb::MakeNode => Deed::MakeDevice,
        Verb::Symlink => Deed::Link,
        Verb::Open
        | Verb::Create
        | Verb::ReadLink
        | Verb::Truncate
        | Verb::Allocate
        | Verb::MakeMemoryFile
        | Verb::TakeDescriptor => Deed::Open,
        Verb::Execute => Deed::Execute,
        Verb::SetMode => Deed::Permissions,
        Verb::SetOwner => Deed::Owner,
        Verb::SetXattr | Verb::RemoveXattr | Verb::SetMountAttributes => Deed::Attributes,
        Verb::SetTimes => Deed::Time,
        Verb::Stat | Verb::CheckAccess => Deed::Stat,
        Verb::StatFileSystem => Deed::StatFs,
        Verb::Mount | Verb::MoveMount | Verb::PrepareMount => Deed::Mount,
        Verb::Unmount => Deed::Unmount,
        Verb::LoadModule => Deed::LoadModule,
        Verb::UnloadModule => Deed::UnloadModule,
        Verb::SetClock => Deed::SystemTime,
        Verb::SetHostName => Deed::SystemName,
        Verb::Signal => Deed::Kill,
        Verb::SetUser | Verb::SetGroup => Deed::Identity,
        Verb::MapMemory => Deed::Memory,
        Verb::Schedule => Deed::Scheduler,
        Verb::Confine => Deed::Security,
        Verb::Bind => Deed::Socket("bound-socket"),
        Verb::Connect => Deed::Socket("connected-to"),
        Verb::Accept => Deed::Socket("accepted-connection-from"),
        Verb::Send => Deed::Socket("sent-to"),
        Verb::Receive => Deed::Socket("received-from"),
        Verb::Link
        | Verb::ChangeDirectory
        | Verb::ChangeRoot
        | Verb::PivotRoot
        | Verb::ListDirectory
        | Verb::GetXattr
        | Verb::ListXattr
        | Verb::SetQuota
        | Verb::OpenMount
        | Verb::Swap
        | Verb::LoadKernel
        | Verb::UseBpf
        | Verb::UseKeys
        | Verb::Fork
        | Verb::Exit
        | Verb::Trace
        | Verb::ReadMemory
        | Verb::WriteMemory
        | Verb::SetGroups
        | Verb::SetCapabilities
        | Verb::SetLimit
        | Verb::MakeSocket
        | Verb::Listen => return None,
    })
}

/// The group of a type of record.
pub(super) fn group(kind: i32) -> &'static str {
    match kind {
        kinds::USER_AUTH..=kinds::USER_ACCT
        | kinds::CRED_ACQ..=kinds::USER_END
        | kinds::USER_CHAUTHTOK..=kinds::CRED_REFR
        | kinds::USER_LOGIN..=kinds::USER_LOGOUT
        | kinds::LOGIN => "user-login",
        kinds::GRP_AUTH | kinds::CHGRP_ID => "group-change",
        kinds::USER_MGMT
        | kinds::ADD_USER..=kinds::DEL_GROUP
        | kinds::GRP_MGMT..=kinds::GRP_CHAUTHTOK
        | kinds::ACCT_LOCK..=kinds::ACCT_UNLOCK => "user-account",
        kinds::KERNEL | kinds::SYSTEM_BOOT..=kinds::SERVICE_STOP => "system-services",
        kinds::USYS_CONFIG
        | kinds::CONFIG_CHANGE
        | kinds::NETFILTER_CFG
        | kinds::FEATURE_CHANGE
        | kinds::TIME_INJOFFSET
        | kinds::TIME_ADJNTPVAL
        | kinds::USER_DEVICE
        | kinds::SOFTWARE_UPDATE => "configuration",
        kinds::SECCOMP => "dac-decision",
        kinds::TEST..=kinds::TRUSTED_APP | kinds::USER_CMD | kinds::CHUSER_ID => "user-space",
        kinds::USER_TTY | kinds::TTY => "TTY",
        kinds::EVENT_LISTENER | kinds::FIRST_DAEMON..=kinds::LAST_DAEMON => "audit-daemon",
        kinds::USER_SELINUX_ERR
        | kinds::USER_AVC
        | kinds::APPARMOR_ALLOWED..=kinds::APPARMOR_DENIED
        | kinds::APPARMOR_ERROR
        | kinds::AVC..=kinds::AVC_PATH => "mac-decision",
        kinds::FIRST_INTEGRITY_MSG..=kinds::LAST_INTEGRITY_MSG
        | kinds::ANOM_RBAC_INTEGRITY_FAIL => "integrity",
        kinds::FIRST_KERN_ANOM_MSG..=kinds::LAST_KERN_ANOM_MSG
        | kinds::ANOM_LOGIN_FAILURES..=kinds::ANOM_RBAC_FAIL
        | kinds::ANOM_CRYPTO_FAIL..=kinds::LAST_ANOM_MSG => "anomaly",
        kinds::FIRST_ANOM_RESP..=kinds::LAST_ANOM_RESP => "anomaly-response",
        kinds::MAC_POLICY_LOAD..=kinds::LAST_SELINUX
        | kinds::APPARMOR..=kinds::APPARMOR_AUDIT
        | kinds::APPARMOR_HINT..=kinds::APPARMOR_STATUS
        | kinds::FIRST_USER_LSPP_MSG..=kinds::LAST_USER_LSPP_MSG => "mac",
        kinds::FIRST_KERN_CRYPTO_MSG..=kinds::LAST_KERN_CRYPTO_MSG
        | kinds::FIRST_CRYPTO_MSG..=kinds::LAST_CRYPTO_MSG => "crypto",
        kinds::FIRST_VIRT_MSG..=kinds::LAST_VIRT_MSG => "virt",
        kinds::SYSCALL..=kinds::SOCKETCALL
        | kinds::SOCKADDR..=kinds::MQ_GETSETATTR
        | kinds::FD_PAIR..=kinds::OBJ_PID
        | kinds::BPRM_FCAPS..=kinds::NETFILTER_PKT
        | kinds::URINGOP => "audit-rule",
        kinds::FANOTIFY => "av-decision",
        kinds::BPF => "bpf-program",
        _ => "unknown",
    }
}
