//! Arguments that all commands with options of audit's programs share: words as text, and `--compat`.

use anyhow::Result;
use query::time::{self, Bound};
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

/// The time that the one or two words behind `option` say (see [`time::of_words`]), and the number of these words. `rest`:
/// the words behind the option.
///
/// # Errors
/// The message for the user.
pub(crate) fn time_of(
    option: &str,
    rest: &[String],
    bound: Bound,
    dialect: Dialect,
) -> Result<(i64, usize), String> {
    let value = |index: usize| rest.get(index).filter(|word| !word.starts_with('-'));
    let Some(first) = value(0) else {
        return Err(format!("{option} requires either date and/or time"));
    };
    let second = value(1).map(String::as_str);
    let at_s = time::of_words(bound, first, second, dialect)?;
    Ok((at_s, 1 + usize::from(second.is_some())))
}

/// Takes `--compat` from the beginning.
pub(crate) fn take(args: Vec<OsString>) -> (Dialect, Vec<OsString>) {
    let is_compat = args.first().is_some_and(|first| first == "--compat");
    if is_compat {
        (Dialect::Compat, args.into_iter().skip(1).collect())
    } else {
        (Dialect::Own, args)
    }
}
