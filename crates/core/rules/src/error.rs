//! Errors in rules: what is wrong, and where.

use std::fmt;

use miette::{LabeledSpan, MietteError, MietteSpanContents, SourceCode, SourceSpan, SpanContents};

use crate::Source;

/// Whether a line is accepted despite its fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// Reported, but the line is accepted.
    Warning,
    /// The line is rejected.
    Error,
}

/// The kind of a mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// auditctl itself refuses the line.
    Syntax,
    /// auditctl accepts the line, but the kernel refuses the rule with EINVAL on any machine.
    Invalid,
    /// The kernel refuses the rule because a path that it needs is missing (ENOENT).
    MissingPath,
    /// The same rule exists already (EEXIST).
    Exists,
    /// There is no such rule to delete (ENOENT).
    NoSuchRule,
    /// `-e 2` came before (EPERM).
    Locked,
}

/// One error or warning about one line.
///
/// [`fmt::Display`] gives `file:line:column: message`; as a [`miette::Diagnostic`] it shows the line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct RuleError {
    /// File and number of the line.
    pub source_place: Source,
    /// Column of the offending word, in bytes, counted from 1; 0 if the whole line is meant.
    pub column: u32,
    /// Length of the offending word, in bytes.
    pub len: u32,
    /// Description of the fault, in the words of auditctl if it has a message for it.
    pub message: String,
    /// Description of correct input.
    pub expected: Option<String>,
    /// Remedy: usually the nearest valid name.
    pub help: Option<String>,
    /// The line, or the rule as auditctl lists it.
    pub source_line: String,
    /// Whether the line is accepted despite the fault.
    pub severity: Severity,
    /// The kind of the mistake.
    pub kind: ErrorKind,
    /// Whether an earlier `-i` or `-c` lets loading go on (auditctl(8)).
    pub is_tolerated: bool,
}

impl RuleError {
    /// An error about a whole rule or line.
    pub(crate) fn whole(place: &Source, line: String, kind: ErrorKind, message: &str) -> RuleError {
        RuleError {
            source_place: place.clone(),
            column: 0,
            len: 0,
            message: message.to_owned(),
            expected: None,
            help: None,
            source_line: line,
            severity: Severity::Error,
            kind,
            is_tolerated: false,
        }
    }

    /// The file that contains the line, or "command line".
    pub fn file(&self) -> &str {
        &self.source_place.file
    }

    /// The number of the line, counted from 1; 0 if there is none.
    pub fn line(&self) -> u32 {
        self.source_place.line
    }

    fn span(&self) -> SourceSpan {
        let end = self.source_line.len();
        let start = (self.column.saturating_sub(1) as usize).min(end);
        let len = if self.column == 0 {
            end
        } else {
            (self.len as usize).min(end - start)
        };
        SourceSpan::new(start.into(), len)
    }
}

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Source { file, line } = &self.source_place;
        if !file.is_empty() {
            write!(f, "{file}:")?;
            if *line > 0 {
                write!(f, "{line}:")?;
            }
            if self.column > 0 {
                write!(f, "{}:", self.column)?;
            }
            f.write_str(" ")?;
        }

        f.write_str(&self.message)
    }
}

impl miette::Diagnostic for RuleError {
    fn severity(&self) -> Option<miette::Severity> {
        Some(match self.severity {
            Severity::Warning => miette::Severity::Warning,
            Severity::Error => miette::Severity::Error,
        })
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        match (&self.expected, &self.help) {
            (Some(expected), Some(help)) => Some(Box::new(format!("expected {expected}\n{help}"))),
            (Some(expected), None) => Some(Box::new(format!("expected {expected}"))),
            (None, Some(help)) => Some(Box::new(help)),
            (None, None) => None,
        }
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        (!self.source_line.is_empty()).then_some(self as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        if self.source_line.is_empty() {
            return None;
        }
        Some(Box::new(std::iter::once(LabeledSpan::new_with_span(
            None,
            self.span(),
        ))))
    }
}

/// The source of a report is this one line, with its real file name and line number.
impl SourceCode for RuleError {
    fn read_span<'a>(
        &'a self,
        span: &SourceSpan,
        _context_lines_before: usize,
        _context_lines_after: usize,
    ) -> Result<Box<dyn SpanContents<'a> + 'a>, MietteError> {
        let data = self.source_line.as_bytes();
        if span.offset() + span.len() > data.len() {
            return Err(MietteError::OutOfBounds);
        }

        Ok(Box::new(MietteSpanContents::new_named(
            self.source_place.file.clone(),
            data,
            (0, data.len()).into(),
            self.source_place.line.saturating_sub(1) as usize,
            0,
            1,
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_shows_file_line_and_help() {
        let place = Source {
            file: "audit.rules".to_owned(),
            line: 7,
        };
        let mut error = RuleError::whole(
            &place,
            "-a always,exit -F uod=0".to_owned(),
            ErrorKind::Syntax,
            "-F unknown field: uod",
        );
        (error.column, error.len) = (19, 3);
        error.help = Some("did you mean `uid`?".to_owned());
        assert_eq!(error.to_string(), "audit.rules:7:19: -F unknown field: uod");
        let mut report = String::new();
        miette::NarratableReportHandler::new()
            .render_report(&mut report, &error)
            .unwrap();
        assert!(report.contains("audit.rules"), "{report}");
        assert!(report.contains("line 7, columns 19 to 21"), "{report}");
        assert!(report.contains("did you mean `uid`?"), "{report}");
    }

    #[test]
    fn spans_beyond_the_line_do_not_break_reports() {
        let mut error =
            RuleError::whole(&Source::default(), "-D".to_owned(), ErrorKind::Syntax, "x");
        (error.column, error.len) = (500, 10);
        let mut report = String::new();
        miette::NarratableReportHandler::new()
            .render_report(&mut report, &error)
            .unwrap();
        assert!(report.contains('x'));
    }
}
