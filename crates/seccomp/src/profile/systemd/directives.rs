//! Converts directives to layers.

use super::unit::Setting;
use super::{set, unknown_set};
use crate::policy::{Abi, AbiRules, Compare, Condition, Layer, Policy, Rule, RuleId};
use crate::profile::{words, Context, ProfileError};
use crate::{Action, Verdict};

mod families;
mod filter;

const EPERM: Verdict = Verdict::new(Action::Errno, libc::EPERM as u16);
const NO_CALL: Verdict = Verdict::new(Action::Errno, libc::ENOSYS as u16);

/// The layers of a unit, in the order in which systemd installs its filters (systemd,
/// src/core/exec-invoke.c): among equally strict verdicts the last one counts.
pub(super) fn policy(settings: &[Setting], context: &Context) -> Result<Policy, ProfileError> {
    let mut unit = Unit::new(settings, context)?;
    unit.when("ProtectHostname", hostname)?;
    families::address_families(&mut unit)?;
    unit.when("MemoryDenyWriteExecute", write_execute)?;
    unit.when("RestrictRealtime", realtime)?;
    let dynamic = unit.flag("DynamicUser")?;
    if unit.flag("RestrictSUIDSGID")?.is_some() || dynamic.is_none() {
        unit.when("RestrictSUIDSGID", set_ids)?;
    } else {
        unit.when("DynamicUser", set_ids)?;
    }
    unit.namespaces()?;
    unit.when("ProtectKernelTunables", |unit, layer, id| {
        unit.deny(layer, id, &["_sysctl"])
    })?;
    unit.when("ProtectKernelModules", |unit, layer, id| {
        unit.deny_set(layer, id, "@module")
    })?;
    unit.when("ProtectKernelLogs", |unit, layer, id| {
        unit.deny(layer, id, &["syslog"])
    })?;
    unit.when("ProtectClock", |unit, layer, id| {
        unit.deny_set(layer, id, "@clock")
    })?;
    unit.when("PrivateDevices", |unit, layer, id| {
        unit.deny_set(layer, id, "@raw-io")
    })?;
    unit.architectures()?;
    unit.lock_personality()?;
    filter::log(&mut unit)?;
    filter::filter(&mut unit)?;
    if unit.policy.layers.is_empty() {
        return Err(ProfileError::new(
            "the unit",
            "no directive that restricts system calls",
            "one such as SystemCallFilter=",
            "see systemd.exec(5), SYSTEM CALL FILTERING",
        ));
    }
    Ok(unit.policy)
}

fn hostname(unit: &mut Unit, layer: &mut Layer, id: RuleId) {
    unit.deny(layer, id, &["sethostname", "setdomainname"]);
}

/// Denies memory that is both writable and executable, and memory that becomes executable.
fn write_execute(unit: &mut Unit, layer: &mut Layer, id: RuleId) {
    let write_exec = (libc::PROT_WRITE | libc::PROT_EXEC) as u64;
    let exec = libc::PROT_EXEC as u64;
    for &abi in unit.family {
        let bits = |bits| vec![all_bits(2, bits)];
        // 32-bit x86 has an old mmap whose arguments are in memory, and has shmat as a part of ipc.
        let map = if matches!(abi, Abi::I386 | Abi::Arm) {
            "mmap2"
        } else {
            "mmap"
        };
        add(layer, abi, map, bits(write_exec), EPERM, id);
        add(layer, abi, "mprotect", bits(exec), EPERM, id);
        add(layer, abi, "pkey_mprotect", bits(exec), EPERM, id);
        match abi {
            Abi::I386 => add(layer, abi, "mmap", Vec::new(), EPERM, id),
            _ => add(layer, abi, "shmat", bits(libc::SHM_EXEC as u64), EPERM, id),
        }
    }
}

/// Allows only SCHED_OTHER (0), SCHED_BATCH (3) and SCHED_IDLE (5).
fn realtime(unit: &mut Unit, layer: &mut Layer, id: RuleId) {
    for &abi in unit.family {
        let mut refuse = |compare, value| {
            let condition = Condition {
                arg: 1,
                compare,
                value,
            };
            add(layer, abi, "sched_setscheduler", vec![condition], EPERM, id);
        };
        for policy in [1, 2, 4] {
            refuse(Compare::MaskedEq { mask: 0xffff_ffff }, policy);
        }
        refuse(Compare::Gt, 5);
    }
}

