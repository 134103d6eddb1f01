//! `tarsier migrate --check`: which lines of `/etc/audit` will be honoured.

use crate::finding::Finding;
use crate::plan_command::plan_for;
use cli::messages::reasons;
use cli::Engine;
use conf::plugins::{Plugin, PluginKind};
use conf::{Config, LoadOptions};
use plan::Exactness;
use rules::{LoadError, Owner, RuleError, RuleSet, Settings, SystemHost};
use std::path::Path;

const RULES_DIR: &str = "/etc/audit/rules.d";

/// All findings, in the order of the report.
pub(super) fn findings() -> Vec<Finding> {
    let mut found = rules(Path::new(RULES_DIR));
    found.extend(configuration(Path::new(conf::AUDITD_CONF)));
    found.extend(lock());
    found
}

fn rules(directory: &Path) -> Vec<Finding> {
    let place = directory.display().to_string();
    if daemon::rule_files::is_missing(directory) {
        return vec![Finding::fail(
            place,
            "there are no rules",
            daemon::rule_files::STARTER_REMEDY,
        )];
    }

    // Whoever is not root may look at rules, too.
    let owner = if rustix::process::geteuid().is_root() {
        Owner::Root
    } else {
        Owner::Anybody
    };

    match rules::load(directory, owner, &SystemHost) {
        Ok(set) => of_set(&set),
        Err(LoadError::Rules(errors)) => errors.iter().map(wrong).collect(),
        Err(error) => vec![Finding::fail(
            place,
            error.to_string(),
            "mend this: a start of Tarsier would be without it",
        )],
    }
}

/// A line that a start of Tarsier leaves out, and at which auditctl stops.
fn wrong(error: &RuleError) -> Finding {
    Finding::fail(
        place(&error.source_place),
        error.message.clone(),
        "mend the line, or put -i before it: auditctl loads the lines before it only, Tarsier all others",
    )
}

fn of_set(set: &RuleSet) -> Vec<Finding> {
    let mut found = Vec::new();
    for error in &set.skipped {
        let value = format!(
            "{}: passed over because of -i or -c, as in auditctl",
            error.message
        );
        found.push(Finding::ok(place(&error.source_place), value));
    }

    for warning in &set.warnings {
        let remedy = "`tarsier rules check` explains it";
        let value = warning.message.clone();
        found.push(Finding::warn(place(&warning.source_place), value, remedy));
    }

    found.extend(settings(&set.settings));

    match plan_for(set, Engine::Auto) {
        Err(error) => found.push(Finding::fail(
            RULES_DIR,
            reasons(&error),
            "use fewer or shorter rules: `tarsier rules optimise`",
        )),
        Ok((plan, _)) => {
            let rules = plan.rules.iter().zip(&plan.notes);
            found.extend(rules.map(|(rule, note)| judged(place(&rule.source), &note.exactness)));
        }
    }

    found
}

fn judged(place: String, exactness: &Exactness) -> Finding {
    const REMEDY: &str = "`tarsier plan` shows the rule, its hooks and its cost";
    match exactness {
        Exactness::Exact => Finding::ok(place, "honoured exactly"),
        Exactness::Approximate(reasons) => {
            Finding::warn(place, format!("may differ: {}", reasons.join("; ")), REMEDY)
        }
        Exactness::NotHonoured(reason) => {
            Finding::warn(place, format!("not honoured: {reason}"), REMEDY)
        }
    }
}

