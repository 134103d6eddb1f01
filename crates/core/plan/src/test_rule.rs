//! Rules for tests.

use rules::{parse_line_as, Command, Dialect, Rule, Source, StaticHost};

/// The rule of a line of a `*.tarsier` file.
pub(crate) fn rule(line: &str) -> Rule {
    let host = StaticHost::new(abi::Arch::X86_64);
    let parsed = parse_line_as(Dialect::Tarsier, line.as_bytes(), &Source::default(), &host);
    match parsed.commands.into_iter().next() {
        Some(Command::Append(rule)) => rule,
        other => panic!("{line}: {other:?} {:?}", parsed.error),
    }
}
