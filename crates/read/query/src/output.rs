//! Events as text.

use crate::event::Event;
use crate::{time, Dialect, Escape, SEPARATOR};
use abi::record_type as kinds;

/// Appends the lines of an event as the log has them.
///
/// With `--compat` every line of an event with interpretations has the byte 0x1d, as in ausearch.
pub fn write_raw(event: &Event, dialect: Dialect, out: &mut Vec<u8>) {
    if dialect == Dialect::Own {
        for line in event.lines() {
            out.extend_from_slice(line);
            out.push(b'\n');
        }
        return;
    }

    let is_enriched = event.is_enriched();
    for record in event.records() {
        out.extend_from_slice(record.text);
        if is_enriched {
            out.push(SEPARATOR);
        }
        out.extend_from_slice(record.names.unwrap_or_default());
        out.push(b'\n');
    }
}

/// Appends an event in ausearch's default format: its time, then its records from last to first.
/// Control characters become `\ooo`, and what else `escape` says.
pub fn write_default(event: &Event, escape: Escape, out: &mut Vec<u8>) {
    out.extend_from_slice(b"----\ntime->");
    time::write_ctime(event.key().sec, out);
    let mut records = event.records().rev();
    if let Some(last) = records.next() {
        let is_of_daemon = (kinds::FIRST_DAEMON..=kinds::LAST_DAEMON).contains(&last.kind);
        if is_of_daemon {
            out.extend_from_slice(last.text);
            out.push(b'\n');
            return;
        }
        write_escaped(last.text, escape, out);
        for record in records {
            write_escaped(record.text, escape, out);
        }
    }
}

pub(crate) fn write_escaped(text: &[u8], escape: Escape, out: &mut Vec<u8>) {
    escape.write(text, out);
    out.push(b'\n');
}
