//! The text that `-m` logs.
//!
//! Source: audit_log_user_message() in audit-userspace lib/audit_logging.c.

use std::io::IsTerminal;
use std::os::unix::ffi::OsStrExt;

/// The text between the quotes of `msg='…'`, as libaudit's `audit_log_user_message()` formats it.
pub(super) fn text(text: &str) -> String {
    let terminal = terminal();
    let terminal = terminal.as_deref();
    let node = rustix::system::uname();
    let node = node.nodename().to_string_lossy();
    let exe = std::env::current_exe().unwrap_or_default();
    let mut shown = Vec::new();
    record::put::untrusted(&mut shown, exe.as_os_str().as_bytes());

    format!(
        "text={text} exe={} hostname={} addr=? terminal={} res=success",
        String::from_utf8_lossy(&shown),
        hostname(terminal, &node),
        terminal.unwrap_or("?"),
    )
}

/// The host's name, if `terminal` is that of a person: only then does libaudit give it.
fn hostname<'a>(terminal: Option<&str>, node: &'a str) -> &'a str {
    let is_person = |name: &str| {
        ["pts", "tty", "/dev/tty"]
            .iter()
            .any(|&of| name.starts_with(of))
    };
    if terminal.is_some_and(is_person) {
        node
    } else {
        "?"
    }
}

/// The terminal of standard input, output or error, the first that is one, without `/dev/`.
fn terminal() -> Option<String> {
    let are_terminals = [
        std::io::stdin().is_terminal(),
        std::io::stdout().is_terminal(),
        std::io::stderr().is_terminal(),
    ];
    let fd = are_terminals.iter().position(|&is_terminal| is_terminal)?;
    let path = std::fs::read_link(format!("/proc/self/fd/{fd}")).ok()?;
    let path = path.to_str()?;
    Some(path.strip_prefix("/dev/").unwrap_or(path).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_is_named_where_a_person_sits() {
        for terminal in ["pts/3", "tty1", "/dev/ttyS0"] {
            assert_eq!(hostname(Some(terminal), "here"), "here", "{terminal}");
        }
        for terminal in [None, Some("console"), Some("hvc0")] {
            assert_eq!(hostname(terminal, "here"), "?", "{terminal:?}");
        }
    }
}
