//! JSON values that know their path.

use super::ProfileError;
use serde_json::Value;

/// A value and its path, such as `syscalls[3].action`.
#[derive(Clone)]
pub(super) struct Place<'a> {
    pub(super) path: String,
    pub(super) value: &'a Value,
}

/// Parses a whole text.
pub(super) fn read(text: &str) -> Result<Value, ProfileError> {
    serde_json::from_str(text).map_err(|error| ProfileError::Json {
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
        let mut found = self.value.to_string();
        if found.len() > 60 {
            let end = (0..=57)
                .rev()
                .find(|&end| found.is_char_boundary(end))
                .unwrap_or(0);
            found.truncate(end);
            found.push('…');
        }
        ProfileError::new(place, found, expected, remedy)
    }

    /// A member that exists and is not null.
    pub(super) fn get(&self, name: &str) -> Option<Place<'a>> {
        let value = self.value.get(name).filter(|value| !value.is_null())?;
        let path = match self.path.is_empty() {
            true => name.to_owned(),
            false => format!("{}.{name}", self.path),
        };
        Some(Place { path, value })
    }

    /// Fails unless this is an object. Returns the members that are not among `known`.
    pub(super) fn unknown_members(&self, known: &[&str]) -> Result<Vec<String>, ProfileError> {
        let members = self
            .value
            .as_object()
            .ok_or_else(|| self.refuse("an object", "write members between { and }"))?;
        let unknown = members
            .keys()
            .filter(|name| !known.contains(&name.as_str()));
        Ok(unknown
            .map(|name| match self.path.as_str() {
                "" => name.clone(),
                path => format!("{path}.{name}"),
            })
            .collect())
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
