//! Finds rules that probably do not do what was intended, and says what to do about them.

mod acts;
mod arch;
mod conditions;
mod cost;
mod settings;
mod uring;

pub use settings::lint_settings;

use crate::capabilities::Capabilities;
use crate::entries::Entries;
use crate::evaluate::{is_inode_rule, is_label};
use crate::exactness::{exactness, Exactness};
use crate::shadow::shadowing;
use abi::Field;
use rules::{list_rule, Action, Dialect, List, ListStyle, Rule};
use serde::Serialize;
use std::collections::HashSet;

/// The kinds of findings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Lint {
    /// Names of calls without `arch=`: on the other architecture, their numbers are other calls.
    MissingArch,
    /// The same calls of the other architecture are not watched.
    OneArch,
    /// An earlier rule has the same conditions for the same calls.
    Duplicate,
    /// An earlier rule matches whatever this one would match.
    Shadowed,
    /// No call can meet the conditions of the rule.
    NeverMatches,
    /// A watch on every call, as `-w` makes it.
    OldWatch,
    /// Other calls, which no rule watches, do the same.
    OtherCalls,
    /// The same can be done through io_uring, which no rule watches.
    IoUring,
    /// The rule has no key by which its events could be found.
    NoKey,
    /// The rule has conditions on security labels.
    Label,
    /// The planned engine does not honour the rule.
    NotHonoured,
    /// The kernel would refuse the rule because a path does not exist. This crate does no I/O and does
    /// not report it; its callers do.
    MissingPath,
    /// `auid>=` also holds for tasks that nobody logged in for.
    UnsetAuid,
    /// Every call of every process is selected.
    EveryCall,
    /// The rule is about all calls, and selects some by other conditions.
    AllCalls,
    /// `-b`: the kernel's queue is small, or has no limit.
    Backlog,
    /// `--backlog_wait_time`: calls of everybody wait while the kernel's queue is full.
    WaitsWhenFull,
    /// `--backlog_wait_time 0`: events are lost while the kernel's queue is full.
    LosesWhenFull,
    /// `-r`: events beyond a rate are lost.
    RateLoses,
    /// `-f 0`: nothing is said about losses.
    LosesSilently,
    /// `-f 2`: the machine panics on a loss.
    PanicsOnLoss,
}

impl Lint {
    /// The name as it is printed: `missing-arch` and so on.
    pub const fn name(self) -> &'static str {
        match self {
            Lint::MissingArch => "missing-arch",
            Lint::OneArch => "one-arch",
            Lint::Duplicate => "duplicate",
            Lint::Shadowed => "shadowed",
            Lint::NeverMatches => "never-matches",
            Lint::OldWatch => "old-watch",
            Lint::OtherCalls => "other-calls",
            Lint::IoUring => "io-uring",
            Lint::NoKey => "no-key",
            Lint::Label => "label",
            Lint::NotHonoured => "not-honoured",
            Lint::MissingPath => "missing-path",
            Lint::UnsetAuid => "unset-auid",
            Lint::EveryCall => "every-call",
            Lint::AllCalls => "all-calls",
            Lint::Backlog => "backlog",
            Lint::WaitsWhenFull => "waits-when-full",
            Lint::LosesWhenFull => "loses-when-full",
            Lint::RateLoses => "rate-loses",
            Lint::LosesSilently => "loses-silently",
            Lint::PanicsOnLoss => "panics-on-loss",
        }
    }

    /// Whether the finding is about what a host pays or loses, which `tarsier plan` says, too.
    pub const fn is_costly(self) -> bool {
        matches!(
            self,
            Lint::MissingArch
                | Lint::EveryCall
                | Lint::AllCalls
                | Lint::Backlog
                | Lint::WaitsWhenFull
                | Lint::LosesWhenFull
                | Lint::RateLoses
                | Lint::LosesSilently
                | Lint::PanicsOnLoss
        )
    }
}

