//! The rules and settings that the kernel would have after the commands of a rules file.

use abi::Arch;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

use crate::list::{list_rules, ListStyle};
use crate::{Command, ErrorKind, List, ParsedFile, Rule, RuleError, Severity, Source};

/// Settings in a rules file, besides its rules. `None` leaves the setting as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Settings {
    /// `-e`
    pub enabled: Option<u32>,
    /// `-f`
    pub failure: Option<u32>,
    /// `-b`
    pub backlog: Option<u32>,
    /// `-r`
    pub rate: Option<u32>,
    /// `--backlog_wait_time`, in clock ticks.
    pub backlog_wait_time: Option<u32>,
    /// `--loginuid-immutable`
    pub loginuid_immutable: bool,
    /// `--reset-lost`
    pub reset_lost: bool,
    /// `--reset_backlog_wait_time_actual`
    pub reset_backlog_wait_time_actual: bool,
    /// `-t`
    pub trim: bool,
    /// `-q mount,subtree`, in order.
    pub equivalents: Vec<(Vec<u8>, Vec<u8>)>,
    /// `-m`, in order.
    pub messages: Vec<String>,
}

impl Settings {
    /// Carries out `later`, the settings of another file, after these.
    pub fn overlay(&mut self, later: Settings) {
        // Every member is named, so that a new one cannot be forgotten here.
        let Settings {
            enabled,
            failure,
            backlog,
            rate,
            backlog_wait_time,
            loginuid_immutable,
            reset_lost,
            reset_backlog_wait_time_actual,
            trim,
            equivalents,
            messages,
        } = later;

        for (value, later) in [
            (&mut self.enabled, enabled),
            (&mut self.failure, failure),
            (&mut self.backlog, backlog),
            (&mut self.rate, rate),
            (&mut self.backlog_wait_time, backlog_wait_time),
        ] {
            *value = later.or(*value);
        }

        self.loginuid_immutable |= loginuid_immutable;
        self.reset_lost |= reset_lost;
        self.reset_backlog_wait_time_actual |= reset_backlog_wait_time_actual;
        self.trim |= trim;
        self.equivalents.extend(equivalents);
        self.messages.extend(messages);
    }
}

/// Rules and settings.
#[derive(Clone, Debug, Default)]
pub struct RuleSet {
    /// The rules in the order in which they are tried. `-A` puts a rule before all earlier ones.
    pub rules: Vec<Rule>,
    /// The settings.
    pub settings: Settings,
    /// Places where `-e`, `-f`, `-b`, `-r` and `--backlog_wait_time` were given last, by option.
    pub setting_places: BTreeMap<&'static str, Source>,
    /// Errors that `-i` or `-c` let pass; their lines are not in force.
    pub skipped: Vec<RuleError>,
    /// Rules that a later `-D` of the files has deleted, each with the place of the `-D`.
    pub deleted: Vec<(Rule, Source)>,
    /// Warnings about lines that were accepted.
    pub warnings: Vec<RuleError>,
    /// Whether a `-i` or `-c` was seen.
    pub ignores_errors: bool,
    /// Whether a `-c` was seen: skipped errors then make loading fail at the end.
    pub continues_on_error: bool,
}

impl RuleSet {
    /// Carries out `commands` on an empty set.
    ///
    /// # Errors
    /// All errors, if at least one of them came before any `-i` or `-c`. No rule may be loaded then.
    pub fn apply(
        commands: impl IntoIterator<Item = (Source, Command)>,
    ) -> Result<RuleSet, Vec<RuleError>> {
        let commands = commands.into_iter().collect();
        RuleSet::build(ParsedFile {
            commands,
            ..ParsedFile::default()
        })
    }

    /// Carries out the commands of a file on an empty set; its wrong lines count as errors.
    ///
    /// # Errors
    /// The errors of [`RuleSet::apply`], sorted by file and line.
    pub fn build(parsed: ParsedFile) -> Result<RuleSet, Vec<RuleError>> {
        match RuleSet::build_from_good(parsed) {
            (set, errors) if errors.is_empty() => Ok(set),
            (set, mut errors) => {
                // Whoever mends the file sees all of them.
                errors.extend(set.skipped);
                sort(&mut errors);
                Err(errors)
            }
        }
    }

