//! The words of Auditbeat's module auditd and of Elastic's integration auditd_manager, where they differ from those of
//! [`super::super::act`]: rules that were written for them compare these words.
//!
//! Source: what go-libaudit v2 calls record types and system calls (aucoalesce), and the fields that Auditbeat fills.

use super::super::act::Act;
use super::super::facts::Facts;
use super::super::parsed::Object;
use super::super::row::put;
use super::super::value::Value;

/// `event.dataset` and `data_stream.dataset`.
pub(super) const DATASET: &str = "auditd_manager.auditd";

/// Action, categories and types of an event.
pub(super) struct Words {
    pub(super) action: String,
    pub(super) categories: Vec<&'static str>,
    pub(super) types: Vec<&'static str>,
    is_alert: bool,
}

/// Names, action, categories, types; `-` for no category.
type Row = (&'static str, &'static str, &'static str, &'static str);

/// By record type. A type that is not here has the words of this project.
#[rustfmt::skip]
const RECORDS: &[Row] = &[
    ("ACCT_LOCK", "locked-account", "iam", "user info"),
    ("ACCT_UNLOCK", "unlocked-account", "iam", "user info"),
    ("ADD_GROUP", "added-group-account-to", "iam", "group creation"),
    ("ADD_USER", "added-user-account", "iam", "user creation"),
    ("DEL_GROUP", "deleted-group-account-from", "iam", "group deletion"),
    ("DEL_USER", "deleted-user-account", "iam", "user deletion"),
    ("GRP_MGMT", "modified-group-account", "iam", "group change"),
    ("ROLE_ASSIGN", "assigned-user-role-to", "iam", "user change"),
    ("ROLE_MODIFY", "modified-role", "iam", "change"),
    ("ROLE_REMOVE", "removed-user-role-from", "iam", "user change"),
    ("USER_MGMT", "modified-user-account", "iam", "user change"),
    ("USER_CHAUTHTOK", "changed-password", "iam", "user change"),
    ("GRP_CHAUTHTOK", "changed-group-password", "iam", "group change"),
    ("CRED_ACQ", "acquired-credentials", "authentication", "info"),
    ("CRED_DISP", "disposed-credentials", "authentication", "info"),
    ("CRED_REFR", "refreshed-credentials", "authentication", "info"),
    ("GRP_AUTH", "authenticated-to-group", "authentication", "info"),
    ("LOGIN", "changed-login-id-to", "authentication", "start"),
    ("USER_ACCT", "was-authorized", "authentication", "info"),
    ("USER_AUTH", "authenticated", "authentication", "info"),
    ("USER_END", "ended-session", "session", "end"),
    ("USER_ERR", "error", "authentication", "info"),
    ("USER_LOGIN", "logged-in", "authentication", "start"),
    ("USER_LOGOUT", "logged-out", "authentication", "end"),
    ("USER_ROLE_CHANGE", "changed-role-to", "-", ""),
    ("USER_START", "started-session", "session", "start"),
    ("VIRT_CONTROL", "issued-vm-control", "host", "info"),
    ("VIRT_CREATE", "created-vm-image", "host", "info"),
    ("VIRT_DESTROY", "deleted-vm-image", "host", "info"),
    ("VIRT_INTEGRITY_CHECK", "checked-integrity-of", "host", "info"),
    ("VIRT_MACHINE_ID", "assigned-vm-id", "host", "info"),
    ("VIRT_MIGRATE_IN", "migrated-vm-from", "host", "info"),
    ("VIRT_MIGRATE_OUT", "migrated-vm-to", "host", "info"),
    ("VIRT_RESOURCE", "assigned-vm-resource", "host", "info"),
    ("CHGRP_ID", "changed-group", "process", "change"),
    ("CHUSER_ID", "changed-user-id", "process", "change"),
    ("TEST", "sent-test", "process", "info"),
    ("USER_CMD", "ran-command", "process", "start"),
    ("SYSTEM_BOOT", "booted-system", "host", "start"),
    ("SYSTEM_RUNLEVEL", "changed-to-runlevel", "host", "change"),
    ("SYSTEM_SHUTDOWN", "shutdown-system", "host", "end"),
    ("SERVICE_START", "started-service", "process", "start"),
    ("SERVICE_STOP", "stopped-service", "process", "end"),
    ("CONFIG_CHANGE", "changed-audit-configuration", "process configuration", "change"),
    ("DAEMON_ABORT", "aborted-auditd-startup", "process", "end"),
    ("DAEMON_ACCEPT", "remote-audit-connected", "network", "connection start"),
    ("DAEMON_CLOSE", "remote-audit-disconnected", "network", "connection start"),
    ("DAEMON_CONFIG", "changed-auditd-configuration", "process configuration", "change"),
    ("DAEMON_END", "shutdown-audit", "process", "end"),
    ("DAEMON_ERR", "audit-error", "process", "info"),
    ("DAEMON_RESUME", "resumed-audit-logging", "process", "change"),
    ("DAEMON_ROTATE", "rotated-audit-logs", "process", "change"),
    ("DAEMON_START", "started-audit", "process", "start"),
    ("KERNEL", "initialized-audit-subsystem", "process", "info"),
    ("USYS_CONFIG", "changed-configuration", "configuration", "change"),
    ("NETFILTER_CFG", "loaded-firewall-rule-to", "configuration", "change"),
    ("FEATURE_CHANGE", "changed-audit-feature", "configuration", "change"),
    ("TTY", "typed", "-", ""),
    ("USER_TTY", "typed", "-", ""),
    ("FS_RELABEL", "relabeled-filesystem", "-", ""),
    ("LABEL_LEVEL_CHANGE", "modified-level-of", "-", ""),
    ("LABEL_OVERRIDE", "overrode-label-of", "-", ""),
    ("MAC_CHECK", "mac-permission", "-", ""),
    ("MAC_CONFIG_CHANGE", "changed-selinux-boolean", "configuration", "change"),
    ("MAC_POLICY_LOAD", "loaded-selinux-policy", "configuration", "access"),
    ("MAC_STATUS", "changed-selinux-enforcement", "configuration", "change"),
    ("USER_AVC", "access-permission", "-", ""),
    ("USER_MAC_CONFIG_CHANGE", "changed-mac-configuration", "configuration", "change"),
    ("USER_MAC_POLICY_LOAD", "loaded-mac-policy", "configuration", "access"),
    ("USER_SELINUX_ERR", "access-error", "-", ""),
    ("SECCOMP", "violated-seccomp-policy", "-", ""),
    ("SELINUX_ERR", "caused-mac-policy-error", "-", ""),
    ("CRYPTO_KEY_USER", "negotiated-crypto-key", "process", "info"),
    ("CRYPTO_LOGIN", "crypto-officer-logged-in", "-", ""),
    ("CRYPTO_LOGOUT", "crypto-officer-logged-out", "process", "info"),
    ("CRYPTO_SESSION", "started-crypto-session", "process", "info"),
    ("DAC_CHECK", "access-result", "-", ""),
    ("ANOM_ABEND", "crashed-program", "process intrusion_detection", "end info"),
    ("ANOM_EXEC", "attempted-execution-of-forbidden-program", "process intrusion_detection", "start info"),
    ("ANOM_LINK", "used-suspicious-link", "file intrusion_detection", "access info"),
    ("ANOM_LOGIN_FAILURES", "failed-log-in-too-many-times-to", "authentication intrusion_detection", "start denied"),
    ("ANOM_LOGIN_LOCATION", "attempted-log-in-from-unusual-place-to", "authentication intrusion_detection", "start denied"),
    ("ANOM_LOGIN_SESSIONS", "opened-too-many-sessions-to", "authentication intrusion_detection", "start denied"),
    ("ANOM_LOGIN_TIME", "attempted-log-in-during-unusual-hour-to", "authentication intrusion_detection", "start denied"),
    ("ANOM_PROMISCUOUS", "changed-promiscuous-mode-on-device", "intrusion_detection", "info change"),
    ("ANOM_RBAC_INTEGRITY_FAIL", "tested-file-system-integrity-of", "intrusion_detection", "info"),
    ("ANOM_MAX_DAC", "max-discretionary-access-control-failures-reached", "intrusion_detection", "info"),
    ("ANOM_MAX_MAC", "max-mandatory-access-control-failures-reached", "intrusion_detection", "info"),
    ("ANOM_AMTU_FAIL", "abstract-machine-test-utility-failure", "intrusion_detection", "info"),
    ("ANOM_RBAC_FAIL", "rbac-self-test-failure", "intrusion_detection", "info"),
    ("ANOM_CRYPTO_FAIL", "crypto-system-test-failure", "intrusion_detection", "info"),
    ("ANOM_ACCESS_FS", "accessed-watched-file-or-directory", "file intrusion_detection", "access info"),
    ("ANOM_ADD_ACCT", "added-user-account", "iam intrusion_detection", "user creation info"),
    ("ANOM_DEL_ACCT", "deleted-user-account", "iam intrusion_detection", "user deletion info"),
    ("ANOM_MOD_ACCT", "modified-user-account", "iam intrusion_detection", "user change info"),
    ("ANOM_ROOT_TRANS", "user-became-root", "authentication intrusion_detection", "start info"),
    ("ANOM_LOGIN_SERVICE", "service-account-attempted-login", "authentication intrusion_detection", "start denied"),
    ("USER", "sent-message", "-", ""),
    ("SOFTWARE_UPDATE", "package-updated", "package", "info"),
    ("KERN_MODULE", "loaded-kernel-module", "driver", "start"),
    ("TIME_ADJNTPVAL", "changed-system-time", "host", "change"),
    ("TIME_INJOFFSET", "changed-system-time", "host", "change"),
];

