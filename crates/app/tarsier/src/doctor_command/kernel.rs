//! Findings about the kernel: types, engine, lockdown, security modules, entries, control groups.

use super::machine::{EngineFacts, Machine};
use crate::finding::Finding;

/// Findings about the kernel.
pub(super) fn findings(machine: &dyn Machine) -> Vec<Finding> {
    let facts = machine.engine();
    let mut found = vec![kernel(machine), btf(&facts), engine(machine, &facts)];
    found.extend(facts.gaps.iter().map(|gap| less_exact(gap)));
    found.extend([
        lockdown(machine),
        security_modules(machine),
        entries(&facts),
        control_groups(machine),
    ]);
    found
}

fn kernel(machine: &dyn Machine) -> Finding {
    let release = machine.text("/proc/sys/kernel/osrelease");
    let release = release.map_or_else(|_| "unknown release".to_owned(), |text| trimmed(&text));
    Finding::ok("kernel", format!("Linux {release}"))
}

fn btf(facts: &EngineFacts) -> Finding {
    if facts.btf {
        Finding::ok("BTF", "/sys/kernel/btf/vmlinux")
    } else {
        Finding::warn(
            "BTF",
            "no /sys/kernel/btf/vmlinux",
            "boot a kernel with CONFIG_DEBUG_INFO_BTF=y; until then the kernel's own audit matches rules",
        )
    }
}

fn engine(machine: &dyn Machine, facts: &EngineFacts) -> Finding {
    if let Some(why) = &facts.ebpf_refusal {
        return Finding::warn(
            "engine",
            format!("kernel ({why}): {}", daemon::choice::KERNEL_ENGINE),
            "boot another kernel for an eBPF engine",
        );
    }

    if !machine.is_root() {
        let remedy = "run as root: only root can try programs";
        return Finding::warn("engine", "trampoline or tracepoint", remedy);
    }

    match &facts.trampoline_refusal {
        None => Finding::ok("engine", "trampoline"),
        Some(why) => Finding::ok("engine", format!("tracepoint (not trampoline: {why})")),
    }
}

fn less_exact(gap: &str) -> Finding {
    let remedy = "boot a newer kernel if you need it";
    Finding::warn("engine", format!("without {gap}"), remedy)
}

fn lockdown(machine: &dyn Machine) -> Finding {
    const WHAT: &str = "lockdown";

    let Ok(text) = machine.text("/sys/kernel/security/lockdown") else {
        return Finding::ok(WHAT, "none, or securityfs is not mounted");
    };

    let chosen = text.split_whitespace().find(|word| word.starts_with('['));
    match chosen.unwrap_or_default() {
        "[confidentiality]" => Finding::warn(
            WHAT,
            "confidentiality: the kernel refuses programs that read its memory, as those of both eBPF engines do",
            "boot with lockdown=integrity, or run `tarsier run --engine kernel`",
        ),
        chosen => Finding::ok(WHAT, chosen.trim_matches(['[', ']'])),
    }
}

fn security_modules(machine: &dyn Machine) -> Finding {
    const WHAT: &str = "security modules";
    match machine.text("/sys/kernel/security/lsm") {
        Ok(text) => Finding::ok(WHAT, trimmed(&text)),
        Err(_) => Finding::ok(WHAT, "not shown: securityfs is not mounted"),
    }
}

fn entries(facts: &EngineFacts) -> Finding {
    let value = match (facts.compat_entry, facts.x32_calls) {
        (false, false) => "none: programs make 64-bit calls only",
        (true, false) => "32-bit: rules need a twin with -F arch=b32",
        (false, true) => "x32: selected by rules on 64-bit calls",
        (true, true) => {
            "32-bit, for which rules need a twin with -F arch=b32, and x32, which they include"
        }
    };
    Finding::ok("other entries", value)
}

fn control_groups(machine: &dyn Machine) -> Finding {
    const WHAT: &str = "control groups";

    let mounts = machine.text("/proc/self/mounts").unwrap_or_default();
    let has = |kind: &str| {
        let mut kinds = mounts.lines().map(|line| line.split(' ').nth(2));
        kinds.any(|found| found == Some(kind))
    };
    let value = match (has("cgroup2"), has("cgroup")) {
        (true, false) => "version 2",
        (true, true) => "versions 1 and 2",
        (false, true) => "version 1",
        (false, false) => "not mounted",
    };

    Finding::ok(WHAT, value)
}

fn trimmed(text: &str) -> String {
    text.trim().to_owned()
}
