//! The classes of OCSF that events are of. [`super::super::act`] says which act is which activity.

use super::super::act::Act::*;
use super::super::changes;
use super::super::facts::Facts;
use super::super::parsed::Object;
use super::super::row::{put, Row};
use super::super::value::{object, Value};
use super::objects;

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

/// The classes. An event whose class lacks what it needs is of the first class after that one in [`FALLBACKS`], or a
/// Base Event.
#[rustfmt::skip]
static CLASSES: &[Class] = &[
    Class {
        uid: FILE, name: "File System Activity", category: SYSTEM,
        activities: &[
            (1, "Create"), (4, "Delete"), (5, "Rename"), (6, "Set Attributes"), (7, "Set Security"),
            (8, "Get Attributes"), (3, "Update"), (12, "Mount"), (13, "Unmount"), (14, "Open"),
        ],
        needs: &["actor", "device", "file.name"], tables: &[objects::FILE], finish: files,
    },
    Class {
        uid: KERNEL, name: "Kernel Activity", category: SYSTEM, activities: &[(4, "Invoke")],
        needs: &["actor", "device", "kernel.name"], tables: &[], finish: kernel,
    },
    Class {
        uid: MODULE, name: "Module Activity", category: SYSTEM, activities: &[(1, "Load"), (2, "Unload")],
        needs: &["actor", "device", "module.file.name"], tables: &[objects::MODULE], finish: module,
    },
    Class {
        uid: 1007, name: "Process Activity", category: SYSTEM,
        activities: &[(1, "Launch"), (2, "Terminate"), (5, "Set User ID")],
        needs: &["actor", "device", "process.pid"], tables: &[], finish: process,
    },
    Class {
        uid: 1008, name: "Event Log Activity", category: SYSTEM,
        activities: &[(5, "Rotate"), (6, "Start"), (7, "Stop")],
        needs: &["log_name"], tables: &[objects::EVENT_LOG], finish: event_log,
    },
    Class {
        uid: FINDING, name: "Detection Finding", category: (2, "Findings"),
        activities: &[(1, "Create"), (2, "Update")],
        needs: &["finding_info.uid"], tables: &[objects::FINDING], finish: finding,
    },
    Class {
        uid: ACCOUNT, name: "Account Change", category: IAM,
        activities: &[(1, "Create"), (3, "Password Change"), (6, "Delete"), (9, "Lock"), (12, "Unlock")],
        needs: &["user.name|user.uid"], tables: &[objects::ACCOUNT], finish: nothing,
    },
    Class {
        uid: AUTHENTICATION, name: "Authentication", category: IAM, activities: &[(1, "Logon"), (2, "Logoff")],
        needs: &["user.name|user.uid", "service.name"], tables: &[objects::AUTHENTICATION], finish: authentication,
    },
    Class {
        uid: GROUP, name: "Group Management", category: IAM,
        activities: &[(3, "Add User"), (4, "Remove User"), (5, "Delete"), (6, "Create")],
        needs: &["group.name|group.uid"], tables: &[objects::GROUP], finish: nothing,
    },
    Class {
        uid: NETWORK, name: "Network Activity", category: (4, "Network Activity"),
        activities: &[(1, "Open"), (2, "Close"), (4, "Fail"), (6, "Traffic")],
        needs: &["dst_endpoint.ip|dst_endpoint.name|src_endpoint.ip|src_endpoint.name"],
        tables: &[], finish: network,
    },
    Class {
        uid: CONFIG, name: "Device Config State Change", category: (5, "Discovery"), activities: &[(1, "Log")],
        needs: &["device"], tables: &[], finish: settings,
    },
    Class {
        uid: 6002, name: "Application Lifecycle", category: (6, "Application Activity"),
        activities: &[(1, "Install"), (2, "Remove"), (3, "Start"), (4, "Stop"), (8, "Update")],
        needs: &["app.name"], tables: &[objects::APPLICATION], finish: nothing,
    },
    Class {
        uid: BASE, name: "Base Event", category: (0, "Uncategorized"), activities: &[],
        needs: &[], tables: &[], finish: nothing,
    },
];

/// Class and activity that an event has if it lacks what its own class needs: a call without its file or address, a
/// refused packet without a process, a member without a group.
const FALLBACKS: [(u32, u32, u32); 5] = [
    (NETWORK, KERNEL, 4),
    (FILE, KERNEL, 4),
    (MODULE, KERNEL, 4),
    (KERNEL, NETWORK, OTHER),
    (GROUP, ACCOUNT, OTHER),
];

const BASE: u32 = 0;
const FILE: u32 = 1001;
const KERNEL: u32 = 1003;
const MODULE: u32 = 1005;
const FINDING: u32 = 2004;
const ACCOUNT: u32 = 3001;
const AUTHENTICATION: u32 = 3002;
const GROUP: u32 = 3006;
const NETWORK: u32 = 4001;
const CONFIG: u32 = 5019;

