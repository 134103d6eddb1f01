//! auditd.conf: what is accepted, what is refused, and the errors and notices about it.

use std::os::unix::fs::{symlink, PermissionsExt};
use std::path::Path;

use conf::{load, parse, Config, ConfigError, FailureAction, Flush, LoadOptions, LogFormat};
use conf::{MetricsAddress, NameFormat, Notice, Overload, SizeAction, SpaceLimit, Transport};

fn parsed(text: &str) -> (Config, Vec<Notice>) {
    let loaded = parse(text.as_bytes(), Path::new("auditd.conf")).unwrap_or_else(|e| panic!("{e}"));
    (loaded.config, loaded.notices)
}

fn refused(text: &str) -> String {
    match parse(text.as_bytes(), Path::new("auditd.conf")) {
        Err(error) => error.to_string(),
        Ok(loaded) => panic!("accepted: {:?}", loaded.config),
    }
}

/// The keys and values of the file that audit 3.0.9 ships, except for `log_group`.
const SHIPPED: &str = "\
#
# comment

local_events = yes
write_logs = yes
log_file = /var/log/audit/audit.log
log_group = root
log_format = ENRICHED
flush = INCREMENTAL_ASYNC
freq = 50
max_log_file = 8
num_logs = 5
priority_boost = 4
name_format = NONE
##name = mydomain
max_log_file_action = ROTATE
space_left = 75
space_left_action = SYSLOG
verify_email = yes
action_mail_acct = root
admin_space_left = 50
admin_space_left_action = SUSPEND
disk_full_action = SUSPEND
disk_error_action = SUSPEND
use_libwrap = yes
##tcp_listen_port = 60
tcp_listen_queue = 5
tcp_max_per_addr = 1
##tcp_client_ports = 1024-65535
tcp_client_max_idle = 0
transport = TCP
krb5_principal = auditd
##krb5_key_file = /etc/audit/audit.key
distribute_network = no
q_depth = 2000
overflow_action = SYSLOG
max_restarts = 10
plugin_dir = /etc/audit/plugins.d
end_of_event_timeout = 2
";

#[test]
fn shipped_file_gives_the_defaults_and_nothing_to_say() {
    let (mut config, notices) = parsed(SHIPPED);
    assert_eq!(notices, []);
    assert_eq!(
        config.network.krb5_principal.take().as_deref(),
        Some("auditd")
    );
    assert_eq!(config, Config::default());
}

#[test]
fn every_file_of_the_distribution_is_accepted() {
    let Some(peers) = testkit::peers("the distribution's auditd.conf") else {
        return;
    };
    let path = peers.join("etc/audit/auditd.conf");
    let text = std::fs::read(&path).unwrap();
    let loaded = parse(&text, &path).unwrap();
    assert_eq!(loaded.notices, []);
    assert_eq!(loaded.config.flush, Flush::IncrementalAsync);
    assert_eq!(loaded.config.log_group.name, "adm");
}

#[test]
fn absent_keys_have_auditd_s_built_in_values() {
    assert_eq!(parsed(""), (Config::unset(), vec![]));
    let (config, _) = parsed("num_logs = 3\n");
    assert_eq!(config.num_logs, 3);
    assert_eq!(config.flush, Flush::None);
    assert_eq!(config.max_log_file_action, SizeAction::Ignore);
    assert_eq!(config.disk_error_action, FailureAction::Syslog);
    assert_eq!(config.space_left, SpaceLimit::Mib(0));
}

#[test]
fn case_of_keys_and_keywords_does_not_matter_and_later_lines_win() {
    let (config, _) = parsed("FLUSH = Data\nFluSH  =  sYnC\n  Log_Format = raw\n");
    assert_eq!(config.flush, Flush::Sync);
    assert_eq!(config.log_format, LogFormat::Raw);
}

#[test]
fn tarsier_s_own_format_is_accepted() {
    assert_eq!(parsed("log_format = JSON\n").0.log_format, LogFormat::Json);
}

