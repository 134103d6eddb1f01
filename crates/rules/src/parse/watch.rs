//! `-w`, `-W` and `-p`.

use abi::Field;

use super::{Line, Next, Target};
use crate::fault::Fault;
use crate::field;
use crate::words::Word;
use crate::{Action, Condition, Dialect, List, Op, PathKind, SyscallSet, Value};

impl Line<'_> {
    /// `-w`, `-W`.
    pub(super) fn watch(&mut self, argument: &Word, target: Target) -> Result<Next, Fault> {
        if target != Target::Delete && (self.add.is_some() || self.delete.is_some()) {
            let message = "watch option can't be given with a syscall";
            return Err(Fault::at(argument, message));
        }
        match target {
            Target::Delete => self.delete = Some((List::Exit, Action::Always)),
            _ => self.add = Some((target, List::Exit, Action::Always)),
        }
        self.facts.has_syscalls = true;
        self.check_watch_path(argument)?;
        if !self.conditions.is_empty() {
            return Err(Fault::at(
                argument,
                match self.dialect {
                    Dialect::V3 => "Rule is not empty",
                    Dialect::V4 => "Watches may not include fields or actions",
                },
            ));
        }
        let mut path = argument.bytes.clone();
        if path.len() > 2 {
            while path.len() > 1 && path.ends_with(b"/") {
                path.pop();
            }
        }
        let field = match self.host.path_kind(&path) {
            PathKind::Dir => Field::Dir,
            PathKind::Other | PathKind::Missing => Field::Watch,
        };
        let all = abi::PERM_READ | abi::PERM_WRITE | abi::PERM_EXEC | abi::PERM_ATTR;
        self.syscalls = SyscallSet::ALL;
        self.conditions = vec![
            Condition {
                field,
                op: Op::Eq,
                value: Value::Text(path),
            },
            Condition {
                field: Field::Perm,
                op: Op::Eq,
                value: Value::Number(all),
            },
        ];
        self.condition_words = vec![argument.clone(), argument.clone()];
        self.facts.has_perm = true;
        Ok(Next::Go)
    }

    fn check_watch_path(&mut self, argument: &Word) -> Result<(), Fault> {
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
            self.warnings
                .push(Fault::at(argument, message).help("the path is used as it is written"));
        }
        if path.contains(&b'*') || path.contains(&b'?') {
            let message = "Warning - wildcard notation is not supported";
            self.warnings
                .push(Fault::at(argument, message).help("the path is used as it is written"));
        }
        Ok(())
    }

    /// `-p`.
    pub(super) fn permissions(&mut self, argument: &Word) -> Result<Next, Fault> {
        if self.list().is_none() {
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
        self.set_permissions(argument, bits)?;
        self.facts.has_perm = true;
        Ok(Next::Go)
    }

    fn set_permissions(&mut self, argument: &Word, bits: u32) -> Result<(), Fault> {
        let mut is_done = false;
        for condition in self
            .conditions
            .iter_mut()
            .filter(|c| c.field == Field::Perm)
        {
            condition.value = Value::Number(bits);
            is_done = true;
        }
        if is_done {
            return Ok(());
        }
        if self.conditions.is_empty() {
            let message = "Permissions should be preceeded by other fields";
            return Err(Fault::at(argument, message));
        }
        if self.conditions.len() >= field::CONDITIONS_MAX {
            return Err(Fault::at(
                argument,
                "Too many fields when adding permissions",
            ));
        }
        let value = Value::Number(bits);
        self.conditions.push(Condition {
            field: Field::Perm,
            op: Op::Eq,
            value,
        });
        self.condition_words.push(argument.clone());
        Ok(())
    }
}
