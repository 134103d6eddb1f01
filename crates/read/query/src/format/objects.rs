//! Action and object of a call.

use super::cursor::FieldPlace;
use super::normal::{is_script_runner, Finder};
use super::thing::Thing;
use super::verbs::{self, Deed};
use crate::number::unsigned;
use abi::record_type as kinds;

/// A record that says more than the call.
enum Telling {
    /// The event is about it.
    Deed(Deed),
    /// The record's action replaces the call's; the object is the call's.
    Action(&'static str),
}

fn telling(kind: i32) -> Option<Telling> {
    Some(match kind {
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
            kinds::MAC_POLICY_LOAD | kinds::MAC_STATUS | kinds::MAC_CONFIG_CHANGE => {
                Telling::Deed(Deed::Policy(kind))
            }
            _ => return None,
        },
    })
}

/// Notes action and object of the call. `first_kind` is the type of the first record.
pub(super) fn deed(finder: &mut Finder<'_, '_>, call: &[u8], first_kind: i32) {
    finder.cursor.rewind();
    let told = loop {
        match telling(finder.cursor.kind()) {
            Some(told) => break Some(told),
            None if finder.cursor.next_record() => {}
            None => break None,
        }
    };
    let deed = match told {
        Some(Telling::Deed(deed)) => Some(deed),
        _ => verbs::of_call(call),
    };
    match deed {
        Some(deed) => known_deed(finder, deed, call),
        None => rule(finder),
    }

    if let Some(Telling::Action(action)) = told {
        finder.act(action);
    }
    if first_kind == kinds::MAC_POLICY_LOAD {
        program(finder);
    }
}

fn known_deed(finder: &mut Finder<'_, '_>, deed: Deed, call: &[u8]) {
    if let Some((action, thing)) = deed.words() {
        finder.act(action);
        finder.normal.object.thing = thing;
    }

    match deed {
        Deed::Open => {
            file(finder, 2);
            // Whatever was opened counts as a file.
            finder.normal.object.thing = Thing::File;
            file_fields(finder);
        }
        Deed::Stat | Deed::StatFs | Deed::Unmount | Deed::Delete | Deed::Time => {
            file_of_call(finder, 2);
        }
        Deed::Attributes => file_of_call(finder, if call == b"fsetxattr" { 1 } else { 2 }),
        Deed::Permissions => {
            argument_object(finder, if call == b"fchmodat" { b"a2" } else { b"a1" });
            file_of_call(finder, if call == b"fchmod" { 1 } else { 2 });
        }
        Deed::Owner => {
            owner_object(finder, if call == b"fchownat" { b"a2" } else { b"a1" });
            file_of_call(finder, if call == b"fchown" { 1 } else { 2 });
        }
        Deed::LoadModule => {
            finder.cursor.go_to_record(1);
            finder.object(b"name", 1);
        }
        Deed::MakeDirectory | Deed::Execute => file_of_call(finder, 3),
        Deed::Mount => mount(finder),
        Deed::Rename => {
            second_file(finder, 6);
            file_of_call(finder, 4);
        }
        Deed::Link => {
            second_file(finder, 2);
            file_of_call(finder, 4);
        }
        Deed::Socket(_) => {
            finder.cursor.go_to_record(1);
            finder.cursor.first_field();
            finder.object(b"saddr", 1);
        }
        Deed::Kill => kill(finder),
        Deed::Policy(kind) => policy(finder, kind),
        Deed::Firewall => {
            finder.cursor.rewind();
            take_object(finder, b"table");
        }
        Deed::Promiscuous => promiscuous(finder),
        Deed::Identity => {
            program_by(finder, call);
            identity_object(finder, call);
        }
        Deed::Scheduler | Deed::Security => program_by(finder, call),
        Deed::MakeDevice => device(finder),
        Deed::Memory => memory(finder),
        Deed::Bpf => {
            let action = bpf_action(finder);
            finder.act(action);
            program(finder);
        }
        Deed::Listener => {
            let action = listener_action(finder);
            finder.act(action);
            program(finder);
        }
        Deed::UnloadModule | Deed::PolicyError | Deed::SystemTime | Deed::SystemName => {}
    }
}

