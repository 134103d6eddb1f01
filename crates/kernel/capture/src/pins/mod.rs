//! Pins that outlive the daemon: a private directory in a BPF file system (kernel/bpf/inode.c), in which the links,
//! maps and rings of a capture are pinned, so that they keep working while no process holds a descriptor of them.

mod attached;
mod file_system;
mod frozen;
mod handover;

pub(crate) use attached::{info_of, Attached};
pub use file_system::{unmount_unused, STANDARD_PIN_DIR};
pub use frozen::FrozenMap;
pub use handover::{Handed, Handover, UnfinishedWrite};

use crate::error::{system, CaptureError};
use crate::own_programs::own_programs;
use bpf::load::refused;
use libbpf_rs::libbpf_sys::{bpf_obj_get, bpf_obj_pin};
use libbpf_rs::MapHandle;
use rustix::fs::{flock, FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use std::collections::BTreeSet;
use std::ffi::{CString, OsStr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

/// Prefix of the names of links, which are unpinned first.
const LINK: &str = "link-";

/// The directory of one capture, locked for this process. Dropping it leaves pinned objects in place; an empty
/// directory is removed.
#[derive(Debug)]
pub struct Pins {
    dir: PathBuf,
    /// New path of the directory, if it was moved.
    moved: OnceLock<PathBuf>,
    _lock: OwnedFd,
    /// Whether links that are dropped stay pinned.
    is_left: AtomicBool,
    /// Links that were unpinned, by name: the kernel takes a moment to detach them.
    ending: Mutex<Vec<(String, u32)>>,
}

/// Longest wait until a link is detached.
const ENDING_MAX: Duration = Duration::from_secs(10);
/// Number of such links from which those that are detached are removed from the list.
const ENDING_KEPT: usize = 1024;
/// Interval for checking whether a link is detached: there is no notification.
const ENDING_LOOK: Duration = Duration::from_millis(2);

impl Pins {
    /// Creates `dir` (0700) if necessary. It must be on a BPF file system, which is mounted at
    /// [`STANDARD_PIN_DIR`]'s parent if `dir` is below that and none is mounted there.
    ///
    /// # Errors
    /// `dir` is not on a BPF file system, belongs to another user, is open to others, or is in use by another
    /// process.
    pub fn open(dir: &Path) -> Result<Pins, CaptureError> {
        file_system::prepare(dir)?;
        Pins::lock(dir)
    }

    /// The directory, if it exists.
    ///
    /// # Errors
    /// The errors of [`Pins::open`].
    pub fn find(dir: &Path) -> Result<Option<Pins>, CaptureError> {
        if !file_system::is_pin_dir(dir)? {
            return Ok(None);
        }
        Pins::lock(dir).map(Some)
    }

    fn lock(dir: &Path) -> Result<Pins, CaptureError> {
        let what = |step: &str| format!("{step} {}", dir.display());
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let lock = rustix::fs::open(dir, flags, Mode::empty()).map_err(system(what("open")))?;

        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => Err(CaptureError::PinsInUse {
                dir: dir.to_owned(),
            }),
            other => other.map_err(system(what("flock"))).map(|()| Pins {
                dir: dir.to_owned(),
                moved: OnceLock::new(),
                _lock: lock,
                is_left: AtomicBool::new(true),
                ending: Mutex::default(),
            }),
        }
    }

    /// Path of the directory.
    pub fn dir(&self) -> &Path {
        self.moved.get().unwrap_or(&self.dir)
    }

    /// Path of the directory for a capture that is to replace the one in `dir`.
    pub fn next_to(dir: &Path) -> PathBuf {
        let mut name = dir.as_os_str().to_owned();
        name.push("-next");
        PathBuf::from(name)
    }

    /// Moves the directory to `dir`, which does not exist or is empty, with everything in it. Possible once.
    ///
    /// # Errors
    /// The file system refuses it.
    pub fn move_to(&self, dir: &Path) -> Result<(), CaptureError> {
        let what = || format!("rename {} to {}", self.dir().display(), dir.display());
        rustix::fs::rename(self.dir(), dir).map_err(system(what()))?;
        let _ = self.moved.set(dir.to_owned());
        Ok(())
    }

    /// Sets whether links that are dropped stay in force. Initially they do, so that a process that fails changes
    /// nothing.
    pub fn leave(&self, is_left: bool) {
        self.is_left.store(is_left, Ordering::Relaxed);
    }

    pub(crate) fn is_left(&self) -> bool {
        self.is_left.load(Ordering::Relaxed)
    }

    fn path(&self, name: &str) -> Result<CString, CaptureError> {
        // Dots are reserved in the BPF file system.
        let path = self.dir().join(name.replace('.', "_"));
        CString::new(path.as_os_str().as_bytes()).map_err(|error| CaptureError::System {
            what: format!("name of pin {name}"),
            source: error.into(),
        })
    }

    /// Pins an object under this name, replacing an existing pin.
    pub(crate) fn pin(&self, object: BorrowedFd<'_>, name: &str) -> Result<(), CaptureError> {
        self.unpin(name);
        let path = self.path(name)?;
        // SAFETY: the path outlives the call, which only reads it.
        let outcome = unsafe { bpf_obj_pin(object.as_raw_fd(), path.as_ptr()) };
        match outcome {
            0 => Ok(()),
            error => {
                Err(Errno::from_raw_os_error(-error)).map_err(system(format!("pin of {name}")))
            }
        }
    }

    /// The object with this name, if there is one.
    pub(crate) fn get(&self, name: &str) -> Result<Option<OwnedFd>, CaptureError> {
        let path = self.path(name)?;
        // SAFETY: the path outlives the call, which only reads it.
        match unsafe { bpf_obj_get(path.as_ptr()) } {
            // SAFETY: the kernel has just made this descriptor for us.
            fd @ 0.. => Ok(Some(unsafe { OwnedFd::from_raw_fd(fd) })),
            error => match Errno::from_raw_os_error(-error) {
                Errno::NOENT => Ok(None),
                errno => Err(system(format!("pinned {name}"))(errno)),
            },
        }
    }

    /// The map with this name, if there is one.
    pub(crate) fn get_map(&self, name: &str) -> Result<Option<MapHandle>, CaptureError> {
        let path = PathBuf::from(OsStr::from_bytes(self.path(name)?.as_bytes()));
        let is_there = path.symlink_metadata().is_ok();
        let open = || MapHandle::from_pinned_path(path).map_err(refused(format!("pinned {name}")));
        Ok(is_there.then(open).transpose()?)
    }

    /// Removes the pin with this name, if there is one.
    pub(crate) fn unpin(&self, name: &str) {
        if let Ok(path) = self.path(name) {
            // ENOENT is not an error.
            let _ = rustix::fs::unlink(path.as_c_str());
        }
    }

    /// All names in the directory.
    pub(crate) fn names(&self) -> BTreeSet<String> {
        let entries = std::fs::read_dir(self.dir())
            .into_iter()
            .flatten()
            .flatten();
        entries
            .filter_map(|entry| entry.file_name().into_string().ok())
            .collect()
    }

    /// The names of links, without their common prefix.
    pub(crate) fn links(&self) -> Vec<String> {
        let names = self.names().into_iter();
        names
            .filter_map(|name| name.strip_prefix(LINK).map(str::to_owned))
            .collect()
    }

    /// Unpins everything, links first: objects that nobody holds are freed.
    pub(crate) fn clear(&self) {
        // Without the page, the rest does not count as a complete capture if this process is killed now.

        self.unpin(handover::NAME);
        self.unhook_but(&[]);
        for name in self.names() {
            self.unpin(&name);
        }
    }

    /// Unpins everything and removes the directory. Returns whether nothing is left.
    pub fn remove(&self) -> bool {
        self.leave(false);
        self.clear();
        file_system::remove(self.dir())
    }

    /// Removes pinned hooks that are not among `kept`.
    pub(crate) fn unhook_but(&self, kept: &[String]) {
        let pinned = |name: &String| name.replace('.', "_");

        let kept: BTreeSet<String> = kept.iter().map(pinned).collect();
        for link in self.links() {
            if !kept.contains(&link) {
                let name = format!("{LINK}{link}");
                if let Ok(Some(fd)) = self.get(&name) {
                    self.end(&name, fd);
                }
            }
        }
    }

    /// Unpins a link, and notes that the kernel is going to detach it.
    fn end(&self, name: &str, link: OwnedFd) {
        let info = info_of(link.as_fd());
        // It is another daemon's if this process did not make it.
        info.iter()
            .for_each(|info| own_programs().note_inherited(info));

        let id = info.map(|info| info.id);
        if let (Some(id), Ok(mut ending)) = (id, self.ending.lock()) {
            if ending.len() >= ENDING_KEPT {
                ending.retain(|(_, id)| attached::exists(*id));
            }
            ending.push((name.to_owned(), id));
        }

        self.unpin(name);
    }

    /// Waits until unpinned links whose names begin with `name` are detached: with two hooks on the same place
    /// each call would be recorded twice. The kernel detaches a link some time after its pin is removed.
    pub(crate) fn wait_for_end_of(&self, name: &str) {
        let name = format!("{LINK}{name}");
        let until = Instant::now() + ENDING_MAX;
        let mut has_waited = false;
        let Ok(mut ending) = self.ending.lock() else {
            return;
        };

        ending.retain(|(ended, id)| {
            let is_wanted = ended.starts_with(&name);
            while is_wanted && attached::exists(*id) && Instant::now() < until {
                has_waited = true;
                std::thread::sleep(ENDING_LOOK);
            }
            !is_wanted
        });

        if has_waited {
            // The id disappears just before the hook does.
            std::thread::sleep(ENDING_LOOK);
        }
    }
}

/// Removes the directory if it is empty.
impl Drop for Pins {
    fn drop(&mut self) {
        file_system::remove(self.dir());
    }
}

/// CLOCK_MONOTONIC, nanoseconds.
pub(crate) fn now_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
