//! Judges what `tests/calls` left: rules of each kind select the same calls as under the kernel's audit.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// A call that rules of a kind select: kind, entry (`b64`, `b32`), name.
type Selected<'a> = (&'a str, &'a str, &'a str);

/// A line of `tests/calls/differences`.
struct Listed<'a> {
    engine: &'a str,
    is_missed: bool,
    calls: Vec<&'a str>,
    kinds: Vec<&'a str>,
    reason: &'a str,
}

impl<'a> Listed<'a> {
    fn read(line: &'a str) -> Option<Listed<'a>> {
        let (head, reason) = line.split_once(": ")?;
        let words: Vec<&str> = head.split(' ').collect();
        let [engine, which @ ("missed" | "more"), calls, kinds] = words[..] else {
            return None;
        };
        Some(Listed {
            engine,
            is_missed: which == "missed",
            calls: calls.split(',').collect(),
            kinds: kinds.split(',').collect(),
            reason,
        })
    }

    fn explains(&self, engine: &str, is_missed: bool, (kind, entry, name): Selected<'_>) -> bool {
        let is_call = |call: &&str| match call.split_once('/') {
            Some(both) => both == (entry, name),
            None => *call == name,
        };
        (self.engine == "any" || self.engine == engine)
            && self.is_missed == is_missed
            && self.calls.iter().any(is_call)
            && self.kinds.iter().any(|one| *one == "any" || *one == kind)
    }
}

/// The differences between an engine and the kernel's audit.
#[derive(Debug, Default)]
pub struct Comparison {
    /// Number of pairs of call and kind of rule that the kernel selects.
    pub selected: usize,
    /// Differences that are listed, as rows of a table: calls, kinds, which, reason.
    listed: BTreeMap<(String, bool), (BTreeSet<String>, BTreeSet<String>)>,
    /// Differences that are not listed.
    pub unlisted: Vec<String>,
}

impl Comparison {
    /// Compares lines `KIND ENTRY NAME` of `engine` with those of the kernel. `differences` is the text of
    /// `tests/calls/differences`.
    ///
    /// # Errors
    /// A line of these texts has another form.
    pub fn of(
        engine: &str,
        ours: &str,
        kernel: &str,
        differences: &str,
    ) -> Result<Comparison, String> {
        let lines = differences
            .lines()
            .filter(|line| !line.is_empty() && !line.starts_with('#'));
        let listed: Vec<Listed<'_>> = lines
            .map(|line| Listed::read(line).ok_or_else(|| format!("differences: {line}")))
            .collect::<Result<_, _>>()?;
        let (ours, kernel) = (selected(ours)?, selected(kernel)?);
        let mut comparison = Comparison {
            selected: kernel.len(),
            ..Comparison::default()
        };
        let missed = kernel.difference(&ours).map(|call| (true, *call));
        let more = ours.difference(&kernel).map(|call| (false, *call));
        for (is_missed, call) in missed.chain(more) {
            let line = listed
                .iter()
                .find(|line| line.explains(engine, is_missed, call));
            comparison.add(is_missed, call, line.map(|line| line.reason));
        }

        Ok(comparison)
    }

    fn add(&mut self, is_missed: bool, (kind, entry, name): Selected<'_>, reason: Option<&str>) {
        let Some(reason) = reason else {
            let which = if is_missed { "missed" } else { "more" };
            self.unlisted.push(format!("{which} {entry}/{name} {kind}"));
            return;
        };
        let row = self.listed.entry((reason.to_owned(), is_missed));
        let (calls, kinds) = row.or_default();
        calls.insert(name.to_owned());
        kinds.insert(kind.to_owned());
    }

    /// The listed differences as a table in Markdown.
    pub fn table(&self) -> String {
        let mut text = "| calls | kinds of rules | here | why |\n|---|---|---|---|\n".to_owned();
        let joined = |set: &BTreeSet<String>| {
            let all: Vec<&str> = set.iter().map(String::as_str).collect();
            all.join(", ")
        };
        for ((reason, is_missed), (calls, kinds)) in &self.listed {
            let which = if *is_missed {
                "not selected"
            } else {
                "selected too"
            };
            let kinds = if kinds.len() > 4 {
                format!("{} kinds", kinds.len())
            } else {
                joined(kinds)
            };
            let _ = writeln!(text, "| {} | {kinds} | {which} | {reason} |", joined(calls));
        }

        text
    }
}

fn selected(text: &str) -> Result<BTreeSet<Selected<'_>>, String> {
    let read = |line| {
        let words: Vec<&str> = str::split(line, ' ').collect();
        match words[..] {
            [kind, entry, name] => Ok((kind, entry, name)),
            _ => Err(format!("not a selected call: {line}")),
        }
    };
    text.lines().map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LISTED: &str =
        "# comment\ntracepoint missed b32/a,b path,dir: one\nany more c any: two\n";

    #[test]
    fn a_difference_is_listed_for_its_engine_entry_and_kind_only() {
        let kernel = "path b32 a\npath b64 a\ndir b64 b\nuid b64 b\n";
        let ours = "path b64 c\n";
        let comparison = Comparison::of("tracepoint", ours, kernel, LISTED).expect("the form");
        assert_eq!(
            comparison.unlisted,
            ["missed b64/a path", "missed b64/b uid"]
        );
        assert!(comparison
            .table()
            .contains("| a, b | dir, path | not selected | one |"));
        assert!(comparison
            .table()
            .contains("| c | path | selected too | two |"));
        let trampoline = Comparison::of("trampoline", ours, kernel, LISTED).expect("the form");
        assert_eq!(trampoline.unlisted.len(), 4);
        assert!(Comparison::of("trampoline", "x", kernel, LISTED).is_err());
    }
}
