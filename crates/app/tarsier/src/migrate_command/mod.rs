//! `tarsier migrate`: replaces auditd with Tarsier, or Tarsier with auditd.

mod check;
mod host;
mod record;
mod scan;
mod steps;
mod system;
#[cfg(test)]
mod tests;

use crate::finding::{self, Level};
use anyhow::{bail, Context, Result};
use cli::messages::report;
use cli::MigrateArgs;
use host::Host;
use record::MigrationRecord;
use std::path::Path;
use steps::{StepKind, Way};

/// Checks, migrates or goes back. The status of `--check` is that of the worst finding.
///
/// # Errors
/// A step failed. The steps before it have been undone; the error names those that could not be.
pub(crate) fn migrate(args: &MigrateArgs) -> Result<u8> {
    let way = if args.own_unit {
        Way::OwnUnit
    } else {
        Way::AuditdUnit
    };
    if args.check {
        let mut findings = check::findings();
        findings.extend(scan::findings(way, Path::new("/")));
        return finding::print(&findings, args.json);
    }

    if !rustix::process::geteuid().is_root() {
        bail!("you must be root to run this; `tarsier migrate --check` works for everybody");
    }

    let mut host = system::System;
    if args.back {
        back(&mut host)?;
        report!("tarsier: auditd is as it was before `tarsier migrate`");
        return Ok(0);
    }

    let mut findings = check::findings();
    findings.retain(|finding| finding.level == Level::Fail);
    if !findings.is_empty() {
        finding::print(&findings, false)?;
        bail!("nothing was changed: Tarsier would not put all of this in force");
    }

    forward(&mut host, way)?;
    report!("tarsier: Tarsier has replaced auditd; `tarsier migrate --back` undoes this");

    Ok(0)
}

/// Carries out every step that this host needs. Each is recorded before it begins, so that it can be undone whatever
/// happens.
fn forward(host: &mut dyn Host, way: Way) -> Result<()> {
    if host.load()?.is_some() {
        bail!("this host has been migrated: `tarsier migrate --back` undoes that");
    }

    steps::prerequisites(host, way)?;
    let mut record = MigrationRecord::default();

    for kind in StepKind::all(way) {
        for step in kind.needed(host, &record.steps)? {
            record.steps.push(step);
            if let Err(error) = carry_out_last(host, &record) {
                if host.load()?.is_none() {
                    return Err(error.context("nothing was changed"));
                }
                return Err(match back(host) {
                    Ok(()) => {
                        error.context("not migrated; the steps that were done have been undone")
                    }
                    Err(left) => error.context(format!(
                        "{left:#}; what is left is undone by `tarsier migrate --back`"
                    )),
                });
            }
        }
    }

    Ok(())
}

fn carry_out_last(host: &mut dyn Host, record: &MigrationRecord) -> Result<()> {
    host.save(&record.text()?)?;
    match record.steps.last() {
        Some(step) => step
            .carry_out(host)
            .with_context(|| format!("cannot {step}")),
        None => Ok(()),
    }
}

/// Undoes the steps in the record, last first. A step that was not carried out, or is undone already, is left alone.
fn back(host: &mut dyn Host) -> Result<()> {
    let Some(text) = host.load()? else {
        bail!("nothing to undo: `tarsier migrate` has changed nothing on this host");
    };
    let mut record = MigrationRecord::parse(&text)?;
    while let Some(step) = record.steps.last() {
        step.undo(host)
            .with_context(|| format!("cannot undo: {step}"))?;
        record.steps.pop();
        host.save(&record.text()?)?;
    }
    host.forget()
}
