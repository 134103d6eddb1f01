//! Tells which act an event is about: by what its records say, else by its call.

use super::act::Act::{self, *};
use super::parsed::{field, known_kind, text_of, Object, Parsed};
use super::verdict::{self, Verdict};
use abi::Verb;

/// Acts of record types whose name says all. The first record of an event that has one decides.
#[rustfmt::skip]
const RECORDS: &[(&str, Act)] = &[
    ("ANOM_ABEND", Crash), ("ANOM_PROMISCUOUS", Promiscuous),
    ("CONFIG_CHANGE", AuditRules), ("FEATURE_CHANGE", AuditRules), ("NETFILTER_CFG", Firewall),
    ("NETFILTER_PKT", Packet), ("LOGIN", LoginId), ("USER_LOGIN", Login), ("USER_LOGOUT", Logout),
    ("USER_AUTH", Authenticate), ("GRP_AUTH", Authenticate),
    ("USER_ERR", LoginError), ("USER_START", SessionStart), ("USER_END", SessionEnd),
    ("CRED_ACQ", Credentials), ("CRED_REFR", Credentials), ("CRED_DISP", Credentials),
    ("USER_CMD", Command), ("CHUSER_ID", ChangeUser), ("CHGRP_ID", ChangeGroup),
    ("SERVICE_START", ServiceStart), ("SERVICE_STOP", ServiceStop), ("SYSTEM_BOOT", Boot),
    ("SYSTEM_SHUTDOWN", Shutdown), ("SYSTEM_RUNLEVEL", Runlevel), ("USYS_CONFIG", Setting),
    ("USER_DEVICE", Device), ("DEV_ALLOC", Device), ("DEV_DEALLOC", Device),
    ("DM_CTRL", Volume), ("DM_EVENT", Device), ("TEST", Test),
    ("USER_LABELED_EXPORT", Export), ("USER_UNLABELED_EXPORT", Export),
    ("DAEMON_START", AuditStart), ("DAEMON_RESUME", AuditStart), ("DAEMON_END", AuditStop),
    ("DAEMON_ABORT", AuditStop), ("DAEMON_ROTATE", AuditRotate), ("DAEMON_ERR", AuditError),
    ("DAEMON_CONFIG", AuditRules), ("DAEMON_ACCEPT", AuditOther), ("DAEMON_CLOSE", AuditOther),
    ("EVENT_LISTENER", AuditOther), ("REPLACE", AuditOther), ("KERNEL", AuditOther),
    ("TTY", Terminal), ("USER_TTY", Terminal), ("USER", Message), ("TRUSTED_APP", Message),
    ("MAC_STATUS", MacStatus), ("USER_MAC_STATUS", MacStatus), ("MAC_POLICY_LOAD", MacPolicy),
    ("USER_MAC_POLICY_LOAD", MacPolicy), ("IPE_POLICY_LOAD", MacPolicy),
    ("MAC_CONFIG_CHANGE", MacSetting), ("USER_MAC_CONFIG_CHANGE", MacSetting),
    ("IPE_CONFIG_CHANGE", MacSetting), ("FS_RELABEL", MacSetting), ("LABEL_OVERRIDE", MacSetting),
    ("LABEL_LEVEL_CHANGE", MacSetting), ("APPARMOR_STATUS", MacNotice), ("APPARMOR_HINT", MacNotice),
    ("APPARMOR_ERROR", PolicyError), ("SELINUX_ERR", PolicyError), ("USER_SELINUX_ERR", PolicyError),
    ("LANDLOCK_DOMAIN", Confine), ("INTEGRITY_RULE", Measure), ("INTEGRITY_STATUS", IntegritySetting),
    ("INTEGRITY_HASH", IntegritySetting), ("INTEGRITY_PCR", Integrity),
    ("INTEGRITY_EVM_XATTR", IntegritySetting), ("INTEGRITY_POLICY_RULE", IntegritySetting),
    ("USER_ROLE_CHANGE", Role), ("ROLE_ASSIGN", Role), ("ROLE_REMOVE", Role),
    ("ROLE_MODIFY", RoleDefinition), ("DAC_CHECK", Check), ("MAC_CHECK", Check),
    ("CRYPTO_LOGIN", Login), ("CRYPTO_LOGOUT", Logout), ("CRYPTO_TEST_USER", Test),
    ("CRYPTO_PARAM_CHANGE_USER", CryptoSetting), ("CRYPTO_KEY_USER", CryptoKey),
    ("CRYPTO_FAILURE_USER", CryptoFailure), ("CRYPTO_REPLAY_USER", CryptoFailure),
    ("VIRT_RESOURCE", VmChange), ("VIRT_MACHINE_ID", VmChange), ("VIRT_INTEGRITY_CHECK", VmChange),
    ("VIRT_CREATE", VmCreate), ("VIRT_DESTROY", VmRemove), ("VIRT_MIGRATE_IN", VmStart),
    ("VIRT_MIGRATE_OUT", VmStop), ("RESP_SEBOOL", MacSetting),
];

