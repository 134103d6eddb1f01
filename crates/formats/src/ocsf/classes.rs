//! The classes of OCSF that events are of, and which act is which activity.

use super::super::act::Act::{self, *};
use super::super::facts::Facts;
use super::super::parsed::Object;
use super::super::row::{put, Row};
use super::objects;
use serde_json::Value;

/// A class of OCSF.
pub(super) struct Class {
    pub(super) uid: u32,
    pub(super) name: &'static str,
    pub(super) category: (u32, &'static str),
    /// Activities that are used, with their captions.
    pub(super) activities: &'static [(u32, &'static str)],
    /// Places that must have a value, of `a|b` one of them.
    pub(super) needs: &'static [&'static str],
    pub(super) tables: &'static [&'static [Row]],
    /// Fills in the attributes that take more than a table.
    pub(super) finish: fn(&Facts<'_>, &mut Object),
}

/// `activity_id` of what a class has no number for.
pub(super) const OTHER: u32 = 99;

const SYSTEM: (u32, &str) = (1, "System Activity");
const IAM: (u32, &str) = (3, "Identity & Access Management");

fn nothing(_: &Facts<'_>, _: &mut Object) {}

static FILE: Class = Class {
    uid: 1001,
    name: "File System Activity",
    category: SYSTEM,
    activities: &[
        (1, "Create"),
        (4, "Delete"),
        (5, "Rename"),
        (6, "Set Attributes"),
        (7, "Set Security"),
        (8, "Get Attributes"),
        (3, "Update"),
        (12, "Mount"),
        (13, "Unmount"),
        (14, "Open"),
    ],
    needs: &["actor", "device", "file.name"],
    tables: &[objects::FILE],
    finish: files,
};

static KERNEL: Class = Class {
    uid: 1003,
    name: "Kernel Activity",
    category: SYSTEM,
    activities: &[(4, "Invoke")],
    needs: &["actor", "device", "kernel.name"],
    tables: &[],
    finish: kernel,
};

static MODULE: Class = Class {
    uid: 1005,
    name: "Module Activity",
    category: SYSTEM,
    activities: &[(1, "Load"), (2, "Unload")],
    needs: &["actor", "device", "module.file.name"],
    tables: &[objects::MODULE],
    finish: module,
};

static PROCESS: Class = Class {
    uid: 1007,
    name: "Process Activity",
    category: SYSTEM,
    activities: &[(1, "Launch"), (2, "Terminate"), (5, "Set User ID")],
    needs: &["actor", "device", "process.pid"],
    tables: &[],
    finish: process,
};

static EVENT_LOG: Class = Class {
    uid: 1008,
    name: "Event Log Activity",
    category: SYSTEM,
    activities: &[(5, "Rotate"), (6, "Start"), (7, "Stop")],
    needs: &["log_name"],
    tables: &[objects::EVENT_LOG],
    finish: event_log,
};

static NETWORK: Class = Class {
    uid: 4001,
    name: "Network Activity",
    category: (4, "Network Activity"),
    activities: &[(1, "Open"), (4, "Fail"), (6, "Traffic")],
    needs: &["dst_endpoint.ip|dst_endpoint.name|src_endpoint.ip|src_endpoint.name"],
    tables: &[],
    finish: network,
};

static ACCOUNT: Class = Class {
    uid: 3001,
    name: "Account Change",
    category: IAM,
    activities: &[
        (1, "Create"),
        (3, "Password Change"),
        (6, "Delete"),
        (9, "Lock"),
        (12, "Unlock"),
    ],
    needs: &["user.name|user.uid"],
    tables: &[objects::ACCOUNT],
    finish: nothing,
};

static AUTHENTICATION: Class = Class {
    uid: 3002,
    name: "Authentication",
    category: IAM,
    activities: &[(1, "Logon"), (2, "Logoff")],
    needs: &["user.name|user.uid", "service.name"],
    tables: &[objects::AUTHENTICATION],
    finish: nothing,
};

static GROUP: Class = Class {
    uid: 3006,
    name: "Group Management",
    category: IAM,
    activities: &[
        (3, "Add User"),
        (4, "Remove User"),
        (5, "Delete"),
        (6, "Create"),
    ],
    needs: &["group.name|group.uid"],
    tables: &[objects::GROUP],
    finish: nothing,
};

/// The class of what is in no other.
pub(super) static BASE: Class = Class {
    uid: 0,
    name: "Base Event",
    category: (0, "Uncategorized"),
    activities: &[],
    needs: &[],
    tables: &[],
    finish: nothing,
};

/// Class and activity of an event.
pub(super) fn what(facts: &Facts<'_>) -> (&'static Class, u32) {
    let has_failed = facts.outcome == Some(false);
    match facts.act {
        Execute | Command | Fork => (&PROCESS, 1),
        Exit | Crash => (&PROCESS, 2),
        ChangeUser => (&PROCESS, 5),
        Signal | Trace | ChangeGroup | Capabilities | Terminal => (&PROCESS, OTHER),
        Create | Link => (&FILE, 1),
        Truncate => (&FILE, 3),
        Delete => (&FILE, 4),
        Rename => (&FILE, 5),
        Xattr | Times => (&FILE, 6),
        Mode | Owner => (&FILE, 7),
        Look => (&FILE, 8),
        Mount => (&FILE, 12),
        Unmount => (&FILE, 13),
        Open => (&FILE, 14),
        Connect | Accept if has_failed => (or_kernel(facts), if_network(facts, 4)),
        Connect | Accept => (or_kernel(facts), if_network(facts, 1)),
        Send | Receive => (or_kernel(facts), if_network(facts, 6)),
        Bind => (or_kernel(facts), if_network(facts, OTHER)),
        Load => (&MODULE, 1),
        Unload => (&MODULE, 2),
        Bpf | Clock | Call | Seccomp | Denied => (&KERNEL, 4),
        Firewall | Promiscuous => (&KERNEL, OTHER),
        Login => (&AUTHENTICATION, 1),
        Logout | SessionEnd => (&AUTHENTICATION, 2),
        SessionStart => (&AUTHENTICATION, 1),
        Authenticate | Credentials | LoginId => (&AUTHENTICATION, OTHER),
        AddUser => (&ACCOUNT, 1),
        Password => (&ACCOUNT, 3),
        DeleteUser => (&ACCOUNT, 6),
        Lock => (&ACCOUNT, 9),
        Unlock => (&ACCOUNT, 12),
        ChangeAccount => (&ACCOUNT, OTHER),
        AddMember => (&GROUP, 3),
        RemoveMember => (&GROUP, 4),
        DeleteGroup => (&GROUP, 5),
        AddGroup => (&GROUP, 6),
        ChangeMembers => (&GROUP, OTHER),
        AuditRotate => (&EVENT_LOG, 5),
        AuditStart => (&EVENT_LOG, 6),
        AuditStop => (&EVENT_LOG, 7),
        AuditRules | AuditError | AuditOther => (&EVENT_LOG, OTHER),
        ServiceStart | ServiceStop | Boot | Shutdown | Software | Message | Other => (&BASE, OTHER),
    }
}

/// Network Activity if the call names a network's or a UNIX socket's address, else Kernel Activity.
fn or_kernel(facts: &Facts<'_>) -> &'static Class {
    match facts.find("socket.type") {
        Some(_) => &NETWORK,
        None => &KERNEL,
    }
}

fn if_network(facts: &Facts<'_>, activity: u32) -> u32 {
    match facts.find("socket.type") {
        Some(_) => activity,
        None => 4,
    }
}

/// `severity_id` and its caption.
pub(super) fn severity(act: Act) -> (u32, &'static str) {
    match act {
        Denied | Seccomp | Crash | AuditError => (3, "Medium"),
        AuditRules | AuditStop | Load | Unload => (2, "Low"),
        _ => (1, "Informational"),
    }
}

fn files(facts: &Facts<'_>, out: &mut Object) {
    // The old name is the file, and the new one what became of it.
    if facts.act == Rename && facts.find("origin.path").is_some() {
        if let Some(mut new) = out.remove("file") {
            file_type(facts, &mut new);
            out.insert("file_result".into(), new);
        }
        super::apply(objects::ORIGIN, facts, out);
    }
    if let Some(file) = out.get_mut("file") {
        file_type(facts, file);
    }
    if facts.act == Delete && facts.outcome == Some(true) {
        put(out, "file.is_deleted", true.into());
    }
}

/// `type_id` of a file.
fn file_type(facts: &Facts<'_>, file: &mut Value) {
    let kind = facts.text("file.type").unwrap_or_default();
    let is_directory_only =
        facts.find("file.path").is_none() && facts.find("file.directory").is_some();
    let (number, caption) = match kind.as_str() {
        "file" => (1, "Regular File"),
        "dir" => (2, "Folder"),
        _ if is_directory_only => (2, "Folder"),
        "character-device" => (3, "Character Device"),
        "block-device" => (4, "Block Device"),
        "socket" => (5, "Local Socket"),
        "fifo" => (6, "Named Pipe"),
        "symlink" => (7, "Symbolic Link"),
        _ => (0, "Unknown"),
    };
    if let Value::Object(file) = file {
        file.insert("type_id".into(), number.into());
        file.insert("type".into(), caption.into());
    }
}

fn kernel(facts: &Facts<'_>, out: &mut Object) {
    let call = facts.text("call.name").or_else(|| facts.text("*.syscall"));
    match call {
        Some(call) => {
            put(out, "kernel.name", call.as_str().into());
            put(out, "kernel.type_id", 2.into());
            put(out, "kernel.type", "System Call".into());
            put(out, "kernel.system_call", call.into());
        }
        None => {
            let kind = facts.kind().to_ascii_lowercase();
            put(out, "kernel.name", kind.as_str().into());
            put(out, "kernel.type_id", OTHER.into());
            put(out, "kernel.type", kind.into());
        }
    }
}

fn module(_: &Facts<'_>, out: &mut Object) {
    put(out, "module.load_type_id", OTHER.into());
    put(out, "module.file.type_id", 0.into());
}

fn process(facts: &Facts<'_>, out: &mut Object) {
    match facts.act {
        Fork => super::apply(objects::CHILD, facts, out),
        Signal | Trace => super::apply(objects::TARGET_PROCESS, facts, out),
        Command => super::apply(objects::COMMAND, facts, out),
        Execute if facts.outcome == Some(false) => {
            super::apply(objects::NOT_LAUNCHED, facts, out);
        }
        Execute => {
            // The process that was launched is the one that the records describe; its parent launched it.
            let mut new = Object::new();
            if let Some(Value::Object(actor)) = out.get_mut("actor") {
                if let Some(Value::Object(process)) = actor.remove("process") {
                    new = process;
                }
            }
            out.insert("process".into(), new.into());
            super::apply(objects::LAUNCHER, facts, out);
        }
        _ => {
            let own = out.get("actor").and_then(|actor| actor.get("process"));
            if let Some(own) = own.cloned() {
                out.insert("process".into(), own);
            }
        }
    }
    if facts.act == Execute || facts.act == Fork {
        let (number, caption) = match facts.act {
            Fork => (2, "Fork"),
            _ => (3, "Exec"),
        };
        out.insert("launch_type_id".into(), number.into());
        out.insert("launch_type".into(), caption.into());
    }
}

fn event_log(_: &Facts<'_>, out: &mut Object) {
    put(out, "log_type_id", 1.into());
}

fn network(facts: &Facts<'_>, out: &mut Object) {
    let (table, direction, caption) = match facts.act {
        Accept | Receive => (objects::FROM_PEER, 1, "Inbound"),
        Bind => (objects::FROM_PEER, 0, "Unknown"),
        _ => (objects::TO_PEER, 2, "Outbound"),
    };
    super::apply(table, facts, out);
    put(out, "connection_info.direction_id", direction.into());
    put(out, "connection_info.direction", caption.into());
    if let Some(version) = facts.find("socket.version") {
        put(out, "connection_info.protocol_ver_id", version.clone());
    }
}
