//! Encodes records as log lines.

use crate::controls::without_controls;
use crate::interpretations::{Deciding, Interpretations};
use crate::pending::Pending;
use crate::record::{Body, Execve, Syscall};
use crate::tasks::TaskTexts;
use crate::{
    hashes, json, labels, put, text, FileHash, Names, ProcessText, RecordType, Stamp, WorkloadText,
};

/// Format of the lines of the log: `log_format` of auditd.conf(5), and JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// The kernel's text.
    Raw,
    /// RAW, then byte 0x1d, then the names of numbers, as auditd 3.0.9 appends them.
    Enriched,
    /// One object for each event: see `docs/json.md` of this crate.
    Json,
}

/// Makes log lines in one format. Keep it and reuse it: its buffers grow to the size of the largest event.
pub struct Encoder {
    format: Format,
    node: Vec<u8>,
    names: Box<dyn Names + Send>,
    interpretations: Interpretations,
    /// `audit(…): ` of the current event.
    stamp_text: Vec<u8>,
    /// The time in `stamp_text`, and the length of its text: the next event often has the same millisecond.
    stamp_time: Option<(u64, u16, usize)>,
    tasks: TaskTexts,
    pending: Pending,
    tells_workload: bool,
    tells_labels: bool,
    tells_hashes: bool,
    /// Workload, ancestors, labels and digests of the current event, for its first record in ENRICHED.
    first_tail: Vec<u8>,
}

impl Encoder {
    /// An encoder for `format`. `names` is only used in [`Format::Enriched`].
    pub fn new(format: Format, names: Box<dyn Names + Send>) -> Encoder {
        Encoder {
            format,
            node: Vec::new(),
            names,
            interpretations: Interpretations::default(),
            stamp_text: Vec::new(),
            stamp_time: None,
            tasks: TaskTexts::default(),
            pending: Pending::default(),
            tells_workload: false,
            tells_labels: false,
            tells_hashes: false,
            first_tail: Vec::new(),
        }
    }

    /// The current format.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Changes the format, starting with the next event.
    pub fn set_format(&mut self, format: Format) {
        self.format = format;
    }

    /// Sets whether events say whose work they are, and which processes they come from, starting with the next event. RAW never does.
    pub fn set_workload(&mut self, is_told: bool) {
        self.tells_workload = is_told;
    }

    /// Whether [`EventWriter::workload`] and [`EventWriter::process`] have an effect.
    pub fn tells_workload(&self) -> bool {
        self.tells_workload && self.format != Format::Raw
    }

    /// Sets whether events have the labels of their processes, starting with the next event. RAW never has them.
    pub fn set_labels(&mut self, are_told: bool) {
        self.tells_labels = are_told;
    }

    /// Whether [`EventWriter::labels`] has an effect.
    pub fn tells_labels(&self) -> bool {
        self.tells_labels && self.format != Format::Raw
    }

    /// Sets whether events have the digests of the files that they executed, starting with the next event. RAW never
    /// has them.
    pub fn set_hashes(&mut self, are_told: bool) {
        self.tells_hashes = are_told;
    }

    /// Whether [`EventWriter::hashes`] has an effect.
    pub fn tells_hashes(&self) -> bool {
        self.tells_hashes && self.format != Format::Raw
    }

    /// Sets the value of `node=` at the start of every line (`name_format` of auditd.conf(5)); with `None`, lines have
    /// no such field.
    pub fn set_node(&mut self, node: Option<&[u8]>) {
        self.node.clear();
        self.node.extend_from_slice(node.unwrap_or_default());
    }

    /// Replaces the source of names.
    pub fn set_names(&mut self, names: Box<dyn Names + Send>) {
        self.names = names;
        self.interpretations.forget();
    }

    /// Starts an event whose lines are appended to `out`. The event ends with [`EventWriter::end`], or when the writer
    /// is dropped.
    pub fn begin<'a>(&'a mut self, out: &'a mut Vec<u8>, stamp: Stamp) -> EventWriter<'a> {
        self.write_stamp(stamp);
        // Cleared, not made anew: the buffers keep their capacity.
        self.pending.text.clear();
        self.pending.bodies.clear();
        self.pending.workload.clear();
        self.pending.process.clear();
        self.pending.labels.clear();
        self.pending.hashes.clear();
        self.first_tail.clear();
        EventWriter {
            encoder: self,
            out,
            stamp,
        }
    }

    fn write_stamp(&mut self, stamp: Stamp) {
        let text = &mut self.stamp_text;
        match self.stamp_time {
            Some((sec, msec, len)) if (sec, msec) == (stamp.sec, stamp.msec) => text.truncate(len),
            _ => {
                text.clear();
                stamp.write_time(text);
                self.stamp_time = Some((stamp.sec, stamp.msec, text.len()));
            }
        }
        stamp.write_serial(text);
    }

