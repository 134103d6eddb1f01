//! Reads the facts of an event without `--compat`: every record is taken apart by names and values, wherever they stand.
//!
//! * Who acted is what SYSCALL (or URINGOP) says. Only events without such a record take it from another one, the first.
//! * A field that no record has, or whose value is `?`, is missing. Nothing stands in its place.
//! * A question about a field is about all records: [`Others`] has every value.

use crate::event::{EventView, Record};
use crate::facts::{add_keys, Facts, Labels, Number, TextOf, User, Wanted, AUID, EUID, UID};
use crate::fields::{Field, Fields};
use crate::usual::UsualCall;
use crate::walk::{Text, Walk};
use crate::{calls, kind, Dialect};
use abi::record_type as kinds;
use code::{of as code, *};
use std::borrow::Cow;

/// Types of AppArmor in kernels before 2.6.37, and in some that patched it.
const APPARMOR: std::ops::RangeInclusive<i32> = kinds::APPARMOR..=kinds::APPARMOR_KILL;
/// `nametype=` of a directory that only contains the file of the event.
const PARENT: &[u8] = b"PARENT";
/// ADD_GROUP, DEL_GROUP, GRP_MGMT: `id=` is a group.
const GROUPS: [i32; 3] = [kinds::ADD_GROUP, kinds::DEL_GROUP, kinds::GRP_MGMT];

/// Fields that name a file in some records.
const FILES: [&[u8]; 8] = [
    b"name",
    b"path",
    b"file",
    b"dir",
    b"new-disk",
    b"old-disk",
    b"new-fs",
    b"old-fs",
];

/// Whether one of [`FILES`] names a file in a record of this type.
fn is_file(kind: i32, field: &Field<'_>, is_of_apparmor: bool) -> bool {
    match field.name {
        b"name" if kind == kinds::KERN_MODULE => false,
        // AppArmor also names signals, sockets and services so.
        b"name" if is_of_apparmor => field.is_absolute(),
        b"dir" => kind == kinds::CONFIG_CHANGE,
        _ => true,
    }
}

/// The absolute paths that a record names which is no PATH: of access decisions, of integrity, of configuration.
pub(crate) fn paths<'e>(record: &Record<'e>) -> impl Iterator<Item = Text<'e>> {
    let kind = record.kind;
    // AppArmor's profiles have names of programs, and objects of D-Bus paths of their own.
    let is_of_others = Fields::of(record.text).any(|field| {
        let others: [&[u8]; 2] = [b"profile_", b"dbus_"];
        field.name == b"operation" && others.iter().any(|start| field.value.starts_with(start))
    });

    let named = Fields::of(record.text).filter(move |field| {
        let is_named = FILES.contains(&field.name) && is_file(kind, field, true);
        is_named && field.is_absolute() && !is_of_others
    });
    named.filter_map(|field| field.file())
}

/// Reads the wanted facts of an event.
pub(crate) fn read<'e>(event: EventView<'e>, wanted: &Wanted) -> Facts<'e> {
    let mut facts = Facts::default();
    facts.call.syscall = -1;

    // The record of the call comes first here, wherever it stands: what it says holds.
    let call = event.records().find(|record| kind::is_of_call(record.kind));
    if let Some(record) = call {
        Reader::new(&mut facts, record, wanted, true).read();
    }

    let is_actor = call.is_none();
    let mut has_read_call = false;
    for record in event.records() {
        let is_call = kind::is_of_call(record.kind) && !std::mem::replace(&mut has_read_call, true);
        if !is_call {
            Reader::new(&mut facts, record, wanted, is_actor).read();
        }
    }

    facts
}

