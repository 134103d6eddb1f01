//! Selects the events that a report is about.

use super::{Changes, Kind, Request};
use crate::event::EventView;
use crate::facts::Facts;
use crate::Dialect;
use abi::record_type as kinds;

pub(super) const CONFIG_CHANGE: i32 = kinds::CONFIG_CHANGE;
pub(super) const DAEMON_CONFIG: i32 = kinds::DAEMON_CONFIG;
pub(super) const USYS_CONFIG: i32 = kinds::USYS_CONFIG;
pub(super) const NETFILTER_CFG: i32 = kinds::NETFILTER_CFG;
pub(super) const FEATURE_CHANGE: i32 = kinds::FEATURE_CHANGE;
pub(super) const USER_MAC_CONFIG_CHANGE: i32 = kinds::USER_MAC_CONFIG_CHANGE;
pub(super) const MAC: (i32, i32) = (kinds::MAC_POLICY_LOAD, kinds::MAC_UNLBL_STCDEL);
/// A MAC summary takes fewer types than a MAC list.
pub(super) const MAC_OF_SUMMARY: (i32, i32) = (kinds::MAC_POLICY_LOAD, kinds::MAC_MAP_DEL);
pub(super) const USER_LSPP: (i32, i32) = (kinds::FIRST_USER_LSPP_MSG, kinds::LAST_USER_LSPP_MSG);
pub(super) const INTEGRITY: (i32, i32) = (kinds::FIRST_INTEGRITY_MSG, kinds::LAST_INTEGRITY_MSG);
pub(super) const VIRT: (i32, i32) = (kinds::FIRST_VIRT_MSG, kinds::LAST_VIRT_MSG);
pub(super) const ANOMALY: (i32, i32) = (kinds::FIRST_ANOM_MSG, kinds::LAST_ANOM_MSG);
pub(super) const KERNEL_ANOMALY: (i32, i32) =
    (kinds::FIRST_KERN_ANOM_MSG, kinds::LAST_KERN_ANOM_MSG);
pub(super) const RESPONSE: (i32, i32) = (kinds::FIRST_ANOM_RESP, kinds::LAST_ANOM_RESP);
pub(super) const KERNEL_CRYPTO: (i32, i32) =
    (kinds::FIRST_KERN_CRYPTO_MSG, kinds::LAST_KERN_CRYPTO_MSG);
pub(super) const CRYPTO: (i32, i32) = (kinds::FIRST_CRYPTO_MSG, kinds::LAST_CRYPTO_MSG);
pub(super) const ACCOUNT: (i32, i32) = (kinds::ADD_USER, kinds::DEL_GROUP);
pub(super) const ROLE: (i32, i32) = (kinds::ROLE_ASSIGN, kinds::ROLE_REMOVE);
pub(super) const USER_AUTH: i32 = kinds::USER_AUTH;
pub(super) const USER_MGMT: i32 = kinds::USER_MGMT;
pub(super) const USER_AVC: i32 = kinds::USER_AVC;
pub(super) const USER_CHAUTHTOK: i32 = kinds::USER_CHAUTHTOK;
pub(super) const USER_LOGIN: i32 = kinds::USER_LOGIN;
pub(super) const GRP_AUTH: i32 = kinds::GRP_AUTH;
pub(super) const GRP_MGMT: i32 = kinds::GRP_MGMT;
pub(super) const AVC: i32 = kinds::AVC;
const APPARMOR: (i32, i32) = (kinds::APPARMOR, kinds::APPARMOR_KILL);

/// Types that add something, each followed by the type that deletes it.
const PAIRS: [(i32, i32); 7] = [
    (kinds::ADD_USER, kinds::DEL_USER),
    (kinds::ADD_GROUP, kinds::DEL_GROUP),
    (kinds::MAC_CIPSOV4_ADD, kinds::MAC_CIPSOV4_DEL),
    (kinds::MAC_MAP_ADD, kinds::MAC_MAP_DEL),
    (kinds::MAC_IPSEC_ADDSA, kinds::MAC_IPSEC_DELSA),
    (kinds::MAC_IPSEC_ADDSPD, kinds::MAC_IPSEC_DELSPD),
    (kinds::MAC_UNLBL_STCADD, kinds::MAC_UNLBL_STCDEL),
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
        let is_of_node = || {
            let node = event.node();
            self.nodes.iter().any(|wanted| node == Some(wanted))
        };
        let is_of_result = || match self.success {
            None => true,
            Some(success) => facts.call.success == i32::from(success),
        };
        (self.nodes.is_empty() || is_of_node()) && is_of_result() && self.takes_change(event.kind())
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
            Kind::Anomaly => has_of(ANOMALY) || has_of(KERNEL_ANOMALY) || has(kinds::SECCOMP),
            Kind::Response => has_of(RESPONSE),
            Kind::Crypto => has_of(KERNEL_CRYPTO) || has_of(CRYPTO),
            Kind::Key => facts.keys.is_some(),
            Kind::Tty => matches!(event.kind(), kinds::TTY | kinds::USER_TTY),
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
