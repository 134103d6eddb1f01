//! Baselines: the lines of rules files that the checks of scanners want, and whether a line satisfies such a check.
//!
//! The checks are regular expressions over the lines of `/etc/audit/rules.d/*.rules`. They want the options of a rule
//! in one order, and take any key, either spelling of an unset login uid, and further system calls in the same line.

use std::collections::BTreeSet;

/// A baseline, as `share/baselines` has it: its title as a comment, then `CHECK LINE`, or `CHECK FILE: LINE` if the
/// check compares a whole file. A later comment says of which older checks the lines below it are.
pub(super) struct Baseline {
    pub(super) name: &'static str,
    text: &'static str,
}

/// A line that a check wants.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    /// Name of the check, as the source has it.
    pub(super) check: &'static str,
    /// The older checks that want it; `None` for those of the title.
    pub(super) older: Option<&'static str>,
    /// The file of the rules' directory that the check compares whole, with its comments; `None` if it looks for the
    /// line in any file.
    pub(super) file: Option<&'static str>,
    pub(super) line: String,
    parts: Parts,
}

/// A line of a rules file as checks see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Parts {
    /// Options with their values, without calls, key and permissions of a watch.
    options: Vec<(String, String)>,
    /// System calls that stand behind the architecture, if there is one.
    calls: BTreeSet<String>,
    /// Permissions of a watch (`-p`).
    permissions: BTreeSet<char>,
    has_key: bool,
}

/// Stands for the path of each program that is set-user-ID or set-group-ID.
const EACH_PROGRAM: &str = "SETUID";

macro_rules! baselines {
    ($($name:literal),* $(,)?) => {
        /// All baselines, by name.
        pub(super) const BASELINES: &[Baseline] = &[$(Baseline {
            name: $name,
            text: include_str!(concat!("../../../../../share/baselines/", $name)),
        }),*];
    };
}

baselines!(
    "anssi-debian12",
    "anssi-rhel9",
    "cis-debian12",
    "cis-rhel9",
    "cis-ubuntu2204",
    "cis-ubuntu2404",
    "ospp-rhel9",
    "pci-dss-rhel9",
    "stig-rhel10",
    "stig-rhel8",
    "stig-rhel9",
    "stig-ubuntu2204",
    "stig-ubuntu2404",
);

impl Baseline {
    /// The baseline with this name.
    pub(super) fn named(name: &str) -> Option<&'static Baseline> {
        BASELINES.iter().find(|baseline| baseline.name == name)
    }

    /// Title, source and version: the first comment.
    pub(super) fn title(&self) -> &'static str {
        comment(self.text.lines().next().unwrap_or_default())
    }

    /// The lines that its checks want, in the source's order. `privileged` gives the programs for each of which some
    /// want a line ([`EACH_PROGRAM`]).
    pub(super) fn wanted(&self, privileged: &[String]) -> Vec<Wanted> {
        let mut all = Vec::new();
        let mut older = None;
        for text in self.text.lines().skip(1) {
            if text.starts_with('#') {
                older = Some(comment(text));
                continue;
            }
            let Some((check, line)) = text.split_once(' ') else {
                continue;
            };
            let (file, line) = match line.split_once(": ") {
                Some((file, line)) => (Some(file), line),
                None => (None, line),
            };
            let lines = if line.contains(EACH_PROGRAM) {
                let of_each = privileged
                    .iter()
                    .map(|path| line.replace(EACH_PROGRAM, path));
                of_each.collect()
            } else {
                vec![line.to_owned()]
            };
            all.extend(lines.into_iter().filter_map(|line| {
                let parts = Parts::of(&line)?;
                Some(Wanted {
                    check,
                    older,
                    file,
                    line,
                    parts,
                })
            }));
        }

        all
    }
}

/// The text of a line of comment.
fn comment(line: &str) -> &str {
    line.trim_start_matches(['#', ' '])
}

impl Wanted {
    /// Whether a check finds the line that it wants in `parts`.
    pub(super) fn is_in(&self, parts: &Parts) -> bool {
        let wanted = &self.parts;
        wanted.options == parts.options
            && wanted.calls.is_subset(&parts.calls)
            && wanted.permissions.is_subset(&parts.permissions)
            && (parts.has_key || !wanted.has_key)
    }

    /// Its system calls.
    pub(super) fn calls(&self) -> &BTreeSet<String> {
        &self.parts.calls
    }

    /// Whether both lines are the same but for their calls, so that they can be one. Keys are not compared.
    pub(super) fn differs_in_calls(&self, other: &Wanted) -> bool {
        let have_calls = !self.calls().is_empty() && !other.calls().is_empty();
        have_calls && self.parts.options == other.parts.options
    }
}

