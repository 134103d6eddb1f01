//! What an event says for the overview.

use super::{Values, ACCOUNTS, AUDIT, DENIALS, ELEVATIONS, LOGINS};
use crate::event::{EventView, Record};
use crate::facts::{Facts, Wanted, NO_ID, NO_LOGIN};
use crate::fields::{Field, Fields};
use crate::walk::Text;
use crate::Dialect;
use abi::record_type as kinds;

/// Programs that let a user act as another one.
const ELEVATING: [&[u8]; 8] = [
    b"su", b"sudo", b"sudo-rs", b"su-rs", b"pkexec", b"doas", b"runuser", b"run0",
];

/// Types of changes of accounts, groups and roles: USER_MGMT, USER_CHAUTHTOK, ADD_USER, DEL_USER, ADD_GROUP, DEL_GROUP,
/// CHGRP_ID, CHUSER_ID, GRP_MGMT, GRP_CHAUTHTOK, ACCT_LOCK, ACCT_UNLOCK, USER_ROLE_CHANGE, ROLE_ASSIGN, ROLE_REMOVE,
/// ROLE_MODIFY.
const ACCOUNT_KINDS: [i32; 16] = [
    kinds::USER_MGMT,
    kinds::USER_CHAUTHTOK,
    kinds::ADD_USER,
    kinds::DEL_USER,
    kinds::ADD_GROUP,
    kinds::DEL_GROUP,
    kinds::CHGRP_ID,
    kinds::CHUSER_ID,
    kinds::GRP_MGMT,
    kinds::GRP_CHAUTHTOK,
    kinds::ACCT_LOCK,
    kinds::ACCT_UNLOCK,
    kinds::USER_ROLE_CHANGE,
    kinds::ROLE_ASSIGN,
    kinds::ROLE_REMOVE,
    kinds::ROLE_MODIFY,
];

/// Types of changes of auditing and of the security module: DAEMON_START, DAEMON_END, DAEMON_ABORT, DAEMON_CONFIG,
/// DAEMON_RECONFIG, DAEMON_ERR, CONFIG_CHANGE, FEATURE_CHANGE, USYS_CONFIG, MAC_POLICY_LOAD, MAC_STATUS,
/// MAC_CONFIG_CHANGE.
const AUDIT_KINDS: [i32; 12] = [
    kinds::DAEMON_START,
    kinds::DAEMON_END,
    kinds::DAEMON_ABORT,
    kinds::DAEMON_CONFIG,
    kinds::DAEMON_RECONFIG,
    kinds::DAEMON_ERR,
    kinds::CONFIG_CHANGE,
    kinds::FEATURE_CHANGE,
    kinds::USYS_CONFIG,
    kinds::MAC_POLICY_LOAD,
    kinds::MAC_STATUS,
    kinds::MAC_CONFIG_CHANGE,
];

/// Fields of a change that its other columns have, or that say who made it.
const NOT_OF_CHANGE: [&[u8]; 12] = [
    b"auid",
    b"uid",
    b"pid",
    b"ses",
    b"subj",
    b"res",
    b"exe",
    b"comm",
    b"hostname",
    b"addr",
    b"terminal",
    b"tty",
];

/// Bytes of a description.
const TEXT_BYTES: usize = 240;

const WANTED: Wanted = Wanted {
    pid: false,
    ppid: false,
    auid: true,
    uid: false,
    euid: false,
    gid: false,
    egid: false,
    session: false,
    arch: false,
    success: true,
    exit: false,
    terminal: false,
    comm: true,
    exe: true,
    keys: false,
    files: false,
    host: true,
    subject: true,
    object: true,
    vm: false,
    uuid: false,
    all: false,
};

/// Facts that the table of programs needs, which every event is asked for.
pub(super) const EXE: Wanted = Wanted {
    auid: false,
    comm: false,
    host: false,
    subject: false,
    object: false,
    ..WANTED
};

type Put<'p> = &'p mut dyn FnMut(usize, Values, bool);