/// Settings of the kernel's audit in rules files.
fn settings(settings: &Settings) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut ok = |what: &'static str, value: &str| found.push(Finding::ok(what, value));
    if settings.failure.is_some() {
        ok("-f", "honoured");
    }
    if settings.rate.is_some() {
        ok("-r", "honoured");
    }
    if settings.backlog.is_some() {
        ok(
            "-b",
            "not needed: events wait in rings (--ring-size), not in the kernel's backlog",
        );
    }

    if settings.backlog_wait_time.is_some() {
        ok(
            "--backlog_wait_time",
            "not needed: `overload` says what happens to calls that come too fast",
        );
    }

    match settings.enabled {
        Some(0) => found.push(Finding::warn(
            "-e 0",
            "has no effect: Tarsier records as soon as it runs",
            "`tarsier ctl -e 0` stops recording",
        )),
        Some(1) => ok("-e 1", "as always"),
        Some(_) => ok(
            "-e 2",
            "as with auditd: rules are locked until the next boot",
        ),
        None => {}
    }

    if settings.loginuid_immutable {
        found.push(Finding::ok("--loginuid-immutable", "as with auditd"));
    }

    found
}

fn configuration(file: &Path) -> Vec<Finding> {
    let text = match std::fs::read(file) {
        Ok(text) => String::from_utf8_lossy(&text).into_owned(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return vec![Finding::ok(
                file.display().to_string(),
                "missing: auditd's defaults hold",
            )]
        }
        // The error is said below.
        Err(_) => String::new(),
    };

    let loaded = match conf::load(file, LoadOptions::default()) {
        Ok(loaded) => loaded,
        Err(error) => {
            let remedy = "mend this: `tarsier run` refuses the file";
            return vec![Finding::fail(
                file.display().to_string(),
                chain(&error),
                remedy,
            )];
        }
    };

    let mut found = Vec::new();

    for (number, line) in (1..).zip(text.lines()) {
        if line.trim_start().starts_with('#') {
            continue;
        }
        let Some((key, _)) = line.split_once('=') else {
            continue;
        };
        let place = format!("{}:{number}", file.display());
        let mut notices = loaded.notices.iter();
        found.push(match notices.find(|notice| notice.place.line == number) {
            Some(notice) => Finding::warn(
                place,
                notice.text.clone(),
                "docs/reference/configuration.md tells what holds instead",
            ),
            None => Finding::ok(place, format!("{} is honoured", key.trim())),
        });
    }

    found.extend(plugins(&loaded.config));

    found
}

fn plugins(config: &Config) -> Vec<Finding> {
    let dir = &config.plugins.plugin_dir;
    let (active, errors) = match conf::plugins::load(dir) {
        Ok(found) => found,
        Err(error) => {
            let remedy = "mend this: no plugin is started";
            return vec![Finding::warn(
                dir.display().to_string(),
                chain(&error),
                remedy,
            )];
        }
    };

    let mut found: Vec<_> = active.iter().map(|plugin| of_plugin(dir, plugin)).collect();
    found.extend(errors.iter().map(|error| {
        Finding::warn(
            dir.display().to_string(),
            format!("{}: this plugin is not started", chain(error)),
            "mend the file, or remove it",
        )
    }));

    found
}

/// Treatment of a plugin. Each plugin gets the records that auditd would give it, in the same format.
fn of_plugin(dir: &Path, plugin: &Plugin) -> Finding {
    let place = dir.join(&plugin.name).display().to_string();
    let program = match &plugin.kind {
        PluginKind::Socket { path, .. } => {
            let value = format!("programs read {} as before", path.display());
            return Finding::ok(place, value);
        }
        PluginKind::Program { path, .. } => path,
    };

    let name = program.file_name().unwrap_or_default();
    let what = match name.to_str().unwrap_or_default() {
        "audisp-remote" => "started unchanged: records go on to the central host",
        "audisp-syslog" => "started unchanged: records go on to syslog",
        "audisp-filter" => "started unchanged: it filters for the plugin that it starts",
        "audisp-af_unix" => "started unchanged: programs read its socket as before",
        "audisp-statsd" => "started unchanged; its own counts of auditd are replaced by `metrics`",
        "audispd-zos-remote" => "started unchanged: records go on to z/OS",
        "laurel" => "started unchanged; `log_format = JSON` writes JSON without it",
        "sedispatch" => "started unchanged: setroubleshoot gets AVC records as before",
        _ => "started unchanged, with the records that auditd would give it",
    };

    Finding::ok(place, what)
}

