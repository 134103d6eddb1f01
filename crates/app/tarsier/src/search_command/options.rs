//! ausearch's options, with its rules for values and its messages.

use super::users::{group_id, user_id};
use abi::Arch;
use abi::{record_type, RecordType};
use query::time::Bound;
use query::{kind, Dialect, Escape, Extra, Filter, TimeRange};
use std::path::PathBuf;

/// Format of printed events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Raw,
    Default,
    Interpret,
    Csv,
    Text,
}

/// Options of `tarsier search`.
pub(crate) struct SearchOptions {
    pub(crate) filter: Filter,
    pub(crate) range: TimeRange,
    pub(crate) output: OutputOptions,
    /// Files, directories and archives; ausearch takes the last one.
    pub(crate) inputs: Vec<PathBuf>,
    /// Read the logs even if standard input is a pipe.
    pub(crate) use_logs: bool,
    pub(crate) just_one: bool,
    pub(crate) timeout_s: Option<u64>,
    pub(crate) checkpoint: Option<PathBuf>,
    /// `-ts checkpoint`.
    pub(crate) is_checkpoint_time: bool,
}

/// Options of the output of `tarsier search`.
#[derive(Clone, Copy)]
pub(crate) struct OutputOptions {
    pub(crate) format: Format,
    /// Further columns of CSV.
    pub(crate) extra: Extra,
    pub(crate) escape: Escape,
    pub(crate) is_debug: bool,
    /// Write each event at once.
    pub(crate) line_buffered: bool,
}

/// Reply instead of a search.
pub(crate) enum SearchExit {
    /// Say this on standard error, and end with status 1.
    Fail(String),
    /// Write this text on standard error as it is, without a newline behind it, and end with status 1.
    FailWith(&'static str),
    Help,
    Version,
}

impl From<String> for SearchExit {
    fn from(message: String) -> SearchExit {
        SearchExit::Fail(message)
    }
}

/// The C library's text of ERANGE.
const OUT_OF_RANGE: &str = "Numerical result out of range";

type Result<T> = std::result::Result<T, SearchExit>;

/// A word of the command line, the words after it, and how many of those were taken.
struct Words<'w> {
    option: &'w str,
    rest: &'w [String],
    taken: usize,
}

impl<'w> Words<'w> {
    /// The word after the option, unless it begins with `-`.
    fn value(&mut self) -> Result<&'w str> {
        match self.rest.first() {
            Some(value) if !value.starts_with('-') => Ok(self.take(value)),
            _ => Err(format!("Argument is required for {}", self.option).into()),
        }
    }

    /// The word after the option, which may be a negative number.
    fn signed_value(&mut self) -> Result<&'w str> {
        match self.rest.first() {
            Some(value) => Ok(self.take(value)),
            None => Err(format!("Argument is required for {}", self.option).into()),
        }
    }

    /// Whether the value is the word `checkpoint` alone.
    fn is_checkpoint(&self) -> bool {
        let is_value = |word: &&String| !word.starts_with('-');
        self.rest.first().is_some_and(|first| first == "checkpoint")
            && self.rest.get(1).filter(is_value).is_none()
    }

    fn take(&mut self, value: &'w str) -> &'w str {
        self.taken += 1;
        value
    }

    fn bytes(&mut self) -> Result<Option<Vec<u8>>> {
        Ok(Some(self.value()?.as_bytes().to_vec()))
    }
}

impl SearchOptions {
    /// Reads the words after `ausearch` or `tarsier search --compat`.
    pub(crate) fn parse(words: &[String], dialect: Dialect) -> Result<SearchOptions> {
        let mut options = SearchOptions {
            filter: Filter::default(),
            range: TimeRange::default(),
            output: OutputOptions {
                format: Format::Default,
                extra: Extra::default(),
                escape: Escape::default(),
                is_debug: false,
                line_buffered: false,
            },
            inputs: Vec::new(),
            use_logs: false,
            just_one: false,
            timeout_s: None,
            checkpoint: None,
            is_checkpoint_time: false,
        };

        let mut at = 0;
        while let Some(option) = words.get(at) {
            let mut word = Words {
                option,
                rest: &words[at + 1..],
                taken: 0,
            };
            if let Err(instead) = options.set(&mut word, dialect) {
                return Err(options.with_extra_fault(instead));
            }
            at += 1 + word.taken;
        }

        if let Some(fault) = options.extra_fault() {
            return Err(fault.to_owned().into());
        }

        options.filter.is_interpreted = matches!(
            options.output.format,
            Format::Interpret | Format::Csv | Format::Text
        );
        Ok(options)
    }

