//! Changes of rules and settings while recording, as requested by `tarsier ctl`.
//!
//! A request is carried out as a whole or not at all: the rules that result from it are planned and
//! swapped in by one step, and if anything is refused before that, the old rules and settings stay
//! in force.

pub(crate) mod asker;
pub(crate) mod lock;
pub(crate) mod locked_rules;
pub(crate) mod metrics;
pub(crate) mod status;

mod draft;
pub(crate) mod kernel_list;
pub(crate) mod records;
mod setting;
mod socket;
mod step;

use socket::ControlRequest;
pub(crate) use socket::ControlSocket;

use crate::account::daemon_records::Who;
use crate::account::losses::{self, KERNEL_BACKLOG};
use crate::control::asker::Asker;
use crate::event_loop::recording::Recording;
use crate::pipeline::kernel_records::KernelRecords;
use crate::protocol::{hex, Answer, AuditState, Refused, Request, Step};
use crate::start::rules_at_start;
use crate::stderr::{reasons, say};
use anyhow::{anyhow, bail, Context, Result};
use draft::Draft;
use netlink::{AuditSocket, Status, LOCKED};
use rules::Rule;
use setting::Setting;

/// The state that auditctl can see and set.
#[derive(Default)]
pub(crate) struct Control {
    /// The rules, in force unless `enabled` is 0.
    rules: Vec<Rule>,
    /// 0 off, 1 on, 2 on and locked until the next boot.
    enabled: u32,
    /// The settings, kept here while Tarsier does not own the kernel's audit socket, which would
    /// keep them.
    kept: Status,
    /// Number of losses when they were last reset.
    lost_before: u64,
    asked_to_stop: Option<Stop>,
}

/// A request to stop recording.
#[derive(Clone, Copy)]
pub(crate) struct Stop {
    pub(crate) who: Who,
    /// Whether pinned programs stay armed for the next daemon.
    pub(crate) keeps: bool,
}

/// The kernel's default limit (`AUDIT_BACKLOG_LIMIT` of its configuration).
const BACKLOG_LIMIT: u32 = 64;

impl Control {
    /// Starts with what is in force.
    pub(crate) fn new(recording: &Recording) -> Control {
        Control {
            rules: recording.pipeline.rules().to_vec(),
            enabled: match recording.settings.lock {
                Some(_) => LOCKED,
                None => 1,
            },
            kept: Status {
                backlog_limit: BACKLOG_LIMIT,
                ..Status::default()
            },
            lost_before: 0,
            asked_to_stop: None,
        }
    }

    /// The request to stop, if one has come since the last call.
    pub(crate) fn take_stop(&mut self) -> Option<Stop> {
        self.asked_to_stop.take()
    }

    /// Carries out a request and returns the answer as JSON. Requests that `others` make meanwhile and that change
    /// nothing are answered too.
    pub(crate) fn answer(
        &mut self,
        asked: &ControlRequest,
        recording: &mut Recording,
        others: &mut ControlSocket,
    ) -> Vec<u8> {
        let by = &asked.by;
        let answer = match serde_json::from_slice(&asked.line) {
            Ok(Request::Apply {
                steps,
                tolerate_from,
            }) => self.apply(&steps, tolerate_from, by, recording, others),
            Ok(Request::Stop { keep }) => {
                let kernel = recording.pipeline.kernel();
                Answer {
                    error: self.ask_to_stop(keep, by, recording).err(),
                    note: kernel.and_then(KernelRecords::leaves).map(str::to_owned),
                    ..Answer::default()
                }
            }
            Ok(request) => return self.told(&request, recording),
            Err(error) => Answer {
                error: Some(format!("the request is not clear: {error}")),
                ..Answer::default()
            },
        };

        serde_json::to_vec(&answer).unwrap_or_default()
    }

    /// The answer to a request that changes nothing.
    fn told(&self, request: &Request, recording: &mut Recording) -> Vec<u8> {
        let text = match request {
            Request::Status => serde_json::to_vec(&status::of(recording)),
            Request::RuleCosts => serde_json::to_vec(&status::rule_costs(recording)),
            Request::MakerCosts {
                by,
                order,
                top,
                recent,
            } => match status::maker_costs(recording, *by, *order, *top, *recent) {
                Ok(table) => serde_json::to_vec(&table),
                Err(error) => serde_json::to_vec(&Answer {
                    error: Some(error),
                    ..Answer::default()
                }),
            },
            Request::Rules => serde_json::to_vec(&Answer {
                rules: self.listed_rules(recording),
                ..Answer::default()
            }),
            _ => serde_json::to_vec(&Answer {
                audit: Some(self.audit_state(recording)),
                ..Answer::default()
            }),
        };

        text.unwrap_or_default()
    }

