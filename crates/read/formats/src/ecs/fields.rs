//! The tables: which field of which record goes into which field of ECS. [`super::super::facts::Facts::find`] lists
//! what a source may be.

use super::super::rest::Placed;
use super::super::row::{row, How::*, Row};

/// Fields that every event has, before all others.
#[rustfmt::skip]
pub(super) const EVENT: &[Row] = &[
    row("event.time_ms", "@timestamp", Time),
    row("=9.4.0", "ecs.version", Same),
    row("=event", "event.kind", Same),
    row("=auditd", "event.module", Same),
    row("=tarsier", "event.provider", Same),
    row("event.uid", "event.id", Same),
    row("event.serial", "event.sequence", Integer),
    row("event.errno", "error.code", Text),
    row("event.original", "event.original", Same),
    row("event.keys", "tags", List),
];

/// Fields that every event may have, after the tables for its act.
pub(super) const EVERY: &[&[Row]] = &[AUDIT_ID, PROCESS, PEERS, WORKLOAD, HOST, AUDITD];

/// The user that acts. If an account proves who it is, `user` is that account ([`LOGIN`]), and these are the program's.
#[rustfmt::skip]
pub(super) const USER: &[Row] = &[
    row("*.uid", "user.id", Id),
    row("names.UID", "user.name", Name),
    row("*.euid", "user.effective.id", Id),
    row("names.EUID", "user.effective.name", Name),
    row("*.gid", "user.group.id", Id),
    row("names.GID", "user.group.name", Name),
    row("*.egid", "user.effective.group.id", Id),
    row("names.EGID", "user.effective.group.name", Name),
];

/// The login id, which is never that of another.
#[rustfmt::skip]
const AUDIT_ID: &[Row] = &[
    row("*.auid", "user.audit.id", Id),
    row("names.AUID", "user.audit.name", Name),
];

/// Ids of the user that acts on files.
#[rustfmt::skip]
pub(super) const FILESYSTEM: &[Row] = &[
    row("*.fsuid", "user.filesystem.id", Id),
    row("names.FSUID", "user.filesystem.name", Name),
    row("*.fsgid", "user.filesystem.group.id", Id),
    row("names.FSGID", "user.filesystem.group.name", Name),
];

/// Fields of the subject that have places if `user` is an account: not those of [`FILESYSTEM`].
pub(super) const PLACED_OF_LOGIN: Placed = Placed {
    subject: &[
        "auid", "uid", "euid", "suid", "gid", "egid", "sgid", "pid", "ppid", "comm", "exe", "ses",
    ],
    names: &["AUID", "UID", "EUID", "SUID", "GID", "EGID", "SGID"],
    process: PLACED.process,
};

/// Fields of the subject that have places.
pub(super) const PLACED: Placed = Placed {
    subject: &[
        "auid", "uid", "euid", "suid", "fsuid", "gid", "egid", "sgid", "fsgid", "pid", "ppid",
        "comm", "exe", "ses",
    ],
    names: &[
        "AUID", "UID", "EUID", "SUID", "FSUID", "GID", "EGID", "SGID", "FSGID",
    ],
    process: &["argv", "proctitle", "cwd"],
};

