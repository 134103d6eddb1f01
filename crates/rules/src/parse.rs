//! One line, or one command line, of auditctl.
//!
//! Options take effect from left to right, as setopt() in audit-userspace src/auditctl.c has it.

use abi::{Arch, Field};

use crate::fault::Fault;
use crate::field::{self, Facts};
use crate::words::{self, Flag, Found, Options, Word};
use crate::{check, number};
use crate::{
    Action, Command, Condition, Dialect, ErrorKind, Host, List, Op, Parsed, PathKind, Rule,
    RuleError, Severity, Source, SyscallSet, Value,
};

/// The longest line of a rules file, in bytes, its end included (auditctl's `LINE_SIZE`).
pub const LINE_LEN_MAX: usize = 6144;

/// Reads one line of a rules file as audit 4.x does. `None` for blank lines and comments, and for
/// lines that auditctl skips because they use an action that was taken away. Several commands on
/// a line (`-b 8192 -f 1`) are one [`Command::Several`].
///
/// # Errors
/// The first thing that is wrong with the line.
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

/// Reads one line of a rules file, with warnings.
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

/// Reads the words after `auditctl` on a command line, with warnings.
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

/// Where a rule goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    Append,
    Prepend,
    Delete,
}

/// What to do after an option.
enum Next {
    /// Read the next option.
    Go,
    /// The line is done; what follows is an error.
    Last,
    /// The line is done; what follows is not looked at.
    Done,
}

