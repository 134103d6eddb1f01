//! The end of a daemon.

use super::Daemon;
use crate::run::daemon_records::Who;
use crate::run::survival;
use crate::stderr::say;
use anyhow::Result;
use event::RecordType;
use std::collections::BTreeMap;

impl Daemon {
    /// Disarms unless `keeps`, reads what is left, says what was lost, restores the kernel's audit state.
    pub(in crate::run) fn stop(mut self, sender: Option<Who>, keeps: bool) -> Result<()> {
        if !keeps {
            self.engine.disarm();
        }
        // Hooks that were under way on other CPUs finish within this pass or the next.
        for _ in 0..2 {
            std::thread::yield_now();
            self.drain();
        }
        self.operations_without_result(true);
        self.count_kernel_losses();
        if keeps {
            self.say_losses();
        }
        let status = self.status();
        let who = sender.unwrap_or_else(Who::this_process);
        self.say_all_losses(who);
        self.say_done(RecordType::DAEMON_END, "terminate", who, true);
        let mut restored = Ok(());
        if let Some(kernel) = self.kernel.take() {
            let mut out = std::mem::take(&mut self.lines);
            restored = kernel
                .stop(&mut self.recorder.encoder, &mut out)
                .map(|events| {
                    if !out.is_empty() {
                        self.log_other(&out, events);
                    }
                });
        }
        self.commit();
        if let (true, Some(pins)) = (keeps, self.engine.pins()) {
            pins.leave(true);
        } else {
            survival::note(self.instance.run_dir(), None)?;
        }
        self.stop_plugins();
        if let Some(live) = &mut self.live {
            live.end();
        }
        self.summarise(status.lost);
        restored
    }

    /// Where the log is, for people.
    pub(in crate::run) fn log_text(&self) -> String {
        match self.config.write_logs {
            true => format!("log {}", self.journal.path().display()),
            false => "no log (write_logs = no)".to_owned(),
        }
    }

    /// Closes the log and says what is in it. Records of Tarsier itself and of others that did not
    /// fit on the disk are among the lost.
    fn summarise(mut self, mut lost: BTreeMap<String, u64>) {
        let log = self.log_text();
        let (counters, actions) = self.journal.close();
        for action in actions {
            self.administrator.tell(&action);
        }
        let lost_by_log = counters.lost.total() - self.totals.others_lost;
        lost.insert("log".to_owned(), lost_by_log);
        say!(
            "tarsier: {} events recorded, {} candidates dropped, {} lost; {log}",
            self.totals.recorded.saturating_sub(lost_by_log),
            self.totals.dropped,
            lost.values().sum::<u64>(),
        );
        for (cause, count) in lost.iter().filter(|(_, count)| **count > 0) {
            say!("tarsier: lost {count}: {cause}");
        }
    }
}
