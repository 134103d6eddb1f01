//! Old and new values of settings, as records name them in pairs.

use super::parsed::{field, kind_of, text_of, Object, Parsed};
use super::rest::is_unset;
use super::value::Value;

/// A setting that a record says was changed, or set.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) name: String,
    pub(crate) old: Option<String>,
    pub(crate) new: String,
}

/// Names of fields that tell who changed something, and how it ended.
const NO_SETTINGS: [&str; 13] = [
    "type",
    "op",
    "res",
    "auid",
    "uid",
    "pid",
    "ses",
    "subj",
    "key",
    "msg",
    "msg_fields",
    "words",
    "list",
];

/// The settings that the event's records have an old value of:
/// * `old_X=` or `old-X=` beside `X=`, `new_X=` or `new-X=`
/// * `old=` beside `new=`, `val=` or the record's only other field; the name is that of `bool=`, `feature=` or `op=`
pub(crate) fn of(parsed: &Parsed) -> Vec<Change> {
    let mut changes = Vec::new();
    for record in &parsed.records {
        let is_subject = matches!(kind_of(record), "SYSCALL" | "LOGIN" | "PATH" | "BPRM_FCAPS");
        if is_subject {
            continue;
        }
        pairs(record, &mut changes);
        if let Some(Value::Object(inner)) = record.get("msg_fields") {
            pairs(inner, &mut changes);
        }
    }

    changes
}

fn pairs(record: &Object, changes: &mut Vec<Change>) {
    let known = |value: &&Value| !is_unset(value);
    let get = |name: &str| record.get(name).filter(known).map(text_of);
    for (name, old) in record.iter() {
        let short = name
            .strip_prefix("old_")
            .or_else(|| name.strip_prefix("old-"));
        let (label, new) = match short {
            Some("val") => (label(record), get("val")),
            Some(short) => (
                Some(short.to_owned()),
                get(short)
                    .or_else(|| get(&format!("new_{short}")))
                    .or_else(|| get(&format!("new-{short}"))),
            ),
            None if name == "old" => match get("new") {
                Some(new) => (label(record), Some(new)),
                // CONFIG_CHANGE: `audit_enabled=0 old=1`.
                None => match only_other(record) {
                    Some((name, value)) => (Some(name.to_owned()), Some(text_of(value))),
                    None => (None, None),
                },
            },
            None => continue,
        };
        if let (Some(name), Some(new)) = (label, new) {
            let old = Some(old).filter(known).map(text_of);
            changes.push(Change { name, old, new });
        }
    }
}

/// What a record with `old=` and `new=` or `val=` is about.
fn label(record: &Object) -> Option<String> {
    let names = ["bool", "feature", "op"];
    names
        .iter()
        .find_map(|name| field(record, name))
        .map(text_of)
}

fn only_other(record: &Object) -> Option<(&str, &Value)> {
    let mut others = record
        .iter()
        .filter(|(name, _)| !name.starts_with("old") && !NO_SETTINGS.contains(name));
    let other = others.next()?;
    others.next().is_none().then_some(other)
}
