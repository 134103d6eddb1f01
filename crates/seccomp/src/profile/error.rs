//! What is wrong with a profile.

/// The first thing that cannot be honoured, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProfileError {
    /// Not JSON at all.
    #[error("line {line}, column {column}: not JSON: {message}")]
    Json {
        /// From 1.
        line: usize,
        /// From 1.
        column: usize,
        /// What the parser says.
        message: String,
    },
    /// A value of another kind than its place takes.
    #[error("{place}: found {found}, expected {expected}; {remedy}")]
    Unexpected {
        /// JSON path (`syscalls[3].action`) or `line N`.
        place: String,
        /// The value.
        found: String,
        /// What the place takes.
        expected: String,
        /// What to do.
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
        ProfileError::Unexpected {
            place: place.into(),
            found: found.into(),
            expected: expected.into(),
            remedy: remedy.into(),
        }
    }
}
