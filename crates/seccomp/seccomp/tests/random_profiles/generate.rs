//! Random profiles.

use crate::support::Rng;
use seccomp::policy::Abi;
use seccomp::{Action, Verdict};

/// Operators in the order of libseccomp's `enum scmp_compare`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Op {
    Ne,
    Lt,
    Le,
    Eq,
    Ge,
    Gt,
    MaskedEq,
}

const OPS: [Op; 7] = [Op::Ne, Op::Lt, Op::Le, Op::Eq, Op::Ge, Op::Gt, Op::MaskedEq];

#[derive(Clone, Copy, Debug)]
pub struct Condition {
    pub arg: usize,
    pub op: Op,
    pub value: u64,
    pub second: u64,
}

#[derive(Clone, Debug)]
pub struct Entry {
    pub names: Vec<&'static str>,
    pub verdict: Verdict,
    pub conditions: Vec<Condition>,
    /// includes or excludes, as JSON.
    when: Option<&'static str>,
    /// Whether it applies with Docker's capabilities on x86-64 and Linux 6.18.
    pub applies: bool,
}

#[derive(Debug)]
pub struct Profile {
    pub default: Verdict,
    /// With the native one, which runc always adds.
    pub abis: Vec<Abi>,
    pub entries: Vec<Entry>,
}

pub const NAMES: [&str; 44] = [
    "read",
    "write",
    "openat",
    "close",
    "mmap",
    "mprotect",
    "ioctl",
    "socket",
    "bind",
    "connect",
    "sendto",
    "shmget",
    "semop",
    "msgctl",
    "clone",
    "clone3",
    "personality",
    "execve",
    "ptrace",
    "mount",
    "umount2",
    "setns",
    "unshare",
    "kill",
    "uname",
    "prctl",
    "fcntl",
    "lseek",
    "time",
    "waitpid",
    "stat64",
    "socketcall",
    "ipc",
    "mseal",
    "bpf",
    "keyctl",
    "set_tls",
    "nosuch",
    "preadv",
    "recv",
    "send",
    "cacheflush",
    "open",
    "mmap2",
];

