//! Finds rules that auditctl sends but the kernel refuses.
//!
//! Sources: audit_data_to_entry() and audit_field_valid() in kernel/auditfilter.c,
//! audit_to_watch() in kernel/audit_watch.c, audit_make_tree() in kernel/audit_tree.c,
//! audit_alloc_mark() in kernel/audit_fsnotify.c. Whether the security module accepts the labels
//! of `subj_*` and `obj_*` cannot be known here.

use abi::Field;

use crate::{Condition, ErrorKind, Host, List, Op, PathKind, Rule, Value};

/// The kernel's reason for refusing a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Index of the refused condition in `Rule::conditions`.
    pub condition: usize,
    /// [`ErrorKind::Invalid`] or [`ErrorKind::MissingPath`].
    pub kind: ErrorKind,
    /// The reason, in words.
    pub reason: String,
}

impl Refusal {
    /// The strerror(3) text of the errno that the kernel returns.
    pub fn errno_text(&self) -> &'static str {
        match self.kind {
            ErrorKind::MissingPath => "No such file or directory",
            _ => "Invalid argument",
        }
    }
}

/// Checks that the kernel would accept `rule`. With `host`, also checks that the required paths
/// exist; the kernel does so only when a rule is added, not when it is deleted.
///
/// # Errors
/// The first condition that the kernel refuses.
pub fn check(rule: &Rule, host: Option<&dyn Host>) -> Result<(), Refusal> {
    let mut seen = Seen::default();
    for (index, condition) in rule.conditions.iter().enumerate() {
        let refuse = |kind, reason: String| Refusal {
            condition: index,
            kind,
            reason,
        };
        let result = check_list(rule.list, condition)
            .and_then(|()| check_operator(condition))
            .and_then(|()| check_value(condition))
            .and_then(|()| seen.add(rule.list, condition));
        result.map_err(|reason| refuse(ErrorKind::Invalid, reason))?;
        if let Some(missing) = host.and_then(|host| missing_path(condition, host)) {
            return Err(refuse(
                ErrorKind::MissingPath,
                format!("{missing} does not exist"),
            ));
        }
    }

    Ok(())
}

fn check_list(list: List, condition: &Condition) -> Result<(), String> {
    let field = condition.field;
    let is_fine = match field {
        Field::Msgtype => matches!(list, List::Exclude | List::User),
        Field::Fstype => list == List::Filesystem,
        field if field.is_own() && !list.has_syscalls() => {
            let name = field.name();
            return Err(format!(
                "`{name}` can only be used on the exit and io_uring lists"
            ));
        }
        Field::FilterKey => true,
        Field::Perm => !matches!(list, List::IoUring | List::Filesystem),
        _ => list != List::Filesystem,
    };

    if is_fine {
        return Ok(());
    }

    Err(format!(
        "the kernel does not take `{}` on this list",
        field.name()
    ))
}

fn check_operator(condition: &Condition) -> Result<(), String> {
    let Condition { field, op, value } = condition;
    let is_bit = matches!(op, Op::BitMask | Op::BitTest);
    let is_equality = matches!(op, Op::Eq | Op::Ne);
    let unset_auid = *field == Field::Loginuid && *value == Value::Number(u32::MAX);
    match field {
        // The kernel turns an unset auid into its field for "is set", which has no order.
        Field::Loginuid if unset_auid && !is_equality => {
            Err("an unset auid can only be compared with = and !=".to_owned())
        }
        Field::Arg0 | Field::Arg1 | Field::Arg2 | Field::Arg3 | Field::Pers | Field::Devminor => {
            Ok(())
        }
        Field::SubjUser
        | Field::SubjRole
        | Field::SubjType
        | Field::ObjUser
        | Field::ObjRole
        | Field::ObjType
        | Field::Watch
        | Field::Dir
        | Field::FilterKey
        | Field::LoginuidSet
        | Field::Arch
        | Field::Fstype
        | Field::Perm
        | Field::Filetype
        | Field::FieldCompare
        | Field::Exe
        | Field::Unit
        | Field::Slice
        | Field::Container
        | Field::Label
        | Field::AncestorExe
            if !is_equality =>
        {
            Err(format!("`{}` only takes = and !=", field.name()))
        }
        _ if is_bit => Err(format!("`{}` takes neither & nor &=", field.name())),
        _ => Ok(()),
    }
}

