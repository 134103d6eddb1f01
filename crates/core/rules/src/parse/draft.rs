//! The rule of a line that is being read, and the options that describe it.

use abi::Field;

use super::{lists, Next, Site};
use crate::fault::Fault;
use crate::field::{self, Facts};
use crate::words::Word;
use crate::{check, Action, Command, Condition, Dialect, List, Rule, SyscallSet};

/// Operation on a rule: adding it last, adding it first, or deleting it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    Append,
    Prepend,
    Delete,
}

/// A rule as far as the options read so far describe it.
#[derive(Default)]
pub(super) struct Draft {
    /// Set by `-a`, `-A` and `-w`. As in auditctl, `-d` and `-W` set `delete` independently; if both
    /// are set, the rule is added.
    pub(super) add: Option<(Target, List, Action)>,
    pub(super) delete: Option<(List, Action)>,
    /// Whether there was a `-a`, `-A` or `-d`.
    has_list: bool,
    pub(super) facts: Facts,
    pub(super) syscalls: SyscallSet,
    /// The conditions, each with its word for error messages.
    pub(super) conditions: Vec<(Condition, Word)>,
    keys: Vec<u8>,
}

impl Draft {
    /// `-a`, `-A`, `-d`.
    pub(super) fn rule_list(
        &mut self,
        argument: &Word,
        target: Target,
        site: Site<'_>,
        warnings: &mut Vec<Fault>,
    ) -> Result<Next, Fault> {
        let text = argument.text();
        if target != Target::Delete && text.contains("task") && self.facts.has_syscalls {
            return Err(Fault::at(
                argument,
                match target {
                    Target::Append => "Syscall auditing requested for task list",
                    _ => "Error: syscall auditing requested for task list",
                },
            ));
        }

        // One line describes one rule.
        if std::mem::replace(&mut self.has_list, true) {
            let message = "Multiple rule insert/delete operations are not allowed";
            return Err(Fault::at(argument, message));
        }

        let verb = match target {
            Target::Append => "Append",
            Target::Prepend => "Add",
            Target::Delete => "Delete",
        };
        let Some((list, action)) = lists::list_and_action(&text, site.dialect) else {
            return Err(lists::bad_list(argument, verb, site.dialect));
        };
        let Some(action) = action else {
            let verb = if target == Target::Delete {
                "Delete"
            } else {
                "Append"
            };
            let message = format!("{verb} rule - possible is deprecated");
            warnings.push(Fault::at(argument, message).help("the line has no effect"));
            return Ok(Next::Done);
        };

        match target {
            Target::Delete => self.delete = Some((list, action)),
            _ => self.add = Some((target, list, action)),
        }

        Ok(Next::Go)
    }

    /// The filter list of the rule; it decides which fields are allowed.
    pub(super) fn list(&self) -> Option<List> {
        self.add
            .map(|add| add.1)
            .or(self.delete.map(|delete| delete.0))
    }

    pub(super) fn is_on(&self, list: List) -> bool {
        self.add.is_some_and(|add| add.1 == list)
            || self.delete.is_some_and(|delete| delete.0 == list)
    }

    pub(super) fn field(
        &mut self,
        argument: &Word,
        site: Site<'_>,
        warnings: &mut Vec<Fault>,
    ) -> Result<Next, Fault> {
        let Some(list) = self.list() else {
            return Err(Fault::at(argument, "List must be given before field")
                .expected("-a action,list before the first -F"));
        };
        if argument.bytes.starts_with(b"key=") {
            let key = argument.part(4, argument.bytes.len());
            return self.add_key(&key, site.dialect, warnings);
        }

        let count = self.conditions.len();
        let condition = field::field_pair(
            argument,
            list,
            count,
            &mut self.facts,
            site.host,
            site.dialect,
        )?;

        warnings.extend(zero_warning(argument, condition.field));
        self.conditions.push((condition, argument.clone()));
        Ok(Next::Go)
    }

    pub(super) fn compare(&mut self, argument: &Word) -> Result<Next, Fault> {
        let condition = field::field_compare(argument, self.list(), self.conditions.len())?;
        self.conditions.push((condition, argument.clone()));
        Ok(Next::Go)
    }

    pub(super) fn key_option(
        &mut self,
        argument: &Word,
        dialect: Dialect,
        warnings: &mut Vec<Fault>,
    ) -> Result<Next, Fault> {
        let facts = &self.facts;
        let is_allowed = facts.has_syscalls || facts.has_perm || facts.has_exe || facts.has_fstype;
        if !is_allowed || self.list().is_none() {
            let message = "key option needs a watch or syscall given prior to it";
            let fault = Fault::at(argument, message);
            return Err(match self.list() {
                None => fault.help("start the rule with -a always,exit or with -w PATH"),
                Some(List::Exit) => fault.help("add -S all before -k, or the calls: -S openat"),
                Some(_) => fault,
            });
        }

        self.add_key(argument, dialect, warnings)
    }

