//! An error while a line is read, before it is known where the line came from.

use crate::words::Word;
use crate::{ErrorKind, RuleError, Severity, Source};

/// What is wrong with one word.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    /// The word; `None` means the line.
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

    /// Says what would have been right.
    pub(crate) fn expected(mut self, expected: impl Into<String>) -> Fault {
        self.expected = Some(expected.into());
        self
    }

    /// Says what to do.
    pub(crate) fn help(mut self, help: impl Into<String>) -> Fault {
        self.help = Some(help.into());
        self
    }

    /// Names the nearest valid name, if there is one.
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

    /// Says that the kernel refuses it, not auditctl.
    pub(crate) fn kind(mut self, kind: ErrorKind) -> Fault {
        self.kind = kind;
        self
    }

    /// With its place.
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
