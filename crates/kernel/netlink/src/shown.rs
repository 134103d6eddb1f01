//! Our rules in the kernel's own list, where auditctl shows and changes them.
//!
//! The kernel does not match them: a rule that matches every event and records none stands before them, the *guard*, in
//! each list that is matched for calls. Behind `never,task` it costs tasks that are born from now on nothing; older ones
//! match one rule instead of all.

use std::collections::{BTreeSet, HashSet};

use rustix::io::Errno;

use super::client::AuditSocket;
use super::error::{NetlinkError, TakeOverError};
use super::guard::{guard, is_guard, EXIT, URING_EXIT};
use super::lock::{is_digest_rule, LOCKED};
use super::message::{is_never_task_rule, never_task_rule};
use super::ownership::Ownership;
use super::rules::{word, Change};

/// Bytes of the last word of a rule's mask: its upper half has the bits of 16 classes of calls.
const CLASSES: std::ops::Range<usize> = 66 * 4..67 * 4;
/// `AUDIT_FILTER_PREPEND`
const PREPEND: u32 = 0x10;

/// What the kernel's list of our rules has become.
#[derive(Debug, Default)]
pub struct ShownRules {
    /// Rules added and deleted, in order.
    pub changes: Vec<Change>,
    /// Number of rules that the kernel does not take: what they name does not exist, or it does not know their fields.
    pub refused: usize,
    /// Number of rules that are in the list since before ours were shown, and are not among these.
    pub others: usize,
}

/// The kernel's list at two times, each rule as `struct audit_rule_data` with its strings.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ListChange {
    /// The rules of the list as it was last known.
    pub before: BTreeSet<Vec<u8>>,
    /// The list as it is, in the kernel's order.
    pub now: Vec<Vec<u8>>,
}

impl ListChange {
    /// The rules that are gone.
    pub fn removed(&self) -> Vec<&Vec<u8>> {
        let now: HashSet<&Vec<u8>> = self.now.iter().collect();
        let before = self.before.iter();
        before.filter(|rule| !now.contains(rule)).collect()
    }

    /// The rules that were not there before, in order.
    pub fn added(&self) -> Vec<&Vec<u8>> {
        let is_new = |rule: &&Vec<u8>| !self.before.contains(*rule);
        self.now.iter().filter(is_new).collect()
    }
}

impl Ownership {
    /// Puts `rules` into the kernel's list, in this order, behind guards. Rules of others stay where they are.
    ///
    /// # Errors
    /// The kernel cannot be asked or changed. Nothing is changed where audit is locked.
    pub fn show_rules(&mut self, rules: &[Vec<u8>]) -> Result<ShownRules, TakeOverError> {
        let rules: Vec<Vec<u8>> = rules.iter().map(|rule| as_listed(rule)).collect();
        let rules = &rules[..];
        if self.socket.status()?.enabled == LOCKED {
            return Ok(ShownRules::default());
        }

        // Guards first: the kernel matches no rule for a moment.
        let mut shown = ShownRules {
            changes: self.guard(rules)?,
            ..ShownRules::default()
        };

        // Until the end the file names all that may be loaded: after a kill, all of it has to be deleted.
        let old = std::mem::take(&mut self.loaded);
        self.loaded = old.iter().chain(rules).cloned().collect();
        self.save()?;

        // Somebody may change the list at the same time. So it is not listed again afterwards: known is what was known,
        // with each change of ours.
        let mut listed: BTreeSet<Vec<u8>> = self.listed()?.into_iter().collect();
        let known = self.known.listed.get_or_insert_with(|| listed.clone());

        let same = same_beginning(&old, rules);
        for rule in old.iter().filter(|rule| !same.contains(rule)).rev() {
            if delete(&mut self.socket, rule)? {
                shown.changes.push(change(rule, false));
            }
            listed.remove(rule);
            known.remove(rule);
        }

        let mut loaded = Vec::new();
        for rule in rules {
            // Somebody else's rule stays at the end. To add it again would be a refusal in the log.
            let is_others = !same.contains(rule) && listed.contains(rule);
            if !same.contains(rule) && !is_others {
                match self.socket.add_rule(rule) {
                    Ok(()) => shown.changes.push(change(rule, true)),
                    Err(error) if error.errno() == Some(Errno::EXIST) => {}
                    Err(NetlinkError::Refused { .. }) => {
                        shown.refused += 1;
                        continue;
                    }
                    Err(error) => return Err(error.into()),
                }
            }

            known.insert(rule.clone());
            if !is_others {
                loaded.push(rule.clone());
            }
        }
        let ours: HashSet<&Vec<u8>> = rules.iter().collect();
        shown.others = known.iter().filter(|rule| !ours.contains(rule)).count();

        self.loaded = loaded;
        self.save()?;
        Ok(shown)
    }

    /// The list since the last change that was [accepted](Self::accept_list).
    ///
    /// # Errors
    /// The kernel cannot be asked.
    pub fn list_change(&mut self) -> Result<ListChange, NetlinkError> {
        let now = self.listed()?;
        let known = self.known.listed.clone();
        Ok(ListChange {
            before: known.unwrap_or_else(|| now.iter().cloned().collect()),
            now,
        })
    }

    /// Takes `change` for known. What others added is ours from now on: it is deleted at the end.
    ///
    /// # Errors
    /// The state file cannot be written.
    pub fn accept_list(&mut self, change: ListChange) -> Result<(), TakeOverError> {
        let ours: HashSet<&Vec<u8>> = self.loaded.iter().chain(change.added()).collect();
        let loaded = change.now.iter().filter(|rule| ours.contains(rule));
        self.loaded = loaded.cloned().collect();
        self.known.listed = Some(change.now.into_iter().collect());
        self.save()
    }

