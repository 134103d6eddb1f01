//! The text of records about changes, with the fields in the kernel's order. The kernel's records name the asker by
//! auid, ses and subj, and leave the rest to the SYSCALL record; these contain everything that is known of the asker.

use super::draft::RuleChange;
use crate::control::asker::Asker;
use abi::RecordType;
use capture::HookChange;
use record::put;

/// Type of a message that a program sends.
pub(super) const USER: u16 = RecordType::USER.netlink();
/// Type of a record of a change of auditing.
pub(crate) const CONFIG_CHANGE: u16 = RecordType::CONFIG_CHANGE.netlink();

/// A rule that was added or removed: `audit_log_rule_change()` in kernel/auditfilter.c.
pub(super) fn rule_change(by: &Asker, change: &RuleChange) -> Vec<u8> {
    let mut out = Vec::new();
    by.put(&mut out);
    let op = if change.is_added {
        " op=add_rule key="
    } else {
        " op=remove_rule key="
    };

    put::text(&mut out, op);
    put::untrusted_or_null(&mut out, change.rule.key());
    put::field(&mut out, " list=", change.rule.list as u32);
    put::field(&mut out, " res=", change.is_success.into());
    out
}

/// A changed setting: `audit_log_config_change()` in kernel/audit.c.
pub(super) fn setting(by: &Asker, name: &str, new: u32, old: u32) -> Vec<u8> {
    let mut out = format!("op=set {name}={new} old={old} ").into_bytes();
    by.put(&mut out);
    put::text(&mut out, " res=1");
    out
}

/// What the lock (`-e 2`) has refused; `op` is a word and the fields behind it. The kernel logs its own refusals so,
/// too: `audit_receive_msg()` and `audit_log_config_change()` in kernel/audit.c.
pub(crate) fn refused(by: &Asker, op: &str) -> Vec<u8> {
    let mut out = format!("op={op} ").into_bytes();
    by.put(&mut out);
    put::text(&mut out, " res=0");
    out
}

/// Rules that are locked until the next boot: their number and digest.
pub(crate) fn locked(by: &Asker, rules: usize, digest: &str) -> Vec<u8> {
    let mut out = format!("op=lock_rules rules={rules} rules_digest={digest} ").into_bytes();
    by.put(&mut out);
    put::text(&mut out, " res=1");
    out
}

/// Effect of a change of rules on the hooks, in place of the kernel's BPF records of it.
pub(crate) fn armed(by: &Asker, change: &HookChange) -> Vec<u8> {
    let HookChange {
        hooks,
        armed,
        removed,
    } = change;
    let mut out = format!("op=arm hooks={hooks} armed={armed} removed={removed} ").into_bytes();
    by.put(&mut out);
    put::text(&mut out, " res=1");
    out
}

/// A message from a program: `audit_log_common_recv_msg()` in kernel/audit.c.
pub(super) fn user_message(by: &Asker, text: &str) -> Vec<u8> {
    let who = by.who;
    let (pid, uid, auid, ses) = (who.pid, who.uid, who.auid, who.ses);
    let mut out = format!("pid={pid} uid={uid} auid={auid} ses={ses}").into_bytes();
    by.put_subj(&mut out);
    // A newline would start another record.
    let text = text.replace(|letter: char| letter.is_control(), " ");
    put::text(&mut out, &format!(" msg='{text}'"));
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::daemon_records::Who;
    use rules::{Command, Source, SystemHost};

    #[test]
    fn records_of_changes_have_the_kernel_s_fields_in_its_order() {
        let line = "-a always,exit -F arch=b64 -S open -k opens";
        let Ok(Some(Command::Append(rule))) =
            rules::parse_line(line, &Source::default(), &SystemHost)
        else {
            panic!("not a rule");
        };
        let by = Asker::of(
            Who {
                auid: u32::MAX,
                uid: 0,
                ses: 7,
                // No process has this number (PID_MAX_LIMIT).
                pid: 1 << 30,
            },
            |_| None,
        );
        let change = RuleChange {
            is_added: true,
            is_success: true,
            rule,
        };
        let text = |record: Vec<u8>| String::from_utf8(record).unwrap();
        let asker = "auid=4294967295 ses=7 pid=1073741824 uid=0 tty=(none) comm=(null) exe=(null)";
        assert_eq!(
            text(rule_change(&by, &change)),
            format!("{asker} op=add_rule key=\"opens\" list=4 res=1")
        );
        assert_eq!(
            text(setting(&by, "audit_rate_limit", 5, 0)),
            format!("op=set audit_rate_limit=5 old=0 {asker} res=1")
        );
        let change = HookChange {
            hooks: 5,
            armed: 3,
            removed: 1,
        };
        assert_eq!(
            text(armed(&by, &change)),
            format!("op=arm hooks=5 armed=3 removed=1 {asker} res=1")
        );
        assert_eq!(
            text(user_message(&by, "text=a\nb")),
            "pid=1073741824 uid=0 auid=4294967295 ses=7 msg='text=a b'"
        );
    }
}
