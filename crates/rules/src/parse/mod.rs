//! Parses one line of a rules file, or one command line of auditctl.
//!
//! Options take effect from left to right, as in setopt() of audit-userspace src/auditctl.c.

mod calls;
mod lists;
mod settings;
mod watch;

use abi::Field;

use crate::fault::Fault;
use crate::field::{self, Facts};
use crate::words::{self, Flag, Found, Options, Word};
use crate::{
    check, Action, Command, Condition, Dialect, Host, List, Parsed, Rule, RuleError, Severity,
    Source, SyscallSet,
};

/// The longest line of a rules file, in bytes, its end included (auditctl's `LINE_SIZE`).
pub const LINE_LEN_MAX: usize = 6144;

/// Reads one line of a rules file as audit 4.x does. Returns `None` for blank lines, comments, and
/// lines that auditctl skips because they use the obsolete action `possible`. Several commands on
/// one line (`-b 8192 -f 1`) become a [`Command::Several`].
///
/// # Errors
/// The first error of the line.
pub fn parse_line(
    line: impl AsRef<[u8]>,
    source: &Source,
    host: &dyn Host,
) -> Result<Option<Command>, RuleError> {
    let Parsed {
        mut commands,
        error,
        ..
    } = parse_line_as(Dialect::default(), line, source, host);
    match error {
        Some(error) => Err(error),
        None if commands.len() > 1 => Ok(Some(Command::Several(commands))),
        None => Ok(commands.pop()),
    }
}

/// Reads one line of a rules file as `dialect` does, and returns warnings too.
pub fn parse_line_as(
    dialect: Dialect,
    line: impl AsRef<[u8]>,
    source: &Source,
    host: &dyn Host,
) -> Parsed {
    let line = line.as_ref();
    let words = words::split(line);
    if words.first().is_none_or(|word| line[word.start] == b'#') {
        return Parsed::default();
    }
    if line.len() >= LINE_LEN_MAX {
        let fault = Fault::line("The line is too long")
            .expected(format!("fewer than {LINE_LEN_MAX} bytes"));
        let error = fault.into_error(source, "", Severity::Error);
        return Parsed {
            error: Some(error),
            ..Parsed::default()
        };
    }
    parse_words(
        &words,
        &String::from_utf8_lossy(line),
        dialect,
        source,
        host,
    )
}

/// Reads the words after `auditctl` on a command line as `dialect` does, and returns warnings too.
pub fn parse_args<T: AsRef<[u8]>>(
    dialect: Dialect,
    args: &[T],
    source: &Source,
    host: &dyn Host,
) -> Parsed {
    let (words, text) = words::join(args);
    if let [flag, file] = words.as_slice() {
        if flag.bytes == b"-R" {
            let commands = vec![Command::ReadFile(file.bytes.clone())];
            return Parsed {
                commands,
                ..Parsed::default()
            };
        }
    }
    parse_words(&words, &text, dialect, source, host)
}

fn parse_words(
    words: &[Word],
    text: &str,
    dialect: Dialect,
    source: &Source,
    host: &dyn Host,
) -> Parsed {
    let mut line = Line::new(words, dialect, source, host);
    let at = |fault: Fault, severity| fault.into_error(source, text, severity);
    let error = line.read().err().map(|fault| at(fault, Severity::Error));
    let commands = if error.is_some() {
        Vec::new()
    } else {
        line.commands
    };
    let warnings = line
        .warnings
        .into_iter()
        .map(|fault| at(fault, Severity::Warning))
        .collect();
    Parsed {
        commands,
        warnings,
        error,
    }
}

/// What is done with a rule: added last, added first, or deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    Append,
    Prepend,
    Delete,
}

/// How to go on after an option.
enum Next {
    /// Read the next option.
    Go,
    /// The line is complete; any further word is an error.
    Last,
    /// The line is complete; further words are ignored.
    Done,
}

/// The state of reading one line.
struct Line<'a> {
    words: &'a [Word],
    dialect: Dialect,
    source: &'a Source,
    host: &'a dyn Host,
    /// Set by `-a`, `-A` and `-w`. As in auditctl, `delete` is set apart from it by `-d` and `-W`; if
    /// both are set, the rule is added.
    add: Option<(Target, List, Action)>,
    delete: Option<(List, Action)>,
    /// Whether there was a `-a`, `-A` or `-d`.
    has_list: bool,
    facts: Facts,
    syscalls: SyscallSet,
    conditions: Vec<Condition>,
    /// The word of each condition, for error messages.
    condition_words: Vec<Word>,
    keys: Vec<u8>,
    commands: Vec<Command>,
    warnings: Vec<Fault>,
}

