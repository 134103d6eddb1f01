//! DAEMON_* records, in which Tarsier reports on itself as auditd does.

use crate::event_loop::signals::Sender;
use crate::protocol::{beginning, RulesInForce};
use record::record::{DaemonAction, DaemonStart};
use record::{put, Encoder, RecordType, Stamp};

/// Identity of this process, of a client, or of the sender of a signal.
#[derive(Clone, Copy)]
pub(crate) struct Who {
    pub(crate) auid: u32,
    pub(crate) uid: u32,
    pub(crate) ses: u32,
    pub(crate) pid: u32,
}

impl Who {
    /// This process.
    pub(crate) fn this_process() -> Who {
        Who {
            auid: own("loginuid"),
            uid: rustix::process::getuid().as_raw(),
            ses: own("sessionid"),
            pid: std::process::id(),
        }
    }

    /// The sender of a signal, as far as it is still there. A signal of the kernel, for example for a terminal, has none.
    pub(crate) fn of_signal(sender: Option<Sender>) -> Who {
        let unknown = Sender {
            pid: 0,
            uid: u32::MAX,
        };
        let Sender { pid, uid } = sender.unwrap_or(unknown);
        let auid = std::fs::read_to_string(format!("/proc/{pid}/loginuid"));
        let auid = auid.ok().and_then(|text| text.trim().parse().ok());
        Who {
            uid,
            ..Who::sender(auid.unwrap_or(u32::MAX), pid)
        }
    }

    /// Process `pid`, whose login uid the kernel has reported.
    pub(crate) fn sender(auid: u32, pid: u32) -> Who {
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

/// Encodes DAEMON_START. `rules` are what the start has put in force.
pub(crate) fn start(
    encoder: &mut Encoder,
    out: &mut Vec<u8>,
    stamp: Stamp,
    engine: &str,
    rules: &RulesInForce,
) {
    let kernel = rustix::system::uname()
        .release()
        .to_string_lossy()
        .into_owned();

    let format = match encoder.format() {
        record::Format::Raw => "raw",
        record::Format::Enriched => "enriched",
        record::Format::Json => "json",
    };
    let who = Who::this_process();
    let (count, places) = (rules.left_out_count.to_string(), places(rules));

    let mut extra = vec![
        ("engine", engine),
        ("rules", rules.origin.name()),
        ("rules_digest", rules.digest.as_str()),
    ];
    if rules.left_out_count > 0 {
        extra.extend([("left_out", count.as_str()), ("lines", places.as_str())]);
    }

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
        extra: &extra,
        res: "success",
    });
    writer.end();
}

/// The first lines that are not in force, as `FILE:LINE,…`; a file without a line is not in force at all.
fn places(rules: &RulesInForce) -> String {
    let shown = rules.left_out.iter().take(RulesInForce::SHOWN_MAX);
    let places: Vec<String> = shown
        .map(|left| match left.line {
            0 => left.file.clone(),
            line => format!("{}:{line}", left.file),
        })
        .collect();
    let text = places.join(",");
    untrusted(beginning(&text, PLACES_BYTES_MAX))
}

/// Longest list of places in a record, in bytes: in hexadecimal it is twice as long, and a record of audit has up to 8970
/// bytes.
const PLACES_BYTES_MAX: usize = 3000;

/// An action, the process that asked for it, and whether it succeeded.
pub(crate) struct LoggedAction<'a> {
    pub(crate) kind: RecordType,
    pub(crate) op: &'a str,
    pub(crate) who: Who,
    pub(crate) extra: &'a [(&'a str, &'a str)],
    pub(crate) is_success: bool,
}

/// Encodes any other DAEMON_* record.
pub(crate) fn action(
    encoder: &mut Encoder,
    out: &mut Vec<u8>,
    stamp: Stamp,
    action: &LoggedAction<'_>,
) {
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

/// A value as the kernel writes those of others: quoted, or in hexadecimal.
pub(crate) fn untrusted(text: &str) -> String {
    let mut out = Vec::new();
    put::untrusted(&mut out, text.as_bytes());
    String::from_utf8_lossy(&out).into_owned()
}

/// A text whose words are joined, since blanks end a value.
pub(crate) fn words(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join("-").replace('"', "'")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_stay_readable_and_no_field_can_be_forged() {
        let value = |text: &str| untrusted(&words(text));
        assert_eq!(
            value("-F unknown field: unit"),
            "\"-F-unknown-field:-unit\""
        );
        assert_eq!(value("a \"b\" res=success"), "\"a-'b'-res=success\"");
        assert!(untrusted("/a b/x.rules")
            .bytes()
            .all(|byte| byte.is_ascii_hexdigit()));
    }
}
