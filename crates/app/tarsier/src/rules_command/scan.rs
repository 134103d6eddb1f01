//! `tarsier rules emit` and `tarsier rules scan`: what a scanner that compares text wants, beside what rules mean.

use super::baseline::{Baseline, Parts, Wanted, BASELINES};
use super::privileged;
use super::source::{self, WithEveryPath};
use crate::answer::answered;
use anyhow::{bail, Context, Result};
use cli::RulesBaselineArgs;
use plan::{Capabilities, Identities, Plan};
use rules::{Command, ErrorKind, Rule, Source, SystemHost};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Argument of `--for` that lists the baselines.
const LIST: &str = "list";

/// What the rules have of a line that a check wants.
#[derive(Debug, PartialEq, Eq)]
enum Coverage {
    /// A rule at this place selects the same.
    By(String),
    /// Not every rule could be compared, or none selects the same.
    None,
}

/// Prints the wanted lines that the rules do not have, to be put into a file of their own. Status 0.
pub(crate) fn emit(args: &RulesBaselineArgs) -> Result<u8> {
    let Some(baseline) = chosen(args)? else {
        return Ok(0);
    };

    let wanted = baseline.wanted(&privileged::programs());
    let missed = missed(wanted, &args.rules)?;
    let (of_files, missed): (Vec<_>, Vec<_>) =
        missed.into_iter().partition(|wanted| wanted.file.is_some());

    let mut out = std::io::stdout().lock();
    writeln!(out, "## {}", baseline.title())?;
    writeln!(
        out,
        "## Written by `tarsier rules emit --for {}`: lines that checks of text want. Rules that others cover cost \
         nothing.",
        args.baseline
    )?;
    for line in joined(&missed, is_loadable) {
        writeln!(out, "{line}")?;
    }
    let unloadable: BTreeSet<&str> = missed
        .iter()
        .filter(|wanted| !is_loadable(wanted))
        .map(|wanted| wanted.line.as_str())
        .collect();
    for line in unloadable {
        writeln!(out, "## Its directory is not on this host: {line}")?;
    }
    let files: BTreeSet<&str> = of_files.iter().filter_map(|wanted| wanted.file).collect();
    for file in files {
        writeln!(
            out,
            "## A check compares the whole of {file}, with its comments: copy it from the sample rules of auditd's \
             package"
        )?;
    }

    Ok(0)
}

/// Prints what checks will miss. Status 0: nothing; 1: something.
pub(crate) fn scan(args: &RulesBaselineArgs) -> Result<u8> {
    let Some(baseline) = chosen(args)? else {
        return Ok(0);
    };

    let wanted = baseline.wanted(&privileged::programs());
    let count = wanted.len();
    let missed = missed(wanted, &args.rules)?;
    let coverage = coverage(&missed, &args.rules)?;
    let mut out = std::io::stdout().lock();

    let written = write_missed(&mut out, args, count, &missed, &coverage);

    answered(u8::from(!missed.is_empty()), written.map_err(Into::into))
}

fn write_missed(
    out: &mut impl Write,
    args: &RulesBaselineArgs,
    count: usize,
    missed: &[Wanted],
    coverage: &[Coverage],
) -> std::io::Result<()> {
    for (wanted, coverage) in missed.iter().zip(coverage) {
        let Wanted {
            check,
            older,
            file,
            line,
            ..
        } = wanted;
        let mut check = check.to_string();
        if let Some(older) = older {
            check.push_str(&format!(" ({older})"));
        }
        if let Some(file) = file {
            check.push_str(&format!(", in {file}"));
        }
        match coverage {
            Coverage::By(place) => {
                writeln!(out, "missed   {check}: {line}\n         covered by {place}")?;
            }
            Coverage::None => writeln!(out, "missing  {check}: {line}")?,
        }
    }

    let covered = coverage.iter().filter(|&of| *of != Coverage::None).count();
    writeln!(
        out,
        "{}: {count} lines wanted: {} found, {covered} covered by other rules and missed by the text, {} missing",
        args.baseline,
        count - missed.len(),
        missed.len() - covered
    )?;
    if !missed.is_empty() {
        writeln!(
            out,
            "`tarsier rules emit --for {}` prints them, or the files to copy",
            args.baseline
        )?;
    }

    Ok(())
}

/// The baseline that is asked for; `None` if all were listed instead.
fn chosen(args: &RulesBaselineArgs) -> Result<Option<&'static Baseline>> {
    if args.baseline == LIST {
        let mut out = std::io::stdout().lock();
        for baseline in BASELINES {
            writeln!(out, "{:<18} {}", baseline.name, baseline.title())?;
        }
        return Ok(None);
    }

    let Some(baseline) = Baseline::named(&args.baseline) else {
        bail!(
            "there is no baseline {}: `--for {LIST}` prints the names of all",
            args.baseline
        );
    };

    Ok(Some(baseline))
}

