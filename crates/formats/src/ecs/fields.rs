//! The tables: which field of which record goes into which field of ECS. [`super::super::facts::Facts::find`] lists
//! what a source may be.

use super::super::row::{row, How::*, Row};

/// Fields that every event has, before all others.
#[rustfmt::skip]
pub(super) const EVENT: &[Row] = &[
    row("event.time_ms", "@timestamp", Time),
    row("=9.4.0", "ecs.version", Same),
    row("=event", "event.kind", Same),
    row("=auditd", "event.module", Same),
    row("=auditd.log", "event.dataset", Same),
    row("=tarsier", "event.provider", Same),
    row("event.uid", "event.id", Same),
    row("event.serial", "event.sequence", Integer),
    row("event.errno", "error.code", Text),
    row("event.original", "event.original", Same),
    row("event.keys", "tags", List),
];

/// Fields that every event may have, after the tables for its act.
pub(super) const EVERY: &[&[Row]] = &[SUBJECT, PROCESS, WORKLOAD, HOST, AUDITD];

/// The acting user.
#[rustfmt::skip]
const SUBJECT: &[Row] = &[
    row("*.auid", "user.audit.id", Id),
    row("names.AUID", "user.audit.name", Name),
    row("*.uid", "user.id", Id),
    row("names.UID", "user.name", Name),
    row("*.euid", "user.effective.id", Id),
    row("names.EUID", "user.effective.name", Name),
    row("*.gid", "user.group.id", Id),
    row("names.GID", "user.group.name", Name),
    row("*.egid", "user.effective.group.id", Id),
    row("names.EGID", "user.effective.group.name", Name),
    row("*.fsuid", "user.filesystem.id", Id),
    row("names.FSUID", "user.filesystem.name", Name),
    row("*.fsgid", "user.filesystem.group.id", Id),
];

/// The process that acts.
#[rustfmt::skip]
const PROCESS: &[Row] = &[
    row("*.pid", "process.pid", Integer),
    row("*.ppid", "process.parent.pid", Integer),
    row("*.comm|msg.comm", "process.name", Text),
    row("*.exe|msg.exe", "process.executable", Text),
    row("process.args", "process.args", List),
    row("process.args_count", "process.args_count", Integer),
    row("process.command_line", "process.command_line", Text),
    row("process.title", "process.title", Text),
    row("CWD.cwd", "process.working_directory", Text),
    row("*.uid", "process.real_user.id", Id),
    row("names.UID", "process.real_user.name", Name),
    row("*.euid", "process.user.id", Id),
    row("names.EUID", "process.user.name", Name),
    row("*.suid", "process.saved_user.id", Id),
    row("names.SUID", "process.saved_user.name", Name),
    row("*.gid", "process.real_group.id", Id),
    row("names.GID", "process.real_group.name", Name),
    row("*.egid", "process.group.id", Id),
    row("names.EGID", "process.group.name", Name),
    row("*.sgid", "process.saved_group.id", Id),
    row("names.SGID", "process.saved_group.name", Name),
];

/// The workload of the event.
#[rustfmt::skip]
const WORKLOAD: &[Row] = &[
    row("workload.container.id", "container.id", Text),
    row("workload.container.runtime", "container.runtime", Text),
    row("workload.pod.uid", "orchestrator.resource.id", Text),
    row("workload.user_unit|workload.unit", "service.name", Text),
    row("workload.cgroup", "auditd.cgroup", Text),
];

/// The machine.
#[rustfmt::skip]
const HOST: &[Row] = &[
    row("event.host", "host.name", Text),
    row("event.host", "host.hostname", Text),
    row("=linux", "host.os.type", Same),
];

/// Fields that ECS does not define.
#[rustfmt::skip]
const AUDITD: &[Row] = &[
    row("event.kinds", "auditd.record_types", List),
    row("event.original_hex", "auditd.original_hex", Same),
    row("*.ses", "auditd.session", Id),
    row("*.arch", "auditd.data.arch", Text),
    row("call.name", "auditd.data.syscall", Text),
    row("call.via", "auditd.data.via", Text),
    row("*.exit", "auditd.data.exit", Text),
    row("SYSCALL.a0", "auditd.data.a0", Text),
    row("SYSCALL.a1", "auditd.data.a1", Text),
    row("SYSCALL.a2", "auditd.data.a2", Text),
    row("SYSCALL.a3", "auditd.data.a3", Text),
    row("*.tty|msg.terminal", "auditd.data.tty", Text),
    row("*.subj", "auditd.data.subj", Text),
    row("*.op|msg.op", "auditd.data.op", Text),
    row("*.sig", "auditd.data.sig", Text),
    row("*.code", "auditd.data.code", Text),
    row("*.words", "auditd.data.words", Text),
    row("msg.grantors", "auditd.data.grantors", Text),
    row("msg.text", "auditd.data.text", Text),
    row("*.old-auid", "auditd.data.old_auid", Id),
    row("*.old-ses", "auditd.data.old_ses", Id),
    row("*.old", "auditd.data.old", Text),
    row("*.list", "auditd.data.list", Text),
    row("*.prog-id", "auditd.data.prog_id", Text),
    row("OBJ_PID.ocomm", "auditd.data.ocomm", Text),
    row("OBJ_PID.opid", "auditd.data.opid", Text),
    row("OBJ_PID.ouid", "auditd.data.ouid", Id),
];

