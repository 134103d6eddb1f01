//! Logs with `log_format = JSON`: the object of an event becomes the lines that it was made from.
//!
//! JSON does not say whether a text was quoted or in hex; the type of the field decides.

use crate::interpret::{field_type, FieldType};
use crate::Dialect;
use abi::Arch;
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// A value, whose objects keep the order of their names and those that come twice.
#[derive(Debug)]
enum Value {
    Null,
    Number(String),
    Text(String),
    Array(Vec<Value>),
    Object(Vec<(String, Value)>),
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(AnyValue)
    }
}

struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Number(u8::from(value).to_string()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.to_string()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.to_string()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Value::Number(format!("{value:.3}")))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = seq.next_element()? {
            values.push(value);
        }
        Ok(Value::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(Value::Object(entries))
    }
}

impl Value {
    fn get(&self, name: &str) -> Option<&Value> {
        match self {
            Value::Object(entries) => entries
                .iter()
                .find(|(known, _)| known == name)
                .map(|(_, value)| value),
            _ => None,
        }
    }

    /// The bytes of a text. One that is not UTF-8 is an object with its hex.
    fn bytes(&self) -> Option<Vec<u8>> {
        match self {
            Value::Text(text) => Some(text.clone().into_bytes()),
            Value::Object(_) => match self.get("hex")? {
                Value::Text(hex) => crate::number::decode_whole(hex.as_bytes()),
                _ => None,
            },
            _ => None,
        }
    }
}

/// Appends the lines of the event that a line of JSON holds. False if it holds none.
pub fn json_lines(line: &[u8], out: &mut Vec<u8>) -> bool {
    let Ok(event) = serde_json::from_slice::<Value>(line) else {
        return false;
    };
    let (Some(Value::Number(time)), Some(Value::Number(serial)), Some(Value::Array(records))) =
        (event.get("time"), event.get("serial"), event.get("records"))
    else {
        return false;
    };

    // Whole seconds may stand without their decimals.
    let point = if time.contains('.') { "" } else { ".000" };
    let node = event.get("node").and_then(Value::bytes);
    for record in records {
        let (Some(Value::Text(kind)), Value::Object(fields)) = (record.get("type"), record) else {
            continue;
        };
        if let Some(node) = &node {
            out.extend_from_slice(b"node=");
            out.extend_from_slice(node);
            out.push(b' ');
        }
        out.extend_from_slice(format!("type={kind} msg=audit({time}{point}:{serial}):").as_bytes());
        let number = crate::kind::number(kind.as_bytes(), Dialect::Own);
        Body {
            kind: number,
            arch: Arch::native(),
            out,
        }
        .write(fields);
        out.push(b'\n');
    }

    true
}

struct Body<'o> {
    kind: i32,
    arch: Arch,
    out: &'o mut Vec<u8>,
}