    /// The error for further columns without the format that has columns.
    fn extra_fault(&self) -> Option<&'static str> {
        let Extra {
            time, labels, keys, ..
        } = self.output.extra;
        let is_wrong = (time || labels || keys) && self.output.format != Format::Csv;
        is_wrong.then_some("--extra options requires format to be csv")
    }

    /// Adds the error for further columns to another one: ausearch prints both.
    fn with_extra_fault(&self, instead: SearchExit) -> SearchExit {
        match (instead, self.extra_fault()) {
            (SearchExit::Fail(message), Some(fault)) => {
                SearchExit::Fail(format!("{message}\n{fault}"))
            }
            (instead, _) => instead,
        }
    }

    fn set(&mut self, word: &mut Words<'_>, dialect: Dialect) -> Result<()> {
        match word.option {
            "-h" | "--help" => return Err(SearchExit::Help),
            "-v" | "--version" => return Err(SearchExit::Version),
            "-w" | "--word" => self.filter.is_exact = true,
            "--input-logs" => self.use_logs = true,
            "--just-one" => self.just_one = true,
            "-l" | "--line-buffered" => self.output.line_buffered = true,
            "-if" | "--input" => self.inputs.push(PathBuf::from(word.value()?)),
            "-r" | "--raw" => self.raw(word)?,
            "-i" | "--interpret" => self.interpret(word)?,
            "--escape" => self.escape(word)?,
            "--debug" => self.output.is_debug = true,
            "--checkpoint" => self.checkpoint = Some(PathBuf::from(word.value()?)),
            "--extra-keys" => flag(word, &mut self.output.extra.keys)?,
            "--extra-labels" => flag(word, &mut self.output.extra.labels)?,
            "--extra-obj2" => flag(word, &mut self.output.extra.second)?,
            "--extra-time" => flag(word, &mut self.output.extra.time)?,
            "-ts" | "--start" if word.is_checkpoint() => {
                word.taken += 1;
                self.is_checkpoint_time = true;
            }
            "--format" => self.format(word)?,
            "--eoe-timeout" => self.timeout_s = Some(timeout(word)?),
            "-ts" | "--start" => self.range.start_s = time_of(word, Bound::Start, dialect)?,
            "-te" | "--end" => self.range.end_s = time_of(word, Bound::End, dialect)?,
            _ => {
                let is_known = set_text(&mut self.filter, word)?
                    || set_id(&mut self.filter, word, dialect)?
                    || set_call(&mut self.filter, word, dialect)?;
                if !is_known {
                    return Err(format!("{} is an unsupported option", word.option).into());
                }
            }
        }

        Ok(())
    }

    fn raw(&mut self, word: &mut Words<'_>) -> Result<()> {
        if self.output.format != Format::Default {
            return Err("Conflicting output format --raw".to_owned().into());
        }
        if word.value().is_ok() {
            return Err("Argument is NOT required for --raw".to_owned().into());
        }
        self.output.format = Format::Raw;
        Ok(())
    }

    fn interpret(&mut self, word: &mut Words<'_>) -> Result<()> {
        if self.output.format != Format::Default {
            return Err(format!("Conflicting output format {}", word.option).into());
        }
        self.output.format = Format::Interpret;
        flag(word, &mut true)
    }

    fn escape(&mut self, word: &mut Words<'_>) -> Result<()> {
        let name = word.value()?;
        self.output.escape =
            Escape::from_name(name).ok_or_else(|| format!("Unknown option ({name})"))?;
        Ok(())
    }

    fn format(&mut self, word: &mut Words<'_>) -> Result<()> {
        if self.output.format != Format::Default {
            return Err("Multiple output formats, use only 1".to_owned().into());
        }

        self.output.format = match word.value()? {
            "raw" => Format::Raw,
            "default" => Format::Default,
            name if name.starts_with("interp") => Format::Interpret,
            "csv" => Format::Csv,
            "text" => Format::Text,
            name => return Err(format!("Unknown option ({name})").into()),
        };

        Ok(())
    }
}