    /// Serves clients while rules are being replaced: answers requests that change nothing, and keeps the others.
    pub(crate) fn serve(&self, others: &mut ControlSocket, recording: &mut Recording) {
        while let Some(asked) = others.new_request() {
            match serde_json::from_slice(&asked.line) {
                Ok(request) if !changes_something(&request) => {
                    let text = self.told(&request, recording);
                    others.answer(asked.client, text);
                }
                // A change has to wait for the one that is under way.
                _ => others.put_back(asked),
            }
        }
        others.show_life();
        others.flush();
    }

    /// Notes the request to stop: the daemon stops after the answer has been queued.
    fn ask_to_stop(
        &mut self,
        keeps: bool,
        by: &Asker,
        recording: &Recording,
    ) -> Result<(), String> {
        if keeps && recording.pipeline.engine().pins().is_none() {
            return Err(
                "capture would end with this daemon: nothing is pinned (pin_dir, --pin-dir)"
                    .to_owned(),
            );
        }
        self.asked_to_stop = Some(Stop { who: by.who, keeps });
        Ok(())
    }

    /// The rules, in hexadecimal, list by list as the kernel returns them.
    fn listed_rules(&self, recording: &mut Recording) -> Vec<String> {
        let pipeline = &mut recording.pipeline;
        if let (Some(kernel), 1..) = (pipeline.kernel_engine_mut(), self.enabled) {
            // The kernel may have removed rules, or an administrator added some.
            if let Some(rules) = kernel.listed_rules() {
                return rules.iter().map(|rule| hex(rule)).collect();
            }
        }

        let rules = &self.rules;
        rules::List::EVERY
            .iter()
            .flat_map(|&list| rules.iter().filter(move |rule| rule.list == list))
            .map(|rule| hex(&rules::to_kernel(rule)))
            .collect()
    }

    /// The settings; the kernel's own while Tarsier owns its audit socket.
    fn settings(&self, recording: &mut Recording) -> Status {
        match recording.pipeline.kernel_mut() {
            Some(kernel) => kernel.socket().status().unwrap_or(self.kept),
            None => self.kept,
        }
    }

    /// The values of `failure` and `rate_limit`: Tarsier's own, or the kernel's if it is the engine.
    fn own_settings(settings: Status, recording: &Recording) -> Status {
        if recording.pipeline.is_kernel_engine() {
            settings
        } else {
            Status {
                failure: recording.losses.failure.0,
                rate_limit: recording.pipeline.rate_limit(),
                ..settings
            }
        }
    }

    fn audit_state(&self, recording: &mut Recording) -> AuditState {
        let lost = lost_elsewhere(recording);
        let settings = Control::own_settings(self.settings(recording), recording);
        let lost = lost.saturating_sub(self.lost_before);
        let lost = lost.saturating_add(settings.lost.into());
        let features = match recording.pipeline.kernel_mut() {
            Some(kernel) => kernel.socket().features(),
            None => AuditSocket::open().and_then(|mut socket| socket.features()),
        };
        let features = features.unwrap_or_default();

        AuditState {
            enabled: self.enabled,
            failure: settings.failure,
            pid: std::process::id(),
            rate_limit: settings.rate_limit,
            backlog_limit: settings.backlog_limit,
            lost: u32::try_from(lost).unwrap_or(u32::MAX),
            backlog: settings.backlog,
            backlog_wait_time: settings.backlog_wait_time,
            backlog_wait_time_actual: settings.backlog_wait_time_actual,
            loginuid_immutable: features.loginuid_immutable(),
            loginuid_immutable_locked: features.loginuid_immutable_locked(),
        }
    }

    fn apply(
        &mut self,
        steps: &[Step],
        tolerate_from: usize,
        by: &Asker,
        recording: &mut Recording,
        others: &mut ControlSocket,
    ) -> Answer {
        // A lock that somebody else has set since binds this request, too.
        self.follow_lock(recording, others);
        let mut draft = Draft::new(&self.rules, self.enabled);
        let mut answer = Answer::default();
        for (place, step) in steps.iter().enumerate() {
            if let Err((errno, reason)) = draft.take(place, step) {
                self.log_refused(step, by, recording);
                answer.refused.push(Refused {
                    step: place,
                    errno,
                    reason,
                });
                if place < tolerate_from {
                    self.log_rule_changes(&draft, by, false, recording);
                    return answer;
                }
            }
        }

        // Every step is right by itself. Settings are changed one by one, so what they were is noted.
        let before = Control::own_settings(self.settings(recording), recording);
        let mut done = Vec::new();
        for (place, step) in steps.iter().enumerate() {
            let is_refused = answer.refused.iter().any(|refused| refused.step == place);
            if is_refused {
                continue;
            }
            match self.set(step, &mut done, by, recording) {
                Ok(value) => answer.value = value.or(answer.value),
                Err((errno, reason)) => {
                    answer.refused.push(Refused {
                        step: place,
                        errno,
                        reason,
                    });
                    if place < tolerate_from {
                        self.set_back(&done, before, recording);
                        return answer;
                    }
                }
            }
        }

        // The rules come last: if they cannot be put in force, the settings are set back.
        match self.install_draft(&draft, by, recording, others) {
            Ok(()) => {
                if steps
                    .iter()
                    .any(|step| matches!(step, Step::DeleteAll(None)))
                {
                    recording.rules_are(rules_at_start::in_force_of_requests(&self.rules));
                }
                answer.audit = Some(self.audit_state(recording));
            }
            Err(error) => {
                self.set_back(&done, before, recording);
                match refused_step(&error, &draft) {
                    Some(refused) if refused.step < tolerate_from => answer.refused.push(refused),
                    _ => {
                        answer.error = Some(format!("{}: what was in force stays", reasons(&error)))
                    }
                }
            }
        }

        answer
    }

