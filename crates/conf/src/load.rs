//! Reads the configuration file, with auditd's checks of who controls it.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{Mode, OFlags};

use crate::error::ConfigError;
use crate::parse::{parse_with, LoadOptions, Loaded};
use crate::Config;

/// The largest configuration file that is accepted, in bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Reads and checks `path`. It must be a regular file (no symbolic link unless `options` allow it),
/// owned by root and not writable by everyone. If the file does not exist, returns
/// [`Config::default`], as auditd skips a missing file.
pub fn load(path: &Path, options: LoadOptions) -> Result<Loaded, ConfigError> {
    let Some(file) = open(path, options)? else {
        return Ok(Loaded {
            config: Config::default(),
            notices: Vec::new(),
        });
    };
    check_trust(&file, path, options)?;
    let mut text = Vec::new();
    file.take(FILE_BYTES_MAX + 1)
        .read_to_end(&mut text)
        .map_err(|source| io_error(path, "read", source))?;
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(ConfigError::Untrusted {
            path: path.to_owned(),
            found: format!("larger than {FILE_BYTES_MAX} bytes"),
            remedy: "no auditd.conf is that large; name the right file",
        });
    }
    parse_with(&text, path, &options, true)
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

fn open(path: &Path, options: LoadOptions) -> Result<Option<File>, ConfigError> {
    // NONBLOCK, so that open(2) does not wait for the writer of a FIFO, which is refused below.
    let mut flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
    if !options.allow_links {
        flags |= OFlags::NOFOLLOW;
    }
    match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(fd) => Ok(Some(File::from(fd))),
        Err(rustix::io::Errno::NOENT) => Ok(None),
        Err(errno) => Err(io_error(path, "open", errno.into())),
    }
}

fn check_trust(file: &File, path: &Path, options: LoadOptions) -> Result<(), ConfigError> {
    let metadata = file
        .metadata()
        .map_err(|source| io_error(path, "stat", source))?;
    let untrusted = |found: String, remedy| {
        Err(ConfigError::Untrusted {
            path: path.to_owned(),
            found,
            remedy,
        })
    };
    if !metadata.is_file() {
        return untrusted("not a regular file".into(), "name a regular file");
    }
    if metadata.uid() != 0 && Some(metadata.uid()) != options.also_owned_by {
        let found = format!("owned by uid {}, not by root", metadata.uid());
        return untrusted(found, "chown root it");
    }
    if metadata.mode() & 0o002 != 0 {
        return untrusted("writable by everyone".into(), "chmod o-w it");
    }
    Ok(())
}