/// The act of what a call does.
fn of_verb(verb: Verb) -> Act {
    match verb {
        Verb::Delete => Delete,
        Verb::Rename => Rename,
        Verb::MakeDirectory | Verb::MakeNode | Verb::Symlink | Verb::Create => Create,
        Verb::Link => Link,
        Verb::ReadLink | Verb::Stat | Verb::CheckAccess | Verb::GetXattr | Verb::ListXattr => Look,
        Verb::Open => Open,
        Verb::Truncate | Verb::Allocate => Truncate,
        Verb::Execute => Execute,
        Verb::SetMode => Mode,
        Verb::SetOwner => Owner,
        Verb::SetXattr | Verb::RemoveXattr => Xattr,
        Verb::SetTimes => Times,
        Verb::Mount | Verb::MoveMount | Verb::PivotRoot => Mount,
        Verb::Unmount => Unmount,
        Verb::LoadModule => Load,
        Verb::UnloadModule => Unload,
        Verb::UseBpf => Bpf,
        Verb::SetClock => Clock,
        Verb::Fork => Fork,
        Verb::Exit => Exit,
        Verb::Signal => Signal,
        Verb::Trace | Verb::ReadMemory | Verb::WriteMemory => Trace,
        Verb::SetUser => ChangeUser,
        Verb::SetGroup | Verb::SetGroups => ChangeGroup,
        Verb::SetCapabilities => Capabilities,
        Verb::Bind | Verb::Listen => Bind,
        Verb::Connect => Connect,
        Verb::Accept => Accept,
        Verb::Send => Send,
        Verb::Receive => Receive,
        Verb::ChangeDirectory
        | Verb::ChangeRoot
        | Verb::ListDirectory
        | Verb::MakeMemoryFile
        | Verb::StatFileSystem
        | Verb::SetQuota
        | Verb::PrepareMount
        | Verb::OpenMount
        | Verb::SetMountAttributes
        | Verb::Swap
        | Verb::LoadKernel
        | Verb::SetHostName
        | Verb::UseKeys
        | Verb::TakeDescriptor
        | Verb::SetLimit
        | Verb::MapMemory
        | Verb::Schedule
        | Verb::Confine
        | Verb::MakeSocket => Call,
    }
}

/// The act that an event is about.
pub(crate) fn act(parsed: &Parsed) -> Act {
    let act = parsed.records.iter().find_map(by_record);
    act.unwrap_or_else(|| by_call(parsed))
}

/// The act that a record reports; `None` if it only belongs to a call.
fn by_record(record: &Object) -> Option<Act> {
    let kind = known_kind(record);
    if let Some((_, act)) = RECORDS.iter().find(|(name, _)| *name == kind) {
        return Some(*act);
    }

    let op = field(record, "op").map(text_of).unwrap_or_default();
    match kind {
        "AVC" | "USER_AVC" | "APPARMOR" | "APPARMOR_AUDIT" | "APPARMOR_ALLOWED"
        | "APPARMOR_DENIED" | "APPARMOR_KILL" | "LANDLOCK_ACCESS" | "IPE_ACCESS" => {
            Some(match verdict::of(record) {
                Some(Verdict::Denied) => Denied,
                Some(Verdict::Allowed) => Permitted,
                None if is_profile_change(record) => MacPolicy,
                None => MacNotice,
            })
        }
        // An answer that lets a call go on is no event of its own.
        "FANOTIFY" => (verdict::of(record) == Some(Verdict::Denied)).then_some(Denied),
        "SECCOMP" => Some(match verdict::of(record) {
            Some(Verdict::Denied) => Seccomp,
            Some(Verdict::Allowed) => SeccompLogged,
            None => SeccompAsked,
        }),
        "INTEGRITY_DATA" | "INTEGRITY_METADATA" | "INTEGRITY_USERSPACE" => {
            Some(match verdict::of(record) {
                Some(Verdict::Allowed) => Verified,
                _ => Integrity,
            })
        }
        "USER_ACCT" => Some(of_user_acct(&op, record)),
        "ADD_USER" | "DEL_USER" | "USER_MGMT" | "USER_CHAUTHTOK" | "ACCT_LOCK" | "ACCT_UNLOCK"
        | "ADD_GROUP" | "DEL_GROUP" | "GRP_MGMT" | "GRP_CHAUTHTOK" => {
            Some(of_account(kind, &op, record))
        }
        "SOFTWARE_UPDATE" => Some(match op.as_str() {
            "install" => Install,
            "remove" | "erase" => Remove,
            "update" | "upgrade" => Update,
            _ => Software,
        }),
        "VIRT_CONTROL" => Some(match op.as_str() {
            "start" | "init" => VmStart,
            "create" => VmCreate,
            "stop" | "destroy" | "shutdown" | "kill" => VmStop,
            _ => VmChange,
        }),
        "CRYPTO_SESSION" | "CRYPTO_IKE_SA" | "CRYPTO_IPSEC_SA" => Some(match op.as_str() {
            "stop" | "destroy" | "terminate" => CryptoSessionEnd,
            _ => CryptoSession,
        }),
        _ => by_family(kind),
    }
}