    /// Appends one record that the kernel made. `message` is `audit(…): body`.
    ///
    /// As in auditd, newlines become blanks, one blank at the end is removed, an unknown type is `UNKNOWN[n]`, and EOE
    /// makes no line. In JSON, each call makes an object with one record; to put all records of an event into one
    /// object, split the messages with [`text::parse_message`] and use [`Encoder::begin`] and [`EventWriter::raw`]. A
    /// message without a valid stamp is written as it is (in JSON as `{"type":…,"text":…}`), never dropped.
    pub fn raw(&mut self, out: &mut Vec<u8>, kind: impl Into<RecordType>, message: &[u8]) {
        let kind = kind.into();
        match text::parse_message(message) {
            Ok((stamp, body)) => self.begin(out, stamp).raw(kind, body),
            Err(_) if kind == RecordType::EOE => {}
            Err(_) if self.format == Format::Json => json::unparsed(out, &self.node, kind, message),
            Err(_) => {
                self.write_head(out, kind);
                push_one_line(out, message);
                out.push(b'\n');
            }
        }
    }

    /// Appends the EOE line that plugins, but not the log, get after the last record of an event. As in auditd 3.0.9,
    /// the line ends in a blank only if it has `node=`.
    pub fn end_of_event(&mut self, out: &mut Vec<u8>, stamp: Stamp) {
        self.write_head(out, RecordType::EOE);
        stamp.write(out);
        if self.node.is_empty() {
            out.pop();
        }
        out.push(b'\n');
    }

    /// Appends `[node=X ]type=NAME msg=`.
    fn write_head(&self, out: &mut Vec<u8>, kind: RecordType) {
        if !self.node.is_empty() {
            put::text(out, "node=");
            out.extend_from_slice(&self.node);
            out.push(b' ');
        }

        match kind {
            // The types of most lines, without a search for the name.
            RecordType::SYSCALL => put::text(out, "type=SYSCALL msg="),
            RecordType::PROCTITLE => put::text(out, "type=PROCTITLE msg="),
            RecordType::PATH => put::text(out, "type=PATH msg="),
            RecordType::CWD => put::text(out, "type=CWD msg="),
            _ => {
                put::text(out, "type=");
                put::record_type(out, kind);
                put::text(out, " msg=");
            }
        }
    }
}

/// Appends kernel text as one line: cuts NULs at its end, removes one blank at its end, and replaces newlines and other
/// NULs by blanks. The separator of ENRICHED also becomes a blank, so that no sender of a message can forge
/// interpretations. Other control characters are escaped: whoever may send messages of users must not reach the terminal
/// on which the log is read.
fn push_one_line(out: &mut Vec<u8>, text: &[u8]) {
    let end = text
        .iter()
        .rposition(|&byte| byte != 0)
        .map_or(0, |last| last + 1);
    let text = &text[..end];
    let text = match text {
        [head @ .., b' ' | b'\n'] => head,
        _ => text,
    };

    // One pass that does not stop early is quick: most text is plain.
    let is_plain = |plain, byte: &u8| plain & (b' '..=b'~').contains(byte);
    if text.iter().fold(true, is_plain) {
        return out.extend_from_slice(text);
    }

    let is_blank = |byte: &u8| matches!(*byte, b'\n' | 0 | text::SEPARATOR);
    for (place, piece) in text.split(is_blank).enumerate() {
        if place > 0 {
            out.push(b' ');
        }
        without_controls(out, piece, b"");
    }
}

/// An event being written. Its records have to be added in the kernel's order, PROCTITLE last.
pub struct EventWriter<'a> {
    encoder: &'a mut Encoder,
    out: &'a mut Vec<u8>,
    stamp: Stamp,
}

