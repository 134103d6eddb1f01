//! Denials as text.

use cli::messages::report;
use seccomp::policy::{Abi, Policy, Reason, Ruling};
use seccomp::{Action, SeccompData};
use std::collections::HashMap;

/// Reports each denial once, and at the end how often it was repeated.
pub(super) struct Reporter<'a> {
    policy: &'a Policy,
    profile: &'a str,
    /// Repetitions of each reported denial, in the order of the reports.
    again: Vec<(String, u64)>,
    told: HashMap<(u32, u32, [u64; 6]), usize>,
    untold: u64,
    missed: u64,
    counted: u64,
    /// The profile, where lines are to be told.
    text: &'a str,
}

/// Largest number of different denials that are reported one by one.
const TOLD_MAX: usize = 1000;

impl<'a> Reporter<'a> {
    pub(super) fn new(policy: &'a Policy, profile: &'a str) -> Reporter<'a> {
        Reporter {
            policy,
            profile,
            again: Vec::new(),
            told: HashMap::new(),
            untold: 0,
            missed: 0,
            counted: 0,
            text: "",
        }
    }

    /// Adds the text of the profile, so that places have lines.
    pub(super) fn with_text(mut self, text: &'a str) -> Reporter<'a> {
        self.text = text;
        self
    }

    /// `name[tid]`.
    pub(super) fn thread(&self, tid: u32) -> String {
        let name = std::fs::read_to_string(format!("/proc/{tid}/comm")).unwrap_or_default();
        let name: String = name
            .trim_end()
            .chars()
            .filter(|c| !c.is_control())
            .collect();
        format!("{name}[{tid}]")
    }

    /// Reports calls that the kernel, or this program, has denied or logged: the first time in full.
    pub(super) fn seen(&mut self, who: &str, data: &SeccompData, times: u64) {
        let Some(ruling) = self.policy.decide(data) else {
            return;
        };

        let verb = match ruling.verdict.action() {
            // Recorded because a rule may log the call, and with other arguments.
            Action::Allow if self.records_when_allowed(data) => return,
            Action::Log => "logged",
            _ => "denied",
        };
        self.counted += times;
        let key = (data.arch, data.nr, self.telling(data, &ruling));
        if let Some(&index) = self.told.get(&key) {
            self.again[index].1 += times;
            return;
        }

        if self.told.len() == TOLD_MAX {
            self.untold += times;
            return;
        }

        let call = call_text(data);

        match ruling.verdict.action() {
            Action::Allow => {
                report!("tarsier: {who}: {call} denied by a filter that was there before");
            }
            _ => {
                report!("tarsier: {who}: {call} {verb}: {}", ruling.verdict);
                report!("    rule: {}", self.rule(data, &ruling));
                report!("    remedy: {}", self.remedy(data, &ruling));
            }
        }

        self.told.insert(key, self.again.len());

        self.again.push((format!("{call}: {verb}"), times - 1));
    }

    fn records_when_allowed(&self, data: &SeccompData) -> bool {
        let logs = |rule: &seccomp::policy::Rule| rule.verdict.action() == Action::Log;
        let layers = 0..self.policy.layers.len();
        layers.into_iter().any(|layer| {
            let default = self.policy.layers[layer].default.action();
            default == Action::Log || self.rules(data, layer).iter().any(logs)
        })
    }

    /// Takes the number of denials that nobody has seen.
    pub(super) fn missed(&mut self, missed: u64) {
        self.missed = missed;
    }

    /// Arguments that tell denials apart: those that conditions look at. Addresses do not count.
    fn telling(&self, data: &SeccompData, ruling: &Ruling) -> [u64; 6] {
        let mut telling = [0; 6];
        for rule in self.rules(data, ruling.layer) {
            for condition in &rule.conditions {
                let arg = usize::from(condition.arg);
                if let (Some(to), Some(&from)) = (telling.get_mut(arg), data.args.get(arg)) {
                    *to = from;
                }
            }
        }
        telling
    }

    fn rules(&self, data: &SeccompData, layer: usize) -> &'a [seccomp::policy::Rule] {
        let abi = Abi::of(data.arch, data.nr);
        let layer = self.policy.layers.get(layer);
        let rules = abi.and_then(|abi| layer?.abis.get(&abi)?.calls.get(&data.nr));
        rules.map_or(&[], Vec::as_slice)
    }

    /// The place of a rule in the profile, with its line where that is known.
    fn source(&self, id: seccomp::policy::RuleId) -> String {
        let place = self.policy.sources.get(id.0 as usize);
        self.with_line(place.map_or("?", String::as_str))
    }

    fn with_line(&self, place: &str) -> String {
        match seccomp::profile::line_of(self.text, place) {
            Some(line) => format!("{place} (line {line})"),
            None => place.to_owned(),
        }
    }

    pub(super) fn rule(&self, data: &SeccompData, ruling: &Ruling) -> String {
        let profile = self.profile;
        let layer = self.policy.layers.get(ruling.layer);
        let default = layer.map_or("", |layer| layer.default_source.as_str());
        let default = self.with_line(default);

        match &ruling.reason {
            Reason::Rule(id) => format!("{profile}: {}", self.source(*id)),
            Reason::Unlisted => {
                format!("{profile}: {default}: {} is not listed", call_name(data))
            }
            Reason::OtherArguments(ids) => {
                let mut places: Vec<String> = ids.iter().map(|&id| self.source(id)).collect();
                places.dedup();
                let places = places.join(", ");
                let name = call_name(data);
                format!("{profile}: {default}: {name} is listed for other arguments ({places})")
            }
            Reason::Newer => format!("{profile}: {} is newer than all it lists", call_name(data)),
            Reason::BadArch => format!("{profile}: its architectures do not include this call's"),
        }
    }

    fn remedy(&self, data: &SeccompData, ruling: &Ruling) -> String {
        let name = call_name(data);
        match &ruling.reason {
            Reason::BadArch => "add the architecture, if the program is meant to use it".to_owned(),
            Reason::OtherArguments(_) => {
                let telling = self.telling(data, ruling);
                let used = self
                    .rules(data, ruling.layer)
                    .iter()
                    .flat_map(|rule| &rule.conditions);
                let mut args: Vec<u8> = used.map(|condition| condition.arg).collect();
                args.sort_unstable();
                args.dedup();
                let args: Vec<String> = args
                    .iter()
                    .map(|&arg| format!("args[{arg}] = {:#x}", telling[usize::from(arg)]))
                    .collect();
                format!(
                    "if the program needs it, allow {name} with {}",
                    args.join(", ")
                )
            }
            Reason::Rule(id) => {
                format!(
                    "if the program needs it, take {name} out of {}",
                    self.source(*id)
                )
            }
            Reason::Unlisted | Reason::Newer => {
                format!("if the program needs it, allow {name}")
            }
        }
    }

    /// The summary of repeated denials, and their number.
    pub(super) fn finish(&self) {
        for (call, again) in self.again.iter().filter(|row| row.1 > 0) {
            match again {
                1 => report!("tarsier: {call} once more"),
                again => report!("tarsier: {call} {again} times more"),
            }
        }

        if self.untold > 0 {
            report!("tarsier: {} more denials are not shown", self.untold);
        }
        if self.missed > 0 {
            report!(
                "tarsier: {} denials found no room and are not shown",
                self.missed
            );
        }

        match self.counted {
            0 => {}
            1 => report!("tarsier: in all, 1 call was denied or logged"),
            counted => report!("tarsier: in all, {counted} calls were denied or logged"),
        }
    }
}

