//! Encodes and decodes the messages of the audit socket. Pure; no input causes a panic.

use rustix::io::Errno;

/// Size of a netlink header, in bytes.
pub const HEADER_BYTES: usize = 16;
/// Size of `struct audit_rule_data` without its strings, in bytes.
pub const RULE_BYTES_MIN: usize = 1040;

/// Message types of requests and answers, and bounds of those of records (`linux/audit.h`,
/// `linux/netlink.h`).
pub mod kind {
    use abi::RecordType;

    /// Acknowledgement or error.
    pub const ERROR: u16 = 2;
    /// End of a list.
    pub const DONE: u16 = 3;
    /// Get the status.
    pub const GET: u16 = 1000;
    /// Set parts of the status.
    pub const SET: u16 = 1001;
    /// A message from user space.
    pub const USER: u16 = RecordType::USER.netlink();
    /// Change of a login uid. With USER, the only records below 1100.
    pub const LOGIN: u16 = RecordType::LOGIN.netlink();
    /// Get the sender of the daemon's last signal.
    pub const SIGNAL_INFO: u16 = 1010;
    /// Add a rule.
    pub const ADD_RULE: u16 = 1011;
    /// Delete a rule.
    pub const DEL_RULE: u16 = 1012;
    /// List the rules.
    pub const LIST_RULES: u16 = 1013;
    /// Forget parts of watched trees that were unmounted.
    pub const TRIM: u16 = 1014;
    /// Treat a tree as part of another one.
    pub const MAKE_EQUIV: u16 = 1015;
    /// Set or lock features.
    pub const SET_FEATURE: u16 = 1018;
    /// Get the features.
    pub const GET_FEATURE: u16 = 1019;
    /// The lowest type of all other records.
    pub const FIRST_RECORD: u16 = RecordType::FIRST_USER_MSG.netlink();
    /// The kernel asks whether the registered daemon is alive; not a record.
    pub const REPLACE: u16 = RecordType::REPLACE.netlink();
}

const F_REQUEST: u16 = 1;
const F_ACK: u16 = 4;

/// Bits of `audit_status.mask`: which members a SET changes.
pub mod status_mask {
    /// `enabled`
    pub const ENABLED: u32 = 0x01;
    /// `failure`
    pub const FAILURE: u32 = 0x02;
    /// `pid`
    pub const PID: u32 = 0x04;
    /// `rate_limit`
    pub const RATE_LIMIT: u32 = 0x08;
    /// `backlog_limit`
    pub const BACKLOG_LIMIT: u32 = 0x10;
    /// `backlog_wait_time`
    pub const BACKLOG_WAIT_TIME: u32 = 0x20;
    /// `lost`
    pub const LOST: u32 = 0x40;
    /// `backlog_wait_time_actual`
    pub const BACKLOG_WAIT_TIME_ACTUAL: u32 = 0x80;
}

/// A request with its header, which asks for an acknowledgement.
pub fn request(kind: u16, sequence: u32, payload: &[u8]) -> Vec<u8> {
    let len = HEADER_BYTES + payload.len();
    let mut message = Vec::with_capacity(len);
    message.extend_from_slice(&(len as u32).to_ne_bytes());
    message.extend_from_slice(&kind.to_ne_bytes());
    message.extend_from_slice(&(F_REQUEST | F_ACK).to_ne_bytes());
    message.extend_from_slice(&sequence.to_ne_bytes());
    message.extend_from_slice(&0u32.to_ne_bytes());
    message.extend_from_slice(payload);
    message
}

/// Payload of a MAKE_EQUIV request: the lengths of both paths, then the paths, without NULs
/// (`audit_receive_msg()` in `kernel/audit.c`).
pub fn make_equivalent(mount: &[u8], subtree: &[u8]) -> Vec<u8> {
    let len = |path: &[u8]| u32::try_from(path.len()).unwrap_or(u32::MAX).to_ne_bytes();
    [&len(mount), &len(subtree), mount, subtree].concat()
}

