//! `--format text`: a sentence per event.

use super::cursor::Cursor;
use super::find;
use super::normal::Finder;
use super::on_demand::OnDemand;
use crate::event::Event;
use crate::interpret::{FieldType, Interpreter};
use crate::time;

/// Prints events as sentences.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sentences {
    /// Say which types have no action: `--debug`.
    pub is_debug: bool,
}

impl Sentences {
    /// Appends an event.
    pub fn write(&self, event: &Event, interpreter: &Interpreter, out: &mut Vec<u8>) {
        interpreter.begin_event();
        for group in super::groups(event, interpreter) {
            self.group(&group, event, interpreter, out);
        }
    }

    fn group(
        &self,
        records: &[OnDemand<'_>],
        event: &Event,
        interpreter: &Interpreter,
        out: &mut Vec<u8>,
    ) {
        let mut finder = Finder::new(records, event.key().sec, interpreter, false);
        let kind = finder.cursor.kind();
        // What was found is told although the event is not complete.
        let _ = find::parts(&mut finder);
        let (mut cursor, normal) = (finder.cursor, finder.normal);
        let (subject, target) = (normal.subject, normal.object);

        match &event.key().node {
            Some(_) => {
                out.extend_from_slice(b"On ");
                out.extend(super::node(&cursor, interpreter));
                out.extend_from_slice(b" at ");
            }
            None => out.extend_from_slice(b"At "),
        }

        time::write_time_date(event.key().sec, out);
        out.push(b' ');
        let mut subject_id = None;
        if subject.id.is_some_and(|place| cursor.go_to(place)) {
            let name = cursor.meaning(interpreter).unwrap_or_default();
            subject_id = Some(cursor.number().unwrap_or(-1));
            out.extend_from_slice(super::or_system(&name));
        }

        if subject.acting.is_some_and(|place| cursor.go_to(place)) {
            let id = cursor.number().unwrap_or(-1);
            if subject_id.is_some_and(|subject| subject != id && subject != -2) && id != -1 {
                out.extend_from_slice(b", acting as ");
                out.extend(cursor.meaning(interpreter).unwrap_or_default());
                out.push(b',');
            }
        }

        if normal.result.is_some_and(|place| cursor.go_to(place)) {
            out.extend_from_slice(if super::is_success(&cursor, interpreter) {
                b" successfully "
            } else {
                b" unsuccessfully "
            });
        } else {
            out.push(b' ');
        }

        let action = normal.action.as_deref();
        if self.is_debug && action.is_none() {
            out.extend_from_slice(format!("error on type:{kind}\n").as_bytes());
        }

        out.extend_from_slice(action.unwrap_or(b"did-unknown"));
        out.push(b' ');
        if target.place.is_some_and(|place| cursor.go_to(place)) {
            out.extend(object(&cursor, records, kind, action, interpreter));
            out.push(b' ');
        }

        if target.second.is_some_and(|place| cursor.go_to(place)) {
            out.extend_from_slice(b"to ");
            out.extend(super::path_or_meaning(&cursor, records, interpreter));
            out.push(b' ');
        }

        if let (Some(how), Some(action)) = (&normal.how, action) {
            // Not for sessions that end.
            if action.first() != Some(&b'e') {
                out.extend_from_slice(b"using ");
                out.extend_from_slice(how);
            }
        }

        out.push(b'\n');
    }
}

fn object(
    cursor: &Cursor<'_, '_>,
    records: &[OnDemand<'_>],
    kind: i32,
    action: Option<&[u8]>,
    interpreter: &Interpreter,
) -> Vec<u8> {
    let meaning = || cursor.meaning(interpreter).unwrap_or_default();
    match cursor.field_type() {
        FieldType::EscapedFile => super::path_or_meaning(cursor, records, interpreter),
        FieldType::Sockaddr => {
            let address = meaning();
            let part = |name: &[u8]| {
                let from = memchr::memmem::find(&address, name)? + name.len();
                let end = memchr::memchr(b' ', &address[from..])?;
                Some(address[from..from + end].to_vec())
            };
            part(b"laddr=")
                .or_else(|| part(b"fam="))
                .unwrap_or(address.clone())
        }
        _ if kind == abi::record_type::CONFIG_CHANGE && super::is_setting(action) => {
            cursor.name().unwrap_or_default().to_vec()
        }
        _ => meaning(),
    }
}