#[test]
fn values_of_every_kind_are_typed() {
    let (config, _) = parsed(
        "space_left = 20%\nadmin_space_left = 5%\nmax_log_file_action = keep_logs\n\
         max_log_file = 100\ntcp_client_ports = 1024-2000\ntransport = TLS\n\
         tls_psk_file = /etc/audit/psk\nreport_interval = 2h\nname_format = user\nname = box-7\n\
         log_group = 4\nspace_left_action = EXEC /bin/sh\ntcp_listen_port = 60\n",
    );
    assert_eq!(config.space_left, SpaceLimit::Percent(20));
    assert_eq!(config.admin_space_left, SpaceLimit::Percent(5));
    assert_eq!(config.max_log_file_action, SizeAction::KeepLogs);
    assert_eq!(config.network.tcp_client_ports, (1024, 2000));
    assert_eq!(config.network.transport, Transport::Tls);
    assert_eq!(
        config.network.tls,
        [("tls_psk_file", "/etc/audit/psk".into())]
    );
    assert_eq!(config.network.tcp_listen_port, Some(60));
    assert_eq!(config.report_interval_s, 7200);
    assert_eq!(config.name_format, NameFormat::User);
    assert_eq!(config.node_name().unwrap().as_deref(), Some("box-7"));
    assert_eq!(
        (config.log_group.gid, config.log_group.may_read()),
        (4, true)
    );
    let program = FailureAction::Exec("/bin/sh".into());
    assert_eq!(config.space_left_action, program);
}

#[test]
fn what_is_not_honoured_is_said_with_its_line() {
    let (config, notices) = parsed(
        "space_left = 75\nspace_left_action = email\nadmin_space_left_action = HALT\n\
         tcp_listen_port = 60\nname_format = FQD\nlog_format = NOLOG\ndisp_qos = lossy\n\
         disk_full_action = syslog now\n",
    );
    assert_eq!(config.space_left_action, FailureAction::Email);
    assert!(!config.write_logs);
    let texts: Vec<String> = notices.iter().map(Notice::to_string).collect();
    let expected = [
        "auditd.conf:4: tcp_listen_port = 60: not honoured yet: Tarsier does not listen",
        "auditd.conf:6: log_format = NOLOG is deprecated: taken as write_logs = no",
        "auditd.conf:7: disp_qos is deprecated and ignored",
        "auditd.conf:8: \"now\" after syslog is ignored",
    ];
    assert_eq!(texts.len(), expected.len(), "{texts:#?}");
    for (text, start) in texts.iter().zip(expected) {
        assert!(text.starts_with(start), "{text}");
    }
}

#[test]
fn settings_that_do_nothing_are_said() {
    let (_, notices) = parsed("max_log_file_action = ROTATE\nnum_logs = 1\nflush = sync\nfreq = 5");
    let keys: Vec<&str> = notices.iter().map(|notice| notice.key).collect();
    assert_eq!(keys, ["freq", "num_logs", "max_log_file"]);
}

#[test]
fn a_line_that_auditd_would_skip_is_skipped_and_said() {
    let long = format!("num_logs = 4{}\nnum_logs = 3\n", " ".repeat(147));
    let (config, notices) = parsed(&long);
    assert_eq!(config.num_logs, 3);
    assert_eq!(notices.len(), 1);
    assert!(notices[0]
        .to_string()
        .starts_with("auditd.conf:1: line of 159 bytes skipped"));
    let fits = format!("num_logs = 4{}\n", " ".repeat(146));
    assert_eq!(parsed(&fits).0.num_logs, 4);
}

/// Asserts that the first text of each pair is refused with an error that contains the second.
fn are_refused(cases: &[(&str, &str)]) {
    for (text, expected) in cases {
        let message = refused(text);
        assert!(message.contains(expected), "{text:?} gave: {message}");
    }
}

#[test]
fn errors_name_place_expectation_and_nearest_name() {
    are_refused(&[
        (
            "\nflus = data\n",
            "auditd.conf:2: unknown keyword \"flus\" (did you mean flush?)",
        ),
        (
            "flush = syncc",
            "auditd.conf:1: flush = syncc: no such word; expected one of none ",
        ),
        ("flush = syncc", "(did you mean sync?)"),
        (
            "freq=50",
            "auditd.conf:1: no `=` after \"freq=50\"; expected `key = value` with blanks",
        ),
        ("freq =", "freq has no value"),
        ("freq 50 = 1", "\"50\" where the `=` after \"freq\" belongs"),
        ("freq = 5 # often", "\"#\" after the value of freq"),
        (
            "freq\t= 5",
            "belongs (a tab does not separate words); expected",
        ),
        (
            "freq\t = 5",
            "unknown keyword \"freq\\t\" (did you mean freq?)",
        ),
    ]);
    let error = parse(b"name = \xff\n", Path::new("f")).unwrap_err();
    assert!(matches!(error, ConfigError::Syntax { .. }));
}