/// The object.
#[rustfmt::skip]
pub(super) const FILE: &[Row] = &[
    row("file.path", "file.path", Text),
    row("file.name", "file.name", Text),
    row("file.directory", "file.directory", Text),
    row("file.extension", "file.extension", Text),
    row("file.inode", "file.inode", Text),
    row("file.dev", "file.device", Text),
    row("file.mode", "file.mode", Text),
    row("file.type", "file.type", Text),
    row("file.ouid", "file.uid", Id),
    row("file.owner", "file.owner", Name),
    row("file.ogid", "file.gid", Id),
    row("file.group", "file.group", Name),
];

/// The old name of a rename, and what a link leads to.
pub(super) const ORIGIN: &[Row] = &[row("origin.path", "auditd.data.old_path", Text)];

/// A kernel module.
pub(super) const MODULE: &[Row] = &[row("KERN_MODULE.name", "auditd.data.module", Text)];

/// The child of a fork.
pub(super) const FORK: &[Row] = &[
    row("process.child", "process.pid", Integer),
    row("SYSCALL.pid", "process.parent.pid", Integer),
];

/// A process that is signalled or traced: see `auditd.data.opid`.
pub(super) const TARGET_PROCESS: &[Row] = &[
    row("OBJ_PID.ouid", "user.target.id", Id),
    row("names.OUID", "user.target.name", Name),
];

/// The other end, towards which a call goes.
#[rustfmt::skip]
pub(super) const TO_PEER: &[Row] = &[
    row("socket.ip|socket.path", "destination.address", Text),
    row("socket.ip", "destination.ip", Ip),
    row("socket.port", "destination.port", Port),
    row("socket.type", "network.type", Text),
    row("=egress", "network.direction", Same),
];

/// The other end, from which something comes.
#[rustfmt::skip]
pub(super) const FROM_PEER: &[Row] = &[
    row("socket.ip|socket.path", "source.address", Text),
    row("socket.ip", "source.ip", Ip),
    row("socket.port", "source.port", Port),
    row("socket.type", "network.type", Text),
    row("=ingress", "network.direction", Same),
];

/// The own end.
#[rustfmt::skip]
pub(super) const OWN_SOCKET: &[Row] = &[
    row("socket.ip|socket.path", "source.address", Text),
    row("socket.ip", "source.ip", Ip),
    row("socket.port", "source.port", Port),
    row("socket.type", "network.type", Text),
];

/// Somebody logs in: the account, not the program that lets it in.
#[rustfmt::skip]
pub(super) const LOGIN: &[Row] = &[
    row("msg.id", "user.id", Id),
    row("msg.acct|names.ID", "user.name", Name),
    row("msg.addr", "source.ip", Ip),
    row("msg.addr|msg.hostname", "source.address", Text),
];

/// An account that is changed.
#[rustfmt::skip]
pub(super) const ACCOUNT: &[Row] = &[
    row("msg.id", "user.target.id", Id),
    row("msg.acct|names.ID", "user.target.name", Name),
];

/// A group that is changed.
#[rustfmt::skip]
pub(super) const GROUP: &[Row] = &[
    row("msg.gid", "group.id", Id),
    row("msg.grp|msg.acct|names.GRP", "group.name", Name),
    row("msg.id", "user.target.id", Id),
    row("msg.acct", "user.target.name", Name),
];

/// A command by sudo: the program is the one that runs it.
#[rustfmt::skip]
pub(super) const COMMAND: &[Row] = &[
    row("msg.cmd", "process.command_line", Text),
    row("msg.cwd", "process.working_directory", Text),
];

/// A unit of systemd.
pub(super) const SERVICE: &[Row] = &[row("msg.unit", "service.name", Text)];
