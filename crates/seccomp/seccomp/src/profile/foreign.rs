//! Profiles in the languages of other programs, which are recognised and refused by name.

use super::ProfileError;
use serde_json::Value;

/// The error for a text in the language of another program; `None` if it is none.
pub(super) fn refusal(text: &str) -> Option<ProfileError> {
    let (place, kind) = recognise(text)?;
    Some(ProfileError::new(
        place,
        kind,
        "an OCI profile or config.json, a SeccompProfile of the security-profiles-operator, a \
         systemd unit, or lines such as `allow read write`",
        "compile it with its own program and give the filter (`tarsier seccomp disasm --pid` dumps \
         that of a process), or write it in one of these forms",
    ))
}

/// Words that begin a statement of kafel (src/lexer.l).
const KAFEL_WORDS: [&str; 13] = [
    "POLICY",
    "USE",
    "ALLOW",
    "LOG",
    "KILL",
    "KILL_THREAD",
    "KILL_PROCESS",
    "DENY",
    "ERRNO",
    "TRAP",
    "TRACE",
    "USER_NOTIF",
    "DEFAULT",
];

/// Place and kind of a text that is not ours.
fn recognise(text: &str) -> Option<(String, &'static str)> {
    if let Ok(document) = serde_json::from_str::<Value>(text) {
        let kind = match &document {
            Value::Object(_) if is_seccompiler(&document) => Some("JSON of seccompiler"),
            Value::Object(_) => None,
            _ => Some("JSON that is not an object"),
        };
        return kind.map(|kind| ("the profile".to_owned(), kind));
    }

    let lines = || {
        let numbered = text.lines().enumerate();
        let trimmed = numbered.map(|(index, line)| (index, line.trim()));
        trimmed.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
    };
    if let Some(kind) = lines().next().and_then(|_| lxc(text)) {
        return Some(("line 1".to_owned(), kind));
    }

    lines().find_map(|(index, line)| Some((format!("line {}", index + 1), kind_of(line)?)))
}

/// A thread's filter has these members (rust-vmm/seccompiler, json_format.md).
fn is_seccompiler(document: &Value) -> bool {
    let threads = document
        .as_object()
        .into_iter()
        .flat_map(|threads| threads.values());
    let has = |thread: &Value, name: &str| thread.get(name).is_some();
    threads.into_iter().any(|thread| {
        has(thread, "filter") && (has(thread, "filter_action") || has(thread, "match_action"))
    })
}

/// LXC: a version, and since version 2 the kind of list (lxc.container.conf(5)).
fn lxc(text: &str) -> Option<&'static str> {
    let mut lines = text.lines().map(str::trim);
    let is_version = matches!(lines.next()?, "1" | "2");
    let kind = lines.next()?.split_whitespace().next()?;
    let kinds = ["allowlist", "denylist", "whitelist", "blacklist"];
    (is_version && kinds.contains(&kind)).then_some("a policy of LXC")
}

fn kind_of(line: &str) -> Option<&'static str> {
    let mut words = line.split_whitespace();
    let (first, second) = (words.next()?, words.next());
    let is_name = |name: &str| {
        !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    };

    // `POLICY name {`, `ALLOW { read }`, `ERRNO(1) { mount }`, `USE name DEFAULT KILL`
    let action = first.split(['(', '{']).next().unwrap_or_default();
    if KAFEL_WORDS.contains(&action) {
        return Some("a policy of kafel");
    }

    let directive = first.split('.').next().unwrap_or_default();
    if matches!(directive, "seccomp" | "seccomp32") && !line.contains('=') {
        return Some("a profile of firejail");
    }
    if matches!(first, "@include" | "@frequency" | "@default") {
        return Some("a policy of minijail");
    }

    // `read: 1`, `ioctl: arg1 == 0x5401`, `openat: return ENOENT`, `{read, write}: allow`
    let is_group = |names: &str| names.starts_with('{') && names.ends_with('}');
    let ruled = line.split_once(':');

    if let Some((_, rule)) = ruled.filter(|(name, _)| is_name(name) || is_group(name)) {
        let rule = rule.trim();
        let words = [
            "arg",
            "return",
            "allow",
            "kill",
            "trap",
            "log",
            "user-notify",
        ];
        if rule == "1" || words.iter().any(|word| rule.starts_with(word)) {
            return Some("a policy of minijail");
        }
    }

    if matches!(first, "@unrestricted" | "@complain") {
        return Some("a profile of snap");
    }

    // `socket AF_UNIX`, `setpriority PRIO_PROCESS 0 <=19`, `~ioctl - TIOCSTI`
    let is_argument = |word: &str| {
        word == "-"
            || word.len() > 3
                && word
                    .bytes()
                    .all(|b| b.is_ascii_uppercase() || b"_0123456789|".contains(&b))
                && word.contains('_')
    };

    let name = first.strip_prefix('~').unwrap_or(first);

    (is_name(name) && second.is_some_and(is_argument)).then_some("a profile of snap")
}
