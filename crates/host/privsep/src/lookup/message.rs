//! The messages between the daemon and a helper for look-ups.
//!
//! A request gets at most one [`Reply`] with the same number; before it, the helper may announce
//! what it [waits for](Content::Waits). A path that no question can have is refused on both sides.

use crate::frame::{self, FrameError};
use compose::ExecutedFile;
use plan::ObjectId;
use record::record::Inode;
use record::{ContainerNames, Digests, HashedFile};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::time::{Duration, Instant};

/// Length of the longest path in a question, in bytes. It is eight times PATH_MAX, so that a long
/// path below a long current directory has room.
pub const PATH_BYTES_MAX: usize = 32 * 1024;
/// Longest text of a reply.
const TEXT_BYTES_MAX: usize = PATH_BYTES_MAX;
/// Bytes of the longest message: a path, and less than this many bytes of numbers.
pub const BYTES_MAX: usize = PATH_BYTES_MAX + 128;
/// `XATTR_CAPS_SZ` of linux/capability.h.
pub(crate) const CAPABILITIES_BYTES: usize = 24;

/// Something to look up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Question<'a> {
    /// The object at a path; a symbolic link at its end itself unless `follow`.
    Inode {
        /// Absolute, here and below.
        #[serde(with = "serde_bytes")]
        path: &'a [u8],
        /// Whether a symbolic link at the end is followed.
        follow: bool,
    },
    /// The path without symbolic links.
    RealPath(#[serde(with = "serde_bytes")] &'a [u8]),
    /// The extended attribute `security.capability` of the object at a path.
    Capabilities(#[serde(with = "serde_bytes")] &'a [u8], Option<ObjectId>),
    /// The first bytes of the regular file at a path.
    Head(
        #[serde(with = "serde_bytes")] &'a [u8],
        Option<ObjectId>,
        u32,
    ),
    /// `f_type` of the file system at a path.
    FileSystem(#[serde(with = "serde_bytes")] &'a [u8]),
    /// The directories above a path: see [`compose::System::directories_above`]. At most this many are looked at.
    Above(#[serde(with = "serde_bytes")] &'a [u8], u32),
    /// The name of a user.
    User(u32),
    /// The name of a group.
    Group(u32),
    /// The inode number of a process's mount namespace.
    MountNamespace(u32),
    /// The path of the program that a process runs.
    Executable(u32),
    /// The names of a container and its pod: `/ID/UID`.
    Container(#[serde(with = "serde_bytes")] &'a [u8]),
    /// The digests of an executed file.
    #[serde(borrow)]
    Digests(DigestQuestion<'a>),
}

impl<'a> Question<'a> {
    /// The path in the question; `None` if it is about a name or a process.
    pub(crate) fn path(&self) -> Option<&'a [u8]> {
        match *self {
            Question::Inode { path, .. }
            | Question::RealPath(path)
            | Question::Capabilities(path, _)
            | Question::Head(path, ..)
            | Question::FileSystem(path)
            | Question::Above(path, _)
            | Question::Container(path)
            | Question::Digests(DigestQuestion { path, .. }) => Some(path),
            Question::User(_)
            | Question::Group(_)
            | Question::MountNamespace(_)
            | Question::Executable(_) => None,
        }
    }
}

/// Whose paths a question's are, and how long the answer may take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asker {
    /// Microseconds after which no answer is wanted any more; 0: no limit.
    pub limit_us: u32,
    /// The process that saw the path; 0: nobody in particular.
    pub pid: u32,
    /// Bytes of the path that lead to the root directory of the process; 0: to that of the helper.
    pub prefix: u32,
}

impl Asker {
    /// Whether the time for an answer to a question of this time is over.
    pub(crate) fn has_run_out(&self, asked: Instant) -> bool {
        let limit = Duration::from_micros(self.limit_us.into());
        self.limit_us > 0 && asked.elapsed() >= limit
    }
}

/// Message from the daemon to a helper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request<'a> {
    /// Look this up.
    Ask {
        /// Number of the request, which the reply repeats.
        number: u32,
        /// Whether the helper may wait for the answer; otherwise it only asks for what the kernel
        /// has in memory.
        may_wait: bool,
        /// Whose question it is.
        asker: Asker,
        /// The question.
        #[serde(borrow)]
        question: Question<'a>,
    },
    /// Wait for nothing on the file system with this device number for a while. There is no reply.
    Avoid {
        /// Device number, in the kernel's own encoding.
        dev: u32,
        /// Duration, in milliseconds.
        ms: u32,
    },
}

/// Message from a helper to the daemon.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reply<'a> {
    /// Number of the request.
    pub number: u32,
    /// The content.
    #[serde(borrow)]
    pub content: Content<'a>,
}

/// The content of a reply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Content<'a> {
    /// The answer follows when the file system with this device number has answered.
    Waits(u32),
    /// Answer to [`Question::Inode`].
    Inode(Inode),
    /// Answer to questions for a text or bytes.
    #[serde(borrow, with = "serde_bytes")]
    Bytes(Cow<'a, [u8]>),
    /// Answer to [`Question::FileSystem`] and [`Question::MountNamespace`].
    Number(u32),
    /// Answer to [`Question::Above`].
    Above(Above),
    /// Answer to [`Question::Container`].
    Container(ContainerNames),
    /// Answer to [`Question::Digests`].
    Digests(Digests),
    /// There is no such thing.
    Missing,
    /// The answer would need a wait for a file system that must not be waited for, or more time than there is.
    NotNow,
    /// The helper may not look at it.
    Denied,
}

impl Content<'_> {
    /// Whether this can answer `question`.
    pub fn answers(&self, question: &Question<'_>) -> bool {
        match (question, self) {
            (_, Content::Missing | Content::NotNow | Content::Denied)
            | (Question::Inode { .. }, Content::Inode(_))
            | (Question::FileSystem(_) | Question::MountNamespace(_), Content::Number(_))
            | (Question::Above(..), Content::Above(_))
            | (Question::Container(_), Content::Container(_))
            | (Question::Digests(_), Content::Digests(_)) => true,
            (Question::Capabilities(..), Content::Bytes(bytes)) => {
                bytes.len() <= CAPABILITIES_BYTES
            }
            (Question::Head(_, _, bytes_max), Content::Bytes(bytes)) => {
                bytes.len() <= *bytes_max as usize
            }
            (
                Question::RealPath(_)
                | Question::User(_)
                | Question::Group(_)
                | Question::Executable(_),
                Content::Bytes(bytes),
            ) => bytes.len() <= TEXT_BYTES_MAX,
            _ => false,
        }
    }
}