#[test]
fn values_that_a_key_does_not_take_are_refused() {
    are_refused(&[
        (
            "freq = -1",
            "not a number of digits only; expected a whole number from 0 to 2147483647",
        ),
        ("freq = 99999999999999999999", "too large"),
        ("num_logs = 1000", "expected a whole number from 0 to 999"),
        (
            "tcp_listen_port = 0",
            "too small; expected a whole number from 1 to 65535",
        ),
        ("tcp_client_ports = 9-8", "the range is reversed"),
        (
            "space_left = 100%",
            "expected a size in MiB, or a percentage from 0% to 99%",
        ),
        ("space_left = %", "neither a number nor a percentage"),
        ("log_file = audit.log", "not an absolute file name"),
        ("log_group = no-such-group", "no such group"),
        (
            "disk_full_action = email",
            "disk_full_action = email: no such word",
        ),
        (
            "disk_error_action = rotate",
            "disk_error_action = rotate: no such word",
        ),
        ("disk_full_action = exec", "the program is missing"),
        ("disk_full_action = exec sh", "sh is not absolute"),
        ("action_mail_acct = root@host", "not a mail address"),
        ("report_interval = 41d", "too long"),
        ("overload = wait", "no such word"),
        ("urgent_keys = a,,b", "a key is empty"),
        ("rate_budgets = a", "no key with a number: a"),
        ("rate_budgets = a:1,:2", "no key with a number: :2"),
        ("rate_budgets = a:0", "no such number: 0"),
        ("rate_budgets = a:+7", "no such number: +7"),
        ("rate_budgets = a:4294967296", "no such number: 4294967296"),
        ("rate_budgets = a:1,a:2", "a twice"),
        ("label_keys = a", "no key with a label: a"),
        ("label_keys = :b", "no key with a label: :b"),
        ("label_keys = a:", "no such label: "),
        ("label_keys = a:b\"", "no such label: b\""),
        ("label_keys = a:b,a:b", "a:b twice"),
        (
            "metrics = 0.0.0.0:9100",
            "neither a Unix socket nor a loopback port",
        ),
        ("metrics = 127.0.0.1:0", "no such port"),
    ]);
}

#[test]
fn values_that_contradict_each_other_are_refused() {
    are_refused(&[
        (
            "space_left = 50\nadmin_space_left = 50",
            "space_left (50) is not larger than admin_",
        ),
        ("flush = incremental", "flush is incremental but freq is 0"),
        (
            "name_format = user",
            "name_format is USER but name is not set",
        ),
        (
            "log_group = 4\nlog_file = /var/log/a.log",
            "directly in /var/log",
        ),
    ]);
}

#[test]
fn only_a_file_that_root_alone_controls_is_loaded() {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: needs root to own files as root");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("auditd.conf");
    let why = |path: &Path| load(path, LoadOptions::default()).unwrap_err().to_string();

    let loaded = load(&path, LoadOptions::default()).unwrap();
    assert_eq!(
        loaded.config,
        Config::default(),
        "no file: the shipped values"
    );

    std::fs::write(&path, "num_logs = 7\n").unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).unwrap();
    let loaded = load(&path, LoadOptions::default()).unwrap();
    assert_eq!(loaded.config.num_logs, 7);

    let link = dir.path().join("link");
    symlink(&path, &link).unwrap();
    assert!(
        why(&link).contains("symbolic links are not followed"),
        "{}",
        why(&link)
    );
    let follow = LoadOptions { allow_links: true };
    assert_eq!(load(&link, follow).unwrap().config.num_logs, 7);

    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o646)).unwrap();
    assert!(why(&path).contains("writable by group or others (mode 0646)"));
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
    std::os::unix::fs::chown(&path, Some(1234), None).unwrap();
    assert!(why(&path).contains("owned by uid 1234, not by root"));
    assert!(why(dir.path()).contains("not a regular file"));
}

#[test]
fn a_program_for_exec_has_to_be_root_s_and_executable() {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: needs root to own files as root");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("act");
    std::fs::write(&program, "#!/bin/sh\n").unwrap();
    let config = dir.path().join("auditd.conf");
    std::fs::write(
        &config,
        format!("disk_full_action = exec {}\n", program.display()),
    )
    .unwrap();
    let outcome = |mode| {
        std::fs::set_permissions(&program, PermissionsExt::from_mode(mode)).unwrap();
        load(&config, LoadOptions::default())
    };
    let message = outcome(0o644).unwrap_err().to_string();
    assert!(message.contains("not executable (mode 0644)"), "{message}");
    assert!(
        message.contains("; expected EXEC and the absolute path"),
        "{message}"
    );
    let message = outcome(0o700).unwrap_err().to_string();
    assert!(message.contains("has mode 0700; expected"), "{message}");
    assert!(outcome(0o777).is_err());
    let loaded = outcome(0o750).unwrap();
    assert_eq!(loaded.config.disk_full_action, FailureAction::Exec(program));
}