/// By system call, the later ones with those that they succeed. For others [`super::super::act`] has words.
#[rustfmt::skip]
const CALLS: &[Row] = &[
    ("creat", "opened-file", "file", "creation"),
    ("fallocate truncate ftruncate", "opened-file", "file", "change"),
    ("open openat openat2 open_by_handle_at readlink readlinkat", "opened-file", "file", "info"),
    ("read", "read-file", "file", "info"),
    ("write", "wrote-to-file", "file", "change"),
    ("setxattr fsetxattr lsetxattr setxattrat removexattr fremovexattr lremovexattr removexattrat",
     "changed-file-attributes-of", "file", "change"),
    ("chmod fchmod fchmodat fchmodat2", "changed-file-permissions-of", "file", "change"),
    ("chown fchown fchownat lchown chown32 fchown32 lchown32", "changed-file-ownership-of", "file", "change"),
    ("finit_module init_module", "loaded-kernel-module", "driver", "start"),
    ("delete_module", "unloaded-kernel-module", "driver", "end"),
    ("mkdir mkdirat", "created-directory", "file", "creation"),
    ("mount", "mounted", "file", "creation"),
    ("rename renameat renameat2", "renamed", "file", "change"),
    ("access faccessat faccessat2 fstatat newfstatat statx stat stat64 fstat lstat getxattr lgetxattr fgetxattr",
     "checked-metadata-of", "file", "info"),
    ("statfs fstatfs", "checked-filesystem-metadata-of", "file", "info"),
    ("link linkat", "linked", "file", "creation"),
    ("symlink symlinkat", "symlinked", "file", "creation"),
    ("umount umount2", "unmounted", "file", "deletion"),
    ("rmdir unlink unlinkat", "deleted", "file", "deletion"),
    ("utime utimes futimesat futimens utimensat", "changed-timestamp-of", "file", "info"),
    ("execve execveat", "executed", "process", "start"),
    ("listen", "listen-for-connections", "network", "start"),
    ("accept accept4", "accepted-connection-from", "network", "connection start"),
    ("bind", "bound-socket", "network", "start"),
    ("connect", "connected-to", "network", "connection start"),
    ("recv recvfrom recvmsg recvmmsg", "received-from", "network", "connection info"),
    ("send sendto sendmsg sendmmsg", "sent-to", "network", "connection info"),
    ("kill tkill tgkill", "killed-pid", "process", "end"),
    ("setuid seteuid setfsuid setreuid setgid setegid setfsgid setregid setresuid setresgid \
      setuid32 setfsuid32 setreuid32 setgid32 setfsgid32 setregid32 setresuid32 setresgid32",
     "changed-identity-of", "process", "change"),
    ("settimeofday clock_settime stime adjtimex clock_adjtime clock_settime64 clock_adjtime64", "changed-system-time", "host", "change"),
    ("mknod mknodat", "make-device", "file", "creation"),
    ("sethostname setdomainname", "changed-system-name", "host", "change"),
    ("mmap mmap2 brk", "allocated-memory", "process", "info"),
    ("sched_setparam sched_setscheduler sched_setattr", "adjusted-scheduling-policy-of", "process", "change"),
    ("exit_group", "end", "process", "end"),
];

