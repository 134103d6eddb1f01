//! `plugins.d/*.conf`: auditd-plugins(5), with the checks of auditd 3.0.9 and 4.x
//! (`audisp/audispd-pconfig.c`, `load_plugin_conf()` in `audisp/audispd.c`).

mod error;

use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};

use trust::{Directory, Links, Program, TrustError};

pub use error::PluginError;

/// The longest line that is accepted, in bytes without its newline: auditd 4.x has a buffer of 512.
pub const LINE_BYTES_MAX: usize = 510;
/// The largest file that is accepted, in bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// Prefix of the names of builtin plugins.
const BUILTIN: &str = "builtin_";

/// The format in which a plugin gets records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `string`: lines, as in the log.
    String,
    /// `binary`: `struct audit_dispatcher_header` and the text, padded as in auditd up to 4.0.
    Binary,
}

/// The kind of a plugin: a program or a socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PluginKind {
    /// A program that reads events from its standard input.
    Program {
        /// Absolute path of the program.
        path: PathBuf,
        /// Arguments of the program.
        args: Vec<String>,
    },
    /// `builtin_af_unix`: a stream socket.
    Socket {
        /// Absolute path to which the socket is bound.
        path: PathBuf,
        /// Permissions of the socket; `None` leaves them to the umask.
        mode: Option<u32>,
    },
}

/// An active plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plugin {
    /// Name of its file.
    pub name: String,
    /// Program or socket.
    pub kind: PluginKind,
    /// `format`.
    pub format: Format,
}

/// Returns the active plugins of a directory, sorted by the names of their files, and the errors in
/// the files of others. As in auditd, only files named `NAME.conf` without further dots are
/// plugins. Directory, files and programs must be writable by root only ([`trust`]); links are
/// followed, as in auditd.
///
/// # Errors
/// The directory cannot be read, or somebody else can change it. If it does not exist, there are no
/// plugins.
pub fn load(dir: &Path) -> Result<(Vec<Plugin>, Vec<PluginError>), PluginError> {
    let unreadable = |source| PluginError::Io {
        path: dir.to_owned(),
        call: "read",
        remedy: "set plugin_dir in auditd.conf to the directory of plugins",
        source,
    };
    let entries = match Directory::open(dir, Links::Follow) {
        Ok(directory) => directory.names().map_err(unreadable)?,
        Err(error) if error.is_missing() => return Ok(Default::default()),
        Err(TrustError::Io { source, .. }) => return Err(unreadable(source)),
        Err(error) => return Err(PluginError::Untrusted(error)),
    };

    // A file whose name is not UTF-8 is skipped.
    let names = entries.into_iter().flat_map(OsString::into_string);
    let mut names: Vec<String> = names.filter(|name| is_plugin(name)).collect();
    names.sort();
    let (mut plugins, mut errors) = (Vec::new(), Vec::new());
    for name in names {
        match load_one(&dir.join(&name)) {
            Ok(plugin) => plugins.extend(plugin),
            Err(error) => errors.push(error),
        }
    }

    Ok((plugins, errors))
}

fn is_plugin(name: &str) -> bool {
    name.strip_suffix(".conf")
        .is_some_and(|stem| !stem.is_empty() && !stem.contains('.'))
}

fn load_one(path: &Path) -> Result<Option<Plugin>, PluginError> {
    let io_error = |call, source| PluginError::Io {
        path: path.to_owned(),
        call,
        remedy: "make it a regular file that root can read",
        source,
    };
    let file = match trust::open(path, Links::Follow) {
        Ok(file) => file,
        Err(TrustError::Io { call, source, .. }) => return Err(io_error(call, source)),
        Err(error) => return Err(PluginError::Untrusted(error)),
    };
    let mut text = Vec::new();
    file.take(FILE_BYTES_MAX + 1)
        .read_to_end(&mut text)
        .map_err(|error| io_error("read", error))?;
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(PluginError::TooLarge {
            path: path.to_owned(),
            limit_bytes: FILE_BYTES_MAX,
        });
    }

    let plugin = parse(&text, path)?;
    if let Some(PluginKind::Program { path: program, .. }) =
        plugin.as_ref().map(|plugin| &plugin.kind)
    {
        check_program(path, program)?;
    }

    Ok(plugin)
}

/// Checks that only root can change the program or a directory above it, because root runs it.
fn check_program(conf: &Path, program: &Path) -> Result<(), PluginError> {
    match Program::find(program) {
        Ok(_) => Ok(()),
        Err(TrustError::Io { source, .. }) => Err(PluginError::Io {
            path: conf.to_owned(),
            call: "find the program of",
            remedy: "install the program that `path` names, or set `active = no`",
            source,
        }),
        Err(error) => Err(PluginError::Untrusted(error)),
    }
}

/// The settings from the lines read so far.
#[derive(Default)]
struct Draft {
    is_active: bool,
    path: Option<String>,
    is_builtin: bool,
    args: Vec<String>,
    is_binary: bool,
}

