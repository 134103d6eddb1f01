//! What a record says was decided: never its type alone.

use super::parsed::{field, kind_of, known_kind, text_of, Object, Parsed};

/// A decision that a record reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It was refused.
    Denied,
    /// It went on, whether or not a policy would have refused it.
    Allowed,
}

use Verdict::{Allowed, Denied};

/// SECCOMP_RET_ACTION_FULL, and the actions after which the call went on (linux/seccomp.h).
const SECCOMP_ACTION: u64 = 0xffff_0000;
const SECCOMP_LOG: u64 = 0x7ffc_0000;
const SECCOMP_ALLOW: u64 = 0x7fff_0000;
/// Actions that leave the decision to a tracer or a supervisor.
const SECCOMP_ASK: [u64; 2] = [0x7ff0_0000, 0x7fc0_0000];

/// FAN_ALLOW and FAN_DENY (linux/fanotify.h).
const FANOTIFY_ALLOW: &str = "1";
const FANOTIFY_DENY: &str = "2";

/// The decision that a record reports; `None` if it reports none, or does not say which.
pub(crate) fn of(record: &Object) -> Option<Verdict> {
    let text = |name: &str| field(record, name).map(text_of);
    match known_kind(record) {
        "SECCOMP" => seccomp(record),
        "FANOTIFY" => match text("resp")?.as_str() {
            FANOTIFY_ALLOW => Some(Allowed),
            FANOTIFY_DENY => Some(Denied),
            _ => None,
        },
        // Landlock writes a record only for what it refuses.
        "LANDLOCK_ACCESS" => Some(Denied),
        "IPE_ACCESS" => {
            let is_enforced = text("enforcing").as_deref() != Some("0");
            let refuses = text("rule")?.contains("action=DENY");
            Some(if refuses && is_enforced {
                Denied
            } else {
                Allowed
            })
        }
        // Actions of the target AUDIT of xtables: accept, drop, reject.
        "NETFILTER_PKT" => match text("action")?.as_str() {
            "0" => Some(Allowed),
            "1" | "2" => Some(Denied),
            _ => None,
        },
        // Whether an integrity error stops the access is the policy's choice, which the record does not have.
        "INTEGRITY_DATA" | "INTEGRITY_METADATA" | "INTEGRITY_USERSPACE" => {
            result(record)?.then_some(Allowed)
        }
        "ANOM_LINK" | "ANOM_CREAT" => (result(record) == Some(false)).then_some(Denied),
        "DAC_CHECK" | "MAC_CHECK" => {
            result(record).map(|passed| if passed { Allowed } else { Denied })
        }
        "SELINUX_ERR" | "USER_SELINUX_ERR" => (text("seresult")? == "denied").then_some(Denied),
        "AVC" | "USER_AVC" => mandatory(record, None),
        kind => mandatory(record, Some(kind.strip_prefix("APPARMOR_")?)),
    }
}

/// The decision of SELinux (`avc:  denied  { … }`) or AppArmor (`apparmor="DENIED"`, or a type of its own).
fn mandatory(record: &Object, kind: Option<&str>) -> Option<Verdict> {
    let word = field(record, "apparmor").map(text_of);
    match word.as_deref().or(kind) {
        Some("DENIED" | "KILLED" | "KILL") => return Some(Denied),
        Some("ALLOWED" | "AUDIT") => return Some(Allowed),
        Some(_) => return None,
        None => {}
    }

    let words = field(record, "words").or_else(|| record.get("msg"));
    let words = words.map(text_of)?;
    let decision = words
        .split(['{', '('])
        .next()?
        .split_whitespace()
        .find_map(|word| match word {
            "denied" => Some(Denied),
            "granted" => Some(Allowed),
            _ => None,
        })?;
    let is_permissive = field(record, "permissive").is_some_and(|value| text_of(value) == "1");

    Some(if is_permissive { Allowed } else { decision })
}

fn seccomp(record: &Object) -> Option<Verdict> {
    let number = |name: &str, radix| {
        let text = record.get(name).map(text_of)?;
        u64::from_str_radix(text.trim_start_matches("0x"), radix).ok()
    };
    match number("code", 16).map(|code| code & SECCOMP_ACTION) {
        Some(SECCOMP_LOG | SECCOMP_ALLOW) => Some(Allowed),
        Some(action) if SECCOMP_ASK.contains(&action) => None,
        Some(_) => Some(Denied),
        // Kernels before 3.17 write no action, and a record only with the signal that kills.
        None => (number("sig", 10)? > 0).then_some(Denied),
    }
}

/// Success as a record says it: `res=`, `result=` or `success=`.
pub(crate) fn result(record: &Object) -> Option<bool> {
    ["res", "result", "success"].iter().find_map(|name| {
        let said = text_of(field(record, name)?).to_ascii_lowercase();
        match said.as_str() {
            "yes" | "1" | "success" => Some(true),
            "no" | "0" | "fail" | "failed" | "failure" | "denied" => Some(false),
            _ => None,
        }
    })
}

/// Success of an event: refusals first, then what was made for a call (`res=`), the call itself, and decisions that let
/// something pass. `None` if no record says so.
pub(crate) fn outcome(parsed: &Parsed) -> Option<bool> {
    let verdicts: Vec<Verdict> = parsed.records.iter().filter_map(of).collect();
    if verdicts.contains(&Denied) {
        return Some(false);
    }
    let is_call = |record: &&Object| matches!(kind_of(record), "SYSCALL" | "URINGOP");
    let (calls, others): (Vec<&Object>, Vec<&Object>) = parsed.records.iter().partition(is_call);
    let said = others.into_iter().chain(calls).find_map(result);
    said.or((!verdicts.is_empty()).then_some(true))
}
