//! The messages between the daemon and a helper: datagrams with a fixed header and a text, in the
//! machine's byte order.
//!
//! A request gets at most one [`Reply`] with the same number; before it, the helper may announce
//! what it [waits for](Content::Waits). Anything that is not exactly as laid out here is refused.

use crate::bytes::{long, word};
use crate::digest::{DigestQuestion, ANSWER_BYTES_MAX, OWN_BYTES};
use plan::ObjectId;
use record::record::Inode;
use record::HashedFile;
use std::time::{Duration, Instant};

/// Length of the longest path in a question, in bytes. It is eight times PATH_MAX, so that a long
/// path below a long current directory has room.
pub const PATH_BYTES_MAX: usize = 32 * 1024;
/// Longest text of a reply.
const TEXT_BYTES_MAX: usize = PATH_BYTES_MAX;
/// Bytes of a request before its path.
const REQUEST_HEAD: usize = 36;
/// Bytes of a reply before its content.
const REPLY_HEAD: usize = 8;
/// Bytes of the longest message.
pub const BYTES_MAX: usize = REQUEST_HEAD + OWN_BYTES + PATH_BYTES_MAX;

const FOLLOW: u8 = 1;
const MAY_WAIT: u8 = 2;
const OF: u8 = 4;
const SCRIPT: u8 = 8;
/// Kind of a request for digests, which has more than the header before its path.
const DIGESTS: u8 = 11;
const CONTAINER: u8 = 12;

