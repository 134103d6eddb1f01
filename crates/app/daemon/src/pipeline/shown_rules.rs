//! Our rules in the kernel's own list, and what others change there.

use super::kernel_records::KernelRecords;
use crate::stderr::say;
use anyhow::Result;
use netlink::ListChange;
use rules::Rule;

/// A change of the list by others.
pub(crate) struct TakenChange {
    pub(crate) change: ListChange,
    /// Rules that somebody has removed.
    pub(crate) removed: Vec<Rule>,
    /// The kernel's `enabled`.
    pub(crate) enabled: u32,
}

impl KernelRecords {
    /// Shows `rules` in the kernel's list. Records that the kernel makes about this are not written.
    pub(crate) fn show_rules(&mut self, rules: &[Rule]) -> Result<()> {
        let is_logged = self.socket().status()?.enabled != 0;
        let bytes: Vec<_> = rules.iter().map(rules::to_kernel).collect();
        let shown = self.ownership.show_rules(&bytes)?;
        if is_logged {
            self.expect_rule_changes(&shown.changes);
        }

        if !self.notices.is_shown && shown.others > 0 {
            say!(
                "tarsier: {} rules of the kernel's list are not Tarsier's, and are not in force for programs that start \
                 from now on: `auditctl -l` shows them; add them to the rules, or delete them",
                shown.others
            );
        }
        self.notices.is_shown = true;
        if shown.refused != self.hidden {
            self.hidden = shown.refused;
            if self.hidden > 0 {
                say!(
                    "tarsier: {} of the rules are in force and not in the kernel's list, which does not take them: \
                     paths that do not exist, fields that only Tarsier has",
                    self.hidden
                );
            }
        }
        Ok(())
    }

    /// Whether others have changed the list since it was last looked at; `is_due` has it looked at in any case.
    pub(crate) fn list_is_changed(&mut self, is_due: bool) -> bool {
        std::mem::take(&mut self.notices.is_changed) || is_due && self.notices.is_shown
    }

    /// The change of the list; `None` while the records about it are on their way.
    pub(crate) fn list_change(&mut self) -> Result<Option<TakenChange>> {
        let enabled = self.socket().status()?.enabled;
        let change = self.ownership.list_change()?;
        let gone = change.removed().into_iter();
        let gone: Vec<Rule> = gone
            .filter_map(|bytes| rules::from_kernel(bytes).ok())
            .collect();

        let Some(removers) = self.notices.removers(&gone) else {
            return Ok(None);
        };
        let removed = gone.into_iter().zip(removers);
        Ok(Some(TakenChange {
            change,
            removed: removed
                .filter_map(|(rule, is_removed)| is_removed.then_some(rule))
                .collect(),
            enabled,
        }))
    }

    /// Takes a change for known.
    pub(crate) fn accept_list(&mut self, change: ListChange) -> Result<()> {
        Ok(self.ownership.accept_list(change)?)
    }
}