    /// Puts the rules and the enabled flag of a draft in force, and logs who changed them.
    fn install_draft(
        &mut self,
        draft: &Draft,
        by: &Asker,
        recording: &mut Recording,
        others: &mut ControlSocket,
    ) -> Result<()> {
        let old = self.enabled;
        let enabled = draft.enabled();
        let is_switched = (old == 0) != (enabled == 0);
        let rules_before = self.rules.clone();

        if draft.changes_rules() || is_switched {
            check_plan(&draft.set.rules, enabled, recording)?;
            if old != 0 && enabled == 0 {
                // Log this now, while records are still taken.
                self.log_rule_changes(draft, by, true, recording);
                self.log_setting("audit_enabled", enabled, old, by, recording);
            }
            self.install(draft.rules(), enabled, by, recording, others)?;
        }

        // Locked only with the rules in force; if that fails, those of before come back.
        if enabled == LOCKED && old != LOCKED {
            if let Err(error) = lock::lock(recording, &self.rules, by) {
                self.install(rules_before, old, by, recording, others)?;
                return Err(error);
            }
        }

        self.enabled = enabled;
        // Logged above, while records were still taken.
        if is_switched && enabled == 0 {
            return Ok(());
        }

        self.log_rule_changes(draft, by, true, recording);
        if old != enabled {
            self.log_setting("audit_enabled", enabled, old, by, recording);
        }

        Ok(())
    }

    /// Swaps the rules in, or no rules if `enabled` is 0, and switches the kernel's records
    /// accordingly.
    fn install(
        &mut self,
        rules: Vec<Rule>,
        enabled: u32,
        by: &Asker,
        recording: &mut Recording,
        others: &mut ControlSocket,
    ) -> Result<()> {
        let pipeline = &recording.pipeline;
        let number = pipeline.plan().generation + 1;
        let armed = match enabled {
            0 => Vec::new(),
            _ => rules.clone(),
        };
        let is_kernel = pipeline.is_kernel_engine();
        let before = recording.pipeline.generation();
        let generation = recording
            .settings
            .generation_after(before, armed, is_kernel, number)?;
        let serve = &mut |recording: &mut Recording| self.serve(others, recording);
        let change = recording.put_in_force(generation, serve)?;
        if enabled != 0 {
            recording.pipeline.log_armed(by, &change);
        }

        // The kernel's records go on and off with the rules; the daemon logs that itself, with who wanted it.
        if let Some(kernel) = recording.pipeline.kernel_mut() {
            let now = kernel.socket().status().map_or(1, |status| status.enabled);
            let wanted = enabled.min(1);
            if now != wanted && now != LOCKED {
                if now != 0 {
                    kernel.expect_change(format!("op=set audit_enabled={wanted} old={now} "));
                }
                let switched = kernel.socket().set_enabled(wanted);
                switched.context("the kernel's records cannot be switched")?;
            }
        }

        self.rules = rules;
        self.enabled = enabled;
        kernel_list::show(&self.rules, recording);
        Ok(())
    }

    /// Replaces the rules with those of the files (SIGHUP); rules changed since are lost.
    pub(crate) fn reload_rules(
        &mut self,
        by: &Asker,
        recording: &mut Recording,
        others: &mut ControlSocket,
    ) -> Result<()> {
        self.follow_lock(recording, others);
        if let Some(lock) = &recording.settings.lock {
            if lock::files_differ(lock.rules(), &recording.settings.sources)? {
                lock::refused(recording, lock::LOAD_RULES, by);
                bail!("the rules are locked until the next boot (-e 2): the files have others");
            }
            return Ok(());
        }

        let is_kernel = recording.pipeline.is_kernel_engine();
        let (set, files) = recording.settings.sources.rules(is_kernel)?;
        check_plan(&set.rules, self.enabled, recording)?;
        let draft = Draft::between(&self.rules, set.rules.clone());
        self.install(draft.set.rules.clone(), self.enabled, by, recording, others)?;
        let pipeline = &mut recording.pipeline;
        if let Some(kernel) = pipeline.kernel_engine_mut() {
            kernel.apply_settings(&set.settings)?;
        }

        recording.apply_settings(&set.settings);
        recording.settings.sources.good.keep(&set, &files);
        recording.rules_are(rules_at_start::in_force_of_files(&set));
        self.log_rule_changes(&draft, by, true, recording);
        if recording.settings.sources.ends_by_itself {
            return Ok(());
        }

        if set.settings.loginuid_immutable {
            self.set_loginuid_immutable(recording)
                .map_err(|(_, reason)| anyhow!(reason))?;
        }

        if set.settings.enabled == Some(LOCKED) {
            lock::lock(recording, &self.rules, by)?;
            self.enabled = LOCKED;
        }

        Ok(())
    }