/// Something to look up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question<'a> {
    /// The object at a path; a symbolic link at its end itself unless `follow`.
    Inode {
        /// Absolute, here and below.
        path: &'a [u8],
        /// Whether a symbolic link at the end is followed.
        follow: bool,
    },
    /// The path without symbolic links.
    RealPath(&'a [u8]),
    /// The extended attribute `security.capability` of the object at a path.
    Capabilities(&'a [u8], Option<ObjectId>),
    /// The first bytes of the regular file at a path.
    Head(&'a [u8], Option<ObjectId>, u32),
    /// `f_type` of the file system at a path.
    FileSystem(&'a [u8]),
    /// The directories above a path: see [`compose::System::directories_above`]. At most this many are looked at.
    Above(&'a [u8], u32),
    /// The name of a user.
    User(u32),
    /// The name of a group.
    Group(u32),
    /// The inode number of a process's mount namespace.
    MountNamespace(u32),
    /// The path of the program that a process runs.
    Executable(u32),
    /// The names of a container and its pod: `/ID/UID`.
    Container(&'a [u8]),
    /// The digests of an executed file.
    Digests(DigestQuestion<'a>),
}

impl<'a> Question<'a> {
    /// The path in the question; `None` if it is about a name.
    pub(crate) fn path(&self) -> &'a [u8] {
        match *self {
            Question::Inode { path, .. }
            | Question::RealPath(path)
            | Question::Capabilities(path, _)
            | Question::Head(path, ..)
            | Question::FileSystem(path)
            | Question::Above(path, _)
            | Question::Container(path)
            | Question::Digests(DigestQuestion { path, .. }) => path,
            Question::User(_)
            | Question::Group(_)
            | Question::MountNamespace(_)
            | Question::Executable(_) => b"",
        }
    }
}

/// Whose paths a question's are, and how long the answer may take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply<'a> {
    /// Number of the request.
    pub number: u32,
    /// The content.
    pub content: Content<'a>,
}

/// The content of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content<'a> {
    /// The answer follows when the file system with this device number has answered.
    Waits(u32),
    /// Answer to [`Question::Inode`].
    Inode(Inode),
    /// Answer to questions for a text or bytes.
    Bytes(&'a [u8]),
    /// Answer to [`Question::FileSystem`] and [`Question::MountNamespace`].
    Number(u32),
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
        let most = match question {
            Question::Inode { .. } => return matches!(self, Content::Inode(_)) || self.is_empty(),
            Question::FileSystem(_) | Question::MountNamespace(_) => {
                return matches!(self, Content::Number(_)) || self.is_empty()
            }
            Question::Above(..) => {
                let is_list = matches!(self, Content::Bytes(bytes) if above(bytes).is_some());
                return is_list || self.is_empty();
            }
            Question::Digests(_) => ANSWER_BYTES_MAX,
            Question::Capabilities(..) => CAPABILITIES_BYTES,
            Question::Head(_, _, bytes_max) => *bytes_max as usize,
            Question::RealPath(_)
            | Question::User(_)
            | Question::Group(_)
            | Question::Container(_)
            | Question::Executable(_) => TEXT_BYTES_MAX,
        };
        self.is_empty() || matches!(self, Content::Bytes(bytes) if bytes.len() <= most)
    }

    fn is_empty(&self) -> bool {
        matches!(self, Content::Missing | Content::NotNow | Content::Denied)
    }
}

/// Size of an object in the answer to [`Question::Above`], in bytes.
const OBJECT_BYTES: usize = 12;

/// The answer to [`Question::Above`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Above {
    pub(crate) objects: Vec<ObjectId>,
    /// Whether these are all.
    pub(crate) is_all: bool,
}

impl Above {
    /// The bytes of the answer: whether it is all, and the objects.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut out = vec![u8::from(self.is_all)];
        for id in &self.objects {
            out.extend_from_slice(&id.ino.to_ne_bytes());
            out.extend_from_slice(&id.dev.to_ne_bytes());
        }
        out
    }
}

/// The answer in `bytes`; `None` if they are not one.
pub(crate) fn above(bytes: &[u8]) -> Option<Above> {
    let (&is_all, objects) = bytes.split_first()?;
    let object = |bytes| {
        Some(ObjectId {
            ino: long(bytes, 0)?,
            dev: word(bytes, 8)?,
        })
    };
    let is_right = is_all <= 1 && objects.len().is_multiple_of(OBJECT_BYTES);
    is_right.then(|| Above {
        objects: objects
            .chunks_exact(OBJECT_BYTES)
            .filter_map(object)
            .collect(),
        is_all: is_all == 1,
    })
}

/// `XATTR_CAPS_SZ` of linux/capability.h.
pub(crate) const CAPABILITIES_BYTES: usize = 24;

/// The header of a request, as it is sent. Members that a kind does not use are 0.
#[derive(Default, PartialEq, Eq)]
struct Head {
    kind: u8,
    flags: u8,
    number: u32,
    value: u32,
    dev: u32,
    ino: u64,
    asker: Asker,
}

impl Head {
    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[self.kind, self.flags, 0, 0]);
        for word in [self.number, self.value, self.dev] {
            out.extend_from_slice(&word.to_ne_bytes());
        }
        out.extend_from_slice(&self.ino.to_ne_bytes());
        let asker = &self.asker;
        for word in [asker.limit_us, asker.pid, asker.prefix] {
            out.extend_from_slice(&word.to_ne_bytes());
        }
    }

    fn take(bytes: &[u8]) -> Option<(Head, &[u8])> {
        let (head, rest) = bytes.split_at_checked(REQUEST_HEAD)?;
        let head = Head {
            kind: head[0],
            flags: head[1],
            number: word(head, 4)?,
            value: word(head, 8)?,
            dev: word(head, 12)?,
            ino: long(head, 16)?,
            asker: Asker {
                limit_us: word(head, 24)?,
                pid: word(head, 28)?,
                prefix: word(head, 32)?,
            },
        };
        (bytes[2..4] == [0, 0]).then_some((head, rest))
    }

    fn of(&self) -> Option<ObjectId> {
        (self.flags & OF != 0).then_some(ObjectId {
            dev: self.dev,
            ino: self.ino,
        })
    }

    /// Takes over what the header has place for. Returns kind and path of the request.
    fn with_digests<'a>(&mut self, question: &DigestQuestion<'a>) -> (u8, &'a [u8]) {
        self.flags |= OF;
        self.flags |= match question.file {
            HashedFile::Exe => 0,
            HashedFile::Script => SCRIPT,
        };
        self.value = question.pid;
        (self.dev, self.ino) = (question.object.dev, question.object.ino);
        (DIGESTS, question.path)
    }

    /// The part of a question for digests that is in the header.
    fn digests<'a>(&self, path: &'a [u8]) -> DigestQuestion<'a> {
        DigestQuestion {
            path,
            object: ObjectId {
                dev: self.dev,
                ino: self.ino,
            },
            file: match self.flags & SCRIPT {
                0 => HashedFile::Exe,
                _ => HashedFile::Script,
            },
            pid: self.value,
            mnt_ns: 0,
            time_ns: 0,
            bytes_max: 0,
        }
    }
}

impl<'a> Request<'a> {
    /// Appends the message. A path is one that [`Request::parse`] takes.
    pub fn put(&self, out: &mut Vec<u8>) {
        let (head, path) = self.parts();
        head.put(out);
        if let Request::Ask {
            question: Question::Digests(question),
            ..
        } = self
        {
            question.put_own(out);
        }
        out.extend_from_slice(path);
    }

    fn parts(&self) -> (Head, &'a [u8]) {
        let (number, may_wait, asker, question) = match *self {
            Request::Avoid { dev, ms } => {
                let head = Head {
                    value: ms,
                    dev,
                    ..Head::default()
                };
                return (head, b"");
            }
            Request::Ask {
                number,
                may_wait,
                asker,
                question,
            } => (number, may_wait, asker, question),
        };
        let mut head = Head {
            flags: if may_wait { MAY_WAIT } else { 0 },
            number,
            asker,
            ..Head::default()
        };
        let mut of = None;
        let path;
        (head.kind, path) = match question {
            Question::Inode { path, follow } => {
                head.flags |= if follow { FOLLOW } else { 0 };
                (1, path)
            }
            Question::RealPath(path) => (2, path),
            Question::Capabilities(path, object) => {
                of = object;
                (3, path)
            }
            Question::Head(path, object, bytes_max) => {
                (of, head.value) = (object, bytes_max);
                (4, path)
            }
            Question::FileSystem(path) => (5, path),
            Question::Above(path, steps_max) => {
                head.value = steps_max;
                (8, path)
            }
            Question::User(uid) => {
                head.value = uid;
                (6, &b""[..])
            }
            Question::Group(gid) => {
                head.value = gid;
                (7, &b""[..])
            }
            Question::MountNamespace(pid) => {
                head.value = pid;
                (9, &b""[..])
            }
            Question::Executable(pid) => {
                head.value = pid;
                (10, &b""[..])
            }
            Question::Container(path) => (CONTAINER, path),
            Question::Digests(question) => head.with_digests(&question),
        };
        if let Some(ObjectId { dev, ino }) = of {
            head.flags |= OF;
            (head.dev, head.ino) = (dev, ino);
        }
        (head, path)
    }

