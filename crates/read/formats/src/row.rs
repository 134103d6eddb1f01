//! Tables of fields. A row tells the source of a value, its place in the result, and its conversion.

use super::facts::Facts;
use super::parsed::{base, text_of, Object};
use super::value::Value;
use std::net::IpAddr;

/// Conversion of a value. A value that does not fit is left out: the original lines have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// Unchanged.
    Same,
    /// Text, unless it says that nothing is known (`?`, `(none)`).
    Text,
    /// An id of a user, group or session as text, unless it is unset.
    Id,
    /// An id as a number, unless it is unset.
    IdNumber,
    /// A name of a user or group, unless it is `unset` or unknown.
    Name,
    /// An integer of 64 bits.
    Integer,
    /// A list of texts.
    List,
    /// An IP address.
    Ip,
    /// A port.
    Port,
    /// Milliseconds since 1970 as RFC 3339 has them.
    Time,
    /// A UUID.
    Uuid,
    /// The last component of a path.
    Base,
    /// The digest of `sha256:…` or of a bare one; in `Hash("sha256")` of that algorithm.
    Hash(&'static str),
}

/// `from` is one or more sources, `A.x|B.x`, of which the first that fits is taken (see [`Facts::find`]);
/// `=text` is that text. `to` is the place in the result, with dots.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    pub(crate) from: &'static str,
    pub(crate) to: &'static str,
    pub(crate) how: How,
}

/// Fields of an object that are given room at once.
const OBJECT_FIELDS: usize = 14;

/// A row of a table.
pub(crate) const fn row(from: &'static str, to: &'static str, how: How) -> Row {
    Row { from, to, how }
}

/// Puts what a table takes from an event into `out`.
pub(crate) fn apply(rows: &[Row], facts: &Facts<'_>, out: &mut Object) {
    for row in rows {
        let found = row
            .from
            .split('|')
            .find_map(|from| match from.strip_prefix('=') {
                Some(text) => Some(Value::from(text)),
                None => facts.find(from).and_then(|value| row.how.of(value)),
            });
        if let Some(value) = found {
            put(out, row.to, value);
        }
    }
}

/// Puts a value at a place with dots, unless something is there already.
pub(crate) fn put(out: &mut Object, to: &'static str, value: Value) {
    match to.split_once('.') {
        None => {
            out.or_insert_with(to, || value);
        }
        Some((first, rest)) => {
            // Most objects are there already.
            if let Some(inner) = out.get_mut(first) {
                if let Value::Object(inner) = inner {
                    put(inner, rest, value);
                }
                return;
            }
            let mut inner = Object::with_capacity(OBJECT_FIELDS);
            put(&mut inner, rest, value);
            out.insert(first.into(), inner.into());
        }
    }
}

/// Puts values into the object at a place with dots, each unless something has its name already.
pub(crate) fn merge(out: &mut Object, to: &'static str, values: Object) {
    let mut object = out;
    for name in to.split('.') {
        let inner = object.or_insert_with(name, || Object::new().into());
        let Value::Object(inner) = inner else {
            return;
        };
        object = inner;
    }
    for (name, value) in values {
        object.or_insert_with(name, || value);
    }
}

impl How {
    fn of(self, value: &Value) -> Option<Value> {
        if value.is_null() {
            return None;
        }

        let text = || Some(text_of(value)).filter(|text| !text.is_empty());
        match self {
            How::Same => Some(value.clone()),
            How::Text => text().filter(|text| !says_nothing(text)).map(Value::from),
            How::Id => id(value).map(|id| Value::from(id.to_string())),
            How::IdNumber => id(value).map(Value::from),
            How::Name => text()
                .filter(|text| {
                    text != "unset" && !text.starts_with("unknown(") && !says_nothing(text)
                })
                .map(Value::from),
            How::Integer => integer(value).map(Value::from),
            How::List => list(value),
            How::Ip => text()?
                .parse::<IpAddr>()
                .ok()
                .map(|ip| ip.to_string().into()),
            How::Port => integer(value)
                .and_then(|port| u16::try_from(port).ok())
                .map(Value::from),
            How::Time => time(integer(value)?),
            How::Uuid => text().filter(|text| is_uuid(text)).map(Value::from),
            How::Hash(algorithm) => {
                let text = text()?;
                let (name, digest) = text.split_once(':')?;
                (name == algorithm).then(|| digest.into())
            }
            How::Base => text()
                .filter(|text| !says_nothing(text))
                .map(|text| base(&text).into()),
        }
    }
}

/// Whether a program wrote that it does not know.
pub(crate) fn says_nothing(text: &str) -> bool {
    matches!(text, "?" | "(none)" | "(unknown)" | "(null)" | "\"?\"")
}

/// A number of 32 bits that is not the one of an unset id.
fn id(value: &Value) -> Option<u32> {
    let number = u32::try_from(integer(value)?).ok()?;
    (number != u32::MAX).then_some(number)
}

fn integer(value: &Value) -> Option<i64> {
    match value {
        Value::Number(number) => number.as_i64(),
        Value::String(text) => text.parse().ok(),
        _ => None,
    }
}

fn list(value: &Value) -> Option<Value> {
    let Value::Array(list) = value else {
        return None;
    };
    let texts: Vec<Value> = list.iter().map(|item| text_of(item).into()).collect();
    (!texts.is_empty()).then_some(Value::Array(texts))
}

fn time(ms: i64) -> Option<Value> {
    let time = jiff::Timestamp::from_millisecond(ms).ok()?;
    // Elasticsearch takes years of four digits.
    let is_common = (0..253_402_300_800_000).contains(&ms);
    is_common.then(|| format!("{time:.3}").into())
}

fn is_uuid(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let is_hex = |part: &&str| part.bytes().all(|byte| byte.is_ascii_hexdigit());
    let lengths: Vec<usize> = parts.iter().map(|part| part.len()).collect();
    lengths == [8, 4, 4, 4, 12] && parts.iter().all(is_hex)
}