/// The kernel's audit configuration may be locked until the next boot.
fn lock() -> Option<Finding> {
    let status = netlink::AuditSocket::open().and_then(|mut socket| socket.status());
    match status {
        Ok(status) if status.enabled == 2 => Some(Finding::warn(
            "kernel audit",
            "locked (-e 2): Tarsier records by its rules, without the records of others",
            "boot anew after `tarsier migrate`",
        )),
        Ok(_) => None,
        Err(error) => Some(Finding::warn(
            "kernel audit",
            error.to_string(),
            "run as root to have it examined",
        )),
    }
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}

fn place(source: &rules::Source) -> String {
    match source.line {
        0 => source.file.clone(),
        line => format!("{}:{line}", source.file),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Level;
    use std::os::unix::fs::PermissionsExt;

    fn levels(found: &[Finding]) -> Vec<(Level, String)> {
        let mut levels: Vec<_> = found
            .iter()
            .map(|finding| {
                let what = finding.what.rsplit('/').next().unwrap_or_default();
                (finding.level, what.to_owned())
            })
            .collect();
        levels.sort_by(|a, b| a.1.cmp(&b.1));
        levels
    }

    fn written(dir: &Path, name: &str, text: &str) -> std::path::PathBuf {
        let path = dir.join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        path
    }

    #[test]
    fn each_rule_and_setting_has_a_verdict() {
        let dir = tempfile::tempdir().unwrap();
        let text = "-D\n-b 8192\n-f 1\n-a always,exit -F arch=b64 -S chmod -k a\n\
                    -a always,task\n--loginuid-immutable\n-e 2\n";
        written(dir.path(), "a.rules", text);
        let of = |level, what: &str| (level, what.to_owned());
        assert_eq!(
            levels(&rules(dir.path())),
            [
                of(Level::Ok, "--loginuid-immutable"),
                of(Level::Ok, "-b"),
                of(Level::Ok, "-e 2"),
                of(Level::Ok, "-f"),
                of(Level::Ok, "a.rules:4"),
                of(Level::Warn, "a.rules:5"),
            ]
        );
    }

    #[test]
    fn a_wrong_line_and_no_rules_at_all_fail() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(rules(dir.path()).first().unwrap().level, Level::Fail);
        written(dir.path(), "a.rules", "-a always,nowhere -S chmod\n");
        let found = rules(dir.path());
        assert_eq!(levels(&found), [(Level::Fail, "a.rules:1".to_owned())]);
    }

    #[test]
    fn each_line_of_the_configuration_has_a_verdict() {
        let dir = tempfile::tempdir().unwrap();
        let plugins = dir.path().join("plugins.d");
        std::fs::create_dir(&plugins).unwrap();
        written(
            &plugins,
            "syslog.conf",
            "active = yes\ndirection = out\npath = /bin/cat\ntype = always\nformat = string\n",
        );
        written(&plugins, "wrong.conf", "active = perhaps\n");
        let text = format!(
            "# a comment = 1\nlog_file = /var/log/audit/audit.log\ntcp_listen_port = 60\nplugin_dir = {}\n",
            plugins.display()
        );
        let file = written(dir.path(), "auditd.conf", &text);
        let found = configuration(&file);
        let of = |level, what: &str| (level, what.to_owned());
        assert_eq!(
            levels(&found),
            [
                of(Level::Ok, "auditd.conf:2"),
                of(Level::Warn, "auditd.conf:3"),
                of(Level::Ok, "auditd.conf:4"),
                of(Level::Warn, "plugins.d"),
                of(Level::Ok, "syslog.conf"),
            ],
            "{found:#?}"
        );
        let file = written(dir.path(), "wrong.conf", "flush = sometimes\n");
        assert_eq!(
            levels(&configuration(&file)),
            [of(Level::Fail, "wrong.conf")]
        );
    }
}
