//! Facts about an event that the tables ask for: fields of its records, and values that take more than one field.

use super::act::{call, Act};
use super::item::{self, Items};
use super::parsed::{kind_of, text_of, Object, Parsed};
use super::LogEvent;
use serde_json::{json, Value};

/// An event with what follows from its records.
pub(crate) struct Facts<'a> {
    pub(crate) parsed: &'a Parsed,
    pub(crate) act: Act,
    /// Whether it succeeded, if a record says so.
    pub(crate) outcome: Option<bool>,
    /// Derived objects by name: `event`, `call`, `file`, `origin`, `socket`, `process`, `target`.
    derived: Object,
}

impl<'a> Facts<'a> {
    pub(crate) fn of(event: &LogEvent<'_>, parsed: &'a Parsed) -> Facts<'a> {
        let act = Act::of(parsed);
        let outcome = outcome(parsed);
        let mut derived = Object::new();
        derived.insert("event".into(), about(event, parsed).into());
        if let Some((name, is_uring)) = call(parsed) {
            let via = is_uring.then_some("io_uring");
            derived.insert("call".into(), json!({"name": name, "via": via}));
        }
        let Items { object, origin } = item::choose(parsed, act);
        for (name, item) in [("file", object), ("origin", origin)] {
            if let Some(item) = item {
                derived.insert(name.into(), item.into());
            }
        }
        if let Some(socket) = socket(parsed) {
            derived.insert("socket".into(), socket.into());
        }
        derived.insert("process".into(), process(parsed, act).into());
        Facts {
            parsed,
            act,
            outcome,
            derived,
        }
    }

    /// The value at a source:
    /// * `*.x`: field x of the first record that has it, apart from those of objects (PATH, EXECVE …)
    /// * `msg.x`: field x of the text that a program sent (`msg='…'`)
    /// * `names.X`: the name that ENRICHED gives, `names.UID`
    /// * `workload.x`, `workload.container.id`
    /// * `file.x`, `origin.x`, `call.x`, `socket.x`, `process.x`, `event.x`: derived
    /// * `TYPE.x`: field x of the first record of the type
    pub(crate) fn find(&self, from: &str) -> Option<&Value> {
        let (whose, field) = from.split_once('.')?;
        match whose {
            "*" => {
                let has = |record: &&'a Object| !is_object(kind_of(record));
                let mut records = self.parsed.records.iter().filter(has);
                records.find_map(|record| record.get(field))
            }
            "msg" => {
                let fields = |record: &'a Object| record.get("msg_fields")?.get(field);
                self.parsed.records.iter().find_map(fields)
            }
            "names" => self.parsed.names.get(field),
            "workload" => match field.split_once('.') {
                Some((object, field)) => self.parsed.workload.get(object)?.get(field),
                None => self.parsed.workload.get(field),
            },
            _ if whose.starts_with(|first: char| first.is_ascii_lowercase()) => {
                self.derived.get(whose)?.get(field)
            }
            _ => self.parsed.record(whose)?.get(field),
        }
    }

    /// The text at a source.
    pub(crate) fn text(&self, from: &str) -> Option<String> {
        self.find(from).map(text_of).filter(|text| !text.is_empty())
    }

    /// The name of the record type that the event is known by: that of its first record.
    pub(crate) fn kind(&self) -> &str {
        self.parsed.records.first().map_or("", kind_of)
    }
}

/// Whether records of a type are about what a call touched, so that their fields are not those of the subject.
fn is_object(kind: &str) -> bool {
    matches!(
        kind,
        "PATH" | "CWD" | "EXECVE" | "OBJ_PID" | "IPC" | "IPC_SET_PERM" | "SOCKADDR" | "PROCTITLE"
    )
}

