//! Finds the file that was executed, and opens it for reading if its times allow a digest.

use super::cache::Contents;
use super::ioctl;
use super::judge::{has_true_directories, Kind, Margin};
use crate::lookup::devices::Devices;
use crate::lookup::message::{Asker, DigestQuestion};
use crate::lookup::object::{changed, dev_of, stat, Fault};
use crate::lookup::walk::{self, Access, Gate, Trail};
use plan::ObjectId;
use record::{HashedFile, NoDigest, Verity};
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::fs::{fstat, fstatfs, openat, Mode, OFlags, Statx, CWD};
use rustix::io::Errno;

const S_IFMT: u16 = 0o170000;
const S_IFREG: u16 = 0o100000;
const EXECUTABLE: u16 = 0o111;

/// A file whose contents are those of the time of the execve, unless they change from now on.
pub(super) struct Found {
    pub(super) file: OwnedFd,
    pub(super) contents: Contents,
    pub(super) verity: Option<Verity>,
}

impl From<Fault> for NoDigest {
    fn from(fault: Fault) -> NoDigest {
        match fault {
            Fault::Missing | Fault::Denied => NoDigest::Gone,
            Fault::NotNow => NoDigest::Unanswered,
        }
    }
}

/// Looks for the file of one question.
pub(super) struct Finder<'a> {
    pub(super) question: &'a DigestQuestion<'a>,
    pub(super) asker: Asker,
    /// Time of the execve, in nanoseconds of CLOCK_REALTIME.
    pub(super) event_ns: i64,
    pub(super) gate: &'a mut dyn Gate,
    pub(super) devices: &'a mut Devices,
}

impl Finder<'_> {
    pub(super) fn find(&mut self) -> Result<Found, NoDigest> {
        let object = match self.question.file {
            HashedFile::Script => self.by_trail()?,
            HashedFile::Exe => self.by_path_or_process()?,
        };
        let file = self.reopened(&object)?;
        let found = stat(&file)?;
        let kind = self.kind(&file)?;
        let margin = Margin {
            is_script: self.question.file == HashedFile::Script,
            is_overlay: kind == Kind::Overlay,
        };
        margin
            .check(changed(&found), self.event_ns)
            .map_err(|why| match found.stx_nlink {
                0 => NoDigest::Gone,
                _ => why,
            })?;
        if kind == Kind::Overlay && !ioctl::is_on_disk(&file) {
            return Err(NoDigest::FileSystem);
        }
        if (margin.is_script || margin.is_overlay) && !self.has_mounts_of_host() {
            return Err(NoDigest::Namespace);
        }

        let handle = match kind {
            Kind::Btrfs => ioctl::handle(&file).ok_or(NoDigest::FileSystem)?,
            Kind::Plain | Kind::Overlay => Vec::new(),
        };
        Ok(Found {
            contents: contents(self.question.object.dev, &found, handle),
            verity: ioctl::verity(&file),
            file,
        })
    }

    /// The program: at its path, or else what the process runs now.
    fn by_path_or_process(&mut self) -> Result<OwnedFd, NoDigest> {
        match self.at(self.question.path, None) {
            Ok(object) if self.kind(&object)? != Kind::Btrfs => return Ok(object),
            // Device and inode number do not suffice.
            Ok(_) => return self.by_trail(),
            Err(NoDigest::Gone) => {}
            Err(why) => return Err(why),
        }

        let path = format!("/proc/{}/exe", self.question.pid);
        let object = self.at(path.as_bytes(), None)?;
        match self.kind(&object)? {
            Kind::Btrfs => Err(NoDigest::Gone),
            Kind::Plain | Kind::Overlay => Ok(object),
        }
    }

    /// The file at the path, of which no directory and no link was changed since before the execve.
    fn by_trail(&mut self) -> Result<OwnedFd, NoDigest> {
        let mut trail = Trail::default();
        let object = self.at(self.question.path, Some(&mut trail))?;
        if !trail.kinds.iter().all(|kind| has_true_directories(*kind)) {
            return Err(NoDigest::FileSystem);
        }
        if !self.has_mounts_of_host() {
            return Err(NoDigest::Namespace);
        }
        let changed = trail.changed.ok_or(NoDigest::Gone)?;
        Margin::DIRECTORY.check(changed, self.event_ns)?;
        Ok(object)
    }

    /// The object at a path, without opening it, if it is the one of the question.
    fn at(&mut self, path: &[u8], trail: Option<&mut Trail>) -> Result<OwnedFd, NoDigest> {
        let asker = if path == self.question.path {
            self.asker
        } else {
            Asker::default()
        };
        let mut access = Access::of(path, asker, self.gate, self.devices);
        if let Some(trail) = trail {
            access = access.noting(trail);
        }
        let object = walk::open(path, true, &mut access)?;
        let stat = stat(&object)?;
        let id = ObjectId {
            dev: access.device(&object, &stat),
            ino: stat.stx_ino,
        };
        if id != self.question.object {
            return Err(NoDigest::Gone);
        }

        if access.may_wait(&object, &stat) {
            Ok(object)
        } else {
            Err(NoDigest::Unanswered)
        }
    }

    fn kind(&self, object: &OwnedFd) -> Result<Kind, NoDigest> {
        let kind = fstatfs(object).map_err(Fault::from)?.f_type as i64;
        Kind::of(kind).ok_or(NoDigest::FileSystem)
    }

    /// Opens for reading what is open already: a regular file that may be executed.
    fn reopened(&self, object: &OwnedFd) -> Result<OwnedFd, NoDigest> {
        let found = stat(object)?;
        if found.stx_mode & S_IFMT != S_IFREG || found.stx_mode & EXECUTABLE == 0 {
            return Err(NoDigest::Unreadable);
        }

        self.kind(object)?;
        // NONBLOCK: nobody's lease is waited for.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let path = format!("/proc/self/fd/{}", object.as_raw_fd());
        openat(CWD, path, flags, Mode::empty()).map_err(|errno| match errno {
            Errno::AGAIN => NoDigest::Busy,
            _ => NoDigest::Unreadable,
        })
    }

    /// Whether only root of the host could change the mounts that the process saw.
    fn has_mounts_of_host(&self) -> bool {
        let of_process = format!("/proc/{}/ns/mnt", self.question.pid);
        ["/proc/self/ns/mnt", &of_process].iter().any(|path| {
            let flags = OFlags::RDONLY | OFlags::CLOEXEC;
            let Ok(namespace) = openat(CWD, *path, flags, Mode::empty()) else {
                return false;
            };
            let is_same =
                fstat(&namespace).is_ok_and(|stat| stat.st_ino == u64::from(self.question.mnt_ns));
            is_same && ioctl::is_of_host(&namespace)
        })
    }
}

/// Identity of a file's contents on the file system `dev`.
pub(super) fn contents(dev: u32, stat: &Statx, handle: Vec<u8>) -> Contents {
    Contents {
        dev: (dev, dev_of(stat)),
        ino: stat.stx_ino,
        changed: changed(stat),
        size: stat.stx_size,
        handle,
    }
}
