//! Events of one record: who did what, by the type of the record.

use super::cursor::FieldPlace;
use super::normal::Finder;
use super::thing::Thing;
use super::{objects, verbs};
use abi::record_type as kinds;

/// Finds the parts of an event of one record.
pub(super) fn find(finder: &mut Finder<'_, '_>) {
    let kind = finder.cursor.kind();
    finder.normal.kind = Some(verbs::group(kind));
    match kind {
        kinds::CONFIG_CHANGE
        | kinds::FEATURE_CHANGE
        | kinds::SECCOMP
        | kinds::ANOM_ABEND
        | kinds::ANOM_PROMISCUOUS => of_kernel(finder, kind),
        kinds::LOGIN => login(finder, kind),
        kinds::NETFILTER_CFG => firewall(finder),
        kinds::AVC => access(finder, kind),
        kinds::FIRST_DAEMON..kinds::LAST_DAEMON => of_daemon(finder, kind),
        kinds::BPF => {
            finder.normal.subject.account = Some("system");
            let action = objects::bpf_action(finder);
            finder.act(action);
            finder.normal.object.thing = Thing::Process;
            objects::program(finder);
        }
        kinds::EVENT_LISTENER => listener(finder),
        kinds::MAC_UNLBL_ALLOW..=kinds::LAST_SELINUX => labelled_network(finder, kind),
        _ => of_user_space(finder, kind),
    }
}

fn how_is(finder: &mut Finder<'_, '_>, name: &[u8]) -> bool {
    let found = finder.cursor.find(name).is_some();
    if found {
        finder.normal.how = Some(finder.meaning());
    }
    found
}

/// Process and label of the subject.
fn subject_fields(finder: &mut Finder<'_, '_>) {
    if finder.has_fields {
        finder.cursor.rewind();
        finder.subject_field(b"pid", 0);
        finder.subject_field(b"subj", 0);
    }
}

fn acting_or_rewind(finder: &mut Finder<'_, '_>) {
    if !finder.acting(b"uid", 0) {
        finder.cursor.rewind();
    }
}

/// Records of the kernel that begin with the login id.
fn of_kernel(finder: &mut Finder<'_, '_>, kind: i32) {
    finder.subject(b"auid", 0);
    finder.session(0);
    subject_fields(finder);
    if kind == kinds::CONFIG_CHANGE {
        configuration(finder, kind);
    } else {
        finder.act_by_kind(kind);
        finder.cursor.rewind();
    }

    match kind {
        kinds::FEATURE_CHANGE => {
            finder.cursor.first_field();
            acting_or_rewind(finder);
            how_is(finder, b"exe");
            finder.object(b"feature", 0);
            finder.normal.object.thing = Thing::System;
        }
        kinds::SECCOMP => return seccomp(finder),
        kinds::ANOM_ABEND => {
            finder.cursor.first_field();
            acting_or_rewind(finder);
            if !finder.object(b"exe", 0) {
                finder.cursor.rewind();
            }
            finder.normal.object.thing = Thing::Process;
            how_is(finder, b"sig");
        }
        kinds::ANOM_PROMISCUOUS => {
            finder.cursor.first_field();
            finder.object(b"dev", 0);
            finder.acting(b"uid", 0);
            finder.normal.object.thing = Thing::Socket;
        }
        _ => {}
    }

    finder.result(0);
}

fn configuration(finder: &mut Finder<'_, '_>, kind: i32) {
    finder.cursor.first_field();
    let operation = match finder.cursor.find(b"op") {
        Some(_) => finder.meaning(),
        None => Vec::new(),
    };
    let operation = operation.strip_prefix(b"\"").unwrap_or(&operation);
    let action = match operation {
        _ if operation.starts_with(b"add_rule") => Some("added-audit-rule"),
        _ if operation.starts_with(b"remove_rule") => Some("deleted-audit-rule"),
        _ => None,
    };

    match action {
        Some(action) => {
            finder.act(action);
            finder.normal.object.place = simple_object(finder, kind);
        }
        None => {
            finder.act_by_kind(kind);
            finder.normal.object.place = simple_object(finder, kind);
            finder.cursor.rewind();
        }
    }
}

