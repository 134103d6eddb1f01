//! Record types: their numbers, their groups, and the names in `type=` of the log.

use crate::by_number;
use crate::generated::records;
use core::fmt;

/// Number of a record type: `AUDIT_*` of linux/audit.h and of libaudit's audit-records.h, the
/// `nlmsg_type` of a netlink message. Negative for a name in a log that stands for no number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordType(pub i32);

macro_rules! record_types {
    ($($name:ident)*) => {
        impl RecordType {
            $(
                #[doc = concat!("`type=", stringify!($name), "`.")]
                pub const $name: RecordType = RecordType(number_of(stringify!($name)));
            )*
        }

        /// Numbers of the types, for patterns with ranges.
        pub mod numbers {
            pub use super::bounds::*;

            $(
                #[doc = concat!("`type=", stringify!($name), "`.")]
                pub const $name: i32 = super::RecordType::$name.0;
            )*
        }
    };
}

#[rustfmt::skip]
record_types! {
    USER LOGIN
    USER_AUTH USER_ACCT USER_MGMT CRED_ACQ CRED_DISP USER_START USER_END USER_AVC USER_CHAUTHTOK
    USER_ERR CRED_REFR USYS_CONFIG USER_LOGIN USER_LOGOUT ADD_USER DEL_USER ADD_GROUP DEL_GROUP
    DAC_CHECK CHGRP_ID TEST TRUSTED_APP USER_SELINUX_ERR USER_CMD USER_TTY CHUSER_ID GRP_AUTH
    SYSTEM_BOOT SYSTEM_SHUTDOWN SYSTEM_RUNLEVEL SERVICE_START SERVICE_STOP GRP_MGMT GRP_CHAUTHTOK
    MAC_CHECK ACCT_LOCK ACCT_UNLOCK USER_DEVICE SOFTWARE_UPDATE
    DAEMON_START DAEMON_END DAEMON_ABORT DAEMON_CONFIG DAEMON_ROTATE DAEMON_RESUME DAEMON_ACCEPT
    DAEMON_CLOSE DAEMON_ERR
    SYSCALL PATH IPC SOCKETCALL CONFIG_CHANGE SOCKADDR CWD EXECVE IPC_SET_PERM MQ_OPEN MQ_SENDRECV
    MQ_NOTIFY MQ_GETSETATTR KERNEL_OTHER FD_PAIR OBJ_PID TTY EOE BPRM_FCAPS CAPSET MMAP
    NETFILTER_PKT NETFILTER_CFG SECCOMP PROCTITLE FEATURE_CHANGE REPLACE KERN_MODULE FANOTIFY
    TIME_INJOFFSET TIME_ADJNTPVAL BPF EVENT_LISTENER URINGOP OPENAT2 DM_CTRL DM_EVENT
    AVC SELINUX_ERR AVC_PATH MAC_POLICY_LOAD MAC_STATUS MAC_CONFIG_CHANGE MAC_UNLBL_ALLOW
    MAC_CIPSOV4_ADD MAC_CIPSOV4_DEL MAC_MAP_ADD MAC_MAP_DEL MAC_IPSEC_ADDSA MAC_IPSEC_DELSA
    MAC_IPSEC_ADDSPD MAC_IPSEC_DELSPD MAC_IPSEC_EVENT MAC_UNLBL_STCADD MAC_UNLBL_STCDEL
    MAC_CALIPSO_ADD MAC_CALIPSO_DEL IPE_ACCESS IPE_CONFIG_CHANGE IPE_POLICY_LOAD LANDLOCK_ACCESS
    LANDLOCK_DOMAIN MAC_TASK_CONTEXTS MAC_OBJ_CONTEXTS
    APPARMOR APPARMOR_AUDIT APPARMOR_ALLOWED APPARMOR_DENIED APPARMOR_HINT APPARMOR_STATUS
    APPARMOR_ERROR APPARMOR_KILL
    ANOM_PROMISCUOUS ANOM_ABEND ANOM_LINK ANOM_CREAT
    INTEGRITY_DATA INTEGRITY_METADATA INTEGRITY_STATUS INTEGRITY_HASH INTEGRITY_PCR INTEGRITY_RULE
    INTEGRITY_EVM_XATTR INTEGRITY_POLICY_RULE INTEGRITY_USERSPACE
    KERNEL
    ANOM_LOGIN_FAILURES ANOM_LOGIN_TIME ANOM_LOGIN_SESSIONS ANOM_LOGIN_ACCT ANOM_LOGIN_LOCATION
    ANOM_MAX_DAC ANOM_MAX_MAC ANOM_AMTU_FAIL ANOM_RBAC_FAIL ANOM_RBAC_INTEGRITY_FAIL
    ANOM_CRYPTO_FAIL ANOM_ACCESS_FS ANOM_EXEC ANOM_MK_EXEC ANOM_ADD_ACCT ANOM_DEL_ACCT
    ANOM_MOD_ACCT ANOM_ROOT_TRANS ANOM_LOGIN_SERVICE ANOM_LOGIN_ROOT ANOM_ORIGIN_FAILURES
    ANOM_SESSION
    RESP_ANOMALY RESP_ALERT RESP_KILL_PROC RESP_TERM_ACCESS RESP_ACCT_REMOTE RESP_ACCT_LOCK_TIMED
    RESP_ACCT_UNLOCK_TIMED RESP_ACCT_LOCK RESP_TERM_LOCK RESP_SEBOOL RESP_EXEC RESP_SINGLE
    RESP_HALT RESP_ORIGIN_BLOCK RESP_ORIGIN_BLOCK_TIMED RESP_ORIGIN_UNBLOCK_TIMED
    USER_ROLE_CHANGE ROLE_ASSIGN ROLE_REMOVE LABEL_OVERRIDE LABEL_LEVEL_CHANGE USER_LABELED_EXPORT
    USER_UNLABELED_EXPORT DEV_ALLOC DEV_DEALLOC FS_RELABEL USER_MAC_POLICY_LOAD ROLE_MODIFY
    USER_MAC_CONFIG_CHANGE USER_MAC_STATUS
    CRYPTO_TEST_USER CRYPTO_PARAM_CHANGE_USER CRYPTO_LOGIN CRYPTO_LOGOUT CRYPTO_KEY_USER
    CRYPTO_FAILURE_USER CRYPTO_REPLAY_USER CRYPTO_SESSION CRYPTO_IKE_SA CRYPTO_IPSEC_SA
    VIRT_CONTROL VIRT_RESOURCE VIRT_MACHINE_ID VIRT_INTEGRITY_CHECK VIRT_CREATE VIRT_DESTROY
    VIRT_MIGRATE_IN VIRT_MIGRATE_OUT
}

