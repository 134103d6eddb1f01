//! Changes of rules and settings while recording, as requested by `tarsier ctl`.
//!
//! A request is carried out as a whole or not at all: the rules that result from it are planned and
//! swapped in by one step, and if anything is refused before that, the old rules and settings stay
//! in force.

mod draft;
pub(super) mod records;
mod setting;
mod socket;

use socket::Asked;
pub(super) use socket::ControlSocket;

use crate::asker::Asker;
use crate::daemon_records::Who;
use crate::engine::Engine;
use crate::failure::Failure;
use crate::kernel_records::KernelRecords;
use crate::losses::{self, KERNEL_BACKLOG};
use crate::protocol::{hex, Answer, AuditState, Refused, Request, Step};
use crate::recording::Recording;
use crate::rules_at_start;
use crate::status;
use crate::stderr::{reasons, say};
use anyhow::{bail, Context, Result};
use draft::{errno, Draft, Refusal};
use netlink::{AuditSocket, NetlinkError, Status};
use rules::Rule;
use setting::Setting;

/// The state that auditctl can see and set.
#[derive(Default)]
pub(super) struct Control {
    /// The rules, in force unless `enabled` is 0.
    rules: Vec<Rule>,
    /// 0 off, 1 on, 2 on and locked until this daemon ends.
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
pub(super) struct Stop {
    pub(super) who: Who,
    /// Whether pinned programs stay armed for the next daemon.
    pub(super) keeps: bool,
}

/// The kernel's default limit (`AUDIT_BACKLOG_LIMIT` of its configuration).
const BACKLOG_LIMIT: u32 = 64;

impl Control {
    /// Starts with `rules` in force.
    pub(super) fn new(rules: Vec<Rule>) -> Control {
        Control {
            rules,
            enabled: 1,
            kept: Status {
                backlog_limit: BACKLOG_LIMIT,
                ..Status::default()
            },
            lost_before: 0,
            asked_to_stop: None,
        }
    }

    /// The request to stop, if one has come since the last call.
    pub(super) fn take_stop(&mut self) -> Option<Stop> {
        self.asked_to_stop.take()
    }

