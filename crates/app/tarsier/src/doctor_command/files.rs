//! Rules, configuration, log directory, clock and the place of pins.

use super::machine::{Configured, Machine};
use crate::finding::Finding;
use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

/// Time of a sync from which `flush = DATA` and `SYNC` make events wait.
const SLOW_SYNC: Duration = Duration::from_millis(50);
/// Default directory of pins.
const PIN_DIR: &str = "/sys/fs/bpf/tarsier";

/// Findings about files and the clock.
pub(super) fn findings(machine: &dyn Machine) -> Vec<Finding> {
    let mut found = vec![rules(machine)];
    if let Some(summary) = machine.not_in_force() {
        let remedy =
            "mend the files (`tarsier rules check --boot` shows each place), then reload: \
                      `systemctl reload tarsier`";
        found.push(Finding::fail("rules in force", summary, remedy));
    }

    match machine.configuration() {
        Err(why) => found.push(Finding::fail(
            "configuration",
            why,
            "mend the file: `tarsier run` refuses it",
        )),
        Ok(configured) => {
            found.push(configuration(&configured));
            found.extend(log(machine, &configured));
            found.push(pins(machine, &configured));
        }
    }

    found.push(clock(machine));

    found
}

fn rules(machine: &dyn Machine) -> Finding {
    match machine.rules() {
        Err(why) => Finding::fail(
            "rules",
            why,
            "mend them: `tarsier rules check --boot` shows each place; a start takes the last good rules, or the right \
             lines (rules_error)",
        ),
        Ok(None | Some(0)) => Finding::warn("rules", "none", daemon::rule_files::STARTER_REMEDY),
        Ok(Some(1)) => Finding::ok("rules", "1 rule"),
        Ok(Some(count)) => Finding::ok("rules", format!("{count} rules")),
    }
}

fn configuration(configured: &Configured) -> Finding {
    match configured.notices {
        0 => Finding::ok("configuration", "every key is honoured"),
        count => Finding::ok(
            "configuration",
            format!("{count} notices, which `tarsier run` prints"),
        ),
    }
}

fn log(machine: &dyn Machine, configured: &Configured) -> Vec<Finding> {
    const WHAT: &str = "log directory";

    if !configured.writes_logs {
        return vec![Finding::ok(WHAT, "not used: write_logs = no")];
    }

    let directory = configured.log_dir.as_path();
    let shown = directory.display();
    let owner = match machine.owner(directory) {
        Ok(owner) if owner.is_directory => owner,
        Ok(_) => {
            let remedy = "name another log_file, or move what is there away";
            return vec![Finding::fail(
                WHAT,
                format!("{shown} is no directory"),
                remedy,
            )];
        }
        Err(error) => {
            let remedy = match error.kind() {
                ErrorKind::NotFound => format!("install -d -m 0700 {shown}"),
                _ => "run as root".to_owned(),
            };
            return vec![Finding::fail(WHAT, format!("{shown}: {error}"), remedy)];
        }
    };

    let value = format!("{shown}, uid {}, mode {:04o}", owner.uid, owner.mode);
    let first = match (owner.uid, owner.mode) {
        (0, mode) if mode & 0o027 == 0 => Finding::ok(WHAT, value),
        (0, mode) if mode & 0o022 == 0 => {
            let remedy = format!("others can look into it: chmod o= {shown}");
            Finding::warn(WHAT, value, remedy)
        }
        _ => {
            let remedy =
                format!("others can replace the log: chown root {shown}; chmod go-w {shown}");
            Finding::warn(WHAT, value, remedy)
        }
    };

    vec![first, space(machine, configured), sync(machine, directory)]
}

fn space(machine: &dyn Machine, configured: &Configured) -> Finding {
    const WHAT: &str = "log space";

    let least_mib = configured.admin_space_left_mib;
    match machine.space(&configured.log_dir) {
        Err(error) => Finding::warn(WHAT, error.to_string(), "run as root"),
        Ok(space) => {
            let value = format!("{} of {} MiB free", space.free_mib, space.total_mib);
            match space.free_mib {
                0 => Finding::fail(WHAT, value, "make room, or name another log_file"),
                free if free < least_mib => Finding::warn(
                    WHAT,
                    format!("{value}, less than admin_space_left ({least_mib} MiB)"),
                    "make room: admin_space_left_action is taken at once",
                ),
                _ => Finding::ok(WHAT, value),
            }
        }
    }
}

fn sync(machine: &dyn Machine, directory: &Path) -> Finding {
    const WHAT: &str = "log sync";

    match machine.sync_time(directory) {
        Err(error) => Finding::warn(
            WHAT,
            error.to_string(),
            "run as root, where the log can be written",
        ),
        Ok(time) => {
            let value = format!("4 KiB are durable after {:.1} ms", time.as_secs_f64() * 1e3);
            if time > SLOW_SYNC {
                Finding::warn(
                    WHAT,
                    value,
                    "do not set flush = DATA or SYNC here, or put the log on a faster disk",
                )
            } else {
                Finding::ok(WHAT, value)
            }
        }
    }
}

fn clock(machine: &dyn Machine) -> Finding {
    match machine.is_clock_synchronised() {
        Ok(true) => Finding::ok("clock", "synchronised"),
        Ok(false) => Finding::warn(
            "clock",
            "not synchronised",
            "start a time service (chrony, systemd-timesyncd): logs of several hosts are compared by time",
        ),
        Err(error) => Finding::warn("clock", error.to_string(), "run where adjtimex(2) is allowed"),
    }
}

fn pins(machine: &dyn Machine, configured: &Configured) -> Finding {
    const WHAT: &str = "pins";

    let is_default = configured.pin_dir.is_none();
    let directory = configured.pin_dir.as_deref().unwrap_or(Path::new(PIN_DIR));
    let shown = directory.display();
    let use_of_it = if is_default {
        "free for --pin-dir"
    } else {
        "pin_dir"
    };
    if machine.is_bpf_file_system(directory) {
        return Finding::ok(WHAT, format!("{shown} holds a capture"));
    }

    let parent = directory.parent().unwrap_or(directory);

    match machine.is_bpf_file_system(parent) {
        true => Finding::ok(WHAT, format!("{shown}, {use_of_it}")),
        false if parent == Path::new("/sys/fs/bpf") => Finding::ok(
            WHAT,
            format!("{shown}, {use_of_it}; Tarsier mounts the file system"),
        ),
        false => Finding::fail(
            WHAT,
            format!("{} is not on a BPF file system", parent.display()),
            "set pin_dir to a directory below /sys/fs/bpf",
        ),
    }
}
