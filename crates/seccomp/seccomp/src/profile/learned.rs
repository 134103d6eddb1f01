//! Profiles made from the calls that a program was seen to make.

pub use super::extra::Extra;
use super::{convert, oci, Context, ProfileError};
use crate::policy::{Abi, Compare, Policy};
use crate::Verdict;
use serde_json::{json, Value};
use std::collections::{BTreeMap, BTreeSet};

/// Calls with an argument that determines what the call does, and its index. The other arguments
/// are addresses, sizes, or descriptors.
pub const TELLING: [(&str, u8); 24] = [
    ("arch_prctl", 0),
    ("bpf", 0),
    ("clone", 0),
    ("fcntl", 1),
    ("fcntl64", 1),
    ("ioctl", 1),
    ("keyctl", 0),
    ("kcmp", 2),
    ("landlock_add_rule", 1),
    ("mbind", 2),
    ("mprotect", 2),
    ("msgctl", 1),
    ("personality", 0),
    ("pkey_mprotect", 2),
    ("prctl", 0),
    ("ptrace", 0),
    ("quotactl", 0),
    ("reboot", 2),
    ("sched_setscheduler", 1),
    ("seccomp", 0),
    ("setns", 1),
    ("socket", 0),
    ("socketpair", 0),
    ("unshare", 0),
];

/// Limit of values: with more, a call is allowed with any arguments.
pub const VALUES_MAX: usize = 8;

/// The calls that were seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Observed {
    /// ABIs that calls were made with.
    pub abis: BTreeSet<Abi>,
    /// Calls by kernel name, with the number of times each was made.
    pub calls: BTreeMap<String, u64>,
    /// Values of the telling argument. A call of [`TELLING`] that is missing here is allowed with
    /// all values.
    pub values: BTreeMap<String, BTreeSet<u64>>,
    /// Numbers without a name, with their ABI; a profile cannot allow them.
    pub unnamed: BTreeSet<(Abi, u32)>,
}

/// The index of a call's telling argument, if it has one.
pub fn telling(name: &str) -> Option<u8> {
    TELLING.iter().find(|row| row.0 == name).map(|row| row.1)
}

