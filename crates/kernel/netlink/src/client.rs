//! One audit socket: requests, their answers, and the records that arrive in between.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::net::netlink::{SocketAddrNetlink, AUDIT};
use rustix::net::{
    bind, recvfrom, sendto, socket_with, sockopt, AddressFamily, RecvFlags, SendFlags,
    SocketAddrAny, SocketFlags, SocketType,
};

use super::error::NetlinkError;
use super::message::{self, kind, status_mask, Datagram, Features, SignalInfo, Status};

/// Size of the longest datagram, in bytes: MAX_AUDIT_MESSAGE_LENGTH (8970) and a header, rounded up.
pub const RECORD_BYTES_MAX: usize = 9216;

/// Requested size of the receive buffer. While it is full, unicast records wait in the kernel's
/// backlog.
const RECEIVE_BUFFER_BYTES: usize = 8 << 20;

const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// Largest number of times that a query is sent.
const ASKED_MAX: u32 = 3;

/// Limit of the records kept while waiting for an answer; more count as an overrun.
const QUEUED_RECORDS_MAX: usize = 65536;

/// A record as the kernel sent it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelRecord<'a> {
    /// Type of the record: 1005, 1006, or 1100 and above.
    pub kind: u16,
    /// `audit(SEC.MSEC:SERIAL): …`.
    pub text: &'a [u8],
}

/// A NETLINK_AUDIT socket. Each request waits for the kernel's answer, at most 5 s; records that
/// arrive meanwhile are kept for [`receive`](Self::receive).
#[derive(Debug)]
pub struct AuditSocket {
    fd: OwnedFd,
    sequence: u32,
    queued: VecDeque<(u16, Vec<u8>)>,
    overrun: bool,
}

impl AuditSocket {
    /// Opens a socket for requests, and for records once it is [registered](Self::register).
    pub fn open() -> Result<Self, NetlinkError> {
        Self::open_with_groups(0)
    }

    /// Opens a socket that gets a copy of every record, whichever process is registered
    /// (AUDIT_NLGRP_READLOG; needs CAP_AUDIT_READ). Copies are dropped while the buffer is full.
    pub fn open_multicast() -> Result<Self, NetlinkError> {
        Self::open_with_groups(1)
    }

    fn open_with_groups(groups: u32) -> Result<Self, NetlinkError> {
        let what = "opening the audit socket";
        let fd = socket_with(
            AddressFamily::NETLINK,
            SocketType::RAW,
            SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
            Some(AUDIT),
        )
        .map_err(|errno| NetlinkError::io(what, "socket", errno))?;

        // Exceeding the system's limit needs CAP_NET_ADMIN; a smaller buffer will do.
        if sockopt::set_socket_recv_buffer_size_force(&fd, RECEIVE_BUFFER_BYTES).is_err() {
            let _ = sockopt::set_socket_recv_buffer_size(&fd, RECEIVE_BUFFER_BYTES);
        }
        bind(&fd, &SocketAddrNetlink::new(0, groups))
            .map_err(|errno| NetlinkError::io(what, "bind", errno))?;

        Ok(AuditSocket {
            fd,
            sequence: 0,
            queued: VecDeque::new(),
            overrun: false,
        })
    }

    /// Reads the status. Members that this kernel does not have are 0.
    pub fn status(&mut self) -> Result<Status, NetlinkError> {
        let what = "reading the audit status";
        let reply = self.ask(what, kind::GET)?;
        Status::decode(&reply).ok_or(NetlinkError::Malformed {
            what,
            len: reply.len(),
        })
    }

    fn set(&mut self, what: &'static str, mask: u32, status: Status) -> Result<u32, NetlinkError> {
        self.request(what, kind::SET, &status.encode(mask))
    }

    /// Sets `enabled`: 0 off, 1 on, 2 on and locked until the next boot.
    pub fn set_enabled(&mut self, enabled: u32) -> Result<(), NetlinkError> {
        let status = Status {
            enabled,
            ..Status::default()
        };
        self.set("setting audit enabled", status_mask::ENABLED, status)
            .map(drop)
    }

    /// Sets the failure mode: 0 silent, 1 printk, 2 panic.
    pub fn set_failure(&mut self, failure: u32) -> Result<(), NetlinkError> {
        let status = Status {
            failure,
            ..Status::default()
        };
        self.set(
            "setting the audit failure mode",
            status_mask::FAILURE,
            status,
        )
        .map(drop)
    }

