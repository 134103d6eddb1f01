//! Random units with drop-ins, of every directive that becomes a filter.

use crate::support::Rng;

/// A service with its drop-ins.
pub struct Unit {
    pub name: String,
    /// Texts of the unit's file and of its drop-ins, in the order of their names.
    parts: Vec<String>,
}

const BOOLEANS: [&str; 22] = [
    "yes", "yes", "yes", "true", "1", "on", "y", "t", "YES", "True", "no", "no", "false", "0",
    "off", "n", "F", "", "maybe", "2", "yes no", "\"yes\"",
];

/// Directives that are booleans.
const FLAGS: [&str; 10] = [
    "MemoryDenyWriteExecute",
    "RestrictRealtime",
    "RestrictSUIDSGID",
    "ProtectKernelTunables",
    "ProtectKernelModules",
    "ProtectKernelLogs",
    "ProtectClock",
    "PrivateDevices",
    "LockPersonality",
    "DynamicUser",
];

const NAMESPACES: [&str; 16] = [
    "cgroup", "ipc", "net", "mnt", "pid", "user", "uts", "time", "user", "mnt", "USER", "foo",
    "~net", "\"ipc\"", "user,net", "none",
];

const FAMILIES: [&str; 22] = [
    "AF_UNIX",
    "AF_INET",
    "AF_INET6",
    "AF_NETLINK",
    "AF_PACKET",
    "AF_LOCAL",
    "AF_ROUTE",
    "AF_ALG",
    "AF_VSOCK",
    "AF_XDP",
    "AF_MCTP",
    "AF_BLUETOOTH",
    "AF_DECnet",
    "AF_UNSPEC",
    "AF_FOO",
    "af_inet",
    "none",
    "~AF_INET",
    "\"AF_UNIX\"",
    "'AF_INET",
    "16",
    "AF_INET,AF_INET6",
];

const ARCHITECTURES: [&str; 14] = [
    "native",
    "native",
    "x86",
    "x86-64",
    "x32",
    "arm",
    "arm64",
    "riscv64",
    "x86_64",
    "foo",
    "X86",
    "~x86",
    "\"x86\"",
    "mips64-le-n32",
];

const ERRORS: [&str; 23] = [
    "EPERM",
    "EACCES",
    "ENOSYS",
    "ENOANO",
    "EUCLEAN",
    "EWOULDBLOCK",
    "1",
    "22",
    "255",
    "4095",
    "4096",
    "0",
    "kill",
    "KILL",
    "EFOO",
    "-1",
    "eperm",
    "",
    "0x16",
    "0X16",
    "026",
    "0b1",
    "ERRNO",
];

const SETS: [&str; 32] = [
    "@system-service",
    "@default",
    "@known",
    "@mount",
    "@clock",
    "@module",
    "@raw-io",
    "@obsolete",
    "@privileged",
    "@resources",
    "@process",
    "@file-system",
    "@network-io",
    "@basic-io",
    "@io-event",
    "@ipc",
    "@keyring",
    "@debug",
    "@cpu-emulation",
    "@reboot",
    "@swap",
    "@signal",
    "@sync",
    "@timer",
    "@setuid",
    "@chown",
    "@aio",
    "@memlock",
    "@pkey",
    "@sandbox",
    "@foo",
    "@",
];

const CALLS: [&str; 44] = [
    "read",
    "write",
    "openat",
    "open",
    "execve",
    "clone",
    "clone3",
    "socket",
    "socketcall",
    "ipc",
    "mmap",
    "mmap2",
    "mprotect",
    "stat64",
    "waitpid",
    "time",
    "personality",
    "ptrace",
    "bpf",
    "keyctl",
    "mseal",
    "uretprobe",
    "arch_prctl",
    "prctl",
    "futex",
    "futex_time64",
    "fchmodat2",
    "map_shadow_stack",
    "set_tls",
    "cacheflush",
    "mbind",
    "shmat",
    "shmget",
    "semop",
    "send",
    "recv",
    "uselib",
    "nosuch",
    "READ",
    "_llseek",
    "lsm_set_self_attr",
    "riscv_flush_icache",
    "timerfd",
    "1",
];

/// Lines that are no assignments in a section where they count.
const OTHERS: [&str; 12] = [
    "[Service",
    "[Nonsense]\n[Service]",
    "# SystemCallFilter=~read",
    "; RestrictNamespaces=yes",
    "",
    "SystemCallFilter",
    "systemcallfilter=~write",
    "X-Foo=bar",
    "NoNewPrivileges=yes",
    "[Unit]\nSystemCallFilter=~write\n[Service]",
    "[X-Other]\nProtectClock=yes\n[Service]",
    "[Service]",
];

