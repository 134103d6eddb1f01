//! Parses the lines of auditd.conf, and checks that its keys do not contradict each other.

use std::path::Path;

use crate::context::{printable, Context};
use crate::error::{nearest, ConfigError, Notice, Place};
use crate::keys::KEYS;
use crate::{Config, ExeHash, Flush, LogFormat, NameFormat, SizeAction, SpaceLimit};

/// The longest line that auditd reads, in bytes; it skips longer ones. Its buffer of 160 bytes also
/// holds the newline and a NUL.
pub const LINE_BYTES_MAX: usize = 158;

/// Options of [`crate::load`].
#[derive(Clone, Copy, Debug, Default)]
pub struct LoadOptions {
    /// Follow a symbolic link (auditd's `-l`).
    pub allow_links: bool,
}

/// A configuration and the notices about it.
#[derive(Clone, Debug, Default)]
pub struct Loaded {
    /// The configuration.
    pub config: Config,
    /// Settings that were accepted but do not have their usual effect, for the program to print.
    pub notices: Vec<Notice>,
    /// The text; empty if there is no file.
    pub text: Vec<u8>,
}

/// Parses the text of a configuration file. `file` only serves to name places in errors and notices.
/// Accesses no file, but looks up group names in the system's group database.
///
/// A key that is not set has auditd's built-in value ([`Config::unset`]), not the value in the file
/// that auditd ships.
pub fn parse(text: &[u8], file: &Path) -> Result<Loaded, ConfigError> {
    parse_with(text, file, false)
}

pub(super) fn parse_with(
    text: &[u8],
    file: &Path,
    check_files: bool,
) -> Result<Loaded, ConfigError> {
    let mut errors = Vec::new();
    let loaded = parse_lines(Config::unset(), text, file, check_files, &mut errors);
    match errors.into_iter().next() {
        Some(error) => Err(error),
        None => Ok(loaded),
    }
}

/// Applies the lines that are right to `config`, and adds the errors of the others. Settings that contradict each other
/// get their defaults.
pub(super) fn parse_lines(
    mut config: Config,
    text: &[u8],
    file: &Path,
    check_files: bool,
    errors: &mut Vec<ConfigError>,
) -> Loaded {
    let mut notices = Vec::new();
    let mut keys_set = false;
    for (index, line) in text.split(|&byte| byte == b'\n').enumerate() {
        let place = Place {
            file: file.to_owned(),
            line: index + 1,
        };
        if line.len() > LINE_BYTES_MAX {
            notices.push(Notice {
                place,
                key: "",
                text: format!(
                    "line of {} bytes skipped, as auditd does: the limit is {LINE_BYTES_MAX}",
                    line.len()
                ),
            });
            continue;
        }
        let mut with_line = config.clone();
        match parse_line(line, place, check_files, &mut with_line, &mut notices) {
            Ok(sets_key) => {
                keys_set |= sets_key;
                config = with_line;
            }
            Err(error) => errors.push(error),
        }
    }

    if keys_set {
        if let Err(error) = check_agreement(&config, file, &mut notices) {
            errors.push(error);
            config = agreeing(config);
        }
    }

    Loaded {
        config,
        notices,
        text: text.to_owned(),
    }
}

/// The configuration with the defaults of all settings that [`check_agreement`] compares.
fn agreeing(config: Config) -> Config {
    let usual = Config::default();
    Config {
        space_left: usual.space_left,
        admin_space_left: usual.admin_space_left,
        flush: usual.flush,
        freq: usual.freq,
        log_group: usual.log_group,
        name_format: usual.name_format,
        ..config
    }
}

