//! Rules and settings changed while recording: what `tarsier ctl` asks for.
//!
//! A request is carried out as a whole or not at all: the rules it makes are planned and swapped
//! in by one step, and if anything is refused before that, what was in force stays.

use crate::ctl::protocol::{hex, Answer, AuditState, Refused, Request, Step};
use crate::host::HOST;
use crate::run::control_draft::{errno, Draft};
use crate::run::control_records;
use crate::run::daemon::{Daemon, End, KERNEL_BACKLOG};
use crate::run::daemon_records::Who;
use crate::run::engine::Engine;
use crate::run::sources;
use crate::stderr::say;
use anyhow::{bail, Context, Result};
use netlink::{AuditSocket, NetlinkError, Status};
use rules::Rule;

/// What auditctl can see and set.
#[derive(Debug, Default)]
pub(in crate::run) struct Control {
    /// The rules, in force unless `enabled` is 0.
    rules: Vec<Rule>,
    /// 0 off, 1 on, 2 on and locked until this daemon ends.
    enabled: u32,
    /// `failure`: 2 is noted and does not make the machine panic on Tarsier's account.
    failure: u32,
    /// The settings while the kernel's audit socket is not ours, which would keep them.
    kept: Status,
    /// Losses when they were last reset.
    lost_before: u64,
}

/// The kernel's limit when nothing was set (`AUDIT_BACKLOG_LIMIT` of its configuration).
const BACKLOG_LIMIT: u32 = 64;

/// A setting of the kernel's, with its name in CONFIG_CHANGE.
#[derive(Clone, Copy)]
enum Setting {
    Failure,
    Backlog,
    Rate,
    BacklogWaitTime,
}

impl Setting {
    fn of(step: &Step) -> Option<(Setting, u32)> {
        match step {
            Step::Failure(value) => Some((Setting::Failure, *value)),
            Step::Backlog(value) => Some((Setting::Backlog, *value)),
            Step::Rate(value) => Some((Setting::Rate, *value)),
            Step::BacklogWaitTime(value) => Some((Setting::BacklogWaitTime, *value)),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Setting::Failure => "audit_failure",
            Setting::Backlog => "audit_backlog_limit",
            Setting::Rate => "audit_rate_limit",
            Setting::BacklogWaitTime => "audit_backlog_wait_time",
        }
    }

    fn member(self, status: &mut Status) -> &mut u32 {
        match self {
            Setting::Failure => &mut status.failure,
            Setting::Backlog => &mut status.backlog_limit,
            Setting::Rate => &mut status.rate_limit,
            Setting::BacklogWaitTime => &mut status.backlog_wait_time,
        }
    }

    fn send(
        self,
        socket: &mut AuditSocket,
        value: u32,
        is_engine: bool,
    ) -> Result<(), NetlinkError> {
        match self {
            Setting::Failure if is_engine => socket.set_failure(value),
            // A record that is lost is no reason to stop a machine that did not ask the kernel.
            Setting::Failure => socket.set_failure(value.min(1)),
            Setting::Backlog => socket.set_backlog_limit(value),
            Setting::Rate => socket.set_rate_limit(value),
            Setting::BacklogWaitTime => socket.set_backlog_wait_time(value),
        }
    }
}

impl Control {
    /// `rules` are in force.
    pub(in crate::run) fn new(rules: Vec<Rule>) -> Control {
        Control {
            rules,
            enabled: 1,
            failure: 1,
            kept: Status {
                backlog_limit: BACKLOG_LIMIT,
                ..Status::default()
            },
            lost_before: 0,
        }
    }
}

impl Daemon {
    /// Answers everybody whose request is whole.
    pub(in crate::run) fn answer_clients(&mut self) {
        for asked in self.server.requests() {
            let text = match serde_json::from_slice(&asked.line) {
                Ok(Request::Status) => serde_json::to_vec(&self.status()),
                Ok(Request::RuleCosts) => serde_json::to_vec(&self.rule_costs()),
                Ok(request) => serde_json::to_vec(&self.audit_request(request, asked.who)),
                Err(error) => serde_json::to_vec(&Answer {
                    error: Some(format!("the request is not clear: {error}")),
                    ..Answer::default()
                }),
            };
            self.server.answer(asked.client, text.unwrap_or_default());
        }
        self.server.flush();
    }

