//! The context in which the value of a key is parsed.

use crate::error::{BadValue, ConfigError, Notice, Place};

/// A value as error messages show it, with special characters escaped.
pub(super) fn printable(text: &str) -> String {
    text.escape_debug().to_string()
}

/// The value of a key, and its place in the file.
pub(super) struct Context<'a> {
    pub(super) place: Place,
    pub(super) key: &'static str,
    /// The value.
    pub(super) value: &'a str,
    /// The word after the value (a program for EXEC).
    pub(super) option: Option<&'a str>,
    /// Whether files that values name are checked.
    pub(super) check_files: bool,
    pub(super) notices: &'a mut Vec<Notice>,
}

impl Context<'_> {
    pub(super) fn notice(&mut self, text: String) {
        self.notices.push(Notice {
            place: self.place.clone(),
            key: self.key,
            text,
        });
    }

    pub(super) fn refuse(
        &self,
        found: impl Into<String>,
        expected: impl Into<String>,
    ) -> ConfigError {
        ConfigError::Value(Box::new(BadValue {
            place: self.place.clone(),
            key: self.key,
            value: printable(self.value),
            found: found.into(),
            expected: expected.into(),
            nearest: None,
        }))
    }
}