/// A line half read.
struct Line<'a> {
    words: &'a [Word],
    dialect: Dialect,
    source: &'a Source,
    host: &'a dyn Host,
    /// `-a`, `-A`, `-w` and `-W`, `-d` are remembered apart, as auditctl does; adding wins.
    add: Option<(Target, List, Action)>,
    delete: Option<(List, Action)>,
    /// A list was named by `-a`, `-A` or `-d`.
    has_list: bool,
    facts: Facts,
    syscalls: SyscallSet,
    conditions: Vec<Condition>,
    /// The words that made the conditions, for messages about them.
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

    /// `-D -k key`, `-l -i` and `-s -i` have looked at the words after them.
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

    /// Options that set something in the kernel or the reader.
    fn setting(&mut self, flag: Flag, argument: &Word) -> Result<Next, Fault> {
        let (command, next) = match flag {
            Flag::Short(b'e') => (Command::Enabled(of_three(argument, "Enable")?), Next::Go),
            Flag::Short(b'f') => (Command::Failure(of_three(argument, "Failure")?), Next::Go),
            Flag::Short(b'b') => (Command::Backlog(numeric(argument, "Backlog")?), Next::Go),
            Flag::Short(b'r') => (Command::Rate(numeric(argument, "Rate")?), Next::Go),
            Flag::BacklogWaitTime => (Command::BacklogWaitTime(wait_time(argument)?), Next::Go),
            Flag::LoginuidImmutable => (Command::LoginuidImmutable, Next::Done),
            Flag::ResetLost => (Command::ResetLost, Next::Done),
            Flag::ResetBacklogWaitTimeActual => (Command::ResetBacklogWaitTimeActual, Next::Done),
            Flag::Signal => (Command::Signal(signal(argument)?), Next::Last),
            Flag::Short(b'i') => (Command::IgnoreErrors, Next::Last),
            Flag::Short(b'c') => (Command::ContinueOnError, Next::Last),
            Flag::Short(b't') => (Command::Trim, Next::Done),
            Flag::Short(b'v') => (Command::Version, Next::Last),
            Flag::Short(_) => (Command::Help, Next::Last),
        };
        self.commands.push(command);
        Ok(next)
    }

    /// Options that allow nothing else on the line: `-D`, `-l`, `-s`, `-m`.
    fn whole_line(
        &mut self,
        flag: Flag,
        word: &Word,
        argument: &Word,
        rest: &[Word],
    ) -> Result<Next, Fault> {
        let count = self.words.len();
        let second = || rest.first().map(|word| word.bytes.as_slice());
        let last = || self.words.last().map(|word| word.bytes.clone());
        let command = match flag {
            Flag::Short(b'D') => {
                if count > 3 || count == 2 {
                    return Err(
                        Fault::at(word, "Wrong number of options for Delete all request")
                            .expected("-D alone, or -D -k key"),
                    );
                }
                if count == 3 && second() != Some(b"-k") {
                    return Err(Fault::at(word, "Only the -k option is allowed"));
                }
                Command::DeleteAll {
                    key: if count == 3 { last() } else { None },
                }
            }
            Flag::Short(b'l') => {
                if count > 3 {
                    return Err(Fault::at(word, "Wrong number of options for list request"));
                }
                let is_fine = match count {
                    2 => second() == Some(b"-i"),
                    3 => second() == Some(b"-k"),
                    _ => true,
                };
                if !is_fine {
                    return Err(Fault::at(word, "Only -k or -i options are allowed"));
                }
                Command::List {
                    is_interpreted: count == 2,
                    key: if count == 3 { last() } else { None },
                }
            }
            Flag::Short(b's') => {
                if count > 2 {
                    return Err(Fault::at(word, "Too many options for status command"));
                }
                if count == 2 && second() != Some(b"-i") {
                    return Err(Fault::at(word, "Only -i option is allowed"));
                }
                Command::Status {
                    is_interpreted: count == 2,
                }
            }
            _ => return self.message(argument),
        };
        self.commands.push(command);
        Ok(Next::Last)
    }

    fn message(&mut self, argument: &Word) -> Result<Next, Fault> {
        if self.words.len() > 2 {
            let message = "The -m option must be only the only option and takes 1 parameter";
            return Err(Fault::at(argument, message));
        }
        match std::str::from_utf8(&argument.bytes) {
            Ok(text) if text.bytes().all(|byte| (32..=127).contains(&byte)) => {
                self.commands.push(Command::Message(text.to_owned()));
                Ok(Next::Done)
            }
            _ => Err(Fault::at(argument, "Illegal character in audit event")
                .expected("ASCII without control characters")),
        }
    }

    fn equivalent(&mut self, argument: &Word) -> Result<Next, Fault> {
        if self.facts.has_syscalls {
            return Err(Fault::at(
                argument,
                "Syscall auditing requested for make equivalent",
            ));
        }
        let parts: Vec<&[u8]> = argument.bytes.split(|&byte| byte == b',').collect();
        match parts.as_slice() {
            [mount, subtree] if !subtree.is_empty() => {
                let (mount, subtree) = (mount.to_vec(), subtree.to_vec());
                self.commands
                    .push(Command::MakeEquivalent { mount, subtree });
                Ok(Next::Done)
            }
            _ => Err(Fault::at(argument, "Error parsing equivalent parts")
                .expected("a mount point, a comma, a directory")),
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
        let Some((list, action)) = list_and_action(&text, self.dialect) else {
            return Err(bad_list(argument, verb, self.dialect));
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

    /// The list that fields are for.
    fn list(&self) -> Option<List> {
        self.add
            .map(|add| add.1)
            .or(self.delete.map(|delete| delete.0))
    }

    fn is_on(&self, list: List) -> bool {
        self.add.is_some_and(|add| add.1 == list)
            || self.delete.is_some_and(|delete| delete.0 == list)
    }

    fn syscall_names(&mut self, argument: &Word) -> Result<Next, Fault> {
        if self.is_on(List::IoUring) {
            return self.uring_ops(argument);
        }
        let refused = [
            (
                List::Task,
                "Error: syscall auditing being added to task list",
            ),
            (
                List::User,
                "Error: syscall auditing being added to user list",
            ),
            (
                List::Filesystem,
                "Error: syscall auditing being added to filesystem list",
            ),
            (
                List::Exclude,
                "Error: syscall auditing cannot be put on exclude list",
            ),
        ];
        if let Some((_, message)) = refused.into_iter().find(|row| self.is_on(row.0)) {
            return Err(Fault::at(argument, message));
        }
        let is_arch_unknown = self.facts.arch.is_none();
        let number = *self.facts.arch.get_or_insert(self.host.arch().audit_arch());
        for item in items(argument) {
            self.add_syscall(&item, number)?;
        }
        self.facts.has_syscalls = true;
        if is_arch_unknown && self.add.is_some() {
            self.warn_of_mismatch(argument);
        }
        Ok(Next::Go)
    }

    fn add_syscall(&mut self, item: &Word, audit_arch: u32) -> Result<(), Fault> {
        let text = item.text();
        if text == "all" {
            self.syscalls = SyscallSet::ALL;
            return Ok(());
        }
        let arch = Arch::from_audit_arch(audit_arch);
        let number = arch
            .and_then(|arch| syscall_number(arch, &text))
            .or_else(|| number_of(item));
        match number.filter(|&number| number < 2048) {
            Some(number) => {
                self.syscalls.insert(number);
                Ok(())
            }
            None => {
                let fault = Fault::at(item, format!("Syscall name unknown: {text}"));
                Err(match arch {
                    Some(arch) => fault
                        .expected(format!("a system call of {}, `all`, or a number below 2048", arch.name()))
                        .nearest(&text, abi::syscalls(arch).map(|row| row.1)),
                    None => fault.expected("`all` or a number below 2048: names of calls are not known for this architecture"),
                })
            }
        }
    }

    fn uring_ops(&mut self, argument: &Word) -> Result<Next, Fault> {
        for item in items(argument) {
            let text = item.text().to_ascii_lowercase();
            if text == "all" {
                abi::uring_ops()
                    .map(|row| row.0)
                    .filter(|&op| abi::uring_op_is_audited(op))
                    .for_each(|op| self.syscalls.insert(op));
                continue;
            }
            let op = abi::uring_op_number(&text).or_else(|| number_of(&item));
            let Some(op) = op.filter(|&op| op < 2048) else {
                return Err(
                    Fault::at(&item, format!("io_uring op unknown: {}", argument.text()))
                        .expected("an io_uring operation, `all`, or a number below 2048")
                        .nearest(&text, abi::uring_ops().map(|row| row.1)),
                );
            };
            self.syscalls.insert(op);
        }
        self.facts.has_syscalls = true;
        Ok(Next::Go)
    }

    /// Warns when names mean other numbers for 32-bit programs (check_rule_mismatch()).
    fn warn_of_mismatch(&mut self, argument: &Word) {
        if self.host.arch() != Arch::X86_64 {
            return;
        }
        let mut compat = SyscallSet::EMPTY;
        for item in items(argument) {
            let text = item.text();
            match syscall_number(Arch::I386, &text).or_else(|| number_of(&item)) {
                _ if text == "all" => compat = SyscallSet::ALL,
                Some(number) => compat.insert(number),
                None => {}
            }
        }
        // audit 3.0.9 compares 64 bytes by mistake; no call has a number beyond those.
        if compat.0[..16] == self.syscalls.0[..16] {
            return;
        }
        let place = match self.source.line {
            0 => String::new(),
            line => format!(" in line {line}"),
        };
        let message =
            format!("WARNING - 32/64 bit syscall mismatch{place}, you should specify an arch");
        self.warnings.push(
            Fault::at(argument, message)
                .help("the numbers are those of 64-bit calls, and 32-bit programs use others: write one rule with -F arch=b64 and one with -F arch=b32"),
        );
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
        self.conditions.push(condition);
        self.condition_words.push(argument.clone());
        Ok(Next::Go)
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
            return Err(Fault::at(argument, message));
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

    /// The keys become the last condition, through the same door as any other.
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

    /// `-w`, `-W`.
    fn watch(&mut self, argument: &Word, target: Target) -> Result<Next, Fault> {
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
    fn permissions(&mut self, argument: &Word) -> Result<Next, Fault> {
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

    /// Makes the rule that the options added up to, and checks it as the kernel would.
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
        check::check(&rule, host).map_err(|refusal| {
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

/// The items of a comma list; empty ones do not count.
fn items(argument: &Word) -> Vec<Word> {
    if !argument.bytes.contains(&b',') {
        return vec![argument.clone()];
    }
    let mut at = 0;
    let mut items = Vec::new();
    for part in argument.bytes.split(|&byte| byte == b',') {
        if !part.is_empty() {
            items.push(argument.part(at, part.len()));
        }
        at += part.len() + 1;
    }
    items
}

fn syscall_number(arch: Arch, name: &str) -> Option<u32> {
    abi::syscall_number(arch, &name.to_ascii_lowercase())
}

/// A number where a name could be; `None` unless a digit comes first.
fn number_of(item: &Word) -> Option<u32> {
    item.bytes.first().filter(|byte| byte.is_ascii_digit())?;
    u32::try_from(number::signed(&item.bytes)).ok()
}

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
        .filter(|&list| list != List::IoUring || dialect == Dialect::V4)
}

/// `Some(None)` is the action `possible`, which was taken away.
fn action_named(text: &str) -> Option<Option<Action>> {
    match text {
        "always" => Some(Some(Action::Always)),
        "never" => Some(Some(Action::Never)),
        "possible" => Some(None),
        _ => None,
    }
}

/// List and action in either order. `possible` counts only after the list, as with auditctl.
fn list_and_action(text: &str, dialect: Dialect) -> Option<(List, Option<Action>)> {
    let (first, second) = text.split_once(',')?;
    if let Some(list) = list_named(first, dialect) {
        return Some((list, action_named(second)?));
    }
    let action = action_named(first)??;
    Some((list_named(second, dialect)?, Some(action)))
}

fn bad_list(argument: &Word, verb: &str, dialect: Dialect) -> Fault {
    let text = argument.text();
    let fault = Fault::at(argument, format!("{verb} rule - bad keyword {text}")).expected(
        "action,list with the action always or never \
         and the list exit, task, user, exclude, filesystem or io_uring",
    );
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

fn of_three(argument: &Word, what: &str) -> Result<u32, Fault> {
    match argument.bytes.as_slice() {
        [digit @ b'0'..=b'2'] => Ok(u32::from(digit - b'0')),
        _ => {
            let message = format!("{what} must be 0, 1, or 2 was {}", argument.text());
            Err(Fault::at(argument, message))
        }
    }
}

fn numeric(argument: &Word, what: &str) -> Result<u32, Fault> {
    if argument.bytes.first().is_some_and(u8::is_ascii_digit) {
        return Ok(number::unsigned(&argument.bytes, 0) as u32);
    }
    let message = format!("{what} must be a numeric value was {}", argument.text());
    Err(Fault::at(argument, message))
}

/// Ten times the kernel's default of one minute, at the most ticks per second that there are
/// (kernel/audit.c, audit_set_backlog_wait_time()).
const WAIT_TIME_MAX: u32 = 10 * 60 * 1000;

fn wait_time(argument: &Word) -> Result<u32, Fault> {
    let time = numeric(argument, "Backlog_wait_time")?;
    if time > WAIT_TIME_MAX {
        let message = "Error sending backlog limit request (Invalid argument)";
        return Err(Fault::at(argument, message)
            .expected(format!("at most {WAIT_TIME_MAX} clock ticks"))
            .kind(ErrorKind::Invalid));
    }
    Ok(time)
}

fn signal(argument: &Word) -> Result<&'static str, Fault> {
    let text = argument.text().to_ascii_lowercase();
    match text.as_str() {
        "term" | "stop" => Ok("TERM"),
        "hup" | "reload" => Ok("HUP"),
        "usr1" | "rotate" => Ok("USR1"),
        "usr2" | "resume" => Ok("USR2"),
        "cont" | "state" => Ok("CONT"),
        _ => Err(Fault::at(
            argument,
            format!("{} is an unsupported signal", argument.text()),
        )
        .expected("TERM (stop), HUP (reload), USR1 (rotate), USR2 (resume) or CONT (state)")),
    }
}
