//! Records that exclude and user rules drop.

use super::recorder::Generation;
use event::text;
use event::wire::Event;
use event::RecordType;
use plan::{ObjectId, Sender};

/// Whether an exclude rule drops a record of this kind in `event`.
pub(super) fn excludes(generation: &Generation, kind: RecordType, event: &Event<'_>) -> bool {
    let Some(filter) = &generation.exclude else {
        return false;
    };
    let header = event.header();
    let sender = Sender {
        tid: header.tid,
        uid: header.uid,
        gid: header.gid,
        auid: header.auid,
        exe: (header.exe.valid != 0).then_some(ObjectId {
            dev: header.exe.dev,
            ino: header.exe.ino,
        }),
    };
    filter.drops(kind.0.into(), &sender, &generation.identities)
}

/// Whether an exclude or user rule drops a record that was made elsewhere. What its text does not
/// tell (group, executable) is read from the process, while it is there.
pub(super) fn drops_message(generation: &Generation, kind: u16, message: &[u8]) -> bool {
    if generation.exclude.is_none() && generation.user.is_none() {
        return false;
    }
    drops_sent(generation, kind, &sender_of(message))
}

/// Whether an exclude or user rule drops a record that `sender` caused.
pub(super) fn drops_sent(generation: &Generation, kind: u16, sender: &Sender) -> bool {
    let drops = |filter: &Option<plan::RecordFilter>| {
        filter
            .as_ref()
            .is_some_and(|filter| filter.drops(kind.into(), sender, &generation.identities))
    };
    drops(&generation.exclude) || is_user_message(kind) && drops(&generation.user)
}

/// Messages that programs send: linux/audit.h, AUDIT_USER and the two ranges of user messages.
fn is_user_message(kind: u16) -> bool {
    matches!(kind, 1005 | 1100..=1199 | 2100..=2999)
}

fn sender_of(message: &[u8]) -> Sender {
    let body = text::parse_message(message).map_or(&b""[..], |(_, body)| body);
    let number = |name: &[u8]| {
        text::fields(body)
            .find(|field| field.name == name)
            .and_then(|field| text::number(field.value, 10))
            .and_then(|value| u32::try_from(value).ok())
    };
    let pid = number(b"pid").unwrap_or(0);
    let of_process = |name: &str| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix(name).map(str::to_owned))?;
        line.split_whitespace().next()?.parse().ok()
    };
    Sender {
        tid: pid,
        uid: number(b"uid")
            .or_else(|| of_process("Uid:"))
            .unwrap_or(u32::MAX),
        gid: of_process("Gid:").unwrap_or(u32::MAX),
        auid: number(b"auid").unwrap_or(u32::MAX),
        exe: capture::executable_of(pid),
    }
}