impl Observed {
    /// Adds `count` calls with number `nr` on architecture `arch`. Returns the call's name.
    pub fn add(&mut self, arch: u32, nr: u32, count: u64) -> Option<&'static str> {
        let abi = Abi::of(arch, nr)?;
        self.abis.insert(abi);
        let Some(name) = abi.name_of(nr) else {
            self.unnamed.insert((abi, nr));
            return None;
        };
        *self.calls.entry(name.to_owned()).or_default() += count;
        Some(name)
    }

    /// Adds a value of a call's telling argument.
    pub fn add_value(&mut self, name: &str, value: u64) {
        self.values
            .entry(name.to_owned())
            .or_default()
            .insert(value);
    }

    /// The calls that a profile made by [`Observed::profile`] allows, with counts of 0.
    ///
    /// # Errors
    /// The text is not an OCI profile, or contains rules that no learnt profile has.
    pub fn from_profile(text: &str, context: &Context) -> Result<Observed, ProfileError> {
        let policy = oci::parse(text, context)?;
        let mut seen = Observed::default();
        let mut plain = BTreeSet::new();

        for (&abi, rules) in policy.layers.iter().flat_map(|layer| &layer.abis) {
            seen.abis.insert(abi);
            for (&nr, rules) in &rules.calls {
                let Some(name) = abi.name_of(nr) else {
                    continue;
                };
                seen.calls.entry(name.to_owned()).or_default();
                for rule in rules {
                    match (rule.verdict, rule.conditions.as_slice()) {
                        (Verdict::ALLOW, []) => drop(plain.insert(name)),
                        (Verdict::ALLOW, [only])
                            if only.compare == Compare::Eq && Some(only.arg) == telling(name) =>
                        {
                            seen.add_value(name, only.value);
                        }
                        // The 32-bit x86 form of socket and similar calls.
                        (Verdict::ALLOW, _) if matches!(name, "socketcall" | "ipc") => {}
                        _ => {
                            let place = policy.sources.get(rule.id.0 as usize);
                            return Err(not_learned(place.cloned().unwrap_or_default(), name));
                        }
                    }
                }
            }
        }

        // A rule without conditions allows all values, whatever others list.
        seen.values.retain(|name, _| !plain.contains(name.as_str()));
        Ok(seen)
    }

    /// Adds the calls that were seen in another run.
    pub fn merge(&mut self, other: Observed) {
        // A call that one run allows with any arguments is allowed so in the result.
        let any = |seen: &Observed, name: &str| {
            seen.calls.contains_key(name) && !seen.values.contains_key(name)
        };
        for (name, values) in &other.values {
            if !any(self, name) {
                self.values.entry(name.clone()).or_default().extend(values);
            }
        }

        self.values.retain(|name, _| !any(&other, name));
        for (name, count) in other.calls {
            *self.calls.entry(name).or_default() += count;
        }
        self.abis.extend(other.abis);

        self.unnamed.extend(other.unnamed);
    }

    /// The entries of a profile that allow the calls seen, and those for other reasons.
    fn entries(&self, native: Abi, extras: &[Extra]) -> Vec<Value> {
        let (mut plain, mut entries) = (Vec::new(), Vec::new());
        for name in self.calls.keys() {
            let values = self
                .values
                .get(name)
                .filter(|values| values.len() <= VALUES_MAX);
            match (telling(name), values) {
                (Some(index), Some(values)) => {
                    entries.extend(values.iter().map(|value| {
                        let args = json!([{"index": index, "value": value, "op": "SCMP_CMP_EQ"}]);
                        json!({"names": [name], "action": "SCMP_ACT_ALLOW", "args": args})
                    }));
                }
                _ => plain.push(name),
            }
        }

        entries.insert(0, json!({"names": plain, "action": "SCMP_ACT_ALLOW"}));
        for &extra in extras {
            let names = self.extra(extra, native);
            if !names.is_empty() {
                let comment = extra.comment();
                entries
                    .push(json!({"names": names, "action": "SCMP_ACT_ALLOW", "comment": comment}));
            }
        }

        entries
    }

    /// The calls that are allowed for a reason other than that they were seen.
    pub fn extra(&self, extra: Extra, native: Abi) -> Vec<&'static str> {
        let abis = self.abis.iter().chain([&native]);
        let exists = |name: &&str| abis.clone().any(|abi| abi.number(name).is_some());
        let calls = extra.calls().iter().copied();
        calls
            .filter(exists)
            .filter(|name| !self.calls.contains_key(*name) || self.values.contains_key(*name))
            .collect()
    }

    /// The smallest OCI profile that allows the calls seen and those of `extras`. Everything else
    /// fails with EPERM; calls newer than the profile fail with ENOSYS if runc's rule for them is in
    /// use.
    pub fn profile(&self, native: Abi, extras: &[Extra]) -> Value {
        let mut abis = self.abis.clone();
        abis.insert(native);
        let names: Vec<&str> = abis.iter().map(|abi| abi.oci_name()).collect();
        json!({
            "defaultAction": "SCMP_ACT_ERRNO",
            "defaultErrnoRet": 1,
            "architectures": names,
            "syscalls": self.entries(native, extras),
        })
    }

    /// A profile that somebody wrote, with what is missing in it for the calls seen and those of
    /// `extras`: names are taken out of its entries that forbid them, and an entry is added.
    ///
    /// # Errors
    /// The text is not an OCI profile.
    pub fn added_to(
        &self,
        text: &str,
        context: &Context,
        extras: &[Extra],
    ) -> Result<Value, ProfileError> {
        let policy = super::parse(text, context)?;
        let mut profile = convert::to_oci(text, context)?;
        let mut missing = self.clone();
        let allows = |name: &String| {
            let abis = self.abis.iter().chain([&context.native]);
            abis.filter_map(|abi| Some((abi, abi.number(name)?)))
                .all(|(abi, nr)| allows_always(&policy, *abi, nr))
        };
        // What the profile allows already needs no entry.
        missing.calls.retain(|name, _| !allows(name));
        let needed: BTreeSet<String> = missing.calls.keys().cloned().collect();
        if let Some(calls) = profile.get_mut("syscalls").and_then(Value::as_array_mut) {
            for call in calls.iter_mut() {
                forbid_less(call, &needed);
            }
        }

        let mut entries = missing.entries(context.native, &[]);

        for &extra in extras {
            let names = self.extra(extra, context.native);
            let names: Vec<_> = names
                .into_iter()
                .filter(|name| !allows(&(*name).to_owned()))
                .collect();
            if !names.is_empty() {
                let comment = extra.comment();
                entries
                    .push(json!({"names": names, "action": "SCMP_ACT_ALLOW", "comment": comment}));
            }
        }

        entries.retain(|entry| entry["names"] != json!([]));
        match profile.get_mut("syscalls").and_then(Value::as_array_mut) {
            Some(calls) => calls.extend(entries),
            None => profile["syscalls"] = Value::Array(entries),
        }

        Ok(profile)
    }

    /// Calls that `policy` allows on `native`, at least for some arguments, but that were never
    /// made.
    pub fn unused(&self, policy: &Policy, native: Abi) -> Vec<&'static str> {
        let allows = |nr: &u32| {
            policy.layers.iter().all(|layer| {
                let rules = layer
                    .abis
                    .get(&native)
                    .and_then(|rules| rules.calls.get(nr));
                let listed = rules.into_iter().flatten();
                let mut verdicts = listed.map(|rule| rule.verdict);
                layer.default == Verdict::ALLOW || verdicts.any(|verdict| verdict == Verdict::ALLOW)
            })
        };

        native
            .calls()
            .filter(|(nr, name)| allows(nr) && !self.calls.contains_key(*name))
            .map(|row| row.1)
            .collect()
    }
}

