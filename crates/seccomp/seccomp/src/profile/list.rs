//! Plain lists: one rule per line.
//!
//! ```text
//! # Everything else fails with EPERM.
//! default errno:EPERM
//! allow @basic-io exit_group futex
//! allow socket a0==1 a1&0xf==1
//! errno:ENOSYS clone3
//! kill ptrace
//! ```
//!
//! A line has an action (`allow`, `log`, `deny`, `errno:NAME`, `trap`, `kill`, `kill-thread`), one
//! or more names or sets of systemd, and conditions that must all hold: `aN`, an operator
//! (`== != < <= > >=`) and a number; or `aN&MASK==VALUE`. Without an action, calls are allowed.
//! `deny` means `errno:EPERM`. Without a `default` line, other calls fail with EPERM if the list
//! allows anything, and are allowed otherwise.

use super::{systemd, words, Context, ProfileError};
use crate::policy::{AbiRules, Compare, Condition, Layer, Policy, Rule, RuleId};
use crate::{Action, Verdict};

/// Parses a list.
///
/// # Errors
/// The first word that cannot be honoured, and its line.
pub fn parse(text: &str, context: &Context) -> Result<Policy, ProfileError> {
    let mut default = None;
    let mut rules: Vec<(String, Vec<&str>, Rule)> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let place = format!("line {}", index + 1);
        let mut line_words = line
            .split('#')
            .next()
            .unwrap_or_default()
            .split_whitespace()
            .peekable();
        let Some(&first) = line_words.peek() else {
            continue;
        };
        if first == "default" {
            line_words.next();
            let action = line_words.next().and_then(self::action);
            default = Some((
                place.clone(),
                action.ok_or_else(|| {
                    ProfileError::new(&place, line.trim(), "default and an action", ACTIONS)
                })?,
            ));
            if let Some(rest) = line_words.next() {
                return Err(ProfileError::new(
                    place,
                    rest,
                    "the end of the line",
                    "use one line per rule",
                ));
            }
            continue;
        }
        let verdict = action(first);
        if verdict.is_some() {
            line_words.next();
        } else if first.contains(':') {
            return Err(ProfileError::new(place, first, "an action", ACTIONS));
        }
        let (names, conditions) = names_and_conditions(&place, line_words)?;
        let rule = Rule {
            conditions,
            verdict: verdict.unwrap_or(Verdict::ALLOW),
            id: RuleId(rules.len() as u32),
        };
        rules.push((place, names, rule));
    }

    if rules.is_empty() && default.is_none() {
        return Err(ProfileError::new(
            "the profile",
            "no rule",
            "JSON, a systemd unit, or lines such as `allow read write`",
            "write one rule at least; `default allow` permits everything",
        ));
    }

    Ok(policy(rules, default, context))
}

/// Makes a policy of one layer from rules with their places, names and verdicts.
fn policy(
    rules: Vec<(String, Vec<&str>, Rule)>,
    default: Option<(String, Verdict)>,
    context: &Context,
) -> Policy {
    let allows = rules
        .iter()
        .any(|row| row.2.verdict.action() >= Action::Log);
    let (place, default) = default.unwrap_or_else(|| {
        let implied = if allows { EPERM } else { Verdict::ALLOW };
        ("no default line".to_owned(), implied)
    });
    let mut layer = Layer::new("", default, Verdict::new(Action::KillThread, 0));
    layer.default_source = place;
    let family = context.native.family();
    layer.abis = family
        .iter()
        .map(|&abi| (abi, AbiRules::default()))
        .collect();
    let mut policy = Policy::default();
    for (place, names, rule) in rules {
        for name in names {
            for &abi in family {
                layer.add(abi, name, &rule);
            }
        }
        policy.sources.push(place);
    }

    policy.layers.push(layer);

    policy
}

const EPERM: Verdict = Verdict::new(Action::Errno, libc::EPERM as u16);

const ACTIONS: &str = "write allow, log, deny, errno:NAME, trap, kill or kill-thread";

fn action(word: &str) -> Option<Verdict> {
    Some(match word {
        "allow" => Verdict::ALLOW,
        "log" => Verdict::new(Action::Log, 0),
        "deny" => EPERM,
        "trap" => Verdict::new(Action::Trap, 0),
        "kill" => Verdict::new(Action::KillProcess, 0),
        "kill-thread" => Verdict::new(Action::KillThread, 0),
        _ => Verdict::new(Action::Errno, words::errno(word.strip_prefix("errno:")?)?),
    })
}

/// Splits words into names, with sets expanded, and conditions.
fn names_and_conditions<'a>(
    place: &str,
    line_words: impl Iterator<Item = &'a str>,
) -> Result<(Vec<&'a str>, Vec<Condition>), ProfileError> {
    let (mut names, mut conditions) = (Vec::new(), Vec::new());
    for word in line_words {
        if word.contains(['=', '<', '>']) {
            let condition = condition(word).ok_or_else(|| {
                ProfileError::new(
                    place,
                    word,
                    "a condition such as a0==1, a2>=0x10 or a1&0xff==3",
                    "write it without blanks, arguments as a0 to a5",
                )
            })?;
            if condition.constant() == Some(false) {
                return Err(ProfileError::new(
                    place,
                    word,
                    "a condition that can hold",
                    "no value satisfies it: correct the value or the mask",
                ));
            }
            conditions.push(condition);
        } else if let Some(members) = systemd::set(word) {
            names.extend(members);
        } else if word.starts_with('@') {
            return Err(systemd::unknown_set(place, word));
        } else if words::is_call(word) || words::is_foreign_call(word) {
            names.push(word);
        } else {
            return Err(words::unknown_call(place, word));
        }
    }

    if names.is_empty() {
        return Err(ProfileError::new(
            place,
            "no name",
            "a system call or a set",
            "name one",
        ));
    }

    Ok((names, conditions))
}

fn condition(word: &str) -> Option<Condition> {
    const OPERATORS: [(&str, Compare); 6] = [
        ("==", Compare::Eq),
        ("!=", Compare::Ne),
        ("<=", Compare::Le),
        (">=", Compare::Ge),
        ("<", Compare::Lt),
        (">", Compare::Gt),
    ];

    let (at, (sign, compare)) = OPERATORS
        .into_iter()
        .filter_map(|row| Some((word.find(row.0)?, row)))
        .min_by_key(|&(at, row)| (at, std::cmp::Reverse(row.0.len())))?;
    let value = number(&word[at + sign.len()..])?;
    let (arg, mask) = match word[..at].split_once('&') {
        Some((arg, mask)) => (arg, Some(number(mask)?)),
        None => (&word[..at], None),
    };
    let compare = match (mask, compare) {
        (None, compare) => compare,
        (Some(mask), Compare::Eq) => Compare::MaskedEq { mask },
        (Some(_), _) => return None,
    };
    let arg = arg
        .strip_prefix('a')?
        .parse::<u8>()
        .ok()
        .filter(|&arg| arg < 6)?;

    Some(Condition {
        arg,
        compare,
        value,
    })
}

fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}
