//! Finds settings of rules files that make hosts wait, lose events or stop.
//!
//! All of them act on the kernel's own audit. Of Tarsier's eBPF engines, `-f` and `-r` act on these, too.

use super::{Finding, Lint};
use rules::RuleSet;

/// `-b` of the sample rules that audit ships.
const USUAL_BACKLOG: u32 = 8192;

/// Examines the settings that `set` makes. The findings have no rule, and are sorted by line.
pub fn lint_settings(set: &RuleSet) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut add = |lint, option: &str, value: u32, message: String, remedy: &str| {
        let cost = match lint {
            Lint::WaitsWhenFull => Some(longest_wait(value)),
            _ => None,
        };
        let source = set.setting_places.get(option).cloned().unwrap_or_default();
        found.push(Finding {
            lint,
            rule: None,
            file: source.file,
            line: source.line,
            message,
            remedy: remedy.to_owned(),
            cost,
            text: format!("{option} {value}"),
        });
    };
    let settings = &set.settings;
    if let Some(value) = settings.backlog {
        if let Some((lint, message, remedy)) = backlog(value) {
            add(lint, "-b", value, message, remedy);
        }
    }
    if let Some(value) = settings.backlog_wait_time {
        let (lint, message, remedy) = wait_time(value);
        add(lint, "--backlog_wait_time", value, message, remedy);
    }
    if let Some(value) = settings.rate.filter(|&rate| rate > 0) {
        let message = format!(
            "an event is lost once its second has {value} records, whoever made them: a flood \
             hides what happens beside it"
        );
        let remedy =
            "-r 0; under Tarsier, rate_budgets = KEY:N bounds one rule and counts the rest";
        add(Lint::RateLoses, "-r", value, message, remedy);
    }
    if let Some((value, message, remedy)) = settings.failure.and_then(|value| failure(value, set)) {
        let lint = match value {
            2 => Lint::PanicsOnLoss,
            _ => Lint::LosesSilently,
        };
        add(lint, "-f", value, message, remedy);
    }
    found.sort_by(|a, b| (&a.file, a.line, a.lint).cmp(&(&b.file, b.line, b.lint)));
    found
}

/// `-b` with too little room, or without an end.
fn backlog(value: u32) -> Option<(Lint, String, &'static str)> {
    let remedy = "-b 8192, or more on hosts with many events";
    match value {
        0 => {
            let message = "the kernel's queue has no limit: while auditd does not keep up, it takes the memory of \
                           the host";
            Some((Lint::Backlog, message.to_owned(), remedy))
        }
        1..USUAL_BACKLOG => {
            let message = format!(
                "the kernel's queue holds {value} records, which one burst fills: calls then wait, or events are lost"
            );
            Some((Lint::Backlog, message, remedy))
        }
        _ => None,
    }
}

/// `--backlog_wait_time`: either calls wait, or events are lost.
fn wait_time(value: u32) -> (Lint, String, &'static str) {
    match value {
        0 => {
            let message =
                "under kernel audit no call waits for auditd: what finds the queue full is lost \
                           (docs/benchmarks.md: 87 to 99.6 % of a flood)";
            let remedy =
                "count what is lost (auditctl -s), or use Tarsier, where the setting has no effect";
            (Lint::LosesWhenFull, message.to_owned(), remedy)
        }
        ticks => {
            let message = format!(
                "under kernel audit, while the queue is full, each audited call of each process waits up to {ticks} \
                 ticks for auditd: a flood by one user holds up logins and services"
            );
            let remedy =
                "bound what rules select; under Tarsier, calls wait at most 20 ms and the setting has no effect";
            (Lint::WaitsWhenFull, message, remedy)
        }
    }
}

/// How long a call waits at most, in words: a tick lasts 1 ms to 10 ms, by the kernel's CONFIG_HZ.
fn longest_wait(ticks: u32) -> String {
    let seconds = |hz: u32| f64::from(ticks) / f64::from(hz);
    format!(
        "a call waits up to {:.1} s where the kernel has 1000 ticks per second, {:.1} s with 250, {:.1} s with 100",
        seconds(1000),
        seconds(250),
        seconds(100)
    )
}

/// `-f` that stops the machine for what other settings lose, or keeps losses secret.
fn failure(value: u32, set: &RuleSet) -> Option<(u32, String, &'static str)> {
    let (rate, wait) = (set.settings.rate, set.settings.backlog_wait_time);
    match value {
        0 => {
            let message = "the kernel says nothing when it loses events".to_owned();
            Some((value, message, "-f 1"))
        }
        2 if rate.is_some_and(|rate| rate > 0) => {
            let message = "the machine panics when -r loses an event, so that anybody who is audited can stop it";
            Some((value, message.to_owned(), "-r 0, or -f 1"))
        }
        2 if wait == Some(0) => {
            let message = "the machine panics when an event finds the queue full, and --backlog_wait_time 0 lets that \
                           happen at once: anybody who is audited can stop it";
            Some((
                value,
                message.to_owned(),
                "delete --backlog_wait_time 0, or -f 1",
            ))
        }
        2 => {
            let message = "the machine panics on the first event that is lost: a flood that auditd cannot write stops it";
            Some((
                value,
                message.to_owned(),
                "-f 1, unless losing the machine is better than losing an event",
            ))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rules::StaticHost;

    fn findings(text: &str) -> Vec<Finding> {
        let host = StaticHost::new(abi::Arch::X86_64);
        let (commands, errors) = rules::parse_file("a.rules", text.as_bytes(), &host);
        assert!(errors.is_empty(), "{errors:?}");
        lint_settings(&RuleSet::apply(commands).unwrap())
    }

    fn found(text: &str) -> Vec<(u32, &'static str, String)> {
        let findings = findings(text).into_iter();
        findings.map(|f| (f.line, f.lint.name(), f.text)).collect()
    }

    #[test]
    fn settings_without_a_trap_are_not_reported() {
        assert_eq!(found("-D\n-b 8192\n-f 1\n-r 0\n-e 1\n"), []);
    }

    #[test]
    fn each_setting_is_reported_where_it_was_made_last() {
        let text = "-b 64\n-b 320\n--backlog_wait_time 60000\n-f 0\n-r 100\n";
        let expected = [
            (2, "backlog", "-b 320".to_owned()),
            (3, "waits-when-full", "--backlog_wait_time 60000".to_owned()),
            (4, "loses-silently", "-f 0".to_owned()),
            (5, "rate-loses", "-r 100".to_owned()),
        ];
        assert_eq!(found(text), expected);
        assert_eq!(found("-b 0\n"), [(1, "backlog", "-b 0".to_owned())]);
    }

    #[test]
    fn a_wait_is_told_in_seconds() {
        let cost = findings("--backlog_wait_time 60000\n").remove(0).cost;
        let cost = cost.expect("a cost");
        assert!(
            cost.contains("60.0 s where the kernel has 1000 ticks"),
            "{cost}"
        );
        assert!(cost.ends_with("600.0 s with 100"), "{cost}");
    }

    #[test]
    fn what_would_make_the_machine_panic_is_named() {
        let message = |text: &str| {
            let mut findings = findings(text);
            findings.retain(|f| f.lint == Lint::PanicsOnLoss);
            assert_eq!(findings.len(), 1, "{text}");
            findings.remove(0).message
        };
        assert!(message("-f 2\n-r 5\n").contains("-r loses"));
        assert!(message("-f 2\n--backlog_wait_time 0\n").contains("at once"));
        assert!(message("-f 2\n").contains("first event that is lost"));
    }
}
