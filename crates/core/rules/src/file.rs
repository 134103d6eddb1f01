//! A rules file: lines, comments, and which errors stop loading.

use crate::parse::parse_line_as;
use crate::{Command, Dialect, Host, RuleError, Source};

/// The commands, errors and warnings of a rules file.
#[derive(Clone, Debug, Default)]
pub struct ParsedFile {
    /// The commands, in order, each with its place in the file.
    pub commands: Vec<(Source, Command)>,
    /// Lines that are wrong. Those after `-i` or `-c` are marked as tolerated.
    pub errors: Vec<RuleError>,
    /// Warnings: auditctl prints them and goes on.
    pub warnings: Vec<RuleError>,
}

/// Reads a whole rules file named `name` as audit 4.x does. Returns its commands and the errors of
/// its wrong lines. auditctl stops at the first wrong line; this function reads on, so that all of
/// them can be shown. [`parse_text`] also returns warnings.
pub fn parse_file(
    name: &str,
    text: impl AsRef<[u8]>,
    host: &dyn Host,
) -> (Vec<(Source, Command)>, Vec<RuleError>) {
    let parsed = parse_text(Dialect::default(), name, text, host);
    (parsed.commands, parsed.errors)
}

/// Reads a whole rules file named `name`. Lines end in a line feed; a carriage return before it
/// is not part of the line.
pub fn parse_text(
    dialect: Dialect,
    name: &str,
    text: impl AsRef<[u8]>,
    host: &dyn Host,
) -> ParsedFile {
    let lines = text.as_ref().split(|&byte| byte == b'\n');
    let numbered = lines.zip(1..).map(|(line, number)| {
        let file = name.to_owned();
        let source = Source { file, line: number };
        (dialect, source, line)
    });
    parse_lines(numbered, host)
}

/// Reads the lines of one or several files, each with its dialect and place.
pub(crate) fn parse_lines<'a>(
    lines: impl Iterator<Item = (Dialect, Source, &'a [u8])>,
    host: &dyn Host,
) -> ParsedFile {
    let mut file = ParsedFile::default();
    let mut is_tolerant = false;
    for (dialect, source, line) in lines {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let parsed = parse_line_as(dialect, line, &source, host);
        file.warnings.extend(parsed.warnings);
        if let Some(mut error) = parsed.error {
            error.is_tolerated = is_tolerant;
            file.errors.push(error);
        }
        is_tolerant |= parsed
            .commands
            .iter()
            .any(|command| matches!(command, Command::IgnoreErrors | Command::ContinueOnError));
        let commands = parsed.commands.into_iter();
        file.commands
            .extend(commands.map(|command| (source.clone(), command)));
    }

    file
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::StaticHost;
    use abi::Arch;

    fn read(text: &str) -> ParsedFile {
        parse_text(Dialect::V4, "r", text, &StaticHost::new(Arch::X86_64))
    }

    #[test]
    fn comments_and_blank_lines_count_as_lines() {
        let file = read("## comment\n\n   # indented\n-D\n\t\n-a bogus\n");
        assert_eq!(file.commands.len(), 1);
        assert_eq!(file.commands[0].0.line, 4);
        assert_eq!(file.errors.len(), 1);
        assert_eq!(file.errors[0].line(), 6);
        assert_eq!(file.errors[0].column, 4);
        assert!(!file.errors[0].is_tolerated);
    }

    #[test]
    fn every_wrong_line_is_reported_and_those_after_i_or_c_are_tolerated() {
        for option in ["-i", "-c"] {
            let file = read(&format!("-a bogus\n{option}\n-b many\n-w relative\n"));
            let tolerated: Vec<bool> = file.errors.iter().map(|e| e.is_tolerated).collect();
            assert_eq!(tolerated, [false, true, true]);
        }
    }

    #[test]
    fn a_comment_after_a_rule_is_an_error() {
        let file = read("-w /etc/passwd -p wa # who\n");
        assert_eq!(
            file.errors[0].message,
            "parameter passed without an option given"
        );
        assert_eq!((file.errors[0].column, file.errors[0].len), (22, 1));
    }

    #[test]
    fn lines_have_a_length_limit_and_comments_none() {
        let long = "x".repeat(7000);
        let file = read(&format!("# {long}\n-w /{long}\n"));
        assert_eq!(file.errors.len(), 1);
        assert_eq!(file.errors[0].line(), 2);
    }

    #[test]
    fn carriage_returns_are_not_part_of_a_key() {
        let file = read("-a always,exit -F arch=b64 -S open -k x\r\n");
        let (_, Command::Append(rule)) = &file.commands[0] else {
            panic!("no rule")
        };
        assert_eq!(rule.key(), Some(b"x".as_slice()));
    }
}