/// Names of fields as numbers, which are compared at once.
mod code {
    /// The bytes of a name of at most eight bytes as a number; 0 for a longer one.
    #[inline]
    pub(super) const fn of(name: &[u8]) -> u64 {
        let code = match (name, name.first_chunk::<4>(), name.last_chunk::<4>()) {
            // The halves of a shorter name overlap, and are the same there.
            (_, Some(first), Some(last)) if name.len() <= 8 => {
                let last = u32::from_le_bytes(*last) as u64;
                u32::from_le_bytes(*first) as u64 | last << (8 * (name.len() - 4))
            }
            ([a, b, c], ..) => u32::from_le_bytes([*a, *b, *c, 0]) as u64,
            ([a, b], ..) => u16::from_le_bytes([*a, *b]) as u64,
            ([a], ..) => *a as u64,
            _ => return 0,
        };

        // A zero in a name is no end of it.
        match name.len() {
            8 => code,
            length => code | (length as u64) << 56,
        }
    }

    pub(super) const PID: u64 = of(b"pid");
    pub(super) const PPID: u64 = of(b"ppid");
    pub(super) const AUID_NAME: u64 = of(b"auid");
    pub(super) const LOGINUID: u64 = of(b"loginuid");
    pub(super) const UID_NAME: u64 = of(b"uid");
    pub(super) const EUID_NAME: u64 = of(b"euid");
    pub(super) const SUID: u64 = of(b"suid");
    pub(super) const FSUID: u64 = of(b"fsuid");
    pub(super) const GID: u64 = of(b"gid");
    pub(super) const EGID: u64 = of(b"egid");
    pub(super) const SGID: u64 = of(b"sgid");
    pub(super) const FSGID: u64 = of(b"fsgid");
    pub(super) const ID: u64 = of(b"id");
    pub(super) const SES: u64 = of(b"ses");
    pub(super) const TTY: u64 = of(b"tty");
    pub(super) const TERMINAL: u64 = of(b"terminal");
    pub(super) const COMM: u64 = of(b"comm");
    pub(super) const EXE: u64 = of(b"exe");
    pub(super) const ACCT: u64 = of(b"acct");
    pub(super) const KEY: u64 = of(b"key");
    pub(super) const ARCH: u64 = of(b"arch");
    pub(super) const SYSCALL: u64 = of(b"syscall");
    pub(super) const SUCCESS: u64 = of(b"success");
    pub(super) const EXIT: u64 = of(b"exit");
    pub(super) const RES: u64 = of(b"res");
    pub(super) const RESULT: u64 = of(b"result");
    pub(super) const ITEMS: u64 = of(b"items");
    pub(super) const A0: u64 = of(b"a0");
    pub(super) const A1: u64 = of(b"a1");
    pub(super) const A2: u64 = of(b"a2");
    pub(super) const A3: u64 = of(b"a3");
}

/// Adds the facts of one record.
struct Reader<'f, 'e> {
    facts: &'f mut Facts<'e>,
    record: Record<'e>,
    wanted: &'f Wanted,
    /// Whether the fields about a task are those of who acted.
    is_actor: bool,
    labels: Labels<'e>,
    host: Option<Text<'e>>,
    address: Option<Text<'e>>,
    /// Number of fields `auid`, `uid` and `euid` before: ENRICHED names them in their order.
    users: [usize; 3],
    /// Whether the record has named a file.
    has_file: bool,
}

impl<'f, 'e> Reader<'f, 'e> {
    fn new(
        facts: &'f mut Facts<'e>,
        record: Record<'e>,
        wanted: &'f Wanted,
        is_actor: bool,
    ) -> Reader<'f, 'e> {
        Reader {
            facts,
            record,
            wanted,
            is_actor,
            labels: Labels::default(),
            host: None,
            address: None,
            users: [0; 3],
            has_file: false,
        }
    }

    fn read(mut self) {
        if self.record.kind == kinds::SOCKADDR {
            return self.socket_address();
        }

        let has_facts = match self.record.kind {
            kinds::PROCTITLE | kinds::EXECVE => false,
            kinds::CWD => self.wanted.files,
            kinds::PATH => self.wanted.files || self.wanted.object,
            _ => true,
        };
        if !has_facts {
            return;
        }

        if self.is_of_access() {
            self.verdict();
        }
        if self.usual_call() {
            return;
        }

        let fields = Fields::of(self.record.text);
        for field in fields {
            self.field(&field);
        }

        self.end();
    }