    /// Makes `never,task` and the guards that `rules` need the first of their lists. Returns the changes.
    fn guard(&mut self, rules: &[Vec<u8>]) -> Result<Vec<Change>, TakeOverError> {
        let mut wanted = vec![never_task_rule(false), guard(EXIT)];
        // Kernels before 5.16 do not know that list.
        if rules.iter().any(|rule| word(rule, 0) == URING_EXIT) {
            wanted.push(guard(URING_EXIT));
        }

        let listed = self.socket.list_rules()?;
        let mut changes = Vec::new();
        for rule in wanted {
            let list = word(&rule, 0);
            let is_it = |other: &Vec<u8>| {
                *other == rule || is_never_task_rule(other) && is_never_task_rule(&rule)
            };
            let mut of_list = listed.iter().filter(|other| word(other, 0) == list);
            if of_list.clone().next().is_some_and(is_it) {
                continue;
            }

            if is_guard(&rule) && !self.known.guards.contains(&rule) {
                self.known.guards.push(rule.clone());
                self.save()?;
            }
            // The kernel has each rule once.
            if let Some(later) = of_list.find(|other| is_it(other)) {
                if delete(&mut self.socket, later)? {
                    changes.push(change(&rule, false));
                }
            }
            let mut first = rule.clone();
            first[..4].copy_from_slice(&(list | PREPEND).to_ne_bytes());
            match self.socket.add_rule(&first) {
                Ok(()) => changes.push(change(&rule, true)),
                // A kernel without the list has no rules of it, either.
                Err(NetlinkError::Refused { .. }) if list == URING_EXIT => {}
                Err(error) => return Err(error.into()),
            }
        }

        Ok(changes)
    }

    /// The kernel's rules without those that only keep it from matching others, or have a digest.
    fn listed(&mut self) -> Result<Vec<Vec<u8>>, NetlinkError> {
        let mut rules = self.socket.list_rules()?;
        rules.retain(|rule| !is_guard(rule) && !is_never_task_rule(rule) && !is_digest_rule(rule));

        // `-A` adds a rule that is there already once more; the first decides.
        let mut seen = HashSet::new();
        rules.retain(|rule| seen.insert(rule.clone()));
        Ok(rules)
    }
}

/// The rule as the kernel lists it: it takes the bits that stand for classes of calls out of the mask, after it has set
/// those of their calls (`audit_to_entry_common()` in kernel/auditfilter.c).
fn as_listed(rule: &[u8]) -> Vec<u8> {
    let mut rule = rule.to_vec();
    if let Some(word) = rule.get_mut(CLASSES) {
        let bits = [word[0], word[1], word[2], word[3]];
        word.copy_from_slice(&(u32::from_ne_bytes(bits) & 0xffff).to_ne_bytes());
    }
    rule
}

/// Deletes a rule; returns whether it was there.
fn delete(socket: &mut AuditSocket, rule: &[u8]) -> Result<bool, NetlinkError> {
    match socket.delete_rule(rule) {
        Ok(()) => Ok(true),
        Err(error) if error.errno() == Some(Errno::NOENT) => Ok(false),
        Err(error) => Err(error),
    }
}

fn change(rule: &[u8], is_added: bool) -> Change {
    Change {
        is_added,
        rule: rule.to_vec(),
    }
}

/// The rules with which `old` and `new` both begin, list by list: these stay.
fn same_beginning<'a>(old: &'a [Vec<u8>], new: &[Vec<u8>]) -> HashSet<&'a Vec<u8>> {
    let lists: HashSet<u32> = old.iter().map(|rule| word(rule, 0)).collect();
    let of_lists = lists.into_iter().flat_map(|list| {
        let new = new.iter().filter(move |rule| word(rule, 0) == list);
        let old = old.iter().filter(move |rule| word(rule, 0) == list);
        old.zip(new)
            .take_while(|(old, new)| old == new)
            .map(|(old, _)| old)
    });
    of_lists.collect()
}

#[cfg(test)]
mod tests {
    use super::super::message::RULE_BYTES_MIN;
    use super::*;

    fn rule(list: u32, number: u8) -> Vec<u8> {
        let mut rule = vec![number; RULE_BYTES_MIN];
        rule[..4].copy_from_slice(&list.to_ne_bytes());
        rule
    }

    #[test]
    fn a_rule_on_all_calls_is_compared_as_the_kernel_lists_it() {
        let listed = as_listed(&[0xff; RULE_BYTES_MIN]);
        assert_eq!(
            listed[..CLASSES.start],
            [0xff; RULE_BYTES_MIN][..CLASSES.start]
        );
        assert_eq!(word(&listed, 66), 0xffff);
        assert_eq!(as_listed(&listed), listed);
        assert_eq!(as_listed(&[1, 2]), [1, 2]);
    }

    #[test]
    fn a_change_has_what_is_gone_and_what_came() {
        let [a, b, c] = [rule(4, 1), rule(4, 2), rule(5, 3)];
        let change = ListChange {
            before: [a.clone(), b.clone()].into(),
            now: vec![c.clone(), b],
        };
        assert_eq!((change.removed(), change.added()), (vec![&a], vec![&c]));
    }

    #[test]
    fn what_both_sets_begin_with_stays_list_by_list() {
        let [a, b, c, d] = [rule(4, 1), rule(4, 2), rule(5, 3), rule(4, 4)];
        let (old, new) = (
            [a.clone(), c.clone(), b.clone()],
            [a.clone(), d, b, c.clone()],
        );
        let same = same_beginning(&old, &new);
        assert!(same.len() == 2 && same.contains(&a) && same.contains(&c));
    }
}