/// A decoded datagram from the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Datagram<'a> {
    /// An acknowledgement: zero or a positive result, or an error.
    Ack {
        /// Number of the request.
        sequence: u32,
        /// The kernel's answer.
        result: Result<u32, Errno>,
    },
    /// A reply with data.
    Reply {
        /// Message type.
        kind: u16,
        /// Number of the request.
        sequence: u32,
        /// The data.
        payload: &'a [u8],
    },
    /// The end of a list.
    Done {
        /// Number of the request.
        sequence: u32,
    },
    /// An audit record.
    Record {
        /// Record type.
        kind: u16,
        /// `audit(SEC.MSEC:SERIAL): …`, without trailing NULs and newlines.
        text: &'a [u8],
    },
    /// Nothing to process: a liveness probe, an unknown type, or fewer bytes than a header.
    Ignored,
}

/// Decodes a datagram. The kernel sends one message per datagram. The length in the header of a
/// unicast record does not include the header, so the length of the datagram is used instead.
pub fn decode(datagram: &[u8]) -> Datagram<'_> {
    let (Some(kind), Some(sequence)) = (u16_at(datagram, 4), u32_at(datagram, 8)) else {
        return Datagram::Ignored;
    };
    let Some(payload) = datagram.get(HEADER_BYTES..) else {
        return Datagram::Ignored;
    };

    match kind {
        kind::ERROR => match u32_at(payload, 0) {
            Some(code) => Datagram::Ack {
                sequence,
                result: ack_result(code as i32),
            },
            None => Datagram::Ignored,
        },
        kind::DONE => Datagram::Done { sequence },
        kind::REPLACE => Datagram::Ignored,
        kind::USER | kind::LOGIN | kind::FIRST_RECORD.. => Datagram::Record {
            kind,
            text: trim_end(payload),
        },
        kind::GET..kind::FIRST_RECORD => Datagram::Reply {
            kind,
            sequence,
            payload: stated_payload(datagram, payload),
        },
        _ => Datagram::Ignored,
    }
}

/// The payload of a reply without padding. The length in the header of a reply includes the header.
fn stated_payload<'a>(datagram: &[u8], payload: &'a [u8]) -> &'a [u8] {
    let stated = u32_at(datagram, 0).unwrap_or(0) as usize;
    let len = stated.saturating_sub(HEADER_BYTES);
    payload.get(..len).unwrap_or(payload)
}

fn ack_result(code: i32) -> Result<u32, Errno> {
    match u32::try_from(code) {
        Ok(result) => Ok(result),
        // from_raw_os_error takes 1 to 4095; no kernel sends other numbers.
        Err(_) => match code.checked_neg().filter(|errno| (1..4096).contains(errno)) {
            Some(errno) => Err(Errno::from_raw_os_error(errno)),
            None => Err(Errno::INVAL),
        },
    }
}

fn trim_end(mut text: &[u8]) -> &[u8] {
    while let [rest @ .., 0 | b'\n'] = text {
        text = rest;
    }
    text
}

fn u16_at(bytes: &[u8], offset: usize) -> Option<u16> {
    let field = bytes.get(offset..)?.first_chunk::<2>()?;
    Some(u16::from_ne_bytes(*field))
}

fn u32_at(bytes: &[u8], offset: usize) -> Option<u32> {
    let field = bytes.get(offset..)?.first_chunk::<4>()?;
    Some(u32::from_ne_bytes(*field))
}

/// `struct audit_status`, which `auditctl -s` prints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// 0 off, 1 on, 2 on and locked until the next boot.
    pub enabled: u32,
    /// 0 silent, 1 printk, 2 panic.
    pub failure: u32,
    /// Process id of the registered daemon, 0 if none.
    pub pid: u32,
    /// The largest number of records per second; 0 means no limit.
    pub rate_limit: u32,
    /// The largest number of records that may wait in the kernel; 0 means no limit.
    pub backlog_limit: u32,
    /// Records lost since boot.
    pub lost: u32,
    /// Records that are waiting.
    pub backlog: u32,
    /// `AUDIT_FEATURE_BITMAP_*` bits of what this kernel's audit can do.
    pub features: u32,
    /// Time that a process waits when the backlog is full, in jiffies.
    pub backlog_wait_time: u32,
    /// Total time that processes have waited, in jiffies; 0 on kernels before 5.9, which do not report it.
    pub backlog_wait_time_actual: u32,
}

impl Status {
    /// Size of the part that every kernel with CONFIG_AUDIT sends (up to `backlog`), in bytes.
    const BYTES_MIN: usize = 32;

