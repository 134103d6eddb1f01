//! Costs of rules and makers of events under the kernel engine. The kernel reports the key of an event's rule, not the
//! rule itself, and no cgroup.

use crate::account::maker_costs::MakerCosts;
use crate::protocol::{unhex, RuleCost};
use abi::RecordType;
use compose::Maker;
use record::text;
use rules::{List, Rule};
use std::collections::HashMap;

/// Costs of events of the kernel's rules.
#[derive(Debug, Default)]
pub(crate) struct KernelCosts {
    /// Number of events and bytes by key, with the key as it is in the log.
    by_key: HashMap<Vec<u8>, (u64, u64)>,
    pub(crate) makers: MakerCosts,
}

/// Values in a record of an event, as they are in the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct EventOrigin<'a> {
    /// Key of the rule.
    key: &'a [u8],
    uid: &'a [u8],
    exe: &'a [u8],
}

/// Limit of counted keys. Rules have no more, and other records must not fill the memory.
const KEYS_MAX: usize = 16384;
const SYSCALL: u16 = RecordType::SYSCALL.netlink();
const URINGOP: u16 = RecordType::URINGOP.netlink();

/// Values in a record of an event; `None` unless it has a key and is of a kind that rules select.
pub(crate) fn told(kind: u16, body: &[u8]) -> Option<EventOrigin<'_>> {
    if !matches!(kind, SYSCALL | URINGOP) {
        return None;
    }

    let (mut told, mut key) = (EventOrigin::default(), None);
    for field in text::fields(body) {
        match field.name {
            b"key" => key = Some(field.value),
            b"uid" => told.uid = field.value,
            b"exe" => told.exe = field.value,
            _ => {}
        }
    }

    key.map(|key| EventOrigin { key, ..told })
}

/// A path as it was before it was logged: `audit_log_untrustedstring()` in `kernel/audit.c`. `None` for `(null)`.
fn path(logged: &[u8]) -> Option<Vec<u8>> {
    match logged {
        [b'"', path @ .., b'"'] => Some(path.to_vec()),
        // The kernel quotes a path without special characters, and writes others in hexadecimal.
        _ => unhex(std::str::from_utf8(logged).ok()?).filter(|path| !path.is_empty()),
    }
}

impl KernelCosts {
    /// Counts an event that was written.
    pub(crate) fn count(&mut self, told: &EventOrigin<'_>, bytes: usize) {
        self.count_key(told.key, bytes);
        let uid = std::str::from_utf8(told.uid).ok();
        let exe = path(told.exe);
        let maker = Maker {
            uid: uid.and_then(|uid| uid.parse().ok()).unwrap_or(u32::MAX),
            cgroup_id: 0,
            exe: exe.as_deref().map(|path| (self.makers.hash(path), path)),
        };
        self.makers.recorded(&maker, bytes, || None);
    }

    fn count_key(&mut self, key: &[u8], bytes: usize) {
        if !self.by_key.contains_key(key) && self.by_key.len() >= KEYS_MAX {
            return;
        }
        let (events, sum) = self.by_key.entry(key.to_vec()).or_default();
        *events += 1;
        *sum += bytes as u64;
    }

    /// One row for each key of recording rules, most bytes first. A row for a key of several rules
    /// says so.
    pub(crate) fn table(&self, rules: &[Rule]) -> Vec<RuleCost> {
        let mut rows: Vec<(Option<&[u8]>, RuleCost, usize)> = Vec::new();
        let can_record = |rule: &Rule| {
            rule.action == rules::Action::Always && matches!(rule.list, List::Exit | List::IoUring)
        };
        let recording = rules
            .iter()
            .enumerate()
            .filter(|(_, rule)| can_record(rule));

        // The kernel names no rule, only its key: rules of one key share a row.
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
pub(crate) fn logged(key: Option<&[u8]>) -> Vec<u8> {
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
            let told = told(SYSCALL, body).expect("a key");
            costs.count(&told, bytes);
        }
        assert_eq!(told(1302, b"item=0 key=\"shared\""), None);
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

    #[test]
    fn uids_and_executables_are_counted_and_no_cgroup_is_guessed() {
        use crate::protocol::{MakerKind, MakerOrder};
        let mut costs = KernelCosts::default();
        for body in [
            &b"arch=c000003e uid=7 euid=0 comm=\"a\" exe=\"/bin/a\" key=(null)"[..],
            b"uid=7 comm=\"a\" exe=2F62696E2F6120 key=(null)",
            b"uid=unset exe=(null) key=(null)",
        ] {
            let told = told(SYSCALL, body).expect("a key");
            costs.count(&told, 10);
        }
        let mut names = |by| -> Vec<(String, u64)> {
            let table = costs.makers.table(by, MakerOrder::Bytes, 20, false);
            let rows = table.rows.into_iter();
            rows.map(|row| (row.name, row.events)).collect()
        };
        let row = |name: &str, events| (name.to_owned(), events);
        let unset = u32::MAX.to_string();
        assert_eq!(names(MakerKind::Uid), [row("7", 2), row(&unset, 1)]);
        assert_eq!(
            names(MakerKind::Exe),
            [row("/bin/a", 1), row("/bin/a ", 1), row("(none)", 1)]
        );
        assert_eq!(names(MakerKind::Unit), [row("(unknown)", 3)]);
    }
}