/// Whether a policy allows a call whatever its arguments are.
fn allows_always(policy: &Policy, abi: Abi, nr: u32) -> bool {
    let allows = |verdict: Verdict| verdict.action() >= crate::Action::Log;
    policy.layers.iter().all(|layer| {
        let Some(rules) = layer.abis.get(&abi) else {
            return allows(layer.bad_arch);
        };
        if rules.enosys_above.is_some_and(|max| abi.bare(nr) > max) {
            return false;
        }
        let listed = rules.calls.get(&nr).map_or(&[][..], Vec::as_slice);
        let always = listed.iter().find(|rule| rule.conditions.is_empty());
        let rest = always.map_or(layer.default, |rule| rule.verdict);
        // The strictest matching rule applies, so no rule with conditions may forbid.
        allows(rest) && listed.iter().all(|rule| allows(rule.verdict))
    })
}

/// Takes `needed` names out of an entry that forbids them.
fn forbid_less(call: &mut Value, needed: &BTreeSet<String>) {
    let permits = ["SCMP_ACT_ALLOW", "SCMP_ACT_LOG"];
    let is_forbidding = call["action"]
        .as_str()
        .is_some_and(|action| !permits.contains(&action));
    if !is_forbidding {
        return;
    }
    if let Some(names) = call.get_mut("names").and_then(Value::as_array_mut) {
        names.retain(|name| !name.as_str().is_some_and(|name| needed.contains(name)));
    }
}

fn not_learned(place: String, name: &str) -> ProfileError {
    ProfileError::new(
        place,
        format!("a rule for {name} that is not plain SCMP_ACT_ALLOW or SCMP_CMP_EQ"),
        "a profile that `tarsier seccomp learn` wrote",
        "merge such profiles only; keep other rules in a profile of their own",
    )
}