/// The wanted lines that none of the files has.
fn missed(mut wanted: Vec<Wanted>, paths: &[PathBuf]) -> Result<Vec<Wanted>> {
    let mut there = Vec::new();
    for path in paths {
        for (file, text) in texts(path)? {
            let parts = text.lines().filter_map(Parts::of);
            there.extend(parts.map(|parts| (file.clone(), parts)));
        }
    }
    wanted.retain(|wanted| {
        let mut there = there.iter();
        !there.any(|(file, parts)| {
            wanted.is_in(parts) && wanted.file.is_none_or(|wanted| file == wanted)
        })
    });
    Ok(wanted)
}

/// The names and texts of a file, or of the `*.rules` files of a directory, which are those that checks read.
fn texts(path: &Path) -> Result<Vec<(OsString, String)>> {
    let text = |path: &Path| {
        let bytes =
            std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        let name = path.file_name().unwrap_or_default().to_owned();
        anyhow::Ok((name, String::from_utf8_lossy(&bytes).into_owned()))
    };
    if !path.is_dir() {
        return Ok(vec![text(path)?]);
    }

    let entries =
        std::fs::read_dir(path).with_context(|| format!("cannot read {}", path.display()))?;
    let files = entries.flatten().map(|entry| entry.path());
    let files = files.filter(|file| file.extension().is_some_and(|end| end == "rules"));

    files.map(|file| text(&file)).collect()
}

/// What the rules of `paths` cover of each line, whatever its text.
fn coverage(missed: &[Wanted], paths: &[PathBuf]) -> Result<Vec<Coverage>> {
    let mut rules = source::read(paths)?.rules;
    let own = rules.len();
    let wanted: Vec<Option<Rule>> = missed.iter().map(rule_of).collect();
    rules.extend(wanted.iter().flatten().cloned());
    let capabilities = Capabilities {
        compat_entry: capture::probe::compat_entry(),
        x32_calls: capture::probe::x32_calls(),
        perm_lists: capture::probe::perm_lists(),
        ..Capabilities::assumed(abi::Arch::native())
    };
    let plan = Plan::new(&rules, &capabilities, &Identities::default(), 1)
        .map_err(|error| daemon::too_large(&error, &rules))?;

    let mut places = own..rules.len();
    let covered = wanted.iter().map(|rule| {
        rule.as_ref()?;
        let by = plan.notes.get(places.next()?)?.shadowed_by? as usize;
        // The first rule that matches is meant; a line of the baseline is no rule of the host.
        (by < own).then(|| Coverage::By(rules[by].source.place()))
    });

    Ok(covered.map(|by| by.unwrap_or(Coverage::None)).collect())
}

/// The rule of a line, whether its path is there or not; `None` for a setting.
fn rule_of(wanted: &Wanted) -> Option<Rule> {
    match rules::parse_line(&wanted.line, &Source::default(), &WithEveryPath) {
        Ok(Some(Command::Append(rule))) => Some(rule),
        _ => None,
    }
}

/// Whether the line can be loaded on this host: the directory of a path that it names has to be there.
fn is_loadable(wanted: &Wanted) -> bool {
    let parsed = rules::parse_line(&wanted.line, &Source::default(), &SystemHost);
    if parsed.is_err_and(|error| error.kind == ErrorKind::MissingPath) {
        return false;
    }
    let rule = rule_of(wanted);
    let refusal = rule.and_then(|rule| rules::check(&rule, Some(&SystemHost)).err());
    refusal.is_none_or(|refusal| refusal.kind != ErrorKind::MissingPath)
}

/// The lines that `is_wanted`, in order; those that differ in their calls only become one. `-e` comes last.
fn joined(lines: &[Wanted], is_wanted: impl Fn(&Wanted) -> bool) -> Vec<String> {
    let mut done: Vec<&Wanted> = Vec::new();
    let mut out: Vec<String> = Vec::new();
    let mut last = Vec::new();

    for wanted in lines.iter().filter(|wanted| is_wanted(wanted)) {
        if done.iter().any(|other| is_joined(other, wanted)) {
            continue;
        }
        let same: Vec<&Wanted> = lines
            .iter()
            .filter(|other| is_joined(wanted, other))
            .collect();
        let line = with_all_calls(wanted, &same);
        done.push(wanted);
        if line.starts_with("-e ") {
            last.push(line);
        } else if !out.contains(&line) {
            out.push(line);
        }
    }

    out.extend(last);

    out
}

/// Whether both lines can be one.
fn is_joined(one: &Wanted, other: &Wanted) -> bool {
    one.line == other.line || (one.differs_in_calls(other) && key(one) == key(other))
}