impl<'a> Line<'a> {
    fn new(words: &'a [Word], dialect: Dialect, source: &'a Source, host: &'a dyn Host) -> Self {
        Line {
            words,
            dialect,
            source,
            host,
            add: None,
            delete: None,
            has_list: false,
            facts: Facts::default(),
            syscalls: SyscallSet::EMPTY,
            conditions: Vec::new(),
            condition_words: Vec::new(),
            keys: Vec::new(),
            commands: Vec::new(),
            warnings: Vec::new(),
        }
    }

    fn read(&mut self) -> Result<(), Fault> {
        if let Some(word) = self.words.iter().find(|word| word.bytes.contains(&0)) {
            return Err(Fault::at(word, "A zero byte cannot be part of a rule"));
        }
        let mut options = Options::new(self.words);
        let mut is_last = false;
        while !is_last {
            match options.next() {
                None => break,
                Some(Found::Bad(word)) => return Err(self.bad_option(&word)),
                Some(Found::Option(flag, word, argument)) => {
                    let argument = argument.as_ref().unwrap_or(&word);
                    match self.option(flag, &word, argument, options.rest())? {
                        Next::Go => {}
                        Next::Last => is_last = true,
                        Next::Done => return Ok(()),
                    }
                }
            }
        }
        let extra = options.extra.first().copied();
        let unread = if is_last {
            options.rest().first()
        } else {
            None
        };
        let unread = unread.filter(|_| !self.has_swallowed_rest());
        if let Some(word) = extra.or(unread) {
            return Err(Fault::at(word, "parameter passed without an option given")
                .help("words belong to options; a comment needs a line of its own"));
        }
        self.finish_keys()?;
        self.finish_rule()
    }

    /// Whether the last command, such as `-D -k key`, `-l -i` or `-s -i`, has used the words after it.
    fn has_swallowed_rest(&self) -> bool {
        match self.commands.last() {
            Some(Command::DeleteAll { key }) => key.is_some(),
            Some(Command::List {
                is_interpreted,
                key,
            }) => *is_interpreted || key.is_some(),
            Some(Command::Status { is_interpreted }) => *is_interpreted,
            _ => false,
        }
    }

    fn bad_option(&self, word: &Word) -> Fault {
        let text = word.text();
        let message = if self.source.line > 0 {
            format!("Option {text} on line {} is invalid", self.source.line)
        } else {
            format!("Option {text} is invalid")
        };
        Fault::at(word, message).expected("an option that auditctl(8) lists, with its argument")
    }

    fn option(
        &mut self,
        flag: Flag,
        word: &Word,
        argument: &Word,
        rest: &[Word],
    ) -> Result<Next, Fault> {
        match flag {
            Flag::Short(b'a') => self.rule_list(argument, Target::Append),
            Flag::Short(b'A') => self.rule_list(argument, Target::Prepend),
            Flag::Short(b'd') => self.rule_list(argument, Target::Delete),
            Flag::Short(b'S') => self.syscall_names(argument),
            Flag::Short(b'F') => self.field(argument),
            Flag::Short(b'C') => self.compare(argument),
            Flag::Short(b'k') => self.key_option(argument),
            Flag::Short(b'w') => self.watch(argument, Target::Append),
            Flag::Short(b'W') => self.watch(argument, Target::Delete),
            Flag::Short(b'p') => self.permissions(argument),
            Flag::Short(b'q') => self.equivalent(argument),
            Flag::Short(b'D' | b'l' | b's' | b'm') => self.whole_line(flag, word, argument, rest),
            Flag::Short(b'R') => Err(Fault::at(word, "Error - nested rule files not supported")),
            _ => self.setting(flag, argument),
        }
    }

    /// `-a`, `-A`, `-d`.
    fn rule_list(&mut self, argument: &Word, target: Target) -> Result<Next, Fault> {
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
        if std::mem::replace(&mut self.has_list, true) {
            let message = "Multiple rule insert/delete operations are not allowed";
            return Err(Fault::at(argument, message));
        }
        let verb = match target {
            Target::Append => "Append",
            Target::Prepend => "Add",
            Target::Delete => "Delete",
        };
        let Some((list, action)) = lists::list_and_action(&text, self.dialect) else {
            return Err(lists::bad_list(argument, verb, self.dialect));
        };
        let Some(action) = action else {
            let verb = if target == Target::Delete {
                "Delete"
            } else {
                "Append"
            };
            let message = format!("{verb} rule - possible is deprecated");
            self.warnings
                .push(Fault::at(argument, message).help("the line has no effect"));
            return Ok(Next::Done);
        };
        match target {
            Target::Delete => self.delete = Some((list, action)),
            _ => self.add = Some((target, list, action)),
        }
        Ok(Next::Go)
    }

