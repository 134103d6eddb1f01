//! `RestrictAddressFamilies=`

use super::super::unit::unquoted;
use super::{add, Unit};
use crate::policy::{Abi, Compare, Condition};
use crate::{Action, Verdict};

/// Address families by name (linux/socket.h), without AF_UNSPEC, which systemd does not know.
const FAMILIES: [(&str, u64); 47] = [
    ("AF_UNIX", 1),
    ("AF_LOCAL", 1),
    ("AF_INET", 2),
    ("AF_AX25", 3),
    ("AF_IPX", 4),
    ("AF_APPLETALK", 5),
    ("AF_NETROM", 6),
    ("AF_BRIDGE", 7),
    ("AF_ATMPVC", 8),
    ("AF_X25", 9),
    ("AF_INET6", 10),
    ("AF_ROSE", 11),
    ("AF_DECnet", 12),
    ("AF_NETBEUI", 13),
    ("AF_SECURITY", 14),
    ("AF_KEY", 15),
    ("AF_NETLINK", 16),
    ("AF_ROUTE", 16),
    ("AF_PACKET", 17),
    ("AF_ASH", 18),
    ("AF_ECONET", 19),
    ("AF_ATMSVC", 20),
    ("AF_RDS", 21),
    ("AF_SNA", 22),
    ("AF_IRDA", 23),
    ("AF_PPPOX", 24),
    ("AF_WANPIPE", 25),
    ("AF_LLC", 26),
    ("AF_IB", 27),
    ("AF_MPLS", 28),
    ("AF_CAN", 29),
    ("AF_TIPC", 30),
    ("AF_BLUETOOTH", 31),
    ("AF_IUCV", 32),
    ("AF_RXRPC", 33),
    ("AF_ISDN", 34),
    ("AF_PHONET", 35),
    ("AF_IEEE802154", 36),
    ("AF_CAIF", 37),
    ("AF_ALG", 38),
    ("AF_NFC", 39),
    ("AF_VSOCK", 40),
    ("AF_KCM", 41),
    ("AF_QIPCRTR", 42),
    ("AF_SMC", 43),
    ("AF_XDP", 44),
    ("AF_MCTP", 45),
];

/// `RestrictAddressFamilies=`: socket(2) with another family fails with EAFNOSUPPORT. 32-bit
/// x86 also creates sockets with socketcall(2), whose arguments filters cannot see: as in
/// systemd, the directive has no effect there.
pub(super) fn address_families(unit: &mut Unit<'_>) {
    let settings = unit.all("RestrictAddressFamilies");
    // `none` forbids all, and leaves it to the next line whether the list is one of allowed or of
    // denied families (systemd, `config_parse_address_families`).
    let mut listed: Option<Vec<u64>> = None;
    let mut is_allow_list = false;

    for setting in &settings {
        if setting.value == "none" {
            (listed, is_allow_list) = (None, true);
            continue;
        }
        let (inverted, list) = setting.inverted();
        let families = listed.get_or_insert_with(|| {
            is_allow_list = !inverted;
            Vec::new()
        });
        for name in unquoted(list) {
            let Some(&(_, family)) = FAMILIES
                .iter()
                .find(|row| row.0.eq_ignore_ascii_case(&name))
            else {
                let expected = "an address family such as AF_INET";
                unit.policy.notes.push(setting.ignored(&name, expected));
                continue;
            };
            families.retain(|&known| known != family);
            if inverted != is_allow_list {
                families.push(family);
            }
        }
    }

    let mut families = listed.unwrap_or_default();
    let Some(first) = settings.first() else {
        return;
    };
    if !is_allow_list && families.is_empty() {
        return;
    }

    families.sort_unstable();
    let id = unit.source(first.place());
    let mut layer = unit.permissive(first);
    let refusal = Verdict::new(Action::Errno, libc::EAFNOSUPPORT as u16);
    let conditions = if is_allow_list {
        outside(&families)
    } else {
        families
            .iter()
            .map(|&family| vec![equals(family)])
            .collect()
    };

    for abi in unit
        .family
        .clone()
        .into_iter()
        .filter(|&abi| abi != Abi::I386)
    {
        for conditions in &conditions {
            add(&mut layer, abi, "socket", conditions.clone(), refusal, id);
        }
    }

    if unit.family.contains(&Abi::I386) && unit.native != Abi::I386 {
        unit.policy.notes.push(format!(
            "{}: no effect on 32-bit x86, where socketcall hides the family; add \
             SystemCallArchitectures=native",
            first.place()
        ));
    }

    unit.policy.layers.push(layer);
}

/// Condition that the family is this one. The kernel takes it from the lower 32 bits.
fn equals(family: u64) -> Condition {
    Condition {
        arg: 0,
        compare: Compare::MaskedEq { mask: 0xffff_ffff },
        value: family,
    }
}

/// Alternatives, one of which holds for every family that is not listed.
fn outside(families: &[u64]) -> Vec<Vec<Condition>> {
    let condition = |compare, value| Condition {
        arg: 0,
        compare,
        value,
    };
    let (Some(&first), Some(&last)) = (families.first(), families.last()) else {
        return vec![Vec::new()];
    };

    let mut alternatives = vec![vec![condition(Compare::Gt, last)]];
    if first > 0 {
        alternatives.push(vec![condition(Compare::Lt, first)]);
    }
    for pair in families.windows(2).filter(|pair| pair[1] - pair[0] > 1) {
        alternatives.push(vec![
            condition(Compare::Gt, pair[0]),
            condition(Compare::Lt, pair[1]),
        ]);
    }

    alternatives
}
