//! JSON values as the mappings build them: objects of few members, whose names are mostly constants.
//!
//! An object of `serde_json` copies each name and hashes it. Here, members stand in a list in the order in which they came,
//! and a name is looked up by comparing it with each.

use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Number;
use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

/// Name of a member.
pub(crate) type Name = Cow<'static, str>;

/// A JSON value.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Value {
    #[default]
    Null,
    Bool(bool),
    Number(Number),
    String(String),
    Array(Vec<Value>),
    Object(JsonObject),
}

/// A JSON object: its members in order, no name twice.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct JsonObject(Vec<(Name, Value)>);

/// Members from which on an object that is read looks for names that it has twice by their hashes.
const MANY: usize = 64;

impl JsonObject {
    pub(crate) fn new() -> JsonObject {
        JsonObject::default()
    }

    pub(crate) fn with_capacity(members: usize) -> JsonObject {
        JsonObject(Vec::with_capacity(members))
    }

    fn place(&self, name: &str) -> Option<usize> {
        self.0.iter().position(|member| member.0 == name)
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Value> {
        let member = self.0.iter().find(|member| member.0 == name);
        member.map(|(_, value)| value)
    }

    pub(crate) fn get_mut(&mut self, name: &str) -> Option<&mut Value> {
        let member = self.0.iter_mut().find(|member| member.0 == name);
        member.map(|(_, value)| value)
    }

    pub(crate) fn contains_key(&self, name: &str) -> bool {
        self.place(name).is_some()
    }

    /// Puts a value under a name, in the place of one that is there.
    pub(crate) fn insert(&mut self, name: Name, value: Value) {
        match self.get_mut(&name) {
            Some(there) => *there = value,
            None => self.0.push((name, value)),
        }
    }

    /// The value under a name, which is made first if there is none.
    pub(crate) fn or_insert_with(
        &mut self,
        name: impl Into<Name>,
        value: impl FnOnce() -> Value,
    ) -> &mut Value {
        let name = name.into();
        let at = self.place(&name).unwrap_or_else(|| {
            self.0.push((name, value()));
            self.0.len() - 1
        });
        &mut self.0[at].1
    }

    /// Takes a member out; the last one comes into its place.
    pub(crate) fn remove(&mut self, name: &str) -> Option<Value> {
        let at = self.place(name)?;
        Some(self.0.swap_remove(at).1)
    }

    pub(crate) fn retain(&mut self, mut keep: impl FnMut(&str, &mut Value) -> bool) {
        self.0.retain_mut(|(name, value)| keep(name, value));
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(name, value)| (&**name, value))
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (&str, &mut Value)> {
        self.0.iter_mut().map(|(name, value)| (&**name, value))
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Leaves of each name the first place, with the last value.
    fn unite(&mut self) {
        let mut places: HashMap<Name, usize> = HashMap::with_capacity(self.0.len());
        let members = std::mem::take(&mut self.0);
        for (name, value) in members {
            match places.get(&name) {
                Some(at) => self.0[*at].1 = value,
                None => {
                    places.insert(name.clone(), self.0.len());
                    self.0.push((name, value));
                }
            }
        }
    }
}

impl IntoIterator for JsonObject {
    type Item = (Name, Value);
    type IntoIter = std::vec::IntoIter<(Name, Value)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<N: Into<Name>> FromIterator<(N, Value)> for JsonObject {
    fn from_iter<I: IntoIterator<Item = (N, Value)>>(members: I) -> JsonObject {
        let mut object = JsonObject::new();
        for (name, value) in members {
            object.insert(name.into(), value);
        }
        object
    }
}

impl Value {
    /// The member of an object; `None` for any other value.
    pub(crate) fn get(&self, name: &str) -> Option<&Value> {
        self.as_object()?.get(name)
    }

    pub(crate) fn as_object(&self) -> Option<&JsonObject> {
        match self {
            Value::Object(object) => Some(object),
            _ => None,
        }
    }

    pub(crate) fn as_array(&self) -> Option<&[Value]> {
        match self {
            Value::Array(list) => Some(list),
            _ => None,
        }
    }

    pub(crate) fn as_str(&self) -> Option<&str> {
        match self {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn get_mut(&mut self, name: &str) -> Option<&mut Value> {
        match self {
            Value::Object(object) => object.get_mut(name),
            _ => None,
        }
    }

    pub(crate) fn as_i64(&self) -> Option<i64> {
        match self {
            Value::Number(number) => number.as_i64(),
            _ => None,
        }
    }

    pub(crate) fn is_null(&self) -> bool {
        *self == Value::Null
    }

    /// The value, in whose place null is left.
    pub(crate) fn take(&mut self) -> Value {
        std::mem::take(self)
    }
}

/// An object of these members.
pub(crate) fn object<const N: usize>(members: [(&'static str, Value); N]) -> Value {
    let members = members.map(|(name, value)| (Name::Borrowed(name), value));
    Value::Object(JsonObject(members.into()))
}

impl PartialEq<str> for Value {
    fn eq(&self, text: &str) -> bool {
        self.as_str() == Some(text)
    }
}

impl PartialEq<&str> for Value {
    fn eq(&self, text: &&str) -> bool {
        self.as_str() == Some(*text)
    }
}

macro_rules! from {
    ($($kind:ty: $value:ident => $made:expr;)*) => {
        $(impl From<$kind> for Value {
            fn from($value: $kind) -> Value {
                $made
            }
        })*
    };
}

from! {
    bool: value => Value::Bool(value);
    i32: value => Value::Number(value.into());
    i64: value => Value::Number(value.into());
    u16: value => Value::Number(value.into());
    u32: value => Value::Number(value.into());
    u64: value => Value::Number(value.into());
    usize: value => Value::Number(value.into());
    &str: value => Value::String(value.to_owned());
    String: value => Value::String(value);
    JsonObject: value => Value::Object(value);
}

impl<V: Into<Value>> From<Vec<V>> for Value {
    fn from(list: Vec<V>) -> Value {
        list.into_iter().collect()
    }
}

impl<V: Into<Value> + Clone> From<&[V]> for Value {
    fn from(list: &[V]) -> Value {
        list.iter().cloned().collect()
    }
}

impl<V: Into<Value>> FromIterator<V> for Value {
    fn from_iter<I: IntoIterator<Item = V>>(list: I) -> Value {
        Value::Array(list.into_iter().map(V::into).collect())
    }
}

/// As JSON.
impl fmt::Display for Value {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = serde_json::to_string(self).map_err(|_| fmt::Error)?;
        out.write_str(&text)
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        match self {
            Value::Null => out.serialize_unit(),
            Value::Bool(value) => out.serialize_bool(*value),
            Value::Number(number) => number.serialize(out),
            Value::String(text) => out.serialize_str(text),
            Value::Array(list) => {
                let mut sequence = out.serialize_seq(Some(list.len()))?;
                for value in list {
                    sequence.serialize_element(value)?;
                }
                sequence.end()
            }
            Value::Object(object) => {
                let mut map = out.serialize_map(Some(object.len()))?;
                for (name, value) in object.iter() {
                    map.serialize_entry(name, value)?;
                }
                map.end()
            }
        }
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Value, D::Error> {
        input.deserialize_any(Reading)
    }
}

struct Reading;

impl<'de> Visitor<'de> for Reading {
    type Value = Value;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(text.into())
    }

    fn visit_string<E>(self, text: String) -> Result<Value, E> {
        Ok(text.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut input: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(value) = input.next_element()? {
            list.push(value);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut input: A) -> Result<Value, A::Error> {
        let mut object = JsonObject::new();
        while let Some((name, value)) = input.next_entry::<String, Value>()? {
            if object.len() < MANY {
                object.insert(name.into(), value);
            } else {
                object.0.push((name.into(), value));
            }
        }
        if object.len() > MANY {
            object.unite();
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_read_and_written_as_by_serde_json() {
        let many: Vec<String> = (0..200)
            .map(|at| format!("\"m{}\":{at}", at % 150))
            .collect();
        let texts = [
            r#"{"b":1,"a":[null,true,-7,18446744073709551615,1.5,"\u00e9\n\u0000\"\\"],"b":{"x":{}},"":""}"#.to_owned(),
            format!("{{{}}}", many.join(",")),
            "1e400".to_owned(),
            "{\"a\":".to_owned(),
        ];
        for text in texts {
            let theirs = serde_json::from_str::<serde_json::Value>(&text);
            let ours = serde_json::from_str::<Value>(&text);
            assert_eq!(ours.is_ok(), theirs.is_ok(), "{text}");
            if let (Ok(ours), Ok(theirs)) = (ours, theirs) {
                assert_eq!(ours.to_string(), theirs.to_string());
            }
        }
    }

    #[test]
    fn a_member_is_replaced_in_its_place_and_removed_for_the_last() {
        let mut object: JsonObject = ["a", "b", "c"]
            .map(|name| (name, 1.into()))
            .into_iter()
            .collect();
        object.insert("a".into(), 2.into());
        *object.or_insert_with("b", || 7.into()) = 3.into();
        object.or_insert_with("d", || 4.into());
        assert_eq!(
            Value::from(object.clone()).to_string(),
            r#"{"a":2,"b":3,"c":1,"d":4}"#
        );
        assert_eq!(object.remove("a"), Some(2.into()));
        assert_eq!(object.remove("a"), None);
        assert_eq!(Value::from(object).to_string(), r#"{"d":4,"b":3,"c":1}"#);
    }
}
