//! An error found while a line is read, before its place in a file is attached.

use crate::words::Word;
use crate::{ErrorKind, RuleError, Severity, Source};

/// An error or warning about one word or the whole line.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    /// The word; `None` for the whole line.
    word: Option<Word>,
    message: String,
    expected: Option<String>,
    help: Option<String>,
    kind: ErrorKind,
}

impl Fault {
    /// A word that auditctl refuses with `message`.
    pub(crate) fn at(word: &Word, message: impl Into<String>) -> Fault {
        Fault {
            word: Some(word.clone()),
            ..Fault::line(message)
        }
    }

    /// A line that auditctl refuses with `message`.
    pub(crate) fn line(message: impl Into<String>) -> Fault {
        Fault {
            word: None,
            message: message.into(),
            expected: None,
            help: None,
            kind: ErrorKind::Syntax,
        }
    }

    /// Adds what would have been right.
    pub(crate) fn expected(mut self, expected: impl Into<String>) -> Fault {
        self.expected = Some(expected.into());
        self
    }

    /// Adds what to do.
    pub(crate) fn help(mut self, help: impl Into<String>) -> Fault {
        self.help = Some(help.into());
        self
    }

    /// Suggests the nearest of the valid names, if one is near enough.
    pub(crate) fn nearest<'a>(
        self,
        name: &str,
        candidates: impl IntoIterator<Item = &'a str>,
    ) -> Fault {
        match crate::suggest::nearest(name, candidates) {
            Some(nearest) => self.help(format!("did you mean `{nearest}`?")),
            None => self,
        }
    }

    /// Sets the kind, for errors of the kernel rather than auditctl.
    pub(crate) fn kind(mut self, kind: ErrorKind) -> Fault {
        self.kind = kind;
        self
    }

    /// The error of the line `line` at `place`.
    pub(crate) fn into_error(self, place: &Source, line: &str, severity: Severity) -> RuleError {
        let (start, len) = self
            .word
            .map_or((None, 0), |word| (Some(word.start), word.len));
        RuleError {
            source_place: place.clone(),
            column: start.map_or(0, |start| u32::try_from(start + 1).unwrap_or(u32::MAX)),
            len: u32::try_from(len).unwrap_or(u32::MAX),
            message: self.message,
            expected: self.expected,
            help: self.help,
            source_line: line.to_owned(),
            severity,
            kind: self.kind,
            is_tolerated: false,
        }
    }
}