    fn audit_request(&mut self, request: Request, who: Who) -> Answer {
        match request {
            Request::Apply {
                steps,
                tolerate_from,
            } => self.apply(&steps, tolerate_from, who),
            Request::Stop { keep } => Answer {
                error: self.ask_to_stop(keep, who).err(),
                ..Answer::default()
            },
            Request::Rules => Answer {
                rules: self.listed_rules(),
                ..Answer::default()
            },
            Request::Audit | Request::Status | Request::RuleCosts => Answer {
                audit: Some(self.audit_state()),
                ..Answer::default()
            },
        }
    }

    /// The end comes when the answer is on its way.
    fn ask_to_stop(&mut self, keep: bool, who: Who) -> Result<(), String> {
        if keep && self.engine.pins().is_none() {
            return Err(
                "what this daemon captures ends with it: nothing is pinned (pin_dir, --pin-dir)"
                    .to_owned(),
            );
        }
        self.asked_to_stop = Some(End {
            status: 0,
            sender: Some(who),
            keeps: keep,
        });
        Ok(())
    }

    /// List by list, as the kernel gives them.
    fn listed_rules(&mut self) -> Vec<String> {
        if let (Engine::Kernel, Some(kernel), 1..) =
            (&self.engine, &mut self.kernel, self.control.enabled)
        {
            // It may have removed some, or an administrator added others.
            if let Some(rules) = kernel.listed_rules() {
                return rules.iter().map(|rule| hex(rule)).collect();
            }
        }
        let rules = &self.control.rules;
        rules::List::EVERY
            .iter()
            .flat_map(|&list| rules.iter().filter(move |rule| rule.list == list))
            .map(|rule| hex(&rules::to_kernel(rule)))
            .collect()
    }

    /// The settings: the kernel's own while its socket is ours.
    fn settings(&mut self) -> Status {
        let kept = self.control.kept;
        match &mut self.kernel {
            Some(kernel) => kernel.socket().status().unwrap_or(kept),
            None => kept,
        }
    }

    /// `failure`: what was asked for, or the kernel's own where the kernel acts on it.
    fn failure(&self, settings: &Status) -> u32 {
        match self.engine.is_kernel() {
            true => settings.failure,
            false => self.control.failure,
        }
    }

    /// Losses but for those that the kernel counts itself.
    fn lost_elsewhere(&self) -> u64 {
        let lost = self.status().lost;
        let elsewhere = lost.iter().filter(|(cause, _)| *cause != KERNEL_BACKLOG);
        elsewhere.map(|(_, count)| count).sum()
    }

