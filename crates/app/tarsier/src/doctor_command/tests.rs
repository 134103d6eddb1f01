//! The judgement, on hosts that are made up.

use super::examine;
use super::machine::{AuditFacts, Configured, EngineFacts, Machine, Owner, Space};
use crate::finding::{status, Finding, Level};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A host where all is well; tests change what they are about.
struct Fake {
    texts: BTreeMap<&'static str, &'static str>,
    is_root: bool,
    engine: EngineFacts,
    audit: Result<AuditFacts, String>,
    processes: Vec<(u32, String)>,
    owner: Option<Owner>,
    free_mib: u64,
    sync_ms: u64,
    is_synchronised: bool,
    bpf: Vec<PathBuf>,
    rules: Result<Option<usize>, String>,
    not_in_force: Option<String>,
    configuration: Result<Configured, String>,
}

impl Fake {
    fn well() -> Fake {
        Fake {
            texts: BTreeMap::from([
                ("/proc/sys/kernel/osrelease", "6.12.1\n"),
                ("/proc/self/status", "Name:\tx\nCapEff:\t000001ffffffffff\n"),
                ("/proc/cmdline", "root=/dev/vda quiet\n"),
                (
                    "/proc/self/mounts",
                    "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n",
                ),
                (
                    "/sys/kernel/security/lockdown",
                    "[none] integrity confidentiality\n",
                ),
                (
                    "/sys/kernel/security/lsm",
                    "lockdown,capability,yama,apparmor\n",
                ),
            ]),
            is_root: true,
            engine: EngineFacts {
                btf: true,
                ..EngineFacts::default()
            },
            audit: Ok(AuditFacts::default()),
            processes: vec![(1, "systemd".to_owned())],
            owner: Some(Owner {
                uid: 0,
                mode: 0o700,
                is_directory: true,
            }),
            free_mib: 9000,
            sync_ms: 2,
            is_synchronised: true,
            bpf: vec![PathBuf::from("/sys/fs/bpf")],
            rules: Ok(Some(12)),
            not_in_force: None,
            configuration: Ok(Configured {
                log_dir: PathBuf::from("/var/log/audit"),
                writes_logs: true,
                admin_space_left_mib: 50,
                pin_dir: None,
                notices: 0,
            }),
        }
    }
}

impl Machine for Fake {
    fn text(&self, path: &str) -> io::Result<String> {
        let text = self.texts.get(path).map(|text| text.to_string());
        text.ok_or_else(|| io::ErrorKind::NotFound.into())
    }
    fn is_root(&self) -> bool {
        self.is_root
    }
    fn engine(&self) -> EngineFacts {
        self.engine.clone()
    }
    fn audit(&self) -> Result<AuditFacts, String> {
        self.audit.clone()
    }
    fn processes(&self) -> Vec<(u32, String)> {
        self.processes.clone()
    }
    fn owner(&self, _: &Path) -> io::Result<Owner> {
        self.owner.ok_or_else(|| io::ErrorKind::NotFound.into())
    }
    fn space(&self, _: &Path) -> io::Result<Space> {
        Ok(Space {
            free_mib: self.free_mib,
            total_mib: 10_000,
        })
    }
    fn sync_time(&self, _: &Path) -> io::Result<Duration> {
        Ok(Duration::from_millis(self.sync_ms))
    }
    fn is_clock_synchronised(&self) -> io::Result<bool> {
        Ok(self.is_synchronised)
    }
    fn is_bpf_file_system(&self, path: &Path) -> bool {
        self.bpf.iter().any(|known| known == path)
    }
    fn rules(&self) -> Result<Option<usize>, String> {
        self.rules.clone()
    }
    fn not_in_force(&self) -> Option<String> {
        self.not_in_force.clone()
    }
    fn configuration(&self) -> Result<Configured, String> {
        self.configuration.clone()
    }
}

/// The findings about `what`.
fn about(fake: &Fake, what: &str) -> Vec<Finding> {
    let mut found = examine(fake);
    found.retain(|finding| finding.what == what);
    found
}