fn seccomp(finder: &mut Finder<'_, '_>) {
    finder.cursor.first_field();
    acting_or_rewind(finder);
    how_is(finder, b"exe");
    if !finder.object(b"syscall", 0) {
        finder.cursor.rewind();
    }
    finder.normal.object.thing = Thing::Process;
    if let Some(place) = finder.find_in(b"code", 0) {
        finder.normal.result = Some(place);
    }
}

fn login(finder: &mut Finder<'_, '_>, kind: i32) {
    acting_or_rewind(finder);
    subject_fields(finder);
    if !finder.subject(b"old-auid", 0) {
        finder.cursor.rewind();
    }

    if !finder.object(b"auid", 0) {
        finder.cursor.rewind();
    }

    finder.normal.object.thing = Thing::UserSession;
    finder.session(0);
    finder.result(0);
    finder.act_by_kind(kind);
}

fn firewall(finder: &mut Finder<'_, '_>) {
    subject_fields(finder);
    how_is(finder, b"comm");
    finder.act("loaded-firewall-rule-to");
    finder.cursor.rewind();
    if let Some(place) = finder.find_place(b"table") {
        finder.normal.object.place = Some(place);
    }
    finder.normal.subject.account = Some("system");
    finder.normal.object.thing = Thing::Firewall;
}

/// A decision of SELinux without its call.
fn access(finder: &mut Finder<'_, '_>, kind: i32) {
    if !how_is(finder, b"comm") {
        finder.cursor.rewind();
    }

    finder.subject(b"scontext", 0);
    finder.normal.subject.account = Some("unknown-acct");
    finder.cursor.rewind();

    // Sentences leave the object out.
    if finder.has_fields {
        finder.object(b"tcontext", 0);
        finder.cursor.rewind();
    }
    finder.act_by_kind(kind);
    finder.cursor.rewind();

    if let Some(place) = finder.find_in(b"seresult", 0) {
        finder.normal.result = Some(place);
    }
}

fn of_daemon(finder: &mut Finder<'_, '_>, kind: i32) {
    finder.subject(b"auid", 0);
    acting_or_rewind(finder);
    if !finder.session(0) {
        finder.cursor.rewind();
    }

    subject_fields(finder);
    finder.normal.subject.account = Some("auditd");
    finder.act_by_kind(kind);
    finder.normal.object.thing = Thing::Service;
    match kind {
        kinds::DAEMON_START => finder.normal.how = Some(b"init".to_vec()),
        kinds::DAEMON_ABORT => {}
        kinds::DAEMON_END | kinds::DAEMON_CONFIG..=kinds::DAEMON_RESUME => {
            finder.normal.how = Some(b"signal".to_vec())
        }
        _ => {}
    }

    finder.result(0);
}

fn listener(finder: &mut Finder<'_, '_>) {
    finder.subject(b"auid", 0);
    finder.cursor.rewind();
    finder.acting(b"uid", 0);
    finder.cursor.rewind();
    finder.session(0);
    subject_fields(finder);
    let action = objects::listener_action(finder);
    finder.act(action);

    objects::program(finder);
    finder.normal.object.thing = Thing::Socket;
    finder.cursor.rewind();
    how_is(finder, b"exe");
    finder.cursor.rewind();
    finder.result(0);
}

fn labelled_network(finder: &mut Finder<'_, '_>, kind: i32) {
    finder.subject(b"auid", 0);
    // There is no user, so that it is the login id.
    finder.account();
    finder.session(0);
    finder.subject_field(b"subj", 0);

    match kind {
        kinds::MAC_UNLBL_ALLOW => match finder.cursor.find(b"unlbl_accept") {
            Some(_) if finder.cursor.number() == Some(1) => {
                finder.act("is-allowing-unlabeled-network-traffic");
            }
            Some(_) => finder.act("is-disallowing-unlabeled-network-traffic"),
            None => finder.cursor.rewind(),
        },
        _ => finder.act_by_kind(kind),
    }

    if matches!(kind, kinds::MAC_MAP_ADD | kinds::MAC_MAP_DEL) && !finder.object(b"nlbl_domain", 0)
    {
        finder.cursor.rewind();
    }

    finder.normal.object.thing = Thing::Policy;
    finder.result(0);
}

