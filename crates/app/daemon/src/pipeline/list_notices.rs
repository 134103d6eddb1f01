//! What the kernel's records say about changes of its list of rules by others.

use crate::account::kernel_costs::logged;
use rules::Rule;
use std::time::{Duration, Instant};

/// Longest wait for the record of a change that is in the list already.
const RECORD_LIMIT: Duration = Duration::from_secs(1);

/// Changes since they were last looked at.
#[derive(Default)]
pub(crate) struct ListNotices {
    /// Whether our rules are in the list.
    pub(crate) is_shown: bool,
    pub(crate) is_changed: bool,
    /// Key and list of each rule that was removed, as in the record, and whether somebody did it, or the kernel itself.
    removed: Vec<(Vec<u8>, bool)>,
    waiting_since: Option<Instant>,
}

impl ListNotices {
    /// Takes the text of a CONFIG_CHANGE record.
    pub(crate) fn take(&mut self, text: &[u8]) {
        const CHANGES: [&[u8]; 4] = [
            b" op=add_rule ",
            b" op=remove_rule ",
            b" op=updated_rules ",
            b" op=set audit_enabled=",
        ];
        let find = |word: &[u8]| text.windows(word.len()).position(|window| window == word);
        // A refusal has changed nothing, and may be one of this process.
        let is_done = find(b" res=1").is_some();
        if !self.is_shown || !is_done || !CHANGES.iter().any(|word| find(word).is_some()) {
            return;
        }

        self.is_changed = true;
        if find(b" op=remove_rule ").is_some() {
            // What the kernel removes itself has `path=` or `dir=` before the key.
            let is_by_somebody = find(b" op=remove_rule key=").is_some();
            if let (Some(begin), Some(end)) = (find(b" key="), find(b" res=1")) {
                let about = text.get(begin + 1..end).map(<[u8]>::to_vec);
                self.removed
                    .extend(about.map(|about| (about, is_by_somebody)));
            }
        }
    }

    /// Whether somebody has removed each of these rules, which are missing from the list, or the kernel itself has, as
    /// it does where a path leads nowhere any more. `None` while the records of that are on their way: a change is in
    /// the list before its record is sent.
    pub(crate) fn removers(&mut self, gone: &[Rule]) -> Option<Vec<bool>> {
        let mut removed = self.removed.clone();
        let remover = |rule: &Rule| {
            let about = about(rule);
            match removed.iter().position(|(other, _)| *other == about) {
                Some(place) => Some(removed.swap_remove(place).1),
                None => (!compose::names_paths(std::slice::from_ref(rule))).then_some(true),
            }
        };
        let found: Vec<Option<bool>> = gone.iter().map(remover).collect();

        let since = *self.waiting_since.get_or_insert_with(Instant::now);
        if found.contains(&None) && since.elapsed() < RECORD_LIMIT {
            self.is_changed = true;
            return None;
        }
        self.waiting_since = None;
        self.removed.clear();
        // A record that never comes may have been left out by a rule. What is not known stays in force.
        Some(
            found
                .into_iter()
                .map(|remover| remover == Some(true))
                .collect(),
        )
    }
}

/// Key and list as the kernel's records have them.
fn about(rule: &Rule) -> Vec<u8> {
    let mut text = b"key=".to_vec();
    text.extend(logged(rule.key()));
    text.extend(format!(" list={}", rule.list as u32).into_bytes());
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(line: &str) -> Rule {
        match rules::parse_line(line, &rules::Source::default(), &rules::SystemHost) {
            Ok(Some(rules::Command::Append(rule))) => rule,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn removals_by_somebody_count_once_and_those_by_the_kernel_do_not() {
        let mut notices = ListNotices {
            is_shown: true,
            ..ListNotices::default()
        };
        let watch = [rule("-w /etc/passwd -p wa -k w")];
        let call = [rule("-a always,exit -F arch=b64 -S open -k c")];
        notices.take(b"audit(1.2:3): auid=0 ses=1 op=updated_rules path=\"/etc/passwd\" key=\"w\" list=4 res=1");
        assert!(notices.is_changed);
        assert_eq!(notices.removers(&call), Some(vec![true]));

        // The record is not there yet.
        assert_eq!(notices.removers(&watch), None);
        notices.take(b"audit(1.2:4): op=remove_rule dir=\"/etc\" key=\"w\" list=4 res=1");
        assert_eq!(notices.removers(&watch), Some(vec![false]));

        notices.take(b"audit(1.2:5): auid=0 ses=1 op=remove_rule key=\"w\" list=4 res=0");
        assert_eq!(notices.removers(&watch), None);
        notices.take(b"audit(1.2:5): auid=0 ses=1 op=remove_rule key=\"w\" list=4 res=1");
        assert_eq!(notices.removers(&watch), Some(vec![true]));
        assert_eq!(notices.removers(&watch), None, "each record counts once");
    }

    #[test]
    fn a_refused_change_is_none() {
        let mut notices = ListNotices {
            is_shown: true,
            ..ListNotices::default()
        };
        notices.take(b"audit(1.2:5): auid=0 ses=1 op=add_rule key=\"w\" list=4 res=0");
        assert!(!notices.is_changed);
    }

    #[test]
    fn nothing_is_noticed_while_no_rules_are_shown() {
        let mut notices = ListNotices::default();
        notices.take(b"audit(1.2:5): op=add_rule key=(null) list=4 res=1");
        assert!(!notices.is_changed);
        notices.is_shown = true;
        notices.take(b"audit(1.2:5): op=set audit_backlog_limit=9 old=8 res=1");
        assert!(!notices.is_changed);
        notices.take(b"audit(1.2:5): op=set audit_enabled=0 old=1 res=1");
        assert!(notices.is_changed);
    }
}