impl Parts {
    /// The parts of a line; `None` for an empty line or a comment.
    pub(super) fn of(line: &str) -> Option<Parts> {
        let mut words = line.split_whitespace().peekable();
        let mut parts = Parts {
            options: Vec::new(),
            calls: BTreeSet::new(),
            permissions: BTreeSet::new(),
            has_key: false,
        };
        if words.peek()?.starts_with('#') {
            return None;
        }

        let wants_arch = line.contains(" arch=");
        let mut has_arch = false;

        while let Some(option) = words.next() {
            let value = if option.starts_with("--") {
                words.next_if(|next| !next.starts_with('-'))
            } else {
                words.next()
            };
            let value = value.unwrap_or_default();
            match (option, value) {
                ("-k", _) => parts.has_key = true,
                ("-F", key) if key.starts_with("key=") => parts.has_key = true,
                // The checks look for calls behind the architecture only.
                ("-S", calls) if has_arch || !wants_arch => {
                    parts.calls.extend(calls.split(',').map(str::to_owned));
                }
                ("-S", calls) => parts.options.push(("-S".to_owned(), calls.to_owned())),
                ("-p", permissions) => parts.permissions.extend(permissions.chars()),
                _ => {
                    has_arch |= value.starts_with("arch=");
                    parts.options.push((option.to_owned(), spelled(value)));
                }
            }
        }

        Some(parts)
    }
}

/// A condition in the spelling that stands for all that checks take.
fn spelled(value: &str) -> String {
    match value.strip_prefix("auid!=") {
        Some("-1" | "4294967295" | "unset") => "auid!=unset".to_owned(),
        _ => value.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::source::WithEveryPath;
    use super::*;

    fn finds(wanted: &str, line: &str) -> bool {
        let wanted = Wanted {
            check: "check",
            older: None,
            file: None,
            line: wanted.to_owned(),
            parts: Parts::of(wanted).unwrap(),
        };
        Parts::of(line).is_some_and(|parts| wanted.is_in(&parts))
    }

    const CHMOD: &str =
        "-a always,exit -F arch=b64 -S chmod -F auid>=1000 -F auid!=unset -F key=perm_mod";

    #[test]
    fn a_check_takes_any_key_more_calls_and_every_spelling_of_unset() {
        for line in [
            CHMOD,
            "-a always,exit -F arch=b64 -S fchmod,chmod -F auid>=1000 -F auid!=4294967295 -k x",
            "  -a  always,exit -F arch=b64 -S fchmod -S chmod -F auid>=1000 -F auid!=-1 -F key=y",
        ] {
            assert!(finds(CHMOD, line), "{line}");
        }
        assert!(finds(
            "-w /etc/passwd -p wa",
            "-w /etc/passwd -p rwa -k identity"
        ));
    }

    #[test]
    fn a_check_misses_the_same_rule_in_other_words() {
        for line in [
            "-a exit,always -F arch=b64 -S chmod -F auid>=1000 -F auid!=unset -k x",
            "-a always,exit -S chmod -F arch=b64 -F auid>=1000 -F auid!=unset -k x",
            "-a always,exit -F arch=b64 -S chmod -F auid!=unset -F auid>=1000 -k x",
            "-a always,exit -F arch=b64 -S chmod -F auid>999 -F auid!=unset -k x",
            "-a always,exit -F arch=b64 -S chmod -F auid>=1000 -F auid!=unset",
            "-a always,exit -F arch=b64 -S chmod -F auid>=1000 -F auid!=unset -F uid=0 -k x",
            "-a always,exit -F arch=b64 -S fchmod -F auid>=1000 -F auid!=unset -k x",
            "# a comment",
            "",
        ] {
            assert!(!finds(CHMOD, line), "{line}");
        }
        assert!(!finds(
            "-w /etc/passwd -p wa",
            "-w /etc/passwd -p w -k identity"
        ));
    }

    #[test]
    fn every_line_of_every_baseline_is_a_line_of_a_rules_file() {
        for baseline in BASELINES {
            let lines = baseline.text.lines().filter(|line| !line.starts_with('#'));
            let (count, mut seen) = (lines.count(), BTreeSet::new());
            assert!(!baseline.title().is_empty());
            let all = baseline.wanted(&["/bin/su".to_owned()]);
            assert_eq!(all.len(), count, "{}", baseline.name);
            for wanted in all {
                let source = rules::Source::default();
                let parsed = rules::parse_line(&wanted.line, &source, &WithEveryPath);
                assert!(
                    matches!(parsed, Ok(Some(_))),
                    "{}: {}: {parsed:?}",
                    baseline.name,
                    wanted.line
                );
                assert!(
                    seen.insert((wanted.check, wanted.line.clone())),
                    "twice: {}",
                    wanted.line
                );
            }
        }
    }
}