/// PAM's check of an account, or what shadow and pam_faillock write under the same type, in sentences: `user bob added by
/// root to group wheel`, `faillock reset`.
fn of_user_acct(op: &str, record: &Object) -> Act {
    let words = field(record, "words").map(text_of).unwrap_or_default();
    let sentence = if op.is_empty() { &words } else { op };
    let has = |word: &str| sentence.contains(word);
    if has("display") || sentence.starts_with("list") {
        LookAtAccount
    } else if has("group") {
        of_account("GRP_MGMT", sentence, record)
    } else if has("faillock") || has("passw") {
        of_account("USER_MGMT", sentence, record)
    } else {
        Authorize
    }
}

/// Whether AppArmor reports that a profile was loaded, replaced or removed.
fn is_profile_change(record: &Object) -> bool {
    let operation = record.get("operation").map(text_of);
    operation.is_some_and(|operation| operation.starts_with("profile_"))
}

/// Acts of types whose names begin alike.
fn by_family(kind: &str) -> Option<Act> {
    #[rustfmt::skip]
    let families = [
        ("ANOM_ADD_ACCT", AccountAnomaly), ("ANOM_DEL_ACCT", AccountAnomaly),
        ("ANOM_MOD_ACCT", AccountAnomaly), ("ANOM_LOGIN_", LoginAnomaly), ("ANOM_ROOT_TRANS", LoginAnomaly), ("ANOM_", Anomaly),
        ("RESP_ACCT_", AccountResponse), ("RESP_", Response), ("MAC_UNLBL_", NetworkLabel),
        ("MAC_CIPSOV4_", NetworkLabel), ("MAC_MAP_", NetworkLabel), ("MAC_IPSEC_", NetworkLabel),
        ("MAC_CALIPSO_", NetworkLabel),
    ];
    let row = families.iter().find(|(start, _)| kind.starts_with(start));
    row.map(|(_, act)| *act)
}

/// What `op=` says was done to an account or group; where it does not say, the type of the record does. The words are
/// those of shadow, passwd, pam and libuser, with blanks or hyphens between them.
fn of_account(kind: &str, op: &str, record: &Object) -> Act {
    let op = op.to_ascii_lowercase().replace(['-', '_'], " ");
    let has = |word: &str| op.contains(word);
    let adds = op.starts_with("add") || has(" add");
    let removes = op.starts_with("delet") || op.starts_with("remov") || has(" removed");
    let is_of_group = kind.contains("GRP") || kind.contains("GROUP");

    let is_member = [
        "user to",
        "user from",
        "member",
        "to shadow group",
        "from shadow group",
        "to group",
        "from group",
    ]
    .iter()
    .any(|words| has(words));

    // What stands beside an account, and the terms of its password, which stays.
    let is_beside = [
        "home dir",
        "mail",
        "lastlog",
        " file",
        "expir",
        "warning",
        "attribute",
        "aging",
        " age",
        "inactive",
    ]
    .iter()
    .any(|words| has(words));

    match kind {
        _ if is_member && adds => AddMember,
        _ if is_member && removes => RemoveMember,
        _ if has("display") || op.starts_with("list") => LookAtAccount,
        _ if is_beside && is_of_group => ChangeGroupAccount,
        _ if is_beside => ChangeAccount,
        _ if has("unlock") || op == "faillock reset" => Unlock,
        "ACCT_UNLOCK" => Unlock,
        _ if has("lock") => Lock,
        "ACCT_LOCK" => Lock,
        _ if is_of_group && has("passw") => ChangeGroupAccount,
        "ADD_GROUP" => AddGroup,
        "DEL_GROUP" => DeleteGroup,
        _ if is_of_group => ChangeGroupAccount,
        "ADD_USER" => AddUser,
        "DEL_USER" => DeleteUser,
        _ if adds && has("user") => AddUser,
        _ if removes && (has("user") || has("account")) => DeleteUser,
        _ if has("passw") || has("chauthtok") => Password,
        _ if has("group") && field(record, "grp").is_some() && !has("primary") => {
            ChangeGroupAccount
        }
        "USER_CHAUTHTOK" if op.is_empty() => Password,
        _ => ChangeAccount,
    }
}

/// The act of the event's call.
pub(crate) fn by_call(parsed: &Parsed) -> Act {
    let has = |kind| parsed.record(kind).is_some();
    let Some((name, _)) = call(parsed) else {
        return match () {
            () if has("BPF") => Bpf,
            () if has("TIME_INJOFFSET") || has("TIME_ADJNTPVAL") => Clock,
            () if has("KERN_MODULE") => Load,
            () if has("CAPSET") || has("BPRM_FCAPS") => Capabilities,
            () => Other,
        };
    };

    match abi::call(&name).verb.map_or(Call, of_verb) {
        Open if has_item(parsed, "CREATE") => Create,
        // ioctl, setsockopt and the like in which the kernel made these records.
        Call if has("BPF") => Bpf,
        Call if has("KERN_MODULE") => Load,
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
    let is_it = |item: &Object| item.get("nametype").map(text_of).as_deref() == Some(nametype);
    parsed.records("PATH").any(is_it)
}