/// Gives the rows of an event to `put`, but for its program: section, values, and whether it failed. `lost`: the events
/// that it says were lost.
pub(super) fn read(event: EventView<'_>, lost: &mut u64, put: Put<'_>) {
    let mut kinds = event.records().map(|record| record.kind);
    if kinds.all(|kind| sections_of(kind) == Sections::None) {
        return;
    }

    let facts = Facts::read_view(event, &WANTED, Dialect::Own).unwrap_or_default();
    let host = boxed(event.node());
    let user = user(event, &facts);
    for record in event.records() {
        let section = SectionRecord {
            record,
            facts: &facts,
            host: &host,
            user: &user,
        };
        match sections_of(record.kind) {
            Sections::None | Sections::Denials => {}
            Sections::Logins => section.login(put),
            Sections::Command => section.elevation(put),
            Sections::Accounts => section.account(put),
            Sections::Audit => section.change(lost, put),
        }
    }

    denials(&facts, &host, put);
}

/// Sections to which records of a type belong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sections {
    None,
    /// Logins, or elevations if such a program wrote it.
    Logins,
    Command,
    Accounts,
    Audit,
    Denials,
}

fn sections_of(kind: i32) -> Sections {
    match kind {
        kinds::USER_AUTH | kinds::USER_LOGIN => Sections::Logins,
        kinds::USER_CMD => Sections::Command,
        kinds::AVC | kinds::USER_AVC | kinds::APPARMOR..=kinds::APPARMOR_KILL => Sections::Denials,
        _ if ACCOUNT_KINDS.contains(&kind) => Sections::Accounts,
        _ if AUDIT_KINDS.contains(&kind) => Sections::Audit,
        _ => Sections::None,
    }
}

/// A record that belongs to a section, with what is known of its event.
struct SectionRecord<'e, 'f> {
    record: Record<'e>,
    facts: &'f Facts<'e>,
    host: &'f Option<Box<[u8]>>,
    user: &'f Option<Box<[u8]>>,
}

impl SectionRecord<'_, '_> {
    fn field(&self, name: &[u8]) -> Option<Box<[u8]>> {
        let mut fields = Fields::of(self.record.text);
        let field = fields.find(|field| field.name == name)?;
        boxed(value(&field).as_deref())
    }

    fn kind(&self) -> Option<Box<[u8]>> {
        boxed(Some(self.record.type_name()))
    }

    /// The account that a record is about: by its name, or else by the name or number of its id.
    fn account_name(&self) -> Option<Box<[u8]>> {
        let name = |field: &[u8]| {
            let names = self.record.names?;
            let name = crate::facts::nth_name(names, field, 0)?;
            let is_known = name != b"unset" && !name.starts_with(b"unknown(");
            is_known.then(|| name.into_boxed_slice())
        };

        let acct = || self.field(b"acct").filter(|acct| **acct != *b"(unknown)");
        let group = || self.field(b"grp");
        acct().or_else(group).or_else(|| name(b"id")).or_else(|| {
            self.field(b"id")
                .map(|id| [&b"id "[..], &id].concat().into())
        })
    }

    fn program(&self) -> Option<Box<[u8]>> {
        self.field(b"exe")
            .or_else(|| boxed(self.facts.exe.as_deref()))
    }

    fn result(&self) -> Option<Box<[u8]>> {
        boxed(result(self.facts))
    }

    fn is_failure(&self) -> bool {
        self.facts.call.success == 0
    }

    fn login(&self, put: Put<'_>) {
        let program = self.program();
        let is_elevation = program.as_deref().is_some_and(is_elevating);
        if is_elevation {
            return self.elevation(put);
        }

        let address = boxed(self.facts.address.as_deref());
        let values = vec![
            self.host.clone(),
            address.or_else(|| boxed(self.facts.host.as_deref())),
            self.account_name(),
            program,
            self.kind(),
            self.result(),
        ];

        put(LOGINS, values, self.is_failure());
    }

    fn elevation(&self, put: Put<'_>) {
        // sudo runs a command as another account, whose name the record does not have.
        let account = if self.record.kind == kinds::USER_CMD {
            None
        } else {
            self.account_name()
        };

        let values = vec![
            self.host.clone(),
            self.user.clone(),
            self.program(),
            account,
            self.field(b"cmd"),
            self.result(),
        ];

        put(ELEVATIONS, values, self.is_failure());
    }

    fn account(&self, put: Put<'_>) {
        let values = vec![
            self.host.clone(),
            self.user.clone(),
            self.kind(),
            self.account_name(),
            self.operation(),
            self.result(),
        ];
        put(ACCOUNTS, values, self.is_failure());
    }

