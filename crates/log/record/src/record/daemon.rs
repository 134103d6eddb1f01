//! DAEMON_*: records of the audit daemon about itself. Their serials are a sequence of the daemon's own.

use super::Body;
use crate::{put, RecordType};

/// DAEMON_START (1200), as auditd 3.0.9 (src/auditd.c) writes it, with optional fields of our own before `res`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DaemonStart<'a> {
    /// Version of the daemon.
    pub ver: &'a str,
    /// `raw`, `enriched` or `json`.
    pub format: &'a str,
    /// Release of the kernel (uname -r).
    pub kernel: &'a str,
    /// Login uid of the daemon.
    pub auid: u32,
    #[allow(missing_docs)]
    pub pid: u32,
    #[allow(missing_docs)]
    pub uid: u32,
    #[allow(missing_docs)]
    pub ses: u32,
    /// Label of the daemon. auditd writes the newline that AppArmor puts after it as a blank.
    pub subj: Option<&'a [u8]>,
    /// More fields, in order: names and values that need no quoting.
    pub extra: &'a [(&'a str, &'a str)],
    /// `success` or `failed`.
    pub res: &'a str,
}

impl Body for DaemonStart<'_> {
    fn kind(&self) -> RecordType {
        RecordType::DAEMON_START
    }

    fn write(&self, out: &mut Vec<u8>) {
        put::text(out, "op=start ver=");
        put::text(out, self.ver);
        put::text(out, " format=");
        put::text(out, self.format);
        put::text(out, " kernel=");
        put::text(out, self.kernel);
        put::field(out, " auid=", self.auid);
        put::field(out, " pid=", self.pid);
        put::field(out, " uid=", self.uid);
        put::field(out, " ses=", self.ses);
        put::label(out, " subj=", self.subj);
        write_extra(out, self.extra);
        put::text(out, " res=");
        put::text(out, self.res);
    }
}

/// Any other DAEMON_* record: DAEMON_END, ABORT, CONFIG, ROTATE, RESUME, ERR …
///
/// auid, uid, ses and pid are those of the process whose signal asked for the action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DaemonAction<'a> {
    /// Type of the record.
    pub kind: RecordType,
    /// `terminate`, `reconfigure`, `rotate-logs`, `resume-logging`, …
    pub op: &'a str,
    /// DAEMON_CONFIG: `changed` or `no-change`.
    pub state: Option<&'a str>,
    #[allow(missing_docs)]
    pub auid: u32,
    /// User id. auditd leaves out uid and ses in DAEMON_CONFIG and DAEMON_ABORT.
    pub uid: Option<u32>,
    /// Login session; see `uid`.
    pub ses: Option<u32>,
    #[allow(missing_docs)]
    pub pid: u32,
    /// Label of the sender, if known.
    pub subj: Option<&'a [u8]>,
    /// More fields, in order: names and values that need no quoting.
    pub extra: &'a [(&'a str, &'a str)],
    /// `success` or `failed`.
    pub res: &'a str,
}

impl Body for DaemonAction<'_> {
    fn kind(&self) -> RecordType {
        self.kind
    }

    fn write(&self, out: &mut Vec<u8>) {
        put::text(out, "op=");
        put::text(out, self.op);
        if let Some(state) = self.state {
            put::text(out, " state=");
            put::text(out, state);
        }

        put::field(out, " auid=", self.auid);
        if let Some(uid) = self.uid {
            put::field(out, " uid=", uid);
        }

        if let Some(ses) = self.ses {
            put::field(out, " ses=", ses);
        }

        put::field(out, " pid=", self.pid);
        put::label(out, " subj=", self.subj);
        write_extra(out, self.extra);
        put::text(out, " res=");
        put::text(out, self.res);
    }
}

fn write_extra(out: &mut Vec<u8>, extra: &[(&str, &str)]) {
    for (name, value) in extra {
        out.push(b' ');
        put::text(out, name);
        out.push(b'=');
        put::text(out, value);
    }
}
