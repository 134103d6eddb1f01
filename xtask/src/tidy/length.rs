//! Limits the number of lines of code in files and functions. Blank lines and comments do not count: a limit on them
//! would be a reason to leave them out.
//!
//! Functions are found by the indentation that rustfmt, clang-format and Python's syntax require.

use std::ops::Range;

use super::source::{Language, Source};
use super::Offence;

/// Limit of lines of code in a file; a longer one contains more than one idea.
const FILE_LINES: usize = 600;
/// Limit of lines of code in a function, from its header to its last brace: what can be read without scrolling.
const FUNCTION_LINES: usize = 70;

/// The files and functions that are too long.
pub(super) fn offences(sources: &[Source]) -> Vec<Offence> {
    let mut offences = Vec::new();
    for Source {
        path,
        language,
        text,
    } in sources
    {
        let lines = lines_of_code(*language, text.lines());
        if lines > FILE_LINES {
            offences.push(Offence {
                place: path.clone(),
                error: format!(
                    "{path}: {lines} lines of code; at most {FILE_LINES}: split it by idea"
                ),
            });
        }

        let long = functions(*language, text).into_iter();
        let long = long.filter(|function| function.lines > FUNCTION_LINES);
        offences.extend(long.map(|Function { name, begin, lines }| Offence {
            place: format!("{path}: {name}"),
            error: format!(
                "{path}:{begin}: {name} has {lines} lines of code; at most {FUNCTION_LINES}"
            ),
        }));
    }
    offences
}

#[derive(Debug, PartialEq, Eq)]
struct Function {
    name: String,
    /// Number of the function's first line, from 1.
    begin: usize,
    /// Number of its lines of code.
    lines: usize,
}

/// The number of lines that are neither blank nor comments. In C, the lines of a comment begin with `*`.
fn lines_of_code<'t>(language: Language, lines: impl Iterator<Item = &'t str>) -> usize {
    let is_comment = |line: &str| match language {
        Language::Rust => line.starts_with("//"),
        Language::C => {
            let begins = |word| line.starts_with(word);
            line == "*" || ["//", "/*", "* ", "*/"].into_iter().any(begins)
        }
        Language::Python | Language::Shell => line.starts_with('#'),
    };
    let lines = lines.map(str::trim);
    lines
        .filter(|line| !line.is_empty() && !is_comment(line))
        .count()
}

fn functions(language: Language, text: &str) -> Vec<Function> {
    let lines: Vec<&str> = text.lines().collect();
    let found = match language {
        Language::Rust => rust(&lines),
        Language::C => c(&lines),
        Language::Python => python(&lines),
        Language::Shell => Vec::new(),
    };
    let measure = |(name, extent): (String, Range<usize>)| Function {
        name,
        begin: extent.start + 1,
        lines: lines_of_code(language, lines[extent].iter().copied()),
    };
    found.into_iter().map(measure).collect()
}

/// Functions by name, with the lines from their header to their end, which is exclusive.
type Extents = Vec<(String, Range<usize>)>;

/// A function ends at the brace that is indented like its header.
fn rust(lines: &[&str]) -> Extents {
    let mut functions = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some(name) = name_after(line, "fn") else {
            continue;
        };
        // A function on one line, or without a body.
        if line.ends_with('}') || line.ends_with(';') {
            continue;
        }
        let indent = indent_of(line);
        let end = lines[at + 1..].iter().position(|line| {
            indent_of(line) == indent && (line.trim_start().starts_with('}') || line.ends_with(';'))
        });
        let Some(end) = end else { continue };
        functions.push((name, at..at + end + 2));
    }

    functions
}

/// A function's braces are in the first column.
fn c(lines: &[&str]) -> Extents {
    let mut functions = Vec::new();
    for (at, _) in lines.iter().enumerate().filter(|(_, line)| **line == "{") {
        let is_before = |line: &&str| {
            line.is_empty()
                || line.starts_with(['}', '#'])
                || line.ends_with(";")
                || line.ends_with("*/")
        };
        let begin = lines[..at].iter().rposition(is_before);
        let begin = begin.map_or(0, |before| before + 1);
        let end = lines[at..].iter().position(|line| line.starts_with('}'));
        let Some(end) = end else { continue };
        functions.push((c_name(&lines[begin..at].join(" ")), begin..at + end + 1));
    }

    functions
}

