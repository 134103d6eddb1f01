//! The lines of a unit file.

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

pub(super) fn is_directive(name: &str) -> bool {
    DIRECTIVES.contains(&name)
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

    pub(super) fn refuse(&self, found: &str, expected: &str, remedy: &str) -> ProfileError {
        ProfileError::new(self.place(), found, expected, remedy)
    }

    /// The value as a boolean of systemd.syntax(7).
    pub(super) fn boolean(&self) -> Result<bool, ProfileError> {
        match self.value.to_ascii_lowercase().as_str() {
            "1" | "yes" | "y" | "true" | "t" | "on" => Ok(true),
            "0" | "no" | "n" | "false" | "f" | "off" => Ok(false),
            _ => Err(self.refuse(&self.value, "a boolean", "write yes or no")),
        }
    }

    /// Whether the list starts with `~`, and its words.
    pub(super) fn list(&self) -> (bool, impl Iterator<Item = &str>) {
        let inverted = self.value.strip_prefix('~');
        let words = inverted.unwrap_or(&self.value).split_whitespace();
        (inverted.is_some(), words)
    }
}

/// The supported directives of a unit, in order. Comments, sections and other directives are
/// skipped; a backslash at the end of a line joins the next one (systemd.syntax(7)).
pub(super) fn read(text: &str) -> Result<Vec<Setting>, ProfileError> {
    let mut settings = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((index, line)) = lines.next() {
        let mut whole = line.trim().to_owned();
        if whole.is_empty() || whole.starts_with(['#', ';', '[']) {
            continue;
        }
        while whole.ends_with('\\') {
            whole.pop();
            whole.push(' ');
            let next = lines.find(|row| !row.1.trim_start().starts_with(['#', ';']));
            let Some((_, next)) = next else { break };
            whole.push_str(next.trim());
        }
        let Some((name, value)) = whole.split_once('=') else {
            return Err(ProfileError::new(
                format!("line {}", index + 1),
                whole,
                "DIRECTIVE=VALUE",
                "write one directive per line, comments after #",
            ));
        };
        if is_directive(name.trim()) {
            settings.push(Setting {
                name: name.trim().to_owned(),
                value: value.trim().to_owned(),
                line: index + 1,
            });
        }
    }
    Ok(settings)
}
