//! The settings that a start takes where auditd.conf is wrong: those that were last in force without an error, kept in
//! the state directory, or the lines that are right. Decision 0049.

use crate::protocol::LeftOut;
use crate::start::good_rules;
use crate::stderr::{reasons, say};
use cli::RunArgs;
use conf::{Config, ConfigError, LoadOptions, Loaded, NameFormat, RulesError};
use std::path::{Path, PathBuf};
use trust::Directory;

/// Settings, and what of the file is not in force.
pub(crate) struct Chosen {
    pub(crate) config: Config,
    pub(crate) left_out: Vec<LeftOut>,
    /// The text of the file, if all of it is in force.
    pub(crate) text: Option<Vec<u8>>,
}

impl Chosen {
    /// All of a file.
    pub(crate) fn of(loaded: Loaded) -> Chosen {
        Chosen {
            config: loaded.config,
            left_out: Vec::new(),
            text: Some(loaded.text),
        }
    }

    /// Takes the host's name for records if that which the settings ask for cannot be resolved, as before the network
    /// is up.
    pub(crate) fn take_node_name(&mut self, file: &Path) {
        if let Err(error) = self.config.node_name() {
            let instead = "records have the host's own name instead";
            self.left_out.push(left_out(&error, file, instead));
            self.config.name_format = NameFormat::Hostname;
        }
    }
}

/// The configuration file that `--config` names, or the standard one.
pub(crate) fn file(args: &RunArgs) -> &Path {
    let config = args.config.as_deref();
    config.unwrap_or(Path::new(conf::AUDITD_CONF))
}

/// The file with the settings that a start takes: `file`, or the copy of what was last in force if that is wrong.
pub(crate) fn file_in_force(file: &Path, state_dir: &Path) -> PathBuf {
    let copy = state_dir.join(name_for(file));
    match conf::load(file, LoadOptions::default()) {
        Err(_) if last_good(&copy).is_some() => copy,
        _ => file.to_owned(),
    }
}

/// Chooses the settings for a start with a `file` that has errors.
///
/// # Errors
/// The settings want no others (`rules_error = refuse`).
pub(crate) fn choose(file: &Path, state: Option<&Directory>) -> Result<Chosen, ConfigError> {
    let (right, errors) = conf::load_right_lines(file, LoadOptions::default());
    let copy = state.and_then(|state| last_good(&state.path().join(name_for(file))));
    let wants_none = |config: &Config| config.rules_error == RulesError::Refuse;
    // A wrong line must not turn `refuse` off: either of the two files may ask for it.
    if wants_none(&right.config) || copy.as_ref().is_some_and(wants_none) {
        conf::load(file, LoadOptions::default())?;
    }

    let instead = match copy {
        Some(_) => "the settings that were last in force without an error are in force instead",
        None => "the default is in force instead",
    };
    let left_out = errors.iter().map(|error| left_out(error, file, instead));
    Ok(Chosen {
        left_out: left_out.collect(),
        config: copy.unwrap_or(right.config),
        text: None,
    })
}

/// Keeps the text of a file whose settings are in force. A failure is printed; recording goes on.
pub(crate) fn keep(file: &Path, text: &[u8], state: Option<&Directory>) {
    let Some(state) = state else { return };
    let name = name_for(file);
    if let Err(error) = good_rules::write(state, &name, text) {
        let path = state.path().join(name);
        say!(
            "tarsier: the settings in force are not kept for a start with wrong ones: {}: {}",
            path.display(),
            reasons(&error)
        );
    }
}

/// The settings of the copy, if there is one and it is right.
fn last_good(copy: &Path) -> Option<Config> {
    if !copy.exists() {
        return None;
    }
    match conf::load(copy, LoadOptions::default()) {
        Ok(loaded) => Some(loaded.config),
        Err(error) => {
            say!("tarsier: the last good settings cannot be used: {error}");
            None
        }
    }
}

/// Name of the copy: that of the standard file has a name of its own.
fn name_for(file: &Path) -> String {
    if file == Path::new(conf::AUDITD_CONF) {
        return "good.auditd-conf".to_owned();
    }
    let file = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    let digest = blake3::hash(file.as_os_str().as_encoded_bytes()).to_hex();
    format!("good-{}.auditd-conf", &digest[..16])
}

fn left_out(error: &ConfigError, file: &Path, instead: &str) -> LeftOut {
    let (name, line) = (file.display().to_string(), error.line());
    let why = error.to_string();
    let place = match line {
        0 => format!("{name}: "),
        line => format!("{name}:{line}: "),
    };
    let why = why.strip_prefix(&place).unwrap_or(&why);
    LeftOut {
        file: name,
        line: u32::try_from(line).unwrap_or(u32::MAX),
        why: format!("{why}; {instead}"),
        is_setting: true,
    }
}
