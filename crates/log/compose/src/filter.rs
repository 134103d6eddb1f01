//! Decides which records the rules of the exclude and user lists drop.

use crate::generation::Generation;
use crate::host::Host;
use crate::identify::executable_of;
use crate::labels::Labels;
use crate::system::{KernelFile, System};
use plan::{ObjectId, RecordFilter, SecurityModule, Sender, Subject};
use record::text;
use record::wire::Event;
use record::RecordType;
use std::borrow::Cow;

/// The label of the task of `event`, if exclude rules ask about labels; the default otherwise.
pub(crate) struct TaskLabel {
    module: SecurityModule,
    label: Option<Cow<'static, [u8]>>,
}

impl TaskLabel {
    pub(crate) fn of(event: &Event<'_>, generation: &Generation, host: &Host) -> TaskLabel {
        let exclude = generation.exclude.as_ref();
        if exclude.is_some_and(RecordFilter::needs_label) {
            TaskLabel {
                module: host.labels.module(),
                label: host.subject(event),
            }
        } else {
            TaskLabel {
                module: SecurityModule::None,
                label: None,
            }
        }
    }

    /// The label of process `pid`.
    pub(crate) fn of_process(pid: u32, labels: Labels, system: &dyn System) -> TaskLabel {
        TaskLabel {
            module: labels.module(),
            label: labels.of(system, pid),
        }
    }

    fn subject(&self) -> Subject<'_> {
        Subject {
            module: self.module,
            label: self.label.as_deref(),
        }
    }
}

/// Whether an exclude rule drops the records of type `kind` in `event`, whose task has the label `label`.
pub(crate) fn excludes(
    generation: &Generation,
    kind: RecordType,
    event: &Event<'_>,
    label: &TaskLabel,
) -> bool {
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
        subject: label.subject(),
    };

    filter.drops(kind, &sender, &generation.identities)
}

/// Whether an exclude or user rule drops a record that was made elsewhere. `kind` is its nlmsg_type, `message` its
/// text, `audit(…): body`. Facts about the sender that the text lacks (always group and executable) are read from the
/// process, if it still exists.
pub fn drops_message(
    generation: &Generation,
    kind: RecordType,
    message: &[u8],
    system: &dyn System,
) -> bool {
    if generation.exclude.is_none() && generation.user.is_none() {
        return false;
    }
    let module = if needs_label(generation) {
        Labels::now(system).module()
    } else {
        SecurityModule::None
    };
    drops_of(generation, kind, &sender_of(message, module, system))
}

/// Whether an exclude or user rule drops a record of type `kind` (nlmsg_type) that process `pid` caused, with this
/// login uid and real user id.
pub fn drops_sent(
    generation: &Generation,
    kind: RecordType,
    (pid, uid, auid): (u32, u32, u32),
    system: &dyn System,
) -> bool {
    let label =
        needs_label(generation).then(|| TaskLabel::of_process(pid, Labels::now(system), system));
    let sender = Sender {
        tid: pid,
        uid,
        gid: 0,
        auid,
        exe: executable_of(pid, system),
        subject: label.as_ref().map(TaskLabel::subject).unwrap_or_default(),
    };
    drops_of(generation, kind, &sender)
}

fn needs_label(generation: &Generation) -> bool {
    let lists = [&generation.exclude, &generation.user];
    lists.into_iter().flatten().any(RecordFilter::needs_label)
}

fn drops_of(generation: &Generation, kind: RecordType, sender: &Sender<'_>) -> bool {
    let drops = |filter: &Option<RecordFilter>| {
        filter
            .as_ref()
            .is_some_and(|filter| filter.drops(kind, sender, &generation.identities))
    };
    drops(&generation.exclude) || kind.is_user_message() && drops(&generation.user)
}

/// The sender of a message. `module` is the one that gave the label that the message has.
fn sender_of<'m>(message: &'m [u8], module: SecurityModule, system: &dyn System) -> Sender<'m> {
    let body = text::parse_message(message).map_or(&b""[..], |(_, body)| body);
    let field = |name: &[u8]| text::fields(body).find(|field| field.name == name);
    let number = |name: &[u8]| {
        field(name)
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
        subject: Subject {
            module,
            label: field(b"subj").map(|field| field.value),
        },
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
        let told = sender_of(
            b"audit(1.002:3): pid=42 uid=1 auid=2 ses=3",
            SecurityModule::None,
            &system,
        );
        assert_eq!((told.tid, told.uid, told.gid, told.auid), (42, 1, 50, 2));
        let read = sender_of(b"audit(1.002:3): pid=42", SecurityModule::None, &system);
        assert_eq!((read.uid, read.gid, read.auid), (5, 50, u32::MAX));
        let gone = sender_of(b"audit(1.002:3): pid=43", SecurityModule::None, &system);
        assert_eq!((gone.tid, gone.uid, gone.gid), (43, u32::MAX, u32::MAX));
        let labelled = sender_of(
            b"audit(1.002:3): pid=42 subj=a:b:c:s0 msg='subj=x'",
            SecurityModule::Selinux,
            &system,
        );
        assert_eq!(labelled.subject.label, Some(&b"a:b:c:s0"[..]));
        assert_eq!(sender_of(b"no stamp", SecurityModule::None, &system).tid, 0);
    }
}
