//! Seccomp profiles of the OCI runtime specification (config-linux.md, `seccomp`), with Docker's
//! additions (moby/profiles, seccomp.go): `archMap`, `includes`, `excludes`.
//!
//! Where the specification is silent, this follows runc (libcontainer/seccomp): a missing errno is
//! EPERM, two conditions on one argument are alternatives, and calls newer than the profile fail
//! with ENOSYS, and of several rules without conditions the first counts. One thing is stricter:
//! of several rules that match, the strictest applies.

mod entries;

use super::json::{self, keep, Place};
use super::words;
use super::{Context, ProfileError};
use crate::policy::{Abi, AbiRules, Layer, Policy};
use crate::{Action, Verdict};
use entries::OciEntry;
use serde_json::{Map, Value};

const MEMBERS: [&str; 11] = [
    "defaultAction",
    "defaultErrnoRet",
    "defaultErrno",
    "architectures",
    "archMap",
    "flags",
    "listenerPath",
    "listenerMetadata",
    "syscalls",
    // Of the security-profiles-operator.
    "baseProfileName",
    "disabled",
];

const CALL_MEMBERS: [&str; 9] = [
    "names", "name", "action", "errnoRet", "errno", "args", "comment", "includes", "excludes",
];

/// Architectures of libseccomp without tables here. None of them can occur on a kernel that serves
/// one of the known ABIs.
const OTHER_ARCHS: [&str; 18] = [
    "SCMP_ARCH_MIPS",
    "SCMP_ARCH_MIPS64",
    "SCMP_ARCH_MIPS64N32",
    "SCMP_ARCH_MIPSEL",
    "SCMP_ARCH_MIPSEL64",
    "SCMP_ARCH_MIPSEL64N32",
    "SCMP_ARCH_PPC",
    "SCMP_ARCH_PPC64",
    "SCMP_ARCH_PPC64LE",
    "SCMP_ARCH_RISCV64",
    "SCMP_ARCH_S390",
    "SCMP_ARCH_S390X",
    "SCMP_ARCH_PARISC",
    "SCMP_ARCH_PARISC64",
    "SCMP_ARCH_LOONGARCH64",
    "SCMP_ARCH_M68K",
    "SCMP_ARCH_SH",
    "SCMP_ARCH_SHEB",
];

/// Parses a profile.
///
/// # Errors
/// The text is not JSON, or a place does not allow its value; the error has the JSON path.
pub fn parse(text: &str, context: &Context) -> Result<Policy, ProfileError> {
    policy(&Place::root(&json::read(text)?.value), context)
}

/// The policy of a profile that is `root`.
pub(super) fn policy(root: &Place, context: &Context) -> Result<Policy, ProfileError> {
    let mut notes = Vec::new();
    root.note_members(&MEMBERS, &mut notes)?;
    let default = default_verdict(root)?;
    let abis = architectures(root, context, &mut notes)?;
    let mut layer = Layer::new("", default, Verdict::new(Action::KillThread, 0));
    layer.default_source = root
        .get("defaultAction")
        .map_or_else(String::new, |it| it.path);
    layer.abis = abis.iter().map(|&abi| (abi, AbiRules::default())).collect();
    let mut policy = Policy {
        flags: flags(root)?,
        ..Policy::default()
    };
    let mut conflicts = Vec::new();
    let calls = match root.get("syscalls") {
        Some(calls) => calls.items()?,
        None => Vec::new(),
    };
    for call in calls {
        call.note_members(&CALL_MEMBERS, &mut notes)?;
        if applies(&call, context, &mut notes)? {
            let entry = OciEntry::read(&call, &mut notes)?;
            entry.add(&mut layer, &mut policy, &mut notes, &mut conflicts);
        }
    }

    layer.narrower_first();
    let is_strict = default.action() < Action::Trace;
    if !(context.enosys && is_strict) {
        layer
            .abis
            .values_mut()
            .for_each(|rules| rules.enosys_above = None);
    }

    notes.extend(conflicts);
    policy.layers = vec![layer];
    policy.notes = notes;

    Ok(policy)
}

/// A profile without what depends on `context`: entries that do not apply are left out, and members
/// have the names of the runtime specification.
pub(super) fn resolved(
    root: &Place,
    context: &Context,
) -> Result<Map<String, Value>, ProfileError> {
    let mut ignored = Vec::new();
    let mut profile = Map::new();
    let default = root.get("defaultAction");
    keep(
        &mut profile,
        "defaultAction",
        default.as_ref().map(|it| it.value),
    );
    let verdict = default_verdict(root)?;
    if has_data(verdict) {
        profile.insert("defaultErrnoRet".to_owned(), verdict.data().into());
    }
    let abis = architectures(root, context, &mut ignored)?;
    let names: Vec<&str> = abis.iter().map(|abi| abi.oci_name()).collect();
    profile.insert("architectures".to_owned(), names.into());
    for name in ["flags", "listenerPath", "listenerMetadata"] {
        keep(&mut profile, name, root.get(name).map(|it| it.value));
    }

    let mut entries = Vec::new();
    for call in root
        .get("syscalls")
        .map_or(Ok(Vec::new()), |calls| calls.items())?
    {
        if applies(&call, context, &mut ignored)? {
            entries.push(Value::Object(resolved_call(&call)?));
        }
    }
    profile.insert("syscalls".to_owned(), entries.into());

    Ok(profile)
}

