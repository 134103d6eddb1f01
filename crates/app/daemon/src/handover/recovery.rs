//! Logs what happened before this daemon started: the time without a daemon, and damage to the log.

use crate::account::daemon_records::{LoggedAction, Who};
use crate::handover::takeover::Downtime;
use crate::pipeline::Pipeline;
use crate::stderr::say;
use journal::{OpenReport, Repair, TornLine};
use record::RecordType;

/// Logs DAEMON_RESUME: how long there was no daemon, and what was lost in that time.
pub(crate) fn log_downtime(downtime: &Downtime, pipeline: &mut Pipeline) {
    let lost: u64 = downtime.lost.iter().map(|(_, count)| count).sum();
    let causes = downtime
        .lost
        .iter()
        .map(|(cause, n)| format!("{cause}:{n}"));
    let causes = causes.collect::<Vec<_>>().join(",");

    let (ms, waiting) = (downtime.ms.to_string(), downtime.waiting_bytes.to_string());
    let lost_text = lost.to_string();

    let mut extra = vec![
        ("alone-ms", ms.as_str()),
        ("waiting-bytes", waiting.as_str()),
        ("lost", lost_text.as_str()),
    ];
    if lost > 0 {
        extra.push(("cause", causes.as_str()));
    }
    let suppressed = downtime.suppressed.to_string();
    if downtime.suppressed > 0 {
        extra.push(("suppressed", suppressed.as_str()));
    }
    say!(
        "tarsier: capture went on for {ms} ms without a daemon: {waiting} bytes waited, {lost} events lost"
    );
    pipeline.log_action(&LoggedAction {
        kind: RecordType::DAEMON_RESUME,
        op: "capture-resumed",
        who: Who::this_process(),
        extra: &extra,
        is_success: lost == 0,
    });
}

/// Logs DAEMON_ERR records: `op=log-repaired` for a torn end that a crash left, with the bytes that
/// were removed, and `op=unclean-end` if the previous daemon did not stop in order.
pub(crate) fn log_recovered(report: &OpenReport, pipeline: &mut Pipeline) {
    let torn = [("rotated", &report.torn_rotated), ("current", &report.torn)];
    for (which, torn) in torn {
        if let Some(torn) = torn {
            say_repaired(which, torn, pipeline);
        }
    }
    if report.ended_in_order == Some(false) {
        say_error("unclean-end", &[], false, pipeline);
    }
}

fn say_repaired(which: &str, torn: &TornLine, pipeline: &mut Pipeline) {
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
    say_error("log-repaired", &extra, true, pipeline);
}

fn say_error(op: &str, extra: &[(&str, &str)], is_success: bool, pipeline: &mut Pipeline) {
    pipeline.log_action(&LoggedAction {
        kind: RecordType::DAEMON_ERR,
        op,
        who: Who::this_process(),
        extra,
        is_success,
    });
}