    /// Carries out a request and returns the answer as JSON. Requests that `others` make meanwhile and that change
    /// nothing are answered too.
    pub(super) fn answer(
        &mut self,
        asked: &Asked,
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
                let kernel = recording.pipeline.kernel.as_ref();
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
    pub(super) fn serve(&self, others: &mut ControlSocket, recording: &mut Recording) {
        while let Some(asked) = others.new_request() {
            match serde_json::from_slice(&asked.line) {
                Ok(request) if !changes_something(&request) => {
                    let text = self.told(&request, recording);
                    others.answer(asked.client, text);
                }
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
        if keeps && recording.pipeline.engine.pins().is_none() {
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
        if let (Engine::Kernel, Some(kernel), 1..) =
            (&pipeline.engine, &mut pipeline.kernel, self.enabled)
        {
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
        match &mut recording.pipeline.kernel {
            Some(kernel) => kernel.socket().status().unwrap_or(self.kept),
            None => self.kept,
        }
    }

    /// The values of `failure` and `rate_limit`: Tarsier's own, or the kernel's if it is the engine.
    fn own_settings(settings: Status, recording: &Recording) -> Status {
        match recording.pipeline.engine.is_kernel() {
            true => settings,
            false => Status {
                failure: recording.losses.failure.0,
                rate_limit: recording.pipeline.recorder.rate.limit,
                ..settings
            },
        }
    }

    fn audit_state(&self, recording: &mut Recording) -> AuditState {
        let lost = lost_elsewhere(recording);
        let settings = Control::own_settings(self.settings(recording), recording);
        let lost = lost.saturating_sub(self.lost_before);
        let lost = lost.saturating_add(settings.lost.into());
        let features = match &mut recording.pipeline.kernel {
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
        let mut draft = Draft::new(&self.rules, self.enabled);
        let mut answer = Answer::default();
        for (place, step) in steps.iter().enumerate() {
            if let Err((errno, reason)) = draft.take(place, step) {
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
        if draft.changes_rules() || is_switched {
            check_plan(&draft.set.rules, enabled, recording)?;
            if old != 0 && enabled == 0 {
                // Log this now, while records are still taken.
                self.log_rule_changes(draft, by, true, recording);
                self.log_setting("audit_enabled", enabled, old, by, recording);
            }
            self.install(draft.rules(), enabled, by, recording, others)?;
        }
        self.enabled = enabled;
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
        let number = pipeline.generation.plan.generation + 1;
        let armed = match enabled {
            0 => Vec::new(),
            _ => rules.clone(),
        };
        let is_kernel = pipeline.engine.is_kernel();
        let before = &recording.pipeline.generation;
        let generation = recording
            .settings
            .generation_after(before, armed, is_kernel, number)?;
        let serve = &mut |recording: &mut Recording| self.serve(others, recording);
        let change = recording.put_in_force(generation, serve)?;
        if enabled != 0 {
            recording.pipeline.say_armed(by, &change);
        }
        if let Some(kernel) = &mut recording.pipeline.kernel {
            let now = kernel.socket().status().map_or(1, |status| status.enabled);
            let wanted = enabled.min(1);
            if now != wanted {
                if now != 0 {
                    kernel.expect_change(format!("op=set audit_enabled={wanted} old={now} "));
                }
                let switched = kernel.socket().set_enabled(wanted);
                switched.context("the kernel's records cannot be switched")?;
            }
        }
        self.rules = rules;
        self.enabled = enabled;
        Ok(())
    }

    /// Carries out a step that does not concern rules. Returns the value that a reset counter had.
    fn set(
        &mut self,
        step: &Step,
        done: &mut Vec<Setting>,
        by: &Asker,
        recording: &mut Recording,
    ) -> Result<Option<u32>, Refusal> {
        if let Some((setting, value)) = Setting::of(step) {
            self.change_setting(setting, value, by, recording)?;
            done.push(setting);
            return Ok(None);
        }
        match step {
            Step::Trim if recording.pipeline.engine.is_kernel() => {
                match &mut recording.pipeline.kernel {
                    Some(kernel) => kernel.socket().trim().map(|()| None).map_err(refusal),
                    None => Ok(None),
                }
            }
            Step::ResetLost => {
                let lost = self.reset_lost(recording).map_err(refusal)?;
                self.log_setting("lost", 0, lost, by, recording);
                Ok(Some(lost))
            }
            Step::ResetBacklogWaitTimeActual => {
                let mut waited = 0;
                if let Some(kernel) = &mut recording.pipeline.kernel {
                    kernel.expect_change("op=set backlog_wait_time_actual=0 old=".to_owned());
                    let socket = kernel.socket();
                    waited = socket.reset_backlog_wait_time_actual().map_err(refusal)?;
                }
                self.log_setting("backlog_wait_time_actual", 0, waited, by, recording);
                Ok(Some(waited))
            }
            Step::LoginuidImmutable => match &mut recording.pipeline.kernel {
                Some(kernel) => kernel
                    .socket()
                    .set_loginuid_immutable()
                    .map(|()| None)
                    .map_err(refusal),
                None => Err(errno::not_supported(
                    "Tarsier does not own the kernel's audit socket",
                )),
            },
            Step::Message(text) => {
                let body = records::user_message(by, text);
                self.log_event(records::USER, &body, by, recording);
                Ok(None)
            }
            _ => Ok(None),
        }
    }

    /// Sets the count of losses to 0 and returns the one before: the kernel's, if Tarsier owns its
    /// audit socket, and Tarsier's own.
    fn reset_lost(&mut self, recording: &mut Recording) -> Result<u32, NetlinkError> {
        let of_kernel = match &mut recording.pipeline.kernel {
            Some(kernel) => {
                kernel.expect_change("op=set lost=0 old=".to_owned());
                kernel.reset_lost()?
            }
            None => 0,
        };
        let elsewhere = lost_elsewhere(recording);
        let lost = elsewhere.saturating_sub(self.lost_before);
        self.lost_before = elsewhere;
        let lost = lost.saturating_add(of_kernel.into());
        Ok(u32::try_from(lost).unwrap_or(u32::MAX))
    }

    fn change_setting(
        &mut self,
        setting: Setting,
        value: u32,
        by: &Asker,
        recording: &mut Recording,
    ) -> Result<(), Refusal> {
        let mut before = Control::own_settings(self.settings(recording), recording);
        let old = *setting.member(&mut before);
        self.send_setting(setting, value, recording)?;
        self.log_setting(setting.name(), value, old, by, recording);
        Ok(())
    }

    fn send_setting(
        &mut self,
        setting: Setting,
        value: u32,
        recording: &mut Recording,
    ) -> Result<(), Refusal> {
        let is_engine = recording.pipeline.engine.is_kernel();
        if let Some(kernel) = &mut recording.pipeline.kernel {
            if kernel
                .socket()
                .status()
                .is_ok_and(|status| status.enabled != 0)
            {
                kernel.expect_change(format!("op=set {}=", setting.name()));
            }
            let sent = setting.send(kernel.socket(), value, is_engine);
            sent.map_err(refusal)?;
        }
        *setting.member(&mut self.kept) = value;
        match setting {
            _ if is_engine => (),
            Setting::Failure => recording.losses.failure = Failure(value),
            Setting::Rate => recording.pipeline.recorder.rate.limit = value,
            Setting::Backlog | Setting::BacklogWaitTime => (),
        }
        Ok(())
    }

    /// Restores settings after a later step of the request has failed.
    fn set_back(&mut self, done: &[Setting], mut before: Status, recording: &mut Recording) {
        for setting in done {
            let value = *setting.member(&mut before);
            if let Err((_, reason)) = self.send_setting(*setting, value, recording) {
                say!("tarsier: {} cannot be restored: {reason}", setting.name());
            }
        }
    }

    /// Replaces the rules with those of the files (SIGHUP); rules changed since are lost.
    pub(super) fn reload_rules(
        &mut self,
        by: &Asker,
        recording: &mut Recording,
        others: &mut ControlSocket,
    ) -> Result<()> {
        if self.enabled == 2 {
            bail!("the rules are locked until tarsier is started again (-e 2)");
        }
        let is_kernel = recording.pipeline.engine.is_kernel();
        let (set, files) = recording.settings.sources.rules(is_kernel)?;
        check_plan(&set.rules, self.enabled, recording)?;
        let draft = Draft::between(&self.rules, set.rules.clone());
        self.install(draft.set.rules.clone(), self.enabled, by, recording, others)?;
        let pipeline = &mut recording.pipeline;
        if let (Engine::Kernel, Some(kernel)) = (&pipeline.engine, &mut pipeline.kernel) {
            kernel.apply_settings(&set.settings)?;
        }
        recording.apply_settings(&set.settings);
        recording.settings.sources.good.keep(&set, &files);
        recording.rules_are(rules_at_start::in_force_of_files(&set));
        self.log_rule_changes(&draft, by, true, recording);
        Ok(())
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
    let lost = losses::by_cause(pipeline, &pipeline.engine.counters());
    let elsewhere = lost.iter().filter(|(cause, _)| *cause != KERNEL_BACKLOG);
    elsewhere.map(|(_, count)| count).sum()
}

/// Checks the rules while audit is off: nothing is armed then, but the rules must still be valid.
fn check_plan(rules: &[Rule], enabled: u32, recording: &Recording) -> Result<()> {
    if enabled == 0 {
        let is_kernel = recording.pipeline.engine.is_kernel();
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

fn refusal(error: NetlinkError) -> Refusal {
    let errno = error.errno().map(|errno| errno.raw_os_error());
    (errno, error.to_string())
}
