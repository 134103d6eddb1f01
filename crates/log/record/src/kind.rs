//! Record types: the numbers of `linux/audit.h` and their names in the log.

use core::fmt;

/// Number of a record type: the `nlmsg_type` of a netlink message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordType(pub u16);

macro_rules! record_types {
    ($($name:ident = $number:literal,)*) => {
        #[allow(missing_docs)] // each is the AUDIT_ constant of linux/audit.h or libaudit.h
        impl RecordType {
            $(pub const $name: RecordType = RecordType($number);)*
        }
    };
}

record_types! {
    USER = 1005, LOGIN = 1006, USER_AVC = 1107, ADD_USER = 1114, ADD_GROUP = 1116, DEL_GROUP = 1117, GRP_MGMT = 1132,
    DAEMON_START = 1200, DAEMON_END = 1201, DAEMON_ABORT = 1202, DAEMON_CONFIG = 1203,
    DAEMON_ROTATE = 1205, DAEMON_RESUME = 1206, DAEMON_ACCEPT = 1207, DAEMON_CLOSE = 1208, DAEMON_ERR = 1209,
    SYSCALL = 1300, PATH = 1302, IPC = 1303, SOCKETCALL = 1304, CONFIG_CHANGE = 1305, SOCKADDR = 1306,
    CWD = 1307, EXECVE = 1309, IPC_SET_PERM = 1311, MQ_OPEN = 1312, MQ_SENDRECV = 1313, MQ_NOTIFY = 1314,
    MQ_GETSETATTR = 1315, FD_PAIR = 1317, OBJ_PID = 1318, EOE = 1320, BPRM_FCAPS = 1321, CAPSET = 1322,
    MMAP = 1323, NETFILTER_PKT = 1324, SECCOMP = 1326, PROCTITLE = 1327, KERN_MODULE = 1330,
    TIME_INJOFFSET = 1332, TIME_ADJNTPVAL = 1333, BPF = 1334, URINGOP = 1336, OPENAT2 = 1337,
    AVC = 1400, MAC_TASK_CONTEXTS = 1425, ANOM_ABEND = 1701, KERNEL = 2000,
}

impl RecordType {
    /// The name in the log, if the type is known.
    pub fn name(self) -> Option<&'static str> {
        abi::record_type_name(self.0.into())
    }

    /// The type with this name: that of a known type, or `UNKNOWN[n]`.
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
        u16::try_from(abi::record_type_number(name)?)
            .ok()
            .map(RecordType)
    }

    /// Appends the name as auditd writes it: `SYSCALL`, or `UNKNOWN[1999]`.
    pub fn write(self, out: &mut Vec<u8>) {
        match self.name() {
            Some(name) => out.extend_from_slice(name.as_bytes()),
            None => {
                out.extend_from_slice(b"UNKNOWN[");
                crate::put::decimal(out, self.0.into());
                out.push(b']');
            }
        }
    }
}

impl fmt::Display for RecordType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "UNKNOWN[{}]", self.0),
        }
    }
}