    /// Carries out those commands of a file that can be on an empty set. Returns the errors that no `-i` or `-c` came
    /// before, sorted by file and line; the others are [`RuleSet::skipped`].
    pub fn build_from_good(parsed: ParsedFile) -> (RuleSet, Vec<RuleError>) {
        let mut set = RuleSet {
            warnings: parsed.warnings,
            ..RuleSet::default()
        };
        let mut errors = parsed.errors;

        for (source, command) in parsed.commands {
            // Kept for the report: a -D that is not the first line is usually a mistake.
            let before = match command {
                Command::DeleteAll { key: None } => set.rules.clone(),
                _ => Vec::new(),
            };
            if let Err(mut error) = set.run(&source, command) {
                // As in auditctl, -i and -c count for the lines behind them only.
                error.is_tolerated = set.ignores_errors;
                errors.push(error);
            } else if !before.is_empty() {
                set.warnings.push(deleted_before(&source, before.len()));
                let deleted = before.into_iter().map(|rule| (rule, source.clone()));
                set.deleted.extend(deleted);
            }
        }

        sort(&mut errors);
        let (skipped, wrong) = errors.into_iter().partition(|error| error.is_tolerated);
        set.skipped = skipped;
        (set, wrong)
    }

    /// Carries out one command. Commands that only ask for something (`-l`, `-s`, …) do nothing.
    ///
    /// # Errors
    /// The rule to add exists already, the rule to delete does not exist, or `-e 2` came before.
    pub fn run(&mut self, source: &Source, command: Command) -> Result<(), RuleError> {
        // The kernel refuses every change once it is locked, whatever it is.
        if let (Some(what), true) = (changed_by(&command), self.is_immutable()) {
            let message = format!("Error sending {what} request (Operation not permitted)");
            let mut error = RuleError::whole(source, String::new(), ErrorKind::Locked, &message);
            error.help =
                Some("nothing can be changed after -e 2: make it the last line".to_owned());
            return Err(error);
        }

        if let Some(option) = setting_of(&command) {
            self.setting_places.insert(option, source.clone());
        }

        let settings = &mut self.settings;
        match command {
            Command::Append(rule) => return self.append(rule),
            // The kernel never finds a duplicate of a prepended rule: its comparison includes the
            // prepend flag, which the rules in its list do not have.
            Command::Prepend(rule) => self.rules.insert(0, rule),
            Command::Delete(rule) => return self.delete(&rule),
            Command::DeleteAll { key: None } => self.rules.clear(),
            Command::DeleteAll { key: Some(key) } => {
                self.rules.retain(|rule| !key_contains(rule, &key));
            }
            Command::Enabled(value) => settings.enabled = Some(value),
            Command::Failure(value) => settings.failure = Some(value),
            Command::Backlog(value) => settings.backlog = Some(value),
            Command::Rate(value) => settings.rate = Some(value),
            Command::BacklogWaitTime(value) => settings.backlog_wait_time = Some(value),
            Command::LoginuidImmutable => settings.loginuid_immutable = true,
            Command::ResetLost => settings.reset_lost = true,
            Command::ResetBacklogWaitTimeActual => settings.reset_backlog_wait_time_actual = true,
            Command::Trim => settings.trim = true,
            Command::MakeEquivalent { mount, subtree } => {
                settings.equivalents.push((mount, subtree));
            }
            Command::Message(text) => settings.messages.push(text),
            Command::IgnoreErrors => self.ignores_errors = true,
            Command::ContinueOnError => {
                self.ignores_errors = true;
                self.continues_on_error = true;
            }
            Command::Several(commands) => {
                return commands
                    .into_iter()
                    .try_for_each(|command| self.run(source, command));
            }
            Command::Status { .. }
            | Command::List { .. }
            | Command::Signal(_)
            | Command::ReadFile(_)
            | Command::Version
            | Command::Help => {}
        }

        Ok(())
    }

    /// Whether `-e 2` was given: rules are locked until the next boot.
    pub fn is_immutable(&self) -> bool {
        self.settings.enabled == Some(2)
    }

    /// Whether loading has to be reported as failed although rules are in force.
    pub fn has_failed(&self) -> bool {
        self.continues_on_error && !self.skipped.is_empty()
    }

    /// The rules as `auditctl -l` prints them, list by list; with `key`, only those whose key
    /// contains it. Like auditctl, prints `No rules` if the set is empty.
    pub fn list(&self, style: &ListStyle, key: Option<&[u8]>) -> String {
        if self.rules.is_empty() {
            return "No rules\n".to_owned();
        }
        let in_order = List::EVERY
            .into_iter()
            .flat_map(|list| self.rules.iter().filter(move |rule| rule.list == list));
        list_rules(
            in_order.filter(|rule| key.is_none_or(|key| key_contains(rule, key))),
            style,
        )
    }

    fn append(&mut self, rule: Rule) -> Result<(), RuleError> {
        if let Some(there) = self.rules.iter().find(|there| is_same(there, &rule)) {
            let message = "Error sending add rule data request (Rule exists)";
            let mut error =
                RuleError::whole(&rule.source, rule.to_string(), ErrorKind::Exists, message);
            let Source { file, line } = &there.source;
            error.help = Some(format!("the same rule is at {file}:{line}"));
            return Err(error);
        }
        self.rules.push(rule);
        Ok(())
    }

