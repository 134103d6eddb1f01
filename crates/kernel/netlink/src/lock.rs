//! The kernel's lock (`auditctl -e 2`), which nobody can take back before the next boot, and the digest that binds
//! rules to it which are not in the kernel's list themselves.
//!
//! Once `enabled` is 2, the kernel refuses every change of its rules, of its limits and of `enabled`
//! (`audit_netlink_ok()`, `audit_receive_msg()` and `audit_set_enabled()` in kernel/audit.c). So a rule that is loaded
//! just before keeps what it says until the next boot. The rule that is used matches nothing that the rule `never,task`
//! before it has left, and has the digest as its key.

use super::client::AuditSocket;
use super::error::NetlinkError;
use super::guard::is_guard;
use super::message::{is_never_task_rule, RULE_BYTES_MIN};

/// Value of `enabled` that locks.
pub const LOCKED: u32 = 2;
/// Prefix of the key with a digest.
const KEY_PREFIX: &str = "tarsier-locked-";

const FILTER_TASK: u32 = 1;
/// `AUDIT_FILTERKEY`
const FIELD_KEY: u32 = 210;
/// `AUDIT_EQUAL`
const EQUAL: u32 = 0x4000_0000;
/// Places of the members of `struct audit_rule_data`, in words of four bytes.
const FIELD_COUNT: usize = 2;
const FIELDS: usize = 3 + 64;
const VALUES: usize = FIELDS + 64;
const FIELD_FLAGS: usize = VALUES + 64;
const TEXT_LEN: usize = FIELD_FLAGS + 64;

/// What the kernel's list says about its lock.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelLock {
    /// Digests of rules elsewhere that are bound to it.
    pub digests: Vec<String>,
    /// Whether `never,task` is among the rules.
    pub has_never_task: bool,
    /// All other rules that the kernel may match, as `struct audit_rule_data`.
    pub rules: Vec<Vec<u8>>,
}

impl KernelLock {
    /// The lock; `None` if audit is not locked.
    ///
    /// # Errors
    /// The kernel cannot be asked: CAP_AUDIT_CONTROL is missing, or the kernel has no audit.
    pub fn find() -> Result<Option<KernelLock>, NetlinkError> {
        let mut socket = AuditSocket::open()?;
        if socket.status()?.enabled != LOCKED {
            return Ok(None);
        }

        let mut lock = KernelLock::default();
        for rule in socket.list_rules()? {
            if let Some(digest) = digest_of(&rule) {
                lock.digests.push(digest);
            } else if is_never_task_rule(&rule) {
                lock.has_never_task = true;
            } else if !is_guard(&rule) {
                lock.rules.push(rule);
            }
        }

        Ok(Some(lock))
    }
}

/// The rule `-a never,task -F key=tarsier-locked-DIGEST` as `struct audit_rule_data`.
pub(crate) fn digest_rule(digest: &str) -> Vec<u8> {
    let key = format!("{KEY_PREFIX}{digest}");
    let len = key.len() as u32;
    let mut rule = vec![0; RULE_BYTES_MIN];
    let members = [
        (0, FILTER_TASK),
        (FIELD_COUNT, 1),
        (FIELDS, FIELD_KEY),
        (VALUES, len),
        (FIELD_FLAGS, EQUAL),
        (TEXT_LEN, len),
    ];

    for (word, value) in members {
        rule[word * 4..word * 4 + 4].copy_from_slice(&value.to_ne_bytes());
    }

    rule.extend(key.into_bytes());
    rule
}

/// Whether a listed rule only has a digest.
pub(super) fn is_digest_rule(rule: &[u8]) -> bool {
    digest_of(rule).is_some()
}

/// The digest that a listed rule has; `None` for other rules.
fn digest_of(rule: &[u8]) -> Option<String> {
    let key = std::str::from_utf8(rule.get(RULE_BYTES_MIN..)?).ok()?;
    let digest = key.strip_prefix(KEY_PREFIX)?;
    // The kernel compares no key, so that the rest has to be compared here.
    (digest_rule(digest).get(4..) == rule.get(4..) && rule.first() == Some(&(FILTER_TASK as u8)))
        .then(|| digest.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_read_from_its_rule_and_from_no_other() {
        let digest = "0f".repeat(32);
        let rule = digest_rule(&digest);
        assert_eq!(digest_of(&rule), Some(digest));
        assert!(!is_never_task_rule(&rule));

        // Another action, another list, another field.
        for (place, value) in [(4, 1), (0, 4), (FIELDS * 4, 1), (FIELD_COUNT * 4, 2)] {
            let mut other = rule.clone();
            other[place] = value;
            assert_eq!(digest_of(&other), None, "byte {place}");
        }
        assert_eq!(digest_of(&[]), None);
        assert_eq!(
            digest_of(&super::super::message::never_task_rule(false)),
            None
        );
    }
}
