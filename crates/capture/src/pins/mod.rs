//! What outlives the daemon: a private directory of a BPF file system (kernel/bpf/inode.c), in which the links, the
//! maps and the rings of a capture are pinned, so that they work on when nobody holds a descriptor of them.

mod attached;
mod file_system;
mod handover;

pub(crate) use attached::{info_of, Attached};
pub use file_system::STANDARD_PIN_DIR;
pub use handover::{Handed, Handover, UnfinishedWrite};

use crate::error::{system, CaptureError};
use bpf::load::refused;
use libbpf_rs::libbpf_sys::{bpf_obj_get, bpf_obj_pin};
use libbpf_rs::MapHandle;
use rustix::fs::{flock, FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use std::collections::BTreeSet;
use std::ffi::{CString, OsStr};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Names of links begin so; they are unpinned first.
const LINK: &str = "link-";

/// The directory of one capture, locked for this process. Dropping it leaves what is pinned, and removes an empty directory.
#[derive(Debug)]
pub struct Pins {
    dir: PathBuf,
    _lock: OwnedFd,
    /// Links that are dropped stay pinned.
    is_left: AtomicBool,
    /// Links that were unpinned, by name: the kernel takes a moment to end them.
    ending: Mutex<Vec<(String, u32)>>,
}

/// Longest wait for the end of a link.
const ENDING_MAX: Duration = Duration::from_secs(10);
/// Links that end, beyond which those that have ended are forgotten.
const ENDING_KEPT: usize = 1024;
/// Between two looks whether it has ended: nobody tells.
const ENDING_LOOK: Duration = Duration::from_millis(2);

impl Pins {
    /// Makes `dir` (0700) if need be, on a BPF file system, which is mounted at [`STANDARD_PIN_DIR`]'s parent if
    /// `dir` is below that and none is.
    ///
    /// # Errors
    /// `dir` is not on a BPF file system, belongs to another user, is open to others, or another process
    /// has it.
    pub fn open(dir: &Path) -> Result<Pins, CaptureError> {
        file_system::prepare(dir)?;
        Pins::lock(dir)
    }

    /// The directory if it is there.
    ///
    /// # Errors
    /// As [`Pins::open`].
    pub fn find(dir: &Path) -> Result<Option<Pins>, CaptureError> {
        match file_system::is_pin_dir(dir)? {
            true => Pins::lock(dir).map(Some),
            false => Ok(None),
        }
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
                _lock: lock,
                is_left: AtomicBool::new(true),
                ending: Mutex::default(),
            }),
        }
    }

    /// Where it is.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Whether links that are dropped stay in force. At first they do, so that a process that fails changes nothing.
    pub fn leave(&self, is_left: bool) {
        self.is_left.store(is_left, Ordering::Relaxed);
    }

    pub(crate) fn is_left(&self) -> bool {
        self.is_left.load(Ordering::Relaxed)
    }

    fn path(&self, name: &str) -> Result<CString, CaptureError> {
        // Dots are reserved there.
        let path = self.dir.join(name.replace('.', "_"));
        CString::new(path.as_os_str().as_bytes()).map_err(|error| CaptureError::System {
            what: format!("name of pin {name}"),
            source: error.into(),
        })
    }

    /// Pins an object over what has this name.
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

    /// The object of this name; none if there is none.
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

    /// The map of this name; none if there is none.
    pub(crate) fn get_map(&self, name: &str) -> Result<Option<MapHandle>, CaptureError> {
        let path = PathBuf::from(OsStr::from_bytes(self.path(name)?.as_bytes()));
        let is_there = path.symlink_metadata().is_ok();
        let open = || MapHandle::from_pinned_path(path).map_err(refused(format!("pinned {name}")));
        Ok(is_there.then(open).transpose()?)
    }

    /// Lets go of what has this name, if anything has.
    pub(crate) fn unpin(&self, name: &str) {
        if let Ok(path) = self.path(name) {
            // What is not there need not go.
            let _ = rustix::fs::unlink(path.as_c_str());
        }
    }

    /// The names in the directory.
    pub(crate) fn names(&self) -> BTreeSet<String> {
        let entries = std::fs::read_dir(&self.dir).into_iter().flatten().flatten();
        entries
            .filter_map(|entry| entry.file_name().into_string().ok())
            .collect()
    }

    /// The names of links, without what all have in common.
    pub(crate) fn links(&self) -> Vec<String> {
        let names = self.names().into_iter();
        names
            .filter_map(|name| name.strip_prefix(LINK).map(str::to_owned))
            .collect()
    }

    /// Unpins everything, links first: what nobody holds ends.
    pub(crate) fn clear(&self) {
        // Without it the rest is not taken for a whole capture, should this process be killed.
        self.unpin(handover::NAME);
        self.unhook_but(&[]);
        for name in self.names() {
            self.unpin(&name);
        }
    }

    /// The same, and removes the directory. Whether that left nothing behind.
    pub fn remove(&self) -> bool {
        self.leave(false);
        self.clear();
        file_system::remove(&self.dir)
    }

    /// Takes hooks away that are pinned and not among these.
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

    /// Unpins a link, and notes that it is about to end.
    fn end(&self, name: &str, link: OwnedFd) {
        if let (Some(id), Ok(mut ending)) = (attached::id_of(&link), self.ending.lock()) {
            if ending.len() >= ENDING_KEPT {
                ending.retain(|(_, id)| attached::exists(*id));
            }
            ending.push((name.to_owned(), id));
        }
        self.unpin(name);
    }

    /// Waits until links that were unpinned and whose name begins so have ended: with two of a kind every
    /// call would be seen twice. The kernel ends a link that was pinned some time after its name is gone.
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
            // Its id goes just before the hook does.
            std::thread::sleep(ENDING_LOOK);
        }
    }
}

/// A directory with something in it stays.
impl Drop for Pins {
    fn drop(&mut self) {
        file_system::remove(&self.dir);
    }
}

/// CLOCK_MONOTONIC, nanoseconds.
pub(crate) fn now_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