    /// Decodes a GET reply. Members that the kernel does not send are 0. `None` if the reply is too
    /// short for the members of the first version.
    pub fn decode(payload: &[u8]) -> Option<Self> {
        if payload.len() < Self::BYTES_MIN {
            return None;
        }

        let member = |index: usize| u32_at(payload, index * 4).unwrap_or(0);
        Some(Status {
            enabled: member(1),
            failure: member(2),
            pid: member(3),
            rate_limit: member(4),
            backlog_limit: member(5),
            lost: member(6),
            backlog: member(7),
            features: member(8),
            backlog_wait_time: member(9),
            backlog_wait_time_actual: member(10),
        })
    }

    /// The payload of a SET that changes the members in `mask` (see [`status_mask`]).
    pub fn encode(&self, mask: u32) -> Vec<u8> {
        let members = [
            mask,
            self.enabled,
            self.failure,
            self.pid,
            self.rate_limit,
            self.backlog_limit,
            self.lost,
            self.backlog,
            self.features,
            self.backlog_wait_time,
            self.backlog_wait_time_actual,
        ];

        members.iter().flat_map(|m| m.to_ne_bytes()).collect()
    }
}

/// `struct audit_features`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Features {
    /// The bits that are valid.
    pub mask: u32,
    /// The bits that are on.
    pub features: u32,
    /// The bits that are locked until the next boot.
    pub lock: u32,
}

impl Features {
    /// Bit of `loginuid_immutable`.
    pub const LOGINUID_IMMUTABLE: u32 = 1 << 1;

    /// Decodes a GET_FEATURE reply; `None` if it is too short.
    pub fn decode(payload: &[u8]) -> Option<Self> {
        Some(Features {
            mask: u32_at(payload, 4)?,
            features: u32_at(payload, 8)?,
            lock: u32_at(payload, 12)?,
        })
    }

    /// The payload of a SET_FEATURE.
    pub fn encode(&self) -> Vec<u8> {
        [1, self.mask, self.features, self.lock]
            .iter()
            .flat_map(|m: &u32| m.to_ne_bytes())
            .collect()
    }

    /// Whether a login uid cannot be changed once it is set.
    pub fn loginuid_immutable(&self) -> bool {
        self.features & Self::LOGINUID_IMMUTABLE != 0
    }

    /// Whether `loginuid_immutable` is locked until the next boot.
    pub fn loginuid_immutable_locked(&self) -> bool {
        self.lock & Self::LOGINUID_IMMUTABLE != 0
    }
}

/// `struct audit_sig_info`: the sender of the last TERM, HUP, USR1 or USR2 to the registered daemon.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SignalInfo {
    /// The sender's login uid.
    pub auid: u32,
    /// The sender's process id.
    pub pid: u32,
    /// The sender's LSM context, empty if there is none.
    pub context: Vec<u8>,
}

impl SignalInfo {
    /// Decodes a SIGNAL_INFO reply; `None` if it is too short.
    pub fn decode(payload: &[u8]) -> Option<Self> {
        Some(SignalInfo {
            auid: u32_at(payload, 0)?,
            pid: u32_at(payload, 4)?,
            context: trim_end(payload.get(8..)?).to_vec(),
        })
    }
}

const FILTER_TASK: u32 = 1;
const FILTER_PREPEND: u32 = 0x10;
const ACTION_NEVER: u32 = 0;

/// The rule `-a never,task` as `struct audit_rule_data`: new tasks get no audit context, so
/// kernel syscall auditing costs them nothing. `prepend` puts it before all rules of its list;
/// use it only to add the rule, because the kernel stores and deletes rules without that flag.
pub fn never_task_rule(prepend: bool) -> Vec<u8> {
    let flags = FILTER_TASK | if prepend { FILTER_PREPEND } else { 0 };
    let mut rule = vec![0u8; RULE_BYTES_MIN];
    rule[..4].copy_from_slice(&flags.to_ne_bytes());
    rule[4..8].copy_from_slice(&ACTION_NEVER.to_ne_bytes());
    rule
}

