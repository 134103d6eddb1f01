//! Subject, action, object and result: the parts of an event that auparse's normalizer finds.

use super::cursor::{Cursor, FieldPlace};
use super::on_demand::OnDemand;
use super::thing::Thing;
use super::verbs;
use crate::interpret::{FieldType, Interpreter};
use crate::Dialect;

/// Actor of an event. Places are of fields.
#[derive(Debug, Default)]
pub(super) struct Subject {
    /// Login id, or another field that says who acts.
    pub(super) id: Option<FieldPlace>,
    /// User, who may differ from `id`.
    pub(super) acting: Option<FieldPlace>,
    pub(super) account: Option<&'static str>,
    /// Further fields of the subject, which may include its label.
    pub(super) fields: Vec<FieldPlace>,
}

/// Object that is acted on. Places are of fields.
#[derive(Debug, Default)]
pub(super) struct Object {
    pub(super) place: Option<FieldPlace>,
    pub(super) detail: Option<FieldPlace>,
    /// A second object, such as the new name of a rename.
    pub(super) second: Option<FieldPlace>,
    pub(super) fields: Vec<FieldPlace>,
    pub(super) thing: Thing,
}

/// The parts of an event. Places are of fields.
#[derive(Debug, Default)]
pub(super) struct Normal {
    /// Group of record types.
    pub(super) kind: Option<&'static str>,
    pub(super) session: Option<FieldPlace>,
    pub(super) subject: Subject,
    pub(super) action: Option<Vec<u8>>,
    pub(super) result: Option<FieldPlace>,
    pub(super) object: Object,
    pub(super) how: Option<Vec<u8>>,
    pub(super) key: Option<FieldPlace>,
}

/// Collects the parts of an event while the cursor moves over its records.
pub(super) struct Finder<'c, 'e> {
    pub(super) cursor: Cursor<'c, 'e>,
    pub(super) interpreter: &'c Interpreter,
    /// Whether to look for labels and other fields of subject and object.
    pub(super) has_fields: bool,
    pub(super) normal: Normal,
    /// `success=` of the call: 1, 0, or -1 if it has none.
    pub(super) success: i32,
}

/// Programs that run scripts: the task's name says more than the program.
const INTERPRETERS: [&[u8]; 4] = [
    b"/usr/bin/python",
    b"/usr/bin/sh",
    b"/usr/bin/bash",
    b"/usr/bin/perl",
];

pub(super) fn is_script_runner(exe: &[u8]) -> bool {
    INTERPRETERS.iter().any(|name| exe.starts_with(name))
}

impl<'c, 'e> Finder<'c, 'e> {
    pub(super) fn new(
        records: &'c [OnDemand<'e>],
        sec: u64,
        interpreter: &'c Interpreter,
        has_fields: bool,
    ) -> Finder<'c, 'e> {
        Finder {
            cursor: Cursor::new(records, sec, interpreter.dialect()),
            interpreter,
            has_fields,
            normal: Normal::default(),
            success: -1,
        }
    }

    /// The field that the cursor finds, as one of record `record`.
    pub(super) fn find_in(&mut self, name: &[u8], record: usize) -> Option<FieldPlace> {
        self.cursor.find(name)?;
        Some(self.found_in(record))
    }

    /// The place that the cursor has found. auparse takes it for one of record `record`, even if the search went on into
    /// another one.
    pub(super) fn found_in(&self, record: usize) -> FieldPlace {
        match self.interpreter.dialect() {
            Dialect::Own => self.cursor.place(),
            _ => self.cursor.place_in(record),
        }
    }

    pub(super) fn find_place(&mut self, name: &[u8]) -> Option<FieldPlace> {
        self.cursor.find(name)?;
        Some(self.cursor.place())
    }

    pub(super) fn meaning(&self) -> Vec<u8> {
        self.cursor.meaning(self.interpreter).unwrap_or_default()
    }

    pub(super) fn subject(&mut self, name: &[u8], record: usize) -> bool {
        let found = self.find_in(name, record);
        self.normal.subject.id = found.or(self.normal.subject.id);
        found.is_some()
    }

    /// The user, and what kind of account it is.
    pub(super) fn acting(&mut self, name: &[u8], record: usize) -> bool {
        let Some(place) = self.find_in(name, record) else {
            return false;
        };
        self.normal.subject.acting = Some(place);
        self.account()
    }

    /// Notes the kind of account that the cursor's field names. False if it names none.
    pub(super) fn account(&mut self) -> bool {
        let id = match self.cursor.field_type() {
            FieldType::Uid if self.interpreter.dialect() == Dialect::Own => {
                self.cursor.number().map(|id| id as u32)
            }
            FieldType::Uid => Some(self.cursor.number().unwrap_or(-1) as u32),
            _ if self.cursor.name() == Some(b"acct") => self.interpreter.user_id(&self.meaning()),
            _ => None,
        };
        self.normal.subject.account = Some(match id {
            Some(0) => "privileged-acct",
            Some(u32::MAX) => "unset-acct",
            // The id is compared as a number with a sign.
            Some(id) if (id as i32) < 1000 => "service-acct",
            Some(id) if (id as i32) < 60000 => "user-acct",
            _ => "unknown-acct",
        });

        id.is_some()
    }

    pub(super) fn object(&mut self, name: &[u8], record: usize) -> bool {
        let found = self.find_in(name, record);
        self.normal.object.place = found.or(self.normal.object.place);
        found.is_some()
    }

    pub(super) fn session(&mut self, record: usize) -> bool {
        let found = self.find_in(b"ses", record);
        match found {
            Some(place) => self.normal.session = Some(place),
            None => self.cursor.rewind(),
        }
        found.is_some()
    }

    pub(super) fn result(&mut self, record: usize) {
        if let Some(place) = self.find_in(b"res", record) {
            self.normal.result = Some(place);
        }
    }

    /// A further field of the subject. Goes to the record if it is not found.
    pub(super) fn subject_field(&mut self, name: &[u8], record: usize) {
        match self.find_in(name, record) {
            Some(place) => self.normal.subject.fields.push(place),
            None => {
                self.cursor.go_to_record(record);
            }
        }
    }

    /// A further field of the object. Goes to the record if it is not found.
    pub(super) fn object_field(&mut self, name: &[u8], record: usize) -> bool {
        let found = self.find_in(name, record);
        match found {
            Some(place) => self.normal.object.fields.push(place),
            None => {
                self.cursor.go_to_record(record);
            }
        }
        found.is_some()
    }

    pub(super) fn act(&mut self, action: &str) {
        self.normal.action = Some(action.into());
    }

    /// The action by record type, if there is one.
    pub(super) fn act_by_kind(&mut self, kind: i32) {
        if let Some(action) = verbs::of_record(kind) {
            self.act(action);
        }
    }

    /// The program, or the task's name if the program runs others.
    pub(super) fn how(&mut self) -> bool {
        if self.cursor.find(b"exe").is_none() {
            return false;
        }

        let exe = self.meaning();
        let is_runner = is_script_runner(&exe);
        self.normal.how = Some(exe);
        if is_runner {
            // `comm` stands before `exe`.
            match self.cursor.field_number() {
                0 => self.cursor.rewind(),
                number => {
                    self.cursor.go_to_field(number - 1);
                }
            }
            if self.cursor.find(b"comm").is_some() {
                self.normal.how = Some(self.meaning());
            }
        }

        true
    }
}
