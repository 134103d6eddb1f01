//! Selects the events that a report is about.

use super::{Changes, Kind, Request};
use crate::event::EventView;
use crate::facts::Facts;
use crate::Dialect;

pub(super) const CONFIG_CHANGE: i32 = 1305;
pub(super) const DAEMON_CONFIG: i32 = 1203;
pub(super) const USYS_CONFIG: i32 = 1111;
pub(super) const NETFILTER_CFG: i32 = 1325;
pub(super) const FEATURE_CHANGE: i32 = 1328;
pub(super) const USER_MAC_CONFIG_CHANGE: i32 = 2312;
pub(super) const MAC: (i32, i32) = (1403, 1417);
/// A MAC summary takes fewer types than a MAC list.
pub(super) const MAC_OF_SUMMARY: (i32, i32) = (1403, 1410);
pub(super) const USER_LSPP: (i32, i32) = (2300, 2399);
pub(super) const INTEGRITY: (i32, i32) = (1800, 1899);
pub(super) const VIRT: (i32, i32) = (2500, 2599);
pub(super) const ANOMALY: (i32, i32) = (2100, 2199);
pub(super) const KERNEL_ANOMALY: (i32, i32) = (1700, 1799);
pub(super) const RESPONSE: (i32, i32) = (2200, 2299);
pub(super) const KERNEL_CRYPTO: (i32, i32) = (1600, 1699);
pub(super) const CRYPTO: (i32, i32) = (2400, 2499);
pub(super) const ACCOUNT: (i32, i32) = (1114, 1117);
pub(super) const ROLE: (i32, i32) = (2301, 2302);
pub(super) const USER_AUTH: i32 = 1100;
pub(super) const USER_MGMT: i32 = 1102;
pub(super) const USER_AVC: i32 = 1107;
pub(super) const USER_CHAUTHTOK: i32 = 1108;
pub(super) const USER_LOGIN: i32 = 1112;
const USER_TTY: i32 = 1124;
pub(super) const GRP_AUTH: i32 = 1126;
pub(super) const GRP_MGMT: i32 = 1132;
const TTY: i32 = 1319;
const SECCOMP: i32 = 1326;
pub(super) const AVC: i32 = 1400;
const APPARMOR: (i32, i32) = (1500, 1507);

/// Types that add something, each followed by the type that deletes it.
const PAIRS: [(i32, i32); 7] = [
    (1114, 1115),
    (1116, 1117),
    (1407, 1408),
    (1409, 1410),
    (1411, 1412),
    (1413, 1414),
    (1416, 1417),
];

impl EventView<'_> {
    pub(super) fn has(&self, kind: i32) -> bool {
        self.has_kind(kind, kind)
    }

    pub(super) fn has_of(&self, (first, last): (i32, i32)) -> bool {
        self.has_kind(first, last)
    }
}

impl Request {
    /// Whether the event counts for any report: `--node`, `--failed`, `--add`, ….
    pub(super) fn takes(&self, event: EventView<'_>, facts: &Facts<'_>) -> bool {
        self.takes_of(event, facts.call.success)
    }

    /// [`Request::takes`] of an event whose success is known: 1, 0, or -1 if it has none.
    pub(super) fn takes_of(&self, event: EventView<'_>, success: i32) -> bool {
        let is_of_node = || {
            let node = event.node();
            self.nodes.iter().any(|wanted| node == Some(wanted))
        };
        let is_of_result = self
            .success
            .is_none_or(|wanted| success == i32::from(wanted));
        (self.nodes.is_empty() || is_of_node()) && is_of_result && self.takes_change(event.kind())
    }

    fn takes_change(&self, kind: i32) -> bool {
        let is_one = |of: fn(&(i32, i32)) -> i32| PAIRS.iter().any(|pair| of(pair) == kind);
        !(self.no_config && kind == CONFIG_CHANGE)
            && match self.changes {
                Changes::All => true,
                Changes::Additions => !is_one(|pair| pair.1),
                Changes::Deletions => !is_one(|pair| pair.0),
            }
    }

    /// Whether the event is of the types of this report.
    pub(super) fn is_about(&self, event: EventView<'_>, facts: &Facts<'_>) -> bool {
        let has = |kind| event.has(kind);
        let has_of = |range| event.has_of(range);
        match self.kind {
            Kind::Avc => is_access(event, self.dialect),
            Kind::Mac if self.is_summary => has_of(MAC_OF_SUMMARY) || has_of(USER_LSPP),
            Kind::Mac => has_of(MAC) || has_of(USER_LSPP),
            Kind::Integrity => has_of(INTEGRITY),
            Kind::Virt => has_of(VIRT),
            Kind::Config => is_config(event),
            Kind::Auth => has(USER_AUTH) || (has(USER_MGMT) && facts.call.success == 0),
            Kind::Login => has(USER_LOGIN),
            Kind::Mods => {
                has(USER_CHAUTHTOK)
                    || has_of(ACCOUNT)
                    || has(USER_MGMT)
                    || has(GRP_MGMT)
                    || has_of(ROLE)
            }
            Kind::Event => !self.is_summary || event.kind() != -1,
            Kind::File => facts.files.names.is_some(),
            Kind::Host => facts.host.is_some(),
            Kind::Pid if self.is_summary => facts.ids.pid != -1,
            Kind::Pid => facts.ids.pid >= 0,
            // aureport takes call 0, which is read(2), for none.
            Kind::Syscall if self.dialect == Dialect::Own => facts.call.syscall >= 0,
            Kind::Syscall if self.is_summary => facts.call.syscall > 0,
            Kind::Syscall => facts.call.syscall != 0,
            Kind::Terminal => facts.terminal.is_some(),
            Kind::User if self.is_summary => facts.ids.auid != crate::NO_LOGIN,
            Kind::User => facts.ids.uid != crate::NO_ID,
            Kind::Exe => facts.exe.is_some(),
            Kind::Comm => facts.comm.is_some(),
            Kind::Anomaly => has_of(ANOMALY) || has_of(KERNEL_ANOMALY) || has(SECCOMP),
            Kind::Response => has_of(RESPONSE),
            Kind::Crypto => has_of(KERNEL_CRYPTO) || has_of(CRYPTO),
            Kind::Key => facts.keys.is_some(),
            Kind::Tty => matches!(event.kind(), TTY | USER_TTY),
            Kind::Main => true,
            Kind::Log => false,
        }
    }
}

/// Whether the event is a decision about access. aureport does not know the types that AppArmor once had.
pub(super) fn is_access(event: EventView<'_>, dialect: Dialect) -> bool {
    let is_of_apparmor = || dialect == Dialect::Own && event.has_of(APPARMOR);
    event.has(AVC) || event.has(USER_AVC) || is_of_apparmor()
}

fn is_config(event: EventView<'_>) -> bool {
    [
        CONFIG_CHANGE,
        DAEMON_CONFIG,
        USYS_CONFIG,
        NETFILTER_CFG,
        FEATURE_CHANGE,
        USER_MAC_CONFIG_CHANGE,
    ]
    .iter()
    .any(|kind| event.has(*kind))
        || event.has_of(MAC)
}
