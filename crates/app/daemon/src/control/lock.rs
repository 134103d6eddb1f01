//! Locks rules until the next boot (`-e 2`), and keeps a daemon to what is locked: decision 0055.
//!
//! The lock itself is the kernel's, which root cannot take back. What it binds is in [`crate::control::locked_rules`].

use crate::account::daemon_records::{untrusted, words, LoggedAction, Who};
use crate::control::asker::Asker;
use crate::control::locked_rules::{self, Lock, LockState, LockedRules};
use crate::control::records;
use crate::event_loop::recording::Recording;
use crate::pipeline::kernel_records::KernelRecords;
use crate::protocol::RulesOrigin;
use crate::start::rule_files;
use crate::start::rules_at_start::{self, Chosen};
use crate::start::settings::{Settings, Sources};
use crate::stderr::{reasons, say};
use anyhow::{Context, Result};
use journal::Severity;
use netlink::LOCKED;
use record::RecordType;
use rules::Rule;

/// The `op` of refused rules of files.
pub(crate) const LOAD_RULES: &str = "load_rules audit_enabled=2";

/// Chooses the rules for a start: those that are locked, or as [`rules_at_start::choose`] does. What is locked and
/// cannot be put in force becomes [`LockState::Lost`]. Call it before this process is confined.
///
/// # Errors
/// The errors of [`rules_at_start::choose`].
pub(crate) fn choose(settings: &mut Settings, is_kernel: bool) -> Result<(LockState, Chosen)> {
    let sources = &settings.sources;
    let mut found = locked_rules::find(&sources.rules, &sources.good, &settings.config);
    let mut of_lock = None;
    if let LockState::Rules(locked) = &found {
        match chosen(locked, settings, is_kernel) {
            Ok(chosen) => of_lock = Some(chosen),
            Err(error) => found = LockState::Lost(reasons(&error)),
        }
    }
    let chosen = match of_lock {
        Some(chosen) => chosen,
        None => rules_at_start::choose(settings, is_kernel)?,
    };

    // The pin is made once everything is armed.
    if !matches!(found, LockState::Open) || chosen.set.settings.enabled == Some(LOCKED) {
        locked_rules::prepare_pin();
    }
    Ok((found, chosen))
}

fn chosen(locked: &LockedRules, settings: &mut Settings, is_kernel: bool) -> Result<Chosen> {
    let set = locked.set().context("the locked rules cannot be read")?;
    locked.hold(&mut settings.config);
    let generation = settings
        .generation(set.rules.clone(), is_kernel, 1)
        .context("the locked rules cannot be put in force")?;
    Ok(Chosen::of(set, generation, RulesOrigin::Locked, Vec::new()))
}

/// Locks after a start if the files want that, binds this daemon to a lock that it has found, and reports what of the
/// files a lock keeps out of force.
/// Immutable login uids are fixed in the same way.
pub(crate) fn at_start(found: LockState, settings: &rules::Settings, recording: &mut Recording) {
    fix_loginuid(settings, recording);

    let by = Asker::this_process();
    let rules = recording.pipeline.rules().to_vec();
    match found {
        LockState::Open if settings.enabled == Some(LOCKED) => {
            if recording.settings.sources.ends_by_itself {
                say!("tarsier: -e 2 has no effect on a recording that ends by itself");
            } else if let Err(error) = lock(recording, &rules, &by) {
                report(
                    recording,
                    &format!("the rules are not locked: {}", reasons(&error)),
                );
            }
        }
        LockState::Open => {}
        LockState::Rules(locked) => {
            // The locked rules are in force; files that say otherwise are an attempt to change them.
            let files = rule_files::gather(&recording.settings.sources.rules);
            if locked.differ_from(&files.set) || !files.wrong.is_empty() {
                refused(recording, LOAD_RULES, &by);
                say!(
                    "tarsier: the rules are locked until the next boot (-e 2): those of the files are not in force"
                );
            }
            bind(recording, *locked, &by);
        }
        LockState::Lost(why) => {
            report(
                recording,
                &format!(
                    "audit is locked (-e 2), and the rules that were locked cannot be found: {why}; the rules of the \
                     files are in force instead"
                ),
            );
            let now = in_force(recording, &rules);
            bind(recording, now, &by);
        }
    }
}

