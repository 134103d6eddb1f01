//! Records of POSIX message queues and the clock: show_special(), kernel/auditsc.c.

use super::Body;
use crate::{put, RecordType};

/// `struct mq_attr`, as user space passed it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs)]
pub struct MqAttr {
    pub flags: i64,
    pub maxmsg: i64,
    pub msgsize: i64,
    pub curmsgs: i64,
}

impl MqAttr {
    fn write(&self, out: &mut Vec<u8>) {
        put::text(out, " mq_flags=0x");
        put::hex(out, self.flags as u64, 0);
        put::text(out, " mq_maxmsg=");
        put::signed(out, self.maxmsg);
        put::text(out, " mq_msgsize=");
        put::signed(out, self.msgsize);
        put::text(out, " mq_curmsgs=");
        put::signed(out, self.curmsgs);
    }
}

/// MQ_OPEN (1312).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct MqOpen {
    pub oflag: u32,
    pub mode: u16,
    pub attr: MqAttr,
}

impl Body for MqOpen {
    fn kind(&self) -> RecordType {
        RecordType::MQ_OPEN
    }

    fn write(&self, out: &mut Vec<u8>) {
        put::text(out, "oflag=0x");
        put::hex(out, self.oflag.into(), 0);
        put::text(out, " mode=");
        put::octal(out, self.mode.into(), true);
        self.attr.write(out);
    }
}

/// MQ_SENDRECV (1313).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct MqSendrecv {
    pub mqdes: i32,
    pub msg_len: u64,
    pub msg_prio: u32,
    /// Seconds of the absolute time until which the call waits; 0 without a timeout.
    pub timeout_sec: i64,
    /// Nanoseconds of that time.
    pub timeout_nsec: i64,
}

impl Body for MqSendrecv {
    fn kind(&self) -> RecordType {
        RecordType::MQ_SENDRECV
    }

    fn write(&self, out: &mut Vec<u8>) {
        put::text(out, "mqdes=");
        put::signed(out, self.mqdes.into());
        put::text(out, " msg_len=");
        put::signed(out, self.msg_len as i64);
        put::field(out, " msg_prio=", self.msg_prio);
        put::text(out, " abs_timeout_sec=");
        put::signed(out, self.timeout_sec);
        put::text(out, " abs_timeout_nsec=");
        put::signed(out, self.timeout_nsec);
    }
}

/// MQ_NOTIFY (1314).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct MqNotify {
    pub mqdes: i32,
    pub sigev_signo: i32,
}

impl Body for MqNotify {
    fn kind(&self) -> RecordType {
        RecordType::MQ_NOTIFY
    }

    fn write(&self, out: &mut Vec<u8>) {
        put::text(out, "mqdes=");
        put::signed(out, self.mqdes.into());
        put::text(out, " sigev_signo=");
        put::signed(out, self.sigev_signo.into());
    }
}

/// MQ_GETSETATTR (1315).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct MqGetsetattr {
    pub mqdes: i32,
    pub attr: MqAttr,
}

impl Body for MqGetsetattr {
    fn kind(&self) -> RecordType {
        RecordType::MQ_GETSETATTR
    }

    fn write(&self, out: &mut Vec<u8>) {
        put::text(out, "mqdes=");
        put::signed(out, self.mqdes.into());
        self.attr.write(out);
    }
}

/// TIME_INJOFFSET (1332): by how much the clock was moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct TimeInjoffset {
    pub sec: i64,
    pub nsec: i64,
}

impl Body for TimeInjoffset {
    fn kind(&self) -> RecordType {
        RecordType::TIME_INJOFFSET
    }

    fn write(&self, out: &mut Vec<u8>) {
        put::text(out, "sec=");
        put::signed(out, self.sec);
        put::text(out, " nsec=");
        put::signed(out, self.nsec);
    }
}

/// TIME_ADJNTPVAL (1333): an NTP parameter of the clock that was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct TimeAdjntpval {
    pub op: &'static str,
    pub old: i64,
    pub new: i64,
}

impl TimeAdjntpval {
    /// The values of `op`, in the order of `enum audit_ntp_type`, linux/audit.h.
    pub const OPS: [&'static str; 6] = ["offset", "freq", "status", "tai", "tick", "adjust"];
}

impl Body for TimeAdjntpval {
    fn kind(&self) -> RecordType {
        RecordType::TIME_ADJNTPVAL
    }

    fn write(&self, out: &mut Vec<u8>) {
        put::text(out, "op=");
        put::text(out, self.op);
        put::text(out, " old=");
        put::signed(out, self.old);
        put::text(out, " new=");
        put::signed(out, self.new);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(record: &impl Body) -> String {
        let mut out = Vec::new();
        record.write(&mut out);
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn records_of_queues_read_as_the_kernel_writes_them() {
        let attr = MqAttr {
            maxmsg: 4,
            msgsize: 64,
            ..MqAttr::default()
        };
        let open = MqOpen {
            oflag: 0x42,
            mode: 0o640,
            attr,
        };
        assert_eq!(
            text(&open),
            "oflag=0x42 mode=0640 mq_flags=0x0 mq_maxmsg=4 mq_msgsize=64 mq_curmsgs=0"
        );
        let send = MqSendrecv {
            mqdes: 3,
            msg_len: 5,
            msg_prio: 7,
            timeout_sec: 2_000_000_000,
            timeout_nsec: 5,
        };
        assert_eq!(
            text(&send),
            "mqdes=3 msg_len=5 msg_prio=7 abs_timeout_sec=2000000000 abs_timeout_nsec=5"
        );
    }
}
