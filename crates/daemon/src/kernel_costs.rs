//! What rules cost under the kernel engine. The kernel reports the key of an event's rule, not the
//! rule itself.

use crate::protocol::RuleCost;
use event::text;
use rules::{List, Rule};
use std::collections::HashMap;

/// Number of events and bytes by key, with the key as it is in the log.
#[derive(Debug, Default)]
pub(super) struct KernelCosts {
    by_key: HashMap<Vec<u8>, (u64, u64)>,
}

/// Limit of counted keys. Rules have no more, and other records must not fill the memory.
const KEYS_MAX: usize = 16384;
const SYSCALL: u16 = 1300;
const URINGOP: u16 = 1336;

/// The value of `key` in a record, if the record is of a kind that rules select.
pub(super) fn key_of(kind: u16, body: &[u8]) -> Option<&[u8]> {
    if !matches!(kind, SYSCALL | URINGOP) {
        return None;
    }
    let key = text::fields(body).filter(|field| field.name == b"key");
    key.last().map(|field| field.value)
}

impl KernelCosts {
    /// Counts an event with this key that was written.
    pub(super) fn count(&mut self, key: &[u8], bytes: usize) {
        if !self.by_key.contains_key(key) && self.by_key.len() >= KEYS_MAX {
            return;
        }
        let (events, sum) = self.by_key.entry(key.to_vec()).or_default();
        *events += 1;
        *sum += bytes as u64;
    }

    /// One row for each key of recording rules, most bytes first. A row for a key of several rules
    /// says so.
    pub(super) fn table(&self, rules: &[Rule]) -> Vec<RuleCost> {
        let mut rows: Vec<(Option<&[u8]>, RuleCost, usize)> = Vec::new();
        let can_record = |rule: &Rule| {
            rule.action == rules::Action::Always && matches!(rule.list, List::Exit | List::IoUring)
        };
        let recording = rules
            .iter()
            .enumerate()
            .filter(|(_, rule)| can_record(rule));
        for (place, rule) in recording {
            let key = rule.key();
            if let Some((_, row, count)) = rows.iter_mut().find(|(known, ..)| *known == key) {
                *count += 1;
                row.rule = format!("{count} rules with this key");
                continue;
            }
            let counted = self.by_key.get(&logged(key));
            let (events, bytes) = counted.copied().unwrap_or_default();
            let row = RuleCost {
                position: place + 1,
                key: key.map(|key| String::from_utf8_lossy(key).replace('\u{1}', ",")),
                rule: rule.to_string(),
                events,
                bytes,
                ..RuleCost::default()
            };
            rows.push((key, row, 1));
        }
        let mut table: Vec<RuleCost> = rows.into_iter().map(|(_, row, _)| row).collect();
        table.sort_by_key(|row| std::cmp::Reverse(row.bytes));
        table
    }
}

/// A key as the kernel logs it: `audit_log_untrustedstring()` in `kernel/audit.c`.
pub(super) fn logged(key: Option<&[u8]>) -> Vec<u8> {
    let Some(key) = key else {
        return b"(null)".to_vec();
    };
    if key
        .iter()
        .all(|byte| matches!(byte, 0x21..=0x7e) && *byte != b'"')
    {
        return [b"\"", key, b"\""].concat();
    }
    key.iter()
        .flat_map(|byte| format!("{byte:02X}").into_bytes())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Vec<Rule> {
        let (commands, errors) = rules::parse_file("test", text, &rules::SystemHost);
        assert!(errors.is_empty(), "{errors:?}");
        let rule = |(_, command)| match command {
            rules::Command::Append(rule) => Some(rule),
            _ => None,
        };
        commands.into_iter().filter_map(rule).collect()
    }

    #[test]
    fn events_are_counted_by_the_key_of_their_rules() {
        let rules = parse(
            "-a never,exit -F arch=b64 -S read\n\
             -a always,exit -F arch=b64 -S mkdir -k one -k two\n\
             -a always,exit -F arch=b64 -S rmdir -k shared\n\
             -a always,exit -F arch=b64 -S chdir -k shared\n\
             -a always,exit -F arch=b64 -S chroot\n",
        );
        let mut costs = KernelCosts::default();
        for (body, bytes) in [
            (
                &b"arch=c000003e syscall=83 comm=\"a\" key=6F6E650174776F"[..],
                100,
            ),
            (b"arch=c000003e syscall=84 comm=6B6579 key=\"shared\"", 10),
            (b"arch=c000003e syscall=161 key=(null)", 1),
        ] {
            let key = key_of(SYSCALL, body).expect("a key");
            costs.count(key, bytes);
        }
        assert_eq!(key_of(1302, b"item=0 key=\"shared\""), None);
        let table = costs.table(&rules);
        let rows: Vec<_> = table
            .iter()
            .map(|row| (row.position, row.key.as_deref(), row.events, row.bytes))
            .collect();
        assert_eq!(
            rows,
            [
                (2, Some("one,two"), 1, 100),
                (3, Some("shared"), 1, 10),
                (5, None, 1, 1),
            ]
        );
        assert_eq!(table[1].rule, "2 rules with this key");
    }
}
