//! Records to log lines.

use crate::pending::Pending;
use crate::record::{Body, Execve, Syscall};
use crate::tasks::TaskTexts;
use crate::{enrich, json, put, text, Names, RecordType, Stamp};

/// How a line of the log looks: `log_format` of auditd.conf(5), and JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// The kernel's text.
    Raw,
    /// RAW, then byte 0x1d, then names for numbers, as auditd 3.0.9 adds them.
    Enriched,
    /// One object for each event: see `docs/json.md` of this crate.
    Json,
}

/// Makes log lines of one format. Keep one and reuse it: its buffers grow to the largest event and stay.
pub struct Encoder {
    format: Format,
    node: Vec<u8>,
    names: Box<dyn Names + Send>,
    /// `audit(…): ` of the present event.
    stamp_text: Vec<u8>,
    /// Its time, and the length of the text of that: the next event is often of the same millisecond.
    stamp_time: Option<(u64, u16, usize)>,
    tasks: TaskTexts,
    pending: Pending,
}

impl Encoder {
    /// `names` is asked only in [`Format::Enriched`].
    pub fn new(format: Format, names: Box<dyn Names + Send>) -> Encoder {
        Encoder {
            format,
            node: Vec::new(),
            names,
            stamp_text: Vec::new(),
            stamp_time: None,
            tasks: TaskTexts::default(),
            pending: Pending::default(),
        }
    }

    /// The present format.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Changes the format, from the next event on.
    pub fn set_format(&mut self, format: Format) {
        self.format = format;
    }

    /// Sets what `node=` in front of every line says (`name_format` of auditd.conf(5)); `None`: no such field.
    pub fn set_node(&mut self, node: Option<&[u8]>) {
        self.node.clear();
        self.node.extend_from_slice(node.unwrap_or_default());
    }

    /// Replaces the source of names.
    pub fn set_names(&mut self, names: Box<dyn Names + Send>) {
        self.names = names;
    }

    /// Starts an event whose lines are appended to `out`. It ends with [`EventWriter::end`] or when dropped.
    pub fn begin<'a>(&'a mut self, out: &'a mut Vec<u8>, stamp: Stamp) -> EventWriter<'a> {
        self.write_stamp(stamp);
        self.pending.text.clear();
        self.pending.bodies.clear();
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

    /// Appends one record that the kernel made: `number` is its nlmsg_type, `message` is `audit(…): body`.
    ///
    /// As auditd does: newlines become blanks, one blank at the end goes, an unknown type is `UNKNOWN[n]`. EOE gives no
    /// line. In JSON each call makes an object of one record; to have an event's records in one object, take them apart
    /// with [`text::parse_message`] and use [`Encoder::begin`] and [`EventWriter::raw`]. A message without a proper
    /// stamp is written as it is (in JSON as `{"type":…,"text":…}`), never dropped.
    pub fn raw(&mut self, out: &mut Vec<u8>, number: u16, message: &[u8]) {
        let kind = RecordType(number);
        match text::parse_message(message) {
            Ok((stamp, body)) => self.begin(out, stamp).raw(number, body),
            Err(_) if kind == RecordType::EOE => {}
            Err(_) if self.format == Format::Json => json::unparsed(out, &self.node, kind, message),
            Err(_) => {
                self.write_head(out, kind);
                push_one_line(out, message);
                out.push(b'\n');
            }
        }
    }

    /// Appends the EOE line that plugins get after the last record of an event and that the log does not have.
    /// As from auditd 3.0.9, its last blank is there only if the line says `node=`.
    pub fn end_of_event(&mut self, out: &mut Vec<u8>, stamp: Stamp) {
        self.write_head(out, RecordType::EOE);
        stamp.write(out);
        if self.node.is_empty() {
            out.pop();
        }
        out.push(b'\n');
    }

    /// `[node=X ]type=NAME msg=`
    fn write_head(&self, out: &mut Vec<u8>, kind: RecordType) {
        if !self.node.is_empty() {
            put::text(out, "node=");
            out.extend_from_slice(&self.node);
            out.push(b' ');
        }
        match kind {
            // Most lines, without a search for the name.
            RecordType::SYSCALL => put::text(out, "type=SYSCALL msg="),
            RecordType::PROCTITLE => put::text(out, "type=PROCTITLE msg="),
            RecordType::PATH => put::text(out, "type=PATH msg="),
            RecordType::CWD => put::text(out, "type=CWD msg="),
            _ => {
                put::text(out, "type=");
                kind.write(out);
                put::text(out, " msg=");
            }
        }
    }
}

/// Appends kernel text as one line: NULs at its end cut, newlines and other NULs made blanks, one last blank removed.
/// The separator of ENRICHED also becomes a blank, so that no sender of a message can make up interpretations.
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
    out.extend(text.iter().map(|&byte| {
        if matches!(byte, b'\n' | 0 | text::SEPARATOR) {
            b' '
        } else {
            byte
        }
    }));
}

/// An event being written: put its records in the kernel's order, PROCTITLE last.
pub struct EventWriter<'a> {
    encoder: &'a mut Encoder,
    out: &'a mut Vec<u8>,
    stamp: Stamp,
}

impl EventWriter<'_> {
    /// Adds a record of one line.
    pub fn put(&mut self, record: &impl Body) {
        self.line(record.kind(), |out| record.write(out));
    }

    /// Adds SYSCALL. The same as [`put`](Self::put), and faster: what it says of a task is kept.
    pub fn syscall(&mut self, record: &Syscall<'_>) {
        let mut tasks = std::mem::take(&mut self.encoder.tasks);
        self.line(record.kind(), |out| tasks.write_record(record, out));
        self.encoder.tasks = tasks;
    }

    /// Adds the EXECVE record, in as many lines as the kernel would take.
    pub fn execve(&mut self, record: &Execve<'_>) {
        let kind = RecordType::EXECVE;
        let (encoder, out) = (&mut *self.encoder, &mut *self.out);
        if encoder.format == Format::Json {
            let Pending { text, bodies, .. } = &mut encoder.pending;
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

    /// Adds a record that the kernel made: its nlmsg_type and the text after `audit(…): `. See [`Encoder::raw`].
    pub fn raw(&mut self, number: u16, body: &[u8]) {
        let kind = RecordType(number);
        if matches!(kind, RecordType::ADD_USER | RecordType::ADD_GROUP) {
            self.encoder.names.forget();
        }
        if kind != RecordType::EOE {
            self.line(kind, |out| push_one_line(out, body));
        }
    }

    /// Ends the event; in JSON this is when its object is written.
    pub fn end(self) {}

    fn line(&mut self, kind: RecordType, write: impl FnOnce(&mut Vec<u8>)) {
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
            enrich::append(self.out, start, kind, &mut *encoder.names);
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
