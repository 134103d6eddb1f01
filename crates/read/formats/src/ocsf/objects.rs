//! The tables: which field of which record goes into which attribute of OCSF. [`super::super::facts::Facts::find`]
//! lists what a source may be.

use super::super::rest::Placed;
use super::super::row::{row, How::*, Row};

/// Profiles whose attributes are used.
pub(super) const PROFILES: [&str; 4] =
    ["host", "container", "security_control", "linux/linux_users"];

/// Attributes that every event has.
#[rustfmt::skip]
pub(super) const EVENT: &[Row] = &[
    row("event.time_ms", "time", Integer),
    row("event.original", "raw_data", Same),
    row("event.errno", "status_code", Text),
    row("=1.8.0", "metadata.version", Same),
    row("=Tarsier", "metadata.product.name", Same),
    row("=Tarsier", "metadata.product.vendor_name", Same),
    row("event.uid", "metadata.uid", Same),
    row("event.serial", "metadata.original_event_uid", Text),
    row("event.keys", "metadata.labels", List),
    row("=audit.log", "metadata.log_name", Same),
    row("event.host", "device.hostname", Text),
    row("=Linux", "device.os.name", Same),
    // What the schema has no attribute for, apart from the fields of records.
    row("event.kinds", "unmapped.record_types", List),
    row("event.original_hex", "unmapped.raw_data_hex", Same),
    row("event.labels", "unmapped.labels", List),
    row("event.match", "unmapped.match", Text),
    row("call.via", "unmapped.via", Text),
    row("process.ancestors", "unmapped.ancestors", List),
    row("process.script", "unmapped.script", Text),
    row("event.hashes", "unmapped.hashes", Same),
    row("call.name", "unmapped.syscall", Text),
    row("workload.unit", "unmapped.unit", Text),
    row("workload.user_unit", "unmapped.user_unit", Text),
    row("workload.cgroup", "unmapped.cgroup", Text),
    row("workload.pod.uid", "unmapped.pod", Text),
];

/// Fields of the subject that [`ACTOR`] takes from an event with a process.
pub(super) const PLACED: Placed = Placed {
    subject: &[
        "auid", "uid", "euid", "egid", "pid", "ppid", "comm", "exe", "ses", "tty",
    ],
    names: &["UID", "EUID", "EGID"],
    process: &["argv", "cwd"],
};

/// Fields of the subject that [`ACTOR`] takes from an event without: OCSF has no process without `pid`.
pub(super) const PLACED_WITHOUT_PROCESS: Placed = Placed {
    subject: &["uid", "ses", "tty"],
    names: &["UID"],
    process: &[],
};

/// The actor: user, session and process.
#[rustfmt::skip]
pub(super) const ACTOR: &[Row] = &[
    row("*.uid", "actor.user.uid", Id),
    row("names.UID", "actor.user.name", Name),
    row("*.ses", "actor.session.uid", Id),
    row("*.tty|msg.terminal", "actor.session.terminal", Text),
    row("*.pid", "actor.process.pid", Integer),
    row("process.entity", "actor.process.uid", Text),
    row("*.comm|msg.comm", "actor.process.name", Text),
    row("*.exe|msg.exe", "actor.process.name", Base),
    row("*.exe|msg.exe", "actor.process.path", Text),
    row("process.command_line", "actor.process.cmd_line", Text),
    row("CWD.cwd", "actor.process.working_directory", Text),
    row("*.ppid", "actor.process.parent_process.pid", Integer),
    row("process.parent_entity", "actor.process.parent_process.uid", Text),
    row("process.parent_exe", "actor.process.parent_process.name", Base),
    row("process.parent_exe", "actor.process.parent_process.path", Text),
    row("process.parent_command_line", "actor.process.parent_process.cmd_line", Text),
    row("*.euid", "actor.process.user.uid", Id),
    row("names.EUID", "actor.process.user.name", Name),
    row("*.egid", "actor.process.group.uid", Id),
    row("names.EGID", "actor.process.group.name", Name),
    row("*.auid", "actor.process.auid", IdNumber),
    row("*.euid", "actor.process.euid", IdNumber),
    row("*.egid", "actor.process.egid", IdNumber),
    row("workload.container.id", "actor.process.container.uid", Text),
    row("workload.container.runtime", "actor.process.container.runtime", Text),
    row("workload.pod.uid", "actor.process.container.pod_uuid", Uuid),
];

/// The process that launched another.
#[rustfmt::skip]
pub(super) const LAUNCHER: &[Row] = &[
    row("*.ppid", "actor.process.pid", Integer),
    row("process.parent_entity", "actor.process.uid", Text),
    row("process.parent_exe", "actor.process.name", Base),
    row("process.parent_exe", "actor.process.path", Text),
    row("process.parent_command_line", "actor.process.cmd_line", Text),
];

/// The program that did not start. Its process would have been the one that made the call.
#[rustfmt::skip]
pub(super) const NOT_LAUNCHED: &[Row] = &[
    row("*.pid", "process.pid", Integer),
    row("file.name", "process.name", Text),
    row("file.path", "process.path", Text),
];

