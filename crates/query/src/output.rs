//! Events as text.

use crate::event::Event;
use crate::{time, Dialect, SEPARATOR};

/// Appends the lines of an event as the log has them.
///
/// With a dialect every line of an event with interpretations has the byte 0x1d, as in ausearch.
pub fn write_raw(event: &Event, dialect: Dialect, out: &mut Vec<u8>) {
    let is_enriched = event.is_enriched();
    for record in event.records() {
        out.extend_from_slice(record.text);
        if record.names.is_some() || (is_enriched && dialect.is_peer()) {
            out.push(SEPARATOR);
        }
        out.extend_from_slice(record.names.unwrap_or_default());
        out.push(b'\n');
    }
}

/// Appends an event as ausearch does without a format: its time, and its records, last one first.
/// Control characters become `\ooo`.
pub fn write_default(event: &Event, out: &mut Vec<u8>) {
    out.extend_from_slice(b"----\ntime->");
    time::write_ctime(event.key().sec, out);
    let mut records = event.records().rev();
    if let Some(last) = records.next() {
        let is_of_daemon = (1200..1300).contains(&last.kind);
        if is_of_daemon {
            out.extend_from_slice(last.text);
            out.push(b'\n');
            return;
        }
        write_escaped(last.text, out);
        for record in records {
            write_escaped(record.text, out);
        }
    }
}

pub(crate) fn write_escaped(text: &[u8], out: &mut Vec<u8>) {
    for byte in text {
        match byte {
            0..=31 => out.extend([
                b'\\',
                b'0' + (byte >> 6),
                b'0' + (byte >> 3 & 7),
                b'0' + (byte & 7),
            ]),
            _ => out.push(*byte),
        }
    }
    out.push(b'\n');
}
