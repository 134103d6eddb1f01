//! The rules in the kernel's own list (`--kernel-list`): what others change there is taken over.

use super::Control;
use crate::control::asker::Asker;
use crate::control::ControlSocket;
use crate::event_loop::recording::Recording;
use crate::start::rules_at_start;
use crate::stderr::{reasons, say};
use anyhow::Result;
use netlink::{ListChange, LOCKED};
use rules::{List, Rule};

/// Shows `rules` in the kernel's list, if that is wanted.
pub(crate) fn show(rules: &[Rule], recording: &mut Recording) {
    // The kernel engine has its rules there anyway.
    if !recording.settings.sources.shows_rules || recording.pipeline.is_kernel_engine() {
        return;
    }
    let Some(kernel) = recording.pipeline.kernel_mut() else {
        return;
    };
    if let Err(error) = kernel.show_rules(rules) {
        say!(
            "tarsier: the kernel's list does not show the rules: {}",
            reasons(&error)
        );
    }
}

impl Control {
    /// Follows what others have changed in the kernel's list since the last call. `is_due` is true once a second: then
    /// the list is also looked at if its changes are not in records.
    pub(crate) fn follow_list(
        &mut self,
        is_due: bool,
        recording: &mut Recording,
        others: &mut ControlSocket,
    ) {
        // The kernel logs changes only while audit is on, and rules of the exclude list may leave the records out.
        let is_unlogged = is_due
            && (self.enabled == 0 || self.rules.iter().any(|rule| rule.list == List::Exclude));
        let Some(kernel) = recording.pipeline.kernel_mut() else {
            return;
        };
        if self.enabled == LOCKED || !kernel.list_is_changed(is_unlogged) {
            return;
        }

        if let Err(error) = self.take_list(recording, others) {
            say!(
                "tarsier: a change of the kernel's rules is not taken over, and is undone: {}",
                reasons(&error)
            );
            show(&self.rules, recording);
        }
    }

    fn take_list(&mut self, recording: &mut Recording, others: &mut ControlSocket) -> Result<()> {
        let Some(kernel) = recording.pipeline.kernel_mut() else {
            return Ok(());
        };
        let Some(taken) = kernel.list_change()? else {
            return Ok(());
        };
        let rules = changed(&self.rules, &taken.change, &taken.removed);
        let is_other = !are_same(&rules, &self.rules);
        kernel.accept_list(taken.change)?;

        // The kernel has logged who made the change.
        if is_other || taken.enabled.min(1) != self.enabled {
            let is_empty = rules.is_empty();
            self.install(
                rules,
                taken.enabled,
                &Asker::this_process(),
                recording,
                others,
            )?;
            if is_empty {
                recording.rules_are(rules_at_start::in_force_of_requests(&self.rules));
            }
        } else {
            // Guards may be gone, or behind a rule that was put before them.
            show(&self.rules, recording);
        }
        Ok(())
    }
}

/// The rules after a change of the list that has shown them: those of the list in its order. A rule that is not shown, or
/// that is missing without being among the `removed` ones, stays behind the one before it.
fn changed(rules: &[Rule], change: &ListChange, removed: &[Rule]) -> Vec<Rule> {
    let is_gone = |rule: &Rule| removed.iter().any(|gone| gone.same(rule));
    let listed: Vec<(Rule, bool)> = change.now.iter().filter_map(|bytes| {
        let rule = rules::from_kernel(bytes);
        if rule.is_err() && !change.before.contains(bytes) {
            say!("tarsier: a rule that this version does not know was added to the kernel's list: it is not in force");
        }
        Some((rule.ok()?, !change.before.contains(bytes)))
    }).collect();

    // Rules that only we have, by the one of the list that they follow.
    let mut first = Vec::new();
    let mut following: Vec<Vec<Rule>> = vec![Vec::new(); listed.len()];
    let mut place = None;
    let mut known: Vec<Option<&Rule>> = vec![None; listed.len()];
    for rule in rules {
        match listed.iter().position(|(other, _)| other.same(rule)) {
            Some(found) => {
                known[found] = Some(rule);
                place = Some(found);
            }
            None if is_gone(rule) => {}
            None => place
                .map_or(&mut first, |place: usize| &mut following[place])
                .push(rule.clone()),
        }
    }

    let mut all = first;
    for (((rule, is_new), ours), following) in listed.into_iter().zip(known).zip(following) {
        match ours {
            // With its place in a file.
            Some(ours) => all.push(ours.clone()),
            None if is_new => all.push(named(rule)),
            // Somebody else's, from before the start.
            None => {}
        }
        all.extend(following);
    }
    all
}