/// Whether a listed rule is `never,task` without conditions. Its system-call mask is not checked,
/// because the task list ignores it (`audit_filter_task()` in `kernel/auditsc.c`).
pub fn is_never_task_rule(rule: &[u8]) -> bool {
    let member = |index: usize| u32_at(rule, index * 4);
    rule.len() >= RULE_BYTES_MIN
        && member(0) == Some(FILTER_TASK)
        && member(1) == Some(ACTION_NEVER)
        && member(2) == Some(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn datagram(kind: u16, stated_len: u32, sequence: u32, payload: &[u8]) -> Vec<u8> {
        let mut bytes = request(kind, sequence, payload);
        bytes[..4].copy_from_slice(&stated_len.to_ne_bytes());
        bytes
    }

    #[test]
    fn unicast_record_is_whole_although_its_stated_length_lacks_the_header() {
        let text = b"audit(1.000:7): pid=1 uid=0 msg='hello'";
        let bytes = datagram(1112, text.len() as u32, 0, text);
        assert_eq!(decode(&bytes), Datagram::Record { kind: 1112, text });
    }

    #[test]
    fn record_ends_before_nul_and_newline() {
        let bytes = datagram(1005, 0, 0, b"audit(1.000:7): x\n\0");
        let text = b"audit(1.000:7): x";
        assert_eq!(decode(&bytes), Datagram::Record { kind: 1005, text });
    }

    #[test]
    fn acknowledgement_gives_success_result_or_errno() {
        let ack = |code: i32| {
            let payload = [&code.to_ne_bytes()[..], &[0; 16]].concat();
            decode_ack(&datagram(kind::ERROR, 36, 5, &payload))
        };
        assert_eq!(ack(0), Ok(0));
        assert_eq!(ack(12), Ok(12));
        assert_eq!(ack(-17), Err(Errno::EXIST));
        assert_eq!(ack(i32::MIN), Err(Errno::INVAL));
        assert_eq!(ack(-5000), Err(Errno::INVAL));
    }

    fn decode_ack(bytes: &[u8]) -> Result<u32, Errno> {
        match decode(bytes) {
            Datagram::Ack { sequence, result } => {
                assert_eq!(sequence, 5);
                result
            }
            other => panic!("not an acknowledgement: {other:?}"),
        }
    }

    #[test]
    fn liveness_probe_is_not_a_record() {
        assert_eq!(
            decode(&datagram(kind::REPLACE, 20, 0, &[1, 0, 0, 0])),
            Datagram::Ignored
        );
    }

    #[test]
    fn status_survives_the_wire_and_an_old_kernel_s_shorter_one_too() {
        let status = Status {
            enabled: 1,
            failure: 2,
            pid: 3,
            rate_limit: 4,
            backlog_limit: 5,
            lost: 6,
            backlog: 7,
            features: 8,
            backlog_wait_time: 9,
            backlog_wait_time_actual: 10,
        };
        let bytes = status.encode(0x7f);
        assert_eq!(bytes.len(), 44);
        assert_eq!(bytes[..4], 0x7fu32.to_ne_bytes());
        assert_eq!(Status::decode(&bytes), Some(status));
        let old = Status::decode(&bytes[..40]).unwrap();
        assert_eq!(old.backlog_wait_time_actual, 0);
        assert_eq!(old.backlog_wait_time, 9);
        assert_eq!(Status::decode(&bytes[..31]), None);
    }

    #[test]
    fn never_task_rule_is_recognised_and_rules_with_conditions_are_not() {
        let mut rule = never_task_rule(false);
        assert!(is_never_task_rule(&rule));
        rule[12..268].fill(0xff);
        assert!(is_never_task_rule(&rule), "the mask does not matter");
        rule[8] = 1;
        assert!(!is_never_task_rule(&rule), "one condition");
        assert!(!is_never_task_rule(&never_task_rule(true)));
        assert!(!is_never_task_rule(&[0; 100]));
    }

    proptest! {
        #[test]
        fn no_bytes_make_decoding_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Status::decode(&bytes);
            let _ = Features::decode(&bytes);
            let _ = SignalInfo::decode(&bytes);
            let _ = is_never_task_rule(&bytes);
            let _ = decode(&bytes);
        }

        #[test]
        fn a_request_reads_back_as_what_was_sent(
            kind in prop_oneof![1000u16..1005, 1007u16..1100],
            sequence: u32,
            payload in proptest::collection::vec(any::<u8>(), 0..100),
        ) {
            let bytes = request(kind, sequence, &payload);
            prop_assert_eq!(decode(&bytes), Datagram::Reply { kind, sequence, payload: &payload });
        }
    }
}