/// One finding about a rule or a setting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Kind of the finding.
    pub lint: Lint,
    /// Position of the rule among those given, from 0; `None` for a setting.
    pub rule: Option<usize>,
    /// File that the rule was read from.
    pub file: String,
    /// Line of the rule or setting, counted from 1; 0 if there is none.
    pub line: u32,
    /// Description of the fault.
    pub message: String,
    /// Remedy.
    pub remedy: String,
    /// What calls pay for it, in words, if it is about that.
    pub cost: Option<String>,
    /// The rule as text that auditctl reads back as the same rule, or the setting.
    pub text: String,
}

/// Examines `rules`, in the order in which they are tried, for a host. Findings are sorted by rule,
/// then in the order of [`Lint`].
pub fn lint(rules: &[Rule], capabilities: &Capabilities) -> Vec<Finding> {
    let mut examined = Examined {
        rules,
        capabilities,
        entries: capabilities.entries(),
        findings: Vec::new(),
    };

    arch::find(&mut examined);
    examined.order();
    conditions::find(&mut examined);
    acts::find(&mut examined);
    uring::find(&mut examined);
    examined.single();
    let mut findings = examined.findings;
    findings.sort_by_key(|finding| (finding.rule, finding.lint));
    findings
}

/// The rule as text that auditctl of this version reads back as the same rule.
pub(crate) fn reloadable(rule: &Rule, entries: Entries, dialect: Dialect) -> String {
    let host = entries.arches()[0].unwrap_or(abi::Arch::native());
    list_rule(
        rule,
        &ListStyle {
            dialect,
            is_interpreted: false,
            is_reloadable: true,
            host,
        },
    )
}

struct Examined<'a> {
    rules: &'a [Rule],
    capabilities: &'a Capabilities,
    entries: Entries,
    findings: Vec<Finding>,
}

impl Examined<'_> {
    fn found(&mut self, lint: Lint, rule: usize, message: String, remedy: String) {
        let cost = match lint {
            Lint::MissingArch => cost::of_missing_arch(&self.rules[rule], self.capabilities),
            Lint::EveryCall => Some(cost::of_every_call()),
            Lint::AllCalls => cost::of_all_calls(&self.rules[rule], self.capabilities),
            Lint::OldWatch if !is_inode_rule(&self.rules[rule]) => {
                Some(cost::of_evaluation(&self.rules[rule], self.capabilities))
            }
            _ => None,
        };

        let source = &self.rules[rule].source;
        self.findings.push(Finding {
            lint,
            rule: Some(rule),
            file: source.file.clone(),
            line: source.line,
            message,
            remedy,
            cost,
            text: reloadable(&self.rules[rule], self.entries, Dialect::V4),
        });
    }

    /// Finds rules that never decide, because an earlier rule does.
    fn order(&mut self) {
        let shadowed = shadowing(self.rules, self.entries);
        for (i, earlier) in shadowed.into_iter().enumerate() {
            let Some(earlier) = earlier.map(|earlier| earlier as usize) else {
                continue;
            };
            let (first, second) = (&self.rules[earlier], &self.rules[i]);
            let at = format!("rule {} ({})", earlier + 1, first.source.place());
            if is_duplicate(first, second) {
                let message = format!("{at} is the same");
                self.found(Lint::Duplicate, i, message, "delete one of them".to_owned());
                continue;
            }
            let message = format!("{at} always matches first");
            let remedy = if first.action == second.action && first.key() == second.key() {
                "delete this rule: it changes nothing"
            } else {
                "put this rule before that one, or delete it"
            };
            self.found(Lint::Shadowed, i, message, remedy.to_owned());
        }
    }

    /// Makes the findings that need only one rule.
    fn single(&mut self) {
        for (i, rule) in self.rules.iter().enumerate() {
            let is_exit = rule.list == List::Exit;
            if is_exit && is_old_watch(rule) {
                let (message, remedy) = old_watch(rule);
                self.found(Lint::OldWatch, i, message.to_owned(), remedy.to_owned());
            }
            if rule.list.has_syscalls() && rule.action == Action::Always && rule.key().is_none() {
                let message = "no key: its events cannot be told from others'".to_owned();
                self.found(Lint::NoKey, i, message, "add -F key=NAME".to_owned());
            }
            if selects_every_call(rule) {
                let message = "every call of every process is an event: about a million per second and busy processor"
                    .to_owned();
                let remedy = "name the calls, or ask about uid=, auid=, exe= or exit=".to_owned();
                self.found(Lint::EveryCall, i, message, remedy);
            }
            if is_on_all_calls(rule) && !self.has_found(Lint::NeverMatches, i) {
                let message = "it is about all calls: each has to be compared with it".to_owned();
                let remedy = "name the calls that matter".to_owned();
                self.found(Lint::AllCalls, i, message, remedy);
            }
            self.honoured(i, rule);
        }
    }

    fn has_found(&self, lint: Lint, rule: usize) -> bool {
        let is_same = |finding: &Finding| finding.rule == Some(rule) && finding.lint == lint;
        self.findings.iter().any(is_same)
    }

    fn honoured(&mut self, i: usize, rule: &Rule) {
        let labels = rule.conditions.iter().filter(|c| is_label(c.field));
        let labels: Vec<&str> = labels.map(|condition| condition.field.name()).collect();
        if !labels.is_empty() && !matches!(rule.list, List::User | List::Exclude) {
            let effect = match (rule.list, rule.action) {
                (List::Exit, Action::Always) => "the rule selects whatever the label is",
                _ => "the rule never matches",
            };
            self.found(
                Lint::Label,
                i,
                format!("{}: labels are not read, {effect}", labels.join(", ")),
                "use the kernel's own audit for this rule, or ask about exe= or uid=".to_owned(),
            );
        }

        if let Exactness::NotHonoured(reason) = exactness(rule, self.capabilities) {
            // A rule that no call of this host can match has already been reported.
            if !self.has_found(Lint::NeverMatches, i) {
                self.found(
                    Lint::NotHonoured,
                    i,
                    reason.to_owned(),
                    "delete it, or leave it to the kernel's own audit".to_owned(),
                );
            }
        }
    }
}