    /// Sets the largest number of records per second; 0 means no limit.
    pub fn set_rate_limit(&mut self, rate_limit: u32) -> Result<(), NetlinkError> {
        let status = Status {
            rate_limit,
            ..Status::default()
        };
        self.set(
            "setting the audit rate limit",
            status_mask::RATE_LIMIT,
            status,
        )
        .map(drop)
    }

    /// Sets how many records may wait in the kernel; 0 means no limit.
    pub fn set_backlog_limit(&mut self, backlog_limit: u32) -> Result<(), NetlinkError> {
        let status = Status {
            backlog_limit,
            ..Status::default()
        };
        let what = "setting the audit backlog limit";
        self.set(what, status_mask::BACKLOG_LIMIT, status).map(drop)
    }

    /// Sets how long a process waits while the backlog is full, in jiffies. EINVAL above ten times
    /// the default.
    pub fn set_backlog_wait_time(&mut self, backlog_wait_time: u32) -> Result<(), NetlinkError> {
        let status = Status {
            backlog_wait_time,
            ..Status::default()
        };
        let what = "setting the audit backlog wait time";
        self.set(what, status_mask::BACKLOG_WAIT_TIME, status)
            .map(drop)
    }

    /// Sets the count of lost records to 0 and returns the previous count.
    pub fn reset_lost(&mut self) -> Result<u32, NetlinkError> {
        let what = "resetting the audit lost count";
        self.set(what, status_mask::LOST, Status::default())
    }

    /// Sets the total time that processes have waited to 0 and returns the previous value, in jiffies.
    pub fn reset_backlog_wait_time_actual(&mut self) -> Result<u32, NetlinkError> {
        let what = "resetting the audit backlog wait time";
        let mask = status_mask::BACKLOG_WAIT_TIME_ACTUAL;
        self.set(what, mask, Status::default())
    }

    /// Registers this process as the audit daemon: from now on the kernel sends records to this socket.
    pub fn register(&mut self) -> Result<(), NetlinkError> {
        let pid = std::process::id();
        match self.set_pid(pid) {
            Err(NetlinkError::Refused { errno, .. }) if errno == Errno::EXIST => {
                let pid = self.status().map_or(0, |status| status.pid);
                Err(NetlinkError::AnotherDaemon { pid })
            }
            other => other,
        }
    }

    /// Ends the registration of this process, or of a dead one.
    pub fn unregister(&mut self) -> Result<(), NetlinkError> {
        self.set_pid(0)
    }

    fn set_pid(&mut self, pid: u32) -> Result<(), NetlinkError> {
        let status = Status {
            pid,
            ..Status::default()
        };
        self.set("registering as audit daemon", status_mask::PID, status)
            .map(drop)
    }

    /// Reads the features that can be set and locked.
    pub fn features(&mut self) -> Result<Features, NetlinkError> {
        let what = "reading the audit features";
        let reply = self.ask(what, kind::GET_FEATURE)?;
        Features::decode(&reply).ok_or(NetlinkError::Malformed {
            what,
            len: reply.len(),
        })
    }

    /// `--loginuid-immutable`: sets the feature and locks it until the next boot.
    pub fn set_loginuid_immutable(&mut self) -> Result<(), NetlinkError> {
        let bit = Features::LOGINUID_IMMUTABLE;
        let features = Features {
            mask: bit,
            features: bit,
            lock: bit,
        };
        let what = "making the login uid immutable";
        self.request(what, kind::SET_FEATURE, &features.encode())
            .map(drop)
    }

    /// `-t`: makes the kernel forget parts of watched trees that were unmounted.
    pub fn trim(&mut self) -> Result<(), NetlinkError> {
        self.request("trimming watched trees", kind::TRIM, &[])
            .map(drop)
    }

    /// `-q`: makes the kernel treat `subtree` as part of the tree at `mount`. ENOENT if one of them
    /// does not exist.
    pub fn make_equivalent(&mut self, mount: &[u8], subtree: &[u8]) -> Result<(), NetlinkError> {
        let payload = message::make_equivalent(mount, subtree);
        let what = "making a tree equivalent to another";
        self.request(what, kind::MAKE_EQUIV, &payload).map(drop)
    }

    /// Adds a rule: `struct audit_rule_data` with its strings. AUDIT_FILTER_PREPEND in its flags puts
    /// it first. EEXIST if the rule is already loaded.
    pub fn add_rule(&mut self, rule: &[u8]) -> Result<(), NetlinkError> {
        self.request("adding an audit rule", kind::ADD_RULE, rule)
            .map(drop)
    }

