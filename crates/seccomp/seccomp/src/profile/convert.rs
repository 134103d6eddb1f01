//! Writes profiles in other forms: OCI JSON without Docker's additions, the SeccompProfile of the
//! security-profiles-operator, and lines of a systemd unit.

use super::json::{self, Place};
use super::{documents, oci, systemd, yaml, Context, Form, ProfileError};
use serde_json::{json, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// A profile as the OCI runtime specification has it: what depends on capabilities, architecture and
/// kernel is decided by `context`.
///
/// # Errors
/// The text is no such profile, a document with one, or a SeccompProfile.
pub fn to_oci(text: &str, context: &Context) -> Result<Value, ProfileError> {
    let document = match Form::of(text) {
        Form::Oci => json::read(text)?,
        Form::Yaml => yaml::read(text)?,
        Form::Systemd | Form::List => {
            return Err(ProfileError::new(
                "the profile",
                "a systemd unit or a list",
                "an OCI profile, a config.json or a SeccompProfile",
                "only those can be written in another form",
            ))
        }
    };

    // Its errors are those of a profile that is compiled.
    documents::policy(document.clone(), context)?;
    let root = Place::root(&document.value);
    let inner = documents::profile(&root)?;
    let mut profile = oci::resolved(&inner.place, context)?;

    if let Some(base) = inner.base {
        match documents::base_calls(&base) {
            Some(names) => {
                let entry = json!({"names": names, "action": "SCMP_ACT_ALLOW"});
                let calls = profile.get_mut("syscalls").and_then(Value::as_array_mut);
                calls
                    .into_iter()
                    .for_each(|calls| calls.push(entry.clone()));
            }
            None => drop(profile.insert("baseProfileName".to_owned(), base.value.clone())),
        }
    }

    Ok(Value::Object(profile))
}

/// A SeccompProfile in YAML, of a profile by [`to_oci`].
pub fn to_operator(profile: &Value, name: &str) -> String {
    let document = json!({
        "apiVersion": "security-profiles-operator.x-k8s.io/v1beta1",
        "kind": "SeccompProfile",
        "metadata": {"name": name},
        "spec": profile,
    });
    serde_yaml_ng::to_string(&document).unwrap_or_default()
}

/// A profile by [`to_oci`] as a file of the runtime specification has it.
pub fn to_json(profile: &Value) -> String {
    let mut profile = profile.clone();
    if let Some(members) = profile.as_object_mut() {
        members.remove("baseProfileName");
    }
    format!("{profile:#}\n")
}

/// Lines of a unit that allow and deny the calls of a profile by [`to_oci`], and notes on what they
/// cannot say. Rules with conditions are left out where they allow, and forbid all arguments where
/// they forbid.
///
/// # Errors
/// The default is neither an errno, a kill nor to allow.
pub fn to_unit(profile: &Value, context: &Context) -> Result<(String, Vec<String>), ProfileError> {
    let mut notes = Vec::new();
    let default = action(&profile["defaultAction"], &profile["defaultErrnoRet"]);
    let Some(mut default) = default else {
        let place = Place::root(profile).get("defaultAction");
        let place = place.unwrap_or_else(|| Place::root(profile));
        return Err(place.refuse(
            "SCMP_ACT_ERRNO, _KILL, _KILL_PROCESS or _ALLOW",
            "SystemCallFilter= knows no other; choose one of them",
        ));
    };

    let (allowed, mut denied) = calls(profile, &mut notes);
    let mut unit = String::from("[Service]\n");
    let is_allow_list = !matches!(default, Act::Allow);
    if is_allow_list {
        denied = own_errnos(denied, &allowed, &mut default, context);
        if !allowed.contains("write") {
            notes.push("write is allowed: systemd itself needs it".to_owned());
        }
    }
    if let Act::Errno(errno) = &default {
        let _ = writeln!(unit, "SystemCallErrorNumber={errno}");
    }
    architectures(&mut unit, profile, context);
    if !is_allow_list {
        let items = denied.iter().map(|(name, kind)| format!("{name}:{kind}"));
        lines(&mut unit, "~", items.collect());
        return Ok((unit, notes));
    }

    lines(
        &mut unit,
        "",
        allowed.iter().map(|name| (*name).to_owned()).collect(),
    );

    // systemd allows these without being asked.
    let implied = systemd::set("@default").unwrap_or_default();
    let implied = implied.into_iter().filter(|name| !allowed.contains(name));
    let implied: Vec<String> = implied
        .filter(|name| {
            let family = context.native.family();
            family.iter().any(|abi| abi.number(name).is_some())
        })
        .map(str::to_owned)
        .collect();

    lines(&mut unit, "~", implied);
    let kinds = denied.iter().map(|(name, kind)| format!("{name}:{kind}"));
    lines(&mut unit, "~", kinds.collect());

    Ok((unit, notes))
}

/// What an allow list has to say of denied calls. systemd starts no unit in which a call has the
/// errno of those that are not listed: in version 257 ENOSYS, in older ones the default. Where
/// known calls have to fail with ENOSYS, it becomes the default, and all others have their own.
fn own_errnos<'p>(
    mut denied: BTreeMap<&'p str, String>,
    allowed: &BTreeSet<&str>,
    default: &mut Act,
    context: &Context,
) -> BTreeMap<&'p str, String> {
    const NO_CALL: &str = "ENOSYS";
    let known = || systemd::known().filter(|name| context.native.number(name).is_some());
    let own = match default {
        Act::Errno(errno) => errno.clone(),
        _ => "kill".to_owned(),
    };

    if known().any(|name| denied.get(name).is_some_and(|kind| kind == NO_CALL)) {
        for name in known().filter(|name| !allowed.contains(name)) {
            denied.entry(name).or_insert_with(|| own.clone());
        }
        *default = Act::Errno(NO_CALL.to_owned());
    } else {
        denied.retain(|_, kind| *kind != own);
    }
    denied.retain(|name, kind| *kind != NO_CALL && *name != "write");

    denied
}