/// Whether two rules are equal except for the order of their conditions.
fn is_duplicate(a: &Rule, b: &Rule) -> bool {
    let conditions =
        |rule: &Rule| -> HashSet<rules::Condition> { rule.conditions.iter().cloned().collect() };
    a.action == b.action && a.syscalls == b.syscalls && conditions(a) == conditions(b)
}

/// Whether the rule selects all calls, whoever makes them and whatever they return.
fn selects_every_call(rule: &Rule) -> bool {
    let is_open = |field| matches!(field, Field::Arch | Field::FilterKey);
    rule.list == List::Exit
        && rule.action == Action::Always
        && rule.syscalls.is_all()
        && rule.conditions.iter().all(|c| is_open(c.field))
}

/// Whether the rule is about all calls, and selects those of some processes, results or places. A file and a kind of access
/// name calls.
fn is_on_all_calls(rule: &Rule) -> bool {
    let is_open = |c: &rules::Condition| matches!(c.field, Field::Arch | Field::FilterKey);
    let has_access = rule.conditions.iter().any(|c| c.field == Field::Perm);
    rule.list == List::Exit
        && rule.syscalls.is_all()
        && !has_access
        && !is_inode_rule(rule)
        && !rule.conditions.iter().all(is_open)
}

fn old_watch(rule: &Rule) -> (&'static str, &'static str) {
    if is_inode_rule(rule) {
        (
            "a watch as -w makes it, which audit 4 calls deprecated",
            "write it as -a always,exit -F arch= -F path= -F perm=, once for each arch",
        )
    } else {
        (
            "a watch as -w makes it, which kernel audit evaluates for every call",
            "name its calls: `tarsier rules optimise` does",
        )
    }
}

/// Whether the rule is a watch as `-w` makes it: a path or directory with a kind of access, for every
/// call of every architecture.
pub(crate) fn is_old_watch(rule: &Rule) -> bool {
    let has = |wanted: &[Field]| rule.conditions.iter().any(|c| wanted.contains(&c.field));
    rule.syscalls.is_all()
        && has(&[Field::Watch, Field::Dir])
        && has(&[Field::Perm])
        && !has(&[Field::Arch])
}
