//! `tarsier seccomp diff` and `covers`: profiles and filters compared.

use super::{explain, filters, source};
use crate::answer::answered;
use anyhow::{Context as _, Result};
use cli::seccomp::{CoversArgs, DiffArgs, ProfileArgs};
use seccomp::compile::{compile, Frequencies};
use seccomp::policy::Abi;
use seccomp::{differences, uncovered, Arguments, Chain, Difference};
use std::io::Write;
use std::path::Path;

/// Prints the calls that two chains decide differently. Status 0: none, 1: some.
pub(super) fn diff(args: &DiffArgs) -> Result<u8> {
    let left = chain(&args.left, &args.with)?;
    let right = chain(&args.right, &args.with)?;
    let found = differences(&left, &right)?;
    let mut out = std::io::stdout().lock();
    if found.is_empty() {
        writeln!(out, "proven: both decide every call alike")?;
        return Ok(0);
    }
    let titles = [name(&args.left), name(&args.right)];
    answered(1, table(&mut out, titles, &found, [&left, &right]))
}

/// Prints the calls that the right chain allows and the left one does not. Status 0: none, 1: some.
pub(super) fn covers(args: &CoversArgs) -> Result<u8> {
    let left = chain(&args.left, &args.with)?;
    let right = chain(&args.right, &args.with)?;
    let found = uncovered(&left, &right)?;
    let mut out = std::io::stdout().lock();
    let titles = [name(&args.left), name(&args.right)];
    if found.is_empty() {
        writeln!(
            out,
            "proven: {} allows every call that {} allows",
            titles[0], titles[1]
        )?;
        return Ok(0);
    }

    answered(1, table(&mut out, titles, &found, [&left, &right]))
}

fn name(path: &Path) -> String {
    path.file_name()
        .unwrap_or(path.as_os_str())
        .to_string_lossy()
        .into_owned()
}

/// A filter or chain from a file, or the filter of a profile.
fn chain(path: &Path, with: &ProfileArgs) -> Result<Chain> {
    let is_text = source::is_builtin(path) || source::file_and_name(path).1.is_some();
    let bytes = if is_text {
        source::text(path)?.into_bytes()
    } else {
        filters::bytes(path)?
    };
    let as_filter = seccomp::text::read_chain(&bytes);
    let text = match (&as_filter, String::from_utf8(bytes)) {
        (Ok(_), _) | (_, Err(_)) => return as_filter.with_context(|| path.display().to_string()),
        (Err(_), Ok(text)) => text,
    };
    let context = source::context(with)?;
    let policy = source::quiet_policy(path, &text, &context).map_err(|error| {
        // Neither: say what both readers want, if the text may be a filter.
        match &as_filter {
            Err(not_filter) if !source::is_profile(&text) => {
                anyhow::anyhow!(
                    "{}: neither a filter ({not_filter}) nor a profile ({error:#})",
                    path.display()
                )
            }
            _ => error,
        }
    })?;

    let filter = compile(&policy, &Frequencies::usual());

    Ok(Chain::from(
        filter.with_context(|| path.display().to_string())?,
    ))
}

/// Rows of a call, both verdicts, arguments and an example.
fn table(
    out: &mut impl Write,
    titles: [String; 2],
    found: &[Difference],
    chains: [&Chain; 2],
) -> Result<()> {
    let [left, right] = titles;
    let mut rows = vec![[
        "call".to_owned(),
        left,
        right,
        "arguments".to_owned(),
        "example".to_owned(),
    ]];

    for group in grouped(found) {
        let mut row = row(group.first, chains);
        if let Some(abi) = group.every_call_of {
            row[0] = format!("every call of {}", abi.systemd_name());
        }
        rows.push(row);
    }

    let widths: Vec<usize> = (0..4)
        .map(|column| {
            rows.iter()
                .map(|row| row[column].chars().count())
                .max()
                .unwrap_or(0)
        })
        .collect();

    for row in rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            line.push_str(&format!("{cell:<width$}  "));
        }
        line.push_str(&row[4]);
        writeln!(out, "{}", line.trim_end())?;
    }

    Ok(())
}

/// Differences that are told in one row.
pub(super) struct Group<'a> {
    pub(super) first: &'a Difference,
    /// The ABI, where all its calls differ alike.
    pub(super) every_call_of: Option<Abi>,
}

/// Joins the differences of an ABI all of whose calls differ alike.
pub(super) fn grouped(found: &[Difference]) -> Vec<Group<'_>> {
    let abi = |difference: &Difference| {
        let abi = Abi::of(difference.data.arch, difference.data.nr)?;
        abi.name_of(difference.data.nr).map(|_| abi)
    };
    let mut groups: Vec<Group> = Vec::new();
    for first in found {
        let own = abi(first);
        let joined = |group: &&Group| group.every_call_of.is_some() && group.every_call_of == own;
        if groups.iter().any(|group| joined(&group)) {
            continue;
        }
        let alike = |other: &&Difference| {
            abi(other) == own
                && (other.left, other.right) == (first.left, first.right)
                && other.arguments == Arguments::Any
        };
        let is_whole =
            own.is_some_and(|own| found.iter().filter(alike).count() == own.calls().count());
        groups.push(Group {
            first,
            every_call_of: if is_whole { own } else { None },
        });
    }

    groups
}

fn row(difference: &Difference, chains: [&Chain; 2]) -> [String; 5] {
    let data = &difference.data;
    let verdict = |chain: &Chain, verdict: seccomp::Verdict| match chain.run(data).filter {
        Some(index) if chain.filters().len() > 1 => format!("{verdict} (filter {index})"),
        _ => verdict.to_string(),
    };
    let mut call = *data;
    (call.args, call.instruction_pointer) = ([0; 6], 0);
    let call = explain::shown(&call);
    let is_named =
        seccomp::policy::Abi::of(data.arch, data.nr).and_then(|abi| abi.name_of(data.nr));
    let (call, arguments) = match (is_named, &difference.arguments) {
        // One row stands for all calls that have no name.
        (None, Arguments::Some(args)) if args.is_empty() => {
            ("other calls".to_owned(), String::new())
        }
        (_, arguments) => (
            call.trim_end_matches("()").to_owned(),
            arguments.to_string(),
        ),
    };

    [
        call,
        verdict(chains[0], difference.left),
        verdict(chains[1], difference.right),
        arguments,
        explain::shown(data),
    ]
}