/// A number from the tables, so that it is written nowhere else.
const fn number_of(name: &str) -> i32 {
    crate::number_in(&[records::BY_NUMBER, USER_SPACE], name)
}

macro_rules! record_bounds {
    ($($(#[$doc:meta])* $name:ident $number:literal;)*) => {
        /// Bounds of groups, as linux/audit.h and audit-records.h name them.
        impl RecordType {
            $($(#[$doc])* pub const $name: RecordType = RecordType($number);)*
        }

        /// The same as numbers.
        mod bounds {
            $($(#[$doc])* pub const $name: i32 = $number;)*
        }
    };
}

record_bounds! {
    /// First of messages of trusted programs of user space, such as PAM.
    FIRST_USER_MSG 1100;
    /// Last of messages of trusted programs of user space, such as PAM.
    LAST_USER_MSG 1199;
    /// First of records that an audit daemon writes about itself.
    FIRST_DAEMON 1200;
    /// A daemon reads its settings anew; audit has no name for it.
    DAEMON_RECONFIG 1204;
    /// Last of records that an audit daemon writes about itself.
    LAST_DAEMON 1299;
    /// First of records of system calls, their objects and changes of auditing.
    FIRST_EVENT 1300;
    /// Last of records of system calls, their objects and changes of auditing.
    LAST_EVENT 1399;
    /// First of records of SELinux and of labelled networking.
    FIRST_SELINUX 1400;
    /// Last of records of SELinux and of labelled networking.
    LAST_SELINUX 1499;
    /// First of records of AppArmor.
    FIRST_APPARMOR 1500;
    /// Last of records of AppArmor.
    LAST_APPARMOR 1599;
    /// First of records of the kernel's cryptography.
    FIRST_KERN_CRYPTO_MSG 1600;
    /// Last of records of the kernel's cryptography.
    LAST_KERN_CRYPTO_MSG 1699;
    /// First of anomalies that the kernel reports.
    FIRST_KERN_ANOM_MSG 1700;
    /// Last of anomalies that the kernel reports.
    LAST_KERN_ANOM_MSG 1799;
    /// First of records of integrity measurements.
    FIRST_INTEGRITY_MSG 1800;
    /// Last of records of integrity measurements.
    LAST_INTEGRITY_MSG 1899;
    /// First of anomalies that programs of user space report.
    FIRST_ANOM_MSG 2100;
    /// Last of anomalies that programs of user space report.
    LAST_ANOM_MSG 2199;
    /// First of responses to anomalies.
    FIRST_ANOM_RESP 2200;
    /// Last of responses to anomalies.
    LAST_ANOM_RESP 2299;
    /// First of records of roles and labels of user space.
    FIRST_USER_LSPP_MSG 2300;
    /// Last of records of roles and labels of user space.
    LAST_USER_LSPP_MSG 2399;
    /// First of records of user space's cryptography.
    FIRST_CRYPTO_MSG 2400;
    /// Last of records of user space's cryptography.
    LAST_CRYPTO_MSG 2499;
    /// First of records of virtual machines.
    FIRST_VIRT_MSG 2500;
    /// Last of records of virtual machines.
    LAST_VIRT_MSG 2599;
    /// First of second range of messages of user space.
    FIRST_USER_MSG2 2100;
    /// Last of second range of messages of user space.
    LAST_USER_MSG2 2999;
}

impl RecordType {
    /// A name that stands for no number.
    pub const NONE: RecordType = RecordType(-1);

    /// Whether the type is one of `first` to `last`.
    pub const fn is_in(self, first: RecordType, last: RecordType) -> bool {
        first.0 <= self.0 && self.0 <= last.0
    }

    /// Whether a program of user space sends records of this type, which the kernel then filters
    /// with the user list.
    pub fn is_user_message(self) -> bool {
        self == RecordType::USER
            || self.is_in(RecordType::FIRST_USER_MSG, RecordType::LAST_USER_MSG)
            || self.is_in(RecordType::FIRST_USER_MSG2, RecordType::LAST_USER_MSG2)
    }

    /// The name that auditd writes after `type=`. `None` for types that auditd writes as
    /// `UNKNOWN[n]`, even if the kernel's header has a name for them.
    pub fn name(self) -> Option<&'static str> {
        if UNNAMED.contains(&self) {
            return None;
        }
        let number = u32::try_from(self.0).ok()?;
        by_number(records::BY_NUMBER, number).or_else(|| by_number(USER_SPACE, number))
    }

    /// The type with this name in auditd or in the kernel's header (without `AUDIT_`);
    /// `UNKNOWN[n]` gives `n`.
    pub fn from_name(name: &[u8]) -> Option<RecordType> {
        match name {
            // The types of most lines, without a search for the name.
            b"SYSCALL" => return Some(RecordType::SYSCALL),
            b"PATH" => return Some(RecordType::PATH),
            b"CWD" => return Some(RecordType::CWD),
            b"EXECVE" => return Some(RecordType::EXECVE),
            b"PROCTITLE" => return Some(RecordType::PROCTITLE),
            _ => {}
        }

        let name = core::str::from_utf8(name).ok()?;
        if let Some(number) = name
            .strip_prefix("UNKNOWN[")
            .and_then(|rest| rest.strip_suffix(']'))
        {
            return number.parse().ok().map(RecordType);
        }
        RecordType::all().find(|row| row.1 == name).map(|row| row.0)
    }

    /// Every record type with its name, kernel types first.
    pub fn all() -> impl Iterator<Item = (RecordType, &'static str)> {
        let rows = records::BY_NUMBER.iter().chain(USER_SPACE);
        rows.map(|&(number, name)| (RecordType(number as i32), name))
    }

    /// The `nlmsg_type` of a netlink message with a record of this type.
    pub const fn netlink(self) -> u16 {
        self.0 as u16
    }
}

impl From<i32> for RecordType {
    fn from(number: i32) -> RecordType {
        RecordType(number)
    }
}

impl From<u16> for RecordType {
    fn from(number: u16) -> RecordType {
        RecordType(number.into())
    }
}

/// The name as auditd writes it: `SYSCALL`, or `UNKNOWN[1999]`.
impl fmt::Display for RecordType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "UNKNOWN[{}]", self.0),
        }
    }
}

/// Types that audit's user space adds to those of the kernel, in 3.0.9 and 4.x alike
/// (audit-userspace lib/audit-records.h, msg_typetab.h).
#[rustfmt::skip]
static USER_SPACE: &[(u32, &str)] = &[
    (1100, "USER_AUTH"),
    (1101, "USER_ACCT"),
    (1102, "USER_MGMT"),
    (1103, "CRED_ACQ"),
    (1104, "CRED_DISP"),
    (1105, "USER_START"),
    (1106, "USER_END"),
    (1108, "USER_CHAUTHTOK"),
    (1109, "USER_ERR"),
    (1110, "CRED_REFR"),
    (1111, "USYS_CONFIG"),
    (1112, "USER_LOGIN"),
    (1113, "USER_LOGOUT"),
    (1114, "ADD_USER"),
    (1115, "DEL_USER"),
    (1116, "ADD_GROUP"),
    (1117, "DEL_GROUP"),
    (1118, "DAC_CHECK"),
    (1119, "CHGRP_ID"),
    (1120, "TEST"),
    (1121, "TRUSTED_APP"),
    (1122, "USER_SELINUX_ERR"),
    (1123, "USER_CMD"),
    (1125, "CHUSER_ID"),
    (1126, "GRP_AUTH"),
    (1127, "SYSTEM_BOOT"),
    (1128, "SYSTEM_SHUTDOWN"),
    (1129, "SYSTEM_RUNLEVEL"),
    (1130, "SERVICE_START"),
    (1131, "SERVICE_STOP"),
    (1132, "GRP_MGMT"),
    (1133, "GRP_CHAUTHTOK"),
    (1134, "MAC_CHECK"),
    (1135, "ACCT_LOCK"),
    (1136, "ACCT_UNLOCK"),
    (1137, "USER_DEVICE"),
    (1138, "SOFTWARE_UPDATE"),
    (1205, "DAEMON_ROTATE"),
    (1206, "DAEMON_RESUME"),
    (1207, "DAEMON_ACCEPT"),
    (1208, "DAEMON_CLOSE"),
    (1209, "DAEMON_ERR"),
    (1500, "APPARMOR"),
    (1501, "APPARMOR_AUDIT"),
    (1502, "APPARMOR_ALLOWED"),
    (1503, "APPARMOR_DENIED"),
    (1504, "APPARMOR_HINT"),
    (1505, "APPARMOR_STATUS"),
    (1506, "APPARMOR_ERROR"),
    (1507, "APPARMOR_KILL"),
    (2100, "ANOM_LOGIN_FAILURES"),
    (2101, "ANOM_LOGIN_TIME"),
    (2102, "ANOM_LOGIN_SESSIONS"),
    (2103, "ANOM_LOGIN_ACCT"),
    (2104, "ANOM_LOGIN_LOCATION"),
    (2105, "ANOM_MAX_DAC"),
    (2106, "ANOM_MAX_MAC"),
    (2107, "ANOM_AMTU_FAIL"),
    (2108, "ANOM_RBAC_FAIL"),
    (2109, "ANOM_RBAC_INTEGRITY_FAIL"),
    (2110, "ANOM_CRYPTO_FAIL"),
    (2111, "ANOM_ACCESS_FS"),
    (2112, "ANOM_EXEC"),
    (2113, "ANOM_MK_EXEC"),
    (2114, "ANOM_ADD_ACCT"),
    (2115, "ANOM_DEL_ACCT"),
    (2116, "ANOM_MOD_ACCT"),
    (2117, "ANOM_ROOT_TRANS"),
    (2118, "ANOM_LOGIN_SERVICE"),
    (2119, "ANOM_LOGIN_ROOT"),
    (2120, "ANOM_ORIGIN_FAILURES"),
    (2121, "ANOM_SESSION"),
    (2200, "RESP_ANOMALY"),
    (2201, "RESP_ALERT"),
    (2202, "RESP_KILL_PROC"),
    (2203, "RESP_TERM_ACCESS"),
    (2204, "RESP_ACCT_REMOTE"),
    (2205, "RESP_ACCT_LOCK_TIMED"),
    (2206, "RESP_ACCT_UNLOCK_TIMED"),
    (2207, "RESP_ACCT_LOCK"),
    (2208, "RESP_TERM_LOCK"),
    (2209, "RESP_SEBOOL"),
    (2210, "RESP_EXEC"),
    (2211, "RESP_SINGLE"),
    (2212, "RESP_HALT"),
    (2213, "RESP_ORIGIN_BLOCK"),
    (2214, "RESP_ORIGIN_BLOCK_TIMED"),
    (2215, "RESP_ORIGIN_UNBLOCK_TIMED"),
    (2300, "USER_ROLE_CHANGE"),
    (2301, "ROLE_ASSIGN"),
    (2302, "ROLE_REMOVE"),
    (2303, "LABEL_OVERRIDE"),
    (2304, "LABEL_LEVEL_CHANGE"),
    (2305, "USER_LABELED_EXPORT"),
    (2306, "USER_UNLABELED_EXPORT"),
    (2307, "DEV_ALLOC"),
    (2308, "DEV_DEALLOC"),
    (2309, "FS_RELABEL"),
    (2310, "USER_MAC_POLICY_LOAD"),
    (2311, "ROLE_MODIFY"),
    (2312, "USER_MAC_CONFIG_CHANGE"),
    (2313, "USER_MAC_STATUS"),
    (2400, "CRYPTO_TEST_USER"),
    (2401, "CRYPTO_PARAM_CHANGE_USER"),
    (2402, "CRYPTO_LOGIN"),
    (2403, "CRYPTO_LOGOUT"),
    (2404, "CRYPTO_KEY_USER"),
    (2405, "CRYPTO_FAILURE_USER"),
    (2406, "CRYPTO_REPLAY_USER"),
    (2407, "CRYPTO_SESSION"),
    (2408, "CRYPTO_IKE_SA"),
    (2409, "CRYPTO_IPSEC_SA"),
    (2500, "VIRT_CONTROL"),
    (2501, "VIRT_RESOURCE"),
    (2502, "VIRT_MACHINE_ID"),
    (2503, "VIRT_INTEGRITY_CHECK"),
    (2504, "VIRT_CREATE"),
    (2505, "VIRT_DESTROY"),
    (2506, "VIRT_MIGRATE_IN"),
    (2507, "VIRT_MIGRATE_OUT"),
];

/// Types of the kernel that audit up to 4.2.1 has no name for and logs as `UNKNOWN[n]`.
const UNNAMED: [RecordType; 7] = [
    RecordType::REPLACE,
    RecordType::IPE_ACCESS,
    RecordType::IPE_CONFIG_CHANGE,
    RecordType::IPE_POLICY_LOAD,
    RecordType::MAC_TASK_CONTEXTS,
    RecordType::MAC_OBJ_CONTEXTS,
    RecordType::INTEGRITY_USERSPACE,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_agree() {
        assert!(USER_SPACE.is_sorted_by(|a, b| a.0 < b.0));
        for (number, name) in RecordType::all() {
            assert_eq!(RecordType::from_name(name.as_bytes()), Some(number));
            if !UNNAMED.contains(&number) {
                assert_eq!(number.name(), Some(name));
            }
        }
        let unknown = RecordType::from_name(b"UNKNOWN[1425]");
        assert_eq!(unknown, Some(RecordType::MAC_TASK_CONTEXTS));
        assert_eq!(RecordType::from_name(b"UNKNOWN[x]"), None);
        assert_eq!(RecordType::MAC_TASK_CONTEXTS.name(), None);
        assert_eq!(RecordType(2404).name(), Some("CRYPTO_KEY_USER"));
        assert_eq!(RecordType(1300), RecordType::SYSCALL);
        assert_eq!(RecordType::SYSCALL.name(), Some("SYSCALL"));
        assert_eq!(RecordType(9999).name(), None);
        assert_eq!(RecordType(9999).to_string(), "UNKNOWN[9999]");
    }

    #[test]
    fn user_messages_are_those_that_the_kernel_filters_with_the_user_list() {
        for number in [1005, 1100, 1199, 2100, 2999] {
            assert!(RecordType(number).is_user_message(), "{number}");
        }
        for number in [1000, 1099, 1200, 1300, 2099, 3000] {
            assert!(!RecordType(number).is_user_message(), "{number}");
        }
    }
}
