//! Record types: their numbers, and the names in `type=` of the log.

use crate::by_number;
use crate::generated::records;

/// `type=USER`.
pub const USER: u32 = 1005;
/// `type=LOGIN`.
pub const LOGIN: u32 = 1006;
/// `type=USER_AUTH`.
pub const USER_AUTH: u32 = 1100;
/// `type=USER_ACCT`.
pub const USER_ACCT: u32 = 1101;
/// `type=USER_AVC`.
pub const USER_AVC: u32 = 1107;
/// `type=USER_ERR`.
pub const USER_ERR: u32 = 1109;
/// `type=USER_LOGIN`.
pub const USER_LOGIN: u32 = 1112;
/// `type=USER_CMD`.
pub const USER_CMD: u32 = 1123;
/// `type=USER_TTY`.
pub const USER_TTY: u32 = 1124;
/// `type=SERVICE_START`.
pub const SERVICE_START: u32 = 1130;
/// `type=SERVICE_STOP`.
pub const SERVICE_STOP: u32 = 1131;
/// `type=DAEMON_START`.
pub const DAEMON_START: u32 = 1200;
/// `type=DAEMON_END`.
pub const DAEMON_END: u32 = 1201;
/// `type=DAEMON_ABORT`.
pub const DAEMON_ABORT: u32 = 1202;
/// `type=DAEMON_CONFIG`.
pub const DAEMON_CONFIG: u32 = 1203;
/// `type=DAEMON_ROTATE`.
pub const DAEMON_ROTATE: u32 = 1205;
/// `type=DAEMON_RESUME`.
pub const DAEMON_RESUME: u32 = 1206;
/// `type=DAEMON_ERR`.
pub const DAEMON_ERR: u32 = 1209;
/// `type=SYSCALL`.
pub const SYSCALL: u32 = 1300;
/// `type=PATH`.
pub const PATH: u32 = 1302;
/// `type=IPC`.
pub const IPC: u32 = 1303;
/// `type=SOCKETCALL`.
pub const SOCKETCALL: u32 = 1304;
/// `type=CONFIG_CHANGE`.
pub const CONFIG_CHANGE: u32 = 1305;
/// `type=SOCKADDR`.
pub const SOCKADDR: u32 = 1306;
/// `type=CWD`.
pub const CWD: u32 = 1307;
/// `type=EXECVE`.
pub const EXECVE: u32 = 1309;
/// `type=IPC_SET_PERM`.
pub const IPC_SET_PERM: u32 = 1311;
/// `type=MQ_OPEN`.
pub const MQ_OPEN: u32 = 1312;
/// `type=MQ_SENDRECV`.
pub const MQ_SENDRECV: u32 = 1313;
/// `type=MQ_NOTIFY`.
pub const MQ_NOTIFY: u32 = 1314;
/// `type=MQ_GETSETATTR`.
pub const MQ_GETSETATTR: u32 = 1315;
/// `type=FD_PAIR`.
pub const FD_PAIR: u32 = 1317;
/// `type=OBJ_PID`.
pub const OBJ_PID: u32 = 1318;
/// `type=TTY`.
pub const TTY: u32 = 1319;
/// `type=EOE`.
pub const EOE: u32 = 1320;
/// `type=BPRM_FCAPS`.
pub const BPRM_FCAPS: u32 = 1321;
/// `type=CAPSET`.
pub const CAPSET: u32 = 1322;
/// `type=MMAP`.
pub const MMAP: u32 = 1323;
/// `type=NETFILTER_PKT`.
pub const NETFILTER_PKT: u32 = 1324;
/// `type=NETFILTER_CFG`.
pub const NETFILTER_CFG: u32 = 1325;
/// `type=SECCOMP`.
pub const SECCOMP: u32 = 1326;
/// `type=PROCTITLE`.
pub const PROCTITLE: u32 = 1327;
/// `type=FEATURE_CHANGE`.
pub const FEATURE_CHANGE: u32 = 1328;
/// `type=REPLACE`.
pub const REPLACE: u32 = 1329;
/// `type=KERN_MODULE`.
pub const KERN_MODULE: u32 = 1330;
/// `type=FANOTIFY`.
pub const FANOTIFY: u32 = 1331;
/// `type=TIME_INJOFFSET`.
pub const TIME_INJOFFSET: u32 = 1332;
/// `type=TIME_ADJNTPVAL`.
pub const TIME_ADJNTPVAL: u32 = 1333;
/// `type=BPF`.
pub const BPF: u32 = 1334;
/// `type=EVENT_LISTENER`.
pub const EVENT_LISTENER: u32 = 1335;
/// `type=URINGOP`.
pub const URINGOP: u32 = 1336;
/// `type=OPENAT2`.
pub const OPENAT2: u32 = 1337;
/// `type=AVC`.
pub const AVC: u32 = 1400;
/// `type=SELINUX_ERR`.
pub const SELINUX_ERR: u32 = 1401;
/// `type=MAC_TASK_CONTEXTS`.
pub const MAC_TASK_CONTEXTS: u32 = 1425;
/// `type=MAC_OBJ_CONTEXTS`.
pub const MAC_OBJ_CONTEXTS: u32 = 1426;
/// `type=ANOM_PROMISCUOUS`.
pub const ANOM_PROMISCUOUS: u32 = 1700;
/// `type=ANOM_ABEND`.
pub const ANOM_ABEND: u32 = 1701;
/// `type=ANOM_LINK`.
pub const ANOM_LINK: u32 = 1702;
/// `type=ANOM_CREAT`.
pub const ANOM_CREAT: u32 = 1703;
/// `type=KERNEL`.
pub const KERNEL: u32 = 2000;

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
const UNNAMED: [u32; 7] = [1329, 1420, 1421, 1422, 1425, 1426, 1808];

/// The name that auditd writes after `type=`. `None` for types that auditd writes as `UNKNOWN[n]`,
/// even if the kernel's header has a name for them.
pub fn record_type_name(number: u32) -> Option<&'static str> {
    if UNNAMED.contains(&number) {
        return None;
    }
    by_number(records::BY_NUMBER, number).or_else(|| by_number(USER_SPACE, number))
}

/// The number of a record type by its name in auditd or in the kernel's header (without `AUDIT_`).
/// `UNKNOWN[n]` gives `n`.
pub fn record_type_number(name: &str) -> Option<u32> {
    if let Some(number) = name
        .strip_prefix("UNKNOWN[")
        .and_then(|rest| rest.strip_suffix(']'))
    {
        return number.parse().ok();
    }
    records::BY_NUMBER
        .iter()
        .chain(USER_SPACE)
        .find(|row| row.1 == name)
        .map(|row| row.0)
}

/// Every record type with its name, kernel types first.
pub fn record_type_names() -> impl Iterator<Item = (u32, &'static str)> {
    records::BY_NUMBER.iter().chain(USER_SPACE).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_agree() {
        assert!(USER_SPACE.is_sorted_by(|a, b| a.0 < b.0));
        for (number, name) in record_type_names() {
            assert_eq!(record_type_number(name), Some(number));
            if !UNNAMED.contains(&number) {
                assert_eq!(record_type_name(number), Some(name));
            }
        }
        assert_eq!(record_type_number("UNKNOWN[1425]"), Some(1425));
        assert_eq!(record_type_number("UNKNOWN[x]"), None);
        assert_eq!(record_type_name(1425), None);
        assert_eq!(record_type_name(2404), Some("CRYPTO_KEY_USER"));
        assert_eq!(record_type_name(SYSCALL), Some("SYSCALL"));
        assert_eq!(record_type_name(9999), None);
    }
}
