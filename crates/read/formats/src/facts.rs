//! Facts about an event that the tables ask for: fields of its records, and values that take more than one field.

use super::account::{self, Named};
use super::act::Act;
use super::item::{self, Items};
use super::parsed::{field, kind_of, text_of, Object, Parsed};
use super::value::{object, Value};
use super::which::{act, call};
use super::{lineage, peer, verdict, LogEvent};

/// An event with what follows from its records.
pub(crate) struct Facts<'a> {
    pub(crate) parsed: &'a Parsed,
    pub(crate) act: Act,
    /// Whether it succeeded, if a record says so.
    pub(crate) outcome: Option<bool>,
    /// Derived objects by name; [`Facts::find`] lists them.
    derived: Object,
}

impl<'a> Facts<'a> {
    pub(crate) fn of(event: &LogEvent<'_>, parsed: &'a Parsed) -> Facts<'a> {
        let act = act(parsed);
        let mut derived = Object::new();
        let outcome = verdict::outcome(parsed);
        derived.insert("event".into(), about(event, parsed, outcome).into());
        if let Some((name, is_uring)) = call(parsed) {
            let via = is_uring.then_some("io_uring");
            derived.insert(
                "call".into(),
                object([
                    ("name", name.into()),
                    ("via", via.map_or(Value::Null, Value::from)),
                ]),
            );
        }

        // What was acted on.
        let Items { object, origin } = item::choose(parsed, act);
        let Named { account, group } = account::choose(parsed, act);
        let objects = [
            ("file", object),
            ("origin", origin),
            ("account", account),
            ("group", group),
            ("package", package(parsed)),
        ];
        for (name, object) in objects {
            if let Some(object) = object {
                derived.insert(name.into(), object.into());
            }
        }

        // The other end, and the process that acts.
        let host = parsed.node.as_deref().unwrap_or(event.host);
        let peer = peer::of(parsed, host);
        derived.insert(
            "socket".into(),
            peer.socket.map_or(Value::Null, Value::from),
        );
        derived.insert("from".into(), peer.from.into());
        derived.insert("to".into(), peer.to.into());
        derived.insert("process".into(), process(parsed, act).into());