fn about(event: &LogEvent<'_>, parsed: &Parsed) -> Object {
    let mut about = Object::new();
    let stamp = event.stamp;
    let ms = stamp.sec.saturating_mul(1000);
    about.insert(
        "time_ms".into(),
        ms.saturating_add(stamp.msec.into()).into(),
    );
    about.insert("serial".into(), stamp.serial.into());
    let host = parsed.node.as_deref().unwrap_or(event.host);
    about.insert("uid".into(), event.uid(host).into());
    about.insert("host".into(), host.into());
    about.insert("original".into(), parsed.original.as_str().into());
    if let Some(hex) = &parsed.original_hex {
        about.insert("original_hex".into(), hex.as_str().into());
    }
    let mut kinds: Vec<&str> = Vec::new();
    for kind in parsed.records.iter().map(kind_of) {
        if !kind.is_empty() && !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    about.insert("kinds".into(), kinds.into());
    let keys = parsed
        .records
        .iter()
        .find_map(|record| match record.get("key") {
            Some(Value::Array(keys)) => Some(keys.clone()),
            Some(Value::String(key)) => Some(vec![key.as_str().into()]),
            _ => None,
        });
    if let Some(keys) = keys {
        about.insert("keys".into(), keys.into());
    }
    if let Some(errno) = errno(parsed) {
        about.insert("errno".into(), errno.into());
    }
    about
}

/// Name of the error that the call returned.
fn errno(parsed: &Parsed) -> Option<String> {
    let exit = [("SYSCALL", "exit"), ("URINGOP", "exit")]
        .into_iter()
        .find_map(|(kind, field)| parsed.record(kind)?.get(field)?.as_i64())?;
    let number = i32::try_from(exit.checked_neg()?).ok()?;
    abi::errno_name(number).map(str::to_owned)
}

/// Success according to the records: refusals first, then the call, then the report of a program.
fn outcome(parsed: &Parsed) -> Option<bool> {
    for record in parsed.records("AVC").chain(parsed.records("USER_AVC")) {
        let words = record
            .get("words")
            .or_else(|| record.get("msg"))
            .map(text_of);
        let is_permissive = record
            .get("permissive")
            .is_some_and(|value| text_of(value) == "1");
        let word = record.get("apparmor").map(text_of);
        if word.as_deref() == Some("DENIED")
            || words.is_some_and(|words| words.contains("denied")) && !is_permissive
        {
            return Some(false);
        }
    }
    let said = |value: &Value| match text_of(value).as_str() {
        "yes" | "1" | "success" => Some(true),
        "no" | "0" | "failed" => Some(false),
        _ => None,
    };
    let from = |field: &str| {
        let find = |record: &Object| {
            let inner = record
                .get("msg_fields")
                .and_then(|fields| fields.get(field));
            record.get(field).or(inner).and_then(said)
        };
        parsed.records.iter().find_map(find)
    };
    // `res=` of another record tells what the call was made for.
    from("res").or_else(|| from("success"))
}

/// The address of SOCKADDR, if it is one of a network or of a UNIX socket.
fn socket(parsed: &Parsed) -> Option<Object> {
    let record = parsed.record("SOCKADDR")?;
    let family = text_of(record.get("saddr_fam")?);
    let mut socket = Object::new();
    match family.as_str() {
        "inet" | "inet6" => {
            let address = text_of(record.get("laddr")?);
            let ip = address.split('%').next().unwrap_or_default();
            socket.insert("ip".into(), ip.into());
            socket.insert("port".into(), record.get("lport")?.clone());
            let version = if family == "inet" { 4 } else { 6 };
            socket.insert("version".into(), version.into());
            socket.insert("type".into(), format!("ipv{version}").into());
        }
        "local" => {
            let path = text_of(record.get("path")?).replacen('\0', "@", 1);
            socket.insert("path".into(), path.into());
            socket.insert("type".into(), "unix".into());
        }
        _ => return None,
    }
    Some(socket)
}

/// The process that acts, or the one that an execve or fork makes.
fn process(parsed: &Parsed, act: Act) -> Object {
    let mut process = Object::new();
    let argv = parsed
        .record("EXECVE")
        .and_then(|record| record.get("argv"));
    let title = parsed
        .record("PROCTITLE")
        .and_then(|record| record.get("proctitle"));
    if let Some(Value::Array(args)) = argv {
        process.insert("args".into(), args.clone().into());
        process.insert("args_count".into(), args.len().into());
    }
    if let Some(title) = title.filter(|title| !title.is_null()) {
        process.insert("title".into(), text_of(title).into());
    }
    if let Some(line) = argv.or(title).filter(|line| !line.is_null()) {
        process.insert("command_line".into(), text_of(line).into());
    }
    let exit = parsed
        .record("SYSCALL")
        .and_then(|record| record.get("exit"));
    if let (Act::Fork, Some(child)) = (act, exit.and_then(Value::as_i64)) {
        if child > 0 {
            process.insert("child".into(), child.into());
        }
    }
    process
}