    /// Reads the record of a call in the usual form, of whose fields only the wanted ones are looked at. False if it is
    /// none.
    fn usual_call(&mut self) -> bool {
        let (text, wanted) = (self.record.text, self.wanted);
        if self.record.kind != kinds::SYSCALL || !self.is_actor || wanted.all {
            return false;
        }
        let call = UsualCall::of(text);
        let Some((call, caller)) = call.and_then(|call| Some((call, call.caller(text)?))) else {
            return false;
        };

        let known = &mut self.facts.call;
        known.syscall = call.number;
        if wanted.arch {
            known.arch = call.arch;
        }
        if wanted.success {
            known.success = call.is_success.into();
        }
        if wanted.exit {
            known.exit = Some(call.exit);
        }

        // In the order of the fields.
        let is_wanted = [
            wanted.ppid,
            wanted.pid,
            wanted.auid,
            wanted.uid,
            wanted.gid,
            wanted.euid,
            false,
            false,
            wanted.egid,
            false,
            false,
            wanted.terminal,
            wanted.session,
            wanted.comm,
            wanted.exe,
        ];
        for ((name, at), is_wanted) in caller.fields().zip(is_wanted) {
            if is_wanted {
                self.field(&Field::at(text, name, at).0);
            }
        }
        if let Some(at) = caller.label() {
            self.label(&Field::at(text, b"subj", at).0);
        }
        self.field(&Field::at(text, b"key", caller.key()).0);

        true
    }

    fn is_of_access(&self) -> bool {
        matches!(self.record.kind, kinds::AVC | kinds::USER_AVC)
            || APPARMOR.contains(&self.record.kind)
    }

    /// What SELinux decided: `avc:  denied  { read } for …`.
    fn verdict(&mut self) {
        let text = self.record.text;
        let Some(at) = memchr::memmem::find(text, b"avc: ") else {
            return;
        };

        let rest = &text[at..];
        let Some(open) = memchr::memchr(b'{', rest) else {
            return;
        };
        let Some(length) = memchr::memchr(b'}', &rest[open..]) else {
            return;
        };

        let is_denied = memchr::memmem::find(&rest[..open], b"denied").is_some();
        self.labels.granted = Some(!is_denied);
        self.labels.permissions = Some(rest[open + 1..open + length].trim_ascii());
    }

    fn field(&mut self, field: &Field<'e>) {
        let wanted = self.wanted;
        match code(field.name) {
            PID if wanted.pid => self.number(Number::Pid, field),
            PPID if wanted.ppid => self.number(Number::Ppid, field),
            AUID_NAME | LOGINUID if wanted.auid && !field.follows(b"old ") => {
                self.user(AUID, field);
            }
            UID_NAME if wanted.uid => self.user(UID, field),
            EUID_NAME if wanted.euid => self.user(EUID, field),
            GID if wanted.gid => self.number(Number::Gid, field),
            ID if wanted.gid && GROUPS.contains(&self.record.kind) => {
                self.number(Number::Gid, field);
            }
            EGID if wanted.egid => self.number(Number::Egid, field),
            SES if wanted.session && !field.follows(b"old ") => {
                self.number(Number::Session, field);
            }
            TTY | TERMINAL if wanted.terminal => {
                let text = field.word().map(Cow::Borrowed);
                self.text(TextOf::Terminal, text);
            }
            COMM if wanted.comm => self.text(TextOf::Comm, field.text()),
            EXE if wanted.exe => self.text(TextOf::Exe, field.text()),
            ACCT => {
                let acct = field.text();
                self.facts.acct = self.facts.acct.take().or(acct);
            }
            // In an AVC, it is the number of shared memory or a semaphore.
            KEY if wanted.keys && self.record.kind != kinds::AVC => {
                let _ = add_keys(&mut self.facts.keys, Walk::new(self.record.text), field.at);
            }
            ARCH | SYSCALL | SUCCESS | EXIT => self.of_call(field),
            RES | RESULT if wanted.success => self.result(field.value),
            // Most fields of a call, of which nothing is asked.
            A0 | A1 | A2 | A3 | ITEMS | PID | PPID | UID_NAME | GID | SUID | SGID | FSUID
            | FSGID | EUID_NAME | EGID | AUID_NAME | SES | TTY | COMM | EXE => {}
            _ => self.rarer(field),
        }
    }

