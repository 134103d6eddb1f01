//! `--format csv`: a line of comma-separated values per event.

use super::cursor::{Cursor, FieldPlace};
use super::find;
use super::normal::{Finder, Normal};
use super::on_demand::OnDemand;
use crate::event::{Event, Record};
use crate::interpret::{Context, FieldType, Interpretations, Interpreter, Machine};
use crate::memo::{Memo, MemoKey};
use crate::usual::{caller_names, UsualCall};
use crate::{kind, time, Dialect};
use abi::record_type as kinds;
use std::io::Write;
use std::sync::Arc;

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
#[derive(Debug, Default)]
pub struct Columns {
    /// Further columns.
    pub extra: Extra,
    has_head: bool,
    callers: Memo<Arc<CallerCells>>,
}

/// A call in the usual form.
struct KnownCall {
    name: Vec<u8>,
    is_success: bool,
    caller: Arc<CallerCells>,
}

/// The cells about who made a call, which are the same for many calls.
#[derive(Debug)]
struct CallerCells {
    session: Box<[u8]>,
    subject: Box<[u8]>,
    acting: Box<[u8]>,
    account: &'static str,
    /// The program, not as a cell: some calls have another word for how they were made.
    how: Option<Vec<u8>>,
    key: Box<[u8]>,
}

impl CallerCells {
    /// The cells that the record of a call fills, the first of an event.
    fn of(event: &Event, record: Record<'_>, interpreter: &Interpreter) -> Option<CallerCells> {
        let records = [OnDemand::new(record, interpreter.dialect())];
        let mut finder = Finder::new(&records, event.key().sec, interpreter, false);
        find::parts(&mut finder).ok()?;
        let mut out = Vec::new();
        let mut line = Line {
            cursor: finder.cursor,
            records: &records,
            interpreter,
            out: &mut out,
        };

        let normal = &finder.normal;
        let mut cell = |write: &dyn Fn(&mut Line<'_, '_, '_>)| {
            write(&mut line);
            Box::from(std::mem::take(line.out))
        };
        Some(CallerCells {
            session: cell(&|line| line.field(normal.session)),
            subject: cell(&|line| line.subject(normal.subject.id)),
            acting: cell(&|line| line.field(normal.subject.acting)),
            account: normal.subject.account.unwrap_or_default(),
            key: cell(&|line| line.key(normal.key)),
            how: normal.how.clone(),
        })
    }
}

/// The name of a call, as a line shows it.
fn call_name(call: &UsualCall, names: Option<&[u8]>, interpreter: &Interpreter) -> Vec<u8> {
    let names = names.and_then(Interpretations::read);
    let context = Context {
        machine: Machine::of_elf(call.arch),
        syscall: call.number,
        names: names.as_ref(),
        ..Context::of_kind(kinds::SYSCALL)
    };
    interpreter.value_of_type(FieldType::Syscall, &context, b"syscall", b"")
}

