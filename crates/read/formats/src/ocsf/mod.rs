//! Events in the Open Cybersecurity Schema Framework.
//!
//! [`classes`] has the classes and what an event is, [`objects`] the tables of fields. An event that lacks what its class
//! requires is a Base Event; nothing is invented. All have the original lines in `raw_data`.

mod classes;
mod objects;

use super::act::Act;
use super::facts::Facts;
use super::parsed::{Object, Reader};
use super::rest::rest;
use super::row::{apply, merge, put};
use super::value::Value;
use super::LogEvent;
use classes::Class;

/// The event as OCSF 1.8 describes it.
pub(super) fn map(reader: &mut Reader, event: &LogEvent<'_>) -> Value {
    let parsed = reader.read(event.lines);
    let facts = Facts::of(event, &parsed);
    // A class is only named if everything that it requires is there.
    let mut last = Value::Null;
    for (class, activity) in classes::candidates(&facts) {
        last = whole(&facts, class, activity);
        if class.needs.iter().all(|needed| has(&last, needed)) {
            break;
        }
    }
    last
}

/// Whether one of several places, `a.b|c`, has a value.
fn has(document: &Value, needed: &str) -> bool {
    let there = |place: &str| {
        let mut parts = place.split('.');
        parts
            .try_fold(document, |value, part| value.get(part))
            .is_some()
    };
    needed.split('|').any(there)
}

fn whole(facts: &Facts<'_>, class: &Class, activity: u32) -> Value {
    let mut out = Object::new();
    let names = [
        ("activity_id", activity.into()),
        (
            "activity_name",
            activity_name(facts, class, activity).into(),
        ),
        ("category_uid", class.category.0.into()),
        ("category_name", class.category.1.into()),
        ("class_uid", class.uid.into()),
        ("class_name", class.name.into()),
        ("type_uid", (class.uid * 100 + activity).into()),
    ];

    for (name, value) in names {
        out.insert(name.into(), value);
    }

    let (severity, name) = classes::severity(facts);
    out.insert("severity_id".into(), severity.into());
    out.insert("severity".into(), name.into());
    let (status, name) = match facts.outcome {
        Some(true) => (1, "Success"),
        Some(false) => (2, "Failure"),
        None => (0, "Unknown"),
    };
    out.insert("status_id".into(), status.into());

    out.insert("status".into(), name.into());
    if let Some(number) = decision(facts.act) {
        // Action and disposition of the profile security_control: allowed, or denied and blocked.
        for name in ["action_id", "disposition_id"] {
            out.insert(name.into(), number.into());
        }
    }

    apply(objects::EVENT, facts, &mut out);
    // A class is the same on a host whose name nobody said.
    if class.needs.contains(&"device") && facts.text("event.host").is_none() {
        put(&mut out, "device.name", "(unknown)".into());
    }
    put(
        &mut out,
        "metadata.product.version",
        env!("CARGO_PKG_VERSION").into(),
    );
    put(
        &mut out,
        "metadata.profiles",
        objects::PROFILES.as_slice().into(),
    );
    put(&mut out, "device.type_id", 0.into());

    put(&mut out, "device.os.type_id", 200.into());
    apply(objects::ACTOR, facts, &mut out);
    for table in class.tables {
        apply(table, facts, &mut out);
    }

    (class.finish)(facts, &mut out);
    let has_process = facts.parsed.subject("pid").is_some();
    let placed = if has_process {
        &objects::PLACED
    } else {
        &objects::PLACED_WITHOUT_PROCESS
    };
    merge(&mut out, "unmapped", rest(facts.parsed, placed));

    prune(&mut out);
    Value::Object(out)
}

/// `action_id` of what a policy decided.
fn decision(act: Act) -> Option<u32> {
    match act {
        Act::Permitted | Act::SeccompLogged => Some(1),
        Act::Denied | Act::Seccomp => Some(2),
        _ => None,
    }
}

/// Attributes of which an object with this name must have one; see `one-of` in `tests/schema`.
fn identities(name: &str) -> &'static [&'static str] {
    match name {
        "process" | "parent_process" => &["pid", "uid"],
        "user" | "owner" | "group" => &["uid", "name"],
        "container" => &["uid"],
        "actor" => &["process", "user", "session"],
        "session" => &["uid", "terminal"],
        "device" => &["hostname", "name"],
        "src_endpoint" | "dst_endpoint" => &["ip", "name", "hostname"],
        _ => &[],
    }
}

/// Removes objects that nothing identifies, innermost first.
fn prune(object: &mut Object) {
    let mut empty = Vec::new();
    for (name, value) in object.iter_mut() {
        let Value::Object(inner) = value else {
            continue;
        };
        prune(inner);
        let wanted = identities(name);
        if !wanted.is_empty() && !wanted.iter().any(|wanted| inner.contains_key(wanted)) {
            empty.push(name.to_owned());
        }
    }

    for name in empty {
        object.remove(&name);
    }
}

/// The caption of an activity; the word for the act, where the class has no number for it.
fn activity_name(facts: &Facts<'_>, class: &Class, activity: u32) -> String {
    let caption = class
        .activities
        .iter()
        .find(|(number, _)| *number == activity);
    match (caption, facts.act) {
        (Some((_, caption)), _) => (*caption).to_owned(),
        (None, Act::Call) => facts.text("call.name").unwrap_or_default(),
        (None, Act::Other | Act::Message) => facts.kind().to_ascii_lowercase(),
        (None, _) => facts.action(),
    }
}