fn check_value(condition: &Condition) -> Result<(), String> {
    let field = condition.field;
    match (&condition.value, field.is_text()) {
        (Value::Text(text), true) => check_text(field, text),
        (Value::Number(number), false) => check_number(field, *number),
        _ => Err(format!("`{}` has the wrong kind of value", field.name())),
    }
}

fn check_number(field: Field, number: u32) -> Result<(), String> {
    let is_fine = match field {
        Field::LoginuidSet => number <= 1,
        Field::Perm => number & !15 == 0,
        // Bits of S_IFMT.
        Field::Filetype => number & !0o170_000 == 0,
        Field::SaddrFam => number < 46,
        Field::Uid | Field::Euid | Field::Suid | Field::Fsuid | Field::ObjUid => number != u32::MAX,
        Field::Gid | Field::Egid | Field::Sgid | Field::Fsgid | Field::ObjGid => number != u32::MAX,
        _ => true,
    };

    if is_fine {
        return Ok(());
    }
    Err(format!("{number} is no value for `{}`", field.name()))
}

fn check_text(field: Field, text: &[u8]) -> Result<(), String> {
    if text.is_empty() {
        return Err(format!("`{}` must not be empty", field.name()));
    }

    let is_path = matches!(
        field,
        Field::Watch | Field::Dir | Field::Exe | Field::AncestorExe
    );
    if is_path && text[0] != b'/' {
        return Err(format!("the path of `{}` must start with /", field.name()));
    }

    if is_path && field != Field::Dir && text.ends_with(b"/") {
        return Err(format!(
            "the path of `{}` must not end with /",
            field.name()
        ));
    }

    if field.is_own() {
        let checked = crate::workload::check_name(field, text);
        return checked.map_err(|expected| format!("`{}` takes {expected}", field.name()));
    }
    if field == Field::FilterKey && text.len() > 256 {
        return Err("keys take more than 256 bytes".to_owned());
    }

    Ok(())
}

/// The kinds of conditions seen so far that a rule can have only once.
#[derive(Default)]
struct Seen {
    has_place: bool,
    has_exe: bool,
    has_key: bool,
}

impl Seen {
    fn add(&mut self, list: List, condition: &Condition) -> Result<(), String> {
        let Condition { field, op, .. } = condition;
        match field {
            Field::Watch | Field::Dir | Field::Inode => {
                if !matches!(list, List::Exit | List::IoUring) {
                    return Err(format!(
                        "`{}` can only be used on the exit and io_uring lists",
                        field.name()
                    ));
                }
                if self.has_place {
                    return Err("a rule can have only one of path, dir and inode".to_owned());
                }
                let is_fine = *op == Op::Eq || (*field == Field::Inode && *op == Op::Ne);
                if !is_fine {
                    return Err(format!("the kernel takes only = for `{}`", field.name()));
                }
                self.has_place = true;
            }
            Field::Exe if std::mem::replace(&mut self.has_exe, true) => {
                return Err("a rule can have only one exe".to_owned());
            }
            Field::FilterKey if std::mem::replace(&mut self.has_key, true) => {
                return Err("a rule can have only one key condition".to_owned());
            }
            _ => {}
        }

        Ok(())
    }
}

/// The path that a condition needs but that does not exist: the directory of a watched file or of a
/// program, or a watched directory itself.
fn missing_path(condition: &Condition, host: &dyn Host) -> Option<String> {
    let Value::Text(path) = &condition.value else {
        return None;
    };
    let needed = match condition.field {
        Field::Dir => path.as_slice(),
        Field::Watch | Field::Exe | Field::AncestorExe => parent(path),
        _ => return None,
    };
    (host.path_kind(needed) == PathKind::Missing)
        .then(|| String::from_utf8_lossy(needed).into_owned())
}

fn parent(path: &[u8]) -> &[u8] {
    match path.iter().rposition(|&byte| byte == b'/') {
        Some(0) | None => b"/",
        Some(at) => &path[..at],
    }
}
