//! What a call did, and to what.

use super::cursor::Place;
use super::normal::{is_script_runner, Finder};
use super::thing::Thing;
use super::verbs::{self, Deed};
use crate::number::unsigned;
use crate::Dialect;
use abi::record_type as kinds;

/// MAC_POLICY_LOAD.
const MAC_POLICY_LOAD: i32 = 1403;
/// MAC_STATUS.
const MAC_STATUS: i32 = 1404;
/// MAC_CONFIG_CHANGE.
const MAC_CONFIG_CHANGE: i32 = 1405;

/// A record that says more than the call.
enum Telling {
    /// The event is about it.
    Deed(Deed),
    /// Its action is put before the call's object.
    Action(&'static str),
}

fn telling(kind: i32) -> Option<Telling> {
    Some(match kind as u32 {
        kinds::AVC => Telling::Action("accessed-mac-policy-controlled-object"),
        kinds::FANOTIFY => Telling::Action("accessed-policy-controlled-file"),
        kinds::SELINUX_ERR => Telling::Deed(Deed::PolicyError),
        kinds::NETFILTER_CFG => Telling::Deed(Deed::Firewall),
        kinds::ANOM_PROMISCUOUS => Telling::Deed(Deed::Promiscuous),
        kinds::KERN_MODULE => Telling::Deed(Deed::LoadModule),
        kinds::TIME_INJOFFSET | kinds::TIME_ADJNTPVAL => Telling::Deed(Deed::SystemTime),
        kinds::BPF => Telling::Deed(Deed::Bpf),
        kinds::EVENT_LISTENER => Telling::Deed(Deed::Listener),
        _ => match kind {
            MAC_POLICY_LOAD | MAC_STATUS | MAC_CONFIG_CHANGE => Telling::Deed(Deed::Policy(kind)),
            _ => return None,
        },
    })
}

impl Finder<'_, '_> {
    /// What the call did. `first_kind` is the type of the first record.
    pub(super) fn deed(&mut self, call: &[u8], first_kind: i32) {
        self.cursor.rewind();
        let told = loop {
            match telling(self.cursor.kind()) {
                Some(told) => break Some(told),
                None if self.cursor.next_record() => {}
                None => break None,
            }
        };
        let dialect = self.interpreter.dialect();
        let deed = match told {
            Some(Telling::Deed(deed)) => Some(deed),
            _ => verbs::of_call(call, dialect),
        };
        match deed {
            Some(deed) => self.known_deed(deed, call),
            None => self.rule(),
        }
        if let Some(Telling::Action(action)) = told {
            self.act(action);
        }
        if first_kind == MAC_POLICY_LOAD && dialect != Dialect::Three {
            self.program();
        }
    }

    fn known_deed(&mut self, deed: Deed, call: &[u8]) {
        if let Some((action, thing)) = deed.words() {
            self.act(action);
            self.normal.thing = thing;
        }
        match deed {
            Deed::Open => {
                self.file(2);
                // Whatever was opened counts as a file.
                self.normal.thing = Thing::File;
                self.file_fields();
            }
            Deed::Stat | Deed::StatFs | Deed::Unmount | Deed::Delete | Deed::Time => {
                self.file_of_call(2);
            }
            Deed::Attributes => self.file_of_call(if call == b"fsetxattr" { 1 } else { 2 }),
            Deed::Permissions => {
                self.argument_object(if call == b"fchmodat" { b"a2" } else { b"a1" });
                self.file_of_call(if call == b"fchmod" { 1 } else { 2 });
            }
            Deed::Owner => {
                self.owner_object(if call == b"fchownat" { b"a2" } else { b"a1" });
                self.file_of_call(if call == b"fchown" { 1 } else { 2 });
            }
            Deed::LoadModule => {
                self.cursor.go_to_record(1);
                self.object(b"name", 1);
            }
            Deed::MakeDirectory | Deed::Execute => self.file_of_call(3),
            Deed::Mount => self.mount(),
            Deed::Rename => {
                self.second_file(6);
                self.file_of_call(4);
            }
            Deed::Link => {
                self.second_file(2);
                self.file_of_call(4);
            }
            Deed::Socket(_) => {
                self.cursor.go_to_record(1);
                self.cursor.first_field();
                self.object(b"saddr", 1);
            }
            Deed::Kill => self.kill(),
            Deed::Policy(kind) => self.policy(kind),
            Deed::Firewall => {
                self.cursor.rewind();
                self.take_object(b"table");
            }
            Deed::Promiscuous => self.promiscuous(),
            Deed::Identity => {
                self.program_by(call);
                self.identity_object(call);
            }
            Deed::Scheduler | Deed::Security => self.program_by(call),
            Deed::MakeDevice => self.device(),
            Deed::Memory => self.memory(),
            Deed::Bpf => {
                let action = self.bpf_action();
                self.act(action);
                self.program();
            }
            Deed::Listener => {
                let action = self.listener_action();
                self.act(action);
                self.program();
            }
            Deed::UnloadModule | Deed::PolicyError | Deed::SystemTime | Deed::SystemName => {}
        }
    }