/// Messages of user space: the user stands before the login id.
fn of_user_space(finder: &mut Finder<'_, '_>, kind: i32) {
    if kind == kinds::USER_LOGIN {
        // Who fails to log in has no login id.
        if finder.subject(b"id", 0) {
            finder.account();
        } else {
            finder.cursor.rewind();
            if finder.subject(b"acct", 0) {
                finder.account();
            }
        }
        finder.cursor.rewind();
    } else {
        acting_or_rewind(finder);
        finder.subject(b"auid", 0);
    }

    finder.session(0);
    subject_fields(finder);
    if matches!(kind, kinds::FIRST_USER_MSG..kinds::LAST_USER_MSG | kinds::FIRST_USER_MSG2..kinds::LAST_USER_MSG2)
        && finder.has_fields
    {
        finder.subject_field(b"hostname", 0);
        finder.subject_field(b"addr", 0);
        if !matches!(kind, kinds::USER_START | kinds::USER_END | kinds::USER_ERR) {
            finder.subject_field(b"terminal", 0);
        }
    }

    match kind {
        kinds::USER_AVC => user_access(finder),
        _ => finder.result(0),
    }

    let operation = match kind {
        // USER_DEVICE
        kinds::USER_DEVICE => finder.cursor.find_anywhere(b"op"),
        _ => None,
    };
    match operation {
        Some(operation) => finder.normal.action = Some(operation.to_vec()),
        None => finder.act_by_kind(kind),
    }

    if kind != kinds::USER_AVC {
        finder.cursor.rewind();
        finder.normal.object.place = simple_object(finder, kind);
        finder.normal.object.detail = simple_detail(finder, kind);
        finder.normal.object.second = simple_second(finder, kind);
    }

    how_of_user_space(finder, kind);
}

fn user_access(finder: &mut Finder<'_, '_>) {
    finder.cursor.rewind();
    if let Some(place) = finder.find_in(b"seresult", 0) {
        finder.normal.result = Some(place);
    }
    finder.cursor.rewind();
    finder.subject(b"scontext", 0);
    if finder.has_fields {
        finder.cursor.rewind();
        finder.object(b"tcontext", 0);
    }
}

fn how_of_user_space(finder: &mut Finder<'_, '_>, kind: i32) {
    match kind {
        // SYSTEM_BOOT and SYSTEM_SHUTDOWN
        kinds::SYSTEM_BOOT | kinds::SYSTEM_SHUTDOWN => {
            finder.normal.object.thing = match kind {
                kinds::SYSTEM_BOOT => Thing::System,
                _ => Thing::Service,
            };
            how_is(finder, b"exe");
            return;
        }
        _ => finder.cursor.rewind(),
    }

    match kind {
        // ANOM_EXEC
        kinds::ANOM_EXEC => {
            how_is(finder, b"terminal");
        }
        kinds::TTY => {
            how_is(finder, b"comm");
        }
        _ => {
            finder.how();
        }
    }
}

