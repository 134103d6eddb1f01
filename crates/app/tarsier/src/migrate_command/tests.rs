//! The steps, on simulated hosts that fail at every point.

use super::host::{CommandState, Host, UnitState, Verb};
use super::record::MigrationRecord;
use super::steps::Way;
use super::{back, forward};
use anyhow::{bail, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// State that a migration can change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct State {
    units: BTreeMap<String, UnitState>,
    rules: Vec<Vec<u8>>,
    commands: BTreeMap<PathBuf, CommandState>,
    /// Units with a drop-in of Tarsier, and those with a directory for drop-ins.
    drop_ins: BTreeSet<String>,
    drop_in_dirs: BTreeSet<String>,
    is_armed: bool,
}

#[derive(Clone, Default)]
struct Fake {
    state: State,
    record: Option<Vec<u8>>,
    is_locked: bool,
    /// Rules that auditd's start loads.
    files: Vec<Vec<u8>>,
    changes: usize,
    /// The change that fails, without having been made.
    fails_at: Option<usize>,
    /// Whether it fails after having been made.
    is_made_first: bool,
    /// Every later change fails, too: the process was killed.
    is_final: bool,
}

impl Fake {
    fn with_auditd() -> Fake {
        let running = UnitState {
            is_there: true,
            is_enabled: true,
            is_active: true,
            is_masked: false,
        };
        let resting = UnitState {
            is_active: false,
            ..running
        };
        let units = [("auditd.service", running), ("tarsier.service", resting)];
        let commands = [
            ("/usr/sbin/auditctl", CommandState::Others),
            ("/usr/sbin/augenrules", CommandState::Others),
        ];
        let rules = vec![vec![1, 2, 3], vec![0xff, 0]];
        Fake {
            state: State {
                units: units.map(|(name, unit)| (name.to_owned(), unit)).into(),
                rules: rules.clone(),
                commands: commands
                    .map(|(path, state)| (PathBuf::from(path), state))
                    .into(),
                ..State::default()
            },
            files: rules,
            ..Fake::default()
        }
    }

    /// audit 4: another unit loads the rules, and auditd does not run.
    fn with_audit_4() -> Fake {
        let mut host = Fake::with_auditd();
        let mut unit = host.state.units["auditd.service"];
        host.state
            .units
            .insert("audit-rules.service".to_owned(), unit);
        unit.is_active = false;
        host.state.units.insert("auditd.service".to_owned(), unit);
        host.files = Vec::new();
        host
    }

    fn change(&mut self, make: impl FnOnce(&mut Fake)) -> Result<()> {
        let number = self.changes;
        self.changes += 1;
        let fails = match self.fails_at {
            Some(at) if self.is_final => number >= at,
            at => at == Some(number),
        };
        if !fails || (self.is_made_first && self.fails_at == Some(number)) {
            make(self);
        }
        if fails {
            bail!("change {number} fails");
        }
        Ok(())
    }
}

impl Host for Fake {
    fn has_systemd(&self) -> bool {
        true
    }

    fn unit(&self, name: &str) -> Result<UnitState> {
        Ok(self.state.units.get(name).copied().unwrap_or_default())
    }

    fn manage(&mut self, verb: Verb, unit: &str) -> Result<()> {
        let unit = unit.to_owned();
        if verb == Verb::Start && self.unit(&unit)?.is_masked {
            bail!("{unit} is masked");
        }
        self.change(|host| {
            let starts = verb == Verb::Start && !host.state.units[&unit].is_active;
            let is_tarsier = unit == "tarsier.service" || host.state.drop_ins.contains(&unit);
            if starts && is_tarsier {
                host.state.is_armed = true;
            } else if starts && unit == "auditd.service" && !host.files.is_empty() {
                host.state.rules = host.files.clone();
            }
            let state = host.state.units.get_mut(&unit).unwrap();
            match verb {
                Verb::Start => state.is_active = true,
                Verb::Terminate | Verb::Stop => state.is_active = false,
                Verb::Enable => state.is_enabled = true,
                Verb::Disable => state.is_enabled = false,
                Verb::Mask => state.is_masked = true,
                Verb::Unmask => state.is_masked = false,
            }
        })
    }

    fn kernel_rules(&mut self) -> Result<Option<Vec<Vec<u8>>>> {
        Ok((!self.is_locked).then(|| self.state.rules.clone()))
    }

    fn delete_kernel_rules(&mut self) -> Result<()> {
        self.change(|host| host.state.rules.clear())
    }

    fn add_kernel_rules(&mut self, rules: &[Vec<u8>]) -> Result<()> {
        self.change(|host| {
            for rule in rules {
                if !host.state.rules.contains(rule) {
                    host.state.rules.push(rule.clone());
                }
            }
        })
    }

    fn command(&self, path: &Path) -> Result<CommandState> {
        let found = self.state.commands.get(path);
        Ok(found.copied().unwrap_or(CommandState::Missing))
    }

