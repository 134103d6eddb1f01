//! `-w`, `-W` and `-p`.

use abi::Field;

use super::draft::{Draft, Target};
use super::{Next, Site};
use crate::fault::Fault;
use crate::field;
use crate::words::Word;
use crate::{Action, Condition, Dialect, List, Op, PathKind, SyscallSet, Value};

/// `-w`, `-W`.
pub(super) fn watch(
    draft: &mut Draft,
    argument: &Word,
    target: Target,
    site: Site<'_>,
    warnings: &mut Vec<Fault>,
) -> Result<Next, Fault> {
    if target != Target::Delete && (draft.add.is_some() || draft.delete.is_some()) {
        let message = "watch option can't be given with a syscall";
        return Err(Fault::at(argument, message));
    }

    match target {
        Target::Delete => draft.delete = Some((List::Exit, Action::Always)),
        _ => draft.add = Some((target, List::Exit, Action::Always)),
    }

    draft.facts.has_syscalls = true;
    check_watch_path(argument, warnings)?;
    if !draft.conditions.is_empty() {
        return Err(Fault::at(
            argument,
            match site.dialect {
                Dialect::V3 => "Rule is not empty",
                Dialect::V4 | Dialect::Tarsier => "Watches may not include fields or actions",
            },
        ));
    }

    let mut path = argument.bytes.clone();
    if path.len() > 2 {
        while path.len() > 1 && path.ends_with(b"/") {
            path.pop();
        }
    }

    let field = match site.host.path_kind(&path) {
        PathKind::Dir => Field::Dir,
        PathKind::Other | PathKind::Missing => Field::Watch,
    };
    let all = abi::PERM_READ | abi::PERM_WRITE | abi::PERM_EXEC | abi::PERM_ATTR;
    draft.syscalls = SyscallSet::ALL;
    let conditions = [
        (field, Value::Text(path)),
        (Field::Perm, Value::Number(all)),
    ];
    let is_equal = |(field, value)| Condition {
        field,
        op: Op::Eq,
        value,
    };
    draft.conditions = conditions
        .into_iter()
        .map(|condition| (is_equal(condition), argument.clone()))
        .collect();
    draft.facts.has_perm = true;

    Ok(Next::Go)
}

fn check_watch_path(argument: &Word, warnings: &mut Vec<Fault>) -> Result<(), Fault> {
    let path = &argument.bytes;
    if path.len() >= 4096 {
        return Err(Fault::at(
            argument,
            "The path passed for the watch is too big",
        ));
    }

    if path.first() != Some(&b'/') {
        return Err(Fault::at(argument, "The path must start with '/'"));
    }

    let trimmed = path.trim_ascii_end();
    let base = trimmed
        .split(|&byte| byte == b'/')
        .rfind(|part| !part.is_empty());
    if base.is_some_and(|base| base.len() > 255) {
        return Err(Fault::at(argument, "The base name of the path is too big"));
    }

    if path.windows(2).any(|pair| pair == b"..") {
        let message = "Warning - relative path notation is not supported";
        warnings.push(Fault::at(argument, message).help("the path is used as it is written"));
    }

    if path.contains(&b'*') || path.contains(&b'?') {
        let message = "Warning - wildcard notation is not supported";
        warnings.push(Fault::at(argument, message).help("the path is used as it is written"));
    }

    Ok(())
}

/// `-p`.
pub(super) fn permissions(draft: &mut Draft, argument: &Word) -> Result<Next, Fault> {
    if draft.list().is_none() {
        let message = "permission option needs a watch given prior to it";
        return Err(Fault::at(argument, message));
    }
    if argument.bytes.len() > 4 {
        let message = format!("permission {} is too long", argument.text());
        return Err(Fault::at(argument, message).expected("letters of `rwxa`"));
    }

    let mut bits = 0;
    for &letter in &argument.bytes {
        let Some(bit) = field::perm_letter(letter) else {
            let message = format!("Permission {} isn't supported", char::from(letter));
            return Err(Fault::at(argument, message)
                .expected("r (read), w (write), x (execute), a (attribute change)"));
        };
        bits |= bit;
    }

    set_permissions(draft, argument, bits)?;
    draft.facts.has_perm = true;
    Ok(Next::Go)
}

fn set_permissions(draft: &mut Draft, argument: &Word, bits: u32) -> Result<(), Fault> {
    let mut is_done = false;
    for (condition, _) in &mut draft.conditions {
        if condition.field == Field::Perm {
            condition.value = Value::Number(bits);
            is_done = true;
        }
    }

    if is_done {
        return Ok(());
    }
    if draft.conditions.is_empty() {
        let message = "Permissions should be preceeded by other fields";
        return Err(Fault::at(argument, message));
    }

    if draft.conditions.len() >= field::CONDITIONS_MAX {
        return Err(Fault::at(
            argument,
            "Too many fields when adding permissions",
        ));
    }

    let condition = Condition {
        field: Field::Perm,
        op: Op::Eq,
        value: Value::Number(bits),
    };
    draft.conditions.push((condition, argument.clone()));

    Ok(())
}
