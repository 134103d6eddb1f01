//! This host.

use super::host::{CommandState, Host, UnitState, Verb};
use anyhow::{bail, Context, Result};
use netlink::AuditSocket;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{symlink, DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use trust::{Links, Program};

const STATE_DIR: &str = "/var/lib/tarsier";
const RECORD: &str = "/var/lib/tarsier/migration.json";
/// The largest record, in bytes; some ten thousand rules fit.
const RECORD_BYTES_MAX: u64 = 64 << 20;
const SYSTEMCTL: &str = "/usr/bin/systemctl";
const DPKG_DIVERT: &str = "/usr/bin/dpkg-divert";
/// Where administrators put drop-ins.
const DROP_INS: &str = "/etc/systemd/system";
/// Name of Tarsier's drop-in: `override.conf`, which `systemctl edit` makes, comes before it.
const DROP_IN: &str = "tarsier.conf";
/// Drop-ins of the package, by the unit's name: upgrades change them.
const PACKAGED: &str = "/usr/share/tarsier/systemd";
/// Time that auditd may take to end, because it first writes its queue.
const END_LIMIT: Duration = Duration::from_secs(60);
const EPERM: i32 = libc::EPERM;
const EEXIST: i32 = libc::EEXIST;

pub(super) struct System;

impl Host for System {
    fn has_systemd(&self) -> bool {
        Path::new("/run/systemd/system").is_dir()
    }

    fn unit(&self, name: &str) -> Result<UnitState> {
        let shown = run(
            SYSTEMCTL,
            &[
                "show",
                "--property=LoadState,UnitFileState,ActiveState",
                name,
            ],
        )?;
        Ok(unit_state(&shown))
    }

    fn manage(&mut self, verb: Verb, unit: &str) -> Result<()> {
        let args: &[&str] = match verb {
            Verb::Start => &["start"],
            Verb::Terminate => &["kill", "--signal=TERM"],
            Verb::Stop => &["stop"],
            Verb::Enable => &["enable"],
            Verb::Disable => &["disable"],
            Verb::Mask => &["mask"],
            Verb::Unmask => &["unmask"],
        };

        let mut args = args.to_vec();
        args.extend(["--quiet", unit]);
        run(SYSTEMCTL, &args)?;
        match verb {
            // A start that the conditions of a unit forbid succeeds all the same.
            Verb::Start if !self.unit(unit)?.is_active => {
                bail!("{unit} does not run: `systemctl status {unit}` says why")
            }
            Verb::Terminate => self.await_end(unit),
            _ => Ok(()),
        }
    }

    fn kernel_rules(&mut self) -> Result<Option<Vec<Vec<u8>>>> {
        let mut socket = AuditSocket::open()?;
        if socket.status()?.enabled == 2 {
            return Ok(None);
        }
        Ok(Some(socket.list_rules()?))
    }

    fn delete_kernel_rules(&mut self) -> Result<()> {
        let mut socket = AuditSocket::open()?;
        for rule in socket.list_rules()? {
            socket.delete_rule(&rule)?;
        }
        Ok(())
    }

    fn add_kernel_rules(&mut self, rules: &[Vec<u8>]) -> Result<()> {
        let mut socket = AuditSocket::open()?;
        for rule in rules {
            match socket.add_rule(rule) {
                Ok(()) => {}
                Err(error) if errno(&error) == Some(EEXIST) => {}
                Err(error) if errno(&error) == Some(EPERM) => {
                    bail!("the kernel's rules are locked (-e 2) until the next boot")
                }
                Err(error) => return Err(error.into()),
            }
        }

        Ok(())
    }

    fn command(&self, path: &Path) -> Result<CommandState> {
        state_of(path)
    }

    fn divert(&mut self, path: &Path) -> Result<()> {
        let own = std::env::current_exe().context("cannot find this program")?;
        Program::find(&own).context("commands are linked to a program of root only")?;
        let kept = kept(path);
        dpkg_divert("--add", path)?;
        replace(path, &kept, &own)
    }

    fn restore(&mut self, path: &Path) -> Result<()> {
        put_back(path, &kept(path))?;
        dpkg_divert("--remove", path)
    }

    fn has_drop_in_dir(&self, unit: &str) -> Result<bool> {
        Ok(drop_in_dir(unit).try_exists()?)
    }

    fn link_drop_in(&mut self, unit: &str) -> Result<()> {
        let packaged = Path::new(PACKAGED).join(unit).with_extension("conf");
        trust::open(&packaged, Links::Refuse)
            .context("the drop-in is a file of Tarsier's package")?;
        link(&drop_in_dir(unit), &packaged)?;
        run(SYSTEMCTL, &["daemon-reload"]).map(drop)
    }

    fn unlink_drop_in(&mut self, unit: &str, and_dir: bool) -> Result<()> {
        unlink(&drop_in_dir(unit), and_dir)?;
        run(SYSTEMCTL, &["daemon-reload"]).map(drop)
    }

    fn disarm(&mut self) -> Result<()> {
        daemon::remove_left(Path::new(cli::RUN_DIR))?;
        Ok(())
    }

    fn load(&self) -> Result<Option<Vec<u8>>> {
        let file = match trust::open(Path::new(RECORD), Links::Refuse) {
            Ok(file) => file,
            Err(error) if error.is_missing() => return Ok(None),
            Err(error) => return Err(error).context("the record of the migration is not obeyed"),
        };
        let mut text = Vec::new();
        file.take(RECORD_BYTES_MAX)
            .read_to_end(&mut text)
            .context(RECORD)?;
        Ok(Some(text))
    }

    fn save(&mut self, record: &[u8]) -> Result<()> {
        let made = fs::DirBuilder::new().mode(0o700).create(STATE_DIR);
        if let Err(error) = made {
            if error.kind() != ErrorKind::AlreadyExists {
                return Err(error).context(STATE_DIR);
            }
        }
        write_whole(Path::new(RECORD), record).context(RECORD)
    }

    fn forget(&mut self) -> Result<()> {
        fs::remove_file(RECORD).context(RECORD)?;
        // Others may have files there.
        let _ = fs::remove_dir(STATE_DIR);
        Ok(())
    }
}

impl System {
    fn await_end(&self, unit: &str) -> Result<()> {
        let begun = Instant::now();
        while self.unit(unit)?.is_active {
            if begun.elapsed() > END_LIMIT {
                bail!("{unit} still runs {} s after SIGTERM", END_LIMIT.as_secs());
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(())
    }
}

fn unit_state(shown: &str) -> UnitState {
    let value = |key: &str| {
        let mut lines = shown.lines();
        let found = lines.find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
        found.unwrap_or_default()
    };
    UnitState {
        is_there: !matches!(value("LoadState"), "not-found" | ""),
        is_enabled: value("UnitFileState") == "enabled",
        is_masked: value("LoadState") == "masked",
        is_active: matches!(
            value("ActiveState"),
            "active" | "activating" | "reloading" | "deactivating"
        ),
    }
}

fn errno(error: &netlink::NetlinkError) -> Option<i32> {
    error.errno().map(|errno| errno.raw_os_error())
}

/// Output of a program that succeeds.
fn run(program: &str, args: &[&str]) -> Result<String> {
    let output = Command::new(program)
        .args(args)
        .env_clear()
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot run {program}"))?;

    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{program} {}: {}", args.join(" "), said.trim());
    }

    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Tells dpkg where the files of packages belong, so that an update of auditd goes to `PATH.auditd`. Nothing is done on
/// hosts without dpkg.
fn dpkg_divert(action: &str, path: &Path) -> Result<()> {
    if !Path::new(DPKG_DIVERT).exists() {
        return Ok(());
    }
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
        return Ok(());
    };

    // A diversion is by name, and packages of different age have different ones.
    for dir in ["/usr/sbin", "/sbin"] {
        let from = format!("{dir}/{name}");
        let to = format!("{from}.auditd");
        run(
            DPKG_DIVERT,
            &[
                "--quiet",
                "--local",
                "--no-rename",
                "--divert",
                &to,
                action,
                &from,
            ],
        )?;
    }

    Ok(())
}

fn state_of(path: &Path) -> Result<CommandState> {
    match fs::read_link(path) {
        Ok(target) if target.file_name().is_some_and(|name| name == "tarsier") => {
            Ok(CommandState::Ours)
        }
        Ok(_) => Ok(CommandState::Others),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(CommandState::Missing),
        Err(error) if error.kind() == ErrorKind::InvalidInput => Ok(CommandState::Others),
        Err(error) => Err(error).with_context(|| path.display().to_string()),
    }
}

fn kept(path: &Path) -> PathBuf {
    with_suffix(path, ".auditd")
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Keeps `path` as `kept`, and makes it a link to `program`. The command exists at every moment.
fn replace(path: &Path, kept: &Path, program: &Path) -> Result<()> {
    if state_of(path)? == CommandState::Ours {
        return Ok(());
    }

    if let Err(error) = fs::hard_link(path, kept) {
        if error.kind() != ErrorKind::AlreadyExists || !is_same(path, kept)? {
            let problem = format!("cannot keep {} as {}", path.display(), kept.display());
            return Err(error).context(problem);
        }
    }

    let new = with_suffix(path, ".tarsier-new");
    match fs::remove_file(&new) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error.into()),
        _ => {}
    }

    symlink(program, &new)?;

    Ok(fs::rename(&new, path)?)
}

fn drop_in_dir(unit: &str) -> PathBuf {
    with_suffix(&Path::new(DROP_INS).join(unit), ".d")
}

/// Links `packaged` into the directory of drop-ins, which is made if it is missing.
fn link(dir: &Path, packaged: &Path) -> Result<()> {
    let path = dir.join(DROP_IN);
    let problem = || path.display().to_string();
    match fs::DirBuilder::new().mode(0o755).create(dir) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
            return Err(error).with_context(|| dir.display().to_string())
        }
        _ => {}
    }

    match symlink(packaged, &path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            if fs::read_link(&path).ok().as_deref() != Some(packaged) {
                bail!("{} is somebody else's: move it away", path.display());
            }
            Ok(())
        }
        other => other.with_context(problem),
    }
}

