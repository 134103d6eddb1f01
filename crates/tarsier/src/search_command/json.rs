//! Events as JSON, in the form of `log_format = JSON`.

use event::{Encoder, Format, NoNames, Stamp};
use query::Event;

/// Arrangement of objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum JsonForm {
    /// `--format jsonl`: a line for each.
    Lines,
    /// `--format json`: an array.
    Array,
}

/// Writes events as JSON.
pub(super) struct Json {
    form: JsonForm,
    encoder: Encoder,
    count: u64,
}

impl Json {
    pub(super) fn new(form: JsonForm) -> Json {
        Json {
            form,
            encoder: Encoder::new(Format::Json, Box::new(NoNames)),
            count: 0,
        }
    }

    /// Appends an event.
    pub(super) fn write(&mut self, event: &Event, out: &mut Vec<u8>) {
        if self.form == JsonForm::Array {
            out.extend_from_slice(if self.count == 0 { b"[" } else { b"," });
        }
        self.count += 1;
        let key = event.key();
        let stamp = Stamp {
            sec: key.sec,
            msec: key.msec as u16,
            serial: u32::try_from(key.serial).unwrap_or(u32::MAX),
        };
        self.encoder.set_node(key.node.as_deref());
        let mut writer = self.encoder.begin(out, stamp);
        for record in event.records() {
            // What follows `audit(…):`.
            let head =
                memchr::memmem::find(record.text, b"): ").map_or(record.text.len(), |at| at + 3);
            writer.raw(
                u16::try_from(record.kind).unwrap_or(0),
                &record.text[head..],
            );
        }
        writer.end();
    }

    /// Appends the end of the array.
    pub(super) fn end(&mut self, out: &mut Vec<u8>) {
        if self.form == JsonForm::Array {
            out.extend_from_slice(if self.count == 0 { b"[]\n" } else { b"]\n" });
        }
    }
}
