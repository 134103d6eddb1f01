//! Arguments that all commands with options of audit's programs share: words as text, and `--dialect`.

use anyhow::Result;
use query::Dialect;
use std::ffi::OsString;

/// The arguments as text.
///
/// # Errors
/// One is not UTF-8.
pub(crate) fn words(args: Vec<OsString>) -> Result<Vec<String>> {
    let text = |word: OsString| {
        word.into_string()
            .map_err(|word| anyhow::anyhow!("{}: not UTF-8", word.to_string_lossy()))
    };
    args.into_iter().map(text).collect()
}

/// Takes `--dialect 3` or `--dialect 4` from the beginning. `command` and `peer` are the names for the message.
///
/// # Errors
/// The message for another dialect.
pub(crate) fn take<'w>(
    words: &'w [String],
    command: &str,
    peer: &str,
) -> Result<(Dialect, &'w [String]), String> {
    let [option, rest @ ..] = words else {
        return Ok((Dialect::Own, words));
    };
    if option != "--dialect" {
        return Ok((Dialect::Own, words));
    }
    match rest {
        [version, rest @ ..] if version == "3" => Ok((Dialect::Three, rest)),
        [version, rest @ ..] if version == "4" => Ok((Dialect::Four, rest)),
        _ => Err(format!(
            "tarsier: {command}: --dialect: expected 3 or 4, for {peer} 3.0.9 or 4.0.2"
        )),
    }
}