/// Makes login uids immutable until the next boot, if the files want that (`--loginuid-immutable`).
fn fix_loginuid(settings: &rules::Settings, recording: &mut Recording) {
    // Under the kernel engine the kernel has all settings of the files already.
    if !settings.loginuid_immutable || recording.pipeline.is_kernel_engine() {
        return;
    }
    if recording.settings.sources.ends_by_itself {
        say!("tarsier: --loginuid-immutable has no effect on a recording that ends by itself");
        return;
    }

    let outcome = match recording.pipeline.kernel_mut() {
        Some(kernel) => kernel
            .socket()
            .set_loginuid_immutable()
            .map_err(|error| error.to_string()),
        None => Err("the kernel's audit is not this daemon's to change".to_owned()),
    };

    if let Err(error) = outcome {
        report(recording, &format!("--loginuid-immutable: {error}"));
    }
}

/// Locks the kernel's audit and this daemon, with `rules` in force.
///
/// # Errors
/// The kernel cannot be locked. Then nothing is.
pub(crate) fn lock(recording: &mut Recording, rules: &[Rule], by: &Asker) -> Result<()> {
    let locked = in_force(recording, rules);
    let is_engine = recording.pipeline.is_kernel_engine();
    match recording.pipeline.kernel_mut() {
        Some(kernel) => {
            // As the engine, the kernel has the rules themselves in its list; otherwise their digest stands there.
            let digest = (!is_engine).then(|| locked.digest());
            let outcome = kernel.lock(digest.as_deref());
            outcome.context("the kernel's audit cannot be locked")?;
            bind(recording, locked, by);
        }
        None => {
            say!(
                "tarsier: the rules are locked until tarsier is started again: the kernel's audit is not this daemon's \
                 to lock"
            );
            log(recording, &locked, by);
            recording.settings.lock = Some(Lock::of_process(locked));
        }
    }
    Ok(())
}

/// Binds this daemon to the kernel's lock, whoever has locked it, with `rules` in force.
pub(crate) fn follow(recording: &mut Recording, rules: &[Rule]) {
    let locked = in_force(recording, rules);
    bind(recording, locked, &Asker::this_process());
}

/// Whether the kernel's audit is locked, as far as this daemon owns it.
pub(crate) fn is_kernel_locked(recording: &mut Recording) -> bool {
    let kernel = recording.pipeline.kernel_mut();
    let status = kernel
        .map(KernelRecords::socket)
        .map(|socket| socket.status());
    matches!(status, Some(Ok(status)) if status.enabled == LOCKED)
}

/// Logs that the lock has refused `op`, a word and the fields behind it, which `by` wanted.
pub(crate) fn refused(recording: &mut Recording, op: &str, by: &Asker) {
    let body = records::refused(by, op);
    let pipeline = &mut recording.pipeline;
    pipeline.log_sent(records::CONFIG_CHANGE, &body, by.who);
}

/// Logs that settings of auditd.conf are locked, which `by` wanted to be others.
pub(crate) fn settings_refused(recording: &mut Recording, by: &Asker) {
    refused(recording, "load_settings audit_enabled=2", by);
    say!(
        "tarsier: rate_budgets, io_uring_twins, objects_before, overload: locked until the next boot (-e 2): others are \
         not taken"
    );
}

/// Whether the files have other rules than those that are locked.
///
/// # Errors
/// The files are wrong.
pub(crate) fn files_differ(locked: &LockedRules, sources: &Sources) -> Result<bool> {
    let (set, _) = rule_files::complete(rule_files::gather(&sources.rules))?;
    Ok(locked.differ_from(&set))
}

fn in_force(recording: &Recording, rules: &[Rule]) -> LockedRules {
    let failure = recording.losses.failure.0;
    let rate = recording.pipeline.rate_limit();
    LockedRules::of(rules, failure, rate, &recording.settings.config)
}

fn bind(recording: &mut Recording, rules: LockedRules, by: &Asker) {
    log(recording, &rules, by);
    recording.settings.lock = Some(Lock::of_kernel(rules));
}

fn log(recording: &mut Recording, rules: &LockedRules, by: &Asker) {
    let body = records::locked(by, rules.count(), &rules.digest());
    let pipeline = &mut recording.pipeline;
    pipeline.log_sent(records::CONFIG_CHANGE, &body, by.who);
}

/// Reports at the highest priority: in the log, to syslog and on standard error.
fn report(recording: &mut Recording, text: &str) {
    let pipeline = &mut recording.pipeline;
    pipeline.output().notify(Severity::Alert, text);
    let reason = untrusted(&words(text));
    pipeline.log_action(&LoggedAction {
        kind: RecordType::DAEMON_ERR,
        op: "lock-rules",
        who: Who::this_process(),
        extra: &[("reason", &reason)],
        is_success: false,
    });
}