/// Removes the link of [`link`], if it is there; with `and_dir` also the directory, unless others have files in it.
fn unlink(dir: &Path, and_dir: bool) -> Result<()> {
    let path = dir.join(DROP_IN);
    // A file of somebody else stays: the link was refused then.
    if fs::read_link(&path).is_ok_and(|target| target.starts_with(PACKAGED)) {
        fs::remove_file(&path).with_context(|| path.display().to_string())?;
    }

    if and_dir {
        match fs::remove_dir(dir) {
            Err(error)
                if ![ErrorKind::NotFound, ErrorKind::DirectoryNotEmpty].contains(&error.kind()) =>
            {
                return Err(error).with_context(|| dir.display().to_string())
            }
            _ => {}
        }
    }
    Ok(())
}

/// Puts back what [`replace`] has kept; the file is the same one, with its owner, mode and times.
fn put_back(path: &Path, kept: &Path) -> Result<()> {
    if state_of(kept)? == CommandState::Missing {
        return Ok(());
    }

    match state_of(path)? {
        CommandState::Others if is_same(path, kept)? => Ok(fs::remove_file(kept)?),
        CommandState::Others => bail!(
            "{} is neither Tarsier nor auditd's, which is kept as {}: move one of them away",
            path.display(),
            kept.display()
        ),
        CommandState::Ours | CommandState::Missing => Ok(fs::rename(kept, path)?),
    }
}

