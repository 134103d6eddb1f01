//! Documents that have a profile in them: a container's `config.json` (OCI runtime specification,
//! config.md), and the SeccompProfile of the security-profiles-operator.

use super::extra::Extra;
use super::json::Place;
use super::members::Noted;
use super::{oci, Context, ProfileError};
use crate::policy::{Policy, Rule, RuleId};
use crate::Verdict;

/// The policy of a document.
pub(super) fn policy(document: Noted, context: &Context) -> Result<Policy, ProfileError> {
    let root = Place::root(&document.value);
    let inner = profile(&root)?;
    let mut policy = oci::policy(&inner.place, context)?;
    let notes = document.notes.into_iter().chain(inner.notes);
    policy.notes.splice(0..0, notes);
    if let Some(base) = inner.base {
        add_base(&mut policy, &base)?;
    }
    Ok(policy)
}

/// The profile in a document.
pub(super) struct Inner<'a> {
    pub(super) place: Place<'a>,
    /// `baseProfileName`, whose calls are allowed, too.
    pub(super) base: Option<Place<'a>>,
    notes: Vec<String>,
}

/// Finds the profile in a document; the document itself, if it is one.
pub(super) fn profile<'a>(root: &Place<'a>) -> Result<Inner<'a>, ProfileError> {
    let plain = |place| Inner {
        place,
        base: None,
        notes: Vec::new(),
    };
    let kind = root.get("kind").and_then(|kind| kind.value.as_str());
    match kind {
        Some("SeccompProfile") => return operators(root),
        Some(kind) if root.get("apiVersion").is_some() => {
            return Err(ProfileError::new(
                "kind",
                kind,
                "SeccompProfile",
                "give the profile that it names (localhostProfile), a file below \
                 /var/lib/kubelet/seccomp on the nodes",
            ))
        }
        _ => {}
    }

    if root.get("ociVersion").is_none() && root.get("linux").is_none() {
        return Ok(plain(root.clone()));
    }

    let inner = root.get("linux").and_then(|linux| linux.get("seccomp"));

    inner.map(plain).ok_or_else(|| {
        ProfileError::new(
            "linux.seccomp",
            "nothing",
            "the profile of the container",
            "a container without it is not restricted; `default allow` is a list that says so",
        )
    })
}

/// The `spec` of a SeccompProfile, which has a few members more than an OCI profile.
fn operators<'a>(root: &Place<'a>) -> Result<Inner<'a>, ProfileError> {
    let spec = root.get("spec").ok_or_else(|| {
        ProfileError::new("spec", "nothing", "the profile", "add the member spec")
    })?;
    let base = spec.get("baseProfileName");
    let mut notes = Vec::new();
    let disabled = spec.get("disabled").and_then(|it| it.value.as_bool());
    if disabled == Some(true) {
        notes.push("spec.disabled: the operator does not install this profile".to_owned());
    }

    Ok(Inner {
        place: spec,
        base: base.filter(|base| base.value.as_str() != Some("")),
        notes,
    })
}

/// The calls that a base profile allows: the operator's `runc-vX.Y.Z` and `crun-vX.Y.Z` have those
/// that these runtimes need. Others exist in a cluster or a registry only: `None`.
pub(super) fn base_calls(base: &Place) -> Option<&'static [&'static str]> {
    let name = base.value.as_str()?;
    let mut runtimes = ["runc", "crun"].iter();
    let is_runtime =
        runtimes.any(|runtime| name == *runtime || name.starts_with(&format!("{runtime}-")));
    is_runtime.then(|| Extra::Runtime.calls())
}

fn add_base(policy: &mut Policy, base: &Place) -> Result<(), ProfileError> {
    let name = base.text("the name of a profile", "write it between quotes")?;
    let Some(calls) = base_calls(base) else {
        policy.notes.push(format!(
            "{}: {name} is not here; its calls are not allowed: add them with `tarsier seccomp learn \
             --merge`, or give the merged profile that the operator has installed",
            base.path
        ));
        return Ok(());
    };

    let id = RuleId(policy.sources.len() as u32);
    policy.sources.push(base.path.clone());
    let rule = Rule::always(Verdict::ALLOW, id);

    for layer in &mut policy.layers {
        let abis: Vec<_> = layer.abis.keys().copied().collect();
        for abi in abis {
            for name in calls {
                let nr = abi.number(name);
                let rules = nr.and_then(|nr| layer.abis.get(&abi)?.calls.get(&nr));
                let mut rules = rules.into_iter().flatten();
                if !rules.any(|rule| rule.conditions.is_empty()) {
                    layer.add(abi, name, &rule);
                }
            }
            // These calls are known to the profile.
            let newest = calls
                .iter()
                .filter_map(|name| abi.number(name))
                .map(|nr| abi.bare(nr));
            if let Some(rules) = layer.abis.get_mut(&abi) {
                rules.enosys_above = rules
                    .enosys_above
                    .map(|max| max.max(newest.max().unwrap_or(0)));
            }
        }
    }

    policy.notes.push(format!(
        "{}: taken for the calls that runc 1.1 and crun 1.8 make before the program starts",
        base.path
    ));

    Ok(())
}
