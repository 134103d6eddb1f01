//! Lines of one event as JSON records, whatever the log's own format is.
//!
//! RAW and ENRICHED lines go through the encoder of `log_format = JSON`, so that hex is decoded, numbers are numbers, and
//! calls have names; a JSON log is read as it is. `crates/log/record/docs/json.md` describes the records.

pub(crate) use super::value::JsonObject as Object;
use super::value::Value;
use record::text::{self, fields};
use record::{Encoder, Format, NoNames};

/// Prefix of a name that ENRICHED gives a second time on a line: it belongs to a field inside of `msg='…'`, since the
/// kernel's own fields come first.
pub(super) const MSG: &[u8] = b"MSG_";

/// Reads events. Keep it and reuse it, for its buffers.
pub(crate) struct Reader {
    encoder: Encoder,
    out: Vec<u8>,
}

impl Default for Reader {
    fn default() -> Reader {
        Reader {
            encoder: Encoder::new(Format::Json, Box::new(NoNames)),
            out: Vec::new(),
        }
    }
}

/// The records of one event.
#[derive(Debug, Default)]
pub(crate) struct Parsed {
    /// Value of `node=`.
    pub(crate) node: Option<String>,
    /// The records, each with its `type`.
    pub(crate) records: Vec<Object>,
    /// Names that ENRICHED gives to ids, such as `AUID`, but for those of PATH records. `MSG_UID`: of `uid=` inside of
    /// `msg='…'`, where the kernel's own fields have one, too.
    pub(crate) names: Object,
    /// Names that ENRICHED gives to the owners of each PATH record, in order.
    pub(crate) path_names: Vec<Object>,
    /// Workload of the event: `unit`, `container` … as in the JSON format.
    pub(crate) workload: Object,
    /// What a JSON log of Tarsier says beside the records: `process`, `hashes`, `labels`, `match`.
    pub(crate) beside: Object,
    /// The lines without their last newline, each byte that is not UTF-8 replaced.
    pub(crate) original: String,
    /// The exact bytes in hex, if `original` is not exact.
    pub(crate) original_hex: Option<String>,
    /// Whether a line is no record, so that only `original` has it.
    pub(crate) has_unread: bool,
}

impl Reader {
    /// Reads the lines of an event.
    pub(crate) fn read(&mut self, lines: &[u8]) -> Parsed {
        let mut parsed = Parsed::default();
        let whole = lines.strip_suffix(b"\n").unwrap_or(lines);
        parsed.original = String::from_utf8_lossy(whole).into_owned();
        if std::str::from_utf8(whole).is_err() {
            let mut hex = Vec::new();
            record::put::hex_bytes(&mut hex, whole);
            parsed.original_hex = String::from_utf8(hex).ok();
        }

        let mut texts = Vec::new();
        for line in whole.split(|&byte| byte == b'\n') {
            match line.first() {
                None => {}
                Some(b'{') => parsed.json_line(line),
                Some(_) => texts.push(line),
            }
        }

        parsed.text_lines(&texts, self);
        for record in &mut parsed.records {
            if let Some(Value::Object(fields)) = record.get_mut("msg_fields") {
                without_sentence(fields);
            }
        }

        parsed
    }
}

/// Takes the signs of a sentence from fields that a program wrote as one: `(hostname=a, addr=b, terminal=c res=failed)`.
fn without_sentence(fields: &mut Object) {
    if !fields.iter().any(|(name, _)| name.starts_with('(')) {
        return;
    }

    let (mut plain, mut is_inside) = (Object::new(), false);
    for (name, mut value) in std::mem::take(fields) {
        let short = name.strip_prefix('(');
        is_inside |= short.is_some();
        if let (true, Value::String(text)) = (is_inside, &mut value) {
            text.truncate(text.trim_end_matches([')', ',']).len());
        }
        plain.or_insert_with(short.unwrap_or(&name).to_owned(), || value);
    }
    *fields = plain;
}

impl Parsed {
    fn json_line(&mut self, line: &[u8]) {
        let Ok(Value::Object(mut event)) = serde_json::from_slice(line) else {
            self.has_unread = true;
            return;
        };
        if let Some(node) = event.get("node") {
            self.node = Some(text_of(node));
        }
        if let Some(Value::Object(workload)) = event.get_mut("workload") {
            self.workload = std::mem::take(workload);
        }

        if let Some(Value::Object(names)) = event.get_mut("names") {
            for (name, value) in std::mem::take(names) {
                self.names.insert(name, value);
            }
        }

        for name in ["process", "hashes", "labels", "match"] {
            if let Some(value) = event.remove(name) {
                self.beside.insert(name.into(), value);
            }
        }

        match event.get_mut("records") {
            Some(Value::Array(records)) => {
                for record in std::mem::take(records) {
                    match record {
                        Value::Object(record) => self.records.push(record),
                        _ => self.has_unread = true,
                    }
                }
            }
            // A message without a proper stamp: {"type":…,"text":…}.
            _ => {
                self.has_unread = true;
                self.records.push(event);
            }
        }
    }