    fn add_key(
        &mut self,
        key: &Word,
        dialect: Dialect,
        warnings: &mut Vec<Fault>,
    ) -> Result<Next, Fault> {
        // The kernel has one key for each rule: several are joined with byte 1 (AUDIT_KEY_SEPARATOR).
        let separator = usize::from(!self.keys.is_empty());
        if self.keys.len() + separator + key.bytes.len() > field::KEY_LEN_MAX {
            return Err(
                Fault::at(key, "key option exceeds size limit").expected(format!(
                    "at most {} bytes for all keys together",
                    field::KEY_LEN_MAX
                )),
            );
        }

        if key.bytes.contains(&1) {
            let fault = Fault::at(key, format!("key {} has illegal character", key.text()));
            match dialect {
                Dialect::V3 => warnings.push(fault),
                Dialect::V4 | Dialect::Tarsier => return Err(fault),
            }
        }

        if separator > 0 {
            self.keys.push(1);
        }

        self.keys.extend_from_slice(&key.bytes);
        Ok(Next::Go)
    }

    /// Makes the keys the last condition, with the same checks as any other `-F` pair.
    fn finish_keys(&mut self, words: &[Word], site: Site<'_>) -> Result<(), Fault> {
        let (Some(list), true) = (self.list(), !self.keys.is_empty()) else {
            return Ok(());
        };

        // An error about the joined keys points at the last of them.
        let place = words
            .iter()
            .rev()
            .find(|word| word.bytes.starts_with(b"key=") || self.keys.ends_with(&word.bytes));
        let (start, len) = place.map_or((0, 0), |word| (word.start, word.len));
        let pair = Word {
            bytes: [b"key=", self.keys.as_slice()].concat(),
            start,
            len,
        };
        let count = self.conditions.len();
        let condition =
            field::field_pair(&pair, list, count, &mut self.facts, site.host, site.dialect)?;
        self.conditions.push((condition, pair));

        Ok(())
    }

    /// Makes a rule of all options of the line, and checks it as the kernel would. `None` if the
    /// line has no rule.
    pub(super) fn finish(
        mut self,
        words: &[Word],
        site: Site<'_>,
    ) -> Result<Option<Command>, Fault> {
        self.finish_keys(words, site)?;
        let (target, list, action) = match (self.add, self.delete) {
            (Some(add), _) => add,
            (None, Some((list, action))) => (Target::Delete, list, action),
            (None, None) if self.facts.has_syscalls => {
                return Err(Fault::line("Error - no list specified")
                    .expected("-a action,list, such as -a always,exit"));
            }
            (None, None) => return Ok(None),
        };

        // A rule without -S is about every call; the task list has no calls.
        if list != List::Task && !self.facts.has_syscalls {
            self.syscalls = SyscallSet::ALL;
        }

        let (conditions, condition_words): (_, Vec<Word>) = self.conditions.into_iter().unzip();
        let rule = Rule {
            list,
            action,
            syscalls: self.syscalls,
            conditions,
            source: site.source.clone(),
        };

        // The kernel resolves paths only when a rule is added.
        let host = (target != Target::Delete).then_some(site.host);
        check(&rule, host).map_err(|refusal| {
            let verb = match target {
                Target::Delete => "delete",
                Target::Append | Target::Prepend => "add",
            };
            let text = refusal.errno_text();
            let message = format!("Error sending {verb} rule data request ({text})");
            let fault = match condition_words.get(refusal.condition) {
                Some(word) => Fault::at(word, message),
                None => Fault::line(message),
            };
            fault.help(refusal.reason).kind(refusal.kind)
        })?;

        Ok(Some(match target {
            Target::Append => Command::Append(rule),
            Target::Prepend => Command::Prepend(rule),
            Target::Delete => Command::Delete(rule),
        }))
    }
}

/// The warning about a name where only a number makes sense: auditctl takes it for 0.
fn zero_warning(argument: &Word, field: Field) -> Option<Fault> {
    let text = argument.text();
    let value = text.trim_start_matches(|letter: char| !"=<>&".contains(letter));
    let value = value.trim_start_matches(['!', '=', '<', '>', '&']);
    // strtol(3) takes a sign and digits, and gives 0 for anything else.
    let is_number = value
        .trim_start_matches('-')
        .starts_with(|c: char| c.is_ascii_digit());
    let is_zero = match field {
        Field::SaddrFam => !is_number,
        Field::Sessionid => !is_number && value != "unset",
        _ => false,
    };
    let message = || format!("{} takes a number: {value} counts as 0", field.name());
    is_zero.then(|| Fault::at(argument, message()))
}
