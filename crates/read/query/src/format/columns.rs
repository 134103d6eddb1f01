//! `--format csv`: a line of comma-separated values per event.

use super::cursor::{Cursor, FieldPlace};
use super::find;
use super::normal::{Finder, Normal};
use super::on_demand::OnDemand;
use crate::event::Event;
use crate::interpret::{FieldType, Interpreter};
use crate::{kind, time, Dialect};
use abi::record_type as kinds;

/// Further columns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Extra {
    /// The first key.
    pub keys: bool,
    /// Labels of subject and object.
    pub labels: bool,
    /// The second object, such as the new name of a rename.
    pub second: bool,
    /// Parts of the time.
    pub time: bool,
}

/// Prints events as lines of comma-separated values.
#[derive(Debug, Clone, Copy, Default)]
pub struct Columns {
    /// Further columns.
    pub extra: Extra,
    has_head: bool,
}

impl Columns {
    /// A table with further columns.
    pub fn new(extra: Extra) -> Columns {
        Columns {
            extra,
            has_head: false,
        }
    }

    /// Appends an event, after the names of the columns if it is the first. Returns the record types of the groups
    /// that could not be told, for error messages.
    pub fn write(
        &mut self,
        event: &Event,
        interpreter: &Interpreter,
        out: &mut Vec<u8>,
    ) -> Vec<&'static str> {
        self.begin(out);
        interpreter.begin_event();
        super::groups(event, interpreter)
            .iter()
            .filter_map(|group| self.group(group, event, interpreter, out))
            .collect()
    }

    /// Appends the names of the columns if they have not been written.
    pub fn begin(&mut self, out: &mut Vec<u8>) {
        if !std::mem::replace(&mut self.has_head, true) {
            self.head(out);
        }
    }

    fn head(&self, out: &mut Vec<u8>) {
        let Extra {
            keys,
            labels,
            second,
            time,
        } = self.extra;

        let part = |is_there, names| if is_there { names } else { "" };
        let line = format!(
            "NODE,EVENT,DATE,TIME,{}SERIAL_NUM,EVENT_KIND,SESSION,SUBJ_PRIME,SUBJ_SEC,SUBJ_KIND,\
             {}ACTION,RESULT,OBJ_PRIME,OBJ_SEC,{}{}OBJ_KIND,HOW{}\n",
            part(time, "YEAR,MONTH,DAY,WEEKDAY,HOUR,MILLI,GMT_OFFSET,"),
            part(labels, "SUBJ_LABEL,"),
            part(second, "OBJ2,"),
            part(labels, "OBJ_LABEL,"),
            part(keys, ",KEY"),
        );

        out.extend_from_slice(line.as_bytes());
    }

    fn group(
        &self,
        records: &[OnDemand<'_>],
        event: &Event,
        interpreter: &Interpreter,
        out: &mut Vec<u8>,
    ) -> Option<&'static str> {
        let key = event.key();
        let mut finder = Finder::new(records, key.sec, interpreter, self.extra.labels);
        let name = u32::try_from(finder.cursor.kind())
            .ok()
            .and_then(|kind| kind::name(kind, interpreter.dialect()));
        if key.node.is_some() {
            out.extend(super::node(&finder.cursor, interpreter));
        }

        out.push(b',');
        match name {
            None if interpreter.dialect() == Dialect::Own => {
                out.extend_from_slice(records.first().map_or(&b""[..], OnDemand::type_name));
            }
            name => out.extend_from_slice(name.unwrap_or_default().as_bytes()),
        }

        out.push(b',');
        let found = find::parts(&mut finder);
        time::write_columns(
            key.sec,
            key.msec,
            self.extra.time,
            interpreter.dialect(),
            out,
        );

        out.extend_from_slice(format!("{},", key.serial).as_bytes());
        if found.is_err() {
            out.extend_from_slice(b",,,,,,,,,");
            if self.extra.labels {
                out.extend_from_slice(b",,");
            }
            if self.extra.keys {
                out.push(b',');
            }
            out.push(b'\n');
            return Some(name.unwrap_or("(null)"));
        }

        let mut line = Line {
            cursor: finder.cursor,
            records,
            interpreter,
            out,
        };
        line.write(&finder.normal, self.extra);

        None
    }
}