/// Whether `change` to a host where all is well makes exactly one finding of this level, about
/// `what`, with these words in value or remedy.
fn one(change: impl FnOnce(&mut Fake), level: Level, what: &str, words: &str) {
    let mut fake = Fake::well();
    change(&mut fake);
    let mut found = examine(&fake);
    found.retain(|finding| finding.level != Level::Ok);
    assert_eq!(found.len(), 1, "{found:?}");
    let text = found[0].to_string();
    assert_eq!((found[0].level, &*found[0].what), (level, what), "{text}");
    assert!(
        text.contains(words) && !found[0].remedy.is_empty(),
        "{text}"
    );
}

#[test]
fn a_host_where_all_is_well_has_no_remedies_and_status_0() {
    let found = examine(&Fake::well());
    assert_eq!(status(&found), 0, "{found:?}");
    assert!(found.iter().all(|finding| finding.remedy.is_empty()));
    let whats: Vec<&str> = found.iter().map(|finding| &*finding.what).collect();
    for what in [
        "kernel",
        "BTF",
        "engine",
        "lockdown",
        "security modules",
        "other entries",
        "control groups",
        "rights",
        "kernel command line",
        "kernel audit",
        "other audit daemons",
        "rules",
        "configuration",
        "log directory",
        "log space",
        "log sync",
        "pins",
        "clock",
    ] {
        let count = whats.iter().filter(|found| **found == what).count();
        assert_eq!(count, 1, "{what} in {whats:?}");
    }
    assert_eq!(about(&Fake::well(), "engine")[0].value, "trampoline");
    assert_eq!(about(&Fake::well(), "control groups")[0].value, "version 2");
    assert_eq!(about(&Fake::well(), "lockdown")[0].value, "none");
}

#[test]
fn kernels_without_btf_have_the_kernel_engine() {
    let mut fake = Fake::well();
    fake.engine.btf = false;
    fake.engine.ebpf_refusal = Some("no BTF".to_owned());
    let found = examine(&fake);
    assert_eq!(status(&found), 1);
    assert_eq!(about(&fake, "BTF")[0].level, Level::Warn);
    assert!(about(&fake, "engine")[0].value.starts_with("kernel"));
}

#[test]
fn why_the_other_engine_is_not_used_is_said() {
    let mut fake = Fake::well();
    fake.engine.trampoline_refusal = Some("fexit is refused".to_owned());
    let found = about(&fake, "engine");
    assert_eq!(found[0].level, Level::Ok);
    assert_eq!(
        found[0].value,
        "tracepoint (not trampoline: fexit is refused)"
    );
    one(
        |fake| fake.engine.ebpf_refusal = Some("Linux 5.10 is older than 5.15".to_owned()),
        Level::Warn,
        "engine",
        "kernel (Linux 5.10 is older than 5.15): the kernel's own audit matches the rules",
    );
    one(
        |fake| fake.engine.gaps = vec!["function x: objects".to_owned()],
        Level::Warn,
        "engine",
        "without function x: objects",
    );
}

#[test]
fn lockdown_of_confidentiality_is_a_warning_and_integrity_is_not() {
    let locked = |text| {
        move |fake: &mut Fake| {
            fake.texts.insert("/sys/kernel/security/lockdown", text);
        }
    };
    let text = "none integrity [confidentiality]";
    one(locked(text), Level::Warn, "lockdown", "lockdown=integrity");
    let mut fake = Fake::well();
    locked("none [integrity] confidentiality")(&mut fake);
    let found = about(&fake, "lockdown");
    assert_eq!(
        (found[0].level, found[0].value.as_str()),
        (Level::Ok, "integrity")
    );
}

#[test]
fn who_owns_the_kernels_audit_is_named() {
    let owned = |enabled, pid, name: &'static str| {
        move |fake: &mut Fake| {
            fake.audit = Ok(AuditFacts { enabled, pid });
            fake.processes = vec![(77, name.to_owned())];
        }
    };
    one(
        owned(1, 77, "other"),
        Level::Warn,
        "kernel audit",
        "process 77 (other) owns it",
    );
    one(
        owned(1, 78, "other"),
        Level::Warn,
        "kernel audit",
        "another PID namespace",
    );
    one(owned(2, 0, "other"), Level::Warn, "kernel audit", "locked");
    let mut fake = Fake::well();
    owned(1, 77, "tarsier")(&mut fake);
    assert_eq!(
        about(&fake, "kernel audit")[0].value,
        "owned by tarsier (77)"
    );
    owned(1, 77, "auditd")(&mut fake);
    assert_eq!(status(&examine(&fake)), 1);
    assert_eq!(about(&fake, "other audit daemons")[0].value, "auditd (77)");
    one(
        |fake| fake.audit = Err("refused".to_owned()),
        Level::Warn,
        "kernel audit",
        "CONFIG_AUDIT=y",
    );
    one(
        |fake| {
            fake.texts.insert("/proc/cmdline", "audit=1 audit=0");
        },
        Level::Warn,
        "kernel command line",
        "audit=0",
    );
}