/// The word before the first parenthesis of a header; for a BPF program, the first word inside `BPF_PROG(`.
fn c_name(header: &str) -> String {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    // SEC("…") precedes the header.
    let header = match header.strip_prefix("SEC(") {
        Some(rest) => rest.split_once(')').map_or("", |(_, rest)| rest),
        None => header,
    };
    let (before, inside) = header.split_once('(').unwrap_or((header, ""));
    let word = before
        .trim_end()
        .rsplit(|c| !is_part(c))
        .next()
        .unwrap_or("");
    if word.starts_with("BPF_") {
        let inside = inside.trim_start();
        return inside.split(|c| !is_part(c)).next().unwrap_or("").into();
    }

    word.into()
}

/// A function ends before the next line that is not indented more than its header.
fn python(lines: &[&str]) -> Extents {
    let mut functions = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some(name) = name_after(line, "def") else {
            continue;
        };
        let indent = indent_of(line);
        let is_outside = |line: &&str| {
            let text = line.trim_start();
            !text.is_empty() && !text.starts_with(')') && indent_of(line) <= indent
        };
        let after = lines[at + 1..].iter().position(is_outside);
        functions.push((name, at..after.map_or(lines.len(), |after| at + 1 + after)));
    }

    functions
}

/// The name after `keyword`, which only qualifiers may precede.
fn name_after(line: &str, keyword: &str) -> Option<String> {
    const QUALIFIERS: [&str; 6] = ["pub", "const", "async", "unsafe", "extern", "default"];
    let mut words = line.split_whitespace().skip_while(|word| {
        QUALIFIERS.contains(word) || word.starts_with("pub(") || word.starts_with('"')
    });
    if words.next() != Some(keyword) {
        return None;
    }
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let name = words.next()?;
    let end = name.find(|c| !is_part(c)).unwrap_or(name.len());
    Some(name[..end].into())
}

fn indent_of(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Name, first line and number of lines of each function.
    fn found(language: Language, text: &str) -> Vec<(String, usize, usize)> {
        let functions = functions(language, text).into_iter();
        functions
            .map(|each| (each.name, each.begin, each.lines))
            .collect()
    }

    fn one(name: &str, begin: usize, lines: usize) -> (String, usize, usize) {
        (name.into(), begin, lines)
    }

    #[test]
    fn functions_of_rust_are_measured_from_header_to_brace() {
        let text = "\
/// Doc.
pub(crate) fn a<T>(
    x: T,
) -> T
where
    T: Copy,
{
    x
}
trait B {
    fn c(
        &self,
    ) -> u8;
    const fn d(&self) {
        if true {
        }
    }
    fn e() {}
}
";
        let expected = [one("a", 2, 8), one("c", 11, 3), one("d", 14, 4)];
        assert_eq!(found(Language::Rust, text), expected);
    }

    #[test]
    fn functions_of_c_are_measured_with_their_section() {
        let text = "\
#include <x.h>
static int a(int b,
	     int c)
{
	if (b) {
	}
}

struct d {
	int e;
};
/* A program. */
SEC(\"tp_btf/sys_exit\")
int BPF_PROG(f, int g)
{
	return 0;
}
";
        let expected = [one("a", 2, 6), one("f", 13, 5)];
        assert_eq!(found(Language::C, text), expected);
    }

    #[test]
    fn comments_of_c_are_not_code_but_what_pointers_point_to_is() {
        let text = "int x; /* y */\n/*\n * Comment.\n *\n */\n\t*x = 1;\n\n// z\n";
        assert_eq!(lines_of_code(Language::C, text.lines()), 2);
    }

    #[test]
    fn functions_of_python_end_before_what_is_not_indented_more() {
        let text = "\
def a(
    b: int,
) -> int:
    def c() -> int:
        return 1

    return c()


class D:
    def e(self) -> None:
        pass
";
        let expected = [one("a", 1, 6), one("c", 4, 2), one("e", 11, 2)];
        assert_eq!(found(Language::Python, text), expected);
    }

    #[test]
    fn only_what_is_longer_than_the_limit_is_an_offence() {
        let source = |path: &str, text: String| Source {
            path: path.into(),
            language: Language::Rust,
            text,
        };
        let function = |lines: usize| format!("fn f() {{\n{}}}\n", "    x();\n".repeat(lines - 2));
        let explained = |text: String| text.replace("x", "\n    // Reason.\n    x");
        let sources = [
            source("a.rs", explained(function(70))),
            source("b.rs", function(71)),
            source("c.rs", explained("x\n".repeat(600))),
            source("d.rs", "x\n".repeat(601)),
        ];
        let places: Vec<String> = offences(&sources)
            .into_iter()
            .map(|offence| offence.place)
            .collect();
        assert_eq!(places, ["b.rs: f", "d.rs"]);
    }
}
