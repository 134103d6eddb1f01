//! Errors in a profile.

/// Longest part of a profile that an error shows, in characters.
const FOUND_CHARS_MAX: usize = 57;

/// The first part of a profile that cannot be honoured, and the remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProfileError {
    /// The text is not JSON.
    #[error("line {line}, column {column}: not JSON: {message}")]
    Json {
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
        /// The parser's message.
        message: String,
    },
    /// The text is not YAML.
    #[error("line {line}, column {column}: not YAML: {message}")]
    Yaml {
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
        /// The parser's message.
        message: String,
    },
    /// A value that its place does not allow.
    #[error("{place}: found {found}, expected {expected}; {remedy}")]
    Unexpected {
        /// JSON path (`syscalls[3].action`), or `line N`.
        place: String,
        /// The value.
        found: String,
        /// Description of the values that the place allows.
        expected: String,
        /// Remedy.
        remedy: String,
    },
}

impl ProfileError {
    pub(super) fn new(
        place: impl Into<String>,
        found: impl Into<String>,
        expected: impl Into<String>,
        remedy: impl Into<String>,
    ) -> ProfileError {
        let mut found = found.into();
        if let Some((end, _)) = found.char_indices().nth(FOUND_CHARS_MAX) {
            found.truncate(end);
            found.push('…');
        }
        ProfileError::Unexpected {
            place: place.into(),
            found,
            expected: expected.into(),
            remedy: remedy.into(),
        }
    }
}