#[test]
fn missing_rights_are_failures() {
    one(
        |fake| {
            fake.texts
                .insert("/proc/self/status", "CapEff:\t0000003fffffffff\n");
        },
        Level::Fail,
        "rights",
        "root without CAP_PERFMON, CAP_BPF",
    );
    one(
        |fake| {
            fake.texts
                .insert("/proc/self/status", "CapEff:\t000001ffbfffffff\n");
        },
        Level::Warn,
        "rights",
        "root without CAP_AUDIT_CONTROL",
    );
    let mut fake = Fake::well();
    fake.is_root = false;
    assert_eq!(status(&examine(&fake)), 2);
    assert_eq!(
        about(&fake, "engine")[0].level,
        Level::Warn,
        "only root can try"
    );
}

#[test]
fn the_log_directory_is_judged_by_owner_mode_room_and_syncs() {
    let owner = |uid, mode, is_directory| {
        move |fake: &mut Fake| {
            fake.owner = Some(Owner {
                uid,
                mode,
                is_directory,
            });
        }
    };
    one(
        owner(0, 0o755, true),
        Level::Warn,
        "log directory",
        "chmod o=",
    );
    one(
        owner(0, 0o777, true),
        Level::Warn,
        "log directory",
        "chmod go-w",
    );
    one(
        owner(5, 0o700, true),
        Level::Warn,
        "log directory",
        "chown root",
    );
    one(
        owner(0, 0o700, false),
        Level::Fail,
        "log directory",
        "no directory",
    );
    one(
        |fake| fake.owner = None,
        Level::Fail,
        "log directory",
        "install -d -m 0700 /var/log/audit",
    );
    one(
        |fake| fake.free_mib = 0,
        Level::Fail,
        "log space",
        "0 of 10000 MiB free",
    );
    one(
        |fake| fake.free_mib = 49,
        Level::Warn,
        "log space",
        "admin_space_left (50 MiB)",
    );
    one(|fake| fake.sync_ms = 80, Level::Warn, "log sync", "80.0 ms");
    let mut fake = Fake::well();
    fake.owner = None;
    if let Ok(configured) = &mut fake.configuration {
        configured.writes_logs = false;
    }
    assert_eq!(status(&examine(&fake)), 0, "no log is written");
}

#[test]
fn rules_configuration_clock_and_pins_are_judged() {
    one(
        |fake| fake.rules = Ok(None),
        Level::Warn,
        "rules",
        "starter.rules",
    );
    one(
        |fake| fake.rules = Err("bad line".to_owned()),
        Level::Fail,
        "rules",
        "bad line",
    );
    one(
        |fake| fake.not_in_force = Some("2 lines are NOT in force".to_owned()),
        Level::Fail,
        "rules in force",
        "systemctl reload tarsier",
    );
    one(
        |fake| fake.is_synchronised = false,
        Level::Warn,
        "clock",
        "chrony",
    );
    let mut fake = Fake::well();
    fake.configuration = Err("line 3".to_owned());
    assert_eq!(about(&fake, "configuration")[0].level, Level::Fail);
    assert_eq!(about(&fake, "log directory"), [], "it is not known");
    let pinned = |place: &'static str| {
        move |fake: &mut Fake| {
            if let Ok(configured) = &mut fake.configuration {
                configured.pin_dir = Some(PathBuf::from(place));
            }
        }
    };
    one(
        pinned("/srv/pins"),
        Level::Fail,
        "pins",
        "/srv is not on a BPF file system",
    );
    let mut fake = Fake::well();
    fake.bpf = Vec::new();
    let found = about(&fake, "pins");
    assert!(
        found[0].value.contains("mounts the file system"),
        "{found:?}"
    );
    fake.bpf = vec![PathBuf::from("/sys/fs/bpf/tarsier")];
    assert!(about(&fake, "pins")[0].value.contains("holds a capture"));
}