    fn divert(&mut self, path: &Path) -> Result<()> {
        self.change(|host| {
            host.state
                .commands
                .insert(path.to_owned(), CommandState::Ours);
        })
    }

    fn restore(&mut self, path: &Path) -> Result<()> {
        self.change(|host| {
            host.state
                .commands
                .insert(path.to_owned(), CommandState::Others);
        })
    }

    fn has_drop_in_dir(&self, unit: &str) -> Result<bool> {
        Ok(self.state.drop_in_dirs.contains(unit))
    }

    fn link_drop_in(&mut self, unit: &str) -> Result<()> {
        self.change(|host| {
            host.state.drop_ins.insert(unit.to_owned());
            host.state.drop_in_dirs.insert(unit.to_owned());
        })
    }

    fn unlink_drop_in(&mut self, unit: &str, and_dir: bool) -> Result<()> {
        self.change(|host| {
            host.state.drop_ins.remove(unit);
            if and_dir {
                host.state.drop_in_dirs.remove(unit);
            }
        })
    }

    fn disarm(&mut self) -> Result<()> {
        self.change(|host| host.state.is_armed = false)
    }

    fn load(&self) -> Result<Option<Vec<u8>>> {
        Ok(self.record.clone())
    }

    fn save(&mut self, record: &[u8]) -> Result<()> {
        let record = record.to_vec();
        self.change(|host| host.record = Some(record))
    }

    fn forget(&mut self) -> Result<()> {
        self.change(|host| host.record = None)
    }
}

fn migrated(mut host: Fake, way: Way) -> Fake {
    forward(&mut host, way).unwrap();
    host
}

/// Hosts before a migration, with each way to migrate them.
fn hosts() -> Vec<(Fake, Way)> {
    let mut with_drop_ins = Fake::with_audit_4();
    let dirs = &mut with_drop_ins.state.drop_in_dirs;
    dirs.insert("auditd.service".to_owned());
    let mut disabled = Fake::with_auditd();
    let units = &mut disabled.state.units;
    units.get_mut("auditd.service").unwrap().is_enabled = false;

    let hosts = [
        Fake::with_auditd(),
        Fake::with_audit_4(),
        with_drop_ins,
        disabled,
    ];
    let ways = [Way::AuditdUnit, Way::OwnUnit];
    let pairs = hosts
        .iter()
        .flat_map(|host| ways.map(|way| (host.clone(), way)));
    pairs.collect()
}

#[test]
fn a_migration_puts_tarsier_in_the_place_of_auditd_and_back_undoes_it() {
    for (host, way) in hosts() {
        let before = host.state.clone();
        let mut host = migrated(host, way);
        assert!(host.state.rules.is_empty() && host.state.is_armed);
        let unit = |name: &str| host.state.units[name];
        match way {
            Way::AuditdUnit => {
                assert!(unit("auditd.service").is_active && unit("auditd.service").is_enabled);
                assert!(!unit("tarsier.service").is_active);
                assert_eq!(host.state.commands, before.commands);
                let masked = host.state.units.values().filter(|unit| unit.is_masked);
                assert_eq!(masked.count(), 0);
            }
            Way::OwnUnit => {
                assert!(!unit("auditd.service").is_active && unit("auditd.service").is_masked);
                assert!(unit("tarsier.service").is_active);
                let mut commands = host.state.commands.values();
                assert!(commands.all(|state| *state == CommandState::Ours));
            }
        }
        for again in [Way::AuditdUnit, Way::OwnUnit] {
            let refused = forward(&mut host, again);
            assert!(refused.is_err(), "a second migration has nothing to undo");
        }

        back(&mut host).unwrap();
        assert_eq!(host.state, before);
        assert_eq!(host.record, None);
        assert!(back(&mut host).is_err(), "there is nothing left to undo");
    }
}

#[test]
fn a_step_that_fails_undoes_those_before_it() {
    for (host, way) in hosts() {
        let before = host.state.clone();
        let count = migrated(host.clone(), way).changes;
        assert!(count > 6, "{count}");
        for at in 0..count {
            for is_made_first in [false, true] {
                let mut host = Fake {
                    fails_at: Some(at),
                    is_made_first,
                    ..host.clone()
                };
                forward(&mut host, way).unwrap_err();
                // The first change is the record itself: without one there is nothing to undo.
                assert_eq!(host.state, before, "change {at}");
                if at > 0 || is_made_first {
                    assert_eq!(host.record, None, "change {at}");
                }
            }
        }
    }
}

#[test]
fn whenever_it_is_killed_back_undoes_it_however_often_that_is_killed() {
    for (host, way) in hosts() {
        let before = host.state.clone();
        let count = migrated(host.clone(), way).changes;
        for at in 0..=count {
            for is_made_first in [false, true] {
                let mut host = Fake {
                    fails_at: Some(at),
                    is_made_first,
                    is_final: true,
                    ..host.clone()
                };
                let _ = forward(&mut host, way);
                // Each try is killed one change later.
                for tries in 0..100 {
                    if host.record.is_none() {
                        break;
                    }
                    host.changes = 0;
                    host.fails_at = Some(tries);
                    let _ = back(&mut host);
                }
                assert_eq!(host.record, None);
                assert_eq!(host.state, before, "killed at {at}");
            }
        }
    }
}