/// The calls that the entries of a profile allow, and those that they deny, with what denies them.
fn calls<'p>(
    profile: &'p Value,
    notes: &mut Vec<String>,
) -> (BTreeSet<&'p str>, BTreeMap<&'p str, String>) {
    // The first entry without conditions decides about a call; what forbids is never left out.
    let mut allowed: BTreeSet<&str> = BTreeSet::new();
    let mut denied: BTreeMap<&str, String> = BTreeMap::new();
    for (index, call) in profile["syscalls"]
        .as_array()
        .into_iter()
        .flatten()
        .enumerate()
    {
        let has_conditions = call["args"].as_array().is_some_and(|args| !args.is_empty());
        let names = call["names"].as_array().into_iter().flatten();
        let own = action(&call["action"], &call["errnoRet"]);
        for name in names.filter_map(Value::as_str) {
            match (&own, has_conditions) {
                (Some(Act::Allow), false) if !denied.contains_key(name) => {
                    allowed.insert(name);
                }
                (Some(Act::Allow), false) => {}
                (Some(Act::Allow), true) => notes.push(format!(
                    "syscalls[{index}]: {name} is allowed for some arguments: left out"
                )),
                (own, _) => {
                    if allowed.contains(name) && !has_conditions {
                        continue;
                    }
                    if has_conditions {
                        notes.push(format!(
                            "syscalls[{index}]: {name} is forbidden for some arguments: forbidden \
                             for all"
                        ));
                    }
                    // What forbids a call for some arguments forbids it for all here: a unit knows no arguments.
                    allowed.remove(name);
                    let kind = match own {
                        Some(Act::Errno(errno)) => errno.clone(),
                        _ => "kill".to_owned(),
                    };
                    denied.insert(name, kind);
                }
            }
        }
    }

    (allowed, denied)
}

/// What `SystemCallFilter=` can do with a call.
enum Act {
    Allow,
    Kill,
    Errno(String),
}

fn action(action: &Value, errno: &Value) -> Option<Act> {
    match action.as_str()? {
        "SCMP_ACT_ALLOW" | "SCMP_ACT_LOG" => Some(Act::Allow),
        "SCMP_ACT_ERRNO" => {
            let number = errno.as_u64().unwrap_or(libc::EPERM as u64);
            let name = i32::try_from(number).ok().and_then(::abi::errno_name);
            Some(Act::Errno(name.map_or(number.to_string(), str::to_owned)))
        }
        "SCMP_ACT_KILL" | "SCMP_ACT_KILL_THREAD" | "SCMP_ACT_KILL_PROCESS" => Some(Act::Kill),
        _ => None,
    }
}

fn architectures(unit: &mut String, profile: &Value, context: &Context) {
    let listed = profile["architectures"].as_array().into_iter().flatten();
    let names = listed
        .filter_map(Value::as_str)
        .filter_map(crate::policy::Abi::from_name);
    let mut abis: BTreeSet<_> = names.collect();
    abis.insert(context.native);
    let names: Vec<&str> = abis.iter().map(|abi| abi.systemd_name()).collect();
    let _ = writeln!(unit, "SystemCallArchitectures={}", names.join(" "));
}

/// Assignments of at most 100 columns; nothing for no items.
fn lines(unit: &mut String, prefix: &str, items: Vec<String>) {
    let start = format!("SystemCallFilter={prefix}");
    let mut line = String::new();
    for item in items {
        if !line.is_empty() && start.len() + line.len() + 1 + item.len() > 100 {
            let _ = writeln!(unit, "{start}{line}");
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(&item);
    }

    if !line.is_empty() {
        let _ = writeln!(unit, "{start}{line}");
    }
}