fn resolved_call(call: &Place) -> Result<Map<String, Value>, ProfileError> {
    let entry = OciEntry::read(call, &mut Vec::new())?;
    let mut resolved = Map::new();
    let names: Vec<&str> = entry.names.iter().map(|row| row.1).collect();
    resolved.insert("names".to_owned(), names.into());
    keep(
        &mut resolved,
        "action",
        call.get("action").map(|it| it.value),
    );
    if has_data(entry.verdict) {
        resolved.insert("errnoRet".to_owned(), entry.verdict.data().into());
    }
    let mut args = Vec::new();
    for arg in call
        .get("args")
        .map_or(Ok(Vec::new()), |args| args.items())?
    {
        let mut kept = Map::new();
        for name in ["index", "value", "valueTwo", "op"] {
            keep(&mut kept, name, arg.get(name).map(|it| it.value));
        }
        args.push(Value::Object(kept));
    }
    if !args.is_empty() {
        resolved.insert("args".to_owned(), args.into());
    }

    Ok(resolved)
}

fn has_data(verdict: Verdict) -> bool {
    matches!(verdict.action(), Action::Errno | Action::Trace)
}

fn default_verdict(root: &Place) -> Result<Verdict, ProfileError> {
    let Some(action) = root.get("defaultAction") else {
        return Err(ProfileError::new(
            "defaultAction",
            "nothing",
            "an action",
            "say what happens to calls that are not listed, such as SCMP_ACT_ERRNO",
        ));
    };

    let verdict = verdict(
        &action,
        root.get("defaultErrno"),
        root.get("defaultErrnoRet"),
    )?;
    if verdict.action() == Action::UserNotif {
        return Err(action.refuse(
            "an action that needs no agent",
            "the agent itself could not be reached; notify for single calls",
        ));
    }

    Ok(verdict)
}

/// The verdict for an action and its data: the name of an errno, which Podman's profiles have, or
/// else a number.
fn verdict(
    action: &Place,
    errno_name: Option<Place>,
    errno_number: Option<Place>,
) -> Result<Verdict, ProfileError> {
    const EXPECTED: &str = "SCMP_ACT_ALLOW, _LOG, _TRACE, _NOTIFY, _ERRNO, _TRAP, _KILL, \
                            _KILL_THREAD or _KILL_PROCESS";

    let name = action.text(EXPECTED, "write it between quotes")?;
    let kind = match name {
        "SCMP_ACT_KILL" | "SCMP_ACT_KILL_THREAD" => Action::KillThread,
        "SCMP_ACT_KILL_PROCESS" => Action::KillProcess,
        "SCMP_ACT_TRAP" => Action::Trap,
        "SCMP_ACT_ERRNO" => Action::Errno,
        "SCMP_ACT_TRACE" => Action::Trace,
        "SCMP_ACT_ALLOW" => Action::Allow,
        "SCMP_ACT_LOG" => Action::Log,
        "SCMP_ACT_NOTIFY" => Action::UserNotif,
        _ => return Err(action.refuse(EXPECTED, "correct its spelling")),
    };

    // A tracer gets 16 bits (PTRACE_GETEVENTMSG).
    let max = if kind == Action::Trace {
        u16::MAX
    } else {
        words::LIBSECCOMP_ERRNO_MAX
    };
    let named = errno_name.filter(|name| name.value.as_str() != Some(""));
    let given = match named {
        Some(name) => Some(errno(&name)?),
        None => errno_number
            .map(|number| number.number(max.into()))
            .transpose()?,
    };
    let data = match kind {
        Action::Errno | Action::Trace => given.map_or(libc::EPERM as u16, |given| given as u16),
        _ => 0,
    };

    Ok(Verdict::new(kind, data))
}

fn errno(name: &Place) -> Result<u64, ProfileError> {
    const EXPECTED: &str = "the name of an errno, such as ENOSYS";
    let text = name.text(
        EXPECTED,
        "write it between quotes, or write errnoRet with its number",
    )?;
    let number = ::abi::errno_number(text).and_then(|number| u64::try_from(number).ok());
    number.ok_or_else(|| name.refuse(EXPECTED, "correct its spelling"))
}