/// Applies one line; true if it set a key.
fn parse_line(
    line: &[u8],
    place: Place,
    check_files: bool,
    config: &mut Config,
    notices: &mut Vec<Notice>,
) -> Result<bool, ConfigError> {
    // Only blanks separate words; a tab is part of a word, as in libaudit's audit_strsplit().
    let start = line.iter().position(|&b| b != b' ').unwrap_or(line.len());
    let line = &line[start..];
    if line.is_empty() || line[0] == b'#' {
        return Ok(false);
    }

    let tabs = if line.contains(&b'\t') {
        " (a tab does not separate words)"
    } else {
        ""
    };
    let syntax = |found: String| ConfigError::Syntax {
        place: place.clone(),
        found: found + tabs,
    };
    let line = std::str::from_utf8(line)
        .map_err(|_| syntax("bytes that are not UTF-8 outside a comment".into()))?;
    let mut words = line.split(' ').filter(|word| !word.is_empty());
    let name = words.next().unwrap_or_default();

    match words.next() {
        Some("=") => {}
        None => return Err(syntax(format!("no `=` after {:?}", name))),
        Some(other) => {
            return Err(syntax(format!(
                "{other:?} where the `=` after {name:?} belongs"
            )))
        }
    }

    let value = words
        .next()
        .ok_or_else(|| syntax(format!("{name} has no value")))?;
    let key = KEYS
        .iter()
        .find(|key| key.name.eq_ignore_ascii_case(name))
        .ok_or_else(|| ConfigError::UnknownKey {
            place: place.clone(),
            key: name.to_owned(),
            nearest: nearest(name, KEYS.iter().map(|key| key.name)),
        })?;

    let option = words.next();
    if let (Some(extra), false) = (option, key.takes_option) {
        return Err(syntax(format!("{extra:?} after the value of {}", key.name)));
    }

    let mut context = Context {
        place,
        key: key.name,
        value,
        option,
        check_files,
        notices,
    };

    (key.apply)(config, &mut context)?;
    if let Some(instead) = key.not_honoured {
        if !value.eq_ignore_ascii_case(key.auditd_default) {
            context.notice(format!(
                "{} = {}: not honoured yet: {instead}",
                key.name,
                printable(value)
            ));
        }
    }

    Ok(true)
}

/// Makes the checks of auditd's `sanity_check()`, and notes settings that have no effect.
fn check_agreement(
    config: &Config,
    file: &Path,
    notices: &mut Vec<Notice>,
) -> Result<(), ConfigError> {
    let conflict = |found: String, remedy: &str| ConfigError::Conflict {
        path: file.to_owned(),
        found,
        remedy: remedy.into(),
    };
    if let (SpaceLimit::Mib(space), SpaceLimit::Mib(admin)) =
        (config.space_left, config.admin_space_left)
    {
        // auditd also refuses 0 and 0, and thus every file that sets neither. Nothing is checked
        // in that case, so such a file is accepted here.
        if space <= admin && (space, admin) != (0, 0) {
            return Err(conflict(
                format!("space_left ({space}) is not larger than admin_space_left ({admin})"),
                "space_left warns first: make it the larger one",
            ));
        }
    }

    let incremental = matches!(config.flush, Flush::Incremental | Flush::IncrementalAsync);
    if incremental && config.freq == 0 {
        return Err(conflict(
            "flush is incremental but freq is 0".into(),
            "set freq to the number of records between two syncs, such as 50",
        ));
    }
    if config.log_group.may_read() && config.log_dir() == Path::new("/var/log") {
        return Err(conflict(
            "log_file is directly in /var/log and log_group is not root, which would change the \
             permissions of a system directory"
                .into(),
            "put the log in a directory of its own, such as /var/log/audit",
        ));
    }
    if config.name_format == NameFormat::User && config.name.is_none() {
        return Err(conflict(
            "name_format is USER but name is not set".into(),
            "add a line `name = TEXT`",
        ));
    }

    note_idle_settings(config, file, notices);
    Ok(())
}

fn note_idle_settings(config: &Config, file: &Path, notices: &mut Vec<Notice>) {
    let mut note = |key: &'static str, text: &str| {
        notices.push(Notice {
            place: Place {
                file: file.to_owned(),
                line: 0,
            },
            key,
            text: text.into(),
        });
    };

    if matches!(config.flush, Flush::Data | Flush::Sync) && config.freq != 0 {
        note(
            "freq",
            "freq is set but only the incremental flush modes use it",
        );
    }

    let rotates = config.max_log_file_action == SizeAction::Rotate;
    if rotates && config.num_logs < 2 {
        note(
            "num_logs",
            "max_log_file_action is ROTATE but num_logs is less than 2: nothing is rotated",
        );
    }

    if config.exe_hash != ExeHash::None && config.log_format == LogFormat::Raw {
        note(
            "exe_hash",
            "exe_hash has no effect with log_format = RAW, whose records are exactly the kernel's: \
             use ENRICHED, COMPACT or JSON",
        );
    }

    if config.max_log_file_mib == 0 && config.max_log_file_action != SizeAction::Ignore {
        note(
            "max_log_file",
            "max_log_file is 0: taken as no limit (auditd would act after every record)",
        );
    }
}
