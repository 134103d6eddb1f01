//! Decides which records the rules of the exclude and user lists drop.

use crate::generation::Generation;
use crate::identify::executable_of;
use crate::system::{KernelFile, System};
use event::text;
use event::wire::Event;
use event::RecordType;
use plan::{ObjectId, Sender};

/// Whether an exclude rule drops the records of type `kind` in `event`.
pub(crate) fn excludes(generation: &Generation, kind: RecordType, event: &Event<'_>) -> bool {
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

/// Whether an exclude or user rule drops a record that was made elsewhere. `kind` is its nlmsg_type, `message` its
/// text, `audit(…): body`. What the text lacks of its sender (always group and executable) is read from the process,
/// if that still exists.
pub fn drops_message(
    generation: &Generation,
    kind: u16,
    message: &[u8],
    system: &dyn System,
) -> bool {
    if generation.exclude.is_none() && generation.user.is_none() {
        return false;
    }
    drops_sent(generation, kind, &sender_of(message, system))
}

/// Whether an exclude or user rule drops a record of type `kind` (nlmsg_type) that `sender` caused.
pub fn drops_sent(generation: &Generation, kind: u16, sender: &Sender) -> bool {
    let drops = |filter: &Option<plan::RecordFilter>| {
        filter
            .as_ref()
            .is_some_and(|filter| filter.drops(kind.into(), sender, &generation.identities))
    };
    drops(&generation.exclude) || is_user_message(kind) && drops(&generation.user)
}

/// Whether `kind` is a message type of user-space programs: AUDIT_USER and two ranges of linux/audit.h.
fn is_user_message(kind: u16) -> bool {
    matches!(kind, 1005 | 1100..=1199 | 2100..=2999)
}

fn sender_of(message: &[u8], system: &dyn System) -> Sender {
    let body = text::parse_message(message).map_or(&b""[..], |(_, body)| body);
    let number = |name: &[u8]| {
        text::fields(body)
            .find(|field| field.name == name)
            .and_then(|field| text::number(field.value, 10))
            .and_then(|value| u32::try_from(value).ok())
    };
    let pid = number(b"pid").unwrap_or(0);
    let of_process = |name: &str| {
        let status = system.kernel_file(KernelFile::Status(pid))?;
        let status = String::from_utf8(status).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()?.parse().ok()
    };
    Sender {
        tid: pid,
        uid: number(b"uid")
            .or_else(|| of_process("Uid:"))
            .unwrap_or(u32::MAX),
        gid: of_process("Gid:").unwrap_or(u32::MAX),
        auid: number(b"auid").unwrap_or(u32::MAX),
        exe: executable_of(pid, system),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::static_system::{StaticFile, StaticSystem};

    #[test]
    fn what_a_message_does_not_tell_of_its_sender_is_read_from_the_process() {
        let status = b"Name:\tcat\nUid:\t5\t6\t7\t8\nGid:\t50\t60\t70\t80\n";
        let status = StaticFile {
            contents: status.to_vec(),
            ..StaticFile::default()
        };
        let system = StaticSystem {
            files: [("/proc/42/status", status)].into(),
            ..StaticSystem::default()
        };
        let told = sender_of(b"audit(1.002:3): pid=42 uid=1 auid=2 ses=3", &system);
        assert_eq!((told.tid, told.uid, told.gid, told.auid), (42, 1, 50, 2));
        let read = sender_of(b"audit(1.002:3): pid=42", &system);
        assert_eq!((read.uid, read.gid, read.auid), (5, 50, u32::MAX));
        let gone = sender_of(b"audit(1.002:3): pid=43", &system);
        assert_eq!((gone.tid, gone.uid, gone.gid), (43, u32::MAX, u32::MAX));
        assert_eq!(sender_of(b"no stamp", &system).tid, 0);
    }

    #[test]
    fn messages_of_programs_are_those_of_linux_audit_h() {
        for kind in [1005, 1100, 1199, 2100, 2999] {
            assert!(is_user_message(kind), "{kind}");
        }
        for kind in [1000, 1099, 1200, 1300, 2099, 3000] {
            assert!(!is_user_message(kind), "{kind}");
        }
    }
}