    /// Fields of few records.
    fn rarer(&mut self, field: &Field<'e>) {
        let wanted = self.wanted;
        match field.name {
            b"hostname" if wanted.host => self.host = field.word().map(Cow::Borrowed),
            b"addr" if wanted.host => self.address = field.word().map(Cow::Borrowed),
            b"saddr" | b"daddr" if wanted.host && self.record.kind == kinds::NETFILTER_PKT => {
                self.text(TextOf::Host, field.word().map(Cow::Borrowed));
            }
            b"vm" if wanted.vm => self.facts.guest.vm = field.text(),
            b"uuid" if wanted.uuid => {
                let end = memchr::memchr(b':', field.value).unwrap_or(field.value.len());
                self.facts.guest.uuid = Some(&field.value[..end]).filter(|uuid| !uuid.is_empty());
            }
            b"cwd" if wanted.files && self.facts.files.cwd.is_none() => {
                self.facts.files.cwd = field.text();
            }
            name if wanted.files && FILES.contains(&name) => self.file(field),
            b"nametype" if self.has_file && field.value != PARENT => {
                self.facts.files.note_main();
            }
            _ if self.is_of_access() => self.access(field),
            _ => self.label(field),
        }
    }

    /// Call, its result, and its architecture.
    fn of_call(&mut self, field: &Field<'e>) {
        let is_call = kind::is_of_call(self.record.kind);
        let is_alone = self.record.kind == kinds::SECCOMP && self.is_actor;
        if !is_call && !is_alone {
            return;
        }

        let call = &mut self.facts.call;
        match field.name {
            b"arch" if self.wanted.arch && call.arch == 0 => {
                call.arch = field.hex().unwrap_or(0);
            }
            b"syscall" if call.syscall < 0 => {
                let number = field.number().and_then(|number| i32::try_from(number).ok());
                call.syscall = number.unwrap_or(-1);
            }
            b"success" if self.wanted.success => self.result(field.value),
            b"exit" if is_call && self.wanted.exit && call.exit.is_none() => {
                call.exit = std::str::from_utf8(field.value)
                    .ok()
                    .and_then(|exit| exit.parse().ok());
            }
            _ => {}
        }
    }

    /// `res=` or `success=`. The call's own comes first, and stays.
    fn result(&mut self, value: &[u8]) {
        if self.facts.call.success >= 0 {
            return;
        }
        self.facts.call.success = match value {
            b"yes" | b"1" | b"success" | b"Success" | b"SUCCESS" => 1,
            b"no" | b"0" | b"failed" | b"failure" | b"Failed" | b"FAILED" => 0,
            _ => -1,
        };
    }

    fn number(&mut self, which: Number, field: &Field<'_>) {
        let Some(number) = field.number() else {
            return;
        };
        if self.wanted.all {
            self.facts.others.numbers.push((which, number));
        }
        if self.is_actor {
            self.facts.ids.set_if_missing(which, number);
        }
    }

    fn user(&mut self, which: usize, field: &Field<'_>) {
        let nth = self.users[which];
        self.users[which] += 1;
        let Some(id) = field.number() else {
            return;
        };

        if self.wanted.all {
            let names = self.record.names;
            let name = names.and_then(|names| crate::facts::nth_name(names, field.name, nth));
            self.facts.others.users.push(User { which, id, name });
        }

        if self.is_actor && self.facts.ids.named[which].is_none() {
            self.facts.ids.set_named(which, id);
        }
    }

    /// A text about the task that acted.
    fn text(&mut self, which: TextOf, text: Option<Text<'e>>) {
        let Some(text) = text else {
            return;
        };
        let own = match which {
            TextOf::Terminal => &mut self.facts.terminal,
            TextOf::Comm => &mut self.facts.comm,
            TextOf::Exe => &mut self.facts.exe,
            TextOf::Host => &mut self.facts.host,
        };

        let is_own = self.is_actor || which == TextOf::Host;
        if is_own && own.is_none() {
            *own = Some(text);
        } else if self.wanted.all {
            self.facts.others.texts.push((which, text));
        }
    }