/// Classes that an event may have, with its activity in each, the fittest first. The last one needs nothing.
pub(super) fn candidates(facts: &Facts<'_>) -> Vec<(&'static Class, u32)> {
    let row = facts.act.row();
    let has_failed = facts.outcome == Some(false);
    let activity = match facts.act {
        Connect | Accept if has_failed => 4,
        _ => row.activity,
    };

    let fallback = match facts.act {
        // A session changes its own role: no account is named.
        Role => Some((CONFIG, 1)),
        // A program's keys and sessions are nothing of the kernel.
        CryptoKey | CryptoSession | CryptoSessionEnd => None,
        _ => FALLBACKS
            .iter()
            .find(|fallback| fallback.0 == row.class)
            .map(|fallback| (fallback.1, fallback.2)),
    };

    let uids = [Some((row.class, activity)), fallback, Some((BASE, OTHER))];
    let known = uids.into_iter().flatten().filter_map(|(uid, activity)| {
        let class = CLASSES.iter().find(|class| class.uid == uid)?;
        Some((class, activity))
    });
    known.collect()
}

/// `severity_id` and its caption: that of the act, unless the record says that a protection was switched off or a login
/// failed.
pub(crate) fn severity(facts: &Facts<'_>) -> (u32, &'static str) {
    let usual = facts.act.row().severity;
    let severity = match facts.act {
        MacStatus | AuditRules if facts.weakens() => 4,
        act if act.is_login() && facts.outcome == Some(false) => usual.max(2),
        _ => usual,
    };
    let captions = ["Unknown", "Informational", "Low", "Medium", "High"];
    (severity, captions[severity as usize])
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

    if let Some((algorithm, digest)) = facts
        .text("file.hash")
        .as_deref()
        .and_then(|hash| hash.split_once(':'))
    {
        let (number, caption) = match algorithm {
            "md5" => (1, "MD5"),
            "sha1" => (2, "SHA-1"),
            "sha256" => (3, "SHA-256"),
            "sha512" => (4, "SHA-512"),
            other => (OTHER, other),
        };
        let hash = object([
            ("algorithm_id", number.into()),
            ("algorithm", caption.into()),
            ("value", digest.into()),
        ]);
        put(out, "file.hashes", vec![hash].into());
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

/// The user that a class requires, where the record says only that it is unknown.
fn authentication(_: &Facts<'_>, out: &mut Object) {
    let has_user = ["uid", "name"]
        .iter()
        .any(|name| out.get("user").is_some_and(|user| user.get(name).is_some()));
    if !has_user {
        put(out, "user.name", "(unknown)".into());
        put(out, "user.type_id", 0.into());
        put(out, "user.type", "Unknown".into());
    }
}

fn finding(facts: &Facts<'_>, out: &mut Object) {
    put(out, "finding_info.title", facts.action().into());
    put(out, "finding_info.types", vec![facts.kind()].into());
    // The class has a status of its own: that of the work on the finding.
    out.insert("status_id".into(), 1.into());
    out.insert("status".into(), "New".into());
    super::apply(objects::ACCOUNT, facts, out);
    if let Some(user) = out.remove("user") {
        put(out, "evidences", vec![object([("user", user)])].into());
    }
    out.remove("src_endpoint");
}

/// The settings before and after.
fn settings(facts: &Facts<'_>, out: &mut Object) {
    let (mut before, mut after) = (Vec::new(), Vec::new());
    let state = |name: &str, value: &str| {
        object([
            ("state_id", OTHER.into()),
            ("state", format!("{name}={value}").into()),
        ])
    };
    for change in changes::of(facts.parsed) {
        after.push(state(&change.name, &change.new));
        if let Some(old) = &change.old {
            before.push(state(&change.name, old));
        }
        let (number, caption) = match (change.name.as_str(), change.new.as_str()) {
            ("enforcing" | "enabled", "0") => (1, "Disabled"),
            ("enforcing" | "enabled", "1") => (2, "Enabled"),
            _ => continue,
        };
        put(out, "state_id", number.into());
        put(out, "state", caption.into());
    }

    for (name, states) in [("prev_security_states", before), ("security_states", after)] {
        if !states.is_empty() {
            out.insert(name.into(), states.into());
        }
    }
}

fn event_log(_: &Facts<'_>, out: &mut Object) {
    put(out, "log_type_id", 1.into());
}

fn network(facts: &Facts<'_>, out: &mut Object) {
    let (table, direction, caption) = match facts.act {
        Accept | Receive => (objects::FROM_PEER, 1, "Inbound"),
        Connect | Send => (objects::TO_PEER, 2, "Outbound"),
        Bind => (objects::FROM_PEER, 0, "Unknown"),
        _ => (objects::PEERS, 0, "Unknown"),
    };

    super::apply(table, facts, out);
    put(out, "connection_info.direction_id", direction.into());
    put(out, "connection_info.direction", caption.into());
    if let Some(version) = facts.find("socket.version") {
        put(out, "connection_info.protocol_ver_id", version.clone());
    }
}
