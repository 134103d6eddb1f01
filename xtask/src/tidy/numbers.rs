//! Checks that numbers of record types and of errors are written in `abi` alone: elsewhere they have names.
//!
//! An error is a constant with its name and a number. A record type is that too, a number that `kind` is compared with,
//! a number in the pattern of an arm, or one that becomes a `RecordType`.

use super::source::{without_comments_and_literals, without_tests, Language, SourceFile};
use super::Offence;

/// The crate that has the numbers.
const HOME: &str = "crates/core/abi/";

/// Lines that write a number which has a name.
pub(super) fn offences(sources: &[SourceFile]) -> Vec<Offence> {
    let is_judged =
        |source: &&SourceFile| source.language == Language::Rust && !source.path.starts_with(HOME);
    let mut offences = Vec::new();
    for SourceFile { path, text, .. } in sources.iter().filter(is_judged) {
        let whole = without_comments_and_literals(text);
        // A test may write what it expects as a number, but gives no name to it.
        let code = without_tests(&whole);
        let mut found: Vec<(usize, String)> = Vec::new();
        found.extend(
            (1..)
                .zip(whole.lines())
                .filter_map(|(at, line)| Some((at, named(line)?))),
        );
        if !path.contains("/tests/") && !path.ends_with("tests.rs") {
            let kinds = (1..).zip(code.lines());
            found.extend(kinds.filter_map(|(at, line)| Some((at, kind(line)?))));
        }

        offences.extend(found.into_iter().map(|(at, name)| Offence {
            place: path.clone(),
            error: format!("{path}:{at}: write {name} by its name in abi, not its number"),
        }));
    }
    offences
}

/// The name of the error or record type that a line gives a number to: `const EPERM: i64 = -1;`.
fn named(line: &str) -> Option<String> {
    let (declared, value) = line.split_once(" = ")?;
    let (_, name) = declared.split_once("const ")?;
    let (name, _) = name.split_once(':')?;
    let number = value.trim_end_matches(';').trim_start_matches('-');
    let number: i32 = number.parse().ok()?;

    let is_error = abi::errno_number(name) == Some(number);
    let is_kind = abi::RecordType(number).name() == Some(name);
    (is_error || is_kind).then(|| name.to_owned())
}

/// The record type whose number a line asks for.
fn kind(line: &str) -> Option<String> {
    let line = line.trim();
    let pattern = line.split_once("=>").map(|arm| arm.0).filter(|pattern| {
        let known = |c: char| c.is_ascii_digit() || matches!(c, ' ' | '|' | '.' | '=');
        pattern.chars().all(known)
    });
    let asked = ["kind, ", "kind == ", "kind != ", "RecordType("];
    let behind = asked
        .iter()
        .find_map(|before| line.split_once(before))
        .map(|parts| parts.1);

    let text = pattern.or(behind)?;
    let mut numbers = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let name = |number: &str| abi::RecordType(number.parse().ok()?).name();
    numbers.find_map(name).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn errors(path: &str, text: &str) -> Vec<String> {
        let source = SourceFile {
            path: path.to_owned(),
            language: Language::Rust,
            text: text.to_owned(),
        };
        offences(&[source])
            .into_iter()
            .map(|each| each.error)
            .collect()
    }

    #[test]
    fn numbers_that_have_names_are_offences_outside_abi() {
        let code = "const EPERM: i64 = -1;\nconst SYSCALL: u16 = 1300;\n";
        let found = errors("crates/a/src/b.rs", code);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].starts_with("crates/a/src/b.rs:1: write EPERM by its name"));
        assert_eq!(errors("crates/core/abi/src/b.rs", code).len(), 0);

        for line in [
            "        1300 | 1302 => call(),",
            "    1100..=1199 => user(),",
            "if kind == 1305 {",
            "matches!(record.kind, 1400 | 1107)",
            "RecordType(1309)",
        ] {
            assert_eq!(errors("crates/a/src/b.rs", line).len(), 1, "{line}");
            let test = format!("#[cfg(test)]\nmod tests {{\n{line}\n}}\n");
            assert_eq!(errors("crates/a/src/b.rs", &test).len(), 0, "{line}");
        }
    }

    #[test]
    fn other_numbers_are_none() {
        for line in [
            "const EARLIEST: i64 = -2;",
            "const PAGE: u32 = 1300;",
            "kinds::PATH => 1302,",
            "let bytes = 1300;",
            "// if kind == 1305",
            "0o1300 => 1,",
        ] {
            assert_eq!(
                errors("crates/a/src/b.rs", line),
                Vec::<String>::new(),
                "{line}"
            );
        }
    }
}