/// The object of a record, by its type.
pub(super) fn simple_object(finder: &mut Finder<'_, '_>, kind: i32) -> Option<FieldPlace> {
    finder.cursor.first_field();
    let (name, thing): (&[u8], Thing) = match kind {
        kinds::SERVICE_START | kinds::SERVICE_STOP => (b"unit", Thing::Service),
        kinds::SYSTEM_RUNLEVEL => (b"new-level", Thing::System),
        kinds::USER_ROLE_CHANGE => (b"selected-context", Thing::UserSession),
        kinds::ROLE_ASSIGN
        | kinds::ROLE_REMOVE
        | kinds::USER_MGMT
        | kinds::ACCT_LOCK
        | kinds::ACCT_UNLOCK
        | kinds::ADD_USER..=kinds::DEL_GROUP
        | kinds::GRP_MGMT => return account_object(finder),
        kinds::USER_START
        | kinds::USER_END
        | kinds::USER_ERR
        | kinds::USER_LOGIN
        | kinds::USER_LOGOUT => (b"terminal", Thing::UserSession),
        kinds::USER_AUTH
        | kinds::USER_ACCT
        | kinds::CRED_ACQ
        | kinds::CRED_DISP
        | kinds::USER_CHAUTHTOK
        | kinds::CRED_REFR
        | kinds::GRP_CHAUTHTOK
        | kinds::ANOM_LOGIN_FAILURES..=kinds::ANOM_LOGIN_SESSIONS
        | kinds::ANOM_LOGIN_LOCATION => (b"acct", Thing::UserSession),
        kinds::ANOM_EXEC | kinds::USER_CMD => (b"cmd", Thing::Process),
        kinds::USER_TTY | kinds::TTY => (b"data", Thing::Keystrokes),
        kinds::USER_DEVICE => (b"device", Thing::Keystrokes),
        kinds::SOFTWARE_UPDATE => (b"sw", Thing::Software),
        kinds::VIRT_MACHINE_ID => (b"vm", Thing::VirtualMachine),
        kinds::VIRT_RESOURCE => (b"resrc", Thing::VirtualMachine),
        kinds::VIRT_CONTROL => (b"op", Thing::VirtualMachine),
        kinds::LABEL_LEVEL_CHANGE => (b"printer", Thing::Printer),
        kinds::CONFIG_CHANGE => return configuration_object(finder),
        kinds::MAC_CONFIG_CHANGE => (b"bool", Thing::Policy),
        kinds::MAC_STATUS => (b"enforcing", Thing::Policy),
        kinds::MAC_POLICY_LOAD
        | kinds::LABEL_OVERRIDE
        | kinds::DEV_ALLOC..=kinds::USER_MAC_CONFIG_CHANGE => {
            finder.normal.object.thing = Thing::Policy;
            return None;
        }
        kinds::USER => (b"addr", finder.normal.object.thing),
        kinds::USYS_CONFIG => {
            if finder.cursor.find(b"op").is_some() {
                finder.normal.action = Some(finder.meaning());
            }
            finder.normal.object.thing = Thing::System;
            return None;
        }
        kinds::CRYPTO_KEY_USER => (b"fp", Thing::UserSession),
        kinds::CRYPTO_SESSION => (b"addr", Thing::UserSession),
        kinds::ANOM_RBAC_INTEGRITY_FAIL => (b"hostname", Thing::FileSystem),
        _ => return None,
    };

    finder.normal.object.thing = thing;
    if matches!(
        kind,
        kinds::USER_TTY | kinds::TTY | kinds::USER_DEVICE | kinds::SOFTWARE_UPDATE
    ) {
        finder.cursor.rewind();
    }

    finder.find_in(name, 0)
}

fn account_object(finder: &mut Finder<'_, '_>) -> Option<FieldPlace> {
    finder.normal.object.thing = Thing::Account;
    match finder.find_in(b"id", 0) {
        Some(place) => Some(place),
        None => {
            finder.cursor.rewind();
            finder.find_in(b"acct", 0)
        }
    }
}

/// Object that a CONFIG_CHANGE changes: a rule, or a setting.
fn configuration_object(finder: &mut Finder<'_, '_>) -> Option<FieldPlace> {
    const SETTINGS: [&[u8]; 6] = [
        b"audit_enabled",
        b"audit_pid",
        b"audit_backlog_limit",
        b"audit_failure",
        b"actions",
        b"list",
    ];

    finder.normal.object.thing = Thing::AuditConfig;
    if finder
        .cursor
        .find_anywhere(b"key")
        .is_some_and(|key| key != b"(null)")
    {
        return Some(finder.found_in(0));
    }

    for name in SETTINGS {
        if finder.cursor.find_anywhere(name).is_some() {
            return Some(finder.found_in(0));
        }
    }

    None
}

fn simple_detail(finder: &mut Finder<'_, '_>, kind: i32) -> Option<FieldPlace> {
    finder.cursor.first_field();
    match kind {
        kinds::CRYPTO_SESSION => finder.find_in(b"rport", 0),
        kinds::SOFTWARE_UPDATE => finder.find_in(b"sw_type", 0),
        _ => None,
    }
}

fn simple_second(finder: &mut Finder<'_, '_>, kind: i32) -> Option<FieldPlace> {
    finder.cursor.first_field();
    match kind {
        kinds::VIRT_CONTROL | kinds::VIRT_RESOURCE => finder.find_in(b"vm", 0),
        kinds::SOFTWARE_UPDATE => finder.find_in(b"root_dir", 0),
        _ => None,
    }
}