/// An option without a value.
fn flag(word: &mut Words<'_>, is_set: &mut bool) -> Result<()> {
    *is_set = true;
    match word.value() {
        Ok(_) => Err(format!("Argument is NOT required for {}", word.option).into()),
        Err(_) => Ok(()),
    }
}

fn timeout(word: &mut Words<'_>) -> Result<u64> {
    let text = word.value()?;
    if !starts_with_digit(text) {
        let message = format!("End of Event Timeout must be a numeric value, was {text}");
        return Err(message.into());
    }
    match leading(text) {
        Some(0) | None => Err(format!("Illegal value for End of Event Timeout, was {text}").into()),
        Some(seconds) => Ok(seconds),
    }
}

fn set_text(filter: &mut Filter, word: &mut Words<'_>) -> Result<bool> {
    let field = match word.option {
        "-c" | "--comm" => &mut filter.comm,
        "-f" | "--file" => &mut filter.file,
        "-k" | "--key" => &mut filter.key,
        "-hn" | "--host" => &mut filter.host,
        "-o" | "--object" => &mut filter.object,
        "-su" | "--subject" => &mut filter.subject,
        "-tm" | "--terminal" => &mut filter.terminal,
        "-uu" | "--uuid" => &mut filter.uuid,
        "-vm" | "--vm-name" => &mut filter.vm,
        "-x" | "--executable" => &mut filter.exe,
        "-n" | "--node" => {
            filter.nodes.extend(word.bytes()?);
            return Ok(true);
        }
        "-se" | "--context" => {
            filter.subject = word.bytes()?;
            filter.object = filter.subject.clone();
            filter.is_any_label = true;
            return Ok(true);
        }
        _ => return Ok(false),
    };

    *field = word.bytes()?;
    Ok(true)
}

fn set_id(filter: &mut Filter, word: &mut Words<'_>, dialect: Dialect) -> Result<bool> {
    match word.option {
        "-ga" | "--gid-all" => {
            filter.gid = Some(group(word, "Group")?);
            filter.egid = filter.gid;
            filter.is_any_group = true;
        }
        "-ge" | "--gid-effective" => filter.egid = Some(group(word, "Effective group")?),
        "-gi" | "--gid" => filter.gid = Some(group(word, "Group")?),
        "-ui" | "--uid" => {
            let text = word.value()?;
            let (id, name) = user(text, "Effective user", dialect)?;
            filter.uid = Some(id);
            filter.names[1] = name.or(filter.names[1].take());
        }
        "-ue" | "--uid-effective" => {
            let text = word.value()?;
            let (id, name) = user(text, "User", dialect)?;
            filter.euid = Some(id);
            filter.names[2] = name.or(filter.names[2].take());
        }
        "-ua" | "--uid-all" => {
            let text = word.value()?;
            let (id, name) = user(text, "User", dialect)?;
            (filter.uid, filter.euid, filter.auid) = (Some(id), Some(id), Some(id));
            if name.is_some() {
                filter.names = [name.clone(), name.clone(), name];
            }
            filter.is_any_user = true;
        }
        "-ul" | "--loginuid" => {
            let text = word.signed_value()?;
            let (id, name) = match text.strip_prefix('-') {
                Some(digits) if starts_with_digit(digits) => (number(text)? as u32, None),
                _ => user(text, "Login user", dialect)?,
            };
            filter.auid = Some(id);
            filter.names[0] = name.or(filter.names[0].take());
        }
        _ => return Ok(false),
    }

    Ok(true)
}

fn group(word: &mut Words<'_>, what: &str) -> Result<u32> {
    let text = word.value()?;
    if starts_with_digit(text) {
        return leading(text)
            .map(|id| id as u32)
            .ok_or_else(|| too_large("group", text));
    }
    group_id(text).ok_or_else(|| format!("{what} ID is non-numeric and unknown ({text})").into())
}