/// Parses the text of a plugin's file. `path` names the file in errors, and its last part is the name
/// of the plugin. Returns `None` if the plugin is not active. Accesses no file.
pub fn parse(text: &[u8], path: &Path) -> Result<Option<Plugin>, PluginError> {
    let mut draft = Draft::default();
    for (index, line) in text.split(|&byte| byte == b'\n').enumerate() {
        let wrong = |(found, expected): (String, &'static str)| PluginError::Line {
            path: path.to_owned(),
            line: index + 1,
            found,
            expected,
        };
        if line.len() > LINE_BYTES_MAX {
            let found = format!("a line of {} bytes", line.len());
            return Err(wrong((found, "at most 510")));
        }
        if line.iter().find(|&&byte| byte != b' ') == Some(&b'#') {
            continue;
        }
        let line = std::str::from_utf8(line)
            .map_err(|_| wrong(("bytes that are not UTF-8".into(), "text outside comments")))?;
        draft.line(line).map_err(wrong)?;
    }

    draft.finish(path)
}

impl Draft {
    /// Reads one line. The error says what was found and what was expected.
    fn line(&mut self, line: &str) -> Result<(), (String, &'static str)> {
        let mut words = line.split(' ').filter(|word| !word.is_empty());
        let Some(key) = words.next() else {
            return Ok(());
        };

        let syntax = "`key = value` with blanks around the `=`";
        match words.next() {
            Some("=") => {}
            other => return Err((format!("{:?} after {key:?}", other.unwrap_or("")), syntax)),
        }
        let values: Vec<&str> = words.collect();
        let value = match values.as_slice() {
            [] => return Err((format!("{key} has no value"), syntax)),
            [value] => *value,
            [value, ..] if key.eq_ignore_ascii_case("args") => *value,
            [_, extra, ..] => return Err((format!("{extra:?} after the value of {key}"), syntax)),
        };
        let found = || format!("{key} = {value}");

        match key.to_ascii_lowercase().as_str() {
            "active" => {
                self.is_active = either(value, ["no", "yes"]).ok_or((found(), "yes or no"))?
            }
            // Checked but not used: nothing comes back from a plugin.
            "direction" => {
                either(value, ["in", "out"]).ok_or((found(), "out or in"))?;
            }
            "path" => self.path = Some(value.to_owned()),
            "type" => {
                let is_builtin = either(value, ["always", "builtin"]);
                self.is_builtin = is_builtin.ok_or((found(), "always or builtin"))?;
            }
            "args" => self.args = values.iter().map(|word| (*word).to_owned()).collect(),
            "format" => {
                let is_binary = either(value, ["string", "binary"]);
                self.is_binary = is_binary.ok_or((found(), "string or binary"))?;
            }
            _ => {
                let keys = "active, direction, path, type, args or format";
                return Err((format!("unknown keyword {key:?}"), keys));
            }
        }

        Ok(())
    }

    fn finish(self, path: &Path) -> Result<Option<Plugin>, PluginError> {
        if !self.is_active {
            return Ok(None);
        }

        let wrong = |found: &str, remedy| PluginError::Incomplete {
            path: path.to_owned(),
            found: found.to_owned(),
            remedy,
        };
        let Some(program) = self.path.clone() else {
            let found = "active, but no path is given";
            return Err(wrong(found, "add `path = /sbin/PROGRAM`"));
        };

        let has_prefix = program
            .get(..BUILTIN.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(BUILTIN));
        let kind = if has_prefix && program.eq_ignore_ascii_case("builtin_af_unix") {
            self.socket(path)?
        } else if has_prefix || self.is_builtin {
            let found = format!("{program} is no builtin plugin");
            let remedy = "builtin_af_unix is the only one; programs have `type = always`";
            return Err(wrong(&found, remedy));
        } else if program.starts_with('/') {
            PluginKind::Program {
                path: PathBuf::from(program),
                args: self.args,
            }
        } else {
            let found = format!("path = {program} is not absolute");
            return Err(wrong(&found, "write the whole path"));
        };

        let name = path.file_name().unwrap_or_default();
        Ok(Some(Plugin {
            name: name.to_string_lossy().into_owned(),
            kind,
            format: if self.is_binary {
                Format::Binary
            } else {
                Format::String
            },
        }))
    }

    /// Reads the arguments as `init_af_unix()` of auditd 3.0.9 does: digits are the mode, a word that
    /// starts with a slash is the path.
    fn socket(&self, conf: &Path) -> Result<PluginKind, PluginError> {
        let wrong = |found: String| PluginError::Incomplete {
            path: conf.to_owned(),
            found,
            remedy: "write `args = 0640 /run/audit/audispd_events`",
        };
        let (mut mode, mut socket) = (None, None);
        for arg in &self.args {
            if arg.bytes().all(|byte| byte.is_ascii_digit()) {
                let number = u32::from_str_radix(arg, 8).ok();
                let number = number.filter(|number| *number <= 0o777);
                mode = Some(number.ok_or_else(|| wrong(format!("{arg} is not a mode")))?);
            } else if arg.starts_with('/') {
                socket = Some(PathBuf::from(arg));
            } else {
                return Err(wrong(format!(
                    "{arg:?} is neither a mode nor an absolute path"
                )));
            }
        }

        let path = socket.ok_or_else(|| wrong("the socket has no path".to_owned()))?;
        Ok(PluginKind::Socket { path, mode })
    }
}

/// Whether `word` is the second of `words`; `None` if it is neither. Ignores case.
fn either(word: &str, words: [&str; 2]) -> Option<bool> {
    let place = words
        .iter()
        .position(|known| known.eq_ignore_ascii_case(word));
    place.map(|place| place == 1)
}