mod hostile {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_bytes_make_the_parser_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = parse(&bytes, Path::new("f"));
        }

        #[test]
        fn no_value_of_a_known_key_makes_the_parser_panic(
            key in "(space_left|tcp_client_ports|report_interval|log_group|log_file|num_logs|\
                    disk_full_action|action_mail_acct|log_format)",
            value in "\\PC{0,12}",
            option in "\\PC{0,6}",
        ) {
            let _ = parse(format!("{key} = {value} {option}").as_bytes(), Path::new("f"));
        }
    }
}

#[test]
fn what_happens_under_overload_and_which_keys_are_urgent_is_read() {
    let (config, notices) = parsed("overload = DROP\nurgent_keys = identity,time-change\n");
    assert_eq!(config.overload, Overload::Drop);
    assert_eq!(config.urgent_keys, ["identity", "time-change"]);
    assert!(notices.is_empty());
    let (config, _) = parsed("");
    assert_eq!(config.overload, Overload::Throttle);
    assert!(config.urgent_keys.is_empty());
}

#[test]
fn budgets_are_read_by_key_which_may_have_colons() {
    let (config, notices) = parsed("rate_budgets = b32:time:5,access:4294967295\n");
    let budgets = [("access", u32::MAX), ("b32:time", 5)];
    let budgets = budgets.map(|(key, rate)| (key.to_owned(), rate));
    assert_eq!(config.rate_budgets, budgets.into());
    assert!(notices.is_empty());
    assert!(parsed("").0.rate_budgets.is_empty());
}

#[test]
fn metrics_are_off_or_on_this_host_only() {
    assert_eq!(parsed("").0.metrics, None);
    assert_eq!(parsed("metrics = OFF\n").0.metrics, None);
    assert_eq!(
        parsed("metrics = 127.0.0.1:9477\n").0.metrics,
        Some(MetricsAddress::Loopback(9477))
    );
    assert_eq!(
        parsed("metrics = unix:/run/tarsier/metrics.sock\n")
            .0
            .metrics,
        Some(MetricsAddress::Unix("/run/tarsier/metrics.sock".into()))
    );
}