fn named(mut rule: Rule) -> Rule {
    rule.source.file = "auditctl".to_owned();
    rule.source.line = 0;
    rule
}

/// Whether each list has the same rules in the same order.
fn are_same(rules: &[Rule], others: &[Rule]) -> bool {
    let of = |rules: &[Rule], list: List| -> Vec<Rule> {
        rules
            .iter()
            .filter(|rule| rule.list == list)
            .cloned()
            .collect()
    };
    List::EVERY.iter().all(|&list| {
        let (these, those) = (of(rules, list), of(others, list));
        these.len() == those.len() && these.iter().zip(&those).all(|(this, that)| this.same(that))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rule(key: &str) -> Rule {
        let line = format!("-a always,exit -F arch=b64 -S open -F key={key}");
        match rules::parse_line(&line, &rules::Source::default(), &rules::SystemHost) {
            Ok(Some(rules::Command::Append(rule))) => rule,
            other => panic!("{line}: {other:?}"),
        }
    }

    fn set(keys: &str) -> Vec<Rule> {
        keys.chars().map(|key| rule(&key.to_string())).collect()
    }

    fn keys(rules: &[Rule]) -> String {
        let keys = rules.iter().map(|rule| rule.key().unwrap_or_default());
        keys.map(|key| String::from_utf8_lossy(key).into_owned())
            .collect()
    }

    /// The rules `ours` after the list, which was `before`, is `now`, and these rules were removed by somebody.
    fn after(ours: &str, before: &str, now: &str, removed: &str) -> String {
        let change = ListChange {
            before: set(before).iter().map(rules::to_kernel).collect(),
            now: set(now).iter().map(rules::to_kernel).collect(),
        };
        keys(&changed(&set(ours), &change, &set(removed)))
    }

    #[test]
    fn the_list_decides_what_is_in_force_and_in_which_order() {
        assert_eq!(after("abc", "abc", "xacyb", ""), "xacyb");
        assert_eq!(after("abc", "abc", "ac", "b"), "ac");
        assert_eq!(after("ab", "ab", "", "ab"), "");
        // Taken out and added again, between two looks.
        assert_eq!(after("ab", "ab", "ba", ""), "ba");
    }

    #[test]
    fn what_the_kernel_does_not_show_or_has_removed_itself_stays_and_rules_of_others_do_not_come_in(
    ) {
        assert_eq!(after("1a2b3", "ab", "ba", ""), "1b3a2");
        assert_eq!(after("ab", "ab", "b", ""), "ab");
        assert_eq!(after("a", "oa", "oab", ""), "ab");
        assert_eq!(after("a1", "a", "", "a"), "1");
    }

    proptest! {
        #[test]
        fn if_all_rules_are_shown_ours_become_the_list(
            before in proptest::sample::subsequence("abcdefgh".chars().collect::<Vec<_>>(), 0..8).prop_shuffle(),
            now in proptest::sample::subsequence("abcdefgh".chars().collect::<Vec<_>>(), 0..8).prop_shuffle(),
        ) {
            let (before, now) = (String::from_iter(before), String::from_iter(now));
            let removed: String = before.chars().filter(|key| !now.contains(*key)).collect();
            prop_assert_eq!(after(&before, &before, &now, &removed), now);
        }
    }
}
