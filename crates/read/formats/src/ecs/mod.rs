//! Events in the Elastic Common Schema.
//!
//! [`fields`] has the tables of fields, [`super::act`] what an event is. Fields that ECS does not have stand below
//! `auditd` and as `user.audit`, where Auditbeat puts them, with Auditbeat's spelling of values. [`auditbeat`] has the
//! words of Auditbeat for those whose rules compare them.

mod auditbeat;
mod fields;

use super::act::Act;
use super::facts::Facts;
use super::parsed::{Object, Reader};
use super::rest::rest;
use super::row::{apply, merge, put, Row};
use super::value::Value;
use super::{which, LogEvent};

/// Places whose values `related.*` collects, so that one term finds an event by any of its users or addresses.
const RELATED: [(&str, &[&str]); 3] = [
    (
        "related.user",
        &[
            "user.name",
            "user.id",
            "user.audit.name",
            "user.effective.name",
            "user.target.name",
        ],
    ),
    ("related.ip", &["source.ip", "destination.ip"]),
    ("related.hash", &["file.hash.sha256", "process.hash.sha256"]),
];

/// Fields of a document that are given room at once.
const DOCUMENT_FIELDS: usize = 28;

/// The event as ECS 9.4 describes it. Of its fields only `process.group` is not in 8.11.
pub(super) fn map(reader: &mut Reader, event: &LogEvent<'_>) -> Value {
    let parsed = reader.read(event.lines);
    let facts = Facts::of(event, &parsed);
    let row = facts.act.row();
    let categories = match row.category {
        "" => Vec::new(),
        category => vec![category],
    };
    let action = facts.action();
    document(&facts, &action, &categories, row.types, "auditd.log")
}

/// The event with the words of Auditbeat and of the integration auditd_manager.
pub(super) fn map_as_auditbeat(reader: &mut Reader, event: &LogEvent<'_>) -> Value {
    let parsed = reader.read(event.lines);
    let facts = Facts::of(event, &parsed);
    let words = auditbeat::words(&facts);
    let mut out = document(
        &facts,
        &words.action,
        &words.categories,
        &words.types,
        auditbeat::DATASET,
    );
    if let Value::Object(out) = &mut out {
        auditbeat::finish(&facts, &words, out);
    }

    out
}

fn document(
    facts: &Facts<'_>,
    action: &str,
    categories: &[&str],
    types: &[&str],
    dataset: &str,
) -> Value {
    let mut out = Object::with_capacity(DOCUMENT_FIELDS);
    apply(fields::EVENT, facts, &mut out);
    put(&mut out, "event.dataset", dataset.into());
    if !categories.is_empty() {
        put(&mut out, "event.category", categories.into());
    }
    if !types.is_empty() {
        put(&mut out, "event.type", types.into());
    }

    put(&mut out, "event.action", action.into());
    let outcome = match facts.outcome {
        Some(true) => "success",
        Some(false) => "failure",
        None => "unknown",
    };
    put(&mut out, "event.outcome", outcome.into());

    // What the act is about comes first: a place that it fills stays filled.
    let is_login = facts.act.is_login();
    for table in tables(facts.act) {
        apply(table, facts, &mut out);
    }
    if let Some(table) = socket_table(facts) {
        apply(table, facts, &mut out);
    }
    if asks_for_another(facts) {
        apply(fields::ASKING, facts, &mut out);
    } else if !is_login {
        apply(fields::USER, facts, &mut out);
    }
    if !is_login {
        apply(fields::FILESYSTEM, facts, &mut out);
    }
    if facts.find("process.child").is_none() {
        apply(fields::LINEAGE, facts, &mut out);
    }
    for table in fields::EVERY {
        apply(table, facts, &mut out);
    }

    // Then everything that has no place of its own.
    let placed = if is_login {
        &fields::PLACED_OF_LOGIN
    } else {
        &fields::PLACED
    };
    let mut others = rest(facts.parsed, placed);
    if let Some(paths) = others.remove("paths") {
        put(&mut out, "auditd.paths", paths);
    }

    merge(&mut out, "auditd.data", others);
    relate(&mut out);
    Value::Object(out)
}

/// The table for the address of the event's call, if the event is about something else: what a policy has decided on it.
fn socket_table(facts: &Facts<'_>) -> Option<&'static [Row]> {
    facts.find("socket.type")?;
    match which::by_call(facts.parsed) {
        Act::Connect | Act::Send => Some(fields::TO_PEER),
        Act::Accept | Act::Receive => Some(fields::FROM_PEER),
        Act::Bind => Some(fields::OWN_SOCKET),
        _ => None,
    }
}

/// Whether a program decides on what somebody else has asked it for: systemd, `uid=` inside of `msg='…'`.
fn asks_for_another(facts: &Facts<'_>) -> bool {
    let is_decision = matches!(facts.act, Act::Denied | Act::Permitted);
    is_decision && facts.find("msg.uid").is_some()
}

/// The value at a place with dots.
fn at<'d>(document: &'d Object, place: &str) -> Option<&'d Value> {
    let mut names = place.split('.');
    let first = document.get(names.next()?);
    names.fold(first, |value, name| value?.get(name))
}

/// Fills `related.*`.
fn relate(out: &mut Object) {
    let mut related = Vec::new();
    for (place, sources) in RELATED {
        let mut values: Vec<&Value> = sources
            .iter()
            .filter_map(|source| at(out, source))
            .collect();
        values.retain(|value| value.as_str().is_some());
        let mut once: Vec<Value> = Vec::new();
        for value in values {
            if !once.contains(value) {
                once.push(value.clone());
            }
        }
        related.push((place, once));
    }

    for (place, values) in related {
        if !values.is_empty() {
            put(out, place, values.into());
        }
    }
}

/// The tables for an act, which come before those for every event.
fn tables(act: Act) -> &'static [&'static [Row]] {
    use Act::*;

    match act {
        act if act.is_login() => &[fields::LOGIN],
        act if act.is_of_account() || act.is_of_group() => &[fields::ACCOUNT],
        Command => &[fields::COMMAND],
        ServiceStart | ServiceStop => &[fields::SERVICE],
        Install | Remove | Update | Software => &[fields::PACKAGE],
        ChangeUser | ChangeGroup => &[fields::ACCOUNT],
        Execute | Exit | Crash | Capabilities => &[],
        Fork => &[fields::FORK],
        Signal | Trace => &[fields::TARGET_PROCESS],
        Connect | Send => &[fields::TO_PEER],
        Accept | Receive => &[fields::FROM_PEER],
        Bind => &[fields::OWN_SOCKET],
        Denied | Permitted => &[fields::FILE, fields::PORTS],
        Packet => &[fields::PACKET],
        Rename | Link => &[fields::FILE, fields::ORIGIN],
        Load | Unload => &[fields::MODULE, fields::FILE],
        _ => &[fields::FILE],
    }
}
