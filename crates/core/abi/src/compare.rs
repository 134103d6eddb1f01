//! Comparisons of two fields: `-C`, `AUDIT_COMPARE_*` of linux/audit.h.

use crate::Field;

/// One `AUDIT_COMPARE_*`: its number and the two fields, in the order in which auditctl lists them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compare {
    /// The kernel's number, 1 to 25.
    pub number: u32,
    /// The field on the left.
    pub left: Field,
    /// The field on the right.
    pub right: Field,
}

/// Every comparison that the kernel knows, by ascending number.
#[rustfmt::skip]
pub const COMPARES: [Compare; 25] = [
    Compare { number: 1, left: Field::Uid, right: Field::ObjUid },
    Compare { number: 2, left: Field::Gid, right: Field::ObjGid },
    Compare { number: 3, left: Field::Euid, right: Field::ObjUid },
    Compare { number: 4, left: Field::Egid, right: Field::ObjGid },
    Compare { number: 5, left: Field::Loginuid, right: Field::ObjUid },
    Compare { number: 6, left: Field::Suid, right: Field::ObjUid },
    Compare { number: 7, left: Field::Sgid, right: Field::ObjGid },
    Compare { number: 8, left: Field::Fsuid, right: Field::ObjUid },
    Compare { number: 9, left: Field::Fsgid, right: Field::ObjGid },
    Compare { number: 10, left: Field::Uid, right: Field::Loginuid },
    Compare { number: 11, left: Field::Uid, right: Field::Euid },
    Compare { number: 12, left: Field::Uid, right: Field::Fsuid },
    Compare { number: 13, left: Field::Uid, right: Field::Suid },
    Compare { number: 14, left: Field::Loginuid, right: Field::Fsuid },
    Compare { number: 15, left: Field::Loginuid, right: Field::Suid },
    Compare { number: 16, left: Field::Loginuid, right: Field::Euid },
    Compare { number: 17, left: Field::Euid, right: Field::Suid },
    Compare { number: 18, left: Field::Euid, right: Field::Fsuid },
    Compare { number: 19, left: Field::Suid, right: Field::Fsuid },
    Compare { number: 20, left: Field::Gid, right: Field::Egid },
    Compare { number: 21, left: Field::Gid, right: Field::Fsgid },
    Compare { number: 22, left: Field::Gid, right: Field::Sgid },
    Compare { number: 23, left: Field::Egid, right: Field::Fsgid },
    Compare { number: 24, left: Field::Egid, right: Field::Sgid },
    Compare { number: 25, left: Field::Sgid, right: Field::Fsgid },
];

impl Compare {
    /// The comparison with the kernel's number `number`.
    pub fn from_number(number: u32) -> Option<Compare> {
        COMPARES
            .into_iter()
            .find(|compare| compare.number == number)
    }

    /// The comparison of two fields, in either order.
    pub fn of(left: Field, right: Field) -> Option<Compare> {
        COMPARES.into_iter().find(|compare| {
            (compare.left, compare.right) == (left, right)
                || (compare.left, compare.right) == (right, left)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_run_from_1_and_order_does_not_matter() {
        for (index, compare) in COMPARES.into_iter().enumerate() {
            assert_eq!(compare.number as usize, index + 1);
            assert_eq!(Compare::of(compare.left, compare.right), Some(compare));
            assert_eq!(Compare::of(compare.right, compare.left), Some(compare));
            assert_eq!(Compare::from_number(compare.number), Some(compare));
        }
        assert_eq!(Compare::of(Field::Uid, Field::Gid), None);
        assert_eq!(Compare::from_number(26), None);
    }
}
