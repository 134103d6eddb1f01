//! Files of plugins: those that auditd accepts are accepted; others are refused, and the error names
//! the place.

use conf::plugins::{load, parse, Format, Plugin, PluginKind};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

fn parsed(text: &str) -> Result<Option<Plugin>, String> {
    parse(text.as_bytes(), Path::new("/p/my.conf")).map_err(|error| error.to_string())
}

/// The content of `syslog.conf` and `af_unix.conf` in Debian's audispd-plugins 3.0.9, but active.
const SYSLOG: &str = "# comment\n\nactive = yes\ndirection = out\npath = /sbin/audisp-syslog\n\
                      type = always \nargs = LOG_INFO LOG_AUTH\nformat = string\n";
const AF_UNIX: &str = "active = YES\nDirection = out\npath = builtin_af_unix\ntype = builtin \n\
                       args = 0640 /var/run/audispd_events\nformat = Binary\n";

#[test]
fn what_the_distribution_ships_is_understood() {
    let expected = Plugin {
        name: "my.conf".into(),
        kind: PluginKind::Program {
            path: "/sbin/audisp-syslog".into(),
            args: vec!["LOG_INFO".into(), "LOG_AUTH".into()],
        },
        format: Format::String,
    };
    assert_eq!(parsed(SYSLOG), Ok(Some(expected)));
    let expected = Plugin {
        name: "my.conf".into(),
        kind: PluginKind::Socket {
            path: "/var/run/audispd_events".into(),
            mode: Some(0o640),
        },
        format: Format::Binary,
    };
    assert_eq!(parsed(AF_UNIX), Ok(Some(expected)));
    assert_eq!(parsed(&SYSLOG.replace("yes", "no")), Ok(None));
    assert_eq!(parsed(""), Ok(None));
}

#[test]
fn what_is_wrong_is_named_with_its_line_and_what_belongs_there() {
    for (text, expected) in [
        ("activ = yes", "/p/my.conf:1: unknown keyword \"activ\"; expected active, direction, path, type, args or format"),
        ("\nactive= yes", "/p/my.conf:2: \"yes\" after \"active=\"; expected `key = value`"),
        ("active =", "active has no value"),
        ("active = maybe", "active = maybe; expected yes or no"),
        ("active = yes no", "\"no\" after the value of active"),
        ("direction = up", "expected out or in"),
        ("type = sometimes", "expected always or builtin"),
        ("format = xml", "expected string or binary"),
        ("active = yes", "no path is given; add `path"),
        ("active = yes\npath = bin/x", "path = bin/x is not absolute"),
        ("active = yes\npath = builtin_syslog\ntype = builtin", "builtin_syslog is no builtin plugin"),
        ("active = yes\npath = /sbin/x\ntype = builtin", "/sbin/x is no builtin plugin"),
        ("active = yes\npath = builtin_af_unix", "the socket has no path"),
        ("active = yes\npath = builtin_af_unix\nargs = 0999 /x", "0999 is not a mode"),
        ("active = yes\npath = builtin_af_unix\nargs = 0600 x", "neither a mode nor an absolute path"),
    ] {
        let error = parsed(text).expect_err(text);
        assert!(error.starts_with("/p/my.conf") && error.contains(expected), "{text}: {error}");
    }
    let long = format!("args = {}", "x".repeat(600));
    assert!(parsed(&long).is_err_and(|error| error.contains("at most 510")));
}

fn write(dir: &Path, name: &str, text: &str, mode: u32) -> PathBuf {
    let path = dir.join(name);
    std::fs::write(&path, text).expect("written");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("its mode");
    path
}

#[test]
fn only_files_that_root_alone_can_change_are_run() {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: files of plugins: needs root, who has to own them");
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let dir = dir.path();
    let program = write(dir, "program", "#!/bin/sh\n", 0o750);
    let conf = |program: &Path| format!("active = yes\npath = {}\n", program.display());
    write(dir, "b.conf", &conf(&program), 0o640);
    write(dir, "a.conf", &conf(&program), 0o640);
    write(dir, "a.conf.bak", "not a plugin", 0o640);
    write(dir, ".hidden.conf", "not a plugin", 0o640);
    write(dir, "README", "not a plugin", 0o640);
    let (plugins, errors) = load(dir).expect("a directory of plugins");
    let names: Vec<&str> = plugins.iter().map(|plugin| &*plugin.name).collect();
    assert_eq!((names, errors.len()), (vec!["a.conf", "b.conf"], 0));

    write(dir, "a.conf", &conf(&program), 0o660);
    write(dir, "b.conf", &conf(&write(dir, "open", "", 0o777)), 0o640);
    write(dir, "c.conf", &conf(&write(dir, "inert", "", 0o640)), 0o640);
    write(dir, "d.conf", &conf(Path::new("/nonexistent")), 0o640);
    std::fs::create_dir(dir.join("e.conf")).expect("a directory");
    write(dir, "f.conf", &"#\n".repeat(1 << 20), 0o640);
    let (plugins, errors) = load(dir).expect("a directory of plugins");
    assert_eq!(plugins, []);
    let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
    let expected = [
        "writable by group",
        "writable by group",
        "not executable",
        "cannot find the program",
        "not a regular file",
        "more than 1048576 bytes",
    ];
    assert_eq!(errors.len(), expected.len(), "{errors:?}");
    for (error, expected) in errors.iter().zip(expected) {
        assert!(error.contains(expected), "{error}: {expected}");
    }
    assert!(load(&dir.join("none")).is_ok_and(|(plugins, _)| plugins.is_empty()));
    assert!(load(&program).is_err());
}