fn key(wanted: &Wanted) -> Option<&str> {
    wanted.line.split_whitespace().next_back()
}

/// The line of `wanted`, with the calls of all of `same`.
fn with_all_calls(wanted: &Wanted, same: &[&Wanted]) -> String {
    let mut calls: Vec<&str> = Vec::new();
    for call in same.iter().flat_map(|one| one.calls()) {
        if !calls.contains(&call.as_str()) {
            calls.push(call);
        }
    }

    let mut words: Vec<&str> = wanted.line.split_whitespace().collect();
    let all = calls.join(",");
    let mut is_first = true;
    while let Some(place) = words.iter().position(|word| *word == "-S") {
        words.drain(place..(place + 2).min(words.len()));
        if is_first {
            words.insert(place, &all);
            words.insert(place, "--calls");
            is_first = false;
        }
    }

    words.join(" ").replace("--calls ", "-S ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(dir: &tempfile::TempDir, text: &str) -> Vec<PathBuf> {
        let path = dir.path().join("a.rules");
        std::fs::write(&path, text).unwrap();
        vec![dir.path().to_owned()]
    }

    #[test]
    fn what_emit_prints_satisfies_every_check_of_every_baseline() {
        let dir = tempfile::tempdir().unwrap();
        for baseline in BASELINES {
            let paths = file(&dir, "-w /etc/none -p wa\n");
            let program = ["/bin/su".to_owned()];
            let all = missed(baseline.wanted(&program), &paths).unwrap();
            let lines = joined(&all, |_| true);
            let unique: BTreeSet<&String> = lines.iter().collect();
            assert_eq!(unique.len(), lines.len(), "{}: a line twice", baseline.name);
            let paths = file(&dir, &(lines.join("\n") + "\n"));
            let left = missed(baseline.wanted(&program), &paths).unwrap();
            let of_line = left.iter().find(|wanted| wanted.file.is_none());
            assert!(of_line.is_none(), "{}: {of_line:?}", baseline.name);
        }
    }

    #[test]
    fn a_line_that_a_check_wants_in_one_file_is_missed_elsewhere() {
        let dir = tempfile::tempdir().unwrap();
        let paths = file(&dir, "--loginuid-immutable\n");
        let is_missed = || {
            let all = Baseline::named("ospp-rhel9").unwrap().wanted(&[]);
            let left = missed(all, &paths).unwrap();
            left.iter()
                .any(|wanted| wanted.check == "audit_immutable_login_uids")
        };
        assert!(is_missed());

        let whole = dir.path().join("11-loginuid.rules");
        std::fs::write(whole, "## Of auditd's samples\n--loginuid-immutable\n").unwrap();
        assert!(!is_missed());
    }

    #[test]
    fn a_line_whose_directory_is_not_here_is_not_to_be_loaded() {
        let wanted = Baseline::named("stig-rhel9").unwrap().wanted(&[]);
        let mut line = wanted[0].clone();
        for (text, is_fine) in [
            ("-w /etc/passwd -p wa -k x", true),
            ("-w /etc/there-is-none -p wa -k x", true),
            ("-w /there-is-none/x -p wa -k x", false),
            (
                "-a always,exit -F arch=b64 -F path=/there-is-none/x -F perm=wa -F key=x",
                false,
            ),
            (
                "-a always,exit -F arch=b64 -F dir=/there-is-none/ -F perm=wa -F key=x",
                false,
            ),
            ("-e 2", true),
        ] {
            line.line = text.to_owned();
            assert_eq!(is_loadable(&line), is_fine, "{text}");
        }
    }

    #[test]
    fn a_line_that_other_rules_cover_is_said_to_be_covered() {
        let dir = tempfile::tempdir().unwrap();
        // The same events in other words: no check of text finds it.
        let text =
            "-a always,exit -F auid!=unset -F arch=b64 -S chmod,lchown -F auid>=1000 -k mine\n";
        let paths = file(&dir, text);
        let baseline = Baseline::named("stig-rhel9").unwrap();
        let missed = missed(baseline.wanted(&[]), &paths).unwrap();
        let coverage = coverage(&missed, &paths).unwrap();
        let of = |call: &str, bits: &str| {
            let arch = format!("arch={bits} ");
            let is_it = |wanted: &Wanted| {
                let has = |text: &str| wanted.line.contains(text);
                has(&format!("-S {call} ")) && has(&arch) && has("auid>=1000")
            };
            let place = missed.iter().position(is_it).unwrap();
            &coverage[place]
        };
        assert!(matches!(of("chmod", "b64"), Coverage::By(place) if place.ends_with("a.rules:1")));
        assert!(matches!(of("lchown", "b64"), Coverage::By(_)));
        assert_eq!(of("chmod", "b32"), &Coverage::None);
        assert_eq!(of("fchmod", "b64"), &Coverage::None);
    }
}
