//! Reads `action,list`, the argument of `-a`, `-A` and `-d`.

use crate::fault::Fault;
use crate::words::Word;
use crate::{Action, Dialect, List};

const LISTS: [(&str, List); 6] = [
    ("exit", List::Exit),
    ("task", List::Task),
    ("user", List::User),
    ("exclude", List::Exclude),
    ("filesystem", List::Filesystem),
    ("io_uring", List::IoUring),
];

fn list_named(text: &str, dialect: Dialect) -> Option<List> {
    LISTS
        .into_iter()
        .find(|row| row.0 == text)
        .map(|row| row.1)
        .filter(|&list| list != List::IoUring || dialect != Dialect::V3)
}

/// `Some(None)` stands for `possible`, an action that no longer exists.
fn action_named(text: &str) -> Option<Option<Action>> {
    match text {
        "always" => Some(Some(Action::Always)),
        "never" => Some(Some(Action::Never)),
        "possible" => Some(None),
        _ => None,
    }
}

/// List and action, in either order. As in auditctl, `possible` is recognised only after the list;
/// the action is then `None`.
pub(super) fn list_and_action(text: &str, dialect: Dialect) -> Option<(List, Option<Action>)> {
    let (first, second) = text.split_once(',')?;
    if let Some(list) = list_named(first, dialect) {
        return Some((list, action_named(second)?));
    }
    let action = action_named(first)??;
    Some((list_named(second, dialect)?, Some(action)))
}

pub(super) fn bad_list(argument: &Word, verb: &str, dialect: Dialect) -> Fault {
    let text = argument.text();
    let fault = Fault::at(argument, format!("{verb} rule - bad keyword {text}")).expected(
        "action,list with the action always or never \
         and the list exit, task, user, exclude, filesystem or io_uring",
    );
    // Of the two words, the one that is wrong gets the advice.
    let word = text
        .split(',')
        .find(|word| list_named(word, dialect).is_none() && !matches!(*word, "always" | "never"));
    match word {
        Some("entry") => fault.help("the entry list is gone: use exit"),
        Some("possible") => fault.help("the action possible is gone: use always"),
        Some(word) => fault.nearest(
            word,
            LISTS
                .into_iter()
                .map(|row| row.0)
                .chain(["always", "never"]),
        ),
        None => fault,
    }
}