    fn audit_state(&mut self) -> AuditState {
        let lost = self.lost_elsewhere();
        let settings = self.settings();
        let lost = lost.saturating_sub(self.control.lost_before);
        let lost = lost.saturating_add(settings.lost.into());
        let features = match &mut self.kernel {
            Some(kernel) => kernel.socket().features(),
            None => AuditSocket::open().and_then(|mut socket| socket.features()),
        };
        let features = features.unwrap_or_default();
        AuditState {
            enabled: self.control.enabled,
            failure: self.failure(&settings),
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

    fn apply(&mut self, steps: &[Step], tolerate_from: usize, who: Who) -> Answer {
        let mut draft = Draft::new(&self.control.rules, self.control.enabled);
        let mut answer = Answer::default();
        for (place, step) in steps.iter().enumerate() {
            if let Err((errno, reason)) = draft.take(place, step) {
                answer.refused.push(Refused {
                    step: place,
                    errno,
                    reason,
                });
                if place < tolerate_from {
                    self.log_rule_changes(&draft, who, false);
                    return answer;
                }
            }
        }
        let before = self.settings();
        let mut done = Vec::new();
        for (place, step) in steps.iter().enumerate() {
            let is_refused = answer.refused.iter().any(|refused| refused.step == place);
            if is_refused {
                continue;
            }
            match self.set(step, &mut done, who) {
                Ok(value) => answer.value = value.or(answer.value),
                Err((errno, reason)) => {
                    answer.refused.push(Refused {
                        step: place,
                        errno,
                        reason,
                    });
                    if place < tolerate_from {
                        self.set_back(&done, before);
                        return answer;
                    }
                }
            }
        }
        match self.install_draft(&draft, who) {
            Ok(()) => answer.audit = Some(self.audit_state()),
            Err(error) => {
                self.set_back(&done, before);
                match refused_step(&error, &draft) {
                    Some(refused) if refused.step < tolerate_from => answer.refused.push(refused),
                    _ => answer.error = Some(format!("{error:#}: what was in force stays")),
                }
            }
        }
        answer
    }

    /// Puts the rules and the switch of a draft in force, with records that say who did it.
    fn install_draft(&mut self, draft: &Draft, who: Who) -> Result<()> {
        let old = self.control.enabled;
        let enabled = draft.enabled();
        let is_switched = (old == 0) != (enabled == 0);
        if draft.changes_rules() || is_switched {
            self.check_plan(&draft.set.rules, enabled)?;
            if old != 0 && enabled == 0 {
                // Last words while records are still taken.
                self.log_rule_changes(draft, who, true);
                self.log_setting("audit_enabled", enabled, old, who);
            }
            self.install(draft.rules(), enabled)?;
        }
        self.control.enabled = enabled;
        if is_switched && enabled == 0 {
            return Ok(());
        }
        self.log_rule_changes(draft, who, true);
        if old != enabled {
            self.log_setting("audit_enabled", enabled, old, who);
        }
        Ok(())
    }

    /// While audit is off nothing is armed, and rules must be right all the same.
    fn check_plan(&self, rules: &[Rule], enabled: u32) -> Result<()> {
        if enabled == 0 {
            let is_kernel = self.engine.is_kernel();
            sources::generation(
                rules.to_vec(),
                &self.capabilities,
                is_kernel,
                0,
                &self.config,
            )?;
        }
        Ok(())
    }

    /// Swaps the rules in, or none of them if `enabled` is 0, and switches the kernel's records
    /// along.
    fn install(&mut self, rules: Vec<Rule>, enabled: u32) -> Result<()> {
        let number = self.generation.plan.generation + 1;
        let armed = match enabled {
            0 => Vec::new(),
            _ => rules.clone(),
        };
        let generation = sources::generation(
            armed,
            &self.capabilities,
            self.engine.is_kernel(),
            number,
            &self.config,
        )?;
        self.put_in_force(generation)?;
        if let Some(kernel) = &mut self.kernel {
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
        self.control.rules = rules;
        self.control.enabled = enabled;
        Ok(())
    }

    /// Carries out what is not about rules; what a counter was before its reset.
    fn set(
        &mut self,
        step: &Step,
        done: &mut Vec<Setting>,
        who: Who,
    ) -> Result<Option<u32>, (Option<i32>, String)> {
        if let Some((setting, value)) = Setting::of(step) {
            self.change_setting(setting, value, who)?;
            done.push(setting);
            return Ok(None);
        }
        match step {
            Step::Trim if self.engine.is_kernel() => match &mut self.kernel {
                Some(kernel) => kernel.socket().trim().map(|()| None).map_err(refusal),
                None => Ok(None),
            },
            Step::ResetLost => {
                let lost = self.audit_state().lost;
                if let Some(kernel) = &mut self.kernel {
                    kernel.expect_change("op=set lost=0 old=".to_owned());
                    kernel.socket().reset_lost().map_err(refusal)?;
                }
                self.control.lost_before = self.lost_elsewhere();
                self.log_setting("lost", 0, lost, who);
                Ok(Some(lost))
            }
            Step::ResetBacklogWaitTimeActual => {
                let mut waited = 0;
                if let Some(kernel) = &mut self.kernel {
                    kernel.expect_change("op=set backlog_wait_time_actual=0 old=".to_owned());
                    let socket = kernel.socket();
                    waited = socket.reset_backlog_wait_time_actual().map_err(refusal)?;
                }
                self.log_setting("backlog_wait_time_actual", 0, waited, who);
                Ok(Some(waited))
            }
            Step::LoginuidImmutable => match &mut self.kernel {
                Some(kernel) => kernel
                    .socket()
                    .set_loginuid_immutable()
                    .map(|()| None)
                    .map_err(refusal),
                None => Err(errno::not_supported(
                    "the kernel's audit socket is not ours",
                )),
            },
            Step::Message(text) => {
                let body = control_records::user_message(who, text);
                self.log_event(control_records::USER, &body, who);
                Ok(None)
            }
            _ => Ok(None),
        }
    }

    fn change_setting(
        &mut self,
        setting: Setting,
        value: u32,
        who: Who,
    ) -> Result<(), (Option<i32>, String)> {
        let mut before = self.settings();
        before.failure = self.failure(&before);
        let old = *setting.member(&mut before);
        self.send_setting(setting, value)?;
        self.log_setting(setting.name(), value, old, who);
        Ok(())
    }

    fn send_setting(&mut self, setting: Setting, value: u32) -> Result<(), (Option<i32>, String)> {
        if let Some(kernel) = &mut self.kernel {
            if kernel
                .socket()
                .status()
                .is_ok_and(|status| status.enabled != 0)
            {
                kernel.expect_change(format!("op=set {}=", setting.name()));
            }
            let is_engine = self.engine.is_kernel();
            let sent = setting.send(kernel.socket(), value, is_engine);
            sent.map_err(refusal)?;
        }
        *setting.member(&mut self.control.kept) = value;
        if let Setting::Failure = setting {
            self.control.failure = value;
        }
        Ok(())
    }

    /// Undoes settings of a request that failed later.
    fn set_back(&mut self, done: &[Setting], mut before: Status) {
        for setting in done {
            if let Err((_, reason)) = self.send_setting(*setting, *setting.member(&mut before)) {
                say!("tarsier: {} cannot be set back: {reason}", setting.name());
            }
        }
    }

    /// SIGHUP: the rules of the files, instead of what was changed since.
    pub(in crate::run) fn reload_rules(&mut self, who: Who) -> Result<()> {
        if self.control.enabled == 2 {
            bail!("the rules are locked until tarsier is started again (-e 2)");
        }
        let set = self.sources.rules(self.engine.is_kernel())?;
        let enabled = self.control.enabled;
        self.check_plan(&set.rules, enabled)?;
        let draft = Draft::between(&self.control.rules, set.rules);
        self.install(draft.set.rules.clone(), enabled)?;
        if let (Engine::Kernel, Some(kernel)) = (&self.engine, &mut self.kernel) {
            kernel.apply_settings(&set.settings)?;
        }
        self.log_rule_changes(&draft, who, true);
        Ok(())
    }

    /// One event for each rule that came or went. If the whole `is_done`, those that were refused
    /// are among them; else only they are.
    fn log_rule_changes(&mut self, draft: &Draft, who: Who, is_done: bool) {
        for change in &draft.changes {
            if is_done || !change.is_success {
                let body = control_records::rule_change(who, change);
                self.log_event(control_records::CONFIG_CHANGE, &body, who);
            }
        }
    }

    fn log_setting(&mut self, name: &str, new: u32, old: u32, who: Who) {
        let body = control_records::setting(who, name, new, old);
        self.log_event(control_records::CONFIG_CHANGE, &body, who);
    }

    /// Writes an event of one record, unless audit is off or a rule drops it.
    fn log_event(&mut self, kind: u16, body: &[u8], who: Who) {
        let sender = plan::Sender {
            tid: who.pid,
            uid: who.uid,
            gid: 0,
            auid: who.auid,
            exe: compose::executable_of(who.pid, &HOST),
        };
        if self.control.enabled == 0 || compose::drops_sent(&self.generation, kind, &sender) {
            return;
        }
        let stamp = self.stamp();
        let mut out = std::mem::take(&mut self.lines);
        let mut writer = self.recorder.encoder.begin(&mut out, stamp);
        writer.raw(kind, body);
        writer.end();
        self.log_other(&out, 1);
        out.clear();
        self.lines = out;
    }
}

/// The step whose rule is one too many, if a step of this request is.
fn refused_step(error: &anyhow::Error, draft: &Draft) -> Option<Refused> {
    let too_large = error.downcast_ref::<plan::tables::TooLarge>()?;
    let step = draft.step_of(too_large.rule()? as usize)?;
    Some(Refused {
        step,
        errno: None,
        reason: too_large.to_string(),
    })
}

fn refusal(error: NetlinkError) -> (Option<i32>, String) {
    let errno = error.errno().map(|errno| errno.raw_os_error());
    (errno, error.to_string())
}