/// The process that acts.
#[rustfmt::skip]
const PROCESS: &[Row] = &[
    row("*.pid", "process.pid", Integer),
    row("*.ppid", "process.parent.pid", Integer),
    row("*.comm|msg.comm", "process.name", Text),
    row("*.exe|msg.exe", "process.name", Base),
    row("*.exe|msg.exe", "process.executable", Text),
    row("process.sha256", "process.hash.sha256", Text),
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

/// The process that acts as one of a tree; not where `process` is the child of a fork ([`FORK`]).
#[rustfmt::skip]
pub(super) const LINEAGE: &[Row] = &[
    row("process.entity", "process.entity_id", Text),
    row("process.parent_entity", "process.parent.entity_id", Text),
    row("process.parent_exe", "process.parent.executable", Text),
    row("process.parent_exe", "process.parent.name", Base),
    row("process.parent_args", "process.parent.args", List),
    row("process.parent_args_count", "process.parent.args_count", Integer),
    row("process.parent_command_line", "process.parent.command_line", Text),
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
    // Sequences and groups of Elastic's rules are by this. ECS leaves open what it is.
    row("event.host", "host.id", Text),
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
    row("event.message_type", "auditd.message_type", Same),
    row("event.result", "auditd.result", Same),
    row("event.labels", "auditd.labels", List),
    row("event.match", "auditd.match", Text),
    row("process.ancestors", "auditd.ancestors", List),
    row("process.script", "auditd.script", Text),
    row("event.hashes", "auditd.hashes", Same),
    row("call.name", "auditd.data.syscall", Text),
    row("call.via", "auditd.data.via", Text),
    row("*.tty|msg.terminal", "auditd.data.tty", Text),
];

/// Addresses that records name.
#[rustfmt::skip]
const PEERS: &[Row] = &[
    row("from.address", "source.address", Text),
    row("from.ip", "source.ip", Ip),
    row("from.port", "source.port", Port),
    row("to.address", "destination.address", Text),
    row("to.ip", "destination.ip", Ip),
    row("to.port", "destination.port", Port),
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
    row("file.hash", "file.hash.md5", Hash("md5")),
    row("file.hash", "file.hash.sha1", Hash("sha1")),
    row("file.hash", "file.hash.sha256", Hash("sha256")),
    row("file.hash", "file.hash.sha384", Hash("sha384")),
    row("file.hash", "file.hash.sha512", Hash("sha512")),
];

/// The old name of a rename, and what a link leads to.
pub(super) const ORIGIN: &[Row] = &[row("origin.path", "auditd.data.old_path", Text)];

/// A kernel module.
pub(super) const MODULE: &[Row] = &[row("KERN_MODULE.name", "auditd.data.module", Text)];

/// The child of a fork, whose parent is the process that acts.
#[rustfmt::skip]
pub(super) const FORK: &[Row] = &[
    row("process.child", "process.pid", Integer),
    row("SYSCALL.pid", "process.parent.pid", Integer),
    row("SYSCALL.exe", "process.parent.executable", Text),
    row("SYSCALL.exe", "process.parent.name", Base),
    row("process.entity", "process.parent.entity_id", Text),
    row("SYSCALL.ppid", "auditd.data.ppid", Text),
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

/// Ports that SELinux names without an address.
pub(super) const PORTS: &[Row] = &[
    row("AVC.src", "source.port", Port),
    row("AVC.dest", "destination.port", Port),
];

/// A packet.
pub(super) const PACKET: &[Row] = &[row("NETFILTER_PKT.proto", "network.iana_number", Text)];

/// The user on whose request the program that writes the record decides. `uid=` outside of `msg='…'` is the program's.
#[rustfmt::skip]
pub(super) const ASKING: &[Row] = &[
    row("msg.uid", "user.id", Id),
    row("names.MSG_UID", "user.name", Name),
    row("msg.gid", "user.group.id", Id),
];

/// An account proves who it is: it is the user, not the program that lets it in.
#[rustfmt::skip]
pub(super) const LOGIN: &[Row] = &[
    row("account.id", "user.id", Id),
    row("account.name", "user.name", Name),
    row("group.id", "group.id", Id),
    row("group.name", "group.name", Name),
    row("from.address|from.hostname", "source.address", Text),
];

/// An account or a group that is changed.
#[rustfmt::skip]
pub(super) const ACCOUNT: &[Row] = &[
    row("account.id", "user.target.id", Id),
    row("account.name", "user.target.name", Name),
    row("group.id", "group.id", Id),
    row("group.name", "group.name", Name),
];

/// A package.
#[rustfmt::skip]
pub(super) const PACKAGE: &[Row] = &[
    row("package.name", "package.name", Text),
    row("package.version", "package.version", Text),
    row("package.architecture", "package.architecture", Text),
    row("package.type", "package.type", Text),
];

/// A command by sudo: the program is the one that runs it.
#[rustfmt::skip]
pub(super) const COMMAND: &[Row] = &[
    row("msg.cmd", "process.command_line", Text),
    row("msg.cwd", "process.working_directory", Text),
];

/// A unit of systemd.
pub(super) const SERVICE: &[Row] = &[row("msg.unit", "service.name", Text)];
