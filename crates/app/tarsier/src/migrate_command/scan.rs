//! `tarsier migrate --check`: what scanners will find afterwards that look at units, packages and processes. Which lines
//! of rules they miss is `tarsier rules scan`'s to say.

use super::steps::{Way, VENDOR_UNITS};
use crate::finding::Finding;
use std::path::Path;

/// Directories of the units of packages.
const UNIT_DIRS: [&str; 2] = ["usr/lib/systemd/system", "lib/systemd/system"];

/// A check of scanners that depends on how Tarsier takes auditd's place.
struct ScanCheck {
    /// The names that scanners give it.
    name: &'static str,
    /// The finding if Tarsier runs as auditd.service.
    as_auditd_unit: &'static str,
    /// The finding if Tarsier has a unit of its own.
    as_own_unit: &'static str,
}

/// Checks that pass as auditd.service, and fail otherwise.
const CHECKS: [ScanCheck; 4] = [
    ScanCheck {
        name: "service_auditd_enabled",
        as_auditd_unit: "auditd.service stays enabled and active, and runs Tarsier",
        as_own_unit: "auditd.service is masked",
    },
    ScanCheck {
        name: "dpkg -V, rpm -V, AIDE",
        as_auditd_unit: "no file of auditd's package is changed",
        as_own_unit: "auditctl and augenrules are links to Tarsier",
    },
    ScanCheck {
        name: "auditctl -l, auditctl -s",
        as_auditd_unit: "auditd's auditctl shows and changes the rules, and shows the daemon",
        as_own_unit: "auditctl is Tarsier; what asks the kernel sees `never,task` alone",
    },
    ScanCheck {
        name: "Lynis ACCT-9628 to ACCT-9634",
        as_auditd_unit: "there is a process auditd, which is Tarsier",
        as_own_unit: "there is no process auditd",
    },
];

/// Findings for the host whose files are below `root`.
pub(super) fn findings(way: Way, root: &Path) -> Vec<Finding> {
    let mut found: Vec<_> = CHECKS.iter().map(|check| of_check(check, way)).collect();
    found.push(augenrules(way, root));
    if root.join("sys/fs/selinux/enforce").exists() {
        found.push(Finding::warn(
            "selinux_confinement_of_daemons",
            "Tarsier has no domain of its own: it runs as unconfined_service_t",
            "docs/guide/confinement.md says how the daemon confines itself",
        ));
    }
    found
}

fn of_check(check: &ScanCheck, way: Way) -> Finding {
    match way {
        Way::AuditdUnit => Finding::ok(check.name, check.as_auditd_unit),
        Way::OwnUnit => Finding::warn(check.name, check.as_own_unit, "leave out --own-unit"),
    }
}

/// The check looks for a line of the vendor's unit files that calls augenrules.
fn augenrules(way: Way, root: &Path) -> Finding {
    const NAME: &str = "audit_rules_augenrules";
    let calls = |text: String| {
        let mut lines = text.lines();
        lines.any(|line| line.starts_with("ExecStart") && line.contains("/augenrules"))
    };
    let files = UNIT_DIRS
        .iter()
        .flat_map(|dir| VENDOR_UNITS.map(|unit| root.join(dir).join(unit)));

    if !files
        .filter_map(|file| std::fs::read_to_string(file).ok())
        .any(calls)
    {
        return Finding::warn(
            NAME,
            "no unit of auditd's package calls augenrules, with or without Tarsier",
            "the scanner looks at /etc/audit/audit.rules then: call `augenrules`",
        );
    }
    match way {
        Way::AuditdUnit => Finding::ok(NAME, "the units of auditd's package stay as they are"),
        Way::OwnUnit => Finding::warn(NAME, "auditd's units are masked", "leave out --own-unit"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Level;

    fn level(found: &[Finding], what: &str) -> Option<Level> {
        let mut of_name = found.iter().filter(|finding| finding.what == what);
        of_name.next().map(|finding| finding.level)
    }

    #[test]
    fn what_a_scan_finds_depends_on_the_way_and_on_the_vendor_s_units() {
        let root = tempfile::tempdir().unwrap();
        let units = root.path().join("lib/systemd/system");
        std::fs::create_dir_all(&units).unwrap();
        let vendor = |text: &str| std::fs::write(units.join("auditd.service"), text).unwrap();
        let found = |way| findings(way, root.path());

        vendor("[Service]\nExecStart=/sbin/auditd\n#ExecStartPost=-/sbin/augenrules --load\n");
        let as_auditd = found(Way::AuditdUnit);
        assert_eq!(
            level(&as_auditd, "audit_rules_augenrules"),
            Some(Level::Warn)
        );
        assert_eq!(level(&as_auditd, "service_auditd_enabled"), Some(Level::Ok));
        assert_eq!(level(&as_auditd, "selinux_confinement_of_daemons"), None);

        vendor("[Service]\nExecStart=/sbin/auditd\nExecStartPost=-/sbin/augenrules --load\n");
        assert_eq!(
            level(&found(Way::AuditdUnit), "audit_rules_augenrules"),
            Some(Level::Ok)
        );
        let own = found(Way::OwnUnit);
        for check in CHECKS {
            assert_eq!(level(&own, check.name), Some(Level::Warn), "{}", check.name);
        }

        std::fs::create_dir_all(root.path().join("sys/fs/selinux")).unwrap();
        std::fs::write(root.path().join("sys/fs/selinux/enforce"), "1").unwrap();
        assert_eq!(
            level(&found(Way::OwnUnit), "selinux_confinement_of_daemons"),
            Some(Level::Warn)
        );
    }
}
