//! Events in the Elastic Common Schema.
//!
//! [`fields`] has the tables of fields, [`acts`] what an event is. Fields that ECS does not have stand below `auditd`
//! and as `user.audit`, where Auditbeat puts them.

mod acts;
mod fields;

use super::act::Act;
use super::facts::Facts;
use super::parsed::{Object, Reader};
use super::row::{apply, put};
use super::LogEvent;
use serde_json::{json, Value};

/// The event as ECS 9.4 describes it. Of its fields only `process.group` is not in 8.11.
pub(super) fn map(reader: &mut Reader, event: &LogEvent<'_>) -> Value {
    let parsed = reader.read(event.lines);
    let facts = Facts::of(event, &parsed);
    let mut out = Object::new();
    apply(fields::EVENT, &facts, &mut out);
    let (category, types) = acts::what(facts.act);
    if !category.is_empty() {
        put(&mut out, "event.category", json!([category]));
    }
    if !types.is_empty() {
        put(&mut out, "event.type", json!(types));
    }
    put(&mut out, "event.action", action(&facts).into());
    let outcome = match facts.outcome {
        Some(true) => "success",
        Some(false) => "failure",
        None => "unknown",
    };
    put(&mut out, "event.outcome", outcome.into());
    for table in tables(facts.act) {
        apply(table, &facts, &mut out);
    }
    for table in fields::EVERY {
        apply(table, &facts, &mut out);
    }
    Value::Object(out)
}

/// The action; where only its call or record tells, their name.
fn action(facts: &Facts<'_>) -> String {
    let kind = facts.kind().to_ascii_lowercase();
    match facts.act {
        Act::Call => facts
            .text("call.name")
            .map_or(kind, |name| format!("called-{name}")),
        Act::Other | Act::Message if !kind.is_empty() => kind.replace('_', "-"),
        act => act.name().to_owned(),
    }
}

/// The tables for an act, which come before those for every event.
fn tables(act: Act) -> &'static [&'static [super::row::Row]] {
    use Act::*;
    match act {
        Login | Logout | Authenticate | SessionStart | SessionEnd | Credentials => &[fields::LOGIN],
        AddUser | DeleteUser | ChangeAccount | Password | Lock | Unlock => &[fields::ACCOUNT],
        AddGroup | DeleteGroup | ChangeMembers | AddMember | RemoveMember => &[fields::GROUP],
        Command => &[fields::COMMAND],
        ServiceStart | ServiceStop => &[fields::SERVICE],
        Execute | Exit | Crash | ChangeUser | ChangeGroup | Capabilities => &[],
        Fork => &[fields::FORK],
        Signal | Trace => &[fields::TARGET_PROCESS],
        Connect | Send => &[fields::TO_PEER],
        Accept | Receive => &[fields::FROM_PEER],
        Bind => &[fields::OWN_SOCKET],
        Rename | Link => &[fields::FILE, fields::ORIGIN],
        Load | Unload => &[fields::MODULE, fields::FILE],
        _ => &[fields::FILE],
    }
}