    fn file(&mut self, field: &Field<'e>) {
        if !is_file(self.record.kind, field, self.labels.is_of_apparmor) {
            return;
        }
        if let Some(name) = field.file() {
            self.facts.files.push(name);
            self.has_file = true;
        }
    }

    /// Fields of AVC, of SELinux and AppArmor.
    fn access(&mut self, field: &Field<'e>) {
        let labels = &mut self.labels;
        match field.name {
            b"scontext" => labels.subject = field.word(),
            b"tcontext" => labels.object = field.word(),
            b"tclass" => labels.class = field.word(),
            b"permissive" => labels.is_permissive = field.value == b"1",
            b"apparmor" => {
                labels.is_of_apparmor = true;
                labels.granted = match field.value {
                    b"DENIED" | b"KILLED" => Some(false),
                    b"ALLOWED" | b"AUDIT" => Some(true),
                    _ => None,
                };
            }
            b"profile" if labels.is_of_apparmor => labels.subject = field.word(),
            b"class" if labels.is_of_apparmor => labels.class = field.word(),
            // Older kernels have no class.
            b"operation" if labels.is_of_apparmor => labels.class = labels.class.or(field.word()),
            b"denied_mask" if labels.is_of_apparmor => labels.permissions = field.word(),
            b"requested_mask" | b"requested" | b"capname" if labels.is_of_apparmor => {
                labels.permissions = labels.permissions.or(field.word());
            }
            b"peer" | b"target" | b"info" if labels.is_of_apparmor => {
                labels.object = labels.object.or(field.word());
            }
            _ => self.label(field),
        }
    }

    fn label(&mut self, field: &Field<'e>) {
        let (subject, object) = (self.wanted.subject, self.wanted.object);
        let is_subject = match field.name {
            b"subj" => true,
            // With several security modules, one field for each.
            name if name.starts_with(b"subj_") => true,
            b"vm-ctx" => self.record.kind == kinds::VIRT_MACHINE_ID,
            _ => false,
        };

        let is_object = match field.name {
            b"obj" => true,
            name if name.starts_with(b"obj_") => true,
            b"img-ctx" => self.record.kind == kinds::VIRT_MACHINE_ID,
            _ => false,
        };

        let label = || field.word();
        if is_subject && subject {
            self.facts.labels.extend(label().map(Labels::of_subject));
        }
        if is_object && object {
            self.facts.labels.extend(label().map(Labels::of_object));
        }
    }

    /// The address of SOCKADDR, or its file.
    fn socket_address(&mut self) {
        let mut one = Facts::default();
        let walk = Walk::new(self.record.text);
        let _ = calls::sockaddr(&mut one, walk, self.wanted, Dialect::Own);
        if self.facts.address.is_none() {
            self.facts.address = one.host.clone();
        }
        self.text(TextOf::Host, one.host);
        for name in one.files.names.into_iter().flatten() {
            self.facts.files.push(name);
        }
    }

    /// What can be said when all fields of the record are known.
    fn end(mut self) {
        let (name, address) = (self.host.take(), self.address.take());
        if self.facts.address.is_none() {
            self.facts.address = address.clone();
        }

        self.text(TextOf::Host, name);
        self.text(TextOf::Host, address);
        if !self.is_of_access() {
            return;
        }

        if self.labels.is_of_apparmor && self.labels.object.is_none() {
            let name = Fields::of(self.record.text).find(|field| field.name == b"name");
            self.labels.object = name.and_then(|field| field.word());
        }

        if let (Some(granted), true) = (self.labels.granted, self.wanted.success) {
            let call = &mut self.facts.call;
            let passed = granted || self.labels.is_permissive;
            // Without a call, one refusal is enough.
            if call.success < 0 || (call.syscall < 0 && !passed) {
                call.success = passed.into();
            }
        }

        if self.labels != Labels::default() {
            self.facts.labels.push(self.labels);
        }
    }
}
