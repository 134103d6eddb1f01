//! This host, as `tarsier doctor` sees it.

use super::audit::OWN;
use super::machine::{AuditFacts, Configured, EngineFacts, Machine, Owner, Space};
use anyhow::Context;
use cli::messages::reasons;
use conf::{LoadOptions, SpaceLimit};
use daemon::protocol::{socket_path, Request, Status};
use rules::{LoadError, SystemHost};
use rustix::fs::{openat, statfs, statvfs, unlinkat, AtFlags, Mode, OFlags, CWD};
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// BPF_FS_MAGIC (linux/magic.h).
const BPF_FS_MAGIC: u64 = 0xcafe_4a11;
/// Syncs that are timed.
const SYNCS: usize = 5;
/// The largest file of /proc or /sys that is read, in bytes.
const TEXT_BYTES_MAX: u64 = 1 << 20;

/// The host that this process runs on.
pub(super) struct System {
    pub(super) rules: Vec<PathBuf>,
    pub(super) config: Option<PathBuf>,
}

impl Machine for System {
    fn text(&self, path: &str) -> io::Result<String> {
        let mut text = String::new();
        let file = io::Read::take(File::open(path)?, TEXT_BYTES_MAX);
        io::Read::read_to_string(&mut { file }, &mut text)?;
        Ok(text)
    }

    fn is_root(&self) -> bool {
        rustix::process::geteuid().is_root()
    }

    fn engine(&self) -> EngineFacts {
        let ebpf_refusal = capture::probe::ebpf_refusal();
        let btf = Path::new("/sys/kernel/btf/vmlinux").exists();
        let trampoline_refusal = if self.is_root() && ebpf_refusal.is_none() {
            capture::probe::trampoline_refusal()
        } else {
            Some("not tried".to_owned())
        };
        let gaps = capture::probe::gaps(trampoline_refusal.is_none());
        let others = gaps.iter().filter(|gap| !gap.essential);

        EngineFacts {
            btf,
            ebpf_refusal,
            trampoline_refusal,
            gaps: others.map(ToString::to_string).collect(),
            compat_entry: capture::probe::compat_entry(),
            x32_calls: capture::probe::x32_calls(),
        }
    }

    fn audit(&self) -> Result<AuditFacts, String> {
        let status = netlink::AuditSocket::open().and_then(|mut socket| socket.status());
        let status = status.map_err(|error| error.to_string())?;
        Ok(AuditFacts {
            enabled: status.enabled,
            pid: status.pid,
        })
    }

    fn processes(&self) -> Vec<(u32, String)> {
        let Ok(entries) = std::fs::read_dir("/proc") else {
            return Vec::new();
        };
        let named = entries.filter_map(|entry| {
            let pid: u32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
            let name = self.text(&format!("/proc/{pid}/comm")).ok()?;

            // As auditd.service, the daemon is called auditd.
            let program = std::fs::read_link(format!("/proc/{pid}/exe"));
            let is_own = program.is_ok_and(|path| path.file_name().is_some_and(|name| name == OWN));
            let name = if is_own { OWN } else { name.trim_end() };
            Some((pid, name.to_owned()))
        });
        named.collect()
    }

    fn owner(&self, path: &Path) -> io::Result<Owner> {
        let found = std::fs::metadata(path)?;
        Ok(Owner {
            uid: found.uid(),
            mode: found.mode() & 0o7777,
            is_directory: found.is_dir(),
        })
    }

    fn space(&self, directory: &Path) -> io::Result<Space> {
        let found = statvfs(directory)?;
        let mib = |blocks: u64| blocks.saturating_mul(found.f_frsize) >> 20;
        Ok(Space {
            free_mib: mib(found.f_bavail),
            total_mib: mib(found.f_blocks),
        })
    }

    fn sync_time(&self, directory: &Path) -> io::Result<Duration> {
        let name = directory.join(format!(".tarsier-doctor-{}", std::process::id()));
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(CWD, &name, flags, Mode::from_raw_mode(0o600))?;
        let timed = timed_syncs(File::from(file));
        let removed = unlinkat(CWD, &name, AtFlags::empty());
        let times = timed?;
        removed?;
        Ok(times.get(SYNCS / 2).copied().unwrap_or_default())
    }

    fn is_clock_synchronised(&self) -> io::Result<bool> {
        // SAFETY: a timex of zeroes is valid, and with modes 0 the call only fills it.
        let state = unsafe { libc::adjtimex(&mut std::mem::zeroed()) };
        match state {
            -1 => Err(io::Error::last_os_error()),
            state => Ok(state != libc::TIME_ERROR),
        }
    }

