//! `tarsier rules check --boot`: reports what a start of the daemon would not put in force.

use crate::plan_command;
use anyhow::Result;
use cli::messages::reasons;
use cli::{Engine, RulesCheckArgs};
use daemon::protocol::{LeftOut, RulesInForce};
use std::io::Write;

/// Exit status if something would not be in force.
const LEFT_OUT: u8 = 2;

/// Prints what would not be in force, a line each. Status 0: nothing; 2: something.
pub(super) fn check(args: &RulesCheckArgs) -> Result<u8> {
    let (set, mut left_out) = daemon::examine_start(&args.rules, &args.state_dir);
    if let Err(error) = plan_command::plan_for(&set, Engine::Auto) {
        left_out.push(of_plan(&error, args));
    }
    let mut out = std::io::stdout().lock();
    if args.json {
        let report = serde_json::json!({ "rules": set.rules.len(), "left_out": left_out });
        serde_json::to_writer_pretty(&mut out, &report)?;
        writeln!(out)?;
    } else {
        print(&mut out, set.rules.len(), &left_out)?;
    }

    Ok(if left_out.is_empty() { 0 } else { LEFT_OUT })
}

fn print(out: &mut impl Write, rules: usize, left_out: &[LeftOut]) -> Result<()> {
    for one in left_out.iter().take(RulesInForce::SHOWN_MAX) {
        writeln!(out, "{one}")?;
    }
    match left_out.len().saturating_sub(RulesInForce::SHOWN_MAX) {
        0 => {}
        more => writeln!(out, "and {more} more")?,
    }

    match left_out.len() {
        0 => writeln!(out, "{rules} rules, a start would put all in force")?,
        1 => writeln!(
            out,
            "{rules} rules, and 1 line or file that a start would not put in force"
        )?,
        count => writeln!(
            out,
            "{rules} rules, and {count} lines or files that a start would not put in force"
        )?,
    }

    Ok(())
}

/// The place and reason of rules that are right, each by itself, and cannot be planned together.
fn of_plan(error: &anyhow::Error, args: &RulesCheckArgs) -> LeftOut {
    let paths: Vec<String> = args
        .rules
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    LeftOut {
        file: paths.join(", "),
        line: 0,
        why: reasons(error),
        is_setting: false,
    }
}
