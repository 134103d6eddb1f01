//! Programs that the spawner may start: those that the configuration files name, with the arguments
//! given there, and those that are built into auditd. A daemon that was taken over cannot make it
//! start anything else.

use crate::spawn::log_files;
use crate::spawn::message::Request;
use conf::plugins::PluginKind;
use conf::{Config, FailureAction, LoadOptions, SizeAction};
use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};

/// The program that changes the run level, as in auditd.
pub const INIT: &str = "/sbin/init";

/// Signals of [`Request::Signal`].
const SIGNALS: [i32; 3] = [libc::SIGTERM, libc::SIGKILL, libc::SIGHUP];

/// The programs of the configuration since the spawner was started.
pub(crate) struct Permits {
    config: PathBuf,
    /// The logs: those of the configuration, unless the daemon was told another.
    logs: HashSet<PathBuf>,
    follows_log: bool,
    plugins: HashSet<(PathBuf, Vec<String>)>,
    exec: HashSet<PathBuf>,
}

impl Permits {
    /// Programs that the configuration names now; the log's files are those of `log` if it is given, otherwise those of
    /// the configuration.
    pub(crate) fn of(config: &Path, log: Option<&Path>) -> Permits {
        let mut permits = Permits {
            config: config.to_owned(),
            logs: log.into_iter().map(Path::to_owned).collect(),
            follows_log: log.is_none(),
            plugins: HashSet::new(),
            exec: HashSet::new(),
        };
        permits.read();
        permits
    }

    /// Whether a request may be carried out. The files are read again for a program that is not known.
    pub(crate) fn check(&mut self, request: &Request) -> io::Result<()> {
        if self.knows(request) {
            return Ok(());
        }

        self.read();
        if self.knows(request) {
            Ok(())
        } else {
            Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                format!(
                    "refused: {} does not name this program with these arguments, or this file",
                    self.config.display()
                ),
            ))
        }
    }

    fn knows(&self, request: &Request) -> bool {
        match request {
            Request::Plugin { path, args, .. } => {
                self.plugins.contains(&(path.clone(), args.clone()))
            }
            Request::Exec { path } => self.exec.contains(path),
            Request::Mail { program } => program == Path::new(conf::SENDMAIL),
            Request::Runlevel { program, level } => program == Path::new(INIT) && *level <= 1,
            Request::Log(change) => self.logs.iter().any(|log| log_files::is_of(change, log)),
            Request::Signal { number } => SIGNALS.contains(number),
            // As Runlevel.
            Request::Halt => true,
            Request::Lookup { .. } | Request::Command | Request::Spawner | Request::Tidy => true,
        }
    }

    /// Adds the programs that the files name. The daemon reports errors in the files.
    fn read(&mut self) {
        let config = match conf::load(&self.config, LoadOptions::default()) {
            Ok(loaded) => loaded.config,
            Err(_) if !self.config.exists() => Config::default(),
            Err(_) => return,
        };
        self.exec.extend(exec_programs(&config).cloned());

        if self.follows_log {
            self.logs.insert(config.log_file.clone());
        }
        let Ok((plugins, _)) = conf::plugins::load(&config.plugins.plugin_dir) else {
            return;
        };

        for plugin in plugins {
            if let PluginKind::Program { path, args } = plugin.kind {
                self.plugins.insert((path, args));
            }
        }
    }
}

/// The programs of EXEC actions.
fn exec_programs(config: &Config) -> impl Iterator<Item = &PathBuf> {
    fn of_failure(action: &FailureAction) -> Option<&PathBuf> {
        match action {
            FailureAction::Exec(path) => Some(path),
            _ => None,
        }
    }

    let of_size = match &config.max_log_file_action {
        SizeAction::Exec(path) => Some(path),
        _ => None,
    };
    let actions = [
        &config.space_left_action,
        &config.admin_space_left_action,
        &config.disk_full_action,
        &config.disk_error_action,
    ];
    actions.into_iter().filter_map(of_failure).chain(of_size)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn plugin(path: &Path, args: &[&str]) -> Request {
        Request::Plugin {
            path: path.to_owned(),
            args: args.iter().map(|arg| (*arg).to_owned()).collect(),
            nice: 0,
        }
    }

    #[test]
    fn only_what_the_files_name_is_permitted() {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("program");
        let other = dir.path().join("other");
        for path in [&program, &other] {
            std::fs::write(path, "#!/bin/sh\n").unwrap();
            std::fs::set_permissions(path, PermissionsExt::from_mode(0o750)).unwrap();
        }
        let plugins = dir.path().join("plugins.d");
        std::fs::create_dir(&plugins).unwrap();
        let config = dir.path().join("auditd.conf");
        let text = format!(
            "plugin_dir = {}\ndisk_full_action = EXEC {}\n",
            plugins.display(),
            other.display()
        );
        std::fs::write(&config, text).unwrap();
        let name = |args: &str| {
            let text = format!(
                "active = yes\npath = {}\nargs = {args}\n",
                program.display()
            );
            std::fs::write(plugins.join("one.conf"), text).unwrap();
            let mode = PermissionsExt::from_mode(0o640);
            std::fs::set_permissions(plugins.join("one.conf"), mode).unwrap();
        };
        name("a b");
        let mut permits = Permits::of(&config, None);
        let may = |permits: &mut Permits, request: &Request| permits.check(request).is_ok();
        assert!(may(&mut permits, &plugin(&program, &["a", "b"])));
        assert!(may(&mut permits, &Request::Signal { number: 9 }));
        for refused in [
            Request::Signal { number: 19 },
            plugin(&program, &["a"]),
            plugin(&program, &["a", "b", "c"]),
            plugin(&other, &[]),
            plugin(Path::new("/bin/sh"), &["-c", "id"]),
            Request::Exec {
                path: program.clone(),
            },
            Request::Mail {
                program: "/bin/sh".into(),
            },
            Request::Runlevel {
                program: INIT.into(),
                level: 6,
            },
            Request::Runlevel {
                program: "/bin/sh".into(),
                level: 0,
            },
        ] {
            let error = permits.check(&refused).unwrap_err().to_string();
            assert!(error.contains("auditd.conf does not name"), "{error}");
        }
        assert!(may(&mut permits, &Request::Exec { path: other }));
        // Changes of a file are followed; the program from before a reload may be started again
        // until then.
        name("c");
        assert!(may(&mut permits, &plugin(&program, &["c"])));
        assert!(may(&mut permits, &plugin(&program, &["a", "b"])));
    }
}
