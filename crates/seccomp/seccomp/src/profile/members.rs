//! Values of JSON and YAML, read as Go reads them into its structs, and so Docker, Podman, runc and
//! Kubernetes: of a member that stands twice, in the same or in another letter case, the last counts.

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use std::fmt;

/// A value, and a note for each member that counts for nothing because it stands there again.
#[derive(Clone, Debug, Default)]
pub(super) struct Noted {
    pub(super) value: Value,
    pub(super) notes: Vec<String>,
}

impl Noted {
    /// Reads a value.
    pub(super) fn read<'de, D: Deserializer<'de>>(from: D) -> Result<Noted, D::Error> {
        let mut notes = Vec::new();
        let value = Reader {
            path: String::new(),
            notes: &mut notes,
        }
        .deserialize(from)?;
        Ok(Noted { value, notes })
    }
}

/// Reads the value at a path such as `syscalls[3].action`.
struct Reader<'a> {
    path: String,
    notes: &'a mut Vec<String>,
}

impl<'de> DeserializeSeed<'de> for Reader<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Value, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Reader<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    // YAML's null.
    fn visit_none<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, from: D) -> Result<Value, D::Error> {
        from.deserialize_any(self)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        loop {
            let reader = Reader {
                path: format!("{}[{}]", self.path, list.len()),
                notes: self.notes,
            };
            match items.next_element_seed(reader)? {
                Some(item) => list.push(item),
                None => return Ok(list.into()),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            let path = if self.path.is_empty() {
                name.clone()
            } else {
                format!("{}.{name}", self.path)
            };
            let before = object.keys().find(|it| it.eq_ignore_ascii_case(&name));
            if let Some(before) = before.cloned() {
                object.remove(&before);
                let spelt = if before == name {
                    "stands there twice".to_owned()
                } else {
                    format!("stands there as {before}, too")
                };
                self.notes.push(format!(
                    "{path}: {spelt}; the last counts, as for Docker and Podman: delete one"
                ));
            }
            let reader = Reader {
                path,
                notes: self.notes,
            };
            object.insert(name, members.next_value_seed(reader)?);
        }

        Ok(object.into())
    }
}
