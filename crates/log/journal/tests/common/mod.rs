//! Shared by the tests of the journal.
// Each test program uses only a part of this.
#![allow(dead_code)]

use std::ffi::CString;
use std::path::{Path, PathBuf};

use conf::{Config, FailureAction, Flush, SizeAction, SpaceLimit};
use journal::{log_files, Journal, OwnerAction, Severity};
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags};

/// A configuration without limits or actions, to which a test adds what it tests.
pub(crate) fn quiet() -> Config {
    Config {
        flush: Flush::None,
        freq: 0,
        num_logs: 5,
        max_log_file_mib: 0,
        max_log_file_action: SizeAction::Ignore,
        space_left: SpaceLimit::Mib(0),
        admin_space_left: SpaceLimit::Mib(0),
        space_left_action: FailureAction::Ignore,
        admin_space_left_action: FailureAction::Ignore,
        disk_full_action: FailureAction::Syslog,
        disk_error_action: FailureAction::Syslog,
        ..Config::default()
    }
}

pub(crate) fn open(path: &Path, config: &Config) -> Journal {
    Journal::open(path, config)
        .unwrap_or_else(|e| panic!("{e}"))
        .0
}

/// An event of one record that contains `number`, `len` bytes long.
pub(crate) fn event(number: u64, len: usize) -> Vec<u8> {
    let mut line = format!("type=USER msg=audit(1.000:{number}): ").into_bytes();
    while line.len() < len.saturating_sub(1) {
        line.push(b'x');
    }
    line.push(b'\n');
    line
}

/// All files of a log, oldest first, as one text.
pub(crate) fn whole_log(path: &Path) -> Vec<u8> {
    log_files(path)
        .unwrap()
        .iter()
        .flat_map(|file| std::fs::read(file).unwrap())
        .collect()
}

pub(crate) fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

pub(crate) fn says(actions: &[OwnerAction], text: &str) -> bool {
    actions
        .iter()
        .any(|action| action.to_string().contains(text))
}

pub(crate) fn alerts(actions: &[OwnerAction]) -> usize {
    let is_alert = |action: &&OwnerAction| matches!(action, OwnerAction::Message { severity, .. } if *severity == Severity::Alert);
    actions.iter().filter(is_alert).count()
}

/// A new tmpfs. Where mounting is not allowed there is none, and the test says that it is skipped.
pub(crate) struct Tmpfs {
    dir: tempfile::TempDir,
}

impl Tmpfs {
    // Mounted with system calls, not mount(8): until it execs, a child has this process's files
    // open, and their locks.
    pub(crate) fn mount(test: &str, options: &str) -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        let options = CString::new(options).unwrap();
        let flags = MountFlags::empty();
        match rustix::mount::mount("tmpfs", dir.path(), "tmpfs", flags, &*options) {
            Ok(()) => Some(Tmpfs { dir }),
            Err(Errno::PERM) => {
                println!("skipped: {test}: mounting a tmpfs is not allowed here (needs root)");
                None
            }
            Err(error) => panic!("a tmpfs for {test}: {error}"),
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn resize(&self, option: &str) {
        self.remount(MountFlags::empty(), option);
    }

    pub(crate) fn make_read_only(&self) {
        self.remount(MountFlags::RDONLY, "");
    }

    fn remount(&self, flags: MountFlags, option: &str) {
        let option = CString::new(option).unwrap();
        rustix::mount::mount_remount(self.dir.path(), flags, &*option).unwrap();
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        let _ = rustix::mount::unmount(self.dir.path(), UnmountFlags::DETACH);
    }
}

/// Permission bits of a file.
pub(crate) fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().unwrap().permissions().mode() & 0o7777
}