/// The outcome of a line of the file.
enum Outcome {
    /// The line changes the configuration, or sets the value that it has anyway, without a notice.
    Honoured,
    /// The line is accepted with a notice that contains this text.
    Says(&'static str),
}

/// Every key of auditd.conf(5), and the ones that audit 4.x and Tarsier add, with a value that is
/// not the default.
const EVERY_KEY: &[(&str, &str, Outcome)] = {
    use Outcome::{Honoured, Says};
    const LISTENER: Outcome = Says("Tarsier does not listen for events of other hosts");
    &[
        (
            "local_events",
            "no",
            Says("this host's events are always read"),
        ),
        ("log_file", "/var/log/other/audit.log", Honoured),
        ("write_logs", "no", Honoured),
        ("log_format", "RAW", Honoured),
        ("log_format", "JSON", Honoured),
        ("log_format", "COMPACT", Honoured),
        (
            "log_format",
            "NOLOG",
            Says("deprecated: taken as write_logs = no"),
        ),
        ("log_group", "4", Honoured),
        ("priority_boost", "7", Honoured),
        ("flush", "SYNC", Honoured),
        ("flush", "DATA", Honoured),
        ("freq", "77", Honoured),
        ("num_logs", "9", Honoured),
        ("name_format", "HOSTNAME", Honoured),
        ("name_format", "FQD", Honoured),
        ("name_format", "NUMERIC", Honoured),
        ("name", "box", Honoured),
        ("max_log_file", "80", Honoured),
        ("max_log_file_action", "KEEP_LOGS", Honoured),
        ("verify_email", "no", Honoured),
        ("action_mail_acct", "admin", Honoured),
        ("space_left", "30%", Honoured),
        ("space_left_action", "EMAIL", Honoured),
        ("space_left_action", "EXEC /bin/sh", Honoured),
        ("admin_space_left", "2", Honoured),
        ("admin_space_left_action", "SINGLE", Honoured),
        ("admin_space_left_action", "HALT", Honoured),
        ("disk_full_action", "ROTATE", Honoured),
        ("disk_full_action", "HALT", Honoured),
        ("disk_error_action", "SINGLE", Honoured),
        ("tcp_listen_port", "60", LISTENER),
        ("tcp_listen_queue", "6", LISTENER),
        ("tcp_max_per_addr", "2", LISTENER),
        ("use_libwrap", "no", LISTENER),
        ("tcp_client_ports", "1024-65535", LISTENER),
        ("tcp_client_max_idle", "5", LISTENER),
        ("transport", "KRB5", LISTENER),
        ("enable_krb5", "yes", LISTENER),
        ("krb5_principal", "other", LISTENER),
        ("krb5_key_file", "/etc/other", LISTENER),
        ("distribute_network", "yes", LISTENER),
        ("end_of_event_timeout", "3", Honoured),
        (
            "report_interval",
            "1h",
            Says("no state report is written by itself"),
        ),
        (
            "dispatcher",
            "/sbin/audispd",
            Says("deprecated and ignored, as in auditd"),
        ),
        (
            "disp_qos",
            "lossy",
            Says("deprecated and ignored, as in auditd"),
        ),
        ("identity", "yes", Honoured),
        ("identity", "no", Honoured),
        ("seal", "yes", Honoured),
        ("compress_rotated", "yes", Honoured),
        ("index_rotated", "yes", Honoured),
        ("q_depth", "100", Honoured),
        ("overflow_action", "suspend", Honoured),
        ("max_restarts", "3", Honoured),
        ("plugin_dir", "/etc/tarsier/plugins.d", Honoured),
    ]
};

#[test]
fn every_key_is_honoured_or_answered_precisely() {
    for (key, value, outcome) in EVERY_KEY {
        let loaded = parsed(&format!(
            "max_log_file = 8\nfreq = 50\nspace_left = 75\n{key} = {value}\n"
        ));
        let (base, _) = parsed("max_log_file = 8\nfreq = 50\nspace_left = 75\n");
        let (config, notices) = loaded;
        let of_key: Vec<&Notice> = notices.iter().filter(|n| n.key == *key).collect();
        match outcome {
            Outcome::Honoured => {
                assert_eq!(of_key, Vec::<&Notice>::new(), "{key} = {value}");
                assert_ne!(config, base, "{key} = {value} changes nothing");
            }
            Outcome::Says(text) => {
                let said: Vec<String> = of_key.iter().map(|n| n.to_string()).collect();
                assert!(said.len() == 1 && said[0].contains(text), "{key}: {said:?}");
                assert!(said[0].contains("auditd.conf:4: "), "{said:?}");
            }
        }
    }
}

#[test]
fn every_key_of_the_manual_page_is_in_the_list_above() {
    let Some(peers) = testkit::peers("keys of auditd.conf(5)") else {
        return;
    };
    let page = peers.join("usr/share/man/man5/auditd.conf.5.gz");
    let page = std::process::Command::new("zcat")
        .arg(page)
        .output()
        .unwrap();
    let page = String::from_utf8_lossy(&page.stdout).into_owned();
    let lines: Vec<&str> = page.lines().collect();
    let keys: Vec<&str> = lines
        .windows(2)
        .filter(|pair| pair[0] == ".TP")
        .filter_map(|pair| pair[1].strip_prefix(".I "))
        .filter(|key| !key.contains(['/', ' ']))
        .collect();
    assert!(keys.len() > 30, "{keys:?}");
    for key in keys {
        let is_listed = EVERY_KEY.iter().any(|(name, ..)| *name == key);
        assert!(is_listed, "{key}");
    }
}

#[test]
fn capture_is_pinned_where_pin_dir_says_and_nowhere_by_default() {
    assert_eq!(parsed("").0.pin_dir, None);
    assert_eq!(parsed("pin_dir = Off\n").0.pin_dir, None);
    let (config, notices) = parsed("pin_dir = /sys/fs/bpf/tarsier\n");
    let expected = std::path::Path::new("/sys/fs/bpf/tarsier");
    assert_eq!(config.pin_dir.as_deref(), Some(expected));
    assert!(notices.is_empty());
    assert!(parse(b"pin_dir = tarsier\n", std::path::Path::new("f")).is_err());
}

#[test]
fn a_configuration_of_an_earlier_version_is_accepted() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/versions");
    let files = std::fs::read_dir(dir).expect("the directory");
    for file in files {
        let text = std::fs::read_to_string(file.expect("an entry").path()).expect("a file");
        let (config, _) = parsed(&text);
        assert_eq!(config.log_file, Path::new("/var/log/audit/audit.log"));
        assert!(config.pin_dir.is_some());
    }
}

#[test]
fn a_key_of_a_later_version_is_refused_with_its_place_and_name() {
    let text = format!("{SHIPPED}a_key_of_tomorrow = 3\n");
    let line = text.lines().count();
    let said = refused(&text);
    assert!(
        said.starts_with(&format!("auditd.conf:{line}"))
            && said.contains("unknown keyword \"a_key_of_tomorrow\""),
        "{said}"
    );
}