impl Body<'_> {
    fn write(&mut self, fields: &[(String, Value)]) {
        // What the encoder adds to an address.
        const ADDED: [&str; 5] = ["saddr_fam", "laddr", "lport", "path", "nlnk-pid"];
        let is_address = self.kind == abi::record_type::SOCKADDR;
        let words = fields.iter().filter(|(name, _)| name == "words");
        let others = fields.iter().filter(|(name, _)| {
            let is_added = is_address && ADDED.contains(&name.as_str());
            !is_added && !matches!(name.as_str(), "type" | "words" | "msg_fields")
        });

        for (name, value) in words.chain(others) {
            self.out.push(b' ');
            self.field(name, value);
        }
    }

    fn field(&mut self, name: &str, value: &Value) {
        match (name, value) {
            ("words" | "text", _) => self.out.extend(value.bytes().unwrap_or_default()),
            ("argv", Value::Array(arguments)) => self.arguments(arguments),
            ("msg", _) => {
                self.out.extend_from_slice(b"msg='");
                self.out.extend(value.bytes().unwrap_or_default());
                self.out.push(b'\'');
            }
            _ => {
                self.out.extend_from_slice(name.as_bytes());
                self.out.push(b'=');
                self.value(name, value);
            }
        }
    }

    fn value(&mut self, name: &str, value: &Value) {
        match value {
            Value::Null if name == "proctitle" => self.out.extend_from_slice(b"\"(null)\""),
            Value::Null => self.out.extend_from_slice(b"(null)"),
            Value::Number(number) => self.out.extend_from_slice(number.as_bytes()),
            Value::Array(parts) => {
                let separator = if name == "proctitle" { 0 } else { 1 };
                let parts: Vec<Vec<u8>> = parts.iter().filter_map(Value::bytes).collect();
                self.text(&parts.join(&separator));
            }
            Value::Text(text) => match self.number(name, text) {
                Some(number) => self.out.extend_from_slice(number.as_bytes()),
                None if is_text(self.kind, name, text) => self.text(text.as_bytes()),
                None => self.out.extend_from_slice(text.as_bytes()),
            },
            Value::Object(_) => self.text(&value.bytes().unwrap_or_default()),
        }
    }

    /// The form that RAW has for a name, or for a number with `0x`.
    fn number(&mut self, name: &str, text: &str) -> Option<String> {
        match name {
            "arch" => {
                self.arch = Arch::from_name(text)?;
                Some(format!("{:x}", self.arch.audit_arch()))
            }
            "syscall" => abi::syscall_number(self.arch, text).map(|number| number.to_string()),
            "uring_op" => abi::uring_op_number(text).map(|number| number.to_string()),
            _ => text
                .strip_prefix("0x")
                .filter(|digits| is_register(name) && digits.bytes().all(|b| b.is_ascii_hexdigit()))
                .map(str::to_owned),
        }
    }

    fn arguments(&mut self, arguments: &[Value]) {
        for (number, argument) in arguments.iter().enumerate() {
            if number > 0 {
                self.out.push(b' ');
            }
            self.out.extend_from_slice(format!("a{number}=").as_bytes());
            self.text(&argument.bytes().unwrap_or_default());
        }
    }

    /// A text in quotes, or in hex if the kernel would write it so.
    fn text(&mut self, text: &[u8]) {
        let is_plain = text
            .iter()
            .all(|byte| (0x21..=0x7e).contains(byte) && *byte != b'"');
        if is_plain {
            self.out.push(b'"');
            self.out.extend_from_slice(text);
            self.out.push(b'"');
        } else {
            for byte in text {
                self.out.extend_from_slice(format!("{byte:02X}").as_bytes());
            }
        }
    }
}

fn is_register(name: &str) -> bool {
    matches!(name, "per" | "qbytes")
        || name
            .strip_prefix('a')
            .is_some_and(|number| number.parse::<u8>().is_ok())
}

/// Whether RAW has the field in quotes or hex.
fn is_text(kind: i32, name: &str, text: &str) -> bool {
    let is_number = kind == abi::record_type::SYSCALL && is_register(name);
    matches!(
        field_type(kind, name.as_bytes(), text.as_bytes()),
        FieldType::Escaped | FieldType::EscapedFile | FieldType::EscapedKey | FieldType::Proctitle
    ) && !is_number
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_becomes_its_lines() {
        let line = br#"{"time":1795229646.007,"serial":42,"node":"w","records":[
            {"type":"SYSCALL","arch":"x86_64","syscall":"openat","exit":-2,"a0":"0xffffff9c",
             "comm":"a b","exe":"/bin/x","key":["k","l"]},
            {"type":"EXECVE","argc":1,"argv":["ls"]},
            {"type":"PROCTITLE","proctitle":["a","b"]},
            {"type":"SOCKADDR","saddr":"0100","saddr_fam":"local"}]}"#;
        let mut out = Vec::new();
        assert!(json_lines(line, &mut out));
        let stamp = "msg=audit(1795229646.007:42):";
        let expected = format!(
            "node=w type=SYSCALL {stamp} arch=c000003e syscall=257 exit=-2 a0=ffffff9c \
             comm=612062 exe=\"/bin/x\" key=6B016C\n\
             node=w type=EXECVE {stamp} argc=1 a0=\"ls\"\n\
             node=w type=PROCTITLE {stamp} proctitle=610062\n\
             node=w type=SOCKADDR {stamp} saddr=0100\n"
        );
        assert_eq!(String::from_utf8_lossy(&out), expected);
        assert!(!json_lines(b"{}", &mut out));
        assert!(!json_lines(b"{", &mut out));
    }
}
