//! The daemon's state in Prometheus' text format.

use crate::protocol::{MakerCost, MakerKind, Status};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Counters without labels: name, help and value.
fn counters(s: &Status) -> [(&'static str, &'static str, f64); 13] {
    [
        (
            "calls_matched_total",
            "Calls matched against the rules.",
            s.calls_matched as f64,
        ),
        (
            "events_selected_total",
            "Events that reached a ring.",
            s.events_selected as f64,
        ),
        (
            "events_recorded_total",
            "Events of the engine in the log.",
            s.events_recorded as f64,
        ),
        (
            "events_cut_total",
            "Recorded events of which something did not fit.",
            s.events_cut as f64,
        ),
        (
            "events_unsure_total",
            "Recorded events that their rule may not select.",
            s.events_unsure as f64,
        ),
        (
            "labels_missing_total",
            "SELinux labels that records lack.",
            s.labels_missing as f64,
        ),
        (
            "events_dropped_total",
            "Candidates that no rule selects.",
            s.events_dropped as f64,
        ),
        (
            "calls_slowed_total",
            "Calls that waited for space in a ring.",
            s.calls_slowed as f64,
        ),
        (
            "calls_slowed_seconds_total",
            "Total time that calls waited for space in a ring.",
            s.waited_ns as f64 / 1e9,
        ),
        (
            "log_events_total",
            "Events written to the log.",
            s.log_events as f64,
        ),
        (
            "log_bytes_total",
            "Bytes written to the log.",
            s.log_bytes as f64,
        ),
        ("log_syncs_total", "Syncs of the log.", s.log_syncs as f64),
        (
            "integrity_breaches_total",
            "Changes of the capture by other processes.",
            s.integrity_breaches as f64,
        ),
    ]
}

/// The state in Prometheus' text format, with the costs of the makers of events by kind.
pub(crate) fn text(s: &Status, makers: &[(MakerKind, Vec<MakerCost>)]) -> String {
    let mut out = String::new();
    let mut single = |name: &str, kind: &str, help: &str, value: f64| {
        let _ = writeln!(
            out,
            "# HELP tarsier_{name} {help}\n# TYPE tarsier_{name} {kind}\ntarsier_{name} {value}"
        );
    };

    for (name, help, value) in counters(s) {
        single(name, "counter", help, value);
    }

    let fill = f64::from(s.ring_fill_per_mille) / 1000.0;
    single("ring_fill_ratio", "gauge", "The fullest ring.", fill);
    let (help, value) = ("1 if logging is suspended.", u8::from(s.log_suspended));
    single("log_suspended", "gauge", help, value.into());

    let help = "Lines and files of rules that are not in force.";
    let value = s.rules_in_force.left_out_count as f64;
    single("rules_left_out", "gauge", help, value);

    let pause = s.reader_pause_us as f64 / 1e6;
    let help = "The longest time in which the daemon neither read the rings nor waited for events.";
    single("reader_pause_seconds_max", "gauge", help, pause);

    write_lookups(&mut out, s);
    write_processes(&mut out, s);
    write_losses(&mut out, s);
    for (by, costs) in makers {
        write_makers(&mut out, by.name(), costs);
    }
    out
}

/// Writes the costs of the makers of events. Names that are not valid UTF-8 may look the same; these share a sample.
fn write_makers(out: &mut String, by: &str, costs: &[MakerCost]) {
    let mut makers: BTreeMap<&str, MakerCost> = BTreeMap::new();

    // Names that differ only in bytes that are escaped become one: a sample may not stand twice.
    for cost in costs {
        let sum = makers.entry(&cost.name).or_default();
        sum.events += cost.events;
        sum.bytes += cost.bytes;
        sum.spent_ns += cost.spent_ns;
    }

    type Value = fn(&MakerCost) -> f64;
    let sums: [(&str, &str, Value); 3] = [
        ("log_events", "Events", |cost| cost.events as f64),
        ("log_bytes", "Bytes of log lines", |cost| cost.bytes as f64),
        ("spent_seconds", "Time of the daemon for events", |cost| {
            cost.spent_ns as f64 / 1e9
        }),
    ];

    for (name, what, value) in sums {
        let name = format!("tarsier_{name}_by_{by}_total");
        let _ = writeln!(
            out,
            "# HELP {name} {what}, by {by}: the largest only.\n# TYPE {name} counter"
        );
        for (maker, cost) in &makers {
            let (maker, value) = (escaped(maker), value(cost));
            let _ = writeln!(out, "{name}{{{by}=\"{maker}\"}} {value}");
        }
    }
}

/// Writes the numbers of failed look-ups and of failed helpers.
fn write_lookups(out: &mut String, s: &Status) {
    for (name, kind, help, count) in [
        (
            "objects_unanswered_total",
            "counter",
            "Objects that could not be looked up in time.",
            s.objects_unanswered,
        ),
        (
            "events_out_of_time_total",
            "counter",
            "Events whose look-ups would have taken longer than their budget.",
            s.events_out_of_time,
        ),
        (
            "names_unanswered_total",
            "counter",
            "Names of users and groups that could not be looked up in time.",
            s.names_unanswered,
        ),
        (
            "helpers_replaced_total",
            "counter",
            "Helpers for look-ups that failed and were replaced.",
            s.helpers_replaced,
        ),
        (
            "helpers_stuck",
            "gauge",
            "Killed helpers that hang at a file system.",
            s.helpers_stuck,
        ),
        (
            "cgroups_known",
            "gauge",
            "Cgroups that are known, lately removed ones included.",
            s.cgroups_known,
        ),
        (
            "events_without_cgroup_total",
            "counter",
            "Events whose cgroup is not known.",
            s.cgroups_unknown,
        ),
        (
            "cgroup_frames_lost_total",
            "counter",
            "Words of new and removed cgroups that were lost.",
            s.cgroups_lost,
        ),
        (
            "containers_unnamed_total",
            "counter",
            "Containers of which no file of a runtime tells a name.",
            s.containers_unnamed,
        ),
        (
            "audited_processes",
            "gauge",
            "Processes whose calls the kernel audits too, as they were started before Tarsier.",
            s.audited_processes.unwrap_or(0),
        ),
    ] {
        write_one(out, name, kind, help, count);
    }
}