    fn text_lines(&mut self, lines: &[&[u8]], reader: &mut Reader) {
        let out = &mut reader.out;
        out.clear();
        let mut others = Vec::new();
        let records: Vec<text::Record<'_>> = lines
            .iter()
            .filter_map(|line| text::parse_line(line).ok())
            .collect();
        self.has_unread |= records.len() < lines.len();
        let Some(first) = records.first() else {
            return;
        };

        let mut writer = reader.encoder.begin(out, first.stamp);
        for record in &records {
            if let Some(node) = record.node {
                self.node = Some(String::from_utf8_lossy(node).into_owned());
            }
            match record.kind {
                Some(kind) => writer.raw(kind, record.body),
                None => others.push(unknown(record)),
            }
            if let Some(names) = record.interpretations {
                self.interpretations(names, record.type_name == b"PATH");
            } else if record.type_name == b"PATH" {
                self.path_names.push(Object::new());
            }
        }

        writer.end();
        if !reader.out.is_empty() {
            self.json_line(&reader.out);
        }

        self.records.append(&mut others);
    }

    fn interpretations(&mut self, text: &[u8], is_path: bool) {
        let mut own = Object::new();
        let mut before = Vec::new();
        for field in fields(text).filter(|field| field.has_value) {
            let name = String::from_utf8_lossy(field.name).into_owned();
            let mut value = Vec::new();
            match field.quoted() {
                Some(inner) => value.extend_from_slice(inner),
                None if text::is_hex(field.value) => text::unhex(&mut value, field.value),
                None => value.extend_from_slice(field.value),
            }
            let value = Value::String(String::from_utf8_lossy(&value).into_owned());
            match name.as_str() {
                _ if is_path => {
                    own.insert(name.into(), value);
                }
                "UNIT" | "USER_UNIT" => {
                    self.workload
                        .insert(name.to_ascii_lowercase().into(), value);
                }
                "CONTAINER" => self.nested("container", "id", value),
                "POD" => self.nested("pod", "uid", value),
                _ => {
                    let place = if before.contains(&name) {
                        format!("{}{name}", String::from_utf8_lossy(MSG))
                    } else {
                        name.clone()
                    };
                    before.push(name);
                    self.names.or_insert_with(place, || value);
                }
            }
        }

        if is_path {
            self.path_names.push(own);
        }
    }

    fn nested(&mut self, object: &str, name: &str, value: Value) {
        let inner = Object::from_iter([(name.to_owned(), value)]);
        self.workload
            .insert(object.to_owned().into(), Value::Object(inner));
    }

    /// The first record of this type.
    pub(crate) fn record(&self, kind: &str) -> Option<&Object> {
        self.records.iter().find(|record| kind_of(record) == kind)
    }

    /// Field of the process and user that act: of the call's record, else of the first record that has it and is not
    /// about an object.
    pub(crate) fn subject(&self, name: &str) -> Option<&Value> {
        let is_call = |record: &&Object| matches!(kind_of(record), "SYSCALL" | "URINGOP");
        let is_object = |record: &&Object| OBJECTS.contains(&kind_of(record));
        let mut calls = self.records.iter().filter(is_call);
        let mut others = self.records.iter().filter(|record| !is_object(record));
        calls
            .find_map(|record| record.get(name))
            .or_else(|| others.find_map(|record| record.get(name)))
    }

    /// The records of this type.
    pub(crate) fn records<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Object> {
        let is_it = move |record: &&Object| kind_of(record) == kind;
        self.records.iter().filter(is_it)
    }
}

/// Types of records about what a call touched: their fields are not those of the subject.
const OBJECTS: [&str; 11] = [
    "PATH",
    "CWD",
    "EXECVE",
    "OBJ_PID",
    "IPC",
    "IPC_SET_PERM",
    "SOCKADDR",
    "PROCTITLE",
    "CAPSET",
    "BPRM_FCAPS",
    "NETFILTER_PKT",
];

/// A record of a type that is not known: its name and its text.
fn unknown(record: &text::Record<'_>) -> Object {
    let text = |bytes| Value::String(String::from_utf8_lossy(bytes).into_owned());
    Object::from_iter([
        ("type".to_owned(), text(record.type_name)),
        ("text".to_owned(), text(record.body)),
    ])
}

/// Field of a record, or of the text that a program sent in it (`msg='…'`).
pub(crate) fn field<'r>(record: &'r Object, name: &str) -> Option<&'r Value> {
    record
        .get(name)
        .or_else(|| record.get("msg_fields")?.get(name))
}

/// The type of a record; empty if it has none.
pub(crate) fn kind_of(record: &Object) -> &str {
    // It nearly always comes first, where it is found without a look-up.
    let first = record.iter().next().filter(|(name, _)| *name == "type");
    let kind = first.map(|(_, kind)| kind).or_else(|| record.get("type"));
    kind.and_then(Value::as_str).unwrap_or_default()
}

/// The type of a record by its name in the kernel's header, where auditd writes `UNKNOWN[n]`.
pub(crate) fn known_kind(record: &Object) -> &str {
    let kind = kind_of(record);
    if !kind.starts_with("UNKNOWN[") {
        return kind;
    }
    let number = abi::record_type_number(kind);
    let row = abi::record_type_names().find(|(known, _)| Some(*known) == number);
    row.map_or(kind, |(_, name)| name)
}

/// A value as text. A string that is not UTF-8 is `{"text":…,"hex":…}` in the log; its text is taken.
pub(crate) fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        Value::Object(object) => match object.get("text") {
            Some(Value::String(text)) => text.clone(),
            _ => value.to_string(),
        },
        Value::Array(list) => {
            let words: Vec<String> = list.iter().map(text_of).collect();
            words.join(" ")
        }
        Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

/// The last component of a path; the path itself if it has none.
pub(crate) fn base(path: &str) -> &str {
    match path.trim_end_matches('/').rsplit('/').next() {
        Some(name) if !name.is_empty() => name,
        _ => path,
    }
}