    fn delete(&mut self, rule: &Rule) -> Result<(), RuleError> {
        match self.rules.iter().position(|there| is_same(there, rule)) {
            Some(at) => {
                self.rules.remove(at);
                Ok(())
            }
            None => {
                let message = "Error sending delete rule data request (No such file or directory)";
                let mut error = RuleError::whole(
                    &rule.source,
                    rule.to_string(),
                    ErrorKind::NoSuchRule,
                    message,
                );
                error.expected = Some("exactly a rule that was added before".to_owned());
                Err(error)
            }
        }
    }
}

fn sort(errors: &mut [RuleError]) {
    errors.sort_by(|a, b| (a.file(), a.line(), a.column).cmp(&(b.file(), b.line(), b.column)));
}

/// The warning about a `-D` that is not the first line: what stands before it is not in force.
fn deleted_before(source: &Source, rules: usize) -> RuleError {
    let plural = if rules == 1 { "" } else { "s" };
    let message = format!("-D deletes the {rules} rule{plural} before it");
    let line = "-D".to_owned();
    let mut warning = RuleError::whole(source, line, ErrorKind::Syntax, &message);
    warning.severity = Severity::Warning;
    warning.help = Some("put -D before all rules".to_owned());
    warning
}

/// Whether the kernel would regard `a` and `b` as equal. It compares rules after resolving class
/// selectors; the edition of its class lists is not known here, so all editions must agree.
fn is_same(a: &Rule, b: &Rule) -> bool {
    let calls = |rule: &Rule| {
        abi::PERM_LISTS.map(|lists| rule.syscalls.expand_classes(Arch::native(), lists))
    };
    a.list == b.list && a.action == b.action && a.conditions == b.conditions && calls(a) == calls(b)
}

/// Whether the rule's key, all parts together, contains `text` (key_match() in audit-userspace).
fn key_contains(rule: &Rule, text: &[u8]) -> bool {
    text.is_empty()
        || rule
            .key()
            .is_some_and(|key| key.windows(text.len()).any(|window| window == text))
}

/// The option of a command that sets a number.
fn setting_of(command: &Command) -> Option<&'static str> {
    match command {
        Command::Enabled(_) => Some("-e"),
        Command::Failure(_) => Some("-f"),
        Command::Backlog(_) => Some("-b"),
        Command::Rate(_) => Some("-r"),
        Command::BacklogWaitTime(_) => Some("--backlog_wait_time"),
        _ => None,
    }
}