/// Name, or number where there is none.
fn call_name(data: &SeccompData) -> String {
    let abi = Abi::of(data.arch, data.nr);
    match abi.and_then(|abi| abi.name_of(data.nr)) {
        Some(name) => name.to_owned(),
        None => format!("call {}", data.nr as i32),
    }
}

/// `socket(0x11, 0x3, 0x300)`: without the zeros at the end.
fn call_text(data: &SeccompData) -> String {
    let count = data
        .args
        .iter()
        .rposition(|&arg| arg != 0)
        .map_or(0, |last| last + 1);
    let args: Vec<String> = data.args[..count]
        .iter()
        .map(|arg| format!("{arg:#x}"))
        .collect();
    let abi = Abi::of(data.arch, data.nr);
    let other = match abi {
        Some(abi) if abi == Abi::native() => String::new(),
        Some(abi) => format!(" ({})", abi.systemd_name()),
        None => format!(" (architecture {:#x})", data.arch),
    };

    format!("{}({}){other}", call_name(data), args.join(", "))
}

/// Place of a rule that asks for an agent of its own, so that the policy cannot be supervised; `None` if there is none.
pub(super) fn asks_for_an_agent(policy: &Policy) -> Option<String> {
    let rules = policy.layers.iter().flat_map(|layer| layer.abis.values());
    let mut rules = rules.flat_map(|rules| rules.calls.values().flatten());
    let rule = rules.find(|rule| rule.verdict.action() == Action::UserNotif)?;
    Some(
        policy
            .sources
            .get(rule.id.0 as usize)
            .cloned()
            .unwrap_or_default(),
    )
}
