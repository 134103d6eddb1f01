//! What was wrong with the log when it was opened, said in the log.

use super::daemon::Daemon;
use super::daemon_records::{Action, Who};
use crate::stderr::say;
use event::RecordType;
use journal::{OpenReport, Repair, TornLine};

impl Daemon {
    /// DAEMON_ERR records: `op=log-repaired` for an end that a crash left torn, with the bytes that
    /// were taken out, and `op=unclean-end` if the daemon before did not end in order.
    pub(super) fn say_recovered(&mut self, report: &OpenReport) {
        let torn = [("rotated", &report.torn_rotated), ("current", &report.torn)];
        for (which, torn) in torn {
            if let Some(torn) = torn {
                self.say_repaired(which, torn);
            }
        }
        if report.ended_in_order == Some(false) {
            self.say_error("unclean-end", &[], false);
        }
    }

    fn say_repaired(&mut self, which: &str, torn: &TornLine) {
        let repair = match torn.repair {
            Repair::Cut => "cut",
            Repair::Completed => "completed",
            Repair::Mended => "mended",
        };
        let removed = torn.removed_bytes.to_string();
        say!("tarsier: the torn end of the {which} log was {repair}: {removed} bytes removed");
        let extra = [
            ("file", which),
            ("repair", repair),
            ("removed-bytes", &removed),
        ];
        self.say_error("log-repaired", &extra, true);
    }

    fn say_error(&mut self, op: &str, extra: &[(&str, &str)], is_success: bool) {
        self.say(&Action {
            kind: RecordType::DAEMON_ERR,
            op,
            who: Who::this_process(),
            extra,
            is_success,
        });
    }
}
