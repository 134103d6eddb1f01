//! Judges logs of `tests/vm/ancestors.c`, whose processes tell what they know of their own ancestors and labels.

use serde_json::Value;
use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

/// Beginning of the path by which a process tells what it knows.
const TOLD: &str = "/no/such/";
/// Ancestors that the log names.
const NAMED: usize = 8;

/// Line of auditd.conf that gives the workload's processes their labels, in the order of LABEL_MODES.
pub const LABEL_KEYS: &str = "label_keys = one:a,two:b,three:c\n";
/// Rules with these keys.
pub const LABEL_RULES: &str = "-a always,exit -F arch=b64 -S fchmodat -F a2=416 -k one\n\
                               -a always,exit -F arch=b64 -S fchmodat -F a2=388 -k two\n\
                               -a always,exit -F arch=b64 -S fchmodat -F a2=420 -k three\n";
/// Names of the labels, by bit.
const LABELS: [&str; 3] = ["a", "b", "c"];

/// A process as the kernel numbers it: its number, and the time when it was made.
type Numbers = (u64, u64);

/// The number that a process of the workload has, and its program.
type Own = (u64, u64);

/// Facts that a process tells: a bit for each label that it has, and itself and its ancestors.
struct Told {
    labels: u64,
    chain: Vec<Own>,
}

/// Counts from the check of a log.
#[derive(Debug, Default)]
pub struct Judged {
    /// Events, all of them right.
    pub events: u64,
    /// Processes that made them.
    pub processes: u64,
    /// Numbers that the kernel gave these processes.
    pub pids: u64,
    /// Ancestors that were compared.
    pub ancestors: u64,
    /// Ancestors among them whose command line is not known.
    pub untitled: u64,
    /// Events that lack ancestors, and say so.
    pub partial: u64,
    /// Labels of events.
    pub labels: u64,
    /// Events that lack labels of their process.
    pub unlabelled: u64,
}

impl fmt::Display for Judged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} events of {} processes with {} pids, {} ancestors and {} labels right, 0 wrong; {} events partial, \
             {} without some label",
            self.events,
            self.processes,
            self.pids,
            self.ancestors,
            self.labels,
            self.partial,
            self.unlabelled
        )
    }
}

/// Compares what the log in JSON says of the workload's processes with what they know; their programs are in `programs`.
///
/// # Errors
/// The log is wrong: the first event that is, and what it should say.
pub fn judge(log: &Path, programs: &Path) -> Result<Judged, String> {
    let mut numbers: HashMap<u64, Numbers> = HashMap::new();
    let mut judged = Judged::default();
    each(log, |told, event| {
        let process = &event["process"];
        let own = told.chain.first().ok_or("an empty path")?;
        let seen = numbers_of(process).ok_or("no process")?;
        let known = *numbers.entry(own.0).or_insert(seen);
        if known != seen {
            return Err(format!("process {} was {known:?} before", own.0));
        }
        judged.events += 1;
        Ok(())
    })?;

    // Numbers that two processes share would make the comparison below meaningless.
    let mut owners: HashMap<Numbers, u64> = HashMap::new();
    for (id, numbers) in &numbers {
        if let Some(other) = owners.insert(*numbers, *id) {
            return Err(format!("{other} and {id} are both {numbers:?}"));
        }
    }

    let pids: std::collections::HashSet<u64> = numbers.values().map(|(pid, _)| *pid).collect();
    (judged.processes, judged.pids) = (numbers.len() as u64, pids.len() as u64);
    let expected = |program: u64| programs.join(format!("p{program}")).display().to_string();
    each(log, |told, event| {
        let process = &event["process"];
        let lacks = lacks_labels(told.labels, event)?;
        judged.unlabelled += u64::from(lacks);
        judged.labels += event["labels"].as_array().map_or(0, Vec::len) as u64;
        let told = &told.chain;
        if process["exe"] != expected(told[0].1).as_str() {
            return Err(format!("it runs {}", process["exe"]));
        }
        let ancestors = process["ancestors"].as_array().ok_or("no ancestors")?;
        let is_partial = process["ancestors_partial"] == true;
        judged.partial += u64::from(is_partial);

        // The log names so many ancestors at most.
        let wanted = told.len().saturating_sub(1).min(NAMED);
        if ancestors.len() < wanted && !is_partial {
            return Err(format!("{} of {wanted} ancestors", ancestors.len()));
        }

        for (ancestor, (id, program)) in ancestors.iter().zip(&told[1..]) {
            let is_known = !ancestor["exe"].is_null();
            let is_it = numbers
                .get(id)
                .is_none_or(|known| Some(*known) == numbers_of(ancestor));
            let title = &ancestor["argv"][0];
            let is_title = title.is_null() || *title == format!("p{program}");
            let is_right = ancestor["exe"] == expected(*program).as_str() && is_title;
            if !is_it || (is_known && !is_right) || (!is_known && !is_partial) {
                return Err(format!("{ancestor} instead of {id} with p{program}"));
            }
            judged.ancestors += u64::from(is_known);
            judged.untitled += u64::from(title.is_null());
        }
        Ok(())
    })?;

    Ok(judged)
}

fn numbers_of(process: &Value) -> Option<Numbers> {
    Some((process["pid"].as_u64()?, process["start"].as_u64()?))
}

/// Calls a function with what each event's process told of itself, and with what the log says of it.
fn each(
    log: &Path,
    mut judge: impl FnMut(&Told, &Value) -> Result<(), String>,
) -> Result<(), String> {
    let failed = |error| format!("{}: {error}", log.display());
    let lines = BufReader::new(File::open(log).map_err(failed)?).lines();
    for line in lines {
        let line = line.map_err(failed)?;
        if !line.contains(TOLD) {
            continue;
        }
        let event: Value = serde_json::from_str(&line).map_err(|e| format!("{e}: {line}"))?;
        let records = event["records"].as_array().map_or(&[][..], Vec::as_slice);
        let names = records.iter().filter_map(|record| record["name"].as_str());
        let Some(told) = names.filter_map(|name| name.strip_prefix(TOLD)).next() else {
            continue;
        };
        let told = told_by(told).ok_or_else(|| format!("a path of another program: {line}"))?;
        judge(&told, &event).map_err(|wrong| format!("{wrong}: {line}"))?;
    }

    Ok(())
}

fn told_by(path: &str) -> Option<Told> {
    let (labels, chain) = path.split_once(':')?;
    Some(Told {
        labels: labels.parse().ok()?,
        chain: chain.split('/').map(own).collect::<Option<_>>()?,
    })
}

/// Whether the event lacks a label that its process has.
///
/// # Errors
/// The event has a label that the process does not have.
fn lacks_labels(known: u64, event: &Value) -> Result<bool, String> {
    let labels = event["labels"].as_array().map_or(&[][..], Vec::as_slice);
    let bit = |label: &Value| LABELS.iter().position(|name| label == name);
    let bits = labels.iter().map(|label| bit(label).map(|bit| 1 << bit));
    let told = bits.sum::<Option<u64>>().ok_or("an unknown label")?;
    match told & !known {
        0 => Ok(told != known),
        _ => Err(format!("labels {told:b} instead of {known:b}")),
    }
}

fn own(text: &str) -> Option<Own> {
    let (id, program) = text.split_once('.')?;
    Some((id.parse().ok()?, program.parse().ok()?))
}
