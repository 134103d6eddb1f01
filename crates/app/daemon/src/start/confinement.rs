//! Rights that the daemon gives up before it arms anything, and those that it keeps.

use crate::protocol::ConfinementStatus;
use crate::stderr::say;
use anyhow::{bail, Result};
use conf::plugins::PluginKind;
use conf::{Config, Confinement as Choice, MetricsAddress, NameFormat};
use privsep::confine::{InForce, Wanted, Writable};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Files outside of the daemon's directories that it writes, for auditctl's -f.
const FAILURE_FILES: [&str; 2] = ["/dev/kmsg", "/proc/sysrq-trigger"];

/// The confinement of this daemon; of none, if the configuration does not want it.
#[derive(Default)]
pub(crate) struct Confinement {
    choice: Choice,
    in_force: Option<InForce>,
}

impl Confinement {
    /// Confines this process as `config` asks for. `pins` are the directories where capture is, or was, pinned. No
    /// other thread may run yet, and no program can be started by this process from now on.
    pub(crate) fn begin(
        config: &Config,
        run_dir: &Path,
        state_dir: Option<&Path>,
        pins: &[PathBuf],
    ) -> Confinement {
        let choice = config.confinement;
        if choice == Choice::No {
            say!("tarsier: not confined (confinement = no)");
            return Confinement {
                choice,
                in_force: None,
            };
        }

        // What this kernel can do is probed while that is still allowed.
        capture::probe::prepare_confinement();
        let mut wanted = wanted(config, run_dir, pins);
        let state_dir = state_dir.filter(|state_dir| *state_dir != run_dir);
        let state_dir = state_dir.map(|state_dir| Writable::Directory(state_dir.to_owned()));
        wanted.writable.extend(state_dir);

        let in_force = privsep::confine::apply(&wanted);
        report(&in_force);
        Confinement {
            choice,
            in_force: Some(in_force),
        }
    }

    /// Whether this daemon can follow `config`.
    ///
    /// # Errors
    /// The daemon would have to write where it no longer can.
    pub(crate) fn check(&self, config: &Config) -> Result<()> {
        let landlock = self.in_force.as_ref().and_then(|all| all.landlock.as_ref());
        if let (Some(landlock), true) = (landlock, config.write_logs) {
            let dir = real(directory_of(&config.log_file));
            let mut paths = landlock.paths.iter().map(|path| real(path));
            // Landlock can only be narrowed, never widened, once it is in force.
            if !paths.any(|path| dir.starts_with(path)) {
                bail!(
                    "log_file = {}: since its start this daemon writes to its own directories only \
                     (confinement): restart tarsier to log elsewhere",
                    config.log_file.display()
                );
            }
        }
        if config.confinement != self.choice {
            say!("tarsier: confinement: a change takes effect at the next start");
        }
        Ok(())
    }

    /// The confinement for `tarsier status`; `None` if there is none.
    pub(crate) fn status(&self) -> Option<ConfinementStatus> {
        let all = self.in_force.as_ref()?;
        let landlock = all.landlock.as_ref();
        let paths = landlock.map_or(&[][..], |landlock| &landlock.paths);
        Some(ConfinementStatus {
            strict: all.kills,
            capabilities: all.capabilities.clone(),
            bounding: all.bounding.clone(),
            no_new_privs: all.no_new_privs,
            dumpable: all.dumpable,
            oom_score_adj: all.oom_score_adj,
            calls: all.calls,
            landlock_abi: landlock.map(|landlock| landlock.abi),
            writable: paths
                .iter()
                .map(|path| path.display().to_string())
                .collect(),
            missing: all.missing.clone(),
        })
    }
}

fn wanted(config: &Config, run_dir: &Path, pins: &[PathBuf]) -> Wanted {
    let log_dir = directory_of(&config.log_file);
    let mut writable = vec![Writable::Directory(run_dir.to_owned())];
    if config.write_logs {
        // The journal gives it its mode and group, but could not make it any more.
        let _ = std::fs::DirBuilder::new().mode(0o700).create(log_dir);
    }

    // Without a log, too: a reload may want one.
    writable.push(Writable::Directory(log_dir.to_owned()));
    let own = rustix::process::geteuid().as_raw();
    let overrides_owners = log_dir.metadata().is_ok_and(|found| found.uid() != own);
    // Pins of the next capture are made beside the earlier ones, and moved to their place.
    let mut file_systems: Vec<PathBuf> = pins
        .iter()
        .map(|dir| directory_of(dir).to_owned())
        .collect();

    // What `-e 2` locks is pinned beside the standard directory, whatever the other pins' is.
    let standard = directory_of(Path::new(capture::STANDARD_PIN_DIR));
    file_systems.push(standard.to_owned());
    file_systems.sort();
    file_systems.dedup();
    writable.extend(file_systems.into_iter().map(Writable::Tree));
    let sockets = sockets(config).into_iter();
    writable.extend(sockets.map(Writable::Sockets));
    writable.extend(FAILURE_FILES.map(|path| Writable::File(path.into())));
    let port = match config.metrics {
        Some(MetricsAddress::Loopback(port)) => Some(port),
        _ => None,
    };
    let looks_up = matches!(config.name_format, NameFormat::Fqd | NameFormat::Numeric);

    Wanted {
        kills: config.confinement == Choice::Strict,
        network: port.is_some() || looks_up,
        privileged_port: port.is_some_and(|port| port < 1024),
        overrides_owners,
        writable,
    }
}

/// Directories in which the configuration wants sockets to be made.
fn sockets(config: &Config) -> Vec<PathBuf> {
    let metrics = match &config.metrics {
        Some(MetricsAddress::Unix(path)) => Some(path.clone()),
        _ => None,
    };

    // What is wrong with a plugin is said when the plugins are started.
    let plugins = conf::plugins::load(&config.plugins.plugin_dir);
    let plugins = plugins.map(|loaded| loaded.0).unwrap_or_default();
    let of_plugins = plugins.into_iter().filter_map(|plugin| match plugin.kind {
        PluginKind::Socket { path, .. } => Some(path),
        PluginKind::Program { .. } => None,
    });
    let mut directories: Vec<PathBuf> = metrics
        .into_iter()
        .chain(of_plugins)
        .map(|path| directory_of(&path).to_owned())
        .collect();
    directories.sort();
    directories.dedup();

    directories
}

fn directory_of(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("/"))
}

/// The path without symbolic links, or as it is if it leads nowhere.
fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// Prints one line for what is in force, and one for each part that is not.
fn report(all: &InForce) {
    let others = if all.kills {
        "kill it"
    } else {
        "fail and are recorded"
    };

    let landlock = match &all.landlock {
        Some(landlock) => format!(
            "writing in {} places only (Landlock {})",
            landlock.paths.len(),
            landlock.abi
        ),
        None => "writing everywhere".to_owned(),
    };

    say!(
        "tarsier: confined to {} capabilities, {} system calls (others {others}), {landlock}",
        all.capabilities.len(),
        all.calls
    );
    for missing in &all.missing {
        say!("tarsier: confinement lacks {missing}");
    }
}
