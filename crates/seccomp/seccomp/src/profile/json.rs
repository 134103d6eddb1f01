//! JSON values that know their path.

use super::members::Noted;
use super::{words, ProfileError, BYTE_ORDER_MARK};
use serde_json::{Map, Value};

/// A value and its path, such as `syscalls[3].action`.
#[derive(Clone)]
pub(super) struct Place<'a> {
    pub(super) path: String,
    pub(super) value: &'a Value,
}

/// A member of an object, if it is there.
pub(super) fn keep(to: &mut Map<String, Value>, name: &str, from: Option<&Value>) {
    if let Some(value) = from.filter(|value| !value.is_null()) {
        to.insert(name.to_owned(), value.clone());
    }
}

/// Parses a whole text.
pub(super) fn read(text: &str) -> Result<Noted, ProfileError> {
    if text.starts_with(BYTE_ORDER_MARK) {
        return Err(ProfileError::new(
            "line 1",
            "a byte order mark (U+FEFF)",
            "JSON, which has none",
            "save the file as UTF-8 without it; Docker, Podman and runc refuse it",
        ));
    }

    let mut from = serde_json::Deserializer::from_str(text);
    let noted = Noted::read(&mut from).and_then(|noted| from.end().map(|()| noted));
    noted.map_err(|error| ProfileError::Json {
        line: error.line(),
        // serde_json gives 0 at the end of the text.
        column: error.column().max(1),
        message: error
            .to_string()
            .split(" at line ")
            .next()
            .unwrap_or_default()
            .to_owned(),
    })
}

/// The line, from 1, on which the value at a path such as `syscalls[3]` begins in a JSON text; `None`
/// if the text is not JSON, or has no such value.
pub fn line_of(text: &str, path: &str) -> Option<usize> {
    if path.is_empty() || !text.trim_start().starts_with('{') {
        return None;
    }

    let mut rest = text;
    for step in path.split(['.', '[']) {
        let found = match step.strip_suffix(']') {
            Some(index) => item(rest, index.parse().ok()?),
            None => member(rest, step),
        };
        rest = found?;
    }

    let before = text.len() - rest.len();

    Some(text.get(..before)?.matches('\n').count() + 1)
}

/// The text from a member's value on, in a text that begins with an object.
fn member<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let mut rest = text.trim_start().strip_prefix('{')?.trim_start();
    while rest.starts_with('"') {
        let (key, after) = value(rest)?;
        let after = after.trim_start().strip_prefix(':')?.trim_start();
        if serde_json::from_str::<String>(key).ok()? == name {
            return Some(after);
        }
        rest = value(after)?.1.trim_start().strip_prefix(',')?.trim_start();
    }
    None
}

/// The text from an item on, in a text that begins with a list.
fn item(text: &str, index: usize) -> Option<&str> {
    let mut rest = text.trim_start().strip_prefix('[')?.trim_start();
    for _ in 0..index {
        rest = value(rest)?.1.trim_start().strip_prefix(',')?.trim_start();
    }
    Some(rest)
}

/// A value at the beginning of a text, and what follows it.
fn value(text: &str) -> Option<(&str, &str)> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<serde::de::IgnoredAny>();
    values.next()?.ok()?;
    Some(text.split_at(values.byte_offset()))
}

impl<'a> Place<'a> {
    pub(super) fn root(value: &'a Value) -> Place<'a> {
        Place {
            path: String::new(),
            value,
        }
    }

    /// The error for a value that this place does not allow.
    pub(super) fn refuse(&self, expected: &str, remedy: &str) -> ProfileError {
        let place = if self.path.is_empty() {
            "the profile"
        } else {
            &self.path
        };
        ProfileError::new(place, self.value.to_string(), expected, remedy)
    }

    /// A member that exists and is not null. Like Go, and so Docker, Podman and Kubernetes, this
    /// takes a name in other letter case where there is none in the right one.
    pub(super) fn get(&self, name: &str) -> Option<Place<'a>> {
        let members = self.value.as_object()?;
        let folded = || members.keys().find(|key| key.eq_ignore_ascii_case(name));
        let key = match members.get_key_value(name) {
            Some((key, _)) => key,
            None => folded()?,
        };
        let value = members.get(key).filter(|value| !value.is_null())?;
        Some(Place {
            path: self.path_of(key),
            value,
        })
    }

    fn path_of(&self, name: &str) -> String {
        if self.path.is_empty() {
            name.to_owned()
        } else {
            format!("{}.{name}", self.path)
        }
    }

    /// Fails unless this is an object. Notes the members that are not among `known`, and those whose
    /// letter case is another.
    pub(super) fn note_members(
        &self,
        known: &[&str],
        notes: &mut Vec<String>,
    ) -> Result<(), ProfileError> {
        let members = self
            .value
            .as_object()
            .ok_or_else(|| self.refuse("an object", "write members between { and }"))?;
        for name in members
            .keys()
            .filter(|name| !known.contains(&name.as_str()))
        {
            let path = self.path_of(name);
            let folded = known.iter().find(|known| known.eq_ignore_ascii_case(name));
            notes.push(match folded {
                Some(known) => format!(
                    "{path}: taken for {known}, as Docker and Podman take it; crun ignores it: \
                     correct its spelling"
                ),
                None => format!(
                    "{path}: no such member; it has no effect: {}",
                    words::nearest(name, known.iter().copied())
                        .map_or("delete it".to_owned(), |known| format!(
                            "did you mean {known}?"
                        ))
                ),
            });
        }
        Ok(())
    }

    pub(super) fn text(&self, expected: &str, remedy: &str) -> Result<&'a str, ProfileError> {
        self.value
            .as_str()
            .ok_or_else(|| self.refuse(expected, remedy))
    }

    /// The value as a whole number up to `max`.
    pub(super) fn number(&self, max: u64) -> Result<u64, ProfileError> {
        let number = self.value.as_u64().filter(|&number| number <= max);
        number.ok_or_else(|| {
            let expected = format!("a whole number from 0 to {max}");
            self.refuse(&expected, "write it without quotes, sign or fraction")
        })
    }

    /// The items of this list.
    pub(super) fn items(&self) -> Result<Vec<Place<'a>>, ProfileError> {
        let items = self
            .value
            .as_array()
            .ok_or_else(|| self.refuse("a list", "write its items between [ and ]"))?;
        let place = |(index, value)| Place {
            path: format!("{}[{index}]", self.path),
            value,
        };
        Ok(items.iter().enumerate().map(place).collect())
    }

    /// The strings in the list `name`; empty if that member is missing.
    pub(super) fn texts(&self, name: &str) -> Result<Vec<(Place<'a>, &'a str)>, ProfileError> {
        let Some(list) = self.get(name) else {
            return Ok(Vec::new());
        };
        list.items()?
            .into_iter()
            .map(|item| {
                let text = item.text("a text", "write it between quotes")?;
                Ok((item, text))
            })
            .collect()
    }
}