/// The id of a user by number or name, and the name.
fn user(text: &str, what: &str, dialect: Dialect) -> Result<(u32, Option<Vec<u8>>)> {
    if starts_with_digit(text) {
        let id = leading(text).ok_or_else(|| too_large("user", text))?;
        return Ok((id as u32, None));
    }
    match user_id(text) {
        Some(id) => Ok((id, Some(text.as_bytes().to_vec()))),
        // Logs of other hosts name users that this one does not have.
        None if !dialect.is_compat() => Ok((query::NO_ID, Some(text.as_bytes().to_vec()))),
        None => Err(format!("{what} ID is non-numeric and unknown ({text})").into()),
    }
}

fn too_large(what: &str, text: &str) -> SearchExit {
    format!("Numeric {what} ID conversion error ({OUT_OF_RANGE}) for {text}").into()
}

fn set_call(filter: &mut Filter, word: &mut Words<'_>, dialect: Dialect) -> Result<bool> {
    match word.option {
        "-a" | "--event" => {
            filter.serial = Some(digits(word, "Audit event id", dialect)? as u32);
        }
        "-p" | "--pid" => filter.pid = Some(digits(word, "Process id", dialect)? as i32),
        "-pp" | "--ppid" => filter.ppid = Some(digits(word, "Parent process id", dialect)? as i32),
        "--session" => {
            let text = word.signed_value()?;
            if !starts_with_digit(text.strip_prefix('-').unwrap_or(text)) {
                let message = format!("Session id must be a numeric value, was {text}");
                return Err(message.into());
            }
            let is_silent = dialect.is_compat() && starts_with_digit(text);
            let session = number(text).map_err(|error| {
                if is_silent {
                    SearchExit::FailWith("")
                } else {
                    error
                }
            });
            filter.session = Some(session? as u32);
        }
        "-e" | "--exit" => filter.exit = Some(exit(word)?),
        "-sv" | "--success" => {
            let text = word.value()?;
            if !text.contains("yes") && !text.contains("no") {
                return Err("Success must be 'yes' or 'no'.".to_owned().into());
            }
            filter.success = Some(text == "yes");
        }
        "-m" | "--message" => {
            let Ok(text) = word.value() else {
                let missing = format!("Argument is required for {}", word.option);
                return Err(format!("{missing}\n{}", valid_kinds(dialect)).into());
            };
            if !text.eq_ignore_ascii_case("ALL") {
                filter.kinds.extend(kinds(text, dialect)?);
            }
        }
        "-sc" | "--syscall" => syscall(filter, word, dialect)?,
        "--arch" => arch(filter, word, dialect)?,
        _ => return Ok(false),
    }

    Ok(true)
}

/// A number without a sign. About one that is too large, ausearch says half a line or nothing.
fn digits(word: &mut Words<'_>, what: &str, dialect: Dialect) -> Result<u64> {
    let text = word.value()?;
    if !starts_with_digit(text) {
        return Err(format!("{what} must be a numeric value, was {text}").into());
    }
    leading(text).ok_or_else(|| match (dialect, word.option) {
        (Dialect::Own, _) => format!("{what} {text} is out of range").into(),
        (_, "-a" | "--event") => SearchExit::FailWith("Illegal value for audit event ID"),
        _ => SearchExit::FailWith(""),
    })
}

fn exit(word: &mut Words<'_>) -> Result<i64> {
    let text = word.signed_value()?;
    let name = text.strip_prefix('-').unwrap_or(text);
    if starts_with_digit(name) {
        return number(text);
    }
    let sign = if name.len() < text.len() { -1 } else { 1 };
    match abi::errno_number(name) {
        Some(errno) => Ok(i64::from(errno) * sign),
        None => Err(format!("Unknown errno, was {text}").into()),
    }
}