    /// Deletes a rule. ENOENT if it is not loaded.
    pub fn delete_rule(&mut self, rule: &[u8]) -> Result<(), NetlinkError> {
        self.request("deleting an audit rule", kind::DEL_RULE, rule)
            .map(drop)
    }

    /// Deletes a rule, if it is loaded: somebody else may have deleted it meanwhile.
    pub(crate) fn delete_rule_if_there(&mut self, rule: &[u8]) -> Result<(), NetlinkError> {
        match self.delete_rule(rule) {
            Err(error) if error.errno() == Some(Errno::NOENT) => Ok(()),
            other => other,
        }
    }

    /// All rules, each as `struct audit_rule_data` with its strings, in the kernel's order.
    pub fn list_rules(&mut self) -> Result<Vec<Vec<u8>>, NetlinkError> {
        let what = "listing the audit rules";
        let sequence = self.send(what, kind::LIST_RULES, &[])?;
        let mut rules = Vec::new();
        self.exchange(what, |datagram| match datagram {
            Datagram::Ack {
                sequence: to,
                result: Err(errno),
            } if to == sequence => Some(Err(NetlinkError::refused(what, errno))),
            Datagram::Done { sequence: to } if to == sequence => Some(Ok(())),
            Datagram::Reply {
                kind: kind::LIST_RULES,
                sequence: to,
                payload,
            } if to == sequence => {
                rules.push(payload.to_vec());
                None
            }
            _ => None,
        })?;

        Ok(rules)
    }

    /// Sends a message as programs do (type 1005, 1100 to 1199 or 2100 to 2999). While audit is
    /// disabled, the kernel accepts the message and drops it.
    pub fn send_user_message(&mut self, kind: u16, text: &str) -> Result<(), NetlinkError> {
        // The kernel overwrites the last byte with a NUL.
        let payload = [text.as_bytes(), &[0]].concat();
        self.request("sending an audit message", kind, &payload)
            .map(drop)
    }

    /// Asks which process sent the registered daemon its last signal.
    pub fn signal_info(&mut self) -> Result<SignalInfo, NetlinkError> {
        let what = "reading the sender of a signal";
        let reply = self.ask(what, kind::SIGNAL_INFO)?;
        SignalInfo::decode(&reply).ok_or(NetlinkError::Malformed {
            what,
            len: reply.len(),
        })
    }