    /// The call is not known: the rule that it triggered.
    fn rule(&mut self) {
        self.normal.thing = Thing::AuditRule;
        match self.cursor.find_anywhere(b"key") {
            Some(key) if key != b"(null)" => {
                self.normal.object = Some(self.cursor.place());
                self.act("triggered-audit-rule");
            }
            _ => self.act("triggered-unknown-audit-rule"),
        }
    }

    fn take_object(&mut self, name: &[u8]) {
        if let Some(place) = self.find_place(name) {
            self.normal.object = Some(place);
        }
    }

    fn file_of_call(&mut self, record: usize) {
        self.file(record);
        self.file_fields();
    }

    /// The file of the PATH record `record` or one behind it that is no parent directory.
    fn file(&mut self, record: usize) {
        self.cursor.go_to_record(record);
        self.cursor.first_field();
        let mut parent = 0;
        let found = loop {
            let Some(role) = self.cursor.find(b"nametype") else {
                break false;
            };
            if role != b"PARENT" {
                break true;
            }
            if parent == 0 {
                parent = self.cursor.record_number();
            }
            if !self.cursor.next_record() {
                break true;
            }
        };
        let record = match (found, parent) {
            (true, _) => self.cursor.record_number(),
            (false, 0) => return,
            // If the directory refused, there is nothing but the parent.
            (false, parent) => {
                self.cursor.go_to_record(parent);
                parent
            }
        };
        if self.cursor.kind() != kinds::PATH as i32 {
            return;
        }
        self.cursor.first_field();
        self.object(b"name", record);
        if self.cursor.find(b"inode").is_some() {
            self.normal.object_detail = Some(self.cursor.place_in(record));
        }
        if let Some(Ok(mode)) = self.cursor.find(b"mode").map(|mode| unsigned(mode, 8)) {
            self.normal.thing = match mode as u32 & 0o170_000 {
                0o100_000 => Thing::File,
                0o040_000 => Thing::Directory,
                0o020_000 => Thing::CharacterDevice,
                0o060_000 => Thing::BlockDevice,
                0o010_000 => Thing::Fifo,
                0o120_000 => Thing::Link,
                0o140_000 => Thing::Socket,
                _ => self.normal.thing,
            };
        }
    }

    /// Further fields of the file.
    fn file_fields(&mut self) {
        if !self.has_fields {
            return;
        }
        self.cursor.rewind();
        let mut parent = 0;
        loop {
            let record = self.cursor.record_number();
            match self.cursor.kind() as u32 {
                kinds::PATH => {
                    if self.cursor.find(b"nametype") != Some(b"PARENT") {
                        return self.path_fields();
                    }
                    if parent == 0 {
                        parent = self.cursor.record_number();
                    }
                }
                kinds::CWD => {
                    self.object_field(b"cwd", record);
                }
                kinds::SOCKADDR => {
                    self.object_field(b"saddr", record);
                }
                _ => {}
            }
            if !self.cursor.next_record() {
                break;
            }
        }
        if parent != 0 {
            self.cursor.go_to_record(parent);
            self.path_fields();
        }
    }

    fn path_fields(&mut self) {
        let record = self.cursor.record_number();
        self.cursor.first_field();
        if !self.object_field(b"mode", record) {
            return;
        }
        while self.cursor.next_field() {
            let place = self.cursor.place_in(record);
            self.normal.object_fields.push(place);
        }
    }

    fn mount(&mut self) {
        if self.success == 1 {
            self.second_file(2);
        }
        self.file((2 + self.success) as usize);
        self.path_fields();
    }

    /// The second name of a rename or link.
    fn second_file(&mut self, record: usize) {
        self.cursor.go_to_record(record);
        self.cursor.first_field();
        if self.cursor.find(b"name").is_some() {
            self.normal.second = Some(self.cursor.place_in(record));
        }
    }

