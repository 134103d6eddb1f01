//! The keys of auditd.conf: those of audit 3.0.9, those that 4.x added, and Tarsier's own.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use crate::context::Context;
use crate::error::ConfigError;
use crate::values::{
    absolute_path, duration_s, error_action, full_action, group, number, port_range, program,
    space_action, space_limit, word, yes_no,
};
use crate::{
    Config, Confinement, ExeHash, Flush, LogFormat, MetricsAddress, NameFormat, OverflowAction,
    Overload, RulesError, SizeAction, Transport,
};

type Apply = fn(&mut Config, &mut Context<'_>) -> Result<(), ConfigError>;

/// A key of the file.
pub(super) struct Key {
    pub(super) name: &'static str,
    /// Whether a second word may follow the value.
    pub(super) takes_option: bool,
    /// auditd's default, for which no notice is given.
    pub(super) auditd_default: &'static str,
    /// Behaviour instead, for a key that Tarsier does not honour yet.
    pub(super) not_honoured: Option<&'static str>,
    pub(super) apply: Apply,
}

const fn key(name: &'static str, apply: Apply) -> Key {
    Key {
        name,
        takes_option: false,
        auditd_default: "",
        not_honoured: None,
        apply,
    }
}

/// A key with an action, which may be `EXEC /path`.
const fn action(name: &'static str, apply: Apply) -> Key {
    Key {
        takes_option: true,
        ..key(name, apply)
    }
}

/// A key whose value is checked and stored but has no effect yet.
const fn later(
    name: &'static str,
    auditd_default: &'static str,
    instead: &'static str,
    apply: Apply,
) -> Key {
    Key {
        auditd_default,
        not_honoured: Some(instead),
        ..key(name, apply)
    }
}

const NO_LISTENER: &str = "Tarsier does not listen for events of other hosts";

/// Every key, in the order of auditd.conf(5) as shipped.
pub(super) const KEYS: &[Key] = &[
    later(
        "local_events",
        "yes",
        "this host's events are always read",
        |c, x| yes_no(x).map(|yes| c.local_events = yes),
    ),
    key("write_logs", |c, x| yes_no(x).map(|yes| c.write_logs = yes)),
    key("log_file", |c, x| {
        absolute_path(x).map(|path| c.log_file = path)
    }),
    key("log_format", log_format),
    // Tarsier's own keys.
    key("identity", |c, x| {
        yes_no(x).map(|yes| c.identity = Some(yes))
    }),
    key("exe_hash", |c, x| {
        word(x, EXE_HASH).map(|hash| c.exe_hash = hash)
    }),
    key("exe_hash_max", |c, x| {
        number(x, 1..=4096).map(|n| c.exe_hash_max_mib = n)
    }),
    key("seal", |c, x| yes_no(x).map(|yes| c.seal = yes)),
    key("compress_rotated", |c, x| {
        yes_no(x).map(|yes| c.compress_rotated = yes)
    }),
    key("index_rotated", |c, x| {
        yes_no(x).map(|yes| c.index_rotated = yes)
    }),
    key("log_group", |c, x| {
        group(x).map(|group| c.log_group = group)
    }),
    key("flush", |c, x| {
        word(x, Flush::NAMES).map(|flush| c.flush = flush)
    }),
    key("freq", |c, x| {
        number(x, 0..=INT_MAX).map(|n| c.freq = n as u32)
    }),
    key("num_logs", |c, x| {
        number(x, 0..=999).map(|n| c.num_logs = n as u32)
    }),
    key("name_format", name_format),
    key("name", |c, x| {
        c.name = Some(x.value.to_owned());
        Ok(())
    }),
    // A limit whose size in bytes exceeds 64 bits is refused; auditd accepts it.
    key("max_log_file", |c, x| {
        number(x, 0..=u64::MAX >> 20).map(|n| c.max_log_file_mib = n)
    }),
    action("max_log_file_action", size_action),
    key("space_left", |c, x| {
        space_limit(x).map(|limit| c.space_left = limit)
    }),
    action("space_left_action", |c, x| {
        space_action(x).map(|action| c.space_left_action = action)
    }),
    key("verify_email", |c, x| {
        yes_no(x).map(|yes| c.verify_email = yes)
    }),
    key("action_mail_acct", mail_account),
    key("admin_space_left", |c, x| {
        space_limit(x).map(|limit| c.admin_space_left = limit)
    }),
    action("admin_space_left_action", |c, x| {
        space_action(x).map(|action| c.admin_space_left_action = action)
    }),
    action("disk_full_action", |c, x| {
        full_action(x).map(|action| c.disk_full_action = action)
    }),
    action("disk_error_action", |c, x| {
        error_action(x).map(|action| c.disk_error_action = action)
    }),
    key("priority_boost", |c, x| {
        number(x, 0..=INT_MAX).map(|n| c.priority_boost = n as u32)
    }),
    later("tcp_listen_port", "", NO_LISTENER, |c, x| {
        number(x, 1..=65535).map(|n| c.network.tcp_listen_port = Some(n as u16))
    }),
    later("tcp_listen_queue", "5", NO_LISTENER, |c, x| {
        number(x, 1..=65535).map(|n| c.network.tcp_listen_queue = n as u16)
    }),
    later("tcp_max_per_addr", "1", NO_LISTENER, |c, x| {
        number(x, 1..=1024).map(|n| c.network.tcp_max_per_addr = n as u16)
    }),
    later("use_libwrap", "yes", NO_LISTENER, |c, x| {
        yes_no(x).map(|yes| c.network.use_libwrap = yes)
    }),
    later("tcp_client_ports", "0-65535", NO_LISTENER, |c, x| {
        port_range(x).map(|range| c.network.tcp_client_ports = range)
    }),
    later("tcp_client_max_idle", "0", NO_LISTENER, |c, x| {
        number(x, 0..=INT_MAX).map(|n| c.network.tcp_client_max_idle_s = n as u32)
    }),
    later("transport", "tcp", NO_LISTENER, |c, x| {
        word(x, TRANSPORT).map(|transport| c.network.transport = transport)
    }),
    later("enable_krb5", "no", NO_LISTENER, |c, x| {
        if yes_no(x)? {
            c.network.transport = Transport::Krb5;
        }
        Ok(())
    }),
    later("krb5_principal", "auditd", NO_LISTENER, |c, x| {
        c.network.krb5_principal = Some(x.value.to_owned());
        Ok(())
    }),
    later(
        "krb5_key_file",
        "/etc/audit/audit.key",
        NO_LISTENER,
        |c, x| {
            c.network.krb5_key_file = Some(PathBuf::from(x.value));
            Ok(())
        },
    ),
    later("tls_auth", "psk", NO_LISTENER, |c, x| {
        word(x, &[("psk", ())]).map(|()| tls(c, x))
    }),
    later("tls_crypto_profile", "compatible", NO_LISTENER, |c, x| {
        word(x, &[("compatible", ()), ("system", ()), ("pqc", ())]).map(|()| tls(c, x))
    }),
    later("tls_psk_file", "", NO_LISTENER, |c, x| {
        absolute_path(x).map(|_| tls(c, x))
    }),
    later("tls_psk_identity", "", NO_LISTENER, tls_text),
    later("tls_allowed_clients", "", NO_LISTENER, |c, x| {
        absolute_path(x).map(|_| tls(c, x))
    }),
    later("tls_cipher_suites", "", NO_LISTENER, tls_text),
    later("tls_key_exchange", "", NO_LISTENER, tls_text),
    later("tls_require_pqc", "no", NO_LISTENER, |c, x| {
        yes_no(x).map(|_| tls(c, x))
    }),
    later("distribute_network", "no", NO_LISTENER, |c, x| {
        yes_no(x).map(|yes| c.network.distribute_network = yes)
    }),
    key("q_depth", |c, x| {
        number(x, 0..=99_999).map(|n| c.plugins.q_depth = n as u32)
    }),
    key("overflow_action", |c, x| {
        word(x, OVERFLOW).map(|action| c.plugins.overflow_action = action)
    }),
    key("max_restarts", |c, x| {
        number(x, 0..=INT_MAX).map(|n| c.plugins.max_restarts = n as u32)
    }),
    key("plugin_dir", |c, x| {
        c.plugins.plugin_dir = PathBuf::from(x.value);
        Ok(())
    }),
    // Only ausearch and aureport use it.
    key("end_of_event_timeout", |c, x| {
        number(x, 0..=u64::MAX).map(|n| c.end_of_event_timeout_s = n)
    }),
    later(
        "report_interval",
        "0",
        "no state report is written by itself",
        |c, x| duration_s(x, 40 * 86_400).map(|seconds| c.report_interval_s = seconds),
    ),
    key("dispatcher", deprecated),
    key("disp_qos", deprecated),
    // Tarsier's own keys.
    key("io_uring_twins", |c, x| {
        yes_no(x).map(|yes| c.io_uring_twins = yes)
    }),
    key("objects_before", |c, x| {
        yes_no(x).map(|yes| c.objects_before = yes)
    }),
    key("overload", |c, x| {
        word(x, OVERLOAD).map(|overload| c.overload = overload)
    }),
    key("urgent_keys", urgent_keys),
    key("rate_budgets", rate_budgets),
    key("label_keys", label_keys),
    key("pin_dir", pin_dir),
    key("metrics", metrics),
    key("confinement", |c, x| {
        word(x, CONFINEMENT).map(|confinement| c.confinement = confinement)
    }),
    key("rules_error", |c, x| {
        word(x, RULES_ERROR).map(|choice| c.rules_error = choice)
    }),
];

const INT_MAX: u64 = i32::MAX as u64;

const OVERLOAD: &[(&str, Overload)] = &[("throttle", Overload::Throttle), ("drop", Overload::Drop)];

const EXE_HASH: &[(&str, ExeHash)] = &[("none", ExeHash::None), ("sha256", ExeHash::Sha256)];

const CONFINEMENT: &[(&str, Confinement)] = &[
    ("no", Confinement::No),
    ("yes", Confinement::Yes),
    ("strict", Confinement::Strict),
];

const RULES_ERROR: &[(&str, RulesError)] = &[
    ("refuse", RulesError::Refuse),
    ("last-good", RulesError::LastGood),
    ("skip", RulesError::Skip),
];

const TRANSPORT: &[(&str, Transport)] = &[
    ("tcp", Transport::Tcp),
    ("tls", Transport::Tls),
    ("krb5", Transport::Krb5),
];

const OVERFLOW: &[(&str, OverflowAction)] = &[
    ("ignore", OverflowAction::Ignore),
    ("syslog", OverflowAction::Syslog),
    ("suspend", OverflowAction::Suspend),
    ("single", OverflowAction::Single),
    ("halt", OverflowAction::Halt),
];

/// Keys separated by commas without blanks, since a second word would be an option.
fn urgent_keys(config: &mut Config, context: &mut Context<'_>) -> Result<(), ConfigError> {
    let keys: Vec<&str> = context.value.split(',').collect();
    if keys.iter().any(|key| key.is_empty()) {
        return Err(context.refuse("a key is empty", "keys with one comma between them"));
    }
    config.urgent_keys = keys.into_iter().map(str::to_owned).collect();
    Ok(())
}

/// `KEY:N` separated by commas. A key may contain colons.
fn rate_budgets(config: &mut Config, context: &mut Context<'_>) -> Result<(), ConfigError> {
    let expected = "KEY:N with one comma between them, N from 1 to 4294967295";
    let mut budgets = BTreeMap::new();
    for text in context.value.split(',') {
        let parts = text.rsplit_once(':').filter(|(key, _)| !key.is_empty());
        let Some((key, rate)) = parts else {
            return Err(context.refuse(format!("no key with a number: {text}"), expected));
        };
        let is_number = rate.bytes().all(|byte| byte.is_ascii_digit());
        match rate
            .parse()
            .ok()
            .filter(|&rate: &u32| is_number && rate > 0)
        {
            Some(rate) if budgets.insert(key.to_owned(), rate).is_none() => (),
            Some(_) => return Err(context.refuse(format!("{key} twice"), expected)),
            None => return Err(context.refuse(format!("no such number: {rate}"), expected)),
        }
    }

    config.rate_budgets = budgets;
    Ok(())
}

/// Most labels: each is a bit of the composer's.
const LABELS_MAX: usize = 64;
/// Longest label, in bytes.
const LABEL_BYTES_MAX: usize = 64;

/// `KEY:LABEL` separated by commas. A key may contain colons.
fn label_keys(config: &mut Config, context: &mut Context<'_>) -> Result<(), ConfigError> {
    let expected = "KEY:LABEL with one comma between them, up to 64 labels of letters, digits, '.', '_' and '-'";
    let mut pairs: Vec<(String, String)> = Vec::new();
    for text in context.value.split(',') {
        let parts = text.rsplit_once(':').filter(|(key, _)| !key.is_empty());
        let Some((key, label)) = parts else {
            return Err(context.refuse(format!("no key with a label: {text}"), expected));
        };
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        let is_label = (1..=LABEL_BYTES_MAX).contains(&label.len()) && label.bytes().all(is_plain);
        if !is_label {
            return Err(context.refuse(format!("no such label: {label}"), expected));
        }
        let pair = (key.to_owned(), label.to_owned());
        if pairs.contains(&pair) {
            return Err(context.refuse(format!("{text} twice"), expected));
        }
        pairs.push(pair);
    }

    let labels: BTreeSet<&str> = pairs.iter().map(|(_, label)| label.as_str()).collect();
    if labels.len() > LABELS_MAX {
        return Err(context.refuse(format!("{} labels", labels.len()), expected));
    }

    config.label_keys = pairs;
    Ok(())
}

fn pin_dir(config: &mut Config, context: &mut Context<'_>) -> Result<(), ConfigError> {
    config.pin_dir = if context.value.eq_ignore_ascii_case("off") {
        None
    } else {
        Some(absolute_path(context)?)
    };
    Ok(())
}

/// Accepts loopback addresses only: the daemon's state must not be readable from the network.
fn metrics(config: &mut Config, context: &mut Context<'_>) -> Result<(), ConfigError> {
    let expected = "unix:/path, 127.0.0.1:PORT or off";
    let port = |text: &str| text.parse().ok().filter(|&port: &u16| port > 0);
    config.metrics = match context.value.split_once(':') {
        None if context.value.eq_ignore_ascii_case("off") => None,
        Some(("unix", path)) if path.starts_with('/') && !path.ends_with('/') => {
            Some(MetricsAddress::Unix(PathBuf::from(path)))
        }
        Some(("127.0.0.1" | "localhost", text)) => match port(text) {
            Some(port) => Some(MetricsAddress::Loopback(port)),
            None => return Err(context.refuse("no such port", expected)),
        },
        _ => return Err(context.refuse("neither a Unix socket nor a loopback port", expected)),
    };

    Ok(())
}

fn log_format(config: &mut Config, context: &mut Context<'_>) -> Result<(), ConfigError> {
    let table = [
        ("raw", Some(LogFormat::Raw)),
        ("enriched", Some(LogFormat::Enriched)),
        ("json", Some(LogFormat::Json)),
        ("compact", Some(LogFormat::Compact)),
        ("nolog", None),
    ];
    match word(context, &table)? {
        Some(format) => config.log_format = format,
        None => {
            config.write_logs = false;
            config.log_format = LogFormat::Raw;
            context.notice("log_format = NOLOG is deprecated: taken as write_logs = no".into());
        }
    }

    Ok(())
}

fn name_format(config: &mut Config, context: &mut Context<'_>) -> Result<(), ConfigError> {
    let table = [
        ("none", NameFormat::None),
        ("hostname", NameFormat::Hostname),
        ("fqd", NameFormat::Fqd),
        ("numeric", NameFormat::Numeric),
        ("user", NameFormat::User),
    ];
    config.name_format = word(context, &table)?;
    Ok(())
}

fn size_action(config: &mut Config, context: &mut Context<'_>) -> Result<(), ConfigError> {
    let table = [
        ("ignore", Some(&SizeAction::Ignore)),
        ("syslog", Some(&SizeAction::Syslog)),
        ("suspend", Some(&SizeAction::Suspend)),
        ("rotate", Some(&SizeAction::Rotate)),
        ("keep_logs", Some(&SizeAction::KeepLogs)),
        ("exec", None),
    ];

    config.max_log_file_action = match word(context, &table)? {
        Some(action) => action.clone(),
        None => SizeAction::Exec(program(context)?),
    };
    Ok(())
}

fn mail_account(config: &mut Config, context: &mut Context<'_>) -> Result<(), ConfigError> {
    let account = context.value;
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || b"@.-_".contains(&byte);
    let dot_after_at = match account.find('@') {
        Some(at) => account.rfind('.').is_some_and(|dot| dot > at),
        None => true,
    };
    if config.verify_email && !(account.len() > 1 && account.bytes().all(legal) && dot_after_at) {
        return Err(context.refuse(
            "not a mail address",
            "a local account, or an address with a dot after the @",
        ));
    }

    config.action_mail_acct = account.to_owned();
    Ok(())
}

fn tls(config: &mut Config, context: &Context<'_>) {
    let name = context.key;
    config.network.tls.retain(|(key, _)| *key != name);
    config.network.tls.push((name, context.value.to_owned()));
}

fn tls_text(config: &mut Config, context: &mut Context<'_>) -> Result<(), ConfigError> {
    tls(config, context);
    Ok(())
}

fn deprecated(_: &mut Config, context: &mut Context<'_>) -> Result<(), ConfigError> {
    let text = format!("{} is deprecated and ignored, as in auditd", context.key);
    context.notice(text);
    Ok(())
}