    /// `op=` with all of its words: shadow-utils writes `op=add user to group acct=…`.
    fn operation(&self) -> Option<Box<[u8]>> {
        let text = self.record.text;
        let from = memchr::memmem::find(text, b"op=")? + b"op=".len();
        let rest = text[from..].split(|byte| *byte == b'\'').next()?;
        let rest = rest.strip_prefix(b"\"").unwrap_or(rest);

        let end = match memchr::memchr2(b'=', b'"', rest) {
            // The word before `=` is the name of the next field.
            Some(at) if rest[at] == b'=' => memchr::memrchr(b' ', &rest[..at]).unwrap_or(at),
            Some(at) => at,
            None => rest.len(),
        };
        let words = rest[..end].trim_ascii();
        boxed((!words.is_empty() && words != b"?").then_some(words))
    }

    fn change(&self, lost: &mut u64, put: Put<'_>) {
        if self.record.kind == kinds::DAEMON_ERR
            && self.field(b"op").as_deref() == Some(b"events-lost")
        {
            let number = self.field(b"lost");
            let number = number.and_then(|text| std::str::from_utf8(&text).ok()?.parse().ok());
            *lost = lost.saturating_add(number.unwrap_or(0));
            return;
        }

        let values = vec![
            self.host.clone(),
            self.user.clone(),
            self.kind(),
            boxed(Some(&self.description())),
            self.result(),
        ];
        put(AUDIT, values, self.is_failure());
    }

    /// What was changed: the fields that say it.
    fn description(&self) -> Vec<u8> {
        let mut text = Vec::new();
        let is_of_change = |field: &Field<'_>| !NOT_OF_CHANGE.contains(&field.name);
        for field in Fields::of(self.record.text).filter(is_of_change) {
            let Some(value) = value(&field) else {
                continue;
            };
            if !text.is_empty() {
                text.push(b' ');
            }
            text.extend_from_slice(field.name);
            text.push(b'=');
            text.extend_from_slice(&value);
        }

        text.truncate(TEXT_BYTES);
        text
    }
}

/// Fields whose values may be encoded in hex. `id=10` of another field is a number.
const ENCODED: [&[u8]; 10] = [
    b"acct", b"cmd", b"comm", b"dir", b"exe", b"file", b"grp", b"key", b"name", b"path",
];

/// The text of a field; `None` if the record says that there is none.
fn value<'e>(field: &Field<'e>) -> Option<Text<'e>> {
    if ENCODED.contains(&field.name) {
        field.text()
    } else {
        field.word().map(Text::Borrowed)
    }
}

/// Denials of security modules.
fn denials(facts: &Facts<'_>, host: &Option<Box<[u8]>>, put: Put<'_>) {
    for labels in &facts.labels {
        if labels.granted != Some(false) {
            continue;
        }
        let module: &[u8] = match (labels.is_of_apparmor, labels.is_permissive) {
            (true, _) => b"AppArmor",
            (false, true) => b"SELinux, permissive",
            (false, false) => b"SELinux",
        };
        let program = facts.exe.as_deref().or(facts.comm.as_deref());
        let values = vec![
            host.clone(),
            boxed(Some(module)),
            boxed(labels.subject),
            boxed(labels.permissions),
            boxed(labels.class),
            boxed(labels.object),
            boxed(program),
        ];
        put(DENIALS, values, true);
    }
}

/// The name that the log gives to the login user, or else its number.
fn user(event: EventView<'_>, facts: &Facts<'_>) -> Option<Box<[u8]>> {
    let auid = facts.ids.auid;
    if matches!(auid, NO_LOGIN | NO_ID) {
        return None;
    }
    let name = event
        .names_value(b"auid")
        .filter(|name| !name.starts_with(b"unknown("));
    match name {
        Some(name) => boxed(Some(&name)),
        None => boxed(Some(format!("auid {auid}").as_bytes())),
    }
}

fn is_elevating(program: &[u8]) -> bool {
    let name = program.rsplit(|byte| *byte == b'/').next();
    name.is_some_and(|name| ELEVATING.contains(&name))
}

fn result(facts: &Facts<'_>) -> Option<&'static [u8]> {
    match facts.call.success {
        0 => Some(b"failed"),
        1 => Some(b"success"),
        _ => None,
    }
}

pub(super) fn boxed(text: Option<&[u8]>) -> Option<Box<[u8]>> {
    text.map(Into::into)
}
