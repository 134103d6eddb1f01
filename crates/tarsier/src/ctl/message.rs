//! The text that `-m` logs.

/// The text between the quotes of `msg='…'`, as libaudit's `audit_log_user_message()` formats it.
pub(super) fn text(text: &str) -> String {
    let exe = std::env::current_exe().unwrap_or_default();
    let exe = exe.to_string_lossy();
    let terminal = terminal();
    let terminal = terminal.as_deref().unwrap_or("?");
    format!("text={text} exe=\"{exe}\" hostname=? addr=? terminal={terminal} res=success")
}

/// The terminal of standard input, without `/dev/`.
fn terminal() -> Option<String> {
    use std::io::IsTerminal;
    if !std::io::stdin().is_terminal() {
        return None;
    }
    let path = std::fs::read_link("/proc/self/fd/0").ok()?;
    Some(path.to_str()?.strip_prefix("/dev/")?.to_owned())
}