/// The words for an event. A record of its own type beside a call has the categories and types of both.
pub(super) fn words(facts: &Facts<'_>) -> Words {
    let call = facts.text("call.name");
    let is_call = matches!(facts.kind(), "SYSCALL" | "URINGOP");
    let of_call = call.as_ref().and_then(|call| {
        let mut rows = CALLS.iter();
        let row = rows.find(|row| row.0.split(' ').any(|name| name == call));
        // Beside a record, Auditbeat takes any other call for a matter of its process.
        row.copied()
            .or((!is_call).then_some(("*", "", "process", "info")))
    });

    let of_record = match (
        facts.kind(),
        facts.find("AVC.apparmor"),
        facts.find("AVC.tcontext"),
    ) {
        ("SYSCALL" | "URINGOP", _, _) => None,
        ("AVC", Some(_), _) => Some(("AVC", "violated-apparmor-policy", "-", "")),
        ("AVC", None, Some(_)) => Some(("AVC", "violated-selinux-policy", "-", "")),
        (kind, _, _) => RECORDS.iter().find(|row| row.0 == kind).copied(),
    };

    let mut words = Words {
        action: String::new(),
        categories: Vec::new(),
        types: Vec::new(),
        is_alert: facts.kind().starts_with("ANOM_"),
    };

    // Without a word of Auditbeat for the record or call, ours.
    if of_record.is_none() && (!is_call || of_call.is_none()) {
        words.action = facts.action();
        add_ours(&mut words, facts.act);
    }

    for row in [of_record, of_call].into_iter().flatten() {
        if words.action.is_empty() {
            words.action = row.1.into();
        }
        add(&mut words.categories, row.2);
        add(&mut words.types, row.3);
    }
    // Most files are made by open(2), which Auditbeat only calls opened: rules on new files would miss them.
    if facts.act == Act::Create {
        add(&mut words.types, "creation");
    }

    if words.action.is_empty() {
        words.action = facts.action();
    }
    // Auditbeat says nothing more of refusals, terminals, labels: no rule compares that.
    if words.categories.is_empty() {
        add_ours(&mut words, facts.act);
    }

    words
}

