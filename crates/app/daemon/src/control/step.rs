//! Steps of requests that do not concern rules: settings, counters and messages.

use super::draft::{errno, Refusal};
use super::setting::Setting;
use super::{lost_elsewhere, records, Control};
use crate::account::failure::Failure;
use crate::control::asker::Asker;
use crate::event_loop::recording::Recording;
use crate::protocol::Step;
use crate::stderr::say;
use netlink::{NetlinkError, Status};

impl Control {
    /// Carries out a step that does not concern rules. Returns the value that a reset counter had.
    pub(super) fn set(
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
            Step::Trim if recording.pipeline.is_kernel_engine() => {
                match recording.pipeline.kernel_mut() {
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
                if let Some(kernel) = recording.pipeline.kernel_mut() {
                    kernel.expect_change("op=set backlog_wait_time_actual=0 old=".to_owned());
                    let socket = kernel.socket();
                    waited = socket.reset_backlog_wait_time_actual().map_err(refusal)?;
                }
                self.log_setting("backlog_wait_time_actual", 0, waited, by, recording);
                Ok(Some(waited))
            }
            Step::LoginuidImmutable => self.set_loginuid_immutable(recording).map(|()| None),
            Step::Message(text) => {
                let body = records::user_message(by, text);
                self.log_event(records::USER, &body, by, recording);
                Ok(None)
            }
            _ => Ok(None),
        }
    }

    pub(super) fn set_loginuid_immutable(
        &mut self,
        recording: &mut Recording,
    ) -> Result<(), Refusal> {
        match recording.pipeline.kernel_mut() {
            Some(kernel) => kernel.socket().set_loginuid_immutable().map_err(refusal),
            None => Err(errno::not_supported(
                "Tarsier does not own the kernel's audit socket",
            )),
        }
    }

    /// Sets the count of losses to 0 and returns the one before: the kernel's, if Tarsier owns its
    /// audit socket, and Tarsier's own.
    fn reset_lost(&mut self, recording: &mut Recording) -> Result<u32, NetlinkError> {
        let of_kernel = match recording.pipeline.kernel_mut() {
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
        let is_engine = recording.pipeline.is_kernel_engine();
        if let Some(kernel) = recording.pipeline.kernel_mut() {
            // While audit is off the kernel logs no change, and the announcement would stay.
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
            Setting::Rate => recording.pipeline.set_rate_limit(value),
            Setting::Backlog | Setting::BacklogWaitTime => (),
        }

        Ok(())
    }

    /// Restores settings after a later step of the request has failed.
    pub(super) fn set_back(
        &mut self,
        done: &[Setting],
        mut before: Status,
        recording: &mut Recording,
    ) {
        for setting in done {
            let value = *setting.member(&mut before);
            if let Err((_, reason)) = self.send_setting(*setting, value, recording) {
                say!("tarsier: {} cannot be restored: {reason}", setting.name());
            }
        }
    }
}

fn refusal(error: NetlinkError) -> Refusal {
    let errno = error.errno().map(|errno| errno.raw_os_error());
    (errno, error.to_string())
}