struct Line<'l, 'c, 'e> {
    cursor: Cursor<'c, 'e>,
    records: &'l [OnDemand<'e>],
    interpreter: &'l Interpreter,
    out: &'l mut Vec<u8>,
}

impl Line<'_, '_, '_> {
    fn write(&mut self, normal: &Normal, extra: Extra) {
        let action = normal.action.as_deref();
        self.text(normal.kind.unwrap_or("unknown").as_bytes());
        self.field(normal.session);
        if self.go_to(normal.subject.id) {
            let name = self.cursor.meaning(self.interpreter).unwrap_or_default();
            self.cell(super::or_system(&name));
        }

        self.out.push(b',');
        self.field(normal.subject.acting);
        self.text(normal.subject.account.unwrap_or_default().as_bytes());
        if extra.labels {
            self.label(&normal.subject.fields, b"subj");
        }

        self.text(action.unwrap_or(b"did-unknown"));
        if self.go_to(normal.result) {
            let is_success = super::is_success(&self.cursor, self.interpreter);
            let word = if is_success { "success" } else { "failed" };
            self.out.extend_from_slice(word.as_bytes());
        }

        self.out.push(b',');
        self.object(normal, action);
        self.field(normal.object.detail);
        if extra.second {
            if self.go_to(normal.object.second) {
                let path = super::path_or_meaning(&self.cursor, self.records, self.interpreter);
                self.cell(&path);
            }
            self.out.push(b',');
        }

        if extra.labels {
            self.label(&normal.object.fields, b"obj");
        }

        self.text(normal.object.thing.name().as_bytes());
        self.cell(normal.how.as_deref().unwrap_or_default());
        if extra.keys {
            self.out.push(b',');
            if self.go_to(normal.key) {
                self.meaning();
            }
        }

        self.out.push(b'\n');
    }

    fn go_to(&mut self, place: Option<FieldPlace>) -> bool {
        place.is_some_and(|place| self.cursor.go_to(place))
    }

    fn text(&mut self, text: &[u8]) {
        self.cell(text);
        self.out.push(b',');
    }

    /// Adds a value. Without `--compat`, one with a comma, a quote or a line break is quoted (RFC 4180, section 2);
    /// ausearch does not quote.
    fn cell(&mut self, value: &[u8]) {
        let needs_quotes = |byte: &u8| matches!(byte, b',' | b'"' | b'\n' | b'\r');
        let is_own = self.interpreter.dialect() == Dialect::Own;
        if !is_own || !value.iter().any(needs_quotes) {
            return self.out.extend_from_slice(value);
        }

        self.out.push(b'"');
        for &byte in value {
            if byte == b'"' {
                self.out.push(b'"');
            }
            self.out.push(byte);
        }

        self.out.push(b'"');
    }

    fn meaning(&mut self) {
        let meaning = self.cursor.meaning(self.interpreter).unwrap_or_default();
        self.cell(&meaning);
    }

    fn field(&mut self, place: Option<FieldPlace>) {
        if self.go_to(place) {
            self.meaning();
        }
        self.out.push(b',');
    }

    fn object(&mut self, normal: &Normal, action: Option<&[u8]>) {
        if self.go_to(normal.object.place) {
            let is_change = self.cursor.kind() == kinds::CONFIG_CHANGE;
            let is_file = self.cursor.field_type() == FieldType::EscapedFile;
            let text = if is_change && !is_file && super::is_setting(action) {
                self.cursor.name().unwrap_or_default().to_vec()
            } else {
                super::path_or_meaning(&self.cursor, self.records, self.interpreter)
            };
            self.cell(&text);
        }
        self.out.push(b',');
    }

    /// The first of the fields that has this name.
    fn label(&mut self, places: &[FieldPlace], name: &[u8]) {
        for place in places {
            if !self.cursor.go_to(*place) {
                break;
            }
            if self.cursor.name() == Some(name) {
                self.meaning();
                break;
            }
        }
        self.out.push(b',');
    }
}