/// Writes metrics of the processes that are known as ancestors of others.
fn write_processes(out: &mut String, s: &Status) {
    for (name, kind, help, count) in [
        (
            "processes_known",
            "gauge",
            "Processes that are known, lately ended ones included.",
            s.processes_known,
        ),
        (
            "processes_bytes",
            "gauge",
            "Bytes that the known processes take, about.",
            s.processes_bytes,
        ),
        (
            "events_with_partial_ancestors_total",
            "counter",
            "Events that lack ancestors of their process.",
            s.ancestors_partial,
        ),
        (
            "process_frames_lost_total",
            "counter",
            "Words of new, changed and ended processes that were lost.",
            s.processes_lost,
        ),
    ] {
        write_one(out, name, kind, help, count);
    }
}

fn write_one(out: &mut String, name: &str, kind: &str, help: &str, count: u64) {
    let _ = writeln!(
        out,
        "# HELP tarsier_{name} {help}\n# TYPE tarsier_{name} {kind}\ntarsier_{name} {count}"
    );
}

/// Losses by cause, processor and rule, and events over a budget.
fn write_losses(out: &mut String, s: &Status) {
    let by_cpu = s.lost_by_cpu.iter().enumerate();
    let by_cpu: Vec<(String, u64)> = by_cpu.map(|(cpu, n)| (cpu.to_string(), *n)).collect();
    let own = |map: &BTreeMap<String, u64>| {
        map.iter()
            .map(|(name, n)| (name.clone(), *n))
            .collect::<Vec<_>>()
    };
    let suppressed = own(&s.suppressed_by_rule);

    for (name, what, label, counts) in [
        ("events_lost_total", "lost", "cause", own(&s.lost)),
        ("events_lost_by_cpu_total", "lost", "cpu", by_cpu),
        (
            "events_lost_by_rule_total",
            "lost",
            "rule",
            own(&s.lost_by_rule),
        ),
        (
            "events_suppressed_total",
            "over the budget of their rule",
            "rule",
            suppressed,
        ),
    ] {
        let _ = writeln!(
            out,
            "# HELP tarsier_{name} Events {what}, by {label}.\n# TYPE tarsier_{name} counter"
        );
        for (value, count) in counts {
            let _ = writeln!(
                out,
                "tarsier_{name}{{{label}=\"{}\"}} {count}",
                escaped(&value)
            );
        }
    }
}

/// A label's value: backslash, quote and newline are escaped.
fn escaped(value: &str) -> String {
    value
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_count_has_its_labels() {
        let status = Status {
            events_recorded: 42,
            helpers_stuck: 1,
            lost: [("ring_full".to_owned(), 3)].into(),
            lost_by_rule: [("1 a\"b\\".to_owned(), 3)].into(),
            lost_by_uid: [("1000".to_owned(), 3)].into(),
            ..Status::default()
        };
        let text = text(&status, &[]);
        for line in [
            "\ntarsier_events_recorded_total 42\n",
            "\n# TYPE tarsier_helpers_stuck gauge\ntarsier_helpers_stuck 1\n",
            "\ntarsier_events_lost_total{cause=\"ring_full\"} 3\n",
            "\ntarsier_events_lost_by_rule_total{rule=\"1 a\\\"b\\\\\"} 3\n",
        ] {
            assert!(text.contains(line), "{text}");
        }
    }

    #[test]
    fn a_name_cannot_add_a_line_a_label_or_a_second_sample() {
        let cost = |name: &str, bytes| MakerCost {
            name: name.to_owned(),
            events: 1,
            bytes,
            spent_ns: 1_500_000_000,
            ..MakerCost::default()
        };
        let hostile = "a\"} 9\ntarsier_x{y=\"\\";
        let costs = [cost(hostile, 7), cost("\u{fffd}", 1), cost("\u{fffd}", 2)];
        let mut out = String::new();
        write_makers(&mut out, "exe", &costs);
        let samples: Vec<&str> = out.lines().filter(|line| !line.starts_with('#')).collect();
        let escaped = r#"a\"} 9\ntarsier_x{y=\"\\"#;
        assert_eq!(
            samples,
            [
                format!("tarsier_log_events_by_exe_total{{exe=\"{escaped}\"}} 1"),
                "tarsier_log_events_by_exe_total{exe=\"\u{fffd}\"} 2".to_owned(),
                format!("tarsier_log_bytes_by_exe_total{{exe=\"{escaped}\"}} 7"),
                "tarsier_log_bytes_by_exe_total{exe=\"\u{fffd}\"} 3".to_owned(),
                format!("tarsier_spent_seconds_by_exe_total{{exe=\"{escaped}\"}} 1.5"),
                "tarsier_spent_seconds_by_exe_total{exe=\"\u{fffd}\"} 3".to_owned(),
            ]
        );
    }
}