/// The call is not known: the rule that it triggered.
fn rule(finder: &mut Finder<'_, '_>) {
    finder.normal.object.thing = Thing::AuditRule;
    match finder.cursor.find_anywhere(b"key") {
        Some(key) if key != b"(null)" => {
            finder.normal.object.place = Some(finder.cursor.place());
            finder.act("triggered-audit-rule");
        }
        _ => finder.act("triggered-unknown-audit-rule"),
    }
}

fn take_object(finder: &mut Finder<'_, '_>, name: &[u8]) {
    if let Some(place) = finder.find_place(name) {
        finder.normal.object.place = Some(place);
    }
}

fn file_of_call(finder: &mut Finder<'_, '_>, record: usize) {
    file(finder, record);
    file_fields(finder);
}

/// The file of PATH record `record`, or of the next one that is not a parent directory.
fn file(finder: &mut Finder<'_, '_>, record: usize) {
    finder.cursor.go_to_record(record);
    finder.cursor.first_field();
    let mut parent = 0;
    let found = loop {
        let Some(role) = finder.cursor.find(b"nametype") else {
            break false;
        };
        if role != b"PARENT" {
            break true;
        }
        if parent == 0 {
            parent = finder.cursor.record_number();
        }
        if !finder.cursor.next_record() {
            break true;
        }
    };

    let record = match (found, parent) {
        (true, _) => finder.cursor.record_number(),
        (false, 0) => return,
        // If the directory refused, there is nothing but the parent.
        (false, parent) => {
            finder.cursor.go_to_record(parent);
            parent
        }
    };

    if finder.cursor.kind() != kinds::PATH {
        return;
    }

    finder.cursor.first_field();
    finder.object(b"name", record);
    if finder.cursor.find(b"inode").is_some() {
        finder.normal.object.detail = Some(finder.found_in(record));
    }

    if let Some(Ok(mode)) = finder.cursor.find(b"mode").map(|mode| unsigned(mode, 8)) {
        finder.normal.object.thing = match mode as u32 & 0o170_000 {
            0o100_000 => Thing::File,
            0o040_000 => Thing::Directory,
            0o020_000 => Thing::CharacterDevice,
            0o060_000 => Thing::BlockDevice,
            0o010_000 => Thing::Fifo,
            0o120_000 => Thing::Link,
            0o140_000 => Thing::Socket,
            _ => finder.normal.object.thing,
        };
    }
}

/// Further fields of the file.
fn file_fields(finder: &mut Finder<'_, '_>) {
    if !finder.has_fields {
        return;
    }

    finder.cursor.rewind();
    let mut parent = 0;
    loop {
        let record = finder.cursor.record_number();
        match finder.cursor.kind() {
            kinds::PATH => {
                if finder.cursor.find(b"nametype") != Some(b"PARENT") {
                    return path_fields(finder);
                }
                if parent == 0 {
                    parent = finder.cursor.record_number();
                }
            }
            kinds::CWD => {
                finder.object_field(b"cwd", record);
            }
            kinds::SOCKADDR => {
                finder.object_field(b"saddr", record);
            }
            _ => {}
        }
        if !finder.cursor.next_record() {
            break;
        }
    }

    if parent != 0 {
        finder.cursor.go_to_record(parent);
        path_fields(finder);
    }
}

fn path_fields(finder: &mut Finder<'_, '_>) {
    let record = finder.cursor.record_number();
    finder.cursor.first_field();
    if !finder.object_field(b"mode", record) {
        return;
    }
    while finder.cursor.next_field() {
        let place = finder.found_in(record);
        finder.normal.object.fields.push(place);
    }
}

fn mount(finder: &mut Finder<'_, '_>) {
    if finder.success == 1 {
        second_file(finder, 2);
    }
    file(finder, (2 + finder.success) as usize);
    path_fields(finder);
}

/// The second name of a rename or link.
fn second_file(finder: &mut Finder<'_, '_>, record: usize) {
    finder.cursor.go_to_record(record);
    finder.cursor.first_field();
    if finder.cursor.find(b"name").is_some() {
        finder.normal.object.second = Some(finder.found_in(record));
    }
}

fn argument_object(finder: &mut Finder<'_, '_>, argument: &[u8]) {
    if finder.cursor.find_anywhere(argument).is_some() {
        finder.normal.object.second = Some(finder.found_in(0));
    }
}

fn owner_object(finder: &mut Finder<'_, '_>, argument: &[u8]) {
    if finder.cursor.find_anywhere(argument).is_some() {
        // If the user is not changed, the group is.
        if finder.cursor.number() == Some(-1) {
            finder.cursor.next_field();
        }
        finder.normal.object.second = Some(finder.found_in(0));
    }
}