impl EventWriter<'_> {
    /// Adds the workload of the event: at the end of its SYSCALL or URINGOP record, or in its object. Call it before
    /// the first record is added.
    pub fn workload(&mut self, text: &WorkloadText) {
        if !self.encoder.tells_workload() {
            return;
        }
        match self.encoder.format {
            Format::Json => self.encoder.pending.workload.extend(text.json()),
            _ => self.encoder.first_tail.extend(text.enriched()),
        }
    }

    /// Adds the process of the event, where [`workload`](Self::workload) is added. Call it after that, and before the
    /// first record is added.
    pub fn process(&mut self, text: &ProcessText<'_>) {
        if !self.encoder.tells_workload() {
            return;
        }
        match self.encoder.format {
            Format::Json => text.json(&mut self.encoder.pending.process),
            _ => text.enriched(&mut self.encoder.first_tail),
        }
    }

    /// Adds the labels of the event's process, where [`workload`](Self::workload) is added. Call it after that and
    /// [`process`](Self::process), and before the first record is added. `are_partial`: the process may have others.
    pub fn labels<'a>(&mut self, labels: impl Iterator<Item = &'a str>, are_partial: bool) {
        if !self.encoder.tells_labels() {
            return;
        }
        match self.encoder.format {
            Format::Json => labels::json(&mut self.encoder.pending.labels, labels, are_partial),
            _ => labels::enriched(&mut self.encoder.first_tail, labels, are_partial),
        }
    }

    /// Adds that the rule of the event may not select it, because not everything that it asks about is known, where
    /// [`workload`](Self::workload) is added. Call it after that, and before the first record is added. RAW, whose text is
    /// the kernel's, does not tell.
    pub fn unsure(&mut self) {
        match self.encoder.format {
            Format::Raw => {}
            Format::Json => put::text(&mut self.encoder.pending.labels, ",\"match\":\"unsure\""),
            _ => put::text(&mut self.encoder.first_tail, " match=unsure"),
        }
    }

    /// Adds the digests of the files that the event executed, where [`workload`](Self::workload) is added. Call it
    /// after that, [`process`](Self::process) and [`labels`](Self::labels), and before the first record is added.
    pub fn hashes(&mut self, hashes: &[FileHash]) {
        if !self.encoder.tells_hashes() || hashes.is_empty() {
            return;
        }
        match self.encoder.format {
            Format::Json => hashes::json(&mut self.encoder.pending.hashes, hashes),
            _ => hashes::enriched(&mut self.encoder.first_tail, hashes),
        }
    }

    /// Adds a record of one line.
    pub fn put(&mut self, record: &impl Body) {
        let of = (record.kind(), record.decides_alone());
        self.line(of, |out| record.write(out));
    }

    /// Adds the SYSCALL record. Faster than [`put`](Self::put), because the text about the task is cached.
    pub fn syscall(&mut self, record: &Syscall<'_>) {
        // Taken out for the time of the call, since `line` borrows the whole encoder.
        let mut tasks = std::mem::take(&mut self.encoder.tasks);
        let of = (record.kind(), record.decides_alone());
        self.line(of, |out| tasks.write_record(record, out));
        self.encoder.tasks = tasks;
    }

    /// Adds the EXECVE record, in as many lines as the kernel would use.
    pub fn execve(&mut self, record: &Execve<'_>) {
        let kind = RecordType::EXECVE;
        let (encoder, out) = (&mut *self.encoder, &mut *self.out);
        if encoder.format == Format::Json {
            let Pending { text, bodies, .. } = &mut encoder.pending;
            // The kernel splits long argument lists into several records; each part is a body of its own.
            let mut start = text.len();
            record.write(text, |text| {
                bodies.push((kind, start..text.len()));
                start = text.len();
            });
            bodies.push((kind, start..text.len()));
            return;
        }

        encoder.write_head(out, kind);
        out.extend_from_slice(&encoder.stamp_text);
        record.write(out, |out| {
            out.push(b'\n');
            encoder.write_head(out, kind);
            out.extend_from_slice(&encoder.stamp_text);
        });
        out.push(b'\n');
    }

    /// Adds a record that the kernel made: its type and the text after `audit(…): `. See [`Encoder::raw`].
    pub fn raw(&mut self, kind: impl Into<RecordType>, body: &[u8]) {
        let kind = kind.into();
        if matches!(kind, RecordType::ADD_USER | RecordType::ADD_GROUP) {
            // A new account: numbers may have other names from here on.
            self.encoder.names.forget();
            self.encoder.interpretations.forget();
        }
        if kind != RecordType::EOE {
            self.line((kind, None), |out| push_one_line(out, body));
        }
    }

    /// Ends the event. In JSON, this writes its object.
    pub fn end(self) {}

    /// Adds a record of this type, which `write` writes. `by`: what decides about its interpretations, if that is known.
    fn line(
        &mut self,
        (kind, by): (RecordType, Option<Deciding>),
        write: impl FnOnce(&mut Vec<u8>),
    ) {
        let encoder = &mut *self.encoder;
        if encoder.format == Format::Json {
            let Pending { text, bodies, .. } = &mut encoder.pending;
            let start = text.len();
            write(text);
            bodies.push((kind, start..text.len()));
            return;
        }

        encoder.write_head(self.out, kind);
        self.out.extend_from_slice(&encoder.stamp_text);
        let start = self.out.len();
        write(self.out);
        if encoder.format == Format::Enriched {
            let names = &mut *encoder.names;
            let interpretations = &mut encoder.interpretations;
            interpretations.append(self.out, start, (kind, by), names);
            if matches!(kind, RecordType::SYSCALL | RecordType::URINGOP) {
                // Appended once: a second record of that type would otherwise repeat it.
                self.out.append(&mut encoder.first_tail);
            }
        }

        self.out.push(b'\n');
    }
}

impl Drop for EventWriter<'_> {
    fn drop(&mut self) {
        if !self.encoder.pending.bodies.is_empty() {
            json::event(
                self.out,
                &self.encoder.node,
                self.stamp,
                &mut self.encoder.pending,
            );
        }
    }
}