fn architectures(
    root: &Place,
    context: &Context,
    notes: &mut Vec<String>,
) -> Result<Vec<Abi>, ProfileError> {
    let listed = root.texts("architectures")?;
    let map = root.get("archMap");
    if let (false, Some(map)) = (listed.is_empty(), &map) {
        return Err(map.refuse("either architectures or archMap", "delete one of the two"));
    }

    let mut names = listed;

    for row in map.map(|map| map.items()).transpose()?.unwrap_or_default() {
        row.note_members(&["architecture", "subArchitectures"], notes)?;
        let main = row.get("architecture").ok_or_else(|| {
            row.refuse(
                "a member architecture",
                "name the architecture that the row is for",
            )
        })?;
        let name = main.text("an architecture", "write it between quotes")?;
        let subs = row.texts("subArchitectures")?;
        let abi = architecture(&main, name)?;
        for (place, sub) in &subs {
            architecture(place, sub)?;
        }
        if abi == Some(context.native) {
            names.extend(subs);
        }
    }

    // Filters of libseccomp always include the native architecture.
    let mut abis = vec![context.native];

    for (place, name) in names {
        match architecture(&place, name)? {
            Some(abi) => abis.push(abi),
            None if OTHER_ARCHS.contains(&name) => notes.push(format!(
                "{}: {name} cannot occur here; left out",
                place.path
            )),
            None => notes.push(format!(
                "{}: {name} is no architecture of libseccomp 2.6; its calls are refused, and runc \
                 may refuse the profile: correct its spelling, or delete it",
                place.path
            )),
        }
    }

    abis.sort();
    abis.dedup();

    Ok(abis)
}

/// The ABI with this name; `None` for one without tables here. Names that libseccomp does not have
/// are such ones too, since it has more of them in every version.
fn architecture(place: &Place, name: &str) -> Result<Option<Abi>, ProfileError> {
    if name == "SCMP_ARCH_NATIVE" {
        return Ok(Some(Abi::native()));
    }
    match Abi::EVERY.into_iter().find(|abi| abi.oci_name() == name) {
        Some(abi) => Ok(Some(abi)),
        None if name.starts_with("SCMP_ARCH_") => Ok(None),
        None => Err(place.refuse(
            "an architecture of libseccomp, such as SCMP_ARCH_X86_64, SCMP_ARCH_X86, \
             SCMP_ARCH_X32, SCMP_ARCH_AARCH64 or SCMP_ARCH_ARM",
            "correct its spelling",
        )),
    }
}

fn flags(root: &Place) -> Result<crate::policy::Flags, ProfileError> {
    let mut flags = crate::policy::Flags::default();
    for (place, name) in root.texts("flags")? {
        match name {
            "SECCOMP_FILTER_FLAG_TSYNC" => flags.tsync = true,
            "SECCOMP_FILTER_FLAG_LOG" => flags.log = true,
            "SECCOMP_FILTER_FLAG_SPEC_ALLOW" => flags.spec_allow = true,
            "SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV" => flags.wait_killable = true,
            _ => {
                return Err(place.refuse(
                    "SECCOMP_FILTER_FLAG_TSYNC, _LOG, _SPEC_ALLOW or _WAIT_KILLABLE_RECV",
                    "correct its spelling",
                ))
            }
        }
    }

    Ok(flags)
}

/// Whether an entry applies, according to its `includes` and `excludes`.
fn applies(call: &Place, context: &Context, notes: &mut Vec<String>) -> Result<bool, ProfileError> {
    let has_cap = |row: &(Place, &str)| context.caps.iter().any(|cap| cap == row.1);
    let is_native = |row: &(Place, &str)| row.1 == context.native.go_name();
    let mut all = true;

    for (name, wanted) in [("excludes", false), ("includes", true)] {
        let Some(when) = call.get(name) else { continue };
        when.note_members(&["caps", "arches", "minKernel"], notes)?;
        let arches = when.texts("arches")?;
        let caps = when.texts("caps")?;
        let old_enough = match when.get("minKernel") {
            Some(version) => Some(context.kernel >= kernel(&version)?),
            None => None,
        };
        all &= if wanted {
            (arches.is_empty() || arches.iter().any(is_native))
                && caps.iter().all(has_cap)
                && old_enough != Some(false)
        } else {
            !arches.iter().any(is_native) && !caps.iter().any(has_cap) && old_enough != Some(true)
        };
    }

    Ok(all)
}

/// Parses a version such as `4.8`.
fn kernel(place: &Place) -> Result<(u32, u32), ProfileError> {
    let text = place.value.as_str().unwrap_or_default();
    let parts = text
        .split_once('.')
        .and_then(|(major, minor)| Some((major.parse::<u32>().ok()?, minor.parse::<u32>().ok()?)));
    parts.ok_or_else(|| {
        place.refuse(
            "a version of two numbers, such as \"4.8\"",
            "write it between quotes",
        )
    })
}
