//! `tarsier rules check`: what is odd about rules.

use crate::cli::RulesCheckArgs;
use crate::rule_files;
use anyhow::Result;
use plan::{Capabilities, Finding};
use std::io::Write;

/// Prints findings. Status 0: none; 1: some.
pub(crate) fn check(args: &RulesCheckArgs) -> Result<u8> {
    let set = rule_files::load(&args.rules)?;
    let capabilities = Capabilities {
        compat_entry: capture::probe::compat_entry(),
        ..Capabilities::assumed(abi::Arch::native())
    };
    let findings = plan::lint(&set.rules, &capabilities);
    let mut out = std::io::stdout().lock();
    if args.json {
        let report = serde_json::json!({
            "rules": set.rules.len(),
            "findings": findings,
        });
        serde_json::to_writer_pretty(&mut out, &report)?;
        writeln!(out)?;
    } else {
        for finding in &findings {
            print(&mut out, finding)?;
        }
        writeln!(
            out,
            "{} rules, {} findings",
            set.rules.len(),
            findings.len()
        )?;
    }
    Ok(u8::from(!findings.is_empty()))
}

/// One finding as compilers print theirs: place, message and name, then the rule and the remedy.
fn print(out: &mut impl Write, finding: &Finding) -> Result<()> {
    let name = finding.lint.name();
    match finding.line {
        0 => write!(out, "{}: ", finding.file)?,
        line => write!(out, "{}:{line}: ", finding.file)?,
    }
    writeln!(out, "{} [{name}]", finding.message)?;
    writeln!(out, "    {}", shortened(&finding.text))?;
    writeln!(out, "    remedy: {}", finding.remedy)?;
    Ok(())
}

/// A rule in about one line.
fn shortened(text: &str) -> String {
    const CHARS_MAX: usize = 100;
    if text.chars().count() <= CHARS_MAX {
        return text.to_owned();
    }
    let start: String = text.chars().take(CHARS_MAX).collect();
    format!("{start}…")
}
