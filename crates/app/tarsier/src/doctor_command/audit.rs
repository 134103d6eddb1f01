//! The kernel's audit, other audit daemons, and the rights of this process.

use super::machine::Machine;
use crate::finding::Finding;

/// Programs that register as the kernel's audit daemon.
const DAEMONS: [&str; 3] = ["auditd", "auditbeat", "go-audit"];
/// Name of the daemon's process.
pub(super) const OWN: &str = "tarsier";

/// Bits of capabilities (linux/capability.h) without which no program is loaded.
const ESSENTIAL: [(u32, &str); 2] = [(38, "CAP_PERFMON"), (39, "CAP_BPF")];
/// Bits of capabilities without which records of others, or facts about processes and files, are missing.
const USEFUL: [(u32, &str); 3] = [
    (2, "CAP_DAC_READ_SEARCH"),
    (19, "CAP_SYS_PTRACE"),
    (30, "CAP_AUDIT_CONTROL"),
];

/// Findings about audit and rights.
pub(super) fn findings(machine: &dyn Machine) -> Vec<Finding> {
    let mut found = rights(machine);
    found.push(boot(machine));
    found.push(state(machine));
    found.push(daemons(machine));
    found
}

fn rights(machine: &dyn Machine) -> Vec<Finding> {
    if !machine.is_root() {
        let remedy = "run `tarsier doctor` and `tarsier run` as root";
        return vec![Finding::fail("rights", "not root", remedy)];
    }

    let status = machine.text("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let held = line.and_then(|text| u64::from_str_radix(text.trim(), 16).ok());
    let Some(held) = held else {
        let remedy = "mount /proc";
        return vec![Finding::warn(
            "rights",
            "root; capabilities unknown",
            remedy,
        )];
    };

    let missing = |wanted: &[(u32, &'static str)]| {
        let missing = wanted.iter().filter(|(bit, _)| held >> bit & 1 == 0);
        let names: Vec<&str> = missing.map(|(_, name)| *name).collect();
        names.join(", ")
    };
    let remedy = "grant them: a container gets them from its host";

    vec![match (missing(&ESSENTIAL), missing(&USEFUL)) {
        (none, without) if none.is_empty() && without.is_empty() => {
            Finding::ok("rights", "root with every capability that is needed")
        }
        (none, without) if none.is_empty() => Finding::warn(
            "rights",
            format!("root without {without}: some records or facts are missing"),
            remedy,
        ),
        (without, _) => Finding::fail(
            "rights",
            format!("root without {without}: no program can be loaded"),
            remedy,
        ),
    }]
}

fn boot(machine: &dyn Machine) -> Finding {
    const WHAT: &str = "kernel command line";

    let text = machine.text("/proc/cmdline").unwrap_or_default();
    let last = text.split_whitespace().rev();
    let mut settings = last.filter_map(|word| word.strip_prefix("audit="));

    match settings.next() {
        Some(value @ ("0" | "off")) => Finding::warn(
            WHAT,
            format!("audit={value}: records of logins, sudo, AVC and SECCOMP are not made"),
            "boot without it",
        ),
        Some(value) => Finding::ok(WHAT, format!("audit={value}")),
        None => Finding::ok(WHAT, "no audit="),
    }
}

fn state(machine: &dyn Machine) -> Finding {
    const WHAT: &str = "kernel audit";

    let facts = match machine.audit() {
        Ok(facts) => facts,
        Err(why) => {
            let remedy = "run as root, on a kernel with CONFIG_AUDIT=y; without it records of others are missing";
            return Finding::warn(WHAT, why, remedy);
        }
    };

    let processes = machine.processes();
    let owner = processes.iter().find(|(pid, _)| *pid == facts.pid);
    let name = owner.map_or("a process of another PID namespace", |(_, name)| name);

    match (facts.enabled, facts.pid) {
        (_, pid) if pid != 0 && name != OWN => Finding::warn(
            WHAT,
            format!("process {pid} ({name}) owns it"),
            "stop that one, or have no records of logins, sudo, AVC and SECCOMP in Tarsier's log",
        ),
        (2, 0) => Finding::warn(
            WHAT,
            "locked (auditctl -e 2), with no daemon",
            "boot anew, without -e 2 in the rules, to have the records of others",
        ),
        (_, pid) if pid != 0 => Finding::ok(WHAT, format!("owned by {OWN} ({pid})")),
        (0, _) => Finding::ok(WHAT, "off, no daemon"),
        (_, _) => Finding::ok(WHAT, "on, no daemon"),
    }
}

fn daemons(machine: &dyn Machine) -> Finding {
    const WHAT: &str = "other audit daemons";

    let others = machine.processes().into_iter();
    let others: Vec<String> = others
        .filter(|(_, name)| DAEMONS.contains(&name.as_str()))
        .map(|(pid, name)| format!("{name} ({pid})"))
        .collect();

    if others.is_empty() {
        Finding::ok(WHAT, "none")
    } else {
        Finding::warn(
            WHAT,
            others.join(", "),
            "both can record, in two logs: see docs/guide/migrate.md; to switch, `service auditd stop`",
        )
    }
}
