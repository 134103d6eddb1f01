//! `tarsier rules optimise`: finds equivalent, cheaper rules.

use super::source;
use anyhow::{bail, Context, Result};
use cli::RulesOptimiseArgs;
use plan::{Capabilities, Cost, Effort, Optimised};
use rules::{list_rule, Dialect, ListStyle, Rule, RuleSet, Settings};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Prints the steps and what they save; writes the rules if asked to.
pub(crate) fn optimise(args: &RulesOptimiseArgs) -> Result<u8> {
    let set = source::read(&args.rules)?;
    let capabilities = Capabilities {
        perm_lists: capture::probe::perm_lists(),
        ..Capabilities::assumed(abi::Arch::native())
    };
    let (entries, effort) = (capabilities.entries(), Effort::default());
    let mut optimised = plan::optimise(&set.rules, entries, effort);
    if args.leading_never {
        optimised = plan::lead_with_never(optimised, entries, effort);
    }
    let cost = |rules: &[Rule]| Cost::of(rules, &capabilities).context("what the rules cost");
    let (before, after) = (cost(&set.rules)?, cost(&optimised.rules)?);
    if let Some(path) = &args.write {
        write_file(path, &set, &optimised.rules)?;
    }
    let mut out = std::io::stdout().lock();

    if args.json {
        let report = serde_json::json!({
            "before": before,
            "after": after,
            "steps": optimised.steps,
            "refused": optimised.refused,
            "rules": optimised.rules.iter().map(text).collect::<Vec<_>>(),
        });
        serde_json::to_writer_pretty(&mut out, &report)?;
        writeln!(out)?;
    } else {
        print(&mut out, &optimised, &before, &after)?;
    }

    Ok(0)
}

fn print(out: &mut impl Write, optimised: &Optimised, before: &Cost, after: &Cost) -> Result<()> {
    for (i, step) in optimised.steps.iter().enumerate() {
        writeln!(
            out,
            "{}. {} (shown for {} kinds of calls, {} random calls)",
            i + 1,
            step.description,
            step.proof.calls,
            step.proof.samples
        )?;
        for rule in &step.before {
            writeln!(out, "- {rule}")?;
        }
        for rule in &step.after {
            writeln!(out, "+ {rule}")?;
        }
        writeln!(out)?;
    }

    if optimised.steps.is_empty() {
        writeln!(out, "Nothing to gain.\n")?;
    }
    writeln!(out, "{:<46} {:>9} {:>9}", "", "before", "after")?;
    let rows = [
        ("rules", before.rules, after.rules),
        ("calls watched", before.calls_watched, after.calls_watched),
        ("table rows", before.table_rows, after.table_rows),
        (
            "kernel audit: rules that every call passes",
            before.kernel_passed,
            after.kernel_passed,
        ),
        (
            "kernel audit: rules evaluated, unwatched call",
            before.kernel_evaluated,
            after.kernel_evaluated,
        ),
        (
            "kernel audit: instructions, cheapest call",
            before.kernel_instructions as usize,
            after.kernel_instructions as usize,
        ),
        (
            "kernel audit: nanoseconds, cheapest call",
            before.kernel_ns as usize,
            after.kernel_ns as usize,
        ),
    ];

    for (name, before, after) in rows {
        writeln!(out, "{name:<46} {before:>9} {after:>9}")?;
    }
    if optimised.refused > 0 {
        writeln!(
            out,
            "{} more could not be shown to be equivalent, or to cost no call more, and were left out.",
            optimised.refused
        )?;
    }

    Ok(())
}

/// A rule as a line of a rules file.
fn text(rule: &Rule) -> String {
    list_rule(
        rule,
        &ListStyle {
            // Newer calls are numbers, since older versions do not know their names.
            dialect: Dialect::V3,
            is_reloadable: true,
            ..ListStyle::default()
        },
    )
}

/// Writes a rules file that can be loaded in place of those read; an existing file is replaced.
fn write_file(path: &Path, set: &RuleSet, rules: &[Rule]) -> Result<()> {
    if rules.iter().any(plan::asks_own) && !rules::is_own_file(&path.to_string_lossy()) {
        bail!(
            "{}: some rules have fields of Tarsier's own: give the file a name that ends with .tarsier",
            path.display()
        );
    }

    let mut text = String::from("## Made by tarsier rules optimise.\n-D\n");
    text += &before_rules(set);
    for rule in rules {
        text += &self::text(rule);
        text.push('\n');
    }

    text += &after_rules(&set.settings);
    let writing = || format!("cannot write {}", path.display());
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o640)
        .open(path)
        .with_context(writing)?;

    file.write_all(text.as_bytes()).with_context(writing)
}

/// Lines for the settings, in augenrules' order: settings that end all changes come last.
fn before_rules(set: &RuleSet) -> String {
    let settings = &set.settings;
    let mut text = String::new();
    let mut add = |line: Option<String>| text.extend(line.map(|line| line + "\n"));
    let number = |option: &str, value: Option<u32>| value.map(|value| format!("{option} {value}"));
    if set.continues_on_error {
        add(Some("-c".to_owned()));
    } else if set.ignores_errors {
        add(Some("-i".to_owned()));
    }

    add(number("-b", settings.backlog));
    add(number("-f", settings.failure));
    add(number("-r", settings.rate));
    add(number("--backlog_wait_time", settings.backlog_wait_time));
    add(settings.reset_lost.then(|| "--reset-lost".to_owned()));
    add(settings
        .reset_backlog_wait_time_actual
        .then(|| "--reset_backlog_wait_time_actual".to_owned()));
    for (mount, subtree) in &settings.equivalents {
        let escaped = |path: &[u8]| String::from_utf8_lossy(path).replace(' ', "\\ ");
        add(Some(format!("-q {},{}", escaped(mount), escaped(subtree))));
    }

    for message in &settings.messages {
        add(Some(format!("-m {}", message.replace(' ', "\\ "))));
    }

    text
}

fn after_rules(settings: &Settings) -> String {
    let mut text = String::new();
    if settings.trim {
        text += "-t\n";
    }
    if settings.loginuid_immutable {
        text += "--loginuid-immutable\n";
    }
    if let Some(enabled) = settings.enabled {
        text += &format!("-e {enabled}\n");
    }
    text
}