fn is_same(a: &Path, b: &Path) -> Result<bool> {
    let id = |path| fs::symlink_metadata(path).map(|found| (found.dev(), found.ino()));
    Ok(id(a)? == id(b)?)
}

/// Replaces a file at once; it is on the disk afterwards.
fn write_whole(path: &Path, text: &[u8]) -> Result<()> {
    let new = with_suffix(path, ".new");
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .custom_flags(libc::O_NOFOLLOW)
        .open(&new)?;

    file.write_all(text)?;
    file.sync_all()?;
    fs::rename(&new, path)?;
    if let Some(dir) = path.parent() {
        File::open(dir)?.sync_all()?;
    }

    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_replaced_and_put_back_as_the_same_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("auditctl");
        let (kept, program) = (kept(&path), Path::new("/usr/sbin/tarsier"));
        fs::write(&path, "auditd's").unwrap();
        let before = fs::metadata(&path).unwrap();
        for _ in 0..2 {
            replace(&path, &kept, program).unwrap();
            assert_eq!(state_of(&path).unwrap(), CommandState::Ours);
            assert_eq!(fs::read(&kept).unwrap(), b"auditd's");
        }
        for _ in 0..2 {
            put_back(&path, &kept).unwrap();
            assert_eq!(state_of(&kept).unwrap(), CommandState::Missing);
            let after = fs::metadata(&path).unwrap();
            assert_eq!(after.ino(), before.ino());
            assert_eq!(
                (after.mode(), after.mtime()),
                (before.mode(), before.mtime())
            );
        }
    }

    #[test]
    fn a_replacement_that_was_cut_short_is_undone_and_no_other_file_is_touched() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("auditctl");
        let kept = kept(&path);
        fs::write(&path, "auditd's").unwrap();
        fs::hard_link(&path, &kept).unwrap();
        put_back(&path, &kept).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"auditd's");
        assert_eq!(state_of(&kept).unwrap(), CommandState::Missing);

        fs::write(&kept, "somebody's").unwrap();
        assert!(replace(&path, &kept, Path::new("/usr/sbin/tarsier")).is_err());
        assert!(put_back(&path, &kept).is_err());
        assert_eq!(fs::read(&path).unwrap(), b"auditd's");
        assert_eq!(fs::read(&kept).unwrap(), b"somebody's");
    }

    #[test]
    fn a_drop_in_is_linked_and_unlinked_and_no_file_of_others_is_touched() {
        let dir = tempfile::tempdir().unwrap();
        let packaged = Path::new(PACKAGED).join("auditd.conf");
        let drop_ins = dir.path().join("auditd.service.d");
        for _ in 0..2 {
            link(&drop_ins, &packaged).unwrap();
            assert_eq!(fs::read_link(drop_ins.join(DROP_IN)).unwrap(), packaged);
        }
        for _ in 0..2 {
            unlink(&drop_ins, true).unwrap();
            assert!(!drop_ins.exists());
        }

        fs::create_dir(&drop_ins).unwrap();
        fs::write(drop_ins.join("override.conf"), "of others").unwrap();
        link(&drop_ins, &packaged).unwrap();
        unlink(&drop_ins, true).unwrap();
        assert_eq!(fs::read_dir(&drop_ins).unwrap().count(), 1);

        fs::write(drop_ins.join(DROP_IN), "of others").unwrap();
        assert!(link(&drop_ins, &packaged).is_err());
        unlink(&drop_ins, true).unwrap();
        assert_eq!(fs::read(drop_ins.join(DROP_IN)).unwrap(), b"of others");
    }

    #[test]
    fn units_are_read_as_systemctl_shows_them() {
        let state = unit_state("LoadState=masked\nActiveState=inactive\nUnitFileState=masked\n");
        assert!(state.is_there && state.is_masked && !state.is_active && !state.is_enabled);
        let state = unit_state("LoadState=loaded\nActiveState=active\nUnitFileState=enabled\n");
        assert!(state.is_there && !state.is_masked && state.is_active && state.is_enabled);
        let none = "LoadState=not-found\nActiveState=inactive\nUnitFileState=\n";
        assert_eq!(unit_state(none), UnitState::default());
    }

    #[test]
    fn a_record_is_replaced_whole_and_through_no_link() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("record");
        for text in ["first, and longer", "second"] {
            write_whole(&path, text.as_bytes()).unwrap();
            assert_eq!(fs::read(&path).unwrap(), text.as_bytes());
        }
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        let other = dir.path().join("other");
        fs::write(&other, "other").unwrap();
        symlink(&other, dir.path().join("record.new")).unwrap();
        assert!(write_whole(&path, b"third").is_err());
        assert_eq!(fs::read(&other).unwrap(), b"other");
    }
}