/// auditctl's name for the request that a command makes, if the kernel refuses the request once locked.
fn changed_by(command: &Command) -> Option<&'static str> {
    match command {
        Command::Append(_) | Command::Prepend(_) => Some("add rule data"),
        Command::Delete(_) | Command::DeleteAll { .. } => Some("delete rule data"),
        Command::Enabled(_) => Some("enable"),
        Command::Failure(_) => Some("failure mode"),
        Command::Backlog(_) | Command::BacklogWaitTime(_) => Some("backlog limit"),
        Command::Rate(_) => Some("rate limit"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{parse_text, Dialect, StaticHost};

    fn build(text: &str) -> Result<RuleSet, Vec<RuleError>> {
        let host = StaticHost::new(Arch::X86_64);
        RuleSet::build(parse_text(Dialect::V4, "r", text, &host))
    }

    fn keys(set: &RuleSet) -> Vec<String> {
        set.rules
            .iter()
            .map(|rule| String::from_utf8_lossy(rule.key().unwrap_or_default()).into_owned())
            .collect()
    }

    #[test]
    fn prepended_rules_come_first_latest_first() {
        let set = build(
            "-a always,exit -F arch=b64 -S open -k a\n\
             -A always,exit -F arch=b64 -S open -k b\n\
             -A always,exit -F arch=b64 -S open -k c\n",
        )
        .unwrap();
        assert_eq!(keys(&set), ["c", "b", "a"]);
    }

    #[test]
    fn a_second_equal_rule_is_an_error_that_names_the_first() {
        let rule = "-w /etc/passwd -p wa -k pw\n";
        let errors = build(&format!("{rule}{rule}")).unwrap_err();
        assert_eq!(errors.len(), 1);
        assert_eq!(errors[0].kind, ErrorKind::Exists);
        assert_eq!(errors[0].line(), 2);
        assert_eq!(errors[0].help.as_deref(), Some("the same rule is at r:1"));
    }

    #[test]
    fn deleting_needs_the_exact_rule() {
        let add = "-a always,exit -F arch=b64 -S open -k a\n";
        assert!(
            build(&format!("{add}-d always,exit -F arch=b64 -S open -k a\n"))
                .unwrap()
                .rules
                .is_empty()
        );
        let errors = build(&format!("{add}-d always,exit -F arch=b64 -S open -k b\n")).unwrap_err();
        assert_eq!(errors[0].kind, ErrorKind::NoSuchRule);
    }

    #[test]
    fn delete_all_takes_those_whose_key_contains_the_text() {
        let set = build("-w /a -k one\n-w /b -k two\n-w /c\n-D -k n\n").unwrap();
        assert_eq!(keys(&set), ["two", ""]);
        assert!(build("-w /a -k one\n-D\n").unwrap().rules.is_empty());
    }

    #[test]
    fn one_error_means_that_nothing_is_loaded_unless_told_to_go_on() {
        assert_eq!(build("-w /a\n-w bad\n-w /a\n").unwrap_err().len(), 2);
        let set = build("-i\n-w /a\n-w bad\n-w /a\n-w /b\n").unwrap();
        assert_eq!(
            (set.rules.len(), set.skipped.len(), set.has_failed()),
            (2, 2, false)
        );
        let lines: Vec<u32> = set.skipped.iter().map(RuleError::line).collect();
        assert_eq!(lines, [3, 4]);
        assert!(build("-c\n-w bad\n").unwrap().has_failed());
    }

    #[test]
    fn good_lines_are_taken_without_the_wrong_ones() {
        let host = StaticHost::new(Arch::X86_64);
        let text = "-w /a -k a\n-w bad\n-w /a -k a\n-c\n-b many\n-w /b -k b\n";
        let (set, wrong) = RuleSet::build_from_good(parse_text(Dialect::V4, "r", text, &host));
        assert_eq!(keys(&set), ["a", "b"]);
        let lines = |errors: &[RuleError]| errors.iter().map(RuleError::line).collect::<Vec<_>>();
        assert_eq!((lines(&wrong), lines(&set.skipped)), (vec![2, 3], vec![5]));
    }

    #[test]
    fn what_a_late_delete_all_takes_is_said() {
        let set = build("-w /a\n-w /b\n-D\n-w /c\n").unwrap();
        let warnings: Vec<String> = set.warnings.iter().map(ToString::to_string).collect();
        assert_eq!(warnings, ["r:3: -D deletes the 2 rules before it"]);
        let places = set.deleted.iter();
        let places: Vec<_> = places
            .map(|(rule, by)| (rule.source.line, by.line))
            .collect();
        assert_eq!(places, [(1, 3), (2, 3)]);
        assert!(build("-D\n-w /c\n").unwrap().warnings.is_empty());
    }

    #[test]
    fn nothing_changes_after_locking() {
        let errors = build("-w /a\n-e 2\n-w /b\n").unwrap_err();
        assert_eq!(errors[0].kind, ErrorKind::Locked);
        assert_eq!(errors[0].line(), 3);
        assert!(build("-w /a\n-e 2\n").unwrap().is_immutable());
    }

    #[test]
    fn a_class_selector_is_the_calls_it_stands_for() {
        let names = "rename,mkdir,rmdir,creat,link,unlink,symlink,mknod,mkdirat,mknodat,\
                     unlinkat,renameat,linkat,symlinkat,renameat2";
        let text =
            format!("-a always,exit -F arch=b64 -S 2047\n-a always,exit -F arch=b64 -S {names}\n");
        if Arch::native() == Arch::X86_64 {
            assert_eq!(build(&text).unwrap_err()[0].kind, ErrorKind::Exists);
        }
    }

    #[test]
    fn settings_of_a_later_file_leave_those_that_it_does_not_make() {
        let mut settings = Settings {
            failure: Some(2),
            rate: Some(5),
            messages: vec!["a".to_owned()],
            ..Settings::default()
        };
        settings.overlay(Settings {
            rate: Some(0),
            backlog: Some(64),
            messages: vec!["b".to_owned()],
            ..Settings::default()
        });
        assert_eq!(settings.failure, Some(2));
        assert_eq!((settings.rate, settings.backlog), (Some(0), Some(64)));
        assert_eq!(settings.messages, ["a", "b"]);
    }

    #[test]
    fn settings_keep_the_last_value() {
        let set = build(
            "-b 64 -f 1\n-b 8192\n--backlog_wait_time 60000\n-r 10\n-e 1\n--loginuid-immutable\n",
        )
        .unwrap();
        let expected = Settings {
            enabled: Some(1),
            failure: Some(1),
            backlog: Some(8192),
            rate: Some(10),
            backlog_wait_time: Some(60000),
            loginuid_immutable: true,
            ..Settings::default()
        };
        assert_eq!(set.settings, expected);
    }
}