/// The directories above a path.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Above {
    /// The directories, the nearest first.
    pub objects: Vec<ObjectId>,
    /// Whether these are all.
    pub is_all: bool,
}

/// Asks for the digests of an executed file: see [`ExecutedFile`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DigestQuestion<'a> {
    /// Path of the file at its execution.
    #[serde(with = "serde_bytes")]
    pub path: &'a [u8],
    /// The file.
    pub object: ObjectId,
    /// Program or script.
    pub file: HashedFile,
    /// The process.
    pub pid: u32,
    /// The mount namespace of the process.
    pub mnt_ns: u32,
    /// Time of the execve, in nanoseconds of CLOCK_MONOTONIC.
    pub time_ns: u64,
    /// Size up to which files are hashed.
    pub bytes_max: u64,
}

impl<'a> DigestQuestion<'a> {
    pub(crate) fn of(file: &ExecutedFile<'a>, bytes_max: u64) -> DigestQuestion<'a> {
        DigestQuestion {
            path: file.path.to_bytes(),
            object: file.object,
            file: file.file,
            pid: file.pid,
            mnt_ns: file.mnt_ns,
            time_ns: file.time_ns,
            bytes_max,
        }
    }
}

impl<'a> Request<'a> {
    /// Writes the message into `out`, in place of what is there. A path is one that [`Request::parse`] takes.
    pub fn put(&self, out: &mut Vec<u8>) {
        // Numbers and bytes always have an encoding.
        let _ = frame::put(self, out);
    }

    /// The request in a datagram.
    ///
    /// # Errors
    /// It is none that [`Request::put`] writes, or has a path that no question can have.
    pub fn parse(bytes: &'a [u8]) -> Result<Request<'a>, FrameError> {
        let request: Request<'a> = frame::parse(bytes)?;
        if let Request::Ask { question, .. } = request {
            if question.path().is_some_and(|path| !is_path(path)) {
                return Err(FrameError::Malformed);
            }
        }
        Ok(request)
    }
}

/// Whether a path can be in a question.
pub fn is_path(path: &[u8]) -> bool {
    path.first() == Some(&b'/') && path.len() <= PATH_BYTES_MAX && !path.contains(&0)
}

impl<'a> Reply<'a> {
    /// Writes the message into `out`, in place of what is there.
    pub fn put(&self, out: &mut Vec<u8>) {
        // Numbers and bytes always have an encoding.
        let _ = frame::put(self, out);
    }

    /// The reply in a datagram.
    ///
    /// # Errors
    /// It is none that [`Reply::put`] writes.
    pub fn parse(bytes: &'a [u8]) -> Result<Reply<'a>, FrameError> {
        frame::parse(bytes)
    }
}

#[cfg(test)]
mod tests;