/// Denies calls that can set the set-user-ID or set-group-ID bit.
fn set_ids(unit: &mut Unit, layer: &mut Layer, id: RuleId) {
    const MODES: [(&str, u8); 9] = [
        ("chmod", 1),
        ("fchmod", 1),
        ("fchmodat", 2),
        ("fchmodat2", 2),
        ("mkdir", 1),
        ("mkdirat", 2),
        ("mknod", 1),
        ("mknodat", 2),
        ("creat", 1),
    ];
    let create = libc::O_CREAT as u64;
    for &abi in unit.family {
        for mode in [libc::S_ISUID, libc::S_ISGID].map(u64::from) {
            for (name, arg) in MODES {
                add(layer, abi, name, vec![all_bits(arg, mode)], EPERM, id);
            }
            let opens = |flags| vec![all_bits(flags, create), all_bits(flags + 1, mode)];
            add(layer, abi, "open", opens(1), EPERM, id);
            add(layer, abi, "openat", opens(2), EPERM, id);
        }
        // The flags of openat2 are in memory.
        add(layer, abi, "openat2", Vec::new(), NO_CALL, id);
    }
}

/// Condition that all of `bits` are set.
fn all_bits(arg: u8, bits: u64) -> Condition {
    Condition {
        arg,
        compare: Compare::MaskedEq { mask: bits },
        value: bits,
    }
}

fn add(
    layer: &mut Layer,
    abi: Abi,
    name: &str,
    conditions: Vec<Condition>,
    verdict: Verdict,
    id: RuleId,
) {
    layer.add(
        abi,
        name,
        &Rule {
            conditions,
            verdict,
            id,
        },
    );
}

/// The directives, and the policy made from them so far.
struct Unit<'a> {
    settings: &'a [Setting],
    native: Abi,
    family: &'static [Abi],
    policy: Policy,
}

