//! DAEMON_* records, in which Tarsier reports on itself as auditd does.

use event::record::{DaemonAction, DaemonStart};
use event::{Encoder, RecordType, Stamp};

/// Identity of this process, of a client, or of the sender of a signal.
#[derive(Clone, Copy)]
pub(super) struct Who {
    pub(super) auid: u32,
    pub(super) uid: u32,
    pub(super) ses: u32,
    pub(super) pid: u32,
}

impl Who {
    /// This process.
    pub(super) fn this_process() -> Who {
        Who {
            auid: own("loginuid"),
            uid: rustix::process::getuid().as_raw(),
            ses: own("sessionid"),
            pid: std::process::id(),
        }
    }

    /// Process `pid`, whose login uid the kernel has reported.
    pub(super) fn sender(auid: u32, pid: u32) -> Who {
        let read = |name: &str| std::fs::read_to_string(format!("/proc/{pid}/{name}")).ok();
        let ses = read("sessionid").and_then(|text| text.trim().parse().ok());
        let uid = read("status").and_then(|status| {
            let line = status
                .lines()
                .find_map(|line| line.strip_prefix("Uid:").map(str::to_owned));
            line?.split_whitespace().next()?.parse().ok()
        });
        Who {
            auid,
            uid: uid.unwrap_or(u32::MAX),
            ses: ses.unwrap_or(u32::MAX),
            pid,
        }
    }
}

fn own(name: &str) -> u32 {
    std::fs::read_to_string(format!("/proc/self/{name}"))
        .ok()
        .and_then(|text| text.trim().parse().ok())
        .unwrap_or(u32::MAX)
}

/// Encodes DAEMON_START.
pub(super) fn start(encoder: &mut Encoder, out: &mut Vec<u8>, stamp: Stamp, engine: &str) {
    let kernel = rustix::system::uname()
        .release()
        .to_string_lossy()
        .into_owned();
    let format = match encoder.format() {
        event::Format::Raw => "raw",
        event::Format::Enriched => "enriched",
        event::Format::Json => "json",
    };
    let who = Who::this_process();
    let mut writer = encoder.begin(out, stamp);
    writer.put(&DaemonStart {
        ver: env!("CARGO_PKG_VERSION"),
        format,
        kernel: &kernel,
        auid: who.auid,
        pid: who.pid,
        uid: who.uid,
        ses: who.ses,
        subj: None,
        extra: &[("engine", engine)],
        res: "success",
    });
    writer.end();
}

/// An action, the process that asked for it, and whether it succeeded.
pub(super) struct Action<'a> {
    pub(super) kind: RecordType,
    pub(super) op: &'a str,
    pub(super) who: Who,
    pub(super) extra: &'a [(&'a str, &'a str)],
    pub(super) is_success: bool,
}

/// Encodes any other DAEMON_* record.
pub(super) fn action(encoder: &mut Encoder, out: &mut Vec<u8>, stamp: Stamp, action: &Action<'_>) {
    // auditd omits uid and ses in this record.
    let is_brief = action.kind == RecordType::DAEMON_CONFIG;
    let who = action.who;
    let mut writer = encoder.begin(out, stamp);
    writer.put(&DaemonAction {
        kind: action.kind,
        op: action.op,
        state: None,
        auid: who.auid,
        uid: (!is_brief).then_some(who.uid),
        ses: (!is_brief).then_some(who.ses),
        pid: who.pid,
        subj: None,
        extra: action.extra,
        res: if action.is_success {
            "success"
        } else {
            "failed"
        },
    });
    writer.end();
}
