//! Converts directives to layers.

use super::set;
use super::unit::Setting;
use super::unit::{boolean, unquoted, Lines};
use crate::policy::{Abi, AbiRules, Compare, Condition, Layer, Policy, Rule, RuleId};
use crate::profile::{words, Context, ProfileError};
use crate::{Action, Verdict};

mod families;
mod filter;
mod namespaces;

const EPERM: Verdict = Verdict::new(Action::Errno, libc::EPERM as u16);
const NO_CALL: Verdict = Verdict::new(Action::Errno, libc::ENOSYS as u16);

/// The layers of a unit, in the order in which systemd installs its filters (systemd,
/// src/core/exec-invoke.c): among equally strict verdicts the last one counts.
///
/// # Errors
/// The unit restricts no calls.
pub(super) fn policy(lines: Lines, context: &Context) -> Result<Policy, ProfileError> {
    let mut unit = Unit {
        settings: &lines.settings,
        native: context.native,
        family: context.native.family().to_vec(),
        policy: Policy {
            notes: lines.notes,
            ..Policy::default()
        },
    };

    unit.when("ProtectHostname", hostname);
    families::address_families(&mut unit);
    unit.when("MemoryDenyWriteExecute", write_execute);
    unit.when("RestrictRealtime", realtime);
    if unit.flag("DynamicUser").is_some() {
        unit.when("DynamicUser", set_ids);
    } else {
        unit.when("RestrictSUIDSGID", set_ids);
    }

    namespaces::namespaces(&mut unit);
    unit.when("ProtectKernelTunables", |unit, layer, id| {
        unit.deny(layer, id, &["_sysctl"])
    });
    unit.when("ProtectKernelModules", |unit, layer, id| {
        unit.deny_set(layer, id, "@module")
    });
    unit.when("ProtectKernelLogs", |unit, layer, id| {
        unit.deny(layer, id, &["syslog"])
    });
    unit.when("ProtectClock", |unit, layer, id| {
        unit.deny_set(layer, id, "@clock")
    });
    unit.when("PrivateDevices", |unit, layer, id| {
        unit.deny_set(layer, id, "@raw-io")
    });
    unit.architectures();
    unit.lock_personality();
    filter::log(&mut unit);
    filter::filter(&mut unit)?;

    if unit.policy.layers.is_empty() {
        return Err(ProfileError::new(
            "the unit",
            "no directive that restricts system calls",
            "one such as SystemCallFilter=",
            match unit.policy.notes.as_slice() {
                [] => "see systemd.exec(5), SYSTEM CALL FILTERING".to_owned(),
                notes => notes.join("; "),
            },
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
    for abi in unit.family.clone() {
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
    for abi in unit.family.clone() {
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
    for abi in unit.family.clone() {
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
    /// The ABIs that the next layer is for.
    family: Vec<Abi>,
    policy: Policy,
}

impl<'a> Unit<'a> {
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

    /// The last assignment of a boolean directive that is a boolean, if its value is true. Others,
    /// empty ones too, change nothing.
    fn flag(&mut self, name: &'a str) -> Option<&'a Setting> {
        let mut last = None;
        let settings = self.settings;
        for setting in settings.iter().filter(|setting| setting.name == name) {
            match switch(setting) {
                Some(is_on) => last = is_on.then_some(setting),
                None => self.note(setting.ignored(&setting.value, "yes or no")),
            }
        }
        last
    }

    fn note(&mut self, note: String) {
        if !self.policy.notes.contains(&note) {
            self.policy.notes.push(note);
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
    fn when(&mut self, name: &'a str, fill: impl Fn(&mut Unit, &mut Layer, RuleId)) {
        if let Some(setting) = self.flag(name) {
            let mut layer = self.permissive(setting);
            let id = self.source(setting.place());
            fill(self, &mut layer, id);
            self.policy.layers.push(layer);
        }
    }

    fn deny(&self, layer: &mut Layer, id: RuleId, names: &[&str]) {
        for &abi in &self.family {
            for name in names {
                add(layer, abi, name, Vec::new(), EPERM, id);
            }
        }
    }

    fn deny_set(&self, layer: &mut Layer, id: RuleId, name: &str) {
        self.deny(layer, id, &set(name).unwrap_or_default());
    }

    /// `SystemCallArchitectures=`: calls of other ABIs kill the thread. The native ABI is always
    /// allowed.
    fn architectures(&mut self) {
        let settings = self.all("SystemCallArchitectures");
        let mut abis = vec![self.native];
        let mut restricts = None;

        for setting in settings {
            for name in unquoted(&setting.value) {
                let name = name.as_str();
                let known = Abi::EVERY
                    .into_iter()
                    .find(|abi| abi.systemd_name() == name);
                match known {
                    Some(abi) => abis.push(abi),
                    None if name == "native" || OTHER_ARCHITECTURES.contains(&name) => {}
                    None => {
                        let expected = "native, x86-64, x32, x86, arm64 or arm";
                        self.note(setting.ignored(name, expected));
                        continue;
                    }
                }
                restricts = Some(setting);
            }
        }

        let Some(setting) = restricts else {
            return;
        };

        // A kernel serves only ABIs of its own family. Without any other to refuse, systemd
        // installs nothing.
        abis.retain(|abi| self.family.contains(abi));
        if self.family.iter().all(|abi| abis.contains(abi)) {
            return;
        }

        let killed = Verdict::new(Action::KillThread, 0);
        let mut layer = Layer::new("SystemCallArchitectures=", Verdict::ALLOW, killed);
        layer.default_source = setting.place();
        layer.abis = abis
            .into_iter()
            .map(|abi| (abi, AbiRules::default()))
            .collect();

        // As systemd, which installs what follows for these ABIs only.
        self.family = self
            .family
            .iter()
            .copied()
            .filter(|abi| layer.abis.contains_key(abi))
            .collect();
        self.policy.layers.push(layer);
    }

    /// `LockPersonality=`: allows only the unit's own personality.
    fn lock_personality(&mut self) {
        let mut own = 0;
        for setting in self.all("Personality") {
            match (setting.value.as_str(), self.native) {
                ("x86-64", Abi::X86_64 | Abi::X32) | ("arm64", Abi::Aarch64) => own = 0,
                ("x86", Abi::I386) | ("arm", Abi::Arm) => own = 0,
                // PER_LINUX32 (linux/personality.h).
                ("x86", Abi::X86_64 | Abi::X32) | ("arm", Abi::Aarch64) => own = 8,
                (other, _) => {
                    let expected = "an architecture that this kernel serves";
                    self.note(setting.ignored(other, expected));
                }
            }
        }

        self.when("LockPersonality", |unit, layer, id| {
            for abi in unit.family.clone() {
                let other = Condition {
                    arg: 0,
                    compare: Compare::Ne,
                    value: own,
                };
                add(layer, abi, "personality", vec![other], EPERM, id);
            }
        });
    }

    /// The calls that a word of a list stands for: a call itself, or the members of a set. Unknown
    /// names stand for nothing, with a note: units are written for many versions.
    fn expand(&mut self, setting: &Setting, word: &str) -> Vec<String> {
        if let Some(members) = set(word) {
            return members.into_iter().map(str::to_owned).collect();
        }
        if words::is_call(word) || words::is_foreign_call(word) {
            return vec![word.to_owned()];
        }

        let kind = if word.starts_with('@') {
            "a set of systemd 257 (`tarsier seccomp compile --help`)".to_owned()
        } else {
            format!("a system call: {}", words::suggestion(word))
        };
        self.note(setting.ignored(word, &kind));

        Vec::new()
    }
}

/// The value of a boolean directive. `ProtectHostname=` has other forms since systemd 258:
/// `private` gives a hostname of its own that may be changed, and a name may follow.
fn switch(setting: &Setting) -> Option<bool> {
    let value = setting.value.as_str();
    if setting.name != "ProtectHostname" {
        return boolean(value);
    }
    match value.split_once(':') {
        Some((_, "")) => None,
        Some(("private", _)) => Some(false),
        Some((kind, _)) => boolean(kind).filter(|&is_on| is_on),
        None if value == "private" => Some(false),
        None => boolean(value),
    }
}

/// Architectures of systemd without tables here (systemd, `seccomp_arch_from_string`).
const OTHER_ARCHITECTURES: [&str; 15] = [
    "loongarch64",
    "mips",
    "mips64",
    "mips64-n32",
    "mips-le",
    "mips64-le",
    "mips64-le-n32",
    "parisc",
    "parisc64",
    "ppc",
    "ppc64",
    "ppc64-le",
    "riscv64",
    "s390",
    "s390x",
];