#[test]
fn locked_rules_stay_and_what_was_on_stays_on() {
    for way in [Way::AuditdUnit, Way::OwnUnit] {
        let mut host = Fake::with_auditd();
        host.is_locked = true;
        let units = &mut host.state.units;
        units.get_mut("tarsier.service").unwrap().is_active = true;
        let before = host.state.clone();
        let mut host = migrated(host, way);
        assert_eq!(host.state.rules, before.rules);
        back(&mut host).unwrap();
        assert!(host.state.units["tarsier.service"].is_active);
    }
}

#[test]
fn hosts_without_auditd_and_those_of_the_package_are_refused_unchanged() {
    let mut without = Fake::with_auditd();
    without.state.units.remove("auditd.service");
    let mut package = Fake::with_auditd();
    let path = PathBuf::from("/usr/sbin/auditctl");
    package.state.commands.insert(path, CommandState::Ours);
    let mut masked = Fake::with_auditd();
    let units = &mut masked.state.units;
    units.get_mut("auditd.service").unwrap().is_masked = true;
    for mut host in [without, package, masked] {
        forward(&mut host, Way::AuditdUnit).unwrap_err();
        assert_eq!(host.changes, 0);
    }
}

#[test]
fn a_record_that_names_other_files_or_units_is_not_obeyed() {
    let wrong = [
        "",
        "{}",
        r#"{"version":1,"steps":[]}"#,
        r#"{"version":2,"steps":[{"step":"divert","path":"/etc/shadow"}]}"#,
        r#"{"version":2,"steps":[{"step":"mask","unit":"sshd.service"}]}"#,
        r#"{"version":2,"steps":[{"step":"delete_kernel_rules","rules":["0g"]}]}"#,
        r#"{"version":2,"steps":[{"step":"drop_in","unit":"sshd.service","had_dir":false}]}"#,
        r#"{"version":2,"steps":[{"step":"start","unit":"sshd.service","was_enabled":false,"was_active":false}]}"#,
        r#"{"version":2,"steps":[{"step":"run","command":"sh"}]}"#,
    ];
    for text in wrong {
        assert!(MigrationRecord::parse(text.as_bytes()).is_err(), "{text}");
    }
    let right = r#"{"version":2,"steps":[{"step":"divert","path":"/sbin/auditctl"}]}"#;
    assert_eq!(
        MigrationRecord::parse(right.as_bytes())
            .unwrap()
            .steps
            .len(),
        1
    );
}

/// What a unit says, by section: `Key=value` lines in order, without comments.
fn settings<'a>(text: &'a str, section: &str) -> Vec<&'a str> {
    let begin = format!("[{section}]");
    let lines = text.lines().skip_while(|line| *line != begin).skip(1);
    let lines = lines.take_while(|line| !line.starts_with('['));
    lines
        .filter(|line| line.contains('=') && !line.starts_with('#'))
        .collect()
}

#[test]
fn the_drop_in_has_every_setting_of_tarsier_s_own_unit() {
    let unit = include_str!("../../../../../share/systemd/tarsier.service");
    let drop_in = include_str!("../../../../../share/systemd/drop-ins/auditd.conf");
    let (own, ours) = (settings(unit, "Service"), settings(drop_in, "Service"));
    assert!(own.len() > 30);
    for line in own {
        match line.split_once('=').unwrap() {
            // It looks for the unit that the drop-in is for.
            ("ExecCondition", _) => {}
            // The name of the process, and what auditd's auditctl needs.
            ("ExecStart", _) => {
                let line = line.replace("/usr/sbin/tarsier ", "/usr/lib/tarsier/auditd ");
                let line = line.replace(" run ", " run --kernel-list ");
                assert!(ours.contains(&line.as_str()), "{line}");
            }
            (key, _) => {
                assert!(ours.contains(&line), "{line}");
                // Lists go on where the vendor's unit ended, unless they are emptied first.
                let is_list = key.starts_with("Exec")
                    || key.starts_with("SystemCall") && key != "SystemCallErrorNumber"
                    || [
                        "CapabilityBoundingSet",
                        "RestrictAddressFamilies",
                        "BindPaths",
                        "DeviceAllow",
                    ]
                    .contains(&key);
                let empty = ours.iter().position(|line| *line == format!("{key}="));
                let first = ours.iter().position(|other| *other == line);
                assert!(!is_list || empty < first && empty.is_some(), "{key}");
            }
        }
    }

    let own = settings(unit, "Unit").join(" ");
    for line in settings(drop_in, "Unit") {
        let (_, words) = line.split_once('=').unwrap();
        assert!(words.split(' ').all(|word| own.contains(word)), "{line}");
    }
}