        Facts {
            parsed,
            act,
            outcome,
            derived,
        }
    }

    /// The value at a source:
    /// * `*.x`: field x of the subject: of the call's record, else of the first record that has it and is not about an
    ///   object (PATH, EXECVE …)
    /// * `msg.x`: field x of the text that a program sent (`msg='…'`)
    /// * `names.X`: the name that ENRICHED gives, `names.UID`
    /// * `workload.x`, `workload.container.id`
    /// * `file.x`, `origin.x`, `call.x`, `process.x`, `event.x`: derived
    /// * `account.x`, `group.x`: `id` and `name` of the account that logs in or is changed, and of the group
    /// * `socket.x`, `from.x`, `to.x`: address of a call; addresses that records name as the source or destination
    /// * `package.x`: `name`, `version`, `architecture`, `type`
    /// * `TYPE.x`: field x of the first record of the type
    pub(crate) fn find(&self, from: &str) -> Option<&Value> {
        let (whose, name) = from.split_once('.')?;
        match whose {
            "*" => self.parsed.subject(name),
            "msg" => {
                let inner = |record: &'a Object| record.get("msg_fields")?.get(name);
                self.parsed.records.iter().find_map(inner)
            }
            "names" => self.parsed.names.get(name),
            "workload" => match name.split_once('.') {
                Some((object, name)) => self.parsed.workload.get(object)?.get(name),
                None => self.parsed.workload.get(name),
            },
            _ if whose.starts_with(|first: char| first.is_ascii_lowercase()) => {
                self.derived.get(whose)?.get(name)
            }
            _ => self.parsed.record(whose)?.get(name),
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

    /// Whether a protection was switched off: SELinux or auditing.
    pub(crate) fn weakens(&self) -> bool {
        if self.outcome == Some(false) {
            return false;
        }

        ["enforcing", "enabled", "audit_enabled"]
            .iter()
            .any(|name| {
                let is_off = |record: &Object| {
                    let kind = kind_of(record);
                    matches!(
                        kind,
                        "MAC_STATUS" | "USER_MAC_STATUS" | "CONFIG_CHANGE" | "IPE_CONFIG_CHANGE"
                    ) && field(record, name).is_some_and(|value| text_of(value) == "0")
                };
                self.parsed.records.iter().any(is_off)
            })
    }

    /// Word for the act. Where only the call or record says what was done, its name.
    pub(crate) fn action(&self) -> String {
        let kind = self.kind().to_ascii_lowercase().replace('_', "-");
        match self.act {
            Act::Call => self
                .text("call.name")
                .map_or(kind, |name| format!("called-{name}")),
            Act::Other
            | Act::Message
            | Act::Anomaly
            | Act::LoginAnomaly
            | Act::AccountAnomaly
            | Act::Response
            | Act::AccountResponse
                if !kind.is_empty() =>
            {
                kind
            }
            act => act.row().name.to_owned(),
        }
    }
}

fn about(event: &LogEvent<'_>, parsed: &Parsed, outcome: Option<bool>) -> Object {
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
    if let Some(kind) = parsed.records.first().map(kind_of) {
        about.insert("message_type".into(), kind.to_ascii_lowercase().into());
    }

    if let Some(outcome) = outcome {
        let word = if outcome { "success" } else { "fail" };
        about.insert("result".into(), word.into());
    }

    for name in ["labels", "match"] {
        if let Some(value) = parsed.beside.get(name) {
            about.insert(name.into(), value.clone());
        }
    }
    if let Some(Value::Array(hashes)) = parsed.beside.get("hashes") {
        let texts = hashes.iter().filter_map(Value::as_object).map(texts);
        about.insert("hashes".into(), texts.map(Value::from).collect());
    }

    about
}

/// The values of an object as texts, but for those that are not known.
fn texts(object: &Object) -> Object {
    let known = object.iter().filter(|(_, value)| !value.is_null());
    known
        .map(|(name, value)| (name.to_owned(), text_of(value).into()))
        .collect()
}

/// Name of the error that the call returned.
fn errno(parsed: &Parsed) -> Option<String> {
    let exit = [("SYSCALL", "exit"), ("URINGOP", "exit")]
        .into_iter()
        .find_map(|(kind, field)| parsed.record(kind)?.get(field)?.as_i64())?;
    let number = i32::try_from(exit.checked_neg()?).ok()?;
    abi::errno_name(number).map(str::to_owned)
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

    lineage::put(parsed, &mut process);
    let digest = parsed
        .beside
        .get("hashes")
        .and_then(|hashes| hashes.as_array()?.first());
    if let Some(sha256) = digest.and_then(|digest| digest.get("sha256")) {
        process.insert("sha256".into(), sha256.clone());
    }

    process
}

/// The package of SOFTWARE_UPDATE. rpm writes `NAME-VERSION-RELEASE.ARCHITECTURE`.
fn package(parsed: &Parsed) -> Option<Object> {
    let fields = parsed.record("SOFTWARE_UPDATE")?.get("msg_fields")?;
    let whole = text_of(fields.get("sw")?);
    let mut package = Object::new();
    let mut split = || {
        let (rest, architecture) = whole.rsplit_once('.')?;
        let (rest, release) = rest.rsplit_once('-')?;
        let (name, version) = rest.rsplit_once('-')?;
        package.insert("name".into(), name.into());
        package.insert("version".into(), format!("{version}-{release}").into());
        package.insert("architecture".into(), architecture.into());
        Some(())
    };

    if fields.get("sw_type").map(text_of).as_deref() != Some("rpm") || split().is_none() {
        package.insert("name".into(), whole.into());
    }
    if let Some(kind) = fields.get("sw_type") {
        package.insert("type".into(), kind.clone());
    }

    Some(package)
}