impl<'a> Unit<'a> {
    fn new(settings: &'a [Setting], context: &Context) -> Result<Unit<'a>, ProfileError> {
        Ok(Unit {
            settings,
            native: context.native,
            family: context.native.family(),
            policy: Policy::default(),
        })
    }

    /// Assignments of a directive after the last empty one, which cancels those before it.
    fn all(&self, name: &'a str) -> Vec<&'a Setting> {
        let mut kept = Vec::new();
        for setting in self.settings.iter().filter(|setting| setting.name == name) {
            kept.push(setting);
            if setting.value.is_empty() {
                kept.clear();
            }
        }
        kept
    }

    fn last(&self, name: &'a str) -> Option<&'a Setting> {
        self.all(name).pop()
    }

    /// The last assignment of a boolean directive, if its value is true.
    fn flag(&self, name: &'a str) -> Result<Option<&'a Setting>, ProfileError> {
        match self.last(name) {
            Some(setting) if setting.boolean()? => Ok(Some(setting)),
            _ => Ok(None),
        }
    }

    fn source(&mut self, text: String) -> RuleId {
        self.policy.sources.push(text);
        RuleId(self.policy.sources.len() as u32 - 1)
    }

    /// A layer that allows what no rule forbids, even on ABIs that it does not know.
    fn permissive(&self, setting: &Setting) -> Layer {
        let name = format!("{}=", setting.name);
        let mut layer = Layer::new(&name, Verdict::ALLOW, Verdict::ALLOW);
        layer.default_source = setting.place();
        layer.abis = self
            .family
            .iter()
            .map(|&abi| (abi, AbiRules::default()))
            .collect();
        layer
    }

    /// Adds a layer if a boolean directive is true.
    fn when(
        &mut self,
        name: &'a str,
        fill: impl Fn(&mut Unit, &mut Layer, RuleId),
    ) -> Result<(), ProfileError> {
        if let Some(setting) = self.flag(name)? {
            let mut layer = self.permissive(setting);
            let id = self.source(setting.place());
            fill(self, &mut layer, id);
            self.policy.layers.push(layer);
        }
        Ok(())
    }

    fn deny(&self, layer: &mut Layer, id: RuleId, names: &[&str]) {
        for &abi in self.family {
            for name in names {
                add(layer, abi, name, Vec::new(), EPERM, id);
            }
        }
    }

    fn deny_set(&self, layer: &mut Layer, id: RuleId, name: &str) {
        self.deny(layer, id, &set(name).unwrap_or_default());
    }

    /// `RestrictNamespaces=`: a boolean, or the namespaces that may (or with `~` may not) be
    /// entered.
    fn namespaces(&mut self) -> Result<(), ProfileError> {
        const NAMESPACES: [(&str, i32); 8] = [
            ("cgroup", libc::CLONE_NEWCGROUP),
            ("ipc", libc::CLONE_NEWIPC),
            ("net", libc::CLONE_NEWNET),
            ("mnt", libc::CLONE_NEWNS),
            ("pid", libc::CLONE_NEWPID),
            ("user", libc::CLONE_NEWUSER),
            ("uts", libc::CLONE_NEWUTS),
            ("time", 0x80),
        ];
        let Some(setting) = self.last("RestrictNamespaces") else {
            return Ok(());
        };
        let mut forbidden: Vec<u64> = Vec::new();
        match setting.boolean() {
            Ok(false) => return Ok(()),
            Ok(true) => forbidden.extend(NAMESPACES.map(|row| row.1 as u64)),
            Err(_) => {
                let (inverted, names) = setting.list();
                let names: Vec<&str> = names.collect();
                let unknown = names
                    .iter()
                    .find(|name| !NAMESPACES.iter().any(|row| row.0 == **name));
                if let Some(name) = unknown {
                    let expected = "yes, no, or cgroup, ipc, net, mnt, pid, user, uts, time";
                    return Err(setting.refuse(name, expected, "correct its spelling"));
                }
                let wanted = NAMESPACES
                    .iter()
                    .filter(|row| names.contains(&row.0) == inverted);
                forbidden.extend(wanted.map(|row| row.1 as u64));
            }
        }
        if forbidden.is_empty() {
            return Ok(());
        }
        let id = self.source(setting.place());
        let mut layer = self.permissive(setting);
        let everything = forbidden.len() == NAMESPACES.len();
        for &abi in self.family {
            // The flags of clone3 are in memory; programs fall back to clone.
            add(&mut layer, abi, "clone3", Vec::new(), NO_CALL, id);
            let any = Condition {
                arg: 1,
                compare: Compare::MaskedEq { mask: 0xffff_ffff },
                value: 0,
            };
            let conditions = if everything { Vec::new() } else { vec![any] };
            add(&mut layer, abi, "setns", conditions, EPERM, id);
            for &flag in &forbidden {
                for (name, arg) in [("unshare", 0), ("clone", 0), ("setns", 1)] {
                    add(&mut layer, abi, name, vec![all_bits(arg, flag)], EPERM, id);
                }
            }
        }
        self.policy.layers.push(layer);
        Ok(())
    }

    /// `SystemCallArchitectures=`: calls of other ABIs kill the thread. The native ABI is always
    /// allowed.
    fn architectures(&mut self) -> Result<(), ProfileError> {
        let settings = self.all("SystemCallArchitectures");
        let Some(setting) = settings.last() else {
            return Ok(());
        };
        let mut layer = Layer::new(
            "SystemCallArchitectures=",
            Verdict::ALLOW,
            Verdict::new(Action::KillThread, 0),
        );
        layer.default_source = setting.place();
        layer.abis.insert(self.native, AbiRules::default());
        for setting in &settings {
            for name in setting.value.split_whitespace() {
                let known = Abi::EVERY
                    .into_iter()
                    .find(|abi| abi.systemd_name() == name);
                match known {
                    Some(abi) => drop(layer.abis.insert(abi, AbiRules::default())),
                    None if name == "native" => {}
                    None => {
                        let expected = "native, x86-64, x32, x86, arm64 or arm";
                        return Err(setting.refuse(name, expected, "correct its spelling"));
                    }
                }
            }
        }
        self.policy.layers.push(layer);
        Ok(())
    }

    /// `LockPersonality=`: allows only the unit's own personality.
    fn lock_personality(&mut self) -> Result<(), ProfileError> {
        let own = match self.last("Personality") {
            None => 0,
            Some(setting) => match setting.value.as_str() {
                "x86-64" | "arm64" => 0,
                // PER_LINUX32 (linux/personality.h).
                "x86" | "arm" => 8,
                other => {
                    let expected = "x86-64, x86, arm64 or arm";
                    return Err(setting.refuse(other, expected, "correct its spelling"));
                }
            },
        };
        self.when("LockPersonality", |unit, layer, id| {
            for &abi in unit.family {
                let other = Condition {
                    arg: 0,
                    compare: Compare::Ne,
                    value: own,
                };
                add(layer, abi, "personality", vec![other], EPERM, id);
            }
        })
    }

    /// The calls that a word of a list stands for: a call itself, or the members of a set. A name
    /// that is no call is kept, with a note.
    fn expand(&mut self, setting: &Setting, word: &str) -> Result<Vec<String>, ProfileError> {
        if let Some(members) = set(word) {
            return Ok(members.into_iter().map(str::to_owned).collect());
        }
        if word.starts_with('@') {
            return Err(unknown_set(&setting.place(), word));
        }
        if !words::is_call(word) && !words::is_foreign_call(word) {
            // systemd ignores them, too: units are written for many kernels.
            let note = format!(
                "{}: no system call {word:?}; it has no effect: {}",
                setting.place(),
                words::suggestion(word)
            );
            self.policy.notes.push(note);
        }
        Ok(vec![word.to_owned()])
    }
}