    fn is_bpf_file_system(&self, path: &Path) -> bool {
        statfs(path).is_ok_and(|found| found.f_type as u64 == BPF_FS_MAGIC)
    }

    fn rules(&self) -> Result<Option<usize>, String> {
        let mut count = None;
        for path in &self.rules {
            if daemon::rule_files::is_missing(path) {
                continue;
            }
            // Whoever is not root may look at rules, too.
            let owner = if self.is_root() {
                rules::Owner::Root
            } else {
                rules::Owner::Anybody
            };
            let set = match rules::load(path, owner, &SystemHost) {
                Ok(set) => set,
                Err(LoadError::Rules(errors)) => {
                    let first = errors.first().map(ToString::to_string);
                    let first = first.unwrap_or_default();
                    return Err(format!("{} error(s), the first: {first}", errors.len()));
                }
                Err(error) => return Err(error.to_string()),
            };
            count = Some(count.unwrap_or(0) + set.rules.len());
        }

        Ok(count)
    }

    fn not_in_force(&self) -> Option<String> {
        let path = socket_path(Path::new(cli::RUN_DIR));
        let text = crate::ctl::ask(&path, &Request::Status).ok()?;
        let status: Status = serde_json::from_str(&text).ok()?;
        status.rules_in_force.summary()
    }

    fn configuration(&self) -> Result<Configured, String> {
        let standard = Path::new(conf::AUDITD_CONF);
        let file = self.config.as_deref().unwrap_or(standard);
        if self.config.is_some() && !file.exists() {
            return Err(format!("{} does not exist", file.display()));
        }

        let loaded = conf::load(file, LoadOptions::default()).context("refused");
        let loaded = loaded.map_err(|error| reasons(&error))?;
        let config = loaded.config;
        let total_mib = self
            .space(config.log_dir())
            .map_or(0, |space| space.total_mib);

        Ok(Configured {
            log_dir: config.log_dir().to_owned(),
            writes_logs: config.write_logs,
            admin_space_left_mib: match config.admin_space_left {
                SpaceLimit::Mib(mib) => mib,
                SpaceLimit::Percent(percent) => total_mib / 100 * u64::from(percent),
            },
            pin_dir: config.pin_dir,
            notices: loaded.notices.len(),
        })
    }
}

/// Writes and syncs some blocks. Returns the times, shortest first.
fn timed_syncs(mut file: File) -> io::Result<Vec<Duration>> {
    let mut times = Vec::with_capacity(SYNCS);
    for _ in 0..SYNCS {
        let begun = Instant::now();
        file.write_all(&[0; 4096])?;
        file.sync_data()?;
        times.push(begun.elapsed());
    }
    times.sort();
    Ok(times)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sync_takes_time_and_leaves_no_file() {
        let system = System {
            rules: Vec::new(),
            config: None,
        };
        let dir = tempfile::tempdir().unwrap();
        assert!(system.sync_time(dir.path()).unwrap() > Duration::ZERO);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        assert!(system.sync_time(&dir.path().join("none")).is_err());
    }

    #[test]
    fn rules_and_configuration_of_a_directory_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let with = |rules: &Path, config: &Path| System {
            rules: vec![rules.to_owned()],
            config: Some(config.to_owned()),
        };
        let config = dir.path().join("auditd.conf");
        std::fs::write(
            &config,
            "log_file = /srv/log/a.log\nspace_left = 9\nadmin_space_left = 7\n",
        )
        .unwrap();
        let none = with(&dir.path().join("none"), &config);
        assert_eq!(none.rules(), Ok(None));
        let found = none.configuration().unwrap();
        assert_eq!(found.log_dir, Path::new("/srv/log"));
        assert_eq!(found.admin_space_left_mib, 7);
        let rules = dir.path().join("a.rules");
        std::fs::write(&rules, "-a always,exit -F arch=b64 -S chmod -k a\n").unwrap();
        assert_eq!(with(&rules, &config).rules(), Ok(Some(1)));
        std::fs::write(&rules, "-a always,nowhere -S chmod\n").unwrap();
        let why = with(&rules, &config).rules().unwrap_err();
        assert!(why.starts_with("1 error(s), the first: "), "{why}");
        let missing = with(&rules, &dir.path().join("none.conf")).configuration();
        assert!(missing.unwrap_err().contains("does not exist"));
    }

    #[test]
    fn this_process_is_among_the_processes() {
        let system = System {
            rules: Vec::new(),
            config: None,
        };
        let own = std::process::id();
        assert!(system.processes().iter().any(|(pid, _)| *pid == own));
        assert!(!system.is_bpf_file_system(Path::new("/proc")));
    }
}
