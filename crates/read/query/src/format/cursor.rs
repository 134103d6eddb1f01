//! A cursor over the fields of an event, which moves as auparse's does.
//!
//! A search for a field goes on from where the last one ended, into the records that follow. What is found therefore
//! depends on what was looked for before.

use super::on_demand::OnDemand;
use crate::interpret::{field_type, is_missing, Field, FieldType, Interpreter};
use crate::number::signed_decimal;
use crate::Dialect;

/// Place of a field: record number and field number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FieldPlace {
    pub(crate) record: usize,
    pub(crate) field: usize,
}

pub(crate) struct Cursor<'c, 'e> {
    records: &'c [OnDemand<'e>],
    /// `None` behind the last record.
    at: Option<usize>,
    /// The current field of each record.
    fields: Vec<usize>,
    /// auparse finds nothing in events of second 0 of 1970.
    is_blind: bool,
    /// To auparse, a text without digits is the number 0.
    is_compat: bool,
}

impl<'c, 'e> Cursor<'c, 'e> {
    pub(crate) fn new(records: &'c [OnDemand<'e>], sec: u64, dialect: Dialect) -> Cursor<'c, 'e> {
        Cursor {
            records,
            at: Some(0),
            fields: vec![0; records.len()],
            is_blind: sec == 0 && dialect.is_compat(),
            is_compat: dialect.is_compat(),
        }
    }

    pub(crate) fn record_count(&self) -> usize {
        self.records.len()
    }

    fn record(&self) -> Option<&'c OnDemand<'e>> {
        Some(&self.records[self.at?])
    }

    /// The field at the cursor.
    fn field(&self) -> Option<&'c Field<'e>> {
        if self.is_blind {
            return None;
        }
        let at = self.at?;
        self.records[at].fields.get(self.fields[at])
    }

    /// Type of the record; 0 behind the last.
    pub(crate) fn kind(&self) -> i32 {
        self.record().map_or(0, |record| record.kind)
    }

    /// Number of the record; 0 behind the last.
    pub(crate) fn record_number(&self) -> usize {
        self.at.unwrap_or(0)
    }

    pub(crate) fn field_number(&self) -> usize {
        self.at.map_or(0, |at| self.fields[at])
    }

    /// Goes to the first field of the first record.
    pub(crate) fn rewind(&mut self) {
        self.at = Some(0);
        self.fields[0] = 0;
    }

    /// Goes to the next record, at the field where the cursor last was in that record.
    pub(crate) fn next_record(&mut self) -> bool {
        self.at = self
            .at
            .map(|at| at + 1)
            .filter(|at| *at < self.records.len());
        self.at.is_some()
    }

    /// Goes to the first field of a record, if there is that record.
    pub(crate) fn go_to_record(&mut self, number: usize) -> bool {
        if number >= self.records.len() {
            return false;
        }
        self.at = Some(number);
        self.fields[number] = 0;
        true
    }

    pub(crate) fn first_field(&mut self) {
        if let Some(at) = self.at {
            self.fields[at] = 0;
        }
    }

    pub(crate) fn next_field(&mut self) -> bool {
        let Some(at) = self.at else {
            return false;
        };
        let has_next = self.fields[at] + 1 < self.records[at].fields.len();
        self.fields[at] += usize::from(has_next);
        has_next
    }

    pub(crate) fn go_to_field(&mut self, number: usize) -> bool {
        match self.at {
            Some(at) if number < self.records[at].fields.len() => {
                self.fields[at] = number;
                true
            }
            _ => false,
        }
    }

    pub(crate) fn go_to(&mut self, place: FieldPlace) -> bool {
        self.go_to_record(place.record) && self.go_to_field(place.field)
    }

    /// Looks for a field from here on.
    pub(crate) fn find(&mut self, name: &[u8]) -> Option<&'c [u8]> {
        if self.name()? == name {
            return self.value();
        }

        self.next_field().then_some(())?;
        loop {
            let at = self.at?;
            let fields = &self.records[at].fields;
            let found = (self.fields[at]..fields.len()).find(|field| *fields[*field].name == *name);
            if let Some(field) = found {
                self.fields[at] = field;
                return self.value();
            }
            self.next_record().then_some(())?;
            self.first_field();
        }
    }

    /// Looks for a field in all records.
    pub(crate) fn find_anywhere(&mut self, name: &[u8]) -> Option<&'c [u8]> {
        self.rewind();
        self.find(name)
    }

    pub(crate) fn name(&self) -> Option<&'c [u8]> {
        Some(self.field()?.name)
    }

    pub(crate) fn value(&self) -> Option<&'c [u8]> {
        let field = self.field()?;
        // auparse has no value for a key that it cannot read.
        let is_null = *field.name == *b"key" && field.value.is_empty();
        (!is_null).then_some(&*field.value)
    }

    pub(crate) fn field_type(&self) -> FieldType {
        match (self.name(), self.value()) {
            (Some(name), Some(value)) => field_type(self.kind(), name, value),
            _ => FieldType::Unclassified,
        }
    }

    /// The value as a decimal number of 32 bits; `None` if it is out of range or there is none.
    pub(crate) fn number(&self) -> Option<i32> {
        let value = self.value()?;
        if !self.is_compat && is_missing(value) {
            return None;
        }
        signed_decimal(value).ok().map(|number| number as i32)
    }

    /// The meaning of the value.
    pub(crate) fn meaning(&self, interpreter: &Interpreter) -> Option<Vec<u8>> {
        let record = self.record()?;
        let mut context = record.context();
        context.nth = record.nth(self.field_number());
        Some(interpreter.value(&context, self.name()?, self.value()?))
    }

    /// The meaning of the value, a path, joined to the working directory.
    pub(crate) fn path(&self, cwd: Option<&[u8]>, interpreter: &Interpreter) -> Option<Vec<u8>> {
        let record = self.record()?;
        let mut context = record.context();
        context.cwd = cwd;
        Some(interpreter.value(&context, self.name()?, self.value()?))
    }

    /// The place of the current field, but in record `record`.
    pub(crate) fn place_in(&self, record: usize) -> FieldPlace {
        FieldPlace {
            record,
            field: self.field_number(),
        }
    }

    pub(crate) fn place(&self) -> FieldPlace {
        self.place_in(self.record_number())
    }
}
