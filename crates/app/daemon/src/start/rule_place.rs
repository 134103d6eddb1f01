//! The place of a rule that is at fault.

use plan::tables::TooLarge;
use rules::Rule;

/// The error for rules that cannot be planned, as `FILE:LINE: WHY`.
pub fn too_large(error: &TooLarge, rules: &[Rule]) -> anyhow::Error {
    let rule = error.rule().and_then(|place| rules.get(place as usize));
    let place = rule.map(|rule| rule.source.place());
    let error = anyhow::Error::new(error.clone());
    match place.filter(|place| !place.is_empty()) {
        Some(place) => error.context(place),
        None => error,
    }
}

/// The place and text of a rule that the kernel refused, as `FILE:LINE: RULE`. `bytes` is its
/// binary form.
pub(crate) fn refused_rule(bytes: &[u8], rules: &[Rule]) -> String {
    let known = rules.iter().find(|rule| rules::to_kernel(rule) == bytes);
    match (known, rules::from_kernel(bytes)) {
        (Some(rule), _) => format!("{}: {}", rule.source.place(), rule.to_string().trim()),
        (None, Ok(rule)) => rule.to_string().trim().to_owned(),
        (None, Err(_)) => "a rule".to_owned(),
    }
}
