//! Events as ausearch prints them with `-i`, `--format csv` and `--format text`.
//!
//! * [`Interpreted`]: records with the meaning of their values.
//! * [`Columns`]: a line of comma-separated values per event.
//! * [`Sentences`]: a sentence per event.
//!
//! The last two say who did what to whom and how, as [`normal`] finds it.

mod columns;
pub(crate) mod cursor;
mod find;
mod interpreted;
mod normal;
mod objects;
pub(crate) mod on_demand;
mod sentences;
mod simple;
mod thing;
mod verbs;

pub use columns::{Columns, Extra};
pub use interpreted::Interpreted;
pub use sentences::Sentences;

use crate::event::{Event, Record};
use crate::{Dialect, FieldType, Interpreter};
use abi::record_type as kinds;
use on_demand::OnDemand;

/// The records of an event as auparse groups them: it takes some types for the end of an event.
fn groups<'e>(event: &'e Event, interpreter: &Interpreter) -> Vec<Vec<OnDemand<'e>>> {
    let dialect = interpreter.dialect();
    let mut groups: Vec<Vec<OnDemand<'e>>> = Vec::new();
    let mut is_open = false;
    for record in event.records() {
        if dialect.is_compat() && !has_stamp(record.text) {
            continue;
        }
        let fields = OnDemand::new(record, dialect);
        let ends = dialect.is_compat() && ends_event(&fields, dialect);
        match groups.last_mut() {
            Some(group) if is_open => group.push(fields),
            _ => {
                let mut group = Vec::with_capacity(event.records().len());
                group.push(fields);
                groups.push(group);
            }
        }
        is_open = !ends;
    }

    groups
}

/// Whether the time is long enough for auparse, which sees lines without their newlines.
fn has_stamp(text: &[u8]) -> bool {
    let mut words = text
        .split(|byte| *byte == b' ')
        .filter(|word| !word.is_empty());
    let first = words.next().unwrap_or_default();
    if first.first() == Some(&b'n') && first.len() > 5 {
        words.next();
    }
    words.next().is_some_and(|stamp| stamp.len() > 18)
}

fn ends_event(record: &OnDemand<'_>, dialect: Dialect) -> bool {
    record.kind == kinds::EOE || crate::kind::is_single(record.kind, dialect)
}

/// The text of a record without its node.
fn without_node<'e>(record: &Record<'e>, event: &Event) -> &'e [u8] {
    match (&event.key().node, memchr::memchr(b' ', record.text)) {
        (Some(_), Some(end)) => &record.text[end + 1..],
        _ => record.text,
    }
}

/// Name of the login user; `system` if no login id is set.
fn or_system(name: &[u8]) -> &[u8] {
    match name {
        b"unset" => b"system",
        _ => name,
    }
}

/// Whether the field at the cursor says that the action succeeded.
fn is_success(cursor: &cursor::Cursor<'_, '_>, interpreter: &Interpreter) -> bool {
    let result = cursor.meaning(interpreter).unwrap_or_default();
    result == b"yes"
        || result.starts_with(b"suc")
        || (cursor.field_type() == FieldType::Seccomp && result == b"allow")
}

/// Whether the action changes a setting; the setting's name is then the object.
fn is_setting(action: Option<&[u8]>) -> bool {
    matches!(action, Some(b"set" | b"seccomp-logging"))
}

/// The meaning of the field at the cursor. Names of files are joined to the working directory.
fn path_or_meaning(
    cursor: &cursor::Cursor<'_, '_>,
    records: &[OnDemand<'_>],
    interpreter: &Interpreter,
) -> Vec<u8> {
    let cwd = match cursor.field_type() {
        FieldType::EscapedFile => cwd(records),
        _ => None,
    };
    cursor.path(cwd, interpreter).unwrap_or_default()
}

/// The working directory of an event, from its first CWD record.
fn cwd<'r>(records: &'r [OnDemand<'_>]) -> Option<&'r [u8]> {
    records
        .iter()
        .filter(|record| record.kind == abi::record_type::CWD)
        .find_map(|record| record.get(b"cwd"))
}

/// The node, which is the first field.
fn node(cursor: &cursor::Cursor<'_, '_>, interpreter: &Interpreter) -> Vec<u8> {
    let node = cursor.meaning(interpreter);
    node.unwrap_or_else(|| b"(null)".to_vec())
}
