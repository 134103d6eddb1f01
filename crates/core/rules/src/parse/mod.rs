//! Parses one line of a rules file, or one command line of auditctl.
//!
//! Options take effect from left to right, as in setopt() of audit-userspace src/auditctl.c.

mod calls;
mod draft;
mod lists;
mod settings;
mod watch;

use crate::fault::Fault;
use crate::words::{self, Flag, Found, Options, Word};
use crate::{Command, Dialect, Host, Parsed, RuleError, Severity, Source};
use draft::{Draft, Target};

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
    let site = Site {
        dialect,
        source,
        host,
    };
    let mut line = Line::new(words, site);
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

/// Way to go on after an option.
enum Next {
    /// Read the next option.
    Go,
    /// The line is complete; any further word is an error.
    Last,
    /// The line is complete; further words are ignored.
    Done,
}

/// Surroundings of a line: the source that it is part of, and the dialect and host that decide its meaning.
#[derive(Clone, Copy)]
struct Site<'a> {
    dialect: Dialect,
    source: &'a Source,
    host: &'a dyn Host,
}

/// The state of reading one line.
struct Line<'a> {
    words: &'a [Word],
    site: Site<'a>,
    draft: Draft,
    commands: Vec<Command>,
    warnings: Vec<Fault>,
}

impl<'a> Line<'a> {
    fn new(words: &'a [Word], site: Site<'a>) -> Self {
        Line {
            words,
            site,
            draft: Draft::default(),
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

        let unread = if !self.has_swallowed_rest() {
            unread
        } else {
            None
        };
        if let Some(word) = extra.or(unread) {
            return Err(Fault::at(word, "parameter passed without an option given")
                .help("words belong to options; a comment needs a line of its own"));
        }

        let rule = std::mem::take(&mut self.draft).finish(self.words, self.site)?;
        self.commands.extend(rule);
        Ok(())
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
        let message = if self.site.source.line > 0 {
            format!("Option {text} on line {} is invalid", self.site.source.line)
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
        let (draft, site, warnings) = (&mut self.draft, self.site, &mut self.warnings);
        match flag {
            Flag::Short(b'a') => draft.rule_list(argument, Target::Append, site, warnings),
            Flag::Short(b'A') => draft.rule_list(argument, Target::Prepend, site, warnings),
            Flag::Short(b'd') => draft.rule_list(argument, Target::Delete, site, warnings),
            Flag::Short(b'S') => calls::add_names(draft, argument, site, warnings),
            Flag::Short(b'F') => draft.field(argument, site, warnings),
            Flag::Short(b'C') => draft.compare(argument),
            Flag::Short(b'k') => draft.key_option(argument, site.dialect, warnings),
            Flag::Short(b'w') => watch::watch(draft, argument, Target::Append, site, warnings),
            Flag::Short(b'W') => watch::watch(draft, argument, Target::Delete, site, warnings),
            Flag::Short(b'p') => watch::permissions(draft, argument),
            Flag::Short(b'R') => Err(Fault::at(word, "Error - nested rule files not supported")),
            Flag::Short(b'q') if draft.facts.has_syscalls => Err(Fault::at(
                argument,
                "Syscall auditing requested for make equivalent",
            )),
            _ => {
                let (command, next) = match flag {
                    Flag::Short(b'q') => settings::equivalent(argument)?,
                    Flag::Short(b'D' | b'l' | b's' | b'm') => {
                        settings::whole_line(flag, word, argument, self.words, rest)?
                    }
                    _ => settings::setting(flag, argument)?,
                };
                self.commands.push(command);
                Ok(next)
            }
        }
    }
}