/// When entries apply, and whether they do.
const WHEN: [(&str, bool); 12] = [
    (r#""includes": {"caps": ["CAP_CHOWN"]}"#, true),
    (r#""includes": {"caps": ["CAP_SYS_ADMIN"]}"#, false),
    (
        r#""includes": {"caps": ["CAP_CHOWN", "CAP_SYS_ADMIN"]}"#,
        false,
    ),
    (
        r#""excludes": {"caps": ["CAP_SYS_ADMIN", "CAP_BPF"]}"#,
        true,
    ),
    (
        r#""excludes": {"caps": ["CAP_SYS_ADMIN", "CAP_KILL"]}"#,
        false,
    ),
    (r#""includes": {"arches": ["arm64", "amd64"]}"#, true),
    (r#""includes": {"arches": ["arm64"]}"#, false),
    (r#""excludes": {"arches": ["amd64"]}"#, false),
    (r#""includes": {"minKernel": "4.8"}"#, true),
    (r#""includes": {"minKernel": "6.30"}"#, false),
    (r#""excludes": {"minKernel": "6.18"}"#, false),
    (r#""includes": {}, "excludes": {}"#, true),
];

const ABIS: [&[Abi]; 6] = [
    &[Abi::X86_64],
    &[Abi::X86_64, Abi::I386],
    &[Abi::X86_64, Abi::X32],
    &[Abi::X86_64, Abi::X32, Abi::I386],
    &[Abi::X86_64, Abi::I386, Abi::Arm],
    &[Abi::X86_64, Abi::Aarch64, Abi::Arm],
];

fn verdict(rng: &mut Rng, actions: &[Action]) -> Verdict {
    let action = rng.pick(actions);
    let data = match action {
        Action::Errno | Action::Trace => rng.pick(&[1, 1, 2, 13, 38]),
        _ => 0,
    };
    Verdict::new(action, data)
}

fn condition(rng: &mut Rng, has_wide_values: bool) -> Condition {
    let value = match rng.below(if has_wide_values { 5 } else { 4 }) {
        0 => rng.next() % 8,
        1 => rng.next() % 256,
        2 => rng.next() % 65536,
        3 => 1 << rng.below(32),
        _ => rng.next() >> rng.below(30),
    };
    let op = rng.pick(&OPS);
    let second = match op {
        Op::MaskedEq if rng.chance(70) => value & rng.next(),
        Op::MaskedEq => rng.next() % 256,
        _ => 0,
    };
    Condition {
        arg: rng.below(3),
        op,
        value,
        second,
    }
}

impl Profile {
    pub fn random(rng: &mut Rng) -> Profile {
        use Action::{Allow, Errno, KillProcess, KillThread, Log, Trace, Trap};
        let has_wide_values = rng.chance(30);
        let default = verdict(
            rng,
            &[Errno, Errno, Allow, KillThread, KillProcess, Log, Trap],
        );
        let entries = (0..1 + rng.below(8)).map(|_| {
            let names = (0..rng.pick(&[1, 1, 2, 5]))
                .map(|_| rng.pick(&NAMES))
                .collect();
            let verdict = verdict(
                rng,
                &[
                    Allow,
                    Allow,
                    Allow,
                    Errno,
                    Errno,
                    KillThread,
                    KillProcess,
                    Log,
                    Trap,
                    Trace,
                ],
            );
            let count = if rng.chance(50) { 1 + rng.below(3) } else { 0 };
            let conditions = (0..count)
                .map(|_| condition(rng, has_wide_values))
                .collect();
            let when = rng.chance(20).then(|| rng.pick(&WHEN));
            Entry {
                names,
                verdict,
                conditions,
                when: when.map(|when| when.0),
                applies: when.is_none_or(|when| when.1),
            }
        });
        Profile {
            entries: entries.collect(),
            default,
            abis: rng.pick(&ABIS).to_vec(),
        }
    }

    pub fn json(&self) -> String {
        let abis: Vec<_> = self.abis.iter().map(|abi| abi.oci_name()).collect();
        let entries: Vec<String> = self.entries.iter().map(Entry::json).collect();
        format!(
            r#"{{"defaultAction": {:?}, "defaultErrnoRet": {}, "architectures": {abis:?},
                "syscalls": [{}]}}"#,
            action(self.default),
            self.default.data(),
            entries.join(",\n")
        )
    }
}

fn action(verdict: Verdict) -> String {
    format!("SCMP_ACT_{}", verdict.action().name())
}

impl Entry {
    /// An entry for one call that applies everywhere.
    pub fn always(name: &'static str, verdict: Verdict, conditions: Vec<Condition>) -> Entry {
        Entry {
            names: vec![name],
            verdict,
            conditions,
            when: None,
            applies: true,
        }
    }

    /// Lists of conditions that must all hold. If an argument has two, runc takes each condition
    /// for one of several alternatives.
    pub fn alternatives(&self) -> Vec<Vec<Condition>> {
        let of = |arg| self.conditions.iter().filter(move |c| c.arg == arg).count();
        if (0..6).any(|arg| of(arg) > 1) {
            self.conditions.iter().map(|&one| vec![one]).collect()
        } else {
            vec![self.conditions.clone()]
        }
    }

    fn json(&self) -> String {
        let args: Vec<String> = self.conditions.iter().map(Condition::json).collect();
        let when = self.when.map_or(String::new(), |when| format!(", {when}"));
        format!(
            r#"{{"names": {:?}, "action": {:?}, "errnoRet": {}, "args": [{}]{when}}}"#,
            self.names,
            action(self.verdict),
            self.verdict.data(),
            args.join(", ")
        )
    }
}

impl Condition {
    fn json(&self) -> String {
        let op = match self.op {
            Op::MaskedEq => "MASKED_EQ".to_owned(),
            other => format!("{other:?}").to_uppercase(),
        };
        format!(
            r#"{{"index": {}, "value": {}, "valueTwo": {}, "op": "SCMP_CMP_{op}"}}"#,
            self.arg, self.value, self.second
        )
    }

    /// Whether the condition as it is written holds.
    pub fn holds(&self, arg: u64) -> bool {
        match self.op {
            Op::Ne => arg != self.value,
            Op::Lt => arg < self.value,
            Op::Le => arg <= self.value,
            Op::Eq => arg == self.value,
            Op::Ge => arg >= self.value,
            Op::Gt => arg > self.value,
            Op::MaskedEq => arg & self.value == self.second & self.value,
        }
    }

    /// The condition with values of 32 bits, as libseccomp has it on 32-bit ABIs.
    pub fn cut(mut self) -> Condition {
        self.value &= 0xffff_ffff;
        self.second &= 0xffff_ffff;
        self
    }
}
