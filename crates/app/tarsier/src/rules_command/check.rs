//! `tarsier rules check`: reports problems in rules.

use super::flood::{self, Flood};
use super::source;
use crate::answer::answered;
use anyhow::Result;
use cli::RulesCheckArgs;
use plan::{Capabilities, Finding, Lint};
use rules::{ErrorKind, Rule, RuleSet, Source, SystemHost};
use std::io::Write;

/// Prints findings. Status 0: none; 1: some.
pub(crate) fn check(args: &RulesCheckArgs) -> Result<u8> {
    let set = source::read(&args.rules)?;
    let mut findings = findings_of(&set);
    findings.extend(missing_paths(&set.rules));
    findings.sort_by_key(|finding| (finding.rule, finding.lint));
    let floods = match &args.log {
        Some(log) => flood::count(log, &set.rules)?,
        None => Vec::new(),
    };
    let mut out = std::io::stdout().lock();

    let written = if args.json {
        let report = serde_json::json!({
            "rules": set.rules.len(),
            "findings": findings,
            "floods": args.log.is_some().then_some(&floods),
        });
        writeln!(out, "{report:#}").map_err(Into::into)
    } else {
        write_text(&mut out, &set, &findings, &floods)
    };

    let is_clean = findings.is_empty() && !floods.iter().any(|flood| flood.is_flood);

    answered(u8::from(!is_clean), written)
}

/// Findings about rules and settings on this host, but for paths that are missing. Prices are those of the tracepoint
/// engine.
pub(crate) fn findings_of(set: &RuleSet) -> Vec<Finding> {
    let capabilities = Capabilities {
        compat_entry: capture::probe::compat_entry(),
        x32_calls: capture::probe::x32_calls(),
        perm_lists: capture::probe::perm_lists(),
        ..Capabilities::assumed(abi::Arch::native())
    };
    let mut findings = plan::lint(&set.rules, &capabilities);
    findings.extend(plan::lint_settings(set));
    findings
}

fn write_text(
    out: &mut impl Write,
    set: &RuleSet,
    findings: &[Finding],
    floods: &[Flood],
) -> Result<()> {
    for finding in findings {
        print(out, finding)?;
    }
    if !floods.is_empty() {
        flood::print(out, floods)?;
    }
    let (rules, found) = (set.rules.len(), findings.len());
    let plural = |count: usize| if count == 1 { "" } else { "s" };
    writeln!(
        out,
        "{rules} rule{}, {found} finding{}",
        plural(rules),
        plural(found)
    )?;

    Ok(())
}

/// Findings for rules that the kernel would refuse because a path does not exist.
fn missing_paths(rules: &[Rule]) -> Vec<Finding> {
    let refused = rules.iter().enumerate().filter_map(|(rule, text)| {
        let refusal = rules::check(text, Some(&SystemHost)).err()?;
        (refusal.kind == ErrorKind::MissingPath).then_some((rule, text, refusal.reason))
    });
    refused
        .map(|(rule, text, reason)| Finding {
            lint: Lint::MissingPath,
            rule: Some(rule),
            file: text.source.file.clone(),
            line: text.source.line,
            message: format!("{reason}: the kernel refuses the rule, and auditctl stops there"),
            remedy: "create it, delete the rule, or put -i or -c first".to_owned(),
            cost: None,
            text: text.to_string(),
        })
        .collect()
}

/// Prints a finding in the style of compilers: place, message and lint, then the rule and the
/// remedy.
fn print(out: &mut impl Write, finding: &Finding) -> Result<()> {
    let name = finding.lint.name();
    let place = Source {
        file: finding.file.clone(),
        line: finding.line,
    };
    writeln!(out, "{}: {} [{name}]", place.place(), finding.message)?;
    writeln!(out, "    {}", shortened(&finding.text))?;
    if let Some(cost) = &finding.cost {
        writeln!(out, "    cost: {cost}")?;
    }

    writeln!(out, "    remedy: {}", finding.remedy)?;
    Ok(())
}

/// A rule, shortened to about one line.
fn shortened(text: &str) -> String {
    const CHARS_MAX: usize = 100;
    if text.chars().count() <= CHARS_MAX {
        return text.to_owned();
    }
    let start: String = text.chars().take(CHARS_MAX).collect();
    format!("{start}…")
}