impl Columns {
    /// A table with further columns.
    pub fn new(extra: Extra) -> Columns {
        Columns {
            extra,
            ..Columns::default()
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
        if let Some(call) = self.usual_call(event, interpreter) {
            let dialect = interpreter.dialect();
            let records = event.records();
            let records: Vec<_> = records
                .map(|record| OnDemand::of_call(record, dialect))
                .collect();
            let untold = self.group(&records, event, Some(&call), interpreter, out);
            return untold.into_iter().collect();
        }

        super::groups(event, interpreter)
            .iter()
            .filter_map(|group| self.group(group, event, None, interpreter, out))
            .collect()
    }

    /// The call that an event is about, with its name and the cells about who made it, if these can be used again.
    fn usual_call(&mut self, event: &Event, interpreter: &Interpreter) -> Option<KnownCall> {
        if interpreter.dialect().is_compat() || self.extra.labels {
            return None;
        }
        let call = UsualCall::of_event(event.view())?;
        let record = event.records().next()?;
        let name = call_name(&call, record.names, interpreter);
        // Such a call stands for several others, by its first argument.
        if matches!(&name[..], b"socketcall" | b"ipc") {
            return None;
        }
        Some(KnownCall {
            name,
            is_success: call.is_success,
            caller: self.caller(event, &call, interpreter)?,
        })
    }

    /// The cells about who made a call, which stands in its record before the key of the rule.
    fn caller(
        &mut self,
        event: &Event,
        call: &UsualCall,
        interpreter: &Interpreter,
    ) -> Option<Arc<CallerCells>> {
        let record = event.records().next()?;
        let names = caller_names(record.names.unwrap_or_default());
        let end = if self.extra.keys {
            record.text.len()
        } else {
            call.key_at(record.text)?
        };
        let key: MemoKey<'_> = [&record.text[call.caller_at..end], names];
        let slot = self.callers.place(key);
        if let Some(cells) = self.callers.get(slot, key) {
            return Some(Arc::clone(cells));
        }

        // What is kept was in the usual form, so are the same bytes.
        call.caller(record.text)?;
        let cells = Arc::new(CallerCells::of(event, record, interpreter)?);
        // What is forgotten can be found again.
        drop(self.callers.put(slot, key, Arc::clone(&cells)));
        Some(cells)
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
        call: Option<&KnownCall>,
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
        let found = match call {
            Some(call) => {
                finder.normal.how.clone_from(&call.caller.how);
                find::deed(&mut finder, &call.name, call.is_success);
                Ok(())
            }
            None => find::parts(&mut finder),
        };
        time::write_columns(
            key.sec,
            key.msec,
            self.extra.time,
            interpreter.dialect(),
            out,
        );

        // A vector takes everything.
        let _ = write!(out, "{},", key.serial);
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
        line.write(&finder.normal, call, self.extra);

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
    fn write(&mut self, normal: &Normal, call: Option<&KnownCall>, extra: Extra) {
        let action = normal.action.as_deref();
        self.word(normal.kind.unwrap_or("unknown"));
        match call {
            Some(call) => {
                let caller = &call.caller;
                for cell in [&caller.session, &caller.subject, &caller.acting] {
                    self.out.extend_from_slice(cell);
                }
                self.word(caller.account);
            }
            None => {
                self.field(normal.session);
                self.subject(normal.subject.id);
                self.field(normal.subject.acting);
                self.word(normal.subject.account.unwrap_or_default());
            }
        }

        if extra.labels {
            self.label(&normal.subject.fields, b"subj");
        }

        self.text(action.unwrap_or(b"did-unknown"));
        let is_success = match call {
            Some(call) => Some(call.is_success),
            None if self.go_to(normal.result) => {
                Some(super::is_success(&self.cursor, self.interpreter))
            }
            None => None,
        };
        if let Some(is_success) = is_success {
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

        self.word(normal.object.thing.name());
        self.cell(normal.how.as_deref().unwrap_or_default());
        if extra.keys {
            self.out.push(b',');
            match call {
                Some(call) => self.out.extend_from_slice(&call.caller.key),
                None => self.key(normal.key),
            }
        }

        self.out.push(b'\n');
    }

    /// The login user.
    fn subject(&mut self, place: Option<FieldPlace>) {
        if self.go_to(place) {
            let name = self.cursor.meaning(self.interpreter).unwrap_or_default();
            self.cell(super::or_system(&name));
        }
        self.out.push(b',');
    }

    fn key(&mut self, place: Option<FieldPlace>) {
        if self.go_to(place) {
            self.meaning();
        }
    }

    fn go_to(&mut self, place: Option<FieldPlace>) -> bool {
        place.is_some_and(|place| self.cursor.go_to(place))
    }

    fn text(&mut self, text: &[u8]) {
        self.cell(text);
        self.out.push(b',');
    }

    /// A cell with a word that is not the log's, and needs no quotes.
    fn word(&mut self, word: &'static str) {
        self.out.extend_from_slice(word.as_bytes());
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
