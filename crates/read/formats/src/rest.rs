//! Every field of every record that a schema has no place for, under its own name.

use super::parsed::{kind_of, text_of, Object, Parsed};
use super::row::says_nothing;
use super::value::Value;

/// Longest name of a field, and most fields, that get a name of their own in a document. A store makes a column of each,
/// and programs may send any name; further ones stand in `other` as `NAME=VALUE`.
const NAME_BYTES_MAX: usize = 40;
const NAMES_MAX: usize = 200;

/// Names that ENRICHED gives to values that the documents have decoded.
const DECODED: [&str; 6] = [
    "ARCH",
    "SYSCALL",
    "SADDR",
    "URING_OP",
    "ANCESTORS",
    "SCRIPT",
];

/// What a schema has its own places for.
pub(crate) struct Placed {
    /// Fields of the subject ([`Parsed::subject`]).
    pub(crate) subject: &'static [&'static str],
    /// Names of ENRICHED.
    pub(crate) names: &'static [&'static str],
    /// `argv`, `proctitle` and `cwd` of the first record that has them.
    pub(crate) process: &'static [&'static str],
}

/// The fields of an event's records that are not in places of their own:
/// * a field under its name, with `_` for `-`;
/// * where another value has that name, under `TYPE_NAME`, in `msg='…'` under `msg_NAME`; then as a list;
/// * `paths`: the fields of each PATH record; `socket_…`: of SOCKADDR;
/// * `other`: fields whose names no store should make a column of.
///
/// `null`, `?`, `(none)` and unset ids are left out.
pub(crate) fn rest(parsed: &Parsed, placed: &Placed) -> Object {
    let mut rest = Rest {
        fields: Object::with_capacity(FIELDS),
        other: Vec::new(),
    };
    let mut paths = Vec::new();
    for record in &parsed.records {
        let kind = kind_of(record);
        let is_first = parsed
            .record(kind)
            .is_some_and(|first| std::ptr::eq(first, record));
        match kind {
            "PATH" => paths.push(Value::from(texts(record))),
            "SOCKADDR" => {
                for (name, value) in record.iter() {
                    rest.put(kind, &socket_name(name), value);
                }
            }
            _ => {
                for (name, value) in record.iter() {
                    let is_placed = match name {
                        "argv" | "proctitle" | "cwd" => is_first && placed.process.contains(&name),
                        "key" => value.as_array().is_some() && parsed.subject("key") == Some(value),
                        "msg" => record.contains_key("msg_fields"),
                        name => {
                            placed.subject.contains(&name) && parsed.subject(name) == Some(value)
                        }
                    };
                    if !is_placed && name != "msg_fields" {
                        rest.put(kind, name, value);
                    }
                }
                if let Some(Value::Object(inner)) = record.get("msg_fields") {
                    for (name, value) in inner.iter() {
                        let is_second =
                            record.contains_key(name) && record.get(name) != Some(value);
                        let place = if is_second {
                            format!("msg_{name}")
                        } else {
                            name.to_owned()
                        };
                        rest.put(kind, &place, value);
                    }
                }
            }
        }
    }

    for (name, value) in parsed.names.iter() {
        if !placed.names.contains(&name) && !DECODED.contains(&name) && !is_of_set(value) {
            rest.put(
                "NAMES",
                &format!("{}_name", name.to_ascii_lowercase()),
                value,
            );
        }
    }

    let mut out = rest.fields;
    if !paths.is_empty() {
        out.insert("paths".into(), paths.into());
    }
    if !rest.other.is_empty() {
        out.insert("other".into(), rest.other.into());
    }

    out
}

/// Fields that are given room at once.
const FIELDS: usize = 28;

struct Rest {
    fields: Object,
    other: Vec<String>,
}

impl Rest {
    fn put(&mut self, kind: &str, name: &str, value: &Value) {
        if name == "type" || is_unset(value) {
            return;
        }

        let text = word(kind, name, value);
        let place = name.replace('-', "_");
        let is_fine = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        let is_column = (1..=NAME_BYTES_MAX).contains(&place.len())
            && place.bytes().all(is_fine)
            && !matches!(place.as_str(), "paths" | "other");
        if !is_column || self.fields.len() >= NAMES_MAX {
            return self.other.push(format!("{name}={text}"));
        }

        match self.fields.get(&place) {
            None => {
                self.fields.insert(place.into(), text.into());
            }
            Some(there) if has(there, &text) => {}
            Some(_) => {
                let place = format!(
                    "{}_{place}",
                    kind.to_ascii_lowercase().replace(['[', ']'], "_")
                );
                self.again(place, text);
            }
        }
    }

    /// Adds a value under a name that it shares with the same field of other records of its type.
    fn again(&mut self, place: String, text: String) {
        match self.fields.get_mut(&place) {
            None => {
                self.fields.insert(place.into(), text.into());
            }
            Some(there) if has(there, &text) => {}
            Some(Value::Array(list)) => list.push(text.into()),
            Some(there) => {
                let first = there.take();
                *there = vec![first, text.into()].into();
            }
        }
    }
}

fn has(there: &Value, text: &str) -> bool {
    match there {
        Value::Array(list) => list.iter().any(|item| item == text),
        there => there == text,
    }
}

/// All fields of a record as texts.
fn texts(record: &Object) -> Object {
    let known = record
        .iter()
        .filter(|(name, value)| *name != "type" && !is_unset(value));
    known
        .map(|(name, value)| (name.replace('-', "_"), text_of(value).into()))
        .collect()
}

/// A value as text. Registers are hex without `0x`, as the kernel writes them.
fn word(kind: &str, name: &str, value: &Value) -> String {
    let text = text_of(value);
    let is_register =
        matches!(kind, "SYSCALL" | "SOCKETCALL") && name.len() == 2 && name.starts_with('a');
    match text.strip_prefix("0x") {
        Some(hex) if is_register => hex.to_owned(),
        _ => text,
    }
}

/// Name of a field of SOCKADDR.
fn socket_name(name: &str) -> String {
    let short = match name {
        "saddr_fam" => "family",
        "laddr" => "addr",
        "lport" => "port",
        "nlnk-pid" => "nlnk_pid",
        name => name,
    };
    match short {
        "type" => "type".into(),
        short => format!("socket_{short}"),
    }
}

/// Whether a value only says that nothing is known or set.
pub(crate) fn is_unset(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Number(number) => number.as_u64() == Some(u32::MAX.into()),
        Value::String(text) => text.is_empty() || says_nothing(text),
        _ => false,
    }
}

fn is_of_set(value: &Value) -> bool {
    is_unset(value) || value == "unset"
}
