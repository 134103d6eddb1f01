//! Reads the configuration file, and checks who controls it.

use std::io::{self, Read};
use std::path::Path;

use trust::{Links, TrustError};

use crate::error::ConfigError;
use crate::parse::{parse_lines, parse_with, LoadOptions, Loaded};
use crate::Config;

/// The largest configuration file that is accepted, in bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Reads and checks `path`. It must be a regular file (no symbolic link unless `options` allow it)
/// that only root can change ([`trust`]). If the file does not exist, returns [`Config::default`],
/// as auditd skips a missing file.
pub fn load(path: &Path, options: LoadOptions) -> Result<Loaded, ConfigError> {
    match read(path, options)? {
        Some(text) => parse_with(&text, path, true),
        None => Ok(Loaded::default()),
    }
}

/// Reads `path` as [`load`] does, and returns whatever is right in it with the errors of the rest. Settings that are not
/// right have the values of [`Config::default`].
pub fn load_right_lines(path: &Path, options: LoadOptions) -> (Loaded, Vec<ConfigError>) {
    let mut errors = Vec::new();
    let loaded = match read(path, options) {
        Ok(Some(text)) => parse_lines(Config::default(), &text, path, true, &mut errors),
        Ok(None) => Loaded::default(),
        Err(error) => {
            errors.push(error);
            Loaded::default()
        }
    };
    (loaded, errors)
}

/// The text of the file; `None` if there is no file.
fn read(path: &Path, options: LoadOptions) -> Result<Option<Vec<u8>>, ConfigError> {
    let links = if options.allow_links {
        Links::Follow
    } else {
        Links::Refuse
    };
    let file = match trust::open(path, links) {
        Ok(file) => file,
        Err(error) if error.is_missing() => return Ok(None),
        Err(TrustError::Io { path, call, source }) => return Err(io_error(&path, call, source)),
        Err(error) => return Err(ConfigError::Untrusted(error)),
    };
    let mut text = Vec::new();
    file.take(FILE_BYTES_MAX + 1)
        .read_to_end(&mut text)
        .map_err(|source| io_error(path, "read", source))?;
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(ConfigError::TooLarge {
            path: path.to_owned(),
            limit_bytes: FILE_BYTES_MAX,
        });
    }

    Ok(Some(text))
}

fn io_error(path: &Path, call: &'static str, source: io::Error) -> ConfigError {
    let remedy = match source.raw_os_error() {
        Some(libc::ELOOP) => "symbolic links are not followed: name the file itself",
        Some(libc::EACCES | libc::EPERM) => "run as root, or make the file readable for this user",
        Some(libc::ENOENT) => "name a file that exists",
        _ => "check the file and its file system",
    };
    ConfigError::Io {
        path: path.to_owned(),
        call,
        remedy,
        source,
    }
}
