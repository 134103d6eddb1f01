//! The lines of a unit file and of its drop-ins.

use crate::profile::ProfileError;

/// Directives that restrict system calls, and those that other directives depend on.
const DIRECTIVES: [&str; 18] = [
    "DynamicUser",
    "LockPersonality",
    "MemoryDenyWriteExecute",
    "Personality",
    "PrivateDevices",
    "ProtectClock",
    "ProtectHostname",
    "ProtectKernelLogs",
    "ProtectKernelModules",
    "ProtectKernelTunables",
    "RestrictAddressFamilies",
    "RestrictNamespaces",
    "RestrictRealtime",
    "RestrictSUIDSGID",
    "SystemCallArchitectures",
    "SystemCallErrorNumber",
    "SystemCallFilter",
    "SystemCallLog",
];

/// Sections in which the directives count (systemd.exec(5)).
const SECTIONS: [&str; 4] = ["Service", "Socket", "Mount", "Swap"];

/// Sections of systemd-nspawn's files (systemd.nspawn(5)), whose `SystemCallFilter=` means something
/// else.
const NSPAWN_SECTIONS: [&str; 3] = ["Exec", "Files", "Network"];

pub(super) fn is_directive(name: &str) -> bool {
    DIRECTIVES.contains(&name)
}

/// Whether a line is the head of a section that units or nspawn's files have.
pub(super) fn is_section(line: &str) -> bool {
    let known = ["Unit", "Install"];
    section(line).is_some_and(|name| {
        [&known[..], &SECTIONS, &NSPAWN_SECTIONS]
            .concat()
            .contains(&name)
    })
}

fn section(line: &str) -> Option<&str> {
    line.trim().strip_prefix('[')?.strip_suffix(']')
}

/// An assignment of one of the directives.
#[derive(Clone, Debug)]
pub(super) struct Setting {
    pub(super) name: String,
    pub(super) value: String,
    /// Number of the line where it starts, from 1.
    pub(super) line: usize,
}

impl Setting {
    pub(super) fn place(&self) -> String {
        format!("line {}, {}=", self.line, self.name)
    }

    /// The note about a part that systemd ignores with a warning.
    pub(super) fn ignored(&self, found: &str, expected: &str) -> String {
        let place = self.place();
        format!("{place}: {found:?} is ignored, as systemd ignores it: expected {expected}")
    }

    /// Whether the list starts with `~`, and its words.
    pub(super) fn list(&self) -> (bool, impl Iterator<Item = &str>) {
        let (inverted, list) = self.inverted();
        (inverted, list.split_whitespace())
    }

    /// Whether the list starts with `~`, and what follows.
    pub(super) fn inverted(&self) -> (bool, &str) {
        match self.value.strip_prefix('~') {
            Some(list) => (true, list),
            None => (false, &self.value),
        }
    }
}

/// Words of a list in which quotes are taken off, up to a quote that does not end (systemd,
/// `extract_first_word` with EXTRACT_UNQUOTE).
pub(super) fn unquoted(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for letter in text.chars().chain([' ']) {
        if quote == Some(letter) {
            quote = None;
        } else if quote.is_none() && letter.is_whitespace() {
            words.extend(word.take());
        } else if quote.is_none() && ['"', '\''].contains(&letter) {
            quote = Some(letter);
            word.get_or_insert_default();
        } else {
            word.get_or_insert_default().push(letter);
        }
    }

    words
}

/// Parses a boolean of systemd.syntax(7).
pub(super) fn boolean(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "1" | "yes" | "y" | "true" | "t" | "on" => Some(true),
        "0" | "no" | "n" | "false" | "f" | "off" => Some(false),
        _ => None,
    }
}

/// What a unit says of system calls.
#[derive(Default)]
pub(super) struct Lines {
    /// The supported directives, in order.
    pub(super) settings: Vec<Setting>,
    /// Lines that systemd ignores with a warning.
    pub(super) notes: Vec<String>,
}

