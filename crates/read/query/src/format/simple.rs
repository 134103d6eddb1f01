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
    match kind as u32 {
        kinds::CONFIG_CHANGE
        | kinds::FEATURE_CHANGE
        | kinds::SECCOMP
        | kinds::ANOM_ABEND
        | kinds::ANOM_PROMISCUOUS => of_kernel(finder, kind),
        kinds::LOGIN => login(finder, kind),
        kinds::NETFILTER_CFG => firewall(finder),
        kinds::AVC => access(finder, kind),
        1200..=1298 => of_daemon(finder, kind),
        kinds::BPF => {
            finder.normal.subject.account = Some("system");
            let action = objects::bpf_action(finder);
            finder.act(action);
            finder.normal.object.thing = Thing::Process;
            objects::program(finder);
        }
        kinds::EVENT_LISTENER => listener(finder),
        1406..=1499 => labelled_network(finder, kind),
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
    if kind == kinds::CONFIG_CHANGE as i32 {
        configuration(finder, kind);
    } else {
        finder.act_by_kind(kind);
        finder.cursor.rewind();
    }

    match kind as u32 {
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
    match kind as u32 {
        kinds::DAEMON_START => finder.normal.how = Some(b"init".to_vec()),
        kinds::DAEMON_ABORT => {}
        1201 | 1203..=1206 => finder.normal.how = Some(b"signal".to_vec()),
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
        1406 => match finder.cursor.find(b"unlbl_accept") {
            Some(_) if finder.cursor.number() == Some(1) => {
                finder.act("is-allowing-unlabeled-network-traffic");
            }
            Some(_) => finder.act("is-disallowing-unlabeled-network-traffic"),
            None => finder.cursor.rewind(),
        },
        _ => finder.act_by_kind(kind),
    }

    if matches!(kind, 1409 | 1410) && !finder.object(b"nlbl_domain", 0) {
        finder.cursor.rewind();
    }

    finder.normal.object.thing = Thing::Policy;
    finder.result(0);
}

/// Messages of user space: the user stands before the login id.
fn of_user_space(finder: &mut Finder<'_, '_>, kind: i32) {
    if kind == kinds::USER_LOGIN as i32 {
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
    if matches!(kind, 1100..=1198 | 2100..=2998) && finder.has_fields {
        finder.subject_field(b"hostname", 0);
        finder.subject_field(b"addr", 0);
        if !matches!(kind, 1105 | 1106 | 1109) {
            finder.subject_field(b"terminal", 0);
        }
    }

    match kind as u32 {
        kinds::USER_AVC => user_access(finder),
        _ => finder.result(0),
    }

    let operation = match kind {
        // USER_DEVICE
        1137 => finder.cursor.find_anywhere(b"op"),
        _ => None,
    };
    match operation {
        Some(operation) => finder.normal.action = Some(operation.to_vec()),
        None => finder.act_by_kind(kind),
    }

    if kind != kinds::USER_AVC as i32 {
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
        1127 | 1128 => {
            finder.normal.object.thing = match kind {
                1127 => Thing::System,
                _ => Thing::Service,
            };
            how_is(finder, b"exe");
            return;
        }
        _ => finder.cursor.rewind(),
    }

    match kind {
        // ANOM_EXEC
        2112 => {
            how_is(finder, b"terminal");
        }
        1319 => {
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
        1130 | 1131 => (b"unit", Thing::Service),
        1129 => (b"new-level", Thing::System),
        2300 => (b"selected-context", Thing::UserSession),
        2301 | 2302 | 1102 | 1135 | 1136 | 1114..=1117 | 1132 => return account_object(finder),
        1105 | 1106 | 1109 | 1112 | 1113 => (b"terminal", Thing::UserSession),
        1100 | 1101 | 1103 | 1104 | 1108 | 1110 | 1133 | 2100..=2102 | 2104 => {
            (b"acct", Thing::UserSession)
        }
        2112 | 1123 => (b"cmd", Thing::Process),
        1124 | 1319 => (b"data", Thing::Keystrokes),
        1137 => (b"device", Thing::Keystrokes),
        1138 => (b"sw", Thing::Software),
        2502 => (b"vm", Thing::VirtualMachine),
        2501 => (b"resrc", Thing::VirtualMachine),
        2500 => (b"op", Thing::VirtualMachine),
        2304 => (b"printer", Thing::Printer),
        1305 => return configuration_object(finder),
        1405 => (b"bool", Thing::Policy),
        1404 => (b"enforcing", Thing::Policy),
        1403 | 2303 | 2307..=2312 => {
            finder.normal.object.thing = Thing::Policy;
            return None;
        }
        1005 => (b"addr", finder.normal.object.thing),
        1111 => {
            if finder.cursor.find(b"op").is_some() {
                finder.normal.action = Some(finder.meaning());
            }
            finder.normal.object.thing = Thing::System;
            return None;
        }
        2404 => (b"fp", Thing::UserSession),
        2407 => (b"addr", Thing::UserSession),
        2109 => (b"hostname", Thing::FileSystem),
        _ => return None,
    };

    finder.normal.object.thing = thing;
    if matches!(kind, 1124 | 1319 | 1137 | 1138) {
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
        2407 => finder.find_in(b"rport", 0),
        1138 => finder.find_in(b"sw_type", 0),
        _ => None,
    }
}

fn simple_second(finder: &mut Finder<'_, '_>, kind: i32) -> Option<FieldPlace> {
    finder.cursor.first_field();
    match kind {
        2500 | 2501 => finder.find_in(b"vm", 0),
        1138 => finder.find_in(b"root_dir", 0),
        _ => None,
    }
}
