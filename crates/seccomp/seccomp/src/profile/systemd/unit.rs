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
        let inverted = self.value.strip_prefix('~');
        let words = inverted.unwrap_or(&self.value).split_whitespace();
        (inverted.is_some(), words)
    }
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
/// The text is a file of systemd-nspawn.
pub(super) fn read(text: &str) -> Result<Lines, ProfileError> {
    let mut found = Lines::default();
    // Whether directives count; they do without any section, too.
    let mut counts = true;
    let mut lines = text.lines().enumerate();

    while let Some((index, line)) = lines.next() {
        let line = line.trim_start();
        if line.trim().is_empty() || line.starts_with(['#', ';']) {
            continue;
        }

        let mut whole = line.to_owned();
        while is_continued(&whole) {
            whole.pop();
            whole.push(' ');
            let next = lines.find(|row| !row.1.trim_start().starts_with(['#', ';']));
            let Some((_, next)) = next else { break };
            whole.push_str(next);
        }

        if let Some(name) = section(&whole) {
            if NSPAWN_SECTIONS.contains(&name) {
                return Err(nspawn(index + 1, name));
            }
            counts = SECTIONS.contains(&name);
            continue;
        }
        let place = format!("line {}", index + 1);
        let Some((name, value)) = whole.split_once('=') else {
            let note = format!(
                "{place}: {:?} is ignored: expected DIRECTIVE=VALUE",
                whole.trim()
            );
            found.notes.push(note);
            continue;
        };
        let setting = Setting {
            name: name.trim().to_owned(),
            value: value.trim().to_owned(),
            line: index + 1,
        };
        match (is_directive(&setting.name), counts) {
            (true, true) => found.settings.push(setting),
            (true, false) => found.notes.push(format!(
                "{}: ignored: the directive belongs to [Service], [Socket], [Mount] or [Swap]",
                setting.place()
            )),
            (false, _) => {}
        }
    }

    Ok(found)
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
