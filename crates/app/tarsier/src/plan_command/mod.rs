//! `tarsier plan`

mod memory;
mod profile;

use crate::rules_command::{check::findings_of, source};
use abi::Field;
use anyhow::{bail, Context, Result};
use cli::messages::report;
use cli::{Engine, PlanArgs};
use daemon::choice::{self, Kind};
use daemon::host::host;
use plan::{CallExplanation, Capabilities, Plan};
use rules::{ErrorKind, Rule, RuleSet, Source, SystemHost, Value};
use std::ffi::OsStr;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Prints the plan of the rules for this host. Without root, features that only root can test are
/// assumed to exist. Rules on paths that are missing here are planned, too.
pub(crate) fn plan(args: &PlanArgs) -> Result<u8> {
    let set = source::read(&args.rules)?;
    warn_of_missing_paths(&set.rules);
    warn_of_links(&set.rules);
    let (plan, is_kernel) = plan_for(&set, args.engine)?;
    warn_of_costs(&set);
    let mut out = std::io::stdout().lock();
    if is_kernel && !args.syscalls.is_empty() {
        bail!(
            "--syscall shows the match tables of the eBPF engines, and the kernel engine has none"
        );
    }

    if let Some(of) = &args.profile {
        let profile = profile::predict(of, args.seconds, &plan, is_kernel)?;
        if args.json {
            serde_json::to_writer_pretty(&mut out, &profile)?;
            writeln!(out)?;
        } else {
            write!(out, "{profile}")?
        }
        return Ok(0);
    }

    if args.memory {
        if is_kernel {
            bail!("--memory is about the eBPF engines, and the kernel engine loads nothing");
        }
        memory::print(&mut out, &plan, args.json)?;
        return Ok(0);
    }

    if args.syscalls.is_empty() {
        let explanation = if is_kernel {
            plan::explain_kernel(&plan)
        } else {
            plan::explain(&plan)
        };
        if args.json {
            serde_json::to_writer_pretty(&mut out, &explanation)?;
            writeln!(out)?;
        } else {
            write!(out, "{explanation}")?;
        }
        return Ok(0);
    }

    let calls = calls(&plan, &args.syscalls)?;

    if args.json {
        serde_json::to_writer_pretty(&mut out, &calls)?;
        writeln!(out)?;
    } else {
        for (i, call) in calls.iter().enumerate() {
            let blank = if i > 0 { "\n" } else { "" };
            write!(out, "{blank}{call}")?;
        }
    }

    Ok(0)
}

/// The plan of `set` for this host, and whether the kernel's own audit is the engine.
///
/// # Errors
/// The rules do not fit the tables.
pub(crate) fn plan_for(set: &RuleSet, engine: Engine) -> Result<(Plan, bool)> {
    let is_root = rustix::process::geteuid().is_root();
    let kind = choice::planned(engine, is_root);
    let is_trampoline = kind == Kind::Trampoline;
    let capabilities = if is_root {
        capture::probe::capabilities(is_trampoline)
    } else {
        let (io_uring, uring_operations) = capture::probe::io_uring();
        Capabilities {
            compat_entry: capture::probe::compat_entry(),
            x32_calls: capture::probe::x32_calls(),
            perm_lists: capture::probe::perm_lists(),
            io_uring,
            uring_operations,
            trampoline: is_trampoline,
            unhooked_calls: if is_trampoline {
                capture::probe::unhooked_calls()
            } else {
                Default::default()
            },
            cgroup2: capture::probe::cgroup2(),
            gaps: capture::probe::gaps(is_trampoline),
            ..Capabilities::assumed(abi::Arch::native())
        }
    };

    let is_kernel = kind == Kind::Kernel;
    let plan = if is_kernel {
        Plan::for_kernel(&set.rules, &capabilities, 1)
    } else {
        let identities = compose::identify(&set.rules, &host());
        let plan = Plan::new(&set.rules, &capabilities, &identities, 1);
        plan.map_err(|error| daemon::too_large(&error, &set.rules))
            .context("the rules cannot be planned")?
    };

    Ok((plan, is_kernel))
}

fn calls(plan: &Plan, names: &[String]) -> Result<Vec<CallExplanation>> {
    let mut calls = Vec::new();
    for name in names {
        let found = plan::explain_call(plan, name);
        if found.is_empty() {
            bail!("no architecture of this host has a system call {name}: `ausyscall --dump` of Debian's auditd lists them");
        }
        calls.extend(found);
    }
    Ok(calls)
}

/// Says which rules and settings cost a host much, or make it wait, lose events or stop.
fn warn_of_costs(set: &RuleSet) {
    let findings = findings_of(set).into_iter();
    for finding in findings.filter(|finding| finding.lint.is_costly()) {
        let place = Source {
            file: finding.file.clone(),
            line: finding.line,
        };
        let (place, name) = (place.place(), finding.lint.name());
        let cost = finding.cost.map(|cost| format!(": {cost}"));
        report!(
            "{place}: warning: {} [{name}]{}",
            finding.message,
            cost.unwrap_or_default()
        );
    }
}

/// Prints which rules name a directory by a symbolic link: the kernel's audit does not follow it (audit_add_tree_rule()
/// in kernel/audit_tree.c).
fn warn_of_links(rules: &[Rule]) {
    for rule in rules {
        let directories = rule.conditions.iter().filter(|c| c.field == Field::Dir);
        for condition in directories {
            let Value::Text(path) = &condition.value else {
                continue;
            };
            let path = Path::new(OsStr::from_bytes(path));
            let Some(target) = path
                .is_symlink()
                .then(|| path.canonicalize().ok())
                .flatten()
            else {
                continue;
            };
            let (place, path, target) = (rule.source.place(), path.display(), target.display());
            report!(
                "{place}: warning: {path} is a symbolic link: Tarsier watches {target}, where it leads; the kernel's \
                 audit watches the link alone: name {target}"
            );
        }
    }
}

fn warn_of_missing_paths(rules: &[Rule]) {
    for rule in rules {
        if let Err(refusal) = rules::check(rule, Some(&SystemHost)) {
            if refusal.kind == ErrorKind::MissingPath {
                let (file, line) = (&rule.source.file, rule.source.line);
                report!(
                    "{file}:{line}: warning: {}, loading would fail",
                    refusal.reason
                );
            }
        }
    }
}