    /// Locks this daemon, too, once somebody has locked the kernel's audit. Call it before each change, and once a second.
    pub(crate) fn follow_lock(&mut self, recording: &mut Recording, others: &mut ControlSocket) {
        if self.enabled == LOCKED || !lock::is_kernel_locked(recording) {
            return;
        }

        // Audit that was off is on by the lock.
        if self.enabled == 0 {
            let rules = self.rules.clone();
            if let Err(error) = self.install(rules, 1, &Asker::this_process(), recording, others) {
                say!(
                    "tarsier: audit is locked (-e 2), and the rules cannot be armed: {}",
                    reasons(&error)
                );
                return;
            }
        }

        lock::follow(recording, &self.rules);
        self.enabled = LOCKED;
    }

    /// Logs a refused step if the lock has refused it. Rules are logged with the other changes.
    fn log_refused(&self, step: &Step, by: &Asker, recording: &mut Recording) {
        if self.enabled != LOCKED {
            return;
        }

        let op = match (step, Setting::of(step)) {
            (Step::Append(_) | Step::Prepend(_) | Step::Delete(_), _) => return,
            (Step::DeleteAll(_), _) => "remove_rule audit_enabled=2".to_owned(),
            (Step::ReadFile, _) => lock::LOAD_RULES.to_owned(),
            (Step::Enabled(value), _) => format!("set audit_enabled={value} old=2"),
            (_, Some((setting, value))) => format!("set {}={value}", setting.name()),
            _ => return,
        };

        lock::refused(recording, &op, by);
    }

    /// Logs one event for each rule that was added or removed. If the whole request `is_done`, this
    /// includes refused rules; otherwise only those are logged.
    fn log_rule_changes(
        &self,
        draft: &Draft,
        by: &Asker,
        is_done: bool,
        recording: &mut Recording,
    ) {
        for change in &draft.changes {
            if is_done || !change.is_success {
                let body = records::rule_change(by, change);
                self.log_event(records::CONFIG_CHANGE, &body, by, recording);
            }
        }
    }

    fn log_setting(&self, name: &str, new: u32, old: u32, by: &Asker, recording: &mut Recording) {
        let body = records::setting(by, name, new, old);
        self.log_event(records::CONFIG_CHANGE, &body, by, recording);
    }

    /// Writes an event of one record, unless audit is off or a rule drops it.
    fn log_event(&self, kind: u16, body: &[u8], by: &Asker, recording: &mut Recording) {
        let pipeline = &mut recording.pipeline;
        if self.enabled != 0 {
            pipeline.log_sent(kind, body, by.who);
        }
    }
}

/// Whether a request may change what is in force.
fn changes_something(request: &Request) -> bool {
    matches!(request, Request::Apply { .. } | Request::Stop { .. })
}

/// Number of losses, without those that the kernel counts itself.
fn lost_elsewhere(recording: &Recording) -> u64 {
    let pipeline = &recording.pipeline;
    let lost = losses::by_cause(pipeline, &pipeline.engine().counters());
    let elsewhere = lost.iter().filter(|(cause, _)| *cause != KERNEL_BACKLOG);
    elsewhere.map(|(_, count)| count).sum()
}

/// Checks the rules while audit is off: nothing is armed then, but the rules must still be valid.
fn check_plan(rules: &[Rule], enabled: u32, recording: &Recording) -> Result<()> {
    if enabled == 0 {
        let is_kernel = recording.pipeline.is_kernel_engine();
        recording
            .settings
            .generation(rules.to_vec(), is_kernel, 0)?;
    }
    Ok(())
}

/// The step that added the rule which does not fit, if it came with this request.
fn refused_step(error: &anyhow::Error, draft: &Draft) -> Option<Refused> {
    let too_large = error.downcast_ref::<plan::tables::TooLarge>()?;
    let step = draft.step_of(too_large.rule()? as usize)?;
    Some(Refused {
        step,
        errno: None,
        reason: too_large.to_string(),
    })
}