/// The first id that changes.
fn identity_object(finder: &mut Finder<'_, '_>, call: &[u8]) {
    let count = match call {
        b"setuid" | b"setgid" => 1,
        b"setreuid" | b"setregid" => 2,
        b"setresuid" | b"setresgid" => 3,
        _ => return,
    };

    if finder.cursor.find_anywhere(b"a0").is_none() {
        return;
    }

    for number in 1..=count {
        if finder.meaning() != b"unset" {
            break;
        }
        if number == count || !finder.cursor.next_field() {
            return;
        }
    }

    finder.normal.object.second = Some(finder.found_in(0));
}

fn kill(finder: &mut Finder<'_, '_>) {
    finder.act(if finder.cursor.record_count() > 2 {
        "killed-list-of-pids"
    } else {
        "killed-pid"
    });
    finder.normal.object.thing = Thing::Process;
    finder.cursor.go_to_record(1);
    finder.cursor.first_field();
    take_object(finder, b"saddr");
}

fn policy(finder: &mut Finder<'_, '_>, kind: i32) {
    finder.act_by_kind(kind);
    finder.normal.object.thing = Thing::Policy;
    match kind {
        kinds::MAC_CONFIG_CHANGE => take_object(finder, b"bool"),
        kinds::MAC_STATUS => take_object(finder, b"enforcing"),
        _ => {}
    }
}

fn promiscuous(finder: &mut Finder<'_, '_>) {
    finder.normal.object.thing = Thing::Socket;
    finder.cursor.rewind();
    take_object(finder, b"dev");
    if finder.cursor.find(b"prom").is_some() {
        finder.act(match finder.cursor.number() {
            Some(0) => "left-promiscuous-mode-on-device",
            _ => "entered-promiscuous-mode-on-device",
        });
    }
}

fn device(finder: &mut Finder<'_, '_>) {
    file_of_call(finder, 2);
    finder.act(match finder.normal.object.thing {
        Thing::CharacterDevice => "made-character-device",
        Thing::BlockDevice => "made-block-device",
        _ => "make-device",
    });
}

fn memory(finder: &mut Finder<'_, '_>) {
    finder.act("allocated-memory");
    finder.normal.object.thing = Thing::Memory;
    if finder.success == 1 {
        finder.act("allocated-memory-in");
        finder.cursor.rewind();
        take_object(finder, b"comm");
    }
}

pub(super) fn bpf_action(finder: &mut Finder<'_, '_>) -> &'static str {
    match finder.cursor.find_anywhere(b"op") {
        Some(b"LOAD") => "loaded-bpf-program",
        Some(_) => "unloaded-bpf-program",
        None => "bpf-program",
    }
}

pub(super) fn listener_action(finder: &mut Finder<'_, '_>) -> &'static str {
    match finder.cursor.find_anywhere(b"op") {
        Some(b"connect") => "connected-to",
        Some(_) => "disconnected-from",
        None => "connected",
    }
}

/// The program is the object, and the call says how.
fn program_by(finder: &mut Finder<'_, '_>, call: &[u8]) {
    program(finder);
    if finder.normal.how.is_some() {
        finder.normal.how = Some(call.to_vec());
    }
}

/// The object of records about programs: the first record's, or the program that made the call.
pub(super) fn program(finder: &mut Finder<'_, '_>) {
    finder.cursor.rewind();
    let kind = finder.cursor.kind();
    let own = match kind {
        kinds::BPF => Some(&b"prog-id"[..]),
        kinds::EVENT_LISTENER => Some(&b"nl-mcgrp"[..]),
        _ if kind == kinds::MAC_POLICY_LOAD => Some(&b"lsm"[..]),
        _ => None,
    };
    if let Some(name) = own {
        return take_object(finder, name);
    }

    if finder.cursor.find(b"exe").is_none() {
        return;
    }

    if is_script_runner(&finder.meaning()) {
        match finder.cursor.field_number() {
            0 => finder.cursor.rewind(),
            number => {
                finder.cursor.go_to_field(number - 1);
            }
        }
        finder.cursor.find(b"comm");
    }

    let place: FieldPlace = finder.cursor.place();
    finder.normal.object.place = Some(place);
}