/// The types of a list of names and numbers with commas.
fn kinds(text: &str, dialect: Dialect) -> Result<Vec<i32>> {
    let mut kinds = Vec::new();
    for name in text.split(',').filter(|name| !name.is_empty()) {
        if starts_with_digit(name) && leading(name).is_none() {
            let reason = format!("Numeric message type conversion error ({OUT_OF_RANGE})");
            return Err(format!("{reason} for {name}\n{}", valid_kinds(dialect)).into());
        }
        match kind::number(name.as_bytes(), dialect) {
            -1 => return Err(SearchExit::Fail(valid_kinds(dialect))),
            number => kinds.push(number),
        }
    }

    Ok(kinds)
}

fn valid_kinds(dialect: Dialect) -> String {
    let is_valid = |kind: i32| {
        matches!(kind, record_type::USER | record_type::LOGIN)
            || (record_type::FIRST_USER_MSG..=record_type::LAST_VIRT_MSG).contains(&kind)
    };
    let mut names: Vec<_> = RecordType::all()
        .filter(|(kind, _)| is_valid(kind.0))
        .filter_map(|(kind, _)| Some((kind, kind.name()?)))
        .filter(|(_, name)| kind::number(name.as_bytes(), dialect) != -1)
        .collect();
    names.sort_unstable();
    names.dedup();
    let names: String = names.iter().map(|(_, name)| format!("{name} ")).collect();
    format!("Valid message types are: ALL {names}")
}

fn syscall(filter: &mut Filter, word: &mut Words<'_>, dialect: Dialect) -> Result<()> {
    let text = word.value()?;
    if starts_with_digit(text) {
        let number = leading(text).ok_or_else(|| {
            format!("Syscall numeric conversion error ({OUT_OF_RANGE}) for {text}")
        })?;
        filter.syscall = Some(number as i32);
        return Ok(());
    }

    // The same call has another number on another machine, and the log may be from any.
    if dialect == Dialect::Own && filter.arch.is_none() {
        let known = Arch::EVERY
            .iter()
            .any(|arch| abi::syscall_number(*arch, text).is_some());
        if !known && !abi::has_read_only_syscall(text) {
            return Err(format!("Syscall {text} not found").into());
        }
        filter.call = Some(text.to_owned());
        return Ok(());
    }

    let arch = *filter.arch.get_or_insert(Arch::native());
    match abi::syscall_number(arch, text) {
        Some(number) => filter.syscall = Some(number as i32),
        None => return Err(format!("Syscall {text} not found").into()),
    }

    Ok(())
}

fn arch(filter: &mut Filter, word: &mut Words<'_>, dialect: Dialect) -> Result<()> {
    let text = word.value()?;
    if filter.arch.is_some() {
        return Err(SearchExit::Fail(match filter.syscall {
            Some(_) => "Arch needs to be defined before the syscall".to_owned(),
            None => "Arch is already defined".to_owned(),
        }));
    }

    let hex = || {
        let text = text.trim_start_matches("0x");
        u32::from_str_radix(text, 16)
            .ok()
            .and_then(Arch::from_audit_arch)
    };

    let bits = Arch::from_bits(&text.to_ascii_lowercase(), Arch::native());
    filter.arch = bits.or_else(|| Arch::from_name(text)).or_else(hex);
    match (filter.arch, dialect) {
        (Some(_), _) => Ok(()),
        (None, Dialect::Compat) => Err(format!("Unknown arch {text}").into()),
        (None, Dialect::Own) => {
            let names = Arch::NAMES.join(", ");
            Err(format!("--arch {text}: unknown; there are b32, b64, {names}").into())
        }
    }
}

/// The time of one or two words: a date, a time of day, both in any order, or a word such as `today`.
fn time_of(word: &mut Words<'_>, bound: Bound, dialect: Dialect) -> Result<i64> {
    let (at_s, taken) = crate::dialect::time_of(word.option, word.rest, bound, dialect)?;
    word.taken += taken;
    Ok(at_s)
}

fn starts_with_digit(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_digit())
}

/// The decimal number at the beginning.
fn leading(text: &str) -> Option<u64> {
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    text[..end].parse().ok()
}

/// A number with a sign, in decimal, or as C writes octal and hexadecimal ones.
fn number(text: &str) -> Result<i64> {
    query::c_number(text.as_bytes()).ok_or_else(|| format!("Error converting {text}").into())
}
