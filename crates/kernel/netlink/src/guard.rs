//! The guard: a rule that keeps the kernel from matching those that its list only shows.

use std::collections::BTreeSet;

use super::message::RULE_BYTES_MIN;

/// `AUDIT_FILTER_EXIT` and `AUDIT_FILTER_URING_EXIT`: the lists that decide about calls and io_uring operations.
pub(super) const EXIT: u32 = 4;
pub(super) const URING_EXIT: u32 = 7;
/// Words of a rule's mask that are set for all calls; the bits of the last one stand for classes of calls.
const MASK_WORDS: std::ops::Range<usize> = 3..66;

/// What is known of the kernel's list.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// The guards that were loaded.
    pub(super) guards: Vec<Vec<u8>>,
    /// All rules but guards, as far as they have been taken for known, once ours are shown. What others change while we
    /// change the list is not among them.
    pub(super) listed: Option<BTreeSet<Vec<u8>>>,
}

/// The rule `-a never,LIST -S all` as `struct audit_rule_data`.
pub(super) fn guard(list: u32) -> Vec<u8> {
    let mut rule = vec![0; RULE_BYTES_MIN];
    rule[..4].copy_from_slice(&list.to_ne_bytes());
    rule[MASK_WORDS.start * 4..MASK_WORDS.end * 4].fill(0xff);
    rule
}

/// Whether a listed rule only keeps the kernel from matching others.
pub(super) fn is_guard(rule: &[u8]) -> bool {
    [EXIT, URING_EXIT].iter().any(|list| guard(*list) == rule)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guard_is_known_and_a_rule_with_a_key_or_condition_is_not_one() {
        assert!(is_guard(&guard(EXIT)) && is_guard(&guard(URING_EXIT)));
        let mut keyed = guard(EXIT);
        keyed.extend(b"key");
        let mut conditional = guard(EXIT);
        conditional[8] = 1;
        let mut some_calls = guard(EXIT);
        some_calls[12] = 0xfe;
        for other in [keyed, conditional, some_calls, guard(0), Vec::new()] {
            assert!(!is_guard(&other));
        }
    }
}