    /// The request in a datagram; `None` if it is not one.
    pub fn parse(bytes: &'a [u8]) -> Option<Request<'a>> {
        let (head, rest) = Head::take(bytes)?;
        let (own, path) = match head.kind {
            DIGESTS => rest.split_at_checked(OWN_BYTES)?,
            _ => (&b""[..], rest),
        };
        let question = match head.kind {
            0 => None,
            1 => Some(Question::Inode {
                path,
                follow: head.flags & FOLLOW != 0,
            }),
            2 => Some(Question::RealPath(path)),
            3 => Some(Question::Capabilities(path, head.of())),
            4 => Some(Question::Head(path, head.of(), head.value)),
            5 => Some(Question::FileSystem(path)),
            6 => Some(Question::User(head.value)),
            7 => Some(Question::Group(head.value)),
            8 => Some(Question::Above(path, head.value)),
            9 => Some(Question::MountNamespace(head.value)),
            10 => Some(Question::Executable(head.value)),
            CONTAINER => Some(Question::Container(path)),
            DIGESTS => Some(Question::Digests(head.digests(path).with_own(own)?)),
            _ => return None,
        };
        let request = match question {
            None => Request::Avoid {
                dev: head.dev,
                ms: head.value,
            },
            Some(question) => Request::Ask {
                number: head.number,
                may_wait: head.flags & MAY_WAIT != 0,
                asker: head.asker,
                question,
            },
        };
        // Anything that the other side would not send, such as an unused flag, is refused.
        let has_path = matches!(head.kind, 1..=5 | 8 | DIGESTS | CONTAINER);
        let is_right = request.parts() == (head, path) && has_path == is_path(path);
        (is_right && (has_path || path.is_empty())).then_some(request)
    }
}

/// Whether a path can be in a question.
pub fn is_path(path: &[u8]) -> bool {
    path.first() == Some(&b'/') && path.len() <= PATH_BYTES_MAX && !path.contains(&0)
}

impl<'a> Reply<'a> {
    /// Appends the message.
    pub fn put(&self, out: &mut Vec<u8>) {
        let kind: u8 = match self.content {
            Content::Waits(_) => 1,
            Content::Inode(_) => 2,
            Content::Bytes(_) => 3,
            Content::Number(_) => 4,
            Content::Missing => 5,
            Content::NotNow => 6,
            Content::Denied => 7,
        };
        out.extend_from_slice(&[kind, 0, 0, 0]);
        out.extend_from_slice(&self.number.to_ne_bytes());
        match self.content {
            Content::Waits(number) | Content::Number(number) => {
                out.extend_from_slice(&number.to_ne_bytes());
            }
            Content::Inode(inode) => {
                out.extend_from_slice(&inode.ino.to_ne_bytes());
                let mode = inode.mode.into();
                for word in [inode.dev, mode, inode.ouid, inode.ogid, inode.rdev] {
                    out.extend_from_slice(&word.to_ne_bytes());
                }
            }
            Content::Bytes(bytes) => out.extend_from_slice(bytes),
            Content::Missing | Content::NotNow | Content::Denied => {}
        }
    }

    /// The reply in a datagram; `None` if it is not one.
    pub fn parse(bytes: &'a [u8]) -> Option<Reply<'a>> {
        let (head, rest) = bytes.split_at_checked(REPLY_HEAD)?;
        let number = || Some(u32::from_ne_bytes(rest.try_into().ok()?));
        let content = match head[0] {
            1 => Content::Waits(number()?),
            2 if rest.len() == 28 => Content::Inode(Inode {
                ino: long(rest, 0)?,
                dev: word(rest, 8)?,
                mode: word(rest, 12)?.try_into().ok()?,
                ouid: word(rest, 16)?,
                ogid: word(rest, 20)?,
                rdev: word(rest, 24)?,
            }),
            3 if rest.len() <= TEXT_BYTES_MAX => Content::Bytes(rest),
            4 => Content::Number(number()?),
            5 if rest.is_empty() => Content::Missing,
            6 if rest.is_empty() => Content::NotNow,
            7 if rest.is_empty() => Content::Denied,
            _ => return None,
        };
        let number = word(head, 4)?;
        (head[1..4] == [0, 0, 0]).then_some(Reply { number, content })
    }
}

#[cfg(test)]
mod tests;