fn add_ours(words: &mut Words, act: Act) {
    add(&mut words.categories, act.row().category);
    words.types = act.row().types.to_vec();
}

fn add(list: &mut Vec<&'static str>, words: &'static str) {
    for word in words.split(' ') {
        if !word.is_empty() && word != "-" && !list.contains(&word) {
            list.push(word);
        }
    }
}

/// Fills in what Auditbeat has in places of its own.
pub(super) fn finish(facts: &Facts<'_>, words: &Words, out: &mut Object) {
    for (place, value) in [
        ("data_stream.type", "logs"),
        ("data_stream.dataset", DATASET),
        ("data_stream.namespace", "default"),
    ] {
        put(out, place, value.into());
    }

    put(out, "service.type", "auditd".into());
    if words.is_alert {
        if let Some(Value::Object(event)) = out.get_mut("event") {
            event.insert("kind".into(), "alert".into());
        }
    }

    socket(facts, out);

    // An error by its name.
    if let Some(errno) = facts.find("event.errno") {
        if let Some(Value::Object(data)) = out
            .get_mut("auditd")
            .and_then(|auditd| auditd.get_mut("data"))
        {
            data.insert("exit".into(), errno.clone());
        }
    }

    if facts.act.is_login() {
        login(out);
    }
}

/// Puts the fields of SOCKADDR into an object, the family by its name in Auditbeat or by its number.
fn socket(facts: &Facts<'_>, out: &mut Object) {
    let family = facts
        .text("SOCKADDR.saddr_fam")
        .map(|family| match family.as_str() {
            "inet" => "ipv4".to_owned(),
            "inet6" => "ipv6".to_owned(),
            "local" => "unix".to_owned(),
            "netlink" => family,
            _ => family_number(facts).map_or(family, |number| number.to_string()),
        });

    if let Some(Value::Object(data)) = out
        .get_mut("auditd")
        .and_then(|auditd| auditd.get_mut("data"))
    {
        let mut socket = Object::new();
        data.retain(|name, value| {
            let field = name.strip_prefix("socket_");
            if let Some(field) = field {
                socket.insert(field.to_owned().into(), value.take());
            }
            field.is_none()
        });
        if let Some(family) = family {
            socket.insert("family".into(), family.into());
        }
        if !socket.is_empty() {
            data.insert("socket".into(), socket.into());
        }
    }
}

/// For a login, Auditbeat's user is the login id, and the account the effective one.
fn login(out: &mut Object) {
    let user = out.remove("user").unwrap_or_default();
    let ids = |of: &Value| -> Object {
        let known = ["id", "name"].into_iter();
        known
            .filter_map(|name| Some((name, of.get(name)?.clone())))
            .collect()
    };
    let mut of_auditbeat = Object::new();
    let effective = ids(&user);
    if !effective.is_empty() {
        of_auditbeat.insert("effective".into(), effective.into());
    }

    if let Some(audit) = user.get("audit") {
        for (name, value) in ids(audit) {
            of_auditbeat.insert(name, value);
        }
        of_auditbeat.insert("audit".into(), audit.clone());
    }
    if !of_auditbeat.is_empty() {
        out.insert("user".into(), of_auditbeat.into());
    }
}

/// Number of the family of a SOCKADDR: its first two bytes, in the host's order (little endian on what is supported).
fn family_number(facts: &Facts<'_>) -> Option<u16> {
    let saddr = facts.text("SOCKADDR.saddr")?;
    let byte = |at: usize| u8::from_str_radix(saddr.get(at..at + 2)?, 16).ok();
    Some(u16::from_le_bytes([byte(0)?, byte(2)?]))
}