/// Reads a unit, followed by its drop-ins in the order of their names, as `systemctl cat` prints them;
/// or directives without a section. Comments and other directives are skipped; a backslash at the end of a line joins
/// the next one (systemd.syntax(7)).
///
/// # Errors
/// The text is a file of systemd-nspawn, or systemd does not start the unit.
pub(super) fn read(text: &str) -> Result<Lines, ProfileError> {
    let mut found = Lines::default();
    // Whether directives count; they do without any section, too.
    let mut counts = true;
    let mut is_drop_in = false;
    let mut lines = text.lines().enumerate().peekable();

    while let Some((index, line)) = lines.next() {
        let line = line.trim_start();
        is_drop_in |= is_head_of_drop_in(line);
        if line.trim().is_empty() || is_comment(line) {
            continue;
        }

        let mut whole = line.to_owned();
        while is_continued(&whole) {
            whole.pop();
            whole.push(' ');
            while let Some((_, next)) = lines.next_if(|row| !is_head_of_drop_in(row.1)) {
                if !is_comment(next.trim_start()) {
                    whole.push_str(next);
                    break;
                }
            }
        }

        let place = format!("line {}", index + 1);
        if let Some(reason) = unreadable(&whole) {
            if !is_drop_in {
                return Err(not_started(place, &whole, reason));
            }
            // Of a drop-in, systemd has read what comes before.
            while lines.next_if(|row| !is_head_of_drop_in(row.1)).is_some() {}
            let note = format!("{place}: {whole:?} is ignored with the rest of its file: {reason}");
            found.notes.push(note);
            continue;
        }

        if let Some(name) = section(&whole) {
            if NSPAWN_SECTIONS.contains(&name) {
                return Err(nspawn(index + 1, name));
            }
            counts = SECTIONS.contains(&name);
            continue;
        }
        found.assignment(&whole, index + 1, counts);
    }

    Ok(found)
}

impl Lines {
    /// Takes a line of a section, in which directives count or not.
    fn assignment(&mut self, text: &str, line: usize, counts: bool) {
        let Some((name, value)) = text.split_once('=') else {
            let text = text.trim();
            let note = format!("line {line}: {text:?} is ignored: expected DIRECTIVE=VALUE");
            self.notes.push(note);
            return;
        };

        let setting = Setting {
            name: name.trim().to_owned(),
            value: value.trim().to_owned(),
            line,
        };
        match (is_directive(&setting.name), counts) {
            (true, true) => self.settings.push(setting),
            (true, false) => self.notes.push(format!(
                "{}: ignored: the directive belongs to [Service], [Socket], [Mount] or [Swap]",
                setting.place()
            )),
            (false, _) => {}
        }
    }
}

fn is_comment(line: &str) -> bool {
    line.starts_with(['#', ';'])
}

/// Whether a line is the comment that `systemctl cat` prints before a drop-in.
fn is_head_of_drop_in(line: &str) -> bool {
    line.starts_with("# /") && line.ends_with(".conf")
}

/// What makes systemd give up a file at a line (systemd, `config_parse`).
fn unreadable(line: &str) -> Option<&'static str> {
    if line.starts_with('[') && section(line).is_none() {
        return Some("expected ] at the end of a section's name");
    }
    let (name, value) = line.split_once('=')?;
    let is_wrong = name.trim() == "DynamicUser" && boolean(value.trim()).is_none();
    is_wrong.then_some("expected yes or no")
}

fn not_started(place: String, line: &str, reason: &str) -> ProfileError {
    ProfileError::new(
        place,
        format!("{:?}", line.trim()),
        format!("a line that systemd can read ({reason}): systemd does not start the unit"),
        "correct the line",
    )
}

/// Whether a line ends with a backslash that no other backslash quotes.
fn is_continued(line: &str) -> bool {
    let backslashes = line.chars().rev().take_while(|&c| c == '\\').count();
    backslashes % 2 == 1
}

fn nspawn(line: usize, section: &str) -> ProfileError {
    ProfileError::new(
        format!("line {line}"),
        format!("[{section}], a section of systemd-nspawn"),
        "a unit: [Service], [Socket], [Mount] or [Swap]",
        "systemd-nspawn adds the list to one of its own; write it as SystemCallFilter= of a unit, \
         or dump the container's filters with `tarsier seccomp disasm --pid`",
    )
}