fn words(rng: &mut Rng, from: &[&'static str], most: usize) -> String {
    let count = 1 + rng.below(most);
    let words: Vec<&str> = (0..count).map(|_| rng.pick(from)).collect();
    words.join(rng.pick(&[" ", " ", " ", "  ", "\t", " \\\n   ", "\\\n# between\n"]))
}

fn tilde(rng: &mut Rng) -> &'static str {
    rng.pick(&["", "", "", "~", "~", "~ "])
}

/// A word of `SystemCallFilter=`.
fn call(rng: &mut Rng, errors: usize) -> String {
    let name = if rng.chance(30) {
        rng.pick(&SETS)
    } else {
        rng.pick(&CALLS)
    };
    if rng.chance(errors) {
        format!("{name}:{}", rng.pick(&ERRORS))
    } else {
        name.to_owned()
    }
}

fn calls(rng: &mut Rng, errors: usize) -> String {
    let count = 1 + rng.below(5);
    let words: Vec<String> = (0..count).map(|_| call(rng, errors)).collect();
    words.join(rng.pick(&[" ", " ", " ", "  ", "\t", " \\\n   ", "\\\n; between\n"]))
}

/// A list of `~`s and words, or now and then nothing.
fn list(rng: &mut Rng, from: &[&'static str], most: usize) -> String {
    if rng.chance(8) {
        return String::new();
    }
    format!("{}{}", tilde(rng), words(rng, from, most))
}

/// The name and the value of an assignment.
fn setting(rng: &mut Rng) -> (&'static str, String) {
    match rng.below(20) {
        0..=4 => (rng.pick(&FLAGS), rng.pick(&BOOLEANS).to_owned()),
        5 => {
            // `private` and names of hosts are of version 258.
            let from = if rng.chance(80) {
                &BOOLEANS[..]
            } else {
                &["yes:", ":"]
            };
            ("ProtectHostname", rng.pick(from).to_owned())
        }
        6..=8 => {
            let name = "RestrictNamespaces";
            if rng.chance(30) {
                return (name, rng.pick(&BOOLEANS).to_owned());
            }
            // Most lists are right ones.
            let from = if rng.chance(70) { 10 } else { NAMESPACES.len() };
            (name, list(rng, &NAMESPACES[..from], 4))
        }
        9..=10 => {
            let name = "RestrictAddressFamilies";
            if rng.chance(15) {
                return (name, "none".to_owned());
            }
            let from = if rng.chance(70) { 13 } else { FAMILIES.len() };
            (name, list(rng, &FAMILIES[..from], 4))
        }
        11 => ("SystemCallArchitectures", list(rng, &ARCHITECTURES, 3)),
        12 => ("SystemCallErrorNumber", rng.pick(&ERRORS).to_owned()),
        13 => {
            let from = ["x86", "x86-64", "arm64", "x32", "", "X86", "foo"];
            ("Personality", rng.pick(&from).to_owned())
        }
        14 => ("SystemCallLog", format!("{}{}", tilde(rng), calls(rng, 5))),
        15 if rng.chance(20) => ("SystemCallFilter", String::new()),
        _ => (
            "SystemCallFilter",
            format!("{}{}", tilde(rng), calls(rng, 25)),
        ),
    }
}

fn lines(rng: &mut Rng) -> String {
    let mut text = String::from("[Service]\n");
    for _ in 0..1 + rng.below(6) {
        if rng.chance(10) {
            text += rng.pick(&OTHERS);
        } else {
            let (name, value) = setting(rng);
            let space = rng.pick(&["", "", "", " "]);
            text += &format!("{space}{name}{space}={space}{value}{space}");
        }
        text += "\n";
    }
    text
}

impl Unit {
    /// A service that ends at once, with these directives.
    pub fn new(name: String, directives: &str) -> Unit {
        let head = format!(
            "[Unit]\nDefaultDependencies=no\n[Service]\nType=oneshot\n\
             ExecStart=/bin/sh -c 'echo end >&2'\nStandardError=truncate:/run/shared/{name}\n"
        );
        let parts = vec![head + directives];
        Unit { name, parts }
    }

    pub fn random(seed: u64) -> Unit {
        let mut rng = Rng(seed);
        let mut unit = Unit::new(format!("unit{seed}"), &lines(&mut rng));
        unit.parts
            .extend((0..rng.below(4)).map(|_| lines(&mut rng)));
        unit
    }

    /// Names of the files below the directory of units, with their texts.
    pub fn files(&self) -> impl Iterator<Item = (String, &str)> {
        let names = (0..).map(|index| match index {
            0 => format!("{}.service", self.name),
            _ => format!("{}.service.d/{index}0.conf", self.name),
        });
        names.zip(self.parts.iter().map(String::as_str))
    }

    /// The text that `systemctl cat` prints.
    pub fn cat(&self) -> String {
        let files = self.files();
        let texts = files.map(|(name, text)| format!("# /run/systemd/system/{name}\n{text}"));
        texts.collect::<Vec<_>>().join("\n")
    }
}