/// The child of a fork.
#[rustfmt::skip]
pub(super) const CHILD: &[Row] = &[
    row("process.child", "process.pid", Integer),
    row("*.comm", "process.name", Text),
    row("*.pid", "process.parent_process.pid", Integer),
    row("process.entity", "process.parent_process.uid", Text),
    row("*.exe", "process.parent_process.path", Text),
];

/// A process that is signalled or traced.
#[rustfmt::skip]
pub(super) const TARGET_PROCESS: &[Row] = &[
    row("OBJ_PID.opid", "process.pid", Integer),
    row("OBJ_PID.ocomm", "process.name", Text),
    row("OBJ_PID.ouid", "process.user.uid", Id),
    row("OBJ_PID.oauid", "process.auid", IdNumber),
];

/// A command by sudo. The records have the number of sudo's process.
#[rustfmt::skip]
pub(super) const COMMAND: &[Row] = &[
    row("*.pid", "process.pid", Integer),
    row("msg.cmd", "process.cmd_line", Text),
    row("msg.cwd", "process.working_directory", Text),
];

/// The object of a call.
#[rustfmt::skip]
pub(super) const FILE: &[Row] = &[
    row("file.name|file.directory", "file.name", Text),
    row("file.path|file.directory", "file.path", Text),
    row("file.directory", "file.parent_folder", Text),
    row("file.extension", "file.ext", Text),
    row("file.inode", "file.uid", Text),
    row("file.inode", "file.name", Text),
    row("file.dev", "file.volume", Text),
    row("file.ouid", "file.owner.uid", Id),
    row("file.owner", "file.owner.name", Name),
    row("file.mode", "file.xattributes.mode", Text),
    row("file.ogid", "file.xattributes.gid", Id),
];

/// The old name of a rename.
#[rustfmt::skip]
pub(super) const ORIGIN: &[Row] = &[
    row("origin.name", "file.name", Text),
    row("origin.path", "file.path", Text),
    row("origin.directory", "file.parent_folder", Text),
    row("origin.inode", "file.uid", Text),
    row("origin.ouid", "file.owner.uid", Id),
];

/// A kernel module.
#[rustfmt::skip]
pub(super) const MODULE: &[Row] = &[
    row("=Kernel Module", "module.type", Same),
    row("=Kernel Module", "module.load_type", Same),
    row("KERN_MODULE.name", "module.file.name", Text),
];

/// The audit log.
#[rustfmt::skip]
pub(super) const EVENT_LOG: &[Row] = &[
    row("=audit.log", "log_name", Same),
    row("=auditd", "log_provider", Same),
    row("=OS", "log_type", Same),
];

/// The other end, towards which a call goes.
#[rustfmt::skip]
pub(super) const TO_PEER: &[Row] = &[
    row("socket.ip", "dst_endpoint.ip", Ip),
    row("socket.port", "dst_endpoint.port", Port),
    row("socket.path", "dst_endpoint.name", Text),
];

/// The other end, from which something comes; the own end of bind.
#[rustfmt::skip]
pub(super) const FROM_PEER: &[Row] = &[
    row("socket.ip", "src_endpoint.ip", Ip),
    row("socket.port", "src_endpoint.port", Port),
    row("socket.path", "src_endpoint.name", Text),
];

/// Addresses that records name.
#[rustfmt::skip]
pub(super) const PEERS: &[Row] = &[
    row("from.ip", "src_endpoint.ip", Ip),
    row("from.port", "src_endpoint.port", Port),
    row("to.ip", "dst_endpoint.ip", Ip),
    row("to.port", "dst_endpoint.port", Port),
];

/// An account proves who it is.
#[rustfmt::skip]
pub(super) const AUTHENTICATION: &[Row] = &[
    row("account.id", "user.uid", Id),
    row("account.name", "user.name", Name),
    row("msg.exe|*.exe|*.comm|=kernel", "service.name", Base),
    row("from.ip", "src_endpoint.ip", Ip),
    row("from.port", "src_endpoint.port", Port),
    row("from.hostname", "src_endpoint.hostname", Text),
    row("*.ses", "session.uid", Id),
    row("msg.terminal", "session.terminal", Text),
];

/// An account that is changed.
#[rustfmt::skip]
pub(super) const ACCOUNT: &[Row] = &[
    row("account.id", "user.uid", Id),
    row("account.name", "user.name", Name),
    row("from.ip", "src_endpoint.ip", Ip),
];

/// A group that is changed.
#[rustfmt::skip]
pub(super) const GROUP: &[Row] = &[
    row("group.id", "group.uid", Id),
    row("group.name", "group.name", Name),
    row("account.id", "user.uid", Id),
    row("account.name", "user.name", Name),
    row("from.ip", "src_endpoint.ip", Ip),
];

/// A package, a service or a virtual machine.
#[rustfmt::skip]
pub(super) const APPLICATION: &[Row] = &[
    row("package.name|msg.unit|msg.vm|msg.uuid", "app.name", Text),
    row("package.version", "app.version", Text),
];

/// What a program has found.
#[rustfmt::skip]
pub(super) const FINDING: &[Row] = &[
    row("event.uid", "finding_info.uid", Same),
];