    fn argument_object(&mut self, argument: &[u8]) {
        if self.cursor.find_anywhere(argument).is_some() {
            self.normal.second = Some(self.cursor.place_in(0));
        }
    }

    fn owner_object(&mut self, argument: &[u8]) {
        if self.cursor.find_anywhere(argument).is_some() {
            // If the user is not changed, the group is.
            if self.cursor.number() == Some(-1) {
                self.cursor.next_field();
            }
            self.normal.second = Some(self.cursor.place_in(0));
        }
    }

    /// The first id that changes.
    fn identity_object(&mut self, call: &[u8]) {
        let count = match call {
            b"setuid" | b"setgid" => 1,
            b"setreuid" | b"setregid" => 2,
            b"setresuid" | b"setresgid" => 3,
            _ => return,
        };
        if self.cursor.find_anywhere(b"a0").is_none() {
            return;
        }
        for number in 1..=count {
            if self.meaning() != b"unset" {
                break;
            }
            if number == count || !self.cursor.next_field() {
                return;
            }
        }
        self.normal.second = Some(self.cursor.place_in(0));
    }

    fn kill(&mut self) {
        self.act(match self.cursor.record_count() > 2 {
            true => "killed-list-of-pids",
            false => "killed-pid",
        });
        self.normal.thing = Thing::Process;
        self.cursor.go_to_record(1);
        self.cursor.first_field();
        self.take_object(b"saddr");
    }

    fn policy(&mut self, kind: i32) {
        self.act_by_kind(kind);
        self.normal.thing = Thing::Policy;
        match kind {
            MAC_CONFIG_CHANGE => self.take_object(b"bool"),
            MAC_STATUS => self.take_object(b"enforcing"),
            _ => {}
        }
    }

    fn promiscuous(&mut self) {
        self.normal.thing = Thing::Socket;
        self.cursor.rewind();
        self.take_object(b"dev");
        if self.cursor.find(b"prom").is_some() {
            self.act(match self.cursor.number() {
                Some(0) => "left-promiscuous-mode-on-device",
                _ => "entered-promiscuous-mode-on-device",
            });
        }
    }

    fn device(&mut self) {
        self.file_of_call(2);
        self.act(match self.normal.thing {
            Thing::CharacterDevice => "made-character-device",
            Thing::BlockDevice => "made-block-device",
            _ => "make-device",
        });
    }

    fn memory(&mut self) {
        self.act("allocated-memory");
        self.normal.thing = Thing::Memory;
        if self.success == 1 {
            self.act("allocated-memory-in");
            self.cursor.rewind();
            self.take_object(b"comm");
        }
    }

    pub(super) fn bpf_action(&mut self) -> &'static str {
        match self.cursor.find_anywhere(b"op") {
            Some(b"LOAD") => "loaded-bpf-program",
            Some(_) => "unloaded-bpf-program",
            None => "bpf-program",
        }
    }

    pub(super) fn listener_action(&mut self) -> &'static str {
        match self.cursor.find_anywhere(b"op") {
            Some(b"connect") => "connected-to",
            Some(_) => "disconnected-from",
            None => "connected",
        }
    }

    /// The program is the object, and the call says how.
    fn program_by(&mut self, call: &[u8]) {
        self.program();
        if self.normal.how.is_some() {
            self.normal.how = Some(call.to_vec());
        }
    }

    /// The object of records about programs: the first record's, or the program that made the call.
    pub(super) fn program(&mut self) {
        self.cursor.rewind();
        let kind = self.cursor.kind();
        let own = match kind as u32 {
            kinds::BPF => Some(&b"prog-id"[..]),
            kinds::EVENT_LISTENER => Some(&b"nl-mcgrp"[..]),
            _ if kind == MAC_POLICY_LOAD && self.interpreter.dialect() != Dialect::Three => {
                Some(&b"lsm"[..])
            }
            _ => None,
        };
        if let Some(name) = own {
            return self.take_object(name);
        }
        if self.cursor.find(b"exe").is_none() {
            return;
        }
        if is_script_runner(&self.meaning()) {
            match self.cursor.field_number() {
                0 => self.cursor.rewind(),
                number => {
                    self.cursor.go_to_field(number - 1);
                }
            }
            self.cursor.find(b"comm");
        }
        let place: Place = self.cursor.place();
        self.normal.object = Some(place);
    }
}