    /// The next record, or `None` if none has arrived; never waits. `buffer` should hold
    /// [`RECORD_BYTES_MAX`] bytes: longer records are cut off. After [`NetlinkError::Overrun`], go
    /// on reading.
    pub fn receive<'b>(
        &mut self,
        buffer: &'b mut [u8],
    ) -> Result<Option<KernelRecord<'b>>, NetlinkError> {
        if std::mem::take(&mut self.overrun) {
            return Err(NetlinkError::Overrun);
        }
        if let Some((kind, text)) = self.queued.pop_front() {
            let len = text.len().min(buffer.len());
            buffer[..len].copy_from_slice(&text[..len]);
            return Ok(Some(KernelRecord {
                kind,
                text: &buffer[..len],
            }));
        }

        let what = "reading audit records";
        loop {
            let Some(len) = self.read_datagram(what, buffer)? else {
                return Ok(None);
            };
            // Decoded twice, because the borrow checker does not accept returning a borrow that
            // the loop has tested.
            if matches!(message::decode(&buffer[..len]), Datagram::Record { .. }) {
                let Datagram::Record { kind, text } = message::decode(&buffer[..len]) else {
                    return Ok(None);
                };
                return Ok(Some(KernelRecord { kind, text }));
            }
        }
    }

    /// Sends a query and returns the data of the reply. If a flood of records pushes the reply out
    /// of the socket's buffer, the query is sent again.
    fn ask(&mut self, what: &'static str, asked: u16) -> Result<Vec<u8>, NetlinkError> {
        let mut left = ASKED_MAX;
        loop {
            left -= 1;
            match self.ask_once(what, asked) {
                Err(NetlinkError::Timeout { .. }) if left > 0 => {}
                other => return other,
            }
        }
    }

    /// Sends a query once. The kernel sends the reply from another thread, so it may arrive before or after the
    /// acknowledgement.
    fn ask_once(&mut self, what: &'static str, asked: u16) -> Result<Vec<u8>, NetlinkError> {
        let sequence = self.send(what, asked, &[])?;
        let mut answer = None;
        self.exchange(what, |datagram| match datagram {
            Datagram::Ack {
                sequence: to,
                result: Err(errno),
            } if to == sequence => Some(Err(NetlinkError::refused(what, errno))),
            Datagram::Reply {
                kind,
                sequence: to,
                payload,
            } if to == sequence && kind == asked => {
                answer = Some(payload.to_vec());
                Some(Ok(()))
            }
            _ => None,
        })?;

        Ok(answer.unwrap_or_default())
    }

    /// Sends a request, waits for its acknowledgement, and returns the result in it.
    fn request(
        &mut self,
        what: &'static str,
        kind: u16,
        payload: &[u8],
    ) -> Result<u32, NetlinkError> {
        let sequence = self.send(what, kind, payload)?;
        let mut answer = 0;
        self.exchange(what, |datagram| match datagram {
            Datagram::Ack {
                sequence: to,
                result,
            } if to == sequence => Some(
                result
                    .map(|value| answer = value)
                    .map_err(|errno| NetlinkError::refused(what, errno)),
            ),
            _ => None,
        })?;

        Ok(answer)
    }

    fn send(&mut self, what: &'static str, kind: u16, payload: &[u8]) -> Result<u32, NetlinkError> {
        // 0 is the number that records carry.
        self.sequence = self.sequence.wrapping_add(1).max(1);
        let bytes = message::request(kind, self.sequence, payload);
        let kernel = SocketAddrNetlink::new(0, 0);
        loop {
            match sendto(&self.fd, &bytes, SendFlags::empty(), &kernel) {
                Ok(_) => return Ok(self.sequence),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(NetlinkError::io(what, "sendto", errno)),
            }
        }
    }

    /// Reads datagrams until `done` returns a result; keeps records for [`receive`](Self::receive).
    fn exchange(
        &mut self,
        what: &'static str,
        mut done: impl FnMut(Datagram<'_>) -> Option<Result<(), NetlinkError>>,
    ) -> Result<(), NetlinkError> {
        let deadline = Instant::now() + ANSWER_TIMEOUT;
        let mut buffer = vec![0; RECORD_BYTES_MAX];

        loop {
            let len = match self.read_datagram(what, &mut buffer) {
                Ok(Some(len)) => len,
                Ok(None) => {
                    self.wait_readable(what, deadline)?;
                    continue;
                }
                Err(NetlinkError::Overrun) => {
                    self.overrun = true;
                    continue;
                }
                Err(error) => return Err(error),
            };
            match message::decode(&buffer[..len]) {
                Datagram::Record { kind, text } => {
                    if self.queued.len() < QUEUED_RECORDS_MAX {
                        self.queued.push_back((kind, text.to_vec()));
                    } else {
                        self.overrun = true;
                    }
                }
                other => {
                    if let Some(result) = done(other) {
                        return result;
                    }
                }
            }
        }
    }

    fn wait_readable(&self, what: &'static str, deadline: Instant) -> Result<(), NetlinkError> {
        let left = deadline.saturating_duration_since(Instant::now());
        let timed_out = NetlinkError::Timeout {
            what,
            timeout_ms: ANSWER_TIMEOUT.as_millis() as u64,
        };
        if left.is_zero() {
            return Err(timed_out);
        }

        let mut fds = [PollFd::new(&self.fd, PollFlags::IN)];
        let timeout = Timespec {
            tv_sec: left.as_secs() as i64,
            tv_nsec: left.subsec_nanos().into(),
        };

        match poll(&mut fds, Some(&timeout)) {
            Ok(0) => Err(timed_out),
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(errno) => Err(NetlinkError::io(what, "poll", errno)),
        }
    }

    /// Reads one datagram from the kernel and returns its length, or `None` if none is waiting. Ignores
    /// datagrams of other senders.
    fn read_datagram(
        &self,
        what: &'static str,
        buffer: &mut [u8],
    ) -> Result<Option<usize>, NetlinkError> {
        loop {
            match recvfrom(&self.fd, &mut *buffer, RecvFlags::empty()) {
                Ok((len, _, Some(from))) if is_kernel(&from) => {
                    return Ok(Some(len.min(buffer.len())))
                }
                Ok(_) | Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(None),
                Err(errno) => return Err(NetlinkError::io(what, "recvfrom", errno)),
            }
        }
    }
}

fn is_kernel(from: &SocketAddrAny) -> bool {
    SocketAddrNetlink::try_from(from.clone()).is_ok_and(|address| address.pid() == 0)
}

/// For an event loop: the descriptor is readable when records may have arrived. It is not for records
/// that were kept during a request: before waiting, call [`AuditSocket::receive`] until it returns
/// `None`.
impl AsFd for AuditSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
