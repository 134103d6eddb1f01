//! Reports rules and settings of the files that are not in force: in the log, to syslog and on standard error.

use crate::account::daemon_records::{untrusted, words, LoggedAction, Who};
use crate::pipeline::Pipeline;
use crate::protocol::{LeftOut, RulesInForce};
use crate::stderr::say;
use journal::Severity;
use record::RecordType;

/// Reports what is not in force at the highest priority, if there is any, and one record for each line, up to 20.
pub(crate) fn report(rules: &RulesInForce, pipeline: &mut Pipeline) {
    let Some(summary) = rules.summary() else {
        return;
    };
    let remedy =
        "mend the files, then reload: `systemctl reload tarsier`, or `tarsier ctl --signal HUP`";
    let text = format!("{summary}; {remedy}");
    pipeline.output().notify(Severity::Alert, &text);

    let shown = &rules.left_out[..rules.left_out.len().min(RulesInForce::SHOWN_MAX)];
    for one in shown {
        say!("tarsier: not in force: {one}");
        record(one, rules, pipeline);
    }
    match rules.left_out_count - shown.len() {
        0 => {}
        more => say!("tarsier: {more} more are not in force: `tarsier status` lists them"),
    }
}

fn record(one: &LeftOut, rules: &RulesInForce, pipeline: &mut Pipeline) {
    let (file, line) = (untrusted(&one.file), one.line.to_string());
    let (count, why) = (
        rules.left_out_count.to_string(),
        untrusted(&words(&one.why)),
    );
    pipeline.log_action(&LoggedAction {
        kind: RecordType::DAEMON_ERR,
        op: if one.is_setting {
            "setting-not-in-force"
        } else {
            "rule-not-in-force"
        },
        who: Who::this_process(),
        extra: &[
            ("file", &file),
            ("line", &line),
            ("reason", &why),
            ("rules", rules.origin.name()),
            ("left_out", &count),
        ],
        is_success: false,
    });
}
