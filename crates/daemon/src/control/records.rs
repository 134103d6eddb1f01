//! The text of records about changes, with the fields in the kernel's order.

use super::draft::Change;
use crate::daemon_records::Who;
use event::put;

/// `AUDIT_USER`
pub(super) const USER: u16 = 1005;
/// `AUDIT_CONFIG_CHANGE`
pub(super) const CONFIG_CHANGE: u16 = 1305;

/// A rule that was added or removed: `audit_log_rule_change()` in kernel/auditfilter.c.
pub(super) fn rule_change(who: Who, change: &Change) -> Vec<u8> {
    let mut out = Vec::new();
    put::field(&mut out, "auid=", who.auid);
    put::field(&mut out, " ses=", who.ses);
    let op = match change.is_added {
        true => " op=add_rule key=",
        false => " op=remove_rule key=",
    };
    put::text(&mut out, op);
    put::untrusted_or_null(&mut out, change.rule.key());
    put::field(&mut out, " list=", change.rule.list as u32);
    put::field(&mut out, " res=", change.is_success.into());
    out
}

/// A changed setting: `audit_log_config_change()` in kernel/audit.c.
pub(super) fn setting(who: Who, name: &str, new: u32, old: u32) -> Vec<u8> {
    let Who { auid, ses, .. } = who;
    format!("op=set {name}={new} old={old} auid={auid} ses={ses} res=1").into_bytes()
}

/// A message from a program: `audit_log_common_recv_msg()` in kernel/audit.c.
pub(super) fn user_message(who: Who, text: &str) -> Vec<u8> {
    let Who {
        auid,
        uid,
        ses,
        pid,
    } = who;
    // A newline would start another record.
    let text = text.replace(|letter: char| letter.is_control(), " ");
    format!("pid={pid} uid={uid} auid={auid} ses={ses} msg='{text}'").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rules::{Command, Source, SystemHost};

    #[test]
    fn a_rule_change_has_the_kernel_s_fields_in_its_order() {
        let line = "-a always,exit -F arch=b64 -S open -k opens";
        let Ok(Some(Command::Append(rule))) =
            rules::parse_line(line, &Source::default(), &SystemHost)
        else {
            panic!("not a rule");
        };
        let who = Who {
            auid: u32::MAX,
            uid: 0,
            ses: 7,
            pid: 1,
        };
        let change = Change {
            is_added: true,
            is_success: true,
            rule,
        };
        assert_eq!(
            String::from_utf8(rule_change(who, &change)).unwrap(),
            "auid=4294967295 ses=7 op=add_rule key=\"opens\" list=4 res=1"
        );
        let message = String::from_utf8(user_message(who, "text=a\nb")).unwrap();
        assert_eq!(message, "pid=1 uid=0 auid=4294967295 ses=7 msg='text=a b'");
    }
}