    /// The filter list of the rule; it decides which fields are allowed.
    fn list(&self) -> Option<List> {
        self.add
            .map(|add| add.1)
            .or(self.delete.map(|delete| delete.0))
    }

    fn is_on(&self, list: List) -> bool {
        self.add.is_some_and(|add| add.1 == list)
            || self.delete.is_some_and(|delete| delete.0 == list)
    }

    fn field(&mut self, argument: &Word) -> Result<Next, Fault> {
        let Some(list) = self.list() else {
            return Err(Fault::at(argument, "List must be given before field")
                .expected("-a action,list before the first -F"));
        };
        if argument.bytes.starts_with(b"key=") {
            return self.add_key(&argument.part(4, argument.bytes.len()));
        }
        let count = self.conditions.len();
        let condition = field::field_pair(
            argument,
            list,
            count,
            &mut self.facts,
            self.host,
            self.dialect,
        )?;
        self.warn_of_zero(argument, condition.field);
        self.conditions.push(condition);
        self.condition_words.push(argument.clone());
        Ok(Next::Go)
    }

    /// Warns about a name where only a number makes sense: auditctl takes it for 0.
    fn warn_of_zero(&mut self, argument: &Word, field: Field) {
        let text = argument.text();
        let value = text.trim_start_matches(|letter: char| !"=<>&".contains(letter));
        let value = value.trim_start_matches(['!', '=', '<', '>', '&']);
        let is_number = value
            .trim_start_matches('-')
            .starts_with(|c: char| c.is_ascii_digit());
        let is_zero = match field {
            Field::SaddrFam => !is_number,
            Field::Sessionid => !is_number && value != "unset",
            _ => false,
        };
        if is_zero {
            let message = format!("{} takes a number: {value} counts as 0", field.name());
            self.warnings.push(Fault::at(argument, message));
        }
    }

    fn compare(&mut self, argument: &Word) -> Result<Next, Fault> {
        let condition = field::field_compare(argument, self.list(), self.conditions.len())?;
        self.conditions.push(condition);
        self.condition_words.push(argument.clone());
        Ok(Next::Go)
    }

    fn key_option(&mut self, argument: &Word) -> Result<Next, Fault> {
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
        self.add_key(argument)
    }

    fn add_key(&mut self, key: &Word) -> Result<Next, Fault> {
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
            match self.dialect {
                Dialect::V3 => self.warnings.push(fault),
                Dialect::V4 => return Err(fault),
            }
        }
        if separator > 0 {
            self.keys.push(1);
        }
        self.keys.extend_from_slice(&key.bytes);
        Ok(Next::Go)
    }

    /// Makes the keys the last condition, with the same checks as any other `-F` pair.
    fn finish_keys(&mut self) -> Result<(), Fault> {
        let Some(list) = self.list().filter(|_| !self.keys.is_empty()) else {
            return Ok(());
        };
        let place = self
            .words
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
            field::field_pair(&pair, list, count, &mut self.facts, self.host, self.dialect)?;
        self.conditions.push(condition);
        self.condition_words.push(pair);
        Ok(())
    }

    /// Makes a rule of all options of the line, and checks it as the kernel would.
    fn finish_rule(&mut self) -> Result<(), Fault> {
        let (target, list, action) = match (self.add, self.delete) {
            (Some(add), _) => add,
            (None, Some((list, action))) => (Target::Delete, list, action),
            (None, None) if self.facts.has_syscalls => {
                return Err(Fault::line("Error - no list specified")
                    .expected("-a action,list, such as -a always,exit"));
            }
            (None, None) => return Ok(()),
        };
        if list != List::Task && !self.facts.has_syscalls {
            self.syscalls = SyscallSet::ALL;
        }
        let rule = Rule {
            list,
            action,
            syscalls: std::mem::replace(&mut self.syscalls, SyscallSet::EMPTY),
            conditions: std::mem::take(&mut self.conditions),
            source: self.source.clone(),
        };
        let host = (target != Target::Delete).then_some(self.host);
        check(&rule, host).map_err(|refusal| {
            let verb = if target == Target::Delete {
                "delete"
            } else {
                "add"
            };
            let text = refusal.errno_text();
            let message = format!("Error sending {verb} rule data request ({text})");
            let fault = match self.condition_words.get(refusal.condition) {
                Some(word) => Fault::at(word, message),
                None => Fault::line(message),
            };
            fault.help(refusal.reason).kind(refusal.kind)
        })?;
        self.commands.push(match target {
            Target::Append => Command::Append(rule),
            Target::Prepend => Command::Prepend(rule),
            Target::Delete => Command::Delete(rule),
        });
        Ok(())
    }
}
