//! The process that acts, its parent and older ancestors, as a log with `identity = yes` names them.
//!
//! JSON has `process`, with a start time for each, so that no other process ever has the same name. ENRICHED has
//! `ANCESTORS="PID:PATH,…"`, and `SCRIPT=` for the script that the program interprets.

use super::parsed::{text_of, Object, Parsed};
use super::value::{object, Value};
use record::text;

/// Puts what is known into `process`: `entity`, `script`, `ancestors`, and `parent_…` for `entity`, `exe`, `args`,
/// `args_count` and `command_line`.
pub(crate) fn put(parsed: &Parsed, process: &mut Object) {
    let own = parsed.beside.get("process");
    let boot = own.and_then(|own| own.get("boot"));
    if let Some(entity) = own.and_then(|own| entity(own, boot)) {
        process.insert("entity".into(), entity.into());
    }
    let script = own.and_then(|own| own.get("script"));
    if let Some(script) = script.or_else(|| parsed.names.get("SCRIPT")) {
        process.insert("script".into(), script.clone());
    }

    let ancestors = match own.and_then(|own| own.get("ancestors")) {
        Some(Value::Array(list)) => list.clone(),
        _ => enriched(parsed),
    };
    if let Some(parent) = ancestors.first() {
        of_parent(parent, boot, process);
        let texts: Vec<Value> = ancestors.iter().map(|one| described(one).into()).collect();
        process.insert("ancestors".into(), texts.into());
    }
}

fn of_parent(parent: &Value, boot: Option<&Value>, process: &mut Object) {
    if let Some(entity) = entity(parent, boot) {
        process.insert("parent_entity".into(), entity.into());
    }
    if let Some(exe) = parent.get("exe").filter(|exe| !exe.is_null()) {
        process.insert("parent_exe".into(), exe.clone());
    }

    let Some(Value::Array(argv)) = parent.get("argv") else {
        return;
    };
    process.insert("parent_args".into(), argv.clone().into());
    let line = text_of(&Value::Array(argv.clone()));
    process.insert("parent_command_line".into(), line.into());
    // Without a number where arguments are missing.
    if parent.get("argv_cut").is_none() {
        process.insert("parent_args_count".into(), argv.len().into());
    }
}

/// A name that no other process has, as long as the boot's id is in it.
fn entity(process: &Value, boot: Option<&Value>) -> Option<String> {
    let boot = boot.map(text_of)?;
    let (pid, start) = (process.get("pid")?, process.get("start")?);
    Some(format!("{boot}/{pid}/{start}"))
}

/// An ancestor as ENRICHED has it, `PID:PATH`.
fn described(ancestor: &Value) -> String {
    let exe = match ancestor.get("exe") {
        Some(exe) if !exe.is_null() => text_of(exe),
        _ if ancestor.get("kernel").is_some() => "kernel".into(),
        _ => "?".into(),
    };
    match ancestor.get("pid") {
        Some(pid) => format!("{pid}:{exe}"),
        None => exe,
    }
}

/// The ancestors of an ENRICHED record, the nearest first: `pid`, and `exe` or `kernel`.
fn enriched(parsed: &Parsed) -> Vec<Value> {
    let Some(Value::String(list)) = parsed.names.get("ANCESTORS") else {
        return Vec::new();
    };
    let one = |text: &str| {
        let (pid, path) = text.split_once(':')?;
        let pid: u32 = pid.parse().ok()?;
        Some(match path {
            "?" => object([("pid", pid.into())]),
            "kernel" => object([("pid", pid.into()), ("kernel", true.into())]),
            _ if path.starts_with('/') => object([("pid", pid.into()), ("exe", path.into())]),
            // Special bytes are in hex, which does not begin with a slash.
            _ => {
                let mut bytes = Vec::new();
                text::unhex(&mut bytes, path.as_bytes());
                object([
                    ("pid", pid.into()),
                    ("exe", String::from_utf8_lossy(&bytes).into_owned().into()),
                ])
            }
        })
    };
    // `?` at the end: there are older ones that are not known.
    list.split(',').map_while(one).collect()
}
